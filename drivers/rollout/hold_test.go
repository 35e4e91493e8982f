package rollout

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/journal"
	"github.com/fabricctl/fabricctl/render"
)

// hold keeps a device or a port as it is for two hours.
func (f *fabric) hold(t *testing.T, device, port string) {
	t.Helper()
	f.holdAs(t, f.net.Fabric, journal.Hold{Device: device, Port: port})
}

// holdAs keeps what h names as it is, in the words of a fabric.
func (f *fabric) holdAs(t *testing.T, fabric string, h journal.Hold) {
	t.Helper()
	h.Owner, h.Since, h.Until, h.Reason = "ann@ops", f.now, f.now.Add(2*time.Hour), "optics are being replaced"
	if _, err := journal.SetHold(context.Background(), HoldsDir(f.e.StateDir), fabric, h, journal.Options{Now: f.e.Now}); err != nil {
		t.Fatal(err)
	}
}

// mtu is what a port of a device has.
func (f *fabric) mtu(device, iface string) string {
	v, _ := f.boxes[device].running.Find(render.Key{Scope: "port", Object: iface, Field: "mtu"})
	return v
}

func (f *fabric) release(t *testing.T, device, port string) {
	t.Helper()
	was, err := journal.ReleaseHold(context.Background(), HoldsDir(f.e.StateDir), f.net.Fabric, device, port, journal.Options{Now: f.e.Now})
	if err != nil || was == nil {
		t.Fatalf("release: %v, %v", was, err)
	}
}

func (f *fabric) is(t *testing.T, device string, want render.Config) {
	t.Helper()
	if got := text(f.boxes[device].running); got != text(want) {
		t.Errorf("%s holds\n%swant\n%s", device, got, text(want))
	}
}

func (f *fabric) apply(t *testing.T, p *Plan, code int) *Run {
	t.Helper()
	r, err := f.e.Apply(context.Background(), p, leave)
	if got := ExitCode(r, err); got != code {
		t.Fatalf("exit %d, want %d: %v %+v", got, code, err, r)
	}
	return r
}

func TestHeldDevice(t *testing.T) {
	f := newFabric(stateDir(t), "s1", "s2", "h1")
	f.hold(t, "s2", "")
	p := f.plan(t)
	d := p.Device("s2")
	if len(d.Steps) > 0 || d.Left == nil || d.Left.Ops.Total() == 0 || len(d.Left.Behaviour) == 0 || len(d.Held) != 1 || p.Refused() || !p.Changes() {
		t.Fatalf("the plan of what is held: %+v", d)
	}
	r := f.apply(t, p, 3)
	f.is(t, "s1", f.wanted("s1", oldConfig()))
	f.is(t, "s2", oldConfig())
	f.is(t, "h1", f.wanted("h1", oldConfig()))
	if !strings.Contains(r.Results[1].Message, "s2 is held until 2026-08-01T14:00:00Z by ann@ops: optics are being replaced") {
		t.Errorf("what is said of s2: %+v", r.Results[1])
	}
	if h, err := Show(f.e.StateDir, r.ID, f.now); err != nil || h.Status != Finished {
		t.Errorf("the run did all that it planned: %+v, %v", h, err)
	}
	before := f.writes()
	if r := f.apply(t, f.plan(t), 4); r.ID != "" || f.writes() != before {
		t.Errorf("only held changes remain: %+v, %d writes", r, f.writes()-before)
	}
	f.now = f.now.Add(2 * time.Hour) // expired holds have no force
	f.apply(t, f.plan(t), 0)
	f.is(t, "s2", f.wanted("s2", oldConfig()))
}

// A held device that would have to be refused, or does not answer, does not keep the others from their change.
func TestHeldAndBroken(t *testing.T) {
	for name, rig := range map[string]func(*box){
		"another box":  func(b *box) { b.facts.Serial = "S-other" },
		"unreachable":  func(b *box) { b.onOpen = func(int) error { return errLost } },
		"not our turn": func(b *box) { b.facts.Owners = []string{"a controller"} },
	} {
		f := newFabric(stateDir(t), "s1", "s2")
		rig(f.boxes["s2"])
		f.hold(t, "s2", "")
		p := f.plan(t)
		if p.Refused() || p.Failed() {
			t.Errorf("%s: %+v", name, p.Device("s2"))
		}
		r, err := f.e.Apply(context.Background(), p, leave)
		if code := ExitCode(r, err); code != 3 || f.boxes["s2"].writes > 0 {
			t.Errorf("%s: exit %d, %v, %+v", name, code, err, r)
		}
		f.is(t, "s1", f.wanted("s1", oldConfig()))
	}
}

