package stats

import (
	"fmt"
	"math"
)

// Repeats is how many runs each of two arms needs so that a difference of detect (relative) is found with this power, at the two-sided
// level alpha, when runs vary by cv (relative) and paired runs are correlated by pairing: 2 (z1+z2)^2 (cv/detect)^2 (1-pairing), rounded up,
// by the normal approximation. Below 5 it says too little about the spread: take 5.
func Repeats(cv, detect, pairing, alpha, power float64) int {
	z := normalQuantile(1-alpha/2) + normalQuantile(power)
	return int(math.Ceil(2 * z * z * (cv / detect) * (cv / detect) * (1 - pairing)))
}

// ABBA is the order in which a baseline A and a candidate B take turns, so that what drifts linearly cancels: blocks of ABBA, cut
// to pairs runs of each.
func ABBA(pairs int) string {
	s := make([]byte, 0, 2*pairs+8)
	for len(s) < 2*pairs {
		s = append(s, "ABBA"...)
	}
	return string(s[:2*pairs])
}

// Effect is how much higher B is than A in runs that took turns in this order.
func Effect(order string, y []float64) (float64, error) {
	if len(order) != len(y) {
		return 0, fmt.Errorf("an order of %d runs for %d values", len(order), len(y))
	}
	var sum, n [2]float64
	for i, c := range order {
		k := b2f(c == 'B')
		sum[int(k)] += y[i]
		n[int(k)]++
	}
	if n[0] == 0 || n[1] == 0 {
		return 0, fmt.Errorf("%s has not both A and B", order)
	}
	return sum[1]/n[1] - sum[0]/n[0], nil
}

// Factorial is the outcome of a 2x2 experiment: two factors, each at a low and a high level. Effects are half the difference that a
// factor makes, so that AB is comparable with A and B.
type Factorial struct {
	A, B, AB float64
	SE       float64 // standard error of each
}

// Factorial2x2 takes the means of the four cells (the first digit is A's level), the standard deviation of runs and the runs in each cell.
func Factorial2x2(y00, y10, y01, y11, sd float64, perCell int) Factorial {
	return Factorial{
		A: (y10 + y11 - y00 - y01) / 2, B: (y01 + y11 - y00 - y10) / 2, AB: (y11 - y10 - y01 + y00) / 2,
		SE: sd / math.Sqrt(float64(perCell)),
	}
}

// Interacts reports whether the two factors have to be tuned together: their interaction is over two standard errors, and over half of the larger
// effect.
func (f Factorial) Interacts() bool {
	return math.Abs(f.AB) > 2*f.SE && math.Abs(f.AB) > 0.5*max(math.Abs(f.A), math.Abs(f.B))
}

// Round is a round of successive halving: so many arms, each run so often anew.
type Round struct{ Arms, Repeats int }

// Halving is the rounds of successive halving: each keeps 1 of eta arms and gives the rest eta times the runs; the last, with one arm, confirms it.
func Halving(arms, repeats, eta int) (rounds []Round, runs int) {
	for {
		rounds = append(rounds, Round{arms, repeats})
		if runs += arms * repeats; arms <= 1 {
			return rounds, runs
		}
		arms, repeats = max(arms/eta, 1), repeats*eta
	}
}

// Evaluations is how many values each way of searching an interval has to try.
type Evaluations struct{ Golden, Fibonacci, Ternary, Grid int }

// SearchCost is for an interval of this width, down to tol.
func SearchCost(width, tol float64) Evaluations {
	steps := func(ratio float64) int { return int(math.Ceil(math.Log(tol/width) / math.Log(ratio))) }
	e := Evaluations{Golden: steps(0.618) + 1, Ternary: 2 * steps(2.0/3), Grid: int(math.Ceil(width/tol)) + 1}
	for a, b := 1, 1; ; a, b = b, a+b { // a is F(n), b is F(n+1)
		if e.Fibonacci++; float64(b) >= width/tol {
			return e
		}
	}
}

// Knee is the index of the point where a curve that rises ever less (x ascending) gains least by going on: the largest difference between both axes,
// each scaled to 0..1 (Kneedle, offline). It depends on the scale: take the logarithm of sizes first. -1 when the curve is flat.
func Knee(x, y []float64) int {
	best, at := math.Inf(-1), -1
	n := len(x)
	if n == 0 || x[n-1] == x[0] {
		return -1
	}
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, v := range y {
		lo, hi = min(lo, v), max(hi, v)
	}
	if hi == lo {
		return -1
	}
	for i := range x {
		if d := (y[i]-lo)/(hi-lo) - (x[i]-x[0])/(x[n-1]-x[0]); d > best {
			best, at = d, i
		}
	}
	return at
}

// Monotone is the best non-decreasing fit of y by least squares (pool adjacent violators).
func Monotone(y []float64) []float64 {
	type block struct {
		sum float64
		n   int
	}
	var bs []block
	for _, v := range y {
		b := block{v, 1}
		for len(bs) > 0 && bs[len(bs)-1].sum/float64(bs[len(bs)-1].n) > b.sum/float64(b.n) {
			b.sum, b.n = b.sum+bs[len(bs)-1].sum, b.n+bs[len(bs)-1].n
			bs = bs[:len(bs)-1]
		}
		bs = append(bs, b)
	}
	fit := make([]float64, 0, len(y))
	for _, b := range bs {
		for range b.n {
			fit = append(fit, b.sum/float64(b.n))
		}
	}
	return fit
}
