// Package stats is the statistics of experiments: is one setting better than another, by how much, and how sure is that;
// how many runs are needed to see it; is a long run stable. Every function is a pure function of its arguments: those
// that draw take a seed.
//
// Samples are one number for each run, never for each packet: packets of a run depend on each other.
package stats

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// Interval is an estimate and its confidence interval.
type Interval struct {
	Est  float64 `json:"est"`
	Low  float64 `json:"low"`
	High float64 `json:"high"`
	N    int     `json:"n"`    // runs, or pairs of runs
	Conf float64 `json:"conf"` // 0.95: of many such intervals, so many hold the true value
}

// Excludes reports whether v is outside of the interval.
func (i Interval) Excludes(v float64) bool { return v < i.Low || v > i.High }

// Mean is the arithmetic mean; NaN of no values.
func Mean(x []float64) float64 {
	s := 0.0
	for _, v := range x {
		s += v
	}
	return s / float64(len(x))
}

// SD is the standard deviation of a sample, with n-1; NaN of fewer than two values.
func SD(x []float64) float64 {
	m, s := Mean(x), 0.0
	for _, v := range x {
		s += (v - m) * (v - m)
	}
	return math.Sqrt(s / float64(len(x)-1))
}

// CV is the coefficient of variation: SD / |Mean|.
func CV(x []float64) float64 { return SD(x) / math.Abs(Mean(x)) }

// Correlation is Pearson's, from -1 to 1; 0 when one side does not vary. The two are of the same length.
func Correlation(x, y []float64) float64 {
	mx, my := Mean(x), Mean(y)
	var xy, xx, yy float64
	for i := range x {
		xy += (x[i] - mx) * (y[i] - my)
		xx += (x[i] - mx) * (x[i] - mx)
		yy += (y[i] - my) * (y[i] - my)
	}
	if xx == 0 || yy == 0 {
		return 0
	}
	return xy / math.Sqrt(xx*yy)
}

// Median is the middle value, or the mean of the two middle ones; NaN of none.
func Median(x []float64) float64 {
	if len(x) == 0 {
		return math.NaN()
	}
	s := slices.Sorted(slices.Values(x))
	if n := len(s); n%2 == 0 {
		return s[n/2-1]/2 + s[n/2]/2
	}
	return s[len(s)/2]
}

// RobustSD is 1.4826 times the median distance from the median: the standard deviation of what is normal, untouched by a few
// values that are not.
func RobustSD(x []float64) float64 {
	m := Median(x)
	d := make([]float64, len(x))
	for i, v := range x {
		d[i] = math.Abs(v - m)
	}
	return 1.4826 * Median(d)
}

// Jain is the index of fairness of n shares, (sum x)^2 / (n sum x^2): 1 when all are equal, 1/n when one has it all. No
// traffic at all is fair.
func Jain(x []float64) float64 {
	var s, q float64
	for _, v := range x {
		s += v
		q += v * v
	}
	if q == 0 {
		return 1
	}
	return s * s / (float64(len(x)) * q)
}

// MeanInterval is Student's interval of a mean; without end of fewer than two values.
func MeanInterval(x []float64, conf float64) Interval { return new(Student).mean(x, conf) }

// Paired is Student's interval of the mean of the differences a[i]-b[i].
func Paired(a, b []float64, conf float64) Interval { return new(Student).Paired(a, b, conf) }

// Student makes intervals and keeps the quantiles of Student's distribution that they took, which are most of the work where many are
// made. The zero value is ready; it is not for several goroutines.
type Student struct{ quantiles map[quantile]float64 }

type quantile struct {
	df int
	p  float64
}

// Paired is Student's interval of the mean of the differences a[i]-b[i].
func (s *Student) Paired(a, b []float64, conf float64) Interval {
	return s.mean(Differences(a, b), conf)
}

func (s *Student) mean(x []float64, conf float64) Interval {
	i := Interval{Est: Mean(x), Low: math.Inf(-1), High: math.Inf(1), N: len(x), Conf: conf}
	if len(x) < 2 {
		return i
	}
	key := quantile{len(x) - 1, (1 + conf) / 2}
	t, ok := s.quantiles[key]
	if !ok {
		if s.quantiles == nil {
			s.quantiles = map[quantile]float64{}
		}
		t = studentT(key.df, key.p)
		s.quantiles[key] = t
	}
	h := t * SD(x) / math.Sqrt(float64(len(x)))
	i.Low, i.High = i.Est-h, i.Est+h
	return i
}

// Differences are a[i]-b[i], for as many as both have.
func Differences(a, b []float64) []float64 {
	d := make([]float64, min(len(a), len(b)))
	for i := range d {
		d[i] = a[i] - b[i]
	}
	return d
}

func studentT(df int, p float64) float64 {
	return distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(df)}.Quantile(p)
}

func normalQuantile(p float64) float64 { return distuv.UnitNormal.Quantile(p) }

// twoSided is the probability of a standard normal number at least as far from 0 as z.
func twoSided(z float64) float64 { return math.Erfc(math.Abs(z) / math.Sqrt2) }
