package model

import (
	"slices"

	"github.com/fabricctl/fabricctl/model/units"
)

// decode reads the merged Fabric document, all but the topology and the overrides' places in it.
func (f *Fabric) decode(n *node) {
	f.Pos = n.pos()
	f.Name = text(n.get("metadata", "name"))
	f.MTU = decodeMTU(n.get("mtu"))
	f.Classes = decodeClasses(n.get("classes"))
	f.Watchdog = decodeWatchdog(n.get("pfc_watchdog"))
	f.Manage = FabricManage{Switches: decodeManage(n.get("manage", "switches")), Hosts: decodeManage(n.get("manage", "hosts"))}
	f.Adopt = boolean(n.get("manage", "adopt"))
	f.Routing, f.Routes = text(n.get("topology", "routing")), decodeRoutes(n.get("topology", "routes"))
	f.NCCL = NCCL{
		Class: text(n.get("nccl", "class")), Timeout: integer(n.get("nccl", "timeout")),
		RetryCount: integer(n.get("nccl", "retry_count")), Version: value(n.get("nccl", "version"), parseNCCLVersion),
		QPs: integer(n.get("nccl", "qps_per_connection")), Sockets: textsOf(n.get("nccl", "socket_ifname")),
		Family: text(n.get("nccl", "address_family")), HCA: text(n.get("nccl", "hca")), CrossNIC: integer(n.get("nccl", "cross_nic")),
	}
	f.Hosts = decodeHosts(n.get("hosts"))
	for _, a := range n.get("acknowledge").list() {
		f.Acks = append(f.Acks, Ack{Rule: text(a.get("rule")), Reason: text(a.get("reason")), Role: text(a.get("role")), Device: text(a.get("device"))})
	}
	f.Apps = f.decodeApps(n.get("applications"))
}

// maxApps is how many applications are looked at; no table for people is that long.
const maxApps = 1000

// decodeApps reads the marking table. The classes are decoded.
func (f *Fabric) decodeApps(n *node) []Application {
	var as []Application
	for _, e := range n.list() {
		if len(as) == maxApps {
			break
		}
		a := Application{Name: e.name(), Pos: e.pos(), Business: text(e.get("business")), Class: text(e.get("class"))}
		if d := e.get("dscp"); d != nil {
			if lo, _, p := parseDSCP(d.text); p == nil {
				a.DSCP = Value[uint8]{V: uint8(lo), Set: true, From: d.from}
			}
		} else if c := f.class(a.Class.V); c != nil && len(c.DSCP) > 0 {
			a.DSCP = Value[uint8]{V: c.DSCP[0].V, From: c.DSCP[0].From}
		}
		as = append(as, a)
	}
	return as
}

// class finds a class by name; nil when there is none.
func (f *Fabric) class(name string) *Class {
	if i := slices.IndexFunc(f.Classes, func(c Class) bool { return c.Name == name }); i >= 0 {
		return &f.Classes[i]
	}
	return nil
}

func decodeMTU(n *node) MTU {
	size := func(key string) Value[units.Bytes] { return value(n.get(key), units.ParseBytes) }
	return MTU{Fabric: size("fabric"), Host: size("host"), RoCE: size("roce")}
}

// maxClasses is how many classes are looked at; there are 8 priorities, and more than that is reported.
const maxClasses = 16

func decodeClasses(n *node) []Class {
	var cs []Class
	for _, c := range n.list() {
		if len(cs) == maxClasses {
			break
		}
		cs = append(cs, decodeClass(c))
	}
	return cs
}

func decodeClass(n *node) Class {
	size := func(path ...string) Value[units.Bytes] { return value(n.get(path...), units.ParseBytes) }
	c := Class{
		Name: n.name(), Pos: n.pos(), Role: text(n.get("role")), Lossless: boolean(n.get("lossless")),
		ECN:       ECN{Kmin: size("ecn", "kmin"), Kmax: size("ecn", "kmax"), Pmax: value(n.get("ecn", "pmax"), units.ParsePercent)},
		Bandwidth: value(n.get("bandwidth"), units.ParsePercent),
		Weight:    integer(n.get("weight")),
		Xoff: Xoff{
			Bytes: size("pfc", "xoff"), Alpha: value(n.get("pfc", "xoff", "alpha"), units.ParseRatio),
			Share: value(n.get("pfc", "xoff", "share"), units.ParsePercent), Of: text(n.get("pfc", "xoff", "of")),
		},
		Headroom: value(n.get("pfc", "headroom"), parseAutoBytes), Xon: value(n.get("pfc", "xon"), parseAutoBytes),
		XonOffset: size("pfc", "xon_offset"), Reserved: size("pfc", "reserved"),
		FanIn: integer(n.get("fan_in")), Flows: integer(n.get("flows")), DropNoARP: boolean(n.get("drop_incomplete_arp")),
	}
	if p := integer(n.get("priority")); p.Set {
		c.Priority = Value[uint8]{V: uint8(p.V), Set: true, From: p.From}
	}
	if s := text(n.get("scheduling")); s.Set {
		c.Strict = Value[bool]{V: s.V == "strict", Set: true, From: s.From}
		c.NoSched = Value[bool]{V: s.V == "none", Set: true, From: s.From}
	}
	if e := n.get("ecn"); e != nil && e.shape == scalarNode {
		c.ECNOff = Value[bool]{V: true, Set: true, From: e.from}
	}
	switch d := n.get("dscp"); {
	case d == nil:
	case d.shape == scalarNode:
		c.Rest = Value[bool]{V: true, Set: true, From: d.from}
	default:
		for _, e := range d.list() {
			lo, hi, p := parseDSCP(e.text)
			for v := lo; p == nil && v <= hi; v++ {
				c.DSCP = append(c.DSCP, Value[uint8]{V: uint8(v), Set: true, From: withLost(e.from, d.from)})
			}
		}
	}
	return c
}

