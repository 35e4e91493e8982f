package derive

import (
	"fmt"
	"math/big"

	"github.com/fabricctl/fabricctl/model/units"
)

// Share is how congested groups share a pool under a dynamic threshold once that has settled.
type Share struct {
	Each Amount // what each group may hold, its threshold: effective xoff
	Used Amount // what all of them hold
	Free Amount // what is left
}

// DynamicThreshold is T = alpha B / (1 + alpha n), the steady state of a threshold alpha times the free pool with n
// groups at it (Choudhury and Hahne, Dynamic Queue Length Thresholds, IEEE/ACM ToN 1998, equation 4). Without a pool,
// alpha or groups nothing is shared.
func DynamicThreshold(pool units.Bytes, alpha units.Ratio, groups int) Share {
	each, used, free := dynamic(pool, alpha, groups)
	return Share{amount(each), amount(used), amount(free)}
}

func dynamic(pool units.Bytes, alpha units.Ratio, groups int) (each, used, free *big.Rat) {
	a, b, n := ratio(alpha), positive(pool), whole(int64(max(groups, 0)))
	each = over(times(a, b), plus(whole(1), times(a, n)))
	used = times(each, n)
	return each, used, sub(b, used)
}

func ratio(r units.Ratio) *big.Rat {
	if r.Num <= 0 || r.Den <= 0 {
		return new(big.Rat)
	}
	return frac(int64(r.Num), int64(r.Den))
}

// FirstPause is the egress queue at which n ingress groups that fill it together reach their thresholds: n T.
func FirstPause(pool units.Bytes, alpha units.Ratio, groups int) units.Bytes {
	_, used, _ := dynamic(pool, alpha, groups)
	return down(used)
}

// AlphaNeeded is the smallest power of two with which each of n groups reaches a threshold in a pool; false when no
// alpha of the hardware (up to 2^7) does.
func AlphaNeeded(pool, threshold units.Bytes, groups int) (units.Ratio, bool) {
	for e := minExponent; e <= maxExponent; e++ {
		a, _ := Alpha(e)
		if each, _, _ := dynamic(pool, a, groups); each.Cmp(positive(threshold)) >= 0 {
			return a, true
		}
	}
	return units.Ratio{}, false
}

// The exponents that SAI and SONiC know: dynamic_th is the logarithm of alpha to base 2.
const (
	minExponent = -8
	maxExponent = 7
)

// Alpha is 2^exponent; false when hardware has no such exponent (-8 to 7).
func Alpha(exponent int) (units.Ratio, bool) {
	switch {
	case exponent < minExponent || exponent > maxExponent:
		return units.Ratio{}, false
	case exponent < 0:
		return units.Ratio{Num: 1, Den: 1 << -exponent}, true
	}
	return units.Ratio{Num: 1 << exponent, Den: 1}, true
}

// Exponent is the inverse of Alpha; false when alpha is no power of two, or beyond what hardware has.
func Exponent(alpha units.Ratio) (int, bool) {
	for e := minExponent; e <= maxExponent; e++ {
		if a, _ := Alpha(e); a == alpha {
			return e, true
		}
	}
	return 0, false
}

// XonMin is what a group has to hold when it lets its neighbour send again, so that its queue is not empty before the
// first of it arrives: what drains at the link's rate while the message goes there, is acted on, and the cable fills
// again, and one frame (IEEE 802.1Qbb annex O, turned around). Drain is the rate at which the queue is emptied.
func XonMin(l Link, drain units.BitRate, d Delays) Sum {
	s := &summing{}
	at := Link{Speed: drain, Cable: l.Cable}
	formula, cable := at.cable()
	s.add("cable", formula, cable)
	response := times(positive(d.Quanta), whole(quantum))
	if l.Speed > 0 {
		response = times(response, positive(drain), over(whole(1), whole(int64(l.Speed)))) // the time, at the rate of the drain
	}
	s.add("response", fmt.Sprintf("%d quanta * %d * %s / %s", max(d.Quanta, 0), quantum, max(drain, 0), max(l.Speed, 0)), response)
	_, peer := l.frames()
	s.add("frame", peer.String(), whole(int64(peer)))
	return s.sum(1)
}

// Pool is a headroom pool as a whole.
type Pool struct {
	Size        units.Bytes
	OverSubsBy  units.Ratio // how often it may be promised; zero = once
	Promised    units.Bytes // sum of what groups may take
	Needed      units.Bytes // what the pool has to have for that, at this ratio
	NeededRatio Amount      // what the ratio has to be for that, with this pool; 0 without a pool
}

// Oversubscribed weighs what is promised against a pool: sum / ratio <= pool (SONiC
// dynamically-headroom-calculation.md, over_subscribe_ratio).
func Oversubscribed(pool units.Bytes, by units.Ratio, promised units.Bytes) Pool {
	r := ratio(by)
	if r.Sign() == 0 {
		r = whole(1)
	}
	p := Pool{Size: pool, OverSubsBy: by, Promised: promised, Needed: up(over(positive(promised), r), 1)}
	if pool > 0 {
		p.NeededRatio = amount(over(positive(promised), positive(pool)))
	}
	return p
}
