package routes

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/fabricctl/fabricctl/model/intent"
)

// The plain look: the same as the package does, link by link and pair by pair, without bundles, classes of hosts, distances
// or symmetries. It finds the next links by trying all ways of length 1, 2, 3 and so on.

// hop is one directed link.
type hop struct{ from, fromPort, to, toPort string }

// plain is a Net without what is lost.
type plain struct {
	net  *intent.Net
	dev  map[string]*intent.Device
	gone map[string]bool // "device" or "device:port"

	around string // a switch that is sent to as if it still had its link to an endpoint
	memo   map[step][]hop
	can    map[step]bool
}

// step is a question that is asked again and again.
type step struct {
	v        string
	h        hop
	s        state
	e        *hop
	more     int
	sideways bool
}

func newPlain(n *intent.Net, gone ...string) *plain {
	p := &plain{net: n, dev: map[string]*intent.Device{}, gone: map[string]bool{}, memo: map[step][]hop{}, can: map[step]bool{}}
	for i := range n.Devices {
		p.dev[n.Devices[i].Name] = &n.Devices[i]
	}
	for _, g := range gone {
		p.gone[g] = true
	}
	return p
}

func (p *plain) links(d string) (hs []hop) {
	for i := range p.dev[d].Ports {
		q := &p.dev[d].Ports[i]
		h := hop{d, q.Name, q.Peer, q.PeerPort}
		if q.Peer != "" && !p.dead(h) {
			hs = append(hs, h)
		}
	}
	return hs
}

func (p *plain) dead(h hop) bool {
	return p.gone[h.from] || p.gone[h.to] || p.gone[h.from+":"+h.fromPort] || p.gone[h.to+":"+h.toPort]
}

func (p *plain) kind(h hop) kind {
	a, b := p.dev[h.from].Tier, p.dev[h.to].Tier
	switch {
	case b > a:
		return up
	case b == a:
		return lateral
	}
	return down
}

// point is an endpoint: a bond, or one NIC port; its links.
type point []hop

func points(n *intent.Net) (ps []point) {
	p := newPlain(n)
	for i := range n.Devices {
		d := &n.Devices[i]
		if !d.Host {
			continue
		}
		bonds := map[string]int{}
		for j := range d.Ports {
			q := &d.Ports[j]
			h := p.links(d.Name)[j]
			if at, ok := bonds[q.Bond]; ok && q.Bond != "" {
				ps[at] = append(ps[at], h)
				continue
			}
			bonds[q.Bond] = len(ps)
			ps = append(ps, point{h})
		}
	}
	return ps
}

// ends reports whether a link reaches an endpoint.
func (e point) ends(h hop) bool {
	return slices.Contains(e, hop{h.to, h.toPort, h.from, h.fromPort})
}

// next are the links from v by which packets in a state reach e the shortest way.
func (p *plain) next(v string, s state, e point) []hop {
	if p.net.Routing == intent.ShortestPath {
		s = up
	}
	key := step{v: v, s: s, e: &e[0]}
	if hs, ok := p.memo[key]; ok {
		return hs
	}
	var hs []hop
	for _, sideways := range []bool{false, true} {
		if s == down && sideways || p.net.Routing == intent.ShortestPath && sideways {
			continue
		}
		for length := 1; length <= len(p.net.Devices) && hs == nil; length++ {
			for _, h := range p.links(v) {
				if p.leads(h, s, e, length-1, sideways) {
					hs = append(hs, h)
				}
			}
		}
		if hs != nil {
			break
		}
	}
	p.memo[key] = hs
	return hs
}

// leads reports whether a packet in a state may take h and reach e over so many more links.
func (p *plain) leads(h hop, s state, e point, more int, sideways bool) bool {
	key := step{"", h, s, &e[0], more, sideways}
	yes, ok := p.can[key]
	if !ok {
		yes = p.tries(h, s, e, more, sideways)
		p.can[key] = yes
	}
	return yes
}

func (p *plain) tries(h hop, s state, e point, more int, sideways bool) bool {
	k := p.kind(h)
	if p.net.Routing != intent.ShortestPath {
		if k < s || k == lateral && (!sideways || p.falls(h.from, e)) {
			return false
		}
	}
	switch {
	case e.ends(h):
		return more == 0
	case h.to == p.around && p.beside(e) != nil:
		return more == 1
	case more == 0 || p.dev[h.to].Host:
		return false
	}
	return slices.ContainsFunc(p.links(h.to), func(n hop) bool { return p.leads(n, k, e, more-1, sideways) })
}

// falls reports whether a way down leads from v to e.
func (p *plain) falls(v string, e point) bool {
	return slices.ContainsFunc(p.links(v), func(h hop) bool {
		return p.kind(h) == down && (e.ends(h) || !p.dev[h.to].Host && p.falls(h.to, e))
	})
}

