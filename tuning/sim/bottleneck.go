package sim

import (
	"fmt"
	"math"
	"slices"

	"github.com/fabricctl/fabricctl/model/derive"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/observe"
	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/tuning/sim/engine"
	"github.com/fabricctl/fabricctl/tuning/sim/fluid"
)

// Bottleneck is the queue of a switch that a workload overloads most, as equations have it.
type Bottleneck struct {
	Place
	Speed    units.BitRate  `json:"speed"`    // of the port
	Load     float64        `json:"load"`     // what those who send there could send at once, in speeds of the port
	Flows    int            `json:"flows"`    // that meet there, on average where several ways lead
	Feedback units.Duration `json:"feedback"` // from a mark until its sender reacts, of the farthest of them
	Pause    units.Bytes    `json:"pause"`    // length at which one of those that it is fed by is paused; 0 = none ever
	Alike    int            `json:"alike"`    // other queues that are as much overloaded
	Others   int            `json:"others"`   // that are, but less
	Taken    []string       `json:"taken"`    // what the equations have of the fabric, and what they leave out, in sentences

	model fluid.Model
	port  int // of the engine
}

// alike is by how much less feedback times have to differ for flows to move as one, with their mean.
const alike = units.Microsecond

// overload is by how much a queue has to be overloaded to count: sums are of fractions.
const overload = 1.001

// stream is flows that are alike: between the same NICs, with the same code point.
type stream struct {
	from, to int
	mark     int8
	flows    int
	frame    int32   // without FCS, preamble and gap
	share    float64 // of each flow, of the line of its NIC
}

// streams are the flows that a model of rates can stand for: those that begin with the workload, are limited by nothing but the fabric, and go on
// for long. The others are named.
func (s *Setup) streams() (all []stream, left []string) {
	type key struct {
		from, to int
		mark     int8
	}
	at, sends, without := map[key]int{}, map[int]int{}, map[int]bool{}
	ends := false
	for i := range s.flows {
		f, c := &s.flows[i], &s.Config.Flows[i]
		part := &s.workload.Parts[f.part]
		if drawn(part, c) {
			without[f.part] = true
			continue
		}
		if c.After != engine.None || part.Every > 0 && c.Start > toTime(part.Start+part.Spread) {
			continue // it comes when others are over
		}
		k := key{f.from, f.to, c.Mark}
		if _, known := at[k]; !known {
			at[k] = len(all)
			all = append(all, stream{from: f.from, to: f.to, mark: c.Mark, frame: c.Payload + s.Config.Transport.Header})
		}
		all[at[k]].flows++
		sends[f.from]++
		ends = ends || c.Bytes > 0
	}
	if ends {
		left = append(left, "flows that end are taken to go on")
	}
	for i := range all {
		all[i].share = 1 / float64(sends[all[i].from])
	}
	for i := range s.workload.Parts {
		if without[i] {
			left = append(left, fmt.Sprintf("%s is left out: its flows come and go, or wait for answers", s.workload.Label(i)))
		}
	}
	return all, left
}

// drawn reports whether a flow is one of those that come and go, or wait for answers.
func drawn(p *observe.Part, c *engine.Flow) bool {
	return p.Latency || p.Kind == observe.Probe || p.Kind == observe.Background || p.Kind == observe.Trace || c.Depth == 1
}

// hop is a part of a stream that comes in by a port of a switch and goes out by another.
type hop struct {
	in, out, queue int
	part           float64
	hops           int // from the sender
}

// walk visits the hops of a stream behind a port that it comes in by. Several ways share it evenly.
func (s *Setup) walk(x *stream, in int, part float64, hops int, visit func(hop)) {
	sw := s.Config.Ports[in].Switch
	if sw == engine.None || hops > len(s.switches)+1 {
		return
	}
	next := s.ways.nexts(sw, x.to)
	for _, out := range next {
		h := hop{in: in, out: int(out), queue: int(s.Config.Ports[in].Classify[x.mark].Queue), part: part / float64(len(next)), hops: hops + 1}
		visit(h)
		s.walk(x, s.Config.Ports[out].Peer, h.part, hops+1, visit)
	}
}

