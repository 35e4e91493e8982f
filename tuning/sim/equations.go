package sim

import (
	"fmt"

	"github.com/fabricctl/fabricctl/model/derive"
	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/tuning/sim/engine"
	"github.com/fabricctl/fabricctl/tuning/sim/fluid"
)

// Equations are what package fluid can follow of a run, to screen settings with: senders in front of the queues at which receivers get
// more than their links carry.
type Equations struct {
	Model  fluid.Model
	Queues []Place  // what the links of the model are
	Taken  []string // what of the run is left out, or taken for something else
}

// equator makes equations of a run.
type equator struct {
	*Setup
	out    Equations
	taken  places
	links  map[engine.QueueRef]int // of the model
	groups map[fluidKey]int        // flows of the model
	first  int                     // NIC whose parameters are those of all
}

// fluidKey is what flows have in common that move as one.
type fluidKey struct {
	link     int
	line     units.BitRate
	feedback units.Duration
}

// Equations makes equations of s. A link of the model is the queue towards a NIC to which more is sent than its link carries; what
// happens before it is left out. The error is that there is none, or that nobody reacts to marks.
func (s *Setup) Equations() (*Equations, error) {
	e := equator{Setup: s, links: map[engine.QueueRef]int{}, groups: map[fluidKey]int{}, first: -1}
	sends, lines := make([]int, len(s.nics)), map[engine.QueueRef]units.BitRate{}
	var data []int
	for i := range s.flows {
		switch f := &s.flows[i]; {
		case f.latency:
			e.taken.add("probes and latency tests are left out", "")
		default:
			data = append(data, i)
			sends[f.from]++
		}
	}
	line := func(i int) units.BitRate {
		from := s.flows[i].from
		return units.BitRate(s.Config.Ports[s.nics[from].port].Rate) / units.BitRate(sends[from])
	}
	for _, i := range data {
		lines[s.lastQueue(i)] += line(i)
	}
	for _, i := range data {
		at := s.lastQueue(i)
		if speed := units.BitRate(s.Config.Ports[at.Port].Rate); lines[at] > speed {
			e.flow(i, at, line(i))
		} else {
			e.taken.add("flows to receivers that nobody else overloads are left out", "")
		}
	}
	if len(e.out.Queues) == 0 {
		return nil, fmt.Errorf("%s: no receiver gets more than its link carries: the equations have no queue", s.workload.String())
	}
	r := &s.Config.NICs[e.first].React
	if !r.On {
		return nil, fmt.Errorf("%s: congestion control is off at %s: no setting changes what it sends", s.workload.String(), s.name(s.nics[e.first].port))
	}
	e.pauses(data)
	e.say()
	e.reaction(r)
	e.out.Taken = e.taken.sentences(func(what, _ string) string { return what })
	return &e.out, nil
}

// lastQueue is the queue of the switch before the receiver of a flow.
func (s *Setup) lastQueue(i int) engine.QueueRef {
	f := &s.flows[i]
	way := s.way(f.from, f.to)
	last := way[len(way)-1]
	in := s.Config.Ports[way[len(way)-2]].Peer // by which the flow comes into the switch, whose map says where it queues
	return engine.QueueRef{Port: last, Queue: int(s.Config.Ports[in].Classify[s.Config.Flows[i].Mark].Queue)}
}

