package engine

// Reliable connections: numbered packets, cumulative acknowledgements, go-back-N.

// A sender is the sending end of a flow; of a READ, the responder. What each acknowledgement changes is in the first 64 bytes,
// and what each packet sent does in the next.
type sender struct {
	next     Time // when it may send again, by its rate
	gap      Time // between full frames
	progress Time // of acknowledgements

	nxt, una uint32 // packets: the next to send, the first not acknowledged
	lim      uint32 // the first that may not be sent yet
	edge     uint32 // the first of the next message
	high     uint32 // the first that was never sent
	way      uint32 // to the receiver

	nic   int32
	local int32 // place in its class
	class uint8
	mark  uint8

	pacing, started, done bool
	clean                 bool // no frame of it was lost
	read                  bool

	full   uint16
	short  uint16 // the last frame of a message
	tail   uint16 // the last frame of the flow
	total  uint32
	each   uint32 // packets in a message
	counts flowCounts

	messages    *messages
	depth       int32
	line        int64
	owed        float64 // of a gap that is longer than a step of the rate: bits that are still to go by at next
	start, took Time
	cc          rp
}

// flowCounts is what Config.Measure sets to zero.
type flowCounts struct {
	sent, resent, resentBytes int64
	nacks, timeouts, marked   uint32
	received, acked           uint32 // packets before
	lost                      uint32 // frames discarded, answers included
}

// A receiver is the other end.
type receiver struct {
	nxt     uint32 // packet that is expected
	hole    uint32 // packet that a NACK asked for last
	nackAt  Time   // when it may ask again
	lastCNP Time
	way     uint32 // to the sender
	nic     int32
	unacked int32
	want    uint32 // of a READ: packets that were asked for
	class   uint8
	cnpDue  bool
	mute    bool // it does not notify of marks
	echo    bool // a mark that the next acknowledgement tells of, with Config.Compat
}

// messages is what a flow with messages remembers of those that are on their way.
type messages struct {
	starts     []Time // ring
	head, tail uint32 // numbers of messages: the first that is not acknowledged, the first that was not begun
	times      Histogram
}

// sizeOfNext is the size of the frame that a flow would send.
func (q *sender) sizeOfNext() uint16 {
	switch q.nxt + 1 {
	case q.total:
		return q.tail
	case q.edge:
		return q.short
	}
	return q.full
}

// seek sets the next packet to send.
func (q *sender) seek(psn uint32) {
	q.nxt = psn
	q.edge = uint32(min((uint64(psn/q.each)+1)*uint64(q.each), uint64(q.total)))
}

// sendData sends a flow's next frame, and sees to it that the flow gets its next turn.
func (s *run) sendData(p *port, pi int32, n *nic, fi uint32, q *sender) {
	if n.react != nil && q.cc.active {
		s.catchUp(q, n.react)
	}
	if q.nxt == q.una {
		q.progress = s.now
	}
	if q.messages != nil {
		q.messages.begin(q, s.now)
	}
	k := packet{flow: fi, psn: q.nxt, head: headOf(data, int8(q.mark), q.way), size: q.full}
	gap := q.gap
	if q.nxt+1 == q.edge {
		k.size = q.sizeOfNext()
		k.head |= headLast
		gap = s.gapOf(q, k.size)
		q.edge = uint32(min(uint64(q.edge)+uint64(q.each), uint64(q.total)))
	}
	q.nxt++
	q.counts.sent++
	if q.nxt <= q.high {
		q.counts.resent++
	} else {
		q.high = q.nxt
	}
	if n.react != nil && n.react.ByteCounter > 0 && q.cc.active {
		s.counted(q, n.react, int64(k.size))
	}
	s.emit(p, pi, q.class, k)
	q.next = s.now + gap
	if q.nxt < q.lim {
		if q.next <= p.busy {
			n.enable(p, q)
		} else {
			s.wait(n, q, gap)
			s.pace(n, int32(fi))
		}
	}
}

// wait has a flow that is to wait for longer than a step of its rate be looked at after each of them: from a rate near zero it would not come
// back for long, though it is allowed much more by then. The reference does not look.
func (s *run) wait(n *nic, q *sender, gap Time) {
	if s.compat || n.react == nil || !q.cc.active || gap <= n.react.RateTimer {
		return
	}
	q.next -= gap - n.react.RateTimer
	q.owed = float64(gap-n.react.RateTimer) * q.cc.rate
}

