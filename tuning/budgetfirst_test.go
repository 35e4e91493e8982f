package tuning

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fabricctl/fabricctl/model/observe"
)

// compares reports whether an experiment with so many runs compares something with what there is, its grid where that is the method.
func compares(t *testing.T, e Experiment, r Runner, live bool, runs int) bool {
	t.Helper()
	e.Budget.Runs = runs
	lab := Lab{Runner: r}
	if live {
		lab.Bench = &devices{}
	}
	log := &memory{}
	if _, err := Run(t.Context(), e, lab, log, nil); err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(history(t, log.recs).Decisions, func(d Decision) bool {
		if e.Method == FullGrid {
			return d.Step == gridStep
		}
		return d.Step != baselineStep && d.Step != "pfc ladder" && d.Step != "confirmation"
	})
}

// TestSuffices: with the runs that are said to suffice something is compared, by each method, on devices too; with one less nothing is, where no run
// tells settings apart.
func TestSuffices(t *testing.T) {
	for _, method := range []Method{OFAT, NelderMead, FullGrid} {
		for _, live := range []bool{false, true} {
			for _, rejects := range []bool{false, true} {
				e := experiment(hilly())
				e.Method, e.Rejects, e.Looks = method, rejects, Looks{First: 3, Most: 5, Polish: 6, Confirm: 4}
				e.Space.Check = nil
				n, err := Suffices(t.Context(), e, live, live)
				if err != nil || n <= LeastRuns(e.Looks, rejects) {
					t.Fatalf("%s, live %t, rejects %t: %d %v", method, live, rejects, n, err)
				}
				if !compares(t, e, featureless{}, live, n) || compares(t, e, featureless{}, live, n-1) {
					t.Errorf("%s, live %t, rejects %t: %d is not what it takes", method, live, rejects, n)
				}
				if method != FullGrid && !compares(t, e, rig(), live, n) {
					t.Errorf("%s, live %t, rejects %t: %d does not suffice", method, live, rejects, n)
				}
			}
		}
	}
	e := experiment(plane(1, 0.25, "a", "b", "c", "d", "e", "f"))
	for i := range e.Space.Vars {
		e.Space.Vars[i].Ladder = []float64{-8, -6, -4, -2, 0, 2, 4}
	}
	e.Method = FullGrid
	var large *TooLarge
	if _, err := Suffices(t.Context(), e, false, false); !errors.As(err, &large) || !strings.Contains(err.Error(), "a grid of more than 100000 settings") {
		t.Error(err)
	}
	e.Method = OFAT
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Suffices(ctx, e, false, false); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}

// TestGridEnlarged: a grid that the budget did not take goes on with one that does, to what it would have come to at once, and what it takes is said.
func TestGridEnlarged(t *testing.T) {
	e := experiment(hilly())
	e.Method, e.Looks, e.Space.Check = FullGrid, Looks{First: 3, Most: 5, Polish: 6, Confirm: 4}, nil
	need, err := Suffices(t.Context(), e, false, false)
	if err != nil {
		t.Fatal(err)
	}
	few := need - 30
	_, log := given(t, e, rig(), Budget{Runs: few})
	h := history(t, log.recs)
	var runs, takes int
	err = h.Enough(Budget{Runs: few + 1})
	if err == nil {
		t.Fatal("a grid fits that does not")
	}
	if _, e := fmt.Sscanf(err.Error(), "with %d runs it comes no further: what is next takes %d in all", &runs, &takes); e != nil || h.Enough(Budget{Runs: takes}) != nil {
		t.Errorf("%v: and with that: %v", err, h.Enough(Budget{Runs: takes}))
	}
	for _, budgets := range [][]Budget{{{Runs: few}, {}}, {{Runs: few}, {Runs: takes}, {}}} {
		o, log := given(t, e, rig(), budgets...)
		h := history(t, log.recs)
		at, _ := given(t, e, rig(), budgets[len(budgets)-1])
		if o.State != Done || o.Best.Key() != at.Best.Key() {
			t.Errorf("%v: %+v, and at once %v", budgets, o, at.Best)
		}
		if _, best, whole, err := Replay(h); err != nil || !whole || best.Key() != o.Best.Key() {
			t.Errorf("%v: replay: %v %v", budgets, whole, err)
		}
	}
}

