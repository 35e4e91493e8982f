package netlink

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// Where the kernel shows what.
const (
	sysNet  = "sys/class/net"
	sysRDMA = "sys/class/infiniband"
	sysPCI  = "sys/bus/pci/devices"
)

// hardware is what sysfs says about what is below a link.
type hardware struct {
	pci, model, driver string
	version            string // of a driver that is its vendor's: the kernel's own have none
	port               int    // of the adapter, from 1; 0 = not known
	representor        bool   // of a virtual function: its PCI address is that of the physical one
	vfOf               string // the physical function, when this is a virtual one or a part of one
	part               bool   // a sub-function: its PCI address is that of the whole
	numa               int    // -1 = not known
}

var (
	pciAddress = regexp.MustCompile(`^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$`)
	physPort   = regexp.MustCompile(`^p(\d{1,3})$`)
)

// below finds the hardware of a link; without a PCI address there is none.
func below(t Tree, link string) hardware {
	dev := path.Join(sysNet, link, "device")
	dir, err := t.Real(dev)
	if err != nil {
		return hardware{}
	}
	h := hardware{driver: base(t, dir+"/driver"), numa: -1}
	own := true
	for !pciAddress.MatchString(path.Base(dir)) { // virtio, or a sub-function: the PCI device is above
		if dir = path.Dir(dir); dir == "." || dir == "/" {
			return hardware{}
		}
		own = false
	}
	h.pci = path.Base(dir)
	h.model = unhex(said(t, dir+"/vendor")) + ":" + unhex(said(t, dir+"/device"))
	if n, err := strconv.Atoi(said(t, dir+"/numa_node")); err == nil {
		h.numa = max(n, -1)
	}
	if h.driver == "" {
		h.driver = "none"
	}
	h.version = said(t, "sys/module/"+h.driver+"/version")
	name := said(t, path.Join(sysNet, link, "phys_port_name"))
	h.representor = strings.HasPrefix(name, "pf") || strings.HasPrefix(name, "c")
	if m := physPort.FindStringSubmatch(name); m != nil {
		n, _ := strconv.Atoi(m[1])
		h.port = n + 1
	} else if n, err := strconv.Atoi(said(t, path.Join(sysNet, link, "dev_port"))); err == nil && n > 0 && n < 64 {
		h.port = n + 1
	}
	switch pf := base(t, dir+"/physfn"); {
	case pf != "":
		h.vfOf = pf
		if names, err := t.List(dir + "/physfn/net"); err == nil && len(names) > 0 {
			h.vfOf = names[0]
		}
	case !own && !strings.HasPrefix(h.driver, "virtio"):
		h.vfOf, h.part = h.pci, true
	}
	return h
}

func unhex(s string) string { return strings.TrimPrefix(s, "0x") }

// rdmaPort is a port of an RDMA device.
type rdmaPort struct {
	device string
	port   int
	pci    string // of its hardware; "" for one in software
	pf     string // PCI address of the physical function, when it is of a virtual one or of a part of one
	parent string // the link below one in software
	gids   []gidEntry
}

// rdmaPorts is every port of every RDMA device, by device and number, with its GID table: whole, or the slots that
// the kernel fills first. One whose table cannot be read has none, and is named in the notes.
func rdmaPorts(t Tree, whole bool) (ports []rdmaPort, notes []string) {
	devices, err := t.List(sysRDMA)
	if err != nil {
		return nil, nil // no RDMA
	}
	for _, d := range devices {
		dir := path.Join(sysRDMA, d)
		p := rdmaPort{device: d, parent: said(t, dir+"/parent")}
		if pci := base(t, dir+"/device"); pciAddress.MatchString(pci) {
			p.pci = pci
		}
		p.pf = physical(t, dir+"/device")
		names, err := t.List(dir + "/ports")
		if err != nil {
			notes = append(notes, fmt.Sprintf("RDMA device %s: %v", d, err))
			continue
		}
		for _, name := range names {
			p := p
			if p.port, err = strconv.Atoi(name); err != nil {
				continue
			}
			if p.gids, err = gidTable(t, d, p.port, whole); err != nil {
				notes = append(notes, fmt.Sprintf("GID table of %s port %d: %v", d, p.port, err))
			}
			ports = append(ports, p)
		}
	}
	return ports, notes
}

// physical is the PCI address of the physical function that a device is a virtual one of, or a part; "" when it is a
// whole one itself, or none.
func physical(t Tree, device string) string {
	dir, err := t.Real(device)
	if err != nil {
		return ""
	}
	if pf := base(t, dir+"/physfn"); pf != "" {
		return pf
	}
	for at := path.Dir(dir); !pciAddress.MatchString(path.Base(dir)) && at != "." && at != "/"; at = path.Dir(at) {
		if pciAddress.MatchString(path.Base(at)) {
			return at[strings.LastIndexByte(at, '/')+1:]
		}
	}
	return ""
}

