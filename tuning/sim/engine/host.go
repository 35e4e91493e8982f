package engine

import "math/bits"

// controlClass is the class of a NIC's answers with Config.Compat: before all others, and never stopped.
const controlClass = NumPriorities - 1

func (s *run) controlBit() uint8 {
	if s.compat {
		return 1 << controlClass
	}
	return 0
}

// offer has a NIC send what is due, if it may, and see to it that it will be asked again.
func (s *run) offer(p *port, pi int32) {
	n := &s.nics[p.owner]
	if s.idle(p) {
		s.sendNext(p, pi, n)
	}
	s.wakeNIC(p, pi, n)
}

// sendNext sends one frame: a pause, an answer, or what the next flow has.
func (s *run) sendNext(p *port, pi int32, n *nic) {
	if p.flags&owing != 0 {
		s.sendFrame(p, pi)
		return
	}
	for len(n.paced) > 0 && s.snd[n.paced[0]].next <= s.now {
		fi := n.paced[0]
		q := &s.snd[fi]
		s.unpace(n)
		if s.waits(n, q) {
			s.pace(n, fi)
			continue
		}
		n.enable(p, q)
	}
	for {
		may := p.ready &^ p.halted
		if may == 0 {
			return
		}
		ci := uint8(bits.Len8(may) - 1)
		if may&(may-1) != 0 {
			ci = s.chooseClass(p, pi, n, may)
		}
		c := &n.classes[ci]
		if !c.answers.empty() {
			k := *c.answers.first()
			c.answers.head++
			c.settle(p, ci)
			s.emit(p, pi, ci, k)
			return
		}
		fi := c.flows[c.successor()]
		q := &s.snd[fi]
		c.last = q.local
		c.eligible[q.local>>6] &^= 1 << uint(q.local&63)
		c.count--
		if q.nxt < q.lim {
			s.sendData(p, pi, n, uint32(fi), q)
			c.settle(p, ci)
			return
		}
		c.settle(p, ci)
	}
}

// settle keeps the bit of a class: whether it has anything to send.
func (c *class) settle(p *port, ci uint8) {
	if c.count == 0 && c.answers.empty() {
		p.ready &^= 1 << ci
	}
}

// chooseClass is choose for the classes of a NIC. A flow that turns out to have nothing to send has had its turn.
func (s *run) chooseClass(p *port, pi int32, n *nic, may uint8) uint8 {
	if strict := may & p.strict; strict != 0 {
		return uint8(bits.Len8(strict) - 1)
	}
	i := p.turn
	for {
		if may>>i&1 != 0 {
			a := &s.queues[s.place(pi, i)]
			if size := int32(s.headSize(&n.classes[i])); a.deficit >= size {
				a.deficit -= size
				p.turn = i
				return i
			}
			a.deficit += a.weight
		} else {
			s.queues[s.place(pi, i)].deficit = 0
		}
		i = (i + 1) & 7
	}
}

// headSize is the size of what a class sends next.
func (s *run) headSize(c *class) uint16 {
	if !c.answers.empty() {
		return c.answers.first().size
	}
	return s.snd[c.flows[c.successor()]].sizeOfNext()
}

// emit puts a frame of a NIC on its wire.
func (s *run) emit(p *port, pi int32, ci uint8, k packet) {
	a := &s.queues[s.place(pi, ci)]
	a.tx++
	a.txBytes += uint64(k.size)
	if s.ledger != nil {
		s.ledger.sent += int64(k.size)
	}
	s.send(p, pi, k)
}

// wakeNIC puts the event at which a NIC has something to send in its place: at the end of what it sends, or later, when the
// first of the paced flows may go on.
func (s *run) wakeNIC(p *port, pi int32, n *nic) {
	at := p.busy
	switch {
	case p.flags&owing != 0 || p.ready&^p.halted != 0:
	case (s.compat || n.data&^p.halted != 0) && len(n.paced) > 0:
		at = max(at, s.snd[n.paced[0]].next)
	default:
		return
	}
	if s.compat && p.busy > s.now {
		at = p.busy // where the reference looks at what waits, and asks for the next event
	}
	if n.wakeAt != never {
		if n.wakeAt <= at {
			return
		}
		s.wheel.clear(pi)
	}
	n.wakeAt, n.asked = at, s.now
	if at > p.busy {
		s.at(pi, at)
		return
	}
	s.wheel.set(pi, at, p.sent)
}

// answer queues an acknowledgement or a notification at the NIC that sends it.
func (s *run) answer(pi int32, ci uint8, k packet) {
	p := &s.ports[pi]
	n := &s.nics[p.owner]
	if s.compat {
		ci = controlClass
	}
	n.classes[ci].answers.push(k)
	p.ready |= 1 << ci
	s.offer(p, pi)
}

// enable lets a flow take part in the round robin of its class.
func (n *nic) enable(p *port, q *sender) {
	c := &n.classes[q.class]
	w, bit := q.local>>6, uint64(1)<<uint(q.local&63)
	if c.eligible[w]&bit == 0 {
		c.eligible[w] |= bit
		c.count++
		p.ready |= 1 << q.class
	}
}

// activate has a flow that has something to send again, or for the first time, do so at its time.
func (s *run) activate(fi uint32, q *sender) {
	n := &s.nics[q.nic]
	c := &n.classes[q.class]
	if q.pacing || c.eligible[q.local>>6]>>uint(q.local&63)&1 != 0 {
		return
	}
	if q.next <= s.now {
		n.enable(&s.ports[n.port], q)
	} else {
		s.pace(n, int32(fi))
	}
}

// successor is the eligible flow after the one that sent last.
func (c *class) successor() int32 {
	i := c.last + 1
	w := int(i >> 6)
	if w >= len(c.eligible) {
		w, i = 0, 0
	}
	if x := c.eligible[w] >> uint(i&63); x != 0 {
		return i + int32(bits.TrailingZeros64(x))
	}
	for {
		if w++; w >= len(c.eligible) {
			w = 0
		}
		if x := c.eligible[w]; x != 0 {
			return int32(w<<6 + bits.TrailingZeros64(x))
		}
	}
}

// pace puts a flow into the heap of those that may not send yet.
func (s *run) pace(n *nic, fi int32) {
	s.snd[fi].pacing = true
	n.paced = append(n.paced, fi)
	i, t := len(n.paced)-1, s.snd[fi].next
	for i > 0 {
		up := (i - 1) >> 1
		if s.snd[n.paced[up]].next <= t {
			break
		}
		n.paced[i] = n.paced[up]
		i = up
	}
	n.paced[i] = fi
}

// unpace takes the first flow out of the heap.
func (s *run) unpace(n *nic) {
	s.snd[n.paced[0]].pacing = false
	last := len(n.paced) - 1
	fi := n.paced[last]
	n.paced = n.paced[:last]
	if last == 0 {
		return
	}
	i, t := 0, s.snd[fi].next
	for {
		c := 2*i + 1
		if c >= last {
			break
		}
		if c+1 < last && s.snd[n.paced[c+1]].next < s.snd[n.paced[c]].next {
			c++
		}
		if s.snd[n.paced[c]].next >= t {
			break
		}
		n.paced[i] = n.paced[c]
		i = c
	}
	n.paced[i] = fi
}
