package rollout

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/render"
)

const theirTimer = "configuration session theirs of user bob has a commit timer running"

func (f *fabric) asModelled(name string) render.Config { return f.wanted(name, oldConfig()) }

func finding(d *DevicePlan, rule string) diag.Finding {
	for _, x := range d.Findings {
		if x.Rule == rule {
			return x
		}
	}
	return diag.Finding{}
}

// A plan sees what will take the configuration back, also on a device that holds what the model wants.
func TestPlanSeesTimers(t *testing.T) {
	for _, c := range []struct {
		name, rule, says string
		rig              func(*box)
		blocked          bool
	}{
		{"foreign timer of another name", "owner", theirTimer, func(b *box) { b.facts.Owners = []string{theirTimer} }, true},
		{"timed, in no journal", "pending-timer", "transaction run-77-t1 has a commit timer running", func(b *box) { b.timed["run-77-t1"] = oldConfig() }, true},
		{"open, in no journal", "open-transaction", "transaction run-77-t1 is open", func(b *box) { b.opened["run-77-t1"] = true }, false},
	} {
		for _, asWanted := range []bool{false, true} {
			f := newFabric(stateDir(t), "s1")
			f.flavour(flavour{timer: true, saver: true})
			b := f.boxes["s1"]
			if asWanted {
				b.running = f.asModelled("s1")
			}
			c.rig(b)
			d := f.plan(t).Device("s1")
			x := finding(d, c.rule)
			if d.Blocked != c.blocked || c.blocked && len(d.Steps) > 0 || !strings.Contains(x.Msg, c.says) || (x.Severity == diag.Error) != c.blocked {
				t.Errorf("%s, as wanted %v: blocked %v, %d steps, %+v", c.name, asWanted, d.Blocked, len(d.Steps), d.Findings)
			}
		}
	}
}

// A run that lost its lease leaves a timer: the next plan names the run that can end it.
func TestPlanNamesOwnTimer(t *testing.T) {
	f := newFabric(stateDir(t), "s1")
	f.flavour(flavour{timer: true, saver: true})
	p := f.plan(t)
	f.e.Hook = func(point string) {
		if point == "device.commit.before" {
			f.breakLease(t)
		}
	}
	r, err := f.e.Apply(context.Background(), p, leave)
	if ExitCode(r, err) != 5 || len(f.boxes["s1"].timed) != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	f.e.Hook = nil
	p = f.plan(t)
	d := p.Device("s1")
	if x := finding(d, "pending-timer"); !d.Blocked || !strings.Contains(x.Msg, "runs resume run-1") || !strings.Contains(x.Msg, "runs rollback run-1") {
		t.Errorf("%+v", d.Findings)
	}
	if r, err := f.e.Resume(context.Background(), "run-1"); ExitCode(r, err) != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	if d := f.plan(t).Device("s1"); d.Blocked || len(d.Steps) > 0 {
		t.Errorf("afterwards: %+v", d)
	}
}

// Nothing is applied, and nothing is saved, while a timer of somebody runs on the device.
func TestNotAppliedUnderTimer(t *testing.T) {
	begin := func(b *box) { b.facts.Owners = []string{theirTimer} }
	for name, rig := range map[string]func(*box){
		"after the last commit": func(b *box) { b.onCommit = on(3, fault{then: begin}) },
		"at the last confirm": func(b *box) {
			n := 0
			b.onConf = func(drivers.TxID) (bool, error) {
				if n++; n == 3 {
					begin(b)
				}
				return false, nil
			}
		},
		"ours by name, at the last confirm": func(b *box) {
			n := 0
			b.onConf = func(drivers.TxID) (bool, error) {
				if n++; n == 3 {
					b.timed["run-77-t1"] = oldConfig()
				}
				return false, nil
			}
		},
		// Somebody does the same with a timer: our session is gone, the state is as asked, and it will be taken back.
		"the same by somebody": func(b *box) {
			b.onCommit = on(3, fault{after: errors.New("s1: a timer is running"), then: func(b *box) { clear(b.timed); begin(b) }})
		},
	} {
		f := newFabric(stateDir(t), "s1")
		f.flavour(flavour{timer: true, saver: true})
		b := f.boxes["s1"]
		p := f.plan(t)
		rig(b)
		refused := b.onCommit
		b.onCommit = func(n int, cs []render.Change) fault {
			if len(b.facts.Owners) > 0 {
				return fault{before: errors.New("s1: nothing was written: " + theirTimer)}
			}
			if refused == nil {
				return fault{}
			}
			return refused(n, cs)
		}
		r, err := f.e.Apply(context.Background(), p, leave)
		if err != nil {
			t.Fatal(err)
		}
		x := r.Results[0]
		if x.Outcome == Applied || !strings.Contains(x.Message, "timer") && !strings.Contains(x.Message, "waiting") {
			t.Errorf("%s: %+v", name, x)
		}
		if !b.startup.Equal(oldConfig()) {
			t.Errorf("%s: saved while a timer ran", name)
		}
		if name == "the same by somebody" && strings.Contains(strings.Join(x.Notes, " "), "reverts by itself") {
			t.Errorf("a timer of ours is mentioned that does not run: %q", x.Notes)
		}
		if x.Outcome == RolledBack && !b.running.Equal(oldConfig()) {
			t.Errorf("%s: said to be rolled back", name)
		}
	}
}

// A rollback is not begun under somebody's timer.
func TestNoRollbackUnderTimer(t *testing.T) {
	f := newFabric(stateDir(t), "s1")
	f.flavour(flavour{timer: true, saver: true})
	if r, err := f.e.Apply(context.Background(), f.plan(t), leave); ExitCode(r, err) != 0 {
		t.Fatal(r, err)
	}
	b := f.boxes["s1"]
	b.facts.Owners = []string{theirTimer}
	writes := b.writes
	r, err := f.e.Rollback(context.Background(), "run-1")
	if x := r.Results[0]; x.Cause != Refused || x.Outcome == Applied || x.Outcome == RolledBack || b.writes != writes || ExitCode(r, err) != 5 {
		t.Errorf("exit %d, %d writes, %+v, %v", ExitCode(r, err), b.writes-writes, x, err)
	}
}

// The timer that is left is mentioned also when the device was read.
func TestTimerIsNoted(t *testing.T) {
	f := newFabric(stateDir(t), "s1")
	f.flavour(flavour{timer: true, saver: true})
	p := f.plan(t)
	b := f.boxes["s1"]
	b.onCommit = on(2, fault{keep: func(i int) bool { return i%2 == 0 }})
	b.onAbort = func(drivers.TxID) (bool, error) { return true, errors.New("s1: abort is not possible") }
	r, err := f.e.Apply(context.Background(), p, leave)
	if err != nil {
		t.Fatal(err)
	}
	want := "unless somebody confirms it, the device reverts by itself by " + f.now.Add(5*time.Minute).Format(time.RFC3339)
	if x := r.Results[0]; x.Outcome != NeedsHands || !slices.Contains(x.Notes, want) {
		t.Errorf("%s: %q, want %q", x.Outcome, x.Notes, want)
	}
}
