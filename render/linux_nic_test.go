package render

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/profiles"
)

// roceHost is a host with two NICs in a fabric with three classes, everything owned.
func roceHost(nic string, edit func(d *intent.Device, p *intent.Policy)) intent.Device {
	d := intent.Device{
		Name: "host1", Fabric: "pod1", Platform: "linux/generic", Host: true, CNP: "cnp",
		Classes: [8]string{0: "default", 3: "training", 6: "cnp"}, NCCL: intent.HostNCCL{Socket: "=eth0", Range: "192.0.2.0/24"},
	}
	for i := range d.Manage {
		d.Manage[i] = intent.Own
	}
	p := intent.Policy{
		Known: intent.HostAreas, MTU: 9000, Trust: intent.TrustDSCP, Cable: 5 * units.Metre,
		RoCE: intent.RoCE{On: true, Mode: 2, ToS: 104, TrafficClass: -1},
		CC:   intent.Congestion{On: true, Priorities: 1 << 3, HasCNP: true, CNPDSCP: 48, CNPPriority: 6},
		NCCL: intent.NCCL{On: true, TrafficClass: 104, Timeout: 20, RetryCount: 7, HCA: true, RoCE: 2, Family: 4},
	}
	for i := range p.TCQueue {
		p.TCQueue[i], p.PFCQueue[i] = uint8(i), uint8(i)
	}
	p.DSCP[26], p.DSCP[48], p.TCPG[3] = 3, 6, 3
	p.Queues[0] = intent.Queue{Used: true, Weight: 40}
	p.Queues[3] = intent.Queue{Used: true, Weight: 60, Lossless: true}
	p.Queues[6] = intent.Queue{Used: true, Strict: true}
	for i := range 2 {
		d.Ports = append(d.Ports, intent.Port{Name: fmt.Sprintf("nic-%d", i+1), Iface: fmt.Sprintf("rdma%d", i), Site: "host", NIC: nic, Rail: 2 - i, Manage: d.Manage})
	}
	if edit != nil {
		edit(&d, &p)
	}
	for i := range d.Ports {
		d.Ports[i].Policy = d.Intern(p)
	}
	return d
}

// The whole of what a host is told, and read back as the same.
func TestLinuxRoCEText(t *testing.T) {
	d := roceHost("connectx-7", func(d *intent.Device, p *intent.Policy) {
		d.Ports[0].RDMA, d.Ports[1].RDMA = "mlx5_0", "mlx5_1"
		p.System = intent.System{ReadRequest: 4096, IRQ: intent.IRQLocal, RingRX: 8192, RingTX: 4096, FEC: intent.FECRS, Memlock: true}
		p.CC.SetParam(profiles.CCIndex("ai_rate"), 10)
		for i := range p.Queues {
			p.Queues[i].Buffer = intent.Buffer{On: true, Reserved: 65536}
		}
		p.Queues[3].Buffer.Reserved = 262144
	})
	c, l := linux.Render(d, Facts{})
	if len(l) > 0 {
		t.Fatal(l)
	}
	text := linux.Text(c)
	checkGolden(t, "linux-roce.txt", text)
	back, l := linux.Parse(text)
	if diff := cmp.Diff(c.lines(), back.lines()); diff != "" || len(l) > 0 {
		t.Errorf("%v (-rendered +parsed):\n%s", l, diff)
	}
	lifted, l := linux.Lift(back, Facts{})
	if diff := cmp.Diff(behaviour(&d), lifted); diff != "" || len(l) > 0 {
		t.Errorf("%v (-want +lifted):\n%s", l, diff)
	}
}

// What a host is told comes back as the same behaviour, whichever words its driver has for it.
func TestLinuxComesBack(t *testing.T) {
	for nic, unknown := range map[string]intent.Areas{"": 0, "connectx-7": 0, "bcm57508": intent.AreaSet(intent.AreaBuffer)} {
		d := roceHost(nic, func(d *intent.Device, _ *intent.Policy) { d.Ports[0].RDMA, d.Ports[1].RDMA = "a0", "a1" })
		c, l := linux.Render(d, Facts{})
		if l.HasErrors() {
			t.Errorf("%q: %v", nic, l)
		}
		f := Facts{Hostname: "host1"}
		if nic == "bcm57508" {
			f.NICs = linuxTestNICs("bnxt_en", "bnxt")[:2]
			f.NICs[0].RDMA, f.NICs[1].RDMA = "a0", "a1"
		}
		lifted, l := linux.Lift(c, f)
		for iface, want := range behaviour(&d) {
			if diff := cmp.Diff(want.Only(^unknown), lifted[iface]); diff != "" || len(l) > 0 {
				t.Errorf("%q: %s: %v (-want +lifted):\n%s", nic, iface, l, diff)
			}
		}
	}
}

