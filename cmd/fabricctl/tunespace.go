package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/observe"
	"github.com/fabricctl/fabricctl/tuning"
)

// tuneSpace is what an experiment moves, and what sets its external variables; nil when there are none.
func (a *app) tuneSpace(ctx context.Context, m loaded, class string, w observe.Workload, o tuneFlags, was map[string]float64) (*tuning.Space, *commands, error) {
	options := tuning.SpaceOptions{Class: class, Variables: o.variables, Scope: o.scope, Workload: w, Live: o.runner != runnerSim}
	var knobs *commands
	if o.external != "" {
		var err error
		if options.Externals, knobs, err = a.externals(ctx, o.external, m.net.Fabric, was); err != nil {
			return nil, nil, err
		}
	}
	space, found := tuning.NewSpace(m.fabric, options)
	a.simFindings(found)
	if found.HasErrors() {
		return nil, nil, fail(exitError, "", "this cannot be tuned: %s; nothing was done", diag.Count(found.Count(diag.Error), "error"))
	}
	return space, knobs, a.mendable(m, space)
}

// mendable refuses a model with errors, but for those that other settings of the space do not have: to find a way out of these is what
// an experiment is for.
func (a *app) mendable(m loaded, space *tuning.Space) error {
	n := m.findings.Count(diag.Error)
	never, lacks := unreached(m.net, m.findings, space.Vars)
	if n == 0 {
		if len(never) > 0 {
			fmt.Fprintf(a.sys.err, "nothing is marked with what there is, so that %s alone may do nothing: add %s to --variables\n", diag.And(never), diag.And(lacks))
		}
		return nil
	}
	var mends []string
	if space.Mends != nil {
		mends = space.Mends()
	}
	stays, others := false, false // errors of thresholds that no queue comes to, and others
	for _, f := range m.findings {
		if f.Severity == diag.Error && f.Ack == "" {
			stays = stays || !slices.Contains(mends, f.Rule)
			others = others || f.Rule != unreachedRule
		}
	}
	switch {
	case stays && len(never) > 0 && !others:
		return fail(exitError, fmt.Sprintf("add %s to --variables, or lower kmin and kmax first", diag.And(lacks)),
			"the model has %s, and %s alone cannot mend that, since nothing is marked; nothing was done", diag.Count(n, "error"), diag.And(never))
	case stays:
		return m.refused()
	}
	fmt.Fprintf(a.sys.err, "the model has %s that other settings do not have: these are looked for, and what there is is the baseline\n", diag.Count(n, "error"))
	return nil
}

// unreachedRule is the rule about thresholds of ECN that no queue comes to.
const unreachedRule = "ecn-never-marks"

// unreached names what is moved of ramps that no queue comes to, where what would bring one of them there is not moved, and what that would be.
func unreached(net *intent.Net, l diag.List, vars []tuning.Variable) (names, lacks []string) {
	on := map[string]bool{} // the devices with such a ramp
	for _, f := range l {
		for _, name := range f.Devices {
			on[name] = on[name] || f.Rule == unreachedRule
		}
	}
	within := func(scope, device string) bool {
		d := net.Device(device)
		return on[device] && (scope == "" || scope == device || d != nil && d.Role == scope)
	}
	for i := range vars {
		name, scope, _ := strings.Cut(vars[i].Name, "@")
		if name != tuning.KminRatio && name != tuning.Pmax {
			continue
		}
		some, moved := false, false
		for device := range on {
			some = some || within(scope, device)
			moved = moved || within(scope, device) && slices.ContainsFunc(vars, func(v tuning.Variable) bool {
				name, scope, _ := strings.Cut(v.Name, "@")
				return name == tuning.Kmax && within(scope, device)
			})
		}
		if lack := tuning.Kmax + strings.TrimPrefix(vars[i].Name, name); some && !moved {
			names = append(names, vars[i].Name)
			if !slices.Contains(lacks, lack) {
				lacks = append(lacks, lack)
			}
		}
	}
	return names, lacks
}

// tuneCosts says in an experiment what moving its variables costs, what is written, and which ports share what is edited. Where devices are
// to be written, they are asked what they hold, unless this is a dry run: a model alone does not know what an updater permits, or who else
// uses an object. The phase without ECN is refused here where it would be at the cost of others.
func (a *app) tuneCosts(ctx context.Context, x *experiment) error {
	o, m := &x.flags, x.model
	if o.runner == runnerSim { // nobody is disturbed
		_, err := tuneReachOf(m.fabric, m.net, x.exp.Space, nil, nil, nil)
		return err
	}
	hosts, err := o.among(m.net)
	if err != nil {
		return err
	}
	r, err := tuneReachOf(m.fabric, m.net, x.exp.Space, hosts, o.ports, nil)
	if err != nil {
		return err
	}
	if names := moved(x.exp.Space.Vars); !o.dry && len(names) > 0 {
		views, err := a.views(ctx, m, names)
		if err != nil {
			hint := ""
			if o.runner == runnerLab {
				hint = "is the lab up, and its inventory given: -f DIR/inventory.yaml of fabricctl lab up --out DIR?"
			}
			return fail(exitError, hint, "%w; nothing was changed", err)
		}
		if r, err = tuneReachOf(m.fabric, m.net, x.exp.Space, hosts, o.ports, views); err != nil {
			return err
		}
	}
	x.exp.Context.Devices, x.exp.Context.Ports = r.devices, r.ports
	if len(r.others) > 0 {
		x.exp.Context.Note = append(x.exp.Context.Note, fmt.Sprintf("%s of those carry lossless traffic that is not of the test hosts: %s", diag.Count(len(r.others), "port"), firstOf(r.others)))
	}
	if o.pfcOnly {
		return r.pfcAlone()
	}
	return nil
}

// moved are the devices on which some variable changes something.
func moved(vars []tuning.Variable) (names []string) {
	for i := range vars {
		for _, c := range vars[i].Costs {
			names = append(names, c.Devices...)
		}
	}
	slices.SortFunc(names, intent.CompareNames)
	return slices.Compact(names)
}
