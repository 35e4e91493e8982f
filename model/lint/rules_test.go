package lint_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/lint"
	"github.com/fabricctl/fabricctl/model/units"
)

// switchPolicy is what every switch port of the sample has: training lossless at 3, notifications at 6, the rest at 0.
func switchPolicy() intent.Policy {
	p := intent.Policy{Known: intent.SwitchAreas, MTU: 9216, Trust: intent.TrustDSCP}
	p.DSCP[26], p.DSCP[48] = 3, 6
	for i := range p.TCQueue {
		p.TCQueue[i], p.PFCQueue[i] = uint8(i), uint8(i)
	}
	p.TCPG[3] = 3
	p.Watchdog = intent.Watchdog{On: true, Detect: 200, Restore: 400, Poll: 100, Action: intent.ActionDrop}
	p.Queues[3] = intent.Queue{Used: true, Lossless: true, Weight: 60, ECN: intent.ECN{On: true, Kmin: 800_000, Kmax: 3_200_000, Pmax: 20 * units.OnePercent}}
	p.Queues[6] = intent.Queue{Used: true, Strict: true}
	p.Queues[0] = intent.Queue{Used: true, Weight: 40}
	return p
}

// clos is a two-tier fabric: each leaf has an uplink to each spine and hosts below.
func clos(spines, leaves, hosts int) *intent.Net {
	n := &intent.Net{Fabric: "pod1"}
	device := func(name, role string, host bool) *intent.Device {
		n.Devices = append(n.Devices, intent.Device{Name: name, Role: role, Host: host, Classes: [8]string{0: "default", 3: "training", 6: "cnp"}, CNP: "cnp"})
		d := &n.Devices[len(n.Devices)-1]
		d.Tier = map[string]int{"leaf": 1, "spine": 2}[role]
		p := switchPolicy()
		if host {
			p = intent.Policy{Known: intent.AreaSet(intent.AreaMTU, intent.AreaNCCL), MTU: 9000}
		}
		d.Intern(p)
		return d
	}
	port := func(d *intent.Device, role, name, peer, peerPort string) {
		speed := units.BitRate(400e9)
		if role == "fabric" {
			speed = 800e9
		}
		d.Ports = append(d.Ports, intent.Port{Name: name, Peer: peer, PeerPort: peerPort, Role: role, Site: "fabric", Speed: speed})
	}
	for l := range leaves {
		for h := range hosts {
			name := fmt.Sprintf("host%d", l*hosts+h+1)
			port(device(name, "host", true), "nic", "nic-1", fmt.Sprintf("leaf%d", l+1), fmt.Sprintf("downlink-%d", h+1))
		}
	}
	for l := range leaves {
		d := device(fmt.Sprintf("leaf%d", l+1), "leaf", false)
		for h := range hosts {
			port(d, "host", fmt.Sprintf("downlink-%d", h+1), fmt.Sprintf("host%d", l*hosts+h+1), "nic-1")
		}
		for s := range spines {
			port(d, "fabric", fmt.Sprintf("uplink-%d", s+1), fmt.Sprintf("spine%d", s+1), fmt.Sprintf("downlink-%d", l+1))
		}
	}
	for s := range spines {
		d := device(fmt.Sprintf("spine%d", s+1), "spine", false)
		for l := range leaves {
			port(d, "fabric", fmt.Sprintf("downlink-%d", l+1), fmt.Sprintf("leaf%d", l+1), fmt.Sprintf("uplink-%d", s+1))
		}
	}
	slices.SortFunc(n.Devices, func(a, b intent.Device) int { return intent.CompareNames(a.Name, b.Name) })
	return n
}

// edit changes the policy of one port, or of all ports of a device when port is "".
func edit(n *intent.Net, device, port string, f func(*intent.Policy)) {
	d := n.Device(device)
	for i := range d.Ports {
		if port == "" || d.Ports[i].Name == port {
			p := *d.PolicyOf(&d.Ports[i])
			f(&p)
			d.Ports[i].Policy = d.Intern(p)
		}
	}
}

