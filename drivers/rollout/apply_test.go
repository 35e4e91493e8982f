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

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/model/journal"
	"github.com/fabricctl/fabricctl/render"
)

var leave = ApplyOptions{AllowDisruptive: true}

func TestApplyPlain(t *testing.T) {
	for _, v := range flavours {
		f := newFabric(stateDir(t), "s1", "s2", "h1")
		f.flavour(v)
		p := f.plan(t)
		r, err := f.e.Apply(context.Background(), p, leave)
		if code := ExitCode(r, err); code != 0 {
			t.Fatalf("%v: exit %d, %v, %+v", v, code, err, r)
		}
		f.mustHold(t, v.String(), true, r)
		before := f.writes()
		p = f.plan(t)
		r, err = f.e.Apply(context.Background(), p, ApplyOptions{})
		if ExitCode(r, err) != 0 || f.writes() != before || p.Changes() {
			t.Errorf("%v: second apply: %+v, %v, %d writes", v, r, err, f.writes()-before)
		}
	}
}

// on is a fault of the n-th commit.
func on(n int, x fault) func(int, []render.Change) fault {
	return func(i int, _ []render.Change) fault {
		if i == n {
			return x
		}
		return fault{}
	}
}

var errLost = errors.New("s1: connection reset")

// Each way in which a device can misbehave, what is said of it, and what it holds.
func TestFaults(t *testing.T) {
	half := func(i int) bool { return i%2 == 0 }
	none := func(int) bool { return false }
	foreign := func(b *box) { b.running = render.Apply(b.running, changes("port p2 mtu 4000")) }
	type want struct {
		outcome Outcome
		exit    int
		holds   string // "old", "new", or "" for neither
	}
	for _, c := range []struct {
		name    string
		rig     func(*box)
		plain   want
		timed   want // when the device has a confirm timer; zero = as plain
		message string
	}{
		{name: "first commit refused", rig: func(b *box) {
			b.onCommit = on(1, fault{before: &drivers.RejectedError{Device: "s1", Sent: "mtu 9000", Sentence: "% Invalid input"}})
		}, plain: want{Unchanged, 1, "old"}, message: "% Invalid input"},
		{name: "second commit refused", rig: func(b *box) { b.onCommit = on(2, fault{before: errLost}) }, plain: want{RolledBack, 4, "old"}, message: "connection reset"},
		{name: "error after the work", rig: func(b *box) { b.onCommit = on(1, fault{after: errLost}) }, plain: want{Applied, 0, "new"}},
		{name: "half, with an error", rig: func(b *box) { b.onCommit = on(2, fault{keep: half, after: errLost}) }, plain: want{RolledBack, 4, "old"}, message: "connection reset"},
		{name: "half, without a word", rig: func(b *box) { b.onCommit = on(2, fault{keep: half}) }, plain: want{RolledBack, 4, "old"}, message: "does not hold"},
		{
			name: "OK and not done", rig: func(b *box) { b.onCommit = on(1, fault{keep: none}) }, plain: want{Unchanged, 1, "old"}, message: "does not hold",
			timed: want{RolledBack, 4, "old"},
		},
		{name: "rounded by the hardware", rig: func(b *box) { b.onCommit = on(2, fault{write: rounded}) }, plain: want{Applied, 0, ""}},
		{
			name: "another value than asked", rig: func(b *box) { b.onCommit = on(2, fault{write: scrambled}) }, plain: want{NeedsHands, 5, ""}, timed: want{RolledBack, 4, "old"},
			message: `port|p1|mtu is "9001", was "9000"`,
		},
		{
			name: "changed by hand meanwhile", rig: func(b *box) { b.onCommit = on(2, fault{then: foreign}) }, plain: want{NeedsHands, 5, ""}, timed: want{RolledBack, 4, "old"},
			message: `"4000"`,
		},
		{name: "undo refused", rig: func(b *box) {
			b.onCommit = func(n int, _ []render.Change) fault {
				switch n {
				case 1:
					return fault{}
				case 2:
					return fault{keep: half}
				}
				return fault{before: errors.New("s1: rollback is not possible")}
			}
		}, plain: want{NeedsHands, 5, ""}, message: "rollback is not possible"},
		{name: "gone after the commit", rig: func(b *box) {
			b.onCommit = on(1, fault{then: func(b *box) { b.onOpen = func(int) error { return errors.New("s1: no route to host") } }})
		}, plain: want{Unknown, 5, ""}, message: "no route to host"},
		{name: "back after two attempts", rig: func(b *box) {
			b.onCommit = on(1, fault{after: errLost, then: func(b *box) {
				n := b.opens
				b.onOpen = func(i int) error {
					if i <= n+2 {
						return errors.New("s1: connection refused")
					}
					return nil
				}
			}})
		}, plain: want{Applied, 0, "new"}},
		{name: "another box answers", rig: func(b *box) { b.onCommit = on(1, fault{then: func(b *box) { b.facts.Serial = "X" }}) }, plain: want{Unknown, 5, ""}, message: `"X"`},
		{name: "save fails", rig: func(b *box) { b.onSave = func() (bool, error) { return true, errors.New("s1: flash is full") } }, plain: want{RolledBack, 4, "old"}, message: "flash is full"},
		{name: "save OK and not done", rig: func(b *box) { b.onSave = func() (bool, error) { return true, nil } }, plain: want{RolledBack, 4, "old"}, message: "still differs"},
		{name: "confirm fails", rig: func(b *box) { b.onConf = func(drivers.TxID) (bool, error) { return true, errLost } }, plain: want{Applied, 0, "new"}, timed: want{RolledBack, 4, "old"}},
		{
			name: "confirm OK and not done", rig: func(b *box) { b.onConf = func(drivers.TxID) (bool, error) { return true, nil } }, plain: want{Applied, 0, "new"}, timed: want{RolledBack, 4, "old"},
			message: "still waiting",
		},
		{name: "confirm done with an error", rig: func(b *box) { b.onConf = func(drivers.TxID) (bool, error) { return false, errLost } }, plain: want{Applied, 0, "new"}},
		{name: "timer ran out before confirm", rig: func(b *box) { b.onConf = func(drivers.TxID) (bool, error) { b.expire(); return false, nil } }, plain: want{Applied, 0, "new"}, timed: want{RolledBack, 4, "old"}},
		{name: "last confirm OK and reverted", rig: func(b *box) {
			n := 0
			b.onConf = func(drivers.TxID) (bool, error) {
				if n++; n == 3 {
					b.expire()
				}
				return n == 3, nil
			}
		}, plain: want{Applied, 0, "new"}, timed: want{RolledBack, 4, "old"}},
		{name: "abort fails", rig: func(b *box) {
			b.onCommit = on(2, fault{keep: half})
			b.onAbort = func(drivers.TxID) (bool, error) { return true, errors.New("s1: abort is not possible") }
		}, plain: want{RolledBack, 4, "old"}, timed: want{NeedsHands, 5, ""}},
		{name: "abort OK and not done", rig: func(b *box) {
			b.onCommit = on(2, fault{keep: half})
			b.onAbort = func(drivers.TxID) (bool, error) { return true, nil }
		}, plain: want{RolledBack, 4, "old"}, timed: want{NeedsHands, 5, ""}},
	} {
		for _, v := range []flavour{{saver: true}, {timer: true, saver: true}, {saver: true, guarded: true}} {
			f := newFabric(stateDir(t), "s1")
			f.flavour(v)
			b := f.boxes["s1"]
			p := f.plan(t)
			c.rig(b)
			r, err := f.e.Apply(context.Background(), p, leave)
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
				continue
			}
			w := c.plain
			if v.timer && c.timed != (want{}) {
				w = c.timed
			}
			x := r.Results[0]
			if x.Outcome != w.outcome || ExitCode(r, nil) != w.exit {
				t.Errorf("%s (%v): %s %s, exit %d, want %s, exit %d\n%s %q", c.name, v, x.Outcome, x.Cause, ExitCode(r, nil), w.outcome, w.exit, x.Message, x.Notes)
			}
			if x.Outcome != Applied && x.Outcome == c.plain.outcome && !strings.Contains(x.Message, c.message) {
				t.Errorf("%s (%v): message %q does not say %q", c.name, v, x.Message, c.message)
			}
			if v.timer && x.Outcome == Unknown && !slices.Contains(x.Notes, "unless somebody confirms it, the device reverts by itself by 2026-08-01T12:05:00Z") {
				t.Errorf("%s: the timer is not mentioned: %q", c.name, x.Notes)
			}
			if w.holds != "" {
				f.mustHold(t, c.name+" "+v.String(), w.holds == "new", nil)
			}
			l, err := journal.ReadLease(journal.LeasePath(LeasesDir(f.e.StateDir), "pod1"))
			if err != nil || l.Held(f.now) {
				t.Errorf("%s: the lease is not given back: %+v, %v", c.name, l, err)
			}
		}
	}
}

