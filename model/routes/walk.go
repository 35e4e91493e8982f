package routes

import (
	"math"
	"math/bits"
	"slices"

	"github.com/fabricctl/fabricctl/model/intent"
)

// outage is what is down: a node, or a link, which is a bundle in both directions; -1 for none.
type outage struct{ node, link int32 }

var nothing = outage{-1, -1}

func (t *Topology) dead(x int32, o outage) bool {
	b := &t.bundles[x]
	return o.link >= 0 && (x == o.link || b.back == o.link) || o.node >= 0 && (b.from == o.node || b.to == o.node)
}

// far is the distance to where no way leads.
const far = math.MaxInt32 / 2

// ways are the distances of all nodes to one destination, by what a packet may still do. Under up-down routing a packet
// goes up, then down; where that leads nowhere, it may go sideways in between. It never goes up once it went down.
type ways struct {
	down   []int32 // by going down alone
	up     []int32 // up and down
	side   []int32 // down, or sideways and then down
	upSide []int32 // up, sideways and down, where up and down alone leads nowhere
	detour []int32 // links within a tier that lead on to a host whose own link at their beginning is down
	out    outage
}

// state is what brought a packet to a node, and so what it may still do: the kind of its last link. At a host where it
// begins, and under shortest-path routing everywhere, it is up.
type state = kind

// walker finds the routes to one destination after the other and notes who waits for whom.
type walker struct {
	t    *Topology
	o    outage
	ways [2]ways // after the outage, and before it
	n    int     // how many of them count

	around bool   // a switch that has lost its link to the destination is sent to all the same, and sends on sideways
	seen   []bool // bundles on the way to this destination
	next   [][]int32
	words  [][]uint64
	known  []bool // whether next and words are made, by node and state
	touch  []int32
	todo   []int32
	level  [][]int32
}

func newWalker(t *Topology) *walker {
	w := &walker{t: t, seen: make([]bool, len(t.bundles))}
	n := len(t.nodes)
	for i := range w.ways {
		w.ways[i] = ways{down: make([]int32, n), up: make([]int32, n)}
		if t.lateral {
			w.ways[i].side, w.ways[i].upSide = make([]int32, n), make([]int32, n)
		}
	}
	w.next, w.words, w.known = make([][]int32, 3*n), make([][]uint64, 3*n), make([]bool, 3*n)
	return w
}

// all adds to h what packets between all hosts wait for while o is down; with before, also what they meet while some
// switches have not yet learnt of it.
func (w *walker) all(h *holds, o outage, before bool) {
	if w.t.routing == intent.Listed {
		return
	}
	access := o.link >= 0 && (w.t.nodes[w.t.bundles[o.link].from].host || w.t.nodes[w.t.bundles[o.link].to].host)
	for _, d := range w.t.hosts {
		if d == o.node {
			continue
		}
		if access {
			w.bond(h, d, o, before)
			continue
		}
		w.to(h, d, o, before)
	}
}

// bond is all for one destination when the link of a host is down. Of endpoints that are alike, one has lost it.
func (w *walker) bond(h *holds, d int32, o outage, before bool) {
	x := &w.t.bundles[o.link]
	host := x.from
	if w.t.nodes[x.to].host {
		host = x.to
	}
	if w.t.nodes[host].n > 1 {
		w.to(h, d, nothing, false)
		if d != host {
			return
		}
	}
	w.to(h, d, o, before)
	if d == host {
		w.around = true
		w.to(h, d, o, before)
		w.around = false
	}
}

// to adds what packets to d wait for.
func (w *walker) to(h *holds, d int32, o outage, before bool) {
	w.o, w.n = o, 1
	w.measure(&w.ways[0], d, o)
	if before && o != nothing {
		w.measure(&w.ways[1], d, nothing)
		w.n = 2
	}
	for _, s := range w.t.hosts {
		if s == o.node || s == d && w.t.nodes[d].n < 2 {
			continue
		}
		w.start(s)
	}
	for len(w.todo) > 0 {
		x := w.todo[len(w.todo)-1]
		w.todo = w.todo[:len(w.todo)-1]
		w.pass(h, x, d)
	}
	for _, i := range w.touch {
		w.known[i] = false
		w.next[i] = w.next[i][:0]
	}
	w.touch = w.touch[:0]
	clear(w.seen)
}

// start sends packets from a host: a bond over all its links that lead on, since it spreads flows without asking how far.
// Where one of several endpoints has lost a link, the others still send over theirs.
func (w *walker) start(s int32) {
	dead := func(x int32, o outage) bool {
		return w.t.dead(x, o) && (o.link < 0 || w.t.nodes[s].n < 2)
	}
	for _, x := range w.t.nodes[s].out {
		for i := range w.n {
			if m := &w.ways[i]; !dead(x, w.o) && w.dist(m, w.t.bundles[x].to, up) < far {
				w.visit(x)
			}
		}
	}
}

func (w *walker) visit(x int32) {
	if !w.seen[x] {
		w.seen[x] = true
		w.todo = append(w.todo, x)
	}
}

