package netlink

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/profiles"
	"github.com/fabricctl/fabricctl/render"
)

// Facts is the host's name, DMI serial, kernel release, and its NICs: Model holds their distinct PCI vendor:device
// numbers, Aliases leads from a PCI address to the link, NICs says the rest. What cannot be read is left out, and in
// the notes where that matters. Owners are those that would write what we write, each with what ends that.
func (d *Device) Facts(ctx context.Context) (render.Facts, drivers.Caps, error) {
	f, caps, err := d.facts(ctx)
	return f, caps, d.named("facts", err)
}

func (d *Device) facts(ctx context.Context) (render.Facts, drivers.Caps, error) {
	caps := drivers.Caps{PersistsOnCommit: true, Confirm: d.confirms(), Counters: true}
	m, err := d.look(ctx, true)
	if err != nil {
		return render.Facts{}, caps, err
	}
	addrs, err := d.cfg.Links.Addresses(ctx)
	if err != nil {
		return render.Facts{}, caps, fmt.Errorf("addresses: %w", err)
	}
	f := render.Facts{
		Hostname: said(d.tree, "proc/sys/kernel/hostname"),
		Serial:   serial(said(d.tree, "sys/class/dmi/id/product_serial")),
		Version:  said(d.tree, "proc/sys/kernel/osrelease"),
		Aliases:  map[string]string{},
		Notes:    m.notes,
	}
	f.Notes = append(f.Notes, "what is set here but files is lost at a reboot or a driver reload, unless fabricctl-host applies it at boot; "+render.NCCLPath+" is saved at once")
	if err := d.nicFacts(ctx, &f, m, addrs); err != nil {
		return render.Facts{}, caps, err
	}
	f.Notes = append(f.Notes, d.overdue()...)
	if d.kept() {
		f.Notes = append(f.Notes, "the agent of fabricctl-host keeps this host as its host file says, and sets back within a minute what differs from that and makes no link flap: "+
			"with another model, write its file too (fabricctl host unit; systemctl reload fabricctl-host-agent), or stop the agent")
	}
	owners, notes := d.owners(m)
	f.Owners = owners
	f.Notes = append(append(f.Notes, notes...), d.networkNotes(m, addrs)...)
	return f, caps, ctx.Err()
}

// nicFacts adds what the NICs say.
func (d *Device) nicFacts(ctx context.Context, f *render.Facts, m *machine, addrs map[int32][]netip.Prefix) error {
	cat, err := d.catalog()
	if err != nil {
		return err
	}
	qps, note := d.liveQPs(ctx)
	if note != "" {
		f.Notes = append(f.Notes, note)
	}
	managed := m.carrying(d.managementLinks(m, addrs)...)
	gpus, limits := allAccelerators(d.tree), d.limitsOfVerbs(ctx, m.ports)
	models, byPCI := map[string]bool{}, map[string][]string{}
	for _, n := range m.nics {
		if n.hw.model != "" {
			models[n.hw.model] = true
			f.Notes = append(f.Notes, fmt.Sprintf("%s: driver %s, PCI %s (%s)", n.Name, n.hw.driver, n.hw.pci, n.hw.model))
			if !n.hw.part {
				byPCI[n.hw.pci] = append(byPCI[n.hw.pci], n.Name)
			}
		}
		h, notes, err := d.hostNIC(ctx, m, n, addrs)
		if err != nil {
			return err
		}
		h.GPUs, h.Management = accelerators(d.tree, gpus, n.hw), managed[n.Name]
		h.MaxQP, h.MaxCQ = limits[h.RDMA].QP, limits[h.RDMA].CQ
		h.QPs = 0
		for _, device := range m.over(n) {
			if h.QPs += qps[device]; qps == nil {
				h.QPs = -1
				break
			}
		}
		if unseen(d.tree, n.hw) {
			h.QPs = -1
			f.Notes = append(f.Notes, n.Name+": "+outOfSight)
		}
		f.NICs = append(f.NICs, h)
		f.Notes = append(f.Notes, notes...)
		e, known := cat.Entry(profiles.KindPersonality, h.Personality)
		told := slices.ContainsFunc(f.Personalities, func(p profiles.Personality) bool { return p.Name == h.Personality })
		if known && !e.BuiltIn() && !told {
			f.Personalities = append(f.Personalities, n.per)
		}
	}
	for _, pci := range slices.Sorted(maps.Keys(byPCI)) {
		if names := byPCI[pci]; len(names) == 1 {
			f.Aliases[pci] = names[0]
		} else {
			f.Notes = append(f.Notes, fmt.Sprintf("PCI %s has several links, name the one that is meant: %s", pci, strings.Join(names, ", ")))
		}
	}
	f.Model = strings.Join(slices.Sorted(maps.Keys(models)), ",")
	return nil
}

