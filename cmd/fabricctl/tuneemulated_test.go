package main

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/model/observe"
	"github.com/fabricctl/fabricctl/tuning"
	"github.com/fabricctl/fabricctl/tuning/sim"
)

// benchText is the file of a bench fabric with other values in it: what is replaced, and by what, one after the other.
func benchText(tb testing.TB, dir string, replaced ...string) string {
	tb.Helper()
	b, err := os.ReadFile("../../examples/" + dir + "/fabric.yaml")
	if err != nil {
		tb.Fatal(err)
	}
	text := string(b)
	for i := 0; i < len(replaced); i += 2 {
		if !strings.Contains(text, replaced[i]) {
			tb.Fatalf("%s has no %q", dir, replaced[i])
		}
		text = strings.ReplaceAll(text, replaced[i], replaced[i+1])
	}
	return text
}

// TestTuneEmulated: on the emulated fabric, written over gNMI and loaded over SSH, an experiment comes to the decisions that it comes to in
// the simulator, one by one, and the fabric holds afterwards what it held before. So what TestTuneMatrix finds holds there too. FABRICCTL_TUNE_EMULATED is
// how many runs are made; otherwise it is few.
func TestTuneEmulated(t *testing.T) {
	runs := 60
	if s := os.Getenv("FABRICCTL_TUNE_EMULATED"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		runs = n
	}
	const load = "ap"
	text := benchText(t, standardLoads()[load], "alpha: 1/8", "alpha: 1/64")
	b := newBench(t, text, "bench-ap/bench-box.yaml", "bench-ap/inventory.yaml")
	b.must(t, exitOK, "apply", "--yes", "--allow-disruptive")
	a, m, _ := b.tuner(t)
	w, _, err := tuning.Standard(load, nil)
	if err != nil {
		t.Fatal(err)
	}
	space, found := tuning.NewSpace(m.fabric, tuning.SpaceOptions{Workload: w, Live: true})
	if found.HasErrors() {
		t.Fatal(found)
	}
	e := tuning.Experiment{
		Space: space, Workload: w, Sight: tuning.SightOf(m.net), Objective: tuning.Objective{Exchange: 0.1}, Budget: tuning.Budget{Runs: runs},
		Looks: tuning.Looks{Confirm: min(20, runs/10)}, Seed: 1, Steady: true, PFCAlone: true, Now: time.Now,
	}
	tune := func(l tuning.Lab) (ds []tuning.Decision, o tuning.Outcome) {
		o, err := tuning.Run(t.Context(), e, l, nowhere{}, func(ev tuning.Event) {
			if ev.Decision != nil {
				ds = append(ds, *ev.Decision)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		o.Took = 0
		return ds, o
	}
	emulated, err := a.newLabRunner(m, w, "training")
	if err != nil {
		t.Fatal(err)
	}
	defer emulated.Close()
	x, err := a.openBench(t.Context(), m, "exp-1", benchOptions{Persist: true})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	there, got := tune(tuning.Lab{Runner: emulated, Bench: x})
	if err := x.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d runs on the emulated fabric in %s: %s", got.Runs, time.Since(began).Round(time.Second), got.Words)
	repeats := &repeated{sight: &e.Sight, known: map[string]observe.Observation{}}
	here, want := tune(tuning.Lab{Runner: repeats.over(newSimRunner(m.fabric, sim.Options{}, "training"))})
	if d := cmp.Diff(here, there); d != "" || len(here) < 2 {
		t.Errorf("%d decisions (-simulator +emulated):\n%s", len(here), d)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-simulator +emulated):\n%s", d)
	}
	b.must(t, exitOK, "plan", "--detailed-exitcode")
}
