package routes

import (
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/fabricctl/fabricctl/model/intent"
)

// Remedy is a change that leaves a Component without any cycle, tried on the graph.
type Remedy struct {
	Kind   string          // RemoveRoute, SecondClass, UpDownRouting or PauseOff
	Routes []*intent.Route // the listed routes to remove, or to give another class
	At     Buffer          // where the other class begins, or the link where pause goes
	Text   string          // in words
}

// Kinds of remedies.
const (
	RemoveRoute   = "remove-route"
	SecondClass   = "second-class"
	UpDownRouting = "up-down"
	PauseOff      = "pause-off"
)

// maxTries bounds how many changes of a kind are tried.
const maxTries = 64

// Remedies are changes each of which by itself leaves nothing on a cycle of those in c, what costs least first. There may be
// none: then more than one thing has to change.
func (t *Topology) Remedies(c Component) []Remedy {
	s := surgeon{t: t, base: newHolds(t), h: newHolds(t), on: map[vertex]bool{}}
	newWalker(t).all(s.base, nothing, false)
	for _, v := range c.members {
		s.on[v] = true
	}
	for _, p := range t.priorities() {
		s.used |= 1 << p
	}
	for i := range t.routes {
		if s.crosses(&t.routes[i]) {
			s.routes = append(s.routes, i)
		}
	}
	return slices.Concat(s.remove(), s.raise(c), s.upDown(), s.silence(c))
}

// surgeon tries changes.
type surgeon struct {
	t       *Topology
	base, h *holds // base has what follows from the links
	on      map[vertex]bool
	used    uint8 // priorities that are lossless somewhere; another one is a new class
	routes  []int // listed routes that go over two buffers of the component, one after the other
}

func (s *surgeon) crosses(r *listed) bool {
	for j := 1; j < len(r.hops); j++ {
		in := func(j int) bool {
			return slices.ContainsFunc(r.hops[j], func(x int32) bool { return s.on[vertex{x, r.prios[j]}] })
		}
		if in(j-1) && in(j) {
			return true
		}
	}
	return false
}

// cured reports whether nothing of the component is on a cycle with these listed routes, and without some vertices.
func (s *surgeon) cured(routes []listed, without func(vertex) bool) bool {
	copy(s.h.rows, s.base.rows)
	copy(s.h.used, s.base.used)
	s.h.extra = s.h.extra[:0]
	s.h.list(routes, nothing)
	g := s.h.graph()
	if without != nil {
		g = g.without(without)
	}
	return !slices.ContainsFunc(g.strong(), func(vs []int32) bool {
		return slices.ContainsFunc(vs, func(v int32) bool { return s.on[g.vertex[v]] || s.used>>g.vertex[v].prio&1 == 0 })
	})
}

// remove finds single listed routes without which there is no cycle, or, when there is none, all of them together.
func (s *surgeon) remove() []Remedy {
	var alone []*intent.Route
	for _, i := range s.routes[:min(len(s.routes), maxTries)] {
		if s.cured(slices.Delete(slices.Clone(s.t.routes), i, i+1), nil) {
			alone = append(alone, &s.t.routes[i].route)
		}
	}
	if len(alone) > 0 {
		return []Remedy{{Kind: RemoveRoute, Routes: alone, Text: "change or remove the route at " + places(alone, "or")}}
	}
	var all []*intent.Route
	var rest []listed
	for i := range s.t.routes {
		if slices.Contains(s.routes, i) {
			all = append(all, &s.t.routes[i].route)
		} else {
			rest = append(rest, s.t.routes[i])
		}
	}
	if len(all) > 1 && s.cured(rest, nil) {
		return []Remedy{{Kind: RemoveRoute, Routes: all, Text: "change or remove the routes at " + places(all, "and")}}
	}
	return nil
}

// places names the lines of routes.
func places(rs []*intent.Route, and string) string {
	const most = 4
	var ps []string
	for _, r := range rs {
		if len(ps) == most && len(rs) > most+1 {
			return strings.Join(ps, ", ") + " " + and + " " + strconv.Itoa(len(rs)-most) + " more"
		}
		ps = append(ps, r.Name())
	}
	if len(ps) == 1 {
		return ps[0]
	}
	return strings.Join(ps[:len(ps)-1], ", ") + " " + and + " " + ps[len(ps)-1]
}

