package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/picture"
	"github.com/fabricctl/fabricctl/model/routes"
)

// deadlockFlags are what deadlock is asked for.
type deadlockFlags struct {
	noFailures bool
	devices    []string
	out        string
}

// deadlockJSON is the result of deadlock.
type deadlockJSON struct {
	Schema     string          `json:"schema"`
	Fabric     string          `json:"fabric"`
	Routing    string          `json:"routing"`
	Routes     int             `json:"listed_routes"`
	Priorities []int           `json:"lossless_priorities"`
	Buffers    int             `json:"buffers"`
	Edges      int             `json:"edges"`
	Components []componentJSON `json:"components"`
	Failures   *lossesJSON     `json:"failures,omitempty"`

	cycles []routes.Component // of Components, then of Failures
}

type componentJSON struct {
	Size     int          `json:"size"` // buffers
	Links    []string     `json:"links"`
	Cycle    []stepJSON   `json:"cycle"`
	Remedies []remedyJSON `json:"remedies"`
}

type stepJSON struct {
	From     string `json:"from"`
	FromPort string `json:"from_port"`
	To       string `json:"to"`
	ToPort   string `json:"to_port"`
	Links    int    `json:"links"`
	Priority uint8  `json:"priority"`
	Class    string `json:"class,omitempty"`
	Route    string `json:"route,omitempty"` // the listed route that makes it wait for the next one
}

type remedyJSON struct {
	Kind string `json:"kind"`
	Text string `json:"text"`
}

type lossesJSON struct {
	Links    int        `json:"links"`
	Switches int        `json:"switches"`
	Kinds    int        `json:"kinds"`
	Cycles   []lossJSON `json:"cycles"`
}

type lossJSON struct {
	Switch string     `json:"switch,omitempty"`
	Link   string     `json:"link,omitempty"`
	Alike  int        `json:"alike"`
	When   string     `json:"when"` // "after" or "meanwhile"
	Size   int        `json:"size"`
	Cycle  []stepJSON `json:"cycle"`
}

func (a *app) newDeadlock() *cobra.Command {
	var o deadlockFlags
	c := &cobra.Command{
		Use:   "deadlock",
		Short: "Find where PFC could deadlock: cycles of buffers that wait for each other",
		Long: `Find cycles of buffers that wait for each other. A packet of a lossless class holds the buffer behind one link while it
waits for the next: where such waiting closes a circle, pause can stop all of it for good. Which buffer waits for which follows
from the routes that the links give (topology.routing: up-down, or shortest-path), and from topology.routes.

Looked at are the routes as they are, those after the loss of each single link and each switch, and the mixture of before and
after that holds until all switches have learnt of a loss. Without a cycle, PFC cannot deadlock on these routes. A cycle is
necessary for a deadlock and not enough: its buffers have to be full at the same time.

--out draws the shortest cycle on the topology, as .svg or .dot. No device is contacted. Exit 1 when there is a cycle while
nothing is lost, or when the model has errors: it is looked at then as far as its topology is known.`,
		Example: "  fabricctl deadlock -f fabric.yaml\n  fabricctl deadlock -f fabric.yaml --out cycle.svg\n  fabricctl deadlock -f fabric.yaml --no-failures\n" +
			"  fabricctl deadlock -f fabric.yaml --device leaf1",
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error { return a.runDeadlock(c.Context(), o) },
	}
	c.Flags().BoolVar(&o.noFailures, "no-failures", false, "leave out what happens when a link or a switch is lost")
	c.Flags().StringArrayVar(&o.devices, "device", nil, "only cycles through this device, and losses of it and its links; repeat for more")
	c.Flags().StringVar(&o.out, "out", "", "draw the shortest cycle into this file, whose name ends in .svg or .dot")
	return c
}