// beside are the links within a tier that lead from the switch sent to on to e.
func (p *plain) beside(e point) (hs []hop) {
	for _, h := range p.links(p.around) {
		if p.kind(h) == lateral && slices.ContainsFunc(p.links(h.to), e.ends) {
			hs = append(hs, h)
		}
	}
	return hs
}

// edgesOf walks from all endpoints to all others, over the next links of each of nets, as far as they are there in the
// first, and adds who waits for whom.
func edgesOf(nets []*plain, ps []point, only func(e point) bool, into map[[2]hop]bool, used map[hop]bool) {
	for i, e := range ps {
		if !only(e) {
			continue
		}
		type at struct {
			h hop
			s state
		}
		seen := map[at]bool{}
		var walk func(h hop, s state)
		nextAll := func(v string, s state) (hs []hop) {
			for _, n := range nets {
				if v == n.around && n.beside(e) != nil {
					hs = append(hs, n.beside(e)...)
					continue
				}
				for _, h := range n.next(v, s, e) {
					if !nets[0].dead(h) {
						hs = append(hs, h)
					}
				}
			}
			return hs
		}
		walk = func(h hop, s state) {
			if seen[at{h, s}] {
				return
			}
			seen[at{h, s}], used[h] = true, true
			if e.ends(h) {
				return
			}
			for _, n := range nextAll(h.to, s) {
				into[[2]hop{h, n}] = true
				walk(n, nets[0].kind(n))
			}
		}
		for j, from := range ps {
			if j == i {
				continue
			}
			for _, n := range nets {
				for _, h := range from {
					if !nets[0].dead(h) && n.reaches(h, e) {
						walk(h, up)
					}
				}
			}
		}
	}
}

// reaches reports whether a way to e begins with h.
func (p *plain) reaches(h hop, e point) bool {
	return h.to == p.around && p.beside(e) != nil || len(p.next(h.to, up, e)) > 0
}

// mask is the lossless priorities of a link.
func (p *plain) mask(h hop) uint8 {
	m := uint8(0xff)
	for _, e := range [][2]string{{h.from, h.fromPort}, {h.to, h.toPort}} {
		d := p.dev[e[0]]
		if d.Host {
			continue
		}
		for i, q := range d.PolicyOf(d.Port(e[1])).Queues {
			if !q.Lossless {
				m &^= 1 << i
			}
		}
	}
	return m
}

// cyclic are the links, with their priority, that are on cycles; nodes and edges count the graph.
func (p *plain) cyclic(edges map[[2]hop]bool, used map[hop]bool) (on map[string]bool, nodes, count int) {
	next := map[string][]string{}
	name := func(h hop, i int) string { return fmt.Sprint(h, "/", i) }
	for i := range 8 {
		for h := range used {
			if p.mask(h)>>i&1 == 1 {
				nodes++
			}
		}
		for e := range edges {
			if p.mask(e[0])&p.mask(e[1])>>i&1 == 1 {
				next[name(e[0], i)] = append(next[name(e[0], i)], name(e[1], i))
				count++
			}
		}
	}
	on = map[string]bool{}
	for v := range next {
		seen, todo := map[string]bool{}, []string{v}
		for len(todo) > 0 {
			u := todo[0]
			todo = todo[1:]
			for _, x := range next[u] {
				if !seen[x] {
					seen[x] = true
					todo = append(todo, x)
				}
			}
		}
		if seen[v] {
			on[v] = true
		}
	}
	return on, nodes, count
}

func everyPoint(point) bool { return true }

// drawNet is a small Net of any shape.
func drawNet(t *rapid.T) *intent.Net {
	b := newBuilder()
	b.net.Routing = rapid.SampledFrom([]intent.Routing{intent.UpDown, intent.UpDown, intent.ShortestPath}).Draw(t, "routing")
	switches := rapid.IntRange(2, 7).Draw(t, "switches")
	tiers := rapid.IntRange(1, 3).Draw(t, "tiers")
	for i := range switches {
		b.device(fmt.Sprint("s", i), rapid.IntRange(1, tiers).Draw(t, "tier"))
	}
	mask := func() uint8 {
		return rapid.SampledFrom([]uint8{8, 8, 8, 8, 8, 8, 24, 0}).Draw(t, "mask")
	}
	for i := range switches {
		for j := range i {
			for range rapid.SampledFrom([]int{0, 0, 1, 1, 1, 2}).Draw(t, "links") {
				b.link(fmt.Sprint("s", i), fmt.Sprint("s", j), mask())
			}
		}
	}
	for i := range rapid.IntRange(2, 5).Draw(t, "hosts") {
		h := fmt.Sprint("h", i)
		b.device(h, 0)
		bond := rapid.SampledFrom([]string{"", "", "b"}).Draw(t, "bond")
		for range rapid.IntRange(1, 2).Draw(t, "nics") {
			p, _ := b.link(h, fmt.Sprint("s", rapid.IntRange(0, min(switches-1, 3)).Draw(t, "leaf")), mask())
			p.Bond = bond
		}
	}
	return b.done()
}

