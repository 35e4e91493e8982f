package netlink

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/drivers/conform"
	"github.com/fabricctl/fabricctl/drivers/netlink/dcb/dcbfake"
	"github.com/fabricctl/fabricctl/model/observe"
	"github.com/fabricctl/fabricctl/profiles"
)

// asDriver is what drivers call some counters, written down a second time; "/" stands for the RDMA device.
func asDriver(kind string) map[observe.Name]string {
	return map[string]map[observe.Name]string{
		"mlx5": {"cnp.sent": "/np_cnp_sent", "rdma.nak": "/packet_seq_err", "pfc.paused_ns.3": "rx_prio3_pause_duration", "port.drop.in": "rx_discards_phy", "tx.bytes.6": "tx_prio6_bytes"},
		"bnxt": {"cnp.received": "/rx_cnp_pkts", "nic.no-buffer": "/rx_roce_discards", "pfc.pausing_ns.4": "pfc_pri4_tx_duration_us", "link-pause.rx": "rx_pause_frames"},
		"ice":  {"cnp.handled": "/cnpHandled", "ecn.received": "/RxECNMrkd", "port.drop.in": "rx_dropped.nic"},
		"hns3": {"cnp.sent": "/tx_cnp_pkt", "cnp.received": "/rx_cnp_pkt"},
	}[kind]
}

// count makes the NIC of a link show these counters and no others of them.
func (r *rig) count(kind, link, device string, values map[observe.Name]uint64) {
	r.eth.links[link].stats = map[string]uint64{"rx_packets": 1}
	for name, as := range asDriver(kind) {
		v, ok := values[name]
		if strings.Contains(string(name), "_ns.") {
			v /= 1000
		}
		file, isRDMA := strings.CutPrefix(as, "/")
		path := sysRDMA + "/" + device + "/ports/1/hw_counters/" + file
		switch {
		case isRDMA && ok:
			r.tree.files[path] = strconv.FormatUint(v, 10) + "\n"
		case isRDMA:
			delete(r.tree.files, path)
		case ok:
			r.eth.links[link].stats[as] = v
		}
	}
}

// counting is the counters of the two NICs of a machine of the suite.
func counting(r *rig, kind string) *conform.Counting {
	devices := map[string]string{}
	for _, k := range kinds {
		if k.name == kind {
			devices["eth0"], devices["eth1"] = k.device, k.device[:len(k.device)-1]+"9"
		}
	}
	values := map[observe.Port]uint64{}
	for i, link := range []string{"eth0", "eth1"} {
		for j, name := range slices.Sorted(func(yield func(observe.Name) bool) {
			for n := range asDriver(kind) {
				if !yield(n) {
					return
				}
			}
		}) {
			values[observe.Port{Iface: link, Name: name}] = uint64(1000 * (i + 1) * j)
		}
	}
	file := func(text string) func() {
		return func() {
			for _, as := range asDriver(kind) {
				if f, ok := strings.CutPrefix(as, "/"); ok {
					for _, d := range devices {
						r.tree.files[sysRDMA+"/"+d+"/ports/1/hw_counters/"+f] = text
					}
				}
			}
		}
	}
	return &conform.Counting{
		Values: values,
		Set: func(values map[observe.Port]uint64) {
			for link, device := range devices {
				of := map[observe.Name]uint64{}
				for p, v := range values {
					if p.Iface == link {
						of[p.Name] = v
					}
				}
				r.count(kind, link, device, of)
			}
		},
		Junk: map[string]func(){
			"negative": file("-1\n"), "not a number": file("N/A\n"), "too large": file("18446744073709551616\n"), "escapes": file("\x1b[2J7\n"), "empty": file(""), "two numbers": file("1 2\n"),
			"another number of statistics": func() { r.eth.links["eth0"].grown, r.eth.links["eth1"].grown = 1, -1 },
		},
		Asked: func() int { return r.eth.links["eth0"].asked + r.eth.links["eth1"].asked },
		Most:  2,
	}
}