// flow adds a flow of the run that ends in an overloaded queue.
func (e *equator) flow(i int, at engine.QueueRef, line units.BitRate) {
	if e.first < 0 {
		e.first = e.flows[i].from
	}
	link, known := e.links[at]
	if !known {
		link = len(e.out.Queues)
		e.links[at] = link
		port := &e.Config.Ports[at.Port]
		q := &port.Queues[at.Queue]
		l := fluid.Link{Speed: units.BitRate(port.Rate)}
		if q.Marks {
			l.Ramp = derive.Ramp{Kmin: units.Bytes(q.Kmin), Kmax: units.Bytes(q.Kmax), Pmax: units.Percent(q.Pmax*float64(100*units.OnePercent) + 0.5)}
		}
		e.out.Model.Links = append(e.out.Model.Links, l)
		e.out.Queues = append(e.out.Queues, e.place(at.Port, at.Queue))
	}
	key := fluidKey{link, line, e.feedback(i)}
	g, known := e.groups[key]
	if !known {
		g = len(e.out.Model.Flows)
		e.groups[key] = g
		e.out.Model.Flows = append(e.out.Model.Flows, fluid.Flow{Path: []int{link}, Line: line, Feedback: key.feedback})
	}
	e.out.Model.Flows[g].Count++
	if e.Config.Flows[i].Bytes > 0 {
		e.taken.add("flows that end are taken to go on", "")
	}
	if e.Config.NICs[e.flows[i].from].React != e.Config.NICs[e.first].React {
		e.taken.add("all senders are taken to react as "+e.name(e.nics[e.first].port)+" does", "")
	}
}

// feedback is the time from the mark of a packet until its sender reacts, when nothing is in the way of the notification.
func (e *equator) feedback(i int) units.Duration {
	f, c := &e.flows[i], e.Config
	there := e.way(f.from, f.to)
	last := &c.Ports[there[len(there)-1]]
	frame := int64(c.Flows[i].Payload + c.Transport.Header + c.Overhead)
	t := last.Delay + wire(frame, last.Rate) + c.NICs[f.to].CNPWait
	for _, p := range e.way(f.to, f.from) {
		t += c.Ports[p].Delay + wire(int64(c.Transport.CNPSize+c.Overhead), c.Ports[p].Rate)
	}
	return toDuration(t)
}

// pauses says of each link where its senders would be paused: each port by which they come in has a threshold of its own.
func (e *equator) pauses(data []int) {
	type entry struct{ link, port, group int }
	seen := map[entry]bool{}
	for _, i := range data {
		link, overloaded := e.links[e.lastQueue(i)]
		if !overloaded {
			continue
		}
		way := e.way(e.flows[i].from, e.flows[i].to)
		in := e.Config.Ports[way[len(way)-2]].Peer
		group := int(e.Config.Ports[in].Classify[e.Config.Flows[i].Mark].Group)
		if x := (entry{link, in, group}); group >= 0 && !seen[x] && e.Config.Ports[in].Groups[group].Lossless {
			seen[x] = true
			e.out.Model.Links[link].Pause += e.threshold(in, group)
		}
	}
}

// reaction is the parameters of all senders.
func (e *equator) reaction(r *engine.Reaction) {
	m, to := &e.out.Model, e.Config.NICs[e.first].CNPGap
	for i := range e.flows {
		if e.flows[i].from == e.first {
			to = e.Config.NICs[e.flows[i].to].CNPGap
		}
	}
	m.Gain, m.MinRate, m.Spaced = r.G, units.BitRate(r.MinRate), r.CutOnCNP
	m.DCQCN = derive.DCQCN{
		CNPInterval: max(toDuration(r.CutTimer), 1), AlphaTimer: toDuration(r.AlphaTimer), RateTimer: toDuration(r.RateTimer),
		ByteCounter: units.Bytes(r.ByteCounter), Recovery: max(r.FastRecovery, 1), Increase: units.BitRate(r.AI),
		Packet: units.Bytes(e.Config.Flows[0].Payload + e.Config.Transport.Header + e.Config.Overhead),
	}
	if r.CutOnCNP {
		m.DCQCN.CNPInterval = max(toDuration(to), 1)
	}
}

// say notes what the equations never have.
func (e *equator) say() {
	e.taken.add("links between switches are taken to be wide enough, and a NIC to share its link evenly between its flows", "")
	e.taken.add("all flows begin at once, at line rate", "")
	e.taken.add("the hyper increase of rates, single packets, pauses and losses are left out", "")
	if len(e.options.Faults) > 0 {
		e.taken.add("faults of NICs are left out", "")
	}
}
