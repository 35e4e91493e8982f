package engine

import "slices"

// watchEvery is the time between two looks at whether anything moves.
const watchEvery = 250 * Microsecond

// restless is how many data frames that come to nothing are enough to say that no more of them will.
const restless = 10_000

// watch is what the last looks saw.
type watch struct {
	patience Time   // for which nothing may be delivered; and after which once more, data frames that are sent are counted
	brisk    Time   // the same, without waiting for timers, where frames are sent all the time and none arrives
	since    int64  // data frames sent until the first look without progress; -1 = there was none
	at       Time   // of the last progress
	packets  uint64 // delivered until then
	sentAt   Time   // when patience was over once
	sent     int64  // data frames until then
}

// patience is enough for a few frames of the slowest sender and receiver there is, and with timers for a few retransmissions.
func (c *Config) patience(timers bool) Time {
	slow, frame := Time(0), c.longestFrame()
	for i := range c.NICs {
		n := &c.NICs[i]
		for _, rate := range []int64{n.React.MinRate, n.Drain} {
			if rate > 0 {
				slow = max(slow, 8*frame*Second/Time(rate))
			}
		}
	}
	t := 5*Millisecond + 4*min(slow, Second) + 2*c.horizon()
	if timers {
		t += 2 * c.Transport.RTO
	}
	return t
}

// pass deals with the limit, which lies before the next event, and reports whether the run ends there.
func (s *run) pass(next Time) bool {
	if next > s.stop {
		s.now = max(s.stop, s.cfg.Stop)
		return true
	}
	s.look()
	s.limit = min(s.stop, next+watchEvery)
	return s.ended
}

// progressed notes that there is a reason to go on.
func (s *run) progressed() { s.watch.at, s.watch.sentAt, s.watch.since = s.now, 0, -1 }

// dataSent is how many data frames were sent, all flows together.
func (s *run) dataSent() (n int64) {
	for i := range s.snd {
		n += s.snd[i].counts.sent
	}
	return n
}

// look ends a run in which ports wait for each other, or in which nothing is delivered any more. With Config.Compat a run
// that hangs goes on until it is stopped, as the reference's does.
func (s *run) look() {
	if s.compat && s.cfg.Stop > 0 {
		return
	}
	if circle := s.deadlock(false); circle != nil {
		s.ended, s.end, s.stuck = true, EndDeadlock, circle
		return
	}
	w := &s.watch
	if s.packets != w.packets {
		w.packets = s.packets
		s.progressed()
		return
	}
	sent := s.dataSent()
	if w.since < 0 || sent < w.since { // Config.Measure counts anew
		w.since = sent
	}
	lively := s.now-w.at >= w.brisk && sent-w.since >= restless
	if !lively && s.now-max(w.at, w.sentAt) < w.patience {
		return
	}
	if s.expects() {
		s.progressed()
		return
	}
	switch {
	case lively:
		s.ended, s.end, s.stuck = true, EndLivelock, s.waiting()
	case w.sentAt == 0:
		w.sentAt, w.sent = s.now, sent
	case sent != w.sent:
		s.ended, s.end, s.stuck = true, EndLivelock, s.waiting()
	default:
		s.starved()
	}
}

// expects reports whether a flow will start, or a storm end, at a time that is set.
func (s *run) expects() bool {
	for i := range s.snd {
		if q := &s.snd[i]; !q.started && s.wheel.holds(s.timers+int32(i)) {
			return true
		}
	}
	for i := range s.cfg.NICs {
		for _, st := range s.cfg.NICs[i].Storms {
			if st.From <= s.now && s.now < st.To {
				return true
			}
		}
	}
	return false
}

// starved ends a run in which nothing will happen any more.
func (s *run) starved() {
	s.ended, s.end, s.stuck = true, EndIdle, s.waiting()
	if circle := s.deadlock(false); circle != nil {
		s.end, s.stuck = EndDeadlock, circle
	}
	if s.compat && s.cfg.Stop > 0 {
		s.now = s.cfg.Stop
	}
}

// waiting lists the queues of switches that hold something and are stopped.
func (s *run) waiting() []Stuck {
	var out []Stuck
	for pi := range s.ports {
		p := &s.ports[pi]
		if p.flags&isNIC != 0 {
			continue
		}
		for qi := range NumPriorities {
			if p.ready&p.halted>>qi&1 != 0 {
				out = append(out, s.stuckAt(s.place(int32(pi), uint8(qi))))
			}
		}
	}
	return out
}

