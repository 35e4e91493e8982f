package rollout

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/model/journal"
	"github.com/fabricctl/fabricctl/render"
)

// What may have happened to a device, or to the connection that its plan left open, before apply goes on over it: all
// that apply looks at over a connection of its own, it sees before the first write.
func TestOverThePlansConnection(t *testing.T) {
	move := func(lines ...string) func(*fabric, *box) {
		return func(_ *fabric, b *box) { b.running = render.Apply(b.running, changes(lines...)) }
	}
	for _, c := range []struct {
		name  string
		rig   func(*fabric, *box)
		want  Outcome
		cause Cause
		exit  int
		says  string
		opens int // connections: the plan's, and one to read back each of three steps
	}{
		{"nothing", func(*fabric, *box) {}, Applied, None, 0, "", 4},
		{"what changes has moved", move("port p1 mtu 4000"), Unchanged, Refused, 4, `port|p1|mtu is "4000", was "1500"`, 1},
		{"what is owned and stays has moved", move("watch p2 time 999"), Unchanged, Refused, 4, "watch|p2|time", 1},
		{"what is not owned has moved", move("other thing a 7"), Applied, None, 0, "", 4},
		{"it holds the wish already", func(f *fabric, b *box) { b.running = f.wanted("s1", oldConfig()) }, Unchanged, Refused, 4, "already holds", 1},
		{"another box", func(_ *fabric, b *box) { b.facts.Serial = "X" }, Unchanged, Refused, 4, `serial number is "X"`, 1},
		{"another image", func(_ *fabric, b *box) { b.facts.Version = "2" }, Unchanged, Refused, 4, `runs version "2"`, 1},
		{"another owner", func(_ *fabric, b *box) { b.facts.Owners = []string{"AI-ECN is on"} }, Unchanged, Refused, 4, "AI-ECN", 1},
		{"other names", func(_ *fabric, b *box) { b.facts.Aliases = map[string]string{"etp1": "p1"} }, Unchanged, Refused, 4, "other names", 1},
		{"the connection died", func(f *fabric, _ *box) { f.cut("s1") }, Applied, None, 0, "", 5},
		{"the device died", func(f *fabric, b *box) {
			f.cut("s1")
			b.onOpen = func(int) error { return errors.New("s1: no route to host") }
		}, Unchanged, FailedCause, 1, "no route to host", 2},
		{"the device died while it was read", func(_ *fabric, b *box) {
			b.onRead = func(int) error { return errors.New("s1: connection reset") }
		}, Unchanged, FailedCause, 1, "connection reset", 2},
		{"the commit fails", func(_ *fabric, b *box) { b.onCommit = on(1, fault{before: errLost}) }, Unchanged, FailedCause, 1, "connection reset", 4},
	} {
		f := newFabric(stateDir(t), "s1")
		f.flavour(flavour{persists: true, guarded: true})
		b := f.boxes["s1"]
		p := f.plan(t)
		if b.unclosed != 1 || b.opens != 1 {
			t.Fatalf("%s: %d connections, %d open", c.name, b.opens, b.unclosed)
		}
		c.rig(f, b)
		commits := 0
		if c.want == Applied {
			commits = len(p.Devices[0].Steps)
		}
		held := text(b.running)
		r, err := f.e.Apply(context.Background(), p, leave)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		x := r.Results[0]
		if x.Outcome != c.want || x.Cause != c.cause || ExitCode(r, nil) != c.exit || !strings.Contains(x.Message, c.says) {
			t.Errorf("%s: exit %d, %+v", c.name, ExitCode(r, nil), x)
		}
		if b.onCommit == nil && b.commits != commits || c.want != Applied && text(b.running) != held {
			t.Errorf("%s: %d commits, want %d", c.name, b.commits, commits)
		}
		if b.opens != c.opens || b.unclosed != 0 {
			t.Errorf("%s: %d connections, want %d; %d open", c.name, b.opens, c.opens, b.unclosed)
		}
		recs, _, err := journal.ReadFile(runPath(f.e.StateDir, r.ID))
		if err != nil {
			t.Fatal(err)
		}
		begun := false
		for _, rec := range recs {
			begun = begun || rec.Kind == recBegin
		}
		if begun != (b.commits > 0) {
			t.Errorf("%s: a transaction is in the journal: %v, and %d came", c.name, begun, b.commits)
		}
		f.e.Lines.Close()
	}
}

