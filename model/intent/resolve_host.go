package intent

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/profiles"
)

// plainAreas is what the model asks of a NIC that carries neither RDMA nor storage.
const plainAreas = Areas(1<<AreaMTU | 1<<AreaNCCL | 1<<AreaSystem)

// host makes the policy of a NIC. The classes are those of the fabric: a NIC maps code points, pauses and schedules as
// the switch at the other end of its link does, and a class's priority is also its ETS traffic class.
func (r *resolver) host(k chain, role string, mtu model.MTU, hosts model.Hosts, classes []model.Class, cable *model.Origin) *compiled {
	c := &compiled{origins: map[Field]*model.Origin{}}
	c.policy = Policy{Known: plainAreas, MTU: mtu.Host.V}
	c.set("mtu", mtu.Host.From)
	c.set("roce", mtu.RoCE.From)
	c.system(hosts)
	if !k.silent {
		r.ncclOf(c, hosts)
	}
	if !k.plain {
		c.policy.Known = HostAreas
		for i := range classes {
			classes[i].ECN = model.ECN{} // a NIC does not mark
		}
		c.maps(classes)
		c.percents()
		c.set("trust", &model.Origin{Kind: model.FromDefault, Ref: "the model speaks of code points, so NICs trust DSCP"})
		c.receiveBuffers(classes, hosts)
		if lossless := c.policy.Lossless(); len(lossless) > 0 {
			c.policy.Cable = k.link.cable
			c.set("cable", cable)
			c.set("pause", &model.Origin{Kind: model.FromDefault, Ref: "PFC and 802.3x link pause exclude each other"})
		}
		data := r.dataClass(k, hosts)
		if data == nil && k.storage {
			r.sayStorage(role)
		}
		c.roce(data, hosts)
		c.congestion(classes, data, hosts)
	}
	return c
}

// percents makes the weights of a NIC's queues the percents that ETS has.
func (c *compiled) percents() {
	var weights [8]int
	for i, q := range c.policy.Queues {
		if q.Used && !q.Strict {
			weights[i] = max(int(q.Weight), 1)
		}
	}
	for i, n := range Percents(weights) {
		if was := int(c.policy.Queues[i].Weight); n != was {
			c.policy.Queues[i].Weight = uint8(n)
			from := c.origins[field("weight", uint8(i))]
			c.set(field("weight", uint8(i)), &model.Origin{
				Kind: model.FromFormula, Pos: from.At(), Inputs: origins(from), Ref: strconv.Itoa(was) + " of all weights, in percent: ETS has no others",
			})
		}
	}
}

// dataClass is the class of RDMA connections that choose none themselves; nil when that is not clear. Storage that is
// not asked about does not go where NCCL goes.
func (r *resolver) dataClass(k chain, hosts model.Hosts) *model.Class {
	if k.storage && !hosts.RoCE.Class.Set {
		var lossless []*model.Class
		for i := range r.f.Classes {
			if c := &r.f.Classes[i]; c.Lossless.V && len(c.DSCP) > 0 {
				lossless = append(lossless, c)
			}
		}
		if len(lossless) == 1 {
			return lossless[0]
		}
		return nil
	}
	return r.f.DataClass(hosts.RoCE.Class)
}

