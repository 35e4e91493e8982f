package model

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/profiles"
)

// counts is what a topology asks for by numbers. A plane is a whole leaf-spine fabric of its own; every pod has all
// planes, and the super-spines of a plane join its pods. Hosts are shared by the planes of their pod.
type counts struct {
	pods, planes           int // at least 1
	named                  struct{ pods, planes bool }
	supers, spines, leaves tier
	groups                 Value[int] // of super-spines
	servers                []servers
	leafSpine, spineSuper  linkKind
}

// tier is a generated tier of switches.
type tier struct {
	count    int
	platform Value[string]
	from     *Origin
}

func decodeTier(n *node) tier {
	t := tier{count: integer(n.get("count")).V, platform: text(n.get("platform"))}
	if n != nil {
		t.from = n.from
		if c := n.get("count"); c != nil {
			t.from = c.from
		}
	}
	return t
}

// servers are the hosts below the leaves, or the storage hosts. They stand in groups of as many leaves of a plane as a
// host has rails times bond members: NIC b of rail r goes to leaf r*bond+b of the group, in each plane.
type servers struct {
	role     string // "host", "storage"
	key      string // under topology
	down     string // prefix of their ports on the leaves
	perLeaf  Value[int]
	rails    Value[int]
	bond     Value[int]
	platform Value[string]
	nic      Value[string]
	carries  Value[Carries]
	netdevs  []Value[string]
	rdma     []Value[string] // names of RDMA devices
	link     linkKind
}

func decodeServers(n *node, role, key, down string, link linkKind) servers {
	s := servers{
		role: role, key: key, down: down, perLeaf: integer(n.get("per_leaf")), rails: integer(n.get("rails")), bond: integer(n.get("bond")),
		platform: text(n.get("platform")), nic: text(n.get("nic")), carries: decodeCarries(n.get("carries")), link: link,
	}
	if role == "storage" && !s.carries.Set {
		s.carries = Value[Carries]{V: CarriesStorage, From: &Origin{Kind: FromDefault, Ref: "storage hosts carry storage"}}
	}
	if !s.platform.Set {
		s.platform = Value[string]{V: "linux/generic", From: &Origin{Kind: FromDefault, Ref: "hosts are Linux hosts"}}
	}
	for _, e := range n.get("netdevs").list() {
		s.netdevs = append(s.netdevs, text(e))
	}
	for _, e := range n.get("rdma").list() {
		s.rdma = append(s.rdma, text(e))
	}
	return s
}

// decodeCarries reads a list of what a link carries.
func decodeCarries(n *node) Value[Carries] {
	if n == nil {
		return Value[Carries]{}
	}
	c := Value[Carries]{Set: true, From: n.from}
	for _, e := range n.list() {
		if i := slices.Index(CarriesNames(), e.text); i >= 0 {
			c.V |= 1 << i
		}
	}
	return c
}

// spread is how many leaves of a plane one host is on.
func (s *servers) spread() int { return max(s.rails.V, 1) * max(s.bond.V, 1) }

// nics is how many NIC ports one host has.
func (s *servers) nics(planes int) int { return s.spread() * planes * s.link.parallel }

// linkKind is what all links between two tiers share.
type linkKind struct {
	linkValues
	parallel     int        // links between the same two devices, at least 1
	upper, lower Value[int] // into how many links a physical port is split, at the upper and the lower device
}

func decodeLinkKind(n *node) linkKind {
	k := linkKind{linkValues: decodeLink(n), parallel: max(integer(n.get("parallel")).V, 1)}
	if b := n.get("breakout"); b != nil && b.shape == mapNode {
		k.upper, k.lower = integer(b.get("upper")), integer(b.get("lower"))
	} else {
		k.upper = integer(b)
		k.lower = k.upper
	}
	return k
}

