package tuning

import (
	"context"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/fabricctl/fabricctl/model/observe"
	"github.com/fabricctl/fabricctl/tuning/stats"
)

// twins runs one variable of which nothing depends: goodput and p99.9 spread as those of the workloads that tuning was tried on.
type twins struct {
	good, tail float64 // standard deviations of logarithms
	draw       *rand.Rand
}

func (w *twins) Run(context.Context, Trial) (observe.Observation, error) {
	g := 1e11 * math.Exp(w.good*w.draw.NormFloat64())
	p := time.Duration(2e5 * math.Exp(w.tail*w.draw.NormFloat64()))
	return observe.Observation{Goodput: &g, P999: &p}, nil
}

// TestEqualPairs: of 10,000 pairs of equal settings, all looks and metrics together, no more than 5 % are called better than the other, by an
// exact one-sided test at 1 %.
func TestEqualPairs(t *testing.T) {
	pairs := 10_000
	if testing.Short() {
		pairs = 1000
	}
	for _, c := range []struct {
		name          string
		good, tail    float64
		lexicographic bool
	}{{"J", 0.015, 0.10, false}, {"J, noisy tail", 0.011, 0.25, false}, {"goodput, then p99.9", 0.015, 0.10, true}, {"goodput, then a noisy p99.9", 0.011, 0.25, true}} {
		w := &twins{good: c.good, tail: c.tail, draw: rand.New(rand.NewPCG(1, 2))}
		s := plane(1, 0, "x")
		raced, confirmed, looks := 0, 0, 0
		for range pairs {
			e := experiment(s)
			e.Parallel, e.Objective.Lexicographic = 1, c.lexicographic
			u := newTuner(e, Lab{Runner: w}, silent{}, nil)
			u.start = u.armOf(Setting{0})
			u.cur = u.start
			d, err := u.race(context.Background(), []*arm{u.armOf(Setting{1})}, u.e.Looks.Most)
			if err != nil {
				t.Fatal(err)
			}
			if d.Verdict == Better {
				raced++
			}
			u.cur, u.runs = u.armOf(Setting{1}), 1000 // as at the end of a search
			if d, err = u.confirm(context.Background()); err != nil {
				t.Fatal(err)
			}
			if looks += d.Looks; d.Verdict == Better {
				confirmed++
			}
		}
		for where, better := range map[string]int{"race": raced, "confirmation": confirmed} {
			p := stats.AtLeast(pairs, better, 0.05)
			t.Logf("%s, %s: %d of %d are called better, p = %.3g", c.name, where, better, pairs, p)
			if p < 0.01 {
				t.Errorf("%s, %s: %d of %d equal pairs are called better: more than 5%%, p = %.3g", c.name, where, better, pairs, p)
			}
		}
		t.Logf("%s: %.1f looks of a confirmation", c.name, float64(looks)/float64(pairs))
	}
}

// TestConfirmPairs: a confirmation has as many pairs as its noise asks for, within what it was given and what the search has cost.
func TestConfirmPairs(t *testing.T) {
	for _, c := range []struct {
		name        string
		noise, gain float64
		runs, least int
		most        int
	}{
		{"quiet", 0.002, 0.02, 600, 20, 20},
		{"noisy", 0.06, 0.02, 600, 50, 75}, // runs of the same seed have half of it in common
		{"noisy, early", 0.06, 0.02, 200, 20, 25},
		{"noisy, and much better", 0.06, 0.2, 600, 20, 20},
		{"hopeless", 0.3, 0.02, 6000, 80, 80},
	} {
		e := experiment(plane(1, 0, "x"))
		u := newTuner(e, Lab{Runner: &surface{noise: c.noise, f: func(s Setting) float64 { return c.gain * s[0] }}}, silent{}, nil)
		u.start, u.cur = u.armOf(Setting{0}), u.armOf(Setting{1})
		if n := u.confirmPairs(); n != 20 {
			t.Errorf("%s: %d pairs before anything was run", c.name, n)
		}
		if err := u.bring(context.Background(), 16, u.start, u.cur); err != nil {
			t.Fatal(err)
		}
		u.runs = c.runs
		if n := u.confirmPairs(); n < c.least || n > c.most {
			d := stats.Differences(u.cur.values(byJ, 16), u.start.values(byJ, 16))
			t.Errorf("%s: %d pairs, want %d to %d; differences %.3f with SD %.3f", c.name, n, c.least, c.most, stats.Mean(d), stats.SD(d))
		}
		if n := u.reserve(); n != 2*u.confirmPairs() {
			t.Errorf("%s: %d runs are kept", c.name, n)
		}
	}
}

