package hostverb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/fabricctl/fabricctl/cmd/show"
	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/drivers/hostlocal"
	"github.com/fabricctl/fabricctl/drivers/rollout"
	"github.com/fabricctl/fabricctl/model/journal"
)

// plan is what would bring the machine to the file.
func (p *Program) plan(ctx context.Context, e *rollout.Engine, file *hostlocal.File) (*rollout.Plan, error) {
	net, err := file.Net()
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(p.Err, "reading this machine, %s of %s\n", file.Device.Name, file.Device.Fabric)
	plan, err := e.Plan(ctx, net, rollout.PlanOptions{Model: file.Model})
	if err != nil {
		return nil, interrupted(ctx, err)
	}
	return plan, nil
}

// Plan shows what apply would do.
func (p *Program) Plan(ctx context.Context, file *hostlocal.File, o Options) error {
	m, err := p.Machine(file, o)
	if err != nil {
		return err
	}
	plan, err := p.plan(ctx, p.engine(m), file)
	if err != nil {
		return err
	}
	if p.JSON {
		err = p.printJSON(show.JSON(plan, "plan"))
	} else {
		err = show.Plan(p.Out, plan, o.Details)
	}
	switch {
	case err != nil:
		return err
	case plan.Failed():
		return ended(exitError)
	case plan.Refused():
		return ended(exitRefused)
	case o.Detailed && plan.Changes():
		return ended(exitChanges)
	}
	return nil
}

// Apply plans and carries it out.
func (p *Program) Apply(ctx context.Context, file *hostlocal.File, o Options) error {
	if p.ReadOnly {
		return fail(exitRefused, "leave --read-only out to write", "apply: %w", drivers.ErrReadOnly)
	}
	m, err := p.Machine(file, o)
	if err != nil {
		return err
	}
	if err := m.Expire(ctx); err != nil {
		return interrupted(ctx, fmt.Errorf("nothing of this was written: %w", err))
	}
	e := p.engine(m)
	e.Lines = new(rollout.Lines)
	defer e.Lines.Close()
	plan, err := p.plan(ctx, e, file)
	if err != nil {
		return err
	}
	if err := show.Plan(p.Err, plan, o.Details); err != nil {
		return err
	}
	if err := cmp.Or(plan.Refusal(), plan.Unwritable()); err != nil {
		return p.finish(ctx, nil, err)
	}
	if why, hint := show.Leave(plan, o.Apply); why != "" {
		return fail(exitRefused, hint, "%s", why)
	}
	if show.Changing(plan) > 0 && !o.Yes {
		switch yes, err := show.Ask(ctx, p.In, p.Err, plan); {
		case errors.Is(err, show.ErrNoTerminal):
			return fail(exitUsage, "give --yes", "nothing was written: %w", err)
		case err != nil:
			return interrupted(ctx, fmt.Errorf("nothing was written: %w", err))
		case !yes:
			return fail(exitError, "", "nothing was written: the answer was not \"yes\"")
		}
	}
	r, err := e.Apply(ctx, plan, o.Apply)
	return p.finish(ctx, r, err)
}

// Back finishes a run of this machine, or takes it back.
func (p *Program) Back(ctx context.Context, verb, id string, o Options) error {
	if p.ReadOnly {
		return fail(exitRefused, "leave --read-only out to write", "%s: %w", verb, drivers.ErrReadOnly)
	}
	file, err := o.Optional()
	if err != nil {
		return err
	}
	m, err := p.Machine(nil, o)
	if err != nil {
		return err
	}
	if file != nil { // what the user knows of NICs; the run says the rest
		if m.Catalog, err = file.Catalog(); err != nil {
			return err
		}
	}
	e := p.engine(m)
	var r *rollout.Run
	if verb == "resume" {
		r, err = e.Resume(ctx, id)
	} else {
		r, err = e.Rollback(ctx, id)
	}
	return p.finish(ctx, r, err)
}

// finish prints what a run did and turns it into an exit code.
func (p *Program) finish(ctx context.Context, r *rollout.Run, err error) error {
	if err != nil {
		f := &Failure{Code: rollout.ExitCode(r, err)}
		if f.Code == exitError && ctx.Err() != nil {
			f.Code = exitInterrupted
		}
		f.Hint, f.Err = show.Advice(err)
		if lease := (*journal.DamagedLeaseError)(nil); errors.As(err, &lease) {
			f.Hint = p.command(filepath.Dir(filepath.Dir(lease.Path)), []string{"lock", "break", lease.Name}) + " repairs it"
		}
		return f
	}
	if p.JSON {
		err = p.printJSON(show.RunJSON{Schema: "fabricctl/run/v1", Run: r})
	} else {
		show.Run(p.Out, r, true, func(verb, id string) string { return p.Name + " " + verb + " " + id }, p.Name+" status")
	}
	if err != nil {
		return err
	}
	return ended(rollout.ExitCode(r, nil))
}
