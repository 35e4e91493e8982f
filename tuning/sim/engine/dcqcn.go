package engine

import (
	"math"
	"math/bits"
)

// The reaction point of DCQCN (Zhu et al., SIGCOMM 2015, section 3.1 and figure 7), in two families. In the paper's the rate
// is cut at each notification and timers start anew with it. In the other one, which the reference simulator calls Mellanox's,
// notifications set flags that a free-running timer of decreases and one of alpha read.
//
// Timers are no events. Whatever they did is made up for when it matters: when the flow sends, and when a notification comes.

// react is the parameters of the NICs of one kind.
type react struct {
	Reaction
	keep  float64     // 1 - G
	decay [64]float64 // keep to the power of 2^i
	each  bool        // alpha fades step by step, as in the reference: the last digit differs
}

func newReact(c *Reaction, each bool) *react {
	r := &react{Reaction: *c, keep: 1 - c.G, each: each}
	x := r.keep
	for i := range r.decay {
		r.decay[i] = x
		x = float64(x * x)
	}
	return r
}

// rp is the state of a flow's reaction point.
type rp struct {
	rate, target, alpha float64 // bits per second
	nextAlpha           Time
	nextCut             Time
	nextRise            Time
	bytes               int64 // until the byte counter is full
	rises, fills        int32 // steps up by the timer and by the byte counter since the last cut
	active              bool  // a notification has come
	seen                bool  // since alpha was updated
	due                 bool  // since the last cut
	cnps, cuts          uint32
}

// notified deals with a notification.
func (s *run) notified(q *sender, r *react) {
	c := &q.cc
	c.cnps++
	if !c.active {
		c.active = true
		c.alpha = 1
		c.target = c.rate
		c.nextAlpha = s.now + r.AlphaTimer
		c.nextRise = never
		c.bytes = r.ByteCounter
		if !r.CutOnCNP {
			c.due = true
			c.nextCut = s.now + r.CutTimer + Nanosecond
			return
		}
	}
	s.catchUp(q, r)
	if r.CutOnCNP {
		s.cut(q, r, s.now)
		c.alpha = float64(c.alpha*r.keep) + r.G
		c.nextAlpha = s.now + r.AlphaTimer
		return
	}
	c.fade(r, s.ticked(r.AlphaTimer))
	c.seen = true
	if !c.due {
		c.due = true
		if t := s.ticked(r.CutTimer); c.nextCut <= t {
			c.nextCut += ((t-c.nextCut)/r.CutTimer + 1) * r.CutTimer
		}
	}
}

// fade does what the timer of alpha did until t.
func (c *rp) fade(r *react, t Time) {
	if c.nextAlpha > t {
		return
	}
	n := (t-c.nextAlpha)/r.AlphaTimer + 1
	c.nextAlpha += n * r.AlphaTimer
	c.alpha = float64(c.alpha * r.keep)
	if c.seen {
		c.alpha += r.G
		c.seen = false
	}
	n--
	if r.each {
		for range n {
			c.alpha = float64(c.alpha * r.keep)
		}
		return
	}
	for i := 0; n != 0; i++ {
		if n&1 != 0 {
			c.alpha = float64(c.alpha * r.decay[i])
		}
		n >>= 1
	}
}

// ticked is until when a timer of this period has ended before the event that is dealt with: until now, or just before where it
// was started, a period ago, after the event was asked for. With Compat alone does it matter: events of one nanosecond are
// many, and the reference takes them in the order in which they were asked for.
func (s *run) ticked(period Time) Time {
	if s.compat && s.now-period >= s.since {
		return s.now - 1
	}
	return s.now
}

// catchUp does what timers did until now. At the same time, an increase comes before a decrease.
func (s *run) catchUp(q *sender, r *react) {
	c := &q.cc
	for {
		cut := never
		if c.due {
			cut = c.nextCut
		}
		if c.nextRise <= cut {
			if c.nextRise > s.ticked(r.RateTimer) {
				break
			}
			c.nextRise += r.RateTimer
			s.rise(q, r)
			c.rises++
			continue
		}
		if cut > s.ticked(r.CutTimer) {
			break
		}
		s.cut(q, r, cut)
		c.due = false
		c.nextCut += r.CutTimer
	}
	if r.CutOnCNP {
		c.fade(r, s.now)
	}
}

// cut lowers the rate and starts the steps up anew.
func (s *run) cut(q *sender, r *react, at Time) {
	c := &q.cc
	c.fade(r, at)
	c.cuts++
	if r.ClampTarget || c.rises != 0 || c.fills != 0 {
		c.target = c.rate
	}
	s.setRate(q, max(float64(r.MinRate), s.kept(c.rate*(1-float64(c.alpha*0.5)))))
	c.rises, c.fills = 0, 0
	c.nextRise = at + r.RateTimer
	c.bytes = r.ByteCounter
}

// rise is a step up: first halfway to the target, then the target grows too, and faster when all counters agree.
func (s *run) rise(q *sender, r *react) {
	c := &q.cc
	most, least := c.rises, c.rises
	if r.ByteCounter > 0 {
		most, least = max(c.rises, c.fills), min(c.rises, c.fills)
	}
	switch first := int32(r.FastRecovery); {
	case most < first:
	case least > first:
		c.target += float64(r.HAI)
	default:
		c.target += float64(r.AI)
	}
	c.target = min(c.target, float64(q.line))
	s.setRate(q, s.kept(c.rate*0.5)+s.kept(c.target*0.5))
}

// counted tells the byte counter of a frame.
func (s *run) counted(q *sender, r *react, size int64) {
	c := &q.cc
	if c.bytes -= size; c.bytes <= 0 {
		c.bytes += r.ByteCounter
		s.rise(q, r)
		c.fills++
	}
}

// kept is a rate as it is kept: the reference keeps whole bits per second.
func (s *run) kept(rate float64) float64 {
	if s.compat {
		return math.Floor(rate)
	}
	return float64(rate)
}

// setRate is the only one that changes a flow's rate. What was computed of when the flow may send next stays.
func (s *run) setRate(q *sender, rate float64) {
	q.cc.rate = rate
	q.gap = s.gapOf(q, q.full)
}

// gapOf is how long after the start of a frame the next one may start.
func (s *run) gapOf(q *sender, size uint16) Time {
	if s.compat {
		ns, _ := bits.Mul64(uint64(float64(size)*8/q.cc.rate*(1<<64)), 1e9) // of seconds in 64 binary digits, cut
		return Time(ns) * Nanosecond
	}
	if q.cc.rate >= float64(q.line) {
		return s.serial(&s.ports[s.nics[q.nic].port], size)
	}
	return Time(float64(Time(size)+s.overhead) * 8 / q.cc.rate * 1e12)
}
