package stats

import "math"

// RankInterval is a confidence interval of a quantile by order statistics, which assumes nothing about how values are
// distributed: the Lower-th and Upper-th smallest of the sample (from 1) hold it between them. With Bounded false the sample is too
// small: there is no upper value, and Upper is one more than the sample has.
type RankInterval struct {
	Lower, Upper int
	Coverage     float64 // how sure it is: at least what was asked for, when Bounded
	Bounded      bool
}

// QuantileRanks is the interval of the q-quantile of a sample of n. With X binomial of n and q, Lower is the smallest k with P(X <= k) >
// (1-conf)/2, and Upper is one more than the smallest u with P(X <= u) >= (1+conf)/2.
func QuantileRanks(n int, q, conf float64) RankInterval {
	var r RankInterval
	cdf, below := 0.0, -1.0
	for k := 0; k <= n; k++ {
		p := binomialP(n, k, q)
		if below < 0 && cdf+p > (1-conf)/2 {
			r.Lower, below = k, cdf
		}
		if cdf += p; cdf >= (1+conf)/2 {
			r.Upper = k + 1
			break
		}
	}
	if r.Upper == 0 {
		r.Upper = n + 1
	}
	r.Bounded = r.Upper <= n
	r.Coverage = binomialCDF(n, r.Upper-1, q) - binomialCDF(n, r.Lower-1, q)
	return r
}

// SamplesForUpper is the smallest sample whose largest value is an upper bound of the q-quantile with confidence conf: the smallest n with
// q^n <= 1-conf. Fewer say nothing about such a tail.
func SamplesForUpper(q, conf float64) int { return int(math.Ceil(math.Log(1-conf) / math.Log(q))) }

// NoneSeen is the highest probability of an event in one run that n runs without it leave open: 1-(1-conf)^(1/n), near 3/n for 95 %.
func NoneSeen(n int, conf float64) float64 {
	if n <= 0 {
		return 1
	}
	return -math.Expm1(math.Log1p(-conf) / float64(n))
}

// AtLeast is the probability of k or more of n when each has probability p: the p-value of an exact one-sided binomial test.
func AtLeast(n, k int, p float64) float64 {
	if k <= 0 {
		return 1
	}
	s := 0.0
	for i := n; i >= k; i-- { // from the small ones
		s += binomialP(n, i, p)
	}
	return min(s, 1)
}

func binomialCDF(n, k int, p float64) float64 {
	s := 0.0
	for i := 0; i <= k && i <= n; i++ {
		s += binomialP(n, i, p)
	}
	return min(s, 1)
}

// binomialP is the probability of k of n.
func binomialP(n, k int, p float64) float64 {
	switch {
	case p <= 0:
		return b2f(k == 0)
	case p >= 1:
		return b2f(k == n)
	}
	lg := func(x int) float64 { v, _ := math.Lgamma(float64(x) + 1); return v }
	return math.Exp(lg(n) - lg(k) - lg(n-k) + float64(k)*math.Log(p) + float64(n-k)*math.Log1p(-p))
}

func b2f(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
