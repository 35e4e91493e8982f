package lint_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/lint"
	"github.com/fabricctl/fabricctl/model/units"
)

// nicPolicy is what a NIC of the sample holds that agrees with its leaf.
func nicPolicy() intent.Policy {
	p := switchPolicy()
	p.Known = intent.AreaSet(intent.AreaMTU, intent.AreaMaps, intent.AreaPFC, intent.AreaScheduler, intent.AreaBuffer, intent.AreaNCCL,
		intent.AreaRoCE, intent.AreaCC, intent.AreaSystem)
	p.MTU, p.Watchdog = 9000, intent.Watchdog{}
	p.Queues[3].ECN = intent.ECN{}
	p.RoCE = intent.RoCE{On: true, Mode: 2, ToS: 104, TrafficClass: -1}
	p.CC = intent.Congestion{On: true, Priorities: 1 << 3, HasCNP: true, CNPDSCP: 48, CNPPriority: 6}
	p.NCCL = intent.NCCL{On: true, TrafficClass: 104, Timeout: 20, RetryCount: 7}
	return p
}

// hosts is the sample with hosts that hold all that a host can.
func hosts(spines, leaves, perLeaf int) *intent.Net {
	n := clos(spines, leaves, perLeaf)
	for i := range n.Devices {
		if d := &n.Devices[i]; d.Host {
			edit(n, d.Name, "", func(p *intent.Policy) { *p = nicPolicy() })
		}
	}
	return n
}

