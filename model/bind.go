package model

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fabricctl/fabricctl/model/diag"
)

// override hangs the overrides on devices and ports, and reports those that hang on nothing.
func (t *topology) override(n *node) {
	roles := map[string]bool{}
	var names []string
	for i := range t.f.Devices {
		if r := t.f.Devices[i].Role; !roles[r] {
			roles[r] = true
			names = append(names, r)
		}
	}
	n.each(func(role string, c *node) {
		o := decodeOverride(c)
		if !roles[role] {
			if d := t.devices[role]; d != nil && !t.broken {
				t.found.Errorf("unknown-name", n.at(role), fmt.Sprintf("write it under overrides.%s.devices.%s", d.Role, role),
					"overrides are by role, and %s is a device of the role %s", role, d.Role)
			} else if !t.broken && len(names) > 0 {
				t.found.Errorf("unknown-name", n.at(role), t.meant(role, names), "no device has the role %s", role)
			}
			return
		}
		t.f.Roles[role] = o
		devices := c.get("devices")
		for _, name := range sortedKeys(o.Devices) {
			d := t.devices[name]
			switch pos := devices.at(name); {
			case d == nil:
				t.unknownDevice(name, pos)
			case d.Role != role:
				t.found.Errorf("unknown-name", pos, fmt.Sprintf("move it under overrides.%s.devices", d.Role),
					"%s is a %s, not a %s", name, d.Role, role)
			default:
				d.Override = o.Devices[name]
				t.overridePorts(d, devices.get(name, "ports"))
			}
		}
	})
}

func (t *topology) overridePorts(d *Device, n *node) {
	for _, name := range sortedKeys(d.Override.Ports) {
		if i, ok := t.find(d, name); ok {
			d.Ports[i].Override = d.Override.Ports[name]
			continue
		}
		t.unknownPort(d, name, n.at(name))
	}
}

func (t *topology) unknownPort(d *Device, name string, pos diag.Pos) {
	if t.broken {
		return
	}
	if t.unknown >= maxMeant {
		t.found.Errorf("unknown-name", pos, "", "%s has no port %s", d.Name, name)
		return
	}
	names := make([]string, len(d.Ports))
	for i := range d.Ports {
		p := &d.Ports[i]
		names[i] = p.Name
		if t.iface(d, p).V == name {
			t.unknown++
			t.found.Errorf("unknown-name", pos, fmt.Sprintf("write the port's name in the model: %s (%s)", p.Name, name),
				"%s is the interface of a port of %s, and not the port's name", name, d.Name)
			return
		}
	}
	if value := text(t.f.docs.inventory.get("devices", d.Name, "ports", name)); slices.Contains(names, value.V) { // the two sides changed places
		t.unknown++
		t.found.Errorf("unknown-name", pos, fmt.Sprintf("write %s: %s", value.V, name), "%s has no port %s", d.Name, name)
		return
	}
	t.found.Errorf("unknown-name", pos, t.meant(name, names), "%s has no port %s", d.Name, name)
}

// iface is the device's name of a port, as the inventory or else the topology gives it.
func (t *topology) iface(d *Device, p *Port) Value[string] {
	return text(t.f.docs.inventory.get("devices", d.Name, "ports", p.Name)).Or(p.Iface)
}

// ends reports whether ref, device:port, is the other end of p; the port may have the model's name or the device's.
func (t *topology) ends(ref string, p *Port) bool {
	if ref == p.Peer+":"+p.PeerPort {
		return true
	}
	device, port, _ := strings.Cut(ref, ":")
	peer := t.devices[p.Peer]
	if peer == nil || device != p.Peer {
		return false
	}
	i, ok := t.find(peer, p.PeerPort)
	return ok && t.iface(peer, &peer.Ports[i]).V == port
}

// bind reads the inventory: endpoints for every device, and the interface names it gives.
func (t *topology) bind(n *node) {
	r := newReach(n, &t.found)
	t.members(r)
	for i := range t.f.Devices {
		d := &t.f.Devices[i]
		ep := r.endpoint(d.Name, d.Role)
		if e := n.get("devices", d.Name); e != nil {
			t.samePlatform(d, ep)
			t.bindPorts(d, e.get("ports"))
			t.bindNICs(d, e.get("nics"))
			t.managementPort(d, ep)
		}
		t.f.Endpoints[d.Name] = ep
	}
	devices := n.get("devices")
	devices.each(func(name string, _ *node) {
		if t.devices[name] == nil {
			t.unknownDevice(name, devices.at(name))
		}
	})
	r.report(&t.found)
	t.ifaces()
}

