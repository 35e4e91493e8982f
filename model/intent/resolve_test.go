package intent

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/examples"
	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/units"
)

var update = flag.Bool("update", false, "write goldens")

// resolve loads layers and resolves them; findings worse than info fail the test.
func resolve(t *testing.T, fsys fstest.MapFS, layers ...string) *Net {
	t.Helper()
	f, l := model.Load(fsys, layers...)
	n, more := Resolve(f)
	for _, x := range append(l, more...) {
		if x.Severity != diag.Info {
			t.Fatalf("%s", x)
		}
	}
	return n
}

// text is a short form of a resolved net: equal devices and ports are grouped.
func text(n *Net) string {
	var b strings.Builder
	fmt.Fprintf(&b, "fabric %s\n", n.Fabric)
	for i := range n.Devices {
		d := &n.Devices[i]
		fmt.Fprintf(&b, "%s: %s %s %s, owns %s\n", d.Name, d.Role, d.Platform, d.State, areas(d.Manage.Owned()))
		for j := range d.Ports {
			p := &d.Ports[j]
			fmt.Fprintf(&b, "  %s = %s -> %s:%s %s %s, site %s, policy %d", p.Name, p.Iface, p.Peer, p.PeerPort, p.Role, p.Speed, p.Site, p.Policy)
			if p.Manage != d.Manage {
				fmt.Fprintf(&b, ", owns %s", areas(p.Manage.Owned()))
			}
			if p.State != d.State {
				fmt.Fprintf(&b, ", %s", p.State)
			}
			b.WriteByte('\n')
		}
		for j := range d.Policies {
			fmt.Fprintf(&b, "  policy %d: %s\n", j, policy(&d.Policies[j]))
		}
	}
	return b.String()
}

func areas(s Areas) string {
	var r []string
	for a := AreaMTU; a < NumAreas; a++ {
		if s.Has(a) {
			r = append(r, a.String())
		}
	}
	return strings.Join(r, " ")
}

func policy(p *Policy) string {
	s := fmt.Sprintf("knows %s; mtu %s", areas(p.Known), p.MTU)
	for i, q := range p.Queues {
		if !q.Used {
			continue
		}
		var dscps []string
		for d, tc := range p.DSCP {
			if int(tc) == i {
				dscps = append(dscps, fmt.Sprint(d))
			}
		}
		if len(dscps) > 8 {
			dscps = []string{fmt.Sprintf("%d code points", len(dscps))}
		}
		s += fmt.Sprintf("; %d: dscp %s queue %d pg %d weight %d", i, strings.Join(dscps, " "), p.TCQueue[i], p.TCPG[i], q.Weight)
		if q.Strict {
			s += " strict"
		}
		if q.Lossless {
			s += " lossless"
		}
		if q.ECN.On {
			s += fmt.Sprintf(" ecn %s-%s %s", q.ECN.Kmin, q.ECN.Kmax, q.ECN.Pmax)
		}
		switch b := q.Buffer; {
		case b.Device:
			s += " buffer made by the device"
		case b.On:
			s += fmt.Sprintf(" buffer alpha %s static %s headroom %s xon %s offset %s reserved %s", b.Alpha, b.Static, b.Headroom, b.Xon, b.XonOffset, b.Reserved)
		}
	}
	if p.Cable > 0 {
		s += fmt.Sprintf("; cable %s", p.Cable)
	}
	if w := p.Watchdog; w.On {
		s += fmt.Sprintf("; watchdog %d/%d/%d ms %s", w.Detect, w.Restore, w.Poll, w.Action)
	}
	for _, v := range hostValues(p) {
		s += "; " + v.Label + " " + v.Text
	}
	return s
}

