package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/fabricctl/fabricctl/drivers/lab/host"
	"github.com/fabricctl/fabricctl/drivers/lab/sonic"
	"github.com/fabricctl/fabricctl/drivers/rollout"
	"github.com/fabricctl/fabricctl/model/journal"
	"github.com/fabricctl/fabricctl/model/observe"
	"github.com/fabricctl/fabricctl/tuning"
)

func mustFlags(t *testing.T, a *app, words ...string) tuneFlags {
	t.Helper()
	o, err := a.flagsOf(words)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// verbsExperiment is an experiment with verbs tests that moves the load alone, ready to be attached.
func (b *verbsBench) verbsExperiment(a *app) *experiment {
	b.t.Helper()
	o := mustFlags(b.t, a, "tune", "run", "--runner", "perftest", "--variables", "workload.depth", "-w", "single,hosts=host2/host1,size=64KiB,depth=32", "--yes")
	x, err := a.experiment(b.t.Context(), o, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	return x
}

// An experiment that writes no device has the fabric for itself all the same, and knows what its devices and its tests run.
func TestTuneHold(t *testing.T) {
	b := newVerbsBench(t)
	a, m, _ := b.tuner(t)
	x := b.verbsExperiment(a)
	if x.writes() {
		t.Fatal("it writes devices")
	}
	end, err := a.attach(t.Context(), x, "exp-1")
	if err != nil {
		t.Fatal(err)
	}
	b.lab.Box("spine1").(*sonic.Switch).Edit(func(db sonic.DB) { db.Set("PORT", "Ethernet0", "mtu", "1500") }) // so that there is something to apply
	if r := b.must(t, exitRefused, "apply", "--yes", "--allow-disruptive"); !strings.Contains(r.err, "for run exp-1") {
		t.Errorf("an apply in the middle: %s", r)
	}
	c := x.exp.Context
	if got := len(c.Firmware); got != 4 || !strings.HasPrefix(c.Firmware["leaf1"], "eos/7060x6 ") || c.Firmware["host2"] == "" || c.Tool != "perftest 6.06" || c.Fingerprint == "" {
		t.Errorf("%+v", c)
	}
	trial := tuning.Trial{N: 1, Seed: 1, Workload: x.exp.Workload}
	if _, err := x.lab.Runner.Run(t.Context(), trial); err != nil {
		t.Error(err)
	}
	dir, err := a.state()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := journal.Break(t.Context(), journal.LeasePath(rollout.LeasesDir(dir), m.net.Fabric), x.hold.lease.Lease(), journal.Options{Now: x.exp.Now}); err != nil {
		t.Fatal(err)
	}
	made := &counting{}
	if _, err := (heldRunner{made, x.hold}).Run(t.Context(), trial); !errors.Is(err, journal.ErrFenced) || made.runs > 0 {
		t.Errorf("a run without the lease: %d were made, %v", made.runs, err)
	}
	x.exp.Space.Vars[0].Name, x.lab.Knobs = "queue-limit", made
	x.exp.Space.Base[0] = 1e6
	k := x.heldKnobs(x.hold.lease)
	if err := k.Set(t.Context(), &x.exp.Space.Vars[0], 5e5); !errors.Is(err, journal.ErrFenced) || made.sets > 0 {
		t.Errorf("a knob is set without the lease: %v", err)
	}
	if err := k.Set(t.Context(), &x.exp.Space.Vars[0], 1e6); err != nil || made.sets != 1 {
		t.Errorf("a knob is not set back without the lease: %v", err)
	}
	if err := end(); !errors.Is(err, journal.ErrFenced) {
		t.Error(err)
	}
	if r := b.must(t, exitOK, "lock", "list"); r.out != "" {
		t.Errorf("%s", r)
	}
	for _, h := range []string{"host1", "host2"} {
		b.host(h).SetFaults(host.Faults{Perftest: "6.20"})
	}
	x = b.verbsExperiment(a)
	if end, err = a.attach(t.Context(), x, "exp-1"); err != nil {
		t.Fatal(err)
	}
	if err := sameFirmware(&c, &x.exp.Context); err == nil || !strings.Contains(err.Error(), "tests ran perftest 6.06, and now perftest 6.20") {
		t.Error(err)
	}
	if err := end(); err != nil {
		t.Error(err)
	}
}

// counting makes runs and sets knobs that it only counts.
type counting struct{ runs, sets int }

func (c *counting) Run(context.Context, tuning.Trial) (observe.Observation, error) {
	c.runs++
	return observe.Observation{}, nil
}
func (c *counting) Set(context.Context, *tuning.Variable, float64) error { c.sets++; return nil }
func (c *counting) Get(context.Context, *tuning.Variable) (float64, error) {
	return 0, nil
}

// The simulator asks no device, though there is an inventory.
func TestTuneHoldSim(t *testing.T) {
	b := newBench(t, strings.Replace(trio, "per_leaf: 1", "per_leaf: 4", 1))
	a, _, _ := b.tuner(t)
	x, err := a.experiment(t.Context(), mustFlags(t, a, "tune", "run"), nil)
	if err != nil {
		t.Fatal(err)
	}
	end, err := a.attach(t.Context(), x, "exp-1")
	if err != nil || len(x.exp.Context.Firmware) > 0 || x.exp.Context.Fingerprint != "" {
		t.Errorf("%+v %v", x.exp.Context, err)
	}
	b.must(t, exitOK, "apply", "--yes", "--accept-unverified", "--allow-disruptive")
	if err := end(); err != nil {
		t.Error(err)
	}
}

// What devices run is part of what a resume compares, whichever side has it.
func TestSameFirmware(t *testing.T) {
	of := func(tool string, words ...string) *tuning.Context {
		c := &tuning.Context{Firmware: map[string]string{}, Tool: tool}
		for i := 0; i < len(words); i += 2 {
			c.Firmware[words[i]] = words[i+1]
		}
		c.Fingerprint = fingerprint(c.Firmware, c.Tool)
		return c
	}
	was := of("perftest 6.06", "leaf1", "1", "leaf2", "1")
	if err := sameFirmware(was, of("perftest 6.06", "leaf2", "1", "leaf1", "1")); err != nil {
		t.Error(err)
	}
	for _, c := range []struct {
		is   *tuning.Context
		says string
	}{
		{of("perftest 6.06", "leaf1", "1", "leaf2", "2"), "leaf2 ran 1, and now 2"},
		{of("perftest 6.06", "leaf1", "1"), "leaf2 ran 1, and now does not say"},
		{of("", "leaf1", "1", "leaf2", "1"), "tests ran perftest 6.06, and now does not say"},
	} {
		if err := sameFirmware(was, c.is); err == nil || !slices.Contains(strings.Split(strings.TrimPrefix(err.Error(), "runs on other firmware are not comparable: "), ", leaf"), c.says) {
			t.Errorf("%s: %v", c.says, err)
		}
	}
}
