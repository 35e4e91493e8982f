package engine

import "context"

// A run is the state of a fabric. Its events live in slots of the wheel:
//
//	[0, ports)                 the port has sent its frame, or a NIC may send the next
//	[wires, wires+ports)       the first frame on the port's wire arrives
//	[chores, chores+ports)     the earliest of the port's chores is due
//	[timers, timers+flows)     the flow starts, or its retransmission timer is checked
//	[notices, notices+flows)   a notification of the flow is sent; only where NICs wait with them
//	[clock, clock+numClocks)   what is of the whole run
type run struct {
	cfg      *Config
	wheel    wheel
	now      Time
	seq      uint64 // last number that was given to an event, plus one
	cur      uint64 // number of the event that is being dealt with
	overhead Time   // bytes
	compat   bool

	wires, chores, timers, notices, clock int32

	ports    []port
	cold     []portCold
	queues   []queue // at place
	groups   []group // at place
	switches []swtch
	nics     []nic
	snd      []sender
	rcv      []receiver
	behind   []times  // of notifications that wait behind another one, by flow; nil when none ever waits
	ways     []uint16 // ports by which packets leave switches, for each way one after the other
	after    []int32  // flows that start when another has been received: first and next, by flow

	// What comes after the next reading of the state must not be done before it: see (*run).early.
	horizon Time
	sized   bool // there are flows of a known size
	left    int  // of them that have not ended
	stop    Time
	limit   Time // where something else than the next event is due: the end, or a look at whether anything moves

	// With Compat alone: when the event that is dealt with was asked for, and what is drawn.
	since Time
	drawn *streams

	events, packets, hash uint64
	resetAt               Time // since when statistics count
	series                series
	ledger                *ledger
	err                   error
	ended                 bool // before its time, because of end
	end                   End
	stuck                 []Stuck
	watch                 watch
}

// Slots of the run itself, counted from run.clock.
const (
	clockMeasure = iota
	clockSample
	numClocks
)

// checkEvery is the number of events after which the context is looked at.
const checkEvery = 4096

// Run simulates a fabric until its traffic has ended, or until Config.Stop. The error is of ConfigErrors for what makes no
// sense, or an AuditError when a byte is missing. When the context ends first, the Result is of the time until then, and
// comes with the context's error.
func Run(ctx context.Context, cfg *Config) (*Result, error) {
	if err := Validate(cfg); err != nil {
		return nil, err
	}
	s, err := newRun(cfg)
	if err != nil {
		return nil, err
	}
	if s.loop(ctx); s.err != nil && s.end != EndInterrupted {
		return nil, s.err
	}
	return s.result(), s.err
}

// at puts an event into a slot, after all that are there for the same time.
func (s *run) at(id int32, t Time) {
	s.wheel.set(id, t, s.seq)
	s.seq++
}

// loop deals with one event after the other until the run ends.
func (s *run) loop(ctx context.Context) {
	for s.left > 0 || !s.sized || s.cfg.ToStop {
		id := s.wheel.take()
		if id < 0 {
			s.starved()
			return
		}
		n := &s.wheel.slots[id]
		if n.at > s.limit && s.pass(n.at) {
			return
		}
		s.now, s.cur = n.at, n.seq
		s.deal(id)
		if s.events++; s.events%checkEvery == 0 {
			s.breathe(ctx)
		}
		if s.ledger != nil {
			s.ledger.check(s)
		}
		if s.ended || s.err != nil {
			return
		}
	}
	s.end = EndDone
}

// breathe looks at what is going on outside.
func (s *run) breathe(ctx context.Context) {
	if s.cfg.Progress != nil {
		s.cfg.Progress(s.now)
	}
	if err := ctx.Err(); err != nil {
		s.err, s.end = err, EndInterrupted
	}
}

// deal deals with the event of a slot.
func (s *run) deal(id int32) {
	s.since = s.now
	switch {
	case id < s.wires:
		p := &s.ports[id]
		if p.flags&isNIC != 0 {
			n := &s.nics[p.owner]
			n.wakeAt = never
			s.since = n.asked
			s.offer(p, id)
			return
		}
		p.flags &^= waking
		s.next(p, id)
	case id < s.chores:
		s.arrival(id - s.wires)
	case id < s.timers:
		s.doChore(id - s.chores)
	case id < s.notices:
		s.timer(uint32(id - s.timers))
	case id < s.clock:
		fi := uint32(id - s.notices)
		r := &s.rcv[fi]
		s.waited(fi, r, &s.nics[r.nic])
	default:
		s.tick(id - s.clock)
	}
}

// startClocks puts the first events of the run into their slots.
func (s *run) startClocks() {
	for i := range s.cfg.Flows {
		if f := &s.cfg.Flows[i]; f.After == None {
			s.at(s.timers+int32(i), f.Start)
		}
	}
	if s.cfg.Measure > 0 {
		s.at(s.clock+clockMeasure, s.cfg.Measure)
	}
	if s.cfg.Sample > 0 {
		s.at(s.clock+clockSample, s.cfg.Sample)
	}
	s.lookAhead()
}

// tick deals with an event of the whole run.
func (s *run) tick(what int32) {
	switch what {
	case clockMeasure:
		s.measure()
	case clockSample:
		s.sample()
		if s.wheel.len() > 0 || s.compat {
			s.at(s.clock+clockSample, s.now+s.cfg.Sample)
		}
	}
	s.lookAhead()
}

// lookAhead finds the next time at which the state of flows will be read.
func (s *run) lookAhead() {
	s.horizon = s.stop
	for _, id := range []int32{clockMeasure, clockSample} {
		if id += s.clock; s.wheel.holds(id) {
			s.horizon = min(s.horizon, s.wheel.slots[id].at)
		}
	}
}

// chain notes which flows start when others have been received.
func (s *run) chain() {
	for i := range s.cfg.Flows {
		if f := &s.cfg.Flows[i]; f.After != None {
			if s.after == nil {
				s.after = make([]int32, 2*len(s.cfg.Flows))
				for j := range s.after {
					s.after[j] = None
				}
			}
			s.after[2*i+1], s.after[2*f.After] = s.after[2*f.After], int32(i)
		}
	}
}

// whole starts what waits for a flow that has been received to its last byte.
func (s *run) whole(fi uint32) {
	if s.after == nil {
		return
	}
	for i := s.after[2*fi]; i != None; i = s.after[2*i+1] {
		s.at(s.timers+i, s.now+s.cfg.Flows[i].Start)
	}
}
