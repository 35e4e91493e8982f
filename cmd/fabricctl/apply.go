package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/spf13/cobra"

	"github.com/fabricctl/fabricctl/cmd/show"
	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/drivers/rollout"
)

type applyFlags struct {
	planFlags
	yes  bool
	opts rollout.ApplyOptions
	hook hookFlags
}

func (a *app) newApply() *cobra.Command {
	var o applyFlags
	c := &cobra.Command{
		Use:   "apply [PLAN]",
		Short: "Carry out a plan: write, read back, confirm, save",
		Long: `Apply a plan file made by plan --out, or plan the model and apply that. Before each device is touched, its undo is in
the journal; after the write it is read back over a new connection, and only then confirmed and saved. A device whose
live state has moved since the plan is refused, and so is a plan of another model, or with a device that must not or
cannot be written (exit 4). The model is needed with a plan file too: it says how to reach the devices, and the file must not ask
for more than it.

Without a plan file, apply shows the plan and asks on a terminal, unless --yes is given; elsewhere --yes is needed. A change that makes links flap, or worse, needs
--allow-disruptive, and one that kills live queue pairs on a host needs --allow-jobs besides. Platforms that nobody has tried on a real device need --accept-unverified.

--drain-hook names a program that takes traffic off a device before links of it go down, and lets it come back: a job scheduler's, for
hosts and for switches. A device that it cannot drain is not touched; what it drained, it is asked to undrain whatever happens.`,
		Example: "  fabricctl apply -f pod1/ plan.json\n  fabricctl apply -f pod1/ --yes --allow-disruptive",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage("apply wants at most one plan file")
			}
			if len(args) == 1 && (len(o.devices) > 0 || o.adopt) {
				return fail(exitUsage, "give them to plan --out, which made the file", "--device and --adopt are not for a plan file")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			ctx, cancel := a.limit(c.Context())
			defer cancel()
			return a.runApply(ctx, args, o)
		},
	}
	o.register(c)
	c.Flags().BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	c.Flags().BoolVar(&o.opts.AllowDisruptive, "allow-disruptive", false, "allow changes that make links flap, or worse")
	c.Flags().BoolVar(&o.opts.AllowJobs, "allow-jobs", false, "of those, allow the ones that kill live queue pairs of running jobs")
	o.hook.register(c, "")
	c.Flags().BoolVar(&o.opts.AcceptUnverified, "accept-unverified", false, "allow writing to platforms not tried on a real device")
	return c
}

func (a *app) runApply(ctx context.Context, args []string, o applyFlags) error {
	json, err := a.wants("text", "json")
	if err != nil {
		return err
	}
	if a.readOnly {
		return fail(exitRefused, "leave --read-only out to write", "apply: %w", drivers.ErrReadOnly)
	}
	file := func() (*rollout.Plan, error) { return nil, nil }
	if len(args) == 1 {
		file = ahead(func() (*rollout.Plan, error) { return readPlan(args[0]) })
	}
	m, err := a.mustLoad(ctx, planned()...)
	if m.net != nil {
		a.warnTuning(m.net.Fabric) // whatever is wrong with the model
	}
	if err != nil {
		return err
	}
	d := a.dialler(m.fabric, m.net)
	d.allowJobs = o.opts.AllowJobs
	e, err := a.engine(d.open)
	if err != nil {
		return err
	}
	h, err := o.hook.find(a, m.net.Fabric, "")
	if err != nil {
		return err
	}
	o.opts.DrainHook = drains(e, h)
	e.Lines = new(rollout.Lines)
	defer e.Lines.Close()
	p, err := file()
	if err != nil {
		return err
	}
	if p != nil {
		unfit := e.Check(p, m.net, m.emulated)
		if want := m.digest(); p.Model != want {
			return fail(exitRefused, "make a new plan", "%s was made from another model: digest %.12s there, %.12s now", args[0], p.Model, want)
		}
		if unfit != nil {
			return a.finish(ctx, nil, unfit, json)
		}
		if err := e.Look(ctx, p); err != nil {
			return interrupted(ctx, fmt.Errorf("nothing was written: %w", err))
		}
	} else {
		if p, err = a.planFor(ctx, e, m, o.planFlags); err != nil {
			return err
		}
		if err := show.Plan(a.sys.err, p, o.details); err != nil {
			return err
		}
	}
	if err := cmp.Or(p.Refusal(), p.Unwritable()); err != nil {
		return a.finish(ctx, nil, err, json)
	}
	if err := applicable(p, o.opts); err != nil {
		return err
	}
	if len(args) == 0 && show.Changing(p) > 0 && !o.yes {
		if err := a.ask(ctx, p); err != nil {
			return err
		}
	}
	if show.Changing(p) > 0 {
		fmt.Fprintf(a.sys.err, "journal and lease: %s; operators who do not share it are kept apart only by the check before each write\n", e.StateDir)
	}
	r, err := e.Apply(ctx, p, o.opts)
	return a.finish(ctx, r, err, json)
}

// ahead starts f beside what comes next; the result waits for it.
func ahead[T any](f func() (T, error)) func() (T, error) {
	wait := sync.OnceValues(f)
	go wait()
	return wait
}

// applicable says before anything is touched what apply would refuse, with the flag that allows it.
func applicable(p *rollout.Plan, o rollout.ApplyOptions) error {
	if why, hint := show.Leave(p, o); why != "" {
		return fail(exitRefused, hint, "%s", why)
	}
	return nil
}

// ask shows what is at stake and waits for a yes. Where nobody can be asked, silence is not a yes.
func (a *app) ask(ctx context.Context, p *rollout.Plan) error {
	switch yes, err := show.Ask(ctx, a.sys.in, a.sys.err, p); {
	case errors.Is(err, show.ErrNoTerminal):
		return fail(exitUsage, "give a plan file, or --yes", "nothing was written: %w", err)
	case err != nil:
		return interrupted(ctx, fmt.Errorf("nothing was written: %w", err))
	case !yes:
		return fail(exitError, "", "nothing was written: the answer was not \"yes\"")
	}
	return nil
}

// finish prints what a run did and turns it into an exit code.
func (a *app) finish(ctx context.Context, r *rollout.Run, err error, json bool) error {
	if err != nil {
		code := rollout.ExitCode(r, err)
		if code == exitError && ctx.Err() != nil {
			code = exitInterrupted
		}
		e := &exitErr{code: code}
		e.hint, e.err = show.Advice(err)
		var none *rollout.NoRunError
		if errors.As(err, &none) {
			e.hint = a.command("runs", "list") + " shows the runs"
		}
		return e
	}
	if json {
		if err := a.printJSON(show.RunJSON{Schema: "fabricctl/run/v1", Run: r}); err != nil {
			return err
		}
	} else {
		show.Run(a.sys.out, r, true, a.again, a.command("hold", "list"))
	}
	return done(rollout.ExitCode(r, nil))
}
