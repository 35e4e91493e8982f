package rollout

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/fabricctl/fabricctl/model/journal"
	"github.com/fabricctl/fabricctl/render"
)

// trying is a fabric as modelled, whose model then asks for another kmin: one transaction.
func trying(t testing.TB, v flavour, names ...string) *fabric {
	f := newFabric(stateDir(t), names...)
	f.flavour(v)
	for n, b := range f.boxes {
		b.running = f.asModelled(n)
		b.startup = b.running
		f.want[n] = render.Apply(newConfig(), conf0("prof ours-a kmin", "100", "440"))
	}
	return f
}

func conf0(key, before, after string) []render.Change {
	w := strings.Fields(key)
	return []render.Change{{Op: render.Modify, Key: render.Key{Scope: w[0], Object: w[1], Field: w[2]}, Before: &before, After: &after}}
}

var trial = ApplyOptions{Trial: "exp-1"}

func (f *fabric) held(name string) string { return text(f.boxes[name].running) }

// A trial is in force, read back, and neither confirmed nor saved; rolling it back leaves every byte as it was.
func TestTrial(t *testing.T) {
	for _, v := range flavours {
		f := trying(t, v, "s1", "h1")
		old := map[string]string{"s1": f.held("s1"), "h1": f.held("h1")}
		lease, err := f.e.Acquire(context.Background(), "pod1", "exp-1")
		if err != nil {
			t.Fatal(err)
		}
		f.e.Lease = lease
		r, err := f.e.Apply(context.Background(), f.plan(t), trial)
		if ExitCode(r, err) != 0 {
			t.Fatalf("%v: %+v, %v", v, r, err)
		}
		for n, b := range f.boxes {
			if f.held(n) != text(f.wanted(n, oldConfig())) {
				t.Errorf("%v: %s holds\n%s", v, n, f.held(n))
			}
			if saved := text(b.startup) != old[n]; saved != v.persists {
				t.Errorf("%v: %s saved the trial: %v", v, n, saved)
			}
			if waits := len(b.timed) == 1; waits != v.timer {
				t.Errorf("%v: %s will revert: %v", v, n, waits)
			}
		}
		if at := r.Results[0].Reverts; at.IsZero() == v.timer {
			t.Errorf("%v: the run says that it reverts at %v", v, at)
		}
		if h, err := Show(f.e.StateDir, r.ID, f.now); err != nil || h.Status != Running {
			t.Errorf("%v: under its lease the trial is %v, %v", v, h.Status, err)
		}
		if _, err := f.e.Acquire(context.Background(), "pod1", "exp-2"); !errors.As(err, new(*RefusedError)) {
			t.Errorf("%v: the lease was given back after a trial: %v", v, err)
		}
		if _, err := f.e.Resume(context.Background(), r.ID); err == nil || !strings.Contains(err.Error(), "tune resume exp-1") {
			t.Errorf("%v: a trial was resumed: %v", v, err)
		}
		f.e.Model = "the digest of the files, without what was tried"
		for range 2 {
			if r, err := f.e.Rollback(context.Background(), r.ID); ExitCode(r, err) != 0 || strings.Contains(strings.Join(r.Notes, " "), "the model has changed") {
				t.Errorf("%v: %+v, %v", v, r, err)
			}
			for n, b := range f.boxes {
				if f.held(n) != old[n] || text(b.startup) != old[n] || len(b.timed) > 0 {
					t.Errorf("%v: %s holds, after its trial,\n%s", v, n, f.held(n))
				}
			}
		}
		if err := lease.Release(context.Background()); err != nil {
			t.Error(err)
		}
		if h, err := Show(f.e.StateDir, r.ID, f.now); err != nil || h.Status != Finished {
			t.Errorf("%v: after its rollback the trial is %v, %v", v, h.Status, err)
		}
	}
}

// A trial whose process died is unfinished, whatever it wrote, and rolling it back leaves every byte as it was, also after
// the device took it back by itself.
func TestKillTrial(t *testing.T) {
	hits := map[string]int{}
	for _, v := range flavours {
		for k := 1; ; k += stride() {
			f := trying(t, v, "s1", "s2", "h1")
			old := f.held("s1")
			hit := f.doomed(k, hits, func() {
				if r, err := f.e.Apply(context.Background(), f.plan(t), trial); err == nil {
					f.e.Rollback(context.Background(), r.ID)
				}
			})
			if hit == "" {
				break
			}
			for _, expired := range []bool{false, true} {
				g := f.after(t, time.Hour)
				if expired {
					for _, b := range g.boxes {
						b.expire()
					}
				}
				r, err := g.e.Rollback(context.Background(), "run-1")
				none := errors.Is(err, os.ErrNotExist) || err != nil && strings.Contains(err.Error(), "no device was touched")
				if !none && ExitCode(r, err) != 0 {
					t.Fatalf("%v, k=%d %s: %+v, %v", v, k, hit, r, err)
				}
				for n, b := range g.boxes {
					if g.held(n) != old || text(b.startup) != old || len(b.timed) > 0 {
						t.Fatalf("%v, k=%d %s: %s holds\n%s", v, k, hit, n, g.held(n))
					}
				}
				if none {
					continue
				}
				if h, err := Show(g.e.StateDir, "run-1", g.now); err != nil || h.Status != Finished {
					t.Errorf("%v, k=%d %s: %v, %v", v, k, hit, h.Status, err)
				}
			}
		}
	}
	for _, p := range []string{"device.commit.after", "device.abort.after", "undo.commit.after"} {
		if hits[p] == 0 && !testing.Short() {
			t.Errorf("nothing ever died at %s", p)
		}
	}
	if n := hits["device.save.before"] + hits["device.confirm.before"]; n > 0 {
		t.Errorf("a trial was confirmed or saved %d times", n)
	}
}