// withLost is the origin of a list's element: its own line, and the lists that its list won over.
func withLost(element, list *Origin) *Origin {
	if len(list.Lost) == 0 {
		return element
	}
	o := *element
	o.Lost = list.Lost
	return &o
}

// maxTexts is how many elements of a list of names are looked at.
const maxTexts = 64

// textsOf are the elements of a list, or a single value as the only one.
func textsOf(n *node) []Value[string] {
	if t := text(n); t.Set {
		return []Value[string]{t}
	}
	var ts []Value[string]
	for _, e := range n.list() {
		if t := text(e); t.Set && len(ts) < maxTexts {
			ts = append(ts, t)
		}
	}
	return ts
}

func decodeWatchdog(n *node) Watchdog {
	span := func(key string) Value[units.Duration] { return value(n.get(key), units.ParseDuration) }
	return Watchdog{Detect: span("detect"), Restore: span("restore"), Poll: span("poll"), Action: text(n.get("action"))}
}

func decodeManage(n *node) Manage {
	if n == nil {
		return Manage{}
	}
	if n.shape == scalarNode {
		return Manage{All: text(n)}
	}
	m := Manage{Areas: map[string]Value[string]{}}
	n.each(func(area string, c *node) { m.Areas[area] = text(c) })
	return m
}

func decodeOverride(n *node) *Override {
	o := &Override{
		Pos: n.pos(), State: text(n.get("state")), Manage: decodeManage(n.get("manage")), MTU: decodeMTU(n.get("mtu")),
		Watchdog: decodeWatchdog(n.get("pfc_watchdog")), Hosts: decodeHosts(n.get("hosts")),
	}
	o.Classes = decodeClasses(n.get("classes"))
	for key, to := range map[string]*map[string]*Override{"devices": &o.Devices, "ports": &o.Ports} {
		n.get(key).each(func(name string, c *node) {
			if *to == nil {
				*to = map[string]*Override{}
			}
			(*to)[name] = decodeOverride(c)
		})
	}
	return o
}

func decodeGNMI(n *node) GNMI {
	return GNMI{
		Port: integer(n.get("port")), CA: text(n.get("tls", "ca")), Cert: text(n.get("tls", "cert")), Key: text(n.get("tls", "key")),
		ServerName: text(n.get("tls", "server_name")), Insecure: boolean(n.get("tls", "insecure")),
		Plaintext: boolean(n.get("plaintext")),
		Username:  text(n.get("username")), Password: text(n.get("password")), Via: via(n.get("via")),
	}
}

func decodeSSH(n *node) SSH {
	return SSH{
		Port: integer(n.get("port")), Username: text(n.get("username")), Password: text(n.get("password")), Key: text(n.get("key")),
		Enable: text(n.get("enable_password")), KnownHosts: text(n.get("known_hosts")), Via: via(n.get("via")), Insecure: boolean(n.get("insecure")),
	}
}

// over is g with the values of d where g has none; what d said besides is lost.
func (g GNMI) over(d GNMI) GNMI {
	return GNMI{
		Port: winning(g.Port, d.Port), CA: winning(g.CA, d.CA), Cert: winning(g.Cert, d.Cert), Key: winning(g.Key, d.Key), ServerName: winning(g.ServerName, d.ServerName),
		Insecure: winning(g.Insecure, d.Insecure), Plaintext: winning(g.Plaintext, d.Plaintext), Username: winning(g.Username, d.Username), Password: winning(g.Password, d.Password),
		Via: winning(g.Via, d.Via),
	}
}

// over is s with the values of d where s has none; what d said besides is lost.
func (s SSH) over(d SSH) SSH {
	return SSH{
		Port: winning(s.Port, d.Port), Username: winning(s.Username, d.Username), Password: winning(s.Password, d.Password), Key: winning(s.Key, d.Key),
		Enable: winning(s.Enable, d.Enable), KnownHosts: winning(s.KnownHosts, d.KnownHosts), Via: winning(s.Via, d.Via), Insecure: winning(s.Insecure, d.Insecure),
	}
}
