package render

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
)

// checkProperties is what every dialect keeps for every valid device. Each property is one subtest.
func checkProperties(t *testing.T, x target) {
	t.Helper()
	for name, property := range map[string]func(*rapid.T, target){
		"text parses back":              propText,
		"lift gives the policies back":  propLift,
		"diff of equal sides is empty":  propDiffSelf,
		"apply of a diff gives want":    propApply,
		"undo takes an apply back":      propUndo,
		"render is owned":               propOwned,
		"observe owns nothing":          propObserve,
		"every owned setting matters":   propMutation,
		"each prefix of a diff is sane": propPrefix,
		"input order does not matter":   propShuffled,
		"who it is does not matter":     propTwins,
		"remaining resumes anywhere":    propRemaining,
		"classes leave nothing behind":  propLeft,
	} {
		t.Run(name, func(t *testing.T) { rapid.Check(t, func(rt *rapid.T) { property(rt, x) }) })
	}
}

// rendered is d's configuration; a valid device has no findings.
func rendered(t *rapid.T, x target, d intent.Device) Config {
	t.Helper()
	c, l := x.dialect.Render(d, x.facts)
	if len(l) > 0 {
		t.Fatalf("findings on a valid device: %v", l)
	}
	return c
}

// liveOf is a live configuration that holds d, beside what is not ours.
func liveOf(t *rapid.T, x target, d intent.Device) Config {
	var live Config
	if x.bare != nil {
		live = x.bare(d)
	}
	return Apply(live, Diff(x.dialect, x.facts, nil, rendered(t, x, d)))
}

func (c Config) lines() []string {
	var s []string
	for _, x := range c {
		s = append(s, fmt.Sprintf("%s = %q", x.Key, x.Value))
	}
	return s
}

func mustEqual(t *rapid.T, what string, want, got Config) {
	t.Helper()
	if !want.Equal(got) {
		t.Fatalf("%s (-want +got):\n%s", what, cmp.Diff(want.lines(), got.lines()))
	}
}

func propText(t *rapid.T, x target) {
	c := rendered(t, x, drawDevice(t, x))
	got, l := x.dialect.Parse(x.dialect.Text(c))
	if len(l) > 0 {
		t.Fatalf("findings on our own text: %v", l)
	}
	mustEqual(t, "Parse(Text(c))", c, got)
}

func propLift(t *rapid.T, x target) {
	d := drawDevice(t, x)
	lifted, l := x.dialect.Lift(rendered(t, x, d), x.facts)
	if l.HasErrors() || l.Count(diag.Warning) > 0 {
		t.Fatalf("findings on our own configuration: %v", l)
	}
	for iface, want := range behaviour(&d) {
		got := lifted[iface]
		if missing := want.Known &^ got.Known; missing != 0 {
			t.Fatalf("%s: areas %b are not known", iface, missing)
		}
		if diff := cmp.Diff(want, got.Only(want.Known)); diff != "" {
			t.Fatalf("%s (-want +lifted):\n%s", iface, diff)
		}
	}
}

// propTwins is what Shared relies on.
func propTwins(t *rapid.T, x target) {
	d := drawDevice(t, x)
	o := d
	o.Name, o.Pod, o.Plane, o.Group, o.Serial, o.Hostname, o.Address = "leaf2", "pod2", "plane2", "g2", "S2", "other", "10.0.0.2:22"
	o.Origins = nil
	o.Ports = slices.Clone(d.Ports)
	for i := range o.Ports {
		o.Ports[i].Peer, o.Ports[i].PeerPort = "spine2", "downlink-7"
	}
	if !intent.Twins(&d, &o) {
		t.Fatal("these are no twins")
	}
	mustEqual(t, "the twin", rendered(t, x, d), rendered(t, x, o))
	var s Shared
	for _, d := range []intent.Device{d, o} {
		c, l := s.Render(x.dialect, &d, x.facts)
		if len(l) > 0 {
			t.Fatalf("findings on a valid device: %v", l)
		}
		mustEqual(t, "shared", rendered(t, x, d), c)
	}
}

