package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fabricctl/fabricctl/cmd/show"
	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/drivers/check"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
)

func (a *app) newCheck() *cobra.Command {
	var o checkFlags
	c := &cobra.Command{
		Use:   "check [DEVICE...]",
		Short: "Compare everything the model says with what the devices do, owned or not",
		Long: `Read the devices (all, or those named) and compare them with the model, area by area: MTU, DSCP and priority maps, PFC,
ECN, scheduling, watchdog, and on hosts the MTU and the NCCL file. The rules judge the live fabric too. What manage
says to ignore is not compared. Nothing is written and no lease is taken: check can run beside an apply.

With --counters the counters of the model's interfaces are read too, over the device's own protocol: pauses, marks, drops,
watermarks, the watchdog, and on hosts notifications and RDMA errors. The text shows what is not zero; what a device does not
count is said, and is not zero. Since counters run from the day on which they were cleared, --during reads them twice and shows
what was added. docs/counters.md says which there are, and how old a reading may be.

drift looks at what the model owns and how apply would repair it; check looks at everything that is modelled, so it is
the one to ask while everything is only observed.

Exit 0 when all devices that were compared agree, 2 when one differs or the rules find an error in the live fabric, 1
when one could not be read, or its counters where they were asked for, or not in the time of --timeout (that counts more;
the others are compared all the same). What a device says nothing about is "not known" and fails nothing, and neither does
what is in maintenance; planned and absent devices are not contacted.`,
		Example:           "  fabricctl check -f fabric.yaml -f inventory.yaml\n  fabricctl check -f pod1/ leaf1 leaf2 -o json\n  fabricctl check -f pod1/ --counters --during 10s",
		ValidArgsFunction: a.completeDevices,
		RunE:              func(c *cobra.Command, args []string) error { return a.runCheck(c.Context(), o, args) },
	}
	o.login.register(c)
	c.Flags().BoolVar(&o.counters, "counters", false, "read counters too, and show what is not zero")
	c.Flags().DurationVar(&o.during, "during", 0, "with --counters: read them twice, so long apart, and show what was added")
	return c
}

type checkFlags struct {
	login    loginFlags
	counters bool
	during   time.Duration
}

// counting is what is asked of counters; nil = nothing.
func (o checkFlags) counting() (*check.Counting, error) {
	switch {
	case o.during < 0:
		return nil, fail(exitUsage, "for example: --during 10s", "--during %s is not a time to wait", o.during)
	case o.during > 0 && !o.counters:
		return nil, fail(exitUsage, "add --counters", "--during says how long to count, and nothing is counted without --counters")
	case !o.counters:
		return nil, nil
	}
	return &check.Counting{During: o.during}, nil
}

func (a *app) runCheck(ctx context.Context, o checkFlags, args []string) error {
	ctx, cancel := a.limit(ctx)
	defer cancel()
	json, err := a.wants("text", "json")
	if err != nil {
		return err
	}
	counting, err := o.counting()
	if err != nil {
		return err
	}
	ts, err := a.targets(ctx, o.login, nil)
	if err != nil {
		return err
	}
	if ts.model.net == nil {
		return fail(exitUsage, "for example: -f fabric.yaml -f inventory.yaml; doctor looks at a device without a model", "check compares with a Fabric, and none was given")
	}
	net, err := part(ts.model.net, args)
	if err != nil {
		return err
	}
	fmt.Fprintf(a.sys.err, "reading %s\n", diag.Count(reading(net), "device"))
	r, err := check.Live(ctx, net, ts.model.fabric, check.Options{Open: ts.openNamed, Held: a.heldOn(net.Fabric), Parallel: a.parallel, Counting: counting})
	if err != nil {
		return interrupted(ctx, err)
	}
	if json {
		err = a.printJSON(r)
	} else {
		err = printCheck(a.sys.out, r, show.WidthOf(a.sys.out))
	}
	switch {
	case err != nil:
		return err
	case r.Unread() || r.Uncounted():
		return done(exitError)
	case r.Differs() || r.Findings.HasErrors():
		return done(exitChanges)
	}
	return nil
}