// enters is the port of the switch that a stream comes in by first.
func (s *Setup) enters(x *stream) int { return s.Config.Ports[s.Config.NICs[x.from].Port].Peer }

// line is the speed of a stream's NIC.
func (s *Setup) line(x *stream) float64 {
	return float64(s.Config.Ports[s.Config.NICs[x.from].Port].Rate)
}

// bottleneck finds the queue that the workload overloads most, and makes a fluid model of it. Without one, why says what there is not.
func (s *Setup) bottleneck() (b *Bottleneck, why string) {
	all, left := s.streams()
	type spot struct{ port, queue int }
	load, flows := map[spot]float64{}, map[spot]float64{}
	for i := range all {
		x := &all[i]
		s.walk(x, s.enters(x), 1, 0, func(h hop) {
			at := spot{h.out, h.queue}
			flows[at] += float64(x.flows) * h.part
			load[at] += float64(x.flows) * h.part * x.share * s.line(x) / float64(s.Config.Ports[h.out].Rate)
		})
	}
	best := spot{engine.None, 0}
	before := func(a, b spot) bool { // by load, and then by flows; what is nearly the same is the same
		if d := load[a] - load[b]; math.Abs(d) > 1e-6 {
			return d > 0
		}
		return flows[a] > flows[b]+1e-6
	}
	over := 0
	b = &Bottleneck{Taken: left}
	for port := range s.ports {
		for queue := range engine.NumPriorities {
			at := spot{port, queue}
			if load[at] <= overload {
				continue
			}
			if over++; best.port == engine.None || before(at, best) {
				best = at
			}
		}
	}
	if over == 0 {
		return nil, "no queue gets more than it can send, as far as rates tell: what congestion there is comes from packets, bursts and ways that collide"
	}
	for at, l := range load {
		if at != best && math.Abs(l-load[best]) <= 1e-6 && s.Config.Ports[at.port].Rate == s.Config.Ports[best.port].Rate {
			b.Alike++
		}
	}
	b.Others = over - 1 - b.Alike
	b.Place, b.port, b.Load = s.place(best.port, best.queue), best.port, load[best]
	b.Speed = units.BitRate(s.Config.Ports[best.port].Rate)
	return b, s.equations(b, all)
}

// fed is what feeds a queue, as it is summed up.
type fed struct {
	flows  []fluid.Flow
	counts []float64
	react  map[engine.Reaction]float64
	order  []engine.Reaction
	gap    map[engine.Reaction]units.Duration
	frame  map[engine.Reaction]int32
	by     map[int]float64 // bits per second that come in by each port, at most
	deaf   float64         // flows without congestion control
	hyper  units.BitRate   // step of the hyper increase
}

// equations makes the fluid model of a bottleneck; a sentence when there is none.
func (s *Setup) equations(b *Bottleneck, all []stream) string {
	f := fed{react: map[engine.Reaction]float64{}, gap: map[engine.Reaction]units.Duration{}, frame: map[engine.Reaction]int32{}, by: map[int]float64{}}
	for i := range all {
		x := &all[i]
		s.walk(x, s.enters(x), 1, 0, func(h hop) {
			if h.out == b.port && h.queue == b.Queue {
				s.feed(&f, b, x, h)
			}
		})
	}
	if len(f.order) == 0 {
		return fmt.Sprintf("what feeds %s has no congestion control that hears of marks", b.Place)
	}
	most := f.order[0]
	for _, r := range f.order {
		if f.react[r] > f.react[most] {
			most = r
		}
	}
	s.model(b, &f, most)
	b.Pause = s.pauseAt(b, f.by)
	b.model.Links[0].Pause = b.Pause
	s.taken(b, &f)
	return ""
}

