package rollout

import (
	"fmt"
	"strings"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/lint"
	"github.com/fabricctl/fabricctl/render"
)

// Behaviour is what a device's steps do to some of its ports, in the words of the model. Each value
// stands once, with all the ports that it moves on. lowersMTU reports whether a port's MTU becomes smaller.
type Behaviour struct {
	Ports   []string         `json:"ports"` // the device's interface names, in the order of the model
	Changes []BehaviourValue `json:"changes"`
}

// BehaviourValue is one value that moves, with the model line that asks for it.
type BehaviourValue struct {
	intent.Difference
	From diag.Pos `json:"from,omitzero"`
}

// behaviourOf lifts what the device holds and what it will hold, and says what is different on each modelled port.
// Changes that no port shows (a shared object that nothing uses any more) are in the steps alone.
func behaviourOf(d *render.Dialect, dev *intent.Device, f render.Facts, live render.Config, cs []render.Change) (out []Behaviour, lowersMTU bool) {
	was, _ := d.Lift(live, f)
	will, _ := d.Lift(render.Apply(live, cs), f)
	g := group{ports: map[BehaviourValue][]string{}}
	for i := range dev.Ports {
		p := &dev.Ports[i]
		a, b := was[p.Iface], will[p.Iface]
		lowersMTU = lowersMTU || a.Known.Has(intent.AreaMTU) && b.Known.Has(intent.AreaMTU) && b.MTU < a.MTU
		g.add(dev, p, intent.Differences(&a, &b))
	}
	return g.behaviour(), lowersMTU
}

// observedOf is what ports do otherwise than the model asks, in areas that nobody writes.
func observedOf(dev *intent.Device, lifted map[string]intent.Policy, m Mode) []Behaviour {
	g := group{ports: map[BehaviourValue][]string{}}
	for i := range dev.Ports {
		p := &dev.Ports[i]
		is, ok := lifted[p.Iface]
		if !ok || p.State == intent.Planned || p.State == intent.Absent {
			continue
		}
		var open intent.Areas
		for a := range intent.NumAreas {
			if mode := p.Manage[a]; mode == intent.Observe || mode == intent.Own && (m != Write || p.State != intent.Active) {
				open |= intent.AreaSet(a)
			}
		}
		is = is.Only(open)
		want := dev.PolicyOf(p).Only(open)
		g.add(dev, p, intent.Differences(&is, &want))
	}
	return g.behaviour()
}

// group collects values by the ports that they move on.
type group struct {
	ports  map[BehaviourValue][]string
	values []BehaviourValue // in the order of the first port that shows each
}

func (g *group) add(dev *intent.Device, p *intent.Port, ds []intent.Difference) {
	for _, d := range ds {
		v := BehaviourValue{d, dev.Origins.Get(p.Site, d.Field).At()}
		if g.ports[v] == nil {
			g.values = append(g.values, v)
		}
		g.ports[v] = append(g.ports[v], p.Iface)
	}
}

func (g *group) behaviour() []Behaviour {
	var out []Behaviour
	at := map[string]int{} // a set of ports, to its place in out
	for _, v := range g.values {
		set := strings.Join(g.ports[v], " ")
		i, ok := at[set]
		if !ok {
			i, at[set] = len(out), len(out)
			out = append(out, Behaviour{Ports: g.ports[v]})
		}
		out[i].Changes = append(out[i].Changes, v)
	}
	return out
}

// outlook is what a device does once its steps are carried out, in all areas, owned or not.
func outlook(d *render.Dialect, dev *intent.Device, f render.Facts, live render.Config, steps []Step) intent.Device {
	for _, s := range steps {
		live = render.Apply(live, s.Changes)
	}
	lifted, _ := d.Lift(live, f)
	return intent.Join(*dev, lifted)
}

// disagreements lints the fabric as it will be after the plan: what is not owned stays as it is live, and may not fit
// what is. They are warnings, since the model itself is right, and only those that the model does not share.
func disagreements(want *intent.Net, after []intent.Device) diag.List {
	type same struct {
		rule, msg string
		pos       diag.Pos
	}
	known := map[same]bool{}
	for _, f := range lint.Check(want, nil) {
		known[same{f.Rule, f.Msg, f.Pos}] = true
	}
	var l diag.List
	for _, f := range lint.Check(&intent.Net{Fabric: want.Fabric, Devices: after}, nil) {
		if f.Severity == diag.Error && !known[same{f.Rule, f.Msg, f.Pos}] {
			f.Severity, f.Msg = diag.Warning, fmt.Sprintf("after this plan, %s", f.Msg)
			l.Add(f)
		}
	}
	return l.Sort()
}
