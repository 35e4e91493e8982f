package routes

import (
	"cmp"
	"context"
	"runtime"
	"slices"
	"sync"

	"github.com/fabricctl/fabricctl/model/intent"
)

// Failure is a single loss after which buffers can wait for each other in a cycle that the steady state does not have.
type Failure struct {
	Device string // the switch that is lost; "" when it is a link
	Link   Buffer // the link that is lost, by its lower end; its Priority says nothing
	Alike  int    // how many losses do the same, this one counted
	During bool   // only as long as some switches have not learnt of it
	Component
}

// Losses is what Sweep has looked at.
type Losses struct {
	Links, Switches int       // that can be lost
	Classes         int       // kinds of losses that were looked at, since the others of a kind do the same or do nothing
	Left            int       // kinds that were not, because of the limit
	Failures        []Failure // one for each kind that makes a cycle, the shortest cycle first
}

// Sweep loses each link and each switch by itself and looks for cycles that the steady state does not have: with the
// routes that follow, and with those before and after mixed, as they are until all switches have learnt of it. Of losses
// that a symmetry of the topology maps to each other one is looked at. With devices, only they and their links are lost.
// Limit bounds the steps (a link passed for a destination is about one); 0 is no bound. The error is that of ctx.
//
// A loss that takes routes away and makes none cannot make a cycle, so that these are not looked at: one of several
// parallel links, the only link of a host, and anything where all routes are listed.
func (t *Topology) Sweep(ctx context.Context, devices []string, limit int) (Losses, error) {
	s := sweep{t: t, only: devices}
	l := s.count()
	if t.routing == intent.Listed {
		return l, nil
	}
	kinds := s.kinds()
	steps := 2 * t.Steps()
	if limit > 0 && len(kinds)*steps > limit {
		l.Left = len(kinds) - limit/max(steps, 1)
		kinds = kinds[:limit/max(steps, 1)]
	}
	l.Classes = len(kinds)
	if len(kinds) == 0 {
		return l, ctx.Err()
	}
	s.steady()
	found := make([]*Failure, len(kinds))
	jobs := make(chan int)
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(kinds)) {
		wg.Go(func() {
			w, h := newWalker(t), newHolds(t)
			for i := range jobs {
				found[i] = s.lose(w, h, kinds[i])
			}
		})
	}
	for i := range kinds {
		if ctx.Err() != nil {
			break
		}
		jobs <- i
	}
	close(jobs)
	wg.Wait()
	for _, f := range found {
		if f != nil {
			l.Failures = append(l.Failures, *f)
		}
	}
	slices.SortStableFunc(l.Failures, compareFailures)
	return l, ctx.Err()
}

func compareFailures(a, b Failure) int {
	after := func(f Failure) int {
		if f.During {
			return 1
		}
		return 0
	}
	return cmp.Or(after(a)-after(b), len(a.Cycle)-len(b.Cycle), compareBuffers(a.Cycle[0], b.Cycle[0]))
}

// sweep is one call of Sweep.
type sweep struct {
	t    *Topology
	only []string
	old  map[vertex]bool // vertices that are on cycles in the steady state
}

// loss is a kind of losses: one of them, and how many there are.
type loss struct {
	outage
	alike int
}

func (s *sweep) wanted(names ...string) bool {
	return len(s.only) == 0 || slices.ContainsFunc(names, func(n string) bool { return slices.Contains(s.only, n) })
}

// lower reports whether a bundle is the one by which its links are named: that from the lower end, or from the first name.
func (t *Topology) lower(x int32) bool {
	b := &t.bundles[x]
	return b.kind == up || b.kind == lateral && intent.CompareNames(t.nodes[b.from].name, t.nodes[b.to].name) < 0
}

// count counts what can be lost.
func (s *sweep) count() (l Losses) {
	for i := range s.t.nodes {
		if !s.t.nodes[i].host && s.wanted(s.t.nodes[i].name) {
			l.Switches++
		}
	}
	for i := range s.t.bundles {
		if b := &s.t.bundles[i]; s.t.lower(int32(i)) && s.wanted(s.t.nodes[b.from].name, s.t.nodes[b.to].name) {
			l.Links += int(b.n)
		}
	}
	return l
}

// kinds are the losses to look at, in the order of their names, each with how many are like it.
func (s *sweep) kinds() []loss {
	t := s.t
	o := t.symmetries()
	at := map[int32]int{}
	var ls []loss
	add := func(element int32, out outage) {
		r := o.find(element)
		i, ok := at[r]
		if !ok {
			i = len(ls)
			at[r] = i
			ls = append(ls, loss{out, 0})
		}
		ls[i].alike++
	}
	var nodes, links []int32
	for v := range t.nodes {
		if !t.nodes[v].host && s.wanted(t.nodes[v].name) {
			nodes = append(nodes, int32(v))
		}
	}
	for x := range t.bundles {
		if b := &t.bundles[x]; t.lower(int32(x)) && t.matters(int32(x)) && s.wanted(t.nodes[b.from].name, t.nodes[b.to].name) {
			links = append(links, int32(x))
		}
	}
	slices.SortFunc(nodes, func(a, b int32) int { return intent.CompareNames(t.nodes[a].name, t.nodes[b].name) })
	slices.SortFunc(links, func(a, b int32) int { return compareBuffers(t.buffer(a, 0), t.buffer(b, 0)) })
	for _, v := range nodes {
		add(v, outage{v, -1})
	}
	for _, x := range links {
		add(o.link(x), outage{-1, x})
	}
	return ls
}

// matters reports whether losing a link of a bundle makes routes that were not there: it is the only one between its ends,
// and what is below it has another way.
func (t *Topology) matters(x int32) bool {
	b := &t.bundles[x]
	low := &t.nodes[b.from]
	links, other := int32(0), false
	for _, y := range low.out {
		c := &t.bundles[y]
		if c.to == b.to {
			links += c.n
		} else {
			other = true
		}
	}
	if low.host {
		return other && links == int32(low.n)
	}
	return links == 1
}

// steady notes what is on cycles without any loss.
func (s *sweep) steady() {
	s.old = map[vertex]bool{}
	g := s.t.steady().graph()
	for _, c := range g.strong() {
		for _, v := range c {
			s.old[g.vertex[v]] = true
		}
	}
}

// lose looks at one loss; nil when it makes no cycle. What holds after it holds while switches learn of it too, so that
// the mixture is looked at first.
func (s *sweep) lose(w *walker, h *holds, l loss) *Failure {
	look := func(before bool) []Component {
		h.reset()
		w.all(h, l.outage, before)
		h.list(s.t.routes, l.outage)
		return h.graph().components(s.old)
	}
	during := look(true)
	if len(during) == 0 {
		return nil
	}
	f := &Failure{Alike: l.alike, During: true, Component: during[0]}
	if after := look(false); len(after) > 0 {
		f.During, f.Component = false, after[0]
	}
	if l.node >= 0 {
		f.Device = s.t.nodes[l.node].name
	} else {
		f.Link = s.t.buffer(l.link, 0)
		if n := s.t.nodes[s.t.bundles[l.link].from].n; n > 1 {
			f.Alike *= n
		}
	}
	return f
}
