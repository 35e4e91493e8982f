package rollout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/render"
)

// drainer is a scheduler: it outlives the process that asks it.
type drainer struct {
	mu       sync.Mutex
	calls    []string
	away     map[string]bool // drained devices
	drain    func(device string) error
	undrains func(device string) error
}

func (d *drainer) Drain(ctx context.Context, device string, ports []string) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls = append(d.calls, "drain "+device+" "+strings.Join(ports, ","))
	if d.away == nil {
		d.away = map[string]bool{}
	}
	d.away[device] = true
	if d.drain != nil {
		return "", d.drain(device)
	}
	return "2 jobs moved", nil
}

func (d *drainer) Undrain(ctx context.Context, device string, o Outcome) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls = append(d.calls, "undrain "+device+" "+string(o))
	if d.undrains != nil {
		if err := d.undrains(device); err != nil {
			return "", err
		}
	}
	delete(d.away, device)
	return "", ctx.Err()
}

func (d *drainer) mustHaveDone(t *testing.T, calls ...string) {
	t.Helper()
	if diff := cmp.Diff(calls, d.calls); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(d.away) > 0 {
		t.Errorf("still drained: %v", d.away)
	}
}

// drained is a fabric with a drainer, and boxes that refuse to be written while they are not drained.
func drained(t *testing.T, names ...string) (*fabric, *drainer) {
	f, d := newFabric(stateDir(t), names...), &drainer{}
	f.e.Drainer = d
	for _, b := range f.boxes {
		b.onCommit = func(int, []render.Change) fault {
			d.mu.Lock()
			defer d.mu.Unlock()
			if !d.away[b.name] {
				return fault{before: errors.New(b.name + ": there is traffic on it")}
			}
			return fault{}
		}
	}
	return f, d
}

// Traffic is taken off before the first write, with the ports that go down, and comes back after the last.
func TestDrain(t *testing.T) {
	f, d := drained(t, "s1", "h1")
	r, err := f.e.Apply(context.Background(), f.plan(t), leave)
	if ExitCode(r, err) != 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	want := []string{"drain s1 p1,p2", "undrain s1 applied", "drain h1 p1,p2", "undrain h1 applied"}
	d.mustHaveDone(t, want...)
	if n := r.Results[0].Notes; !slices.Contains(n, "drained: 2 jobs moved") {
		t.Errorf("%q", n)
	}
	d.calls = nil
	if r, err = f.e.Apply(context.Background(), f.plan(t), leave); ExitCode(r, err) != 0 || len(d.calls) > 0 {
		t.Errorf("nothing to do: %+v, %v, %v", r, err, d.calls)
	}
	if r, err = f.e.Rollback(context.Background(), "run-1"); ExitCode(r, err) != 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	d.mustHaveDone(t, "drain h1 p1,p2", "undrain h1 rolled-back", "drain s1 p1,p2", "undrain s1 rolled-back")
	f.mustHold(t, "taken back", false, nil)
}

// What flaps nothing needs no drain.
func TestNoDrainWithoutNeed(t *testing.T) {
	f, d := newFabric(stateDir(t), "s1"), &drainer{}
	f.e.Drainer = d
	f.want["s1"] = slices.Clone(oldConfig())
	f.want["s1"] = render.Apply(f.want["s1"], changes("watch p1 time 7"))
	r, err := f.e.Apply(context.Background(), f.plan(t), ApplyOptions{})
	if ExitCode(r, err) != 0 || r.Results[0].Outcome != Applied || len(d.calls) > 0 {
		t.Errorf("%+v, %v, %v", r, err, d.calls)
	}
}

// A device that cannot be drained is not touched, and may have been drained in part. The others go on.
func TestDrainFails(t *testing.T) {
	f, d := drained(t, "s1", "s2")
	d.drain = func(device string) error {
		if device == "s1" {
			return errors.New("exit status 3: no such node")
		}
		return nil
	}
	r, err := f.e.Apply(context.Background(), f.plan(t), leave)
	x := r.Results[0]
	if ExitCode(r, err) != 3 || x.Outcome != Unchanged || x.Cause != Refused || !strings.Contains(x.Message, "s1: it could not be drained: exit status 3: ") {
		t.Errorf("exit %d, %+v, %v", ExitCode(r, err), x, err)
	}
	if f.boxes["s1"].writes > 0 || r.Results[1].Outcome != Applied {
		t.Errorf("%d writes, %+v", f.boxes["s1"].writes, r.Results[1])
	}
	d.mustHaveDone(t, "drain s1 p1,p2", "undrain s1 unchanged", "drain s2 p1,p2", "undrain s2 applied")
}

// Traffic comes back also when a change fails, and when the run is to stop.
func TestUndrainAfterFailure(t *testing.T) {
	f, d := drained(t, "s1")
	f.boxes["s1"].onCommit = on(2, fault{after: errLost, keep: func(int) bool { return false }})
	r, err := f.e.Apply(context.Background(), f.plan(t), leave)
	if ExitCode(r, err) != 4 || r.Results[0].Outcome != RolledBack {
		t.Errorf("%+v, %v", r, err)
	}
	d.mustHaveDone(t, "drain s1 p1,p2", "undrain s1 rolled-back")

	f, d = drained(t, "s1")
	ctx, cancel := context.WithCancel(context.Background())
	d.drain = func(string) error { cancel(); return nil }
	r, err = f.e.Apply(ctx, f.plan(t), leave)
	if ExitCode(r, err) != 4 && ExitCode(r, err) != 130 || f.boxes["s1"].writes > 0 {
		t.Errorf("exit %d, %+v, %v", ExitCode(r, err), r, err)
	}
	d.mustHaveDone(t, "drain s1 p1,p2", "undrain s1 unchanged")
}

