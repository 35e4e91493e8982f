package engine

import (
	"fmt"
	"math"
	"slices"
)

// murmur is MurmurHash3-32 (Appleby, public domain) of three words, which is what the reference simulator chooses ways with.
func murmur(words [3]uint32, seed uint32) uint32 {
	h := seed
	for _, k := range words {
		k *= 0xcc9e2d51
		k = k<<15 | k>>17
		k *= 0x1b873593
		h ^= k
		h = h<<13 | h>>19
		h = h*5 + 0xe6546b64
	}
	h ^= 4 * uint32(len(words))
	h ^= h >> 16
	h *= 0x85ebca6b
	h ^= h >> 13
	h *= 0xc2b2ae35
	return h ^ h>>16
}

// UDP ports.
const (
	rocePort   = 4791
	compatPort = 100 // of the reference simulator
)

// tuples are the two addresses and the ports of a flow as its switches hash them, on the way there and back. RoCEv2 is
// always sent to port 4791; the reference swaps the ports of what goes back.
func (s *run) tuples(f *Flow) (there, back [3]uint32) {
	a, b := s.cfg.NICs[f.Src].Address, s.cfg.NICs[f.Dst].Address
	if s.compat {
		return [3]uint32{a, b, uint32(f.SourcePort) | compatPort<<16}, [3]uint32{b, a, compatPort | uint32(f.SourcePort)<<16}
	}
	ports := uint32(f.SourcePort) | rocePort<<16
	return [3]uint32{a, b, ports}, [3]uint32{b, a, ports}
}

// router finds ways.
type router struct {
	run     *run
	ports   [][]int32   // of switches
	steps   [][]int16   // by switch that the destination is at: how far each other is from it
	choices [][][]int32 // by the same, and by switch: the ports of the fewest hops
	known   map[string]uint32
	only    [1]int32
	scratch []byte
}

// findWays finds the ports that the packets of each flow take, both ways.
func (s *run) findWays() error {
	rt := router{run: s, ports: make([][]int32, len(s.switches)), steps: make([][]int16, len(s.switches)), choices: make([][][]int32, len(s.switches)), known: map[string]uint32{}}
	for i := range s.ports {
		if p := &s.ports[i]; p.flags&isNIC == 0 {
			rt.ports[p.owner] = append(rt.ports[p.owner], int32(i))
		}
	}
	for i := range s.cfg.Flows {
		f := &s.cfg.Flows[i]
		there, back := s.tuples(f)
		var err error
		if s.snd[i].way, err = rt.way(f.Src, f.Dst, there); err == nil {
			s.rcv[i].way, err = rt.way(f.Dst, f.Src, back)
		}
		if err != nil {
			return &ConfigError{What: "flow", Index: i, Err: err}
		}
		if f.Read {
			s.snd[i].way, s.rcv[i].way = s.rcv[i].way, s.snd[i].way
		}
	}
	return nil
}

// way is the place in run.ways of the ports from one NIC to another. Flows that take the same share it.
func (rt *router) way(from, to int, tuple [3]uint32) (uint32, error) {
	s := rt.run
	goal := s.nics[to].port
	at := int32(s.ports[s.nics[from].port].peer)
	rt.scratch = rt.scratch[:0]
	for at != goal {
		sw := s.ports[at].owner
		if s.ports[at].flags&isNIC != 0 {
			return 0, fmt.Errorf("its way to NIC %d ends at NIC %d", to, sw)
		}
		if len(rt.scratch) > 2*len(s.switches) {
			return 0, fmt.Errorf("its way to NIC %d goes in a circle through switch %d", to, sw)
		}
		next := rt.next(int(sw), to)
		if len(next) == 0 {
			return 0, fmt.Errorf("switch %d has no way to NIC %d", sw, to)
		}
		out := next[0]
		if len(next) > 1 {
			out = next[murmur(tuple, s.cfg.Switches[sw].HashSeed)%uint32(len(next))]
		}
		if out < 0 || int(out) >= len(s.ports) || s.ports[out].flags&isNIC != 0 || s.ports[out].owner != sw {
			return 0, fmt.Errorf("switch %d has no port %d by which to reach NIC %d", sw, out, to)
		}
		rt.scratch = append(rt.scratch, byte(out), byte(out>>8))
		at = int32(s.ports[out].peer)
	}
	if w, ok := rt.known[string(rt.scratch)]; ok {
		return w, nil
	}
	w := uint32(len(s.ways))
	if len(s.ways)+len(rt.scratch)/2 > wayMask {
		return 0, fmt.Errorf("there are more than %d different ways", wayMask)
	}
	for i := 0; i < len(rt.scratch); i += 2 {
		s.ways = append(s.ways, uint16(rt.scratch[i])|uint16(rt.scratch[i+1])<<8)
	}
	rt.known[string(rt.scratch)] = w
	return w, nil
}

// next lists the ports of a switch on ways of the fewest hops to a NIC.
func (rt *router) next(sw, to int) []int32 {
	s := rt.run
	if s.cfg.Next != nil {
		return s.cfg.Next(sw, to)
	}
	last := int32(s.ports[s.nics[to].port].peer)
	home := s.ports[last].owner
	if s.ports[last].flags&isNIC != 0 {
		return nil
	}
	if int32(sw) == home {
		rt.only[0] = last
		return rt.only[:]
	}
	if rt.choices[home] == nil {
		rt.choices[home] = make([][]int32, len(s.switches))
	}
	if out := rt.choices[home][sw]; out != nil {
		return out
	}
	steps := rt.distances(home)
	var out []int32
	for _, pi := range rt.ports[sw] {
		if q := &s.ports[s.ports[pi].peer]; q.flags&isNIC == 0 && steps[q.owner] == steps[sw]-1 {
			out = append(out, pi)
		}
	}
	rt.choices[home][sw] = out
	return out
}

// distances is how many hops each switch is from one.
func (rt *router) distances(home int32) []int16 {
	if rt.steps[home] != nil {
		return rt.steps[home]
	}
	d := slices.Repeat([]int16{math.MaxInt16}, len(rt.ports))
	d[home] = 0
	for queue := []int32{home}; len(queue) > 0; queue = queue[1:] {
		for _, pi := range rt.ports[queue[0]] {
			q := &rt.run.ports[rt.run.ports[pi].peer]
			if q.flags&isNIC == 0 && d[q.owner] == math.MaxInt16 {
				d[q.owner] = d[queue[0]] + 1
				queue = append(queue, q.owner)
			}
		}
	}
	rt.steps[home] = d
	return d
}