// reading is how many devices of net are contacted.
func reading(net *intent.Net) int {
	n := 0
	for _, d := range net.Devices {
		if d.State != intent.Planned && d.State != intent.Absent {
			n++
		}
	}
	return n
}

// openNamed opens a device of the layers by its name, to read only.
func (ts targets) openNamed(ctx context.Context, name string) (*drivers.View, error) {
	e := ts.model.fabric.Endpoints[name]
	if e == nil || !e.Address.Set {
		return nil, noAddress(name)
	}
	t, err := ts.named(name, e)
	if err != nil {
		return nil, err
	}
	return ts.open(ctx, t)
}

// printCheck writes a report: a table of verdicts, or a list where the table is wider than width (0 = nothing is), then what
// differs, devices that fare alike together.
func printCheck(w io.Writer, r *check.Report, width int) error {
	cols := checkColumns(r)
	var rows [][]string
	if len(cols) > 0 {
		rows = append(rows, append([]string{"device"}, cols...))
	}
	for _, g := range alike(r.Devices, func(d *check.Device) string { return strings.Join(checkCells(d, cols), "|") }) {
		if cells := checkCells(g[0], cols); len(cells) > 0 {
			rows = append(rows, append([]string{show.Spans(namesOf(g))}, cells...))
		}
	}
	if len(cols) > 0 && width > 0 && show.TableWidth(rows) > width {
		printVerdicts(w, cols, rows[1:])
	} else {
		show.Table(w, rows)
	}
	said := alike(r.Devices, func(d *check.Device) string { return show.Nameless(checkText(d), d.Name) })
	for _, g := range said {
		text := checkText(g[0])
		if len(g) > 1 && g[0].Error != "" {
			text = show.AddressRE.ReplaceAllString(text, "") // that of the first only
		}
		if text != "" {
			fmt.Fprintf(w, "\n%s%s\n", show.Paint(show.Bold, show.Counted(namesOf(g), "device", groupNote(g))), text)
		}
	}
	if len(r.Findings) > 0 {
		fmt.Fprintln(w, "\nthe rules say of the fabric as it is live, and not of the model (plan shows how to bring the devices to it):")
		l := slices.Clone(r.Findings)
		for i := range l {
			l[i].Hint = "" // the same for all, as said
		}
		show.Findings(w, l)
	}
	_, err := fmt.Fprintln(w, "\n"+checkSummary(r))
	return err
}

// checkColumns are the areas that some device is compared on, in their order.
func checkColumns(r *check.Report) []string {
	var cols []string
	for a := range intent.NumAreas {
		if slices.ContainsFunc(r.Devices, func(d check.Device) bool { return d.Area(a.String()) != "" }) {
			cols = append(cols, a.String())
		}
	}
	return cols
}

func checkCells(d *check.Device, cols []string) []string {
	switch {
	case d.Skipped:
		return []string{d.State + ", not looked at"}
	case d.Error != "":
		return []string{show.Paint(show.Red, "not read")}
	}
	cells := make([]string, len(cols))
	for i, c := range cols {
		cells[i] = "-"
		for _, a := range d.Areas {
			if a.Name != c {
				continue
			}
			cells[i] = string(a.Verdict)
			if n := a.Counts(); n != "" {
				cells[i] += " (" + n + ")"
			}
			switch a.Verdict {
			case check.Differs:
				cells[i] = show.Paint(show.Yellow, cells[i])
			case check.Agrees:
				cells[i] = show.Paint(show.Green, cells[i])
			}
		}
	}
	return cells
}

