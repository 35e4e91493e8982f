package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/fabricctl/fabricctl/cmd/show"
	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/render"
	"github.com/fabricctl/fabricctl/tuning"
)

// tuneReach is what an experiment touches: what moving each variable does, on which devices, and which ports share an object that is
// edited there.
type tuneReach struct {
	devices []string // that are written
	ports   []string // "leaf1:downlink-3"; a port that is not in the model has the device refused, when it uses what is edited
	others  []string // of these, with whose: they carry lossless traffic that is not of the experiment's hosts
}

// held is what a device holds, as it was read, or as it would be if it held the model and nothing else.
type held struct {
	config render.Config
	facts  render.Facts
}

// tuneReachOf finds what an experiment on a space touches, and fills in the costs of its variables. hosts are those that belong to it, and so do
// ports ("leaf1:downlink-1", or with the device's own name of the port), whatever is behind them. What a device holds comes from views; a device that is not among them is taken to hold the model, and nothing that nobody knows of.
func tuneReachOf(f *model.Fabric, net *intent.Net, s *tuning.Space, hosts, ports []string, views map[string]held) (*tuneReach, error) {
	r := &tuneReach{}
	touched := map[string]map[string]bool{} // by device, words of what leads to what is edited
	for i := range s.Vars {
		v := &s.Vars[i]
		if len(v.Paths) == 0 {
			continue
		}
		nets := movedNets(f, s, i)
		if len(nets) == 0 {
			return nil, fmt.Errorf("%s: no value but %s is legal", v.Name, v.Text(s.Base[i]))
		}
		moved := nets[0]
		v.Costs = nil
		var kept []moveOf
		for d := range net.Devices {
			was, is := &net.Devices[d], &moved.Devices[d]
			if was.State != intent.Active || slices.Equal(policies(was), policies(is)) {
				continue
			}
			m := moveOf{was: was, is: is}
			m.find(views, &kept)
			if m.cost.Kind == tuning.Flaps && len(nets) > 1 {
				m.cost.Why += inPlace(v, is, &nets[1].Devices[d])
			}
			addCost(v, was, m.cost)
			if m.cost.Kind == tuning.Unowned || m.cost.Kind == tuning.Refused {
				continue
			}
			if touched[was.Name] == nil {
				touched[was.Name] = map[string]bool{}
			}
			maps.Copy(touched[was.Name], m.words)
		}
	}
	bystanders := bystandersOf(net, hosts)
	for _, name := range slices.SortedFunc(maps.Keys(touched), intent.CompareNames) {
		r.devices = append(r.devices, name)
		r.portsOf(net, net.Device(name), touched[name], hosts, ports, bystanders)
	}
	return r, nil
}

// moveOf is what moving a variable comes to on a device.
type moveOf struct {
	was, is *intent.Device
	cost    tuning.Cost
	words   map[string]bool
}

// find fills in what the move comes to: by what the device holds, or else as on a twin that is kept.
func (m *moveOf) find(views map[string]held, kept *[]moveOf) {
	if h, ok := views[m.was.Name]; ok {
		m.cost, m.words = moveCost(m.was, m.is, h)
		return
	}
	for _, k := range *kept {
		if intent.Twins(k.was, m.was) && intent.Twins(k.is, m.is) {
			m.cost, m.words = k.cost, k.words
			return
		}
	}
	m.cost, m.words = moveCost(m.was, m.is, asModelled(m.was))
	*kept = append(*kept, *m)
}

// movedNets are the fabric with variable i of a space at other values than now: two, or as many as are legal.
func movedNets(f *model.Fabric, s *tuning.Space, i int) (nets []*intent.Net) {
	v := &s.Vars[i]
	seen := map[float64]bool{s.Base[i]: true}
	for _, x := range append(slices.Clone(v.Ladder), v.High, v.Low) {
		setting := slices.Clone(s.Base)
		setting[i] = x
		setting = s.Normal(setting)
		if seen[setting[i]] {
			continue
		}
		seen[setting[i]] = true
		g, found := f.With(s.Change(setting).Patch)
		if found.HasErrors() {
			continue
		}
		if net, more := intent.Resolve(g); !more.HasErrors() {
			if nets = append(nets, net); len(nets) == 2 {
				break
			}
		}
	}
	return nets
}

