package infer

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/profiles"
)

// Neighbour is what a device hears over LLDP on one of its ports.
type Neighbour struct {
	Port, Chassis, System, PeerPort, PeerDescr string

	Forwards bool // it says that it is a bridge or a router
}

// Box is one device as it was read.
type Box struct {
	Device  intent.Device     // name, platform, hostname, and ports with their interface names and policies
	Aliases map[string]string // other names of its interfaces, to the device's own
	Heard   []Neighbour
	NoLLDP  string // why it could not be asked for its neighbours; "" when it could
}

// Role gives a role to the devices whose name or hostname matches Pattern, as path.Match does.
type Role struct{ Pattern, Role string }

// end is one side of a cable.
type end struct{ device, port string } // by the names of the model

func (e end) String() string { return e.device + ":" + e.port }

// wirer finds out who is connected to whom.
type wirer struct {
	boxes   []Box
	roles   []Role
	byName  map[string]int    // what boxes call themselves over LLDP, to their place in boxes; -1 = more than one does
	devices []intent.Device   // of boxes, in the same order
	hosts   map[string]*stray // heard, and not among the boxes, by system name
	says    map[end]end       // what each end hears
	deaf    map[string]bool   // devices that could not be asked
	outside map[end]string    // ends that hear somebody who is neither a box nor a host
	unread  map[string]bool   // of those, the ones to which the command line gives a role: they belong to the fabric
	found   diag.List
}

// stray is a host that is heard and was not read.
type stray struct {
	name  string
	ports []string
	says  map[string]end // the switch port that hears each
}

// Wire joins boxes by what they hear over LLDP: links where two ends do not contradict each other, a role for each
// device (those that hear hosts are leaves, those above them spines), a host for each station that is heard and was
// not read, and what each port is there for. Where nothing is heard, every switch has the role "switch". What does not
// fit together is a finding.
func Wire(boxes []Box, roles []Role) (*intent.Net, diag.List) {
	w := &wirer{
		boxes: boxes, roles: roles, byName: map[string]int{}, hosts: map[string]*stray{}, says: map[end]end{},
		deaf: map[string]bool{}, outside: map[end]string{}, unread: map[string]bool{},
	}
	for i := range boxes {
		d := boxes[i].Device
		d.Ports = slices.Clone(d.Ports)
		w.devices = append(w.devices, d)
		if boxes[i].NoLLDP != "" || d.Host { // hosts are heard, and not asked
			w.deaf[d.Name] = true
		}
	}
	w.names()
	for i := range boxes {
		w.hear(i)
	}
	w.link()
	w.trimHosts()
	w.addHosts()
	w.tiers()
	w.portRoles()
	w.silent()
	n := &intent.Net{Devices: w.devices}
	slices.SortStableFunc(n.Devices, func(a, b intent.Device) int { return intent.CompareNames(a.Name, b.Name) })
	return n, w.found.Sort()
}

func (w *wirer) warn(at, rule, hint, format string, a ...any) {
	w.found.Add(diag.Finding{Rule: rule, Severity: diag.Warning, At: at, Hint: hint, Msg: fmt.Sprintf(format, a...)})
}

func (w *wirer) info(at, rule, hint, format string, a ...any) {
	w.found.Add(diag.Finding{Rule: rule, Severity: diag.Info, At: at, Hint: hint, Msg: fmt.Sprintf(format, a...)})
}

// spoken is a name as names are compared: without case and domain.
func spoken(s string) string {
	short, _, _ := strings.Cut(s, ".")
	return strings.ToLower(short)
}

// names indexes what boxes call themselves. Two that call themselves alike cannot be told apart.
func (w *wirer) names() {
	for i := range w.devices {
		d := &w.devices[i]
		called := spoken(cmp.Or(d.Hostname, d.Name))
		if j, taken := w.byName[called]; taken {
			if j >= 0 {
				w.warn(d.Name, "same-name", "give each its own hostname; links to them are left out",
					"%s and %s both call themselves %s", w.devices[j].Name, d.Name, called)
			}
			w.byName[called] = -1
			continue
		}
		w.byName[called] = i
	}
}