// samePlatform wants the inventory and the topology to agree on what a device is.
func (t *topology) samePlatform(d *Device, e *Endpoint) {
	if !e.Platform.Set || !d.Platform.Set || e.Platform.V == d.Platform.V || t.broken {
		return
	}
	t.found.Add(diag.Finding{
		Rule: "platform", Severity: diag.Error, Pos: e.Platform.Pos(),
		Msg:     fmt.Sprintf("%s is %s in the inventory, but %s in the topology", d.Name, e.Platform.V, d.Platform.V),
		Hint:    fmt.Sprintf("write platform: %s here, or remove the line: the topology says it already", d.Platform.V),
		Related: []diag.Related{{Pos: d.Platform.Pos(), Msg: "the topology's platform"}},
	})
}

func (t *topology) bindPorts(d *Device, n *node) {
	n.each(func(name string, c *node) {
		i, ok := t.find(d, name)
		if !ok {
			t.unknownPort(d, name, n.at(name))
			return
		}
		d.Ports[i].Iface = winning(text(c), d.Ports[i].Iface)
	})
}

// bindNICs gives the NICs of the inventory to the host's ports: by the switch port they name, else in order.
func (t *topology) bindNICs(d *Device, n *node) {
	items := n.list()
	if len(items) > 0 && !d.Host {
		t.found.Errorf("topology", n.pos(), "use ports for the interface names of a switch", "%s is a switch and has no NICs", d.Name)
		return
	}
	if len(items) > len(d.Ports) && !t.broken {
		t.found.Errorf("topology", items[len(d.Ports)].pos(), "raise topology.hosts.rails, or remove the NIC",
			"%d NICs in the inventory, but the topology gives %s %d", len(items), d.Name, len(d.Ports))
		return
	}
	for i, e := range items {
		if i >= len(d.Ports) {
			break
		}
		p := &d.Ports[i]
		if want := text(e.get("port")); want.Set && !t.ends(want.V, p) && !t.broken {
			hint := fmt.Sprintf("the topology joins %s:%s to %s:%s", d.Name, p.Name, p.Peer, p.PeerPort)
			if j := slices.IndexFunc(d.Ports[:min(len(d.Ports), maxHints)], func(q Port) bool { return q.Peer+":"+q.PeerPort == want.V }); j >= 0 {
				hint += fmt.Sprintf("; %s is where %s goes, so list the NICs in the order of the topology", want.V, d.Ports[j].Name)
			}
			t.found.Add(diag.Finding{
				Rule: "cabling", Severity: diag.Error, Pos: want.Pos(), Hint: hint,
				Msg:     fmt.Sprintf("NIC %d of %s is on %s here, but on %s:%s in the topology", i+1, d.Name, want.V, p.Peer, p.PeerPort),
				Related: []diag.Related{{Pos: p.From.At(), Msg: "the link is made here"}},
			})
		}
		p.PCI = winning(text(e.get("pci")), p.PCI)
		p.Iface = winning(text(e.get("netdev")).Or(text(e.get("pci"))), p.Iface)
		p.NIC = winning(text(e.get("model")), p.NIC)
		p.RDMA, p.IP = winning(text(e.get("rdma")), p.RDMA), text(e.get("ip"))
		t.bindRail(d, p, integer(e.get("rail")))
		if c := e.get("carries"); c != nil {
			p.Carries = decodeCarries(c)
			if peer := t.devices[p.Peer]; peer != nil {
				t.port(peer, p.PeerPort, nil).Carries = p.Carries
			}
		}
	}
}