// unseen reports whether a NIC has virtual functions whose queue pairs are not shown here: those that a virtual machine has,
// and any where the kernel shows RDMA devices to their own network namespace alone (ib_core's netns_mode).
func unseen(t Tree, h hardware) bool {
	if h.pci == "" || h.vfOf != "" {
		return false
	}
	dir := path.Join(sysPCI, h.pci)
	vfs, err := strconv.Atoi(said(t, dir+"/sriov_numvfs"))
	if err != nil || vfs < 1 {
		return false
	}
	if said(t, "sys/module/ib_core/parameters/netns_mode") == "N" {
		return true
	}
	for i := range min(vfs, 1<<16) {
		if base(t, fmt.Sprintf("%s/virtfn%d/driver", dir, i)) == "vfio-pci" {
			return true
		}
	}
	return false
}

// carries reports whether the port has GIDs of that link.
func (p rdmaPort) carries(link string) bool {
	return link != "" && slices.ContainsFunc(p.gids, func(e gidEntry) bool { return e.link == link })
}

// rdmaOf finds the RDMA port of a link: that of its bond where the bond has one, that of its hardware, and otherwise one
// in software on top of it.
func rdmaOf(ports []rdmaPort, link, bond string, h hardware) *rdmaPort {
	find := func(fit func(p rdmaPort) bool) *rdmaPort {
		if i := slices.IndexFunc(ports, fit); i >= 0 {
			return &ports[i]
		}
		return nil
	}
	mine := func(p rdmaPort) bool { return p.pci != "" && p.pci == h.pci }
	for _, fit := range []func(p rdmaPort) bool{
		func(p rdmaPort) bool { return bond != "" && p.carries(bond) && mine(p) },
		func(p rdmaPort) bool {
			return bond != "" && p.carries(bond) && p.pci != "" && sameAdapter(p.pci, h.pci)
		},
		func(p rdmaPort) bool { return mine(p) && p.carries(link) },
		func(p rdmaPort) bool { return mine(p) && p.port == max(h.port, 1) },
		mine,
		func(p rdmaPort) bool { return p.parent == link },
	} {
		if p := find(fit); p != nil {
			return p
		}
	}
	return nil
}

// sameAdapter reports whether two PCI addresses differ in their function only.
func sameAdapter(a, b string) bool {
	x, _, _ := strings.Cut(a, ".")
	y, _, _ := strings.Cut(b, ".")
	return x == y && x != ""
}

// accelerators is the PCI addresses of GPUs and the like on the NUMA node of h, the nearest first: those that share the
// longest way through the PCI tree.
func accelerators(t Tree, all []string, h hardware) []string {
	if h.numa < 0 {
		return nil
	}
	mine, err := t.Real(path.Join(sysPCI, h.pci))
	if err != nil {
		return nil
	}
	type gpu struct {
		pci    string
		shared int
	}
	var near []gpu
	for _, pci := range all {
		dir, err := t.Real(path.Join(sysPCI, pci))
		if err != nil || said(t, dir+"/numa_node") != strconv.Itoa(h.numa) {
			continue
		}
		near = append(near, gpu{pci, shared(mine, dir)})
	}
	sort.SliceStable(near, func(i, j int) bool { return near[i].shared > near[j].shared })
	var out []string
	for _, g := range near {
		out = append(out, g.pci)
	}
	return out
}

// shared counts the leading names that two paths have in common.
func shared(a, b string) int {
	x, y := strings.Split(a, "/"), strings.Split(b, "/")
	n := 0
	for n < len(x) && n < len(y) && x[n] == y[n] {
		n++
	}
	return n
}

// allAccelerators is the PCI addresses of all devices that compute: display controllers of a vendor of GPUs for
// computing (3D controllers of any), and processing accelerators (PCI class codes 03 and 12).
func allAccelerators(t Tree) []string {
	names, err := t.List(sysPCI)
	if err != nil {
		return nil
	}
	var out []string
	for _, pci := range names {
		class := said(t, path.Join(sysPCI, pci, "class"))
		if strings.HasPrefix(class, "0x0302") || strings.HasPrefix(class, "0x1200") ||
			strings.HasPrefix(class, "0x0300") && said(t, path.Join(sysPCI, pci, "vendor")) == "0x10de" {
			out = append(out, pci)
		}
	}
	return out
}
