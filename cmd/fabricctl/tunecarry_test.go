package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fabricctl/fabricctl/tuning"
)

// TestResumeNotBegun: a resume that does not begin shows the experiment that died as what it is, with the way on.
func TestResumeNotBegun(t *testing.T) {
	b := newBench(t, benchText(t, "bench-ap"), "bench-ap/bench-box.yaml")
	b.must(t, exitOK, "tune", "run", "--workload", "ap", "--variables", "kmax", "--duration", "100us", "--warmup", "50us", "--looks", "2,1,2", "--confirm", "4", "--max-runs", "12")
	path := filepath.Join(b.dir, "state", "tune", b.experiments(t)[0]+".jsonl")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(text, []byte("\n"))
	text = bytes.Join(lines[:len(lines)/2], nil)
	if err := os.WriteFile(path, text, 0o600); err != nil { // where SIGKILL came
		t.Fatal(err)
	}
	b.write(t, "fabric.yaml", benchText(t, "bench-ap", "kmax: 1.5MB", "kmax: 1.4MB"))
	r := b.must(t, exitError, "tune", "resume", "last")
	for _, want := range []string{"\nstate ", "its process is gone", "go on: fabricctl tune resume ", "not confirmed: the experiment has not come to its end"} {
		if !strings.Contains(unwrapped(r.out), want) {
			t.Errorf("no %q: %s", want, r)
		}
	}
	if r := b.must(t, exitError, "tune", "resume", "last", "-o", "json"); !strings.Contains(r.out, `"state": "dead"`) || !strings.Contains(r.out, `"outcome": null`) {
		t.Errorf("%s", r)
	}
	if is, err := os.ReadFile(path); err != nil || !bytes.Equal(is, text) {
		t.Errorf("its journal has changed: %v", err)
	}
}

// TestTuneEndWords: the hint at a baseline that is not back begins with what comes first.
func TestTuneEndWords(t *testing.T) {
	err := (&app{}).tuneEnd(t.Context(), &tuneJSON{ID: "x"}, &tuning.Outcome{State: tuning.NeedsHands, Left: "leaf1: kmax"}, nil)
	var e *exitErr
	if !errors.As(err, &e) || e.code != exitNeedsHands || e.hint != "when that is mended, fabricctl tune resume x goes on" {
		t.Errorf("%+v", err)
	}
}
