package fluid

import (
	"math"

	"github.com/fabricctl/fabricctl/model/derive"
	"github.com/fabricctl/fabricctl/model/units"
)

// params is a reaction point in seconds and packets.
type params struct {
	tau, tauAlpha, timer float64
	bytes                float64 // B in packets; 0 = no byte counter
	recovery             float64
	rai                  float64 // packets/s
	gain                 float64
}

func seconds(d units.Duration) float64 { return float64(d) / float64(units.Second) }

func paramsOf(d derive.DCQCN, gain float64) params {
	return params{
		tau: seconds(d.CNPInterval), tauAlpha: seconds(d.AlphaTimer), timer: seconds(d.RateTimer), bytes: float64(d.ByteCounter) / float64(d.Packet),
		recovery: float64(d.Recovery), rai: packets(d.Increase, d.Packet), gain: gain,
	}
}

func packets(r units.BitRate, packet units.Bytes) float64 { return float64(r) / 8 / float64(packet) }

// response is what a sender of rate rc makes of a marking probability p: all of equations 5 to 8 that depends on what has
// come back to it, and so on what was so a feedback time ago.
type response struct {
	cut   float64 // a: a notification comes within tau
	alpha float64 // a notification comes within tau'
	half  float64 // (b+d) RC / 2: pull to the target, per second
	add   float64 // R_AI RC (c+e): additive increase of the target, packets/s each second
}

// at has a = 1-(1-p)^(tau RC), b = p/((1-p)^-B - 1), c = b (1-p)^(F B), d = p/((1-p)^(-T RC) - 1), e = d (1-p)^(F T RC) of eq. 9.
func (k params) at(p, rc float64) response {
	if p <= 0 { // the limits
		up := 1 / k.timer
		if k.bytes > 0 {
			up += rc / k.bytes
		}
		return response{half: up / 2, add: k.rai * up}
	}
	l := math.Log1p(-min(p, 1-1e-12)) // (1-p)^x = exp(l x)
	x := k.timer * rc
	d := p / math.Expm1(-l*x)
	up, add := d, d*math.Exp(l*k.recovery*x)
	if k.bytes > 0 {
		b := p / math.Expm1(-l*k.bytes)
		up += b
		add += b * math.Exp(l*k.recovery*k.bytes)
	}
	return response{cut: -math.Expm1(l * k.tau * rc), alpha: -math.Expm1(l * k.tauAlpha * rc), half: up * rc / 2, add: k.rai * rc * add}
}

// sender is the state of a reaction point: alpha, R_T and R_C.
type sender struct{ alpha, target, rate float64 }

// slope is equations 5 to 8: how a sender changes.
func (k params) slope(s sender, r response) sender {
	gap := s.target - s.rate
	return sender{
		alpha:  k.gain / k.tauAlpha * (r.alpha - s.alpha),
		target: r.add - gap/k.tau*r.cut,
		rate:   gap*r.half - s.rate*s.alpha/(2*k.tau)*r.cut,
	}
}

// ramp is a marking ramp in packets.
type ramp struct{ kmin, kmax, pmax float64 }

func rampOf(r derive.Ramp, packet units.Bytes) ramp {
	return ramp{kmin: float64(r.Kmin) / float64(packet), kmax: float64(r.Kmax) / float64(packet), pmax: float64(r.Pmax) / float64(100*units.OnePercent)}
}

// at is eq. 3: the probability of a mark at a queue of q packets.
func (r ramp) at(q float64) float64 {
	switch {
	case q <= r.kmin:
		return 0
	case q > r.kmax:
		return 1
	}
	return r.pmax * (q - r.kmin) / (r.kmax - r.kmin)
}