// TestSteadyAgreesWithPlainLook: buffers, edges and what is on cycles are the same on any topology.
func TestSteadyAgreesWithPlainLook(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := drawNet(t)
		p := newPlain(n)
		edges, used := map[[2]hop]bool{}, map[hop]bool{}
		edgesOf([]*plain{p}, points(n), everyPoint, edges, used)
		on, nodes, count := p.cyclic(edges, used)
		top := Of(n)
		r := top.Steady()
		size := 0
		for _, c := range r.Components {
			size += c.Size
		}
		if r.Buffers != nodes || r.Edges != count || size != len(on) {
			t.Fatalf("got %d buffers, %d edges, %d on cycles; plainly %d, %d, %d", r.Buffers, r.Edges, size, nodes, count, len(on))
		}
		if Ordered(n) {
			l, err := top.Sweep(context.Background(), nil, 0)
			if size > 0 || err != nil || len(l.Failures) > 0 {
				t.Fatalf("ordered, but %d buffers are on cycles, and %v, %v", size, l.Failures, err)
			}
		}
	})
}

// TestLossesAgreeWithPlainLook: for each link and each switch that is lost, the cycles after it and in between are the same
// as plainly.
func TestLossesAgreeWithPlainLook(t *testing.T) {
	cyclic := 0
	rapid.Check(t, func(t *rapid.T) {
		n := drawNet(t)
		top := Of(n)
		s := sweep{t: top}
		s.steady()
		w, h := newWalker(top), newHolds(top)
		old, _, _ := lookPlainly(n, "", nil)
		edges := func(o outage) (counts [2]int) {
			for i, before := range []bool{false, true} {
				h.reset()
				w.all(h, o, before)
				counts[i] = h.edges()
			}
			return counts
		}
		alone := !slices.ContainsFunc(top.hosts, func(v int32) bool { return top.nodes[v].n > 1 })
		for v := range top.nodes {
			if d := &top.nodes[v]; !d.host {
				got := s.lose(w, h, loss{outage{int32(v), -1}, 1})
				counts := judge(t, n, old, got, d.name, nil)
				if is := edges(outage{int32(v), -1}); is != counts {
					t.Fatalf("loss of %s: %v edges, plainly %v", d.name, is, counts)
				}
				if got != nil {
					cyclic++
				}
			}
		}
		for x := range top.bundles {
			if b := &top.bundles[x]; top.lower(int32(x)) {
				q := hop{top.nodes[b.from].name, b.fromPort, top.nodes[b.to].name, b.toPort}
				var got *Failure
				if top.matters(int32(x)) {
					got = s.lose(w, h, loss{outage{-1, int32(x)}, 1})
				}
				counts := judge(t, n, old, got, "", &q)
				if is := edges(outage{-1, int32(x)}); b.n == 1 && alone && is != counts {
					t.Fatalf("loss of %v: %v edges, plainly %v", q, is, counts)
				}
				if got != nil {
					cyclic++
				}
			}
		}
	})
	if cyclic == 0 {
		t.Error("no loss made a cycle")
	}
}

// lookPlainly is what is on cycles after a loss, and in between.
func lookPlainly(n *intent.Net, device string, link *hop) (after, during map[string]bool, counts [2]int) {
	ps := points(n)
	gone, around, hurt := device, "", -1
	if link != nil {
		gone = link.from + ":" + link.fromPort
		for i, e := range ps {
			if slices.Contains(e, *link) {
				around, hurt = link.to, i
			}
		}
	}
	before, then := newPlain(n), newPlain(n, gone)
	for _, nets := range [][]*plain{{then}, {then, before}} {
		edges, used := map[[2]hop]bool{}, map[hop]bool{}
		edgesOf(nets, ps, everyPoint, edges, used)
		if hurt >= 0 { // the same for the endpoint that has lost a link, sent to at both ends
			sent := newPlain(n, gone)
			sent.around = around
			edgesOf(append([]*plain{sent}, nets[1:]...), ps, func(e point) bool { return &e[0] == &ps[hurt][0] }, edges, used)
		}
		on, _, count := before.cyclic(edges, used)
		counts[len(nets)-1] = count
		if len(nets) == 1 {
			after = on
		} else {
			during = on
		}
	}
	return after, during, counts
}

func judge(t *rapid.T, n *intent.Net, old map[string]bool, got *Failure, device string, link *hop) [2]int {
	after, during, counts := lookPlainly(n, device, link)
	isNew := func(on map[string]bool) bool {
		return slices.ContainsFunc(slices.Collect(maps.Keys(on)), func(v string) bool { return !old[v] })
	}
	want := ""
	switch {
	case isNew(after):
		want = "after"
	case isNew(during):
		want = "during"
	}
	is := ""
	switch {
	case got == nil:
	case got.During:
		is = "during"
	default:
		is = "after"
	}
	if is != want {
		t.Fatalf("loss of %s %+v: got %q, plainly %q", device, link, is, want)
	}
	return counts
}
