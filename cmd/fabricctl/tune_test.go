package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/tuning"
)

// shortTune is an experiment of a second.
func shortTune(state string, more ...string) []string {
	return slices.Concat([]string{
		"tune", "run", "-f", "../../examples/bench-ap", "--workload", "ap", "--variables", "kmax", "--duration", "200us", "--looks", "2,2,4",
		"--confirm", "4", "--max-runs", "70", "--state-dir", state,
	}, more)
}

// playOut runs the program, and returns what it wrote.
func playOut(ctx context.Context, errs io.Writer, args ...string) (code int, out string) {
	var b bytes.Buffer
	sys := quiet()
	sys.out, sys.err = &b, errs
	return run(ctx, args, sys), b.String()
}

// atDecision ends a call once it has told of a decision.
type atDecision struct {
	bytes.Buffer
	n   int
	end func()
}

func (w *atDecision) Write(p []byte) (int, error) {
	if bytes.HasPrefix(p, []byte(fmt.Sprintf("%d ", w.n))) {
		w.end()
	}
	return w.Buffer.Write(p)
}

// onlyRun is the one experiment of a state directory.
func onlyRun(t *testing.T, state string) tuneSummary {
	t.Helper()
	all, err := (&app{sys: quiet(), stateDir: state}).allTuned()
	if err != nil || len(all) != 1 {
		t.Fatalf("%d experiments, %v", len(all), err)
	}
	return all[0]
}

// decisionsOf are the decisions of an experiment as show prints them.
func decisionsOf(t *testing.T, state, id string) (r tuneJSON) {
	t.Helper()
	code, out := playOut(t.Context(), io.Discard, "tune", "show", id, "-o", "json", "--state-dir", state)
	if err := json.Unmarshal([]byte(out), &r); code != exitOK || err != nil {
		t.Fatalf("exit %d, %v\n%s", code, err, out)
	}
	return r
}

// TestTuneInterrupted: Ctrl-C after a decision shows what is known and how to go on, and what goes on decides what would have been
// decided without it.
func TestTuneInterrupted(t *testing.T) {
	whole := t.TempDir()
	if code, out := playOut(t.Context(), io.Discard, shortTune(whole)...); code != exitOK {
		t.Fatalf("exit %d\n%s", code, out)
	}
	want := decisionsOf(t, whole, onlyRun(t, whole).ID)
	if len(want.Decisions) < 3 {
		t.Fatalf("only %d decisions", len(want.Decisions))
	}
	for n := 1; n < len(want.Decisions); n += 2 {
		state := t.TempDir()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		errs := &atDecision{n: n, end: cancel}
		code, out := playOut(ctx, errs, shortTune(state)...)
		id := onlyRun(t, state).ID
		if code != exitInterrupted || !strings.Contains(out, "stopped before its end") || !strings.Contains(out, "tune resume "+id) {
			t.Fatalf("after decision %d: exit %d\n%s%s", n, code, out, errs)
		}
		code, out = playOut(t.Context(), io.Discard, "tune", "resume", id, "--state-dir", state)
		if code != exitOK {
			t.Fatalf("after decision %d: a resume ends with %d\n%s", n, code, out)
		}
		got := decisionsOf(t, state, id)
		got.Outcome.Took = want.Outcome.Took
		if d := cmp.Diff(want.Decisions, got.Decisions) + cmp.Diff(want.Outcome, got.Outcome); d != "" {
			t.Errorf("interrupted after decision %d (-whole +resumed):\n%s", n, d)
		}
		if code, out = playOut(t.Context(), io.Discard, "tune", "replay", id, "--state-dir", state); code != exitOK {
			t.Errorf("after decision %d: a replay ends with %d\n%s", n, code, out)
		}
	}
}

// TestTuneOnlyOnce: two processes do not work on one experiment, nor one after the other from the same point, and one that was moved to another
// model does not go on.
func TestTuneOnlyOnce(t *testing.T) {
	state := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	id := ""
	errs := &atDecision{n: 1, end: func() {
		id = onlyRun(t, state).ID
		var again bytes.Buffer
		if code, _ := playOut(t.Context(), &again, "tune", "resume", id, "--state-dir", state); code != exitRefused || !strings.Contains(again.String(), "another process works on experiment") {
			t.Errorf("a second process: exit %d\n%s", code, &again)
		}
		if s := onlyRun(t, state).State; s != tuning.Running {
			t.Errorf("listed as %s", s)
		}
		cancel()
	}}
	playOut(ctx, errs, shortTune(state)...)
	var other bytes.Buffer
	if code, _ := playOut(t.Context(), &other, "tune", "resume", id, "--state-dir", state, "-f", "../../examples/bench-b"); code == exitOK || !strings.Contains(other.String(), "not the one that the experiment began with") {
		t.Errorf("another model: exit %d\n%s", code, &other)
	}
	a := &app{sys: quiet(), stateDir: state}
	_, old, err := a.tuned(id)
	if err != nil {
		t.Fatal(err)
	}
	if code, out := playOut(t.Context(), io.Discard, "tune", "resume", id, "--state-dir", state); code != exitOK {
		t.Fatalf("exit %d\n%s", code, out)
	}
	if err := a.carryOut(t.Context(), &experiment{}, id, old, false); exitCode(t.Context(), err) != exitRefused || !strings.Contains(err.Error(), "another process has gone on") {
		t.Errorf("with a journal that was read before: %v", err)
	}
}