// stuckAt is what is to be said of a queue that is stopped.
func (s *run) stuckAt(qi int32) Stuck {
	pi := s.portAt(qi)
	return Stuck{Port: int(pi), Queue: int(s.priorityAt(qi)), Bytes: s.queues[qi].bytes, PausedBy: int(s.ports[pi].peer)}
}

// deadlock finds queues that will never send again, whatever else happens, and returns a circle of them. It starts from all
// queues that are stopped and takes out, as long as there are any, those that will go on when everything has left that can:
// those that a NIC stops, that a watchdog will free, or that a group stops of which too little will remain. What is left when
// there are no more waits for itself. With watched, the queues that a watchdog will free, some time, are among them.
func (s *run) deadlock(watched bool) []Stuck {
	var set []int32
	for pi := range s.ports {
		if s.ports[pi].ready&s.ports[pi].halted == 0 {
			continue
		}
		for qi := range uint8(NumPriorities) {
			if id := s.place(int32(pi), qi); s.mayHang(id, watched) {
				set = append(set, id)
			}
		}
	}
	for len(set) > 0 {
		remains := s.remains(set)
		n := len(set)
		set = slices.DeleteFunc(set, func(id int32) bool { return s.stoppedFor(id, remains) == None })
		if len(set) == n {
			return s.circle(set, remains)
		}
	}
	return nil
}

// mayHang reports whether a switch stops a queue that holds something, and no watchdog will free it, or that is not asked.
func (s *run) mayHang(id int32, watched bool) bool {
	pi := s.portAt(id)
	p := &s.ports[pi]
	bit := uint8(1) << s.priorityAt(id)
	if p.flags&isNIC != 0 || p.ready&p.halted&bit == 0 || s.ports[p.peer].flags&isNIC != 0 {
		return false
	}
	w := &s.cfg.Ports[pi].Watchdog
	return watched || w.Queues&bit == 0 || w.Action != WatchdogDrop && w.Action != WatchdogForward
}

// remains is what each group still holds when all queues but some are empty.
func (s *run) remains(set []int32) map[int32]int64 {
	m := map[int32]int64{}
	for _, id := range set {
		q := &s.queues[id]
		for i := q.head; i != q.tail; i++ {
			k := &q.buf[i&uint32(len(q.buf)-1)]
			m[s.place(int32(k.in), s.ports[k.in].class[k.mark()]>>4)] += int64(k.size)
		}
	}
	return m
}

// stoppedFor is the group that will never let a queue go on, or None.
func (s *run) stoppedFor(id int32, remains map[int32]int64) int32 {
	pi := s.portAt(id)
	peer := int32(s.ports[pi].peer)
	for pri, queues := range s.cfg.Ports[pi].Obeys {
		gi := s.place(peer, uint8(pri))
		if queues>>s.priorityAt(id)&1 == 0 || s.cold[pi].stopped>>pri&1 == 0 || !s.groups[gi].paused {
			continue
		}
		g := s.groups[gi] // as it would be
		w := s.switches[s.ports[peer].owner]
		w.pools = slices.Clone(w.pools)
		w.pools[g.pool].in = 0
		for other, bytes := range remains {
			if o := &s.groups[other]; s.ports[s.portAt(other)].owner == s.ports[peer].owner && o.pool == g.pool {
				w.pools[g.pool].in += max(min(bytes, o.held)-int64(o.reserved), 0)
			}
		}
		g.headroom = max(0, remains[gi]-g.held)
		g.held = min(g.held, remains[gi])
		if !emptied(&w, &g) {
			return gi
		}
	}
	return None
}

// circle walks from a queue that hangs to one that the group it waits for is held in, until it comes back.
func (s *run) circle(set []int32, remains map[int32]int64) []Stuck {
	at := set[0]
	var path []int32
	for !slices.Contains(path, at) {
		path = append(path, at)
		gi := s.stoppedFor(at, remains)
		at = set[slices.IndexFunc(set, func(id int32) bool { return s.remains([]int32{id})[gi] > 0 })]
	}
	var out []Stuck
	for _, id := range path[slices.Index(path, at):] {
		out = append(out, s.stuckAt(id))
	}
	return out
}
