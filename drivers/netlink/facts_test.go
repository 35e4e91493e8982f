package netlink

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/fabricctl/fabricctl/drivers/netlink/dcb"
	"github.com/fabricctl/fabricctl/drivers/netlink/dcb/dcbfake"
	"github.com/fabricctl/fabricctl/model/journal"
	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/profiles"
	"github.com/fabricctl/fabricctl/render"
	"github.com/google/go-cmp/cmp"
)

// recorded serves the tree of a soft-RoCE device as a virtual machine showed it: what failed to be read then fails now.
func recorded(t *testing.T) *memTree {
	t.Helper()
	b, err := os.ReadFile("testdata/rxe0-gids.txt")
	if err != nil {
		t.Fatal(err)
	}
	tree := newTree()
	for s := bufio.NewScanner(bytes.NewReader(b)); s.Scan(); {
		_, rest, _ := strings.Cut(s.Text(), " ./")
		name, v, _ := strings.Cut(rest, " = ")
		name = sysRDMA + "/rxe0/" + name
		tree.files[name] = strings.ReplaceAll(v, "~", "\n")
		if strings.Contains(v, "Invalid argument") {
			tree.bad[name] = syscall.EINVAL
		}
	}
	return tree
}

func TestRecordedGIDs(t *testing.T) {
	ports, notes := rdmaPorts(recorded(t), true)
	if len(ports) != 1 || len(notes) > 0 || len(ports[0].gids) != 2 {
		t.Fatalf("%d ports, %v: %+v", len(ports), notes, ports)
	}
	p := rdmaOf(ports, "eth0", "", hardware{pci: "0000:00:02.0"})
	if p == nil || p.device != "rxe0" || p.port != 1 {
		t.Fatalf("%+v", p)
	}
	if i, why := gidOf(p.gids, []string{"eth0"}); i != 1 || why != "" {
		t.Errorf("index %d, %q", i, why)
	}
}

// The index of an address is not a number that one may know beforehand.
func TestGIDs(t *testing.T) {
	addr := func(s string) netip.Addr {
		a := netip.MustParseAddr(s)
		return netip.AddrFrom16(a.As16())
	}
	link := gidEntry{0, addr("fe80::1"), true, "eth0"}
	for _, tt := range []struct {
		name  string
		table []gidEntry
		want  int
		why   string
	}{
		{"v1 and v2, a single address", []gidEntry{{0, addr("fe80::1"), false, "eth0"}, {1, addr("fe80::1"), true, "eth0"}, {2, addr("10.0.0.1"), false, "eth0"}, {3, addr("10.0.0.1"), true, "eth0"}}, 3, ""},
		{"v2 alone", []gidEntry{link, {1, addr("10.0.0.1"), true, "eth0"}}, 1, ""},
		{"after a flap, with holes", []gidEntry{link, {6, addr("10.0.0.1"), true, "eth0"}}, 6, ""},
		{"a VLAN's goes last", []gidEntry{link, {2, addr("10.0.9.1"), true, "eth0.100"}, {5, addr("10.0.0.1"), true, "eth0"}}, 5, "5 is 10.0.0.1 on eth0, and there are more: 2 is 10.0.9.1 on eth0.100"},
		{"of another port", []gidEntry{link, {1, addr("10.0.0.1"), true, "eth1"}}, -1, "eth0 has no IPv4 address in the GID table"},
		{"v1 alone", []gidEntry{{0, addr("10.0.0.1"), false, "eth0"}}, -1, "the IPv4 address has a GID of RoCE v1 only"},
		{"IPv6 alone", []gidEntry{link, {1, addr("2001:db8::1"), true, "eth0"}}, -1, "there are GIDs of IPv6 addresses only"},
		{"empty", nil, -1, "the GID table is empty"},
	} {
		if i, why := gidOf(tt.table, []string{"eth0", "eth0.100"}); i != tt.want || why != tt.why {
			t.Errorf("%s: %d, %q", tt.name, i, why)
		}
	}
}

