package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/fabricctl/fabricctl/drivers/lab/eos"
	"github.com/fabricctl/fabricctl/drivers/lab/sonic"
	"github.com/fabricctl/fabricctl/drivers/rollout"
)

// Who sets something on an interface of an EOS switch with any client, over the profile that the model binds, or switches PFC
// off for all of them, finds it in the plan, and apply takes it away; a rollback brings it back.
func TestOverridesWithAStockClient(t *testing.T) {
	b := newBench(t, trio)
	b.must(t, 0, "apply", "--yes", "--allow-disruptive")
	leaf := b.lab.Box("leaf1").(*eos.Switch)
	sound := leaf.Running()
	apply := func() string {
		t.Helper()
		return b.must(t, 0, "apply", "--yes", "--allow-disruptive").out
	}
	for typed, want := range map[string]string{
		"interface Ethernet1/1; priority-flow-control priority 3 drop":                   "- interface Ethernet1/1 priority-flow-control priority 3 (was drop)",
		"interface Ethernet1/1; no priority-flow-control":                                "- interface Ethernet1/1 priority-flow-control (was no)",
		"interface Ethernet1/1; no priority-flow-control pause watchdog":                 "- interface Ethernet1/1 priority-flow-control pause watchdog (was no)",
		"interface Ethernet1/1; priority-flow-control pause watchdog port action notify": "- interface Ethernet1/1 priority-flow-control pause watchdog port action (was notify-only)",
		"interface Ethernet1/1; qos trust cos":                                           "- interface Ethernet1/1 qos trust (was cos)",
		"interface Ethernet1/1; uc-tx-queue 3; priority strict":                          "- interface Ethernet1/1>uc-tx-queue 3 priority (was strict)",
		"priority-flow-control all off":                                                  "- priority-flow-control all off",
	} {
		b.ssh(t, "leaf1", append(append([]string{"enable", "configure"}, strings.Split(typed, "; ")...), "end", "write memory")...)
		broken := leaf.Running()
		if broken == sound {
			t.Errorf("%s: the switch shows nothing of it", typed)
		}
		if r := b.must(t, 2, "plan", "--detailed-exitcode", "--details"); !strings.Contains(r.out, want) {
			t.Errorf("%s: the plan does not say %q: %s", typed, want, r)
		}
		apply()
		if now := leaf.Running(); now != sound {
			t.Errorf("%s stays:\n%s", typed, now)
		}
		b.must(t, 0, "runs", "rollback", latest(b.runs(t)))
		if now := leaf.Running(); now != broken {
			t.Errorf("%s: a rollback leaves\n%s", typed, now)
		}
		apply()
		if out := apply(); !strings.Contains(out, "nothing was written") || leaf.Running() != sound {
			t.Errorf("%s: not settled: %s", typed, out)
		}
	}
}

// latest is the number of the run that began last.
func latest(runs []rollout.Summary) string {
	return slices.MaxFunc(runs, func(a, b rollout.Summary) int { return a.Started.Compare(b.Started) }).ID
}

// A SONiC port that obeys pause of every priority is said by plan: taking its field away would end nothing.
func TestAsymmetricPFC(t *testing.T) {
	b := newBench(t, trio)
	b.must(t, 0, "apply", "--yes", "--allow-disruptive")
	port := b.net.Device("spine1").Ports[0].Iface
	b.lab.Box("spine1").(*sonic.Switch).Edit(func(db sonic.DB) { db.Set("PORT", port, "pfc_asym", "on") })
	want := "warning: asymmetric-pfc: pfc_asym is on for " + port
	if r := b.must(t, 0, "plan"); !strings.Contains(r.out, want) {
		t.Errorf("the plan does not say %q: %s", want, r)
	}
}