// fromLine gives a value of all ports a line, or a default.
func fromLine(d *intent.Device, f intent.Field, kind model.Kind) {
	if d.Origins == nil {
		d.Origins = intent.OriginTable{"host": {}}
	}
	d.Origins["host"][f] = &model.Origin{Kind: kind, Pos: diag.Pos{File: "fabric.yaml", Line: 7, Col: 3}}
}

// What a NIC cannot do is said with its reason, and what belongs to it is not rendered.
func TestLinuxCannot(t *testing.T) {
	one := func(change func(n *HostNIC)) Facts {
		f := Facts{Hostname: "host1", NICs: linuxTestNICs("mlx5_core", "mlx5")[:2]}
		change(&f.NICs[0])
		return f
	}
	without := func(knobs ...string) func(*HostNIC) {
		return func(n *HostNIC) {
			n.Knobs = slices.DeleteFunc(slices.Clone(n.Knobs), func(k string) bool { return slices.Contains(knobs, k) })
		}
	}
	for _, tt := range []struct {
		name  string
		nic   string
		edit  func(d *intent.Device, p *intent.Policy)
		facts Facts
		say   []string // parts of the findings, in order; a part that starts with "hint: " is of the hint
		gone  []string // keys that must not be there
		have  []string // "key = value" that must be there
	}{
		{
			name: "priorities above the traffic classes", nic: "e810", facts: Facts{},
			edit: func(_ *intent.Device, p *intent.Policy) { p.CC.HasCNP = false },
			say:  []string{"error: host1 nic-1: rdma0 (e810) takes a priority as one of its 4 traffic classes: class cnp has priority 6", "hint: give it priority 1, which no class has", "error: host1 nic-2: "},
			gone: []string{"app|rdma0|dscp 48"},
			have: []string{"app|rdma0|dscp 26 = 3", "app|rdma0|dscp 12 = 0", "ets|rdma0|prio-tc = 0:0 1:1 2:2 3:3 4:0 5:0 6:0 7:0", "flag|rdma0|fw-lldp-agent = off", "pfc|rdma0|priorities = 3"},
		},
		{
			name: "a part of what the driver sets as one", nic: "e810",
			edit: func(d *intent.Device, p *intent.Policy) {
				d.Classes[6], p.Queues[6], p.DSCP[48], p.CC.HasCNP = "", intent.Queue{}, 0, false
				for i := range d.Ports {
					d.Ports[i].Manage[intent.AreaScheduler] = intent.Observe
				}
			},
			say: []string{
				"error: host1 nic-1: the first code point that rdma0 (e810) maps sets its ETS back, and scheduler is not owned", "hint: own maps, pfc and scheduler together",
				"error: host1 nic-2: the first code point",
			},
		},
		{
			name: "nothing of DCB", facts: Facts{Hostname: "host1", NICs: []HostNIC{
				{Name: "rdma0", Driver: "virtio_net", Model: "1af4:1041", Personality: "generic", Knobs: []string{"pause"}, GID: -1},
				{Name: "rdma1", Driver: "virtio_net", Model: "1af4:1041", Personality: "generic", GID: -1},
			}},
			say:  []string{"error: host1 nic-1: rdma0 (virtio_net, 1af4:1041): ", "hint: own only mtu and host-nccl there", "error: host1 nic-2: rdma1 (virtio_net, 1af4:1041): ", "info: host1 nic-2: rdma1 (virtio_net, 1af4:1041) has no RDMA device"},
			gone: []string{"pfc|rdma0|priorities", "pause|rdma0|send", "nccl|/etc/nccl.conf|NCCL_IB_HCA"},
			have: []string{"link|rdma0|mtu = 9000", "nccl|/etc/nccl.conf|NCCL_IB_TC = 104"},
		},
		{
			name: "a virtual function", facts: one(func(n *HostNIC) { n.VFOf = "ens1f0" }),
			say:  []string{"error: host1 nic-1: rdma0 is a virtual function of ens1f0, and the physical one sets its QoS", "hint: bind the port to ens1f0"},
			gone: []string{"pfc|rdma0|priorities"}, have: []string{"pfc|rdma1|priorities = 3"},
		},
		{
			name: "a card that sets itself", facts: one(func(n *HostNIC) { n.DPU = "it is in DPU mode" }),
			say: []string{"error: host1 nic-1: QoS of rdma0 is not this host's to set: it is in DPU mode", "hint: set it on the card itself"},
		},
		{
			name: "not a NIC", facts: Facts{Hostname: "host1", NICs: linuxTestNICs("mlx5_core", "mlx5")[:1]},
			say: []string{"warning: host1 nic-2: rdma1 has no NIC below it that the host knows", "hint: bind the port to a NIC"},
		},
		{
			name: "no map", facts: one(without("app")),
			say:  []string{"error: host1 nic-1: rdma0 (mlx5_core) has no table of code points"},
			gone: []string{"app|rdma0|dscp 26"}, have: []string{"pfc|rdma0|priorities = 3"},
		},
		{
			name: "no PFC", facts: one(without("pfc")),
			say: []string{"error: host1 nic-1: rdma0 (mlx5_core) has no PFC, and priority 3 is lossless"}, gone: []string{"pfc|rdma0|priorities", "pfc|rdma0|delay"},
		},
		{name: "no ETS", facts: one(without("ets")), say: []string{"error: host1 nic-1: rdma0 (mlx5_core) has no ETS"}, gone: []string{"ets|rdma0|prio-tc"}},
		{
			name: "no knob that a line asks for", facts: one(without("cc.ai_rate")),
			edit: func(d *intent.Device, p *intent.Policy) {
				p.CC.SetParam(profiles.CCIndex("ai_rate"), 10)
				fromLine(d, "cc.ai_rate", model.FromLine)
			},
			say: []string{"error: host1 nic-1: rdma0 (mlx5_core) has no knob for cc ai_rate, which is to be 10", "hint: take a NIC that can, or do not own host-cc there"}, gone: []string{"cc|rdma0|ai_rate"}, have: []string{"cc|rdma1|ai_rate = 10"},
		},
		{
			name: "a value that the knob does not take",
			edit: func(d *intent.Device, p *intent.Policy) {
				p.CC.SetParam(profiles.CCIndex("threshold"), 99)
				fromLine(d, "cc.threshold", model.FromLine)
			},
			facts: Facts{Hostname: "host1", NICs: linuxTestNICs("mlx5_core", "mlx5")[:2]},
			say:   []string{"error: host1 nic-1: rdma0 (mlx5_core) does not take 99 for cc threshold: 99 is not from 1 to 31", "error: host1 nic-2: "},
		},
		{
			name: "CNPs that are as they are", facts: one(without("cc.cnp-dscp")),
			say: []string{"warning: host1 nic-1: rdma0 (mlx5_core) has no knob for cc cnp-dscp: its CNPs have what its driver or firmware chose, and are to have 48"}, have: []string{"cc|rdma0|cnp-priority = 6"},
		},
		{name: "one switch for all priorities", nic: "bcm57508", have: []string{"cc|rdma0|enable = on"}},
		{
			name: "no knob that nobody asked for", facts: one(without("cc.enable", "roce.mode")),
			edit: func(d *intent.Device, _ *intent.Policy) {
				fromLine(d, "cc.priorities", model.FromFormula)
				fromLine(d, "roce.mode", model.FromDefault)
			},
			say: []string{"info: host1 nic-1: rdma0 (mlx5_core) has no knob for cc enable, which is to be 3", "info: host1 nic-1: rdma0 (mlx5_core) has no knob for roce mode, which is to be v2"},
		},
		{
			name: "a forced class where nothing can force", facts: one(without("roce.traffic-class")),
			edit: func(d *intent.Device, p *intent.Policy) {
				p.RoCE.TrafficClass = 104
				fromLine(d, "roce.traffic_class", model.FromLine)
			},
			say: []string{"error: host1 nic-1: rdma0 (mlx5_core) has no knob for roce traffic-class, which is to be 104"},
		},
		{name: "no class is forced where nothing can", facts: one(without("roce.traffic-class"))},
		{
			name: "what is observed does not stop anything", facts: one(without("pfc", "app", "ets")),
			edit: func(d *intent.Device, _ *intent.Policy) {
				for i := range d.Ports {
					d.Ports[i].Manage = intent.Manage{}
				}
			},
			say: []string{"info: host1 nic-1: rdma0 (mlx5_core) has no Data Center Bridging"},
		},
		{
			name: "a cable too long", nic: "connectx-7", edit: func(_ *intent.Device, p *intent.Policy) { p.Cable = 1200 * units.Metre },
			say: []string{"error: host1 nic-1: rdma0 (connectx-7) takes cables of up to 999 m, this one has 1200m", "error: host1 nic-2"}, gone: []string{"pfc|rdma0|delay"},
		},
		{name: "a delay that says nothing of cables", nic: "bcm57508", gone: []string{"pfc|rdma0|delay"}},
		{
			name: "in a bond", facts: one(func(n *HostNIC) { n.Bond = "bond0" }),
			have: []string{"link|bond0|mtu = 9000", "link|rdma0|mtu = 9000", "pfc|rdma0|priorities = 3"}, gone: []string{"pfc|bond0|priorities"},
		},
		{
			name: "in a bond that the driver does not like", facts: one(func(n *HostNIC) { n.Bond, n.Driver, n.Personality = "bond0", "ice", "ice" }),
			say: []string{"error: host1 nic-1: rdma0 (ice) is in bond0, and its driver refuses DCB in a bond", "hint: take it out of the bond"}, have: []string{"link|bond0|mtu = 9000"},
		},
		{
			name: "weights that are no percents", nic: "connectx-7",
			edit: func(_ *intent.Device, p *intent.Policy) { p.Queues[0].Weight, p.Queues[3].Weight = 1, 2 },
			say:  []string{"info: ETS has percents: the weights 1, 2 are 33%, 67% on rdma0 (connectx-7)", "info: "}, have: []string{"ets|rdma0|bandwidth = 0:33 1:0 2:0 3:67 4:0 5:0 6:0 7:0"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := roceHost(tt.nic, tt.edit)
			c, l := linux.Render(d, tt.facts)
			l = slices.DeleteFunc(l, func(f diag.Finding) bool { return f.Rule == "bound-on-host" })
			i := 0
			for _, part := range tt.say {
				if hint, ok := strings.CutPrefix(part, "hint: "); ok {
					if i == 0 || i > len(l) || !strings.Contains(l[i-1].Hint, hint) {
						t.Errorf("the hint of finding %d is not %q", i, hint)
					}
					continue
				}
				if i >= len(l) || !strings.HasPrefix(l[i].Severity.String()+": "+l[i].Msg, part) {
					t.Errorf("finding %d is not %q", i+1, part)
				}
				i++
			}
			if i != len(l) || t.Failed() {
				t.Errorf("%d findings, want %d:\n%s", len(l), i, fmt.Sprint(l))
			}
			own := linux.Owns(d, tt.facts)
			for _, s := range c {
				if slices.Contains(tt.gone, s.Key.String()) {
					t.Errorf("%s is rendered", s.Key)
				}
			}
			for _, k := range tt.gone {
				if part := strings.SplitN(k, "|", 3); own(Key{part[0], part[1], part[2]}) && part[0] != "app" {
					t.Errorf("%s is owned", k)
				}
			}
			for _, line := range tt.have {
				if !slices.ContainsFunc(c, func(s Setting) bool { return s.Key.String()+" = "+s.Value == line }) {
					t.Errorf("%s is not rendered", line)
				}
			}
		})
	}
}