func TestNICFacts(t *testing.T) {
	r := newRig(t)
	n := r.mlx5("eth0", "17", "mlx5_0")
	n.Alter(func(h *dcbfake.Hardware) { h.DCBX |= dcb.Host })
	r.address("eth0", "mlx5_0", "192.168.1.11/24")
	r.rdma.qps["mlx5_0"] = 5
	r.tree.files["sys/module/mlx5_core/version"] = "24.10-1.1.4\n"
	for pci, node := range map[string]string{"0000:18:00.0": "0", "0000:98:00.0": "1"} {
		dir := "sys/devices/pci0000:" + pci[5:7] + "/" + pci
		r.tree.links["sys/bus/pci/devices/"+pci] = dir
		for file, v := range map[string]string{"class": "0x030200", "vendor": "0x10de", "numa_node": node} {
			r.tree.files[dir+"/"+file] = v + "\n"
		}
	}
	r.tree.files["proc/net/route"] = "Iface Destination Gateway Flags RefCnt Use Metric Mask\neth0 00000000 010200C0 0003 0 0 0 00000000 0 0 0\n"
	f, caps, err := r.Facts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := render.HostNIC{
		Name: "eth0", PCI: "0000:17:00.0", Model: "15b3:1021", Driver: "mlx5_core", DriverVersion: "24.10-1.1.4", Firmware: "28.38.1002", OutOfTree: true,
		Personality: "mlx5", RDMA: "mlx5_0", RDMAPort: 1, NUMA: 0, GPUs: []string{"0000:18:00.0"}, Addresses: []string{"192.168.1.11/24"},
		GID: 3, QPs: 5, Management: true,
		Link: render.HostLink{Up: true, Speed: 400 * units.Gbps, PCIeSpeed: "16.0 GT/s PCIe", PCIeMaxSpeed: "32.0 GT/s PCIe", PCIeWidth: 16, PCIeMaxWidth: 16},
	}
	if len(f.NICs) != 1 {
		t.Fatalf("%+v", f.NICs)
	}
	got := f.NICs[0]
	for _, k := range []string{"app", "buffer", "cc.ai_rate", "cc.cnp-dscp", "dcbx", "ets", "fec", "irq", "maxrate", "pause", "pci.max-read-request", "pfc", "ring", "roce.mode", "roce.tos"} {
		if !got.Has(k) {
			t.Errorf("%s does not answer: %v", k, got.Knobs)
		}
	}
	if got.Has("cc.enable") || got.Has("roce.traffic-class") {
		t.Errorf("knobs that are not there: %v", got.Knobs)
	}
	got.Knobs = nil
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if !caps.Confirm || !caps.PersistsOnCommit || len(f.Owners) > 0 {
		t.Errorf("%+v, owners %q", caps, f.Owners)
	}
	if r.writes() > 0 {
		t.Errorf("looking wrote %v", r.tree.writes)
	}
}

// What only verbs know comes from their own program, which is asked once for each firmware.
func TestVerbsLimits(t *testing.T) {
	out, err := os.ReadFile("testdata/ibv_devinfo-v.txt")
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t)
	r.mlx5("eth0", "17", "rxe0")
	r.tree.files["usr/bin/ibv_devinfo"] = ""
	asked := 0
	r.cfg.Run = func(_ context.Context, argv []string) ([]byte, error) {
		asked++
		if d := cmp.Diff([]string{verbsProgram, "-v"}, argv); d != "" {
			t.Error(d)
		}
		return out, nil
	}
	for range 2 {
		f, _, err := r.Facts(t.Context())
		if err != nil || f.NICs[0].MaxQP != 1048560 || f.NICs[0].MaxCQ != 1048576 {
			t.Errorf("%v, %+v", err, f.NICs[0])
		}
		run := r.cfg.Run
		r.reopen()
		r.cfg.Run = run
	}
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}
	r.tree.files[sysRDMA+"/rxe0/fw_ver"] = "28.39.0\n"
	if _, _, err := r.Facts(t.Context()); err != nil || asked != 2 {
		t.Errorf("%v, asked %d times after new firmware", err, asked)
	}
}

