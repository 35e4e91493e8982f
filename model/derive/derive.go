// Package derive holds the formulas of lossless Ethernet: what headroom a pause needs, where a dynamic threshold
// settles, which ECN ramp acts before PFC, and where DCQCN comes to rest. They are pure functions of plain quantities;
// which numbers go in (a platform's table, a model's cable) and what is done with the result is decided elsewhere.
//
// A result carries its terms, so that the arithmetic can be shown. Sums are exact (rational numbers, rounded once, in
// the direction that is safe), and no input makes them overflow or panic: what is below zero counts as zero, and what
// does not fit is the largest size there is. Each formula names its source and equation where it is written.
package derive

import (
	"math"
	"math/big"
	"strconv"

	"github.com/fabricctl/fabricctl/model/units"
)

// Amount is a number of bytes with the fraction that a formula gives it.
type Amount float64

// Up is a in whole bytes, rounded up; Down rounded down.
func (a Amount) Up() units.Bytes { return clamp(math.Ceil(float64(a))) }

// Down is a in whole bytes, rounded down.
func (a Amount) Down() units.Bytes { return clamp(math.Floor(float64(a))) }

// String is a as units.Bytes writes it where it is whole, else with two decimals: "218.75B".
func (a Amount) String() string {
	if f := float64(a); f != math.Trunc(f) {
		return strconv.FormatFloat(f, 'f', 2, 64) + "B"
	}
	return a.Up().String()
}

func clamp(f float64) units.Bytes {
	switch {
	case !(f > 0): // NaN too
		return 0
	case f >= math.MaxInt64:
		return math.MaxInt64
	}
	return units.Bytes(f)
}

// Term is one part of a sum.
type Term struct {
	Name    string // what it stands for: "frames", "cable", "response"
	Formula string // its arithmetic with the numbers in it: "2 * 40m * 5ns/m * 400Gbps / 8"
	Bytes   Amount
}

// Sum is terms and what they come to, rounded up to whole bytes.
type Sum struct {
	Terms []Term
	Total units.Bytes
}

// summing adds up terms exactly.
type summing struct {
	terms []Term
	total *big.Rat
}

func (s *summing) add(name, formula string, v *big.Rat) {
	if s.total == nil {
		s.total = new(big.Rat)
	}
	s.total.Add(s.total, v)
	f, _ := v.Float64()
	s.terms = append(s.terms, Term{name, formula, Amount(f)})
}

// sum closes s: rounded up to a multiple of step, with a term for the rounding where there is any.
func (s *summing) sum(step units.Bytes) Sum {
	total := up(s.total, step)
	if diff := sub(whole(int64(total)), s.total); diff.Sign() > 0 {
		s.add("rounding", "up to "+step.String(), diff)
	}
	return Sum{s.terms, total}
}

// up is v in bytes, rounded up to a multiple of step, at least 0 and at most what fits.
func up(v *big.Rat, step units.Bytes) units.Bytes {
	if v.Sign() <= 0 {
		return 0
	}
	n := new(big.Int).Mul(v.Denom(), big.NewInt(int64(max(step, 1))))
	q, r := new(big.Int).QuoRem(v.Num(), n, new(big.Int))
	if r.Sign() > 0 {
		q.Add(q, big.NewInt(1))
	}
	return fit(q.Mul(q, big.NewInt(int64(max(step, 1)))))
}

// down is v in whole bytes, rounded down, at least 0 and at most what fits.
func down(v *big.Rat) units.Bytes {
	if v.Sign() <= 0 {
		return 0
	}
	return fit(new(big.Int).Quo(v.Num(), v.Denom()))
}

func fit(v *big.Int) units.Bytes {
	if !v.IsInt64() {
		return math.MaxInt64
	}
	return units.Bytes(v.Int64())
}

func whole(n int64) *big.Rat { return new(big.Rat).SetInt64(n) }

// positive is n, or 0 where it is below.
func positive[T ~int64](n T) *big.Rat { return whole(max(int64(n), 0)) }

func frac(num, den int64) *big.Rat { return big.NewRat(num, den) }

func sub(a, b *big.Rat) *big.Rat { return new(big.Rat).Sub(a, b) }

func plus(vs ...*big.Rat) *big.Rat {
	s := new(big.Rat)
	for _, v := range vs {
		s.Add(s, v)
	}
	return s
}

func times(vs ...*big.Rat) *big.Rat {
	p := whole(1)
	for _, v := range vs {
		p.Mul(p, v)
	}
	return p
}

func over(a, b *big.Rat) *big.Rat { return new(big.Rat).Quo(a, b) }

func amount(v *big.Rat) Amount {
	f, _ := v.Float64()
	return Amount(f)
}

// RoundUp is v rounded up to a multiple of step, as headroom is to buffer cells; RoundDown rounds down, as thresholds
// are. A step of 0 or 1 changes nothing.
func RoundUp(v, step units.Bytes) units.Bytes {
	if step <= 1 || v <= 0 {
		return max(v, 0)
	}
	return up(whole(int64(v)), step)
}

// RoundDown is v rounded down to a multiple of step.
func RoundDown(v, step units.Bytes) units.Bytes {
	if step <= 1 || v <= 0 {
		return max(v, 0)
	}
	return v / step * step
}

// Add is the sum of vs, of which what is below zero counts as nothing; the largest size where it does not fit.
func Add(vs ...units.Bytes) units.Bytes {
	sum := new(big.Int)
	for _, v := range vs {
		sum.Add(sum, big.NewInt(int64(max(v, 0))))
	}
	return fit(sum)
}

// Times is v n times, likewise.
func Times(v units.Bytes, n int) units.Bytes {
	return fit(new(big.Int).Mul(big.NewInt(int64(max(v, 0))), big.NewInt(int64(max(n, 0)))))
}

// PartOf is a share of v, rounded down to whole bytes.
func PartOf(v units.Bytes, share units.Percent) units.Bytes {
	return down(times(positive(v), frac(int64(max(share, 0)), int64(100*units.OnePercent))))
}
