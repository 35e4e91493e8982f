package model

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/units"
)

// override checks a role's override and those below it: that what they change exists there, and that what results is
// whole.
func (v *validator) override(role string) {
	i := slices.IndexFunc(v.f.Devices, func(d Device) bool { return d.Role == role })
	if i < 0 {
		return
	}
	host := v.f.Devices[i].Host
	top := v.f.Roles[role]
	v.level("overrides."+role, top, host, nil)
	for _, dn := range sortedKeys(top.Devices) {
		d := top.Devices[dn]
		at := "overrides." + role + ".devices." + dn
		v.level(at, d, host, []*Override{top})
		for _, pn := range sortedKeys(d.Ports) {
			v.level(at+".ports."+pn, d.Ports[pn], host, []*Override{d, top})
		}
	}
}

// level checks one override; above are those it inherits from, nearest first.
func (v *validator) level(path string, o *Override, host bool, above []*Override) {
	v.sizes(o.MTU)
	v.areas(path+".manage", o.Manage, host)
	foreign := func(pos diag.Pos, key, whose string) {
		if !pos.IsZero() {
			v.found.Errorf("value", pos, "remove it", "%s.%s: %s have none", path, key, whose)
		}
	}
	if host {
		foreign(o.MTU.Fabric.Pos(), "mtu.fabric", "hosts")
		for _, c := range o.Classes {
			foreign(cmp.Or(c.ECN.Kmin.Pos(), c.ECN.Kmax.Pos(), c.ECN.Pmax.Pos()), "classes."+c.Name+".ecn", "hosts")
			foreign(cmp.Or(c.Xoff.Pos(), c.Headroom.Pos(), c.Xon.Pos(), c.XonOffset.Pos(), c.Reserved.Pos()), "classes."+c.Name+".pfc", "hosts")
		}
		v.shares(path, o, above)
		for _, pos := range o.Watchdog.places() {
			foreign(pos, "pfc_watchdog", "hosts")
		}
		hosts := v.f.Hosts
		for _, a := range slices.Backward(above) {
			hosts = a.Hosts.Over(hosts)
		}
		v.hosts(path+".hosts", o.Hosts, o.Hosts.Over(hosts))
		return
	}
	foreign(o.MTU.Host.Pos(), "mtu.host", "switches")
	v.shares(path, o, above)
	if ps := o.Hosts.places(); len(ps) > 0 {
		foreign(slices.MinFunc(ps, diag.Pos.Compare), "hosts", "switches")
	}
	wd := v.f.Watchdog
	for _, a := range slices.Backward(above) {
		wd = a.Watchdog.Over(wd)
	}
	v.watchdog(path+".pfc_watchdog", o.Watchdog, o.Watchdog.Over(wd))
	for _, c := range o.Classes {
		base := slices.IndexFunc(v.f.Classes, func(k Class) bool { return k.Name == c.Name })
		if base < 0 {
			continue
		}
		ecn := v.f.Classes[base].ECN
		for _, a := range slices.Backward(above) {
			ecn = a.class(c.Name).ECN.Over(ecn)
		}
		v.ramp(c.Name, c.ECN, c.ECN.Over(ecn), fmt.Sprintf("%s.classes.%s", path, c.Name))
		v.buffer(&c, &v.f.Classes[base], fmt.Sprintf("%s.classes.%s", path, c.Name))
	}
}

// shares checks that the classes of an override are there, and the shares that it gives them; above are the overrides that it
// inherits from, nearest first.
func (v *validator) shares(path string, o *Override, above []*Override) {
	shares := false
	for _, c := range o.Classes {
		base := v.f.class(c.Name)
		if base == nil {
			if !v.doubtful() {
				v.found.Errorf("unknown-name", c.Pos, didYouMean(c.Name, v.classNames()), "%s.classes: there is no class %s", path, c.Name)
			}
			continue
		}
		v.share(&c, base)
		shares = shares || c.Bandwidth.Set
	}
	if shares {
		var over []Class // nearest first, so that it wins
		merged := map[string]bool{}
		for _, a := range append([]*Override{o}, above...) {
			for _, c := range a.Classes {
				if c.Bandwidth.Set && !merged[c.Name] {
					merged[c.Name] = true
					over = append(over, c)
				}
			}
		}
		v.sum(v.f.Classes, over)
	}
}

