package stats

import (
	"math"
	"slices"
	"testing"
)

// normals are n standard normal numbers.
func normals(seed uint64, n int) []float64 {
	r := rng(seed)
	x := make([]float64, n)
	for i := range x {
		u, v := float64(r.next()>>11+1)/(1<<53), float64(r.next()>>11)/(1<<53)
		x[i] = math.Sqrt(-2*math.Log(u)) * math.Cos(2*math.Pi*v)
	}
	return x
}

func near(a, b, tol float64) bool { return math.Abs(a-b) <= tol }

func TestPaired(t *testing.T) {
	a, b := []float64{10, 12, 11, 13, 12}, []float64{9, 10, 11, 11, 10}
	got := Paired(a, b, 0.95) // differences 1 2 0 2 2: mean 1.4, sd 0.8944, t(4, 0.975) 2.7764
	if !near(got.Est, 1.4, 1e-12) || !near(got.High, 1.4+2.7764451*0.4, 1e-6) || !near(got.Low, 1.4-2.7764451*0.4, 1e-6) {
		t.Errorf("%+v", got)
	}
	if !got.Excludes(0) || got.Excludes(1) {
		t.Error("0 is outside, and 1 is inside")
	}
	if one := Paired(a[:1], b, 0.95); one.Excludes(1e300) || one.N != 1 {
		t.Errorf("one pair says nothing: %+v", one)
	}
}

// A test of equal arms must call them different as often as it was told to, and no more: an exact binomial test at 1 % of 10,000
// experiments each.
func TestFalseAlarms(t *testing.T) {
	const experiments = 10_000
	for _, n := range []int{5, 8, 16} {
		var paired, signed int
		for i := range experiments {
			x := normals(uint64(n*experiments+i), 2*n)
			if iv := Paired(x[:n], x[n:], 0.95); iv.Low > 0 {
				paired++
			}
			if _, p := Wilcoxon(Differences(x[:n], x[n:])); p <= 0.05 {
				signed++
			}
		}
		if p := AtLeast(experiments, paired, 0.025); p < 0.01 {
			t.Errorf("paired t with %d pairs: %d of %d above, p = %.2g", n, paired, experiments, p)
		}
		if p := AtLeast(experiments, signed, 0.05); p < 0.01 {
			t.Errorf("Wilcoxon with %d pairs: %d of %d apart, p = %.2g", n, signed, experiments, p)
		}
	}
}

func TestBootstrapCovers(t *testing.T) {
	const experiments = 400
	missed := 0
	for i := range experiments {
		x := normals(uint64(i)+1, 20)
		for j := range x {
			x[j] = math.Exp(x[j] / 2) // skewed
		}
		iv := Bootstrap(len(x), 1000, 0.95, 7, func(runs []int) float64 {
			s := 0.0
			for _, r := range runs {
				s += x[r]
			}
			return s / float64(len(runs))
		})
		if iv.Excludes(math.Exp(0.125)) {
			missed++
		}
	}
	if missed < experiments/100 || missed > experiments/8 { // 5 % were asked for; of 20 skewed values 7 to 8 % are known to come
		t.Errorf("%d of %d intervals miss the mean", missed, experiments)
	}
}

// The spatial test data of Efron and Tibshirani, An Introduction to the Bootstrap, table 14.1, column A: the variance is 171.5, and its 90 %
// interval (115.8, 259.6) by their 2000 resamples, where plain percentiles give (100.8, 233.9): table 14.2.
func TestBootstrapOfTextbook(t *testing.T) {
	x := []float64{48, 36, 20, 29, 42, 42, 20, 42, 22, 41, 45, 14, 6, 0, 33, 28, 34, 4, 32, 24, 47, 41, 24, 26, 30, 41}
	iv := Bootstrap(len(x), 20_000, 0.9, 1, func(runs []int) float64 {
		var s, q float64
		for _, r := range runs {
			s += x[r]
			q += x[r] * x[r]
		}
		n := float64(len(runs))
		return q/n - s/n*s/n
	})
	if !near(iv.Est, 171.5, 0.1) || !near(iv.Low, 115.8, 3) || !near(iv.High, 259.6, 5) {
		t.Errorf("%+v", iv)
	}
}

func TestBootstrapOfOne(t *testing.T) {
	iv := Bootstrap(1, 100, 0.95, 1, func(runs []int) float64 { return float64(len(runs)) })
	if iv.Est != 1 || iv.Excludes(1e9) {
		t.Errorf("one run says nothing about the next: %+v", iv)
	}
	flat := Bootstrap(9, 100, 0.95, 1, func([]int) float64 { return 3 })
	if flat.Low != 3 || flat.High != 3 {
		t.Errorf("what never varies has no width: %+v", flat)
	}
}

