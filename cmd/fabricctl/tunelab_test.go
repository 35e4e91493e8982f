package main

import (
	"errors"
	"os"
	"path/filepath"
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

// TestBenchFabrics: on the fabrics that tuning is tried on, what the emulated fabric says is what the simulator says of the model, so that
// what was found on one holds on the other.
func TestBenchFabrics(t *testing.T) {
	for load, dir := range map[string]string{"ap": "bench-ap", "b": "bench-b", "c": "bench-c"} {
		text, err := os.ReadFile(filepath.Join("../../examples", dir, "fabric.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		b := newBench(t, string(text), dir+"/bench-box.yaml", dir+"/inventory.yaml")
		b.must(t, exitOK, "apply", "--yes", "--allow-disruptive")
		a, m, _ := b.tuner(t)
		w, ok, err := tuning.Standard(load, nil)
		if !ok || err != nil {
			t.Fatal(load, ok, err)
		}
		emulated, err := a.newLabRunner(m, w, "training")
		if err != nil {
			t.Fatal(err)
		}
		simulated := newSimRunner(m.fabric, sim.Options{}, "training")
		sight, measures := tuning.SightOf(m.net), []*tuning.Measure{}
		for _, r := range []tuning.Runner{simulated, emulated} {
			o, err := r.Run(t.Context(), tuning.Trial{N: 1, Seed: 7, Workload: w})
			if err != nil {
				t.Fatalf("%s: %v", load, err)
			}
			x, err := sight.Measure(&o)
			if err != nil {
				t.Fatalf("%s: %v", load, err)
			}
			x.Notes = nil
			measures = append(measures, x)
		}
		if d := cmp.Diff(measures[0], measures[1]); d != "" {
			t.Errorf("%s (-simulator +lab):\n%s", load, d)
		}
		if measures[1].Drops == nil || measures[1].Marked == nil || measures[1].Paused == nil || measures[1].P999 == 0 {
			t.Errorf("%s: not measured: %+v", load, measures[1])
		}
		if err := emulated.Close(); err != nil {
			t.Error(err)
		}
	}
}