func propDiffSelf(t *rapid.T, x target) {
	c := rendered(t, x, drawDevice(t, x))
	if cs := Diff(x.dialect, x.facts, c, c); len(cs) > 0 {
		t.Fatalf("changes between equal sides: %v", cs)
	}
}

// step draws a live configuration, the owned wish and the changes between them.
func step(t *rapid.T, x target) (live, want Config, own func(Key) bool, cs []Change) {
	d := drawDevice(t, x)
	switch rapid.IntRange(0, 3).Draw(t, "from") {
	case 0: // first apply
		want = rendered(t, x, d)
		if x.bare != nil {
			live = x.bare(d)
		}
	case 1: // give everything back
		live = liveOf(t, x, d)
	default:
		live, want = liveOf(t, x, d), rendered(t, x, remodel(t, x, d))
	}
	own = x.dialect.Owns(d, x.facts)
	want = want.Filter(own)
	return live, want, own, Diff(x.dialect, x.facts, live.Filter(own), want)
}

func propApply(t *rapid.T, x target) {
	live, want, own, cs := step(t, x)
	after := Apply(live, cs)
	if again := Diff(x.dialect, x.facts, after.Filter(own), want); len(again) > 0 {
		t.Fatalf("a second diff is not empty: %s", changes(again))
	}
	foreign := func(k Key) bool { return !own(k) }
	mustEqual(t, "what we do not own", live.Filter(foreign), after.Filter(foreign))
	for _, c := range cs {
		if !own(c.Key) {
			t.Fatalf("%s changes, and is not owned", c.Key)
		}
	}
}

func propUndo(t *rapid.T, x target) {
	live, _, _, cs := step(t, x)
	mustEqual(t, "after undo", live, Apply(Apply(live, cs), Undo(cs)))
}

func propOwned(t *rapid.T, x target) {
	d := drawDevice(t, x)
	own := x.dialect.Owns(d, x.facts)
	for _, s := range rendered(t, x, d) {
		if !own(s.Key) {
			t.Fatalf("%s is rendered and not owned", s.Key)
		}
	}
}

func propObserve(t *rapid.T, x target) {
	d := drawDevice(t, x)
	c := rendered(t, x, d)
	for i := range d.Ports {
		d.Ports[i].Manage = intent.Manage{}
	}
	if mine := c.Filter(x.dialect.Owns(d, x.facts)); len(mine) > 0 {
		t.Fatalf("owned although everything is observed: %q", mine.lines())
	}
}

// propMutation changes or removes one owned setting: what Lift says must change, or the device would do something
// else than we say.
func propMutation(t *rapid.T, x target) {
	c := rendered(t, x, drawDevice(t, x))
	i := rapid.IntRange(0, len(c)-1).Draw(t, "setting")
	k, old := c[i].Key, c[i].Value
	mutant := slices.Clone(c)
	var now *string
	if rapid.Bool().Draw(t, "remove") {
		mutant = slices.Delete(mutant, i, i+1)
	} else {
		v := rapid.SampledFrom([]string{"", "0", "1", "7", "77", "fctl-other", old + "1", "on", "WRR", "false"}).Draw(t, "value")
		now, mutant[i].Value = &v, v
	}
	if x.dialect.Same(k, &old, now, x.facts) || x.hidden != nil && x.hidden(k) {
		t.Skip("the same by value")
	}
	before, said := x.dialect.Lift(c, x.facts)
	after, says := x.dialect.Lift(mutant, x.facts)
	if maps.Equal(before, after) && len(said) == len(says) {
		t.Fatalf("%s = %q became %v, and Lift says the same", k, old, now)
	}
}

// propPrefix stops after some of the changes: no reference hangs in the air, no window is upside down.
func propPrefix(t *rapid.T, x target) {
	live, _, _, cs := step(t, x)
	var flat []Change
	for _, phase := range Phases(x.dialect, cs) {
		flat = append(flat, phase...)
	}
	if len(flat) != len(cs) {
		t.Fatalf("%d changes became %d in phases", len(cs), len(flat))
	}
	if len(cs) == 0 {
		return
	}
	for _, order := range [][]Change{cs, flat} {
		for _, n := range rapid.SliceOfN(rapid.IntRange(1, len(cs)), 1, 12).Draw(t, "stops") {
			if bad := insane(x.dialect, Apply(live, order[:n])); bad != "" {
				t.Fatalf("after %d of %d changes: %s\nthe last was%s", n, len(order), bad, changes(order[n-1:n]))
			}
		}
	}
}

