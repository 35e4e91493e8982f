package sim

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/observe"
)

// host is a host with what traffic can go in and out by.
type host struct {
	dev    int // place in the Net
	name   string
	points []point
}

// point is one end of connections: a NIC port, or the ports of a bond, of which each connection takes one.
type point struct {
	nics  []int
	rail  int
	plane string // of the switch
	dscp  uint8  // of connections that choose none
	rdma  bool   // RDMA is what it is for, or nobody says what it is for
	force bool   // dscp is forced on all connections
}

// hosts are the hosts of the fabric that have an active link.
func (b *builder) hosts() []host {
	var hs []host
	for i := range b.net.Devices {
		if len(b.nicsOf[i]) == 0 {
			continue
		}
		h := host{dev: i, name: b.net.Devices[i].Name}
		bonds := map[string]int{}
		for _, n := range b.nicsOf[i] {
			x := &b.ports[b.nics[n].port]
			if at, ok := bonds[x.port.Bond]; ok && x.port.Bond != "" {
				h.points[at].nics = append(h.points[at].nics, n)
				continue
			}
			bonds[x.port.Bond] = len(h.points)
			p := point{nics: []int{n}, rail: x.port.Rail, plane: b.switches[b.nics[n].leaf].Plane}
			p.rdma = x.port.Carries == 0 || x.port.Carries&model.CarriesRDMA != 0
			p.dscp, p.force = b.ownPoint(x)
			h.points = append(h.points, p)
			if x.port.Bond != "" {
				b.assume.say("a connection goes by one port of a bond, which is drawn", h.name)
			}
		}
		hs = append(hs, h)
	}
	return hs
}

// ownPoint is the code point of a NIC's connections that choose none themselves, and whether it is forced on those that do.
func (b *builder) ownPoint(x *port) (dscp uint8, forced bool) {
	r, n := x.pol.RoCE, x.pol.NCCL
	switch rdma := x.port.Carries == 0 || x.port.Carries&model.CarriesRDMA != 0; {
	case r.On && r.TrafficClass >= 0:
		return uint8(r.TrafficClass) >> 2, true
	case n.On && rdma:
		return n.TrafficClass >> 2, false
	case r.On:
		return r.ToS >> 2, false
	}
	if p, ok := b.firstLossless(); ok && !x.pol.Known.Has(intent.AreaRoCE) {
		d, _ := b.classes.point(p)
		b.assume.say(fmt.Sprintf("connections with dscp %d of class %s where the host does not say", d, b.classes.of(p)), b.name(b.portAt(x)))
		return d, false
	}
	d := b.adapter(x).DefaultRoCEDSCP.V
	b.assume.say(fmt.Sprintf("connections with dscp %d where nobody has chosen one", d), b.name(b.portAt(x)))
	return d, false
}

// portAt is the engine's number of a port.
func (b *builder) portAt(x *port) int {
	for i := range b.ports {
		if &b.ports[i] == x {
			return i
		}
	}
	return 0
}

// firstLossless is the first lossless priority that a code point leads to.
func (b *builder) firstLossless() (int, bool) {
	for p := range 8 {
		if _, used := b.classes.point(p); used && b.classes.lossless&(1<<p) != 0 {
			return p, true
		}
	}
	return 0, false
}

// suits says how well a point suits traffic of a priority (or of whichever is its own, -1): 0 best.
func (b *builder) suits(p *point, priority int) int {
	switch {
	case priority < 0 && p.rdma, priority >= 0 && int(b.classes.priority[p.dscp]) == priority:
		return 0
	case p.rdma:
		return 1
	}
	return 2
}

// choose resolves the hosts of a part, each with the points that its traffic uses; nil with a finding when it cannot.
func (b *builder) choose(part *observe.Part, label string, priority int) []host {
	all := b.everyone
	named := len(part.Hosts) > 0
	if named {
		var hs []host
		for _, name := range part.Hosts {
			more, ok := b.named(name, label)
			if !ok {
				return nil
			}
			hs = append(hs, more...)
		}
		all = hs
	}
	best := 3
	for i := range all {
		for j := range all[i].points {
			best = min(best, b.suits(&all[i].points[j], priority))
		}
	}
	var hs []host
	for _, h := range all {
		level := best
		if named { // a host that was asked for takes part, whatever it is for
			level = 3
			for j := range h.points {
				level = min(level, b.suits(&h.points[j], priority))
			}
		}
		var points []point
		for j := range h.points {
			if p := &h.points[j]; b.suits(p, priority) == level && (part.Rail == 0 || p.rail == part.Rail || p.rail == 0 && part.Rail == j+1) {
				points = append(points, *p)
			}
		}
		if h.points = points; len(points) > 0 {
			hs = append(hs, h)
		}
	}
	return hs
}