func TestHeldPort(t *testing.T) {
	f := newFabric(stateDir(t), "s1", "s2")
	f.hold(t, "s1", "downlink-2")
	p := f.plan(t)
	d := p.Device("s1")
	if len(d.Steps) == 0 || d.Left == nil || len(d.Left.Behaviour) != 1 || strings.Join(d.Left.Behaviour[0].Ports, " ") != "p2" {
		t.Fatalf("the plan around a held port: %+v", d)
	}
	if err := f.e.Check(p, f.net, func(string) bool { return false }); err != nil {
		t.Errorf("the plan file: %v", err)
	}
	f.apply(t, p, 3)
	got := text(f.boxes["s1"].running.Filter(func(k render.Key) bool { return k.Object == "p2" }))
	if want := text(oldConfig().Filter(func(k render.Key) bool { return k.Object == "p2" })); got != want {
		t.Errorf("the held port has\n%swant\n%s", got, want)
	}
	if v, _ := f.boxes["s1"].running.Find(render.Key{Scope: "port", Object: "p1", Field: "mtu"}); v != "9000" {
		t.Errorf("the other port has mtu %s", v)
	}
	f.apply(t, f.plan(t), 4)
	f.release(t, "s1", "downlink-2")
	f.apply(t, f.plan(t), 0)
	f.is(t, "s1", f.wanted("s1", oldConfig()))
}

// A port stays held when the inventory binds its name to another interface: the one that was meant, and the one that is
// called so now.
func TestHeldPortBoundAnew(t *testing.T) {
	for name, aliases := range map[string]map[string]string{"by the device's names": nil, "by aliases": {"etp1": "p1", "etp2": "p2"}} {
		f := newFabric(stateDir(t), "s1")
		h := journal.Hold{Device: "s1", Port: "downlink-1", Iface: "p1"}
		if aliases != nil {
			f.boxes["s1"].facts.Aliases = aliases
			h.Iface = "etp1"
		}
		p := f.plan(t)
		f.holdAs(t, "pod1", h)
		ports := f.net.Devices[0].Ports
		ports[0].Iface, ports[1].Iface = "p2", "p1"
		if _, err := f.e.Apply(context.Background(), p, leave); !errors.Is(err, ErrHeld) {
			t.Errorf("%s: the plan from before: %v", name, err)
		}
		f.apply(t, f.plan(t), 3) // the objects of the model are no port's
		if a, b := f.mtu("s1", "p1"), f.mtu("s1", "p2"); a != "1500" || b != "1400" {
			t.Errorf("%s: a held port was written: mtu %s and %s", name, a, b)
		}
		ports[0].Iface = "p3" // p2 is nobody's then
		f.e.Apply(context.Background(), f.plan(t), leave)
		if got := f.mtu("s1", "p1"); got != "1500" {
			t.Errorf("%s: the held port was written: mtu %s", name, got)
		}
		f.net.Devices[0].Ports = ports[:1] // and p1 neither: what an earlier model set there stays too
		f.e.Apply(context.Background(), f.plan(t), leave)
		if got := f.mtu("s1", "p1"); got != "1500" {
			t.Errorf("%s: the held port, which the model does not have any more, was written: mtu %s", name, got)
		}
	}
}

