package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDamagedJournal: a run whose journal was overwritten is not said to have touched nothing. It needs hands, and the
// hint says where to look.
func TestDamagedJournal(t *testing.T) {
	b := newBench(t, trio)
	b.must(t, exitOK, "apply", "--yes", "--allow-disruptive")
	id := b.run(t)
	path := filepath.Join(b.dir, "state", "runs", id+".jsonl")
	if err := os.WriteFile(path, []byte("\x1b[2Jrubbish"), 0o600); err != nil {
		t.Fatal(err)
	}
	n := b.writes()
	for _, verb := range []string{"show", "resume", "rollback"} {
		r := b.must(t, exitNeedsHands, "runs", verb, id)
		for _, want := range []string{"nothing of it can be read, and which devices the run wrote to is not known\n", "hint: fabricctl plan shows", "fabricctl doctor DEVICE", path} {
			if !strings.Contains(r.err, want) || strings.Contains(r.err, "no device was touched") {
				t.Errorf("runs %s: want %q in %s", verb, want, r)
			}
		}
	}
	if r := b.must(t, exitOK, "runs", "list"); !strings.Contains(r.out, "journal cannot be read: ") {
		t.Errorf("runs list: %s", r)
	}
	b.must(t, exitOK, "plan", "--detailed-exitcode")
	if b.writes() != n {
		t.Error("something was written")
	}
}
