package netlink

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sort"
	"strings"

	"github.com/fabricctl/fabricctl/drivers/netlink/dcb"
	"github.com/fabricctl/fabricctl/profiles"
)

// nic is a link whose settings are more than an MTU: hardware, or anything that answers dcbnl.
type nic struct {
	Link
	hw   hardware
	per  profiles.Personality
	bond string    // the bond that it is a slave of
	rdma *rdmaPort // nil = it has no RDMA
	dcb  *dcb.State
	dpu  string // why QoS is not this host's
}

// place is the NIC for the templates of a personality.
func (n *nic) place() profiles.Place {
	p := profiles.Place{Netdev: n.Name, PCI: n.hw.pci}
	if n.rdma != nil {
		p.RDMA, p.Port = n.rdma.device, n.rdma.port
	}
	return p
}

// machine is one look at the machine.
type machine struct {
	links []Link
	nics  []*nic // by name
	ports []rdmaPort
	notes []string
}

func (m *machine) nic(name string) *nic {
	if i := slices.IndexFunc(m.nics, func(n *nic) bool { return n.Name == name }); i >= 0 {
		return m.nics[i]
	}
	return nil
}

// over is the RDMA devices whose queue pairs end with the link of a NIC: its own, and those of its virtual functions and
// sub-functions, whose links may be in other network namespaces.
func (m *machine) over(n *nic) []string {
	var out []string
	if n.rdma != nil {
		out = append(out, n.rdma.device)
	}
	for _, p := range m.ports {
		if n.hw.pci != "" && n.hw.vfOf == "" && p.pf == n.hw.pci && !slices.Contains(out, p.device) {
			out = append(out, p.device)
		}
	}
	return out
}

func (m *machine) link(index int32) *Link {
	if i := slices.IndexFunc(m.links, func(l Link) bool { return l.Index == index }); i >= 0 {
		return &m.links[i]
	}
	return nil
}

// look finds the links, their hardware, drivers and RDMA devices, and what dcbnl says of them. With whole GID tables it
// takes longer; without, they are long enough to tell whose they are.
func (d *Device) look(ctx context.Context, wholeTables bool) (*machine, error) {
	links, err := d.cfg.Links.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("links: %w", err)
	}
	m := &machine{links: links}
	m.ports, m.notes = rdmaPorts(d.tree, wholeTables)
	cat, err := d.catalog()
	if err != nil {
		return nil, err
	}
	for _, l := range links {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if l.Loopback {
			continue
		}
		n := &nic{Link: l}
		if l.Kind == "" {
			n.hw = below(d.tree, l.Name)
		}
		if n.dcb, err = d.dcbState(ctx, l.Name, &m.notes); err != nil {
			return nil, err
		}
		if n.hw.pci == "" && n.dcb == nil || n.hw.representor {
			continue
		}
		n.per = cat.Personality(n.hw.driver, n.hw.model)
		if b := m.link(l.Master); b != nil && b.Kind == "bond" {
			n.bond = b.Name
		}
		n.rdma = rdmaOf(m.ports, l.Name, n.bond, n.hw)
		if d.cfg.DCB != nil {
			n.dpu = dpu(n)
		}
		m.nics = append(m.nics, n)
	}
	sort.Slice(m.nics, func(i, j int) bool { return m.nics[i].Name < m.nics[j].Name })
	return m, nil
}

// dcbState is what dcbnl says of a link; nil when it says nothing, which is what most links do. A get that fails in
// another way than that is noted.
func (d *Device) dcbState(ctx context.Context, link string, notes *[]string) (*dcb.State, error) {
	if d.cfg.DCB == nil {
		return nil, nil
	}
	s, err := d.cfg.DCB.Get(ctx, link)
	switch {
	case err == nil:
		return s, nil
	case ctx.Err() != nil:
		return nil, err
	case errors.Is(err, dcb.EOPNOTSUPP), errors.Is(err, dcb.ENODEV): // none, or it went away just now
		return nil, nil
	}
	*notes = append(*notes, "dcbnl: "+err.Error())
	return nil, nil
}

// dpu says why a physical function whose driver has dcbnl shows none.
func dpu(n *nic) string {
	if n.dcb != nil || n.hw.vfOf != "" || n.per.PFC.Support != profiles.SupportSet {
		return ""
	}
	if strings.HasPrefix(n.hw.model, "15b3:a2d") { // BlueField-1 to -3
		return "the BlueField is in DPU mode, or restricts its host: set QoS on its Arm side"
	}
	return "its driver shows no dcbnl here: the kernel is without CONFIG_DCB, or firmware keeps QoS from this function"
}

// carrying is the names of the links that lead to the ones given: VLANs and the like to what they ride on, a bond to
// its slaves.
func (m *machine) carrying(names ...string) map[string]bool {
	out := map[string]bool{}
	for grown := true; grown; {
		grown = false
		for _, l := range m.links {
			if out[l.Name] {
				continue
			}
			up := m.link(l.Master)
			rides := slices.ContainsFunc(m.links, func(v Link) bool { return v.Lower == l.Index && out[v.Name] })
			if slices.Contains(names, l.Name) || rides || up != nil && out[up.Name] {
				out[l.Name], grown = true, true
			}
		}
	}
	return out
}

// on is the links whose addresses a NIC has: itself, its bond, and the VLANs on either.
func (m *machine) on(n *nic) []Link {
	out := []Link{n.Link}
	if b := m.link(n.Master); b != nil && n.bond != "" {
		out = append(out, *b)
	}
	for _, l := range m.links {
		if slices.ContainsFunc(out, func(x Link) bool { return l.Lower != 0 && l.Lower == x.Index }) {
			out = append(out, l)
		}
	}
	return out
}

func prefixes(addrs map[int32][]netip.Prefix, links []Link) []netip.Prefix {
	var out []netip.Prefix
	for _, l := range links {
		for _, p := range addrs[l.Index] {
			if !p.Addr().IsLinkLocalUnicast() {
				out = append(out, p)
			}
		}
	}
	return out
}
