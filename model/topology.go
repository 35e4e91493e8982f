package model

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/units"
)

// Limits on what counts may generate.
const (
	maxDevices = 50_000
	maxPorts   = 300_000
)

// topology expands the topology section into devices and ports, and hangs overrides and inventory on them.
type topology struct {
	f      *Fabric
	found  diag.List
	broken bool // errors were found before

	devices map[string]*Device
	order   []string
	unknown int // names reported as unknown
	ports   int
	index   map[string]map[string]int // device to port name to place in its Ports
}

// tier is a generated tier.
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

// linkValues are the values that a link gives to both of its ports.
type linkValues struct {
	speed Value[units.BitRate]
	cable Value[units.Length]
}

func decodeLink(n *node) linkValues {
	return linkValues{speed: value(n.get("speed"), units.ParseBitRate), cable: value(n.get("cable"), units.ParseLength)}
}

func (t *topology) expand(n *node) {
	t.devices, t.index = map[string]*Device{}, map[string]map[string]int{}
	t.generate(n)
	t.listed(n)
	t.single(n)
	if len(t.devices) == 0 && n != nil && !t.broken && len(t.found) == 0 {
		t.found.Errorf("missing", n.pos(), "give spines, leaves and hosts, or list devices", "the topology has no devices")
	}
	slices.SortFunc(t.order, natural)
	for _, name := range t.order {
		d := t.devices[name]
		slices.SortStableFunc(d.Ports, func(a, b Port) int { return comparePorts(a.Name, b.Name) })
		t.f.Devices = append(t.f.Devices, *d)
	}
	for i := range t.f.Devices { // from here on, the expanded list is the one that counts
		d := &t.f.Devices[i]
		t.devices[d.Name] = d
		for j := range d.Ports {
			t.index[d.Name][d.Ports[j].Name] = j
		}
	}
}

// generate makes the tiers that are given by counts. Hosts stand in groups of as many leaves as a host has NICs: host h
// of group g has NIC i on downlink h of leaf i of the group, so with one rail a host's NIC goes to its own leaf.
func (t *topology) generate(n *node) {
	spines, leaves, hosts := decodeTier(n.get("spines")), decodeTier(n.get("leaves")), n.get("hosts")
	perLeaf, railsValue := integer(hosts.get("per_leaf")), integer(hosts.get("rails"))
	rails := max(railsValue.V, 1)
	if t.broken && (leaves.count == 0 || leaves.count%rails != 0) {
		return // a count was refused
	}
	if leaves.count%rails != 0 {
		t.found.Errorf("topology", railsValue.Pos(), fmt.Sprintf("make leaves.count a multiple of %d, or change rails", rails),
			"%d leaves do not divide into groups of %d rails", leaves.count, rails)
		return
	}
	if perLeaf.V > 0 && leaves.count == 0 {
		t.found.Errorf("topology", perLeaf.Pos(), "give topology.leaves", "%d hosts per leaf, but there are no leaves", perLeaf.V)
		return
	}
	hostCount := leaves.count / rails * perLeaf.V
	ports := 2 * (spines.count*leaves.count + leaves.count*perLeaf.V)
	if spines.count+leaves.count+hostCount > maxDevices || ports > maxPorts {
		t.found.Errorf("limits", n.pos(), "divide the fabric into several models",
			"the counts make more than %d devices or %d ports", maxDevices, maxPorts)
		return
	}
	platform := text(hosts.get("platform"))
	if !platform.Set {
		platform = Value[string]{V: "linux/generic", From: &Origin{Kind: FromDefault, Ref: "hosts are Linux hosts"}}
	}
	for i := range spines.count {
		t.device(fmt.Sprintf("spine%d", i+1), "spine", spines.platform, spines.from, leaves.count)
	}
	for i := range leaves.count {
		t.device(fmt.Sprintf("leaf%d", i+1), "leaf", leaves.platform, leaves.from, perLeaf.V+spines.count)
	}
	if hostCount > 0 {
		from := perLeaf.From
		for i := range hostCount {
			t.device(fmt.Sprintf("host%d", i+1), "host", platform, from, rails)
		}
	}
	down, up := decodeLink(n.get("links", "host_leaf")), decodeLink(n.get("links", "leaf_spine"))
	for l := range leaves.count {
		leaf := fmt.Sprintf("leaf%d", l+1)
		for h := range perLeaf.V {
			host := fmt.Sprintf("host%d", l/rails*perLeaf.V+h+1)
			t.connect(leaf, fmt.Sprintf("downlink-%d", h+1), host, fmt.Sprintf("nic-%d", l%rails+1), down, leaves.from)
		}
		for s := range spines.count {
			t.connect(leaf, fmt.Sprintf("uplink-%d", s+1), fmt.Sprintf("spine%d", s+1), fmt.Sprintf("downlink-%d", l+1), up, spines.from)
		}
	}
	t.patterns(hosts)
}