// A box is held under whatever name and in whatever model it was: pods share spines, and fabrics are renamed.
func TestHeldByAnotherModel(t *testing.T) {
	for _, x := range []struct {
		name string
		hold journal.Hold
		code int
		held string // ports with what they had
	}{
		{"serial number", journal.Hold{Device: "sp7", Serial: "S-s1"}, 4, "p1 p2"},
		{"address", journal.Hold{Device: "sp7", Address: "10.0.0.1:22"}, 4, "p1 p2"},
		{"address of a box before", journal.Hold{Device: "sp7", Serial: "S-old", Address: "10.0.0.1:22"}, 0, ""},
		{"name of another device", journal.Hold{Device: "s1", Address: "10.0.0.9:22"}, 0, ""},
		{"nothing but the name", journal.Hold{Device: "s1"}, 0, ""},
		{"port", journal.Hold{Device: "sp7", Serial: "S-s1", Port: "downlink-2", Iface: "p1"}, 3, "p1"},
		{"port that only the other model names", journal.Hold{Device: "sp7", Serial: "S-s1", Port: "downlink-2"}, 4, "p1 p2"},
	} {
		f := newFabric(stateDir(t), "s1", "s2")
		f.net.Devices[0].Address = "10.0.0.1:22"
		f.net.Devices = f.net.Devices[:1]
		before := f.plan(t)
		f.holdAs(t, "pod2", x.hold)
		if x.held != "" {
			if _, err := f.e.Apply(context.Background(), before, leave); !errors.Is(err, ErrHeld) || !strings.Contains(err.Error(), "of fabric pod2 is held until") {
				t.Errorf("%s: the plan from before: %v", x.name, err)
			}
		}
		p := f.plan(t)
		if err := f.e.Check(p, f.net, func(string) bool { return false }); err != nil {
			t.Errorf("%s: the plan file: %v", x.name, err)
		}
		if r, err := f.e.Apply(context.Background(), p, leave); ExitCode(r, err) != x.code {
			t.Errorf("%s: exit %d, want %d: %v", x.name, ExitCode(r, err), x.code, err)
		}
		for iface, old := range map[string]string{"p1": "1500", "p2": "1400"} {
			if got := f.mtu("s1", iface); (got == old) != strings.Contains(x.held, iface) {
				t.Errorf("%s: %s has mtu %s, held are %q", x.name, iface, got, x.held)
			}
		}
	}
}

// Nor does a box that cannot be reached fail the plan of a model that calls it otherwise than who holds it.
func TestHeldByAnotherModelAndSilent(t *testing.T) {
	f := newFabric(stateDir(t), "s1", "s2")
	f.holdAs(t, "pod2", journal.Hold{Device: "sp7", Serial: "S-s2"})
	f.boxes["s2"].onOpen = func(int) error { return errLost }
	if p := f.plan(t); p.Failed() || len(p.Device("s2").Held) != 1 {
		t.Errorf("%+v", p.Device("s2"))
	}
}

// A hold on a port that the model does not have any more holds the device: nobody knows which port was meant.
func TestHeldUnknownPort(t *testing.T) {
	f := newFabric(stateDir(t), "s1")
	f.hold(t, "s1", "downlink-9")
	f.apply(t, f.plan(t), 4)
	f.is(t, "s1", oldConfig())
}

// A hold that is set after the plan was made refuses it, as a whole and before anything is written; so it does a
// rollback and a resume.
func TestHeldSincePlan(t *testing.T) {
	f := newFabric(stateDir(t), "s1", "s2")
	p := f.plan(t)
	for _, port := range []string{"", "downlink-1"} {
		f.hold(t, "s2", port)
		if _, err := f.e.Apply(context.Background(), p, leave); !errors.Is(err, ErrHeld) || f.writes() > 0 {
			t.Fatalf("%q: %v", port, err)
		}
		f.release(t, "s2", port)
	}
	r := f.apply(t, p, 0)
	f.hold(t, "s2", "")
	before := f.writes()
	back, err := f.e.Rollback(context.Background(), r.ID)
	if ExitCode(back, err) != 4 || !errors.Is(err, ErrHeld) || !strings.Contains(err.Error(), "release it") || f.writes() != before {
		t.Errorf("rollback: %+v, %v", back, err)
	}
	f.release(t, "s2", "")
	if back, err = f.e.Rollback(context.Background(), r.ID); ExitCode(back, err) != 0 {
		t.Errorf("rollback: %+v, %v", back, err)
	}
	f.is(t, "s2", oldConfig())
}

