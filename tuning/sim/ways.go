package sim

import (
	"slices"

	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/tuning/sim/engine"
)

// ways are the ports by which switches send to NICs. Towards the switch of a NIC they are of the fewest hops that routing
// allows: down where it is below, and else up towards where it can be gone down to (or, with shortest-path routing, just the
// fewest hops). A link between peers counts as many hops, so that it is taken when nothing else leads there. Ways that the
// model lists come before all others.
type ways struct {
	s      *Setup
	listed map[listedKey][]int32
	next   [][][]int32 // by switch of the NIC, then by switch; nil = not looked for yet
	access map[[2]int][]int32
	led    map[[2]int]bool // whether all ways from a switch lead to a NIC
}

type listedKey struct{ sw, dest int } // dest: a device of the Net

// peerHops is what a link between peers counts.
const peerHops = 64

// step is a link from a switch to another one.
type step struct {
	port int32
	to   int
	cost int
	kind int8 // 1 up, 0 beside, -1 down
}

// routes finds the ways, and tells the engine where to ask.
func (b *builder) routes() {
	b.ways = &ways{s: &b.Setup, next: make([][][]int32, len(b.switches)), access: map[[2]int][]int32{}, led: map[[2]int]bool{}}
	for i := range b.nics {
		key := [2]int{b.nics[i].leaf, i}
		b.ways.access[key] = []int32{int32(b.Config.Ports[b.nics[i].port].Peer)}
	}
	b.list()
	b.Config.Next = b.ways.nexts
}

// nexts are the ports by which a switch may send to a NIC.
func (w *ways) nexts(sw, nic int) []int32 {
	if len(w.listed) > 0 {
		x := &w.s.ports[w.s.nics[nic].port]
		if ps, ok := w.listed[listedKey{sw, w.s.at[x.dev.Name]}]; ok {
			return ps
		}
		leaf := w.s.nics[nic].leaf
		if ps, ok := w.listed[listedKey{sw, w.s.at[w.s.switches[leaf].Name]}]; ok {
			return ps
		}
	}
	leaf := w.s.nics[nic].leaf
	if sw == leaf {
		return w.access[[2]int{sw, nic}]
	}
	if w.s.net.Routing == intent.Listed {
		return nil
	}
	if w.next[leaf] == nil {
		w.next[leaf] = w.towards(leaf)
	}
	return w.next[leaf][sw]
}

// steps are the links of a switch to others, in the order of its ports.
func (w *ways) steps() [][]step {
	all := make([][]step, len(w.s.switches))
	tiered := w.s.net.Routing == intent.UpDown && !slices.ContainsFunc(w.s.switches, func(d *intent.Device) bool { return d.Tier < 1 })
	for i := range w.s.ports {
		c := &w.s.Config.Ports[i]
		if c.Switch == engine.None || w.s.Config.Ports[c.Peer].Switch == engine.None {
			continue
		}
		s := step{port: int32(i), to: w.s.Config.Ports[c.Peer].Switch, cost: 1}
		if w.s.ports[i].port.Role == "peer-link" || w.s.ports[c.Peer].port.Role == "peer-link" {
			s.cost = peerHops
		}
		if tiered {
			switch x, y := w.s.switches[c.Switch].Tier, w.s.switches[s.to].Tier; {
			case y > x:
				s.kind = 1
			case y < x:
				s.kind = -1
			}
		}
		all[c.Switch] = append(all[c.Switch], s)
	}
	return all
}

