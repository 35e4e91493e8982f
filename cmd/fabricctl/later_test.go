package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/drivers/lab/sonic"
)

// TestStrangerAfterPlan: what a plan refuses, apply refuses too when it happens between the two.
func TestStrangerAfterPlan(t *testing.T) {
	b := newBench(t, trio)
	spine := b.lab.Box("spine1").(*sonic.Switch)
	b.must(t, exitOK, "apply", "--yes", "--allow-disruptive")
	b.write(t, "fabric.yaml", strings.Replace(trio, "kmin: 800KB", "kmin: 700KB", 1))
	file := filepath.Join(b.dir, "plan.json")
	b.must(t, exitOK, "plan", "--device", "spine1", "--out", file)
	spine.Edit(func(db sonic.DB) {
		for field, v := range map[string]string{"lanes": "80,81", "speed": "400000", "mtu": "9100", "admin_status": "up"} {
			db.Set("PORT", "Ethernet80", field, v)
		}
		db.Set("QUEUE", "Ethernet80|3", "wred_profile", "fctl-trio-fabric-training")
	})
	held := b.config(t)
	r := b.must(t, exitRefused, "apply", file, "--allow-disruptive")
	if !strings.Contains(r.out, "QUEUE|Ethernet80|3|wred_profile, which the model does not know, uses it") {
		t.Error(r)
	}
	if d := cmp.Diff(held, b.config(t)); d != "" {
		t.Errorf("something was written (-before +after):\n%s", d)
	}
}

// TestRollbackWatchdog takes a run back on a switch that had watchdog rows and no polling interval. The interval stays,
// and is in nobody's way.
func TestRollbackWatchdog(t *testing.T) {
	b := newBench(t, trio)
	spine := b.lab.Box("spine1").(*sonic.Switch)
	spine.Edit(func(db sonic.DB) {
		for field, v := range map[string]string{"detection_time": "400", "restoration_time": "400", "action": "drop"} {
			db.Set("PFC_WD", "Ethernet0", field, v)
		}
		db.Set("PORT_QOS_MAP", "Ethernet0", "pfc_enable", "3")
		db.Set("PORT_QOS_MAP", "Ethernet0", "pfcwd_sw_enable", "3")
	})
	old := string(spine.Config().JSON())
	b.must(t, exitOK, "apply", "--yes", "--allow-disruptive", "--device", "spine1")
	r := b.must(t, exitOK, "runs", "rollback", b.run(t))
	if !strings.Contains(r.out, `POLL_INTERVAL stays at "100"`) {
		t.Error(r)
	}
	spine.Edit(func(db sonic.DB) { delete(db["PFC_WD"], "GLOBAL") })
	if d := cmp.Diff(old, string(spine.Config().JSON())); d != "" {
		t.Errorf("(-before +after):\n%s", d)
	}
}

// TestRenamedFabric: a run of a fabric is not rolled back under one that the same devices got under a new name.
func TestRenamedFabric(t *testing.T) {
	b := newUsedBench(t, trio)
	b.must(t, exitOK, "apply", "--yes", "--allow-disruptive")
	first := b.run(t)
	b.write(t, "fabric.yaml", strings.Replace(trio, "name: trio", "name: other", 1))
	b.must(t, exitOK, "apply", "--yes", "--allow-disruptive")
	held := b.config(t)
	r := b.must(t, exitRefused, "runs", "rollback", first)
	if !strings.Contains(r.err, " of fabric other came later and is in force on") {
		t.Error(r)
	}
	if d := cmp.Diff(held, b.config(t)); d != "" {
		t.Errorf("something was written (-before +after):\n%s", d)
	}
}

// TestObservedDevice: one that is only looked at and cannot be read does not pass for one that agrees.
func TestObservedDevice(t *testing.T) {
	b := newBench(t, strings.Replace(trio, "switches: own, hosts: own", "switches: observe, hosts: {mtu: own, host-nccl: own}", 1))
	if err := b.lab.Box("spine1").Close(); err != nil {
		t.Fatal(err)
	}
	r := b.must(t, exitOK, "plan")
	if !strings.Contains(r.out, "warning: not-read: ") {
		t.Error(r)
	}
}
