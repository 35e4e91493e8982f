package engine

// Receivers that are slow, and NICs that pause without a reason.

// slow is what a NIC holds that has not been taken in.
type slow struct {
	rings    [NumPriorities]ring
	held     [NumPriorities]int64
	total    int64
	max      int64
	pausing  uint8 // priorities that it pauses
	storming uint8 // because of a storm, in which it takes nothing in of them
	draining bool
	turn     uint8
}

// buildSlow makes the state of a NIC that is slow, or will storm.
func (s *run) buildSlow(n *nic, c *NIC) {
	if c.Drain == 0 && len(c.Storms) == 0 {
		return
	}
	n.slow = &slow{}
	for i := range c.Storms {
		s.chore(n.port, c.Storms[i].From, choreStorm, uint8(2*i))
		if c.Storms[i].To > 0 {
			s.chore(n.port, c.Storms[i].To, choreStorm, uint8(2*i+1))
		}
	}
}

// priorityOf is the priority group of a frame at the port that it reaches; what none takes counts as of priority 0.
func (p *port) priorityOf(k *packet) uint8 {
	if c := p.class[k.mark()]; c != noClass {
		return c >> 4
	}
	return 0
}

// hold keeps a frame that has reached a slow NIC until its turn comes.
func (s *run) hold(pi int32, n *nic, k packet) {
	c, w, p := &s.cfg.NICs[s.ports[pi].owner], n.slow, &s.ports[pi]
	pri := p.priorityOf(&k)
	size := int64(k.size)
	if c.Drain == 0 && w.storming>>pri&1 == 0 && w.held[pri] == 0 {
		s.receive(pi, &k)
		return
	}
	if w.held[pri]+size > c.Buffer {
		s.cold[pi].refused[pri]++
		s.drop(pi, DropNIC, &k)
		return
	}
	w.rings[pri].push(k)
	w.held[pri] += size
	w.total += size
	w.max = max(w.max, w.total)
	if c.Xoff > 0 && w.held[pri] > c.Xoff && s.cfg.Ports[pi].Groups[pri].Lossless {
		s.pauseNIC(pi, w, pri)
	}
	s.drain(pi, n)
}

// pauseNIC has a NIC pause its switch.
func (s *run) pauseNIC(pi int32, w *slow, pri uint8) {
	if w.pausing>>pri&1 == 0 {
		w.pausing |= 1 << pri
		s.queueFrame(&s.ports[pi], pi, pri|frameOn)
	}
}

// relieve ends the pause of a priority that has no reason any more.
func (s *run) relieve(pi int32, c *NIC, w *slow, pri uint8) {
	if w.pausing>>pri&1 != 0 && w.storming>>pri&1 == 0 && w.held[pri] <= c.Xon {
		w.pausing &^= 1 << pri
		s.queueFrame(&s.ports[pi], pi, pri)
	}
}

// drain begins to take in the next frame, of one priority after the other.
func (s *run) drain(pi int32, n *nic) {
	w := n.slow
	if w.draining {
		return
	}
	for range NumPriorities {
		w.turn = (w.turn + 1) & 7
		if w.held[w.turn] == 0 || w.storming>>w.turn&1 != 0 {
			continue
		}
		d := Time(0)
		if rate := s.cfg.NICs[s.ports[pi].owner].Drain; rate > 0 {
			d = Time(w.rings[w.turn].first().size) * 8 * Second / Time(rate)
		}
		w.draining = true
		s.chore(pi, s.now+d, choreDrain, w.turn)
		return
	}
}

// drained takes in the frame whose time is over.
func (s *run) drained(pi int32, pri uint8) {
	n := &s.nics[s.ports[pi].owner]
	w := n.slow
	k := *w.rings[pri].first()
	w.rings[pri].head++
	w.held[pri] -= int64(k.size)
	w.total -= int64(k.size)
	w.draining = false
	s.relieve(pi, &s.cfg.NICs[s.ports[pi].owner], w, pri)
	s.receive(pi, &k)
	s.drain(pi, n)
}

// storm begins (even) or ends one of a NIC's storms.
func (s *run) storm(pi int32, step int) {
	n := &s.nics[s.ports[pi].owner]
	c, w := &s.cfg.NICs[s.ports[pi].owner], n.slow
	which := c.Storms[step/2].Priorities
	if step&1 == 0 {
		w.storming |= which
	} else {
		w.storming &^= which
		s.progressed() // what waited for the end of the storm was no livelock
	}
	for pri := range uint8(NumPriorities) {
		switch {
		case which>>pri&1 == 0:
		case step&1 == 0:
			s.pauseNIC(pi, w, pri)
		default:
			s.relieve(pi, c, w, pri)
		}
	}
	s.drain(pi, n)
}
