package rollout

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/render"
)

// remade recomputes all that follows from the changes of a device, as a careful forger would.
func remade(f *fabric, d *DevicePlan) {
	dialect := f.e.Dialect("test")
	facts := d.Facts
	facts.Names = d.Adopted
	j := newJudge(dialect, facts, f.net.Device(d.Name).Bind(facts.Aliases), d.Steps)
	at := f.boxes[d.Name].running.Filter(j.own)
	for i := range d.Steps {
		s := &d.Steps[i]
		s.Undo = render.Undo(s.Changes)
		s.Before = j.fingerprint(at)
		at = render.Apply(at, s.Changes)
		s.After = j.fingerprint(at)
	}
	d.Live = d.Steps[0].Before
}

// A plan file is a proposal: what the model does not ask for is refused before anything is touched.
func TestCheck(t *testing.T) {
	str := func(s string) *string { return &s }
	add := func(d *DevicePlan, scope, object, field, v string) {
		s := &d.Steps[len(d.Steps)-1]
		s.Changes = append(s.Changes, render.Change{Op: render.Add, Key: render.Key{Scope: scope, Object: object, Field: field}, After: &v})
	}
	for _, c := range []struct {
		name, says string
		forge      func(*Plan, *DevicePlan)
	}{
		{"nothing", "", func(*Plan, *DevicePlan) {}},
		{"another fabric", `it is for fabric "pod2", the model is "pod1"`, func(p *Plan, _ *DevicePlan) { p.Fabric = "pod2" }},
		{"a device of no model", `the model has no device "s9"`, func(_ *Plan, d *DevicePlan) {
			d.Name = "s9"
			for i := range d.Steps {
				d.Steps[i].Device = "s9"
			}
		}},
		{"another system", `another kind of device than "test/box"`, func(_ *Plan, d *DevicePlan) { d.OS, d.Platform = "other", "other/box" }},
		{"a host that is none", "another kind", func(_ *Plan, d *DevicePlan) { d.Host = true }},
		{"left alone", `its mode is "observe" in the plan, and "write" by the model`, func(_ *Plan, d *DevicePlan) { d.Mode, d.Steps = Watch, nil }},
		{"never read", "does not say what it held", func(_ *Plan, d *DevicePlan) { d.Live, d.Steps = "", nil }},
		{"another device behind the name", "serial number", func(_ *Plan, d *DevicePlan) { d.Facts.Serial = "X" }},
		{"another wave", "wave 3", func(_ *Plan, d *DevicePlan) {
			for i := range d.Steps {
				d.Steps[i].Wave = waveHosts
			}
		}},
		{"a key that is not owned", "other|thing|b is not the model's to write", func(_ *Plan, d *DevicePlan) { add(d, "other", "thing", "b", "1") }},
		{"an owned key that the model does not want", `port|p3|mtu becomes "4000", and the model wants absent`, func(_ *Plan, d *DevicePlan) { add(d, "port", "p3", "mtu", "4000") }},
		{"another value", `port|p1|mtu becomes "9216", and the model wants "9000"`, func(_ *Plan, d *DevicePlan) {
			i := slices.IndexFunc(d.Steps[1].Changes, func(c render.Change) bool { return c.Key.Field == "mtu" && c.Key.Object == "p1" })
			d.Steps[1].Changes[i].After = str("9216")
		}},
		{"a removal of what is wanted", `port|p1 becomes absent, and the model wants ""`, func(_ *Plan, d *DevicePlan) {
			d.Steps[0].Changes = append(d.Steps[0].Changes, render.Change{Op: render.Remove, Key: render.Key{Scope: "port", Object: "p1"}, Before: str("")})
		}},
		{"adopted without leave", "without adoption", func(_ *Plan, d *DevicePlan) { d.Adopted = render.Names{{Scope: "prof", Object: "ours-a"}: "theirs"} }},
	} {
		f := newFabric(stateDir(t), "s1", "h1")
		p, err := Decode(encoded(t, f.plan(t)))
		if err != nil {
			t.Fatal(err)
		}
		d := p.Device("s1")
		c.forge(p, d)
		if len(d.Steps) > 0 && d.Steps[0].Device == "s1" {
			remade(f, d)
		}
		if p, err = Decode(encoded(t, p)); err != nil {
			t.Errorf("%s: the file is not even read: %v", c.name, err)
			continue
		}
		err = f.e.Check(p, f.net, func(string) bool { return false })
		var refused *RefusedError
		if c.says == "" {
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", c.name, err, c.says)
		}
	}
}

