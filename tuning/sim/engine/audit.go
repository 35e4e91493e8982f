package engine

import "fmt"

// A ledger is kept when Config.Audit asks for it: each frame that a NIC or a switch has made is on a wire, in a queue, in a
// slow receiver, or was taken in or dropped.
type ledger struct {
	sent, taken, dropped, flying int64
	every, left                  int
}

// AuditError says where bytes are missing.
type AuditError struct {
	At    Time
	Place string // in words
	Holds int64  // bytes
	Books int64  // bytes that the counters say
}

func (e *AuditError) Error() string {
	return fmt.Sprintf("after %d ps: %s holds %d bytes, and by the counters %d", e.At, e.Place, e.Holds, e.Books)
}

// check compares the sums at each event, and everything from time to time.
func (l *ledger) check(s *run) {
	if there := s.inside(); there != l.sent-l.taken-l.dropped {
		s.err = &AuditError{s.now, "the fabric", there, l.sent - l.taken - l.dropped}
		return
	}
	if l.left--; l.left <= 0 {
		l.left = l.every
		s.err = s.recount()
	}
}

// inside is what wires, switches and slow receivers hold, by their counters.
func (s *run) inside() int64 {
	n := s.ledger.flying
	for i := range s.switches {
		n += s.switches[i].held
	}
	for i := range s.nics {
		if w := s.nics[i].slow; w != nil {
			n += w.total
		}
	}
	return n
}

// recount counts every frame in every place.
func (s *run) recount() error {
	wrong := func(holds, books int64, place string, args ...any) error {
		if holds == books {
			return nil
		}
		return &AuditError{s.now, fmt.Sprintf(place, args...), holds, books}
	}
	flying := int64(0)
	ingress := make([]int64, len(s.groups))
	held := make([]int64, len(s.switches))
	out := make([][]int64, len(s.switches))
	for i := range out {
		out[i] = make([]int64, len(s.switches[i].pools))
	}
	for pi := range s.ports {
		p := &s.ports[pi]
		for i := p.wire.head; i != p.wire.tail; i++ {
			flying += int64(p.wire.buf[i&uint32(len(p.wire.buf)-1)].size)
		}
		if p.flags&isNIC != 0 {
			continue
		}
		for qi := range NumPriorities {
			q := &s.queues[s.place(int32(pi), uint8(qi))]
			sum := int64(0)
			for i := q.head; i != q.tail; i++ {
				k := &q.buf[i&uint32(len(q.buf)-1)]
				sum += int64(k.size)
				ingress[s.place(int32(k.in), s.ports[k.in].class[k.mark()]>>4)] += int64(k.size)
			}
			if err := wrong(sum, q.bytes, "queue %d of port %d", qi, pi); err != nil {
				return err
			}
			if (sum > 0) != (p.ready>>qi&1 != 0) {
				return wrong(sum, 0, "queue %d of port %d, which is listed as empty,", qi, pi)
			}
			held[p.owner] += sum
			out[p.owner][q.pool] += sum
		}
	}
	if err := wrong(flying, s.ledger.flying, "all wires together"); err != nil {
		return err
	}
	return s.recountSwitches(wrong, ingress, held, out)
}

// recountSwitches compares what each group, pool and switch has with the sums over queues.
func (s *run) recountSwitches(wrong func(int64, int64, string, ...any) error, ingress, held []int64, out [][]int64) error {
	in := make([][]int64, len(s.switches))
	headroom := make([]int64, len(s.switches))
	for i := range in {
		in[i] = make([]int64, len(s.switches[i].pools))
	}
	for gi := range s.groups {
		pi, g := s.portAt(int32(gi)), &s.groups[gi]
		p := &s.ports[pi]
		if p.flags&isNIC != 0 {
			continue
		}
		if err := wrong(ingress[gi], g.held+g.headroom, "group %d of port %d", s.priorityAt(int32(gi)), pi); err != nil {
			return err
		}
		in[p.owner][g.pool] += max(g.held-int64(g.reserved), 0)
		headroom[p.owner] += g.headroom
	}
	for i := range s.switches {
		w := &s.switches[i]
		if err := wrong(held[i], w.held, "switch %d", i); err != nil {
			return err
		}
		if err := wrong(headroom[i], w.headroom, "headroom of switch %d", i); err != nil {
			return err
		}
		for j := range w.pools {
			if err := wrong(in[i][j], w.pools[j].in, "pool %d of switch %d, for its groups,", j, i); err != nil {
				return err
			}
			if err := wrong(out[i][j], w.pools[j].out, "pool %d of switch %d, for its queues,", j, i); err != nil {
				return err
			}
		}
	}
	return nil
}