// A NIC with few traffic classes: lossless priorities and CNPs have one each, what is left shares.
func TestLinuxPacked(t *testing.T) {
	four := profiles.Personality{Name: "four", Status: profiles.Managed, TrafficClasses: 4, TSA: []string{"strict", "ets"}}
	f := Facts{Hostname: "host1", NICs: linuxTestNICs("four", "four")[:2], Personalities: []profiles.Personality{four}}
	d := roceHost("", func(d *intent.Device, p *intent.Policy) {
		d.Classes[1], d.Classes[4] = "backup", "logs"
		p.Queues[1] = intent.Queue{Used: true, Weight: 10}
		p.Queues[4] = intent.Queue{Used: true, Weight: 10}
		p.Queues[0].Weight = 20
	})
	c, l := linux.Render(d, f)
	if len(l) != 2 || l[0].Severity != diag.Info || !strings.Contains(l[0].Msg, "rdma0 (four) has 4 traffic classes: priorities 0,4 share one") {
		t.Errorf("%v", l)
	}
	for field, want := range map[string]string{
		"prio-tc": "0:0 1:1 2:0 3:2 4:0 5:0 6:3 7:0", "tsa": "0:ets 1:ets 2:ets 3:strict 4:strict 5:strict 6:strict 7:strict", "bandwidth": "0:30 1:10 2:60 3:0 4:0 5:0 6:0 7:0",
	} {
		if got := c.Get("ets", "rdma0", field); got != want {
			t.Errorf("%s is %s, want %s", field, got, want)
		}
	}
	lifted, _ := linux.Lift(c, f)
	if q := lifted["rdma0"].Queues; !q[3].Lossless || q[3].Weight != 60 || !q[6].Strict || q[1].Weight != 10 {
		t.Errorf("%+v", q)
	}
	d = roceHost("", func(d *intent.Device, p *intent.Policy) {
		for i, name := range []string{"default", "a", "b", "training"} {
			d.Classes[i] = name
			p.Queues[i] = intent.Queue{Used: true, Weight: 25, Lossless: i > 0}
		}
	})
	if _, l = linux.Render(d, f); len(l) != 2 || l[0].Severity != diag.Error || !strings.Contains(l[0].Msg, "the lossless priorities and the CNPs need 4, and the others one more") {
		t.Errorf("%v", l)
	}
}

