package report

import (
	"math"
	"strconv"
)

// unit is how numbers of a quantity are written.
type unit struct {
	name string
	of   float64 // base units in one
}

// units are those of a quantity, the largest first.
func (q Quantity) units() []unit {
	switch q {
	case Bytes:
		return []unit{{"GB", 1e9}, {"MB", 1e6}, {"KB", 1e3}, {"B", 1}}
	case Rate:
		return []unit{{"Tbps", 1e12}, {"Gbps", 1e9}, {"Mbps", 1e6}, {"Kbps", 1e3}, {"bps", 1}}
	case Time:
		return []unit{{"s", 1}, {"ms", 1e-3}, {"µs", 1e-6}, {"ns", 1e-9}}
	case Share:
		return []unit{{"%", 0.01}}
	}
	return []unit{{"", 1}}
}

// unitFor is the unit in which the largest number of an axis is at least 1. Tbps is for what is at least 10: people say 400 Gbps, and 1,600.
func (q Quantity) unitFor(largest float64) unit {
	us := q.units()
	for _, u := range us {
		least := u.of
		if u.name == "Tbps" {
			least *= 10
		}
		if largest >= least {
			return u
		}
	}
	return us[len(us)-1]
}

// text is a number with its unit, in three digits or as many as it takes before the point: "1.25MB".
func (q Quantity) text(v float64) string {
	if q == Factor && v > 0 && v < 1 {
		if n := math.Round(1 / v); n <= 1<<20 && math.Abs(v*n-1) < 1e-9 {
			return "1/" + strconv.FormatFloat(n, 'f', 0, 64)
		}
	}
	u := q.unitFor(math.Abs(v))
	v /= u.of
	decimals := 0
	for size := math.Abs(v); size > 0 && size < 99.95 && decimals < 2; size *= 10 {
		decimals++
	}
	s := strconv.FormatFloat(v, 'f', decimals, 64)
	if decimals > 0 {
		s = trimZeros(s)
	}
	return s + u.name
}

// trimZeros takes zeros off the end of a number with a point.
func trimZeros(s string) string {
	for s[len(s)-1] == '0' {
		s = s[:len(s)-1]
	}
	if s[len(s)-1] == '.' {
		s = s[:len(s)-1]
	}
	return s
}

// scale is an axis with its numbers: ticks are at multiples of step, which is 1, 2 or 5 times a power of ten in its unit.
type scale struct {
	lo, hi   float64 // base units, both ends of the axis
	unit     unit
	step     float64 // in unit
	decimals int
	log      bool // the axis is logarithmic: ticks are of, at round numbers with units of their own
	of       Quantity
	marks    []float64 // the ticks of a logarithmic axis
}

// scaleOf is the scale of an axis over numbers from lo to hi, with about so many ticks. With round the axis ends at the tick that follows hi.
func scaleOf(q Quantity, lo, hi float64, ticks int, round bool) scale {
	us := q.units()
	if least := max(math.Abs(lo)/1e6, math.Abs(hi)/1e6, us[len(us)-1].of/1e3); !(hi-lo >= least) {
		hi = lo + max(least, us[len(us)-1].of) // one number is no axis
	}
	s := scale{lo: lo, hi: hi, unit: q.unitFor(max(math.Abs(lo), math.Abs(hi)))}
	raw := (hi - lo) / s.unit.of / float64(ticks)
	power := math.Floor(math.Log10(raw))
	s.step = math.Pow10(int(power))
	for _, m := range []float64{1, 2, 5, 10} {
		if s.step*m >= raw*(1-1e-9) {
			s.step *= m
			break
		}
	}
	if s.decimals = -int(math.Floor(math.Log10(s.step) + 1e-9)); s.decimals < 0 {
		s.decimals = 0
	}
	if round {
		s.hi = math.Ceil(hi/s.unit.of/s.step-1e-9) * s.step * s.unit.of
		s.lo = math.Floor(lo/s.unit.of/s.step+1e-9) * s.step * s.unit.of
	}
	return s
}

// logScaleOf is the logarithmic scale of an axis over numbers from lo to hi, both above 0, with about so many ticks.
func logScaleOf(q Quantity, lo, hi float64, ticks int) scale {
	if hi < lo*1.05 { // one number is no axis
		lo, hi = lo/1.5, hi*1.5
	}
	s := scale{log: true, of: q, lo: lo, hi: hi}
	if hi < lo*4 { // too short for powers: those of an even axis
		return s.at(scaleOf(q, lo, hi, ticks, false).ticks())
	}
	for _, steps := range logSteps(q) {
		if s.marks = steps.between(lo, hi); len(s.marks) <= ticks+1 {
			break
		}
	}
	return s
}

// at is s with these ticks, as far as they are in it.
func (s scale) at(ticks []float64, _ []string) scale {
	for _, v := range ticks {
		if v >= s.lo && v <= s.hi {
			s.marks = append(s.marks, v)
		}
	}
	return s
}

// logStep is ticks of a logarithmic axis: of every power of base, times each of these.
type logStep struct {
	base  float64
	times []float64
}

// logSteps are the ticks that an axis may have, the closest first.
func logSteps(q Quantity) []logStep {
	if q == Factor {
		return []logStep{{2, []float64{1}}, {4, []float64{1}}, {16, []float64{1}}, {256, []float64{1}}, {math.Pow(2, 32), []float64{1}}}
	}
	steps := []logStep{{10, []float64{1, 2, 5}}, {10, []float64{1, 3}}}
	for _, power := range []int{1, 2, 3, 6, 12, 24} {
		steps = append(steps, logStep{math.Pow10(power), []float64{1}})
	}
	return steps
}

// between are the ticks from lo to hi.
func (l logStep) between(lo, hi float64) []float64 {
	var at []float64
	for power := math.Floor(math.Log(lo)/math.Log(l.base)) - 1; ; power++ {
		for _, m := range l.times {
			switch v := math.Pow(l.base, power) * m; {
			case v > hi*(1+1e-9):
				return at
			case v >= lo*(1-1e-9):
				at = append(at, v)
			}
		}
	}
}

// ticks are the numbers of a scale, in base units, with their texts.
func (s scale) ticks() (at []float64, text []string) {
	if s.log {
		for _, v := range s.marks {
			text = append(text, s.of.text(v))
		}
		return s.marks, text
	}
	first := math.Ceil(s.lo/s.unit.of/s.step - 1e-9)
	last := math.Floor(s.hi/s.unit.of/s.step + 1e-9)
	for i := range int(last-first) + 1 {
		v := (first + float64(i)) * s.step
		at = append(at, v*s.unit.of)
		text = append(text, strconv.FormatFloat(v+0, 'f', s.decimals, 64))
	}
	return at, text
}

// place is where a number lies between 0, at lo, and length, at hi. The conversion keeps the product out of a fused addition, so that all machines
// draw the same.
func (s scale) place(v, length float64) float64 {
	if s.log {
		return float64(math.Log(max(v, 1e-30)/s.lo) / math.Log(s.hi/s.lo) * length)
	}
	return float64((v - s.lo) / (s.hi - s.lo) * length)
}