// hostNIC is what is said of one NIC; queue pairs, accelerators and the way of management are left to the caller.
func (d *Device) hostNIC(ctx context.Context, m *machine, n *nic, addrs map[int32][]netip.Prefix) (render.HostNIC, []string, error) {
	h := render.HostNIC{
		Name: n.Name, PCI: n.hw.pci, Model: n.hw.model, Port: n.hw.port, Driver: n.hw.driver,
		DriverVersion: n.hw.version, OutOfTree: n.hw.version != "", Personality: n.per.Name,
		Bond: n.bond, VFOf: n.hw.vfOf, DPU: n.dpu, NUMA: n.hw.numa, GID: -1, Link: d.cable(n),
	}
	if d.cfg.Ethtool != nil {
		if i, err := (ethLink{d.cfg.Ethtool, n.Name}).driver(ctx); err == nil {
			h.Firmware = i.firmware
			if i.version != said(d.tree, "proc/sys/kernel/osrelease") { // what the kernel says for its own drivers
				h.DriverVersion = cmp.Or(h.DriverVersion, i.version)
			}
		}
	}
	links := m.on(n)
	for _, p := range prefixes(addrs, links) {
		h.Addresses = append(h.Addresses, p.String())
	}
	if n.rdma != nil {
		h.RDMA, h.RDMAPort = n.rdma.device, n.rdma.port
		h.Firmware = cmp.Or(h.Firmware, said(d.tree, path.Join(sysRDMA, h.RDMA, "fw_ver")))
		var names []string
		for _, l := range links {
			names = append(names, l.Name)
		}
		h.GID, h.GIDWhy = gidOf(n.rdma.gids, names)
	} else {
		h.GIDWhy = "it has no RDMA device"
	}
	s, err := d.sense(ctx, n)
	h.Knobs = s.knobs
	if n.dcb != nil && n.per.ReadsCache {
		s.notes = append(s.notes, n.Name+": its driver shows what was last set through dcbnl, which is not what the adapter does where another tool set it")
	}
	return h, s.notes, err
}

// cable is the state of a NIC's link and of its slot.
func (d *Device) cable(n *nic) render.HostLink {
	l := render.HostLink{Up: n.Up}
	if mbps, err := strconv.ParseInt(said(d.tree, path.Join(sysNet, n.Name, "speed")), 10, 32); err == nil && mbps > 0 {
		l.Speed = units.BitRate(mbps) * units.Mbps
	}
	if n.hw.pci != "" {
		dir := path.Join(sysPCI, n.hw.pci)
		l.PCIeSpeed, l.PCIeMaxSpeed = said(d.tree, dir+"/current_link_speed"), said(d.tree, dir+"/max_link_speed")
		l.PCIeWidth, _ = strconv.Atoi(said(d.tree, dir+"/current_link_width"))
		l.PCIeMaxWidth, _ = strconv.Atoi(said(d.tree, dir+"/max_link_width"))
	}
	return l
}

// liveQPs is the queue pairs of programs by RDMA device, or why that is not known.
func (d *Device) liveQPs(ctx context.Context) (map[string]int, string) {
	if d.cfg.RDMA == nil {
		return nil, ""
	}
	qps, err := d.cfg.RDMA.QPs(ctx)
	if err != nil {
		return nil, "live queue pairs: " + err.Error()
	}
	return qps, ""
}

// serial drops what board makers write when they write nothing.
func serial(s string) string {
	switch strings.ToLower(s) {
	case "none", "0", "not specified", "to be filled by o.e.m.", "default string", "system serial number":
		return ""
	}
	return s
}