func changes(lines ...string) []render.Change {
	var cs []render.Change
	for _, s := range conf(lines...) {
		cs = append(cs, render.Change{Op: render.Modify, Key: s.Key, After: &s.Value})
	}
	return cs
}

// rounded is what hardware makes of a value that Same knows; scrambled is a value that nobody asked for.
func rounded(c render.Change) *string {
	if c.Key.Field == "kmin" {
		v := "107"
		return &v
	}
	return c.After
}

func scrambled(c render.Change) *string {
	if c.Key.Field == "mtu" {
		v := "9001"
		return &v
	}
	return c.After
}

// What must be refused before a device is written to, with the exit code of a refusal.
func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		name string
		rig  func(f *fabric, p *Plan)
		opt  ApplyOptions
		says string
		is   error
	}{
		{name: "disruptive", opt: ApplyOptions{}, says: "disrupts traffic on 4 ports: s1 (flap, 2 ports), s2 (flap, 2 ports) (--allow-disruptive permits it)"},
		{name: "unverified", opt: leave, says: "--accept-unverified", rig: func(f *fabric, p *Plan) { p.Devices[1].Verified = false }},
		{name: "read-only", opt: leave, says: "read-only", is: drivers.ErrReadOnly, rig: func(f *fabric, p *Plan) { f.e.ReadOnly = true }},
		{name: "refused risk", opt: leave, says: "would refuse", rig: func(f *fabric, p *Plan) { p.Devices[0].Risks[0].Class = render.Refused }},
		{name: "cannot be written", opt: leave, says: "changes for s1 and 1 other, which can only be read: no agent; put it there (do that, or", is: drivers.ErrReadOnly, rig: func(f *fabric, p *Plan) {
			p.Devices[0].Caps.ReadOnly, p.Devices[1].Caps.ReadOnly = "no agent; put it there", "no agent; put it there"
		}},
		{name: "busy", opt: leave, says: "eve@far holds the lease for run other", rig: func(f *fabric, p *Plan) {
			journal.Acquire(context.Background(), LeasesDir(f.e.StateDir), "pod1", journal.Holder{Owner: "eve@far", Host: "far", PID: 1, Run: "other"}, time.Hour, journal.Options{Now: f.e.Now})
		}},
	} {
		f := newFabric(stateDir(t), "s1", "s2")
		p := f.plan(t)
		if c.rig != nil {
			c.rig(f, p)
		}
		opens := f.boxes["s1"].opens
		r, err := f.e.Apply(context.Background(), p, c.opt)
		if ExitCode(r, err) != 4 || err == nil || !strings.Contains(err.Error(), c.says) || c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%s: exit %d, %v", c.name, ExitCode(r, err), err)
		}
		if f.boxes["s1"].opens != opens {
			t.Errorf("%s: a device was contacted", c.name)
		}
		f.mustHold(t, c.name, false, nil)
		if runs, err := Runs(f.e.StateDir, f.now); err != nil || len(runs) > 0 {
			t.Errorf("%s: left runs %+v, %v", c.name, runs, err)
		}
	}
}