func TestWilcoxon(t *testing.T) {
	for _, c := range []struct {
		d    []float64
		w, p float64
	}{
		{[]float64{1, 2, 3, 4, 5}, 15, 0.0625},                // 2/32
		{[]float64{-1, 2, 3, 4, 5, 6}, 20, 0.0625},            // sums 20, 21, 0, 1: 4/64
		{[]float64{0, 0}, 0, 1},                               // nothing differs
		{[]float64{1, -1, 1, -1}, 5, 1},                       // ties, in the middle
		{[]float64{-5, -4, -3, -2, -1, 0}, 0, 0.0625},         // zeros are left out
		{[]float64{3, 3, 3, 3, 3, 3, 3, 3, 3, 3}, 55, 0.0020}, // ties: sd sqrt(75.625), |55-27.5|-0.5 = 27
	} {
		if w, p := Wilcoxon(c.d); w != c.w || !near(p, c.p, 1e-4) {
			t.Errorf("%v: W %v p %.4f, want %v %.4f", c.d, w, p, c.w, c.p)
		}
	}
}

func TestHolm(t *testing.T) {
	got := Holm([]float64{0.01, 0.04, 0.03, 0.005}, 0.05) // 0.005 <= 0.0125, 0.01 <= 0.0167, 0.03 > 0.025
	if !slices.Equal(got, []bool{true, false, false, true}) {
		t.Error(got)
	}
}

func TestBinomial(t *testing.T) {
	for _, c := range []struct {
		n, k int
		p, q float64
	}{{10, 0, 0.5, 1}, {10, 10, 0.5, 1.0 / 1024}, {10, 9, 0.5, 11.0 / 1024}, {5, 1, 0, 0}, {5, 5, 1, 1}, {10_000, 520, 0.05, 0.184}} {
		if got := AtLeast(c.n, c.k, c.p); !near(got, c.q, 2e-3) {
			t.Errorf("%d or more of %d at %v: %v, want %v", c.k, c.n, c.p, got, c.q)
		}
	}
	if got := NoneSeen(300, 0.95); !near(got, 0.00994, 1e-4) {
		t.Errorf("300 runs without it: %v", got)
	}
	if NoneSeen(0, 0.95) != 1 {
		t.Error("no run says nothing")
	}
}

func TestRobust(t *testing.T) {
	x := []float64{10, 11, 9, 10, 12, 8, 1e6}
	if m, s := Median(x), RobustSD(x); m != 10 || s != 1.4826 {
		t.Errorf("median %v, robust sd %v", m, s)
	}
	if !math.IsNaN(Median(nil)) || !near(CV([]float64{9, 10, 11}), 0.1, 1e-12) {
		t.Error("median of none, or cv")
	}
	if r := Correlation([]float64{1, 2, 3}, []float64{-2, -4, -6}); !near(r, -1, 1e-12) || Correlation([]float64{1, 1}, []float64{1, 2}) != 0 {
		t.Errorf("correlation %v", r)
	}
}

func TestMonotone(t *testing.T) {
	if got := Monotone([]float64{1, 3, 2, 2, 5, 4}); !slices.Equal(got, []float64{1, 7.0 / 3, 7.0 / 3, 7.0 / 3, 4.5, 4.5}) {
		t.Error(got)
	}
}

func TestKneeOfFlat(t *testing.T) {
	if Knee(nil, nil) != -1 || Knee([]float64{1, 2}, []float64{3, 3}) != -1 || Knee([]float64{1, 1}, []float64{3, 4}) != -1 {
		t.Error("a flat curve has no knee")
	}
}

func TestEffectNeedsBoth(t *testing.T) {
	for _, order := range []string{"AAA", "BBB", "AB"} {
		if e, err := Effect(order, []float64{1, 2, 3}); err == nil {
			t.Errorf("%s: %v", order, e)
		}
	}
}

func TestChange(t *testing.T) {
	y := normals(3, 60)
	for i := 37; i < len(y); i++ {
		y[i] += 4
	}
	if c := ChangeOf(y); c.At < 36 || c.At > 38 || c.P > 1e-6 {
		t.Errorf("%+v", c)
	}
	if c := ChangeOf([]float64{1, 1, 1, 1, 5, 5, 5, 5, 5, 5, 5, 5}); c.At != 4 {
		t.Errorf("the fifth value is the first of the new level: %+v", c)
	}
	if c := ChangeOf(normals(4, 60)); c.P < 0.01 {
		t.Errorf("nothing changed: %+v", c)
	}
	if c := ChangeOf([]float64{1}); c.P != 1 {
		t.Errorf("one value: %+v", c)
	}
}

// A series that depends on the values before looks like a trend, until it is thinned.
func TestThin(t *testing.T) {
	alarms, thinned := 0, 0
	for i := range 200 {
		y := normals(uint64(i)+100, 400)
		for j := 1; j < len(y); j++ {
			y[j] += 0.9 * y[j-1]
		}
		if TrendOf(y).P < 0.01 {
			alarms++
		}
		z, block := Thin(y, 0.2)
		if block < 2 || Autocorrelation(z, 1) > 0.2 && len(y)/(block+1) >= 8 {
			t.Fatalf("blocks of %d, correlation %.2f", block, Autocorrelation(z, 1))
		}
		if TrendOf(z).P < 0.01 {
			thinned++
		}
	}
	if alarms < 50 || thinned > 15 {
		t.Errorf("%d of 200 raw series and %d thinned ones seem to have a trend", alarms, thinned)
	}
	if z, block := Thin([]float64{5, 5, 5}, 0.2); len(z) != 3 || block != 1 || Autocorrelation(z, 1) != 0 {
		t.Error("what does not vary is thinned already")
	}
}