// bindRail puts a NIC on the rail that the inventory gives, counted from 0. A generated NIC is on one already.
func (t *topology) bindRail(d *Device, p *Port, rail Value[int]) {
	switch {
	case !rail.Set || t.broken:
	case !p.laidOut && p.Rail == 0:
		p.Rail = rail.V + 1
	case max(p.Rail, 1) != rail.V+1:
		t.found.Add(diag.Finding{
			Rule: "cabling", Severity: diag.Error, Pos: rail.Pos(), Hint: fmt.Sprintf("write rail: %d, or list the NICs in the order of the topology", max(p.Rail, 1)-1),
			Msg:     fmt.Sprintf("%s of %s is on rail %d here, but on rail %d in the topology (rails count from 0)", p.Name, d.Name, rail.V, max(p.Rail, 1)-1),
			Related: []diag.Related{{Pos: p.From.At(), Msg: "the link is made here"}},
		})
	}
}

// nameless reports whether an error that is said leaves a port without an interface name.
func (t *topology) nameless(d *Device, p *Port) bool {
	platform, ok := t.f.Catalog.Platform(d.Platform.V)
	if !ok || p.Breakout > 1 && unable(platform, p.Breakout) || misfit(d) {
		return true
	}
	key := map[string]string{"host": "hosts", "storage": "storage"}[d.Role]
	tier := t.f.docs.fabric.get("topology", key)
	return key != "" && tier != nil && lost(tier.kid("netdevs"))
}

// misfit reports whether a switch has a host's platform, or a host a switch's.
func misfit(d *Device) bool {
	if d.Host {
		return d.Role == "spine" || d.Role == "leaf"
	}
	return d.Role == "host"
}

// ifaces reports interface names that stand for two ports, and ports without one.
func (t *topology) ifaces() {
	unbound := map[string][]string{}
	var roles []string
	for i := range t.f.Devices {
		d := &t.f.Devices[i]
		taken := make(map[string]*Port, len(d.Ports))
		for j := range d.Ports {
			p := &d.Ports[j]
			if !p.Iface.Set {
				if t.nameless(d, p) {
					continue
				}
				if unbound[d.Role] == nil {
					roles = append(roles, d.Role)
				}
				unbound[d.Role] = append(unbound[d.Role], d.Name+":"+p.Name)
				continue
			}
			q := taken[p.Iface.V]
			if q == nil {
				taken[p.Iface.V] = p
				continue
			}
			if p.Iface.Pos().IsZero() { // report at the line that somebody wrote
				p, q = q, p
			}
			f := diag.Finding{
				Rule: "duplicate", Severity: diag.Error, Pos: p.Iface.Pos(), Hint: "give each port its own interface name",
				Msg: fmt.Sprintf("%s is the interface of both %s and %s on %s", p.Iface.V, q.Name, p.Name, d.Name),
			}
			if at := q.Iface.Pos(); !at.IsZero() {
				f.Related = []diag.Related{{Pos: at, Msg: "also given here"}}
			} else if q.Iface.From != nil {
				f.Hint = fmt.Sprintf("%s has that name from the pattern of its platform; bind it in the inventory too", q.Name)
			}
			t.found.Add(f)
		}
	}
	for _, r := range roles {
		const most = 4
		names := unbound[r]
		list := strings.Join(names[:min(len(names), most)], ", ")
		if len(names) > most {
			list += fmt.Sprintf(" and %d more", len(names)-most)
		}
		hint := "bind them in the inventory under devices.NAME.ports"
		if r == "host" {
			hint = "give topology.hosts.netdevs, or bind them in the inventory under devices.NAME.nics"
		}
		first, _, _ := strings.Cut(names[0], ":")
		key := map[string]string{"host": "hosts", "storage": "storage"}[r]
		if given := t.f.docs.fabric.get("topology", key, "netdevs"); key != "" && given != nil && len(given.list()) > 0 {
			names := "one interface name"
			if n := len(given.list()); n > 1 {
				names = fmt.Sprintf("%d interface names", n)
			}
			t.found.Warningf("unbound-port", given.pos(), fmt.Sprintf("name every NIC in topology.%s.netdevs, or bind the rest in the inventory under devices.NAME.nics", key),
				"%s for %d NICs of %s; nothing is rendered for ports without one: %s", names, len(t.devices[first].Ports), first, list)
			continue
		}
		t.found.Infof("unbound-port", t.devices[first].From.At(), hint, "nothing is rendered for ports without an interface name: %s", list)
	}
}
