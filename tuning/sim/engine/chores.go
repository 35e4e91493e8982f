package engine

// A chore is something that a port has to do at a time. They are rare, so that all of a port share one slot of the wheel.
type chore struct {
	at  Time
	seq uint64
	do  choreKind
	arg uint8
}

type choreKind uint8

const (
	choreObey    choreKind = iota // a pause or a resume, after the time of reaction
	choreExpire                   // a pause that was not refreshed
	choreRefresh                  // of a pause that was sent
	chorePoll                     // of the watchdog
	choreDrain                    // a slow receiver has taken a frame in
	choreStorm                    // a storm begins or ends
)

// chore adds one.
func (s *run) chore(pi int32, at Time, do choreKind, arg uint8) {
	c := &s.cold[pi]
	c.chores = append(c.chores, chore{at, s.seq, do, arg})
	s.seq++
	i := len(c.chores) - 1
	for ; i > 0 && c.chores[i-1].at > at; i-- {
		c.chores[i], c.chores[i-1] = c.chores[i-1], c.chores[i]
	}
	if i == 0 {
		s.wheel.clear(s.chores + pi)
		s.wheel.set(s.chores+pi, at, c.chores[0].seq)
	}
}

// doChore does the first.
func (s *run) doChore(pi int32) {
	c := &s.cold[pi]
	now := c.chores[0]
	c.chores = c.chores[:copy(c.chores, c.chores[1:])]
	if len(c.chores) > 0 {
		s.wheel.set(s.chores+pi, c.chores[0].at, c.chores[0].seq)
	}
	switch now.do {
	case choreObey:
		s.obey(pi, now.arg)
	case choreExpire:
		s.expire(pi, now.arg)
	case choreRefresh:
		s.refresh(pi, now.arg)
	case chorePoll:
		s.poll(pi)
	case choreDrain:
		s.drained(pi, now.arg)
	case choreStorm:
		s.storm(pi, int(now.arg))
	}
}

// quantum is the time of 512 bits at a port's rate.
func (p *Port) quantum() Time { return 512 * Second / Time(p.Rate) }

// refreshLater has a pause sent again after half of the time that it lasts.
func (s *run) refreshLater(c *portCold, pi int32, pri uint8) {
	p := &s.cfg.Ports[pi]
	if q := p.Quanta; q > 0 && c.owed>>pri&1 == 0 {
		c.owed |= 1 << pri
		s.chore(pi, s.now+Time(q)*p.quantum()/2, choreRefresh, pri)
	}
}

// refresh sends a pause again that is still wanted. One that was taken back and sent anew in the meantime is refreshed early.
func (s *run) refresh(pi int32, pri uint8) {
	c, p := &s.cold[pi], &s.ports[pi]
	c.owed &^= 1 << pri
	if !s.pausing(pi, pri) {
		return
	}
	c.refresh[pri]++
	s.refreshLater(c, pi, pri)
	s.push(p, pi, pri|frameOn)
}

// pausing reports whether a port wants its peer to be paused.
func (s *run) pausing(pi int32, pri uint8) bool {
	if p := &s.ports[pi]; p.flags&isNIC != 0 {
		n := &s.nics[p.owner]
		return n.slow != nil && n.slow.pausing>>pri&1 != 0
	}
	return s.groups[s.place(pi, pri)].paused
}

// expireLater notes when a pause that has been received ends by itself.
func (s *run) expireLater(c *portCold, p *port, pi int32, pri uint8) {
	q := s.cfg.Ports[p.peer].Quanta
	if q == 0 {
		return
	}
	waits := c.until[pri] != 0
	c.until[pri] = s.now + Time(q)*s.cfg.Ports[pi].quantum()
	if !waits {
		s.chore(pi, c.until[pri], choreExpire, pri)
	}
}

// expire ends a pause, unless it was refreshed.
func (s *run) expire(pi int32, pri uint8) {
	c := &s.cold[pi]
	switch {
	case c.stopped>>pri&1 == 0:
		c.until[pri] = 0
	case c.until[pri] > s.now:
		s.chore(pi, c.until[pri], choreExpire, pri)
	default:
		c.until[pri] = 0
		s.obey(pi, pri)
	}
}
