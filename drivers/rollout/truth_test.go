package rollout

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/journal"
	"github.com/fabricctl/fabricctl/render"
)

// A plan that refuses a device is refused as a whole; one that could not read a device is not.
func TestBlockedPlan(t *testing.T) {
	f := newFabric(stateDir(t), "s1", "s2", "h1")
	f.boxes["s1"].facts.Owners = []string{"AI-ECN is on"}
	r, err := f.e.Apply(context.Background(), f.plan(t), leave)
	var refused *RefusedError
	if ExitCode(r, err) != 4 || !errors.As(err, &refused) || !strings.Contains(err.Error(), "s1: somebody else configures it: AI-ECN is on") || !strings.Contains(refused.Hint, "--device") {
		t.Errorf("exit %d, %+v, %v", ExitCode(r, err), r, err)
	}
	f.mustHold(t, "blocked", false, nil)
	if f.writes() > 0 {
		t.Error("a device was written to")
	}
	if runs, err := Runs(f.e.StateDir, f.now); err != nil || len(runs) > 0 {
		t.Errorf("left runs %+v, %v", runs, err)
	}
}

// A device in maintenance is not written, so another box in its place holds nothing up.
func TestReplacedInMaintenance(t *testing.T) {
	f := newFabric(stateDir(t), "s1", "s2")
	f.net.Devices[0].State = intent.Maintenance
	f.boxes["s1"].facts.Serial = "X"
	p := f.plan(t)
	if d := p.Device("s1"); d.Blocked || finding(d, "not-read").Msg == "" {
		t.Errorf("%+v", d)
	}
	if r, err := f.e.Apply(context.Background(), p, leave); ExitCode(r, err) != 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

// What resume and rollback say of a device that needs nothing by the journal, they have read.
func TestAgainReadsWhatItReports(t *testing.T) {
	type want struct {
		outcome Outcome
		cause   Cause
		exit    int
	}
	gone := func(b *box) { b.onOpen = func(int) error { return errors.New("s1: no route to host") } }
	for _, c := range []struct {
		name     string
		rig      func(f *fabric, b *box)
		resume   want // of a finished run
		rollback want // of a run that was taken back
	}{
		{"nothing", func(*fabric, *box) {}, want{Applied, None, 0}, want{RolledBack, None, 0}},
		{"moved to neither", func(_ *fabric, b *box) { b.running = render.Apply(b.running, changes("port p1 mtu 4000")) }, want{NeedsHands, Refused, 5}, want{NeedsHands, Refused, 5}},
		{"moved to the other", func(f *fabric, b *box) {
			if b.running.Equal(oldConfig()) {
				b.running = f.asModelled("s1")
			} else {
				b.running = oldConfig()
			}
		}, want{RolledBack, Refused, 4}, want{Applied, Refused, 4}},
		{"unreachable", func(_ *fabric, b *box) { gone(b) }, want{Unknown, FailedCause, 5}, want{Unknown, FailedCause, 5}},
		{"replaced", func(_ *fabric, b *box) { b.facts.Serial = "X" }, want{Unchanged, Refused, 4}, want{Unchanged, Refused, 4}},
		{"timer", func(_ *fabric, b *box) { b.facts.Owners = []string{theirTimer} }, want{NeedsHands, Refused, 5}, want{RolledBack, None, 0}},
		{"something else moved", func(_ *fabric, b *box) { b.running = render.Apply(b.running, changes("watch p3 time 5")) }, want{Applied, None, 0}, want{RolledBack, None, 0}},
	} {
		for _, back := range []bool{false, true} {
			f := newFabric(stateDir(t), "s1")
			f.flavour(flavour{timer: true})
			b := f.boxes["s1"]
			if r, err := f.e.Apply(context.Background(), f.plan(t), leave); ExitCode(r, err) != 0 {
				t.Fatal(r, err)
			}
			do, w := f.e.Resume, c.resume
			if back {
				do, w = f.e.Rollback, c.rollback
				if r, err := do(context.Background(), "run-1"); ExitCode(r, err) != 0 {
					t.Fatal(r, err)
				}
			}
			c.rig(f, b)
			writes, holds := b.writes, text(b.running)
			r, err := do(context.Background(), "run-1")
			if err != nil {
				t.Fatal(err)
			}
			x := r.Results[0]
			if x.Outcome != w.outcome || x.Cause != w.cause || ExitCode(r, err) != w.exit || w.cause != None && x.Message == "" {
				t.Errorf("%s, back %v: exit %d, %+v", c.name, back, ExitCode(r, err), x)
			}
			if b.writes != writes || text(b.running) != holds {
				t.Errorf("%s, back %v: it was written to", c.name, back)
			}
		}
	}
}

// A switch that was replaced since the run is not written to by resume or rollback, which go on with the others; the new
// one gets its whole configuration from a new plan, and nobody else is touched.
func TestReplaced(t *testing.T) {
	for _, kind := range []Kind{KindResume, KindRollback} {
		f := newFabric(stateDir(t), "s1", "s2")
		f.boxes["s2"].onCommit = on(2, fault{before: errLost}) // the run is left unfinished
		if r, err := f.e.Apply(context.Background(), f.plan(t), leave); ExitCode(r, err) != 3 {
			t.Fatal(r, err)
		}
		f.boxes["s2"].onCommit = nil
		old := f.boxes["s1"]
		f.boxes["s1"] = newBox("s1", old.d, oldConfig())
		f.boxes["s1"].facts.Serial = "NEW"
		act := f.e.Resume
		if kind == KindRollback {
			act = f.e.Rollback
		}
		r, err := act(context.Background(), "run-1")
		if err != nil || f.boxes["s1"].writes > 0 {
			t.Fatalf("%s: %v, %d writes", kind, err, f.boxes["s1"].writes)
		}
		x := r.Results[0]
		if x.Outcome != Unchanged || x.Cause != Refused || !strings.Contains(x.Message, `serial number is "NEW"`) || !strings.Contains(x.Message, "plan again") {
			t.Errorf("%s: %+v", kind, x)
		}
		p := f.plan(t)
		if d := p.Device("s1"); !d.Blocked || !strings.Contains(p.Refusal().Error(), `write serial: "NEW" under devices.s1 in the inventory`) {
			t.Errorf("%s: %+v, %v", kind, d, p.Refusal())
		}
		f.net.Devices[0].Serial = "NEW"
		if r, err := f.e.Apply(context.Background(), f.plan(t), leave); ExitCode(r, err) != 0 {
			t.Errorf("%s: %+v, %v", kind, r, err)
		}
		f.is(t, "s1", f.wanted("s1", oldConfig()))
	}
}

// A journal that was cut at a whole line before anything was sent: the device knows better.
func TestRollbackOfCutJournal(t *testing.T) {
	f := newFabric(stateDir(t), "s1")
	if r, err := f.e.Apply(context.Background(), f.plan(t), leave); ExitCode(r, err) != 0 {
		t.Fatal(r, err)
	}
	path := runPath(f.e.StateDir, "run-1")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(b), "\n")
	if err := os.WriteFile(path, []byte(strings.Join(lines[:2], "")), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := f.e.Rollback(context.Background(), "run-1")
	if x := r.Results[0]; x.Outcome != Applied || x.Cause != Refused || ExitCode(r, err) != 4 {
		t.Errorf("exit %d, %+v, %v", ExitCode(r, err), x, err)
	}
}

// An object that somebody uses by now is not removed under him, and nothing of the device is undone.
func TestRollbackOfUsedObject(t *testing.T) {
	f := newFabric(stateDir(t), "s1", "s2")
	if r, err := f.e.Apply(context.Background(), f.plan(t), leave); ExitCode(r, err) != 0 {
		t.Fatal(r, err)
	}
	b := f.boxes["s1"]
	b.running = render.Apply(b.running, changes("port x1 profile ours-a"))
	holds, writes := text(b.running), b.writes
	r, err := f.e.Rollback(context.Background(), "run-1")
	x := r.Results[0]
	if x.Outcome != Applied || x.Cause != Refused || !strings.Contains(x.Message, "prof|ours-a") || !strings.Contains(x.Message, "port|x1|profile") || ExitCode(r, err) != 3 {
		t.Errorf("exit %d, %+v, %v", ExitCode(r, err), x, err)
	}
	if text(b.running) != holds || b.writes != writes {
		t.Errorf("something was undone:\n%s", text(b.running))
	}
	if r.Results[1].Outcome != RolledBack {
		t.Errorf("the other device: %+v", r.Results[1])
	}
}

// A run is finished only under the model that it was planned for, and taken back under any.
func TestResumeUnderAnotherModel(t *testing.T) {
	f := newFabric(stateDir(t), "s1", "s2")
	f.boxes["s1"].onCommit = on(1, fault{before: errLost})
	if r, err := f.e.Apply(context.Background(), f.plan(t), leave); ExitCode(r, err) != 3 {
		t.Fatal(r, err)
	}
	writes := f.writes()
	f.e.Model = "another digest"
	r, err := f.e.Resume(context.Background(), "run-1")
	if ExitCode(r, err) != 4 || err == nil || !strings.Contains(err.Error(), "another model") || f.writes() != writes {
		t.Errorf("resume: exit %d, %v", ExitCode(r, err), err)
	}
	r, err = f.e.Rollback(context.Background(), "run-1")
	if ExitCode(r, err) != 0 || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "model") {
		t.Errorf("rollback: exit %d, %+v, %v", ExitCode(r, err), r, err)
	}
	f.e.Model = "digest"
	f.mustHold(t, "rollback", false, nil)
}