// What makes one device refuse, while the other is applied.
func TestDeviceRefusals(t *testing.T) {
	for _, c := range []struct {
		name string
		rig  func(*box)
		says string
		is   error
	}{
		{"another serial number", func(b *box) { b.facts.Serial = "X" }, `serial number is "X", the plan was made for "S-s1"`, drivers.ErrIdentity},
		{"another hostname", func(b *box) { b.facts.Hostname = "s9" }, `hostname is "s9"`, drivers.ErrIdentity},
		{"upgraded", func(b *box) { b.facts.Version = "2" }, `runs version "2", the plan was made for "1" (plan again)`, nil},
		{"another owner", func(b *box) { b.facts.Owners = []string{"AI-ECN is on"} }, "AI-ECN is on", nil},
		{"changed where we would write", func(b *box) { b.running = render.Apply(b.running, changes("port p1 mtu 4000")) }, `port|p1|mtu is "4000", was "1500"`, drivers.ErrMoved},
		{"changed where we are owner only", func(b *box) { b.running = render.Apply(b.running, changes("watch p3 time 5")) }, `watch|p3|time is "5", was absent`, drivers.ErrMoved},
		{"somebody's transaction", func(b *box) { b.timer = true; b.opened["run-77-t1"] = true }, "run-77-t1 (open)", nil},
	} {
		f := newFabric(stateDir(t), "s1", "s2")
		p := f.plan(t)
		b := f.boxes["s1"]
		c.rig(b)
		before := text(b.running)
		r, err := f.e.Apply(context.Background(), p, leave)
		if ExitCode(r, err) != 3 {
			t.Fatalf("%s: exit %d, %v", c.name, ExitCode(r, err), err)
		}
		x := r.Results[0]
		if x.Outcome != Unchanged || x.Cause != Refused || !strings.Contains(x.Message, c.says) || c.is != nil && !errors.Is(x.Err, c.is) {
			t.Errorf("%s: %+v", c.name, x)
		}
		if b.writes > 0 || text(b.running) != before {
			t.Errorf("%s: %d writes", c.name, b.writes)
		}
		if r.Results[1].Outcome != Applied {
			t.Errorf("%s: the other device is %s", c.name, r.Results[1].Outcome)
		}
	}
}