// roce marks the connections of rdma_cm with a class. The two ECN bits of the byte stay 0: NICs set them.
func (c *compiled) roce(data *model.Class, hosts model.Hosts) {
	if data == nil {
		return
	}
	d := data.DSCP[0]
	tos := &model.Origin{
		Kind: model.FromFormula, Pos: d.Pos(), Inputs: origins(d.From, hosts.RoCE.Class.From),
		Ref: strconv.Itoa(int(d.V)) + " << 2, the first code point of class " + data.Name,
	}
	x := RoCE{On: true, Mode: 2, ToS: d.V << 2, TrafficClass: -1}
	mode := hosts.RoCE.Mode.From
	if hosts.RoCE.Mode.V == "v1" {
		x.Mode = 1
	}
	if !hosts.RoCE.Mode.Set {
		mode = &model.Origin{Kind: model.FromDefault, Ref: "RoCE v2 is routed, and carries a code point"}
	}
	c.set("roce.mode", mode)
	c.set("roce.tos", tos)
	switch {
	case hosts.RoCE.TrafficClass.V == "class":
		x.TrafficClass = int16(x.ToS)
		c.set("roce.traffic_class", &model.Origin{Kind: model.FromFormula, Pos: hosts.RoCE.TrafficClass.Pos(), Ref: tos.Ref, Inputs: origins(hosts.RoCE.TrafficClass.From, d.From)})
	case hosts.RoCE.TrafficClass.Set:
		c.set("roce.traffic_class", hosts.RoCE.TrafficClass.From)
	default:
		c.set("roce.traffic_class", &model.Origin{Kind: model.FromDefault, Ref: "applications choose their class themselves"})
	}
	c.policy.RoCE = x
}

// origins are those of os that there are.
func origins(os ...*model.Origin) []*model.Origin {
	return slices.DeleteFunc(os, func(o *model.Origin) bool { return o == nil })
}

// congestion has the NIC react on the priorities that switches mark, and send its CNPs in the class that is for them. It
// stays on where the switches do not mark (ecn: off): without marks it does nothing, and tuning turns those on and off.
func (c *compiled) congestion(classes []model.Class, data *model.Class, hosts model.Hosts) {
	x := Congestion{On: true}
	var from []*model.Origin
	for i := range classes {
		k := &classes[i]
		p := k.Priority.V & 7
		switch {
		case k.Role.V == "cnp" && len(k.DSCP) > 0:
			x.HasCNP, x.CNPDSCP, x.CNPPriority = true, k.DSCP[0].V, p
			c.set("cc.cnp_dscp", k.DSCP[0].From)
			c.set("cc.cnp_priority", k.Priority.From)
		case k.Lossless.V || data != nil && data.Name == k.Name:
			x.Priorities |= 1 << p
			from = append(from, k.Priority.From)
		}
	}
	c.set("cc.priorities", &model.Origin{Kind: model.FromFormula, Ref: "the lossless classes, and that of RDMA connections", Inputs: origins(from...)})
	x.Algorithm, _ = ParseAlgorithm(hosts.Congestion.Algorithm.V)
	c.set("cc.algorithm", hosts.Congestion.Algorithm.From)
	for i, p := range profiles.CCParams() {
		if v := hosts.Congestion.Params[i]; v.Set {
			x.SetParam(i, v.V)
			c.set(Field("cc."+p.Name), v.From)
		}
	}
	c.policy.CC = x
}

// receiveBuffers gives the classes the buffers of the NIC that the model asks for.
func (c *compiled) receiveBuffers(classes []model.Class, hosts model.Hosts) {
	for i := range classes {
		size := hosts.Lossy
		if classes[i].Lossless.V {
			size = hosts.Lossless
		}
		if p := classes[i].Priority.V & 7; size.Set {
			c.policy.Queues[p].Buffer = Buffer{On: true, Reserved: size.V}
			c.set(field("reserved", p), size.From)
		}
	}
}

func (c *compiled) system(hosts model.Hosts) {
	s := System{
		ReadRequest: hosts.ReadRequest.V, RingRX: uint32(hosts.RX.V), RingTX: uint32(hosts.TX.V), Memlock: hosts.Memlock.V == "unlimited",
	}
	s.FEC, _ = ParseFEC(hosts.FEC.V)
	for i := IRQNotSaid; i < IRQOther; i++ {
		if i.String() == hosts.IRQ.V {
			s.IRQ = i
		}
	}
	for f, o := range map[Field]*model.Origin{
		"system.read_request": hosts.ReadRequest.From, "system.rx_ring": hosts.RX.From, "system.tx_ring": hosts.TX.From,
		"system.fec": hosts.FEC.From, "system.irq": hosts.IRQ.From, "system.memlock": hosts.Memlock.From,
	} {
		c.set(f, o)
	}
	c.policy.System = s
}

