package engine

// A dog is a port's watchdog against pauses that do not end, as SONiC has it: it looks at each poll for queues that are
// stopped, hold something and have been so for the time of detection, and lets them go when they were not stopped for the time
// of restoration. It polls only while there is something to look at, at multiples of its interval.
type dog struct {
	armed    bool
	since    [NumPriorities]Time // start of the uninterrupted stop of a queue, or of its end
	stopped  uint8               // queues that pauses stop, what is forced included
	biting   uint8               // queues that it acts on
	forced   uint8               // of them, those that send in spite of pauses
	found    [NumPriorities]uint64
	restored [NumPriorities]uint64
}

// armDog tells the watchdog of a port that pauses have begun or ended.
func (s *run) armDog(pi int32) {
	c := &s.cold[pi]
	d := c.dog
	var stopped uint8
	for pri, queues := range s.cfg.Ports[pi].Obeys {
		if c.stopped>>pri&1 != 0 {
			stopped |= queues
		}
	}
	for i := range d.since {
		if (stopped^d.stopped)>>i&1 != 0 {
			d.since[i] = s.now
		}
	}
	d.stopped = stopped
	s.callDog(pi, d)
}

// callDog sees to the next poll.
func (s *run) callDog(pi int32, d *dog) {
	w := &s.cfg.Ports[pi].Watchdog
	if (d.stopped&w.Queues|d.biting) != 0 && !d.armed {
		d.armed = true
		s.chore(pi, (s.now/w.Poll+1)*w.Poll, chorePoll, 0)
	}
}

// poll is one look.
func (s *run) poll(pi int32) {
	p, d, w := &s.ports[pi], s.cold[pi].dog, &s.cfg.Ports[pi].Watchdog
	d.armed = false
	for i := range uint8(NumPriorities) {
		bit := uint8(1) << i
		past := s.now - d.since[i]
		switch {
		case w.Queues&bit == 0:
		case d.biting&bit == 0 && d.stopped&bit != 0 && p.ready&bit != 0 && past >= w.Detect:
			d.biting |= bit
			d.found[i]++
			s.bite(p, pi, d, i)
		case d.biting&bit != 0 && d.stopped&bit == 0 && past >= w.Restore:
			d.biting &^= bit
			d.forced &^= bit
			d.restored[i]++
			s.queues[s.place(pi, i)].flags &^= queueDead
		}
	}
	s.callDog(pi, d)
}

// bite does what the watchdog does with a queue.
func (s *run) bite(p *port, pi int32, d *dog, i uint8) {
	s.progressed()
	switch s.cfg.Ports[pi].Watchdog.Action {
	case WatchdogDrop:
		q := &s.queues[s.place(pi, i)]
		q.flags |= queueDead
		for !q.empty() {
			k := s.pop(p, q, i)
			q.drops++
			s.drop(pi, DropWatchdog, &k)
			s.release(&s.switches[p.owner], &k)
		}
	case WatchdogForward:
		d.forced |= 1 << i
		p.halted &^= 1 << i
		s.kick(p, pi)
	}
}
