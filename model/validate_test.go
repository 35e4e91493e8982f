package model

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/fabricctl/fabricctl/model/diag"
)

// box is a platform with few ports.
const box = "---\napiVersion: fabricctl/v1\nkind: Profile\nmetadata: {name: sonic/box}\nplatform: {iface: Ethernet%d, iface_step: 8, lanes: 8, breakouts: [2, 4], ports: 4, source: me, confidence: low}\n"

// TestFindings holds one small model per thing that validation refuses. The golden shows each finding and the text at
// its position.
func TestFindings(t *testing.T) {
	var b strings.Builder
	for _, x := range []struct {
		name, model string
	}{
		{"clean", base},
		{"same priority", with(t, "priority: 6", "priority: 3")},
		{"no priorities", with(t, "priority: 6, ", "") + "---\napiVersion: fabricctl/v1\nkind: Fabric\nmetadata: {name: t}\nclasses: [{name: more, dscp: [8]}]\n"},
		{"same DSCP", with(t, "dscp: [48]", "dscp: [48, 20-30]")},
		{"DSCP twice", with(t, "dscp: [48]", "dscp: [48, 48]")},
		{"no code point", with(t, "dscp: [48]", "dscp: []")},
		{"bandwidth", with(t, "bandwidth: 40%", "bandwidth: 41%")},
		{"strict share", with(t, "scheduling: strict", "scheduling: strict, bandwidth: 1%") + ""},
		{"share and weight", with(t, "bandwidth: 40%", "bandwidth: 40%, weight: 12")},
		{"strict weight", with(t, "scheduling: strict", "scheduling: strict, weight: 12")},
		{"share without a scheduler", with(t, "scheduling: strict", "scheduling: none, bandwidth: 1%") + ""},
		{"no rest", with(t, "dscp: rest", "dscp: [0]")},
		{"two rest", with(t, "dscp: [48]", "dscp: rest")},
		{"no cnp", with(t, "role: cnp, ", "")},
		{"two cnp", with(t, "name: default,", "name: default, role: cnp,")},
		{"lossless cnp", with(t, "role: cnp,", "role: cnp, lossless: true,")},
		{"half a ramp", with(t, ", pmax: 20%", "")},
		{"pfc of a lossy class", with(t, "dscp: [48],", "dscp: [48], pfc: {xon: auto},")},
		{"two forms of xoff", with(t, "    bandwidth: 60%", "    pfc: {xoff: {alpha: 1, share: 5%, of: pool}}\n    bandwidth: 60%")},
		{"share without base", with(t, "    bandwidth: 60%", "    pfc: {xoff: {share: 5%}}\n    bandwidth: 60%")},
		{"mtu too small", with(t, "fabric: 9216B", "fabric: 60B")},
		{"mtu of the platform", with(t, "fabric: 9216B", "fabric: 9300B")},
		{"mtu missing", with(t, "mtu: {fabric: 9216B, host: 9000B}", "mtu: {roce: 4096B}")},
		{"roce mtu", with(t, "host: 9000B}", "host: 9000B, roce: 4000B}")},
		{"watchdog in microseconds", with(t, "poll: 100ms", "poll: 100us")},
		{"watchdog never", with(t, "poll: 100ms", "poll: 0ms")},
		{"half a watchdog", with(t, "restore: 400ms, ", "")},
		{"nccl class", base + "nccl: {class: trainig}\n"},
		{"nccl rest", base + "nccl: {class: default}\n"},
		{"nccl among notifications", base + "nccl: {class: cnp}\n"},
		{"application of no class", base + "applications: [{name: nccl, class: trainig}]\n"},
		{"application with a range", base + "applications: [{name: nccl, class: training, dscp: 26-28}]\n"},
		{"routes", with(t, "  links:", `  routing: listed
  routes:
    - {path: [host1, leaf1, spine1, leaf2, host3], class: training}
    - {path: [host1, "leaf1:uplink-1", spine1, leaf2, host3], class: [training, training, training, training]}
    - {path: [host1], class: training}
    - {path: [host1, leaf1, laef2], class: trainig}
    - {path: [host1, leaf1, leaf2, host3], class: cnp}
    - {path: [host1, "leaf1:downlink-1", spine1], class: [training, training, training]}
    - {path: [host1, leaf1, host2, leaf1, "host1:nic-1"], class: training}
    - {path: [host1, "leaf1:downlink-1"], class: training}
  links:`)},
		{"no routes", with(t, "  links:", "  routing: listed\n  links:")},
		{"routing", with(t, "  links:", "  routing: ospf\n  links:")},
		{"acknowledged nowhere", base + "acknowledge: [{rule: x, reason: y, role: laef}, {rule: x, reason: y, device: leaf9}]\n"},
		{"ToS", with(t, "    dscp: [26]", "    tos: 106\n    dscp: [104]")},
		{"half of the buffer", strings.ReplaceAll(with(t, "    bandwidth: 60%", "    pfc: {xoff: 50%}\n    bandwidth: 60%"), "xoff: 50%", "xoff: half of the port buffer")},
		{"half of what", with(t, "    bandwidth: 60%", "    pfc: {xoff: 50%}\n    bandwidth: 60%")},
		{"half of the wrong thing", with(t, "    bandwidth: 60%", "    pfc: {xoff: {share: 50%, of: the port's buffer}}\n    bandwidth: 60%")},
		{"ToS as a range", with(t, "dscp: [48]", "dscp: [104-106]")},
		{"ToS of an application", base + "applications: [{name: nccl, class: training, dscp: 106}]\n"},
		{"traffic class", base + "nccl: {traffic_class: 106, gid_index: 3, NV_P2P_ENABLE: 1, NCCL_IB_TC: 104}\n"},
		{"tcp_threshold", with(t, "kmin: 800KB", "tcp_threshold: 5KB, kmin: 800KB")},
		{"platform of another system", with(t, "spines: {count: 1, platform: sonic/sn5600}", "spines: {count: 1, platform: sonic/7060x6}")},
		{"manage what is not there", with(t, "manage: {switches: own, hosts: own}", "manage: {switches: {host-nccl: own}, hosts: {mtu: own, host-nccl: own, ecn: own}}\noverrides: {host: {manage: {watchdog: own}}}")},
		{"manage in one word", with(t, "manage: {switches: own, hosts: own}", "manage: own")},
		{"version", with(t, "apiVersion: fabricctl/v1", "apiVersion: fabricctl/v2")},
		{"parts missing", with(t, "mtu: {fabric: 9216B, host: 9000B}\n", "")},
		{"platform", with(t, "spines: {count: 1, platform: sonic/sn5600}", "spines: {count: 1, platform: sonic/sn5601}")},
		{"host platform on a spine", with(t, "spines: {count: 1, platform: sonic/sn5600}", "spines: {count: 1, platform: linux/generic}")},
		{"switch platform on a host", with(t, "per_leaf: 2,", "per_leaf: 2, platform: sonic/sn5600,")},
		{"rails", with(t, "per_leaf: 2,", "per_leaf: 2, rails: 4,")},
		{"netdevs", with(t, "netdevs: [rdma0]", "netdevs: [rdma0, rdma1]")},
		{"too many", with(t, "per_leaf: 2,", "per_leaf: 99999,")},
		{"no devices", "apiVersion: fabricctl/v1\nkind: Fabric\nmetadata: {name: t}\ntopology: {}\nmtu: {fabric: 1500B}\nclasses: []\n"},
		{"no fabric", inventory("  leaf1: {}\n")},
		{"unknown device", base + inventory("  laef1: {address: 10.0.0.1}\n")},
		{"unknown port", base + inventory("  leaf1: {ports: {downlink-9: Ethernet0}}\n")},
		{"interface twice", base + inventory("  leaf1: {ports: {downlink-1: Ethernet8}}\n")},
		{"address twice", base + inventory("  leaf1: {address: 10.0.0.1}\n  leaf2: {address: 10.0.0.1}\n")},
		{"address twice, other ports", base + inventory("  leaf1: {address: 127.0.0.1, ssh: {port: 1}}\n  leaf2: {address: 127.0.0.1, ssh: {port: 2}}\n")},
		{"groups that disagree", base + inventoryWith("groups:\n  a: {roles: [leaf], ssh: {port: 1, username: x}}\n  b: {devices: [leaf1, leaf2], gnmi: {port: 3}, ssh: {port: 2, username: x}}\n", "  leaf1: {address: 10.0.0.1}\n")},
		{"groups that disagree, settled", base + inventoryWith("groups:\n  a: {roles: [leaf], ssh: {port: 1}}\n  b: {devices: [leaf1], ssh: {port: 2}}\n", "  leaf1: {ssh: {port: 3}}\n")},
		{"group of nobody", base + inventoryWith("groups: {a: {ssh: {port: 1}}}\n", "  leaf1: {address: 10.0.0.1}\n")},
		{"group of unknown ones", base + inventoryWith("groups: {a: {roles: [laef], devices: [laef1], ssh: {port: 1}}}\n", "  leaf1: {address: 10.0.0.1}\n")},
		{"jump hosts", base + inventory("  leaf1: {ssh: {via: \"a b\"}, gnmi: {via: [jump, \"jump:\", \"x@\", \"jump:99999\"]}}\n  leaf2: {ssh: {via: \"me:hunter2@jump\"}}\n")},
		{"same address behind other jump hosts", base + inventory("  leaf1: {address: 10.0.0.1, ssh: {via: jump1}}\n  leaf2: {address: 10.0.0.1, ssh: {via: jump2}}\n")},
		{"management port out-of-band", base + inventory("  leaf1: {management_port: uplink-1}\n")},
		{"management port unknown", base + inventory("  leaf1: {management: in-band, management_port: uplink-9}\n")},
		{"same serial and host name", base + inventory("  leaf1: {serial: MT1, hostname: l1}\n  leaf2: {serial: mt1, hostname: L1}\n")},
		{"passwords beside names", base + inventory("  leaf1: {address: \"ops:hunter2@10.0.0.1\", hostname: \"ops:hunter2@l1\", ssh: {username: \"ops:hunter2\"}}\n"+
			"  leaf2: {address: \"https://ops:hunter2@10.0.0.2/\", hostname: a@b, gnmi: {password: \"env:hunter2 x\", username: \"env:a b\"}}\n")},
		{"NIC address twice", base + inventory("  host1: {nics: [{ip: 10.0.0.1/31}]}\n  host2: {nics: [{ip: 10.0.0.1/24}]}\n")},
		{"NIC elsewhere", base + inventory("  host1: {nics: [{netdev: eth0, port: \"leaf1:downlink-2\"}]}\n")},
		{"too many NICs", base + inventory("  host1: {nics: [{netdev: eth0}, {netdev: eth1}]}\n")},
		{"NIC of a switch", base + inventory("  leaf1: {nics: [{netdev: eth0}]}\n")},
		{"insecure", base + inventory("  leaf1: {ssh: {insecure: true}}\n  leaf2: {lab: true, ssh: {insecure: true}}\n")},
		{"insecure for all", base + inventoryWith("defaults: {ssh: {insecure: true}, gnmi: {plaintext: true, tls: {insecure: true}}}\n", "  host4: {lab: true}\n")},
		{"insecure for nobody", base + inventory("  host1: {gnmi: {plaintext: true}}\n")},
		{"no spines", with(t, "  spines: {count: 1, platform: sonic/sn5600}\n", "")},
		{"no spines and no links to them", strings.Replace(with(t, "  spines: {count: 1, platform: sonic/sn5600}\n", ""), "    leaf_spine: {speed: 400Gbps}\n", "", 1)},
		{"rails without spines", strings.NewReplacer("  spines: {count: 1, platform: sonic/sn5600}\n", "", "    leaf_spine: {speed: 400Gbps}\n", "",
			"per_leaf: 2, netdevs: [rdma0]", "per_leaf: 2, rails: 2, netdevs: [rdma0, rdma1]").Replace(base)},
		{"pods that nothing joins", with(t, "  spines:", "  pods: 3\n  spines:")},
		{"no speed", with(t, "leaf_spine: {speed: 400Gbps}", "leaf_spine: {cable: 5m}")},
		{"no links between tiers", with(t, "    leaf_spine: {speed: 400Gbps}\n", "")},
		{"one weight", with(t, "bandwidth: 40%", "weight: 3")},
		{"weights alone", strings.Replace(with(t, "bandwidth: 40%", "weight: 3"), "bandwidth: 60%", "weight: 5", 1)},
		{"one netdev for two NICs", with(t, "per_leaf: 2,", "per_leaf: 2, rails: 2,")},
		{"override of no role", base + "overrides: {laef: {mtu: {fabric: 9000B}}}\n"},
		{"override in the wrong role", base + "overrides: {leaf: {devices: {spine1: {state: absent}}}}\n"},
		{"override of no device", base + "overrides: {leaf: {devices: {leaf9: {state: absent}}}}\n"},
		{"override of no port", base + "overrides: {leaf: {devices: {leaf1: {ports: {uplink-9: {}}}}}}\n"},
		{"override of no class", base + "overrides: {leaf: {classes: [{name: x, bandwidth: 1%}]}}\n"},
		{"override of the priority", base + "overrides: {leaf: {classes: [{name: cnp, priority: 1}]}}\n"},
		{"override of half a ramp", base + "overrides: {leaf: {classes: [{name: default, ecn: {kmin: 1KB}}]}}\n"},
		{"override completes a ramp", base + "overrides: {leaf: {classes: [{name: default, ecn: {kmin: 1KB, kmax: 2KB, pmax: 5%}}], devices: {leaf1: {classes: [{name: default, ecn: {kmin: 1500B}}]}}}}\n"},
		{"override with two forms of xoff", base + "overrides: {leaf: {classes: [{name: training, pfc: {xoff: {alpha: 1/2, share: 50%, of: pool}}}]}}\n"},
		{"override with a share of nothing", base + "overrides: {leaf: {classes: [{name: training, pfc: {xoff: {share: 50%}}}]}}\n"},
		{"override with all of the pool", base + "overrides: {leaf: {classes: [{name: training, pfc: {xoff: {share: 100%, of: pool}}}]}}\n"},
		{"override of a buffer that is not there", base + "overrides: {leaf: {classes: [{name: default, pfc: {xon: 1KB}}]}}\n"},
		{"override of the shares", base + "overrides: {leaf: {classes: [{name: training, bandwidth: 50%}], devices: {leaf1: {classes: [{name: default, bandwidth: 51%}]}}}}\n"},
		{"override of a host's ramp", base + "overrides: {host: {classes: [{name: training, ecn: {kmin: 1KB}}]}}\n"},
		{"override of a host's frame", base + "overrides: {host: {mtu: {fabric: 1500B}}}\n"},
		{"override of a switch's netdev", base + "overrides: {leaf: {mtu: {host: 1500B}}}\n"},
		{"hosts in the words of guides", base + "hosts:\n  roce: {tos: 106, traffic_class: 26, mode: RoCE v2}\n  congestion: {cnp_dscp: 48, prio_mask: 255, algorithm: DCQCN, parameters: {rp_ai_rate: 5Mbps, ai_rate: 5, hai_rate: 5GB/s}}\n" +
			"  global_pause: off\n  dcbx: host\n  irq: numa\n  fec: rs-fec\n  memlock: infinity\n"},
		{"hosts' traffic class in numbers", base + "hosts: {roce: {traffic_class: -1}}\noverrides: {host: {hosts: {roce: {traffic_class: 106}}}}\n"},
		{"hosts' numbers", base + "hosts: {congestion: {parameters: {ai_rate: 1.5Mbps, time_reset: 0us, dce_tcp_rtt: 1s, dce_tcp_g: 1024, min_dec_fac: 101%, min_rate: 9999Tbps, byte_reset: 5GB}}, " +
			"pcie: {max_read_request: 4000B}, rings: {rx: 8, tx: 2000000}}\n"},
		{"hosts' rates the wrong way round", base + "hosts: {congestion: {parameters: {min_rate: 2Gbps, max_rate: 1Gbps, ai_rate: 100Mbps, hai_rate: 50Mbps}}}\n"},
		{"hosts' rates the wrong way round below", base + "hosts: {congestion: {parameters: {min_rate: 1Mbps, max_rate: 0Mbps, hai_rate: 50Mbps}}}\noverrides: {host: {hosts: {congestion: {parameters: {ai_rate: 60Mbps}}}}}\n"},
		{"hosts' class", base + "hosts: {roce: {class: trainig}}\noverrides: {host: {hosts: {roce: {class: cnp}}, devices: {host1: {hosts: {roce: {class: default}}}}}}\n"},
		{"hosts' buffer of nothing", strings.Replace(base, "    lossless: true\n", "", 1) + "hosts: {receive_buffer: {lossless: 0B, lossy: 8GB}, roce: {traffic_class: class}}\n"},
		{"hosts' section of a switch", base + "overrides: {leaf: {hosts: {irq: local, fec: rs}}}\n"},
		{"nccl of other forms", base + "nccl: {version: 2, socket_ifname: \"=eno1\", address_family: AF_INET, hca: mlx5_0, cross_nic: 3, qps_per_connection: 0}\n"},
		{"RDMA devices", with(t, "netdevs: [rdma0]", "netdevs: [rdma0], rdma: [\"mlx5_0:1\", mlx5_1]")},
		{"an RDMA device too many", with(t, "netdevs: [rdma0]", "netdevs: [rdma0], rdma: [mlx5_0, mlx5_1]")},
		{"one RDMA device for two NICs", with(t, "netdevs: [rdma0]", "rails: 2, netdevs: [rdma0, rdma1]") + inventory("  host1: {nics: [{rdma: mlx5_0}, {rdma: mlx5_0}]}\n")},
		{"a network for an address", base + inventory("  host1: {nics: [{ip: 10.0.0.0/24}]}\n  host2: {nics: [{ip: 10.0.0.0/31}]}\n  host3: {nics: [{ip: fe80::1/64}]}\n")},
		{"link to itself", strings.Replace(base, "    host_leaf:", "    list: [{a: \"leaf1:x\", b: \"leaf1:x\"}]\n    host_leaf:", 1)},
		{"link to nowhere", strings.Replace(base, "    host_leaf:", "    list: [{a: \"leaf1:x\", b: \"leaf3:x\"}]\n    host_leaf:", 1)},
		{"link to a taken port", strings.Replace(base, "    host_leaf:", "    list: [{a: \"leaf1:downlink-1\", b: \"leaf2:x\"}]\n    host_leaf:", 1)},
		{"profile pattern", base + "---\napiVersion: fabricctl/v1\nkind: Profile\nmetadata: {name: sonic/x}\nplatform: {iface: Eth, source: me, confidence: low}\n"},
		{"bond", with(t, "per_leaf: 2,", "per_leaf: 2, bond: 4,")},
		{"super-spines in groups", with(t, "  leaves:", "  super_spines: {count: 3, platform: sonic/sn5600, groups: 2}\n  leaves:")},
		{"more groups than spines", with(t, "  leaves:", "  super_spines: {count: 4, platform: sonic/sn5600, groups: 2}\n  leaves:")},
		{"super-spines without spines", with(t, "  spines: {count: 1, platform: sonic/sn5600}", "  super_spines: {count: 4, platform: sonic/sn5600}")},
		{"links to nothing", with(t, "    leaf_spine:", "    spine_super: {speed: 400Gbps}\n    storage_leaf: {speed: 400Gbps}\n    leaf_spine:")},
		{"breakout", strings.ReplaceAll(with(t, "leaf_spine: {speed: 400Gbps}", "leaf_spine: {speed: 400Gbps, breakout: {upper: 3, lower: 2}}"), "sonic/sn5600", "sonic/box") + box},
		{"too many pods", with(t, "  spines:", "  pods: 1000\n  planes: 16\n  spines:")},
		{"capacity", strings.ReplaceAll(with(t, "per_leaf: 2,", "per_leaf: 5,"), "sonic/sn5600", "sonic/box") + box},
		{"capacity by listed links", strings.ReplaceAll(with(t, "    leaf_spine:", "    list: [{a: \"leaf1:x\", b: \"leaf2:x\", breakout: 1}, {a: \"leaf1:y\", b: \"spine1:y\", breakout: 2}, {a: \"leaf1:z\", b: \"spine1:z\"}]\n    leaf_spine:"), "sonic/sn5600", "sonic/box") + box},
		{"listed device without a platform", with(t, "  links:", "  devices: [{name: other, role: leaf}, {name: leaf1}, {name: third}]\n  links:")},
		{"leaf on a host platform", with(t, "  links:", "  devices: [{name: leaf1, platform: linux/generic}]\n  links:")},
		{"role of a port", with(t, "  links:", "  devices: [{name: leaf1, ports: [{name: x, role: boarder}]}]\n  links:")},
		{"rail elsewhere", with(t, "per_leaf: 2,", "per_leaf: 2, rails: 2,") + inventory("  host1: {nics: [{netdev: eth0, rail: 1}]}\n")},
		{"rail of a host without rails", base + inventory("  host1: {nics: [{netdev: eth0, rail: 1}]}\n")},
		{"bond in two groups", strings.Replace(with(t, "per_leaf: 2,", "per_leaf: 2, bond: 2,"), "  links:", "  devices: [{name: leaf1, group: a}, {name: leaf2, group: b}]\n  links:", 1)},
		{"code points by name", with(t, "dscp: [48]", "dscp: [cs6, AF41-af43, EF, voice-admit, x]")},
		{"a code point by name alone", with(t, "dscp: [48]", "dscp: CS6")},
		{"a code point alone", with(t, "dscp: [48]", "dscp: 48")},
		{"a word for rest", with(t, "dscp: rest", "dscp: all")},
		{"ecn in one word", with(t, "ecn: {kmin: 800KB, kmax: 3200KB, pmax: 20%}", "ecn: on")},
		{"role of a class", with(t, "role: cnp,", "role: leaf,")},
		{"classes by name", with(t, "classes:\n", "classes: {training: {priority: 3}}\nrest:\n")},
		{"watchdog in one word", with(t, "pfc_watchdog: {", "pfc_watchdog: on\nx: {")},
		{"no value", with(t, "mtu: {fabric: 9216B, host: 9000B}", "mtu:")},
		{"two cnp, one lossless", with(t, "    lossless: true\n", "    lossless: true\n    role: cnp\n")},
		{"what is not ours", base + "vlans: [1]\nqos: 3\n"},
		{"no system", with(t, "spines: {count: 1, platform: sonic/sn5600}", "spines: {count: 1, platform: sn5600}")},
		{"system that is not there", with(t, "spines: {count: 1, platform: sonic/sn5600}", "spines: {count: 1, platform: nxos/93600}")},
		{"host by its Linux", with(t, "per_leaf: 2,", "per_leaf: 2, platform: ubuntu,")},
		{"override of an interface", base + "overrides: {leaf: {devices: {leaf1: {ports: {Ethernet0: {state: planned}}}}}}\n"},
		{"override of an interface of the inventory", base + "overrides: {leaf: {devices: {leaf1: {ports: {\"Ethernet400\": {state: planned}, \"Ethernet9/2\": {}}}}}}\n" +
			inventory("  leaf1: {ports: {downlink-1: \"Ethernet400\"}}\n")},
		{"interface and port in each other's place", base + inventory("  leaf1: {ports: {Ethernet8: downlink-1, \"Ethernet9/1\": downlink-2}}\n")},
		{"a number in words", with(t, "count: 1, platform", "count: one, platform")},
		{"hosts by count", with(t, "per_leaf: 2,", "count: 4,")},
		{"a tier in the singular", with(t, "  leaves:", "  leaf:")},
		{"a link from and to", strings.Replace(base, "    host_leaf:", "    list: [{from: \"leaf1:x\", to: \"leaf2:x\"}]\n    host_leaf:", 1)},
		{"NIC by its short name", with(t, "per_leaf: 2,", "per_leaf: 2, nic: cx7,")},
		{"NIC of nobody", with(t, "per_leaf: 2,", "per_leaf: 2, nic: rtl8139,")},
		{"rest in brackets", with(t, "dscp: rest", "dscp: [rest]")},
		{"a name of two words", with(t, "{name: t}", "{name: my pod}")},
		{"address with more", base + inventory("  leaf1: {address: \"https://leaf1.example.net:443/\"}\n  leaf2: {address: 10.0.0.2/24}\n")},
		{"manage as a list", with(t, "manage: {switches: own, hosts: own}", "manage: {switches: [ecn, pfc]}")},
		{"manage by role", with(t, "manage: {switches: own, hosts: own}", "manage: {leaves: own}")},
		{"override by device", base + "overrides: {leaf1: {state: planned}}\n"},
		{"override of a ramp by itself", base + "overrides: {leaf: {ecn: {kmin: 1KB}}}\n"},
		{"a key twice", with(t, "mtu: {", "mtu: {fabric: 1500B, ")},
		{"spines that are none", with(t, "spines: {count: 1,", "spines: {count: 0,")},
		{"a link the other way round", with(t, "    host_leaf:", "    leaf_host:")},
		{"a breakout with its speed", with(t, "host_leaf: {speed: 400Gbps}", "host_leaf: {speed: 400Gbps, breakout: 2x400G}")},
		{"devices by name alone", with(t, "  links:", "  devices: [leaf9]\n  links:")},
		{"a link by its ends alone", strings.Replace(base, "    host_leaf:", "    list: [\"leaf1:x\"]\n    host_leaf:", 1)},
		{"address alone", base + inventory("  leaf1: 10.0.0.1\n")},
		{"credentials", base + inventoryWith("defaults: {credentials: {username: a}}\n", "  leaf1: {address: 10.0.0.1}\n")},
		{"inventory without the planes", with(t, "  links:", "  planes: 2\n  links:") + inventory("  leaf1: {address: 10.0.0.1}\n")},
		{"override of a port of a role", base + "overrides: {leaf: {ports: {uplink-1: {state: planned}}}}\n"},
		{"override of a device of a role", base + "overrides: {leaf: {leaf1: {state: planned}}}\n"},
		{"a template", with(t, "{name: t}", "{name: {{ fabric }}}")},
		{"a variable", with(t, "{name: t}", "{name: $FABRIC}")},
		{"other quotes", with(t, "{name: t}", "{name: “t”}")},
		{"a comment without a space", with(t, "lossless: true", "lossless: true#x")},
		{"NIC at the device's own name of a port", base + inventory("  host1: {nics: [{netdev: eth0, port: \"leaf1:Ethernet0\"}]}\n")},
		{"profile without a source", base + "---\napiVersion: fabricctl/v1\nkind: Profile\nmetadata: {name: sonic/x}\nplatform: {ports: 4}\n"},
		{"interfaces of another system", base + inventory("  leaf1: {ports: {downlink-1: \"Ethernet1/1\"}}\n  host1: {nics: [{netdev: averyverylonginterface}]}\n")},
		{"listed device that is generated too", strings.Replace(base, "  links:", "  devices: [{name: leaf1, role: leaf, platform: sonic/sn5600}]\n  links:", 1)},
	} {
		_, l := Load(files("m.yaml", x.model), "m.yaml")
		fmt.Fprintf(&b, "== %s\n", x.name)
		for _, f := range l {
			if f.Severity == diag.Info {
				continue
			}
			fmt.Fprintln(&b, f)
			if src := strings.Split(x.model, "\n"); f.Pos.Line > 0 {
				at := src[f.Pos.Line-1][f.Pos.Col-1:]
				fmt.Fprintf(&b, "    | %s\n", at[:min(len(at), 40)])
			}
			for _, word := range []string{"model.", "*node", "Value[", "map[", "%!", "<nil>"} {
				if strings.Contains(f.String(), word) {
					t.Errorf("a Go word in %q", f)
				}
			}
		}
	}
	golden(t, "findings", withoutRows(b.String()))
}

// TestRules: every rule id in the sources stands in the list, and the other way round.
func TestRules(t *testing.T) {
	known := map[string]bool{}
	rules := Rules()
	for i, r := range rules {
		known[r.ID] = true
		if i > 0 && rules[i-1].ID >= r.ID {
			t.Errorf("%s is not in order", r.ID)
		}
	}
	sources, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{"duplicate": true, "missing": true, "cnp-class": true, "rest-class": true}
	for _, said := range []string{"nccl-class", "roce-class", "buffer-by-hand", "starting-values", "xoff-share"} { // by intent.Resolve
		used[said] = true
	}
	call := regexp.MustCompile(`(?:Errorf|Warningf|Infof|fail|problem\{|Rule:)[\s(]*"([a-z-]+)"`)
	for _, s := range sources {
		if strings.HasSuffix(s, "_test.go") || s == "rules.go" {
			continue
		}
		b, err := os.ReadFile(s)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range call.FindAllStringSubmatch(string(b), -1) {
			used[m[1]] = true
			if !known[m[1]] {
				t.Errorf("%s: the rule %s is not in Rules", s, m[1])
			}
		}
	}
	for id := range known {
		if !used[id] {
			t.Errorf("no source uses the rule %s", id)
		}
	}
}
