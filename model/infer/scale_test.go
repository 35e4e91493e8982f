package infer_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/infer"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/lint"
)

// hundred is a fabric of a hundred leaves: leaf7 has a kmin of its own, leaf50 a port with another MTU, and leaf99
// another watchdog.
const hundred = `apiVersion: fabricctl/v1
kind: Fabric
metadata: {name: hundred}
topology:
  leaves: {count: 100, platform: sonic/sn5600}
  hosts: {per_leaf: 2, netdevs: [rdma0]}
  links: {host_leaf: {speed: 400Gbps, cable: 5m}}
mtu: {fabric: 9216B, host: 9000B}
classes:
  - {name: training, dscp: [26], priority: 3, lossless: true, ecn: {kmin: 800KB, kmax: 3200KB, pmax: 20%}, bandwidth: 60%}
  - {name: cnp, role: cnp, dscp: [48], priority: 6, scheduling: strict}
  - {name: default, dscp: rest, priority: 0, bandwidth: 40%}
pfc_watchdog: {detect: 200ms, restore: 400ms, poll: 100ms, action: drop}
overrides:
  leaf:
    devices:
      leaf7: {classes: [{name: training, ecn: {kmin: 400KB}}]}
      leaf50: {ports: {downlink-2: {mtu: {fabric: 1500B}}}}
      leaf99: {pfc_watchdog: {restore: 800ms}}
`

