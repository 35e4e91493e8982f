package lint_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/lint"
)

// TestLineOfStartingValues: what is found of values that nobody wrote is found at the class that has them.
func TestLineOfStartingValues(t *testing.T) {
	_, good := examples(t, "ecn-order")
	class := strings.Replace(good.model, "    ecn: {kmin: 350KB, kmax: 400KB, pmax: 20%}\n", "    fan_in: 4\n    flows: 4096\n    pfc: {xoff: {alpha: 1/128}, xon: 90MB}\n", 1)
	rules := map[string]bool{}
	for _, f := range (example{model: class}).check(t) {
		if f.Pos.IsZero() {
			t.Errorf("without a line: %s", f)
		}
		rules[f.Rule] = true
	}
	for _, rule := range []string{"ecn-before-pfc", "pmax-sufficient", "buffer-sum", "xon-below-xoff"} {
		if !rules[rule] {
			t.Errorf("%s was not tried", rule)
		}
	}
}

// Rules that need a model: what it says about NICs, loads, applications, borders and capacity. Each case is the good
// example with something replaced and appended.
func TestModelRules(t *testing.T) {
	_, good := examples(t, "ecn-order")
	const (
		hosts   = "hosts:  {per_leaf: 2}"
		links   = "    host_leaf:  {speed: 400Gbps, cable: 5m}\n"
		storage = "  - {name: storage, dscp: [28], priority: 4, lossless: true, ecn: {kmin: 800KB, kmax: 3200KB, pmax: 20%}}\n"
		gate    = "  devices: [{name: gate1, role: gate, platform: sonic/sn5600, ports: [{name: in, iface: Ethernet0, role: border}]}]\n"
	)
	for _, c := range []struct {
		name    string
		replace []string
		add     string
		want    []string
	}{
		{name: "sound"},
		{
			name:    "a border port in front of a lossless one: one finding for each way across",
			replace: []string{links, links + "    list: [{a: \"leaf1:out\", b: \"gate1:in\", speed: 400Gbps, cable: 40m}]\n" + gate},
			want: []string{
				`fabric.yaml:12:106: error: border: gate1:in is a border port, but leaf1:out at the other end pauses for priority 3: whoever pauses there stops the fabric
    hint: give leaf1:out role: border too`,
				`fabric.yaml:12:106: warning: border: what enters at border port gate1:in with dscp 26 joins lossless priority 3: it cannot be paused there, and fills buffers that the fabric then pauses for
    hint: re-mark it at the other side or by a filter on the port, and acknowledge border with that reason`,
			},
		},
		{
			name:    "what runs together is said for each role, and acknowledged for one",
			replace: []string{hosts, "hosts: {per_leaf: 2, carries: [rdma, management]}\n  storage: {per_leaf: 1, carries: [rdma, storage]}"},
			add:     "acknowledge: [{rule: shared-port, role: storage, reason: storage nodes have one NIC}]\n",
			want: []string{
				`fabric.yaml:7:33: warning: shared-port: rdma and management share 8 ports on host1 and 7 more: a burst of one holds up the others, and what manages a host is lost with its busiest link
    hint: give each a port of its own, or acknowledge shared-port for the role host with the reason`,
				`fabric.yaml:8:35: acknowledged: shared-port: rdma and storage share 4 ports on storage1 and 3 more: a burst of one holds up the others, and what manages a host is lost with its busiest link
    reason: storage nodes have one NIC`,
			},
		},
		{
			name:    "hosts that were forgotten below large switches",
			replace: []string{"host: 9000B", "host: 1500B"},
			want: []string{
				`fabric.yaml:11:28: warning: mtu-roce: host mtu 1500B on host1 and 7 more takes an RDMA payload of 1024B at most, and the switches would carry 4096B with their mtu 9216B: more packets and more headers for the same data
    fabric.yaml:11:15: switch mtu set here
    hint: raise mtu.host to at least 4192B, or write mtu.roce: 1024B where it is meant to be so`,
			},
		},
		{
			name:    "a class that nobody marks, and two businesses in one",
			replace: []string{"  - name: cnp\n", storage + "  - name: cnp\n"},
			add: "applications:\n  - {name: nccl, business: training, class: training}\n  - {name: ckpt, business: archive, class: training}\n" +
				"  - {name: mpi, business: training, class: training}\n",
			want: []string{
				`fabric.yaml:19:5: warning: marking: class storage is lossless, and no application of the marking table sends in it: its buffers wait for nobody
    hint: list who marks it under applications, or acknowledge marking with the reason`,
				`fabric.yaml:32:44: warning: shared-priority: nccl of training and ckpt of archive share class training and its priority 3: a burst of one pauses the other
    fabric.yaml:31:45: nccl of training sends in it too
    fabric.yaml:32:28: of business archive
    hint: give archive a class of its own, or acknowledge shared-priority with the reason`,
			},
		},
		{
			name: "more lossless priorities than the chip of the user's profile has",
			replace: []string{
				"  - name: cnp\n", storage + "  - name: cnp\n", "leaves: {count: 4, platform: sonic/sn5600}", "leaves: {count: 4, platform: sonic/box}",
			},
			add: `---
apiVersion: fabricctl/v1
kind: Profile
metadata: {name: chip}
asic: {max_lossless: 1, source: vendor, confidence: low}
---
apiVersion: fabricctl/v1
kind: Profile
metadata: {name: sonic/box}
platform: {asic: chip, iface: "Ethernet%d", iface_step: 8, source: vendor, confidence: low}
`,
			want: []string{`fabric.yaml:19:56: error: pfc-prio-count: 2 lossless priorities on leaf1 and 3 more, but chip has PFC for 1 at once
    hint: make 1 class of them lossy`},
		},
		{
			name:    "two NIC models with one code point for notifications, which another class has",
			replace: []string{hosts, "hosts:  {per_leaf: 2, nic: bluefield-3}", "dscp: [48]", "dscp: [46]", "dscp: [26]", "dscp: [26, 48]"},
			want: []string{`fabric.yaml:21:12: error: cnp-dscp-nic: bluefield-3 on host1 and 7 more sends notifications with dscp 48, which is of class training on leaf1 and 5 more and not of class cnp: they wait where data waits
    fabric.yaml:14:16: dscp 48 belongs to class training here
    hint: move dscp 48 from class training to class cnp, or have the NICs send with a code point of it`},
		},
		{
			name:    "a lost spine: half of the capacity is said, a third is not",
			replace: []string{hosts, "hosts:  {per_leaf: 4}"},
			want: []string{`fabric.yaml:9:25: info: oversubscription: leaf1 and 3 more: 1.6Tbps from 4 ports below over 1.6Tbps on 2 uplinks to 2 switches above is 1:1, and 2:1 when one of them is lost
    hint: spread the uplinks over 3 switches or more, so that each carries a third of them or less`},
		},
		{
			name:    "three spines",
			replace: []string{hosts, "hosts:  {per_leaf: 6}", "spines: {count: 2", "spines: {count: 3"},
		},
		{
			name:    "a rail with another ratio than the others is one of its own",
			replace: []string{hosts, "hosts:  {per_leaf: 2, rails: 2}", links, links + "    list: [{a: \"leaf2:uplink-1\", b: \"spine1:downlink-2\", speed: 200Gbps}, {a: \"leaf2:uplink-2\", b: \"spine2:downlink-2\", speed: 200Gbps}]\n"},
			want: []string{`fabric.yaml:11:65: info: oversubscription: leaf2: 800Gbps from 2 ports below over 400Gbps on 2 uplinks to 2 switches above is 2:1, and 4:1 when one of them is lost
    hint: add 2 uplinks of 200Gbps to each for 1:1`, `fabric.yaml:18:17: warning: ecn-scale: kmin 350KB of class training is the same for ports of 200Gbps (leaf2:uplink-1) and of 800Gbps (leaf1:uplink-1): the queue that it allows drains in 14us at the one, in 3.5us at the other
    hint: give the ports of 200Gbps thresholds of their own under overrides, such as kmin 87KB and kmax 100KB, or acknowledge ecn-scale with the reason`},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := strings.NewReplacer(c.replace...).Replace(good.model) + c.add
			f, l := model.Load(fstest.MapFS{"fabric.yaml": {Data: []byte(text)}}, "fabric.yaml")
			sound(t, l)
			n, l := intent.Resolve(f)
			for _, x := range l { // which class NCCL uses is not at issue, nor what nobody chose
				if x.Rule != "nccl-class" && x.Rule != "starting-values" {
					t.Fatal(x)
				}
			}
			if d := cmp.Diff(c.want, texts(f.Acknowledge(lint.Check(n, routed(f))))); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
		})
	}
}
