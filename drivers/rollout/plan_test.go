package rollout

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/profiles"
	"github.com/fabricctl/fabricctl/render"
)

// Drift is stable: a hundred reads of unchanged devices give the same bytes, however many are read at once.
func TestPlanIsStable(t *testing.T) {
	f := newFabric(stateDir(t), "s1", "s2", "s3", "h1")
	f.flavour(flavour{saver: true})
	first := encoded(t, f.plan(t))
	for i := range 100 {
		f.e.Parallel = 1 + i%4
		if b := encoded(t, f.plan(t)); !bytes.Equal(b, first) {
			t.Fatalf("plan %d differs: %s", i, cmp.Diff(string(first), string(b)))
		}
	}
	if f.writes() > 0 {
		t.Errorf("planning wrote %d times", f.writes())
	}
	for n, b := range f.boxes {
		if b.unclosed > 0 {
			t.Errorf("%s: %d connections left open", n, b.unclosed)
		}
	}
}

func TestPlanSteps(t *testing.T) {
	f := newFabric(stateDir(t), "s1", "h1")
	p := f.plan(t)
	d := p.Device("s1")
	var got strings.Builder
	for _, s := range d.Steps {
		got.WriteString(s.Why + "\n")
		for _, c := range s.Changes {
			got.WriteString("  " + string(c.Op) + " " + c.Key.String() + " " + shown(c.Before) + " > " + shown(c.After) + "\n")
		}
	}
	want := `transaction 1 of 3: removals that must be gone first
  remove watch|p1|time "200" > absent
transaction 2 of 3: one transaction cannot hold a safe order
  add prof|ours-a absent > ""
  add prof|ours-a|kmin absent > "100"
  set port|p1|mtu "1500" > "9000"
  add port|p1|profile absent > "ours-a"
  set port|p2|mtu "1400" > "9000"
  set port|p2|profile "theirs" > "ours-a"
transaction 3 of 3: one transaction cannot hold a safe order
  add watch|p2|time absent > "400"
`
	if got.String() != want {
		t.Error(cmp.Diff(want, got.String()))
	}
	if d.Ops != (Ops{Add: 4, Set: 3, Remove: 1}) || p.Ops().Total() != 16 {
		t.Errorf("ops %+v, total %d", d.Ops, p.Ops().Total())
	}
	if class, ports := d.Worst(); class != render.Flap || ports != 2 {
		t.Errorf("risk %v on %d ports", class, ports)
	}
	if d.Steps[0].Wave != waveSwitches || p.Device("h1").Steps[0].Wave != waveHosts {
		t.Error("hosts are not after switches")
	}
}

