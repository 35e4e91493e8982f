package main

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/fabricctl/fabricctl/drivers/rollout"
	"github.com/fabricctl/fabricctl/model/journal"
	"github.com/fabricctl/fabricctl/tuning"
)

// TestTuneUnderWay: who looks at a fabric on which an experiment is at work is told so, and what it tries, and its lease is not broken by the way.
func TestTuneUnderWay(t *testing.T) {
	b := applied(t, tunedQuartet)
	old := b.config(t)
	seen := false
	var r result
	for n := 40; !seen && n < 90; n += 3 { // until a trial is in force
		r, _ = b.meets(t, n, func(context.CancelFunc) {
			if seen = b.config(t) != old; seen {
				b.lookUnderWay(t)
			}
		}, tunes("tune", "run"))
	}
	if !seen {
		t.Fatal("no trial was in force")
	}
	if !strings.Contains(r.err, "the lease was lost") {
		t.Errorf("it goes on without its lease: %s", r)
	}
	for _, x := range b.runs(t) {
		if x.Status == rollout.Unfinished && x.Trial != "" {
			b.must(t, exitOK, "runs", "rollback", x.ID)
		}
	}
	b.same(t, old, "after all")
}

// lookUnderWay looks at a fabric while a trial is in force on it, and breaks the lease in the end.
func (b *bench) lookUnderWay(t *testing.T) {
	t.Helper()
	for _, verb := range [][]string{{"plan"}, {"drift"}, {"apply", "--yes"}} {
		r := b.call(t, verb...)
		said := unwrapped(r.err)
		for _, want := range []string{
			`(?m)^warning: tuning experiment \S+ is under way on fabric trio: \S+ holds its lease since \S+Z.*; its process lives on this host \(pid \d+\); what differs from the model may be its trial, by its journal just now kmax \S+ to \S+$`,
			`(?m)^hint: fabricctl tune show \S+ --state-dir \S+ says how far it is; interrupt it to have the baseline back$`,
		} {
			if !regexp.MustCompile(want).MatchString(said) {
				t.Errorf("%v: no %s in %s", verb, want, r)
			}
		}
	}
	r := b.must(t, exitRefused, "lock", "break", "trio")
	if !strings.Contains(r.err, "its process lives on this host") || !strings.Contains(r.err, "the lease of fabric trio was not broken: its holder is at work") || !strings.Contains(r.err, "fabricctl lock break trio --yes --state-dir ") {
		t.Errorf("%s", r)
	}
	r = b.must(t, exitOK, "lock", "break", "trio", "--yes")
	if !strings.Contains(r.out, "for tuning experiment ") {
		t.Errorf("%s", r)
	}
}

// TestBecame: a run that is unfinished for ever by its own journal says what became of it where another one knows.
func TestBecame(t *testing.T) {
	back := &tuning.History{Restores: []tuning.Restore{{Done: true}}}
	for _, x := range []struct {
		r    rollout.Summary
		h    *tuning.History
		want string
	}{
		{rollout.Summary{Status: rollout.Finished, Trial: "x"}, back, ""},
		{rollout.Summary{Status: rollout.Unfinished, Trial: "x"}, back, "its experiment has brought the baseline back since"},
		{rollout.Summary{Status: rollout.Unfinished, Trial: "x"}, &tuning.History{Touched: true, Restores: back.Restores}, ""},
		{rollout.Summary{Status: rollout.Unfinished, Later: &rollout.Later{Runs: []string{"y"}, Devices: []string{"a"}}}, nil, "run y came later, and is in force in its place"},
		{rollout.Summary{Status: rollout.Unfinished, Later: &rollout.Later{Runs: []string{"y", "z"}, Devices: []string{"a", "c"}}}, nil, "runs y, z came later, and are in force in its place"},
		{rollout.Summary{Status: rollout.Unfinished, Later: &rollout.Later{Runs: []string{"y"}, Devices: []string{"a"}, Left: []string{"c"}}}, nil, "run y came later, and is in force on a; c is as it was left"},
		{rollout.Summary{Status: rollout.Unfinished, Later: &rollout.Later{Runs: []string{"y"}, Unknown: []string{"a"}, Left: []string{"c", "e"}}}, nil, "run y came later; what is in force on a is not known; c, e are as they were left"},
		{rollout.Summary{Status: rollout.Unfinished}, nil, ""},
	} {
		if got := became(&x.r, x.h); got != x.want {
			t.Errorf("%+v: %q, want %q", x.r, got, x.want)
		}
	}
}

// TestRunsLater: what was taken over by later runs is said to be, in the list and alone: in part, and when they are everywhere, whole. Until
// then the trial counts as in force, and its mark stays.
func TestRunsLater(t *testing.T) {
	b := applied(t, trio)
	old := b.config(t)
	x := b.open(t, "exp-1")
	if err := x.Apply(t.Context(), kmax("2000KB")); err != nil {
		t.Fatal(err)
	}
	dead := x.reset
	if err := x.release(t.Context()); err != nil { // it dies
		t.Fatal(err)
	}
	said := func(want string) {
		t.Helper()
		if r := b.must(t, exitOK, "runs", "list"); !strings.Contains(r.out, want+"\n") {
			t.Errorf("no %q in %s", want, r)
		}
		if r := b.must(t, exitOK, "runs", "show", dead); !strings.Contains(r.out, "run "+dead+" of trio: unfinished"+want+"\n") {
			t.Errorf("no %q in %s", want, r)
		}
	}
	b.must(t, exitOK, "apply", "--yes", "--device", "spine1")
	first := b.runs(t)[2].ID
	part := "run " + first + " came later, and is in force on spine1; leaf1 is as it was left"
	said("; " + part)
	r := b.call(t, "plan")
	words := unwrapped(r.err)
	hint := regexp.MustCompile(`(?m)^hint: fabricctl (runs rollback ` + first + ` .*), then fabricctl (runs rollback ` + dead + ` .*) bring it back; `).FindStringSubmatch(words)
	if !strings.Contains(words, "a part of a trial may be in force on fabric trio: "+part+"; ") || hint == nil {
		t.Fatalf("%s", r)
	}
	a, m, _ := b.tuner(t)
	if _, err := a.openBench(t.Context(), m, "exp-2", benchOptions{Persist: true}); err == nil || exitCode(t.Context(), err) != exitNeedsHands || !strings.Contains(err.Error(), "the baseline of experiment exp-1 is not back: "+part) {
		t.Errorf("an experiment over it: %v", err)
	}
	for _, command := range hint[1:] {
		b.must(t, exitOK, strings.Fields(command)...)
	}
	b.same(t, old, "after all")
	x = b.open(t, "exp-2")
	if err := x.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestTries: of an experiment that writes no device it is said what to do, which is to leave the fabric alone.
func TestTries(t *testing.T) {
	a := &app{sys: quiet(), stateDir: t.TempDir()}
	dir, err := a.tuneDir()
	if err != nil {
		t.Fatal(err)
	}
	log, err := journal.Create(tunePath(dir, "exp-1"), journal.Options{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	begin := tuning.Begin{Schema: tuning.RecordSchema, Vars: []tuning.Variable{{Name: "workload.depth"}}, Base: tuning.Setting{1}, Start: tuning.Setting{1}}
	if err := errors.Join(log.Append("begin", begin), log.Close()); err != nil {
		t.Fatal(err)
	}
	if got, want := a.tries("exp-1"), "it writes no device; leave the fabric as it is while it measures"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