// Slaves of a bond have dcbnl each, and share the RDMA device of the bond and its addresses; a VLAN's address counts too.
func TestBond(t *testing.T) {
	r := newRig(t)
	r.mlx5("eth0", "17", "mlx5_bond_0")
	r.plug("eth1", "18", "15b3:1021", dcbfake.MLX5(), "")
	r.tree.links["sys/class/net/eth1/device"] = "sys/devices/pci0000:17/0000:17:00.1"
	dir := "sys/devices/pci0000:18/0000:18:00.0"
	for f, v := range r.tree.files {
		if rest, ok := strings.CutPrefix(f, dir+"/"); ok {
			r.tree.files["sys/devices/pci0000:17/0000:17:00.1/"+rest] = v
		}
	}
	r.tree.links["sys/devices/pci0000:17/0000:17:00.1/driver"] = "sys/bus/pci/drivers/mlx5_core"
	r.k.links = append(r.k.links, Link{Index: 8, Name: "bond0", Kind: "bond", MTU: 1500, Max: 65535}, Link{Index: 9, Name: "bond0.7", Kind: "vlan", MTU: 1500, Lower: 8, Max: 65535})
	r.k.links[1].Master, r.k.links[2].Master = 8, 8
	r.address("bond0", "mlx5_bond_0", "10.1.0.1/24")
	r.k.addrs[9] = []netip.Prefix{netip.MustParsePrefix("10.2.0.1/24")}
	r.cfg.Session = "192.0.2.9 50000 10.2.0.1 22"
	f, _, err := r.Facts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"eth0", "eth1"} {
		n, ok := f.NIC(name)
		if !ok || n.Bond != "bond0" || n.RDMA != "mlx5_bond_0" || n.GID != 3 || !n.Management || !n.Has("pfc") {
			t.Errorf("%s: %+v", name, n)
		}
		if d := cmp.Diff([]string{"10.1.0.1/24", "10.2.0.1/24"}, n.Addresses); d != "" {
			t.Error(name, d)
		}
	}
	r.tree.files["sys/class/net/bond0/bonding/mode"] = "802.3ad 4\n"
	for policy, want := range map[string]bool{"layer2 0": true, "layer2+3 2": true, "layer3+4 1": false} {
		r.tree.files["sys/class/net/bond0/bonding/xmit_hash_policy"] = policy + "\n"
		f, _, err := r.Facts(t.Context())
		if err != nil || strings.Contains(strings.Join(f.Notes, "\n"), "ip link set bond0 type bond xmit_hash_policy layer3+4") != want {
			t.Errorf("%s: %v, %q", policy, err, f.Notes)
		}
	}
	// MTU: the master first, the slaves follow by themselves, the VLAN comes after.
	r.k.bond = func(index int32, mtu uint32) {
		for i := range r.k.links {
			if r.k.links[i].Master == index {
				r.k.links[i].MTU = mtu
			}
		}
	}
	up := []string{"link|bond0.7|mtu=9000", "link|eth0|mtu=9000", "link|bond0|mtu=9000", "link|eth1|mtu=9000"}
	cs := changes(t, r, up...)
	if err := r.Commit(t.Context(), "tx1", cs, 0); err != nil {
		t.Fatal(err)
	}
	if err := r.Commit(t.Context(), "tx2", render.Undo(cs), 0); err != nil {
		t.Fatal(err)
	}
}

