package render

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
)

// TestEOSLeft: a class that leaves the model takes the counter of its marks from the ports; that of another queue stays.
func TestEOSLeft(t *testing.T) {
	live := Apply(must(t, eosLeaf()), []Change{
		{Op: Add, Key: Key{"interface Ethernet1/1>uc-tx-queue 5", eosCount, ""}, After: new("")},
		{Op: Add, Key: Key{"interface Ethernet9/1>uc-tx-queue 3", eosCount, ""}, After: new("")},
	})
	next := edit(func(d *intent.Device) {
		d.Classes[3] = ""
		d.Ports[1].Manage[intent.AreaECN] = intent.Observe
		d.Ports[2].State = intent.Maintenance
	})
	keys, l := eos.Left(next, Facts{}, live)
	if diff := cmp.Diff([]Key{{"interface Ethernet1/1>uc-tx-queue 3", eosCount, ""}}, keys); diff != "" || len(l) > 0 {
		t.Errorf("(-want +got):\n%s%v", diff, l)
	}
	if keys, _ := eos.Left(eosLeaf(), Facts{}, live); len(keys) > 0 {
		t.Errorf("of classes that are there: %v", keys)
	}
}

// eosAdopted is a profile of somebody else's that was edited in place for classes 3 and 4 and a watchdog.
const eosAdopted = `
qos profile ROCE
   !
   uc-tx-queue 3
      random-detect ecn minimum-threshold 800000 bytes maximum-threshold 3200000 bytes max-mark-probability 20 weight 0
   !
   priority-flow-control on
   priority-flow-control priority 3 no-drop
   priority-flow-control pause watchdog
!
priority-flow-control pause watchdog action drop
priority-flow-control pause watchdog default timeout 0.2
!
interface Ethernet1/1
   service-profile ROCE
   !
   uc-tx-queue 3
      random-detect ecn count
!
interface Ethernet2/1
   service-profile ROCE
!
interface Ethernet9/1
   service-profile OTHER
`

// leftSays is the findings of a rule that eosLeft has for d, with ROCE adopted or not.
func leftSays(t *testing.T, rule, running string, adopt bool, f func(d *intent.Device)) []diag.Finding {
	t.Helper()
	d := edit(func(d *intent.Device) {
		d.Ports = d.Ports[:2]
		f(d)
	})
	facts := Facts{}
	if adopt {
		facts.Names = Names{{"", "qos profile fctl-pod1-leaf", ""}: "qos profile ROCE"}
	}
	keys, l := eos.Left(d, facts, parsed(t, []byte(running)))
	if len(keys) > 0 {
		t.Errorf("what somebody else may use is removed: %v", keys)
	}
	var of []diag.Finding
	for _, x := range l {
		if x.Rule == rule {
			of = append(of, x)
		}
	}
	return of
}

// gone takes the class of priority 3 out of d.
func gone(d *intent.Device) { *d = without(*d) }

