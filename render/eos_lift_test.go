package render

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/units"
)

// eosFactory is the behaviour of a routed port with nothing but an MTU.
func eosFactory(mtu units.Bytes) intent.Policy {
	p := intent.Policy{Known: intent.SwitchAreas, MTU: mtu, Trust: intent.TrustDSCP}
	for i := range p.DSCP {
		p.DSCP[i] = [8]uint8{1, 0, 2, 3, 4, 5, 6, 7}[i/8]
	}
	for i := range p.TCQueue {
		p.TCQueue[i], p.PFCQueue[i] = uint8(i), uint8(i)
	}
	return p
}

// TestEOSLift holds configurations that nothing here rendered: the notes' example, Arista's AVD collection, and what
// operators type.
func TestEOSLift(t *testing.T) {
	with := func(p intent.Policy, f func(p *intent.Policy)) intent.Policy { f(&p); return p }
	lossless := func(p *intent.Policy, i int) { p.Queues[i].Lossless, p.TCPG[i] = true, uint8(i) }
	for _, tt := range []struct {
		name, text string
		want       map[string]intent.Policy
		says       []string // parts of the warnings, in order
	}{{
		name: "notes, section 1(a)", text: string(read(t, "eos-sample.txt")),
		want: map[string]intent.Policy{"Ethernet1/1": with(eosFactory(9214), func(p *intent.Policy) {
			p.Known &^= intent.AreaSet(intent.AreaECN) // kbytes
			p.DSCP[48] = 6
			lossless(p, 3)
			p.Queues[0] = intent.Queue{Used: true, Weight: 50}
			p.Queues[3] = intent.Queue{Used: true, Weight: 50, Lossless: true, ECN: intent.ECN{On: true, Pmax: 20 * units.OnePercent}}
			p.Queues[6] = intent.Queue{Used: true, Strict: true}
			p.Watchdog = intent.Watchdog{On: true, Detect: 200, Restore: 400, Action: intent.ActionDrop}
		})},
		says: []string{"maximum-threshold 2000 kbytes: the size of this unit is not known", "minimum-threshold 500 kbytes"},
	}, {
		name: "AMD, without a schedule, in segments", text: `
qos map traffic-class 3 to dscp 26
qos profile QOS_ROCE_DCQCN
   qos trust dscp
   priority-flow-control on
   priority-flow-control priority 3 no-drop
   !
   uc-tx-queue 3
      random-detect ecn minimum-threshold 2000 segments maximum-threshold 10000 segments max-mark-probability 20 weight 0
      random-detect ecn count
!
interface Ethernet2/5/1
   load-interval 2
   mtu 9214
   speed 200g-4
   error-correction encoding reed-solomon
   ip address 1.1.122.14/31
   phy link training
   service-profile QOS_ROCE_DCQCN
!
interface Ethernet2/5/5
   mtu 9214
   no switchport
`,
		want: map[string]intent.Policy{
			"Ethernet2/5/1": with(eosFactory(9214), func(p *intent.Policy) {
				p.Known &^= intent.AreaSet(intent.AreaECN)
				lossless(p, 3)
				p.Queues[3].ECN = intent.ECN{On: true, Pmax: 20 * units.OnePercent}
			}),
			"Ethernet2/5/5": eosFactory(9214),
		},
		says: []string{"10000 segments", "2000 segments"},
	}, {
		name: "AVD intended configuration", text: `
!
qos profile test
   qos trust cos
   qos dscp 46
   shape rate 80 percent
   !
   tx-queue 1
      !! Multi-line comment
      !! here.
      bandwidth percent 50
      no priority
   !
   tx-queue 2
      bandwidth percent 10
      priority strict
      random-detect ecn minimum-threshold 320 bytes maximum-threshold 640 bytes max-mark-probability 90 weight 0
   !
   tx-queue 4
      bandwidth guaranteed percent 10
      random-detect drop minimum-threshold 1 kbytes maximum-threshold 10 kbytes drop-probability 100
   !
   mc-tx-queue 4
      bandwidth percent 99
   !
   priority-flow-control on
   priority-flow-control priority 0 no-drop
   priority-flow-control priority 1 drop
   priority-flow-control pause watchdog
   priority-flow-control pause watchdog port action drop
   priority-flow-control pause watchdog port timer timeout 0.05 polling-interval auto recovery-time 1.11 forced
!
interface Ethernet6
   description SRV-POD02_Eth1
   switchport trunk allowed vlan 110-111,210-211
   switchport
   qos cos 2
   service-profile test
   !
   tx-queue 2
      random-detect ecn count
!
priority-flow-control pause watchdog action no-drop
priority-flow-control pause watchdog default timeout 10
`,
		want: map[string]intent.Policy{"Ethernet6": with(eosFactory(0), func(p *intent.Policy) {
			p.Known &^= intent.AreaSet(intent.AreaMTU)
			p.Trust = intent.TrustPCP
			lossless(p, 0)
			p.Queues[1] = intent.Queue{Used: true, Weight: 50}
			p.Queues[2] = intent.Queue{Used: true, Strict: true, Weight: 10, ECN: intent.ECN{On: true, Kmin: 320, Kmax: 640, Pmax: 90 * units.OnePercent}}
			p.Queues[4] = intent.Queue{Drop: true}
			p.Watchdog = intent.Watchdog{On: true, Detect: 50, Restore: 1110, Action: intent.ActionDrop}
		})},
	}, {
		name: "on the interface, over the profile", text: `
qos map dscp 24-26,30 8 to traffic-class 5
qos map traffic-class 5 to tx-queue 4
qos profile P
   qos trust dscp
   !
   uc-tx-queue 4
      no priority
      bandwidth percent 20
      random-detect ecn minimum-threshold 1000 bytes maximum-threshold 2000 bytes max-mark-probability 5 weight 0
   !
   priority-flow-control on
   priority-flow-control priority 4 no-drop
   priority-flow-control priority 5 no-drop
interface Ethernet1
   mtu 9000
   service-profile P
   no qos trust
   priority-flow-control priority 4 drop
   priority-flow-control pause watchdog
   uc-tx-queue 4
      random-detect ecn minimum-threshold 3000 bytes maximum-threshold 4000 bytes max-mark-probability 6 weight 0
      random-detect ecn count
interface Ethernet2
   mtu 9000
   qos trust cos
   priority-flow-control on
   priority-flow-control priority 3 no-drop
   uc-tx-queue 3
      priority strict
interface Ethernet3
   mtu 9000
   no switchport
   service-profile P
   no priority-flow-control
   no priority-flow-control pause watchdog
priority-flow-control pause watchdog default timeout 0.20
priority-flow-control pause watchdog default recovery-time 0.4
priority-flow-control pause watchdog default polling-interval 0.100
priority-flow-control pause watchdog action drop
end
`,
		want: func() map[string]intent.Policy {
			base := with(eosFactory(9000), func(p *intent.Policy) {
				p.DSCP[24], p.DSCP[25], p.DSCP[26], p.DSCP[30], p.DSCP[8] = 5, 5, 5, 5, 5
				p.TCQueue[5] = 4
			})
			ramp := intent.Queue{Used: true, Weight: 20, ECN: intent.ECN{On: true, Kmin: 1000, Kmax: 2000, Pmax: 5 * units.OnePercent}}
			return map[string]intent.Policy{
				"Ethernet1": with(base, func(p *intent.Policy) {
					p.Trust = intent.TrustNone
					p.Queues[4] = ramp
					p.Queues[4].ECN = intent.ECN{On: true, Kmin: 3000, Kmax: 4000, Pmax: 6 * units.OnePercent}
					p.Queues[5] = p.Queues[4]
					lossless(p, 5)
					p.Watchdog = intent.Watchdog{On: true, Detect: 200, Restore: 400, Poll: 100, Action: intent.ActionDrop}
				}),
				"Ethernet2": with(base, func(p *intent.Policy) {
					p.Trust = intent.TrustPCP
					p.Queues[3] = intent.Queue{Used: true, Strict: true}
					lossless(p, 3)
				}),
				"Ethernet3": with(base, func(p *intent.Policy) { p.Queues[4], p.Queues[5] = ramp, ramp }),
			}
		}(),
		says: []string{"traffic class 4 shares tx-queue 4 with lossless priority 5"},
	}, {
		name: "everything off at once", text: `
priority-flow-control all off
interface Ethernet1
   mtu 1500
   no switchport
   priority-flow-control on
   priority-flow-control priority 3 no-drop
interface Ethernet1.100
   mtu 1500
interface Management1
   mtu 1500
`,
		want: map[string]intent.Policy{"Ethernet1": eosFactory(1500)},
		says: []string{"PFC is off on every port"},
	}, {
		name: "what cannot be understood is said", text: `
qos profile P
   uc-tx-queue 3
      random-detect ecn minimum-threshold 1 bytes maximum-threshold 2 bytes weight 3
   priority-flow-control pause watchdog
interface Ethernet1
   mtu 9e3
   no switchport
   service-profile P
interface Ethernet2
   mtu 1500
   no switchport
   service-profile Q
`,
		want: map[string]intent.Policy{
			"Ethernet1": with(eosFactory(0), func(p *intent.Policy) {
				p.Known &^= intent.AreaSet(intent.AreaMTU, intent.AreaECN)
				p.Queues[3].ECN = intent.ECN{On: true, Kmin: 1, Kmax: 2}
				p.Watchdog.On = true
			}),
			"Ethernet2": eosFactory(1500),
		},
		says: []string{
			`"9e3" is not a size`, "no qos profile Q", "no max-mark-probability", "weight 3: marking follows an average",
			`without "polling-interval"`, `without "recovery-time"`, `without "timeout"`, "without an action",
		},
	}} {
		t.Run(tt.name, func(t *testing.T) {
			got, l := eos.Lift(parsed(t, []byte(tt.text)), Facts{Hostname: "leaf1"})
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("policies (-want +got):\n%s", diff)
			}
			var said []string
			for _, f := range l {
				if f.Severity != diag.Info {
					said = append(said, f.Msg)
				}
				if !strings.HasPrefix(f.At, "leaf1") {
					t.Errorf("%v does not say where", f)
				}
			}
			if len(said) != len(tt.says) {
				t.Fatalf("said %q", said)
			}
			for i, part := range tt.says {
				if !strings.Contains(said[i], part) {
					t.Errorf("said %q, want %q", said[i], part)
				}
			}
		})
	}
}

// TestEOSTogether: another traffic class in the queue of a lossless priority is said, on a device of ours too. Until
// some code point leads to it, it is no more than a trap.
func TestEOSTogether(t *testing.T) {
	c := Apply(must(t, eosLeaf()), []Change{{Op: Add, Key: Key{"", eosTC(5), ""}, After: new("3")}})
	for dscp, want := range map[string]string{
		"0": "info: lift: traffic class 5 shares tx-queue 3 with lossless priority 3; no code point leads to it",
		"5": "warning: lift: traffic class 5 shares tx-queue 3 with lossless priority 3",
	} {
		_, l := eos.Lift(Apply(c, []Change{{Op: Modify, Key: Key{"", eosDSCP(63), ""}, After: &dscp}}), Facts{})
		if len(l) != 1 || !strings.HasSuffix(l[0].String(), want) {
			t.Errorf("dscp 63 in traffic class %s: %v", dscp, l)
		}
	}
}
