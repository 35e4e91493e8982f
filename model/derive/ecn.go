package derive

import (
	"math"
	"math/big"

	"github.com/fabricctl/fabricctl/model/units"
)

// Bounds is up to where thresholds keep ECN ahead of PFC, whatever the spread of traffic over ports.
type Bounds struct {
	Free       Amount // buffer that is left when all headroom is set aside; negative = there is not so much buffer
	PFC        Amount // a static pause threshold has to be below
	ECNStatic  Amount // the start of marking has to be below, under that static threshold
	ECNDynamic Amount // the start of marking has to be below, under a dynamic threshold
	Feasible   bool   // headroom leaves any buffer; otherwise the bounds are 0
}

// ECNBeforePFC is the bounds for a switch with a buffer of its own, n ports with k lossless priorities each, and a
// headroom tf for each of them (Zhu et al., Congestion Control for Large-Scale RDMA Deployments, SIGCOMM'15, section 4,
// for any k): static t_PFC <= (B - k n tf)/(k n) and t_ECN < t_PFC/n; dynamic t_ECN < beta (B - k n tf)/(k n (beta+1)).
// Beta is k times the alpha of a priority group. The paper prints 0.85 KB for its static ECN bound, where its own
// inequality gives 0.765 KB.
func ECNBeforePFC(buffer units.Bytes, k, n int, headroom units.Bytes, beta units.Ratio) Bounds {
	if k <= 0 || n <= 0 {
		return Bounds{Free: Amount(max(buffer, 0)), Feasible: buffer > 0}
	}
	kn := times(whole(int64(k)), whole(int64(n)))
	free := sub(positive(buffer), times(kn, positive(headroom)))
	b := Bounds{Free: amount(free), Feasible: free.Sign() > 0}
	if !b.Feasible {
		return b
	}
	static := over(free, kn)
	r := ratio(beta)
	b.PFC, b.ECNStatic = amount(static), amount(over(static, whole(int64(n))))
	b.ECNDynamic = amount(over(times(r, free), times(kn, plus(r, whole(1)))))
	return b
}

// DCTCPMin is the least threshold at which a single window-based flow keeps a link busy: K > C RTT / 7 (Alizadeh et al.,
// Data Center TCP, SIGCOMM'10, equation 13). It is a lower bound for rate-based control too, which needs more.
func DCTCPMin(speed units.BitRate, rtt units.Duration) Amount {
	return amount(over(bdp(speed, rtt), whole(7)))
}

// bdp is what a link carries in a time, in bytes.
func bdp(speed units.BitRate, t units.Duration) *big.Rat {
	return times(positive(speed), positive(t), frac(1, 8*1e9))
}

// First is who acts first in a burst.
type First string

// Who acts first.
const (
	ECNFirst First = "ecn_first" // senders can slow down before any of them is paused
	PFCFirst First = "pfc_first" // a pause comes before any sender can know
	NoneActs First = "none"      // there is no congestion
)

// Incast is n senders on ports of their own that start at line rate towards one port.
type Incast struct {
	Speed    units.BitRate
	Senders  int
	Kmin     units.Bytes    // where marking starts at the egress
	Xoff     units.Bytes    // what each ingress group may hold
	Feedback units.Duration // from a mark to the sender's reaction
}

// Reaction is what happens first in an incast. Times are in seconds from its start; those that never come are infinite.
type Reaction struct {
	Growth   units.BitRate // of the egress queue
	ToKmin   float64       // when the queue reaches Kmin
	ToXoff   float64       // when each ingress group reaches xoff
	FirstCut float64       // when a sender can have reacted, if every packet above Kmin is marked
	AtCut    Amount        // egress queue by then
	First    First
	Any      bool // some ECN setting could act before PFC: feedback alone is quicker than the way to xoff
}

// FirstReaction is the arithmetic of an incast's start: DCQCN starts at line rate (SIGCOMM'15, section 5), so the queue
// grows by (n-1) C, each ingress group by C (1 - 1/n), and a cut comes a feedback time after the queue passed Kmin.
func FirstReaction(in Incast) Reaction {
	n, c := max(in.Senders, 0), positive(in.Speed)
	if n < 2 || c.Sign() == 0 {
		inf := math.Inf(1)
		return Reaction{ToKmin: inf, ToXoff: inf, FirstCut: inf, First: NoneActs, Any: true}
	}
	growth := times(c, whole(int64(n-1)))
	toKmin := over(times(positive(in.Kmin), whole(8)), growth)
	toXoff := over(times(positive(in.Xoff), whole(8), whole(int64(n))), growth) // growth/n is C (1 - 1/n)
	feedback := times(positive(in.Feedback), frac(1, 1e9))
	cut := plus(toKmin, feedback)
	r := Reaction{
		Growth: units.BitRate(down(growth)), ToKmin: seconds(toKmin), ToXoff: seconds(toXoff), FirstCut: seconds(cut),
		AtCut: amount(over(times(growth, cut), whole(8))), First: ECNFirst, Any: feedback.Cmp(toXoff) < 0,
	}
	if cut.Cmp(toXoff) >= 0 {
		r.First = PFCFirst
	}
	return r
}

func seconds(v *big.Rat) float64 {
	f, _ := v.Float64()
	return f
}

// IncastLimit is the largest number of senders that a dynamic threshold lets start at line rate without a pause before
// the first feedback: n < B/(C RTT) - 1/alpha, from alpha B / (1 + alpha n) > C RTT. It is necessary and not enough,
// since the queue goes on growing after the first cut.
func IncastLimit(pool units.Bytes, alpha units.Ratio, speed units.BitRate, feedback units.Duration) int {
	burst, a := bdp(speed, feedback), ratio(alpha)
	if a.Sign() == 0 {
		return 0
	}
	if burst.Sign() == 0 {
		return math.MaxInt
	}
	limit := sub(over(positive(pool), burst), over(whole(1), a))
	n := int64(up(limit, 1)) - 1 // strictly below
	return int(max(n, 0))
}
