package host

import (
	"fmt"
	"maps"
	"strings"
)

// kind is a family of NICs as its driver shows it: what it has, and how it is after the driver was loaded. The numbers
// are those of Linux 6.12, of the vendors' drivers where only these have a knob, and of public mlxconfig dumps.
type kind struct {
	driver, version string // version "" = the kernel's own driver, which has none
	personality     string
	models          map[string]string // NIC to PCI vendor and device
	rdma            string            // format of its RDMA devices' names, "" = it has none
	gid             int               // index of the RoCE v2 GID of a lone IPv4 address

	dcb     bool // it has dcbnl, with PFC, ETS and an app table
	tcs     int  // traffic classes
	buffer  bool
	maxRate bool
	narrow  bool              // takes a priority of the app table as one of its traffic classes
	fresh   func(*nic)        // what loading the driver makes of it, nil = what newNIC says
	settles []string          // scopes whose writes take the link down for a moment
	flags   map[string]string // private flags
	params  map[string]string // what scope cc has
	files   map[string]string // what scope roce has, besides the files that every RDMA device has
}

// kindOf finds the family of a NIC by its name in the catalog; one that is not known has dcbnl and nothing else, and
// virtio has not even that.
func kindOf(name string) *kind {
	for i, k := range kinds() {
		if _, ok := k.models[name]; ok {
			return &kinds()[i]
		}
	}
	if name == "virtio" {
		return &kind{driver: "virtio_net", personality: "generic"}
	}
	return &kind{driver: "unknown_nic", personality: "generic", rdma: "rdma_%d", gid: 1, dcb: true, tcs: 8}
}

func kinds() []kind {
	return []kind{
		{
			driver: "mlx5_core", version: "24.10-1.1.4", personality: "mlx5", rdma: "mlx5_%d", gid: 3, dcb: true, tcs: 8, buffer: true, maxRate: true,
			models: map[string]string{
				"connectx-4": "15b3:1013", "connectx-4-lx": "15b3:1015", "connectx-5": "15b3:1017", "connectx-6": "15b3:101b", "connectx-6-dx": "15b3:101d",
				"connectx-6-lx": "15b3:101f", "connectx-7": "15b3:1021", "connectx-8": "15b3:1023", "bluefield-2": "15b3:a2d6", "bluefield-3": "15b3:a2dc",
			},
			fresh: func(n *nic) { // the driver rewrites ETS when it is loaded
				n.ets.tsa = [8]string{"vendor", "vendor", "vendor", "vendor", "vendor", "vendor", "vendor", "vendor"}
				n.ets.prioTC[0], n.ets.prioTC[1] = 1, 0
				n.dcbx = "host cee ieee"
			},
			settles: []string{"pfc"},
			params: map[string]string{
				"enable": "0 1 2 3 4 5 6 7", "cnp-dscp": "48", "cnp-priority": "6", "algorithm": "dcqcn",
				"clamp_tgt_rate": "0", "clamp_tgt_rate_after_time_inc": "1", "time_reset": "300", "byte_reset": "32767", "threshold": "1",
				"max_rate": "0", "ai_rate": "5", "hai_rate": "50", "gd": "11", "min_dec_fac": "50", "min_rate": "1", "rate_to_set_on_first_cnp": "0",
				"dce_tcp_g": "1019", "dce_tcp_rtt": "1", "rate_reduce_monitor_period": "4", "initial_alpha_value": "1023", "min_time_between_cnps": "4",
			},
			files: map[string]string{"traffic-class": "-1"},
		},
		{
			driver: "bnxt_en", version: "1.10.3-231.0.162.0", personality: "bnxt", rdma: "bnxt_re%d", gid: 1, dcb: true, tcs: 8,
			models: map[string]string{"bcm57414": "14e4:16d7", "bcm57504": "14e4:1751", "bcm57508": "14e4:1750", "bcm57608": "14e4:1760"},
			params: map[string]string{"cnp-dscp": "48", "cnp-priority": "7", "algorithm": "dcqcn"},
		},
		{
			driver: "ice", personality: "ice", rdma: "irdma%d", gid: 1, dcb: true, tcs: 4, narrow: true,
			models: map[string]string{"e810": "8086:1592", "e823": "8086:188a", "e830": "8086:12dd"},
			fresh: func(n *nic) { // everything in one traffic class
				n.ets = ets{tsa: [8]string{"ets", "strict", "strict", "strict", "strict", "strict", "strict", "strict"}, bandwidth: [8]int{100}}
			},
			settles: []string{"pfc", "ets"},
			flags:   map[string]string{"fw-lldp-agent": "off"},
		},
	}
}

// nic is the state of a link's hardware and driver besides its MTU.
type nic struct {
	name  string // in the catalog
	kind  *kind
	index int // n-th RDMA device of its family
	jobs  int // queue pairs of running programs

	dcbx  string
	pfc   string // priorities
	delay int
	ets   ets
	apps  map[string]string // "dscp 26" to "3"
	prio  [8]int            // buffer of each priority
	sizes [8]int            // of each buffer, bytes
	rates [8]int            // kbit/s of each traffic class
	words map[string]string // every other knob, "pause receive" to "on"
}

type ets struct {
	prioTC, bandwidth [8]int
	tsa               [8]string
	willing           bool
}

// newNIC is a NIC as it is when its driver was loaded.
func newNIC(name string, index int) *nic {
	k := kindOf(name)
	n := &nic{name: name, kind: k, index: index, words: map[string]string{}}
	n.words["pause receive"], n.words["pause send"], n.words["pause autoneg"] = "on", "on", "off"
	n.words["ring rx"], n.words["ring tx"] = "1024", "1024"
	n.words["fec mode"] = "auto"
	n.words["irq affinity"] = "other"
	if k.personality != "generic" {
		n.words["pci max-read-request"] = "512"
	}
	if k.rdma != "" {
		n.words["roce mode"], n.words["roce tos"] = "v2", "0"
	}
	for what, from := range map[string]map[string]string{"flag ": k.flags, "cc ": k.params, "roce ": k.files} {
		for field, v := range from {
			n.words[what+field] = v
		}
	}
	if !k.dcb {
		return n
	}
	n.dcbx, n.pfc, n.apps = "host ieee", none, map[string]string{}
	for i := range 8 {
		n.ets.tsa[i], n.ets.prioTC[i] = "strict", i%k.tcs
	}
	if k.buffer {
		n.sizes[0] = 262016
	}
	if k.fresh != nil {
		k.fresh(n)
	}
	return n
}

func (n *nic) clone() *nic {
	c := *n
	c.apps, c.words = maps.Clone(n.apps), maps.Clone(n.words)
	return &c
}

// knobs are the names of what answers, as fabricctl-host lists them.
func (n *nic) knobs() []string {
	var ks []string
	if n.kind.dcb {
		ks = append(ks, "app", "dcbx", "ets", "pfc")
	}
	if n.kind.buffer {
		ks = append(ks, "buffer")
	}
	if n.kind.maxRate {
		ks = append(ks, "maxrate")
	}
	for w := range n.words {
		scope, field, _ := strings.Cut(w, " ")
		switch scope {
		case "pause", "ring", "fec", "irq":
			ks = append(ks, scope)
		default:
			ks = append(ks, scope+"."+field)
		}
	}
	return sorted(ks)
}

// device is the name of its RDMA device, "" when it has none.
func (n *nic) device() string {
	if n.kind.rdma == "" {
		return ""
	}
	return fmt.Sprintf(n.kind.rdma, n.index)
}