// buffer checks what an override says about the buffer of a class.
func (v *validator) buffer(c, base *Class, what string) {
	pos := cmp.Or(c.Xoff.Pos(), c.Headroom.Pos(), c.Xon.Pos(), c.XonOffset.Pos(), c.Reserved.Pos())
	if pos.IsZero() {
		return
	}
	if !base.Lossless.V && !v.doubtful() {
		v.found.Errorf("value", pos, "add lossless: true to the class, or remove pfc", "%s has pfc but is not lossless", what)
	}
	if pos := c.Xoff.Pos(); !pos.IsZero() {
		v.xoff(c, pos, what)
	}
}

// Over is w with the values of below where w has none, and what w wins over remembered.
func (w Watchdog) Over(below Watchdog) Watchdog {
	return Watchdog{
		Detect: winning(w.Detect, below.Detect), Restore: winning(w.Restore, below.Restore),
		Poll: winning(w.Poll, below.Poll), Action: winning(w.Action, below.Action),
	}
}

func (w Watchdog) places() []diag.Pos {
	var ps []diag.Pos
	for _, p := range []diag.Pos{w.Detect.Pos(), w.Restore.Pos(), w.Poll.Pos(), w.Action.Pos()} {
		if !p.IsZero() {
			ps = append(ps, p)
		}
	}
	return ps
}

// Over is e with the values of below where e has none, and what e wins over remembered.
func (e ECN) Over(below ECN) ECN {
	return ECN{Kmin: winning(e.Kmin, below.Kmin), Kmax: winning(e.Kmax, below.Kmax), Pmax: winning(e.Pmax, below.Pmax)}
}

// Over is x, or below where x is not given: a threshold has one form, so that it is one value.
func (x Xoff) Over(below Xoff) Xoff {
	pos := below.Pos()
	switch {
	case x == (Xoff{}):
		return below
	case pos.IsZero():
		return x
	}
	return Xoff{Bytes: beating(x.Bytes, pos), Alpha: beating(x.Alpha, pos), Share: beating(x.Share, pos), Of: beating(x.Of, pos)}
}

// beating is v with a place remembered that it wins over.
func beating[T any](v Value[T], lost diag.Pos) Value[T] {
	if v.Set {
		from := *v.From
		from.Lost = append(slices.Clone(from.Lost), lost)
		v.From = &from
	}
	return v
}

// Over is m with the values of below where m has none, and what m wins over remembered.
func (m MTU) Over(below MTU) MTU {
	return MTU{Fabric: winning(m.Fabric, below.Fabric), Host: winning(m.Host, below.Host), RoCE: winning(m.RoCE, below.RoCE)}
}

// Over is c with the values of below where c has none: those that an override may change.
func (c Class) Over(below Class) Class {
	r := below
	r.ECN = c.ECN.Over(below.ECN)
	r.Xoff, r.Headroom, r.Xon = c.Xoff.Over(below.Xoff), winning(c.Headroom, below.Headroom), winning(c.Xon, below.Xon)
	r.XonOffset, r.Reserved = winning(c.XonOffset, below.XonOffset), winning(c.Reserved, below.Reserved)
	switch {
	case c.Weight.Set:
		r.Bandwidth, r.Weight = Value[units.Percent]{}, winning(c.Weight, below.Weight)
	case c.Bandwidth.Set:
		r.Bandwidth, r.Weight = winning(c.Bandwidth, below.Bandwidth), Value[int]{}
	}
	return r
}

