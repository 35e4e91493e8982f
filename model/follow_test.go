package model

import (
	"strings"
	"testing"
)

// TestAlone: what merely follows from an error is not said beside it.
func TestAlone(t *testing.T) {
	for _, x := range []struct{ name, model, want string }{
		{"unknown platform", with(t, "leaves: {count: 2, platform: sonic/sn5600}", "leaves: {count: 2, platform: sonic/sn56}"), "unknown platform"},
		{"breakout", with(t, "    host_leaf: {speed: 400Gbps}", "    host_leaf: {speed: 400Gbps, breakout: 3}"), "breakout into 3 links"},
		{"a host's platform on leaves", with(t, "leaves: {count: 2, platform: sonic/sn5600}", "leaves: {count: 2, platform: linux/generic}"), "is a host's platform"},
		{"netdevs as one word", with(t, "netdevs: [rdma0]", "netdevs: rdma0"), "takes a list of netdevs"},
		{"two CNP classes", with(t, "    lossless: true\n", "    lossless: true\n    role: cnp\n"), "are both the CNP class"},
		{"unknown class", base + "applications: [{name: nccl, class: trainng}]\n", "there is no class trainng"},
	} {
		_, l := Load(files("m.yaml", x.model), "m.yaml")
		if len(l) != 1 || !strings.Contains(l[0].Msg, x.want) {
			t.Errorf("%s: %s", x.name, lines(l))
		}
	}
}

// TestSerials: a serial number that SONiC does not show is said once, unless a host name stands beside it.
func TestSerials(t *testing.T) {
	_, l := Load(files("m.yaml", base+inventory("  leaf1: {serial: A}\n  leaf2: {serial: B}\n  spine1: {serial: C, hostname: s1}\n")), "m.yaml")
	if len(l) != 1 || l[0].Rule != "serial" || !strings.Contains(l[0].Msg, "of leaf1 and leaf2 is not compared") {
		t.Error(lines(l))
	}
}

// TestAcknowledgedTwice: the second of two acknowledgements of one rule is told where the first is.
func TestAcknowledgedTwice(t *testing.T) {
	f, l := Load(files("m.yaml", with(t, "    leaf_spine: {speed: 400Gbps}\n", "")+"acknowledge: [{rule: no-speed, reason: x}, {rule: no-speed, reason: y}]\n"), "m.yaml")
	s := ""
	for _, x := range f.Acknowledge(l) {
		s += x.String() + "\n"
	}
	if !strings.Contains(s, "the rule no-speed is acknowledged already") || strings.Contains(s, "no warning of the rule") {
		t.Error(s)
	}
}
