package routes

import (
	"slices"
	"testing"

	"github.com/fabricctl/fabricctl/model/intent"
)

// listing adds a listed route over these devices, in priority 3.
func (b *netBuilder) listing(path ...string) {
	r := intent.Route{End: path[len(path)-1]}
	for _, d := range path[:len(path)-1] {
		r.Hops = append(r.Hops, intent.Hop{Device: d, Priority: 3})
	}
	b.net.Routes = append(b.net.Routes, r)
}

// TestRemedies: each remedy, carried out on the net itself, leaves no cycle.
func TestRemedies(t *testing.T) {
	ring := newBuilder()
	ring.net.Routing = intent.Listed
	for _, s := range []string{"A", "B", "C"} {
		ring.device(s, 1)
		ring.device("h"+s, 0)
		ring.link("h"+s, s, 8)
	}
	ring.link("A", "B", 8)
	ring.link("B", "C", 8)
	ring.link("C", "A", 8)
	ring.listing("hA", "A", "B", "C", "hC")
	ring.listing("hB", "B", "C", "A", "hA")
	ring.listing("hC", "C", "A", "B", "hB")
	bounce := clos(2, 4, 1)
	bounce.listing("h0", "l0", "s0", "l1", "s1", "l2", "h2")
	bounce.listing("h3", "l3", "s1", "l2", "s0", "l1", "h1")
	for name, x := range map[string]struct {
		b    *netBuilder
		want []string
	}{
		"ring":   {ring, []string{RemoveRoute, SecondClass, PauseOff}},
		"bounce": {bounce, []string{RemoveRoute, SecondClass, PauseOff}},
	} {
		n := x.b.done()
		top := Of(n)
		r := top.Steady()
		if len(r.Components) != 1 {
			t.Fatalf("%s: %d components", name, len(r.Components))
		}
		var kinds []string
		for _, m := range top.Remedies(r.Components[0]) {
			kinds = append(kinds, m.Kind)
			for _, cured := range carriedOut(n, m) {
				if cs := Check(cured).Components; len(cs) > 0 {
					t.Errorf("%s: after %s: %v", name, m.Text, cs)
				}
			}
		}
		if !slices.Equal(kinds, x.want) {
			t.Errorf("%s: got %v, want %v", name, kinds, x.want)
		}
	}
}

// carriedOut is n with a remedy, or with each alternative of one.
func carriedOut(n *intent.Net, m Remedy) (cured []*intent.Net) {
	same := func(a, b intent.Route) bool { return slices.Equal(a.Hops, b.Hops) && a.End == b.End }
	switch m.Kind {
	case RemoveRoute:
		for _, r := range m.Routes {
			x := n.With(n.Devices)
			x.Routes = slices.DeleteFunc(slices.Clone(n.Routes), func(y intent.Route) bool { return same(*r, y) })
			cured = append(cured, x)
		}
	case SecondClass:
		x := everywhere(n, 0xff)
		x.Routes = slices.Clone(n.Routes)
		for i, r := range x.Routes {
			if !slices.ContainsFunc(m.Routes, func(y *intent.Route) bool { return same(*y, r) }) {
				continue
			}
			x.Routes[i].Hops = slices.Clone(r.Hops)
			raised := false
			for j := range r.Hops {
				next := r.End
				if j+1 < len(r.Hops) {
					next = r.Hops[j+1].Device
				}
				raised = raised || r.Hops[j].Device == m.At.From && next == m.At.To
				if raised {
					x.Routes[i].Hops[j].Priority = 5
				}
			}
		}
		cured = append(cured, x)
	case PauseOff:
		x := everywhere(n, 8)
		d := x.Device(m.At.From)
		d.Port(m.At.FromPort).Policy = d.Intern(pausing(d, 0))
		cured = append(cured, x)
	}
	return cured
}

// everywhere is n with these priorities lossless on all ports of switches.
func everywhere(n *intent.Net, mask uint8) *intent.Net {
	x := n.With(slices.Clone(n.Devices))
	for i := range x.Devices {
		d := &x.Devices[i]
		d.Ports, d.Policies = slices.Clone(d.Ports), nil
		for j := range d.Ports {
			d.Ports[j].Policy = d.Intern(pausing(d, mask))
		}
	}
	return x
}