// TestExamples: the examples resolve without findings worse than info, to what the goldens show.
func TestExamples(t *testing.T) {
	for _, e := range examples.Models() {
		t.Run(e.Name, func(t *testing.T) {
			f, l := model.Load(examples.FS, e.Layers...)
			n, more := Resolve(f)
			for _, x := range append(l, more...) {
				if x.Severity != diag.Info || x.Rule == "unbound-port" {
					t.Errorf("%s", x)
				}
			}
			got, path := text(n), filepath.Join("testdata", e.Name+".golden")
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// TestDirectory: a directory as one layer gives the same net as its files one by one.
func TestDirectory(t *testing.T) {
	one, _ := model.Load(examples.FS, "mixed")
	many, _ := model.Load(examples.FS, "mixed/site.yaml", "mixed/inventory.yaml", "mixed/fabric.yaml")
	if one.Digest() != many.Digest() {
		t.Error("the digests differ")
	}
	a, _ := Resolve(one)
	b, _ := Resolve(many)
	if d := cmp.Diff(text(a), text(b)); d != "" {
		t.Error(d)
	}
}

const base = `apiVersion: fabricctl/v1
kind: Fabric
metadata: {name: t}
topology:
  spines: {count: 1, platform: sonic/sn5600}
  leaves: {count: 2, platform: sonic/sn5600}
  hosts: {per_leaf: 2, netdevs: [rdma0]}
  links: {leaf_spine: {speed: 400Gbps, cable: 40m}, host_leaf: {speed: 200Gbps}}
mtu: {fabric: 9216B, host: 9000B}
classes:
  - {name: training, dscp: [28, 26], priority: 3, lossless: true, ecn: {kmin: 800KB, kmax: 3200KB, pmax: 20%}, bandwidth: 60%}
  - {name: cnp, role: cnp, dscp: [48], priority: 6, scheduling: strict}
  - {name: default, dscp: rest, priority: 0, bandwidth: 40%}
pfc_watchdog: {detect: 200ms, restore: 400ms, poll: 100ms, action: forward}
`

func file(text string) fstest.MapFS { return fstest.MapFS{"m.yaml": {Data: []byte(text)}} }

// TestSites: the site is the most specific override that shapes behaviour; state and ownership make none.
func TestSites(t *testing.T) {
	n := resolve(t, file(base+`
overrides:
  leaf:
    classes: [{name: training, ecn: {kmin: 700KB}}]
    devices:
      leaf1: {state: maintenance, manage: {ecn: own}, ports: {uplink-1: {mtu: {fabric: 9000B}}}}
      leaf2: {classes: [{name: training, ecn: {kmin: 600KB}}], ports: {downlink-1: {classes: [{name: training, ecn: {pmax: 5%}}], pfc_watchdog: {detect: 300ms}}, downlink-2: {state: absent}}}
`), "m.yaml")
	for _, x := range []struct {
		device, port, site string
		kmin               units.Bytes
		pmax               units.Percent
		mtu                units.Bytes
		detect             int32
		state              State
	}{
		{"spine1", "downlink-1", "fabric", 800 * units.KB, 200_000, 9216, 200, Active},
		{"leaf1", "downlink-1", "leaf", 700 * units.KB, 200_000, 9216, 200, Maintenance},
		{"leaf1", "uplink-1", "leaf.leaf1.uplink-1", 700 * units.KB, 200_000, 9000, 200, Maintenance},
		{"leaf2", "uplink-1", "leaf.leaf2", 600 * units.KB, 200_000, 9216, 200, Active},
		{"leaf2", "downlink-1", "leaf.leaf2.downlink-1", 600 * units.KB, 50_000, 9216, 300, Active},
		{"leaf2", "downlink-2", "leaf.leaf2", 600 * units.KB, 200_000, 9216, 200, Absent},
	} {
		d := n.Device(x.device)
		p := d.Port(x.port)
		q := d.PolicyOf(p)
		if p.Site != x.site || q.Queues[3].ECN.Kmin != x.kmin || q.Queues[3].ECN.Pmax != x.pmax || q.MTU != x.mtu || q.Watchdog.Detect != x.detect || p.State != x.state {
			t.Errorf("%s:%s: site %s kmin %s pmax %s mtu %s detect %d %s; want %+v",
				x.device, x.port, p.Site, q.Queues[3].ECN.Kmin, q.Queues[3].ECN.Pmax, q.MTU, q.Watchdog.Detect, p.State, x)
		}
		if d.Origin(p, "mtu") == nil {
			t.Errorf("%s has no origins for site %s", x.device, p.Site)
		}
	}
	kmin := n.Device("leaf2").Origin(n.Device("leaf2").Port("downlink-1"), "ecn.3.kmin")
	if kmin.Pos.Line != 21 || len(kmin.Lost) != 2 || kmin.Lost[0].Line != 18 || kmin.Lost[1].Line != 11 {
		t.Errorf("kmin on leaf2 must come from line 21 and win over 18 and 11: %+v", kmin)
	}
	if got := len(n.Device("leaf2").Policies); got != 3 { // an uplink with a cable, a downlink without, and the one with an override
		t.Errorf("leaf2 has %d policies; equal ones must be shared", got)
	}
}

// TestOrigins: every field that Field's contract names has an origin, and code points know their line.
func TestOrigins(t *testing.T) {
	n := resolve(t, file(base+"nccl: {class: training, timeout: 22, retry_count: 7}\n"), "m.yaml")
	d := n.Device("leaf1")
	up := d.Port("uplink-1")
	for _, f := range []Field{
		"mtu", "trust", "dscp.0", "dscp.26", "dscp.63", "class.0", "class.3", "class.6", "lossless.3", "ecn.3.kmin", "ecn.3.kmax", "ecn.3.pmax",
		"scheduling.3", "scheduling.6", "weight.0", "weight.3", "watchdog.detect", "watchdog.restore", "watchdog.poll", "watchdog.action",
		"cable", "xoff.3", "headroom.3", "xon.3",
	} {
		if d.Origin(up, f) == nil {
			t.Errorf("no origin for %s", f)
		}
	}
	if got := d.Origin(up, "dscp.26").Pos; got.Line != 11 || d.Origin(up, "dscp.27").Pos.Line != 13 {
		t.Errorf("dscp.26 from %s, dscp.27 from %s", got, d.Origin(up, "dscp.27").Pos)
	}
	h := n.Device("host1")
	for _, f := range []Field{"mtu", "nccl.traffic_class", "nccl.timeout", "nccl.retry_count"} {
		if h.Origin(h.Port("nic-1"), f) == nil {
			t.Errorf("no origin for %s of a host", f)
		}
	}
	want := NCCL{On: true, TrafficClass: 28 << 2, Timeout: 22, RetryCount: 7, HCA: true, RoCE: 2, Family: 4}
	if got := h.Policies[0]; got.NCCL != want || got.MTU != 9000 || got.Known != HostAreas {
		t.Errorf("host policy %+v", got)
	}
}

func TestNCCLClass(t *testing.T) {
	two := strings.Replace(base, "  - {name: cnp", "  - {name: storage, dscp: [18], priority: 4, lossless: true}\n  - {name: cnp", 1)
	for _, x := range []struct {
		name, model string
		want        NCCL
		infos       int
	}{
		{"the only lossless class", base, NCCL{On: true, TrafficClass: 112, HCA: true, RoCE: 2, Family: 4}, 0},
		{"two, none named", two, NCCL{}, 2},
		{"two, one named", two + "nccl: {class: storage}\n", NCCL{On: true, TrafficClass: 72, HCA: true, RoCE: 2, Family: 4}, 1},
		{"none lossless", strings.Replace(base, "lossless: true", "lossless: false", 1), NCCL{}, 0},
	} {
		f, _ := model.Load(file(x.model), "m.yaml")
		n, l := Resolve(f)
		if got := n.Device("host1").Policies[0].NCCL; got != x.want || len(l) != x.infos {
			t.Errorf("%s: %+v, %d findings; want %+v, %d", x.name, got, len(l), x.want, x.infos)
		}
	}
}

// TestManage: fabric, role, device and port, the most specific winning area by area; what nobody lists is observed.
func TestManage(t *testing.T) {
	n := resolve(t, file(base+`
manage: {switches: {pfc: own, ecn: own}}
overrides:
  leaf:
    manage: {mtu: own}
    devices:
      leaf1: {manage: observe, ports: {uplink-1: {manage: {ecn: own, pfc: ignore}}}}
`), "m.yaml")
	for _, x := range []struct {
		device, port, owned string
		pfc                 Mode
	}{
		{"spine1", "downlink-1", "pfc ecn", Own},
		{"leaf2", "uplink-1", "mtu pfc ecn", Own},
		{"leaf1", "downlink-1", "", Observe},
		{"leaf1", "uplink-1", "ecn", Ignore},
		{"host1", "nic-1", "", Observe},
	} {
		m := n.Device(x.device).Port(x.port).Manage
		if got := areas(m.Owned()); got != x.owned || m[AreaPFC] != x.pfc {
			t.Errorf("%s:%s owns %q, pfc %s; want %q, %s", x.device, x.port, got, m[AreaPFC], x.owned, x.pfc)
		}
	}
}

// TestConventions holds what the dialects rely on.
func TestConventions(t *testing.T) {
	n := resolve(t, file(base), "m.yaml")
	p := n.Device("leaf1").Policies[0]
	if p.Known != SwitchAreas || p.Trust != TrustDSCP || p.TCPG != [8]uint8{3: 3} {
		t.Errorf("known %b, trust %s, groups %v", p.Known, p.Trust, p.TCPG)
	}
	for i := range uint8(8) {
		if p.TCQueue[i] != i || p.PFCQueue[i] != i {
			t.Errorf("queue of class %d is %d, of a pause %d", i, p.TCQueue[i], p.PFCQueue[i])
		}
	}
	if slices.Contains(p.DSCP[:], Unmapped) {
		t.Error("a code point is unmapped, though there is a rest class")
	}
	if q := p.Queues[3]; q != (Queue{Used: true, Lossless: true, Weight: 60, ECN: ECN{true, 800_000, 3_200_000, 200_000}}) {
		t.Errorf("queue 3: %+v", q)
	}
	if p.Watchdog != (Watchdog{On: true, Detect: 200, Restore: 400, Poll: 100, Action: ActionForward}) {
		t.Errorf("watchdog: %+v", p.Watchdog)
	}
	if d := n.Device("leaf1"); d.Classes != [8]string{0: "default", 3: "training", 6: "cnp"} {
		t.Errorf("classes: %v", d.Classes)
	}
	lossy := resolve(t, file(strings.Replace(base, "lossless: true", "lossless: false", 1)), "m.yaml")
	if lossy.Device("leaf1").Policies[0].Watchdog.On {
		t.Error("a watchdog without a lossless class")
	}
}

// TestTopologies: rails, listed devices and single links.
func TestTopologies(t *testing.T) {
	m := strings.Replace(base, "hosts: {per_leaf: 2, netdevs: [rdma0]}", "hosts: {per_leaf: 2, rails: 2, netdevs: [rdma0, rdma1]}", 1)
	m = strings.Replace(m, "leaves: {count: 2", "leaves: {count: 4", 1)
	m = strings.Replace(m, "host_leaf: {speed: 200Gbps}", `host_leaf: {speed: 200Gbps}, list: [{a: "leaf1:downlink-2", b: "host2:nic-1", speed: 100Gbps}, {a: "store1:nic-1", b: "leaf4:storage-1", speed: 25Gbps}]`, 1)
	m = strings.Replace(m, "  links:", "  devices:\n    - {name: store1, role: storage, platform: linux/generic, ports: [{name: nic-1, iface: eth7}, {name: nic-2, iface: eth8, role: unused}]}\n  links:", 1)
	n := resolve(t, file(m+inventory), "m.yaml")
	var got []string
	for _, d := range n.Devices {
		for _, p := range d.Ports {
			if d.Role == "spine" {
				continue
			}
			got = append(got, fmt.Sprintf("%s:%s=%s %s %s:%s %s", d.Name, p.Name, p.Iface, p.Role, p.Peer, p.PeerPort, p.Speed))
		}
	}
	want := strings.Split(strings.TrimSpace(`
host1:nic-1=rdma0 nic leaf1:downlink-1 200Gbps
host1:nic-2=rdma1 nic leaf2:downlink-1 200Gbps
host2:nic-1=rdma0 nic leaf1:downlink-2 100Gbps
host2:nic-2=0000:17:00.0 nic leaf2:downlink-2 200Gbps
host3:nic-1=rdma0 nic leaf3:downlink-1 200Gbps
host3:nic-2=rdma1 nic leaf4:downlink-1 200Gbps
host4:nic-1=rdma0 nic leaf3:downlink-2 200Gbps
host4:nic-2=rdma1 nic leaf4:downlink-2 200Gbps
leaf1:downlink-1=Ethernet0 host host1:nic-1 200Gbps
leaf1:downlink-2=Ethernet8 host host2:nic-1 100Gbps
leaf1:uplink-1=Ethernet16 fabric spine1:downlink-1 400Gbps
leaf2:downlink-1=Ethernet0 host host1:nic-2 200Gbps
leaf2:downlink-2=Ethernet8 host host2:nic-2 200Gbps
leaf2:uplink-1=Ethernet16 fabric spine1:downlink-2 400Gbps
leaf3:downlink-1=Ethernet0 host host3:nic-1 200Gbps
leaf3:downlink-2=Ethernet8 host host4:nic-1 200Gbps
leaf3:uplink-1=Ethernet16 fabric spine1:downlink-3 400Gbps
leaf4:downlink-1=Ethernet0 host host3:nic-2 200Gbps
leaf4:downlink-2=Ethernet8 host host4:nic-2 200Gbps
leaf4:storage-1=Ethernet256 storage store1:nic-1 25Gbps
leaf4:uplink-1=Ethernet16 fabric spine1:downlink-4 400Gbps
store1:nic-1=eth7 nic leaf4:storage-1 25Gbps
store1:nic-2=eth8 unused : 0bps
`), "\n")
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	s := n.Device("store1")
	if p := s.PolicyOf(s.Port("nic-2")); p.Known != 0 {
		t.Errorf("an unused port is left alone, but knows %s", areas(p.Known))
	}
}

const inventory = `---
apiVersion: fabricctl/v1
kind: Inventory
devices:
  leaf4: {ports: {storage-1: Ethernet256}}
  host2: {nics: [{}, {pci: "0000:17:00.0", port: "leaf2:downlink-2"}]}
`

// TestAreaNames: the model and the intent have the same areas.
func TestAreaNames(t *testing.T) {
	if d := cmp.Diff(areaNames[:], model.AreaNames()); d != "" {
		t.Error(d)
	}
}

// BenchmarkResolve is 400 leaves with 40 hosts each.
func BenchmarkResolve(b *testing.B) {
	m := strings.Replace(base, "per_leaf: 2,", "per_leaf: 40,", 1)
	f, _ := model.Load(file(strings.Replace(m, "leaves: {count: 2", "leaves: {count: 400", 1)), "m.yaml")
	b.ReportAllocs()
	for b.Loop() {
		if n, _ := Resolve(f); len(n.Devices) != 16_401 {
			b.Fatal(len(n.Devices))
		}
	}
}

// FuzzResolve: whatever loads, broken or not, resolves without a panic to policies that are in range.
func FuzzResolve(f *testing.F) {
	f.Add([]byte(base))
	f.Add([]byte(base + "overrides: {leaf: {devices: {leaf1: {manage: own, ports: {uplink-1: {mtu: {fabric: 1500B}, state: absent}}}}}}\n" + inventory))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, _ := model.Load(file(string(b)), "m.yaml")
		n, _ := Resolve(m)
		for i := range n.Devices {
			for j := range n.Devices[i].Ports {
				if p := n.Devices[i].PolicyOf(&n.Devices[i].Ports[j]); p.NCCL.TrafficClass&3 != 0 {
					t.Fatalf("ECN bits in the traffic class of %s", n.Devices[i].Name)
				}
			}
		}
	})
}

// TestBorder: at a border port lossless ends, with the reason; what is not about lossless stays.
func TestBorder(t *testing.T) {
	const head, tail = "apiVersion: fabricctl/v1\nkind: Fabric\nmetadata: {name: t}\ntopology:\n  devices:\n" +
		"    - {name: leaf1, role: leaf, platform: sonic/sn5600, ports: [{name: a, iface: Ethernet0}, {name: b, iface: Ethernet8, role: border}]}\n",
		"mtu: {fabric: 9216B}\nclasses:\n  - {name: training, dscp: [26], priority: 3, lossless: true, ecn: {kmin: 1KB, kmax: 2KB, pmax: 5%}}\n" +
			"  - {name: cnp, role: cnp, dscp: [48], priority: 6}\n  - {name: rest, dscp: rest, priority: 0}\n" +
			"pfc_watchdog: {detect: 200ms, restore: 400ms, action: drop}\n"
	n := resolve(t, file(head+tail), "m.yaml")
	d := n.Device("leaf1")
	inner, border := d.PolicyOf(d.Port("a")), d.PolicyOf(d.Port("b"))
	want := *inner
	want.Queues[3].Lossless, want.TCPG[3], want.Watchdog = false, 0, Watchdog{}
	if d := cmp.Diff(want, *border); d != "" {
		t.Errorf("the border differs by more than lossless (-want +got):\n%s", d)
	}
	o := d.Origin(d.Port("b"), "lossless.3")
	if d.Port("b").Site != "fabric.border" || o == nil || o.Ref == "" || len(o.Lost) != 1 || !inner.Queues[3].Lossless || !inner.Watchdog.On {
		t.Errorf("site %q, origin %+v", d.Port("b").Site, o)
	}
	if at := d.Port("b").RoleAt.At(); at.Line != 6 {
		t.Errorf("the role comes from %v", at)
	}
}

// TestApplications: NCCL sends what its application marks.
func TestApplications(t *testing.T) {
	const model = "apiVersion: fabricctl/v1\nkind: Fabric\nmetadata: {name: t}\ntopology: {devices: [{name: h, role: host, platform: linux/generic, ports: [{name: n, iface: n0}]}]}\n" +
		"mtu: {host: 9000B}\nclasses:\n  - {name: a, dscp: [26, 28], priority: 3, lossless: true}\n  - {name: b, dscp: [18], priority: 4, lossless: true}\n" +
		"  - {name: cnp, role: cnp, dscp: [48], priority: 6}\n  - {name: rest, dscp: rest, priority: 0}\n"
	for apps, want := range map[string]uint8{
		"": 0, "applications: [{name: other, class: b}]\n": 0, "applications: [{name: nccl, class: b}]\n": 18 << 2,
		"applications: [{name: nccl, class: a, dscp: 28}]\n":                   28 << 2,
		"applications: [{name: nccl, class: a, dscp: 28}]\nnccl: {class: b}\n": 18 << 2,
	} {
		n := resolve(t, file(model+apps), "m.yaml")
		if got := n.Devices[0].Policies[0].NCCL.TrafficClass; got != want {
			t.Errorf("%q: traffic class %d, want %d", apps, got, want)
		}
	}
}

// TestSilent: hosts whose links carry something, and no RDMA, are not told about NCCL; one port that may carry it is
// enough.
func TestSilent(t *testing.T) {
	for carries, want := range map[string]bool{"": true, ", carries: [rdma]": true, ", carries: [storage, rdma]": true, ", carries: [storage]": false} {
		n := resolve(t, file(strings.Replace(base, "hosts: {per_leaf: 2", "hosts: {per_leaf: 2"+carries, 1)), "m.yaml")
		if d := n.Device("host1"); d.PolicyOf(&d.Ports[0]).NCCL.On != want {
			t.Errorf("%q: NCCL is %v", carries, !want)
		}
	}
}