// A run whose journal vanished can neither be finished nor taken back later: it stops, and says so.
func TestJournalVanishes(t *testing.T) {
	for _, at := range []struct {
		point string
		n     int
	}{{"device.commit.before", 1}, {"device.commit.after", 1}, {"device.commit.after", 3}, {"device.save.after", 1}} {
		f := newFabric(stateDir(t), "s1", "s2", "h1")
		f.flavour(flavour{saver: true})
		p := f.plan(t)
		n := 0
		f.e.Hook = func(point string) {
			if point == at.point {
				if n++; n == at.n {
					os.RemoveAll(runsDir(f.e.StateDir))
				}
			}
		}
		r, err := f.e.Apply(context.Background(), p, leave)
		if ExitCode(r, err) != 5 || !strings.Contains(strings.Join(r.Notes, " "), "vanished") {
			t.Errorf("%v: exit %d, %+v, %v", at, ExitCode(r, err), r, err)
		}
		if f.boxes["s2"].writes+f.boxes["h1"].writes > 0 {
			t.Errorf("%v: the run went on", at)
		}
		for _, x := range r.Results {
			b := f.boxes[x.Device]
			want := oldConfig()
			if x.Outcome == Applied {
				want = f.asModelled(x.Device)
			}
			if !b.running.Equal(want) {
				t.Errorf("%v: %s is %s and runs\n%s", at, x.Device, x.Outcome, text(b.running))
			}
		}
	}
}