// origins gives every device's "fabric" site the same lines.
func origins(n *intent.Net, lines map[intent.Field]*model.Origin) {
	for i := range n.Devices {
		n.Devices[i].Origins = intent.OriginTable{"fabric": lines}
	}
}

func line(n int, lost ...int) *model.Origin {
	o := &model.Origin{Kind: model.FromLine, Pos: diag.Pos{File: "fabric.yaml", Line: n, Col: 11}}
	for _, l := range lost {
		o.Lost = append(o.Lost, diag.Pos{File: "base.yaml", Line: l, Col: 5})
	}
	return o
}

func texts(l diag.List) []string {
	var s []string
	for _, f := range l {
		s = append(s, f.String())
	}
	return s
}

func TestRules(t *testing.T) {
	for _, c := range []struct {
		name string
		edit func(*intent.Net)
		want []string
	}{
		{name: "sound", edit: func(*intent.Net) {}},
		{
			name: "ecn-order with lines, once for all switches",
			edit: func(n *intent.Net) {
				for _, d := range []string{"leaf1", "leaf2", "leaf3", "leaf4", "spine1", "spine2"} {
					edit(n, d, "", func(p *intent.Policy) { p.Queues[3].ECN.Kmin, p.Queues[3].ECN.Kmax = 400_000, 350_000 })
				}
				origins(n, map[intent.Field]*model.Origin{"ecn.3.kmin": line(42), "ecn.3.kmax": line(7, 43)})
			},
			want: []string{`fabric.yaml:42:11: error: ecn-order: kmin 400KB of class training is above its kmax 350KB on leaf1 and 5 more
    fabric.yaml:7:11: kmax set here, over base.yaml:43:5
    hint: raise kmax to at least 400KB, or lower kmin to at most 350KB`},
		},
		{
			name: "ecn-order on one live port",
			edit: func(n *intent.Net) {
				edit(n, "leaf2", "uplink-1", func(p *intent.Policy) { p.Queues[3].ECN.Kmin = 4_000_000 })
			},
			want: []string{`leaf2:uplink-1: error: ecn-order: kmin 4MB of class training is above its kmax 3.2MB on leaf2:uplink-1
    hint: set kmin to 800KB as on the other ports`},
		},
		{
			name: "ecn-order: no kmin, no kmax, no pmax, too much pmax",
			edit: func(n *intent.Net) {
				ecn := func(d string, e intent.ECN) { edit(n, d, "", func(p *intent.Policy) { p.Queues[3].ECN = e }) }
				ecn("leaf1", intent.ECN{On: true, Kmax: 3_200_000, Pmax: 1})
				ecn("leaf2", intent.ECN{On: true, Kmin: 800_000, Pmax: 1})
				ecn("leaf3", intent.ECN{On: true, Kmin: 1, Kmax: 1})
				ecn("leaf4", intent.ECN{On: true, Kmin: 1, Kmax: 1, Pmax: 101 * units.OnePercent})
				ecn("spine1", intent.ECN{On: true, Pmax: 1})
			},
			want: []string{
				`leaf1:downlink-1: error: ecn-order: kmin of class training is 0B with kmax 3.2MB on leaf1: even an empty queue would mark
    hint: set kmin to 800KB`,
				`leaf2:downlink-1: error: ecn-order: kmax of class training is 0B with kmin 800KB on leaf2: there is no ramp
    hint: set kmax to 3.2MB`,
				`leaf3:downlink-1: error: ecn-order: pmax of class training is 0% on leaf3: nothing is marked between kmin 1B and kmax 1B
    hint: set pmax to 20%`,
				`leaf4:downlink-1: error: ecn-order: pmax 101% of class training is above 100% on leaf4
    hint: lower pmax to at most 100%`,
				`spine1:downlink-1: error: ecn-order: kmax of class training is 0B with kmin 0B on spine1: there is no ramp
    hint: set kmin to 800KB and kmax to 3.2MB and pmax to 20% as on the other ports`,
			},
		},
		{
			name: "ecn-on-lossless",
			edit: func(n *intent.Net) {
				for _, d := range []string{"leaf1", "leaf2"} {
					edit(n, d, "", func(p *intent.Policy) { p.Queues[3].ECN = intent.ECN{} })
				}
				for i, speed := range []units.BitRate{100e9, 100e9, 200e9, 200e9} {
					n.Device("leaf1").Ports[i].Speed = speed
				}
				four := func(p *intent.Policy) { p.Queues[4], p.TCPG[4] = intent.Queue{Lossless: true}, 4 }
				edit(n, "spine2", "downlink-1", four)
				edit(n, "leaf1", "uplink-2", four)
				origins(n, map[intent.Field]*model.Origin{"lossless.3": line(14)})
			},
			want: []string{
				`leaf1:uplink-2: error: ecn-on-lossless: priority 4 is lossless, but its queue 4 has no ecn on leaf1 and spine2: pause is the only control
    hint: add ecn: {kmin: 400KB, kmax: 2MB, pmax: 10%} to priority 4 (a starting point for 200Gbps, extrapolated)`,
				`fabric.yaml:14:11: error: ecn-on-lossless: class training is lossless, but its queue 3 has no ecn on leaf1 and leaf2: pause is the only control
    hint: add ecn: {kmin: 150KB, kmax: 1.5MB, pmax: 10%} to class training (a starting point for 100Gbps, published)`,
			},
		},
		{
			name: "ecn-on-lossless: nothing is said where ECN is not known",
			edit: func(n *intent.Net) {
				edit(n, "leaf1", "", func(p *intent.Policy) { p.Known &^= intent.AreaSet(intent.AreaECN); p.Queues[3].ECN = intent.ECN{} })
			},
		},
		{
			name: "pfc-symmetry: a leaf without PFC, which also looks like its spines' fault",
			edit: func(n *intent.Net) {
				edit(n, "leaf1", "", func(p *intent.Policy) { p.Queues[3].Lossless = false })
			},
			want: []string{`leaf1:uplink-1: error: pfc-symmetry: spine1:downlink-1 pauses for priority 3, but leaf1:uplink-1 at the other end for no priority; 1 more link on leaf1 is the same
    hint: make priority 3 lossless on leaf1 too, or on neither end`},
		},
		{
			name: "pfc-symmetry: spines without PFC, one cause",
			edit: func(n *intent.Net) {
				for _, d := range []string{"spine1", "spine2"} {
					edit(n, d, "", func(p *intent.Policy) { p.Queues[3].Lossless = false })
				}
				origins(n, map[intent.Field]*model.Origin{"lossless.3": line(14)})
			},
			want: []string{`fabric.yaml:14:11: error: pfc-symmetry: leaf1:uplink-1 pauses for priority 3, but spine1:downlink-1 at the other end for no priority; 7 more links on spine1 and spine2 are the same
    hint: make priority 3 lossless on spine1 and spine2 too, or on neither end`},
		},
		{
			name: "pfc-symmetry: different priorities",
			edit: func(n *intent.Net) {
				edit(n, "leaf3", "uplink-2", func(p *intent.Policy) { p.Queues[3].Lossless, p.Queues[4], p.TCPG[4] = false, p.Queues[3], 4 })
			},
			want: []string{`spine2:downlink-3: error: pfc-symmetry: leaf3:uplink-2 pauses for priority 4, but spine2:downlink-3 at the other end for priority 3
    hint: make the same priorities lossless on both ends: priorities 3-4`},
		},
		{
			name: "pfc-symmetry: not judged where one end is not known",
			edit: func(n *intent.Net) { edit(n, "spine1", "", func(p *intent.Policy) { *p = intent.Policy{} }) },
		},
		{
			name: "pfc-symmetry: info where one end is in maintenance",
			edit: func(n *intent.Net) {
				n.Device("spine1").State = intent.Maintenance
				edit(n, "spine1", "downlink-2", func(p *intent.Policy) { p.Queues[3].Lossless = false })
			},
			want: []string{`spine1:downlink-2: info: pfc-symmetry: leaf2:uplink-1 pauses for priority 3, but spine1:downlink-2 at the other end for no priority
    hint: make priority 3 lossless on spine1:downlink-2 too, or on neither end`},
		},
		{
			name: "pfc-symmetry: info where the other end is in maintenance",
			edit: func(n *intent.Net) {
				n.Device("leaf2").State = intent.Maintenance
				edit(n, "spine1", "downlink-2", func(p *intent.Policy) { p.Queues[3].Lossless = false })
			},
			want: []string{`spine1:downlink-2: info: pfc-symmetry: leaf2:uplink-1 pauses for priority 3, but spine1:downlink-2 at the other end for no priority
    hint: make priority 3 lossless on spine1:downlink-2 too, or on neither end`},
		},
		{
			name: "pfc-symmetry: ports that do not name each other are no link",
			edit: func(n *intent.Net) {
				n.Device("spine1").Port("downlink-2").PeerPort = "uplink-2"
				edit(n, "spine1", "downlink-2", func(p *intent.Policy) { p.Queues[3].Lossless = false })
			},
		},
		{
			name: "ecn-order: step marking is legal",
			edit: func(n *intent.Net) {
				for i := range n.Devices {
					edit(n, n.Devices[i].Name, "", func(p *intent.Policy) { p.Queues[3].ECN.Kmin = p.Queues[3].ECN.Kmax })
				}
			},
		},
		{
			name: "mtu-path: ports without a peer in the fabric are not part of it",
			edit: func(n *intent.Net) {
				n.Device("leaf1").Port("downlink-1").Peer = ""
				n.Device("leaf2").Port("downlink-1").Peer = "elsewhere"
				edit(n, "leaf1", "downlink-1", func(p *intent.Policy) { p.MTU = 1500 })
				edit(n, "leaf2", "downlink-1", func(p *intent.Policy) { p.MTU = 1500 })
			},
		},
		{
			name: "mtu-path: of equally many the larger one is meant",
			edit: func(n *intent.Net) {
				for _, d := range []string{"leaf1", "leaf2", "leaf3", "leaf4"} {
					for _, port := range []string{"downlink-1", "downlink-2"} {
						n.Device(d).Port(port).Peer = ""
					}
					edit(n, d, "", func(p *intent.Policy) { p.MTU = 9100 })
				}
			},
			want: []string{`leaf1:uplink-1: error: mtu-path: switch mtu is 9100B on leaf1 and 3 more, but 9216B on 8 of 16 switch ports
    hint: set mtu.fabric to 9216B on leaf1 and 3 more`},
		},
		{
			name: "mtu-path: one leaf smaller",
			edit: func(n *intent.Net) { edit(n, "leaf3", "", func(p *intent.Policy) { p.MTU = 1500 }) },
			want: []string{`leaf3:downlink-1: error: mtu-path: switch mtu is 1500B on leaf3, but 9216B on 20 of 24 switch ports
    hint: set mtu.fabric to 9216B on leaf3`},
		},
		{
			name: "mtu-path: one host larger",
			edit: func(n *intent.Net) { edit(n, "host5", "", func(p *intent.Policy) { p.MTU = 9200 }) },
			want: []string{`host5:nic-1: error: mtu-path: host mtu is 9200B on host5:nic-1, but 9000B on 7 of 8 host ports
    hint: set mtu.host to 9000B on host5:nic-1`},
		},
		{
			name: "mtu-path: all too small",
			edit: func(n *intent.Net) {
				for i := range n.Devices {
					d := &n.Devices[i]
					edit(n, d.Name, "", func(p *intent.Policy) { p.MTU = 9000 })
				}
				origins(n, map[intent.Field]*model.Origin{"mtu": line(9)})
			},
			want: []string{`fabric.yaml:9:11: error: mtu-path: switch mtu 9000B on leaf1 and 5 more is below the 9022B that the hosts' mtu 9000B needs (22B more for headers)
    hint: raise mtu.fabric to at least 9022B, or lower mtu.host to at most 8978B`},
		},
		{
			name: "mtu-path: all too small, and the platform ends there",
			edit: func(n *intent.Net) {
				for i := range n.Devices {
					d := &n.Devices[i]
					d.Platform, d.Profile.MaxMTU = "sonic/x", 9010
					for j := range d.Ports {
						d.Ports[j].Cable = 5 * units.Metre
					}
					edit(n, d.Name, "", func(p *intent.Policy) { p.MTU = 9000 })
				}
			},
			want: []string{`leaf1:downlink-1: error: mtu-path: switch mtu 9000B on leaf1 and 5 more is below the 9022B that the hosts' mtu 9000B needs (22B more for headers)
    hint: lower mtu.host to at most 8978B (sonic/x has no more than 9010B)`},
		},
		{
			name: "dscp-total: gaps on one, another mapping on another",
			edit: func(n *intent.Net) {
				edit(n, "leaf2", "", func(p *intent.Policy) {
					for d := 56; d < 64; d++ {
						p.DSCP[d] = intent.Unmapped
					}
				})
				edit(n, "leaf4", "", func(p *intent.Policy) { p.DSCP[26], p.DSCP[27], p.DSCP[48] = 0, 3, 0 })
			},
			want: []string{
				`leaf2:downlink-1: error: dscp-total: dscp 56-63 on leaf2: no class for 8 of 64 code points
    hint: map dscp 56-63 on leaf2 to priority 0 as on the other devices`,
				`leaf4:downlink-1: error: dscp-total: dscp 26-27,48: to priority 0 (26,48), priority 3 (27) on leaf4, but to priority 3 (26), priority 0 (27), priority 6 (48) on 4 devices
    hint: map dscp 26-27,48 on leaf4 as the others do: to priority 3 (26), priority 0 (27), priority 6 (48)`,
			},
		},
		{
			name: "dscp-total: of equally many the fuller one is meant, and what is in maintenance has no vote",
			edit: func(n *intent.Net) {
				for _, d := range []string{"leaf1", "leaf2", "leaf3"} {
					n.Device(d).State = intent.Maintenance
					edit(n, d, "", func(p *intent.Policy) { p.DSCP[26] = 0 })
				}
				n.Device("spine2").State = intent.Absent
				edit(n, "spine2", "", func(p *intent.Policy) { p.DSCP[26] = 0 })
				edit(n, "leaf4", "", func(p *intent.Policy) { p.DSCP[7] = intent.Unmapped })
			},
			want: []string{
				`leaf1:downlink-1: info: dscp-total: dscp 26: to priority 0 on leaf1 and 2 more, but to priority 3 on 1 device
    hint: map dscp 26 on leaf1 and 2 more as the others do: to priority 3`,
				`leaf4:downlink-1: error: dscp-total: dscp 7 on leaf4: no class for 1 of 64 code points
    hint: map dscp 7 on leaf4 to priority 0 as on the other devices`,
			},
		},
		{
			name: "planned and maintenance are info, absent and unused are nothing",
			edit: func(n *intent.Net) {
				for _, d := range []string{"leaf1", "leaf2", "leaf3"} {
					edit(n, d, "downlink-1", func(p *intent.Policy) { p.Queues[3].ECN.Kmin = 4_000_000 })
				}
				n.Device("leaf1").State = intent.Maintenance
				n.Device("leaf2").Port("downlink-1").State = intent.Planned
				n.Device("leaf3").Port("downlink-1").State = intent.Absent
				n.Device("leaf4").Port("downlink-1").Role = "unused"
				edit(n, "leaf4", "downlink-1", func(p *intent.Policy) { p.MTU = 1500 })
			},
			want: []string{`leaf1:downlink-1: info: ecn-order: kmin 4MB of class training is above its kmax 3.2MB on leaf1 and leaf2
    hint: set kmin to 800KB as on the other ports`},
		},
		{
			name: "unknown and ignored areas are not judged",
			edit: func(n *intent.Net) {
				edit(n, "leaf1", "", func(p *intent.Policy) { *p = intent.Policy{} })
				edit(n, "leaf2", "", func(p *intent.Policy) { *p = intent.Policy{Known: intent.SwitchAreas} })
				for i := range n.Device("leaf2").Ports {
					for a := range intent.NumAreas {
						n.Device("leaf2").Ports[i].Manage[a] = intent.Ignore
					}
				}
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := clos(2, 4, 2)
			c.edit(n)
			if d := cmp.Diff(c.want, texts(lint.Check(n, nil))); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
		})
	}
}

