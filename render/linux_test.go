package render

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/profiles"
)

// linuxTestTarget is a host with several NICs that have everything, whose NCCL file is one.
func linuxTestTarget() target {
	return target{
		dialect: &linux, model: "linux/generic", iface: func(n int) string { return fmt.Sprintf("rdma%d", n) },
		areas: intent.HostAreas,
		adjust: func(t *rapid.T, d *intent.Device, p *intent.Policy) {
			d.NCCL = intent.HostNCCL{Socket: "=eth0", Range: "192.0.2.0/24"}
			p.MTU = units.Bytes(rapid.IntRange(1280, 9216).Draw(t, "netdev mtu"))
			p.NCCL = intent.NCCL{On: true, TrafficClass: 104, Timeout: 20, RetryCount: 7, QPs: 4, CrossNIC: 1, HCA: true, RoCE: 2, Family: 4, GID: 4}
			p.System = intent.System{ReadRequest: 4096, IRQ: intent.IRQLocal, RingRX: 8192, RingTX: 8192, FEC: intent.FECRS, Memlock: true}
			p.Cable = units.Length(rapid.Int64Range(0, 100).Draw(t, "cable")) * units.Metre
			p.RoCE = intent.RoCE{On: true, Mode: 2, ToS: rapid.Uint8Range(4, 255).Draw(t, "tos"), TrafficClass: rapid.Int16Range(-1, 255).Draw(t, "traffic class")}
			p.CC = intent.Congestion{
				On: true, Algorithm: intent.AlgorithmDCQCN, Priorities: rapid.Uint8().Draw(t, "cc"), HasCNP: true,
				CNPDSCP: rapid.Uint8Range(1, 63).Draw(t, "cnp dscp"), CNPPriority: rapid.Uint8Range(1, 7).Draw(t, "cnp"),
			}
			p.CC.SetParam(rapid.IntRange(0, profiles.NumCC-1).Draw(t, "parameter"), 1)
			p.Pause.Send = rapid.Bool().Draw(t, "pause")
			for i := range d.Classes {
				if d.Classes[i] != "" {
					p.DSCP[i] = uint8(i) // a strict priority that nothing leads to is not one
				}
			}
			weights, left := 0, 100 // shares are percents, and a priority that is not used is sent in the driver's own way
			for i := range p.Queues {
				q := &p.Queues[i]
				q.ECN, q.Buffer = intent.ECN{}, intent.Buffer{}
				if !q.Used {
					*q = intent.Queue{Lossless: q.Lossless}
				} else if !q.Strict {
					weights++
				}
			}
			for i := range p.Queues {
				q := &p.Queues[i]
				switch {
				case q.Lossless:
					q.Buffer = intent.Buffer{On: true, Reserved: 262144}
				case len(p.Lossless()) > 0:
					q.Buffer = intent.Buffer{On: true, Reserved: 65536}
				}
				if q.Used && !q.Strict {
					q.Weight = uint8(left / weights)
					left -= int(q.Weight)
					weights--
				}
			}
		},
		facts: Facts{Hostname: "host1", NICs: linuxTestNICs("mlx5_core", "mlx5")},
		hidden: func(k Key) bool {
			return k == ncclKey(ncclSocket) || k == ncclKey(ncclRange) || // not of a NIC
				k.Scope == "pause" || k.Scope == "dcbx" || k.Field == "willing" // absent is off, and nobody else
		},
	}
}

// linuxTestNICs are six NICs of a driver that have every knob.
func linuxTestNICs(driver, personality string) []HostNIC {
	knobs := []string{"app", "dcbx", "ets", "pfc", "buffer", "pause", "ring", "fec", "irq", "pci.max-read-request", "roce.mode", "roce.tos", "roce.traffic-class", "cc.algorithm", "cc.enable", "cc.cnp-dscp", "cc.cnp-priority"}
	for _, p := range profiles.CCParams() {
		knobs = append(knobs, "cc."+p.Name)
	}
	slices.Sort(knobs)
	var out []HostNIC
	for i := range 6 {
		out = append(out, HostNIC{Name: fmt.Sprintf("rdma%d", i), Driver: driver, Personality: personality, RDMA: fmt.Sprintf("mlx5_%d", i), RDMAPort: 1, GID: 5, Knobs: knobs})
	}
	return out
}