func (a *app) runDeadlock(ctx context.Context, o deadlockFlags) error {
	ctx, cancel := a.limit(ctx)
	defer cancel()
	json, err := a.wants("text", "json")
	if err != nil {
		return err
	}
	var draw func(*intent.Net, picture.Sheet) []byte
	if o.out != "" {
		draw, err = drawer(o.out)
		if err := cmp.Or(err, outFile("--out", o.out, "cycle.svg")); err != nil {
			return err
		}
	}
	m, err := a.load(ctx, a.fabric)
	if err != nil {
		return err
	}
	m.findings = slices.DeleteFunc(m.findings, func(f diag.Finding) bool { return f.Rule == "bdg-acyclic" }) // said at length
	a.printLoaded(m)
	if m.net == nil {
		return m.refused()
	}
	for _, d := range o.devices {
		if m.net.Device(d) == nil {
			return noDevice(m.net, d)
		}
	}
	r, err := deadlocks(ctx, m.net, o)
	if err != nil {
		return err
	}
	if draw != nil {
		if err := os.WriteFile(o.out, draw(m.net, r.sheet(m.digest())), 0o644); err != nil {
			return fail(exitError, "", "the picture was not written: %w", err)
		}
		fmt.Fprintf(a.sys.err, "drew %s: %s\n", m.net.Fabric, o.out)
	}
	if json {
		err = a.printJSON(r)
	} else {
		printDeadlock(a.sys.out, m.net, r)
	}
	if err == nil && len(r.Components) > 0 {
		return fail(exitError, "", "PFC can deadlock: %s of buffers that wait for each other", diag.Count(len(r.Components), "cycle"))
	}
	if err == nil && m.findings.HasErrors() {
		return fail(exitError, "", "the model has %s besides, and was looked at as it stands", diag.Count(m.findings.Count(diag.Error), "error"))
	}
	return err
}

// deadlocks looks for cycles.
func deadlocks(ctx context.Context, net *intent.Net, o deadlockFlags) (*deadlockJSON, error) {
	top := routes.Of(net)
	steady := top.Steady()
	r := &deadlockJSON{
		Schema: "fabricctl/deadlock/v1", Fabric: net.Fabric, Routing: net.Routing.String(), Routes: len(net.Routes),
		Priorities: steady.Priorities, Buffers: steady.Buffers, Edges: steady.Edges, Components: []componentJSON{},
	}
	through := func(c routes.Component) bool {
		return len(o.devices) == 0 || slices.ContainsFunc(c.Buffers, func(b routes.Buffer) bool {
			return slices.Contains(o.devices, b.From) || slices.Contains(o.devices, b.To)
		})
	}
	for _, c := range steady.Components {
		if !through(c) {
			continue
		}
		j := componentJSON{Size: c.Size, Cycle: steps(c), Remedies: []remedyJSON{}}
		for _, b := range c.Buffers {
			j.Links = append(j.Links, b.String())
		}
		for _, x := range top.Remedies(c) {
			j.Remedies = append(j.Remedies, remedyJSON{x.Kind, x.Text})
		}
		r.Components, r.cycles = append(r.Components, j), append(r.cycles, c)
	}
	if o.noFailures {
		return r, nil
	}
	l, err := top.Sweep(ctx, o.devices, 0)
	if err != nil {
		return nil, fmt.Errorf("losses: %w", context.Cause(ctx))
	}
	r.Failures = &lossesJSON{Links: l.Links, Switches: l.Switches, Kinds: l.Classes, Cycles: []lossJSON{}}
	for _, f := range l.Failures {
		j := lossJSON{Switch: f.Device, Alike: f.Alike, When: "after", Size: f.Size, Cycle: steps(f.Component)}
		if f.During {
			j.When = "meanwhile"
		}
		if f.Device == "" {
			j.Link = fmt.Sprintf("%s:%s - %s:%s", f.Link.From, f.Link.FromPort, f.Link.To, f.Link.ToPort)
		}
		r.Failures.Cycles = append(r.Failures.Cycles, j)
		r.cycles = append(r.cycles, f.Component)
	}
	return r, nil
}

func steps(c routes.Component) []stepJSON {
	s := make([]stepJSON, len(c.Cycle))
	for i, b := range c.Cycle {
		s[i] = stepJSON{From: b.From, FromPort: b.FromPort, To: b.To, ToPort: b.ToPort, Links: b.Links, Priority: b.Priority, Class: b.Class}
		if i < len(c.Listed) && c.Listed[i] != nil {
			s[i].Route = c.Listed[i].Name()
		}
	}
	return s
}

// sheet is the picture of the shortest cycle: of the steady state, or else of a loss.
func (r *deadlockJSON) sheet(digest string) picture.Sheet {
	s := picture.Sheet{Digest: digest, Caption: "no cycle of buffers that wait for each other"}
	if len(r.cycles) == 0 {
		return s
	}
	c := r.cycles[0]
	s.Caption = fmt.Sprintf("PFC can deadlock: %s wait for each other", diag.Count(len(c.Cycle), "buffer"))
	if len(r.Components) == 0 {
		s.Caption += ", " + r.Failures.Cycles[0].when()
	}
	for _, b := range c.Cycle {
		s.Cycle = append(s.Cycle, picture.Hop{Device: b.From, Port: b.FromPort, Priority: int(b.Priority), Class: b.Class})
	}
	return s
}

