package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/drivers/lab/sonic"
)

// managing is the trio with another owner's line.
func managing(manage string) string {
	return strings.Replace(trio, "manage: {switches: own, hosts: own}", "manage: {switches: "+manage+", hosts: observe}", 1)
}

// TestPlanThatUnprotects: a switch carries the lossless class on another priority than the model, with PFC for that one.
// Moving its maps alone would leave the class without PFC: that is refused, in a plan, in its file and in an apply, and
// nothing is written. Moving both is not.
func TestPlanThatUnprotects(t *testing.T) {
	b := newBench(t, trio)
	b.must(t, exitOK, "apply", "--yes", "--allow-disruptive", "--adopt")
	spine := b.lab.Box("spine1").(*sonic.Switch)
	spine.Edit(func(db sonic.DB) {
		db.Set("DSCP_TO_TC_MAP", "fctl-trio-fabric", "26", "4")
		db.Set("TC_TO_PRIORITY_GROUP_MAP", "fctl-trio-fabric", "4", "4")
		db.Set("PORT_QOS_MAP", "Ethernet0", "pfc_enable", "4")
	})
	before := b.config(t)
	b.write(t, "fabric.yaml", managing("{maps: own}"))
	file := filepath.Join(b.dir, "plan.json")
	r := b.must(t, exitRefused, "plan", "--device", "spine1", "--out", file)
	for _, want := range []string{
		"error: lossless-protected: after this plan, and not now, class training is lossless, but its dscp 26 leads to priority 3 on spine1:",
		"where PFC is on for priority 4: a full buffer drops it",
		"hint: own pfc on spine1, or set it by hand: the model says priority 3 pfc on, spine1 off",
	} {
		if !strings.Contains(r.out, want) {
			t.Errorf("no %q in %s", want, r)
		}
	}
	for _, verb := range [][]string{{"apply", "--yes", "--allow-disruptive", "--device", "spine1"}, {"apply", "--allow-disruptive", file}} {
		r := b.must(t, exitRefused, verb...)
		if !strings.Contains(r.err, "nothing was written") || !strings.Contains(r.err, "hint: own pfc on spine1") {
			t.Errorf("%v: %s", verb, r)
		}
	}
	if d := cmp.Diff(before, b.config(t)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	b.write(t, "fabric.yaml", managing("{maps: own, pfc: own, watchdog: own}"))
	b.must(t, exitOK, "apply", "--yes", "--allow-disruptive", "--device", "spine1")
}

// TestForgottenPort: PFC is missing on one port whose watchdog runs. Owning PFC repairs it, and the watchdog's row, which
// the model does not own, stays and is no stranger that uses a name of ours.
func TestForgottenPort(t *testing.T) {
	b := newBench(t, trio)
	b.must(t, exitOK, "apply", "--yes", "--allow-disruptive", "--adopt")
	spine := b.lab.Box("spine1").(*sonic.Switch)
	whole := b.config(t)
	spine.Edit(func(db sonic.DB) { db.Set("PORT_QOS_MAP", "Ethernet0", "pfc_enable", "") })
	b.write(t, "fabric.yaml", managing("{mtu: own, ecn: own, pfc: own}"))
	r := b.must(t, exitOK, "apply", "--yes", "--allow-disruptive", "--device", "spine1")
	if !strings.Contains(r.err, "priority 3 pfc") || !strings.Contains(r.err, "plan: 1 setting ") {
		t.Errorf("apply %s", r)
	}
	if d := cmp.Diff(whole, b.config(t)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
