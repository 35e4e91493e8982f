package routes

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// orbits says which nodes and links are alike: what is lost with one is lost with the other, up to names. They are found by
// symmetries, of which each is checked link by link before it counts, so that those which are not found cost time, and
// none is taken for granted: where colours agree and the links do not, nothing is joined.
type orbits struct {
	t     *Topology
	set   []int32 // disjoint sets of elements: nodes, then bundles
	edges [][]edge
	color []int32
	work  int // what may still be spent on finding symmetries
}

// edge is a bundle as its node sees it.
type edge struct {
	to, label int32
	bundle    int32
}

// symmetryWork bounds the search for symmetries, in links looked at.
const symmetryWork = 50_000_000

// symmetries finds the orbits of t.
func (t *Topology) symmetries() *orbits {
	o := &orbits{t: t, set: make([]int32, len(t.nodes)+len(t.bundles)), work: symmetryWork}
	for i := range o.set {
		o.set[i] = int32(i)
	}
	for i := range t.bundles {
		o.join(o.link(int32(i)), o.link(t.bundles[i].back))
	}
	o.label()
	o.refine()
	classes := map[int32][]int32{}
	var order []int32
	for v, c := range o.color {
		if classes[c] == nil {
			order = append(order, c)
		}
		classes[c] = append(classes[c], int32(v))
	}
	for _, c := range order {
		first := classes[c][0]
		for _, v := range classes[c][1:] {
			if o.find(v) != o.find(first) && o.work > 0 {
				o.swap(first, v)
			}
		}
	}
	return o
}

// link is the element of a bundle.
func (o *orbits) link(x int32) int32 { return int32(len(o.t.nodes)) + x }

func (o *orbits) find(i int32) int32 {
	for o.set[i] != i {
		o.set[i] = o.set[o.set[i]]
		i = o.set[i]
	}
	return i
}

func (o *orbits) join(i, j int32) {
	i, j = o.find(i), o.find(j)
	o.set[max(i, j)] = min(i, j)
}

// label gives bundles a number by what routes depend on.
func (o *orbits) label() {
	type kindOf struct {
		kind kind
		mask uint8
		n    int32
		own  int32
	}
	labels := map[kindOf]int32{}
	o.edges = make([][]edge, len(o.t.nodes))
	for v := range o.t.nodes {
		for _, x := range o.t.nodes[v].out {
			b := &o.t.bundles[x]
			k := kindOf{b.kind, b.mask, b.n, b.own}
			l, ok := labels[k]
			if !ok {
				l = int32(len(labels))
				labels[k] = l
			}
			o.edges[v] = append(o.edges[v], edge{b.to, l, x})
		}
	}
}

// refine colours nodes: at first by what they are, then again and again by the colours next to them, until that tells no
// more apart. Nodes that a symmetry maps to each other have one colour; the reverse does not hold.
func (o *orbits) refine() {
	type looks struct {
		tier  int
		host  bool
		n     int
		fixed int
	}
	first := map[looks]int32{}
	o.color = make([]int32, len(o.t.nodes))
	for v := range o.t.nodes {
		d := &o.t.nodes[v]
		k := looks{d.tier, d.host, d.n, 0}
		if d.fixed {
			k.fixed = v + 1
		}
		c, ok := first[k]
		if !ok {
			c = int32(len(first))
			first[k] = c
		}
		o.color[v] = c
	}
	for count := len(first); ; {
		seen := make(map[string]int32, count)
		next := make([]int32, len(o.color))
		var key []byte
		var around []uint64
		for v := range o.color {
			around = around[:0]
			for _, e := range o.edges[v] {
				around = append(around, uint64(e.label)<<32|uint64(o.color[e.to]))
			}
			slices.Sort(around)
			key = binary.BigEndian.AppendUint32(key[:0], uint32(o.color[v]))
			for _, a := range around {
				key = binary.BigEndian.AppendUint64(key, a)
			}
			c, ok := seen[string(key)]
			if !ok {
				c = int32(len(seen))
				seen[string(key)] = c
			}
			next[v] = c
		}
		o.color = next
		if len(seen) == count {
			return
		}
		count = len(seen)
	}
}

// swap looks for a symmetry that exchanges x and y and leaves in place what it can: neighbours that both have stay, the
// others are exchanged in turn, each with one of its colour.
func (o *orbits) swap(x, y int32) {
	image := map[int32]int32{x: y, y: x}
	todo := [][2]int32{{x, y}}
	for len(todo) > 0 {
		a, b := todo[0][0], todo[0][1]
		todo = todo[1:]
		left, right := o.apart(a, b, image), o.apart(b, a, image)
		if o.work -= 2 * (len(o.edges[a]) + len(o.edges[b])); o.work < 0 || len(left) != len(right) {
			return
		}
		for i := range left {
			u, v := left[i].to, right[i].to
			if left[i].label != right[i].label || o.color[u] != o.color[v] {
				return
			}
			if w, moved := image[u]; moved && w != v {
				return
			} else if !moved {
				image[u], image[v] = v, u
				todo = append(todo, [2]int32{u, v})
			}
		}
	}
	o.apply(image)
}

// apart are the edges of a to nodes that are in place, where b has no such edge to the same node, in an order that pairs
// them with those of b.
func (o *orbits) apart(a, b int32, image map[int32]int32) []edge {
	type tie struct{ to, label int32 }
	has := make(map[tie]bool, len(o.edges[b]))
	for _, e := range o.edges[b] {
		has[tie{e.to, e.label}] = true
	}
	var es []edge
	for _, e := range o.edges[a] {
		if _, moved := image[e.to]; !moved && !has[tie{e.to, e.label}] {
			es = append(es, e)
		}
	}
	slices.SortFunc(es, func(x, y edge) int {
		return cmp.Or(cmp.Compare(x.label, y.label), cmp.Compare(o.color[x.to], o.color[y.to]), cmp.Compare(x.to, y.to))
	})
	return es
}

// apply joins what image exchanges, if it is a symmetry: if the edges of each node that moves are, with their other ends
// moved too, the edges of its image. Edges between nodes that stay are the same, and those to nodes that move are among
// the others.
func (o *orbits) apply(image map[int32]int32) {
	type pair struct{ x, y int32 }
	var links []pair
	var mine, its []edge
	for v, w := range image {
		o.work -= len(o.edges[v])
		mine, its = mine[:0], append(its[:0], o.edges[w]...)
		for _, e := range o.edges[v] {
			if to, moved := image[e.to]; moved {
				e.to = to
			}
			mine = append(mine, e)
		}
		if o.color[v] != o.color[w] || len(mine) != len(its) {
			return
		}
		for _, es := range [][]edge{mine, its} {
			slices.SortFunc(es, func(x, y edge) int { return cmp.Or(cmp.Compare(x.to, y.to), cmp.Compare(x.label, y.label)) })
		}
		for i := range mine {
			if mine[i].to != its[i].to || mine[i].label != its[i].label {
				return
			}
			links = append(links, pair{mine[i].bundle, its[i].bundle})
		}
	}
	for v, w := range image {
		o.join(v, w)
	}
	for _, l := range links {
		o.join(o.link(l.x), o.link(l.y))
	}
}
