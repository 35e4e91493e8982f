package host

import (
	"slices"

	"github.com/fabricctl/fabricctl/drivers/netlink/dcb"
	"github.com/fabricctl/fabricctl/drivers/netlink/dcb/dcbfake"
)

// kind is a family of NICs as its driver shows it. What dcbnl does is dcbfake's; the numbers of the rest are those of
// Linux 6.12, of the vendors' drivers where only these have a knob, and of public mlxconfig dumps.
type kind struct {
	driver, version string // version "" = the kernel's own driver, which has none
	personality     string
	models          map[string]string // NIC to PCI vendor and device
	rdma            string            // format of its RDMA devices' names, "" = it has none
	gid             int               // index of the RoCE v2 GID of a lone IPv4 address

	dcb     func() dcbfake.Driver   // nil = it has no dcbnl
	factory func(*dcbfake.Hardware) // what the factory leaves otherwise than dcbfake has it
	flag    string                  // private flag of its firmware's LLDP agent
	params  map[string]string       // what scope cc has
	files   map[string]string       // what scope roce has, besides the files that every RDMA device has

	downs    []string // scopes outside dcbnl whose writes take the link down for a moment
	disturbs []string // all scopes whose writes may end live connections
	signs    []string // of a DCBX mode, by which firmware rules QoS: "no-host", "lld-managed", "cee"
	remedy   string   // what ends that; NETDEV is the interface
	zero     bool     // a mode without host is asked for as 0
	replaces string   // what becomes of a DSCP's old entry: "" = it stays beside the new one, "itself", or "first" = it has to go before
	resets   bool     // the first app entry moves ETS
	noBond   bool     // takes no QoS while in a bond
	noPause  bool     // hides link pause while PFC is on
}

// kindOf finds the family of a NIC by its name in the catalog; one that is not known has dcbnl and nothing else, and
// virtio has not even that.
func kindOf(name string) *kind {
	for _, k := range kinds() {
		if _, ok := k.models[name]; ok {
			return &k
		}
	}
	if name == "virtio" {
		return &kind{driver: "virtio_net", personality: "generic"}
	}
	return &kind{
		driver: "unknown_nic", personality: "generic", rdma: "rdma_%d", gid: 1, dcb: dcbfake.Generic,
		disturbs: []string{"dcbx", "app", "ets", "pfc", "buffer", "link", "pause", "ring", "fec"}, signs: []string{noHost, lldManaged, cee}, remedy: "see the documentation of its driver",
	}
}

// Signs by which somebody else than the host rules QoS.
const (
	noHost     = "no-host"
	lldManaged = "lld-managed"
	cee        = "cee"
)