// A device that does not answer keeps no other one from being taken back.
func TestTrialBackWithoutOne(t *testing.T) {
	for _, dead := range []string{"s1", "h1"} {
		f := trying(t, flavour{}, "s1", "s2", "h1")
		old := f.held("s2")
		r, err := f.e.Apply(context.Background(), f.plan(t), trial)
		if ExitCode(r, err) != 0 {
			t.Fatalf("%+v, %v", r, err)
		}
		id := r.ID
		if h, err := Show(f.e.StateDir, id, f.now); err != nil || h.Status != Unfinished {
			t.Errorf("a trial that is in force, and that nobody works on, is %v, %v", h.Status, err)
		}
		f.boxes[dead].onOpen = func(int) error { return errors.New("no route to host") }
		if r, err = f.e.Rollback(context.Background(), id); ExitCode(r, err) != 5 {
			t.Errorf("%s is dead: %+v, %v", dead, r, err)
		}
		for n := range f.boxes {
			if n != dead && f.held(n) != old {
				t.Errorf("%s is dead, and %s still holds\n%s", dead, n, f.held(n))
			}
		}
		f.boxes[dead].onOpen = nil
		if r, err = f.e.Rollback(context.Background(), id); ExitCode(r, err) != 0 || f.held(dead) != old {
			t.Errorf("%s is back: %+v, %v", dead, r, err)
		}
	}
}

// What a device cannot take back by itself as a whole is not tried on it.
func TestTrialOfTwoTransactions(t *testing.T) {
	f := newFabric(stateDir(t), "s1")
	f.flavour(flavour{timer: true})
	r, err := f.e.Apply(context.Background(), f.plan(t), ApplyOptions{Trial: "exp-1", AllowDisruptive: true})
	if ExitCode(r, err) != 4 || !strings.Contains(err.Error(), "s1 needs 3 transactions") || f.boxes["s1"].writes > 0 {
		t.Errorf("%+v, %v, %d writes", r, err, f.boxes["s1"].writes)
	}
}

// A trial is not made under a lease that was lost, nor under that of another fabric.
func TestTrialUnderLostLease(t *testing.T) {
	f := trying(t, flavour{}, "s1")
	var err error
	if f.e.Lease, err = f.e.Acquire(context.Background(), "pod2", "exp-1"); err != nil {
		t.Fatal(err)
	}
	if r, err := f.e.Apply(context.Background(), f.plan(t), trial); err == nil || !strings.Contains(err.Error(), "the lease is of fabric pod2") {
		t.Errorf("%+v, %v", r, err)
	}
	if f.e.Lease, err = f.e.Acquire(context.Background(), "pod1", "exp-1"); err != nil {
		t.Fatal(err)
	}
	p := f.plan(t)
	f.breakLease(t)
	if r, err := f.e.Apply(context.Background(), p, trial); !errors.Is(err, journal.ErrFenced) || f.boxes["s1"].writes > 0 {
		t.Errorf("%+v, %v, %d writes", r, err, f.boxes["s1"].writes)
	}
}

// A trial that died when its journal had but its plan was begun on no device: nothing came later, and there is nothing to take back, whoever
// has the lease.
func TestTrialOnlyPlanned(t *testing.T) {
	f := trying(t, flavours[0], "s1")
	old := f.held("s1")
	lease, err := f.e.Acquire(context.Background(), "pod1", "exp-1")
	if err != nil {
		t.Fatal(err)
	}
	f.e.Lease = lease
	r, err := f.e.Apply(context.Background(), f.plan(t), trial)
	if ExitCode(r, err) != 0 {
		t.Fatal(r, err)
	}
	if r, err := f.e.Rollback(context.Background(), r.ID); ExitCode(r, err) != 0 {
		t.Fatal(r, err)
	}
	b, err := os.ReadFile(runPath(f.e.StateDir, r.ID))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(runPath(f.e.StateDir, r.ID), b[:bytes.IndexByte(b, '\n')+1], 0o600); err != nil {
		t.Fatal(err)
	}
	if l, err := f.e.Later(r.ID); l != nil || err != nil {
		t.Errorf("%+v, %v", l, err)
	}
	if r, err := f.e.Rollback(context.Background(), r.ID); ExitCode(r, err) != 0 || f.held("s1") != old {
		t.Errorf("%+v, %v", r, err)
	}
}