// inPlace says how a move costs nothing that costs something now: where a part of the fabric gets an object of its own, it has to be bound
// once, and is then edited in place.
func inPlace(v *tuning.Variable, one, other *intent.Device) string {
	if !strings.HasPrefix(v.Paths[0], "overrides.") {
		return ""
	}
	if cost, _ := moveCost(one, other, asModelled(one)); cost.Kind != tuning.Hitless {
		return ""
	}
	return fmt.Sprintf("; write %s into the model with the value that it has now, and apply that first: from then on it is edited in place, and no port goes down", v.Paths[0])
}

// policies are those of the ports of d, in order.
func policies(d *intent.Device) []intent.Policy {
	all := make([]intent.Policy, len(d.Ports))
	for i := range d.Ports {
		all[i] = *d.PolicyOf(&d.Ports[i])
	}
	return all
}

// moveCost is what taking a device from was to is does to traffic, and the interfaces that use what is edited.
func moveCost(was, is *intent.Device, h held) (tuning.Cost, map[string]bool) {
	c := tuning.Cost{Platform: was.Platform, Kind: tuning.Hitless}
	dialect := render.ByOS(was.OS())
	if dialect == nil {
		return tuning.Cost{Platform: was.Platform, Kind: tuning.Refused, Why: "fabricctl does not configure " + was.OS()}, nil
	}
	before := render.Look(dialect, was.Bind(h.facts.Aliases), h.facts, h.config)
	after := render.Look(dialect, is.Bind(h.facts.Aliases), h.facts, h.config)
	changes := without(after.Changes, before.Changes)
	if why := after.Refused(); why != "" && why != before.Refused() {
		return tuning.Cost{Platform: was.Platform, Kind: tuning.Refused, Why: diag.OneLine(show.Nameless(why, was.Name))}, nil
	}
	if len(changes) == 0 {
		c.Kind, c.Why = tuning.Unowned, "the model does not own it there, or the system has no such setting"
		return c, nil
	}
	for _, risk := range dialect.Risk(h.config, changes, h.facts) {
		why := diag.OneLine(risk.Why)
		switch {
		case risk.Class == render.Refused:
			return tuning.Cost{Platform: was.Platform, Kind: tuning.Refused, Why: why}, nil
		case risk.Class > render.Hitless:
			c.Kind, c.Why = tuning.Flaps, fmt.Sprintf("%s of %s: %s", risk.Class, diag.Count(len(risk.Ports), "port"), why)
		case c.Kind == tuning.Hitless:
			c.Why = why
		}
	}
	return c, usersOf(dialect, h.config, changes)
}

// without is cs but for those that are in known too.
func without(cs, known []render.Change) []render.Change {
	type change struct {
		key   render.Key
		after string
		none  bool
	}
	of := func(c render.Change) change {
		if c.After == nil {
			return change{key: c.Key, none: true}
		}
		return change{key: c.Key, after: *c.After}
	}
	have := map[change]bool{}
	for _, c := range known {
		have[of(c)] = true
	}
	return slices.DeleteFunc(slices.Clone(cs), func(c render.Change) bool { return have[of(c)] })
}

// usersOf are the words of all objects that lead to one of those that are changed, as the device is before and after: names of interfaces
// are among them.
func usersOf(dialect *render.Dialect, config render.Config, changes []render.Change) map[string]bool {
	users := map[render.Key][]render.Key{} // object to what points at it
	for _, c := range []render.Config{config, render.Apply(config, changes)} {
		for i := range c {
			for _, to := range dialect.Refs(c[i].Key, c[i].Value) {
				users[to.Whole()] = append(users[to.Whole()], c[i].Key.Whole())
			}
		}
	}
	words, seen := map[string]bool{}, map[render.Key]bool{}
	var visit func(k render.Key)
	visit = func(k render.Key) {
		if seen[k] {
			return
		}
		seen[k] = true
		for _, w := range k.Words() {
			words[w] = true
		}
		for _, u := range users[k] {
			visit(u)
		}
	}
	for _, c := range changes {
		visit(c.Key.Whole())
	}
	return words
}

// addCost adds a device to the row of its platform and cost.
func addCost(v *tuning.Variable, d *intent.Device, c tuning.Cost) {
	for i := range v.Costs {
		if x := &v.Costs[i]; x.Platform == c.Platform && x.Kind == c.Kind && x.Why == c.Why {
			x.Devices = append(x.Devices, d.Name)
			return
		}
	}
	c.Devices = []string{d.Name}
	v.Costs = append(v.Costs, c)
}

