package tuning

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/observe"
)

// Settings that are left, since devices refuse them or no run of them can be used, and runs that are rejected.

// TestRefusal: a setting that devices do not take is left out, in their words, and the experiment goes on as without it; wherever its journal ends, it
// is resumed and replayed to the same.
func TestRefusal(t *testing.T) {
	e, d, r := site(t)
	d.refuses = func(s string) bool { return strings.HasPrefix(s, "[4 ") || strings.HasPrefix(s, "[-4 ") }
	log := &memory{}
	o, err := Run(t.Context(), e, Lab{Runner: r, Bench: d}, log, nil)
	if err != nil || o.State != Done || o.Verdict != Better || o.Best[0] == 4 || o.Best[0] < 2 {
		t.Fatalf("%+v %v", o, err)
	}
	if !slices.Contains(o.Untested, "x 4, y 0: leaf1 refuses it: % Invalid input") || !slices.Contains(o.Untested, "x -4, y 0: leaf1 refuses it: % Invalid input") {
		t.Errorf("not tried: %q", o.Untested)
	}
	h := history(t, log.recs)
	restoredLast(t, d, h)
	if len(h.NotTaken) == 0 || len(h.Measures) != o.Runs {
		t.Errorf("%d refusals, %d measures of %d runs", len(h.NotTaken), len(h.Measures), o.Runs)
	}
	for n := range h.NotTaken {
		if h.Measures[n] != nil {
			t.Errorf("trial %d was refused, and run", n)
		}
	}
	if ds, best, whole, err := Replay(h); err != nil || !whole || best.Key() != o.Best.Key() || len(ds) != len(h.Decisions) {
		t.Errorf("replay: %v %v %v", best, whole, err)
	}
	asked := map[string]bool{}
	for _, x := range h.Trials {
		if h.NotTaken[x.N] != nil {
			if key := x.Setting.Key(); asked[key] {
				t.Errorf("%v was refused twice", x.Setting)
			}
			asked[x.Setting.Key()] = true
		}
	}
	want := decided(t, log.recs)
	for n := 1; n < len(log.recs); n += 7 {
		e, d, r := site(t)
		d.refuses = func(s string) bool { return strings.HasPrefix(s, "[4 ") || strings.HasPrefix(s, "[-4 ") }
		m := &memory{recs: slices.Clone(log.recs[:n])}
		if _, err := Resume(t.Context(), e, history(t, m.recs), Lab{Runner: r, Bench: d}, m, nil); err != nil || decided(t, m.recs) != want {
			t.Fatalf("after %d records: %v, or it decides otherwise", n, err)
		}
	}
}

// TestRefusedAnywhere: whichever settings devices refuse, what holds now among them from some time on, an experiment ends with the baseline back.
func TestRefusedAnywhere(t *testing.T) {
	for seed := range uint64(60) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		e, d, r := site(t)
		e.Method = []Method{OFAT, NelderMead, FullGrid}[seed%3]
		if seed%3 == 2 {
			e.Space.Vars[1].Ladder = []float64{-2, 0, 2}
		}
		share, from := rnd.Float64(), rnd.IntN(80)
		no := map[string]bool{}
		d.refuses = func(s string) bool {
			if _, known := no[s]; !known {
				no[s] = rnd.Float64() < share
			}
			return no[s] && d.applies > from && s != "[0 0]"
		}
		log := &memory{}
		o, err := Run(t.Context(), e, Lab{Runner: r, Bench: d}, log, nil)
		if err != nil || o.State != Done {
			t.Errorf("seed %d: %+v %v", seed, o, err)
		}
		h := history(t, log.recs)
		restoredLast(t, d, h)
		if _, best, whole, err := Replay(h); err != nil || !whole || best.Key() != o.Best.Key() {
			t.Errorf("seed %d: replay: %v %v %v", seed, best, whole, err)
		}
	}
}

