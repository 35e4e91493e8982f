package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/fabricctl/fabricctl/drivers/rollout"
	"github.com/fabricctl/fabricctl/model/intent"
)

type planFlags struct {
	devices []string
	adopt   bool
	details bool
}

func (o *planFlags) register(c *cobra.Command) {
	c.Flags().StringSliceVar(&o.devices, "device", nil, "only these devices; the plan is then a partial one")
	c.Flags().BoolVar(&o.adopt, "adopt", false, "let live objects that only modelled ports use stand for ours (give it each time, or set manage.adopt)")
	c.Flags().BoolVar(&o.details, "details", false, "list every setting, not only what changes in behaviour")
}

func (a *app) newPlan() *cobra.Command {
	var o planFlags
	var out string
	var detailed bool
	c := &cobra.Command{
		Use:   "plan",
		Short: "Compare the model with what the devices hold, and show what apply would do",
		Long: `Read every device, keep what the model owns, and show the difference: what changes in behaviour with the model line
that asks for it, how many settings that is, and what it does to traffic. Nothing is written to any device.

Exit 0 when the plan was made, 1 when a device could not be read, 4 when a device must not be written although it
would have to change, and with --detailed-exitcode 2 when there are changes.`,
		Example: "  fabricctl plan -f fabric.yaml -f inventory.yaml\n  fabricctl plan -f pod1/ --out plan.json --detailed-exitcode",
		Args:    noArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return a.runPlan(c.Context(), o, out, detailed) },
	}
	o.register(c)
	c.Flags().StringVar(&out, "out", "", "write the plan to this file, for apply")
	c.Flags().BoolVar(&detailed, "detailed-exitcode", false, "exit 2 when there are changes")
	return c
}

func (a *app) newDrift() *cobra.Command {
	var o planFlags
	c := &cobra.Command{
		Use:   "drift",
		Short: "Exit 2 when a device no longer holds what the model owns",
		Long: `Read every device and compare what the model owns with it, as plan does. Exit 0 when nothing differs, 2 when
something does, 1 when a device could not be read, 4 when one must not be written. Nothing is written.`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error { return a.runPlan(c.Context(), o, "", true) },
	}
	o.register(c)
	return c
}

// runPlan plans the model, leaves the plan in the file out unless it is "", and shows it.
func (a *app) runPlan(ctx context.Context, o planFlags, out string, detailed bool) error {
	ctx, cancel := a.limit(ctx)
	defer cancel()
	json, err := a.wants("text", "json")
	if err != nil {
		return err
	}
	p, err := a.plan(ctx, o)
	if err != nil {
		return err
	}
	if out != "" {
		if err := p.WriteFile(out); err != nil {
			return err
		}
	}
	return a.show(p, json, o.details, detailed)
}

// show prints a plan and ends with its exit code: the worst thing first.
func (a *app) show(p *rollout.Plan, json, details, detailed bool) error {
	var err error
	if json {
		err = a.printJSON(p)
	} else {
		err = a.printPlan(a.sys.out, p, details)
	}
	switch {
	case err != nil:
		return err
	case p.Failed():
		return done(exitError)
	case p.Refused():
		return done(exitRefused)
	case detailed && p.Changes():
		return done(exitChanges)
	}
	return nil
}

// plan loads the model and plans it against the devices.
func (a *app) plan(ctx context.Context, o planFlags) (*rollout.Plan, error) {
	m, err := a.mustLoad()
	if err != nil {
		return nil, err
	}
	return a.planFor(ctx, m, o)
}

func (a *app) planFor(ctx context.Context, m loaded, o planFlags) (*rollout.Plan, error) {
	net, err := part(m.net, o.devices)
	if err != nil {
		return nil, err
	}
	e, err := a.engine(a.dialler(m.fabric, m.net).open)
	if err != nil {
		return nil, err
	}
	reading := 0
	for _, d := range net.Devices {
		if d.State != intent.Planned && d.State != intent.Absent {
			reading++
		}
	}
	fmt.Fprintf(a.sys.err, "reading %s\n", count(reading, "device"))
	p, err := e.Plan(ctx, net, rollout.PlanOptions{
		Model: m.fabric.Digest(), Adopt: o.adopt || m.fabric.Adopt.V, Lab: allLab(m, net),
	})
	if err != nil {
		return nil, interrupted(ctx, err)
	}
	return p, nil
}

// interrupted gives an error of a cancelled call the code for it.
func interrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(context.Cause(ctx), context.Canceled) {
		return &exitErr{code: exitInterrupted, err: err}
	}
	return err
}

// part is the part of net with these devices, or all of it.
func part(net *intent.Net, only []string) (*intent.Net, error) {
	if len(only) == 0 {
		return net, nil
	}
	for _, n := range only {
		if net.Device(n) == nil {
			return nil, noDevice(net, n)
		}
	}
	some := &intent.Net{Fabric: net.Fabric}
	for _, d := range net.Devices {
		if slices.Contains(only, d.Name) {
			some.Devices = append(some.Devices, d)
		}
	}
	return some, nil
}

// allLab reports whether every device of net is an emulated one.
func allLab(m loaded, net *intent.Net) bool {
	for _, d := range net.Devices {
		if !m.emulated(d.Name) {
			return false
		}
	}
	return true
}
