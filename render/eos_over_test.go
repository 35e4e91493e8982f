package render

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	eosswitch "github.com/fabricctl/fabricctl/drivers/lab/eos"
)

// TestEOSOverrides: what somebody typed on an interface, or for the whole device, wins over the profile that the model binds.
// Where the port then behaves otherwise, the plan takes the line away, with lines that the switch takes, and the port is as
// the model has it.
func TestEOSOverrides(t *testing.T) {
	d := eosLeaf()
	want := must(t, d)
	own := eos.Owns(d, Facts{})
	for _, over := range []string{
		"interface Ethernet1/1\npriority-flow-control priority 3 drop",
		"interface Ethernet1/1\nno priority-flow-control",
		"interface Ethernet1/1\nno priority-flow-control on",
		"interface Ethernet1/1\npriority-flow-control on\npriority-flow-control priority 0 no-drop",
		"priority-flow-control all off",
		"interface Ethernet1/1\nqos trust cos",
		"interface Ethernet1/1\nno qos trust",
		"interface Ethernet1/1\nmtu 1500",
		"interface Ethernet1/1\nno mtu",
		"interface Ethernet1/1\nno service-profile",
		"interface Ethernet1/1\nflowcontrol receive on",
		"interface Ethernet1/1\nno priority-flow-control pause watchdog",
		"interface Ethernet1/1\npriority-flow-control pause watchdog port action errdisable",
		"interface Ethernet1/1\npriority-flow-control pause watchdog port timer timeout 1 polling-interval auto recovery-time 2 forced",
		"interface Ethernet1/1\nuc-tx-queue 3\npriority strict",
		"interface Ethernet1/1\nuc-tx-queue 6\nno priority",
		"interface Ethernet1/1\nuc-tx-queue 3\nbandwidth percent 1",
		"interface Ethernet1/1\nuc-tx-queue 3\nrandom-detect ecn minimum-threshold 1 bytes maximum-threshold 2 bytes max-mark-probability 1 weight 0",
	} {
		t.Run(strings.ReplaceAll(over, "\n", "; "), func(t *testing.T) {
			sw, err := eosswitch.New(eosswitch.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if err := sw.Boot(string(eos.Text(want))); err != nil {
				t.Fatal(err)
			}
			sound := sw.Running()
			if err := sw.Type(over); err != nil {
				t.Fatal(err)
			}
			live := parsed(t, []byte(sw.Running()))
			lifted, _ := eos.Lift(live, Facts{})
			if cmp.Equal(behaviour(&d), lifted) {
				t.Fatal("the port behaves as the model has it: the line is none that wins")
			}
			cs := Diff(&eos, Facts{}, live.Filter(own), want.Filter(own))
			if err := sw.Type(typed(eos.Lines(live, cs))); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(sound, sw.Running()); diff != "" {
				t.Errorf("after %s (-want +got):\n%s", changes(cs), diff)
			}
		})
	}
}

// TestEOSRedundant: taking away what a port has of its own, beside the same in its profile, does not switch it off.
func TestEOSRedundant(t *testing.T) {
	d := eosLeaf()
	want := must(t, d)
	own := eos.Owns(d, Facts{})
	sw, err := eosswitch.New(eosswitch.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := sw.Boot(string(eos.Text(want))); err != nil {
		t.Fatal(err)
	}
	sound := sw.Running()
	if err := sw.Type("interface Ethernet1/1\npriority-flow-control on\npriority-flow-control priority 3 no-drop\npriority-flow-control pause watchdog\nqos trust dscp"); err != nil {
		t.Fatal(err)
	}
	live := parsed(t, []byte(sw.Running()))
	cs := Diff(&eos, Facts{}, live.Filter(own), want.Filter(own))
	if err := sw.Type(typed(eos.Lines(live, cs))); err != nil {
		t.Fatal(err)
	}
	left := strings.Replace(sound, "   service-profile fctl-pod1-leaf\n", "   qos trust dscp\n   service-profile fctl-pod1-leaf\n", 1) // it says what the profile says
	if diff := cmp.Diff(left, sw.Running()); diff != "" {
		t.Errorf("after %s (-want +got):\n%s", changes(cs), diff)
	}
}