// TestHostRules: what hosts hold is judged by what their leaves do, without a model.
func TestHostRules(t *testing.T) {
	for _, c := range []struct {
		name string
		edit func(n *intent.Net)
		want []string
	}{
		{"sound", func(*intent.Net) {}, nil},
		{
			"another priority",
			func(n *intent.Net) { edit(n, "host1", "", func(p *intent.Policy) { p.DSCP[26] = 0 }) },
			[]string{`host1:nic-1: error: host-mapping: dscp 26: to priority 0 on host1:nic-1, but to priority 3 on leaf1:downlink-1: a pause for the one does not stop the other
    hint: map dscp 26 on host1:nic-1 as its leaf does: to priority 3`},
		},
		{
			"PFC off, and link pause on",
			func(n *intent.Net) {
				edit(n, "host1", "", func(p *intent.Policy) { p.Queues[3].Lossless = false })
				edit(n, "host2", "", func(p *intent.Policy) { p.Pause = intent.Pause{Send: true, Receive: true} })
			},
			[]string{
				`host1:nic-1: error: pfc-symmetry: leaf1:downlink-1 pauses for priority 3, but host1:nic-1 at the other end for no priority
    hint: make priority 3 lossless on host1:nic-1 too, or on neither end`,
				`host2:nic-1: error: pfc-not-global-pause: 802.3x link pause (send and receive) is on beside PFC for priority 3 on host2:nic-1: it stops all priorities at once, notifications too
    hint: switch link pause off on host2:nic-1`,
			},
		},
		{
			"notifications in another class",
			func(n *intent.Net) {
				edit(n, "host1", "", func(p *intent.Policy) { p.CC.CNPDSCP, p.CC.CNPPriority = 4, 0 })
			},
			[]string{
				`host1:nic-1: warning: cnp-dscp-nic: NICs of host1:nic-1 send notifications with priority 0, from the queue of class default, and class cnp has 6
    hint: have the NICs send notifications with priority 6`,
				`leaf1:downlink-1: error: cnp-dscp-nic: the NIC on host1 sends notifications with dscp 4, which is of class default on leaf1 and 5 more and not of class cnp: they wait where data waits
    hint: add dscp 4 to class cnp, or have the NICs send with a code point of it`,
			},
		},
		{
			"marks of rdma_cm",
			func(n *intent.Net) {
				edit(n, "host1", "", func(p *intent.Policy) { p.RoCE.ToS = 106 })
				edit(n, "host2", "", func(p *intent.Policy) { p.RoCE.ToS = 192 })
				edit(n, "host3", "", func(p *intent.Policy) { p.RoCE.ToS = 26 })
				edit(n, "host4", "", func(p *intent.Policy) { p.RoCE.Mode = 1 })
				edit(n, "host5", "", func(p *intent.Policy) { p.RoCE.TrafficClass = 26 })
			},
			[]string{
				`host1:nic-1: warning: roce-marking: the ToS byte 106 on host1:nic-1 has ECN bits besides dscp 26: those are the NIC's to set
    hint: set the ToS byte to 104`,
				`host2:nic-1: error: roce-marking: connections of rdma_cm on host2:nic-1 carry ToS 192 (dscp 48), which is of class cnp at leaf1:downlink-2: data there delays the notifications of all
    hint: set the ToS byte to 4 times a code point of a lossless class`,
				`host3:nic-1: warning: roce-marking: connections of rdma_cm on host3:nic-1 carry ToS 26 (dscp 6), which is of class default at leaf2:downlink-1, which is lossy: each drop makes NICs send all that followed again
    hint: name a lossless class under hosts.roce, or acknowledge roce-marking with the reason`,
				`host3:nic-1: warning: roce-marking: the ToS byte 26 on host3:nic-1 has ECN bits besides dscp 6: those are the NIC's to set
    hint: set the ToS byte to 24`,
				`host4:nic-1: error: roce-marking: connections of rdma_cm on host4:nic-1 are RoCE v1, which has no IP header: leaf2:downlink-2 sees no code point in it, and no router carries it
    hint: set mode to v2`,
				`host5:nic-1: error: roce-marking: the driver on host5:nic-1 forces traffic class 26 (dscp 6) on every connection, so that NCCL_IB_TC 104 (dscp 26) has no effect
    hint: have the driver force nothing, so that applications choose: hosts.roce.traffic_class: clear`,
			},
		},
		{
			"congestion control",
			func(n *intent.Net) {
				for i := range n.Devices {
					if n.Devices[i].Host {
						edit(n, n.Devices[i].Name, "", func(p *intent.Policy) { p.CC.Algorithm = intent.AlgorithmDCQCN })
					}
				}
				edit(n, "host1", "", func(p *intent.Policy) { p.CC.Priorities = 0 })
				edit(n, "host2", "", func(p *intent.Policy) { p.CC.Algorithm = intent.AlgorithmZeroTouch })
			},
			[]string{
				`host1:nic-1: error: cc-on-lossless: switches mark priority 3, but the congestion control of host1:nic-1 is on for no priority: nobody slows down before pause comes
    hint: turn congestion control on for priority 3 on host1:nic-1`,
				`host2:nic-1: warning: cc-algorithm: the NICs of host2 run zero-touch, and the others of the fabric dcqcn: the two do not share a link evenly
    hint: set algorithm to dcqcn, or acknowledge cc-algorithm with the reason`,
			},
		},
		{
			"NCCL",
			func(n *intent.Net) {
				edit(n, "host1", "", func(p *intent.Policy) { p.NCCL.GID = 4 })
				edit(n, "host2", "", func(p *intent.Policy) { p.NCCL.GID = intent.GIDOfHost })
				edit(n, "host3", "", func(p *intent.Policy) { p.NCCL.Timeout, p.NCCL.RetryCount = 31, 1 })
			},
			[]string{
				`host1:nic-1: warning: nccl-gid: NCCL_IB_GID_INDEX on host1 pins index 3: it moves when a link flaps or an address is added, and jobs then fail or send unmarked
    hint: remove NCCL_IB_GID_INDEX, since NCCL from 2.21 on finds the GID by itself, or give nccl.version where an older one is in use`,
				`host2:nic-1: warning: nccl-gid: NCCL_IB_GID_INDEX on host2 pins the index that the address has at the moment: it moves when a link flaps or an address is added, and jobs then fail or send unmarked
    hint: remove NCCL_IB_GID_INDEX, since NCCL from 2.21 on finds the GID by itself, or give nccl.version where an older one is in use`,
				`host3:nic-1: info: nccl-patience: NCCL on host3 waits 8796s for each lost packet and gives up after 17592s (timeout 31, retry_count 1): a fabric that loses packets is slow, and no job says so
    hint: lower timeout to at most 22, which gives up after 34.4s, once the fabric loses nothing`,
			},
		},
		{
			"what is ignored or not known is not judged",
			func(n *intent.Net) {
				edit(n, "host1", "", func(p *intent.Policy) {
					p.RoCE.ToS, p.CC.Priorities, p.NCCL.GID = 0, 0, 4
					p.Known = intent.AreaSet(intent.AreaMTU)
				})
				edit(n, "host2", "", func(p *intent.Policy) { p.RoCE.ToS, p.CC.Priorities, p.NCCL.GID = 0, 0, 4 })
				for a := range intent.NumAreas {
					n.Device("host2").Ports[0].Manage[a] = intent.Ignore
				}
			},
			nil,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := hosts(2, 4, 2)
			c.edit(n)
			if d := cmp.Diff(c.want, texts(lint.Check(n, nil))); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
		})
	}
}