// hear sorts what box i hears: of another box, of a host, or of somebody outside.
func (w *wirer) hear(i int) {
	d := &w.devices[i]
	byPort := map[string][]Neighbour{}
	for _, n := range w.boxes[i].Heard {
		byPort[n.Port] = append(byPort[n.Port], n)
	}
	for j := range d.Ports {
		p := &d.Ports[j]
		ns := byPort[p.Iface]
		if known := slices.DeleteFunc(slices.Clone(ns), func(n Neighbour) bool { _, ok := w.byName[spoken(n.System)]; return !ok || n.System == "" }); len(known) > 0 {
			ns = known // what else speaks on the port lives on the other device
		}
		here := end{d.Name, p.Name}
		switch {
		case len(ns) == 0:
		case len(ns) > 1:
			w.warn(here.String(), "lldp", "look what is between them, or which of them is stale",
				"it hears %d neighbours, so that none is taken for the other end: %s", len(ns), who(ns))
		default:
			w.heard(here, ns[0])
		}
	}
}

func who(ns []Neighbour) string {
	var names []string
	for _, n := range ns {
		names = append(names, n.called())
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ", ")
}

// called is a neighbour's name for people.
func (n Neighbour) called() string { return clip(cmp.Or(n.System, n.Chassis, n.PeerPort)) }

func (w *wirer) heard(here end, n Neighbour) {
	at, known := w.byName[spoken(n.System)]
	role := w.roleOf(n.System)
	switch {
	case known && n.System != "" && at < 0: // said with the names
	case known && n.System != "":
		if there, ok := w.portOf(at, n); ok {
			w.says[here] = end{w.devices[at].Name, there}
		} else {
			w.warn(here.String(), "lldp", "compare the cable with what both devices show",
				"it hears %s on port %q (%q), which %s does not have", n.called(), clip(n.PeerPort), clip(n.PeerDescr), w.devices[at].Name)
		}
	case isTier(role), role != host && n.Forwards && !isMAC(n.PeerPort): // a switch, whatever role it is to have
		w.outside[here] = n.called()
		w.unread[n.called()] = role != ""
	default:
		w.host(here, n)
	}
}

// portOf finds the port of box i that a neighbour names: by what it sends as port id or description, which may be the
// device's own name or the front panel's.
func (w *wirer) portOf(i int, n Neighbour) (string, bool) {
	for _, s := range []string{n.PeerPort, n.PeerDescr} {
		for _, iface := range []string{s, w.boxes[i].Aliases[s]} {
			j := slices.IndexFunc(w.devices[i].Ports, func(p intent.Port) bool { return p.Iface == iface && iface != "" })
			if j >= 0 {
				return w.devices[i].Ports[j].Name, true
			}
		}
	}
	return "", false
}

// host notes a station that was not read. Its port is called as it calls it, where that can be a name.
func (w *wirer) host(here end, n Neighbour) {
	name := Name(spoken(cmp.Or(n.System, strings.ReplaceAll(n.Chassis, ":", ""))))
	if name == "" {
		w.warn(here.String(), "lldp", "", "it hears somebody who sends no name that can be used")
		return
	}
	h := w.hosts[name]
	if h == nil {
		h = &stray{name: name, says: map[string]end{}}
		w.hosts[name] = h
	}
	port := n.PeerDescr
	if !isMAC(n.PeerPort) && n.PeerPort != "" {
		port = n.PeerPort
	}
	for n := len(h.ports) + 1; !isIface(port) || h.says[port] != (end{}); n++ {
		port = fmt.Sprintf("nic-%d", n)
	}
	h.ports = append(h.ports, port)
	h.says[port] = here
}

// roleOf is the role that was asked for on the command line, "" when none was.
func (w *wirer) roleOf(names ...string) string {
	for _, r := range w.roles {
		for _, n := range names {
			if ok, _ := path.Match(strings.ToLower(r.Pattern), strings.ToLower(n)); ok && n != "" {
				return r.Role
			}
			if ok, _ := path.Match(strings.ToLower(r.Pattern), spoken(n)); ok && n != "" {
				return r.Role
			}
		}
	}
	return ""
}