func TestLinuxProperties(t *testing.T) { checkProperties(t, linuxTestTarget()) }

// linuxFiles are the areas of a NIC without DCB.
var linuxFiles = intent.AreaSet(intent.AreaMTU, intent.AreaNCCL)

// linuxHost is a host with two NICs, of which the model asks an MTU and what NCCL is told.
func linuxHost(f func(d *intent.Device)) intent.Device {
	p := intent.Policy{Known: linuxFiles, MTU: 9000, NCCL: intent.NCCL{On: true, TrafficClass: 104, Timeout: 20, RetryCount: 7}}
	d := intent.Device{Name: "host1", Fabric: "pod1", Platform: "linux/generic", Host: true}
	for i := range d.Manage {
		d.Manage[i] = intent.Own
	}
	for i := range 2 {
		d.Policies = append(d.Policies, p)
		d.Ports = append(d.Ports, intent.Port{Name: fmt.Sprintf("nic%d", i), Iface: fmt.Sprintf("rdma%d", i), Site: "host", Manage: d.Manage, Policy: int32(i)})
	}
	if f != nil {
		f(&d)
	}
	return d
}

func TestLinuxText(t *testing.T) {
	c, l := linux.Render(linuxHost(nil), Facts{})
	if len(l) > 0 {
		t.Fatal(l)
	}
	checkGolden(t, "linux-host.txt", linux.Text(c))
	if got := string(linux.Text(nil)); got != "" {
		t.Errorf("nothing is written as %q", got)
	}
}