// What is the same although it is spelled differently, and what is not.
func TestLinuxSame(t *testing.T) {
	f := Facts{NICs: []HostNIC{{Name: "rdma0", Personality: "mlx5"}, {Name: "ens1", Personality: "ice"}}}
	v := func(s string) *string { return &s }
	for _, tt := range []struct {
		k    Key
		a, b *string
		same bool
	}{
		{Key{"dcbx", "rdma0", "mode"}, v("host ieee"), v("host cee ieee"), true},
		{Key{"dcbx", "rdma0", "mode"}, v("host ieee"), v("cee ieee"), false},
		{Key{"dcbx", "rdma0", "mode"}, v("host ieee"), v("host lld-managed ieee"), false},
		{Key{"dcbx", "rdma0", "mode"}, v("host ieee"), nil, false},
		{Key{"pause", "rdma0", "send"}, v("off"), nil, true},
		{Key{"pause", "rdma0", "send"}, v("on"), nil, false},
		{Key{"roce", "rdma0", "traffic-class"}, v("-1"), nil, true},
		{Key{"roce", "rdma0", "traffic-class"}, v("-1"), v("104"), false},
		{Key{"app", "rdma0", "dscp 26"}, v("3"), nil, false}, // mlx5 needs all 64
		{Key{"app", "rdma0", "dscp 26"}, v("3"), v("3 5"), false},
		{Key{"pfc", "rdma0", "priorities"}, v("3"), v("3"), true},
		{Key{"pfc", "rdma0", "priorities"}, v("none"), nil, false},
		{Key{"nccl", NCCLPath, "NCCL_IB_TC"}, v("0x68"), v("104"), true},
		{Key{"nccl", NCCLPath, "NCCL_IB_HCA"}, v("=mlx5_0"), v("=mlx5_0:1"), false},
	} {
		if got := linux.Same(tt.k, tt.a, tt.b, f); got != tt.same {
			t.Errorf("%s: %v", tt.k, got)
		}
	}
}