// What is not ours by ownership may change between plan and apply, and is left alone.
func TestForeignChangesAreKept(t *testing.T) {
	f := newFabric(stateDir(t), "s1")
	p := f.plan(t)
	b := f.boxes["s1"]
	b.running = render.Apply(b.running, changes("other thing a 2", "port x1 mtu 77"))
	old := b.running
	r, err := f.e.Apply(context.Background(), p, leave)
	if ExitCode(r, err) != 0 || !b.running.Equal(f.wanted("s1", old)) {
		t.Errorf("%+v, %v, %s", r, err, text(b.running))
	}
	if r, err = f.e.Rollback(context.Background(), r.ID); ExitCode(r, err) != 0 || !b.running.Equal(old) {
		t.Errorf("rollback: %+v, %v, %s", r, err, text(b.running))
	}
}

// A device that starts to show a default has not changed.
func TestShownDefaults(t *testing.T) {
	f := newFabric(stateDir(t), "s1")
	p := f.plan(t)
	b := f.boxes["s1"]
	b.running = render.Apply(b.running, changes("port p3 mtu 1500"))
	b.onCommit = on(2, fault{then: func(b *box) { b.running = render.Apply(b.running, changes("port p4 mtu 1500")) }})
	if r, err := f.e.Apply(context.Background(), p, leave); ExitCode(r, err) != 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

// Hosts wait for the switches; devices of one wave do not wait for each other.
func TestWaves(t *testing.T) {
	names := []string{"h1", "h2"}
	for i := range 18 {
		names = append(names, fmt.Sprintf("s%d", i))
	}
	f := newFabric(stateDir(t), names...)
	f.e.Parallel = 4
	p := f.plan(t)
	f.boxes["s5"].onOpen = func(int) error { return errors.New("s5: no route to host") }
	r, err := f.e.Apply(context.Background(), p, leave)
	if ExitCode(r, err) != 3 {
		t.Fatalf("exit %d, %v", ExitCode(r, err), err)
	}
	count := map[string]int{}
	for i, x := range r.Results {
		if x.Device != names[i] {
			t.Errorf("result %d is of %s, want %s", i, x.Device, names[i])
		}
		count[string(x.Outcome)+" "+string(x.Cause)]++
	}
	if count["applied "] != 17 || count["unchanged failed"] != 1 || count["unchanged not-started"] != 2 {
		t.Errorf("%v", count)
	}
	// Resume writes to the three that are left, and only reads the others.
	f.boxes["s5"].onOpen = nil
	opens, writes := map[string]int{}, map[string]int{}
	for n, b := range f.boxes {
		opens[n], writes[n] = b.opens, b.writes
	}
	r, err = f.e.Resume(context.Background(), r.ID)
	if ExitCode(r, err) != 0 {
		t.Fatalf("resume: exit %d, %v, %+v", ExitCode(r, err), err, r)
	}
	f.mustHold(t, "resume", true, r)
	for n, b := range f.boxes {
		left := slices.Contains([]string{"s5", "h1", "h2"}, n)
		if (b.writes > writes[n]) != left || !left && b.opens != opens[n]+1 {
			t.Errorf("%s: %d connections, %d writes", n, b.opens-opens[n], b.writes-writes[n])
		}
	}
}

// A switch that could not even be planned holds the hosts back.
func TestDeadSwitchAtPlan(t *testing.T) {
	f := newFabric(stateDir(t), "s1", "s2", "h1")
	f.boxes["s1"].onOpen = func(int) error { return errors.New("s1: no route to host") }
	p := f.plan(t)
	if !p.Failed() || p.Device("s1").Error == "" {
		t.Fatalf("%+v", p.Device("s1"))
	}
	r, err := f.e.Apply(context.Background(), p, leave)
	got := ""
	for _, x := range r.Results {
		got += fmt.Sprintf("%s %s %s; ", x.Device, x.Outcome, x.Cause)
	}
	if want := "s1 unchanged failed; s2 applied ; h1 unchanged not-started; "; got != want || ExitCode(r, err) != 3 {
		t.Errorf("exit %d: %s", ExitCode(r, err), got)
	}
}

// An interruption takes back what is in progress, starts nothing new, and says so.
func TestInterrupt(t *testing.T) {
	for _, v := range flavours {
		for n := 1; n <= 3; n++ { // in each of the transactions
			f := newFabric(stateDir(t), "s1", "s2")
			f.flavour(v)
			p := f.plan(t)
			ctx, cancel := context.WithCancel(context.Background())
			b := f.boxes["s1"]
			// One that reverts by itself is left at once; the answer of another is waited for.
			b.onCommit = on(n, fault{stall: v.timer, then: func(*box) { cancel() }})
			r, err := f.e.Apply(ctx, p, leave)
			f.e.Lines.Close() // that of a device which was not started
			if ExitCode(r, err) != 130 {
				t.Errorf("%v %d: exit %d, %v", v, n, ExitCode(r, err), err)
			}
			f.mustHold(t, fmt.Sprint(v, n), false, r)
			if x := r.Results; x[0].Outcome != RolledBack || x[0].Cause != Interrupted || x[1].Outcome != Unchanged || x[1].Cause != Interrupted {
				t.Errorf("%v %d: %+v", v, n, x)
			}
			if f.boxes["s2"].writes > 0 {
				t.Errorf("%v: a device was started after the interruption", v)
			}
			g := f.after(t, 0)
			if r, err := g.e.Resume(context.Background(), "run-1"); ExitCode(r, err) != 0 {
				t.Errorf("%v %d: resume: %+v, %v", v, n, r, err)
			}
			g.mustHold(t, "resume", true, nil)
		}
	}
}

// A device that cannot revert and does not answer is unknown, whatever it shows: it may still carry the change out.
func TestUnanswered(t *testing.T) {
	f := newFabric(stateDir(t), "s1", "h1")
	f.e.Answer = 1
	p := f.plan(t)
	ctx, cancel := context.WithCancel(context.Background())
	f.boxes["s1"].onCommit = on(1, fault{keep: func(int) bool { return false }, stall: true, then: func(*box) { cancel() }})
	r, err := f.e.Apply(ctx, p, leave)
	if ExitCode(r, err) != 5 || r.Results[0].Outcome != Unknown || !strings.Contains(strings.Join(r.Results[0].Notes, " "), "may still carry the change out") {
		t.Errorf("exit %d: %+v, %v", ExitCode(r, err), r, err)
	}
	g := f.after(t, 0)
	if r, err := g.e.Resume(context.Background(), "run-1"); ExitCode(r, err) != 0 {
		t.Errorf("resume: %+v, %v", r, err)
	}
	g.mustHold(t, "resume", true, nil)
}

// Once the lease is lost nothing is written, and what that leaves is said.
func TestFencedOut(t *testing.T) {
	for _, c := range []struct {
		at   string
		want Outcome
	}{{"device.commit.before", NeedsHands}, {"journal.fsync.before", Unchanged}} {
		f := newFabric(stateDir(t), "s1")
		p := f.plan(t)
		armed := false
		f.e.Hook = func(point string) {
			if point == c.at && !armed && f.boxes["s1"].opens > 1 {
				armed = true
				f.breakLease(t)
			}
		}
		if c.at == "journal.fsync.before" { // before the first write
			f.e.Hook = nil
			f.boxes["s1"].onRead = func(int) error {
				f.breakLease(t)
				return nil
			}
		}
		r, err := f.e.Apply(context.Background(), p, leave)
		if err != nil {
			t.Fatal(err)
		}
		x := r.Results[0]
		if x.Outcome != c.want || x.Cause != Refused || !errors.Is(x.Err, journal.ErrFenced) {
			t.Errorf("%s: %+v", c.at, x)
		}
		if want := map[Outcome]int{NeedsHands: 1, Unchanged: 0}[c.want]; f.boxes["s1"].commits != want {
			t.Errorf("%s: %d commits", c.at, f.boxes["s1"].commits)
		}
	}
}

// Transactions that an earlier run of ours left are found by their ids and aborted.
func TestOwnLeftovers(t *testing.T) {
	f := newFabric(stateDir(t), "s1")
	f.flavour(flavour{timer: true})
	p := f.plan(t)
	for k := 1; ; k++ {
		g := f.after(t, 0)
		if g.doomed(k, map[string]int{}, func() { g.e.Apply(context.Background(), p, leave) }) != "device.commit.after" {
			continue
		}
		h := g.after(t, time.Hour)
		b := h.boxes["s1"]
		if len(b.timed) != 1 {
			t.Fatalf("%d transactions wait", len(b.timed))
		}
		r, err := h.e.Apply(context.Background(), p, leave)
		if ExitCode(r, err) != 0 || !slices.ContainsFunc(r.Results[0].Notes, func(s string) bool { return strings.Contains(s, "left-over timed transaction") }) {
			t.Errorf("%+v, %v", r, err)
		}
		h.mustHold(t, "apply over leftovers", true, r)
		return
	}
}

func TestConcurrentRunsOnOneFabric(t *testing.T) {
	f := newFabric(stateDir(t), "s1", "s2", "s3", "h1")
	f.e.Parallel = 3
	var mu sync.Mutex
	f.e.NewID = func() string { mu.Lock(); defer mu.Unlock(); f.ids++; return fmt.Sprintf("run-%d", f.ids) }
	p := f.plan(t)
	var wg sync.WaitGroup
	codes := make([]int, 4)
	for i := range codes {
		wg.Go(func() {
			r, err := f.e.Apply(context.Background(), p, leave)
			codes[i] = ExitCode(r, err)
		})
	}
	wg.Wait()
	slices.Sort(codes)
	if codes[0] != 0 || codes[1] != 4 || codes[3] != 4 {
		t.Errorf("exit codes %v: one wins, the others are refused (busy or stale)", codes)
	}
	f.mustHold(t, "four at once", true, nil)
}
