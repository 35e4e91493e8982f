package engine

import (
	"math"
	"math/rand/v2"
	"testing"
)

// eager is a reaction point whose timers are ticks of a clock, one after the other.
type eager struct {
	Reaction
	rate, target, alpha float64
	alphaAt, cutAt, up  Time
	bytes               int64
	rises, fills        int
	active, seen, due   bool
	line                float64
}

// until lets timers run to a time, itself included; at the same time alpha is updated first, then the rate goes up, then down.
func (e *eager) until(t Time) {
	for e.active {
		next := min(e.alphaAt, e.up)
		if !e.CutOnCNP {
			next = min(next, e.cutAt)
		}
		if next > t {
			return
		}
		switch next {
		case e.alphaAt:
			e.alphaAt += e.AlphaTimer
			e.alpha *= 1 - e.G
			if e.seen {
				e.alpha += e.G
			}
			e.seen = false
		case e.up:
			e.up += e.RateTimer
			e.rise()
			e.rises++
		default:
			if e.due {
				e.cut(e.cutAt)
			}
			e.due = false
			e.cutAt += e.CutTimer
		}
	}
}

func (e *eager) rise() {
	most, least := e.rises, e.rises
	if e.ByteCounter > 0 {
		most, least = max(e.rises, e.fills), min(e.rises, e.fills)
	}
	if most >= e.FastRecovery {
		if least > e.FastRecovery {
			e.target += float64(e.HAI)
		} else {
			e.target += float64(e.AI)
		}
	}
	e.target = min(e.target, e.line)
	e.rate = (e.rate + e.target) / 2
}

func (e *eager) cut(at Time) {
	if e.ClampTarget || e.rises+e.fills > 0 {
		e.target = e.rate
	}
	e.rate = max(float64(e.MinRate), e.rate*(1-e.alpha/2))
	e.rises, e.fills, e.bytes, e.up = 0, 0, e.ByteCounter, at+e.RateTimer
}

func (e *eager) notified(t Time) {
	e.until(t)
	if !e.active {
		e.active, e.alpha, e.target = true, 1, e.rate
		e.alphaAt, e.cutAt, e.up = t+e.AlphaTimer, t+e.CutTimer+Nanosecond, never
		e.bytes = e.ByteCounter
		if !e.CutOnCNP {
			e.due = true
			return
		}
	}
	if e.CutOnCNP {
		e.cut(t)
		e.alpha = e.alpha*(1-e.G) + e.G
		e.alphaAt = t + e.AlphaTimer
		return
	}
	e.seen, e.due = true, true
}

func (e *eager) sent(size int64) {
	if e.bytes -= size; e.active && e.ByteCounter > 0 && e.bytes <= 0 {
		e.bytes += e.ByteCounter
		e.rise()
		e.fills++
	}
}

// TestLazyTimers compares what is made up for with timers that tick, in both families, with and without byte counter.
func TestLazyTimers(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 2))
		p := Reaction{
			On: true, CutOnCNP: seed&1 == 0, ClampTarget: seed&2 == 0, AlphaTimer: Time(1+r.IntN(60)) * Microsecond, CutTimer: Time(2+r.IntN(60)) * Microsecond,
			RateTimer: Time(5+r.IntN(300)) * Microsecond, FastRecovery: r.IntN(6), G: 1 / float64(int(16)<<r.IntN(6)), AI: 40e6, HAI: 400e6, MinRate: 1e8,
		}
		if seed&4 == 0 {
			p.ByteCounter = 100_000 << r.IntN(7)
		}
		c := star(2)
		c.NICs[0].React = p
		c.flow(0, 1, 0, lossless)
		s, err := newRun(c)
		if err != nil {
			t.Fatal(err)
		}
		q, react := &s.snd[0], s.nics[0].react
		e := eager{Reaction: p, rate: 100e9, line: 100e9}
		for step := range 2000 {
			s.now += Time(r.Int64N(int64(1) << (10 + r.IntN(18)))) // up to 134 us
			if r.IntN(4) == 0 {
				s.notified(q, react)
				e.notified(s.now)
			} else if q.cc.active {
				s.catchUp(q, react)
				if p.ByteCounter > 0 {
					s.counted(q, react, 10_007)
				}
				e.until(s.now)
				e.sent(10_007)
			}
			same := func(a, b float64) bool { return math.Abs(a-b) <= 1e-9*b }
			if !same(q.cc.rate, e.rate) || q.cc.active && !same(q.cc.target, e.target) {
				t.Fatalf("seed %d step %d at %d: rate %v and target %v, by ticks %v and %v\n%+v", seed, step, s.now, q.cc.rate, q.cc.target, e.rate, e.target, p)
			}
		}
	}
}
