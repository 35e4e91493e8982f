package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/fabricctl/fabricctl/drivers/lab/sonic"
)

// neverMarks is a bench's fabric whose ports pause before a queue gets to where it is marked: an error of the linter.
func neverMarks(t *testing.T) (good, bad string) {
	t.Helper()
	good = benchText(t, "bench-ap")
	return good, benchText(t, "bench-ap", "{kmin: 150KB, kmax: 1.5MB, pmax: 10%}", "{kmin: 4.5MB, kmax: 5MB, pmax: 1%}")
}

// mends is a short experiment on the emulated fabric.
func mends(verb ...string) []string {
	return append(verb, "--yes", "--persist-trials", "--runner", "lab", "--workload", "ap", "--duration", "200us", "--warmup", "50us",
		"--looks", "2,1,2", "--confirm", "4", "--max-runs", "30", "--rounds", "1", "--variables", "kmax", "--parallel", "8")
}

// TestTuneMends: devices that hold what the linter refuses are where an experiment may begin, and where it ends. Nothing else writes such
// values, and from wherever an experiment dies there is a way back to them.
func TestTuneMends(t *testing.T) {
	good, bad := neverMarks(t)
	b := newBench(t, good, "bench-ap/bench-box.yaml", "bench-ap/inventory.yaml")
	b.must(t, exitOK, "apply", "--yes", "--allow-disruptive")
	b.write(t, "fabric.yaml", bad)

	r := b.must(t, exitRefused, mends("tune", "run")...)
	if said := unwrapped(r.err); !strings.Contains(said, "do not hold what the model says") || !strings.Contains(said, "write into the model what they hold") {
		t.Errorf("on devices that hold something else: %s", r)
	}
	a, m, _ := b.tunerOf(t)
	if !m.findings.HasErrors() {
		t.Fatal("the linter says nothing")
	}
	a.held(t, m)
	old := b.config(t)
	for _, verb := range [][]string{{"apply", "--yes"}, {"plan"}} {
		if r := b.must(t, exitError, verb...); !strings.Contains(r.err, "ecn-never-marks") || b.config(t) != old {
			t.Errorf("%v: %s", verb, r)
		}
	}

	r = b.must(t, exitOK, mends("tune", "run")...)
	if !strings.Contains(r.err, "error that other settings do not have") || !strings.Contains(r.out, "confirmation  better") {
		t.Errorf("%s", r)
	}
	b.same(t, old, "after an experiment")

	program := asProgram(t)
	for _, way := range []string{"rollback", "resume", "run"} {
		for n := 30; b.config(t) == old; n += 3 { // until it dies with a trial in force
			if _, died := b.until(t, program, n, mends("tune", "run")...); !died {
				t.Fatalf("%s: no death leaves a trial in force", way)
			}
			if b.config(t) == old {
				b.must(t, exitOK, mends("tune", "run", "--max-runs", "10")...)
			}
		}
		switch ids := b.experiments(t); way {
		case "rollback":
			r := b.must(t, exitError, "plan")
			hint := rollbackHint.FindStringSubmatch(unwrapped(r.err))
			if hint == nil {
				t.Fatalf("plan says nothing of the trial that is in force: %s", r)
			}
			b.must(t, exitOK, strings.Fields(hint[1])...)
		case "resume":
			b.must(t, exitOK, "tune", "resume", filepath.Base(ids[len(ids)-1]), "--yes")
		case "run":
			b.must(t, exitOK, mends("tune", "run", "--max-runs", "10")...)
		}
		b.same(t, old, "after "+way)
	}

	leaf := b.lab.Box("leaf1").(*sonic.Switch)
	leaf.Edit(func(db sonic.DB) { db.Set("PORT", "Ethernet0", "mtu", "1500") })
	if r := b.must(t, exitRefused, mends("tune", "run")...); !strings.Contains(r.err, "leaf1") {
		t.Errorf("%s", r)
	}
}

func unwrapped(text string) string { return strings.ReplaceAll(text, "\n  ", " ") }