// towards finds for each switch the ports of the ways to one of them.
func (w *ways) towards(leaf int) [][]int32 {
	const far = 1 << 30
	steps := w.steps()
	n := len(steps)
	down, up := make([]int, n), make([]int, n) // cost of ways that only go down (or beside), and of any that are allowed
	for i := range down {
		down[i], up[i] = far, far
	}
	down[leaf], up[leaf] = 0, 0
	relax := func(cost []int, may func(step) bool, through []int) {
		for changed := true; changed; {
			changed = false
			for i := range steps {
				for _, s := range steps[i] {
					if c := through[s.to] + s.cost; may(s) && c < cost[i] {
						cost[i], changed = c, true
					}
				}
			}
		}
	}
	relax(down, func(s step) bool { return s.kind <= 0 }, down)
	for i := range up {
		up[i] = down[i]
	}
	relax(up, func(s step) bool { return s.kind > 0 }, up)
	ports := make([][]int32, n)
	for i := range steps {
		for _, s := range steps[i] {
			switch {
			case i == leaf:
			case down[i] < far && down[i] <= up[i]:
				if s.kind <= 0 && down[s.to]+s.cost == down[i] {
					ports[i] = append(ports[i], s.port)
				}
			case up[i] < far && s.kind > 0 && up[s.to]+s.cost == up[i]:
				ports[i] = append(ports[i], s.port)
			}
		}
	}
	return ports
}

// list notes the ways that the model lists.
func (b *builder) list() {
	b.ways.listed = map[listedKey][]int32{}
	remarked := false
	for i := range b.net.Routes {
		r := &b.net.Routes[i]
		end, known := b.at[r.End]
		if !known {
			continue
		}
		for j, h := range r.Hops {
			d, known := b.at[h.Device]
			if !known || b.net.Devices[d].Host {
				continue
			}
			to := r.End
			if j+1 < len(r.Hops) {
				to = r.Hops[j+1].Device
			}
			remarked = remarked || j > 0 && h.Priority != r.Hops[j-1].Priority
			key := listedKey{b.switchOf[d], end}
			for _, p := range b.portsTo(d, h.Port, to) {
				if !slices.Contains(b.ways.listed[key], p) {
					b.ways.listed[key] = append(b.ways.listed[key], p)
				}
			}
		}
	}
	for _, ps := range b.ways.listed {
		slices.Sort(ps)
	}
	if remarked {
		b.assume.say("packets keep their priority on listed routes that change it: that is not simulated", "")
	}
}

// portsTo are the ports of a device that lead to another one, or the one of a name.
func (b *builder) portsTo(d int, name, to string) []int32 {
	var ps []int32
	dev := &b.net.Devices[d]
	for j := range dev.Ports {
		p := &dev.Ports[j]
		if at, built := b.portOf[[2]int{d, j}]; built && p.Peer == to && (name == "" || p.Name == name || p.Iface == name) {
			ps = append(ps, int32(at))
		}
	}
	return ps
}

// way is the ports by which packets of a pair go out, one after the other, that of the NIC included, where the first of several is
// taken everywhere; nil when there is none. Ways that never end are none.
func (s *Setup) way(from, to int) []int {
	most := len(s.switches) + 2
	path := []int{s.nics[from].port}
	for len(path) <= most {
		in := s.Config.Ports[path[len(path)-1]].Peer
		c := &s.Config.Ports[in]
		if c.Switch == engine.None {
			if in == s.nics[to].port {
				return path
			}
			return nil
		}
		next := s.ways.nexts(c.Switch, to)
		if len(next) == 0 {
			return nil
		}
		path = append(path, int(next[0]))
	}
	return nil
}

// leads reports whether every way from one NIC leads to the other.
func (s *Setup) leads(from, to int) bool {
	key := [2]int{s.nics[from].leaf, to}
	if led, known := s.ways.led[key]; known {
		return led
	}
	seen := map[int]bool{}
	var walk func(sw, hops int) bool
	walk = func(sw, hops int) bool {
		if seen[sw] {
			return true
		}
		next := s.ways.nexts(sw, to)
		if len(next) == 0 || hops > len(s.switches) {
			return false
		}
		for _, p := range next {
			peer := s.Config.Ports[p].Peer
			if next := s.Config.Ports[peer].Switch; next == engine.None && peer != s.nics[to].port || next != engine.None && !walk(next, hops+1) {
				return false
			}
		}
		seen[sw] = true
		return true
	}
	led := walk(s.nics[from].leaf, 0)
	s.ways.led[key] = led
	return led
}