// TestNICBuffer: the size that the driver wants is its formula's, by speed, cable and MTU; hosts whose NIC has another one
// are not judged.
func TestNICBuffer(t *testing.T) {
	loaded, _ := model.Load(fstest.MapFS{"m.yaml": {Data: []byte("apiVersion: fabricctl/v1\nkind: Fabric\nmetadata: {name: t}\n")}}, "m.yaml")
	f := &model.Fabric{Catalog: loaded.Catalog} // NICs are of the catalog
	for _, c := range []struct {
		nic   string
		speed units.BitRate
		cable units.Length
		size  units.Bytes
		want  string
	}{
		{"connectx-7", 400 * units.Gbps, 5 * units.Metre, 158_096, ""},
		{"connectx-7", 400 * units.Gbps, 5 * units.Metre, 158_095, "less than the 158096B that its driver wants at 400Gbps over 5m: 148880B for what arrives after the pause and 9216B for a frame"},
		{"connectx-7", 400 * units.Gbps, 100 * units.Metre, 200_000, "200KB for priority 3 on host1:nic-1 is less than the 240496B that its driver wants"},
		{"e810", 100 * units.Gbps, 5 * units.Metre, 1000, ""},
		{"", 400 * units.Gbps, 5 * units.Metre, 1000, ""},
		{"connectx-7", 400 * units.Gbps, 0, 1000, ""},
	} {
		n := hosts(1, 1, 1)
		p := &n.Device("host1").Ports[0]
		p.NIC, p.Speed, p.Cable = c.nic, c.speed, c.cable
		n.Device("leaf1").Port("downlink-1").Cable = c.cable
		edit(n, "host1", "", func(p *intent.Policy) {
			p.Cable = c.cable
			p.Queues[3].Buffer = intent.Buffer{On: true, Reserved: c.size}
		})
		said := ""
		for _, x := range lint.Check(n, f) {
			if x.Rule == "nic-buffer" {
				said += x.Msg
			}
		}
		if !strings.Contains(said, c.want) || c.want == "" && said != "" {
			t.Errorf("%s %v %v %v: %q, want %q", c.nic, c.speed, c.cable, c.size, said, c.want)
		}
	}
}

// TestAddresses: subnets that overlap, whatever their prefixes; members of one bond are one interface; a rail that is one
// subnet with others is not told that its NICs have changed places.
func TestAddresses(t *testing.T) {
	for _, c := range []struct {
		name  string
		ips   []string // of nic-1 and nic-2 of each host, in turn
		bond  string
		state intent.State
		want  string
	}{
		{"a subnet each", []string{"10.0.1.1/24", "10.0.2.1/24", "10.0.1.2/24", "10.0.2.2/24"}, "", intent.Active, ""},
		{"one in the other", []string{"10.0.1.1/24", "10.0.2.1/16"}, "", intent.Active, "warning nic-subnet"},
		{"a bond", []string{"10.0.1.1/24", "10.0.1.2/24"}, "bond-1", intent.Active, ""},
		{"links of two", []string{"10.0.1.1/31", "10.0.1.3/31"}, "", intent.Active, ""},
		{"planned", []string{"10.0.1.1/24", "10.0.1.2/24"}, "", intent.Planned, "info nic-subnet"},
		{"one subnet for all", []string{"10.0.0.1/16", "10.0.0.2/16", "10.0.0.3/16", "10.0.0.4/16", "10.0.0.5/16", "10.0.0.6/16"}, "", intent.Active, "warning nic-subnet"},
		{"changed places", []string{"10.0.1.1/24", "10.0.2.1/24", "10.0.1.2/24", "10.0.2.2/24", "10.0.2.3/24", "10.0.1.3/24"}, "", intent.Active, "warning rail-subnet"},
		{"IPv6", []string{"2001:db8::1/64", "2001:db8::2/64"}, "", intent.Active, "warning nic-subnet"},
	} {
		n := &intent.Net{}
		for h := range len(c.ips) / 2 {
			d := intent.Device{Name: fmt.Sprintf("host%d", h+1), Role: "host", Host: true, State: c.state}
			at := d.Intern(intent.Policy{})
			for i, ip := range c.ips[2*h : 2*h+2] {
				d.Ports = append(d.Ports, intent.Port{Name: fmt.Sprintf("nic-%d", i+1), IP: ip, Rail: i + 1, Bond: c.bond, Policy: at})
			}
			n.Devices = append(n.Devices, d)
		}
		var said []string
		for _, x := range lint.Check(n, nil) {
			said = append(said, x.Severity.String()+" "+x.Rule)
		}
		if got := strings.Join(said, ", "); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