// ncclOf is what the NCCL file says: the same for all hosts, but the RoCE version of the NIC.
func (r *resolver) ncclOf(c *compiled, hosts model.Hosts) {
	n := r.nccl
	for f, o := range r.ncclOrigins {
		c.set(f, o)
	}
	if n.RoCE > 0 && hosts.RoCE.Mode.V == "v1" {
		n.RoCE = 1
		c.set("nccl.roce_version", hosts.RoCE.Mode.From)
	}
	c.policy.NCCL = n
}

// hostNCCL is what hosts tell NCCL: the traffic class, which is the ToS byte (DSCP << 2; the two ECN bits stay 0) of what
// the application nccl marks, or else of the first code point of the class it uses.
func (r *resolver) hostNCCL() (NCCL, map[Field]*model.Origin) {
	class := r.ncclClass()
	if class == nil {
		return NCCL{}, nil
	}
	d, m := class.DSCP[0], r.f.NCCL
	if app := r.ncclApp(); app != nil && app.Class.V == class.Name && app.DSCP.Set {
		d = app.DSCP
	}
	n := NCCL{
		On: true, TrafficClass: d.V << 2, Timeout: uint8(m.Timeout.V), RetryCount: uint8(m.RetryCount.V), QPs: uint8(m.QPs.V),
		HCA: m.HCA.V != "off",
	}
	inputs := []*model.Origin{d.From}
	if m.Class.Set {
		inputs = append(inputs, m.Class.From)
	} else if app := r.ncclApp(); app != nil {
		inputs = append(inputs, app.Class.From)
	}
	says := func(ref string) *model.Origin { return &model.Origin{Kind: model.FromDefault, Ref: ref} }
	from := map[Field]*model.Origin{
		"nccl.traffic_class":      {Kind: model.FromFormula, Ref: strconv.Itoa(int(d.V)) + " << 2, DSCP of class " + class.Name, Pos: d.Pos(), Inputs: inputs},
		"nccl.timeout":            m.Timeout.From,
		"nccl.retry_count":        m.RetryCount.From,
		"nccl.qps_per_connection": m.QPs.From,
		"nccl.cross_nic":          m.CrossNIC.From,
		"nccl.socket_ifname":      socketLine(m),
		"nccl.hca":                firstOrigin(m.HCA.From, says("NCCL uses the NICs of the fabric and no others")),
	}
	if m.CrossNIC.Set {
		n.CrossNIC = uint8(m.CrossNIC.V) + 1
	}
	if m.Version.Set && m.Version.V < model.FirstAutoGID {
		n.GID = GIDOfHost
		from["nccl.gid_index"] = m.Version.From
		return n, from
	}
	n.RoCE = 2
	from["nccl.roce_version"] = firstOrigin(m.Version.From, says("from "+model.FirstAutoGID.String()+" on NCCL finds the GID by RoCE version and address; give nccl.version where an older one is in use"))
	n.Family, from["nccl.address_family"] = r.family()
	return n, from
}

// socketLine is the line that names the interfaces of the bootstrap, or the first one; nil when none does.
func socketLine(m model.NCCL) *model.Origin {
	if len(m.Sockets) == 0 {
		return nil
	}
	return m.Sockets[0].From
}

// family is the address family of the GIDs that NCCL uses, 4 or 6.
func (r *resolver) family() (uint8, *model.Origin) {
	switch given := r.f.NCCL.Family; {
	case given.V == "ipv6":
		return 6, given.From
	case given.Set:
		return 4, given.From
	}
	var first *model.Origin
	for i := range r.f.Devices {
		for j := range r.f.Devices[i].Ports {
			ip := r.f.Devices[i].Ports[j].IP
			if !ip.Set {
				continue
			}
			if !strings.Contains(ip.V, ":") {
				return 4, &model.Origin{Kind: model.FromFormula, Ref: "the addresses of the NICs", Pos: ip.Pos(), Inputs: origins(ip.From)}
			}
			first = firstOrigin(first, ip.From)
		}
	}
	if first != nil {
		return 6, &model.Origin{Kind: model.FromFormula, Ref: "the addresses of the NICs", Pos: first.At(), Inputs: origins(first)}
	}
	return 4, &model.Origin{Kind: model.FromDefault, Ref: "the inventory gives no addresses of NICs"}
}