// Who else would write, each with what ends that; and what is worth knowing.
func TestOwners(t *testing.T) {
	for _, tt := range []struct {
		name  string
		kind  string
		files map[string]string
		alter func(*dcbfake.Hardware)
		owner string // "" = none
		note  string
	}{
		{name: "nobody", kind: "ice"},
		{name: "lldpad", kind: "ice", files: map[string]string{"proc/net/unix": "0: 2 0 10000 1 1 99 @/com/intel/lldpad\n"}, owner: "systemctl disable --now lldpad.service lldpad.socket"},
		{name: "lldpad by its unit", kind: "ice", files: map[string]string{"sys/fs/cgroup/system.slice/lldpad.service/cgroup.procs": "712\n"}, owner: "lldpad runs"},
		{name: "firmware agent of bnxt", kind: "bnxt", alter: func(h *dcbfake.Hardware) { h.FirmwareLLDP = true }, owner: "eth0: its firmware rules QoS"},
		{name: "firmware agent of ice", kind: "ice", alter: func(h *dcbfake.Hardware) { h.FirmwareLLDP = true }, note: "eth0: an LLDP agent, of firmware or on this host, rules QoS"},
		{name: "a unit with mlnx_qos", kind: "mlx5", files: map[string]string{
			"etc/systemd/system/multi-user.target.wants/roce.service": "[Service]\nExecStart=/usr/bin/mlnx_qos -i eth0 --pfc 0,0,0,1,0,0,0,0\n",
		}, owner: "the unit roce.service runs mlnx_qos at boot: systemctl disable --now roce.service"},
		{name: "a comment", kind: "mlx5", files: map[string]string{"etc/rc.local": "# mlnx_qos was here\n"}},
		{name: "rc.local", kind: "mlx5", files: map[string]string{"etc/rc.local": "#!/bin/sh\ndcb pfc set dev eth0 prio-pfc 3:on\n"}, owner: "/etc/rc.local runs dcb pfc: take that line out"},
		{name: "our own unit", kind: "mlx5", files: map[string]string{"etc/systemd/system/multi-user.target.wants/fabricctl-host.service": "ExecStart=x dcb pfc\n"}},
		{name: "networkd", kind: "mlx5", files: map[string]string{"etc/systemd/network/10-x.network": "[Match]\nName=eth0\n[Link]\nMTUBytes=4200\n"}, note: "eth0: /etc/systemd/network/10-x.network sets MTU 4200, and 1500 is in force: write MTUBytes=1500 there"},
		{name: "NetworkManager", kind: "mlx5", files: map[string]string{"etc/NetworkManager/system-connections/x.nmconnection": "[connection]\ninterface-name=eth0\n[ethernet]\nmtu=9000\n"}, note: "write mtu=1500 there"},
		{name: "irqbalance", kind: "mlx5", files: map[string]string{"sys/fs/cgroup/system.slice/irqbalance.service/cgroup.procs": "7\n"}, note: "irqbalance runs"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, n := nicRig(t, tt.kind)
			n.Alter(func(h *dcbfake.Hardware) { h.DCBX |= dcb.Host })
			if tt.alter != nil {
				n.Alter(tt.alter)
			}
			for name, text := range tt.files {
				r.tree.files[name] = text
			}
			f, _, err := r.Facts(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			owners, notes := strings.Join(f.Owners, "\n"), strings.Join(f.Notes, "\n")
			if (tt.owner == "") != (owners == "") || !strings.Contains(owners, tt.owner) {
				t.Errorf("owners %q, want %q", owners, tt.owner)
			}
			if !strings.Contains(notes, tt.note) {
				t.Errorf("notes %q, want %q", notes, tt.note)
			}
		})
	}
}

// An MTU that a file of the system takes back is refused, with the line that would do; one that the file has is set, and
// goes back though the file says otherwise by then.
func TestMTUOfFiles(t *testing.T) {
	r, _ := nicRig(t, "mlx5")
	const name = "etc/systemd/network/10-eth0.network"
	r.tree.files[name] = "[Match]\nName=eth0\n[Link]\nMTUBytes=1500\n"
	cs := changes(t, r, "link|eth0|mtu=9000")
	err := r.Commit(t.Context(), "tx1", cs, 0)
	if err == nil || !strings.Contains(err.Error(), "/etc/systemd/network/10-eth0.network sets MTU 1500 and would take the change back: write MTUBytes=9000 there") || r.writes() > 0 {
		t.Errorf("got %v", err)
	}
	r.tree.files[name] = "[Match]\nName=eth0\n[Link]\nMTUBytes=9000\n"
	if err := r.Commit(t.Context(), "tx2", cs, 0); err != nil {
		t.Fatal(err)
	}
	r.reopen()
	if err := r.Commit(t.Context(), "tx3", changes(t, r, "link|eth0|mtu=4200"), 0); err == nil {
		t.Error("a third value")
	}
	if err := r.Commit(t.Context(), "tx4", render.Undo(cs), 0); err != nil {
		t.Error(err)
	}
}