// pass notes that packets to d come over bundle x, and what they wait for then.
func (w *walker) pass(h *holds, x, d int32) {
	b := &w.t.bundles[x]
	h.used[x] |= b.mask
	if b.to == d {
		return
	}
	i := w.onward(b.to, w.arrived(b.kind))
	row := h.rows[w.t.row[x]:w.t.row[x+1]]
	for j, bits := range w.words[i] {
		row[j] |= bits
	}
	for _, y := range w.next[i] {
		w.visit(y)
	}
}

func (w *walker) arrived(k kind) state {
	if w.t.routing == intent.ShortestPath {
		return up
	}
	return k
}

// onward finds the links that packets take from v in a state, and gives their place in next and words.
func (w *walker) onward(v int32, s state) int32 {
	i := 3*v + int32(s)
	if w.known[i] {
		return i
	}
	w.known[i] = true
	w.touch = append(w.touch, i)
	if n := (len(w.t.nodes[v].out) + 63) / 64; len(w.words[i]) != n {
		w.words[i] = make([]uint64, n)
	} else {
		clear(w.words[i])
	}
	for k := range w.n {
		w.links(&w.ways[k], v, s, i)
	}
	return i
}

// links adds the links that packets take from v in a state by these ways, as far as they are there.
func (w *walker) links(m *ways, v int32, s state, i int32) {
	add := func(x int32) {
		at := w.t.bundles[x].at
		if bit := uint64(1) << (at % 64); !w.t.dead(x, w.o) && w.words[i][at/64]&bit == 0 {
			w.words[i][at/64] |= bit
			w.next[i] = append(w.next[i], x)
		}
	}
	around := false
	for _, x := range m.detour {
		if w.t.bundles[x].from == v {
			around = true
			add(x)
		}
	}
	here := w.dist(m, v, s)
	if around || here >= far || here == 0 {
		return
	}
	for _, x := range w.t.nodes[v].out {
		if b := &w.t.bundles[x]; w.may(m, v, s, b) && !w.t.dead(x, m.out) && w.dist(m, b.to, w.arrived(b.kind)) == here-1 {
			add(x)
		}
	}
}

// may reports whether a packet in a state at v may take a link: no step sideways where there is a way without, and none up to
// where only that is left.
func (w *walker) may(m *ways, v int32, s state, b *bundle) bool {
	switch {
	case w.t.routing == intent.ShortestPath:
		return true
	case b.kind == lateral:
		return s == lateral && m.down[v] >= far || s == up && m.up[v] >= far
	case b.kind == up:
		return s == up && (m.up[v] >= far || m.up[b.to] < far)
	}
	return true
}

// dist is how many links lie before a packet at v in a state.
func (w *walker) dist(m *ways, v int32, s state) int32 {
	switch {
	case s == down:
		return m.down[v]
	case s == lateral:
		return m.side[v]
	case m.up[v] < far || m.upSide == nil || w.t.routing == intent.ShortestPath:
		return m.up[v]
	}
	return m.upSide[v]
}

// measure fills in the distances to d while o is down.
func (w *walker) measure(m *ways, d int32, o outage) {
	m.out = o
	m.detour = m.detour[:0]
	for i := range m.down {
		m.down[i], m.up[i] = far, far
	}
	m.down[d] = 0
	if w.around {
		w.detours(m, d, o)
	}
	if w.t.routing == intent.ShortestPath {
		w.flood(m, d)
		return
	}
	for _, v := range w.t.byTier {
		m.down[v] = min(m.down[v], w.least(m, v, down, m.down))
	}
	for _, v := range slices.Backward(w.t.byTier) {
		m.up[v] = min(m.down[v], w.least(m, v, up, m.up))
	}
	if !w.t.lateral {
		return
	}
	w.sideways(m)
	for _, v := range slices.Backward(w.t.byTier) {
		m.upSide[v] = min(m.side[v], w.least(m, v, up, m.upSide))
	}
}

// detours are the links within a tier by which a switch that has lost its link to d reaches another one that has not.
// Where what it announces covers more than d, others go on sending to it; where it does not, they go to the other one.
func (w *walker) detours(m *ways, d int32, o outage) {
	if o.link < 0 {
		return
	}
	lost := w.t.bundles[o.link].from
	if lost == d {
		lost = w.t.bundles[o.link].to
	} else if w.t.bundles[o.link].to != d {
		return
	}
	for _, x := range w.t.nodes[lost].out {
		if w.t.bundles[x].kind == lateral && slices.ContainsFunc(w.t.nodes[w.t.bundles[x].to].out, func(y int32) bool { return w.t.bundles[y].to == d }) {
			m.detour = append(m.detour, x)
			m.down[lost] = 1
		}
	}
}

// least is one more than the least of a distance over the links of a kind from v. Hosts forward nothing.
func (w *walker) least(m *ways, v int32, k kind, of []int32) int32 {
	best := int32(far)
	for _, x := range w.t.nodes[v].out {
		if b := &w.t.bundles[x]; b.kind == k && of[b.to] < best && !w.t.dead(x, m.out) {
			best = of[b.to]
		}
	}
	return min(best+1, far)
}

