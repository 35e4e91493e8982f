package main

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/model/observe"
	"github.com/fabricctl/fabricctl/tuning"
	"github.com/fabricctl/fabricctl/tuning/sim"
)

// workload is a load from its text.
func workload(t testing.TB, text string) observe.Workload {
	t.Helper()
	w, err := observe.ParseWorkload(text)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// TestLabRunner: what an emulated fabric says of a setting is what the simulator says of that which its devices hold then.
func TestLabRunner(t *testing.T) {
	b := newUsedBench(t, quartet)
	b.must(t, exitOK, "apply", "--yes", "--allow-disruptive")
	a, m, _ := b.tuner(t)
	w := workload(t, "incast:3,class=training,for=1ms,warmup=200us + probe,class=training")
	r, err := a.newLabRunner(m, w, "training")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	x, err := a.openBench(t.Context(), m, "exp-1", benchOptions{Persist: true})
	if err != nil {
		t.Fatal(err)
	}
	sight := tuning.SightOf(m.net)
	seen := map[float64]bool{}
	for i, p := range []string{"60KB", "400KB"} {
		trial := tuning.Trial{N: i + 1, Change: tuning.Change{Patch: append(patchOf("classes.training.ecn.kmin", "50KB"), patchOf("classes.training.ecn.kmax", p)...)}, Seed: uint64(7 + i), Workload: w}
		if err := x.Apply(t.Context(), trial.Change.Patch); err != nil {
			t.Fatal(err)
		}
		got, err := r.Run(t.Context(), trial)
		if err != nil {
			t.Fatal(err)
		}
		net, _, err := b.lab.Net()
		if err != nil {
			t.Fatal(err)
		}
		result, err := sim.Run(t.Context(), net, w, sim.Options{}, trial.Seed)
		if err != nil {
			t.Fatal(err)
		}
		want := result.Observation()
		want.Notes = []string{}
		want.Workload, got.Workload = observe.Workload{}, observe.Workload{}
		measured, err := sight.Measure(&got)
		if err != nil {
			t.Fatal(err)
		}
		simulated, err := sight.Measure(&want)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(simulated, measured); d != "" {
			t.Errorf("kmax %s (-simulator +lab):\n%s", p, d)
		}
		seen[measured.Goodput] = true
	}
	if len(seen) != 2 {
		t.Errorf("two settings with the same goodput: %v", seen)
	}
	if err := errors.Join(x.Restore(t.Context()), x.Close(t.Context())); err != nil {
		t.Error(err)
	}
}