// checkText is what there is to say about a device, from its platform on; "" when there is nothing.
func checkText(d *check.Device) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, "\n  "+format, args...) }
	if d.Error != "" {
		line("%s%s", show.Paint(show.Red, "not read: "), diag.OneLine(show.Nameless(d.Error, d.Name)))
	}
	for _, h := range d.Held {
		line("%s", diag.OneLine(h))
	}
	if len(d.Missing) > 0 {
		line("the device does not show %s, which the model has", show.PortList(d.Missing))
	}
	name, live, asked := 0, 0, 0
	for _, x := range d.Differences {
		for _, v := range x.Values {
			name, live, asked = max(name, len(v.Name)), max(live, len(v.Live)), max(asked, len(v.Model))
		}
	}
	for _, x := range d.Differences {
		idle := ""
		if x.Maintenance {
			idle = ", in maintenance"
		}
		line("%s%s", show.PortList(x.Ports), idle)
		for _, v := range x.Values {
			line("  %s", strings.TrimRight(show.Pad(v.Name, name+3)+show.Pad("live "+v.Live, live+8)+show.Pad("model "+v.Model, asked+9)+v.From.String(), " "))
		}
	}
	if d.Counters != nil {
		for _, l := range counterLines(d.Counters) {
			line("%s", l)
		}
	}
	for _, a := range d.Areas {
		if a.NotKnown > 0 {
			why := "the configuration does not say"
			if a.Name == intent.AreaCC.String() {
				why = "the tools of the system, by which a host is looked at here, do not show it; fabricctl-host status does"
			}
			line("%s is not known on %s: %s", a.Name, diag.Count(a.NotKnown, "port"), why)
		}
	}
	if len(d.Unbound) > 0 {
		line("not compared, since the inventory binds no interface: %s", show.PortList(d.Unbound))
	}
	for _, f := range d.Findings {
		if f.Severity > diag.Info {
			f.At, f.Msg = strings.TrimPrefix(strings.TrimPrefix(f.At, d.Name), ":"), strings.TrimPrefix(f.Msg, d.Name+" ")
			line("%s", strings.ReplaceAll(f.String(), "\n", "\n  "))
		}
	}
	return b.String()
}

// alike groups devices by what a function says of them, in the order of the first of each group.
func alike(ds []check.Device, of func(*check.Device) string) [][]*check.Device {
	var out [][]*check.Device
	at := map[string]int{}
	for i := range ds {
		key := ds[i].Platform + "\x00" + ds[i].State + "\x00" + show.AddressRE.ReplaceAllString(of(&ds[i]), "")
		n, ok := at[key]
		if !ok {
			n, at[key] = len(out), len(out)
			out = append(out, nil)
		}
		out[n] = append(out[n], &ds[i])
	}
	return out
}

func namesOf(g []*check.Device) []string {
	names := make([]string, len(g))
	for i, d := range g {
		names[i] = d.Name
	}
	return names
}

// groupNote is what the devices are, and how they stand when not active.
func groupNote(g []*check.Device) string {
	if g[0].State != intent.Active.String() {
		return g[0].Platform + ", " + g[0].State
	}
	return g[0].Platform
}

func checkSummary(r *check.Report) string {
	var agree, differ, idle, unread, skipped int
	for i := range r.Devices {
		switch d := &r.Devices[i]; {
		case d.Skipped:
			skipped++
		case d.Error != "":
			unread++
		case d.Fails():
			differ++
		case d.Differs():
			idle++
		default:
			agree++
		}
	}
	var parts []string
	for _, x := range []struct {
		n    int
		what string
	}{{agree, "agree with the model"}, {differ, "differ"}, {idle, "in maintenance differ"}, {unread, "could not be read"}, {skipped, "not looked at"}} {
		if x.n > 0 {
			what := x.what
			if x.n == 1 {
				what = strings.NewReplacer("agree ", "agrees ", "differ", "differs").Replace(what)
			}
			parts = append(parts, diag.Count(x.n, "device")+" "+what)
		}
	}
	if len(parts) == 0 {
		return "check: the model has no devices"
	}
	return "check: " + strings.Join(parts, ", ")
}

// printVerdicts writes the rows of a table of verdicts below each other: of each the areas that fare alike in one line.
func printVerdicts(w io.Writer, cols []string, rows [][]string) {
	for _, r := range rows {
		if len(r) < len(cols)+1 {
			show.Hang(w, r[0]+"  ", r[1])
			continue
		}
		fmt.Fprintln(w, r[0])
		var order []string
		areas := map[string][]string{}
		for i, verdict := range r[1:] {
			if areas[verdict] == nil && verdict != "-" {
				order = append(order, verdict)
			}
			areas[verdict] = append(areas[verdict], cols[i])
		}
		for _, v := range order {
			show.Hang(w, "  "+v+strings.Repeat(" ", max(1, 12-show.Shown([]byte(v)))), strings.Join(areas[v], ", "))
		}
	}
}