// insane is what is wrong with a configuration half way, "" when nothing is.
func insane(d *Dialect, c Config) string {
	objects := map[Key]bool{}
	for _, s := range c {
		objects[s.Key.Whole()] = true
	}
	for _, s := range c {
		for _, r := range d.Refs(s.Key, s.Value) {
			if !objects[r] {
				return fmt.Sprintf("%s points at %s, which is not there", s.Key, r)
			}
		}
		for _, w := range d.Windows {
			if s.Key.Field != w.Lo || w.Scope != "" && w.Scope != s.Key.Scope {
				continue
			}
			if hi, ok := c.Find(Key{s.Key.Scope, s.Key.Object, w.Hi}); ok && numeric(s.Value) > numeric(hi) {
				return fmt.Sprintf("%s is %s above %s %s", s.Key, s.Value, w.Hi, hi)
			}
		}
	}
	return ""
}

func propShuffled(t *rapid.T, x target) {
	d := drawDevice(t, x)
	want := rendered(t, x, d)
	d.Ports = rapid.Permutation(d.Ports).Draw(t, "ports")
	mustEqual(t, "ports in another order", want, rendered(t, x, d))
}

// propRemaining stops an apply after some changes: what remains leads to the same end, whichever way the run goes on.
func propRemaining(t *rapid.T, x target) {
	live, want, own, cs := step(t, x)
	half := Apply(live, cs[:rapid.IntRange(0, len(cs)).Draw(t, "stopped after")])
	todo, moved := Remaining(x.dialect, x.facts, half, cs)
	if len(moved) > 0 {
		t.Fatalf("nobody moved %s", changes(moved))
	}
	if again := Diff(x.dialect, x.facts, Apply(half, todo).Filter(own), want); len(again) > 0 {
		t.Fatalf("resume does not end in want: %s", changes(again))
	}
	back, moved := Remaining(x.dialect, x.facts, half, Undo(cs))
	if len(moved) > 0 {
		t.Fatalf("nobody moved %s", changes(moved))
	}
	if again := Diff(x.dialect, x.facts, Apply(half, back).Filter(own), live.Filter(own)); len(again) > 0 {
		t.Fatalf("rollback does not end in the old state: %s", changes(again))
	}
}

// propLeft gives the device other classes: no object of ours stays in use for those that are gone, and the next plan is
// empty.
func propLeft(t *rapid.T, x target) {
	d := drawDevice(t, x)
	live := liveOf(t, x, d)
	if own, _ := Owned(x.dialect, d, x.facts, live); !live.Filter(own).Equal(live.Filter(x.dialect.Owns(d, x.facts))) {
		t.Fatal("something is left of classes that are there")
	}
	next := d
	next.Classes = [8]string{}
	drawClasses(t, &next)
	next = remodel(t, x, next)
	want := rendered(t, x, next)
	own, _ := Owned(x.dialect, next, x.facts, live)
	cs, used := KeepUsed(x.dialect, live, Diff(x.dialect, x.facts, live.Filter(own), want.Filter(own)))
	if len(used) > 0 {
		t.Fatalf("still used: %v", used)
	}
	after := Apply(live, cs)
	own, _ = Owned(x.dialect, next, x.facts, after)
	if again := Diff(x.dialect, x.facts, after.Filter(own), want.Filter(own)); len(again) > 0 {
		t.Fatalf("the next plan is not empty: %s", changes(again))
	}
	mustEqual(t, "after undo", live, Apply(after, Undo(cs)))
}

// changes is cs for people.
func changes(cs []Change) string {
	s := ""
	for _, c := range cs {
		value := func(v *string) string {
			if v == nil {
				return "absent"
			}
			return fmt.Sprintf("%q", *v)
		}
		s += fmt.Sprintf("\n%-6s %s: %s to %s", c.Op, c.Key, value(c.Before), value(c.After))
	}
	return s
}
