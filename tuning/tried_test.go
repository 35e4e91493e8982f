package tuning

import (
	"math"
	"testing"
)

// TestTried: runs are paired by seed, the mean where one was made again, and what cannot be used is counted and left out.
func TestTried(t *testing.T) {
	a, b := Setting{1}, Setting{2}
	h := &History{Begin: Begin{Start: a, Vars: []Variable{{Name: "x"}}, Objective: Objective{Exchange: 0.1}}, Measures: map[int]*Measured{}}
	put := func(s Setting, seed uint64, m *Measure, no *Rejected) {
		n := len(h.Trials) + 1
		h.Trials = append(h.Trials, Trial{N: n, Setting: s, Seed: seed, Change: Change{External: []Assign{{"x", s[0]}}}})
		h.Measures[n] = &Measured{N: n, Measure: m, Rejected: no}
	}
	lost := uint64(3)
	put(a, 1, &Measure{Goodput: 100, P999: 1e-3}, nil)
	put(a, 2, &Measure{Goodput: 200, P999: 1e-3}, nil)
	put(a, 2, &Measure{Goodput: 50, P999: 1e-3}, nil) // with the one before, a mean of 100
	put(b, 2, &Measure{Goodput: 110, P999: 1e-3, Drops: &lost}, nil)
	put(b, 1, &Measure{Goodput: 110, P999: 1e-3}, nil)
	put(b, 9, &Measure{Goodput: 1e9}, nil) // without latency
	put(b, 3, nil, &Rejected{Code: "failed", Why: "no route"})
	h.Trials = append(h.Trials, Trial{N: 8, Setting: Setting{3}, Seed: 1}) // begun, and never measured
	h.Said = []Said{{Of: "unmarked", In: a, Out: b}}

	got := h.Tried()
	if len(got) != 2 {
		t.Fatalf("%d settings, want 2", len(got))
	}
	x, y := got[0], got[1]
	if x.Runs != 3 || x.Unmarked || x.Broken != "" || x.J == nil || x.J.Est != 0 || math.Abs(x.Goodput.Est-100) > 1e-9 || math.Abs(x.Tail.Est-1e-3) > 1e-12 {
		t.Errorf("the start: %+v, J %+v", x, x.J)
	}
	if y.Runs != 2 || y.Rejected != 2 || y.First != 4 || !y.Unmarked || y.Broken == "" || y.J == nil || y.J.N != 2 || math.Abs(y.J.Est-math.Log(1.1)) > 1e-12 {
		t.Errorf("the other: %+v, J %+v", y, y.J)
	}
	if s := h.Samples(b); len(s) != 3 || s[0].N != 4 || s[1].P999 != 1e-3 {
		t.Errorf("samples %+v", s)
	}
	if c := h.ChangeTo(b); c == nil || c.External[0].Value != 2 || h.ChangeTo(Setting{7}) != nil {
		t.Errorf("the change is %+v", c)
	}
	h.Trials = append([]Trial{{Setting: a, Seed: 1}}, h.Trials...) // begun, and never measured
	if in := h.TriedIn(2, 3); len(in) != 1 || in[0].Runs != 2 || in[0].First != 2 {
		t.Errorf("of runs 2 and 3: %+v", in)
	}
}

// TestAlike: settings are alike when no run of a seed that both ran tells them apart, in the times of packets too, and two seeds at least say so.
func TestAlike(t *testing.T) {
	h := &History{Begin: Begin{Start: Setting{0}, Objective: Objective{Exchange: 0.1}}, Measures: map[int]*Measured{}}
	put := func(x float64, seed uint64, goodput, p50 float64) {
		n := len(h.Trials) + 1
		h.Trials = append(h.Trials, Trial{N: n, Setting: Setting{x}, Seed: seed})
		h.Measures[n] = &Measured{N: n, Measure: &Measure{Goodput: goodput, P50: p50, P999: 1e-3}}
	}
	for seed := range uint64(3) {
		put(0, seed, 100+float64(seed), 1e-6)
	}
	put(1, 2, 102, 1e-6)
	put(1, 1, 101, 1e-6)
	put(1, 9, 77, 1e-6) // of the start not known
	put(2, 0, 100, 1e-6)
	put(2, 1, 101, 2e-6) // another time
	put(3, 0, 100, 1e-6) // once is no proof
	tried := h.Tried()
	for i, want := range []bool{true, true, false, false} {
		if got := tried[0].Alike(&tried[i]); got != want || tried[i].Alike(&tried[0]) != want {
			t.Errorf("0 and %d alike: %t", i, got)
		}
	}
}