func TestLinuxRender(t *testing.T) {
	for _, tt := range []struct {
		name  string
		edit  func(d *intent.Device)
		text  string
		finds string
	}{
		{"no NCCL", func(d *intent.Device) { d.Policies[0].NCCL, d.Policies[1].NCCL = intent.NCCL{}, intent.NCCL{} }, "link rdma0 mtu 9000\nlink rdma1 mtu 9000\n", ""},
		{"only the class", func(d *intent.Device) {
			d.Policies[0].NCCL = intent.NCCL{On: true}
			d.Policies[1].NCCL = d.Policies[0].NCCL
		}, "link rdma0 mtu 9000\nlink rdma1 mtu 9000\n\nfile /etc/nccl.conf\nNCCL_IB_TC=0\n", ""},
		{
			"two NCCL values", func(d *intent.Device) { d.Policies[1].NCCL.Timeout = 22 },
			"link rdma0 mtu 9000\nlink rdma1 mtu 9000\n\nfile /etc/nccl.conf\nNCCL_IB_RETRY_CNT=7\nNCCL_IB_TC=104\nNCCL_IB_TIMEOUT=20\n", "nic0 asks for 20, nic1 for 22",
		},
		{
			"too many retries", func(d *intent.Device) { d.Policies[0].NCCL.RetryCount, d.Policies[1].NCCL.RetryCount = 8, 7 },
			"link rdma0 mtu 9000\nlink rdma1 mtu 9000\n\nfile /etc/nccl.conf\nNCCL_IB_RETRY_CNT=7\nNCCL_IB_TC=104\nNCCL_IB_TIMEOUT=20\n", "NCCL_IB_RETRY_CNT of 8: the largest is 7",
		},
		{"absent, unbound and hostile NICs", func(d *intent.Device) {
			d.Ports[0].State = intent.Absent
			d.Ports = append(d.Ports, intent.Port{Name: "nic2", Policy: 0}, intent.Port{Name: "nic3", Iface: "a b", Policy: 0})
			d.Policies[1].NCCL = intent.NCCL{}
		}, "link rdma1 mtu 9000\n", `nic3: "a b" is not the name`},
	} {
		c, l := linux.Render(linuxHost(tt.edit), Facts{})
		if diff := cmp.Diff(tt.text, string(linux.Text(c))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
		if tt.finds == "" && len(l) > 0 || tt.finds != "" && (len(l) != 1 || !strings.Contains(l[0].Msg, tt.finds)) {
			t.Errorf("%s: findings %v", tt.name, l)
		}
	}
}

func TestLinuxParseAndLift(t *testing.T) {
	known := func(mtu units.Bytes, n intent.NCCL) intent.Policy {
		return intent.Policy{Known: linuxFiles, MTU: mtu, NCCL: n}
	}
	for _, tt := range []struct {
		name, text string
		want       map[string]intent.Policy
		says       []string
	}{
		{
			"a host by hand", "# host1\r\n\r\nlink rdma0 mtu 9000\r\n  link  eth0\tmtu 01500\r\nfile /etc/nccl.conf\r\n# RoCE\r\nNCCL_DEBUG=INFO\r\nNCCL_IB_TC=0x68\r\nNCCL_IB_TIMEOUT=22\r\n",
			map[string]intent.Policy{"rdma0": known(9000, intent.NCCL{On: true, TrafficClass: 104, Timeout: 22, RoCE: 2, Family: 4}), "eth0": known(1500, intent.NCCL{On: true, TrafficClass: 104, Timeout: 22, RoCE: 2, Family: 4})},
			nil,
		},
		{
			"first of two wins in the file, last of two links", "link a mtu 1\nlink a mtu 2\nfile /etc/nccl.conf\nNCCL_IB_TC=104\nNCCL_IB_TC=106\n",
			map[string]intent.Policy{"a": known(2, intent.NCCL{On: true, TrafficClass: 104, RoCE: 2, Family: 4})},
			[]string{"given twice, as 1 and 2"},
		},
		{
			"spaces make another variable", "link a mtu 1500\nfile /etc/nccl.conf\nNCCL_IB_TC = 104\n #NCCL_IB_TIMEOUT=3\n",
			map[string]intent.Policy{"a": known(1500, intent.NCCL{})},
			nil,
		},
		{
			"default, zero and nonsense", "link a mtu 1500\nfile /etc/nccl.conf\nNCCL_IB_TC=-1\nNCCL_IB_TIMEOUT=0\nNCCL_IB_RETRY_CNT=many\n",
			map[string]intent.Policy{"a": known(1500, intent.NCCL{})},
			[]string{`"many" is not a number from 0 to 7`, "0 is a value that the model does not have"},
		},
		{
			"not a host", "link a mtu 15x0\ninterface Ethernet1\n   mtu 9214\n",
			map[string]intent.Policy{},
			[]string{`line 1: "link a mtu 15x0" is not`, `line 2: "interface Ethernet1" is not`, `line 3: "mtu 9214" is not`},
		},
	} {
		c, l := linux.Parse([]byte(tt.text))
		got, more := linux.Lift(c, Facts{Hostname: "host1"})
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
		l = append(l, more...)
		if len(l) != len(tt.says) {
			t.Errorf("%s: findings %v", tt.name, l)
			continue
		}
		for i, part := range tt.says {
			if !strings.Contains(l[i].Msg, part) || l[i].Severity != diag.Warning {
				t.Errorf("%s: finding %v, want %q", tt.name, l[i], part)
			}
		}
	}
}

func TestLinuxOwns(t *testing.T) {
	mtu, tc, timeout := linuxMTU("rdma0"), ncclKey(ncclTC), ncclKey(ncclTimeout)
	for _, tt := range []struct {
		name string
		edit func(d *intent.Device)
		want []Key
	}{
		{"all", nil, []Key{mtu, tc, timeout}},
		{"a NIC observes the file", func(d *intent.Device) { d.Ports[1].Manage[intent.AreaNCCL] = intent.Observe }, []Key{mtu}},
		{"a variable that the model does not set", func(d *intent.Device) { d.Policies[0].NCCL.Timeout, d.Policies[1].NCCL.Timeout = 0, 0 }, []Key{mtu, tc}},
		{"NIC in maintenance", func(d *intent.Device) { d.Ports[0].State = intent.Maintenance }, []Key{tc, timeout}},
		{"host in maintenance", func(d *intent.Device) { d.State = intent.Maintenance }, nil},
	} {
		own := linux.Owns(linuxHost(tt.edit), Facts{})
		var got []Key
		for _, k := range []Key{mtu, tc, timeout, linuxMTU("eth0"), linuxMTU(""), ncclKey("NCCL_DEBUG")} {
			if own(k) {
				got = append(got, k)
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestLinuxSameAndRisk(t *testing.T) {
	live, _ := linux.Parse([]byte("link rdma0 mtu 1500\nlink rdma1 mtu 9000\nfile /etc/nccl.conf\nNCCL_IB_TC=0150\nNCCL_IB_TIMEOUT=20 \nNCCL_DEBUG=INFO\n"))
	d := linuxHost(nil)
	own := linux.Owns(d, Facts{})
	want, _ := linux.Render(d, Facts{})
	cs := Diff(&linux, Facts{}, live.Filter(own), want.Filter(own))
	if diff := cmp.Diff([]string{"add nccl|/etc/nccl.conf|NCCL_IB_RETRY_CNT", "set link|rdma0|mtu"}, keysOf(cs)); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	risks := linux.Risk(live, cs, Facts{})
	if len(risks) != 2 || risks[0].Class != Flap || fmt.Sprint(risks[0].Ports) != "[rdma0]" || risks[1].Class != Hitless {
		t.Errorf("risks %+v", risks)
	}
}

func TestNCCLInt(t *testing.T) {
	for s, want := range map[string]int64{"104": 104, " 104": 104, "0x68": 104, "0X68": 104, "0150": 104, "-1": -1, "+7": 7, "7 # seven": 7, "0": 0, "08": 0, "0xg": 0} {
		if n, ok := ncclInt(s); !ok || n != want {
			t.Errorf("%q is %d (%v), want %d", s, n, ok, want)
		}
	}
	for _, s := range []string{"", "x", "-", "99999999999999999999"} {
		if n, ok := ncclInt(s); ok {
			t.Errorf("%q is %d", s, n)
		}
	}
}

func FuzzLinuxParse(f *testing.F) {
	f.Add(read(f, "linux-host.txt"))
	f.Add(read(f, "linux-roce.txt"))
	f.Add([]byte("app a dscp 0-63,5 3 5\napp a ethertype 35093 3\nets a tsa 0:ets\npfc a priorities none 3\ncc a enable on\nlimit a memlock unlimited\n"))
	f.Add([]byte("file /etc/nccl.conf\nA=" + strings.Repeat("a\xff", 600) + "\nB=1\r\r\x00C"))
	f.Add([]byte("link a mtu 0\nlink a\u2003b mtu 1\nfile /etc/nccl.conf\nA=\xff\r\nA=2\nB=\x00"))
	f.Fuzz(func(t *testing.T, b []byte) { checkParser(t, &linux, b) })
}

// A NIC that the inventory binds by PCI address has its name from the host: nothing is rendered for its link before,
// and it is an error when the host does not have it.
func TestLinuxPCI(t *testing.T) {
	d := intent.Device{Name: "host1", Platform: "linux/generic", Host: true, Ports: []intent.Port{{Name: "nic-1", Iface: "0000:17:00.0"}}}
	d.Ports[0].Policy = d.Intern(intent.Policy{Known: linuxFiles, MTU: 9000, NCCL: intent.NCCL{On: true, TrafficClass: 104}})
	for _, tt := range []struct {
		name  string
		d     intent.Device
		f     Facts
		links int
		say   string
	}{
		{"before", d, Facts{}, 0, "info: bound-on-host"},
		{"on the host", d.Bind(map[string]string{"0000:17:00.0": "rdma0"}), Facts{Hostname: "host1"}, 1, ""},
		{"not on the host", d, Facts{Hostname: "host1"}, 0, "error: not-expressible: host1 nic-1: the host has no network interface with PCI address 0000:17:00.0"},
	} {
		c, l := linux.Render(tt.d, tt.f)
		said := ""
		for _, f := range l {
			said += f.Severity.String() + ": " + f.Rule + ": " + f.Msg
		}
		links := len(c.Filter(func(k Key) bool { return k.Scope == "link" }))
		if links != tt.links || !strings.HasPrefix(said, tt.say) || tt.say == "" && said != "" {
			t.Errorf("%s: %d links, %q", tt.name, links, said)
		}
	}
}