// TestEOSStaysLossless: an adopted profile keeps what a class had in it when the class goes, and the plan says so.
func TestEOSStaysLossless(t *testing.T) {
	onPort := strings.Replace(eosAdopted, "   service-profile ROCE\n", "   service-profile ROCE\n   priority-flow-control priority 4 no-drop\n", 1)
	for _, tt := range []struct {
		name, running string
		adopt         bool
		edit          func(d *intent.Device)
		msg, from     string // "" = nothing is said
	}{
		{"the class is gone, and no other is lossless", eosAdopted, true, gone, "priority 3 is lossless on Ethernet1/1, Ethernet2/1; no class", "qos profile ROCE"},
		{"the class moved", eosAdopted, true, func(d *intent.Device) {
			d.Classes[3], d.Classes[4] = "", "training"
			p := &d.Policies[0]
			p.Queues[3], p.Queues[4] = intent.Queue{}, p.Queues[3]
			p.TCPG[3], p.TCPG[4], p.DSCP[26] = 0, 4, 4
		}, "priority 3 is lossless on Ethernet1/1, Ethernet2/1; no class", "qos profile ROCE"},
		{"the class is not lossless any more", eosAdopted, true, func(d *intent.Device) { d.Policies[0].Queues[3].Lossless, d.Policies[0].TCPG[3] = false, 0 }, "", ""},
		{"one port is in maintenance", eosAdopted, true, func(d *intent.Device) { gone(d); d.Ports[0].State = intent.Maintenance }, "priority 3 is lossless on Ethernet2/1; no class", "qos profile ROCE"},
		{"on the port itself", onPort, false, func(*intent.Device) {}, "priority 4 is lossless on Ethernet1/1; no class", "interface Ethernet1/1"},
		{"PFC comes with the plan", strings.Replace(onPort, "   priority-flow-control on\n", "", 1), true, func(*intent.Device) {}, "priority 4 is lossless on Ethernet1/1; no class", "interface Ethernet1/1"},
		{"PFC is not on", strings.Replace(eosAdopted, "   priority-flow-control on\n", "", 1), true, gone, "", ""},
		{"PFC is off on the whole device", "priority-flow-control all off\n" + eosAdopted, true, gone, "", ""},
		{"the port says otherwise", strings.ReplaceAll(eosAdopted, "   service-profile ROCE\n", "   service-profile ROCE\n   priority-flow-control priority 3 drop\n"), true, gone, "", ""},
		{"the profile is replaced by ours", eosAdopted, false, gone, "", ""},
		{"the class is there", eosAdopted, true, func(*intent.Device) {}, "", ""},
		{"PFC is not owned", eosAdopted, true, func(d *intent.Device) {
			gone(d)
			d.Ports[0].Manage[intent.AreaPFC], d.Ports[1].Manage[intent.AreaPFC] = intent.Observe, intent.Observe
		}, "", ""},
		{"the device is in maintenance", eosAdopted, true, func(d *intent.Device) { gone(d); d.State = intent.Maintenance }, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := leftSays(t, "stays-lossless", tt.running, tt.adopt, tt.edit)
			switch {
			case tt.msg == "" && len(l) == 0:
			case tt.msg == "" || len(l) != 1 || l[0].Severity != diag.Info || !strings.Contains(l[0].Msg, tt.msg) || !strings.Contains(l[0].Hint, " from "+tt.from+" by hand"):
				t.Errorf("want %q from %q, got %v", tt.msg, tt.from, l)
			}
		})
	}
}

// TestEOSTimersStay: the watchdog's timers are the device's, and nothing tells whose; they stay, and the plan says so.
func TestEOSTimersStay(t *testing.T) {
	off := func(d *intent.Device) { d.Policies[0].Watchdog = intent.Watchdog{} }
	for _, tt := range []struct {
		name, running string
		adopt         bool
		edit          func(d *intent.Device)
		want          string // "" = nothing is said
	}{
		{"in the adopted profile the watchdog stays on", eosAdopted, true, off, "Ethernet1/1, Ethernet2/1 stay watched by"},
		{"our profile ends it", eosAdopted, false, off, "whether EOS watches ports by these alone is not verified"},
		{"there is a watchdog", eosAdopted, true, func(*intent.Device) {}, ""},
		{"there are no timers", "interface Ethernet1/1\n   mtu 9214\n", false, off, ""},
		{"a port has it observed", eosAdopted, false, func(d *intent.Device) { off(d); d.Ports[1].Manage[intent.AreaWatchdog] = intent.Observe }, ""},
		{"the device is in maintenance", eosAdopted, false, func(d *intent.Device) { off(d); d.State = intent.Maintenance }, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := leftSays(t, "watchdog-timers-stay", tt.running, tt.adopt, tt.edit)
			const lines = `"priority-flow-control pause watchdog action drop", "priority-flow-control pause watchdog default timeout 0.2" stay`
			switch {
			case tt.want == "" && len(l) == 0:
			case tt.want == "" || len(l) != 1 || l[0].Severity != diag.Info || !strings.Contains(l[0].Msg, lines) || !strings.Contains(l[0].Msg, tt.want):
				t.Errorf("want %q, got %v", tt.want, l)
			}
		})
	}
}