// named finds the hosts of "host1", "host1..host8", or the one of "host1:nic-2" with that NIC alone.
func (b *builder) named(name, label string) ([]host, bool) {
	if h, nic := cutName(name); nic != "" {
		one, ok := b.withNIC(h, nic, label)
		return []host{one}, ok
	}
	from, to, several := strings.Cut(name, "..")
	find := func(s string) int {
		i := slices.IndexFunc(b.everyone, func(h host) bool { return h.name == s })
		if i >= 0 {
			return i
		}
		var names []string
		for _, h := range b.everyone {
			names = append(names, h.name)
		}
		what := "there is no such host"
		if d, known := b.at[s]; known {
			what = "it has no active link to a switch"
			if !b.net.Devices[d].Host {
				what = "it is a switch"
			}
		}
		b.found.Errorf("sim-no-host", diag.Pos{}, b.hintNames(s, names), "%s: host %s: %s", label, diag.Line(s), what)
		return -1
	}
	i := find(from)
	if i < 0 || !several {
		return b.everyone[max(i, 0) : i+1], i >= 0
	}
	j := find(to)
	switch {
	case j < 0:
		return nil, false
	case j < i:
		b.found.Errorf("sim-no-host", diag.Pos{}, "write "+to+".."+from, "%s: %s is before %s", label, to, from)
		return nil, false
	}
	return b.everyone[i : j+1], true
}

// withNIC is a host with one of its NICs.
func (b *builder) withNIC(name, nic, label string) (host, bool) {
	for _, h := range b.everyone {
		for _, p := range h.points {
			for _, n := range p.nics {
				if x := &b.ports[b.nics[n].port]; h.name == name && (x.port.Name == nic || x.port.Iface == nic) {
					p.nics = []int{n}
					h.points = []point{p}
					return h, true
				}
			}
		}
	}
	b.found.Errorf("sim-no-host", diag.Pos{}, "", "%s: %s has no active NIC port %s", label, diag.Line(name), diag.Line(nic))
	return host{}, false
}

// together reports whether two hosts are linked to one switch.
func (b *builder) together(x, y *host) bool {
	for _, p := range x.points {
		for _, n := range p.nics {
			for _, q := range y.points {
				for _, m := range q.nics {
					if b.nics[n].leaf == b.nics[m].leaf {
						return true
					}
				}
			}
		}
	}
	return false
}

// lane is a pair of points between which a flow goes.
type lane struct{ from, to *point }

// lanes pairs the points of two hosts: those of the same rail, or else of the same plane, or else in their order; and never
// points between which there is no way, unless there are no others.
func (b *builder) lanes(x, y *host) []lane {
	var ls []lane
	for i := range x.points {
		p := &x.points[i]
		best, rank := -1, -1
		for j := range y.points {
			q := &y.points[j]
			r := 0
			switch {
			case p.rail > 0 && p.rail == q.rail:
				r = 3
			case p.rail > 0 && q.rail > 0:
			case p.plane != "" && p.plane == q.plane:
				r = 2
			case i == j:
				r = 1
			}
			if b.leads(p.nics[0], q.nics[0]) {
				r += 4
			}
			if r > rank {
				best, rank = j, r
			}
		}
		if best >= 0 {
			ls = append(ls, lane{p, &y.points[best]})
		}
	}
	return ls
}

// spread puts the others in the order in which they are taken as partners of one host: those that have no switch in common
// with it first, one switch after the other in turn, and then its neighbours.
func (b *builder) spread(hs []host, of int) []int {
	var order, near []int
	bySwitch := map[int][]int{}
	var switches []int
	for i := range hs {
		switch leaf := b.nics[hs[i].points[0].nics[0]].leaf; {
		case i == of:
		case b.together(&hs[i], &hs[of]):
			near = append(near, i)
		default:
			if bySwitch[leaf] == nil {
				switches = append(switches, leaf)
			}
			bySwitch[leaf] = append(bySwitch[leaf], i)
		}
	}
	for turn := 0; len(switches) > 0; turn++ {
		switches = slices.DeleteFunc(switches, func(s int) bool {
			if turn >= len(bySwitch[s]) {
				return true
			}
			order = append(order, bySwitch[s][turn])
			return false
		})
	}
	return append(order, near...)
}