// What changes do to the links, by driver, and to the jobs on them.
func TestLinuxRisks(t *testing.T) {
	f := Facts{NICs: linuxTestNICs("mlx5_core", "mlx5")[:3]}
	f.NICs[0].QPs, f.NICs[1].QPs, f.NICs[2].QPs = 4, 3, -1
	change := func(scope, object, field string) Change {
		return Change{Op: Modify, Key: Key{scope, object, field}, Before: new("1"), After: new("2")}
	}
	for _, tt := range []struct {
		cs   []Change
		f    Facts
		want []string
	}{
		{[]Change{change("app", "rdma0", "dscp 26"), change("roce", "rdma0", "tos"), change("cc", "rdma0", "ai_rate"), change("irq", "rdma0", "affinity")}, f, nil},
		{
			[]Change{change("pfc", "rdma0", "priorities"), change("pfc", "rdma1", "priorities"), change("fec", "rdma1", "mode"), change("link", "rdma1", "mtu")},
			f,
			[]string{
				"flap [rdma0] 4: mlx5_core takes the link down and up to set pfc: connections over it may fail",
				"flap [rdma1] 3: mlx5_core takes the link down and up to set fec, pfc: connections over it may fail",
			},
		},
		{[]Change{change("pfc", "rdma2", "priorities"), change("pfc", "rdma0", "priorities")}, f, []string{"flap [rdma0 rdma2] -1: mlx5_core takes the link down and up to set pfc: connections over it may fail"}},
		{
			[]Change{change("link", "eth0", "mtu"), change("fec", "eth0", "mode")},
			Facts{NICs: []HostNIC{{Name: "eth0", Driver: "bnxt_en", Personality: "bnxt"}}},
			[]string{"flap [eth0] 0: bnxt_en takes the link down and up to set fec; bnxt_en closes and opens the port to set mtu: connections over it may fail"},
		},
		{ // the jobs on a bond are those on its members
			[]Change{change("link", "bond0", "mtu"), change("fec", "eth1", "mode")},
			Facts{NICs: []HostNIC{{Name: "eth0", Bond: "bond0", RDMA: "bnxt_re0", QPs: 5}, {Name: "eth1", Bond: "bond0", QPs: 2}}},
			[]string{"flap [bond0] 5: the driver may close", "flap [eth1] 2: the driver takes the link down"},
		},
		{[]Change{change("link", "eth0", "mtu")}, Facts{}, []string{"flap [eth0] 0: the driver may close and open the port to set mtu (whether it does is not known): connections over it may fail"}},
		{[]Change{change("cc", "rdma0", "algorithm")}, f, []string{"refused [] 0: which algorithm"}},
		{[]Change{change("nccl", NCCLPath, "A"), {Op: Add, Key: linuxMemlock, After: new("unlimited")}}, f, []string{"hitless [] 0: jobs read", "hitless [] 0: the limit of locked memory counts"}},
	} {
		risks := linux.Risk(nil, tt.cs, tt.f)
		if len(risks) != len(tt.want) {
			t.Errorf("%v: %+v", keysOf(tt.cs), risks)
			continue
		}
		for i, r := range risks {
			if got := fmt.Sprintf("%s %v %d: %s", r.Class, r.Ports, r.Jobs, r.Why); !strings.HasPrefix(got, tt.want[i]) {
				t.Errorf("%v:\n got %s\nwant %s", keysOf(tt.cs), got, tt.want[i])
			}
		}
	}
}

