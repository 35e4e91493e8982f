package engine

// pauseGroup sends a pause for a group. The frame leaves before the packet that made it necessary is queued.
func (s *run) pauseGroup(p *port, pi, gi int32, g *group) {
	g.paused = true
	w := &s.switches[p.owner]
	g.listed = int32(len(w.paused))
	w.paused = append(w.paused, gi)
	s.queueFrame(p, pi, s.priorityAt(gi)|frameOn)
}

func (s *run) resumeGroup(pi, gi int32, g *group) {
	g.paused = false
	p := &s.ports[pi]
	w := &s.switches[p.owner]
	last := w.paused[len(w.paused)-1]
	w.paused[g.listed] = last
	s.groups[last].listed = g.listed
	w.paused = w.paused[:len(w.paused)-1]
	s.queueFrame(p, pi, s.priorityAt(gi))
}

// queueFrame has a port send a PFC frame as soon as what it is sending has ended. Pauses do not hold it up. Each frame is sent, as in the reference,
// also when a later one that waits behind it takes it back; a MAC sends what holds when its turn comes. A group that pauses and resumes with each
// small packet makes more frames than its port can send: the line back fills with them, and a pause that lasts comes late.
func (s *run) queueFrame(p *port, pi int32, f uint8) {
	c := &s.cold[pi]
	if f&frameOn != 0 {
		c.pauses[f&7]++
		s.refreshLater(c, pi, f&7)
	} else {
		c.resumes[f&7]++
	}
	s.push(p, pi, f)
}

func (s *run) push(p *port, pi int32, f uint8) {
	c := &s.cold[pi]
	c.frames = append(c.frames, f)
	if s.drawn != nil {
		s.drawn.next() // the reference numbers these frames at random
	}
	p.flags |= owing
	if p.flags&isNIC != 0 {
		s.offer(p, pi)
		return
	}
	s.kick(p, pi)
}

func (s *run) sendFrame(p *port, pi int32) {
	c := &s.cold[pi]
	f := c.frames[0]
	c.frames = c.frames[:copy(c.frames, c.frames[1:])]
	if len(c.frames) == 0 {
		p.flags &^= owing
	}
	k := packet{psn: uint32(f & 7), head: headOf(unpause, 0, 0), size: uint16(s.cfg.Transport.PauseSize)}
	if f&frameOn != 0 {
		k.head = headOf(pause, 0, 0)
	}
	if s.ledger != nil {
		s.ledger.sent += int64(k.size)
	}
	s.send(p, pi, k)
}

// pauseArrives obeys a frame, after the port's time of reaction.
func (s *run) pauseArrives(pi int32, k *packet) {
	if s.ledger != nil {
		s.ledger.taken += int64(k.size)
	}
	f := uint8(k.psn)
	if k.kind() == pause {
		f |= frameOn
	}
	if d := s.cfg.Ports[pi].Reaction; d > 0 {
		s.chore(pi, s.now+d, choreObey, f)
		return
	}
	s.obey(pi, f)
}

// obey stops the queues that a priority stops, or lets them go on.
func (s *run) obey(pi int32, f uint8) {
	c, p := &s.cold[pi], &s.ports[pi]
	pri, bit := f&7, uint8(1)<<(f&7)
	on := f&frameOn != 0
	if s.cfg.Ports[pi].Obeys[pri] == 0 {
		if on {
			c.ignored[pri]++
		}
		return
	}
	if on {
		c.received[pri]++
		s.expireLater(c, p, pi, pri)
	}
	if s.cfg.Pauses != nil {
		s.cfg.Pauses(s.now, int(pi), int(pri), on)
	}
	switch {
	case on && c.stopped&bit == 0:
		s.account(pi)
		c.stopped |= bit
		c.since[pri] = s.now
		s.halt(p, pi)
	case !on && c.stopped&bit != 0:
		s.account(pi)
		s.lift(c, pri)
		s.halt(p, pi)
	}
	if on {
		return
	}
	if p.flags&isNIC != 0 {
		s.offer(p, pi)
	} else {
		s.kick(p, pi)
	}
}

// lift ends the pause of a priority in the statistics.
func (s *run) lift(c *portCold, pri uint8) {
	c.stopped &^= 1 << pri
	d := s.now - max(c.since[pri], s.resetAt)
	c.paused[pri] += d
	c.longest[pri] = max(c.longest[pri], d)
}

// halt computes which queues are stopped from which priorities are paused.
func (s *run) halt(p *port, pi int32) {
	c := &s.cold[pi]
	p.halted = 0
	for pri, queues := range s.cfg.Ports[pi].Obeys {
		if c.stopped>>pri&1 != 0 {
			p.halted |= queues
		}
	}
	if p.flags&isNIC != 0 {
		p.halted &^= s.controlBit()
	}
	if d := c.dog; d != nil {
		p.halted &^= d.forced
		s.armDog(pi)
	}
}
