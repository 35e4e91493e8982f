package engine

// READs: the receiver of the data asks for it, message by message, and asks again for what is missing. What arrives is the
// acknowledgement, so that the responder sends without getting any.

// ask has the requester of a flow ask for packets from the next that it expects on, or, with headLast, only for more of them.
func (s *run) ask(fi uint32, q *sender, flag uint32) {
	r := &s.rcv[fi]
	r.want = q.window(r.nxt / q.each)
	s.answer(s.nics[r.nic].port, r.class, packet{
		flow: fi, psn: r.nxt, head: headOf(ask, int8(q.mark), r.way) | flag, size: uint16(s.cfg.Transport.AckSize),
	})
}

// asked has the responder send.
func (s *run) asked(k *packet) {
	q := &s.snd[k.flow]
	if q.done {
		return
	}
	q.lim = max(q.lim, s.rcv[k.flow].want)
	psn := q.nxt
	if k.head&headLast == 0 {
		psn = k.psn
	}
	if psn < q.nxt {
		s.goBack(k.flow, q, psn)
		return
	}
	s.activate(k.flow, q)
	pi := s.nics[q.nic].port
	s.offer(&s.ports[pi], pi)
}

// readProgress is what the requester does with data: a message that is complete makes room for the next, and one that is not
// what it expected has it ask again.
func (s *run) readProgress(fi uint32, q *sender, r *receiver, hole bool) {
	if hole {
		q.counts.nacks++
		s.ask(fi, q, 0)
		return
	}
	if q.messages != nil {
		s.messagesDone(fi, q)
	}
	if r.nxt >= q.total {
		if !q.done {
			s.finish(q)
		}
		return
	}
	if q.depth > 0 && r.nxt%q.each == 0 && q.window(r.nxt/q.each) > r.want {
		s.ask(fi, q, headLast)
	}
}
