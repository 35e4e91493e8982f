package rollout

import (
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/render"
)

// Behaviour is all that a device's steps do to some of its ports, in the words of the model. Ports to which the same is
// done stand together, and each port stands once.
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
// Changes that no port shows (a shared object that nothing uses any more) are in the steps alone. lowersMTU reports
// whether a port's MTU becomes smaller.
func behaviourOf(d *render.Dialect, dev *intent.Device, f render.Facts, live render.Config, cs []render.Change) (out []Behaviour, lowersMTU bool) {
	was, _ := d.Lift(live, f)
	will, _ := d.Lift(render.Apply(live, cs), f)
	g := collector{at: map[string]int{}}
	for i := range dev.Ports {
		p := &dev.Ports[i]
		a, b := was[p.Iface], will[p.Iface]
		lowersMTU = lowersMTU || a.Known.Has(intent.AreaMTU) && b.Known.Has(intent.AreaMTU) && b.MTU < a.MTU
		g.add(dev, p, intent.Differences(&a, &b))
	}
	return g.out, lowersMTU
}

// observedOf is what ports do otherwise than the model asks, in areas that nobody writes.
func observedOf(dev *intent.Device, lifted map[string]intent.Policy, m Mode) []Behaviour {
	g := collector{at: map[string]int{}}
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
	return g.out
}

// collector puts ports with the same changes together, in the order of the first of each.
type collector struct {
	out []Behaviour
	at  map[string]int // the text of changes, to their place in out
}

func (g *collector) add(dev *intent.Device, p *intent.Port, ds []intent.Difference) {
	if len(ds) == 0 {
		return
	}
	b := Behaviour{Ports: []string{p.Iface}}
	for _, d := range ds {
		b.Changes = append(b.Changes, BehaviourValue{d, dev.Origin(p, d.Field).At()})
	}
	key := b.key()
	i, ok := g.at[key]
	if !ok {
		g.at[key] = len(g.out)
		g.out = append(g.out, b)
		return
	}
	g.out[i].Ports = append(g.out[i].Ports, p.Iface)
}
