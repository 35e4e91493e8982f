package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"slices"

	"github.com/spf13/cobra"

	"github.com/fabricctl/fabricctl/cmd/show"
	"github.com/fabricctl/fabricctl/drivers/rollout"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/render"
)

type planFlags struct {
	devices []string
	adopt   bool
	details bool
	outlook func(now, after *intent.Net) // told of the devices; nil = nobody asks
}

// planView is how a plan is shown.
type planView struct {
	verb      string // plan or drift
	details   bool   // list every setting
	detailed  bool   // exit 2 when there are changes
	maxBytes  int    // of markdown
	simulate  string // under which workload it is simulated; "" = it is not, usually = the usual one
	simulated *planSim
}

func (v *planView) register(c *cobra.Command) {
	c.Flags().IntVar(&v.maxBytes, "max-bytes", show.DefaultComment, "with -o markdown: the most that is written; what finds no room is counted")
}

func (o *planFlags) register(c *cobra.Command) {
	c.Flags().StringSliceVar(&o.devices, "device", nil, "only these devices; the plan is then a partial one")
	c.Flags().BoolVar(&o.adopt, "adopt", false, "let live objects that only modelled ports use stand for ours (give it each time, or set manage.adopt)")
	c.Flags().BoolVar(&o.details, "details", false, "list every setting, not only what changes in behaviour")
}

// planned are the rules whose warnings about the model are not said before a plan: it says them itself, of the devices
// on which they are in the way.
func planned() []string { return []string{render.NeedsAdoption} }

func (a *app) newPlan() *cobra.Command {
	var o planFlags
	v := planView{verb: "plan"}
	var out string
	c := &cobra.Command{
		Use:   "plan",
		Short: "Compare the model with what the devices hold, and show what apply would do",
		Long: `Read every device, keep what the model owns, and show the difference: what changes in behaviour with the model line
that asks for it, once for all the ports and devices that share it, and what it does to traffic. Nothing is written to
any device.

-o markdown is for a pull request, -o json (fabricctl/plan/v1) for programs; apply takes the file of --out.

--simulate plays the fabric as it is and as it will be against the same load (--simulate=incast:8, as sim takes it) and puts
the two beside each other. It is a model's answer: it is not in the file of --out, and changes no exit code.

Exit 0 when the plan was made, 1 when a device could not be read, 4 when a device must not be written although it
would have to change, and with --detailed-exitcode 2 when there are changes.`,
		Example: "  fabricctl plan -f fabric.yaml -f inventory.yaml\n  fabricctl plan -f pod1/ --out plan.json --detailed-exitcode\n" +
			"  fabricctl plan show plan.json -o markdown > comment.md\n" +
			"  fabricctl plan -f pod1/ --simulate='incast:8 + victim + probe'",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 0 && v.simulate == usually {
				return fail(exitUsage, "write --simulate="+args[0], "plan takes no arguments, but got %q", args[0])
			}
			return noArgs(c, args)
		},
		RunE: func(c *cobra.Command, _ []string) error { return a.runPlan(c.Context(), o, out, v) },
	}
	o.register(c)
	v.register(c)
	c.Flags().StringVar(&v.simulate, "simulate", "", "simulate the fabric before and after, under this workload or the usual one: 8 hosts to one")
	c.Flags().Lookup("simulate").NoOptDefVal = usually
	c.Flags().StringVar(&out, "out", "", "write the plan to this file, for apply")
	c.Flags().BoolVar(&v.detailed, "detailed-exitcode", false, "exit 2 when there are changes")
	c.AddCommand(a.newPlanShow())
	return c
}

func (a *app) newPlanShow() *cobra.Command {
	v := planView{verb: "plan"}
	c := &cobra.Command{
		Use:   "show PLAN",
		Short: "Show a plan file that plan --out wrote",
		Long: `Print a saved plan as plan printed it. No model is read and no device is contacted: what the devices hold by now, apply
finds out. The exit codes are those of plan.`,
		Example: "  fabricctl plan show plan.json\n  fabricctl plan show plan.json --detailed-exitcode -o markdown > comment.md",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage("plan show wants one plan file")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if _, err := a.wants("text", "json", "markdown"); err != nil {
				return err
			}
			if err := v.check(); err != nil {
				return err
			}
			p, err := readPlan(args[0])
			if err != nil {
				return err
			}
			return a.show(p, v)
		},
	}
	c.Flags().BoolVar(&v.details, "details", false, "list every setting, not only what changes in behaviour")
	v.register(c)
	c.Flags().BoolVar(&v.detailed, "detailed-exitcode", false, "exit 2 when there are changes")
	return c
}