// patterns names the interfaces of generated ports: by the platform's pattern on switches, in the order of the ports;
// by topology.hosts.netdevs on hosts.
func (t *topology) patterns(hosts *node) {
	var netdevs []Value[string]
	for _, e := range hosts.get("netdevs").list() {
		netdevs = append(netdevs, text(e))
	}
	if rails := max(integer(hosts.get("rails")).V, 1); len(netdevs) > rails {
		t.found.Errorf("topology", netdevs[rails].Pos(), "remove the names that are too many, or raise rails",
			"%d interface names for %d NICs per host", len(netdevs), rails)
	}
	for _, d := range t.devices {
		slices.SortStableFunc(d.Ports, func(a, b Port) int { return comparePorts(a.Name, b.Name) })
		p, known := t.f.Catalog.Platform(d.Platform.V)
		from := &Origin{Kind: FromProfile, Ref: p.Name + ": " + p.Source}
		for i := range d.Ports {
			t.index[d.Name][d.Ports[i].Name] = i
			switch {
			case d.Role == "host" && i < len(netdevs):
				d.Ports[i].Iface = netdevs[i]
			case !d.Host && known && p.Iface != "":
				d.Ports[i].Iface = Value[string]{V: p.Port(i), Set: true, From: from}
			}
		}
	}
}

// device adds a device; false when the name is taken.
func (t *topology) device(name, role string, platform Value[string], from *Origin, ports int) bool {
	if old := t.devices[name]; old != nil {
		t.found.Add(diag.Finding{
			Rule: "duplicate", Severity: diag.Error, Pos: from.At(), Msg: fmt.Sprintf("%s exists already", name),
			Hint: "rename the device", Related: []diag.Related{{Pos: old.From.At(), Msg: "made here"}},
		})
		return false
	}
	t.devices[name] = &Device{
		Name: name, Role: role, Host: strings.HasPrefix(platform.V, "linux/"), Platform: platform, From: from,
		Ports: make([]Port, 0, ports),
	}
	t.index[name] = make(map[string]int, ports)
	t.order = append(t.order, name)
	return true
}

// port finds a port of a device and makes it when there is none.
func (t *topology) port(d *Device, name string, from *Origin) *Port {
	if i, ok := t.index[d.Name][name]; ok {
		return &d.Ports[i]
	}
	t.ports++
	t.index[d.Name][name] = len(d.Ports)
	d.Ports = append(d.Ports, Port{Name: name, From: from})
	return &d.Ports[len(d.Ports)-1]
}

// connect joins two ports of existing devices that are not joined yet.
func (t *topology) connect(a, pa, b, pb string, v linkValues, from *Origin) {
	for _, e := range [2][4]string{{a, pa, b, pb}, {b, pb, a, pa}} {
		d, peer := t.devices[e[0]], t.devices[e[2]]
		p := t.port(d, e[1], from)
		p.Peer, p.PeerPort = e[2], e[3]
		p.Speed, p.Cable = v.speed.Or(p.Speed), v.cable.Or(p.Cable)
		if p.Role == "" {
			switch {
			case d.Host:
				p.Role = "nic"
			case peer.Host:
				p.Role = "host"
			default:
				p.Role = "fabric"
			}
		}
	}
}

// listed adds the devices of topology.devices.
func (t *topology) listed(n *node) {
	for _, e := range n.get("devices").list() {
		ports := e.get("ports").list()
		if len(t.devices) >= maxDevices {
			t.found.Errorf("limits", e.pos(), "divide the fabric into several models", "more than %d devices", maxDevices)
			return
		}
		if !t.device(e.name(), text(e.get("role")).V, text(e.get("platform")), e.from, len(ports)) {
			continue
		}
		d := t.devices[e.name()]
		for _, pn := range ports {
			p := t.port(d, pn.name(), pn.from)
			role := text(pn.get("role"))
			p.Iface, p.Role, p.RoleAt, p.Speed = text(pn.get("iface")), role.V, role.From, value(pn.get("speed"), units.ParseBitRate)
		}
	}
}