func decodeCounts(n *node) counts {
	pods, planes, links := integer(n.get("pods")), integer(n.get("planes")), n.get("links")
	c := counts{
		pods: max(pods.V, 1), planes: max(planes.V, 1), supers: decodeTier(n.get("super_spines")), spines: decodeTier(n.get("spines")),
		leaves: decodeTier(n.get("leaves")), groups: integer(n.get("super_spines", "groups")),
		leafSpine: decodeLinkKind(links.get("leaf_spine")), spineSuper: decodeLinkKind(links.get("spine_super")),
	}
	c.named.pods, c.named.planes = pods.Set, planes.Set
	c.servers = []servers{decodeServers(n.get("hosts"), "host", "hosts", "downlink-", decodeLinkKind(links.get("host_leaf")))}
	if s := n.get("storage"); s != nil {
		link := links.get("storage_leaf")
		if link == nil {
			link = links.get("host_leaf")
		}
		c.servers = append(c.servers, decodeServers(s, "storage", "storage", "storage-", decodeLinkKind(link)))
	}
	return c
}

// hosts is the number of hosts of one kind in a pod.
func (c *counts) hosts(s *servers) int { return c.leaves.count / s.spread() * s.perLeaf.V }

// check reports counts that do not fit together, and whether they can be used.
func (t *topology) check(n *node, c *counts) bool {
	ok := true
	fail := func(pos diag.Pos, hint, format string, a ...any) {
		ok = false
		if !t.broken {
			t.found.Errorf("topology", pos, hint, format, a...)
		}
	}
	for i := range c.servers {
		s := &c.servers[i]
		switch spread := s.spread(); {
		case c.leaves.count == 0 && s.perLeaf.V > 0:
			fail(s.perLeaf.Pos(), "give topology.leaves", "%d hosts per leaf, but there are no leaves", s.perLeaf.V)
		case c.leaves.count%spread != 0:
			at, what, change := s.rails, "rails", "rails"
			if s.bond.V > 1 {
				at, what, change = s.bond, fmt.Sprintf("(%s.rails times bond)", s.key), "rails or bond"
			}
			fail(at.Pos(), fmt.Sprintf("make leaves.count a multiple of %d, or change %s", spread, change),
				"%d leaves do not divide into groups of %d %s", c.leaves.count, spread, what)
		case len(s.netdevs) > s.nics(c.planes):
			most := s.nics(c.planes)
			if !t.broken {
				t.found.Errorf("topology", s.netdevs[most].Pos(), "remove the names that are too many, or raise rails",
					"%d interface names for %d NICs per host", len(s.netdevs), most)
			}
			s.netdevs = s.netdevs[:most]
		}
		if most := s.nics(c.planes); len(s.rdma) > most {
			if !t.broken {
				t.found.Errorf("topology", s.rdma[most].Pos(), "remove the names that are too many, or raise rails",
					"%d RDMA devices for %d NICs per host", len(s.rdma), most)
			}
			s.rdma = s.rdma[:most]
		}
	}
	switch g := max(c.groups.V, 1); {
	case c.supers.count > 0 && c.spines.count == 0:
		fail(c.supers.from.At(), "give topology.spines", "%d super-spines, but there are no spines", c.supers.count)
	case c.supers.count%g != 0:
		fail(c.groups.Pos(), fmt.Sprintf("make super_spines.count a multiple of %d, or change groups", g), "%d super-spines do not divide into %d groups", c.supers.count, g)
	case c.supers.count > 0 && c.spines.count < g:
		fail(c.groups.Pos(), fmt.Sprintf("lower groups to %d, or raise spines.count", c.spines.count),
			"super-spines in %d groups, but spines of a pod: %d, so some groups would have no link", g, c.spines.count)
	}
	if n.get("links", "spine_super") != nil && c.supers.count == 0 {
		fail(n.get("links", "spine_super").pos(), "give topology.super_spines, or remove it", "there are no super-spines to link to")
	}
	if at := n.get("links", "leaf_spine"); at != nil && n.get("spines") == nil && c.supers.count == 0 {
		fail(at.pos(), "give topology.spines, or remove it", "there are no spines to link to")
	} else if at != nil && n.get("leaves") == nil {
		fail(at.pos(), "give topology.leaves, or remove it", "there are no leaves to link to")
	}
	if n.get("links", "storage_leaf") != nil && n.get("storage") == nil {
		fail(n.get("links", "storage_leaf").pos(), "give topology.storage, or remove it", "there are no storage hosts to link to")
	}
	if !ok {
		return false
	}
	blocks := c.pods * c.planes
	devices := blocks*(c.spines.count+c.leaves.count) + c.planes*c.supers.count
	links := blocks * (c.spines.count*c.leaves.count*c.leafSpine.parallel + c.spines.count*c.supersOf()*c.spineSuper.parallel)
	for i := range c.servers {
		s := &c.servers[i]
		devices += c.pods * c.hosts(s)
		links += blocks * c.leaves.count * s.perLeaf.V * s.link.parallel
	}
	if devices > maxDevices || 2*links > maxPorts {
		t.found.Errorf("limits", n.pos(), "divide the fabric into several models",
			"the counts make more than %d devices or %d ports", maxDevices, maxPorts)
		return false
	}
	return true
}

