package tuning

import (
	"math"
	"slices"

	"github.com/fabricctl/fabricctl/tuning/stats"
)

// Tried is a setting with all that a journal has measured of it.
type Tried struct {
	Setting  Setting
	Runs     int  // that can be used
	Rejected int  // that cannot
	First    int  // number of the first trial of it
	Unmarked bool // it never marks: of the phase without ECN

	Goodput stats.Interval  // geometric mean, bits per second
	Tail    stats.Interval  // geometric mean of p99.9, seconds; N = 0: not measured
	J       *stats.Interval // against the start, over the seeds that both ran; nil when these are fewer than two
	Broken  string          // the limit that it breaks; "" = none

	of *gatheredSetting
}

// Alike reports whether t and o are proven to be the same, as far as the load goes: under every seed that both ran, and these are two at least,
// no packet took another time.
func (t *Tried) Alike(o *Tried) bool {
	n := 0
	for i, seed := range t.of.seeds {
		j := slices.Index(o.of.seeds, seed)
		if j < 0 {
			continue
		}
		if n++; !t.of.runs[i].same(o.of.runs[j]) {
			return false
		}
	}
	return n >= 2
}

// Sample is a usable run of a setting.
type Sample struct {
	N       int // of the trial
	Goodput float64
	P999    float64 // 0 = not measured
}

// Tried lists the settings of a journal in the order in which they were first run.
func (h *History) Tried() []Tried { return h.TriedIn(1, math.MaxInt) }

// TriedIn is Tried of the runs from first to last alone, counted from 1 as the Total of a decision counts them: what a decision could see, or what
// was measured for it.
func (h *History) TriedIn(first, last int) []Tried {
	g := h.gather(first, last)
	var out []Tried
	start := g.of[h.Begin.Start.Key()]
	conf := h.Begin.Looks.filled().Confidence
	for _, s := range g.all {
		t := s.Tried
		t.of = s
		if t.Runs = len(s.runs); t.Runs > 0 {
			t.Goodput = expOf(stats.MeanInterval(s.logs(byGood), conf))
			if g.tail {
				t.Tail = expOf(stats.MeanInterval(s.logs(byTail), conf))
			}
			t.Broken = (&arm{runs: s.runs}).broken(&h.Begin.Objective)
		}
		if start != nil {
			a, b := s.paired(start)
			if i := stats.Paired(a, b, conf); i.N >= 2 {
				t.J = &i
			}
		}
		out = append(out, t)
	}
	return out
}

// Samples are the usable runs of a setting, in the order of their trials.
func (h *History) Samples(s Setting) []Sample {
	var out []Sample
	key := s.Key()
	for i := range h.Trials {
		if t := &h.Trials[i]; t.Setting.Key() == key && h.Measures[t.N] != nil && h.Measures[t.N].Measure != nil {
			m := h.Measures[t.N].Measure
			out = append(out, Sample{t.N, m.Goodput, m.P999})
		}
	}
	return out
}

// ChangeTo is what a setting means, as the journal has it; nil when it was never tried.
func (h *History) ChangeTo(s Setting) *Change {
	key := s.Key()
	for i := range h.Trials {
		if h.Trials[i].Setting.Key() == key {
			return &h.Trials[i].Change
		}
	}
	return nil
}

// gathered are the settings of a journal with their runs.
type gathered struct {
	all  []*gatheredSetting
	of   map[string]*gatheredSetting
	tail bool // p99.9 is measured
}

type gatheredSetting struct {
	Tried
	runs  []*run
	seeds []uint64 // of runs
}

func (h *History) gather(first, last int) gathered {
	g := gathered{of: map[string]*gatheredSetting{}}
	known := false
	bare := map[string]bool{}
	for _, s := range h.Said {
		if s.Of == "unmarked" {
			bare[s.Out.Key()] = true
		}
	}
	made := 0
	for i := range h.Trials {
		t := &h.Trials[i]
		m := h.Measures[t.N]
		if m == nil {
			continue
		}
		if made++; made < first || made > last {
			continue
		}
		key := t.Setting.Key()
		s := g.of[key]
		if s == nil {
			s = &gatheredSetting{Tried: Tried{Setting: t.Setting, First: t.N, Unmarked: bare[key]}}
			g.of[key] = s
			g.all = append(g.all, s)
		}
		if m.Measure != nil && !known {
			known, g.tail = true, m.Measure.P999 > 0
		}
		if m.Measure == nil || g.tail && m.Measure.P999 <= 0 {
			s.Rejected++
			continue
		}
		s.runs, s.seeds = append(s.runs, h.Begin.Objective.valued(m.Measure, g.tail)), append(s.seeds, t.Seed)
	}
	return g
}

// logs are a metric of all runs.
func (s *gatheredSetting) logs(m metric) []float64 {
	x := make([]float64, len(s.runs))
	for i, r := range s.runs {
		x[i] = m(r)
	}
	return x
}

// paired are J of s and of o for each seed that both ran, the mean where one ran it again.
func (s *gatheredSetting) paired(o *gatheredSetting) (a, b []float64) {
	mine, theirs := s.bySeed(), o.bySeed()
	var seeds []uint64
	for seed := range mine {
		if _, ok := theirs[seed]; ok {
			seeds = append(seeds, seed)
		}
	}
	slices.Sort(seeds)
	for _, seed := range seeds {
		a, b = append(a, stats.Mean(mine[seed])), append(b, stats.Mean(theirs[seed]))
	}
	return a, b
}

func (s *gatheredSetting) bySeed() map[uint64][]float64 {
	js := map[uint64][]float64{}
	for i, r := range s.runs {
		js[s.seeds[i]] = append(js[s.seeds[i]], r.j)
	}
	return js
}

// expOf is an interval of logarithms as one of what they are of.
func expOf(i stats.Interval) stats.Interval {
	i.Est, i.Low, i.High = math.Exp(i.Est), math.Exp(i.Low), math.Exp(i.High)
	return i
}
