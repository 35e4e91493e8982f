package rollout

import (
	"cmp"
	"slices"
	"sort"

	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/render"
)

// Cut is a change that may cut our own way to a device: it is managed in-band, and a port that our way takes flaps, or
// worse. Such devices are worked on after all others of their wave, one at a time, the farthest first: while one is cut
// off, nothing else is under way, and nobody behind it is still to be reached.
type Cut struct {
	Ports []string `json:"ports,omitempty"` // the device's interface names; empty when the device as a whole is hit
	Hops  int      `json:"hops,omitempty"`  // links between it and where we come in; 0 when not known
}

// cutOf is what risks do to our way to d; nil when they leave it alone.
func cutOf(d *intent.Device, risks []render.Risk) *Cut {
	if !d.Way.InBand {
		return nil
	}
	only := ""
	if d.Way.Port != "" {
		if p := d.Port(d.Way.Port); p != nil {
			only = p.Iface
		}
	}
	var ports []string
	whole := false
	for _, r := range risks {
		if r.Class == render.Hitless || r.Class == render.Refused {
			continue
		}
		whole = whole || len(r.Ports) == 0
		for _, iface := range r.Ports {
			if (only == "" || iface == only) && !slices.Contains(ports, iface) {
				ports = append(ports, iface)
			}
		}
	}
	switch {
	case whole:
		return &Cut{Hops: d.Way.Hops}
	case len(ports) > 0:
		return &Cut{Ports: ports, Hops: d.Way.Hops}
	}
	return nil
}

// firsts are the devices that begin for their platform where nobody has tried it on a real device: of those in the
// earliest wave, one that cuts no way of ours, with the fewest ports at risk, and with the fewest changes.
func (p *Plan) firsts() map[string]bool {
	best, of := map[string]*DevicePlan{}, map[string]int{}
	for i := range p.Devices {
		d := &p.Devices[i]
		if len(d.Steps) == 0 || d.Verified || p.Lab {
			continue
		}
		of[d.Platform]++
		if b := best[d.Platform]; b == nil || d.before(b) < 0 {
			best[d.Platform] = d
		}
	}
	first := map[string]bool{}
	for platform, d := range best {
		first[d.Name] = of[platform] > 1
	}
	return first
}

// before orders devices of one platform by how much there is to lose on them.
func (d *DevicePlan) before(o *DevicePlan) int {
	cut := func(d *DevicePlan) int {
		if d.Cut != nil {
			return 1
		}
		return 0
	}
	class, ports := d.Worst()
	otherClass, otherPorts := o.Worst()
	return cmp.Or(
		cmp.Compare(d.Steps[0].Wave, o.Steps[0].Wave), cmp.Compare(cut(d), cut(o)), cmp.Compare(class, otherClass),
		cmp.Compare(ports, otherPorts), cmp.Compare(d.Ops.Total(), o.Ops.Total()),
	)
}

// alone splits a wave: first what cuts no way of ours, then each of the others by itself, the farthest first. Where the
// distance is not known, the device comes last: it may be the nearest.
func (w wave) alone() []wave {
	var others wave
	var cut wave
	for _, d := range w {
		if d.Cut == nil {
			others = append(others, d)
		} else {
			cut = append(cut, d)
		}
	}
	sort.SliceStable(cut, func(i, j int) bool { return cut[i].Cut.Hops > cut[j].Cut.Hops })
	var ws []wave
	if len(others) > 0 {
		ws = append(ws, others)
	}
	for _, d := range cut {
		ws = append(ws, wave{d})
	}
	return ws
}