// supersOf is how many super-spines one spine is linked to.
func (c *counts) supersOf() int { return c.supers.count / max(c.groups.V, 1) }

// made is a device in the making, with the next physical port to use.
type made struct {
	d        *Device
	platform profiles.Platform
	from     *Origin // of interface names
	port     int     // physical ports used
	kind     string  // of the links on the last physical port
	parts    int     // into how many links the last physical port is split
	part     int     // how many of them are taken
}

// iface is the interface name of the next link: a physical port of its own, or a part of one that is shared with links
// of the same kind.
func (m *made) iface(kind string, parts int) Value[string] {
	if m.kind != kind || m.parts != parts || m.part == parts {
		m.port, m.kind, m.parts, m.part = m.port+1, kind, parts, 0
	}
	m.part++
	name, ok := m.platform.Split(m.port-1, parts, m.part-1)
	if !ok {
		return Value[string]{}
	}
	return Value[string]{V: name, Set: true, From: m.from}
}

// generate makes the tiers that are given by counts. On each leaf stand its hosts' ports first, then those of storage
// hosts, then uplinks; on each spine downlinks, then uplinks. Interface names follow in that order.
func (t *topology) generate(n *node) {
	c := decodeCounts(n)
	if !t.check(n, &c) {
		return
	}
	t.splits(&c)
	supers := make([][]*made, c.planes)
	for plane := range c.planes {
		name := c.prefix(-1, plane)
		for i := range c.supers.count {
			supers[plane] = append(supers[plane], t.made(name+"super"+strconv.Itoa(i+1), "super-spine", 3, -1, plane, &c, &c.supers))
		}
	}
	for pod := range c.pods {
		hosts := make([][]*made, len(c.servers))
		for i := range c.servers {
			hosts[i] = t.hosts(pod, &c, &c.servers[i])
		}
		for plane := range c.planes {
			t.block(pod, plane, &c, hosts, supers[plane])
		}
	}
}

// block makes the leaves and spines of one plane of one pod, and links them to the hosts and super-spines.
func (t *topology) block(pod, plane int, c *counts, hosts [][]*made, supers []*made) {
	name := c.prefix(pod, plane)
	spines, leaves := make([]*made, c.spines.count), make([]*made, c.leaves.count)
	for i := range spines {
		spines[i] = t.made(name+"spine"+strconv.Itoa(i+1), "spine", 2, pod, plane, c, &c.spines)
	}
	for i := range leaves {
		leaves[i] = t.made(name+"leaf"+strconv.Itoa(i+1), "leaf", 1, pod, plane, c, &c.leaves)
	}
	for l, leaf := range leaves {
		for i := range c.servers {
			t.serve(leaf, l, plane, c, &c.servers[i], hosts[i])
		}
		k := &c.leafSpine
		for s, spine := range spines {
			for i := range k.parallel {
				t.wire(end{leaf, "uplink-", s*k.parallel + i}, end{spine, "downlink-", l*k.parallel + i}, k, c.spines.from)
			}
		}
	}
	k, groups, each := &c.spineSuper, max(c.groups.V, 1), c.supersOf()
	for s, spine := range spines {
		below := pod*((len(spines)+groups-1-s%groups)/groups) + s/groups // spines of this group before this one
		for u := range each {
			super := supers[s%groups*each+u]
			for i := range k.parallel {
				t.wire(end{spine, "uplink-", u*k.parallel + i}, end{super, "downlink-", below*k.parallel + i}, k, c.supers.from)
			}
		}
	}
}

