package fluid

import (
	"math"
	"math/cmplx"

	"github.com/fabricctl/fabricctl/model/units"
)

// Rest is where the equal senders of a single link come to rest.
type Rest struct {
	P            float64       // marking probability
	Alpha        float64       // of each sender
	Rate, Target units.BitRate // of each sender
	Queue        float64       // bytes, on the ramp or on the line that goes on where it ends
	Saturated    bool          // that is beyond the ramp: there is no rest, and the queue swings around Kmax
	Margin       float64       // phase margin, degrees; below zero a small disturbance grows. NaN when the loop's gain is never 1
}

// RestOf finds the point of rest of a model of one link whose senders are alike and have lines that could fill it, and how
// stable it is. False for other models, and where there is no such point.
//
// It is where the target neither grows nor falls (a^2 alpha / ((b+d)(c+e)) = tau^2 R_AI RC, eq. 13, when nothing is spaced), found by
// halving on the logarithm of p.
func RestOf(m Model) (Rest, bool) {
	if m.validate() != nil || len(m.Links) != 1 || len(m.Flows) != 1 {
		return Rest{}, false
	}
	l, f := m.Links[0], m.Flows[0]
	if float64(f.Count)*float64(f.Line) <= float64(l.Speed) || l.Ramp.Pmax == 0 || l.Ramp.Kmax == l.Ramp.Kmin {
		return Rest{}, false
	}
	k, rc := paramsOf(m), packets(l.Speed, m.DCQCN.Packet)/float64(f.Count)
	lo, hi := math.Log(1e-18), math.Log(1-1e-12)
	for range 200 {
		if mid := (lo + hi) / 2; grows(k, math.Exp(mid), rc) {
			lo = mid
		} else {
			hi = mid
		}
	}
	p := math.Exp((lo + hi) / 2)
	s, _ := k.rest(p, rc)
	bits := func(packets float64) units.BitRate {
		return units.BitRate(math.Round(packets * 8 * float64(m.DCQCN.Packet)))
	}
	pmax := float64(l.Ramp.Pmax) / float64(100*units.OnePercent)
	return Rest{
		P: p, Alpha: s.alpha, Rate: bits(rc), Target: bits(s.target), Saturated: p > pmax, Margin: margin(m, k, s, p),
		Queue: float64(l.Ramp.Kmin) + p/pmax*float64(l.Ramp.Kmax-l.Ramp.Kmin),
	}, true
}

func grows(k params, p, rc float64) bool {
	_, grows := k.rest(p, rc)
	return grows > 0
}

// margin is the phase margin of the loop that is linear around the point of rest (CoNEXT'16, section 3.2): the queue integrates
// what n senders send too much, the ramp makes marks of it, and a feedback time later the senders respond with
// x' = J x + K p, of which K and the rate's part of J act a feedback time late.
func margin(m Model, k params, s sender, p float64) float64 {
	n, r := float64(m.Flows[0].Count), rampOf(m.Links[0].Ramp, m.DCQCN.Packet)
	loop := newLoop(k, s, p, n*r.pmax/(r.kmax-r.kmin), seconds(m.Flows[0].Feedback))
	return phaseMargin(loop.at)
}

// phaseMargin is by how much the phase of an open loop is above -180 degrees where its gain falls to 1; where it does so more
// than once, the least of them.
func phaseMargin(gain func(w float64) complex128) float64 {
	const perDecade, from, to = 200, -2, 7 // powers of ten, rad/s
	at := func(i int) float64 { return math.Pow(10, from+float64(i)/perDecade) }
	least, before := math.NaN(), gain(at(0))
	phase := cmplx.Phase(before)
	for i := 1; i <= (to-from)*perDecade; i++ {
		w := at(i)
		now := gain(w)
		phase += cmplx.Phase(now / before) // without jumps of a turn
		if cmplx.Abs(before) >= 1 && cmplx.Abs(now) < 1 {
			lo, hi := at(i-1), w
			for range 60 {
				if mid := math.Sqrt(lo * hi); cmplx.Abs(gain(mid)) >= 1 {
					lo = mid
				} else {
					hi = mid
				}
			}
			deg := 180 + (phase+cmplx.Phase(gain(hi)/now))*180/math.Pi
			if math.IsNaN(least) || deg < least {
				least = deg
			}
		}
		before = now
	}
	return least
}

// loop is the loop opened at the marks.
type loop struct {
	steepness float64 // of the ramp, times the senders: marks per packet
	feedback  float64
	now       [3][3]float64 // J: of alpha, target and rate, on the same
	late      [3]float64    // of the rate a feedback time ago
	marks     [3]float64    // K
}

func newLoop(k params, s sender, p, steepness, feedback float64) *loop {
	l := &loop{steepness: steepness, feedback: feedback}
	of := func(s sender, p, rate float64) [3]float64 {
		d := k.slope(s, k.at(p, rate))
		return [3]float64{d.alpha, d.target, d.rate}
	}
	// Differences both ways, with steps that leave a good part of the digits on either side.
	const part = 1e-5
	diff := func(x float64, at func(x float64) [3]float64) (d [3]float64) {
		up, down := at(x*(1+part)), at(x*(1-part))
		for i := range d {
			d[i] = (up[i] - down[i]) / (2 * part * x)
		}
		return d
	}
	l.marks = diff(p, func(p float64) [3]float64 { return of(s, p, s.rate) })
	l.late = diff(s.rate, func(rate float64) [3]float64 { return of(s, p, rate) })
	byAlpha := diff(s.alpha, func(v float64) [3]float64 { return of(sender{v, s.target, s.rate}, p, s.rate) })
	byTarget := diff(s.target, func(v float64) [3]float64 { return of(sender{s.alpha, v, s.rate}, p, s.rate) })
	byRate := diff(s.rate, func(v float64) [3]float64 { return of(sender{s.alpha, s.target, v}, p, s.rate) })
	for i := range l.now {
		l.now[i] = [3]float64{byAlpha[i], byTarget[i], byRate[i]}
	}
	return l
}

// at is the gain of the open loop at w rad/s: -steepness/(jw) [0 0 1] (jw I - J - J_late e^(-jw tau*))^-1 K e^(-jw tau*).
func (l *loop) at(w float64) complex128 {
	delay := cmplx.Exp(complex(0, -w*l.feedback))
	var a [3][3]complex128
	var b [3]complex128
	for i := range a {
		for j := range a[i] {
			a[i][j] = complex(-l.now[i][j], 0)
		}
		a[i][i] += complex(0, w)
		a[i][2] -= complex(l.late[i], 0) * delay
		b[i] = complex(l.marks[i], 0) * delay
	}
	with := a // Cramer's rule, for the rate
	for i := range with {
		with[i][2] = b[i]
	}
	return -complex(l.steepness, 0) / complex(0, w) * det(with) / det(a)
}

func det(a [3][3]complex128) complex128 {
	return a[0][0]*(a[1][1]*a[2][2]-a[1][2]*a[2][1]) - a[0][1]*(a[1][0]*a[2][2]-a[1][2]*a[2][0]) + a[0][2]*(a[1][0]*a[2][1]-a[1][1]*a[2][0])
}