// Two NICs in one subnet answer for each other, and drop what comes back by the other way.
func TestOneSubnet(t *testing.T) {
	r := newRig(t)
	r.mlx5("eth0", "98", "mlx5_0")
	r.mlx5("eth1", "17", "mlx5_1")
	r.address("eth0", "mlx5_0", "10.0.0.1/24")
	r.address("eth1", "mlx5_1", "10.0.0.2/24")
	r.tree.files["proc/sys/net/ipv4/conf/all/arp_announce"] = "2\n"
	r.tree.files["proc/sys/net/ipv4/conf/eth1/rp_filter"] = "1\n"
	r.tree.files["proc/sys/net/ipv4/conf/eth1/arp_ignore"] = "1\n"
	f, _, err := r.Facts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	notes := strings.Join(f.Notes, "\n")
	for _, want := range []string{
		"eth0, eth1 are all in 10.0.0.0/24",
		"eth0 answers ARP for the others (net.ipv4.conf.eth0.arp_ignore=0, want 1)",
		"eth1 drops what comes back by another way (net.ipv4.conf.eth1.rp_filter=1",
		"RDMA devices are not numbered in the order of their PCI addresses (mlx5_0 is 0000:98:00.0, mlx5_1 is 0000:17:00.0)",
	} {
		if !strings.Contains(notes, want) {
			t.Errorf("no %q in\n%s", want, notes)
		}
	}
	if strings.Contains(notes, "eth1 answers ARP") || strings.Contains(notes, "arp_announce=") {
		t.Errorf("too much in\n%s", notes)
	}
}

// The session is found above sudo, which takes it out of the environment.
func TestSession(t *testing.T) {
	r := newRig(t)
	r.tree.files["proc/30/stat"] = "30 (fabricctl-host) S 20 1\n"
	r.tree.files["proc/30/environ"] = "PATH=/bin\x00"
	r.tree.files["proc/20/stat"] = "20 (a ) S 99 b) S 10 1\n"
	r.tree.files["proc/20/environ"] = "A=b\x00SSH_CONNECTION=192.0.2.1 1 fe80::7%eth0 22\x00"
	r.cfg.PID = 30
	if s := r.session(); s != "fe80::7" {
		t.Errorf("%q", s)
	}
	r.tree.files["proc/20/environ"] = ""
	if s := r.session(); s != "" {
		t.Errorf("%q", s)
	}
	r.tree.files["proc/20/stat"] = "20 (a) S 30 1\n" // a loop
	if s := r.session(); s != "" {
		t.Errorf("%q", s)
	}
}

// A NIC that nobody knows is looked at, and not written but for its MTU.
func TestUnknownNIC(t *testing.T) {
	r := newRig(t)
	r.plug("eth0", "17", "abcd:0001", dcbfake.Generic(), "foo_0")
	r.tree.links["sys/devices/pci0000:17/0000:17:00.0/driver"] = "sys/bus/pci/drivers/foo"
	f, _, err := r.Facts(t.Context())
	if err != nil || f.NICs[0].Personality != "generic" || !f.NICs[0].Has("pfc") {
		t.Fatalf("%v, %+v", err, f.NICs)
	}
	err = r.Commit(t.Context(), "tx1", changes(t, r, "pfc|eth0|priorities=3"), 0)
	if err == nil || !strings.Contains(err.Error(), "NICs of driver none are read-only: ") || r.writes() > 0 {
		t.Errorf("got %v", err)
	}
}