// serve links the hosts of one kind to the l-th leaf of a plane.
func (t *topology) serve(leaf *made, l, plane int, c *counts, s *servers, hosts []*made) {
	spread, bond, k := s.spread(), max(s.bond.V, 1), &s.link
	rail, member := l%spread/bond, l%bond
	nic := ((rail*c.planes+plane)*bond + member) * k.parallel
	for h := range s.perLeaf.V {
		host := hosts[l/spread*s.perLeaf.V+h]
		for i := range k.parallel {
			low, up := t.wire(end{host, "nic-", nic + i}, end{leaf, s.down, h*k.parallel + i}, k, c.leaves.from)
			up.Role, up.Carries = s.role, s.carries
			low.Carries, low.NIC = s.carries, s.nic
			if nic+i < len(s.netdevs) {
				low.Iface = s.netdevs[nic+i]
			}
			if nic+i < len(s.rdma) {
				low.RDMA = s.rdma[nic+i]
			}
			if s.rails.V > 1 {
				low.Rail = rail + 1
			}
			if bond > 1 {
				low.Bond = t.name("bond-", rail*c.planes+plane+1)
			}
		}
	}
}

// prefix is what the names of devices begin with where there are pods or planes; -1 stands for what pods share.
func (c *counts) prefix(pod, plane int) string {
	s := ""
	if c.named.pods && pod >= 0 {
		s = "pod" + strconv.Itoa(pod+1) + "-"
	}
	if c.named.planes && plane >= 0 {
		s += "plane" + strconv.Itoa(plane+1) + "-"
	}
	return s
}

// ports is how many ports a switch of a tier gets, to make room for them at once.
func (c *counts) ports(level int) int {
	switch level {
	case 3:
		return c.pods * ((c.spines.count + max(c.groups.V, 1) - 1) / max(c.groups.V, 1)) * c.spineSuper.parallel
	case 2:
		return c.leaves.count*c.leafSpine.parallel + c.supersOf()*c.spineSuper.parallel
	}
	n := c.spines.count * c.leafSpine.parallel
	for i := range c.servers {
		n += c.servers[i].perLeaf.V * c.servers[i].link.parallel
	}
	return n
}

// made adds a switch.
func (t *topology) made(name, role string, level, pod, plane int, c *counts, of *tier) *made {
	d := t.device(name, role, of.platform, of.from, c.ports(level))
	d.Tier = level
	if c.named.pods && pod >= 0 {
		d.Pod = "pod" + strconv.Itoa(pod+1)
	}
	if c.named.planes {
		d.Plane = "plane" + strconv.Itoa(plane+1)
	}
	return t.making(d)
}

// hosts adds the hosts of one kind of a pod.
func (t *topology) hosts(pod int, c *counts, s *servers) []*made {
	hosts := make([]*made, c.hosts(s))
	name := c.prefix(pod, -1) + s.role
	for i := range hosts {
		d := t.device(name+strconv.Itoa(i+1), s.role, s.platform, s.perLeaf.From, s.nics(c.planes))
		if c.named.pods {
			d.Pod = "pod" + strconv.Itoa(pod+1)
		}
		hosts[i] = &made{d: d}
	}
	return hosts
}