// waits is a look at such a flow: whether it has to wait on, and until when.
func (s *run) waits(n *nic, q *sender) bool {
	if q.owed == 0 {
		return false
	}
	s.catchUp(q, n.react)
	left := Time(q.owed / q.cc.rate)
	if left <= 0 {
		q.owed = 0
		return false
	}
	step := min(left, n.react.RateTimer)
	q.owed -= float64(float64(step) * q.cc.rate)
	if step == left {
		q.owed = 0
	}
	q.next = s.now + step
	return true
}

// take deals with a frame that has reached a NIC.
func (s *run) take(pi int32, k *packet) {
	if n := &s.nics[s.ports[pi].owner]; n.slow != nil {
		s.hold(pi, n, *k)
		return
	}
	s.receive(pi, k)
}

// receive deals with a frame that a NIC has taken in.
func (s *run) receive(pi int32, k *packet) {
	if s.ledger != nil {
		s.ledger.taken += int64(k.size)
	}
	switch k.kind() {
	case data:
		s.receiveData(pi, k)
	case cnp:
		q := &s.snd[k.flow]
		if r := s.nics[q.nic].react; !q.done {
			if r != nil {
				s.notified(q, r)
			} else {
				q.cc.cnps++
			}
		}
	case ask:
		s.asked(k)
	default:
		s.acknowledged(pi, k)
	}
}

func (s *run) receiveData(pi int32, k *packet) {
	r := &s.rcv[k.flow]
	n := &s.nics[r.nic]
	q := &s.snd[k.flow]
	if k.head&headCE != 0 {
		q.counts.marked++
		if !s.compat && !r.mute {
			s.mark(k.flow, r, n)
		}
	}
	kind, now := ack, true
	switch {
	case k.psn == r.nxt:
		r.nxt++
		s.packets++
		r.unacked++
		now = k.head&headLast != 0 || r.unacked >= s.cfg.Transport.AckEvery
		if q.read {
			q.una, q.progress = r.nxt, s.now
		}
		if r.nxt == q.total {
			s.whole(k.flow)
		}
	case k.psn > r.nxt:
		n.outOfSeq++
		if s.now <= r.nackAt && r.hole == r.nxt {
			return
		}
		r.nackAt = s.now + s.cfg.Transport.NackGap
		r.hole = r.nxt
		kind = nack
	default:
		n.duplicate++
		if s.compat {
			return
		}
	}
	if k.head&headCE != 0 && !r.mute {
		r.echo = true
	}
	if q.read {
		s.readProgress(k.flow, q, r, kind == nack)
		return
	}
	if !now {
		return
	}
	r.unacked = 0
	a := packet{flow: k.flow, psn: r.nxt, head: headOf(kind, int8(q.mark), r.way) | k.head&headLast, size: uint16(s.cfg.Transport.AckSize)}
	if s.compat && r.echo {
		a.head |= headCE
	}
	r.echo = false
	s.answer(pi, r.class, a)
}

// early does what an acknowledgement will do when it reaches the NIC at the other end of the wire, and reports whether that
// was all: one in the middle of a message, of a flow that has lost nothing, changes only what it says, which nobody reads until
// then. It saves an event of every dozen.
func (s *run) early(k *packet, at Time) bool {
	if k.kind() != ack || k.head&(headLast|headCE) != 0 {
		return false
	}
	q := &s.snd[k.flow]
	if !q.clean {
		return false
	}
	q.una, q.progress = max(q.una, k.psn), at
	if s.ledger != nil {
		s.ledger.flying -= int64(k.size)
		s.ledger.taken += int64(k.size)
	}
	return true
}

// acknowledged deals with an acknowledgement or a NACK at the sender.
func (s *run) acknowledged(pi int32, k *packet) {
	q := &s.snd[k.flow]
	if q.done {
		return
	}
	if k.psn > q.una {
		q.una = k.psn
		q.progress = s.now
		if q.nxt < q.una {
			q.seek(q.una)
		}
		if q.messages != nil {
			s.messagesDone(k.flow, q)
		}
		if q.una >= q.total {
			s.finish(q)
			return
		}
	}
	if k.kind() == nack {
		q.counts.nacks++
		s.goBack(k.flow, q, q.una)
	}
	if s.compat && k.head&headCE != 0 {
		if r := s.nics[q.nic].react; r != nil {
			s.notified(q, r)
		}
	}
}

// goBack has a flow send again from a packet on.
func (s *run) goBack(fi uint32, q *sender, psn uint32) {
	q.clean = false
	if q.nxt > psn {
		q.counts.resentBytes += s.payload(fi, q, q.nxt) - s.payload(fi, q, psn)
	}
	q.seek(psn)
	s.activate(fi, q)
	pi := s.nics[q.nic].port
	s.offer(&s.ports[pi], pi)
}