// cut ends the connection that the plan left open.
func (f *fabric) cut(device string) { f.e.Lines.open[device].Close() }

// An end that comes while the device is read for the first write is no write; one that comes later waits for the answer.
func TestInterruptOverThePlansConnection(t *testing.T) {
	for _, reading := range []bool{true, false} {
		f := newFabric(stateDir(t), "s1")
		f.flavour(flavour{persists: true, guarded: true})
		b := f.boxes["s1"]
		p := f.plan(t)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		if reading {
			b.onRead = func(int) error { cancel(); return nil }
		} else {
			b.onCommit = on(1, fault{then: func(*box) { cancel() }})
		}
		r, err := f.e.Apply(ctx, p, leave)
		if x := r.Results[0]; err != nil || ExitCode(r, nil) != 130 || x.Cause != Interrupted || x.Outcome != map[bool]Outcome{true: Unchanged, false: RolledBack}[reading] {
			t.Errorf("while reading: %v: exit %d, %+v, %v", reading, ExitCode(r, nil), x, err)
		}
		if reading && b.writes > 0 {
			t.Error("it was written to")
		}
		f.mustHold(t, "interrupted", false, nil)
	}
}

// A hold set after the plan, and a lost lease, are seen before the first write.
func TestStoppedOverThePlansConnection(t *testing.T) {
	for what, stop := range map[string]func(*testing.T, *fabric){
		"held": func(t *testing.T, f *fabric) { f.hold(t, "s1", "") },
		"fenced": func(t *testing.T, f *fabric) {
			f.breakLease(t)
		},
	} {
		f := newFabric(stateDir(t), "s1")
		f.flavour(flavour{persists: true, guarded: true})
		b := f.boxes["s1"]
		p := f.plan(t)
		b.onRead = func(n int) error {
			if n == 2 { // the plan's was the first
				stop(t, f)
			}
			return nil
		}
		r, err := f.e.Apply(context.Background(), p, leave)
		if err != nil {
			t.Fatal(err)
		}
		x := r.Results[0]
		if x.Outcome != Unchanged || x.Cause != Refused || !errors.Is(x.Err, ErrHeld) && !errors.Is(x.Err, journal.ErrFenced) || b.commits > 0 {
			t.Errorf("%s: %+v, %d commits", what, x, b.commits)
		}
	}
}

// Only what will be written to, and can look before it writes, keeps its connection; and nobody keeps too many.
func TestLinesThatAreKept(t *testing.T) {
	steps := []Step{{}}
	guarded := struct {
		*conn
		guards
	}{}
	for _, c := range []struct {
		name string
		dev  drivers.Device
		dp   DevicePlan
		full bool
		want bool
	}{
		{"changing", guarded, DevicePlan{Name: "s1", Steps: steps}, false, true},
		{"not changing", guarded, DevicePlan{Name: "s1"}, false, false},
		{"blocked", guarded, DevicePlan{Name: "s1", Steps: steps, Blocked: true}, false, false},
		{"with a timer", guarded, DevicePlan{Name: "s1", Steps: steps, Caps: drivers.Caps{Confirm: true}}, false, false},
		{"does not look", &conn{}, DevicePlan{Name: "s1", Steps: steps}, false, false},
		{"too many", guarded, DevicePlan{Name: "s1", Steps: steps}, true, false},
	} {
		l := Lines{open: map[string]drivers.Device{}}
		for i := 0; c.full && i < mostLines; i++ {
			l.open[strings.Repeat("x", i)] = guarded
		}
		if got := l.keep(c.dev, &c.dp); got != c.want || (l.take("s1") != nil) != c.want || l.take("s1") != nil {
			t.Errorf("%s: kept %v", c.name, got)
		}
	}
	var none *Lines
	if none.keep(guarded, &DevicePlan{Steps: steps}) || none.take("s1") != nil {
		t.Error("no lines keep one")
	}
	none.Close()
}
