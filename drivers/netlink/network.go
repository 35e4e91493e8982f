package netlink

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"path"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// managementLinks are the links that carry the default route, and the one that has the address to which the session
// that asks came.
func (d *Device) managementLinks(m *machine, addrs map[int32][]netip.Prefix) []string {
	var out []string
	for l := range strings.Lines(string(bytesOf(d.tree, "proc/net/route"))) { // iface, destination, …, mask in hex
		if w := strings.Fields(l); len(w) > 7 && w[1] == "00000000" && w[7] == "00000000" {
			out = append(out, w[0])
		}
	}
	for l := range strings.Lines(string(bytesOf(d.tree, "proc/net/ipv6_route"))) { // destination, length, …, flags, iface
		w := strings.Fields(l)
		if len(w) == 10 && strings.Trim(w[0], "0") == "" && w[1] == "00" && strings.Trim(w[4], "0") != "" && w[9] != "lo" {
			out = append(out, w[9])
		}
	}
	if to, err := netip.ParseAddr(d.session()); err == nil {
		for _, l := range m.links {
			if slices.ContainsFunc(addrs[l.Index], func(p netip.Prefix) bool { return p.Addr() == to.Unmap() }) {
				out = append(out, l.Name)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// session is the address of this host that the SSH session which asks came to; "" = there is none. What sudo takes out
// of the environment is still in that of a process above.
func (d *Device) session() string {
	if d.cfg.Session != "" {
		return sessionAddress(d.cfg.Session)
	}
	pid := d.cfg.PID
	for range 32 {
		if pid <= 1 {
			return ""
		}
		dir := path.Join("proc", strconv.Itoa(pid))
		for v := range bytes.SplitSeq(bytesOf(d.tree, dir+"/environ"), []byte{0}) {
			if s, ok := strings.CutPrefix(string(v), "SSH_CONNECTION="); ok {
				return sessionAddress(s)
			}
		}
		stat := said(d.tree, dir+"/stat") // pid (name) state ppid …; a name may hold anything
		w := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
		if len(w) < 2 {
			return ""
		}
		pid, _ = strconv.Atoi(w[1])
	}
	return ""
}

// sessionAddress is the third word of SSH_CONNECTION: client, its port, server, its port.
func sessionAddress(s string) string {
	w := strings.Fields(s)
	if len(w) != 4 {
		return ""
	}
	a, _, _ := strings.Cut(w[2], "%")
	return a
}

// networkNotes says where several NICs are in one subnet, what the kernel does with ARP and reverse paths there, and
// where a file of the system's network configuration sets another MTU than is in force.
func (d *Device) networkNotes(m *machine, addrs map[int32][]netip.Prefix) []string {
	var notes []string
	bySubnet := map[netip.Prefix][]string{}
	var order []netip.Prefix
	for _, n := range m.nics {
		for _, p := range prefixes(addrs, m.on(n)) {
			if !p.Addr().Is4() {
				continue
			}
			net := p.Masked()
			name := n.Name
			if n.bond != "" {
				name = n.bond
			}
			if bySubnet[net] == nil {
				order = append(order, net)
			}
			if !slices.Contains(bySubnet[net], name) {
				bySubnet[net] = append(bySubnet[net], name)
			}
		}
	}
	for _, net := range order {
		if names := bySubnet[net]; len(names) > 1 {
			notes = append(notes, d.oneSubnet(net, names))
		}
	}
	notes = append(notes, d.bondNotes(m)...)
	if n := d.railOrder(m); n != "" {
		notes = append(notes, n)
	}
	for _, l := range m.links {
		for _, f := range d.mtuFiles(l.Name) {
			if f.mtu != l.MTU {
				notes = append(notes, fmt.Sprintf("%s: %s sets MTU %d, and %d is in force: %s", l.Name, f.name, f.mtu, l.MTU, f.remedy(l.MTU)))
			}
		}
	}
	return notes
}

// oneSubnet is about NICs that are in the same subnet: without the settings named, one answers for the other's address
// (ARP flux) or leaves by the other's port. The kernel takes the larger of all and of the interface's own.
func (d *Device) oneSubnet(net netip.Prefix, names []string) string {
	value := func(name, key string) int {
		v := 0
		for _, of := range []string{"all", name} {
			n, _ := strconv.Atoi(said(d.tree, path.Join("proc/sys/net/ipv4/conf", of, key)))
			v = max(v, n)
		}
		return v
	}
	var bad []string
	for _, name := range names {
		if v := value(name, "arp_ignore"); v == 0 {
			bad = append(bad, fmt.Sprintf("%s answers ARP for the others (net.ipv4.conf.%[1]s.arp_ignore=0, want 1)", name))
		}
		if v := value(name, "arp_announce"); v < 2 {
			bad = append(bad, fmt.Sprintf("%s may ask with an address of the others (net.ipv4.conf.%[1]s.arp_announce=%d, want 2)", name, v))
		}
		if v := value(name, "rp_filter"); v == 1 {
			bad = append(bad, fmt.Sprintf("%s drops what comes back by another way (net.ipv4.conf.%[1]s.rp_filter=1, want 2, or 0 with a routing table for each NIC)", name))
		}
	}
	s := fmt.Sprintf("%s are all in %s, so each needs a routing table of its own (ip rule from its address)", strings.Join(names, ", "), net)
	if len(bad) > 0 {
		s += "; " + strings.Join(bad, "; ")
	}
	return s
}

// bondNotes says where a bond keeps all that two hosts send each other on one slave. Connections of RoCE v2 differ in
// their UDP source port alone, which a hash of addresses does not see.
func (d *Device) bondNotes(m *machine) (notes []string) {
	for _, l := range m.links {
		if l.Kind != "bond" || !slices.ContainsFunc(m.nics, func(n *nic) bool { return n.Master == l.Index && n.rdma != nil }) {
			continue
		}
		dir := path.Join(sysNet, l.Name, "bonding")
		mode, _, _ := strings.Cut(said(d.tree, dir+"/mode"), " ") // "802.3ad 4"
		policy, _, _ := strings.Cut(said(d.tree, dir+"/xmit_hash_policy"), " ")
		spreads := mode == "802.3ad" || mode == "balance-xor"
		switch {
		case spreads && policy != "layer3+4" && policy != "encap3+4" && policy != "":
			notes = append(notes, fmt.Sprintf("%s spreads by %s: what two hosts send each other stays on one slave, unless the NIC spreads RoCE by itself; "+
				"layer3+4 goes by ports too (ip link set %[1]s type bond xmit_hash_policy layer3+4)", l.Name, policy))
		case mode != "" && mode != "active-backup" && !spreads:
			notes = append(notes, fmt.Sprintf("%s is in mode %s, in which drivers do not share one RDMA device over the slaves: 802.3ad, balance-xor and active-backup are what they know", l.Name, mode))
		}
	}
	return notes
}

var trailing = regexp.MustCompile(`^(.*?)(\d+)$`)

// railOrder says where the numbers of RDMA devices do not follow their PCI addresses: programs that take the devices in
// the order of their names then put their rails in another order than the slots.
func (d *Device) railOrder(m *machine) string {
	type dev struct {
		name, pci string
		n         int
	}
	var devs []dev
	for _, p := range m.ports {
		if t := trailing.FindStringSubmatch(p.device); t != nil && p.pci != "" && !slices.ContainsFunc(devs, func(x dev) bool { return x.name == p.device }) {
			n, _ := strconv.Atoi(t[2])
			devs = append(devs, dev{p.device, p.pci, n})
		}
	}
	sort.Slice(devs, func(i, j int) bool { return devs[i].n < devs[j].n })
	if slices.IsSortedFunc(devs, func(a, b dev) int { return strings.Compare(a.pci, b.pci) }) {
		return ""
	}
	var s []string
	for _, x := range devs {
		s = append(s, x.name+" is "+x.pci)
	}
	return "RDMA devices are not numbered in the order of their PCI addresses (" + strings.Join(s, ", ") + "): bind NICs by PCI address, and order rails by the inventory"
}

// mtuFile is a file of the system's network configuration that sets the MTU of a link.
type mtuFile struct {
	name string // with a slash in front
	mtu  uint32
	line string // how it says it, with %d for the number
}

func (f mtuFile) remedy(want uint32) string {
	return fmt.Sprintf("write "+f.line+" there", want)
}

// mtuFiles finds them: systemd-networkd and udev, NetworkManager, ifupdown, and the network-scripts of Red Hat.
// Files that match by something else than the name of the link are not looked into; netplan writes those of networkd or
// NetworkManager into /run, which are.
func (d *Device) mtuFiles(link string) []mtuFile {
	var out []mtuFile
	add := func(file string, is, mtu *regexp.Regexp, say string) {
		b := bytesOf(d.tree, file)
		if !is.Match(b) {
			return
		}
		if m := mtu.FindSubmatch(b); m != nil {
			if n, err := strconv.ParseUint(string(m[1]), 10, 32); err == nil {
				out = append(out, mtuFile{"/" + file, uint32(n), say})
			}
		}
	}
	q := regexp.QuoteMeta(link)
	for _, x := range []struct{ dir, ext, is, mtu, say string }{
		{"etc/systemd/network", ".network", `(?m)^Name=(?:.* )?` + q + `(?: .*)?$`, `(?m)^MTUBytes=(\d+)$`, "MTUBytes=%d"},
		{"etc/systemd/network", ".link", `(?m)^OriginalName=(?:.* )?` + q + `(?: .*)?$`, `(?m)^MTUBytes=(\d+)$`, "MTUBytes=%d"},
		{"run/systemd/network", ".network", `(?m)^Name=(?:.* )?` + q + `(?: .*)?$`, `(?m)^MTUBytes=(\d+)$`, "MTUBytes=%d (netplan: mtu: %[1]d in /etc/netplan)"},
		{"etc/NetworkManager/system-connections", ".nmconnection", `(?m)^interface-name=` + q + `$`, `(?m)^mtu=(\d+)$`, "mtu=%d"},
		{"run/NetworkManager/system-connections", ".nmconnection", `(?m)^interface-name=` + q + `$`, `(?m)^mtu=(\d+)$`, "mtu=%d (netplan: mtu: %[1]d in /etc/netplan)"},
		{"etc/network/interfaces.d", "", `(?m)^iface ` + q + ` `, `(?m)^\s+mtu (\d+)$`, "mtu %d"},
	} {
		names, err := d.tree.List(x.dir)
		if err != nil {
			continue
		}
		for _, name := range names {
			if strings.HasSuffix(name, x.ext) {
				add(path.Join(x.dir, name), regexp.MustCompile(x.is), regexp.MustCompile(x.mtu), x.say)
			}
		}
	}
	add("etc/sysconfig/network-scripts/ifcfg-"+link, regexp.MustCompile(``), regexp.MustCompile(`(?m)^MTU="?(\d+)"?$`), "MTU=%d")
	add("etc/network/interfaces", regexp.MustCompile(`(?m)^iface `+q+` `), regexp.MustCompile(`(?ms)^iface `+q+` .*?^\s+mtu (\d+)$`), "mtu %d")
	return out
}

// Addresses is every IP address of the machine but those of loopbacks.
func (d *Device) Addresses(ctx context.Context) ([]netip.Prefix, error) {
	links, err := d.cfg.Links.List(ctx)
	if err != nil {
		return nil, d.named("links", err)
	}
	of, err := d.cfg.Links.Addresses(ctx)
	if err != nil {
		return nil, d.named("addresses", err)
	}
	var all []netip.Prefix
	for _, l := range links {
		if !l.Loopback {
			all = append(all, of[l.Index]...)
		}
	}
	return all, nil
}
