package tuning

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/observe"
)

// Sight is how the counters of an observation are understood. The zero Sight understands none.
type Sight struct {
	Lossless []int               // priorities that must lose nothing
	Hosts    map[string]bool     // devices that are hosts
	ToHost   map[string][]string // interfaces of a switch with a host behind them
}

// SightOf is the sight of a fabric: whatever is lossless on any of its ports is to lose nothing.
func SightOf(n *intent.Net) Sight {
	s := Sight{Hosts: map[string]bool{}, ToHost: map[string][]string{}}
	var lossless [8]bool
	for i := range n.Devices {
		d := &n.Devices[i]
		if d.Host {
			s.Hosts[d.Name] = true
		}
		for j := range d.Policies {
			for _, p := range d.Policies[j].Lossless() {
				lossless[p] = true
			}
		}
	}
	for p, is := range lossless {
		if is {
			s.Lossless = append(s.Lossless, p)
		}
	}
	for i := range n.Devices {
		d := &n.Devices[i]
		for j := range d.Ports {
			if p := &d.Ports[j]; !d.Host && s.Hosts[p.Peer] {
				s.ToHost[d.Name] = append(s.ToHost[d.Name], cmp.Or(p.Iface, p.Name))
			}
		}
	}
	return s
}

// Measure is an observation in the numbers that decisions are made from. A *Rejected error is one that cannot be used.
func (s *Sight) Measure(o *observe.Observation) (*Measure, error) {
	m := &Measure{Parts: o.Parts, Latency: o.Latency, Digest: o.Digest, Notes: o.Notes}
	if o.Goodput != nil {
		m.Goodput = *o.Goodput
	}
	for _, x := range []struct {
		to   *float64
		from *time.Duration
	}{{&m.P50, o.P50}, {&m.P99, o.P99}, {&m.P999, o.P999}} {
		if x.from != nil {
			*x.to = x.from.Seconds()
		}
	}
	if o.Goodput == nil && o.P999 == nil {
		return nil, &Rejected{Code: "nothing", Why: "neither goodput nor a latency was measured"}
	}
	means := s.meanings()
	for device, after := range o.After {
		before, ok := o.Before[device]
		if !ok {
			continue
		}
		c := observe.Delta(before, after)
		if len(c.Fell) > 0 {
			return nil, &Rejected{Code: "counters", Why: device + ": " + c.Notes()[0]}
		}
		s.count(m, device, &c, means)
	}
	return m, nil
}

// Harm is what the counters of an observation say of a run whose numbers cannot be used; nil when they say nothing.
func (s *Sight) Harm(o *observe.Observation) *Harm {
	m := &Measure{}
	means := s.meanings()
	for device, after := range o.After {
		before, ok := o.Before[device]
		if c := observe.Delta(before, after); ok && len(c.Fell) == 0 {
			s.count(m, device, &c, means)
		}
	}
	if m.Drops == nil && m.Watchdog == nil && m.Pausing == nil {
		return nil
	}
	return &Harm{m.Drops, m.Watchdog, m.Pausing}
}

// meaning is what a counter says of a run.
type meaning uint8

const (
	nothing meaning = iota
	lost
	lostSide // at one side, which counts where a device does not count both together
	stuck
	disorder
	marked
	paused  // the neighbour stops us
	pausing // we stop the neighbour
)

// meanings are those of the counters of the lossless priorities, and of what has no priority.
func (s *Sight) meanings() map[observe.Name]meaning {
	all := map[observe.Name]meaning{
		observe.OutOfSequence: disorder, observe.NAKReceived: disorder, observe.AckTimeouts: disorder,
		observe.NoBuffer: lost, observe.PauseStorm: stuck,
	}
	for _, p := range s.Lossless {
		for n, m := range map[observe.Name]meaning{
			observe.Drop: lost, observe.DropIn: lostSide, observe.DropOut: lostSide, observe.WatchdogStuck: stuck,
			observe.ECNMarked: marked, observe.PFCPaused: paused, observe.PFCPausing: pausing,
		} {
			all[n.Of(p)] = m
		}
	}
	return all
}

// count adds what a device has counted.
func (s *Sight) count(m *Measure, device string, c *observe.Change, means map[observe.Name]meaning) {
	for p, v := range c.Values {
		toHost := slices.Contains(s.ToHost[device], p.Iface)
		switch mean := means[p.Name]; mean {
		case lost:
			add(&m.Drops, v)
		case lostSide:
			priority := p.Name[strings.LastIndexByte(string(p.Name), '.'):]
			if _, both := c.Get(p.Iface, observe.Drop+priority); !both {
				add(&m.Drops, v)
			}
		case stuck:
			add(&m.Watchdog, v)
		case disorder:
			add(&m.Sequence, v)
		case marked:
			add(&m.Marked, v)
		case paused, pausing:
			switch byHost := toHost && mean == paused || s.Hosts[device] && mean == pausing; {
			case byHost:
				most(&m.Pausing, v, c.Elapsed)
			case toHost || mean == paused: // a switch's pauses to its neighbours are what those count as paused
				most(&m.Paused, v, c.Elapsed)
			}
		}
	}
}

func add(to **uint64, v uint64) {
	if *to == nil {
		*to = new(uint64)
	}
	**to += v
}

// most keeps the largest part of the time.
func most(to **float64, ns uint64, of time.Duration) {
	if of <= 0 {
		return
	}
	part := min(float64(ns)/float64(of), 1)
	if *to == nil || part > **to {
		*to = &part
	}
}
