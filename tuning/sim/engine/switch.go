package engine

// forward takes a frame into a switch and puts it into the queue of the port by which it goes on.
func (s *run) forward(pi int32, k packet) {
	p := &s.ports[pi]
	oi := int32(s.ways[k.way()])
	o := &s.ports[oi]
	class := p.class[k.mark()]
	if k.size > p.mtu || class == noClass || k.size > o.mtu {
		s.unfit(pi, oi, &k, class)
		return
	}
	k.head++
	k.in = uint16(pi)
	bit := class & 7
	w := &s.switches[p.owner]
	q := &s.queues[s.place(oi, bit)]
	if q.flags != 0 && !s.fits(w, oi, q, &k) {
		return
	}
	gi := s.place(pi, class>>4)
	g := &s.groups[gi]
	size := int64(k.size)
	if o.ready == 0 && q.flags == 0 && o.flags&(waking|owing) == 0 && o.halted>>bit&1 == 0 && s.idle(o) && w.passes(g, size) {
		w.heldMax = max(w.heldMax, w.held+size)
		q.max = max(q.max, size)
		q.tx++
		q.txBytes += uint64(size)
		s.send(o, oi, k)
		return
	}
	if !s.admit(w, g, size) {
		s.cold[pi].refused[class>>4]++
		reason := DropHeadroom
		if !g.lossless {
			reason = DropIngress
		}
		s.drop(pi, reason, &k)
		return
	}
	if g.lossless && !g.paused && s.full(w, g) {
		s.pauseGroup(p, pi, gi, g)
	}
	w.held += size
	w.heldMax = max(w.heldMax, w.held)
	if w.onEntry && q.bytes > q.kmin && s.capable(&k) && s.draw(w, q) {
		k.congested()
		q.marked++
		s.series.marked++
	}
	q.count(s.now, s.compat)
	q.push(k)
	q.bytes += size
	q.max = max(q.max, q.bytes)
	w.pools[q.pool].out += size
	o.ready |= 1 << bit
	s.kick(o, oi)
}

// depart sends the first frame of a queue.
func (s *run) depart(p *port, pi int32, qi uint8) {
	q := &s.queues[s.place(pi, qi)]
	k := s.pop(p, q, qi)
	w := &s.switches[p.owner]
	if !w.onEntry && q.bytes > q.kmin && q.flags&queueDrops == 0 && s.capable(&k) && s.draw(w, q) {
		k.congested()
		q.marked++
		s.series.marked++
	}
	p.flags |= waking // what ends a pause may be owed by this very port, which is about to send k
	s.release(w, &k)
	p.flags &^= waking
	q.tx++
	q.txBytes += uint64(k.size)
	s.send(p, pi, k)
}

// pop takes the first frame out of a queue.
func (s *run) pop(p *port, q *queue, qi uint8) packet {
	k := *q.first()
	q.head++
	if q.empty() {
		p.ready &^= 1 << qi
		q.deficit = 0
	}
	q.count(s.now, s.compat)
	q.bytes -= int64(k.size)
	w := &s.switches[p.owner]
	w.held -= int64(k.size)
	w.pools[q.pool].out -= int64(k.size)
	return k
}

// capable reports whether a packet says that its ends know congestion marks.
func (s *run) capable(k *packet) bool { return s.cfg.NotECT>>k.mark()&1 == 0 }

// draw decides whether a queue above kmin marks: with the probability that grows to Pmax at Kmax, and always above it
// (RED of Floyd and Jacobson 1993 on the instantaneous length, as the DCQCN paper has it in section 3.1).
func (s *run) draw(w *swtch, q *queue) bool {
	if q.bytes > q.kmax {
		return true
	}
	p := float64(q.bytes-q.kmin) * q.slope
	if s.drawn != nil {
		return s.drawn.next() < p
	}
	x := w.rng // xorshift64 of Marsaglia 2003
	x ^= x << 13
	x ^= x >> 7
	x ^= x << 17
	w.rng = x
	return float64(x>>11)*(1.0/(1<<53)) < p
}

// unfit drops a frame that is too long for a port, or that no group takes.
func (s *run) unfit(pi, oi int32, k *packet, class uint8) {
	switch {
	case k.size > s.ports[pi].mtu:
		s.drop(pi, DropMTU, k)
	case class == noClass:
		s.drop(pi, DropUnclassified, k)
	default:
		s.drop(oi, DropMTU, k)
	}
}

// fits reports whether a queue with limits takes a frame, which it drops if not.
func (s *run) fits(w *swtch, oi int32, q *queue, k *packet) bool {
	after := q.bytes + int64(k.size)
	reason := NumDropReasons
	switch pl := &w.pools[q.pool]; {
	case q.flags&queueDead != 0:
		reason = DropWatchdog
	case q.limit > 0 && after > q.limit, q.alpha > 0 && after > (pl.size-pl.out)*q.alpha>>16:
		reason = DropEgress
	case q.flags&queueDrops != 0 && q.bytes > q.kmin && s.draw(w, q):
		reason = DropWRED
	}
	if reason == NumDropReasons {
		return true
	}
	q.drops++
	s.drop(oi, reason, k)
	return false
}

// drop counts a frame that ends here.
func (s *run) drop(pi int32, reason DropReason, k *packet) {
	c := &s.cold[pi]
	c.drops[reason]++
	c.bytes[reason] += uint64(k.size)
	s.series.drops++
	q := &s.snd[k.flow]
	q.counts.lost++
	q.clean = false
	if s.ledger != nil {
		s.ledger.dropped += int64(k.size)
	}
}
