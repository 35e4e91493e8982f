package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"time"

	"github.com/fabricctl/fabricctl/cmd/show"
	"github.com/fabricctl/fabricctl/drivers/rollout"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/tuning"
)

// live reports whether an experiment has to do with devices.
func (x *experiment) live() bool { return x.flags.runner != runnerSim }

// writes reports whether it writes them: variables of the load and external ones are moved elsewhere.
func (x *experiment) writes() bool {
	return x.live() && slices.ContainsFunc(x.exp.Space.Vars, func(v tuning.Variable) bool { return len(v.Paths) > 0 })
}

// allowed refuses what moving variables costs without leave for it.
func (o *tuneFlags) allowed(vars []tuning.Variable) error {
	if o.runner == runnerSim {
		return nil
	}
	for i := range vars {
		v := &vars[i]
		for _, c := range v.Costs {
			on := fmt.Sprintf("%s (%s)", show.NameList(c.Devices), c.Platform)
			switch {
			case c.Kind == tuning.Refused:
				return fail(exitRefused, "name others with --variables, or a part of the fabric with --scope", "%s cannot be moved on %s: %s", v.Name, on, c.Why)
			case c.Kind == tuning.Flaps && !o.flaps && !o.dry:
				return fail(exitRefused, "drain them and give --allow-flaps, or name others with --variables", "moving %s on %s takes ports down: %s", v.Name, on, c.Why)
			}
		}
	}
	return nil
}

// attach gives an experiment what makes its runs and what brings settings onto devices, until it is closed.
func (a *app) attach(ctx context.Context, x *experiment, id string) (end func() error, err error) {
	var closers []func() error
	end = func() error {
		var all error
		for _, c := range slices.Backward(closers) {
			all = errors.Join(all, c())
		}
		return all
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, end())
		}
	}()
	closing := func(c io.Closer) { closers = append(closers, c.Close) }
	o := &x.flags
	taking := reached(x.model) // devices that take part
	switch {
	case x.writes():
		b, err := a.openBench(ctx, x.model, id, benchOptions{
			Leave:   rollout.ApplyOptions{AllowDisruptive: o.flaps, AllowJobs: o.jobs, AcceptUnverified: o.unverified},
			Persist: o.persist, Devices: x.exp.Context.Devices,
		})
		if err != nil {
			return end, err
		}
		closers = append(closers, func() error { return b.Close(context.WithoutCancel(ctx)) })
		x.lab.Bench, x.lab.Knobs = b, x.heldKnobs(b.e.Lease)
		x.exp.Context.Firmware = b.firmware()
	case x.live():
		h, err := a.holdFabric(ctx, x.model, id)
		if err != nil {
			return end, err
		}
		closers = append(closers, func() error { return h.Close(ctx) })
		x.hold, x.lab.Knobs = h, x.heldKnobs(h.lease)
	}
	switch o.runner {
	case runnerLab:
		r, err := a.newLabRunner(x.model, x.exp.Workload, x.exp.Context.Class)
		if err != nil {
			return end, err
		}
		closing(r)
		x.lab.Runner, x.exp.Steady = r, true
	case runnerPerftest:
		dir, err := a.tuneDir()
		if err != nil {
			return end, err
		}
		r, said, err := a.newPerftestRunner(ctx, x.model, x.exp.Workload, o.seed, o.perftest, filepath.Join(dir, id))
		for _, s := range said {
			fmt.Fprintln(a.sys.err, diag.OneLine(s))
		}
		if err != nil {
			return end, err
		}
		closing(r)
		x.lab.Runner = r
		x.exp.Context.Note = append(x.exp.Context.Note, r.notes...)
		x.exp.Context.Tool, taking = r.tool(), r.counters.names
	}
	if x.hold != nil {
		x.lab.Runner = heldRunner{x.lab.Runner, x.hold}
	}
	if !x.live() {
		return end, nil
	}
	a.firmware(ctx, x, taking)
	return end, interrupted(ctx, context.Cause(ctx))
}

// homeward is the end of a window, in which the baseline is restored.
const homeward = time.Minute

// errShut is why an experiment ends with its window.
var errShut = errors.New("its window shuts")

// shuts ends ctx with the window of an experiment, whatever its budget says: a question may have been answered late, and what is resumed has
// the budget that it began with.
func (x *experiment) shuts(ctx context.Context, now time.Time) (context.Context, context.CancelFunc) {
	w := x.flags.window
	if !w.set {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, w.left(now)-homeward, errShut)
}

// within limits an experiment to its window, from now on.
func (x *experiment) within(now time.Time) error {
	w := x.flags.window
	if !w.set {
		return nil
	}
	left := w.left(now) - homeward
	if left <= 0 {
		return fail(exitRefused, "begin it then, or give another --window", "it is %s, and the window is %s; nothing was done", now.Format("15:04"), w.String())
	}
	b := &x.exp.Budget
	b.Time = min(cmp.Or(b.Time, units.Duration(left)), units.Duration(left))
	return nil
}

// agree shows what an experiment on devices is about, and waits for a yes.
func (a *app) agree(ctx context.Context, x *experiment) error {
	if !x.live() || x.flags.yes {
		return nil
	}
	what := "run verbs tests on hosts"
	if x.flags.runner == runnerLab {
		what = "tune an emulated fabric"
	}
	if n := len(x.exp.Context.Devices); n > 0 {
		what = fmt.Sprintf("move %s on %s", diag.Count(len(x.exp.Space.Vars), "variable"), diag.Count(n, "device"))
	}
	switch yes, err := show.AskYes(ctx, a.sys.in, a.sys.err, what); {
	case errors.Is(err, show.ErrNoTerminal):
		return fail(exitUsage, "give --yes", "nothing was done: %w", err)
	case err != nil:
		return interrupted(ctx, fmt.Errorf("nothing was done: %w", err))
	case !yes:
		return fail(exitError, "", "nothing was done: the answer was not \"yes\"")
	}
	return nil
}