func kinds() []kind {
	return []kind{
		{
			driver: "mlx5_core", version: "24.10-1.1.4", personality: "mlx5", rdma: "mlx5_%d", gid: 3, dcb: dcbfake.MLX5,
			models: map[string]string{
				"connectx-4": "15b3:1013", "connectx-4-lx": "15b3:1015", "connectx-5": "15b3:1017", "connectx-6": "15b3:101b", "connectx-6-dx": "15b3:101d",
				"connectx-6-lx": "15b3:101f", "connectx-7": "15b3:1021", "connectx-8": "15b3:1023", "bluefield-2": "15b3:a2d6", "bluefield-3": "15b3:a2dc",
			},
			factory:  func(h *dcbfake.Hardware) { h.DCBX |= dcb.Host }, // its firmware's agent is off, as mlxconfig has it
			downs:    []string{"fec"},
			disturbs: []string{"pfc", "fec"},
			signs:    []string{noHost}, zero: true, replaces: "itself",
			remedy: "mlnx_qos -i NETDEV -d os",
			params: map[string]string{
				"enable": "0 1 2 3 4 5 6 7", "cnp-dscp": "48", "cnp-priority": "6", "algorithm": "dcqcn",
				"clamp_tgt_rate": "0", "clamp_tgt_rate_after_time_inc": "1", "time_reset": "300", "byte_reset": "32767", "threshold": "1",
				"max_rate": "0", "ai_rate": "5", "hai_rate": "50", "gd": "11", "min_dec_fac": "50", "min_rate": "1", "rate_to_set_on_first_cnp": "0",
				"dce_tcp_g": "1019", "dce_tcp_rtt": "1", "rate_reduce_monitor_period": "4", "initial_alpha_value": "1023", "min_time_between_cnps": "4",
			},
			files: map[string]string{"traffic-class": "-1"},
		},
		{
			driver: "bnxt_en", version: "1.10.3-231.0.162.0", personality: "bnxt", rdma: "bnxt_re%d", gid: 1, dcb: dcbfake.BNXT,
			models:   map[string]string{"bcm57414": "14e4:16d7", "bcm57504": "14e4:1751", "bcm57508": "14e4:1750", "bcm57608": "14e4:1760"},
			downs:    []string{"link", "ring", "fec"},
			disturbs: []string{"ets", "pfc", "link", "pause", "ring", "fec"},
			signs:    []string{noHost}, replaces: "first",
			remedy: "switch the firmware's LLDP agent off with niccli (option lldp_nearest_bridge), then reset the adapter or reboot",
			params: map[string]string{"cnp-dscp": "48", "cnp-priority": "7", "algorithm": "dcqcn", "enable": on, "min_time_between_cnps": "0"},
		},
		{
			driver: "ice", personality: "ice", rdma: "irdma%d", gid: 1, dcb: dcbfake.Ice,
			models:   map[string]string{"e810": "8086:1592", "e823": "8086:188a", "e830": "8086:12dd"},
			factory:  func(h *dcbfake.Hardware) { h.FirmwareLLDP = true },
			flag:     "fw-lldp-agent",
			downs:    []string{"link", "pause", "ring", "fec"},
			disturbs: []string{"app", "ets", "pfc", "link", "pause", "ring", "fec"},
			signs:    []string{lldManaged, noHost, cee}, replaces: "first", resets: true, noBond: true, noPause: true,
			remedy: "ethtool --set-priv-flags NETDEV fw-lldp-agent off",
		},
		{
			driver: "hns3", personality: "hns3", rdma: "hns_%d", gid: 1, dcb: dcbfake.HNS3,
			models:   map[string]string{"hns3": "19e5:a222"},
			downs:    []string{"link", "ring", "fec"},
			disturbs: []string{"ets", "pfc", "link", "pause", "ring", "fec"},
			signs:    []string{noHost, cee}, replaces: "itself",
			remedy: "remove what set it: a queueing discipline mqprio (tc qdisc del dev NETDEV root), or an LLDP daemon that asks for CEE",
		},
	}
}

// foreign says by which sign somebody else than the host rules QoS with this DCBX mode; "" = nobody does.
func (k *kind) foreign(mode dcb.DCBX) string {
	switch {
	case slices.Contains(k.signs, noHost) && mode&dcb.Host == 0 && mode&dcb.LLDManaged == 0:
		return "its firmware rules QoS (DCBX mode is " + mode.String() + ", without host)"
	case slices.Contains(k.signs, lldManaged) && mode&dcb.LLDManaged != 0, slices.Contains(k.signs, noHost) && mode&dcb.Host == 0:
		return "an LLDP agent, of firmware or on this host, rules QoS (DCBX mode is " + mode.String() + ")"
	case slices.Contains(k.signs, cee) && mode&dcb.CEE != 0 && mode&dcb.IEEE == 0:
		return "DCBX of before IEEE 802.1Qaz is in force (mode is " + mode.String() + ")"
	}
	return ""
}

// takes reports whether a setting of its own takes the rule from firmware.
func (k *kind) takes() bool { return k.zero || k.flag != "" }

// plain is a DCBX mode in words.
func plain(m dcb.DCBX) string {
	if m == 0 {
		return none
	}
	return m.String()
}
