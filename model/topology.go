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

	devices  map[string]*Device
	order    []string
	changes  map[string]*node          // topology.devices by name
	unknown  int                       // names reported as unknown
	ports    int                       // made so far
	index    map[string]map[string]int // device to port name to place in its Ports; made when first asked for
	names    map[string][]string       // names with a number, by what they begin with
	patterns map[string]*Origin        // of interface names, by platform
	front    map[string]*made          // generated switches
}

func (t *topology) expand(n *node) {
	t.devices, t.index, t.changes = map[string]*Device{}, map[string]map[string]int{}, map[string]*node{}
	t.names, t.patterns, t.front = map[string][]string{}, map[string]*Origin{}, map[string]*made{}
	for _, e := range n.get("devices").list() {
		t.changes[e.name()] = e
	}
	t.generate(n)
	t.listed(n)
	t.single(n)
	if len(t.devices) == 0 && n != nil && !t.broken && len(t.found) == 0 {
		t.found.Errorf("missing", n.pos(), "give spines, leaves and hosts, or list devices", "the topology has no devices")
	}
	slices.SortFunc(t.order, CompareNames)
	t.f.Devices = make([]Device, 0, len(t.order))
	clear(t.index)
	for _, name := range t.order {
		d := t.devices[name]
		slices.SortStableFunc(d.Ports, func(a, b Port) int { return comparePorts(a.Name, b.Name) })
		t.f.Devices = append(t.f.Devices, *d)
	}
	for i := range t.f.Devices { // from here on, the expanded list is the one that counts
		t.devices[t.f.Devices[i].Name] = &t.f.Devices[i]
	}
	t.tiers()
	t.groups()
	t.capacity()
	if !t.broken && len(t.found) == 0 {
		t.islands()
		t.speeds()
	}
}

// device adds a device. What topology.devices says of one that is generated counts from the start, since interface
// names follow from the platform.
func (t *topology) device(name, role string, platform Value[string], from *Origin, ports int) *Device {
	d := &Device{Name: name, Role: role, Platform: platform, From: from, Ports: make([]Port, 0, ports)}
	if e := t.changes[name]; e != nil {
		if r := text(e.get("role")); r.Set {
			d.Role = r.V
		}
		d.Platform = winning(text(e.get("platform")), platform)
		if g := text(e.get("group")); g.Set {
			d.Group, d.GroupAt = g.V, g.From
		}
	}
	d.Host = strings.HasPrefix(d.Platform.V, "linux/")
	t.devices[name] = d
	t.order = append(t.order, name)
	return d
}

// find is the place of a port in a device's Ports.
func (t *topology) find(d *Device, name string) (int, bool) {
	const few = 8
	if len(d.Ports) <= few {
		i := slices.IndexFunc(d.Ports, func(p Port) bool { return p.Name == name })
		return i, i >= 0
	}
	at := t.index[d.Name]
	if len(at) != len(d.Ports) {
		at = make(map[string]int, len(d.Ports))
		for i := range d.Ports {
			at[d.Ports[i].Name] = i
		}
		t.index[d.Name] = at
	}
	i, ok := at[name]
	return i, ok
}

// port finds a port of a device and makes it when there is none.
func (t *topology) port(d *Device, name string, from *Origin) *Port {
	i, ok := t.find(d, name)
	if !ok {
		t.ports++
		i = len(d.Ports)
		d.Ports = append(d.Ports, Port{Name: name, From: from})
		if at := t.index[d.Name]; at != nil && len(at) == i {
			at[name] = i
		}
	}
	return &d.Ports[i]
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
			case peer.Host && peer.Role == "storage":
				p.Role = "storage"
			case peer.Host:
				p.Role = "host"
			default:
				p.Role = "fabric"
			}
		}
	}
}

