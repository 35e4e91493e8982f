package stats

import (
	"math"
	"slices"
)

// Trend is what a series of values, equally far apart, says about a drift.
type Trend struct {
	S        int     // Mann-Kendall: rises less falls, over all pairs
	Variance float64 // of S when there is no trend, ties counted
	Z        float64 // S in standard deviations, with the continuity correction
	P        float64 // two-sided
	Slope    float64 // Theil-Sen: the median slope of all pairs, per step
}

// TrendOf is the test of Mann and Kendall and the slope of Theil and Sen. Values that depend on the ones before make it see
// trends that are none: Thin them first. It looks at all pairs, so n is best below some thousands.
func TrendOf(y []float64) Trend {
	n := len(y)
	var t Trend
	slopes := make([]float64, 0, n*(n-1)/2)
	for i := range n {
		for j := i + 1; j < n; j++ {
			switch {
			case y[j] > y[i]:
				t.S++
			case y[j] < y[i]:
				t.S--
			}
			slopes = append(slopes, (y[j]-y[i])/float64(j-i))
		}
	}
	f := float64(n)
	t.Variance = f * (f - 1) * (2*f + 5)
	s := slices.Sorted(slices.Values(y))
	for i := 0; i < n; {
		j := i
		for j < n && s[j] == s[i] {
			j++
		}
		g := float64(j - i)
		t.Variance -= g * (g - 1) * (2*g + 5)
		i = j
	}
	t.Variance /= 18
	if t.Variance > 0 && t.S != 0 {
		t.Z = float64(t.S-sign(t.S)) / math.Sqrt(t.Variance)
	}
	t.P = twoSided(t.Z)
	if n > 1 {
		t.Slope = Median(slopes)
	}
	return t
}

func sign(s int) int {
	if s < 0 {
		return -1
	}
	return 1
}

// Autocorrelation is the correlation of a series with itself, lag steps later.
func Autocorrelation(y []float64, lag int) float64 {
	m := Mean(y)
	var c, v float64
	for i := range y {
		v += (y[i] - m) * (y[i] - m)
		if i >= lag {
			c += (y[i] - m) * (y[i-lag] - m)
		}
	}
	if v == 0 {
		return 0
	}
	return c / v
}

// Thin replaces runs of neighbours by their means, of as few as makes the correlation of one with the next at most limit, and says of how many. It
// leaves at least 8 values.
func Thin(y []float64, limit float64) ([]float64, int) {
	for block := 1; ; block++ {
		z := blocks(y, block)
		if Autocorrelation(z, 1) <= limit || len(y)/(block+1) < 8 {
			return z, block
		}
	}
}

func blocks(y []float64, block int) []float64 {
	z := make([]float64, 0, len(y)/block)
	for i := 0; i+block <= len(y); i += block {
		z = append(z, Mean(y[i:i+block]))
	}
	return z
}

// Change is where a series most probably moved to another level: the first value of the new one, and the approximate two-sided p-value that it did
// not (Pettitt 1979).
type Change struct {
	At int
	P  float64
}

// ChangeOf looks for one change of level. Of fewer than two values there is none: P is 1.
func ChangeOf(y []float64) Change {
	n := len(y)
	best, c := 0, Change{P: 1}
	u := 0
	for t := range max(n-1, 0) { // u is the sum over i <= t < j of sign(y[i]-y[j])
		for j := range n {
			switch {
			case y[t] > y[j]:
				u++
			case y[t] < y[j]:
				u--
			}
		}
		if a := max(u, -u); a > best {
			best, c.At = a, t+1
		}
	}
	if f, k := float64(n), float64(best); best > 0 {
		c.P = min(1, 2*math.Exp(-6*k*k/(f*f*f+f*f)))
	}
	return c
}