func (a *app) newDrift() *cobra.Command {
	var o planFlags
	v := planView{verb: "drift", detailed: true}
	c := &cobra.Command{
		Use:   "drift",
		Short: "Exit 2 when a device no longer holds what the model owns",
		Long: `Read every device and compare what the model owns with it, as plan does. Exit 0 when nothing differs, 2 when
something does, 1 when a device could not be read, 4 when one must not be written. Nothing is written. The same state
gives the same bytes, also with -o json (fabricctl/drift/v1) and -o markdown.`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error { return a.runPlan(c.Context(), o, "", v) },
	}
	o.register(c)
	v.register(c)
	return c
}

// check refuses a limit that has no room for the heading and the numbers.
func (v planView) check() error {
	if v.maxBytes < show.SmallestComment {
		return usage("--max-bytes %d: want at least %d", v.maxBytes, show.SmallestComment)
	}
	return nil
}

// runPlan plans the model, leaves the plan in the file out unless it is "", and shows it.
func (a *app) runPlan(ctx context.Context, o planFlags, out string, v planView) error {
	ctx, cancel := a.limit(ctx)
	defer cancel()
	if _, err := a.wants("text", "json", "markdown"); err != nil {
		return err
	}
	if err := v.check(); err != nil {
		return err
	}
	if out != "" {
		if err := outFile("--out", out, "plan.json"); err != nil {
			return err
		}
	}
	m, err := a.mustLoad(ctx, planned()...)
	if m.net != nil {
		a.warnTuning(m.net.Fabric) // whatever is wrong with the model
	}
	if err != nil {
		return err
	}
	var s *planSim
	if v.simulate != "" {
		if s, err = newPlanSim(m.net, v.simulate); err != nil {
			return err
		}
		o.outlook = s.outlook
	}
	p, err := a.plan(ctx, m, o)
	if err != nil {
		return err
	}
	if out != "" {
		if err := p.WriteFile(out); err != nil {
			return err
		}
	}
	if s != nil {
		s.run(ctx, a)
		v.simulated = s
	}
	v.details = o.details
	err = a.show(p, v)
	if cut := s.interrupted(ctx); cut != nil {
		return cut
	}
	return err
}

// show prints a plan in the format of -o, and ends with its exit code: the worst thing first.
func (a *app) show(p *rollout.Plan, v planView) error {
	var err error
	if v.verb == "drift" {
		p = p.Still()
	}
	switch a.output {
	case "json":
		err = a.printJSON(planJSON{show.JSON(p, v.verb), v.simulated.json()})
	case "markdown":
		_, err = io.WriteString(a.sys.out, v.simulated.under(show.Markdown(p, v.verb, v.simulated.room(v.maxBytes)), v.maxBytes))
	default:
		err = show.Plan(a.sys.out, p, v.details)
		v.simulated.print(a.sys.out)
	}
	switch {
	case err != nil:
		return err
	case p.Failed():
		return done(exitError)
	case p.Refused():
		return done(exitRefused)
	case v.detailed && p.Changes():
		return done(exitChanges)
	}
	return nil
}

// plan plans a model against the devices.
func (a *app) plan(ctx context.Context, m loaded, o planFlags) (*rollout.Plan, error) {
	e, err := a.engine(a.dialler(m.fabric, m.net).open)
	if err != nil {
		return nil, err
	}
	return a.planFor(ctx, e, m, o)
}

// many is a number of devices from which on a plan is large.
const many = 200

// planFor is the plan of a model, or of the part of it that the flags name.
func (a *app) planFor(ctx context.Context, e *rollout.Engine, m loaded, o planFlags) (*rollout.Plan, error) {
	net, err := part(m.net, o.devices)
	if err != nil {
		return nil, err
	}
	reading := 0
	for _, d := range net.Devices {
		if d.State != intent.Planned && d.State != intent.Absent {
			reading++
		}
	}
	fmt.Fprintf(a.sys.err, "reading %s\n", diag.Count(reading, "device"))
	if reading > many { // most of the time they are waited for: memory is dearer than processor there
		defer debug.SetGCPercent(debug.SetGCPercent(50))
	}
	p, err := e.Plan(ctx, net, rollout.PlanOptions{
		Model: m.digest(), Fabric: m.fabric, Adopt: o.adopt || m.fabric.Adopt.V, Lab: allLab(m, net),
		Outlook: o.outlook,
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
	some := net.With(nil)
	for _, d := range net.Devices {
		if slices.Contains(only, d.Name) {
			some.Devices = append(some.Devices, d)
		}
	}
	return some, nil
}

// allLab reports whether every device of net that is contacted is an emulated one.
func allLab(m loaded, net *intent.Net) bool {
	for _, d := range net.Devices {
		if d.State != intent.Planned && d.State != intent.Absent && !m.emulated(d.Name) {
			return false
		}
	}
	return true
}

// readPlan reads a plan file.
func readPlan(path string) (*rollout.Plan, error) {
	p, err := rollout.ReadFile(path)
	if err != nil {
		return nil, fail(exitError, "fabricctl plan --out plan.json writes one", "%w", err)
	}
	return p, nil
}