// portsOf adds the ports of a device that are touched, and says whose lossless traffic they carry besides the experiment's.
func (r *tuneReach) portsOf(net *intent.Net, d *intent.Device, touched map[string]bool, hosts, ports, bystanders []string) {
	for i := range d.Ports {
		p := &d.Ports[i]
		if !touched[p.Iface] || p.Iface == "" {
			continue
		}
		name := d.Name + ":" + p.Name
		r.ports = append(r.ports, name)
		pol := d.PolicyOf(p)
		switch peer := net.Device(p.Peer); {
		case d.Host || p.State != intent.Active || len(pol.Lossless()) == 0:
		case slices.Contains(ports, name) || slices.Contains(ports, d.Name+":"+p.Iface):
		case peer != nil && peer.Host:
			if !slices.Contains(hosts, peer.Name) {
				r.others = append(r.others, fmt.Sprintf("%s (%s)", name, peer.Name))
			}
		case p.Role == "border" || peer == nil:
			r.others = append(r.others, fmt.Sprintf("%s (what is behind it is not in the model)", name))
		case len(bystanders) > 0:
			r.others = append(r.others, fmt.Sprintf("%s (%s may send over it)", name, show.NameList(bystanders)))
		}
	}
}

// bystandersOf are the hosts in service that send in lossless classes and do not belong to an experiment.
func bystandersOf(net *intent.Net, hosts []string) (names []string) {
	for i := range net.Devices {
		d := &net.Devices[i]
		if !d.Host || d.State != intent.Active || slices.Contains(hosts, d.Name) {
			continue
		}
		for j := range d.Ports {
			if len(d.PolicyOf(&d.Ports[j]).Lossless()) > 0 {
				names = append(names, d.Name)
				break
			}
		}
	}
	return names
}

// pfcAlone refuses the phase without ECN where it would be at the cost of others.
func (r *tuneReach) pfcAlone() error {
	if len(r.others) == 0 {
		return nil
	}
	return fail(exitRefused, "name all hosts there with --test-hosts, or leave --allow-pfc-only out: tuning then begins with ECN on",
		"--allow-pfc-only: on %s, lossless traffic that is not of the experiment would lose ECN: %s", diag.Count(len(r.others), "port"), firstOf(r.others))
}

// firstOf is the first of some texts, and how many more there are.
func firstOf(all []string) string {
	const most = 3
	if len(all) <= most+1 {
		return strings.Join(all, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(all[:most], ", "), len(all)-most)
}

// asModelled is a device that holds the model, all of its ports up, and nothing else.
func asModelled(d *intent.Device) held {
	dialect := render.ByOS(d.OS())
	if dialect == nil {
		return held{}
	}
	h := held{facts: render.Facts{Model: d.Profile.Words["hwsku"]}}
	h.config, _ = dialect.Render(*d, h.facts)
	if dialect.Stock == nil {
		return h
	}
	have := map[render.Key]bool{}
	for i := range h.config {
		have[h.config[i].Key] = true
	}
	h.config = append(slices.Clone(h.config), dialect.Stock(*d, h.facts).Filter(func(k render.Key) bool { return !have[k] })...).Sorted()
	return h
}

// views reads what devices hold, hosts as plan does, by our own program there: stock tools do not show what congestion control can be
// told. The error is of the first, by name, that cannot be read.
func (a *app) views(ctx context.Context, m loaded, names []string) (map[string]held, error) {
	d := a.dialler(m.fabric, m.net)
	views, errs := make([]held, len(names)), make([]error, len(names))
	slots := make(chan struct{}, max(a.parallel, 1))
	var wg sync.WaitGroup
	for i, name := range names {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			views[i], errs[i] = view(ctx, d, m, name)
		})
	}
	wg.Wait()
	out := map[string]held{}
	for i, name := range names {
		if errs[i] != nil {
			return nil, interrupted(ctx, errs[i])
		}
		out[name] = views[i]
	}
	return out, nil
}

// view reads one device, and finds the names of objects that were adopted there.
func view(ctx context.Context, d *dialler, m loaded, name string) (h held, err error) {
	dev, err := d.open(ctx, name)
	if err != nil {
		return h, err
	}
	defer func() { _ = dev.Close() }()
	if h.facts, _, err = dev.Facts(ctx); err != nil {
		return h, fmt.Errorf("%s: %w", name, err)
	}
	if h.config, err = dev.Read(ctx); err != nil {
		return h, fmt.Errorf("%s: %w", name, err)
	}
	identity := m.net.Device(name)
	if dialect := render.ByOS(identity.OS()); dialect != nil && m.fabric.Adopt.V {
		h.facts.Names, _ = render.Adopt(dialect, identity.Bind(h.facts.Aliases), h.facts, h.config)
	}
	return h, nil
}
