package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/fabricctl/fabricctl/cmd/show"
	"github.com/fabricctl/fabricctl/drivers/lab"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/observe"
	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/tuning/sim"
)

// loadFlags are how a load is run in a lab.
type loadFlags struct {
	duration, window, warmup string
	seed                     uint64
}

func (o *loadFlags) register(c *cobra.Command, prefix string) {
	f := c.Flags()
	f.StringVar(&o.duration, prefix+"duration", "10s", "how long the load lasts: what counters grow by is of so long")
	f.StringVar(&o.window, prefix+"window", "", "how much of that is simulated (default 10ms)")
	f.StringVar(&o.warmup, prefix+"warmup", "", "simulated before, and not counted (default 1ms)")
	f.Uint64Var(&o.seed, prefix+"seed", 1, "decides what is drawn")
}

// load is a workload with these flags.
func (o *loadFlags) load(workload string) (l lab.Load, err error) {
	if l.Workload, err = observe.ParseWorkload(workload); err != nil {
		hint := "for example: incast:8"
		if e, ok := errors.AsType[*observe.Error](err); ok {
			hint = cmp.Or(e.Hint, hint)
		}
		return l, fail(exitUsage, hint, "%w", err)
	}
	l.Seed = o.seed
	for _, x := range []struct {
		name, text string
		into       *units.Duration
	}{{"duration", o.duration, &l.Duration}, {"window", o.window, &l.Window}, {"warmup", o.warmup, &l.Warmup}} {
		if x.text == "" {
			continue
		}
		d, err := units.ParseDuration(x.text)
		if err != nil || d <= 0 {
			return l, fail(exitUsage, "write a time such as 10ms", "--%s %s: not a time above 0", x.name, x.text)
		}
		*x.into = d
	}
	return l, nil
}

func (a *app) newLabLoad() *cobra.Command {
	var o loadFlags
	c := &cobra.Command{
		Use:   "load DIR WORKLOAD",
		Short: "Let traffic pass over the emulated fabric, as its devices hold it now",
		Long: `Let a workload pass over the fabric of the lab that runs with directory DIR. What its devices hold at that moment is
parsed as that of real ones is, and simulated: 10ms after 1ms of warm-up, unless the flags say otherwise. What was
counted is scaled to --duration and added to the counters of the devices, which show them over their own protocols.
A workload that ends within what is simulated is counted as it is. Loads add up; a device that restarts begins anew.
The answer is a simulator's, and not a measurement.

WORKLOAD is as sim has it: incast:8, alltoall, single, ring,bytes=100MB, incast:8,class=training + background,load=30%.`,
		Example: "  fabricctl lab load lab incast:8\n  fabricctl lab load lab incast:31,qps=8 --duration 60s\n" +
			"  fabricctl lab load lab 'pairs + background,load=30%' --seed 7 -o json",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return fail(exitUsage, "for example: fabricctl lab load lab incast:8", "lab load wants a directory and a workload")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			json, err := a.wants("text", "json")
			if err != nil {
				return err
			}
			load, err := o.load(args[1])
			if err != nil {
				return err
			}
			ctx, cancel := a.limit(c.Context())
			defer cancel()
			out, err := lab.Pass(ctx, args[0], load)
			if err != nil {
				return a.loadRefused(ctx, err)
			}
			return a.showLoad(out, json)
		},
	}
	o.register(c, "")
	return c
}

// loadRefused is the error of a load that came to nothing.
func (a *app) loadRefused(ctx context.Context, err error) error {
	if r, ok := errors.AsType[*sim.Refused](err); ok {
		show.Findings(a.sys.err, notable(r.Findings))
		return fail(exitError, "", "this load cannot be simulated: %s; nothing was counted", diag.Count(r.Findings.Count(diag.Error), "error"))
	}
	if ctx.Err() != nil && errors.Is(context.Cause(ctx), context.Canceled) {
		return interrupted(ctx, err)
	}
	return err
}

// notable is l without infos.
func notable(l diag.List) diag.List {
	return slices.DeleteFunc(slices.Clone(l), func(f diag.Finding) bool { return f.Severity == diag.Info })
}

type labLoadJSON struct {
	Schema string `json:"schema"`
	*lab.Loaded
}

// showLoad prints what a load came to. Drops in a lossless class, and a deadlock, are no error here: the lab is for breaking things.
func (a *app) showLoad(out *lab.Loaded, json bool) error {
	if json {
		return a.printJSON(labLoadJSON{"fabricctl/lab-load/v1", out})
	}
	show.Findings(a.sys.err, notable(slices.Concat(out.NotLifted, out.Result.Findings)))
	printLoad(a.sys.out, out)
	return nil
}

// printLoad is the verdict: what passed, what was lost and where, and why.
func printLoad(w io.Writer, out *lab.Loaded) {
	r := out.Result
	t := &r.Totals
	line := func(label, format string, args ...any) {
		show.Hang(w, show.Pad(label, 10), fmt.Sprintf(format, args...))
	}
	fmt.Fprintf(w, "%s, seed %d: simulated for %s, counted as %s; a model's answer, not a measurement\n", r.Workload, r.Seed, out.Window, out.Duration)
	line("goodput", "%.1f Gbps of %s", float64(t.Goodput)/1e9, diag.Count(len(r.Flows), "flow"))
	if n := t.Completed + t.Unfinished; n > 0 {
		line("ended", "%d of %s", t.Completed, diag.Count(n, "flow"))
	}
	if c := t.Completion; c.Count > 0 {
		line("completion", "p50 %s, p99 %s, p99.9 %s", c.P50, c.P99, c.P999)
	}
	if c := t.Latency; c.Count > 0 {
		line("latency", "p50 %s, p99 %s, p99.9 %s", c.P50, c.P99, c.P999)
	}
	line("drops", "%s, %d of them in lossless classes", diag.Count(int(t.Drops), "packet"), t.Lossless)
	for _, d := range r.Drops {
		line("", "%s:%s priority %d%s: %s, %s", d.Device, d.Port, d.Queue, ofClass(d.Class), diag.Count(int(d.Packets), "packet"), d.Reason)
	}
	line("pauses", "%d, %s in all", t.Pauses, t.PausedTime)
	line("marks", "%s, %s", diag.Count(int(t.Marked), "packet"), diag.Count(int(t.CNPs), "CNP"))
	if t.WatchdogHit > 0 {
		line("watchdog", "%s found stuck", diag.Count(int(t.WatchdogHit), "queue"))
	}
	if r.End.Why != "stop" && r.End.Why != "done" {
		line("end", "%s", r.End.Words)
	}
	for _, list := range []struct {
		label string
		texts []string
	}{{"why", r.Why}, {"assumed", r.Assumed}, {"down", out.Down}} {
		label := list.label
		for _, s := range list.texts {
			line(label, "%s", s)
			label = ""
		}
	}
}

// ofClass is " (training)", "" for a priority without a class.
func ofClass(class string) string {
	if class == "" {
		return ""
	}
	return " (" + class + ")"
}