// class is the override's part for a class; empty when it has none.
func (o *Override) class(name string) Class {
	if i := slices.IndexFunc(o.Classes, func(c Class) bool { return c.Name == name }); i >= 0 {
		return o.Classes[i]
	}
	return Class{}
}

// inventory checks addresses and transports of the named devices.
func (v *validator) inventory(names []string) {
	type place struct {
		address      string
		gnmi, ssh_   int
		gnmiVia, via string // two sites behind different jump hosts may number alike
	}
	taken, nic := map[place]*Endpoint{}, map[string]Value[string]{}
	serial, hostname := map[string]*Endpoint{}, map[string]*Endpoint{}
	for _, name := range names {
		e := v.f.Endpoints[name]
		if e.Address.Set {
			p := place{strings.ToLower(e.Address.V), e.GNMI.Port.V, e.SSH.Port.V, e.GNMI.Via.V, e.SSH.Via.V}
			if o := taken[p]; o != nil {
				v.twice(o.Address.Pos(), e.Address.Pos(), "correct one of them", "%s and %s both have address %s", o.Device, e.Device, e.Address.V)
			} else {
				taken[p] = e
			}
		}
		for _, x := range []struct {
			what  string
			v     func(*Endpoint) Value[string]
			taken map[string]*Endpoint
		}{
			{"serial number", func(e *Endpoint) Value[string] { return e.Serial }, serial},
			{"host name", func(e *Endpoint) Value[string] { return e.Hostname }, hostname},
		} {
			k := strings.ToLower(x.v(e).V)
			if o := x.taken[k]; o != nil {
				v.twice(x.v(o).Pos(), x.v(e).Pos(), "correct one of them: it is how a device is told from the others before anything is written",
					"%s and %s both have %s %s", o.Device, e.Device, x.what, x.v(e).V)
			} else if x.v(e).Set {
				x.taken[k] = e
			}
		}
		inventory := v.f.docs.inventory.get("devices", e.Device)
		for _, n := range inventory.get("nics").list() {
			ip := text(n.get("ip"))
			address, _, _ := strings.Cut(ip.V, "/")
			if !ip.Set {
				continue
			}
			v.nicAddress(ip)
			if o, ok := nic[address]; ok {
				v.twice(o.Pos(), ip.Pos(), "correct one of them", "two NICs have the address %s", address)
				continue
			}
			nic[address] = ip
		}
	}
}

// nicAddress checks that ip is an address that other hosts can reach.
func (v *validator) nicAddress(ip Value[string]) {
	p, err := netip.ParsePrefix(ip.V)
	switch a := p.Addr(); {
	case err != nil:
	case a.IsLinkLocalUnicast():
		v.found.Errorf("value", ip.Pos(), "give the address that other hosts reach", "%s is link-local: every NIC has such an address, and it says nothing about the fabric", a)
	case a.IsUnspecified() || a.IsMulticast() || a.IsLoopback():
		v.found.Errorf("value", ip.Pos(), "give the address that other hosts reach", "%s is no address of a NIC", a)
	case a.Is4() && p.Bits() < 31 && a == p.Masked().Addr():
		v.found.Errorf("value", ip.Pos(), fmt.Sprintf("write %s/%d, say", a.Next(), p.Bits()), "%s is the network itself, and no address in it", ip.V)
	}
}

// rdmaNames checks that an RDMA device is that of one NIC, or of one bond.
func (v *validator) rdmaNames() {
	for i := range v.f.Devices {
		d := &v.f.Devices[i]
		taken := map[string]*Port{}
		for j := range d.Ports {
			p := &d.Ports[j]
			q := taken[p.RDMA.V]
			switch {
			case !p.RDMA.Set:
			case q == nil:
				taken[p.RDMA.V] = p
			case p.Bond == "" || p.Bond != q.Bond:
				v.twice(q.RDMA.Pos(), p.RDMA.Pos(), "give each NIC its own: ls -l /sys/class/net/NAME/device/infiniband shows it",
					"%s is the RDMA device of both %s and %s on %s", p.RDMA.V, q.Name, p.Name, d.Name)
			}
		}
	}
}