// flood fills in up with the distances over any links, from d outwards.
func (w *walker) flood(m *ways, d int32) {
	m.up[d] = 0
	for v, dist := range m.down {
		if dist == 1 { // a detour begins there
			m.up[v] = 1
		}
	}
	w.spread(m, m.up, func(v int32, k kind) bool { return !w.t.nodes[v].host })
}

// sideways fills in side: down, or where that leads nowhere over links within a tier to where it does.
func (w *walker) sideways(m *ways) {
	copy(m.side, m.down)
	w.spread(m, m.side, func(v int32, k kind) bool { return k == lateral && m.down[v] >= far })
}

// spread lowers distances over links that take them back, until none can be lowered: the links are those from v of the kinds
// that ok admits, and what is given is where they begin.
func (w *walker) spread(m *ways, of []int32, ok func(v int32, k kind) bool) {
	for i := range w.level {
		w.level[i] = w.level[i][:0]
	}
	push := func(v, at int32) {
		for int(at) >= len(w.level) {
			w.level = append(w.level, nil)
		}
		w.level[at] = append(w.level[at], v)
	}
	for v, at := range of {
		if at < far {
			push(int32(v), at)
		}
	}
	for at := int32(0); int(at) < len(w.level); at++ {
		for i := 0; i < len(w.level[at]); i++ {
			v := w.level[at][i]
			if of[v] != at {
				continue
			}
			for _, x := range w.t.nodes[v].out {
				b := &w.t.bundles[x]
				if y := b.to; ok(y, w.t.bundles[b.back].kind) && at+1 < of[y] && !w.t.dead(x, m.out) {
					of[y] = at + 1
					push(y, at+1)
				}
			}
		}
	}
}

// holds is who waits for whom: a row of bits for each bundle, one for each bundle that leaves where it ends.
type holds struct {
	t     *Topology
	used  []uint8 // priorities in which packets come over a bundle
	rows  []uint64
	extra []extra // edges of listed routes that rows do not say
}

// extra is an edge between two priorities of two bundles.
type extra struct {
	from, to     int32
	prio, toPrio uint8
}

func newHolds(t *Topology) *holds {
	return &holds{t: t, used: make([]uint8, len(t.bundles)), rows: make([]uint64, t.row[len(t.bundles)])}
}

func (h *holds) reset() {
	clear(h.used)
	clear(h.rows)
	h.extra = h.extra[:0]
}

// has reports whether a packet over x may wait for y in the same priority.
func (h *holds) has(x, y int32) bool {
	at := h.t.bundles[y].at
	return h.t.bundles[x].to == h.t.bundles[y].from && h.rows[h.t.row[x]+at/64]>>(at%64)&1 == 1
}

// each calls f for the bundles that packets over x may wait for in the same priority.
func (h *holds) each(x int32, f func(y int32)) {
	out := h.t.nodes[h.t.bundles[x].to].out
	for i, word := range h.rows[h.t.row[x]:h.t.row[x+1]] {
		for ; word != 0; word &= word - 1 {
			f(out[i*64+bits.TrailingZeros64(word)])
		}
	}
}

// list adds listed routes, as far as they do not go over what is down.
func (h *holds) list(routes []listed, o outage) {
	seen := map[extra]bool{}
	for i := range routes {
		if r := &routes[i]; !slices.ContainsFunc(r.hops, func(ways []int32) bool {
			return !slices.ContainsFunc(ways, func(x int32) bool { return !h.t.dead(x, o) })
		}) {
			h.follow(r, o, seen)
		}
	}
}

func (h *holds) follow(r *listed, o outage, seen map[extra]bool) {
	for j, ways := range r.hops {
		p := r.prios[j]
		for _, x := range ways {
			b := &h.t.bundles[x]
			if h.t.dead(x, o) || (b.mask|r.fresh)>>p&1 == 0 {
				continue
			}
			h.used[x] |= 1 << p
			if j+1 == len(r.hops) {
				continue
			}
			for _, y := range r.hops[j+1] {
				e := extra{x, y, p, r.prios[j+1]}
				if c := &h.t.bundles[y]; c.from == b.to && (c.mask|r.fresh)>>e.toPrio&1 == 1 && !h.t.dead(y, o) && !seen[e] && !(e.prio == e.toPrio && h.has(x, y)) {
					seen[e] = true
					h.extra = append(h.extra, e)
				}
			}
		}
	}
}

// edges counts the edges, those between each two links of parallel ones counted each.
func (h *holds) edges() int {
	n := 0
	for i := range h.t.bundles {
		b := &h.t.bundles[i]
		if h.used[i] == 0 {
			continue
		}
		h.each(int32(i), func(y int32) {
			c := &h.t.bundles[y]
			pairs := int(b.n) * int(c.n)
			if c.to == b.from && h.t.nodes[c.to].host { // among endpoints that are alike: none goes back to itself
				pairs -= pairs / h.t.nodes[c.to].n
			}
			n += pairs * bits.OnesCount8(b.mask&c.mask)
		})
	}
	for _, e := range h.extra {
		n += int(h.t.bundles[e.from].n) * int(h.t.bundles[e.to].n)
	}
	return n
}
