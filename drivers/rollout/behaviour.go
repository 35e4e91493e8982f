package rollout

import (
	"strings"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/render"
)

// Behaviour is what a device's steps do to some of its ports, in the words of the model. Each value
// stands once, with all the ports that it moves on.
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
func behaviourOf(d *render.Dialect, dev *intent.Device, f render.Facts, live render.Config, cs []render.Change) []Behaviour {
	was, _ := d.Lift(live, f)
	will, _ := d.Lift(render.Apply(live, cs), f)
	ports := map[BehaviourValue][]string{}
	var values []BehaviourValue // in the order of the first port that shows each
	for _, p := range dev.Ports {
		a, b := was[p.Iface], will[p.Iface]
		for _, diff := range intent.Differences(&a, &b) {
			v := BehaviourValue{diff, dev.Origins.Get(p.Site, diff.Field).At()}
			if ports[v] == nil {
				values = append(values, v)
			}
			ports[v] = append(ports[v], p.Iface)
		}
	}
	var out []Behaviour
	at := map[string]int{} // a set of ports, to its place in out
	for _, v := range values {
		set := strings.Join(ports[v], " ")
		i, ok := at[set]
		if !ok {
			i, at[set] = len(out), len(out)
			out = append(out, Behaviour{Ports: ports[v]})
		}
		out[i].Changes = append(out[i].Changes, v)
	}
	return out
}