// single adds the links of topology.links.list. One that joins two ports which are joined already changes the link's
// speed and cable.
func (t *topology) single(n *node) {
	for _, e := range n.get("links", "list").list() {
		a, b := text(e.get("a")), text(e.get("b"))
		if !a.Set || !b.Set {
			continue
		}
		v := decodeLink(e)
		da, pa, ok1 := t.end(a)
		db, pb, ok2 := t.end(b)
		if !ok1 || !ok2 {
			continue
		}
		if a.V == b.V {
			t.found.Errorf("topology", b.Pos(), "", "a link from %s to itself", a.V)
			continue
		}
		if t.ports >= maxPorts {
			t.found.Errorf("limits", e.pos(), "divide the fabric into several models", "more than %d ports", maxPorts)
			return
		}
		p, q := t.linked(da, pa), t.linked(db, pb)
		if p != nil && q != nil && p.Peer == db && p.PeerPort == pb {
			for _, x := range []*Port{p, q} {
				x.Speed, x.Cable = winning(v.speed, x.Speed), winning(v.cable, x.Cable)
			}
			continue
		}
		free := true
		for _, x := range []struct {
			at   Value[string]
			port *Port
		}{{a, p}, {b, q}} {
			if x.port != nil {
				free = false
				t.found.Add(diag.Finding{
					Rule: "duplicate", Severity: diag.Error, Pos: x.at.Pos(), Hint: "use a free port, or correct the other link",
					Msg:     fmt.Sprintf("%s is linked to %s:%s already", x.at.V, x.port.Peer, x.port.PeerPort),
					Related: []diag.Related{{Pos: x.port.From.At(), Msg: "linked here"}},
				})
			}
		}
		if free {
			t.connect(da, pa, db, pb, v, e.from)
		}
	}
	for _, d := range t.devices { // ports that nothing links are part of the fabric all the same, unless they say otherwise
		for i := range d.Ports {
			switch p := &d.Ports[i]; {
			case p.Role != "":
			case d.Host:
				p.Role = "nic"
			default:
				p.Role = "fabric"
			}
		}
	}
}

// winning is v over w, with w's line remembered as lost.
func winning[T any](v, w Value[T]) Value[T] {
	if !v.Set || !w.Set || v.From == w.From {
		return v.Or(w)
	}
	from := *v.From
	from.Lost = append(append(slices.Clone(from.Lost), w.From.At()), w.From.Lost...)
	return Value[T]{V: v.V, Set: true, From: &from}
}

// linked is a port that has a peer; nil when there is none.
func (t *topology) linked(device, port string) *Port {
	i, ok := t.index[device][port]
	if !ok || t.devices[device].Ports[i].Peer == "" {
		return nil
	}
	return &t.devices[device].Ports[i]
}

// end splits device:port and reports a device that is not there.
func (t *topology) end(v Value[string]) (device, port string, ok bool) {
	device, port, _ = strings.Cut(v.V, ":")
	if t.devices[device] == nil {
		t.unknownDevice(device, v.Pos())
		return "", "", false
	}
	return device, port, true
}

// unknownDevice reports a name that the topology does not have. When the topology itself is in doubt, it is silent.
func (t *topology) unknownDevice(name string, pos diag.Pos) {
	if t.broken || len(t.devices) == 0 {
		return
	}
	t.found.Errorf("unknown-name", pos, t.meant(name, t.order), "the topology has no device %s", clip(name))
}

// meant is didYouMean for the first few unknown names: comparing every name with every other would take long when an
// inventory belongs to another fabric altogether.
func (t *topology) meant(name string, names []string) string {
	const most = 20
	if t.unknown++; t.unknown > most {
		return ""
	}
	return didYouMean(name, names)
}

// comparePorts orders the ports of a device: downlinks, uplinks, then others; each naturally by name.
func comparePorts(a, b string) int {
	rank := func(s string) int {
		switch {
		case strings.HasPrefix(s, "downlink-"):
			return 0
		case strings.HasPrefix(s, "uplink-"):
			return 1
		}
		return 2
	}
	if c := rank(a) - rank(b); c != 0 {
		return c
	}
	return natural(a, b)
}

// natural orders names with their runs of digits as numbers.
func natural(a, b string) int {
	for a != "" && b != "" {
		x, y := leadingDigits(a), leadingDigits(b)
		if x > 0 && y > 0 {
			n, m := strings.TrimLeft(a[:x], "0"), strings.TrimLeft(b[:y], "0")
			if len(n) != len(m) {
				return len(n) - len(m)
			}
			if c := strings.Compare(n, m); c != 0 {
				return c
			}
			if x != y {
				return x - y
			}
			a, b = a[x:], b[y:]
			continue
		}
		if a[0] != b[0] {
			return int(a[0]) - int(b[0])
		}
		a, b = a[1:], b[1:]
	}
	return len(a) - len(b)
}

func leadingDigits(s string) int {
	n := 0
	for n < len(s) && '0' <= s[n] && s[n] <= '9' {
		n++
	}
	return n
}
