package engine

import "math/bits"

// idle reports whether a port may start a frame now. Its last one ended earlier, or at this very time by an event that comes
// before the one that is being dealt with.
func (s *run) idle(p *port) bool {
	return p.busy < s.now || p.busy == s.now && p.sent <= s.cur
}

// serial is the time that a frame takes on a port's wire. A bit of 8e12 picoseconds and bytes below 2^16 do not overflow.
func (s *run) serial(p *port, size uint16) Time {
	n := Time(size) + s.overhead
	t := n * p.perB
	if p.perB == 0 {
		t = n * 8 * Second / Time(s.cfg.Ports[s.ports[p.peer].peer].Rate)
	}
	if s.compat {
		t = t / Nanosecond * Nanosecond
	}
	return t
}

// send puts a frame on the wire. It takes two numbers: that of the end of the frame, where whatever waits goes on, and that of
// its arrival.
func (s *run) send(p *port, pi int32, k packet) {
	end := s.now + s.serial(p, k.size)
	s.hash = (s.hash ^ uint64(s.now) ^ uint64(pi)<<48 ^ uint64(k.flow)<<32 ^ uint64(k.psn)<<8 ^ uint64(k.kind())) * 0x9e3779b97f4a7c15
	s.hash ^= s.hash >> 29
	p.busy, p.sent = end, s.seq
	s.seq += 2
	at := end + p.delay
	if s.ledger != nil {
		s.ledger.flying += int64(k.size)
	}
	if p.flags&toNIC != 0 && at < s.horizon && s.early(&k, at) {
		return
	}
	w := &p.wire
	if w.head == w.tail {
		s.wheel.set(s.wires+pi, at, p.sent+1)
	}
	w.push(k, at, p.sent+1)
}

// arrival deals with the first frame on a port's wire, which reaches the port's peer.
func (s *run) arrival(pi int32) {
	p := &s.ports[pi]
	w := &p.wire
	k := w.buf[w.head&uint32(len(w.buf)-1)].packet
	w.head++
	if s.compat {
		s.since = s.now - p.delay - s.serial(p, k.size)
	}
	if w.head != w.tail {
		f := &w.buf[w.head&uint32(len(w.buf)-1)]
		s.wheel.set(s.wires+pi, s.now+Time(f.later), s.cur+uint64(f.laterSeq))
	}
	if s.ledger != nil {
		s.ledger.flying -= int64(k.size)
	}
	to := int32(p.peer)
	switch {
	case k.head>>kindAt >= uint32(pause):
		s.pauseArrives(to, &k)
	case s.ports[to].flags&isNIC != 0:
		s.take(to, &k)
	default:
		s.forward(to, k)
	}
}

// kick makes a switch's port send when it is idle, or see to it that it will.
func (s *run) kick(p *port, pi int32) {
	if p.flags&waking != 0 {
		return
	}
	if s.idle(p) {
		s.next(p, pi)
		return
	}
	s.wake(p, pi)
}

// wake has the port look again when its frame has been sent, if there is something that it may send then.
func (s *run) wake(p *port, pi int32) {
	if (p.ready&^p.halted != 0 || p.flags&owing != 0) && p.flags&waking == 0 {
		p.flags |= waking
		s.wheel.set(pi, p.busy, p.sent)
	}
}

// next sends what is due at a switch's port, which is idle.
func (s *run) next(p *port, pi int32) {
	if p.flags&owing != 0 {
		s.sendFrame(p, pi)
		s.wake(p, pi)
		return
	}
	may := p.ready &^ p.halted
	if may == 0 {
		return
	}
	qi := s.choose(p, pi, may)
	s.depart(p, pi, qi)
	s.wake(p, pi)
}

// choose is the queue of a switch's port whose turn it is: the highest strict one, or else deficit round robin.
func (s *run) choose(p *port, pi int32, may uint8) uint8 {
	if strict := may & p.strict; strict != 0 {
		return uint8(bits.Len8(strict) - 1)
	}
	if may&(may-1) == 0 {
		return uint8(bits.Len8(may) - 1)
	}
	i := p.turn
	for {
		if may>>i&1 != 0 {
			q := &s.queues[s.place(pi, i)]
			if size := int32(q.first().size); q.deficit >= size {
				q.deficit -= size
				p.turn = i
				return i
			}
			q.deficit += q.weight
		}
		i = (i + 1) & 7
	}
}