// Flags that open a door are not believed.
func TestCheckSetsFlags(t *testing.T) {
	f := newFabric(stateDir(t), "s1", "h1")
	p := f.plan(t)
	f.net.Devices[0].Profile.Verified = false
	p.Devices[0].Intent.Ports[0].Manage = intent.Manage{}
	p.Devices[0].Verified, p.Lab = true, true
	if err := f.e.Check(p, f.net, func(n string) bool { return n == "s1" }); err != nil || p.Lab || p.Devices[0].Verified || !p.Devices[1].Verified {
		t.Errorf("%v: lab %v, verified %v", err, p.Lab, p.Devices[0].Verified)
	}
	want := f.net.Devices[0].Bind(p.Devices[0].Facts.Aliases)
	want.Origins = nil
	if d := cmp.Diff(&want, p.Devices[0].Intent); d != "" {
		t.Errorf("the intent is not the model's (-want +got):\n%s", d)
	}
	if err := f.e.Check(p, f.net, func(string) bool { return true }); err != nil || !p.Lab {
		t.Errorf("%v: lab %v", err, p.Lab)
	}
}

// What only the device knows is checked on the device, before the first write.
func TestApplyDoubtsThePlan(t *testing.T) {
	for _, c := range []struct {
		name, says string
		rig        func(*DevicePlan, *box)
	}{
		{"a removal of what no model left", "other|thing|a is not the model's to write", func(d *DevicePlan, _ *box) {
			v := "1"
			d.Steps[0].Changes = append(d.Steps[0].Changes, render.Change{Op: render.Remove, Key: render.Key{Scope: "other", Object: "thing", Field: "a"}, Before: &v})
		}},
		{"risks left out", "the change is of class flap, and the plan says hitless", func(d *DevicePlan, _ *box) { d.Risks = nil }},
		{"renamed interfaces", "other names", func(_ *DevicePlan, b *box) { b.facts.Aliases = map[string]string{"Eth1": "p1"} }},
		{"the adopted object is used by others now", "theirs cannot stand for prof|ours-a any more", func(_ *DevicePlan, b *box) {
			b.running = render.Apply(b.running, changes("port x1 profile theirs"))
		}},
	} {
		f := newFabric(stateDir(t), "s1")
		b := f.boxes["s1"]
		b.running = render.Apply(b.running, changes("port p1 profile theirs"))
		f.e.Dialect("test").Left = func(intent.Device, render.Facts, render.Config) ([]render.Key, diag.List) { return nil, nil }
		p, err := f.e.Plan(context.Background(), f.net, PlanOptions{Adopt: true})
		if err != nil || len(p.Devices[0].Adopted) != 1 {
			t.Fatal(p, err)
		}
		holds := b.running
		c.rig(&p.Devices[0], b)
		b.running, holds = holds, b.running
		remade(f, &p.Devices[0])
		b.running = holds
		if err := f.e.Check(p, f.net, func(string) bool { return false }); err != nil {
			t.Fatal(c.name, err)
		}
		r, err := f.e.Apply(context.Background(), p, leave)
		if ExitCode(r, err) != 4 || r.Results[0].Outcome != Unchanged || !strings.Contains(r.Results[0].Message, c.says) || errors.Is(err, drivers.ErrMoved) {
			t.Errorf("%s: exit %d, %+v, %v", c.name, ExitCode(r, err), r, err)
		}
		if b.writes > 0 {
			t.Errorf("%s: %d writes", c.name, b.writes)
		}
	}
}