// when is "after the loss of switch spine1".
func (l lossJSON) when() string {
	what := "switch " + l.Switch
	if l.Switch == "" {
		what = "link " + l.Link
	}
	if l.When == "after" {
		return "after the loss of " + what
	}
	return "while switches learn of the loss of " + what
}

func printDeadlock(w io.Writer, net *intent.Net, r *deadlockJSON) {
	routing := map[string]string{
		intent.UpDown.String(): "up and then down, never up again", intent.ShortestPath.String(): "whatever is shortest", intent.Listed.String(): "only what topology.routes lists",
	}[r.Routing]
	if r.Routes > 0 {
		routing += ", " + diag.Count(r.Routes, "listed route")
	}
	fmt.Fprintf(w, "%s: routing %s: %s\n", r.Fabric, r.Routing, routing)
	var classes []string
	for _, p := range r.Priorities {
		classes = append(classes, classText(net, uint8(p)))
	}
	fmt.Fprintf(w, "lossless: %s\n", cmp.Or(strings.Join(classes, ", "), "nothing"))
	fmt.Fprintf(w, "buffer dependencies: %s, %s\n", diag.Count(r.Buffers, "buffer"), diag.Count(r.Edges, "edge"))
	if len(r.Components) == 0 {
		fmt.Fprintln(w, "\nno cycle: PFC cannot deadlock on these routes")
	}
	for i, c := range r.Components {
		fmt.Fprintf(w, "\ncycle %d: %s wait for each other", i+1, diag.Count(len(c.Cycle), "buffer"))
		if c.Size > len(c.Cycle) {
			fmt.Fprintf(w, "; with others, %d can come to", c.Size)
		}
		fmt.Fprintln(w)
		printSteps(w, net, c.Cycle)
		if len(c.Remedies) == 0 {
			fmt.Fprintln(w, "  nothing by itself breaks all cycles among these buffers: change routing, or the class on several links")
			continue
		}
		fmt.Fprintln(w, "  any of these breaks it:")
		for _, x := range c.Remedies {
			fmt.Fprintln(w, "  - "+x.Text)
		}
	}
	if r.Failures != nil {
		printLosses(w, net, r)
	}
	if len(r.cycles) > 0 {
		fmt.Fprintln(w, "\nA cycle is necessary for a deadlock, not enough: all of its buffers have to be full at once. The watchdog ends a\ndeadlock by dropping packets; it does not prevent one.")
	}
}

func printSteps(w io.Writer, net *intent.Net, cycle []stepJSON) {
	for i, s := range cycle {
		text := fmt.Sprintf("  %2d  %s -> %s  %s", i+1, s.From+":"+s.FromPort, s.To+":"+s.ToPort, classText(net, s.Priority))
		if s.Links > 1 {
			text += fmt.Sprintf(", each of %d links", s.Links)
		}
		if s.Route != "" {
			text += ", route " + s.Route
		}
		fmt.Fprintln(w, text)
	}
}

func printLosses(w io.Writer, net *intent.Net, r *deadlockJSON) {
	l := r.Failures
	fmt.Fprintf(w, "\nsingle losses: %s and %s", diag.Count(l.Links, "link"), diag.Count(l.Switches, "switch"))
	another := "a"
	if len(r.Components) > 0 {
		another = "another"
	}
	switch n := len(l.Cycles); {
	case r.Routing == intent.Listed.String():
		fmt.Fprintln(w, "; listed routes stay as they are, so that none makes "+another+" cycle")
	case n == 0:
		fmt.Fprintln(w, "; none makes "+another+" cycle")
	case n == 1:
		fmt.Fprintln(w, "; one kind of them makes "+another+" cycle")
	default:
		fmt.Fprintf(w, "; %d kinds of them make %s cycle\n", n, another)
	}
	for _, x := range l.Cycles {
		fmt.Fprintf(w, "\n%s", x.when())
		if x.Alike > 1 {
			fmt.Fprintf(w, " (and %d alike)", x.Alike-1)
		}
		fmt.Fprintln(w, ":")
		printSteps(w, net, x.Cycle)
	}
}

// classText is "training (priority 3)", or "priority 3".
func classText(net *intent.Net, p uint8) string {
	text := "priority " + strconv.Itoa(int(p))
	for i := range net.Devices {
		if c := net.Devices[i].Classes[p&7]; c != "" {
			return c + " (" + text + ")"
		}
	}
	return text
}
