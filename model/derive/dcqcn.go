package derive

import (
	"math"

	"github.com/fabricctl/fabricctl/model/units"
)

// DCQCN is the parameters of a reaction point.
type DCQCN struct {
	CNPInterval units.Duration // tau: at most one CNP of a flow in it
	AlphaTimer  units.Duration // tau': alpha decays after it without a CNP
	RateTimer   units.Duration // T
	ByteCounter units.Bytes    // B
	Recovery    int            // F: rounds of fast recovery
	Increase    units.BitRate  // R_AI: step of the additive increase
	Packet      units.Bytes    // size of a packet
}

// PaperDCQCN is the defaults of the paper (Zhu et al., SIGCOMM'15; ECN or Delay, CoNEXT'16). NICs ship with others, for
// which nothing here has been checked.
func PaperDCQCN() DCQCN {
	return DCQCN{
		CNPInterval: 50 * units.Microsecond, AlphaTimer: 55 * units.Microsecond, RateTimer: 55 * units.Microsecond,
		ByteCounter: 10 * units.MB, Recovery: 5, Increase: 40 * units.Mbps, Packet: 1000 * units.Byte,
	}
}

// Ramp is a marking ramp.
type Ramp struct {
	Kmin, Kmax units.Bytes
	Pmax       units.Percent
}

// FixedPoint is where n equal flows of DCQCN come to rest on a link.
type FixedPoint struct {
	P      float64       // marking probability, 0 to 1
	Approx float64       // the paper's approximation of P, which is 19 to 58 % too high at 40 Gbps
	Alpha  float64       // of each flow's reaction point
	Rate   units.BitRate // of each flow
	Target units.BitRate // each flow's target rate
}

// FixedPointOf solves a^2 alpha / ((b+d)(c+e)) = tau^2 R_AI R_C for p (Zhu, Ghobadi, Misra, Padhye: ECN or Delay: Lessons
// Learnt from Analysis of DCQCN and TIMELY, CoNEXT'16, equations 9 to 13), with rates in packets per second:
//
//	a = 1-(1-p)^(tau R_C)   b = p/((1-p)^-B - 1)       c = b (1-p)^(F B)
//	                        d = p/((1-p)^(-T R_C) - 1) e = d (1-p)^(F T R_C)
//
// The root is unique; it is found by halving on the logarithm of p. It depends on speed and flows through speed/flows
// alone. False when there is none: no flows, no speed, or a parameter that is not above zero.
func FixedPointOf(d DCQCN, speed units.BitRate, flows int) (FixedPoint, bool) {
	if speed <= 0 || flows <= 0 || d.CNPInterval <= 0 || d.AlphaTimer <= 0 || d.RateTimer <= 0 || d.ByteCounter <= 0 ||
		d.Recovery <= 0 || d.Increase <= 0 || d.Packet <= 0 {
		return FixedPoint{}, false
	}
	f := fluid{
		tau: sec(d.CNPInterval), tauAlpha: sec(d.AlphaTimer), t: sec(d.RateTimer), b: float64(d.ByteCounter) / float64(d.Packet),
		f: float64(d.Recovery), rai: float64(d.Increase) / 8 / float64(d.Packet), rc: float64(speed) / 8 / float64(d.Packet) / float64(flows),
	}
	lo, hi := math.Log(1e-18), math.Log(1-1e-12)
	for range 200 {
		if mid := (lo + hi) / 2; f.excess(math.Exp(mid)) > 0 {
			hi = mid
		} else {
			lo = mid
		}
	}
	p := math.Exp((lo + hi) / 2)
	x := f.at(p)
	bits := func(packets float64) units.BitRate {
		return units.BitRate(clamp(math.Round(packets * 8 * float64(d.Packet))))
	}
	n, c := float64(flows), f.rc*float64(flows)
	return FixedPoint{
		P: p, Alpha: x.alpha, Rate: bits(f.rc), Target: bits(f.rc + x.alpha*x.a/(f.tau*(x.b+x.d))),
		Approx: math.Cbrt(f.rai * n * n / (f.tauAlpha * c * c) * math.Pow(1/f.b+n/(f.t*c), 2)),
	}, true
}

func sec(d units.Duration) float64 { return float64(d) / float64(units.Second) }

// fluid is the parameters in seconds and packets.
type fluid struct{ tau, tauAlpha, t, b, f, rai, rc float64 }

// fluidAt is the parts of the equation at one p.
type fluidAt struct{ a, alpha, b, c, d, e float64 }

func (f fluid) at(p float64) fluidAt {
	l := math.Log1p(-p) // (1-p)^x = exp(l x)
	x := fluidAt{
		a: -math.Expm1(l * f.tau * f.rc), alpha: -math.Expm1(l * f.tauAlpha * f.rc),
		b: p / math.Expm1(-l*f.b), d: p / math.Expm1(-l*f.t*f.rc),
	}
	x.c, x.e = x.b*math.Exp(l*f.f*f.b), x.d*math.Exp(l*f.f*f.t*f.rc)
	return x
}

// excess is above zero where p is above the root.
func (f fluid) excess(p float64) float64 {
	x := f.at(p)
	return x.a*x.a*x.alpha - (x.b+x.d)*(x.c+x.e)*f.tau*f.tau*f.rai*f.rc
}

// Queue is where the egress queue rests under a ramp: Kmin + p/Pmax (Kmax - Kmin). Above Pmax there is no rest: the
// queue leaves the ramp and swings around Kmax, and saturated is true.
func (x FixedPoint) Queue(r Ramp) (q Amount, saturated bool) {
	pmax := float64(r.Pmax) / float64(100*units.OnePercent)
	if pmax <= 0 {
		return Amount(math.Inf(1)), true
	}
	return Amount(float64(r.Kmin) + x.P/pmax*float64(r.Kmax-r.Kmin)), x.P > pmax
}

// PmaxNeeded is the least Pmax with which the fixed point lies on the ramp: p*, rounded up to a hundredth of a percent
// and at most 100 %.
func (x FixedPoint) PmaxNeeded() units.Percent {
	const step = 100 // a hundredth of a percent, in millionths
	return min(units.Percent(math.Ceil(x.P*1e6/step))*step, 100*units.OnePercent)
}