// TestTuneEnds: the exit code of each end.
func TestTuneEnds(t *testing.T) {
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	gated := &tuning.Gated{Why: "exit code 1"}
	for _, x := range []struct {
		name string
		ctx  context.Context
		gate *tuning.Gated
		o    tuning.Outcome
		err  error
		code int
		says string
	}{
		{"done", t.Context(), nil, tuning.Outcome{State: tuning.Done}, nil, exitOK, ""},
		{"budget", t.Context(), nil, tuning.Outcome{State: tuning.Stopped, Spent: true}, nil, exitOK, ""},
		{"gate", t.Context(), gated, tuning.Outcome{State: tuning.Done}, nil, exitRefused, "the gate refused the result: exit code 1"},
		{"interrupted", canceled, nil, tuning.Outcome{State: tuning.Stopped}, context.Canceled, exitInterrupted, "the baseline holds"},
		{"tripped", t.Context(), nil, tuning.Outcome{State: tuning.Tripped, Trip: "3 packets were dropped"}, nil, exitRefused, "3 packets were dropped; the baseline holds"},
		{"device lost", t.Context(), nil, tuning.Outcome{State: tuning.Stopped}, &tuning.Lost{Device: "leaf1", Err: errors.New("no route")}, exitError, "leaf1: no route; the baseline holds"},
		{"disk full", t.Context(), nil, tuning.Outcome{State: tuning.Stopped}, fmt.Errorf("journal: %w", syscall.ENOSPC), exitError, "the disk of the journal is full"},
		{"before it began", t.Context(), nil, tuning.Outcome{}, errors.New("queue-limit: exit status 1"), exitError, "nothing was touched"},
		{"hands", canceled, nil, tuning.Outcome{State: tuning.NeedsHands, Left: "leaf1: unknown"}, context.Canceled, exitNeedsHands, "the baseline is not back: leaf1: unknown"},
	} {
		err := (&app{sys: quiet()}).tuneEnd(x.ctx, &tuneJSON{ID: "x", Gate: x.gate}, &x.o, x.err)
		if code := exitCode(x.ctx, err); code != x.code || (err == nil) != (x.says == "") || err != nil && !strings.Contains(err.Error(), x.says) {
			t.Errorf("%s: exit %d, %v", x.name, code, err)
		}
	}
}

// TestTuneTrippedStays: what a limit has ended is not resumed, with whatever budget.
func TestTuneTrippedStays(t *testing.T) {
	h := &tuning.History{Begin: tuning.Begin{Budget: tuning.Budget{Runs: 60}}}
	r := &tuneJSON{ID: "x", State: tuning.Tripped, Outcome: &tuning.Outcome{State: tuning.Tripped, Trip: "3 packets were lost", Spent: true}}
	for _, runs := range []int{60, 600} {
		err := (&app{sys: quiet()}).resumable(r, h, tuning.Budget{Runs: runs})
		if err == nil || !strings.Contains(err.Error(), "3 packets were lost; there is nothing to finish") {
			t.Errorf("%d runs: %v", runs, err)
		}
	}
}

// TestTunedBy: verbs tests of emulated hosts measure nothing.
func TestTunedBy(t *testing.T) {
	for _, c := range []struct {
		of   tuning.Context
		text string
	}{
		{tuning.Context{Runner: runnerSim}, "with the simulator: " + modelsAnswer},
		{tuning.Context{Runner: runnerLab, Emulated: true}, "on an emulated fabric: " + modelsAnswer},
		{tuning.Context{Runner: runnerPerftest}, "with verbs tests: measured on hosts"},
		{tuning.Context{Runner: runnerPerftest, Emulated: true}, "with verbs tests of emulated hosts: " + modelsAnswer},
	} {
		if got := runnerText(&c.of) + ": " + tunedBy(&c.of); got != c.text {
			t.Errorf("%+v: %q, want %q", c.of, got, c.text)
		}
	}
}
