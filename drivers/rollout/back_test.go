package rollout

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/fabricctl/fabricctl/render"
)

// A run that was taken back is over: finishing it after all would surprise whoever took it back.
func TestNoResumeAfterRollback(t *testing.T) {
	f := newFabric(stateDir(t), "s1")
	r, err := f.e.Apply(context.Background(), f.plan(t), leave)
	if ExitCode(r, err) != 0 {
		t.Fatal(r, err)
	}
	if r, err = f.e.Rollback(context.Background(), "run-1"); ExitCode(r, err) != 0 {
		t.Fatal(r, err)
	}
	r, err = f.e.Resume(context.Background(), "run-1")
	if ExitCode(r, err) != 4 || !strings.Contains(err.Error(), "run run-1 was taken back") {
		t.Errorf("exit %d, %v", ExitCode(r, err), err)
	}
	f.mustHold(t, "resume after rollback", false, nil)
	h, err := Show(f.e.StateDir, "run-1", f.now)
	if err != nil || len(h.Attempts) != 2 || h.Status != Finished || h.Kind != KindRollback || h.Devices[RolledBack] != 1 {
		t.Errorf("%+v, %v", h, err)
	}
}

func TestRollbackRefusesLaterWork(t *testing.T) {
	f := newFabric(stateDir(t), "s1")
	r, err := f.e.Apply(context.Background(), f.plan(t), leave)
	if ExitCode(r, err) != 0 {
		t.Fatal(r, err)
	}
	b := f.boxes["s1"]
	b.running = render.Apply(b.running, changes("port p1 mtu 4000"))
	now, writes := text(b.running), b.writes
	r, err = f.e.Rollback(context.Background(), r.ID)
	x := r.Results[0]
	if ExitCode(r, err) != 5 || x.Outcome != NeedsHands || x.Cause != Refused || !strings.Contains(x.Message, `port|p1|mtu is "4000"`) {
		t.Errorf("exit %d, %+v, %v", ExitCode(r, err), x, err)
	}
	if text(b.running) != now || b.writes != writes {
		t.Error("a later change was undone")
	}
	if r, err = f.e.Resume(context.Background(), r.ID); ExitCode(r, err) != 5 || r.Results[0].Cause != Refused {
		t.Errorf("resume afterwards: exit %d, %+v, %v", ExitCode(r, err), r, err)
	}
	if _, err := f.e.Rollback(context.Background(), "run-99"); !errors.Is(err, os.ErrNotExist) || ExitCode(nil, err) != 1 {
		t.Errorf("no such run: %v", err)
	}
	for _, id := range []string{"", "../x", "a/b", strings.Repeat("x", 29)} {
		if _, err := f.e.Resume(context.Background(), id); err == nil {
			t.Errorf("%q was taken for a run", id)
		}
	}
}

// A rollback goes the other way round: hosts first, and switches only when all hosts are back.
func TestRollbackOrder(t *testing.T) {
	f := newFabric(stateDir(t), "s1", "h1", "h2")
	r, err := f.e.Apply(context.Background(), f.plan(t), leave)
	if ExitCode(r, err) != 0 {
		t.Fatal(r, err)
	}
	var order []string
	f.e.Progress = func(ev Event) {
		if ev.Stage == StageDone {
			order = append(order, ev.Device+" "+string(ev.Outcome))
		}
	}
	lost := errors.New("h2: no route to host")
	f.boxes["h2"].onOpen = func(int) error { return lost }
	r, err = f.e.Rollback(context.Background(), r.ID)
	if got := strings.Join(order, ", "); got != "h1 rolled-back, h2 unknown, s1 applied" || ExitCode(r, err) != 5 {
		t.Errorf("exit %d: %s", ExitCode(r, err), got)
	}
	f.boxes["h2"].onOpen, order = nil, nil
	r, err = f.e.Rollback(context.Background(), r.ID)
	if got := strings.Join(order, ", "); got != "h1 rolled-back, h2 rolled-back, s1 rolled-back" || ExitCode(r, err) != 0 {
		t.Errorf("exit %d: %s", ExitCode(r, err), got)
	}
	f.mustHold(t, "rollback", false, r)
}

// A device that cannot be read after a transaction in flight is unknown, whatever was known before that.
func TestUnknownAfterDeath(t *testing.T) {
	f := newFabric(stateDir(t), "s1")
	f.boxes["s1"].onCommit = on(2, fault{before: errLost})
	r, err := f.e.Apply(context.Background(), f.plan(t), leave)
	if r.Results[0].Outcome != RolledBack {
		t.Fatal(r, err)
	}
	for k := 1; ; k++ {
		g := f.after(t, time.Hour)
		if g.doomed(k, map[string]int{}, func() { g.e.Resume(context.Background(), "run-1") }) != "device.commit.after" {
			continue
		}
		h := g.after(t, 2*time.Hour)
		h.boxes["s1"].onOpen = func(int) error { return errLost }
		for _, do := range []func(context.Context, string) (*Run, error){h.e.Resume, h.e.Rollback} {
			r, err := do(context.Background(), "run-1")
			if ExitCode(r, err) != 5 || r.Results[0].Outcome != Unknown {
				t.Errorf("exit %d, %+v, %v", ExitCode(r, err), r, err)
			}
		}
		if s, err := Show(h.e.StateDir, "run-1", h.now); err != nil || s.Status != Unfinished || s.Devices[Unknown] != 1 {
			t.Errorf("%+v, %v", s, err)
		}
		return
	}
}