// listed adds the devices of topology.devices, and the ports that they say more about. Those that are generated too keep
// what is not said.
func (t *topology) listed(n *node) {
	for _, e := range n.get("devices").list() {
		ports := e.get("ports").list()
		if len(t.devices) >= maxDevices {
			t.found.Errorf("limits", e.pos(), "divide the fabric into several models", "more than %d devices", maxDevices)
			return
		}
		d := t.devices[e.name()]
		if d == nil {
			if !t.whole(e) {
				continue
			}
			d = t.device(e.name(), "", Value[string]{}, e.from, len(ports))
		}
		for _, pn := range ports {
			t.change(t.port(d, pn.name(), pn.from), pn)
		}
	}
}

// whole reports whether a listed device that counts do not make says what it is.
func (t *topology) whole(e *node) bool {
	var missing []string
	var hint []string
	for _, key := range []string{"role", "platform"} {
		if !e.has(key) {
			missing = append(missing, key)
		}
	}
	if len(missing) > 0 && !t.broken {
		such := map[string]string{"role": "role: leaf", "platform": "platform: sonic/sn5600"}
		for _, key := range missing {
			hint = append(hint, such[key])
		}
		t.found.Errorf("missing", e.pos(), "add "+strings.Join(hint, " and ")+", say; only a device that the counts make may leave them out",
			"topology.devices: %s has no %s", e.name(), strings.Join(missing, " and no "))
	}
	return e.get("role") != nil && e.get("platform") != nil
}

// change gives a port what its entry says.
func (t *topology) change(p *Port, n *node) {
	p.Iface = winning(text(n.get("iface")), p.Iface)
	p.Speed = winning(value(n.get("speed"), units.ParseBitRate), p.Speed)
	if role := text(n.get("role")); role.Set {
		p.Role, p.RoleAt = role.V, role.From
	}
	if bond := text(n.get("bond")); bond.Set {
		p.Bond = bond.V
	}
	if rail := integer(n.get("rail")); rail.Set {
		p.Rail = rail.V + 1
	}
	p.NIC = winning(text(n.get("nic")), p.NIC)
	p.RDMA = winning(text(n.get("rdma")), p.RDMA)
	if c := n.get("carries"); c != nil {
		p.Carries = decodeCarries(c)
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
			t.linkSays(da, pa, db, pb, e)
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
			t.linkSays(da, pa, db, pb, e)
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

// linkSays gives both ports of a link what its entry says beyond speed and cable. Roles and breakouts are about switches.
func (t *topology) linkSays(a, pa, b, pb string, n *node) {
	role, parts, carries := text(n.get("role")), integer(n.get("breakout")), n.get("carries")
	for _, e := range [2][2]string{{a, pa}, {b, pb}} {
		d := t.devices[e[0]]
		p := t.port(d, e[1], nil)
		if carries != nil {
			p.Carries = decodeCarries(carries)
		}
		if d.Host {
			continue
		}
		if role.Set {
			p.Role, p.RoleAt = role.V, role.From
		}
		if parts.Set {
			p.Breakout = parts.V
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
	i, ok := t.find(t.devices[device], port)
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

// maxMeant is how many unknown names are looked into.
const maxMeant = 20

// meant is didYouMean for the first few unknown names: comparing every name with every other would take long when an
// inventory belongs to another fabric altogether.
func (t *topology) meant(name string, names []string) string {
	if t.unknown++; t.unknown > maxMeant {
		return ""
	}
	longer := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return !strings.HasSuffix(n, "-"+name) })
	if len(longer) > 0 { // pods or planes come before it
		return "did you mean " + strings.Join(longer[:min(len(longer), 3)], " or ") + "?"
	}
	stem := strings.TrimRight(name, "0123456789")
	if stem != name && stem != "" {
		alike := slices.DeleteFunc(slices.Clone(names), func(n string) bool {
			return strings.TrimRight(n, "0123456789") != stem || n == stem
		})
		if len(alike) > 0 { // spelled right, with a number that is not there
			return known(alike)
		}
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
	return CompareNames(a, b)
}

// CompareNames orders names naturally: runs of digits compare as numbers, so "leaf2" is before "leaf10".
func CompareNames(a, b string) int {
	for a != "" && b != "" {
		if a[0] == b[0] && (a[0] < '0' || a[0] > '9') { // most of it: paths have long beginnings in common
			a, b = a[1:], b[1:]
			continue
		}
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
