package fluid

import "math"

// flow is a Flow while it is solved.
type flow struct {
	count    float64
	path     []int
	line     float64
	begins   float64
	feedback float64 // 0 = none
	sender
	was     sender     // at the start of a step
	slope   sender     // of one stage of a step
	sum     sender     // of all of them
	through float64    // rate of each sender behind the links that a stage has dealt with
	past    []response // what it would feel without the feedback time, at each step: a ring
}

// queue is a Link while it is solved.
type queue struct {
	ramp
	speed  float64
	length float64
	was    float64
	slope  float64
	sum    float64
	served float64 // part of the speed that is in use
	flows  []int   // that cross it
}

// solver is a model at one time, in seconds and packets.
type solver struct {
	params
	least  float64 // rate
	flows  []flow
	queues []queue
	h      float64
	n      int // steps done
}

func newSolver(m Model, h float64) *solver {
	s := &solver{
		params: paramsOf(m), least: max(packets(m.MinRate, m.DCQCN.Packet), 1), h: h, // a rate of nothing would hear of nothing
		queues: make([]queue, len(m.Links)), flows: make([]flow, len(m.Flows)),
	}
	for i, l := range m.Links {
		s.queues[i] = queue{
			ramp: rampOf(l.Ramp, m.DCQCN.Packet), speed: packets(l.Speed, m.DCQCN.Packet), length: float64(l.Queue) / float64(m.DCQCN.Packet),
		}
	}
	for i, f := range m.Flows {
		for _, l := range f.Path {
			s.queues[l].flows = append(s.queues[l].flows, i)
		}
		s.flows[i] = s.newFlow(m, f)
	}
	return s
}

func (s *solver) newFlow(m Model, f Flow) flow {
	x := flow{count: float64(f.Count), path: f.Path, line: packets(f.Line, m.DCQCN.Packet), begins: seconds(f.Start)}
	x.sender = sender{alpha: f.Alpha, target: packets(f.Target, m.DCQCN.Packet), rate: packets(f.Rate, m.DCQCN.Packet)}
	if f.Rate == 0 {
		x.rate = x.line
	}
	if f.Target == 0 {
		x.target = x.rate
	}
	if f.Alpha == 0 {
		x.alpha = 1
	}
	if d := seconds(f.Feedback); d >= leastStep {
		x.feedback = d
		x.past = make([]response, int(math.Ceil(d/s.h))+2)
		for j := range x.past { // the queues stood there before
			x.past[j] = s.at(s.marked(f.Path), x.rate)
		}
	}
	return x
}

// marked is the probability that a packet is marked on its path.
func (s *solver) marked(path []int) float64 {
	clean := 1.0
	for _, l := range path {
		clean *= 1 - s.queues[l].at(s.queues[l].length)
	}
	return 1 - clean
}

// felt is the response to what comes back to a flow a part of a step from the step's start.
func (s *solver) felt(f *flow, part float64) response {
	if f.past == nil {
		return s.at(s.marked(f.path), f.rate)
	}
	back := max(f.feedback/s.h-part, 0) // in steps
	i := int(back)
	w := back - float64(i)
	a, b := f.at(s.n-i), f.at(s.n-i-1)
	return response{
		cut: a.cut + w*(b.cut-a.cut), lose: a.lose + w*(b.lose-a.lose),
		half: a.half + w*(b.half-a.half), add: a.add + w*(b.add-a.add),
		up: a.up + w*(b.up-a.up), down: a.down + w*(b.down-a.down),
	}
}

// at is the response of step n, one of the last few or of those before the first.
func (f *flow) at(n int) response { return f.past[(n+len(f.past))%len(f.past)] }

// step goes on by h: Runge-Kutta of fourth order, where what a flow feels is linear between steps.
func (s *solver) step() {
	for i := range s.flows {
		f := &s.flows[i]
		f.was, f.sum = f.sender, sender{}
		if f.past != nil {
			f.past[s.n%len(f.past)] = s.params.at(s.marked(f.path), f.rate)
		}
	}
	for l := range s.queues {
		q := &s.queues[l]
		q.was, q.sum = q.length, 0
	}
	s.stage(0, 1./6)
	s.move(0.5)
	s.stage(0.5, 1./3)
	s.move(0.5)
	s.stage(0.5, 1./3)
	s.move(1)
	s.stage(1, 1./6)
	for i := range s.flows {
		s.flows[i].slope = s.flows[i].sum
	}
	for l := range s.queues {
		s.queues[l].slope = s.queues[l].sum
	}
	s.move(1)
	s.n++
}

// move sets all where their slopes lead in a part of a step, within their limits.
func (s *solver) move(part float64) {
	x := part * s.h
	for i := range s.flows {
		f := &s.flows[i]
		f.alpha = min(max(f.was.alpha+x*f.slope.alpha, 0), 1)
		f.target = min(max(f.was.target+x*f.slope.target, s.least), f.line)
		f.rate = min(max(f.was.rate+x*f.slope.rate, s.least), f.line)
	}
	for l := range s.queues {
		q := &s.queues[l]
		q.length = max(q.was+x*q.slope, 0)
	}
}

// stage finds all slopes a part of a step from its start, and adds them to the sums with a weight. A queue passes on what
// comes in, in the proportions in which it comes in just then; how long it stands in between is left out.
func (s *solver) stage(part, weight float64) {
	now := float64(s.n) * s.h
	for i := range s.flows {
		f := &s.flows[i]
		f.through, f.slope = 0, sender{}
		if now < f.begins {
			continue
		}
		f.through = f.rate
		f.slope = s.slope(f.sender, s.felt(f, part))
		f.sum.alpha += weight * f.slope.alpha
		f.sum.target += weight * f.slope.target
		f.sum.rate += weight * f.slope.rate
	}
	for l := range s.queues {
		q := &s.queues[l]
		in := 0.0
		for _, i := range q.flows {
			in += s.flows[i].count * s.flows[i].through
		}
		q.slope = in - q.speed // eq. 4
		q.sum += weight * q.slope
		q.served = in / q.speed
		if in > 0 && (q.length > 0 || in > q.speed) {
			q.served = 1
			for _, i := range q.flows {
				s.flows[i].through *= q.speed / in
			}
		}
	}
}