// TestConfirmationCut: a confirmation that the budget cuts short goes on with more, on the same seeds, to what it would have come to at once.
func TestConfirmationCut(t *testing.T) {
	cut := 0
	for seed := range uint64(20) {
		e := experiment(hilly())
		e.Seed, e.Looks = seed+1, Looks{First: 3, Most: 5, Polish: 6, Confirm: 4}
		r := spoils{rig(), 6}
		r.noise *= 8
		whole, at := given(t, e, r, Budget{})
		made := len(history(t, at.recs).Decisions)
		for less := 1; less < 20; less++ {
			e.Budget.Runs = whole.Runs - less
			log := &memory{}
			o, err := Run(t.Context(), e, Lab{Runner: r}, log, nil)
			h := history(t, log.recs)
			if d := h.Decisions[len(h.Decisions)-1]; err != nil || !strings.Contains(d.Reason, "the budget has no more of them") {
				continue
			}
			if len(h.Decisions) < made { // the search was cut, too
				continue
			}
			cut++
			if o.State != Stopped || !o.Spent || o.Verdict == Better {
				t.Fatalf("seed %d: with %d of %d runs: %+v", seed, e.Budget.Runs, whole.Runs, o)
			}
			if err := h.Enough(e.Budget); err == nil {
				t.Errorf("seed %d: the same budget is enough", seed)
			}
			e.Budget = Budget{}
			if err := h.Enough(e.Budget); err != nil {
				t.Fatal(err)
			}
			o, err = Resume(t.Context(), e, h, Lab{Runner: r}, log, nil)
			if err != nil || o.State != Done || o.Verdict != whole.Verdict || o.Best.Key() != whole.Best.Key() || o.Runs != whole.Runs || *o.Confirmed.J != *whole.Confirmed.J {
				t.Errorf("seed %d: %s in %d runs, %v, and at once %s in %d", seed, o.Words, o.Runs, err, whole.Words, whole.Runs)
			}
			if _, best, all, err := Replay(history(t, log.recs)); err != nil || !all || best.Key() != o.Best.Key() {
				t.Errorf("seed %d: replay: %v %v", seed, all, err)
			}
		}
	}
	if cut < 5 {
		t.Errorf("%d confirmations were cut", cut)
	}
}

// spoils rejects every so many runs.
type spoils struct {
	*surface
	every int
}

func (s spoils) Run(ctx context.Context, t Trial) (observe.Observation, error) {
	if t.N%s.every == 0 {
		return observe.Observation{}, &Rejected{Code: "failed", Why: "rc 1"}
	}
	return s.surface.Run(ctx, t)
}

// TestSpare: whatever the budget, what was found is confirmed though runs are rejected all the time; without a margin it is not, and a replay knows
// of it.
func TestSpare(t *testing.T) {
	for _, rejects := range []bool{true, false} {
		unconfirmed := 0
		for runs := 24; runs < 180; runs++ {
			e := experiment(hilly())
			e.Rejects, e.Budget.Runs, e.Looks = rejects, runs, Looks{First: 3, Most: 5, Polish: 6, Confirm: 6}
			log := &memory{}
			o, err := Run(t.Context(), e, Lab{Runner: spoils{rig(), 5}}, log, nil)
			if err != nil || o.Runs > runs {
				t.Fatalf("%d runs: %+v %v", runs, o, err)
			}
			if strings.Contains(o.Words, "was not confirmed") {
				unconfirmed++
			}
			if _, best, whole, err := Replay(history(t, log.recs)); err != nil || !whole || best.Key() != o.Best.Key() {
				t.Errorf("%d runs: replay: %v %v", runs, whole, err)
			}
		}
		if rejects == (unconfirmed > 0) {
			t.Errorf("rejects %t: %d of 156 were not confirmed", rejects, unconfirmed)
		}
	}
}
