package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fabricctl/fabricctl/cmd/show"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/picture"
	"github.com/fabricctl/fabricctl/model/units"
)

type graphJSON struct {
	Schema string `json:"schema"`
	picture.Graph
}

// graphFlags are what graph is asked for.
type graphFlags struct {
	links, noHosts bool
	out            string
}

func (a *app) newGraph() *cobra.Command {
	var o graphFlags
	c := &cobra.Command{
		Use:   "graph",
		Short: "Show the topology in words, or draw it: tiers, links, redundancy groups, findings",
		Long: `Show what the model's topology comes to: the devices of each tier, the links by kind, what each switch and each rail has
below and above (down to up), border ports, and the redundancy groups, whose members stand in for each other.
-o json has every link; -o dot is for Graphviz. No device is contacted.

--out draws it into a file: FILE.svg for a browser, a wiki or paper, FILE.dot for Graphviz. Every tier is a row, and beside it
stands what its links are: how many, speed, cable, lossless classes. What is planned or in maintenance is dashed; findings that
nobody acknowledged are red, with their rule. In the SVG devices that are alike share a box where there are many, and the
pointer on a box or a link tells the rest. A model with errors is drawn too, as far as its topology is known, with exit 1.`,
		Example: "  fabricctl graph -f fabric.yaml\n  fabricctl graph -f fabric.yaml --links\n  fabricctl graph -f fabric.yaml --out fabric.svg\n" +
			"  fabricctl graph -f fabric.yaml -o dot --no-hosts | dot -Tpdf > fabric.pdf",
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			ctx, cancel := a.limit(c.Context())
			defer cancel()
			return a.runGraph(ctx, o)
		},
	}
	c.Flags().BoolVar(&o.links, "links", false, "list every link")
	c.Flags().BoolVar(&o.noHosts, "no-hosts", false, "leave hosts and their links out of --links, -o dot and --out")
	c.Flags().StringVar(&o.out, "out", "", "draw the topology into this file, whose name ends in .svg or .dot")
	return c
}

func (a *app) runGraph(ctx context.Context, o graphFlags) error {
	if a.output == "svg" {
		return fail(exitUsage, "write --out fabric.svg", "-o svg: a picture goes to a file")
	}
	json, err := a.wants("text", "json", "dot")
	switch {
	case err != nil:
		return err
	case a.output != "text" && o.links:
		return usage("--links is for text; -o %s has what it can show", a.output)
	case a.output == "json" && o.noHosts:
		return usage("--no-hosts is for text, dot and --out; -o json is whole")
	case o.out != "" && (a.output != "text" || o.links):
		return usage("--out writes a picture and nothing else: leave out -o and --links")
	}
	if o.out != "" {
		return a.drawGraph(ctx, o)
	}
	m, err := a.mustLoad(ctx)
	if err != nil {
		return err
	}
	if a.output == "dot" {
		fmt.Fprint(a.sys.out, picture.Dot(m.net, picture.Sheet{NoHosts: o.noHosts}))
		return nil
	}
	g := picture.Of(m.net)
	if json {
		return a.printJSON(graphJSON{"fabricctl/graph/v1", g})
	}
	printGraph(a.sys.out, g)
	if o.links {
		printLinks(a.sys.out, g, !o.noHosts)
	}
	return nil
}

// drawGraph writes the picture of a model, with its findings, into a file.
func (a *app) drawGraph(ctx context.Context, o graphFlags) error {
	draw, err := drawer(o.out)
	if err != nil {
		return err
	}
	if err := outFile("--out", o.out, "fabric.svg"); err != nil {
		return err
	}
	m, err := a.load(ctx, a.fabric)
	if err != nil {
		return err
	}
	a.printLoaded(m)
	if m.net == nil {
		return m.refused()
	}
	if err := os.WriteFile(o.out, draw(m.net, picture.Sheet{Digest: m.digest(), Findings: m.findings, NoHosts: o.noHosts}), 0o644); err != nil {
		return fail(exitError, "", "the picture was not written: %w", err)
	}
	fmt.Fprintf(a.sys.err, "drew %s: %s\n", m.net.Fabric, o.out)
	if m.findings.HasErrors() {
		return fail(exitError, "", "the model has %s, red in %s", diag.Count(m.findings.Count(diag.Error), "error"), o.out)
	}
	return nil
}

// drawer is how a picture is drawn, by the ending of its file's name.
func drawer(out string) (func(*intent.Net, picture.Sheet) []byte, error) {
	switch strings.ToLower(filepath.Ext(out)) {
	case ".svg":
		return picture.SVG, nil
	case ".dot", ".gv":
		return func(n *intent.Net, s picture.Sheet) []byte { return []byte(picture.Dot(n, s)) }, nil
	}
	return nil, usage("--out %s: want a name that ends in .svg or .dot", out)
}