// raise looks for a link of the cycle from which on another lossless class for the listed routes that take it leaves no
// cycle: what comes down and goes up again is tried first (Hu et al., "Tagger: Practical PFC Deadlock Prevention in Data Center
// Networks", CoNEXT 2017: k bounces need k+1 lossless priorities).
func (s *surgeon) raise(c Component) []Remedy {
	fresh := bits.TrailingZeros8(^s.used)
	if fresh > 7 || len(s.routes) == 0 {
		return nil
	}
	order := make([]int, len(c.vertices))
	for i := range order {
		order[i] = i
	}
	bounce := func(i int) bool {
		before := c.vertices[(i+len(order)-1)%len(order)]
		return s.t.bundles[before.bundle].kind == down && s.t.bundles[c.vertices[i].bundle].kind == up
	}
	slices.SortStableFunc(order, func(a, b int) int { return bit(bounce(b)) - bit(bounce(a)) })
	for _, i := range order {
		at := c.vertices[i]
		routes := slices.Clone(s.t.routes)
		var changed []*intent.Route
		for k := range routes {
			r := &routes[k]
			j := slices.IndexFunc(r.hops, func(ways []int32) bool { return slices.Contains(ways, at.bundle) })
			if j < 1 || r.prios[j] != at.prio { // the first link of a route is its host's
				continue
			}
			changed = append(changed, &s.t.routes[k].route)
			r.prios, r.fresh = slices.Clone(r.prios), 1<<fresh
			for ; j < len(r.prios); j++ {
				r.prios[j] = uint8(fresh)
			}
		}
		if len(changed) == 0 || !s.cured(routes, nil) {
			continue
		}
		b := c.Cycle[i]
		text := fmt.Sprintf("let packets of %s that take %s change there to a lossless class of their own, to the end of their route (%s)", b.class(), b.link(), places(changed, "and"))
		if bounce(i) {
			text = fmt.Sprintf("let packets of %s that bounce at %s change there to a lossless class of their own, to the end of their route (%s)", b.class(), b.From, places(changed, "and"))
		}
		return []Remedy{{Kind: SecondClass, Routes: changed, At: b, Text: text}}
	}
	return nil
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// upDown tries routing that never goes down and up again.
func (s *surgeon) upDown() []Remedy {
	if s.t.routing != intent.ShortestPath {
		return nil
	}
	t := *s.t
	t.routing = intent.UpDown
	h := newHolds(&t)
	newWalker(&t).all(h, nothing, false)
	h.list(t.routes, nothing)
	if len(h.graph().strong()) > 0 {
		return nil
	}
	return []Remedy{{Kind: UpDownRouting, Text: "let routing never go down and up again, by one AS number per tier in eBGP, say, and write routing: up-down"}}
}

// silence finds links of the cycle on which pause can be left out.
func (s *surgeon) silence(c Component) []Remedy {
	for i, v := range c.vertices {
		back := s.t.bundles[v.bundle].back
		if s.cured(s.t.routes, func(x vertex) bool { return x.prio == v.prio && (x.bundle == v.bundle || x.bundle == back) }) {
			b := c.Cycle[i]
			return []Remedy{{Kind: PauseOff, At: b, Text: fmt.Sprintf("switch PFC off for %s on %s, in both directions: what finds its buffer full is dropped there then", b.class(), b.link())}}
		}
	}
	return nil
}

// without is g without some vertices' edges.
func (g *graph) without(drop func(vertex) bool) *graph {
	r := &graph{t: g.t, vertex: g.vertex, start: make([]int32, 1, len(g.start)), weight: g.weight}
	for v := range g.vertex {
		if !drop(g.vertex[v]) {
			r.to = append(r.to, g.next(int32(v))...)
		}
		r.start = append(r.start, int32(len(r.to)))
	}
	return r
}

// class is "training (priority 3)", or "priority 3".
func (b Buffer) class() string {
	p := "priority " + strconv.Itoa(int(b.Priority))
	if b.Class != "" {
		return b.Class + " (" + p + ")"
	}
	return p
}

// link is "leaf1:uplink-1 - spine1:downlink-1", or that it is several.
func (b Buffer) link() string {
	if b.Links > 1 {
		return fmt.Sprintf("the %d links from %s to %s", b.Links, b.From, b.To)
	}
	return fmt.Sprintf("the link %s:%s - %s:%s", b.From, b.FromPort, b.To, b.ToPort)
}

// explain says which listed routes make the buffers of a cycle wait.
func (h *holds) explain(c *Component) {
	c.Listed = make([]*intent.Route, len(c.vertices))
	for i, v := range c.vertices {
		next := c.vertices[(i+1)%len(c.vertices)]
		if v.prio == next.prio && h.has(v.bundle, next.bundle) {
			continue
		}
		k := slices.IndexFunc(h.t.routes, func(r listed) bool {
			for j := 1; j < len(r.hops); j++ {
				if r.prios[j-1] == v.prio && r.prios[j] == next.prio && slices.Contains(r.hops[j-1], v.bundle) && slices.Contains(r.hops[j], next.bundle) {
					return true
				}
			}
			return false
		})
		if k >= 0 {
			c.Listed[i] = &h.t.routes[k].route
		}
	}
}