// ownNCCL is what the NCCL file of one host says that no other need say.
func (r *resolver) ownNCCL(m *model.Device) HostNCCL {
	if !r.nccl.On {
		return HostNCCL{}
	}
	var h HostNCCL
	if names := r.f.NCCL.Sockets; len(names) > 0 {
		list := make([]string, len(names))
		for i, n := range names {
			list[i] = n.V
		}
		h.Socket = "=" + strings.Join(list, ",")
	}
	if r.nccl.Family == 0 { // NCCL does not look for a GID
		return h
	}
	var ips []netip.Prefix
	for i := range m.Ports {
		p := &m.Ports[i]
		ip, err := netip.ParsePrefix(p.IP.V)
		if err == nil && (p.Carries.V == 0 || p.Carries.V&model.CarriesRDMA != 0) && ip.Addr().Is4() == (r.nccl.Family == 4) {
			ips = append(ips, ip)
		}
	}
	if all, ok := covering(ips); ok {
		h.Range = all.String()
	}
	return h
}

// covering is the smallest prefix that holds all addresses of ps with their prefixes; ok is false when there are none.
func covering(ps []netip.Prefix) (all netip.Prefix, ok bool) {
	for i, p := range ps {
		if i == 0 {
			all = p.Masked()
			continue
		}
		for bits := min(all.Bits(), p.Bits()); ; bits-- {
			a, _ := all.Addr().Prefix(bits) // of one family, and bits is of both
			if a.Contains(p.Addr()) {
				all = a
				break
			}
		}
	}
	return all, len(ps) > 0
}

// ncclApp is the application nccl of the marking table; nil when there is none.
func (r *resolver) ncclApp() *model.Application {
	if i := slices.IndexFunc(r.f.Apps, func(a model.Application) bool { return a.Name == "nccl" }); i >= 0 {
		return &r.f.Apps[i]
	}
	return nil
}

// ncclClass is the class that NCCL uses; nil when that is not clear, which is said.
func (r *resolver) ncclClass() *model.Class {
	if !slices.ContainsFunc(r.f.Devices, func(d model.Device) bool { return d.Host }) {
		return nil
	}
	class := r.f.DataClass(r.f.NCCL.Class)
	if class != nil || r.f.NCCL.Class.Set || r.ncclApp() != nil {
		return class
	}
	var lossless []*model.Class
	for i := range r.f.Classes {
		if c := &r.f.Classes[i]; c.Lossless.V && len(c.DSCP) > 0 {
			lossless = append(lossless, c)
		}
	}
	if len(lossless) > 1 {
		r.found.Infof("nccl-class", lossless[1].Pos, "add nccl: {class: "+lossless[0].Name+"}",
			"%d classes are lossless and nccl.class does not say which one NCCL uses, so nothing is written for it", len(lossless))
	}
	return nil
}

// sayStorage says, once for a role, that connections of storage stay unmarked where nobody says which class it uses.
func (r *resolver) sayStorage(role string) {
	var names []string
	var at diag.Pos
	for i := range r.f.Classes {
		if c := &r.f.Classes[i]; c.Lossless.V && len(c.DSCP) > 0 {
			names, at = append(names, c.Name), c.Pos
		}
	}
	if len(names) < 2 || r.unmarked[role] {
		return
	}
	r.unmarked[role] = true
	r.found.Infof("roce-class", at, fmt.Sprintf("add overrides: {%s: {hosts: {roce: {class: %s}}}}", role, names[len(names)-1]),
		"NICs of %s hosts carry storage, and nothing says which of the lossless classes %s it uses, so connections that choose none themselves are left unmarked",
		role, strings.Join(names, ", "))
}
