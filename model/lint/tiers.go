package lint

import (
	"cmp"
	"slices"

	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/units"
)

// trunk is what a switch has towards one device of the tier above.
type trunk struct {
	peer  string
	first *intent.Port
	speed units.BitRate // of the slowest link
	links int
	rate  units.BitRate // of all links
	mixed bool          // links of several speeds
}

// fanout is a switch between what is below it and what is above.
type fanout struct {
	dev       *intent.Device
	down      units.BitRate
	downPorts int
	up        []trunk // in the order of the ports
	active    bool
}

// rate is the capacity upwards, and that of the largest trunk.
func (f *fanout) rate() (up, largest units.BitRate) {
	for _, t := range f.up {
		up += t.rate
		largest = max(largest, t.rate)
	}
	return up, largest
}

// uneven reports whether the links above differ in speed, or in number from neighbour to neighbour.
func (f *fanout) uneven() bool {
	for _, t := range f.up {
		if t.mixed || t.speed != f.up[0].speed || t.links != f.up[0].links {
			return true
		}
	}
	return false
}

// links is the number of uplinks.
func (f *fanout) links() (n int) {
	for _, t := range f.up {
		n += t.links
	}
	return n
}

// fanouts are the switches that have something below and something above, in the order of the Net. Planned and absent
// devices and ports do not count; what is in maintenance does, since it is built.
func fanouts(p *Pass) []fanout {
	n := p.Net
	index := make(map[string]int, len(n.Devices))
	for i := range n.Devices {
		index[n.Devices[i].Name] = i
	}
	tier := tiers(n)
	var fs []fanout
	for i := range n.Devices {
		if tier[i] < 1 {
			continue
		}
		if f := fanoutOf(n, index, tier, i); f.down > 0 && len(f.up) > 0 {
			fs = append(fs, f)
		}
	}
	return fs
}

func built(d *intent.Device, p *intent.Port) bool {
	is := func(s intent.State) bool { return s == intent.Active || s == intent.Maintenance }
	return is(d.State) && is(p.State)
}

// fanoutOf adds up the ports of one switch. A switch with a port of unknown speed has no fanout.
func fanoutOf(n *intent.Net, index map[string]int, tier []int, at int) fanout {
	d := &n.Devices[at]
	f := fanout{dev: d, active: d.State == intent.Active}
	trunks := map[int]int{}
	for i := range d.Ports {
		port := &d.Ports[i]
		peer, linked := index[port.Peer]
		if !linked || port.Role == "unused" || !built(d, port) || !built(&n.Devices[peer], port) {
			continue
		}
		switch {
		case port.Speed <= 0 && tier[peer] != tier[at]:
			return fanout{}
		case tier[peer] >= 0 && tier[peer] < tier[at]:
			f.down += port.Speed
			f.downPorts++
		case tier[peer] > tier[at]:
			j, ok := trunks[peer]
			if !ok {
				j = len(f.up)
				trunks[peer] = j
				f.up = append(f.up, trunk{peer: port.Peer, first: port, speed: port.Speed})
			}
			t := &f.up[j]
			t.mixed = t.mixed || t.speed != port.Speed
			t.speed = min(t.speed, port.Speed)
			t.links++
			t.rate += port.Speed
		}
	}
	return f
}

// tiers are the tiers of the devices of n by index, -1 for what leads out of the fabric: switches with a border port
// that are not part of the tree themselves. They are above nothing, since their links are not there for traffic between hosts.
func tiers(n *intent.Net) []int {
	tier := make([]int, len(n.Devices))
	for i := range n.Devices {
		d := &n.Devices[i]
		tier[i] = d.Tier
		if d.Tier > 1 && d.Role != "spine" && d.Role != "super-spine" &&
			slices.ContainsFunc(d.Ports, func(p intent.Port) bool { return p.Role == "border" }) {
			tier[i] = -1
		}
	}
	return tier
}

// modelDevice is a device of the model; nil when there is no model, or no such device in it.
func modelDevice(p *Pass, device string) *model.Device {
	if p.Fabric == nil {
		return nil
	}
	ds := p.Fabric.Devices
	i, ok := slices.BinarySearchFunc(ds, device, func(d model.Device, name string) int { return intent.CompareNames(d.Name, name) })
	if !ok {
		return nil
	}
	return &ds[i]
}

// modelPort is a port of the model; nil when there is no model, or no such port in it.
func modelPort(p *Pass, device, port string) *model.Port {
	d := modelDevice(p, device)
	if d == nil {
		return nil
	}
	j := slices.IndexFunc(d.Ports, func(q model.Port) bool { return q.Name == port })
	if j < 0 {
		return nil
	}
	return &d.Ports[j]
}

// portLine is the line of the model to change for the capacity of a port: that of its speed, else the one that makes it.
func portLine(p *Pass, device, port string) diag.Pos {
	q := modelPort(p, device, port)
	if q == nil {
		return diag.Pos{}
	}
	return cmp.Or(q.Speed.Pos(), q.From.At())
}