// What a plan says of devices that it does not write.
func TestPlanModes(t *testing.T) {
	find := func(d *DevicePlan, rule string) string {
		for _, x := range d.Findings {
			if x.Rule == rule {
				return x.Severity.String() + ": " + x.Msg
			}
		}
		return ""
	}
	const drift = "mtu 1500B → 9000B"
	for _, c := range []struct {
		name          string
		rig           func(*intent.Device, *box)
		mode          Mode
		rule, finding string
		seen          string // what is observed, in words
		blocked       bool
		failed        bool
		opens         int
	}{
		{name: "observed", rig: func(d *intent.Device, b *box) {
			d.Manage, d.Ports[0].Manage, d.Ports[1].Manage = intent.Manage{}, intent.Manage{}, intent.Manage{}
		}, mode: Watch, seen: drift, opens: 1},
		{name: "maintenance", rig: func(d *intent.Device, b *box) { d.State = intent.Maintenance }, mode: Watch, seen: drift, opens: 1},
		{name: "maintenance and dead", rig: func(d *intent.Device, b *box) {
			d.State = intent.Maintenance
			b.onOpen = func(int) error { return errors.New("no route to host") }
		}, mode: Watch, rule: "not-read", finding: "info: no route to host", opens: 1},
		{name: "planned", rig: func(d *intent.Device, b *box) { d.State = intent.Planned }, mode: Skipped},
		{name: "absent", rig: func(d *intent.Device, b *box) { d.State = intent.Absent }, mode: Skipped},
		{name: "one port observed", rig: func(d *intent.Device, b *box) { d.Ports[0].Manage = intent.Manage{} }, mode: Write, seen: drift, opens: 1},
		{
			name: "missing port", rig: func(d *intent.Device, b *box) { d.Ports[1].Iface = "p7" }, mode: Write, blocked: true, rule: "no-such-port",
			finding: "error: the device does not show port p7 (downlink-2 in the model)", opens: 1,
		},
		{name: "dead", rig: func(d *intent.Device, b *box) { b.onRead = func(int) error { return errors.New("broken pipe") } }, mode: Write, failed: true, opens: 1},
		{
			name: "wrong serial", rig: func(d *intent.Device, b *box) { b.facts.Serial = "X" }, mode: Write, blocked: true, rule: "identity",
			finding: `error: this is not the device of the inventory: s1 has serial number "X" and hostname "s1", the inventory says serial number "S-s1"`, opens: 1,
		},
		{
			name: "wrong hostname", rig: func(d *intent.Device, b *box) { d.Serial = ""; b.facts.Hostname = "leaf9.example.net" }, mode: Write, blocked: true, rule: "identity",
			finding: `error: this is not the device of the inventory: s1 has hostname "leaf9.example.net"`, opens: 1,
		},
		{
			name: "another domain", rig: func(d *intent.Device, b *box) {
				d.Serial, d.Hostname, b.facts.Serial, b.facts.Hostname = "", "s1.pod1.example.net", "", "s1.pod2.example.net"
			}, mode: Write, blocked: true, rule: "identity",
			finding: `error: this is not the device of the inventory: s1 has hostname "s1.pod2.example.net", the inventory says "s1.pod1.example.net"`, opens: 1,
		},
		{
			name: "hostname of the inventory", rig: func(d *intent.Device, b *box) {
				d.Serial, d.Hostname, b.facts.Serial, b.facts.Hostname = "S-s1", "leaf9", "", "leaf9.example.net"
			}, mode: Write, opens: 1,
		},
		{
			name: "not the hostname of the inventory", rig: func(d *intent.Device, b *box) { d.Hostname = "leaf9" }, mode: Write, blocked: true, rule: "identity",
			finding: `error: this is not the device of the inventory: s1 has hostname "s1", the inventory says "leaf9"`, opens: 1,
		},
		{
			name: "still used", rig: func(d *intent.Device, b *box) {
				b.running = render.Apply(b.running, changes("prof ours-z -", "prof ours-z kmin 300", "port x1 profile ours-z"))
			}, mode: Write, rule: "still-used",
			finding: "info: prof|ours-z stays: the model does not ask for it any more, but something that the model does not own still uses it", opens: 1,
		},
		{name: "hostname with domain", rig: func(d *intent.Device, b *box) { d.Serial = ""; b.facts.Hostname = "S1.example.net" }, mode: Write, opens: 1},
		{
			name: "another owner", rig: func(d *intent.Device, b *box) { b.facts.Owners = []string{"AI-ECN is on"} }, mode: Write, blocked: true, rule: "owner",
			finding: "error: somebody else configures it: AI-ECN is on", opens: 1,
		},
		{
			name: "unsaved", rig: func(d *intent.Device, b *box) { b.saver = true; b.startup = conf("x y z 1") }, mode: Write, rule: "unsaved",
			finding: "warning: the running configuration differs from startup already; saving after apply saves that too", opens: 1,
		},
		{
			name: "stranger on our object", rig: func(d *intent.Device, b *box) {
				b.running = render.Apply(b.running, changes("prof ours-a -", "prof ours-a kmin 300", "port x1 profile ours-a"))
			}, mode: Write, blocked: true, rule: "name-collision",
			finding: "error: prof|ours-a has our name and would change, but port|x1|profile, which the model does not know, uses it", opens: 1,
		},
		{name: "our own port in maintenance on our object", rig: func(d *intent.Device, b *box) {
			b.running = render.Apply(b.running, changes("prof ours-a -", "prof ours-a kmin 300", "port x1 profile ours-a"))
			d.Ports = append(d.Ports, intent.Port{Name: "downlink-9", Iface: "x1", State: intent.Maintenance})
		}, mode: Write, opens: 1},
	} {
		f := newFabric(stateDir(t), "s1")
		b := f.boxes["s1"]
		c.rig(&f.net.Devices[0], b)
		d := f.plan(t).Device("s1")
		if d.Mode != c.mode || d.Blocked != c.blocked || (d.Error != "") != c.failed || b.opens != c.opens {
			t.Errorf("%s: mode %s, blocked %v, error %q, %d connections", c.name, d.Mode, d.Blocked, d.Error, b.opens)
		}
		if c.rule != "" && find(d, c.rule) != c.finding {
			t.Errorf("%s: %q, want %q", c.name, find(d, c.rule), c.finding)
		}
		if wantSteps := c.mode == Write && !c.blocked && !c.failed; (len(d.Steps) > 0) != wantSteps {
			t.Errorf("%s: %d steps", c.name, len(d.Steps))
		}
		var seen string
		for _, b := range d.Observed {
			for _, v := range b.Changes {
				seen += v.Label + " " + v.Before + " → " + v.After
			}
		}
		if c.seen != "" && !strings.HasPrefix(seen, c.seen) {
			t.Errorf("%s: observed %q, want %q", c.name, seen, c.seen)
		}
		r, err := f.e.Apply(context.Background(), &Plan{Schema: PlanSchema, Fabric: "pod1", Devices: []DevicePlan{*d}}, leave)
		code := 0
		switch {
		case c.blocked:
			code = 4
		case c.failed:
			code = 1
		}
		if ExitCode(r, err) != code {
			t.Errorf("%s: apply: exit %d, want %d: %+v, %v", c.name, ExitCode(r, err), code, r, err)
		}
	}
}

