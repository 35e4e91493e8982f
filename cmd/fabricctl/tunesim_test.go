package main

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/observe"
	"github.com/fabricctl/fabricctl/tuning"
	"github.com/fabricctl/fabricctl/tuning/sim"
)

// TestSimRunner: the same trial is the same run, a patch is another fabric, and traffic of another class is rejected.
func TestSimRunner(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fabric.yaml")
	if err := os.WriteFile(path, []byte(quartet), 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := (&app{sys: quiet()}).load(t.Context(), []string{path})
	if err != nil || m.findings.HasErrors() {
		t.Fatal(err, m.findings)
	}
	w, err := observe.ParseWorkload("incast:3,to=host4 + probe")
	if err != nil {
		t.Fatal(err)
	}
	w.Duration = 300_000
	run := func(class string, seed uint64, p model.Patch) (observe.Observation, error) {
		s := newSimRunner(m.fabric, sim.Options{}, class)
		return s.Run(t.Context(), tuning.Trial{N: 1, Change: tuning.Change{Patch: p}, Seed: seed, Workload: w})
	}
	a, err := run("training", 7, nil)
	if err != nil {
		t.Fatal(err)
	}
	b, err := run("training", 7, nil)
	if d := cmp.Diff(a, b); d != "" || err != nil {
		t.Errorf("%v\n%s", err, d)
	}
	low := model.Patch{{Path: "classes.training.ecn.kmin", Value: "5KB"}, {Path: "classes.training.ecn.kmax", Value: "10KB"}, {Path: "classes.training.ecn.pmax", Value: "100%"}}
	c, err := run("", 7, low)
	if err != nil || *c.Goodput == *a.Goodput {
		t.Errorf("a patch changes nothing: %v", err)
	}
	if _, err := run("training", 7, model.Patch{{Path: "classes.nobody.ecn.kmin", Value: "5KB"}}); err == nil {
		t.Error("a patch of what is not there is run")
	}
	var r *tuning.Rejected
	if _, err := run("default", 7, nil); !errors.As(err, &r) || r.Code != "wrong-class" {
		t.Errorf("traffic of another class: %v", err)
	}
	sight := tuning.SightOf(m.net)
	got, err := sight.Measure(&a)
	if err != nil || got.Drops == nil || *got.Drops != 0 || got.Paused == nil || got.Marked == nil || *got.Marked == 0 || got.P999 <= got.P50 {
		t.Errorf("%+v %v", got, err)
	}
}
