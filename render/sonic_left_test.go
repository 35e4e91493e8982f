package render

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
)

// without is d with the class of priority 3 gone.
func without(d intent.Device) intent.Device {
	p := d.Policies[0]
	p.Queues[3], p.TCPG[3] = intent.Queue{}, 0
	for i := range p.DSCP {
		if p.DSCP[i] == 3 {
			p.DSCP[i] = 0
		}
	}
	d.Classes[3], d.Policies = "", []intent.Policy{p}
	return d
}

// TestSonicLeft: what a class wrote goes with it, seen by the names that its queues bind; a lossless priority and a
// queue of somebody else's stay.
func TestSonicLeft(t *testing.T) {
	d := exampleDevice("Ethernet0", "Ethernet8")
	live, l := sonicRender(d, Facts{})
	if len(l) > 0 {
		t.Fatal(l)
	}
	next := without(d)
	foreign := []Change{
		{Op: Add, Key: Key{"PORT_QOS_MAP", "Ethernet0", "pfc_enable[4]"}, After: new("on")},
		{Op: Add, Key: Key{"PORT_QOS_MAP", "Ethernet8", "pfc_enable[4]"}, After: new("on")},
		{Op: Add, Key: Key{"QUEUE", "Ethernet0|4", "scheduler"}, After: new("scheduler.1")},
		{Op: Add, Key: Key{"QUEUE", "Ethernet8|4", "scheduler"}, After: new("fctl-pod1--a-fabric-x")}, // of fabric pod1-a
		{Op: Add, Key: Key{"QUEUE", "Ethernet99|4", "scheduler"}, After: new("fctl-pod1-fabric-cnp")}, // not modelled
		{Op: Add, Key: Key{"QUEUE", "Ethernet0|3", "other"}, After: new("x")},
	}
	live = Apply(live, foreign)
	own, said := Owned(&sonic, next, Facts{}, live)
	want, l := sonicRender(next, Facts{})
	if len(l) > 0 {
		t.Fatal(l)
	}
	cs, used := KeepUsed(&sonic, live, Diff(&sonic, Facts{}, live.Filter(own), want.Filter(own)))
	if len(used) > 0 {
		t.Errorf("still used: %v", used)
	}
	if diff := cmp.Diff(Apply(want, foreign).lines(), Apply(live, cs).lines()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(said) != 1 || said[0].Severity != diag.Info || !strings.Contains(said[0].Msg, "priority 4 is lossless on Ethernet0, Ethernet8; no class") {
		t.Errorf("findings %v", said)
	}
	for i := range next.Ports {
		next.Ports[i].Manage = intent.Manage{intent.AreaECN: intent.Own}
	}
	keys, said := sonicLeft(next, Facts{}, live)
	if diff := cmp.Diff([]Key{
		{"QUEUE", "Ethernet0|3", ""},
		{"QUEUE", "Ethernet0|3", "wred_profile"},
		{"QUEUE", "Ethernet8|3", ""},
		{"QUEUE", "Ethernet8|3", "wred_profile"},
	}, keys); diff != "" || len(said) > 0 {
		t.Errorf("with ECN alone (-want +got):\n%s%v", diff, said)
	}
}

// TestSonicAsymmetric: ports that obey pause of every priority are said, where PFC is ours.
func TestSonicAsymmetric(t *testing.T) {
	d := exampleDevice("Ethernet0", "Ethernet8")
	sound, _ := sonicRender(d, Facts{})
	asymmetric := func(value string) Config {
		return Apply(sound, []Change{
			{Op: Add, Key: Key{"PORT", "Ethernet8", "pfc_asym"}, After: new(value)},
			{Op: Add, Key: Key{"PORT", "Ethernet99", "pfc_asym"}, After: new("on")}, // not modelled
		})
	}
	if _, l := sonicLeft(d, Facts{}, asymmetric("off")); len(l) > 0 {
		t.Error(l)
	}
	keys, l := sonicLeft(d, Facts{}, asymmetric("on"))
	if len(keys) > 0 || len(l) != 1 || l[0].Rule != "asymmetric-pfc" || l[0].Severity != diag.Warning || !strings.Contains(l[0].Msg, "is on for Ethernet8:") {
		t.Errorf("%v %v", keys, l)
	}
	for i := range d.Ports {
		d.Ports[i].Manage[intent.AreaPFC] = intent.Observe
	}
	if _, l := sonicLeft(d, Facts{}, asymmetric("on")); len(l) > 0 {
		t.Error(l)
	}
}
