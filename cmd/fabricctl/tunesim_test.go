package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/observe"
	"github.com/fabricctl/fabricctl/tuning"
	"github.com/fabricctl/fabricctl/tuning/sim"
)

// TestTuneAnswers: a ramp that is never reached, a slow host, a load of another class and settings that are good already are told apart, on the
// fabric of workload ap.
func TestTuneAnswers(t *testing.T) {
	t.Setenv("FABRIC_USER", "user")
	t.Setenv("FABRIC_PASSWORD", "password")
	m, err := (&app{sys: quiet()}).load(t.Context(), []string{"../../examples/bench-ap"})
	if err != nil || m.findings.HasErrors() {
		t.Fatal(err, m.findings)
	}
	ap, _, err := tuning.Standard("ap", nil)
	if err != nil {
		t.Fatal(err)
	}
	ap.Duration = 2_000_000
	slow, err := sim.ParseFault("slow:host17,rate=40Gbps")
	if err != nil {
		t.Fatal(err)
	}
	good := model.Patch{{Path: "classes.training.ecn.kmin", Value: "800KB"}, {Path: "classes.training.ecn.kmax", Value: "1600KB"}, {Path: "classes.training.ecn.pmax", Value: "100%"}}
	run := func(name string, w observe.Workload, base model.Patch, o sim.Options, want tuning.Verdict, says string, variables ...string) {
		t.Helper()
		f, found := m.fabric.With(base)
		if found.HasErrors() {
			t.Fatal(found)
		}
		s, found := tuning.NewSpace(f, tuning.SpaceOptions{Workload: w, Variables: variables})
		if found.HasErrors() {
			t.Fatal(found)
		}
		e := tuning.Experiment{
			Space: s, Workload: w, Sight: tuning.SightOf(m.net), Objective: tuning.Objective{Exchange: 0.1}, Seed: 1, Rounds: 1, Now: time.Now,
			Looks: tuning.Looks{First: 3, Most: 4, Polish: 4, Confirm: 6}, Budget: tuning.Budget{Runs: 100}, Parallel: 2,
		}
		got, err := tuning.Run(t.Context(), e, tuning.Lab{Runner: newSimRunner(f, o, "training")}, forgetful{}, nil)
		if err != nil || got.State != tuning.Done || got.Verdict != want || !strings.Contains(got.Words, says) || slices.Compare(got.Best, s.Base) != 0 {
			t.Errorf("%s: %+v %v", name, got, err)
		}
	}
	pair, err := observe.ParseWorkload("single,hosts=host1/host2 + probe,hosts=host1,to=host2,for=1ms")
	if err != nil {
		t.Fatal(err)
	}
	other, err := observe.ParseWorkload("incast:8,to=host17,class=default,for=1ms")
	if err != nil {
		t.Fatal(err)
	}
	run("a ramp that is never reached", pair, nil, sim.Options{}, tuning.NoEffect, "as far as this workload goes", tuning.KminRatio)
	run("a slow host", ap, nil, sim.Options{Faults: []sim.Fault{slow}}, tuning.HostBound, "not the fabric: a host stopped its switch")
	run("another class", other, nil, sim.Options{}, tuning.WrongClass, "through class default, and training is tuned")
	run("good settings", ap, good, sim.Options{}, tuning.NoDifference, "", tuning.Pmax, tuning.KminRatio)
}

// forgetful is a log of nothing.
type forgetful struct{}

func (forgetful) Append(string, any) error { return nil }
func (forgetful) Put(string, any) error    { return nil }

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