// A rollout half way: leaf1 holds PFC, its peers do not yet.
func TestMixedNet(t *testing.T) {
	want, old := clos(2, 4, 2), clos(2, 4, 2)
	for _, d := range []string{"leaf1", "leaf2", "leaf3", "leaf4", "spine1", "spine2"} {
		edit(old, d, "", func(p *intent.Policy) {
			p.Queues[3].Lossless, p.Queues[3].ECN = false, intent.ECN{}
		})
	}
	check := func(done ...string) []string {
		return texts(lint.Check(intent.Mix(old, want, func(d string) bool { return slices.Contains(done, d) }), nil))
	}
	if got := append(check(), check("leaf1", "leaf2", "leaf3", "leaf4", "spine1", "spine2")...); len(got) > 0 {
		t.Errorf("before and after: got %q, want no finding", got)
	}
	if d := cmp.Diff([]string{`spine1:downlink-1: error: pfc-symmetry: leaf1:uplink-1 pauses for priority 3, but spine1:downlink-1 at the other end for no priority; 1 more link on spine1 and spine2 is the same
    hint: make priority 3 lossless on spine1 and spine2 too, or on neither end`}, check("leaf1")); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

// Nothing that Check is given is changed, and the order of ports does not matter.
func TestCheckIsStable(t *testing.T) {
	n := clos(2, 4, 2)
	edit(n, "leaf2", "", func(p *intent.Policy) { p.MTU = 1500; p.DSCP[26] = 0 })
	edit(n, "spine1", "", func(p *intent.Policy) { p.Queues[3].Lossless = false })
	first := texts(lint.Check(n, nil))
	for range 20 {
		if d := cmp.Diff(first, texts(lint.Check(n, nil))); d != "" {
			t.Fatalf("a second look differs (-first +second)\n%s", d)
		}
	}
}

func TestLosslessClassesWithoutNames(t *testing.T) {
	n := clos(1, 1, 0)
	for i := range n.Devices {
		n.Devices[i].Classes = [8]string{}
	}
	edit(n, "leaf1", "", func(p *intent.Policy) { p.Queues[3].ECN.Kmin = 4_000_000 })
	want := []string{`leaf1:uplink-1: error: ecn-order: kmin 4MB of priority 3 is above its kmax 3.2MB on leaf1:uplink-1
    hint: raise kmax to at least 4MB, or lower kmin to at most 3.2MB`}
	if d := cmp.Diff(want, texts(lint.Check(n, nil))); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

// BenchmarkCheck is a fabric of 64 spines, 128 leaves and 4096 hosts: 24,576 ports.
func BenchmarkCheck(b *testing.B) {
	n := clos(64, 128, 32)
	edit(n, "leaf7", "", func(p *intent.Policy) { p.MTU = 1500; p.Queues[3].Lossless = false })
	for b.Loop() {
		lint.Check(n, nil)
	}
}

// TestEqualHalves: where half of the ports of a kind differ from the other half, what the rest of the fabric does decides.
func TestEqualHalves(t *testing.T) {
	n := clos(2, 2, 2)
	edit(n, "leaf1", "", func(p *intent.Policy) { p.Queues[3].ECN.Kmin = 123_456 })
	for _, f := range lint.Check(n, nil) {
		if f.Rule == "ecn-same" && !strings.HasPrefix(f.Msg, "kmin 123456B of class training on leaf1, but 800KB on ") {
			t.Errorf("%s", f)
		}
	}
}