func printGraph(w io.Writer, g picture.Graph) {
	switches, hosts := 0, 0
	for _, t := range g.Tiers {
		if t.Tier == 0 {
			hosts += len(t.Devices)
		} else {
			switches += len(t.Devices)
		}
	}
	fmt.Fprintf(w, "%s: %s, %s, %s\n", g.Fabric, diag.Count(switches, "switch"), diag.Count(hosts, "host"), diag.Count(len(g.Links), "link"))
	fmt.Fprintln(w, "\ntiers, the highest first:")
	for _, t := range g.Tiers {
		fmt.Fprintf(w, "  %d  %s%s%s\n", t.Tier, show.Pad(t.Role, 14), show.Pad(t.Platform, 22), show.NameList(t.Devices)+idleText(t.Idle))
	}
	printKinds(w, g)
	printFanouts(w, g)
	if len(g.Rails) > 0 {
		fmt.Fprintln(w, "\nrails, with their share of the uplinks (down to up):")
	}
	for _, r := range g.Rails {
		fmt.Fprintf(w, "  %s%s%s on %s\n", show.Pad("rail "+strconv.Itoa(r.Rail), 10), show.Pad(ratioText(r.Ratio), 9),
			show.Pad(rateText(r.Down)+" to "+rateText(r.Up), 24), show.NameList(r.Leaves))
	}
	if len(g.Groups) > 0 {
		fmt.Fprintln(w, "\nredundancy groups, whose members stand in for each other:")
	}
	for _, x := range g.Groups {
		if len(x.Devices) == 2 && x.Name == strings.Join(x.Devices, "+") {
			fmt.Fprintf(w, "  %s\n", x.Name)
			continue
		}
		fmt.Fprintf(w, "  %s: %s\n", x.Name, show.NameList(x.Devices))
	}
}

// idleText says which devices are not active, and what they are instead.
func idleText(idle map[string]string) string {
	by := map[string][]string{}
	for name, state := range idle {
		by[state] = append(by[state], name)
	}
	text := ""
	for _, state := range slices.Sorted(maps.Keys(by)) {
		text += "; " + state + ": " + show.NameList(by[state])
	}
	return text
}

// printKinds counts links by kind, and border ports.
func printKinds(w io.Writer, g picture.Graph) {
	kinds, n := g.Kinds()
	if len(kinds)+len(g.Exits) > 0 {
		fmt.Fprintln(w, "\nlinks:")
	}
	for _, k := range kinds {
		what := "of unknown speed"
		if k.Speed > 0 {
			what = "x " + k.Speed.String()
		}
		if k.Cable > 0 {
			what += ", " + k.Cable.String()
		}
		if k.Role == "peer-link" || k.Role == "border" {
			what += ", " + k.Role
		}
		fmt.Fprintf(w, "  %s%6d %s\n", show.Pad(k.Lower+" - "+k.Upper, 26), n[k], what)
	}
	out := map[string][]string{}
	var order []string
	for _, x := range g.Exits {
		if out[x.Device] == nil {
			order = append(order, x.Device)
		}
		out[x.Device] = append(out[x.Device], x.Port)
	}
	for _, d := range order {
		fmt.Fprintf(w, "  %s%6d out of the fabric: %s\n", show.Pad(d+" - outside", 26), len(out[d]), show.PortList(out[d]))
	}
}

// printFanouts writes what switches have below and above, those that have the same in one line.
func printFanouts(w io.Writer, g picture.Graph) {
	type alike struct {
		role     string
		down, up picture.Side
	}
	names := map[alike][]string{}
	var order []alike
	for _, f := range g.Fanouts {
		k := alike{f.Role, f.Down, f.Up}
		if names[k] == nil {
			order = append(order, k)
		}
		names[k] = append(names[k], f.Device)
	}
	if len(order) > 0 {
		fmt.Fprintln(w, "\noversubscription (down to up):")
	}
	for _, k := range order {
		ratio := 0.0
		if k.up.Rate > 0 {
			ratio = float64(k.down.Rate) / float64(k.up.Rate)
		}
		fmt.Fprintf(w, "  %s%s%s %s\n", show.Pad(k.role, 14), show.Pad(ratioText(ratio), 9),
			show.Pad(sideText(k.down)+" to "+sideText(k.up), 44), show.NameList(names[k]))
	}
}

// ratioText is "2:1", or "1:2" where there is more above than below; at most two decimals, and "unknown" when speeds are missing.
func ratioText(r float64) string {
	if r == 0 {
		return "unknown"
	}
	times := func(r float64) string { return strconv.FormatFloat(float64(int(r*100+0.5))/100, 'f', -1, 64) }
	if r < 1 {
		return "1:" + times(1/r)
	}
	return times(r) + ":1"
}

// sideText is the ports of a side with what they carry together.
func sideText(s picture.Side) string {
	return diag.Count(s.Ports, "port") + " " + rateText(s.Rate)
}

// rateText is a sum or share of rates: tenths of Gbps, from 1000 on hundredths of Tbps; "of unknown speed" when there is none.
func rateText(r units.BitRate) string {
	const giga = 1_000_000_000
	switch {
	case r == 0:
		return "of unknown speed"
	case r < 1000*giga:
		return strconv.FormatFloat(float64(int(float64(r)/giga*10+0.5))/10, 'f', -1, 64) + "Gbps"
	}
	return strconv.FormatFloat(float64(int(float64(r)/(10*giga)+0.5))/100, 'f', -1, 64) + "Tbps"
}

func printLinks(w io.Writer, g picture.Graph, hosts bool) {
	tier := map[string]int{}
	for _, t := range g.Tiers {
		for _, d := range t.Devices {
			tier[d] = t.Tier
		}
	}
	fmt.Fprintln(w, "\nevery link:")
	end := func(e picture.End) string { return e.Device + ":" + e.Port + " (" + cmp.Or(e.Iface, "unbound") + ")" }
	for _, l := range g.Links {
		if tier[l.A.Device] == 0 && !hosts {
			continue
		}
		what := l.Role
		if l.Speed > 0 {
			what = l.Speed.String() + " " + what
		}
		if l.Rail > 0 {
			what += ", rail " + strconv.Itoa(l.Rail)
		}
		if l.Bond != "" {
			what += ", " + l.Bond
		}
		if l.Breakout > 1 {
			what += fmt.Sprintf(", 1 of %d on the port", l.Breakout)
		}
		fmt.Fprintf(w, "  %s%s%s\n", show.Pad(end(l.A), 38), show.Pad(end(l.B), 42), what)
	}
}