// A driver without dcbnl that has PFC as a file is read and set by it, where somebody says how.
func TestPFCByFile(t *testing.T) {
	r := newRig(t)
	r.plug("eth0", "17", "1f0f:3403", dcbfake.Generic().Without(dcbfake.PFC), "nbl_0")
	cat, err := profiles.Default()
	if err != nil {
		t.Fatal(err)
	}
	fact := func(key, value string) string {
		return fmt.Sprintf(`{"key":%q,"values":[%q],"source":"s","confidence":"high"}`, key, value)
	}
	knob := `{"paths":["/sys/class/net/{netdev}/qos/pfc"],"flags":true,"effect":"none"}`
	told := `{"name":"mine","facts":[` + strings.Join([]string{
		fact("status", "managed"), fact("drivers", "generic"), fact("pfc", "settable"), fact("dcbx_own", "host-ieee"), fact("pfc.priorities", knob),
	}, ",") + `]}`
	if cat, err = cat.Know([]json.RawMessage{json.RawMessage(told)}); err != nil {
		t.Fatal(err)
	}
	r.Know(cat)
	file := "sys/class/net/eth0/qos/pfc"
	r.tree.files[file] = "0,0,0,0,0,0,0,0\n"
	f, _, err := r.Facts(t.Context())
	if err != nil || !f.NICs[0].Has("pfc") {
		t.Errorf("%v, %v", err, f.NICs[0].Knobs)
	}
	cs := changes(t, r, "app|eth0|dscp 26=3", "pfc|eth0|priorities=3")
	if err := r.Commit(t.Context(), "tx1", cs, 0); err != nil || r.tree.files[file] != "0,0,0,1,0,0,0,0\n" {
		t.Errorf("%v, %q", err, r.tree.files[file])
	}
	if err := r.Commit(t.Context(), "tx2", render.Undo(cs), 0); err != nil || r.tree.files[file] != "0,0,0,0,0,0,0,0\n" {
		t.Errorf("%v, %q", err, r.tree.files[file])
	}
}

// Where dcbnl has PFC, a file or a program that shows it too is neither read nor written.
func TestPFCByFileBesideDCB(t *testing.T) {
	r := newRig(t)
	n := r.plug("eth0", "17", "1f0f:3403", dcbfake.Generic(), "nbl_0")
	cat, err := profiles.Default()
	if err != nil {
		t.Fatal(err)
	}
	told := `{"name":"mine","facts":[{"key":"status","values":["managed"],"source":"s","confidence":"high"},{"key":"drivers","values":["` + dcbfake.Generic().Name +
		`"],"source":"s","confidence":"high"},{"key":"pfc.priorities","values":["{\"command\":[\"/usr/bin/mine\",\"{netdev}\"],\"flags\":true}"],"source":"s","confidence":"high"}]}`
	if cat, err = cat.Know([]json.RawMessage{json.RawMessage(told)}); err != nil {
		t.Fatal(err)
	}
	r.Know(cat)
	r.tree.files["usr/bin/mine"] = ""
	n.Alter(func(h *dcbfake.Hardware) { h.DCBX |= dcb.Host })
	if err := r.Commit(t.Context(), "tx1", changes(t, r, "pfc|eth0|priorities=3"), 0); err != nil {
		t.Error(err)
	}
}

// A getter that fails is said; one that is not there is not.
func TestGetterFails(t *testing.T) {
	r, _ := nicRig(t, "mlx5")
	r.eth.links["eth0"].pauseErr = syscall.EIO
	r.tree.bad["sys/kernel/debug/mlx5/0000:17:00.0/cc_params/rp_ai_rate"] = syscall.EACCES
	f, _, err := r.Facts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	notes := strings.Join(f.Notes, "\n")
	for _, want := range []string{"eth0: link pause: input/output error", "eth0: cc.ai_rate: "} {
		if !strings.Contains(notes, want) {
			t.Errorf("no %q in\n%s", want, notes)
		}
	}
	c, err := r.Read(t.Context())
	if _, ok := c.Find(key("pause|eth0|receive")); ok || err != nil {
		t.Errorf("%v, %v", ok, err)
	}
}

// Who writes from afar is told that an agent sets back what its file does not say.
func TestFactsSayAgent(t *testing.T) {
	r, _ := nicRig(t, "mlx5")
	says := func() bool {
		f, _, err := r.Facts(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(f.Notes, func(n string) bool { return strings.Contains(n, "the agent of fabricctl-host keeps this host") })
	}
	if says() {
		t.Error("an agent that is not there")
	}
	if err := os.MkdirAll(r.cfg.State, 0o700); err != nil {
		t.Fatal(err)
	}
	unlock, err := journal.Lock(t.Context(), filepath.Join(r.cfg.State, AgentLock), "test", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	if !says() {
		t.Error("nothing is said of an agent")
	}
}
