package engine

// result tells what happened.
func (s *run) result() *Result {
	span := s.now - s.resetAt
	if s.cfg.Measure > s.now {
		span = 0
	}
	if s.end == EndStop {
		s.stuck = s.deadlock(true)
	}
	r := &Result{
		End: s.end, At: s.now, Span: span, Events: s.events, Packets: s.packets, Hash: s.hash, Series: s.series.rows, Stuck: s.stuck,
		Flows:    make([]FlowResult, len(s.snd)),
		Ports:    make([]PortResult, len(s.ports)),
		Switches: make([]SwitchResult, len(s.switches)),
		NICs:     make([]NICResult, len(s.nics)),
	}
	for i := range s.switches {
		w := &s.switches[i]
		o := &r.Switches[i]
		o.HeadroomMax, o.BufferMax = w.roomMax, w.heldMax
		for _, p := range w.pools {
			o.SharedMax = append(o.SharedMax, p.max)
		}
	}
	for i := range s.ports {
		s.portResult(int32(i), span, r)
	}
	for i := range s.snd {
		s.flowResult(i, &r.Flows[i])
	}
	for i := range s.nics {
		n := &s.nics[i]
		r.NICs[i] = NICResult{CNPsSent: n.cnps, OutOfSeq: n.outOfSeq, Duplicate: n.duplicate}
		if n.slow != nil {
			r.NICs[i].HeldMax = n.slow.max
		}
	}
	return r
}

func (s *run) portResult(pi int32, span Time, r *Result) {
	p, c, o := &s.ports[pi], &s.cold[pi], &r.Ports[pi]
	o.Drops, o.DropBytes = c.drops, c.bytes
	for i := range NumPriorities {
		pri := uint8(i)
		if c.stopped>>pri&1 != 0 {
			s.lift(c, pri)
		}
		at := s.place(pi, pri)
		q, g := &s.queues[at], &s.groups[at]
		q.count(s.now, s.compat)
		o.Queues[i] = QueueResult{
			Mean: q.area.over(span), Max: q.max, TxFrames: q.tx, TxBytes: q.txBytes, Marked: q.marked, Drops: q.drops,
			P50: q.quantile(0.50, span, s.compat), P95: q.quantile(0.95, span, s.compat), P99: q.quantile(0.99, span, s.compat),
		}
		if c.dog != nil {
			o.Queues[i].Stuck, o.Queues[i].Restored = c.dog.found[i], c.dog.restored[i]
		}
		o.Groups[i] = GroupResult{
			PausesSent: c.pauses[i], ResumesSent: c.resumes[i], RefreshesSent: c.refresh[i], PausesReceived: c.received[i], PausesIgnored: c.ignored[i],
			Paused: c.paused[i], Max: g.max, HeadroomMax: int64(g.roomMax), Drops: c.refused[i],
		}
		o.PausedLongest[i] = c.longest[i]
		o.TxFrames += q.tx
		o.TxBytes += q.txBytes
		if p.flags&isNIC == 0 {
			r.Switches[p.owner].BufferMean += o.Queues[i].Mean
		}
	}
}

func (s *run) flowResult(i int, o *FlowResult) {
	q, r := &s.snd[i], &s.rcv[i]
	fi := uint32(i)
	c := &q.counts
	*o = FlowResult{
		Started: q.started, Done: q.done, Start: q.start, Completion: q.took,
		Received: s.payload(fi, q, r.nxt) - s.payload(fi, q, c.received),
		Before:   s.payload(fi, q, c.received),
		Acked:    s.payload(fi, q, q.una) - s.payload(fi, q, c.acked),
		Sent:     uint64(c.sent), Resent: uint64(c.resent), ResentBytes: c.resentBytes,
		Marked: uint64(c.marked), CNPs: uint64(q.cc.cnps), Cuts: uint64(q.cc.cuts), NACKs: uint64(c.nacks), Timeouts: uint64(c.timeouts), Dropped: uint64(c.lost),
		Rate: s.rateNow(q),
	}
	if q.messages != nil {
		o.Messages = &q.messages.times
	}
}