// TestRolesAndExceptions: one role and three exceptions, and what no override can say is a finding that names the odd
// one and says how many others there are.
func TestRolesAndExceptions(t *testing.T) {
	n := resolved(t, hundred)
	leaf3 := n.Device("leaf3")
	p := *leaf3.PolicyOf(leaf3.Port("downlink-1"))
	p.Queues[3].Lossless = false
	leaf3.Port("downlink-1").Policy = leaf3.Intern(p)
	m, found := mustInfer(t, n)
	if m.Exceptions != 3 || m.Classes != 3 {
		t.Errorf("%d exceptions, %d classes", m.Exceptions, m.Classes)
	}
	_, got, _ := strings.Cut(m.Text, "\nmtu:")
	want := ` {fabric: 9216B, host: 9000B}
classes:
  - name: lossless-3
    dscp: [26]
    priority: 3
    lossless: true
    ecn: {kmin: 800KB, kmax: 3.2MB, pmax: 20%}
    bandwidth: 60%
  - name: cnp
    role: cnp   # a guess: code point 48 is the NICs' default for notifications
    dscp: [48]
    priority: 6
    scheduling: strict
  - name: default
    dscp: rest
    priority: 0
    bandwidth: 40%
pfc_watchdog: {detect: 200ms, restore: 400ms, poll: 100ms, action: drop}
nccl: {class: lossless-3}
# To let fabricctl write an area, own it, one at a time: {switches: {ecn: own}, hosts: observe}.
manage: {switches: observe, hosts: observe}
overrides:
  leaf:
    devices:
      leaf7:
        classes:
          - {name: lossless-3, ecn: {kmin: 400KB}}
      leaf50:
        ports:
          downlink-2:
            mtu: {fabric: 1500B}
      leaf99:
        pfc_watchdog: {restore: 800ms}
`
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	var says []string
	for _, f := range found {
		if f.Rule == "differs" {
			says = append(says, f.Msg)
		}
	}
	if d := cmp.Diff([]string{"priority 3 pfc is off on leaf3:Ethernet0, and the model says on, as 199 other ports have it"}, says); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// box is a switch with n ports of SONiC, all of which do the same.
func box(name string, n int, heard ...infer.Neighbour) infer.Box {
	d := intent.Device{Name: name, Hostname: name, Platform: "sonic/sn5600"}
	d.Profile.Name = d.Platform
	p := intent.Policy{Known: intent.SwitchAreas, MTU: 9216, Trust: intent.TrustDSCP}
	p.Queues[3] = intent.Queue{Used: true, Lossless: true, Weight: 50}
	b := infer.Box{Aliases: map[string]string{}, Heard: heard}
	for i := range n {
		iface := fmt.Sprintf("Ethernet%d", 8*i)
		d.Ports = append(d.Ports, intent.Port{Name: iface, Iface: iface, Policy: d.Intern(p)})
		b.Aliases[fmt.Sprintf("etp%d", i+1)] = iface
	}
	b.Device = d
	return b
}

// sw and gpu are neighbours: a switch that sends its front panel's name, and a host.
func sw(port, system, alias string) infer.Neighbour {
	return infer.Neighbour{Port: port, System: system, PeerPort: alias, Forwards: true}
}

func gpu(port, system string) infer.Neighbour {
	return infer.Neighbour{Port: port, System: system, PeerPort: "02:00:00:00:00:01", PeerDescr: "rdma0"}
}

func nic(port, system, iface string) infer.Neighbour {
	return infer.Neighbour{Port: port, System: system, PeerPort: iface}
}

// wired is a Net as text: roles, and links from either end.
func wired(n *intent.Net) string {
	var b strings.Builder
	for _, d := range n.Devices {
		fmt.Fprintf(&b, "%s %s:", d.Name, d.Role)
		for _, p := range d.Ports {
			fmt.Fprintf(&b, " %s=%s", p.Name, p.Role)
			if p.Peer != "" {
				fmt.Fprintf(&b, ">%s:%s", p.Peer, p.PeerPort)
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func rules(l diag.List) string {
	var s []string
	for _, f := range l {
		s = append(s, strings.TrimSpace(f.At+" "+f.Rule))
	}
	return strings.Join(s, "; ")
}

func TestWire(t *testing.T) {
	spine1 := box("spine1", 2, sw("Ethernet0", "leaf1", "etp2"), sw("Ethernet8", "leaf2.example.net", "etp2"))
	leaf1 := box("leaf1", 3, gpu("Ethernet0", "gpu1.example.net"), sw("Ethernet8", "SPINE1", "etp1"))
	leaf2 := box("leaf2", 2, gpu("Ethernet0", "gpu2"), sw("Ethernet8", "spine1", "etp2"))
	whole := "gpu1 host: rdma0=nic>leaf1:Ethernet0\ngpu2 host: rdma0=nic>leaf2:Ethernet0\n" +
		"leaf1 leaf: Ethernet0=host>gpu1:rdma0 Ethernet8=fabric>spine1:Ethernet0 Ethernet16=host\n" +
		"leaf2 leaf: Ethernet0=host>gpu2:rdma0 Ethernet8=fabric>spine1:Ethernet8\n" +
		"spine1 spine: Ethernet0=fabric>leaf1:Ethernet8 Ethernet8=fabric>leaf2:Ethernet8\n"
	with := func(b infer.Box, heard ...infer.Neighbour) infer.Box { b.Heard = heard; return b }
	for name, tt := range map[string]struct {
		boxes       []infer.Box
		roles       []infer.Role
		want, found string
	}{
		"both ends": {[]infer.Box{leaf2, spine1, leaf1}, nil, whole, "host-not-read"},
		"one end": {
			[]infer.Box{with(spine1, spine1.Heard[1]), leaf1, leaf2},
			nil, whole,
			"host-not-read; spine1:Ethernet0 lldp-one-sided",
		},
		"contradiction": {
			[]infer.Box{with(spine1, sw("Ethernet0", "leaf2", "etp2"), sw("Ethernet8", "leaf2", "etp2")), leaf1, leaf2},
			nil,
			strings.NewReplacer("=fabric>spine1:Ethernet0", "=host", "=fabric>leaf1:Ethernet8", "=fabric").Replace(whole),
			"host-not-read; leaf1:Ethernet8 lldp-contradiction; spine1:Ethernet0 lldp-contradiction",
		},
		"a port that is not there": {
			[]infer.Box{with(spine1, spine1.Heard[1]), with(leaf1, leaf1.Heard[0], sw("Ethernet8", "spine1", "etp9")), leaf2},
			nil,
			strings.NewReplacer("=fabric>spine1:Ethernet0", "=host", "=fabric>leaf1:Ethernet8", "=fabric").Replace(whole),
			"host-not-read; leaf1:Ethernet8 lldp",
		},
		"a stranger": {
			[]infer.Box{spine1, leaf2, with(leaf1, leaf1.Heard[0], leaf1.Heard[1], sw("Ethernet16", "isp", "xe-0/0/1"))},
			nil,
			strings.Replace(whole, "Ethernet16=host", "Ethernet16=fabric", 1), "host-not-read; leaf1 border",
		},
		"a switch with a role that nobody read": {
			[]infer.Box{leaf1, leaf2},
			[]infer.Role{{"spine*", "spine"}, {"leaf*", "leaf"}},
			strings.NewReplacer("=fabric>spine1:Ethernet0", "=fabric", "=fabric>spine1:Ethernet8", "=fabric", "spine1 spine: Ethernet0=fabric>leaf1:Ethernet8 Ethernet8=fabric>leaf2:Ethernet8\n", "").Replace(whole),
			"switch-not-read; host-not-read; leaf1 border; leaf2 border",
		},
		"a switch with a role, by its MAC address": {
			[]infer.Box{with(leaf1, leaf1.Heard[0], infer.Neighbour{Port: "Ethernet8", System: "spine1", PeerPort: "00:11:22:33:44:55"})},
			[]infer.Role{{"spine1", "spine"}},
			"gpu1 host: rdma0=nic>leaf1:Ethernet0\nleaf1 leaf: Ethernet0=host>gpu1:rdma0 Ethernet8=fabric Ethernet16=host\n",
			"switch-not-read; host-not-read; leaf1 border",
		},
		"a host that forwards, as the command line says": {
			[]infer.Box{with(leaf1, sw("Ethernet0", "gpu1", "rdma0"))},
			[]infer.Role{{"gpu*", "host"}},
			"gpu1 host: rdma0=nic>leaf1:Ethernet0\nleaf1 leaf: Ethernet0=host>gpu1:rdma0 Ethernet8=host Ethernet16=host\n",
			"host-not-read",
		},
		"ports that a host calls alike, and as we would": {
			[]infer.Box{with(leaf1, nic("Ethernet0", "gpu1", "nic-2"), nic("Ethernet8", "gpu1", "nic-2"), nic("Ethernet16", "gpu1", "nic-2"))},
			nil,
			"gpu1 host: nic-2=nic>leaf1:Ethernet0 nic-3=nic>leaf1:Ethernet8 nic-4=nic>leaf1:Ethernet16\n" +
				"leaf1 leaf: Ethernet0=host>gpu1:nic-2 Ethernet8=host>gpu1:nic-3 Ethernet16=host>gpu1:nic-4\n",
			"host-not-read",
		},
		"roles by name": {
			[]infer.Box{leaf2, spine1, leaf1},
			[]infer.Role{{"leaf2", "border-leaf"}, {"gpu*", "storage"}},
			strings.NewReplacer("leaf2 leaf", "leaf2 border-leaf", " host:", " storage:").Replace(whole), "host-not-read",
		},
		"nobody hears": {
			[]infer.Box{box("a", 1), {Device: box("b", 1).Device, NoLLDP: "% LLDP is not enabled"}},
			nil,
			"a switch: Ethernet0=fabric\nb switch: Ethernet0=fabric\n", "no-lldp; no-lldp; role-unknown",
		},
		"two of one name": {
			[]infer.Box{spine1, leaf1, func() infer.Box { b := box("other", 1); b.Device.Hostname = "leaf1"; return b }()},
			nil,
			"gpu1 host: rdma0=nic>leaf1:Ethernet0\nleaf1 leaf: Ethernet0=host>gpu1:rdma0 Ethernet8=fabric>spine1:Ethernet0 Ethernet16=host\n" +
				"other switch: Ethernet0=fabric\nspine1 spine: Ethernet0=fabric>leaf1:Ethernet8 Ethernet8=fabric\n",
			"",
		},
	} {
		t.Run(name, func(t *testing.T) {
			n, l := infer.Wire(tt.boxes, tt.roles)
			if name == "two of one name" {
				if !strings.Contains(rules(l), "other same-name") {
					t.Error(rules(l))
				}
				return
			}
			if d := cmp.Diff(tt.want, wired(n)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			if got := rules(l); got != tt.found {
				t.Errorf("found %s, want %s", got, tt.found)
			}
		})
	}
}

// TestTiers: distance from the hosts makes the roles, whatever the names say; a switch of a leaf's name is one without
// hosts too.
func TestTiers(t *testing.T) {
	n, l := infer.Wire([]infer.Box{
		box("a1", 2, gpu("Ethernet0", "gpu1"), sw("Ethernet8", "b1", "etp1")),
		box("a2", 1, sw("Ethernet0", "b1", "etp2")),
		box("b1", 3, sw("Ethernet0", "a1", "etp2"), sw("Ethernet8", "a2", "etp1"), sw("Ethernet16", "c1", "etp1")),
		box("c1", 1, sw("Ethernet0", "b1", "etp3")),
	}, nil)
	want := map[string]string{"a1": "leaf", "a2": "leaf", "b1": "spine", "c1": "super-spine", "gpu1": "host"}
	got := map[string]string{}
	for _, d := range n.Devices {
		got[d.Name] = d.Role
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if r := rules(l); r != "host-not-read; a2 role-guess" {
		t.Error(r)
	}
}

// TestNotSaid: what an override cannot take away is a finding and no override; the class of notifications is not a
// lossless one, even where their usual code point leads there.
func TestNotSaid(t *testing.T) {
	text := strings.Replace(hundred[:strings.Index(hundred, "overrides:")], "dscp: [26]", "dscp: [26, 48]", 1)
	n := resolved(t, strings.Replace(text, "role: cnp, dscp: [48]", "role: cnp, dscp: [47]", 1))
	leaf3 := n.Device("leaf3")
	p := *leaf3.PolicyOf(leaf3.Port("downlink-1"))
	p.Watchdog, p.Queues[3].ECN = intent.Watchdog{}, intent.ECN{}
	leaf3.Port("downlink-1").Policy = leaf3.Intern(p)
	m, found := mustInfer(t, n)
	if m.Exceptions != 0 || !strings.Contains(m.Text, "role: cnp   # a guess: it is strict, and not lossless\n    dscp: [47]") {
		t.Errorf("%d exceptions\n%s", m.Exceptions, m.Text[strings.Index(m.Text, "classes:"):])
	}
	var says []string
	for _, f := range found {
		if f.Rule == "differs" {
			says = append(says, f.Msg)
		}
	}
	want := []string{
		"priority 3 kmin is none on leaf3:Ethernet0, and the model says 800KB, as 199 other ports have it; likewise priority 3 kmax (3.2MB), priority 3 pmax (20%)",
		"watchdog detect is none on leaf3:Ethernet0, and the model says 200ms, as 199 other ports have it; likewise watchdog restore (400ms), watchdog poll (100ms), watchdog action (drop)",
	}
	if d := cmp.Diff(want, says); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// FuzzWire: whatever neighbours say, the model that comes out of it loads.
func FuzzWire(f *testing.F) {
	f.Add("spine1", "etp1", "Ethernet0", "gpu1", "02:00:00:00:00:01", true)
	f.Add("no", "null", "010", "- {a: b}", "%s\n\x1b[2J", false)
	f.Fuzz(func(t *testing.T, system, port, descr, chassis, other string, forwards bool) {
		boxes := []infer.Box{
			box("leaf1", 2, infer.Neighbour{Port: "Ethernet0", System: system, PeerPort: port, PeerDescr: descr, Chassis: chassis, Forwards: forwards},
				infer.Neighbour{Port: "Ethernet8", System: other, PeerPort: system, PeerDescr: port, Forwards: forwards}),
			box("spine1", 2),
		}
		n, _ := infer.Wire(boxes, nil)
		m, l := infer.Infer(n, infer.Options{Name: "live", File: "fabric.yaml"})
		if l.HasErrors() {
			t.Errorf("%v\n%s", l, m.Text)
		}
	})
}

// TestJudge: an exception that breaks a rule is not written as if it were meant.
func TestJudge(t *testing.T) {
	n := resolved(t, hundred)
	m, found := infer.Infer(n, infer.Options{Name: "live", File: "fabric.yaml", Judge: lint.Check})
	if m.Exceptions != 2 || strings.Contains(m.Text, "1500B") {
		t.Errorf("%d exceptions\n%s", m.Exceptions, m.Text[strings.Index(m.Text, "overrides:"):])
	}
	want := "fabric.yaml:1809:15: warning: differs: mtu is 1500B on leaf50:Ethernet8, and the model says 9216B, as 199 other ports have it\n" +
		"    hint: change the device; an override that says so would break the rule mtu-path"
	if i := slices.IndexFunc(found, func(f diag.Finding) bool { return f.Rule == "differs" }); i < 0 || found[i].String() != want {
		t.Error(found)
	}
	if l := lint.Check(m.Net, m.Fabric); l.HasErrors() {
		t.Error(l)
	}
}
