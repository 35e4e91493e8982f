package stats

import (
	"cmp"
	"math"
	"slices"
)

// rng is splitmix64: small, and the same everywhere.
type rng uint64

func (r *rng) next() uint64 {
	*r += 0x9E3779B97F4A7C15
	z := uint64(*r)
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}

// below draws from 0 to n-1. That 2^64 is no multiple of n matters to nobody for an n of runs.
func (r *rng) below(n int) int { return int(r.next() % uint64(n)) }

// Bootstrap is the bias-corrected and accelerated interval (Efron 1987) of a statistic of n runs: of is given the indices of the runs
// that were drawn, n of them with repeats. It resamples runs, so what of computes may be a percentile of pooled histograms.
// Below about 8 runs it is too narrow: 4 runs call 9 % of equal pairs different where 5 % was asked for.
func Bootstrap(n, resamples int, conf float64, seed uint64, of func(runs []int) float64) Interval {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	est := of(all)
	iv := Interval{Est: est, Low: math.Inf(-1), High: math.Inf(1), N: n, Conf: conf}
	if n < 2 || resamples < 2 {
		return iv
	}
	r := rng(seed)
	x, drawn := make([]float64, resamples), make([]int, n)
	below := 0.0
	for i := range x {
		for j := range drawn {
			drawn[j] = r.below(n)
		}
		x[i] = of(drawn)
		switch {
		case x[i] < est:
			below++
		case x[i] == est:
			below += 0.5
		}
	}
	slices.Sort(x)
	z0 := normalQuantile(min(max(below/float64(resamples), 0.5/float64(resamples)), 1-0.5/float64(resamples)))
	a := acceleration(n, of)
	at := func(p float64) float64 {
		z := z0 + normalQuantile(p)
		q := 0.5 * math.Erfc(-(z0+z/(1-a*z))/math.Sqrt2)
		return x[min(max(int(q*float64(resamples)), 0), resamples-1)]
	}
	iv.Low, iv.High = at((1-conf)/2), at((1+conf)/2)
	return iv
}

// acceleration is from the jackknife: how much the statistic's spread changes with its value.
func acceleration(n int, of func(runs []int) float64) float64 {
	left, out := make([]float64, n), make([]int, 0, n-1)
	for i := range n {
		out = out[:0]
		for j := range n {
			if j != i {
				out = append(out, j)
			}
		}
		left[i] = of(out)
	}
	m := Mean(left)
	var d2, d3 float64
	for _, v := range left {
		d2 += (m - v) * (m - v)
		d3 += (m - v) * (m - v) * (m - v)
	}
	if d2 == 0 {
		return 0
	}
	return d3 / (6 * math.Pow(d2, 1.5))
}

// Holm decides which of several hypotheses are rejected so that, with all of them true, one is with at most probability alpha
// (Holm 1979). The answers have the order of p.
func Holm(p []float64, alpha float64) []bool {
	order := make([]int, len(p))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p[a], p[b]) })
	reject := make([]bool, len(p))
	for i, k := range order {
		if p[k] > alpha/float64(len(p)-i) {
			break
		}
		reject[k] = true
	}
	return reject
}

// maxExact is the most differences that Wilcoxon enumerates.
const maxExact = 50

// Wilcoxon is the two-sided p-value of the signed-rank test that differences are as often above 0 as below. Zeros are left out
// (Wilcoxon 1945). It is exact for up to 50 differences without ties, else by the normal approximation with ties and continuity
// corrected. W is the sum of the ranks of the positive ones.
func Wilcoxon(d []float64) (w, p float64) {
	x := slices.DeleteFunc(slices.Clone(d), func(v float64) bool { return v == 0 })
	n := len(x)
	if n == 0 {
		return 0, 1
	}
	slices.SortFunc(x, func(a, b float64) int { return cmp.Compare(math.Abs(a), math.Abs(b)) })
	ties := 0.0
	for i := 0; i < n; {
		j := i
		for j < n && math.Abs(x[j]) == math.Abs(x[i]) {
			j++
		}
		for k := i; k < j; k++ {
			if x[k] > 0 {
				w += float64(i+j+1) / 2
			}
		}
		t := float64(j - i)
		ties += t*t*t - t
		i = j
	}
	if ties == 0 && n <= maxExact {
		return w, signedRankP(n, w)
	}
	f := float64(n)
	mean, variance := f*(f+1)/4, f*(f+1)*(2*f+1)/24-ties/48
	return w, twoSided(max(math.Abs(w-mean)-0.5, 0) / math.Sqrt(variance))
}

// signedRankP counts the sums of ranks 1 to n, each taken or not, that are at least as far from the middle as w.
func signedRankP(n int, w float64) float64 {
	total := n * (n + 1) / 2
	count := make([]float64, total+1)
	count[0] = 1
	for r := 1; r <= n; r++ {
		for s := total; s >= r; s-- {
			count[s] += count[s-r]
		}
	}
	far, all := 0.0, math.Ldexp(1, n)
	for s, c := range count {
		if math.Abs(float64(s)-float64(total)/2) >= math.Abs(w-float64(total)/2) {
			far += c
		}
	}
	return min(far/all, 1)
}