// link joins the ends that agree. An end that hears nothing does not contradict the other.
func (w *wirer) link() {
	said := map[end]bool{}
	for _, d := range w.devices {
		for _, p := range d.Ports {
			a := end{d.Name, p.Name}
			b, ok := w.says[a]
			if !ok || said[a] {
				continue
			}
			back, heard := w.says[b]
			_, stranger := w.outside[b]
			switch {
			case a == b:
				w.warn(a.String(), "lldp", "look for a loopback plug, or a loop", "it hears itself")
			case heard && back != a:
				w.warn(a.String(), "lldp-contradiction", "one of them is stale, or a device is between them; the link is left out",
					"it hears %s, but %s hears %s", b, b, back)
			case stranger:
				w.warn(a.String(), "lldp-contradiction", "one of them is stale, or a device is between them; the link is left out",
					"it hears %s, but %s hears %s", b, b, w.outside[b])
			case w.claimed(a, b):
			default:
				said[b] = true
				w.join(a, b)
				if !heard && !w.deaf[b.device] {
					w.warn(b.String(), "lldp-one-sided", "see whether LLDP is sent on "+a.String()+" and received on "+b.String(),
						"it hears nothing, and %s hears %s; the link is taken as it is", a, b)
				}
			}
		}
	}
}

// claimed reports whether a second end says that it is cabled to b, which hears nobody: then nobody can tell.
func (w *wirer) claimed(a, b end) bool {
	if w.says[b] == a {
		return false
	}
	for c, of := range w.says {
		if of == b && c != a {
			w.warn(a.String(), "lldp-contradiction", "one of them is stale, or a device is between them; the link is left out",
				"it hears %s, and so does another port", b)
			return true
		}
	}
	return false
}

func (w *wirer) join(a, b end) {
	for _, x := range [][2]end{{a, b}, {b, a}} {
		d := w.device(x[0].device)
		p := d.Port(x[0].port)
		p.Peer, p.PeerPort = x[1].device, x[1].port
	}
}

func (w *wirer) device(name string) *intent.Device {
	i := slices.IndexFunc(w.devices, func(d intent.Device) bool { return d.Name == name })
	return &w.devices[i]
}

// trimHosts takes the interfaces of hosts away that no switch hears: their management, containers and loopbacks are not
// the fabric's. A host that nobody hears keeps what it has.
func (w *wirer) trimHosts() {
	for i := range w.devices {
		d := &w.devices[i]
		alone := func(p intent.Port) bool { return p.Peer == "" }
		if d.Host && slices.ContainsFunc(d.Ports, func(p intent.Port) bool { return !alone(p) }) {
			d.Ports = slices.DeleteFunc(d.Ports, alone)
		}
	}
}

// addHosts makes a device of each station that was heard and not read. Nothing is known of what it does.
func (w *wirer) addHosts() {
	taken := map[string]bool{}
	for _, d := range w.devices {
		taken[d.Name] = true
	}
	var added []string
	for _, name := range sortedKeys(w.hosts) {
		h := w.hosts[name]
		if taken[name] {
			for _, port := range h.ports {
				w.warn(h.says[port].String(), "same-name", "give each its own name",
					"it hears a host that calls itself %s, which is the name of another device here", name)
			}
			continue
		}
		d := intent.Device{
			Name: name, Role: cmp.Or(w.roleOf(name), host), Host: true, Platform: "linux/generic", State: intent.Planned,
			Profile: profiles.Platform{Name: "linux/generic"}, Policies: []intent.Policy{{}},
		}
		for _, port := range h.ports {
			p := intent.Port{Name: Name(port), Role: "nic", State: intent.Planned}
			if isIface(port) && !strings.HasPrefix(port, "nic-") {
				p.Iface = port
			}
			d.Ports = append(d.Ports, p)
		}
		w.devices = append(w.devices, d)
		for _, port := range h.ports {
			w.join(h.says[port], end{name, Name(port)})
		}
		added = append(added, name)
	}
	if len(added) > 0 {
		w.info("", "host-not-read", "to look at them too, add their addresses to the inventory and import again, or take away their state: planned",
			"%s over LLDP and not read; the model has them as planned: %s", diag.Plural(len(added), "host is heard", "hosts are heard"), some(added))
	}
}