// A hold that is set while apply is at work stops it before its next transaction on the device, also before what would
// take back. What is left is said, and can be finished or taken back later.
func TestHoldMeanwhile(t *testing.T) {
	for _, v := range flavours {
		for _, end := range []Kind{KindResume, KindRollback} {
			f := newFabric(stateDir(t), "s1", "s2")
			f.flavour(v)
			f.e.Command = func(words ...string) string { return "fabricctl " + strings.Join(words, " ") + " --state-dir s" }
			f.boxes["s1"].onCommit = on(1, fault{then: func(*box) { f.hold(t, "s1", ""); f.hold(t, "s2", "downlink-1") }})
			r := f.apply(t, f.plan(t), 5)
			x := r.Results[0]
			if x.Outcome != NeedsHands || x.Cause != Refused || x.Done != 1 || f.boxes["s1"].commits != 1 || !strings.Contains(x.Message, "held until") ||
				!strings.Contains(x.Message, "then fabricctl runs resume run-1 --state-dir s or fabricctl runs rollback run-1 --state-dir s") {
				t.Errorf("%v: s1: %+v, %d commits", v, x, f.boxes["s1"].commits)
			}
			if r.Results[1].Outcome != Unchanged || f.boxes["s2"].commits > 0 {
				t.Errorf("%v: s2: %+v", v, r.Results[1])
			}
			act := f.e.Resume
			if end == KindRollback {
				act = f.e.Rollback
			}
			before := f.writes()
			if r, err := act(context.Background(), r.ID); ExitCode(r, err) != 4 || f.writes() != before {
				t.Errorf("%v: %s while held: %+v, %v", v, end, r, err)
			}
			f.now = f.now.Add(3 * time.Hour)
			r, err := act(context.Background(), r.ID)
			if ExitCode(r, err) != 0 {
				t.Errorf("%v: %s: %+v, %v", v, end, r, err)
			}
			want := oldConfig()
			if end == KindResume {
				want = f.wanted("s1", want)
			}
			f.is(t, "s1", want)
		}
	}
}

// Whoever cannot read what is held writes nothing.
func TestDamagedHolds(t *testing.T) {
	f := newFabric(stateDir(t), "s1")
	p := f.plan(t)
	f.hold(t, "s1", "")
	if err := os.WriteFile(journal.HoldPath(HoldsDir(f.e.StateDir), "pod1"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := f.e.Plan(context.Background(), f.net, PlanOptions{}); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("plan: %v", err)
	}
	if _, err := f.e.Apply(context.Background(), p, leave); err == nil || !strings.Contains(err.Error(), "damaged") || f.writes() > 0 {
		t.Errorf("apply: %v", err)
	}
}

// A plan file cannot talk its way past a hold.
func TestForgedHold(t *testing.T) {
	f := newFabric(stateDir(t), "s1")
	p := f.plan(t)
	f.hold(t, "s1", "downlink-2")
	p.Device("s1").Held = holdSet{{Device: "s1", Port: "downlink-2"}}
	if err := f.e.Check(p, f.net, func(string) bool { return false }); err == nil {
		t.Error("a plan that claims to know a hold, and does not heed it, is accepted")
	}
	p = f.plan(t) // heeds it
	p.Device("s1").Intent.Ports[1].State = intent.Active
	if _, err := f.e.Apply(context.Background(), p, leave); err != nil {
		t.Log(err)
	}
	if v, _ := f.boxes["s1"].running.Find(render.Key{Scope: "port", Object: "p2", Field: "mtu"}); v != "1400" {
		t.Errorf("the held port was written: mtu %s", v)
	}
}

// What is set on a bond is set on its members, so a member that is held holds the bond.
func TestHeldMemberOfABond(t *testing.T) {
	was, will := "1500", "9000"
	mtu := render.Change{Op: render.Modify, Key: render.Key{Scope: "link", Object: "bond0", Field: "mtu"}, Before: &was, After: &will}
	live := render.Config{{Key: mtu.Key, Value: was}, {Key: render.Key{Scope: "link", Object: "rail0", Field: "mtu"}, Value: was}}
	steps := []Step{{Changes: []render.Change{mtu}, Undo: render.Undo([]render.Change{mtu})}}
	for bond, want := range map[string]bool{"bond0": true, "bond1": false, "": false} {
		f := render.Facts{NICs: []render.HostNIC{{Name: "rail0", Bond: bond}}}
		if got := movesPort(render.Linux(), f, live, steps, []string{"rail0"}); got != want {
			t.Errorf("rail0 in %q: moved %v, want %v", bond, got, want)
		}
	}
}