// TestConfirmLexicographic: where goodput comes first, a setting that carries more is not called worse for its latency, which J would; one that
// carries as much, and takes longer, is.
func TestConfirmLexicographic(t *testing.T) {
	verdicts := func(noise, gain, longer float64) map[Verdict]int {
		came := map[Verdict]int{}
		for seed := range uint64(30) {
			e := experiment(plane(1, 0, "x"))
			e.Seed, e.Objective.Lexicographic = seed, true
			w := &surface{noise: noise, f: func(s Setting) float64 { return gain * s[0] }, tail: func(s Setting) float64 { return longer * s[0] }}
			u := newTuner(e, Lab{Runner: w}, silent{}, nil)
			u.start, u.cur = u.armOf(Setting{0}), u.armOf(Setting{1})
			if err := u.bring(context.Background(), 16, u.start, u.cur); err != nil {
				t.Fatal(err)
			}
			u.runs = 600
			d, err := u.confirm(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			came[d.Verdict]++
		}
		return came
	}
	if v := verdicts(0.03, 0.03, 1); v[Worse] > 0 || v[Better] < 20 {
		t.Errorf("more goodput, and more latency: %v", v)
	}
	if v := verdicts(0.003, 0, 1); v[Worse] < 28 {
		t.Errorf("as much goodput, and more latency: %v", v)
	}
}

// TestFuller: of settings that J cannot tell apart, the one that surely carries more is taken, and no other.
func TestFuller(t *testing.T) {
	for _, c := range []struct {
		name         string
		gain, longer float64 // of ln goodput and ln p99.9
		moves        bool
		decides      bool // goodput does
	}{
		{"more goodput for more latency, J as good", 0.02, 0.22, true, true},
		{"more goodput, J worse by more than that", 0.02, 0.35, false, false},
		{"less goodput for less latency, J a little better", -0.02, -0.28, false, true},
		{"both alike", 0.0001, 0, false, false},
	} {
		w := &surface{noise: 0.001, f: func(s Setting) float64 { return c.gain * s[0] }, tail: func(s Setting) float64 { return c.longer * s[0] }}
		u := newTuner(experiment(plane(1, 0, "x")), Lab{Runner: w}, silent{}, nil)
		u.start = u.armOf(Setting{0})
		u.cur = u.start
		d, err := u.race(context.Background(), []*arm{u.armOf(Setting{1})}, u.e.Looks.Most)
		if err != nil || (u.cur != u.start) != c.moves || c.decides != (d.Verdict == Plateau) || c.decides != strings.Contains(d.Reason, "goodput decides") {
			t.Errorf("%s: %+v %v", c.name, d, err)
		}
	}
}

// TestNothingToGain: where nothing depends on anything, a whole experiment keeps what there is, in at least 8 of 10.
func TestNothingToGain(t *testing.T) {
	s := plane(1, 0.25, "x", "y", "z")
	for i := range s.Vars {
		s.Vars[i].Ladder = []float64{-8, -4, 0, 4, 8}
	}
	moved := 0
	for seed := range uint64(40) {
		e := experiment(s)
		e.Seed = seed
		w := &surface{noise: 0.025, f: func(Setting) float64 { return 0 }}
		o, err := Run(context.Background(), e, Lab{Runner: w}, &memory{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if o.Best.Key() != s.Base.Key() {
			moved++
			t.Logf("seed %d moves to %v", seed, o.Best)
		}
	}
	if moved > 4 {
		t.Errorf("%d of 40 experiments change what cannot be better", moved)
	}
}

// TestTies: what is surely better by less than a tie keeps what there is, and by more does not.
func TestTies(t *testing.T) {
	for gain, want := range map[float64]Verdict{0.004: NoDifference, 0.006: Better} {
		u := newTuner(experiment(plane(1, 0, "x")), Lab{Runner: &surface{f: func(s Setting) float64 { return gain * s[0] }}}, silent{}, nil)
		u.start = u.armOf(Setting{0})
		u.cur = u.start
		d, err := u.race(context.Background(), []*arm{u.armOf(Setting{1})}, u.e.Looks.Most)
		if err != nil || d.Verdict != want || (d.To[0] == 1) != (want == Better) {
			t.Errorf("a gain of %g: %+v %v", gain, d, err)
		}
	}
}

// TestAnchor: a step that luck has made is taken back once more runs say so.
func TestAnchor(t *testing.T) {
	luck := true
	w := &surface{f: func(Setting) float64 { return 0 }}
	w.each = func(o *observe.Observation, tr Trial) {
		switch {
		case tr.Setting[0] == 1 && luck:
			*o.Goodput *= 1.02
		case tr.Setting[0] == 1:
			*o.Goodput *= 0.95
		case tr.Setting[0] == 2:
			*o.Goodput *= 0.9
		}
	}
	e := experiment(plane(1, 0, "x"))
	e.Looks = Looks{First: 4, Most: 12}
	u := newTuner(e, Lab{Runner: w}, silent{}, nil)
	u.start = u.armOf(Setting{0})
	u.cur = u.start
	step := func(x float64, n int) {
		if _, err := u.race(context.Background(), []*arm{u.armOf(Setting{x})}, n); err != nil {
			t.Fatal(err)
		}
	}
	step(1, 4)
	if u.cur.setting[0] != 1 {
		t.Fatal("luck made no step")
	}
	luck = false
	if err := u.bring(context.Background(), 12, u.armOf(Setting{0}), u.armOf(Setting{1})); err != nil {
		t.Fatal(err)
	}
	if step(2, 12); u.cur != u.start {
		t.Errorf("it stays at %v", u.cur.setting)
	}
}

// TestFullerOnce: what is given up of J for goodput, one comparison after the other, is no more in all than it may be at once, also where nothing is
// compared with what was not measured beside it.
func TestFullerOnce(t *testing.T) {
	for _, steady := range []bool{true, false} {
		e, d, r := site(t)
		e.Steady, e.Space.Vars[0].Ladder, e.Looks = steady, nil, Looks{First: 6, Most: 16, Polish: 20, Confirm: 20}
		// From -1 to 0 goodput rises by 6 %; from there on by 0.5 % a step, for 13 % more latency.
		r.surface = surface{noise: 0.0005, f: func(s Setting) float64 { return min(0.06*s[0], 0.005*s[0]) }, tail: func(s Setting) float64 { return max(0.13*s[0], 0) }}
		e.Start = Setting{-1, 0}
		o, err := Run(t.Context(), e, Lab{Runner: r, Bench: d}, &memory{}, nil)
		if err != nil || o.Best[0] < 1 || o.Best[0] > 1.5 {
			t.Errorf("steady %t: %v, %s, %v", steady, o.Best, o.Words, err)
		}
	}
}
