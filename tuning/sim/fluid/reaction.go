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
	spaced               bool
}

func seconds(d units.Duration) float64 { return float64(d) / float64(units.Second) }

func paramsOf(m Model) params {
	d := m.DCQCN
	return params{
		tau: seconds(d.CNPInterval), tauAlpha: seconds(d.AlphaTimer), timer: seconds(d.RateTimer), bytes: float64(d.ByteCounter) / float64(d.Packet),
		recovery: float64(d.Recovery), rai: packets(d.Increase, d.Packet), gain: m.Gain, spaced: m.Spaced,
	}
}

func packets(r units.BitRate, packet units.Bytes) float64 { return float64(r) / 8 / float64(packet) }

// response is what a sender of rate rc makes of a marking probability p: all of the equations that depends on what has come back
// to it, and so on what was so a feedback time ago.
type response struct {
	cut  float64 // of the rate, per second, each by alpha/2 of it
	lose float64 // of what the target has above the rate, per second: at a cut it falls to the rate
	half float64 // pull of the target on the rate, per second
	add  float64 // additive increase of the target, packets/s each second
	up   float64 // of alpha, per second
	down float64 // part of alpha that it loses, per second
}

// at is the response by the equations as published, or of notifications that keep their distance.
func (k params) at(p, rc float64) response {
	if p <= 0 { // the limits of both
		x := 1 / k.timer
		if k.bytes > 0 {
			x += rc / k.bytes
		}
		return response{half: x / 2, add: k.rai * x, down: k.gain / k.tauAlpha}
	}
	l := math.Log1p(-min(p, 1-1e-12)) // (1-p)^x = exp(l x)
	var r response
	if k.spaced {
		r = k.renewal(-l * rc)
	} else {
		r = k.published(p, l, rc)
	}
	if k.bytes > 0 { // b = p/((1-p)^-B - 1), c = b (1-p)^(F B) of eq. 9
		b := p * rc / math.Expm1(-l*k.bytes)
		r.half += b / 2
		r.add += k.rai * b * math.Exp(l*k.recovery*k.bytes)
	}
	return r
}

// published is equations 5 to 8: a = 1-(1-p)^(tau RC), d = p/((1-p)^(-T RC) - 1), e = d (1-p)^(F T RC). A cut is as likely at any
// time, which is what a timer of cuts makes of the marks since its last tick.
func (k params) published(p, l, rc float64) response {
	x := k.timer * rc
	a := -math.Expm1(l * k.tau * rc)
	d := p * rc / math.Expm1(-l*x)
	return response{
		cut: a / k.tau, lose: a / k.tau, half: d / 2, add: k.rai * d * math.Exp(l*k.recovery*x),
		up: -math.Expm1(l*k.tauAlpha*rc) * k.gain / k.tauAlpha, down: k.gain / k.tauAlpha,
	}
}

// renewal is the response to notifications that come tau after the one before at the earliest, and from then on with the next mark, lambda
// of them a second. All timers start anew with a notification. So a cut never comes before the first step up has made good half of the
// last cut, when T is about tau, and the target loses half of what the published equations have it lose: the queue rests 15 to
// 35 % higher. (Ours: a renewal process of intervals X = tau + Exp(lambda), in which n = X/T whole steps fit.)
func (k params) renewal(lambda float64) response {
	perSecond := lambda / (1 + lambda*k.tau)
	sure := math.Floor(k.tau / k.timer)                                                      // steps that always fit
	after := func(n, timer float64) float64 { return math.Exp(-lambda * (n*timer - k.tau)) } // P(X > n timer), where that is above tau
	more := after(sure+1, k.timer)
	w := math.Exp2(-sure)
	halves := w / 2 * more / (1 - math.Exp(-lambda*k.timer)/2) // sum of 2^-n P(X > n T) beyond what is sure
	left := w - halves                                         // E 2^-n: part of the gap that a cut finds
	area := 2*k.timer*(1-w) + w*(k.tau-sure*k.timer-math.Expm1(-lambda*((sure+1)*k.timer-k.tau))/lambda) -
		halves*math.Expm1(-lambda*k.timer)/lambda // E of the integral of 2^-n(t) over an interval
	first := max(k.recovery, sure)
	adds := first - k.recovery - after(first+1, k.timer)/math.Expm1(-lambda*k.timer)
	decays := math.Floor(k.tau / k.tauAlpha)
	decays -= after(decays+1, k.tauAlpha) / math.Expm1(-lambda*k.tauAlpha)
	return response{
		cut: perSecond, lose: left / area, half: (1 - left) / area, add: k.rai * adds * perSecond,
		up: k.gain * perSecond, down: k.gain * perSecond * (1 + decays),
	}
}

// sender is the state of a reaction point: alpha, R_T and R_C.
type sender struct{ alpha, target, rate float64 }

// slope is how a sender changes.
func (k params) slope(s sender, r response) sender {
	gap := s.target - s.rate
	return sender{
		alpha:  r.up - r.down*s.alpha,
		target: r.add - gap*r.lose,
		rate:   gap*r.half - s.rate*s.alpha/2*r.cut,
	}
}

// rest is the sender of rate rc that marks of probability p keep where it is, but for its target, which grows by the second result.
func (k params) rest(p, rc float64) (s sender, grows float64) {
	r := k.at(p, rc)
	s = sender{alpha: r.up / r.down, rate: rc}
	gap := rc * s.alpha / 2 * r.cut / r.half
	s.target = rc + gap
	return s, r.add - gap*r.lose
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