// TestRefusedStart: what devices hold cannot be what they refuse: nobody knows what that means, so it ends the experiment.
func TestRefusedStart(t *testing.T) {
	e, d, r := site(t)
	d.refuses = func(s string) bool { return s == "[0 0]" && d.applies > 3 }
	log := &memory{}
	o, err := Run(t.Context(), e, Lab{Runner: r, Bench: d}, log, nil)
	var no *Refusal
	if o.State != Stopped || !errors.As(err, &no) {
		t.Errorf("%+v %v", o, err)
	}
	restoredLast(t, d, history(t, log.recs))
}

// renewing are devices that take a setting anew when it is asked for again, and refuse it then from some time on.
type renewing struct {
	*devices
	asked, from int
}

func (d *renewing) Apply(ctx context.Context, p model.Patch) error {
	if d.holds == p[0].Value && p[0].Value != "[0 0]" {
		if d.asked++; d.asked >= d.from {
			d.holds = ""
			return &Refusal{Device: "leaf1", Why: "% Busy"}
		}
	}
	return d.devices.Apply(ctx, p)
}

// TestRefusedAnew: a setting that devices had taken, and refuse when it is renewed, is left out like any other, and the journal can be read.
func TestRefusedAnew(t *testing.T) {
	for from := 1; from < 30; from++ {
		e, d, r := site(t)
		log := &memory{}
		o, err := Run(t.Context(), e, Lab{Runner: r, Bench: &renewing{devices: d, from: from}}, log, nil)
		if err != nil || o.State != Done {
			t.Fatalf("%d: %+v %v", from, o, err)
		}
		h := history(t, log.recs)
		if len(h.NotTaken) == 0 && from < 10 {
			t.Errorf("%d: nothing was refused", from)
		}
		restoredLast(t, d, h)
		if _, best, whole, err := Replay(h); err != nil || !whole || best.Key() != o.Best.Key() {
			t.Errorf("%d: replay: %v %v %v", from, best, whole, err)
		}
	}
}

// TestGivenUp: what the search stands on and cannot be run any more is given up, and not compared with: the search goes on from the best of the others, or from
// where it came from, and finds what it finds otherwise.
func TestGivenUp(t *testing.T) {
	given := map[Verdict]int{}
	for from := range 120 {
		e, d, r := site(t)
		e.Objective.Lexicographic = from%4 > 1
		gone, held, most := map[string]bool{}, map[string]int{}, 1+12*(from%2)
		d.refuses = func(s string) bool { // for good; what the search stands on is what is asked for so often
			held[s]++
			if (held[s] > 3 || len(gone) > 0) && s != "[0 0]" && d.applies > from/2 && len(gone) < most {
				gone[s] = true
			}
			return gone[s]
		}
		log := &memory{}
		o, err := Run(t.Context(), e, Lab{Runner: r, Bench: d}, log, nil)
		if err != nil || o.State != Done {
			t.Fatalf("%d: %+v %v", from, o, err)
		}
		h := history(t, log.recs)
		for i, x := range h.Decisions {
			if strings.Contains(x.Reason, "too few runs to compare") {
				t.Errorf("%d: decision %d (%s %s): %s", from, i+1, x.Step, x.Variable, x.Reason)
			}
			if strings.Contains(x.Reason, "refuses it") {
				given[x.Verdict]++
			}
		}
		if o.Verdict != Better && len(gone) == 1 {
			t.Errorf("%d: %v was refused, and the search ended with %s", from, gone, o.Words)
		}
		if o.Verdict == Better && strings.Contains(o.Words, "goodput") != e.Objective.Lexicographic {
			t.Errorf("%d: not what decided: %s", from, o.Words)
		}
		if _, best, whole, err := Replay(h); err != nil || !whole || best.Key() != o.Best.Key() {
			t.Errorf("%d: replay: %v %v %v", from, best, whole, err)
		}
	}
	if given[Better] == 0 || given[Infeasible] == 0 {
		t.Errorf("given up for a better one, and to go back: %v", given)
	}
}