func TestNotRenderable(t *testing.T) {
	f := newFabric(stateDir(t), "s1")
	inner := *f.e.Dialect("test")
	plain := inner.Render
	inner.Render = func(d intent.Device, facts render.Facts) (render.Config, diag.List) {
		c, l := plain(d, facts)
		l.Errorf("inexpressible", diag.Pos{File: "f.yaml", Line: 3}, "", "no such thing here")
		return c, l
	}
	f.e.Dialect = func(string) *render.Dialect { return &inner }
	d := f.plan(t).Device("s1")
	if !d.Blocked || len(d.Steps) > 0 || d.Findings.Count(diag.Error) != 1 {
		t.Errorf("%+v", d)
	}
	f.e.Dialect = func(string) *render.Dialect { return nil }
	if d := f.plan(t).Device("s1"); d.Error != `s1: no dialect is called "test"` {
		t.Errorf("%q", d.Error)
	}
}

// What a device refuses has one way out, which is said once, and which is one: what it holds by hand is not written.
func TestRefusedByDevice(t *testing.T) {
	f := newFabric(stateDir(t), "s1")
	inner := *f.e.Dialect("test")
	inner.Risk = func(render.Config, []render.Change, render.Facts) []render.Risk {
		return []render.Risk{{Class: render.Refused, Why: "it takes no mtu"}, {Class: render.Refused, Why: "it takes no profile"}}
	}
	f.e.Dialect = func(string) *render.Dialect { return &inner }
	d := f.plan(t).Device("s1")
	want := diag.List{
		{Rule: "refused-by-device", Severity: diag.Error, At: "s1", Msg: "it takes no mtu"},
		{
			Rule: "refused-by-device", Severity: diag.Error, At: "s1", Msg: "it takes no profile",
			Hint: "set that on the device by hand, as fabricctl render has it, and plan again: what it holds already is not written",
		},
	}
	if diff := cmp.Diff(want, d.Findings); diff != "" || !d.Blocked {
		t.Errorf("blocked %v (-want +got):\n%s", d.Blocked, diff)
	}
	f.boxes["s1"].running = f.want["s1"]
	if d := f.plan(t).Device("s1"); d.Blocked || len(d.Steps) > 0 {
		t.Errorf("by hand: %+v", d)
	}
}

// Adoption: the live object that only our ports use stands for ours, is edited in place, and survives the plan file,
// a resume and a rollback.
func TestAdopt(t *testing.T) {
	f := newFabric(stateDir(t), "s1")
	b := f.boxes["s1"]
	b.running = render.Apply(b.running, changes("port p1 profile theirs"))
	old := b.running
	p, err := f.e.Plan(context.Background(), f.net, PlanOptions{Adopt: true})
	if err != nil {
		t.Fatal(err)
	}
	d := p.Device("s1")
	if got := d.Adopted.Name("prof", "ours-a"); got != "theirs" {
		t.Fatalf("adopted %v", d.Adopted)
	}
	p, err = Decode(encoded(t, p))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.e.Check(p, f.net, func(string) bool { return false }); err != nil {
		t.Fatal(err)
	}
	g := f.after(t, 0)
	died := g.doomed(14, map[string]int{}, func() { g.e.Apply(context.Background(), p, leave) })
	g = g.after(t, time.Hour)
	if r, err := g.e.Resume(context.Background(), "run-101"); ExitCode(r, err) != 0 {
		t.Fatalf("died at %q; resume: %+v, %v", died, r, err)
	}
	now := g.boxes["s1"].running
	if now.Get("prof", "theirs", "kmin") != "100" || now.Get("port", "p1", "profile") != "theirs" || strings.Contains(text(now), "ours-a") {
		t.Errorf("not edited in place:\n%s", text(now))
	}
	if r, err := g.e.Rollback(context.Background(), "run-101"); ExitCode(r, err) != 0 || !g.boxes["s1"].running.Equal(old) {
		t.Errorf("rollback: %+v, %v\n%s", r, err, text(g.boxes["s1"].running))
	}
}

