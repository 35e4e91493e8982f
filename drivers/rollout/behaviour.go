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
	ports := map[BehaviourValue][]string{}
	var values []BehaviourValue // in the order of the first port that shows each
	for _, p := range dev.Ports {
		a, b := was[p.Iface], will[p.Iface]
		lowersMTU = lowersMTU || a.Known.Has(intent.AreaMTU) && b.Known.Has(intent.AreaMTU) && b.MTU < a.MTU
		for _, diff := range intent.Differences(&a, &b) {
			v := BehaviourValue{diff, dev.Origins.Get(p.Site, diff.Field).At()}
			if ports[v] == nil {
				values = append(values, v)
			}
			ports[v] = append(ports[v], p.Iface)
		}
	}
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
	return out, lowersMTU
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