// When traffic cannot be let back, nothing more is drained, the run is not over, and the next attempt tries again.
func TestUndrainFails(t *testing.T) {
	f, d := drained(t, "s1", "s2", "h1")
	d.undrains = func(string) error { return errors.New("scheduler is away") }
	r, err := f.e.Apply(context.Background(), f.plan(t), leave)
	if ExitCode(r, err) != 3 || !r.Results[0].Drained || r.Results[0].Outcome != Applied || r.Results[1].Outcome != Unchanged || r.Results[2].Cause != NotStarted {
		t.Errorf("exit %d, %+v, %v", ExitCode(r, err), r, err)
	}
	if n := r.Results[0].Notes; !strings.Contains(strings.Join(n, ";"), "it is still drained: scheduler is away; undrain it by hand") {
		t.Errorf("%q", n)
	}
	if m := r.Results[1].Message; !strings.Contains(m, "s1 could not be undrained, so no other device is drained (repair the drain hook, then fabricctl runs resume run-1 or fabricctl runs rollback run-1)") {
		t.Error(m)
	}
	h, err := Show(f.e.StateDir, "run-1", f.now)
	if err != nil || h.Status != Unfinished {
		t.Errorf("%+v, %v", h, err)
	}
	d.undrains, d.calls = nil, nil
	if r, err = f.e.Resume(context.Background(), "run-1"); ExitCode(r, err) != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	d.mustHaveDone(t, "undrain s1 applied", "drain s2 p1,p2", "undrain s2 applied", "drain h1 p1,p2", "undrain h1 applied")
	if h, err = Show(f.e.StateDir, "run-1", f.now); err != nil || h.Status != Finished {
		t.Errorf("%+v, %v", h, err)
	}
}

// A resume without the hook says what it cannot do.
func TestResumeWithoutHook(t *testing.T) {
	f, d := drained(t, "s1")
	d.undrains = func(string) error { return errors.New("scheduler is away") }
	if r, err := f.e.Apply(context.Background(), f.plan(t), leave); ExitCode(r, err) != 3 {
		t.Fatalf("%+v, %v", r, err)
	}
	f.e.Drainer = nil
	r, err := f.e.Resume(context.Background(), "run-1")
	if ExitCode(r, err) != 3 || !r.Results[0].Drained || !strings.Contains(strings.Join(r.Results[0].Notes, ";"), "there is no drain hook in this call") {
		t.Errorf("exit %d, %+v, %v", ExitCode(r, err), r, err)
	}
}

// Jobs are what a drain is for: those that stay are not killed without leave.
func TestDrainEndsJobs(t *testing.T) {
	f, d := drained(t, "h1")
	busy(f, 64)
	d.drain = func(string) error { busy(f, 0); return nil }
	if r, err := f.e.Apply(context.Background(), f.plan(t), leave); ExitCode(r, err) != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	f, d = drained(t, "h1")
	busy(f, 64)
	d.drain = func(string) error { busy(f, 2); return nil }
	r, err := f.e.Apply(context.Background(), f.plan(t), leave)
	if ExitCode(r, err) != 4 || !strings.Contains(r.Results[0].Message, "although it was drained there are 2 live queue pairs, which the change would kill") || f.boxes["h1"].writes > 0 {
		t.Errorf("exit %d, %+v, %v", ExitCode(r, err), r, err)
	}
	d.mustHaveDone(t, "drain h1 p1,p2", "undrain h1 unchanged")
}

// The world moves while a device drains: what it holds is looked at again.
func TestMovedWhileDraining(t *testing.T) {
	f, d := drained(t, "s1")
	d.drain = func(string) error {
		f.boxes["s1"].running = render.Apply(f.boxes["s1"].running, changes("port p1 mtu 4000"))
		return nil
	}
	r, err := f.e.Apply(context.Background(), f.plan(t), leave)
	if ExitCode(r, err) != 4 || f.boxes["s1"].writes > 0 || !strings.Contains(r.Results[0].Message, "changed since the plan") {
		t.Errorf("exit %d, %+v, %v", ExitCode(r, err), r, err)
	}
	d.mustHaveDone(t, "drain s1 p1,p2", "undrain s1 unchanged")
}

// Death at each point of a run that drains: whoever finishes it or takes it back, in the end nothing is drained, and
// nothing was written to a device that was not.
func TestKillWhileDrained(t *testing.T) {
	for k := 1; ; k += stride() {
		f, d := drained(t, "s1", "h1")
		p := f.plan(t)
		hit := f.doomed(k, map[string]int{}, func() { f.e.Apply(context.Background(), p, leave) })
		if hit == "" {
			break
		}
		for _, back := range []bool{false, true} {
			g := f.after(t, time.Hour)
			later := &drainer{away: map[string]bool{}}
			for name := range d.away {
				later.away[name] = true
			}
			g.e.Drainer = later
			for _, b := range g.boxes {
				b.onCommit = func(int, []render.Change) fault {
					if !later.away[b.name] {
						return fault{before: errors.New("there is traffic on it")}
					}
					return fault{}
				}
			}
			what := fmt.Sprintf("killed at %d (%s), back %t", k, hit, back)
			do := g.e.Resume
			if back {
				do = g.e.Rollback
			}
			r, err := do(context.Background(), "run-1")
			if err != nil {
				continue // the run never began
			}
			if ExitCode(r, err) != 0 {
				t.Fatalf("%s: exit %d, %+v", what, ExitCode(r, err), r)
			}
			g.mustHold(t, what, !back, nil)
			if len(later.away) > 0 {
				t.Fatalf("%s: still drained: %v after %v", what, later.away, later.calls)
			}
		}
	}
}