// serials says once that SONiC devices have serial numbers that nothing is compared with, where no host name stands
// beside them.
func (v *validator) serials() {
	var names []string
	var at diag.Pos
	for i := range v.f.Devices {
		d := &v.f.Devices[i]
		e := v.f.Endpoints[d.Name]
		if strings.HasPrefix(d.Platform.V, "sonic/") && e.Serial.Set && !e.Hostname.Set {
			if names = append(names, d.Name); len(names) == 1 {
				at = e.Serial.Pos()
			}
		}
	}
	if len(names) > 0 {
		v.found.Infof("serial", at, "add hostname where a device calls itself otherwise: on SONiC that is what tells it from the others",
			"the serial number of %s is not compared: SONiC does not show it over gNMI, so the host name has to be the device's name here", few(names))
	}
}

// insecure reports what is written down so that anybody may answer as a device, once for each line that says so.
func (v *validator) insecure() {
	for _, x := range []struct {
		key   string
		given func(*Endpoint) Value[bool]
		gnmi  bool
	}{
		{"gnmi.tls.insecure", func(e *Endpoint) Value[bool] { return e.GNMI.Insecure }, true},
		{"gnmi.plaintext", func(e *Endpoint) Value[bool] { return e.GNMI.Plaintext }, true},
		{"ssh.insecure", func(e *Endpoint) Value[bool] { return e.SSH.Insecure }, false},
	} {
		var lines []*Origin
		using, all := map[*Origin][]string{}, map[*Origin][]string{}
		for i := range v.f.Devices {
			d := &v.f.Devices[i]
			e := v.f.Endpoints[d.Name]
			g := x.given(e)
			if !g.V || e.Lab.V {
				continue
			}
			if all[g.From] == nil {
				lines = append(lines, g.From)
			}
			all[g.From] = append(all[g.From], d.Name)
			sonic := strings.HasPrefix(d.Platform.V, "sonic/")
			if sonic == x.gnmi || sonic && e.GNMI.Via.V != "" { // its jump hosts are entered over SSH
				using[g.From] = append(using[g.From], d.Name)
			}
		}
		for _, at := range lines {
			names := using[at]
			if len(names) == 0 {
				names = all[at]
			}
			hint, msg := "give tls.ca instead", "anybody may answer as "
			switch x.key {
			case "gnmi.plaintext":
				hint, msg = "give tls.ca in its place", "anybody on the way reads the password of, and may answer as, "
			case "ssh.insecure":
				hint = "give ssh.known_hosts instead"
			}
			v.found.Warningf("insecure", at.At(), hint+", or mark what is disposable as lab: true", "%s: %s%s", x.key, msg, few(names))
		}
	}
}

// few is the names when they are few, else the first ones and how many more there are.
func few(names []string) string {
	const most = 3
	switch n := len(names); {
	case n == 1:
		return names[0]
	case n <= most:
		return strings.Join(names[:n-1], ", ") + " and " + names[n-1]
	default:
		return fmt.Sprintf("%s and %d more", names[0], n-1)
	}
}

// areas checks that what is named under a manage is there on a device of that kind.
func (v *validator) areas(path string, m Manage, host bool) {
	kind, have := "switches", areasOf(host)
	if host {
		kind = "hosts"
	}
	for _, area := range sortedKeys(m.Areas) {
		if pos := m.Areas[area].Pos(); !slices.Contains(have, area) && !pos.IsZero() {
			v.found.Errorf("value", pos, "remove it; "+kind+" have "+strings.Join(have, ", "), "%s.%s: %s have no area %s that could be managed", path, area, kind, area)
		}
	}
}
