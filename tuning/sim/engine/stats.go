package engine

import "math/bits"

// An account is a sum of bytes times picoseconds, in 128 bits: exact, and the same on every machine.
type account struct{ hi, lo uint64 }

func (a *account) add(bytes int64, d Time) {
	hi, lo := bits.Mul64(uint64(bytes), uint64(d))
	var carry uint64
	a.lo, carry = bits.Add64(a.lo, lo, 0)
	a.hi, _ = bits.Add64(a.hi, hi, carry)
}

// over is the mean over a span.
func (a *account) over(d Time) float64 {
	if d <= 0 {
		return 0
	}
	q, r := bits.Div64(a.hi%uint64(d), a.lo, uint64(d))
	return float64(q) + float64(float64(r)/float64(d))
}

// compatBucket is the width of the reference's buckets of queue lengths, in bytes.
const compatBucket = 1000

// count books the length that a queue had until now, before it changes. An empty queue costs nothing: what is missing to the
// whole span was spent without a byte.
func (q *queue) count(now Time, compat bool) {
	d := now - q.last
	q.last = now
	if q.bytes == 0 || d == 0 {
		return
	}
	q.area.add(q.bytes, d)
	b := 0
	if compat {
		b = int(q.bytes / compatBucket)
	} else {
		b = BucketOf(q.bytes)
	}
	if b >= len(q.times) {
		q.times = append(q.times, make([]uint64, b+1+b/4-len(q.times))...)
	}
	q.times[b] += uint64(d)
}

// quantile is the length that a queue did not exceed for a part of a span.
func (q *queue) quantile(part float64, span Time, compat bool) int64 {
	var filled uint64
	for _, t := range q.times {
		filled += t
	}
	need := part * float64(span)
	seen := float64(uint64(span) - filled) // for which it was empty
	if seen >= need || len(q.times) == 0 {
		return 0
	}
	for b, t := range q.times {
		if seen += float64(t); t > 0 && seen >= need {
			if compat {
				return int64(b) * compatBucket
			}
			return LowerEdge(b)
		}
	}
	return 0
}

// measure sets all statistics to zero: what counts is what happens from now on.
func (s *run) measure() {
	s.resetAt = s.now
	s.watch.sentAt = 0
	for i := range s.queues {
		q := &s.queues[i]
		q.last, q.area, q.max = s.now, account{}, q.bytes
		q.tx, q.txBytes, q.marked, q.drops = 0, 0, 0, 0
		clear(q.times)
	}
	for i := range s.groups {
		g := &s.groups[i]
		g.max, g.roomMax = g.held, int32(g.headroom)
	}
	for i := range s.cold {
		c := &s.cold[i]
		c.tally = tally{}
		if c.dog != nil {
			c.dog.found, c.dog.restored = [NumPriorities]uint64{}, [NumPriorities]uint64{}
			for q := range c.dog.found {
				c.dog.found[q] = uint64(c.dog.biting >> q & 1)
			}
		}
	}
	for i := range s.switches {
		w := &s.switches[i]
		w.heldMax, w.roomMax = w.held, w.headroom
		for j := range w.pools {
			w.pools[j].max = w.pools[j].in
		}
	}
	for i := range s.nics {
		n := &s.nics[i]
		n.cnps, n.outOfSeq, n.duplicate = 0, 0, 0
		if n.slow != nil {
			n.slow.max = n.slow.total
		}
	}
	for i := range s.snd {
		q := &s.snd[i]
		q.counts = flowCounts{received: s.rcv[i].nxt, acked: q.una}
		q.cc.cnps, q.cc.cuts = 0, 0
		if q.messages != nil {
			q.messages.times = Histogram{}
		}
	}
}

// series is what rows of Result.Series are made of.
type series struct {
	rows          []Sample
	marked, drops uint64 // since the last row
}

// sample adds a row.
func (s *run) sample() {
	row := Sample{
		At: s.now, Marked: s.series.marked, Drops: s.series.drops,
		Queues:   make([]int64, len(s.cfg.Watch)),
		Received: make([]int64, len(s.snd)),
		Acked:    make([]int64, len(s.snd)),
		Rates:    make([]int64, len(s.snd)),
		Paused:   make([]Time, len(s.ports)),
	}
	s.series.marked, s.series.drops = 0, 0
	for i, at := range s.cfg.Watch {
		row.Queues[i] = s.queues[s.place(int32(at.Port), uint8(at.Queue))].bytes
	}
	for i := range s.snd {
		q := &s.snd[i]
		row.Received[i] = s.payload(uint32(i), q, s.rcv[i].nxt)
		row.Acked[i] = s.payload(uint32(i), q, q.una)
		row.Rates[i] = s.rateNow(q)
	}
	for i := range s.cold {
		s.account(int32(i))
		row.Paused[i] = s.cold[i].sampled
		s.cold[i].sampled = 0
	}
	s.series.rows = append(s.series.rows, row)
}

// account books for how long any priority of a port was stopped, before that changes.
func (s *run) account(pi int32) {
	c := &s.cold[pi]
	if c.stopped != 0 {
		c.sampled += s.now - c.sampledAt
	}
	c.sampledAt = s.now
}

// rateNow is the rate that a flow's reaction point allows now.
func (s *run) rateNow(q *sender) int64 {
	if r := s.nics[q.nic].react; r != nil && q.cc.active {
		s.catchUp(q, r)
	}
	return int64(q.cc.rate)
}

// payload is the bytes of a flow before a packet.
func (s *run) payload(fi uint32, q *sender, psn uint32) int64 {
	f := &s.cfg.Flows[fi]
	if psn >= q.total && q.total != endless {
		return f.Bytes
	}
	if f.Message == 0 {
		return int64(psn) * int64(f.Payload)
	}
	return int64(psn/q.each)*f.Message + int64(psn%q.each)*int64(f.Payload)
}
