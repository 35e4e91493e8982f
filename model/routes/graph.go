package routes

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/fabricctl/fabricctl/model/intent"
)

// graph is a buffer dependency graph: its vertices are bundles by priority, its edges are in compressed rows.
type graph struct {
	t      *Topology
	vertex []vertex
	start  []int32 // where the edges of a vertex begin in to; one more at the end
	to     []int32
	weight int // vertices, all links counted
}

// vertex is a bundle with one of its priorities.
type vertex struct {
	bundle int32
	prio   uint8
}

// graph makes the graph of h. Edges that listed routes add come after the others of their vertex.
func (h *holds) graph() *graph {
	g := &graph{t: h.t}
	first := make([]int32, len(h.used)) // vertices of a bundle stand together, by priority
	for i, m := range h.used {
		first[i] = int32(len(g.vertex))
		for ; m != 0; m &= m - 1 {
			g.vertex = append(g.vertex, vertex{int32(i), uint8(bits.TrailingZeros8(m))})
			g.weight += int(h.t.bundles[i].n)
		}
	}
	id := func(x int32, p uint8) int32 {
		return first[x] + int32(bits.OnesCount8(h.used[x]&(1<<p-1)))
	}
	more := map[int32][]int32{}
	for _, e := range h.extra {
		v := id(e.from, e.prio)
		more[v] = append(more[v], id(e.to, e.toPrio))
	}
	g.start = make([]int32, 1, len(g.vertex)+1)
	for i, v := range g.vertex {
		h.each(v.bundle, func(y int32) {
			if h.used[y]>>v.prio&1 == 1 && h.t.bundles[v.bundle].mask&h.t.bundles[y].mask>>v.prio&1 == 1 {
				g.to = append(g.to, id(y, v.prio))
			}
		})
		g.to = append(g.to, more[int32(i)]...)
		g.start = append(g.start, int32(len(g.to)))
	}
	return g
}

func (g *graph) next(v int32) []int32 { return g.to[g.start[v]:g.start[v+1]] }

// strong are the strongly connected components with a cycle (Tarjan, "Depth-First Search and Linear Graph Algorithms", SIAM
// J. Comput. 1972; without recursion).
func (g *graph) strong() [][]int32 {
	n := len(g.vertex)
	order, low := make([]int32, n), make([]int32, n) // order 0: not seen yet
	on := make([]bool, n)
	type frame struct{ v, edge int32 }
	var stack []int32
	var calls []frame
	var found [][]int32
	count := int32(0)
	enter := func(v int32) {
		count++
		order[v], low[v], on[v] = count, count, true
		stack = append(stack, v)
		calls = append(calls, frame{v, g.start[v]})
	}
	for root := range int32(n) {
		if order[root] != 0 {
			continue
		}
		enter(root)
		for len(calls) > 0 {
			f := &calls[len(calls)-1]
			if f.edge < g.start[f.v+1] {
				u := g.to[f.edge]
				f.edge++
				switch {
				case order[u] == 0:
					enter(u)
				case on[u]:
					low[f.v] = min(low[f.v], order[u])
				}
				continue
			}
			v := f.v
			calls = calls[:len(calls)-1]
			if len(calls) > 0 {
				p := calls[len(calls)-1].v
				low[p] = min(low[p], low[v])
			}
			if low[v] != order[v] {
				continue
			}
			i := len(stack) - 1
			for stack[i] != v {
				i--
			}
			c := slices.Clone(stack[i:])
			stack = stack[:i]
			for _, u := range c {
				on[u] = false
			}
			if len(c) > 1 || slices.Contains(g.next(v), v) {
				found = append(found, c)
			}
		}
	}
	return found
}

// components are the strongly connected components that hold a vertex which old does not have: those with the shortest
// cycle first, and of these the largest.
func (g *graph) components(old map[vertex]bool) []Component {
	var cs []Component
	for _, vs := range g.strong() {
		if len(old) > 0 && !slices.ContainsFunc(vs, func(v int32) bool { return !old[g.vertex[v]] }) {
			continue
		}
		g.sort(vs)
		c := Component{}
		for _, v := range vs {
			c.Buffers = append(c.Buffers, g.buffer(v))
			c.members = append(c.members, g.vertex[v])
			c.Size += c.Buffers[len(c.Buffers)-1].Links
		}
		for _, v := range g.shortest(vs) {
			c.Cycle = append(c.Cycle, g.buffer(v))
			c.vertices = append(c.vertices, g.vertex[v])
		}
		cs = append(cs, c)
	}
	slices.SortStableFunc(cs, func(a, b Component) int {
		return cmp.Or(len(a.Cycle)-len(b.Cycle), b.Size-a.Size, slices.CompareFunc(a.Buffers, b.Buffers, compareBuffers))
	})
	return cs
}

// shortest is a shortest cycle of a component whose vertices are sorted by name: of several, one that begins at the first
// name.
func (g *graph) shortest(vs []int32) []int32 {
	in := make(map[int32]int32, len(vs)) // place of a vertex of the component, from 1
	for i, v := range vs {
		in[v] = int32(i + 1)
	}
	var best []int32
	from, depth := make([]int32, len(vs)+1), make([]int32, len(vs)+1)
	for _, root := range vs {
		clear(depth)
		queue := []int32{root}
		depth[in[root]] = 1
	search:
		for len(queue) > 0 {
			v := queue[0]
			queue = queue[1:]
			if d := int(depth[in[v]]); best != nil && d >= len(best) {
				break
			}
			ns := slices.DeleteFunc(slices.Clone(g.next(v)), func(u int32) bool { return in[u] == 0 })
			slices.SortFunc(ns, func(x, y int32) int { return int(in[x] - in[y]) })
			for _, u := range ns {
				if u == root {
					best = best[:0]
					for x := v; x != root; x = from[in[x]] {
						best = append(best, x)
					}
					best = append(best, root)
					slices.Reverse(best)
					break search
				}
				if depth[in[u]] == 0 {
					depth[in[u]], from[in[u]] = depth[in[v]]+1, v
					queue = append(queue, u)
				}
			}
		}
		if len(best) > 0 && len(best) <= 2 {
			break // none is shorter, but for a packet that comes back over the same link at once, which no route does
		}
	}
	return best
}

func (g *graph) buffer(v int32) Buffer { return g.t.buffer(g.vertex[v].bundle, g.vertex[v].prio) }

func (t *Topology) buffer(x int32, prio uint8) Buffer {
	b := &t.bundles[x]
	return Buffer{From: t.nodes[b.from].name, FromPort: b.fromPort, To: t.nodes[b.to].name, ToPort: b.toPort, Priority: prio, Class: t.classes[prio], Links: int(b.n)}
}

// sort orders vertices by the names of their buffers.
func (g *graph) sort(vs []int32) {
	slices.SortFunc(vs, func(x, y int32) int { return compareBuffers(g.buffer(x), g.buffer(y)) })
}

func compareBuffers(a, b Buffer) int {
	return cmp.Or(intent.CompareNames(a.From, b.From), intent.CompareNames(a.To, b.To), intent.CompareNames(a.FromPort, b.FromPort), int(a.Priority)-int(b.Priority))
}
