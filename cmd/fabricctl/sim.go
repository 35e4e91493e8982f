package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/fabricctl/fabricctl/cmd/show"
	"github.com/fabricctl/fabricctl/drivers/check"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/observe"
	"github.com/fabricctl/fabricctl/tuning/sim"
)

func (a *app) newSim() *cobra.Command {
	var o simFlags
	c := &cobra.Command{
		Use:   "sim",
		Short: "Simulate the fabric under a load, packet by packet: goodput, queues, pauses, marks, drops, and why",
		Long: `Simulate the model's fabric, or with --live the one that the devices hold, under a workload: every packet, queue, pause, mark
and retransmission. What is agreed badly behaves badly: a map that sends a class elsewhere, a port without PFC, a headroom that
is too small or an MTU that differs loses, pauses or swallows what it would. It is a model's answer, compared with theory and with another
simulator, and with no real switch (docs/simulator.md).

A workload is parts joined by +, each a kind, a number where the kind has one, and options after commas:

` + kindHelp() + `
Options are those of perftest and more: class, dscp, hosts, to, bytes, size, depth, qps, both, op, mtu, latency, start, spread, every, count,
load (docs/simulator.md has all). A workload may also be a YAML file. Without one, 8 hosts send to one, or all others where there are fewer.

The answer comes first, then what filled and what was paused, marked and lost, and where; why nothing happened where nothing did; and what
the fabric does not say and was assumed. --plot draws queues and rates over time, --series and --flows write tables. --seeds runs the same
with several seeds, on all cores, and shows how far they spread. --grid compares marking ramps: a fluid model of the queue that is overloaded
most ranks them in seconds, and the first of them (--best) and the setting that there is are run packet by packet, with the same seeds. Nothing is
written back.

Exit 1 when packets of a lossless class were lost, when traffic stood still for good, or when the model has errors: it is simulated as it
stands then, as far as it can be. With --live, exit 1 when a device could not be read. Ctrl-C shows what was seen until then.`,
		Example: "  fabricctl sim -f fabric.yaml --workload incast:8\n" +
			"  fabricctl sim -f fabric.yaml --workload 'incast:8,size=64KiB + victim + probe' --plot incast.svg\n" +
			"  fabricctl sim -f fabric.yaml --workload alltoall,bytes=1MB --seeds 10\n" +
			"  fabricctl sim -f fabric.yaml --workload incast:8 --grid kmin=100KB/400KB/800KB,kmax=1.6MB/3.2MB,pmax=1%/10%/100%\n" +
			"  fabricctl sim -f fabric.yaml -f inventory.yaml --live --fault storm:host3,from=2ms,to=5ms",
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return nil
			case len(a.fabric) == 0:
				return fail(exitUsage, "write -f "+args[0], "sim takes no arguments, but got %q", args[0])
			}
			return fail(exitUsage, "write --workload "+args[0], "sim takes no arguments, but got %q", args[0])
		},
		RunE: func(c *cobra.Command, _ []string) error { return a.runSim(c.Context(), o) },
	}
	o.register(c)
	return c
}

func (a *app) runSim(ctx context.Context, o simFlags) error {
	ctx, cancel := a.limit(ctx)
	defer cancel()
	json, err := a.simFormat()
	if err != nil {
		return err
	}
	if err := o.check(json); err != nil {
		return err
	}
	m, net, err := a.simNet(ctx, o)
	if err != nil {
		return err
	}
	job, err := o.job(net)
	if err != nil {
		return err
	}
	switch {
	case o.grid != nil:
		err = a.simGrid(ctx, job, o, json)
	case o.seeds > 1:
		err = a.simSeeds(ctx, job, o, json)
	default:
		err = a.simOnce(ctx, job, o, json)
	}
	if err == nil && m.findings.HasErrors() {
		return fail(exitError, "", "the model has %s besides, and was simulated as it stands", diag.Count(m.findings.Count(diag.Error), "error"))
	}
	return err
}

// simFormat checks -o.
func (a *app) simFormat() (json bool, err error) {
	switch a.output {
	case "svg":
		return false, fail(exitUsage, "write --plot sim.svg", "-o svg: a picture goes to a file")
	case "csv":
		return false, fail(exitUsage, "write --series series.csv, or --flows flows.csv", "-o csv: tables go to files")
	}
	return a.wants("text", "json")
}

// simNet is the fabric to simulate: the model's, or what the devices hold. The model may have errors, if it can be understood.
func (a *app) simNet(ctx context.Context, o simFlags) (loaded, *intent.Net, error) {
	if o.live {
		return a.liveNet(ctx, o.login)
	}
	m, err := a.load(ctx, a.fabric)
	if err != nil {
		return m, nil, err
	}
	a.printLoaded(m)
	if m.net == nil {
		return m, nil, m.refused()
	}
	return m, m.net, nil
}

// liveNet reads all devices of the model, as check does.
func (a *app) liveNet(ctx context.Context, login loginFlags) (loaded, *intent.Net, error) {
	ts, err := a.targets(ctx, login, nil)
	if err != nil {
		return ts.model, nil, err
	}
	if ts.model.net == nil {
		return ts.model, nil, fail(exitUsage, "for example: -f fabric.yaml -f inventory.yaml", "--live needs a Fabric, which says how the devices are cabled, and none was given")
	}
	fmt.Fprintf(a.sys.err, "reading %s\n", diag.Count(reading(ts.model.net), "device"))
	r, err := check.Live(ctx, ts.model.net, ts.model.fabric, check.Options{Open: ts.openNamed, Parallel: a.parallel})
	if err != nil {
		return ts.model, nil, interrupted(ctx, err)
	}
	var unread []string
	for _, d := range r.Devices {
		if d.Error != "" && d.State == intent.Active.String() {
			unread = append(unread, d.Name)
			fmt.Fprintf(a.sys.err, "%s: not read: %s\n", d.Name, diag.OneLine(show.Nameless(d.Error, d.Name)))
		}
	}
	if len(unread) > 0 {
		return ts.model, nil, fail(exitError, "fabricctl doctor "+unread[0]+" says what is wrong; without --live the model is simulated",
			"%s could not be read, and a fabric with holes says nothing; nothing was simulated", diag.Count(len(unread), "device"))
	}
	show.Findings(a.sys.err, slices.DeleteFunc(r.Findings, func(f diag.Finding) bool { return f.Severity == diag.Info || f.Ack != "" }))
	return ts.model, r.Live, nil
}