// finish ends a flow.
func (s *run) finish(q *sender) {
	q.done = true
	q.took = s.now - q.start
	if q.total != endless {
		s.left--
	}
}

// begin notes when a message starts.
func (m *messages) begin(q *sender, now Time) {
	if q.nxt < q.high || q.nxt%q.each != 0 {
		return
	}
	if m.tail-m.head == uint32(len(m.starts)) {
		b := make([]Time, max(4, 2*len(m.starts)))
		for i := m.head; i != m.tail; i++ {
			b[i&uint32(len(b)-1)] = m.starts[i&uint32(len(m.starts)-1)]
		}
		m.starts = b
	}
	m.starts[m.tail&uint32(len(m.starts)-1)] = now
	m.tail++
}

// messagesDone counts the messages that are acknowledged, and lets others begin in their place.
func (s *run) messagesDone(fi uint32, q *sender) {
	m := q.messages
	for m.head != m.tail && (q.una >= q.total || uint64(m.head+1)*uint64(q.each) <= uint64(q.una)) {
		m.times.Add(int64((s.now-m.starts[m.head&uint32(len(m.starts)-1)])/Nanosecond), 1)
		m.head++
	}
	if q.depth == 0 || q.read {
		return
	}
	if lim := q.window(m.head); lim > q.lim {
		waits := q.nxt >= q.lim
		q.lim = lim
		if waits && q.nxt < lim {
			s.activate(fi, q)
			pi := s.nics[q.nic].port
			s.offer(&s.ports[pi], pi)
		}
	}
}

// window is the first packet that may not be sent while done messages are acknowledged.
func (q *sender) window(done uint32) uint32 {
	if q.depth == 0 {
		return q.total
	}
	return uint32(min((uint64(done)+uint64(q.depth))*uint64(q.each), uint64(q.total)))
}

// mark has a NIC notify the sender of a flow, unless it did so a moment ago. Notifications may wait for longer than the gap between
// them: then several are on their way.
func (s *run) mark(fi uint32, r *receiver, n *nic) {
	if s.now-r.lastCNP < n.cnpGap {
		return
	}
	r.lastCNP = s.now
	switch {
	case n.cnpWait == 0:
		s.notify(fi, r, n)
	case r.cnpDue:
		s.behind[fi].add(s.now + n.cnpWait)
	default:
		r.cnpDue = true
		s.at(s.notices+int32(fi), s.now+n.cnpWait)
	}
}

// waited sends the notification whose time has come, and sees to the one behind it.
func (s *run) waited(fi uint32, r *receiver, n *nic) {
	if at, ok := s.behind[fi].next(); ok {
		s.at(s.notices+int32(fi), at)
	} else {
		r.cnpDue = false
	}
	s.notify(fi, r, n)
}

// times is a queue of them.
type times struct {
	all  []Time
	head int
}

func (q *times) add(t Time) {
	if 2*q.head > len(q.all) {
		q.all, q.head = q.all[:copy(q.all, q.all[q.head:])], 0
	}
	q.all = append(q.all, t)
}

func (q *times) next() (Time, bool) {
	if q.head == len(q.all) {
		return 0, false
	}
	q.head++
	return q.all[q.head-1], true
}

func (s *run) notify(fi uint32, r *receiver, n *nic) {
	n.cnps++
	s.answer(n.port, n.cnpTo, packet{flow: fi, head: n.cnpHead | r.way, size: uint16(s.cfg.Transport.CNPSize)})
}

// timer starts a flow, or looks whether it has to send again what nobody acknowledged.
func (s *run) timer(fi uint32) {
	q := &s.snd[fi]
	rto := s.cfg.Transport.RTO
	switch {
	case !q.started:
		s.begin(fi, q)
	case q.done:
		return
	case q.progress+rto > s.now || q.nxt == q.una && !q.read:
		s.at(s.timers+int32(fi), max(q.progress+rto, s.now+rto/2))
		return
	default:
		q.counts.timeouts++
		q.progress = s.now
		q.clean = false
		if q.read {
			s.ask(fi, q, 0)
		} else {
			s.goBack(fi, q, q.una)
		}
	}
	if rto > 0 {
		s.at(s.timers+int32(fi), s.now+rto)
	}
}

// begin starts a flow.
func (s *run) begin(fi uint32, q *sender) {
	q.started = true
	q.start, q.progress = s.now, s.now
	if q.read {
		s.ask(fi, q, 0)
		return
	}
	s.activate(fi, q)
	pi := s.nics[q.nic].port
	s.offer(&s.ports[pi], pi)
}
