package netlink

import (
	"fmt"
	"path"
	"regexp"
	"sort"
	"strings"

	"github.com/fabricctl/fabricctl/drivers/netlink/dcb"
	"github.com/fabricctl/fabricctl/profiles"
)

// owners finds those that set what we set, each with the command that ends that; and what else is worth a note. A
// firmware that rules a NIC and lets itself be replaced by a key of ours (dcbx|IF|mode, flag|IF|…) is no owner: the plan
// shows how it is taken over, and Commit writes nothing that firmware would take back. See foreign.
func (d *Device) owners(m *machine) (owners, notes []string) {
	qos := false // there is something to compete for
	for _, n := range m.nics {
		if n.dcb == nil || n.per.Status == profiles.Unsupported {
			continue
		}
		qos = true
		why := foreign(n, n.dcb)
		switch {
		case why == "":
		case takes(n):
			notes = append(notes, fmt.Sprintf("%s: %s", n.Name, why))
		default:
			owners = append(owners, fmt.Sprintf("%s: %s: %s", n.Name, why, remedy(n)))
		}
	}
	if !qos {
		return owners, notes
	}
	sockets := said(d.tree, "proc/net/unix")
	if strings.Contains(sockets, "@/com/intel/lldpad") || d.serves("lldpad.service") {
		owners = append(owners, "lldpad runs and sets PFC, ETS and application priorities by itself: systemctl disable --now lldpad.service lldpad.socket")
	}
	for _, u := range d.qosUnits() {
		owners = append(owners, fmt.Sprintf("the unit %s runs %s at boot: systemctl disable --now %s", u.name, u.runs, u.name))
	}
	for _, f := range d.qosFiles() {
		owners = append(owners, fmt.Sprintf("%s runs %s: take that line out", f.name, f.runs))
	}
	if d.irqbalance() {
		notes = append(notes, "irqbalance runs: it moves interrupts, so irq cannot be local or spread beside it (systemctl disable --now irqbalance)")
	}
	return owners, notes
}

// foreign says by which sign somebody else than this host rules the dcbnl settings of a NIC; "" = nobody does.
func foreign(n *nic, s *dcb.State) string {
	if s == nil || s.DCBX == nil {
		return ""
	}
	mode := *s.DCBX
	for _, sign := range n.per.DCBXForeign {
		switch {
		case sign == profiles.ForeignNoHost && mode&dcb.Host == 0:
			return fmt.Sprintf("its firmware rules QoS (DCBX mode is %q, without host)", mode)
		case sign == profiles.ForeignLLDManaged && mode&dcb.LLDManaged != 0:
			return fmt.Sprintf("an LLDP agent, of firmware or on this host, rules QoS (DCBX mode is %q)", mode)
		case sign == profiles.ForeignCEE && mode&dcb.CEE != 0 && mode&dcb.IEEE == 0:
			return fmt.Sprintf("DCBX of before IEEE 802.1Qaz is in force (mode is %q)", mode)
		}
	}
	return ""
}

// takes reports whether a key of ours takes the rule from firmware.
func takes(n *nic) bool {
	return n.per.DCBXOwn == profiles.OwnOrHost || n.per.DCBXOwn == profiles.OwnHostIEEE && n.per.LLDPFlag != ""
}

// remedy is the personality's own words for a NIC, with its names in them.
func remedy(n *nic) string {
	if n.per.DCBXRemedy == "" {
		return "see the documentation of its driver " + n.hw.driver
	}
	return strings.NewReplacer("NETDEV", n.Name, "PCI", n.hw.pci).Replace(n.per.DCBXRemedy)
}

// serves reports whether a unit of systemd has a process.
func (d *Device) serves(unit string) bool {
	for _, at := range []string{"sys/fs/cgroup/system.slice/", "sys/fs/cgroup/systemd/system.slice/"} {
		if said(d.tree, at+unit+"/cgroup.procs") != "" {
			return true
		}
	}
	return false
}

func (d *Device) irqbalance() bool {
	return d.serves("irqbalance.service") || strings.Contains(said(d.tree, "proc/net/unix"), "irqbalance")
}

// qosTools are programs that set what we set, where a line of a script or a unit runs them.
var qosTools = regexp.MustCompile(`(?m)^[^#\n]*\b(mlnx_qos|cma_roce_tos|cma_roce_mode|bnxt_setupcc(?:\.sh)?|niccli|bnxtqos|lldptool|dcbtool|dcb\s+(?:pfc|ets|app|buffer|dcbx))\b`)

// found is a place that runs a tool.
type found struct{ name, runs string }

func (d *Device) runsTool(name, file string) []found {
	m := qosTools.FindSubmatch(bytesOf(d.tree, file))
	if m == nil {
		return nil
	}
	return []found{{name, string(m[1])}}
}

func bytesOf(t Tree, file string) []byte {
	b, err := t.Read(file)
	if err != nil {
		return nil
	}
	return b
}

// qosUnits are units of systemd that are enabled and run such a tool, ours aside.
func (d *Device) qosUnits() (out []found) {
	const dir = "etc/systemd/system"
	targets, err := d.tree.List(dir)
	if err != nil {
		return nil
	}
	seen := map[string]bool{}
	for _, target := range targets {
		if !strings.HasSuffix(target, ".wants") {
			continue
		}
		units, err := d.tree.List(path.Join(dir, target))
		if err != nil {
			continue
		}
		for _, u := range units {
			if seen[u] || strings.HasPrefix(u, "fabricctl") || !strings.HasSuffix(u, ".service") {
				continue
			}
			seen[u] = true
			at := path.Join(dir, target, u)
			if !there(d.tree, at) { // below a root other than / an absolute link leads nowhere
				at = path.Join(dir, u)
			}
			out = append(out, d.runsTool(u, at)...)
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].name < out[j].name })
	return out
}

// qosFiles are scripts and rules that run such a tool when the system starts or a NIC appears.
func (d *Device) qosFiles() (out []found) {
	out = append(out, d.runsTool("/etc/rc.local", "etc/rc.local")...)
	for _, dir := range []string{"etc/udev/rules.d", "etc/NetworkManager/dispatcher.d", "etc/networkd-dispatcher/routable.d", "etc/network/if-up.d"} {
		names, err := d.tree.List(dir)
		if err != nil {
			continue
		}
		for _, name := range names {
			if !strings.Contains(name, "fabricctl") {
				out = append(out, d.runsTool("/"+path.Join(dir, name), path.Join(dir, name))...)
			}
		}
	}
	return out
}