// feed adds the part of a stream that feeds the bottleneck.
func (s *Setup) feed(f *fed, b *Bottleneck, x *stream, h hop) {
	n := float64(x.flows) * h.part
	f.by[h.in] += n * x.share * s.line(x)
	r := s.Config.NICs[x.from].React
	if !r.On || s.Config.NotECT&(1<<x.mark) != 0 {
		f.deaf += n
		return
	}
	if _, known := f.react[r]; !known {
		f.order = append(f.order, r)
		f.gap[r], f.frame[r] = toDuration(s.Config.NICs[x.to].CNPGap), x.frame
	}
	f.react[r] += n
	line := units.BitRate(x.share * s.line(x))
	feedback := s.feedback(x, h.hops)
	for i := range f.flows {
		if y := &f.flows[i]; y.Line == line && max(y.Feedback-feedback, feedback-y.Feedback) < alike {
			y.Feedback += units.Duration(float64(feedback-y.Feedback) * n / (f.counts[i] + n))
			f.counts[i] += n
			return
		}
	}
	f.flows = append(f.flows, fluid.Flow{Path: []int{0}, Line: line, Feedback: feedback})
	f.counts = append(f.counts, n)
}

// feedback is the time from the mark of a packet, which is made as it leaves a port that is so many hops from its sender, until the sender hears
// of it, past empty queues.
func (s *Setup) feedback(x *stream, hops int) units.Duration {
	t := s.Config.NICs[x.to].CNPWait
	pass := func(path []int, frame int32) {
		for _, p := range path {
			c := &s.Config.Ports[p]
			t += c.Delay + engine.Time(float64(frame+s.Config.Overhead)*8*float64(engine.Second)/float64(c.Rate))
		}
	}
	path := s.way(x.from, x.to) // all ways are as long
	pass(path[min(hops, len(path)):], x.frame)
	pass(s.way(x.to, x.from), s.Config.Transport.CNPSize)
	return toDuration(t)
}

// model fills in the fluid model. Rates of the equations are of frames: a link is as much slower as preamble, gap and FCS make it. A timer that cuts hears of
// a mark half of its period late.
func (s *Setup) model(b *Bottleneck, f *fed, r engine.Reaction) {
	frame := f.frame[r]
	net := func(bits units.BitRate) units.BitRate {
		return units.BitRate(float64(bits) * float64(frame) / float64(frame+s.Config.Overhead))
	}
	f.hyper = units.BitRate(r.HAI)
	tau, late := f.gap[r], units.Duration(0)
	if !r.CutOnCNP {
		tau = toDuration(r.CutTimer)
		late = tau / 2
	}
	b.model = fluid.Model{
		DCQCN: derive.DCQCN{
			CNPInterval: tau, AlphaTimer: toDuration(r.AlphaTimer), RateTimer: toDuration(r.RateTimer), ByteCounter: units.Bytes(r.ByteCounter),
			Recovery: max(r.FastRecovery, 1), Increase: units.BitRate(r.AI), Packet: units.Bytes(frame),
		},
		Spaced: r.CutOnCNP, Gain: r.G, MinRate: units.BitRate(r.MinRate),
		Links: []fluid.Link{{Speed: net(b.Speed)}},
	}
	whole := 0.0
	for _, n := range f.counts {
		whole += n
	}
	for i, x := range f.flows {
		if x.Count = int(math.Round(f.counts[i])); x.Count == 0 && i+1 == len(f.flows) && b.Flows == 0 {
			x.Count = max(int(math.Round(whole)), 1)
		}
		if x.Count == 0 {
			continue
		}
		b.Feedback = max(b.Feedback, x.Feedback)
		x.Line, x.Feedback = net(x.Line), x.Feedback+late
		b.Flows += x.Count
		b.model.Flows = append(b.model.Flows, x)
	}
}

// even is the model of a ramp with flows that begin at even rates, at whose beginning there is no burst.
func (b *Bottleneck) even(r derive.Ramp) fluid.Model {
	m := b.model.With(r)
	m.Flows = slices.Clone(m.Flows)
	rest, ok := fluid.RestOf(m)
	for i := range m.Flows {
		f := &m.Flows[i]
		f.Rate = min(f.Line, m.Links[0].Speed/units.BitRate(b.Flows))
		if ok {
			f.Alpha, f.Target = rest.Alpha, min(max(rest.Target, f.Rate), f.Line)
		}
	}
	return m
}

