package main

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fabricctl/fabricctl/model/picture"
	"github.com/fabricctl/fabricctl/model/units"
)

type graphJSON struct {
	Schema string `json:"schema"`
	picture.Graph
}

func (a *app) newGraph() *cobra.Command {
	var links, noHosts bool
	c := &cobra.Command{
		Use:   "graph",
		Short: "Show the topology: tiers, links, oversubscription, redundancy groups",
		Long: `Show what the model's topology comes to: the devices of each tier, the links by kind, what each switch and each rail has
below and above (down to up), border ports, and the redundancy groups, whose members stand in for each other.
-o json has every link; -o dot is for Graphviz. No device is contacted.`,
		Example: "  fabricctl graph -f fabric.yaml\n  fabricctl graph -f fabric.yaml --links\n  fabricctl graph -f fabric.yaml -o dot --no-hosts | dot -Tsvg > fabric.svg",
		Args:    noArgs,
		RunE: func(*cobra.Command, []string) error {
			json, err := a.wants("text", "json", "dot")
			if err != nil {
				return err
			}
			if a.output != "text" && links {
				return usage("--links is for text; -o %s has what it can show", a.output)
			}
			if a.output == "json" && noHosts {
				return usage("--no-hosts is for text and dot; -o json is whole")
			}
			m, err := a.mustLoad()
			if err != nil {
				return err
			}
			g := picture.Of(m.net)
			switch {
			case json:
				return a.printJSON(graphJSON{"fabricctl/graph/v1", g})
			case a.output == "dot":
				fmt.Fprint(a.sys.out, g.Dot(!noHosts))
				return nil
			}
			printGraph(a.sys.out, g)
			if links {
				printLinks(a.sys.out, g, !noHosts)
			}
			return nil
		},
	}
	c.Flags().BoolVar(&links, "links", false, "list every link")
	c.Flags().BoolVar(&noHosts, "no-hosts", false, "leave hosts and their links out of --links and -o dot")
	return c
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
	n := count(switches, "switch")
	if switches != 1 {
		n = strconv.Itoa(switches) + " switches"
	}
	fmt.Fprintf(w, "%s: %s, %s, %s\n", g.Fabric, n, count(hosts, "host"), count(len(g.Links), "link"))
	fmt.Fprintln(w, "\ntiers, the highest first:")
	for _, t := range g.Tiers {
		fmt.Fprintf(w, "  %d  %s%s%s\n", t.Tier, pad(t.Role, 14), pad(t.Platform, 22), nameList(t.Devices))
	}
	printKinds(w, g)
	printFanouts(w, g)
	if len(g.Rails) > 0 {
		fmt.Fprintln(w, "\nrails, with their share of the uplinks (down to up):")
	}
	for _, r := range g.Rails {
		fmt.Fprintf(w, "  %s%s%s on %s\n", pad("rail "+strconv.Itoa(r.Rail), 10), pad(ratioText(r.Ratio), 9),
			pad(rateText(r.Down)+" to "+rateText(r.Up), 24), nameList(r.Leaves))
	}
	if len(g.Groups) > 0 {
		fmt.Fprintln(w, "\nredundancy groups, whose members stand in for each other:")
	}
	for _, x := range g.Groups {
		if len(x.Devices) == 2 && x.Name == strings.Join(x.Devices, "+") {
			fmt.Fprintf(w, "  %s\n", x.Name)
			continue
		}
		fmt.Fprintf(w, "  %s: %s\n", x.Name, nameList(x.Devices))
	}
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
		fmt.Fprintf(w, "  %s%6d %s\n", pad(k.Lower+" - "+k.Upper, 26), n[k], what)
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
		fmt.Fprintf(w, "  %s%6d out of the fabric: %s\n", pad(d+" - outside", 26), len(out[d]), portList(out[d]))
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
		fmt.Fprintf(w, "  %s%s%s %s\n", pad(k.role, 14), pad(ratioText(ratio), 9),
			pad(sideText(k.down)+" to "+sideText(k.up), 44), nameList(names[k]))
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
	return count(s.Ports, "port") + " " + rateText(s.Rate)
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
		fmt.Fprintf(w, "  %s%s%s\n", pad(end(l.A), 38), pad(end(l.B), 42), what)
	}
}
