package model

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// tosHint says what a ToS byte is as a code point, and that its two low bits are not part of it.
func tosHint(tos int) string {
	h := fmt.Sprintf("as a ToS byte %d is DSCP %d", tos, tos>>2)
	if tos&3 != 0 {
		h += fmt.Sprintf(" with ECN bits in it; without them the byte is %d (%d << 2)", tos&^3, tos>>2)
	}
	return h
}

// wrongWord is the hint for a key or value that people copy from guides and that does not mean, or not do, what they
// expect; "" for any other. text is the value that stands at the key.
func wrongWord(key, text string) string {
	word := strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(key))
	word = strings.TrimPrefix(word, "nccl")
	switch word {
	case "credentials", "credential", "auth", "login":
		return "give username and password under gnmi, and under ssh"
	case "tos", "trafficclass", "tclass", "tc", "ibtc":
		if v, err := strconv.Atoi(text); err == nil && v >= 0 && v < 256 {
			return fmt.Sprintf("give the class dscp: [%d], and hosts get the byte from it: %s", v>>2, tosHint(v))
		}
		return "give the class its dscp; hosts get the ToS byte from it, which is DSCP << 2 (26 gives 104)"
	case "tcpthreshold", "ecntcpthreshold":
		return "there is no such knob: a switch marks by kmin, kmax and pmax of its queue (classes.ecn), and net.ipv4.tcp_ecn is about TCP alone"
	case "nvp2penable", "p2penable":
		return "NCCL reads no such variable: it has NCCL_P2P_DISABLE and NCCL_P2P_LEVEL, and NCCL_NET_GDR_LEVEL for GPUDirect RDMA"
	case "gidindex", "ibgidindex", "gid":
		return "leave it out: index 3 is RoCE v2 over IPv4 only on some NICs and moves when addresses change; NCCL from 2.21 finds the GID itself, and for an older one nccl.version has the host's own index written"
	case "cnpdscp", "cnpprio", "cnppriority", "cnp8021pprio", "cnp802pprio":
		return "leave it out: NICs send CNPs with the code point and priority of the class with role: cnp, so that switches find them there"
	case "roceccpriomask", "ccpriomask", "priomask", "ecnpriorities", "prios":
		return "leave it out: congestion control is on for the priorities of lossless classes"
	case "globalpause", "linkpause", "flowcontrol", "rxpause", "txpause":
		return "leave it out: link pause (802.3x) is off wherever a class is lossless, since PFC and it exclude each other"
	case "dcbx", "willing":
		return "leave it out: the host's own configuration holds where a NIC is owned, and what else speaks for it is found before anything is written"
	}
	return ""
}

// notOurs reports whether a key is about what switches have besides lossless Ethernet, which is left to other tools.
func notOurs(key string) bool {
	return slices.Contains([]string{
		"acl", "acls", "bgp", "dns", "evpn", "lag", "lags", "lldp", "loopback", "mlag", "ntp", "ospf", "portchannel", "portchannels", "radius", "routes",
		"routing", "snmp", "stp", "syslog", "tacacs", "users", "vlan", "vlans", "vrf", "vrfs", "vxlan",
	}, fold(key))
}

// halfOfTheBuffer is the hint for a pause threshold that is a share of something unsaid. The common advice, half of the
// port's buffer, is a first step only where a port has a buffer of its own.
const halfOfTheBuffer = "say of what: {share: 50%, of: pool} is half of the shared pool for one congested port, the same as {alpha: 1}; with more " +
	"congested ports each gets less"

// pauseScalar is a pause threshold in bytes. A share without its base gets an explanation.
func pauseScalar() *scalar {
	s := *bytesScalar()
	inner := s.parse
	s.parse = func(text string) (string, *problem) {
		canonical, p := inner(text)
		if p != nil && (strings.HasSuffix(text, "%") || strings.Contains(strings.ToLower(text), "half")) {
			p = &problem{"value", "is a share without its base", halfOfTheBuffer}
		}
		return canonical, p
	}
	return &s
}

// baseScalar is what a share of buffer is taken of.
func baseScalar() *scalar {
	s := *enumScalar("pool", "port")
	inner := s.parse
	s.parse = func(text string) (string, *problem) {
		canonical, p := inner(text)
		if p != nil && strings.Contains(strings.ToLower(text), "buffer") {
			p.hint = halfOfTheBuffer
		}
		return canonical, p
	}
	return &s
}