// burst is what becomes of a ramp's queue when all begin at once at their line rates.
func (b *Bottleneck) burst(r derive.Ramp) (fluid.LinkState, error) {
	s, err := fluid.Solve(b.model.With(r), fluid.Options{Span: burstSpan})
	if err != nil {
		return fluid.LinkState{}, err
	}
	return s.Links[0], nil
}

// pauseAt is how long the queue is when the port that feeds it most is paused, if nothing else is in the switch: its group holds its part f of the queue Q, and
// is paused at reserve + alpha (pool - Q + reserves of all that feed it), or at reserve + static.
func (s *Setup) pauseAt(b *Bottleneck, by map[int]float64) units.Bytes {
	in, sum, largest := engine.None, 0.0, 0.0
	for p := range s.ports { // in order
		sum += by[p]
		if by[p] > largest {
			in, largest = p, by[p]
		}
	}
	if in == engine.None {
		return 0
	}
	group := s.groupOfQueue(in, b.Queue)
	if group == nil || !group.Lossless {
		return 0
	}
	part, reserve := largest/sum, float64(group.Reserved)
	if group.Static > 0 {
		return units.Bytes((reserve + float64(group.Static)) / part)
	}
	alpha := float64(group.Alpha) / (1 << 16)
	pool := float64(s.Config.Switches[s.Config.Ports[in].Switch].Pools[group.Pool].Size)
	return units.Bytes((reserve + alpha*(pool+float64(len(by))*reserve)) / (part + alpha))
}

// groupOfQueue is the priority group that packets for a queue are counted in where they come in.
func (s *Setup) groupOfQueue(in, queue int) *engine.Group {
	c := &s.Config.Ports[in]
	for m := range s.marks {
		if k := c.Classify[m]; int(k.Queue) == queue && k.Group >= 0 {
			return &c.Groups[k.Group]
		}
	}
	return nil
}

// taken says what the equations have of the fabric, and what they leave out.
func (s *Setup) taken(b *Bottleneck, f *fed) {
	d, m := b.model.DCQCN, &b.model
	how := "each notification cuts, at most one in " + lasting(d.CNPInterval)
	if !m.Spaced {
		how = "a timer cuts each " + lasting(d.CNPInterval) + " if a notification came"
	}
	b.Taken = append([]string{
		fmt.Sprintf("DCQCN: %s, up each %s by steps of %s, alpha of 1/%.0f each %s", how, lasting(d.RateTimer), d.Increase, 1/m.Gain, lasting(d.AlphaTimer)),
		"flows of several ways are spread evenly over them; queue and swing are of flows that begin at even rates, and how they get there is for packets to show",
	}, b.Taken...)
	if f.hyper > m.DCQCN.Increase {
		b.Taken = append(b.Taken, fmt.Sprintf("the faster steps of %s after a long time without a notification are left out", f.hyper))
	}
	if len(f.order) > 1 {
		b.Taken = append(b.Taken, fmt.Sprintf("all senders are as most are: there are %d kinds", len(f.order)))
	}
	if f.deaf > 0 {
		b.Taken = append(b.Taken, fmt.Sprintf("%s that no mark slows down %s left out", diag.Count(max(int(math.Round(f.deaf)), 1), "flow"), map[bool]string{true: "is", false: "are"}[f.deaf < 1.5]))
	}
	if len(s.options.Faults) > 0 {
		b.Taken = append(b.Taken, "faults of NICs are left out")
	}
	if b.Others+b.Alike > 0 {
		b.Taken = append(b.Taken, fmt.Sprintf("one queue stands for all: besides it %s overloaded as much, and %s less", queues(b.Alike), queues(b.Others)))
	}
}

func queues(n int) string {
	switch n {
	case 0:
		return "none is"
	case 1:
		return "1 is"
	}
	return fmt.Sprintf("%d are", n)
}

// queueAt is the result of a queue, or of the fullest one of a class in a switch where no place is given; the zero Queue held nothing.
func (r *Result) queueAt(at *Bottleneck, class string) Queue {
	for i := range r.Queues {
		q := &r.Queues[i]
		if at != nil && q.Device == at.Device && q.Port == at.Port && q.Queue == at.Queue || at == nil && !q.Host && q.Class == class {
			return *q
		}
	}
	return Queue{}
}
