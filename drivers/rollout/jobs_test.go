package rollout

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/render"
)

// busy gives a host queue pairs on its first port, which a change of MTU flaps.
func busy(f *fabric, pairs int) {
	f.boxes["h1"].facts.NICs = []render.HostNIC{{Name: "p1", QPs: pairs}, {Name: "p2"}}
}

// Killing running jobs needs a leave of its own, besides that for flapping.
func TestJobsNeedLeave(t *testing.T) {
	for _, c := range []struct {
		pairs int
		says  string
	}{
		{64, "kills 64 live queue pairs of running jobs: h1 (64 live queue pairs)"},
		{1, "kills 1 live queue pair of running jobs: h1 (1 live queue pair)"},
		{-1, "h1 (live queue pairs that cannot be counted)"},
	} {
		f := newFabric(stateDir(t), "h1")
		busy(f, c.pairs)
		p := f.plan(t)
		opens := f.boxes["h1"].opens
		r, err := f.e.Apply(context.Background(), p, leave)
		if ExitCode(r, err) != 4 || !errors.Is(err, drivers.ErrJobs) || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "--allow-jobs permits it") {
			t.Errorf("%d: exit %d, %v", c.pairs, ExitCode(r, err), err)
		}
		if f.boxes["h1"].opens != opens {
			t.Errorf("%d: the host was contacted", c.pairs)
		}
		with := leave
		with.AllowJobs = true
		if r, err := f.e.Apply(context.Background(), p, with); ExitCode(r, err) != 0 {
			t.Errorf("%d: with leave: %+v, %v", c.pairs, r, err)
		}
		h, err := Show(f.e.StateDir, "run-1", f.now)
		if err != nil || !h.Options.AllowJobs {
			t.Errorf("%d: the leave is not in the journal: %+v, %v", c.pairs, h, err)
		}
	}
}

// Queue pairs count where something is hit: not on ports that nothing happens to.
func TestJobsElsewhereDoNotMatter(t *testing.T) {
	f := newFabric(stateDir(t), "h1")
	f.boxes["h1"].facts.NICs = []render.HostNIC{{Name: "x1", QPs: 64}}
	if r, err := f.e.Apply(context.Background(), f.plan(t), leave); ExitCode(r, err) != 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

// A job that starts between plan and apply is seen before the first write.
func TestJobsSincePlan(t *testing.T) {
	f := newFabric(stateDir(t), "h1")
	busy(f, 0)
	p := f.plan(t)
	busy(f, 8)
	r, err := f.e.Apply(context.Background(), p, leave)
	if err != nil || r.Results[0].Outcome != Unchanged || r.Results[0].Cause != Refused || !strings.Contains(r.Results[0].Message, "by now there are 8 live queue pairs") {
		t.Errorf("%+v, %v", r, err)
	}
	if f.boxes["h1"].writes > 0 {
		t.Error("something was written")
	}
}

// A job that starts before the last look of the host itself: what was written is taken back, and nothing flaps.
func TestJobsSeenByHost(t *testing.T) {
	f := newFabric(stateDir(t), "h1")
	f.boxes["h1"].onCommit = on(2, fault{before: fmt.Errorf("h1: commit: %w: 8 on p1", drivers.ErrJobs)})
	r, err := f.e.Apply(context.Background(), f.plan(t), leave)
	if ExitCode(r, err) != 4 || r.Results[0].Outcome != RolledBack || r.Results[0].Cause != Refused {
		t.Errorf("exit %d, %+v, %v", ExitCode(r, err), r, err)
	}
	f.mustHold(t, "refused by the host", false, nil)
}

// The way back may kill jobs too: then nothing more is written, and the hint says when to go on.
func TestJobsKeepRollbackWaiting(t *testing.T) {
	f := newFabric(stateDir(t), "h1")
	r, err := f.e.Apply(context.Background(), f.plan(t), leave)
	if ExitCode(r, err) != 0 {
		t.Fatal(r, err)
	}
	b := f.boxes["h1"]
	b.onCommit = func(int, []render.Change) fault { return fault{before: fmt.Errorf("h1: commit: %w", drivers.ErrJobs)} }
	r, err = f.e.Rollback(context.Background(), r.ID)
	x := r.Results[0]
	if ExitCode(r, err) != 5 || x.Outcome != NeedsHands || x.Cause != Refused || x.Done != 3 || !strings.Contains(x.Message, "while jobs run there: fabricctl runs resume run-1 or fabricctl runs rollback run-1 when they are done, or with --allow-jobs") {
		t.Errorf("exit %d, %+v, %v", ExitCode(r, err), x, err)
	}
	b.onCommit = nil
	if r, err = f.e.Rollback(context.Background(), r.ID); ExitCode(r, err) != 0 {
		t.Errorf("when the jobs are done: %+v, %v", r, err)
	}
	f.mustHold(t, "rolled back at last", false, nil)
}

// Drift is what the fabric does not hold: jobs that begin and end meanwhile do not change it.
func TestDriftIsStill(t *testing.T) {
	f := newFabric(stateDir(t), "h1")
	var shown []string
	for _, pairs := range []int{0, 64, -1} {
		busy(f, pairs)
		p := f.plan(t)
		before, err := p.Encode()
		if err != nil {
			t.Fatal(err)
		}
		b, err := p.Still().Encode()
		if err != nil {
			t.Fatal(err)
		}
		shown = append(shown, string(b))
		if after, err := p.Encode(); err != nil || string(after) != string(before) {
			t.Errorf("the plan itself was changed: %v", err)
		}
	}
	if shown[0] != shown[1] || shown[0] != shown[2] {
		t.Errorf("jobs are drift:\n%s\n%s\n%s", shown[0], shown[1], shown[2])
	}
}
