// Package routes finds where PFC can deadlock: cycles of buffers that wait for each other. A packet that holds the buffer
// behind one link while it waits for the next one makes the first wait for the second. Who waits for whom follows from the
// routes that a topology gives, and from those that a model lists. A cycle means that a deadlock is possible, not that it
// happens; without one, PFC cannot deadlock (Dally and Seitz, "Deadlock-Free Message Routing in Multiprocessor
// Interconnection Networks", IEEE ToC 1987; Hu et al., "Deadlocks in Datacenter Networks: Why Do They Form, and How to
// Avoid Them", HotNets 2016).
//
// Topology is what is linked, in a form that is quick to walk. Its buffers are those of directed links, by lossless
// priority. Steady looks at the routes as they are, Sweep at what becomes of them when a link or a switch is lost.
package routes

import "github.com/fabricctl/fabricctl/model/intent"

// Buffer is what waits: the packets of one priority that came over a link in one direction, held at its end. Parallel
// links that do the same are one Buffer; the ports are those of the first of them.
type Buffer struct {
	From, FromPort string // the device that sends, and its port
	To, ToPort     string // the device that holds
	Priority       uint8
	Class          string // name of the priority's class, "" if it has none
	Links          int    // how many links it stands for
}

// String is "leaf1->spine1/3", as known-answer graphs name it.
func (b Buffer) String() string {
	return b.From + "->" + b.To + "/" + string('0'+rune(b.Priority))
}

// Component is buffers each of which can come to wait for every other one.
type Component struct {
	Buffers []Buffer        // sorted by name
	Size    int             // how many buffers those are, all links counted
	Cycle   []Buffer        // a shortest cycle: each waits for the next, and the last for the first
	Listed  []*intent.Route // for each buffer of Cycle the listed route that makes it wait, nil where it follows from the links

	vertices []vertex // of Cycle
	members  []vertex // of Buffers
}

// Report is what can wait for what in the steady state.
type Report struct {
	Buffers    int         // buffers on routes, all links counted
	Edges      int         // pairs of which the first may wait for the second
	Priorities []int       // that are lossless on some link
	Components []Component // those with a cycle, the shortest cycle first
}

// Steady is the Report of the routes as they are. Only what packets can reach from hosts or on listed routes counts.
func (t *Topology) Steady() Report {
	h := t.steady()
	g := h.graph()
	r := Report{Buffers: g.weight, Edges: h.edges(), Priorities: t.priorities(), Components: g.components(nil)}
	for i := range r.Components {
		h.explain(&r.Components[i])
	}
	return r
}

// steady is who waits for whom when nothing is lost.
func (t *Topology) steady() *holds {
	h := newHolds(t)
	newWalker(t).all(h, nothing, false)
	h.list(t.routes, nothing)
	return h
}

// Check is Steady of a Net.
func Check(n *intent.Net) Report { return Of(n).Steady() }

// Ordered reports whether no cycle is possible in n, whatever is lost, by one look at each port of its switches: all routes
// follow from the links, go up and then down, and no link within a tier leads on to another one. A packet waits then only
// for links that come later in one order: up by tier, within a tier, down by tier (Hu et al., HotNets 2016). False leaves it
// open.
func Ordered(n *intent.Net) bool {
	if n.Routing != intent.UpDown || len(n.Routes) > 0 {
		return false
	}
	tier := map[string]int{}
	for i := range n.Devices {
		if d := &n.Devices[i]; !d.Host && built(d, nil) {
			if d.Tier < 1 {
				return false
			}
			tier[d.Name] = d.Tier
		}
	}
	for i := range n.Devices {
		d := &n.Devices[i]
		beside := ""
		for j := range d.Ports {
			p := &d.Ports[j]
			if d.Host || p.Peer == "" || tier[p.Peer] != d.Tier || !built(d, p) {
				continue
			}
			if beside != "" && beside != p.Peer {
				return false
			}
			beside = p.Peer
		}
	}
	return true
}

// Steps is about how much there is to do for one state of the topology, in links passed.
func (t *Topology) Steps() int { return 4 * len(t.hosts) * len(t.bundles) }