// TestUnmeasured: where no run of what there was can be used on fresh seeds, nothing is called better than it.
func TestUnmeasured(t *testing.T) {
	e, d, r := site(t)
	r.before = func(tr Trial) error {
		if tr.Seed%100_000 >= freshSeeds && tr.Setting.Key() == (Setting{0, 0}).Key() {
			return &Rejected{Code: "no-end", Why: "it hung"}
		}
		return nil
	}
	log := &memory{}
	o, err := Run(t.Context(), e, Lab{Runner: r, Bench: d}, log, nil)
	if err != nil || o.Verdict != Undecided || o.Best.Key() != (Setting{0, 0}).Key() || !strings.Contains(o.Words, "it hung") {
		t.Errorf("%+v %v", o, err)
	}
	restoredLast(t, d, history(t, log.recs))
}

// TestNoLatency: in the simulator, a setting under which nothing that measures latency comes through is left, whether it is the first that is tried or
// all but what there is, and the experiment goes on; how many runs are made at once changes nothing.
func TestNoLatency(t *testing.T) {
	for name, silent := range map[string]func(Setting) bool{
		"one":                     func(s Setting) bool { return s[0] == 4 },
		"without ECN":             func(s Setting) bool { return s[0] == -10 },
		"all but what there is":   func(s Setting) bool { return s.Key() != Setting{0, 0, 1}.Key() },
		"some seeds of a setting": func(s Setting) bool { return s[1] > 0 },
	} {
		var want string
		for _, parallel := range []int{1, 5} {
			e := experiment(hilly())
			e.Parallel = parallel
			r := rig()
			r.each = func(o *observe.Observation, tr Trial) {
				if silent(tr.Setting) && (name != "some seeds of a setting" || tr.Seed%3 == 0) {
					o.P999 = nil
				}
			}
			log := &memory{}
			o, err := Run(t.Context(), e, Lab{Runner: r}, log, nil)
			if err != nil || o.State != Done || o.Rejected == 0 || o.Best.Key() == e.Space.Base.Key() != (name == "all but what there is") {
				t.Errorf("%s: %+v %v", name, o, err)
			}
			if !slices.ContainsFunc(o.Untested, func(s string) bool {
				return strings.HasSuffix(s, " to the end: nothing that measures latency came through in a run")
			}) {
				t.Errorf("%s: it does not say what was not tried: %q", name, o.Untested)
			}
			h := history(t, log.recs)
			if name == "without ECN" && h.Decisions[1].Verdict != Undecided {
				t.Errorf("%s: %+v", name, h.Decisions[1])
			}
			if _, _, whole, err := Replay(h); err != nil || !whole {
				t.Errorf("%s: replay: %v", name, err)
			}
			if got := decided(t, log.recs); want == "" {
				want = got
			} else if got != want {
				t.Errorf("%s: %d at once decide otherwise", name, parallel)
			}
		}
	}
}

// TestSpoilt: where a budget went into runs that could not be used, the answer says so, and never that more is kept of it than there is.
func TestSpoilt(t *testing.T) {
	for most := 2; most < 12; most++ {
		e, d, r := site(t)
		e.Budget.Runs = most
		r.before = func(tr Trial) error {
			if tr.N < 3 {
				return &Rejected{Code: "too-short", Why: "it was too short"}
			}
			return nil
		}
		o, err := Run(t.Context(), e, Lab{Runner: r, Bench: d}, &memory{}, nil)
		if err != nil || o.Verdict != Undecided {
			t.Fatalf("%d: %+v %v", most, o, err)
		}
		if o.Rejected > 0 && !strings.Contains(o.Words, fmt.Sprintf("; %d of %d runs could not be used, the last since it was too short", o.Rejected, o.Runs)) {
			t.Errorf("%d: %s", most, o.Words)
		}
		var made, of, kept int
		if _, err := fmt.Sscanf(o.Words[strings.LastIndex(o.Words, "; ")+2:], "%d of %d runs were made, and %d were kept", &made, &of, &kept); err != nil || made+kept > of {
			t.Errorf("%d: %s (%v)", most, o.Words, err)
		}
	}
}
