package netlink

import (
	flags "flag" // this package has a flag of its own
	"slices"
	"strings"
	"testing"

	"github.com/fabricctl/fabricctl/model/witness"
)

var update = flags.Bool("update", false, "write the tables of a run in the virtual machine into docs/evidence/hosts.md")

// losslessHost is what a host of a fabric holds for one lossless class, from DCBX to FEC.
func losslessHost() map[string]string {
	return map[string]string{
		"link mtu":           "9000",
		"dcbx mode":          "host ieee",
		"flag fw-lldp-agent": "off",
		"pause receive":      "off", "pause send": "off",
		"app dscp 26": "3", "app dscp 48": "6",
		"ets prio-tc": "0:0 1:0 2:0 3:3 4:0 5:0 6:6 7:0", "ets tsa": "0:ets 1:strict 2:strict 3:ets 4:strict 5:strict 6:strict 7:strict", "ets bandwidth": "0:40 1:0 2:0 3:60 4:0 5:0 6:0 7:0",
		"pfc priorities": "3", "pfc delay": "20",
		"buffer priorities": "0:0 1:0 2:0 3:1 4:0 5:0 6:0 7:0", "buffer sizes": "0:65536 1:131072 2:0 3:0 4:0 5:0 6:0 7:0",
		"ring rx": "4096", "ring tx": "4096", "fec mode": "rs",
	}
}

// seenBy is a program of the system's that shows a setting of dcb2, and what it shows of losslessHost.
type seenBy struct{ key, command, shows string }

func witnesses() []seenBy {
	return []seenBy{
		{"link mtu", "ip link show dcb2", "mtu 9000"},
		{"dcbx mode", "dcb dcbx show dev dcb2", "host ieee"},
		{"flag fw-lldp-agent", "ethtool --show-priv-flags dcb2", "fw-lldp-agent     : off"},
		{"pause receive", "ethtool -a dcb2", "RX:\t\toff"},
		{"pause send", "ethtool -a dcb2", "TX:\t\toff"},
		{"app dscp 26", "dcb -N app show dev dcb2", "dscp-prio 26:3 48:6"},
		{"app dscp 48", "dcb -N app show dev dcb2", "dscp-prio 26:3 48:6"},
		{"ets prio-tc", "dcb ets show dev dcb2 prio-tc", "0:0 1:0 2:0 3:3 4:0 5:0 6:6 7:0"},
		{"ets tsa", "dcb ets show dev dcb2 tc-tsa", "0:ets 1:strict 2:strict 3:ets 4:strict 5:strict 6:strict 7:strict"},
		{"ets bandwidth", "dcb ets show dev dcb2 tc-bw", "0:40 1:0 2:0 3:60 4:0 5:0 6:0 7:0"},
		{"pfc priorities", "dcb pfc show dev dcb2 prio-pfc", "0:off 1:off 2:off 3:on 4:off 5:off 6:off 7:off"},
		{"pfc delay", "dcb pfc show dev dcb2 delay", "delay 20"},
		{"buffer priorities", "dcb buffer show dev dcb2 prio-buffer", "0:0 1:0 2:0 3:1 4:0 5:0 6:0 7:0"},
		{"buffer sizes", "dcb buffer show dev dcb2 buffer-size", "0:64Kb 1:128Kb 2:0b 3:0b 4:0b 5:0b 6:0b 7:0b"},
		{"ring rx", "ethtool -g dcb2", "RX:\t\t4096"},
		{"ring tx", "ethtool -g dcb2", "TX:\t\t4096"},
		{"fec mode", "ethtool --show-fec dcb2", "Configured FEC encodings: RS"},
	}
}

// cells is the row about it in docs/evidence/hosts.md.
func (s seenBy) cells() []string {
	return []string{s.key, losslessHost()[s.key], "`" + s.command + "`", "`" + strings.Join(strings.Fields(s.shows), " ") + "`"}
}

// TestHostsPage: the tables of docs/evidence/hosts.md about this package are what the virtual machines of tools/vm found.
func TestHostsPage(t *testing.T) {
	const page = "docs/evidence/hosts.md"
	var want []string
	for _, w := range witnesses() {
		want = append(want, "| "+strings.Join(w.cells(), " | ")+" |")
	}
	if got := witness.Table(t, page, "host", *update); !slices.Equal(got, want) {
		t.Errorf("the page is not what the test wants to see:\n%s", witness.FirstDifference(want, got))
	}
	for _, row := range witness.Table(t, page, "gid", *update) {
		cells := strings.Split(row, " | ")
		if len(cells) != 4 || cells[1]+" |" != cells[3] {
			t.Errorf("we and libibverbs do not agree: %s", row)
		}
	}
}