// making is a switch that is about to get ports.
func (t *topology) making(d *Device) *made {
	m := &made{d: d}
	m.platform, _ = t.f.Catalog.Platform(d.Platform.V)
	if m.from = t.patterns[d.Platform.V]; m.from == nil {
		e, _ := t.f.Catalog.Entry(profiles.KindPlatform, d.Platform.V)
		pattern, _ := e.Fact("iface")
		m.from = &Origin{Kind: FromProfile, Ref: m.platform.Name + ": " + pattern.Text() + ", " + pattern.From()}
		t.patterns[d.Platform.V] = m.from
	}
	t.front[d.Name] = m
	return m
}

// end is one end of a link to be made: the n-th port (from 0) of its kind on a device.
type end struct {
	m    *made
	kind string // what port names begin with
	n    int
}

// wire links a lower to an upper device by new ports.
func (t *topology) wire(lower, upper end, k *linkKind, from *Origin) (low, up *Port) {
	t.ports += 2
	low = t.newPort(lower, upper, max(k.lower.V, 1), k, from)
	up = t.newPort(upper, lower, max(k.upper.V, 1), k, from)
	return low, up
}

// newPort makes the port at one end.
func (t *topology) newPort(e, peer end, parts int, k *linkKind, from *Origin) *Port {
	p := Port{
		laidOut: true, Name: t.name(e.kind, e.n+1), Role: "fabric", Peer: peer.m.d.Name, PeerPort: t.name(peer.kind, peer.n+1),
		Speed: k.speed, Cable: k.cable, From: from,
	}
	if e.m.d.Tier == 0 {
		p.Role = "nic"
	} else {
		p.Iface, p.Breakout = e.m.iface(e.kind, parts), parts
	}
	e.m.d.Ports = append(e.m.d.Ports, p)
	return &e.m.d.Ports[len(e.m.d.Ports)-1]
}

// splits reports breakouts that a platform is known not to do, once for each kind of link.
func (t *topology) splits(c *counts) {
	one := func(parts Value[int], of *tier) {
		p, ok := t.f.Catalog.Platform(of.platform.V)
		if parts.V > 1 && ok && of.count > 0 && unable(p, parts.V) {
			t.found.Errorf("topology", parts.Pos(), fmt.Sprintf("%s splits a port into %s", p.Name, orList(p.Breakouts)),
				"breakout into %d links, which %s is not known to do", parts.V, p.Name)
		}
	}
	for i := range c.servers {
		one(c.servers[i].link.upper, &c.leaves)
	}
	one(c.leafSpine.lower, &c.leaves)
	one(c.leafSpine.upper, &c.spines)
	if c.supers.count > 0 {
		one(c.spineSuper.lower, &c.spines)
		one(c.spineSuper.upper, &c.supers)
	}
}

// unable reports whether it is known how p splits ports, and not into so many parts.
func unable(p profiles.Platform, parts int) bool {
	return len(p.Breakouts) > 0 && !slices.Contains(p.Breakouts, parts)
}

// orList is "2, 4 or 8".
func orList(ns []int) string {
	s := ""
	for i, n := range ns {
		switch {
		case i == 0:
		case i == len(ns)-1:
			s += " or "
		default:
			s += ", "
		}
		s += strconv.Itoa(n)
	}
	return s
}

// name is prefix with a number; names are shared by all devices.
func (t *topology) name(prefix string, n int) string {
	names := t.names[prefix]
	for len(names) < n {
		names = append(names, prefix+strconv.Itoa(len(names)+1))
	}
	t.names[prefix] = names
	return names[n-1]
}

// linkValues are the values that a link gives to both of its ports.
type linkValues struct {
	speed Value[units.BitRate]
	cable Value[units.Length]
}

func decodeLink(n *node) linkValues {
	return linkValues{speed: value(n.get("speed"), units.ParseBitRate), cable: value(n.get("cable"), units.ParseLength)}
}