// A later run that could not be read is in force as far as is known.
func TestLaterRunOfUnknownState(t *testing.T) {
	f := newFabric(stateDir(t), "s1")
	if r, err := f.e.Apply(context.Background(), f.plan(t), leave); ExitCode(r, err) != 0 {
		t.Fatal(r, err)
	}
	f.now = f.now.Add(1)
	f.want["s1"] = append(newConfig(), conf("watch p1 time 900")...).Sorted()
	if r, err := f.e.Apply(context.Background(), f.plan(t), leave); ExitCode(r, err) != 0 {
		t.Fatal(r, err)
	}
	b := f.boxes["s1"]
	b.onOpen = func(int) error { return errLost }
	if r, err := f.e.Resume(context.Background(), "run-2"); ExitCode(r, err) != 5 {
		t.Fatal(r, err)
	}
	b.onOpen = nil
	if r, err := f.e.Rollback(context.Background(), "run-1"); ExitCode(r, err) != 4 || !errors.Is(err, drivers.ErrMoved) {
		t.Errorf("%+v, %v", r, err)
	}
}

// An older run is not finished where a later one is in force, not even on a device that the later one could not reach:
// the two hold different agreements. It names the later one and writes nothing, and goes on once that was taken back.
func TestResumeBelowALaterRun(t *testing.T) {
	f := newFabric(stateDir(t), "s1", "s2")
	s2 := f.boxes["s2"]
	p := f.plan(t)
	s2.onOpen = func(int) error { return errLost }
	if r, err := f.e.Apply(context.Background(), p, leave); ExitCode(r, err) != 3 {
		t.Fatal(r, err)
	}
	f.now = f.now.Add(1)
	f.want["s1"] = append(newConfig(), conf("watch p1 time 900")...).Sorted()
	if r, err := f.e.Apply(context.Background(), f.plan(t), leave); ExitCode(r, err) != 3 {
		t.Fatal(r, err)
	}
	s2.onOpen = nil
	n := s2.writes + f.boxes["s1"].writes
	r, err := f.e.Resume(context.Background(), "run-1")
	if ExitCode(r, err) != 4 || !errors.Is(err, drivers.ErrMoved) || !strings.Contains(err.Error(), "run run-2 came later and is in force on s1") {
		t.Errorf("%+v, %v", r, err)
	}
	if s2.writes+f.boxes["s1"].writes != n {
		t.Error("something was written")
	}
	if r, err := f.e.Rollback(context.Background(), "run-2"); ExitCode(r, err) != 0 {
		t.Fatal(r, err)
	}
	f.want["s1"] = newConfig()
	if r, err := f.e.Resume(context.Background(), "run-1"); ExitCode(r, err) != 0 {
		t.Errorf("after the later one was taken back: %+v, %v", r, err)
	}
	f.mustHold(t, "resume", true, nil)
}

// A lease whose file is gone was lost, and the sentence for that needs no name.
func TestLeaseFileGone(t *testing.T) {
	f := newFabric(stateDir(t), "s1")
	p := f.plan(t)
	f.e.Hook = func(point string) {
		if point == "device.commit.before" {
			os.Remove(journal.LeasePath(LeasesDir(f.e.StateDir), "pod1"))
		}
	}
	r, err := f.e.Apply(context.Background(), p, leave)
	if err != nil {
		t.Fatal(err)
	}
	if x := r.Results[0]; x.Outcome != NeedsHands || !strings.Contains(x.Message, "its file is gone") || strings.Contains(x.Message, ":  ") {
		t.Errorf("%+v", x)
	}
}