// The file of NCCL names NICs by rail, each exactly, and the GID index only where the model's NCCL needs one.
func TestLinuxNCCL(t *testing.T) {
	facts := func(edit func(nics []HostNIC)) Facts {
		f := Facts{Hostname: "host1", NICs: linuxTestNICs("mlx5_core", "mlx5")[:2]}
		if edit != nil {
			edit(f.NICs)
		}
		return f
	}
	old := func(d *intent.Device, p *intent.Policy) {
		p.NCCL.RoCE, p.NCCL.Family, p.NCCL.GID = 0, 0, intent.GIDOfHost
		fromLine(d, "nccl.gid_index", model.FromLine)
	}
	for _, tt := range []struct {
		name string
		edit func(*intent.Device, *intent.Policy)
		f    Facts
		file string // lines about NICs
		say  string
	}{
		{"rail 1 first", nil, facts(nil), "NCCL_IB_ADDR_FAMILY=AF_INET NCCL_IB_ADDR_RANGE=192.0.2.0/24 NCCL_IB_HCA==mlx5_1:1,mlx5_0:1 NCCL_IB_ROCE_VERSION_NUM=2 NCCL_SOCKET_IFNAME==eth0", ""},
		{"one device for a bond", nil, facts(func(n []HostNIC) { n[0].RDMA, n[1].RDMA = "mlx5_bond_0", "mlx5_bond_0" }), "NCCL_IB_ADDR_FAMILY=AF_INET NCCL_IB_ADDR_RANGE=192.0.2.0/24 NCCL_IB_HCA==mlx5_bond_0:1 NCCL_IB_ROCE_VERSION_NUM=2 NCCL_SOCKET_IFNAME==eth0", ""},
		{"before the host is asked", nil, Facts{}, "NCCL_IB_ADDR_FAMILY=AF_INET NCCL_IB_ADDR_RANGE=192.0.2.0/24 NCCL_IB_ROCE_VERSION_NUM=2 NCCL_SOCKET_IFNAME==eth0", "info: bound-on-host: the host alone knows the RDMA device of rdma1"},
		{"an old NCCL", old, facts(nil), "NCCL_IB_ADDR_RANGE=192.0.2.0/24 NCCL_IB_GID_INDEX=5 NCCL_IB_HCA==mlx5_1:1,mlx5_0:1 NCCL_SOCKET_IFNAME==eth0", ""},
		{"an old NCCL and two indices", old, facts(func(n []HostNIC) { n[1].GID = 3 }), "NCCL_IB_ADDR_RANGE=192.0.2.0/24 NCCL_IB_HCA==mlx5_1:1,mlx5_0:1 NCCL_SOCKET_IFNAME==eth0", "error: not-expressible: host1 nic-2: NCCL_IB_GID_INDEX is one for all NICs, and the address of rdma1 has index 3 where that of rdma0 has 5"},
		{"an old NCCL and no address", old, facts(func(n []HostNIC) { n[1].GID, n[1].GIDWhy = -1, "it has no IPv4 address" }), "NCCL_IB_ADDR_RANGE=192.0.2.0/24 NCCL_IB_HCA==mlx5_1:1,mlx5_0:1 NCCL_SOCKET_IFNAME==eth0", "error: not-expressible: host1 nic-2: NCCL_IB_GID_INDEX is to be that of rdma1 (mlx5_core): it has no IPv4 address"},
	} {
		d := roceHost("", tt.edit)
		c, l := linux.Render(d, tt.f)
		var file []string
		for _, s := range c {
			if s.Key.Scope == "nccl" && s.Key.Field != ncclTC && s.Key.Field != ncclTimeout && s.Key.Field != ncclRetry {
				file = append(file, s.Key.Field+"="+s.Value)
			}
		}
		said := ""
		for _, x := range l {
			said += x.Severity.String() + ": " + x.Rule + ": " + x.Msg
		}
		if got := strings.Join(file, " "); got != tt.file || !strings.HasPrefix(said, tt.say) || (tt.say == "") != (said == "") {
			t.Errorf("%s:\n%s\nwant\n%s\n%q", tt.name, got, tt.file, said)
		}
		lifted, l := linux.Lift(c, tt.f)
		if len(l) > 0 {
			t.Errorf("%s: %v", tt.name, l)
		}
		if p := lifted["rdma0"].NCCL; tt.say == "" && p != d.Policies[0].NCCL {
			t.Errorf("%s: %+v, want %+v", tt.name, p, d.Policies[0].NCCL)
		}
	}
}