func TestPlanHonoursContext(t *testing.T) {
	f := newFabric(stateDir(t), "s1", "s2")
	ctx, cancel := context.WithCancel(context.Background())
	f.boxes["s1"].onRead = func(int) error { cancel(); return nil }
	if p, err := f.e.Plan(ctx, f.net, PlanOptions{}); !errors.Is(err, context.Canceled) || p != nil {
		t.Errorf("%v, %v", p, err)
	}
}

func TestExitCodes(t *testing.T) {
	r := func(k Kind, xs ...Result) *Run { return &Run{Kind: k, Results: xs} }
	x := func(o Outcome, c Cause) Result { return Result{Outcome: o, Cause: c} }
	for i, c := range []struct {
		r    *Run
		err  error
		want int
	}{
		{r(KindApply), nil, 0},
		{r(KindApply, x(Applied, None), x(Unchanged, None)), nil, 0},
		{r(KindApply, x(Unchanged, FailedCause)), nil, 1},
		{nil, errors.New("no lease"), 1},
		{nil, &RefusedError{Reason: "busy"}, 4},
		{r(KindApply, x(Applied, None), x(Unchanged, FailedCause)), nil, 3},
		{r(KindApply, x(Applied, None), x(RolledBack, FailedCause)), nil, 3},
		{r(KindApply, x(Unchanged, None), x(Unchanged, FailedCause)), nil, 1},
		{r(KindApply, x(Unchanged, Refused)), nil, 4},
		{r(KindApply, x(RolledBack, FailedCause), x(Unchanged, NotStarted)), nil, 4},
		{r(KindApply, x(Applied, None), x(NeedsHands, FailedCause)), nil, 5},
		{r(KindApply, x(Unknown, FailedCause)), nil, 5},
		{&Run{Interrupted: true, Results: []Result{x(RolledBack, Interrupted)}}, nil, 130},
		{&Run{Interrupted: true, Results: []Result{x(Unknown, Interrupted)}}, nil, 5},
		{r(KindRollback, x(RolledBack, None), x(Unchanged, None)), nil, 0},
		{r(KindRollback, x(Applied, Refused)), nil, 4},
		{r(KindRollback, x(RolledBack, None), x(Applied, Refused)), nil, 3},
	} {
		if got := ExitCode(c.r, c.err); got != c.want {
			t.Errorf("case %d: exit %d, want %d", i, got, c.want)
		}
	}
}

// What NICs run is said of a plan, and never refuses it.
func TestPlanSaysWhatNICsRun(t *testing.T) {
	cat, err := profiles.Default()
	if err != nil {
		t.Fatal(err)
	}
	f := newFabric(stateDir(t), "h1", "h2", "h3")
	nic := func(host, driver, firmware string) {
		b := f.boxes[host]
		b.facts.NICs = []render.HostNIC{
			{Name: "p1", Model: "15b3:1023", Driver: "mlx5_core", OutOfTree: true, DriverVersion: driver, Firmware: firmware},
			{Name: "management", Model: "15b3:1021", Driver: "mlx5_core", OutOfTree: true, DriverVersion: "24.10", Firmware: "28.20.1000"},
		}
	}
	said := func() []string {
		t.Helper()
		p, err := f.e.Plan(context.Background(), f.net, PlanOptions{Fabric: &model.Fabric{Catalog: cat}})
		if err != nil {
			t.Fatal(err)
		}
		if p.Refused() || p.Refusal() != nil {
			t.Errorf("refused: %v", p.Refusal())
		}
		var got []string
		for _, x := range p.Finds {
			got = append(got, x.Word()+" "+x.Rule+" "+strings.Join(x.Devices, ","))
		}
		return got
	}
	if got := said(); len(got) > 0 {
		t.Errorf("NICs that nobody read: %v", got)
	}
	nic("h1", "25.07-0.9.7", "40.46.1006")
	nic("h2", "25.07-0.9.7", "40.46.1006")
	nic("h3", "24.10-1.1.4", "40.46.1006")
	if d := cmp.Diff([]string{"warning compatibility h3", "warning fleet-versions h3"}, said()); d != "" {
		t.Errorf("a driver without this NIC (-want +got):\n%s", d)
	}
}