// TestSense: a NIC without names of its own has dcbnl's frames of PFC; slaves of a bond share an RDMA device, whose counters
// stand at the first; what nobody asks for is not read.
func TestSense(t *testing.T) {
	r := newRig(t)
	n := r.plug("acme0", "17", "1e49:0001", dcbfake.Generic(), "acme_0")
	r.mlx5("rail0", "18", "mlx5_bond_0")
	r.mlx5("rail1", "19", "")
	second := "sys/devices/pci0000:18/0000:18:00.1" // the other port of the same adapter
	r.tree.links["sys/class/net/rail1/device"] = second
	for f, v := range r.tree.files {
		if rest, ok := strings.CutPrefix(f, "sys/devices/pci0000:19/0000:19:00.0/"); ok {
			r.tree.files[second+"/"+rest] = v
		}
	}
	r.tree.links[second+"/driver"] = "sys/bus/pci/drivers/mlx5_core"
	n.Alter(func(h *dcbfake.Hardware) { h.PFC.Requests[3], h.PFC.Indications[3] = 5, 6 })
	r.k.links = append(r.k.links, Link{Index: 90, Name: "bond0", MTU: 1500, Kind: "bond", Up: true})
	for i := range r.k.links {
		if strings.HasPrefix(r.k.links[i].Name, "rail") {
			r.k.links[i].Master = 90
		}
	}
	r.address("bond0", "mlx5_bond_0", "192.168.1.1/24")
	r.count("mlx5", "rail0", "mlx5_bond_0", map[observe.Name]uint64{"cnp.sent": 7, "port.drop.in": 1})
	r.count("mlx5", "rail1", "mlx5_bond_0", map[observe.Name]uint64{"cnp.sent": 7, "port.drop.in": 2})
	got, err := r.Sense(t.Context(), []observe.Name{"pfc.tx.3", "pfc.rx.3", "cnp.sent"})
	if err != nil {
		t.Fatal(err)
	}
	want := map[observe.Port]uint64{{Iface: "acme0", Name: "pfc.tx.3"}: 5, {Iface: "acme0", Name: "pfc.rx.3"}: 6, {Iface: "rail0", Name: "cnp.sent"}: 7}
	for _, link := range []string{"rail0", "rail1"} { // PFC is there, and counted by dcbnl alone
		want[observe.Port{Iface: link, Name: "pfc.tx.3"}], want[observe.Port{Iface: link, Name: "pfc.rx.3"}] = 0, 0
	}
	if d := cmp.Diff(want, got.Values); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if !got.At.Equal(r.clock) {
		t.Error(got.At)
	}
	asked := r.eth.links["rail0"].asked
	f, _, err := r.Facts(t.Context())
	for _, n := range f.NICs {
		if err != nil || strings.HasPrefix(n.Name, "rail") && n.RDMA != "mlx5_bond_0" {
			t.Errorf("%v %+v", err, n)
		}
	}
	if got, err = r.Sense(t.Context(), []observe.Name{"cnp.sent"}); err != nil || len(got.Values) != 1 || r.eth.links["rail0"].asked != asked {
		t.Errorf("%v %v, %d readings of statistics for what is none", got.Values, err, r.eth.links["rail0"].asked-asked)
	}
}

// What personalities call counters has canonical names, and these are all that a NIC can have.
func TestCounterNames(t *testing.T) {
	var want []string
	for _, c := range observe.Counted() {
		name := string(c.Name)
		if c.Each {
			name += ".{priority}"
		}
		of := func(prefix string) bool { return strings.HasPrefix(name, prefix) }
		if !of("watermark.") && !of("watchdog.") && !of("ecn.marked.") {
			want = append(want, name)
		}
	}
	got := profiles.CounterNames()
	slices.Sort(want)
	slices.Sort(got)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