// What a host says of itself that is not as the model would have it.
func TestLinuxLiftSays(t *testing.T) {
	const text = `link a mtu 1500
dcbx a mode cee ieee
flag a fw-lldp-agent on
ets a prio-tc 0:0 1:1 2:2 3:3 4:4 5:5 6:6 7:7
ets a tsa 0:cbs 1:strict 2:strict 3:strict 4:strict 5:strict 6:strict 7:strict
ets a bandwidth 0:0 1:0 2:0 3:0 4:0 5:0 6:0 7:0
ets a willing on
app a dscp 26 3 5
app a ethertype 35093 3
fec a mode rs baser
cc a algorithm magic
irq a affinity 0-3
file /etc/nccl.conf
NCCL_IB_HCA=mlx5_1
NCCL_IB_ADDR_FAMILY=AF_UNIX
`
	c, l := linux.Parse([]byte(text))
	if len(l) > 0 || c.Get("app", "a", "ethertype 35093") != "3" || c.Get("app", "a", "dscp 26") != "3 5" {
		t.Fatalf("%v %v", l, c.lines())
	}
	got, l := linux.Lift(c, Facts{Hostname: "h"})
	for i, part := range []string{
		`"3 5" is not one priority`, `"magic" is not an algorithm`, "DCBX is in mode cee ieee: firmware, or a daemon", "priority 0 is sent in a way that the model does not have: cbs",
		"ETS is willing", `"rs baser" is not one way`, "LLDP agent is on", `"AF_UNIX" is not`, `"mlx5_1" has no "=" in front`,
	} {
		if i >= len(l) || !strings.Contains(l[i].Msg, part) {
			t.Errorf("finding %d is not %q", i+1, part)
		}
	}
	if t.Failed() {
		t.Log(fmt.Sprint(l))
	}
	if p := got["a"]; p.System.IRQ != intent.IRQOther || p.Trust != intent.TrustDSCP || p.DSCP[26] != intent.Unmapped {
		t.Errorf("%+v", p)
	}
}