// simOnce runs one simulation and shows what came of it.
func (a *app) simOnce(ctx context.Context, job sim.Job, o simFlags, json bool) error {
	r, err := a.simulate(ctx, job, o.sampled(job, json))
	cut := r != nil && err != nil // interrupted, with what was seen until then
	if r == nil {
		return a.simRefused(ctx, err)
	}
	a.simFindings(r.Findings)
	if err := cmp.Or(o.write(a, r), a.showSim(r, promised(job.Net), o, json)); err != nil {
		return err
	}
	if cut {
		return interrupted(ctx, fmt.Errorf("%w; what is shown is of the first %s", context.Cause(ctx), lasting(r.End.At)))
	}
	return simVerdict(r, promised(job.Net))
}

// showSim prints a result.
func (a *app) showSim(r *sim.Result, p promise, o simFlags, json bool) error {
	if !json {
		printSim(a.sys.out, r, p, o.details)
		return nil
	}
	if o.sample == 0 {
		short := *r
		short.Series = nil // nobody asked for it here
		r = &short
	}
	return a.printJSON(r)
}

// simulate runs a job, and shows how far it is. With sample, a row of the series is taken each so often; where nobody can know before how
// long the run is, it is run twice, which the same seed makes the same.
func (a *app) simulate(ctx context.Context, job sim.Job, s sampling) (*sim.Result, error) {
	p := a.progressOf(job.Net.Fabric, 1)
	defer p.end()
	if job.Options.Progress == nil {
		job.Options.Progress = p.of(0)
	}
	if s.rows > 0 && s.unknown {
		job.Options.Sample = 0
		r, err := sim.Run(ctx, job.Net, job.Workload, job.Options, job.Seed)
		if err != nil {
			return r, err
		}
		s.span = r.End.At
	}
	job.Options.Sample = s.each()
	return sim.Run(ctx, job.Net, job.Workload, job.Options, job.Seed)
}

// simRefused is the error of a run that came to nothing, with the findings of one that was refused.
func (a *app) simRefused(ctx context.Context, err error) error {
	var r *sim.Refused
	if errors.As(err, &r) {
		a.simFindings(r.Findings)
		return fail(exitError, "", "this cannot be simulated: %s; nothing was done", diag.Count(r.Findings.Count(diag.Error), "error"))
	}
	if ctx.Err() != nil {
		return interrupted(ctx, fmt.Errorf("%w before any run had ended", context.Cause(ctx)))
	}
	return fmt.Errorf("sim: %w", err)
}

// simFindings prints what is to be known of a run, infos left out.
func (a *app) simFindings(l diag.List) {
	show.Findings(a.sys.err, slices.DeleteFunc(slices.Clone(l), func(f diag.Finding) bool { return f.Severity == diag.Info || f.Ack != "" }))
}

// promise is the classes that are to be lossless: those that are so on some port.
type promise map[string]bool

// promised are the lossless classes of a fabric. A port on which PFC is missing takes nothing from the promise.
func promised(net *intent.Net) promise {
	p := promise{}
	for i := range net.Devices {
		d := &net.Devices[i]
		for j := range d.Policies {
			for _, priority := range d.Policies[j].Lossless() {
				if class := d.Classes[priority]; class != "" {
					p[class] = true
				}
			}
		}
	}
	return p
}

// broken is how many packets were lost where none was to be: in lossless classes, wherever that was.
func (p promise) broken(r *sim.Result) uint64 {
	n := uint64(0)
	for i := range r.Classes {
		if p[r.Classes[i].Name] {
			n += r.Classes[i].Drops
		}
	}
	return max(n, r.Totals.Lossless)
}

// simVerdict is the exit code of a run, as an error where a lossless fabric was none.
func simVerdict(r *sim.Result, p promise) error {
	switch lost := p.broken(r); {
	case r.End.Why == "deadlock" || r.End.Why == "livelock":
		return fail(exitError, "", "the traffic stood still: %s", r.End.Words)
	case r.End.Why == "idle" && r.Totals.Unfinished > 0:
		return fail(exitError, "", "%s can never end: %s", diag.Count(r.Totals.Unfinished, "flow"), r.End.Words)
	case len(r.End.Stuck) > 0 && r.End.Why == "stop":
		return fail(exitError, "", "ports wait for each other in a circle, and nothing but a PFC watchdog ends that")
	case len(r.Silent()) > 0:
		return fail(exitError, "", "%s got nothing through", diag.Count(len(r.Silent()), "flow"))
	case lost > 0:
		return fail(exitError, "", "%s of lossless classes were lost", diag.Count(int(lost), "packet"))
	}
	return nil
}

// kindHelp lists the kinds of parts.
func kindHelp() string {
	s := ""
	for _, k := range observe.Kinds() {
		name := string(k.Kind)
		switch {
		case k.Kind == observe.Trace:
			name += ":FILE"
		case k.Kind == observe.Background:
			name += "[:LOAD]"
		case k.N != "":
			name += "[:N]"
		}
		s += fmt.Sprintf("  %-17s %s\n", name, k.Doc)
	}
	return s
}
