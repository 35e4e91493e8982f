package intent

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/profiles"
)

// Resolve is what the model asks of every port. f must have loaded without errors.
//
// The conventions that dialects rely on: a class's priority is also its traffic class and its egress queue; the code
// points that no class names belong to the rest class; lossless traffic classes have a priority group of their own
// number and all others share group 0; switches trust DSCP. An unused port is left alone: its policy knows nothing. At a
// border port lossless ends: what is lossless elsewhere is sent there without pause and without a watchdog.
func Resolve(f *model.Fabric) (*Net, diag.List) {
	r := newResolver(f)
	n := &Net{Fabric: f.Name.V, Routing: routing(f), Routes: listedRoutes(f), Devices: make([]Device, 0, len(f.Devices))}
	for i := range f.Devices {
		n.Devices = append(n.Devices, r.device(&f.Devices[i]))
	}
	slices.SortStableFunc(n.Devices, func(a, b Device) int { return CompareNames(a.Name, b.Name) })
	n.ways(f)
	r.sayStarts()
	return n, r.found.Sort()
}

// resolver compiles one policy per set of overrides and hands it to all ports that share it.
type resolver struct {
	f           *model.Fabric
	found       diag.List
	cache       map[chain]*compiled
	idle        *compiled // of unused ports
	nccl        NCCL
	ncclOrigins map[Field]*model.Origin
	platforms   map[string]*profiles.Platform
	starts      map[startKey]starting // values that nobody chose
	unmarked    map[string]bool       // roles of hosts of which it was said that nothing marks their storage
	handed      map[[2]string]bool    // class and platform of which it was said that something is not written
}

func newResolver(f *model.Fabric) *resolver {
	r := &resolver{
		f: f, cache: map[chain]*compiled{}, idle: &compiled{}, platforms: map[string]*profiles.Platform{},
		starts: map[startKey]starting{}, handed: map[[2]string]bool{}, unmarked: map[string]bool{},
	}
	r.nccl, r.ncclOrigins = r.hostNCCL()
	return r
}

// chain is what decides a policy: the overrides that shape it, from role to port, nil where there is none.
type chain struct {
	host, border       bool
	silent             bool // a host whose links carry something, and no RDMA: there is nothing to tell NCCL
	plain              bool // a NIC that carries something, and neither RDMA nor storage: no class is its business
	storage            bool // a NIC that carries storage and no other RDMA
	role, device, port *model.Override
	link               link
}

// compiled is a policy with its origins; both are shared and not changed.
type compiled struct {
	policy  Policy
	origins map[Field]*model.Origin
	ramps   uint8  // priorities, as bits, whose ramp follows from the speed
	variant string // see Port.Variant
}

func (r *resolver) device(m *model.Device) Device {
	role := r.f.Roles[m.Role]
	base := r.f.Manage.Switches
	if m.Host {
		base = r.f.Manage.Hosts
	}
	manage := manageOver(manageOver(manageOver(Manage{}, &base), manageOf(role)), manageOf(m.Override))
	state := stateOver(stateOver(Active, role), m.Override)
	d := Device{
		Name: m.Name, Fabric: r.f.Name.V, Role: m.Role, Tier: m.Tier, Pod: m.Pod, Plane: m.Plane, Group: m.Group,
		Platform: m.Platform.V, Host: m.Host, State: state, Manage: manage,
		Ports: make([]Port, 0, len(m.Ports)), Origins: OriginTable{},
	}
	d.Profile = *r.platform(m.Platform.V)
	d.Catalog = r.f.Catalog
	hosts := !m.Host && hasHosts(m)
	if !m.Host {
		d.Pools = poolsOf(&d.Profile, hosts)
	}
	if e := r.f.Endpoints[m.Name]; e != nil {
		d.Serial, d.Hostname, d.Address = e.Serial.V, e.Hostname.V, e.HostPort(d.OS())
		d.Known = Known{Serial: e.Serial.Pos(), Hostname: e.Hostname.Pos(), Device: e.Pos}
	}
	if m.Host {
		d.RoCE, d.NCCL = r.f.MTU.RoCE.V, r.ownNCCL(m)
	}
	for i := range r.f.Classes {
		c := &r.f.Classes[i]
		d.Classes[c.Priority.V&7] = c.Name
		if c.Role.V == "cnp" {
			d.CNP = c.Name
		}
	}
	silent := m.Host && !slices.ContainsFunc(m.Ports, func(p model.Port) bool { return p.Carries.V == 0 || p.Carries.V&model.CarriesRDMA != 0 })
	index := map[*compiled]int32{}
	for i := range m.Ports {
		p := &m.Ports[i]
		l := link{cable: p.Cable.V}
		if !m.Host {
			l = linkOf(m, p, d.Profile.Lanes, hosts)
		}
		site, c := r.site(m, role, p, silent, l)
		owned := manageOver(manage, manageOf(p.Override))
		if p.Role == "unused" {
			c, owned = r.idle, Manage{}
		}
		at, ok := index[c]
		if !ok {
			at = d.Intern(c.policy)
			index[c] = at
		}
		variant := ""
		switch {
		case c == r.idle:
		default:
			variant = c.variant
			d.Origins[variant] = c.origins
		}
		d.Ports = append(d.Ports, Port{
			Name: p.Name, Iface: p.Iface.V, Peer: p.Peer, PeerPort: p.PeerPort, Role: p.Role, Site: site, Variant: variant, Ramps: c.ramps,
			RDMA: p.RDMA.V, IP: p.IP.V, IPAt: p.IP.From, IfaceAt: p.Iface.From, RoleAt: p.RoleAt, Bond: p.Bond, Rail: p.Rail, NIC: p.NIC.V, PCI: p.PCI.V, Carries: p.Carries.V, Breakout: p.Breakout,
			Speed: p.Speed.V, Cable: p.Cable.V, State: stateOver(state, p.Override),
			Manage: owned, Policy: at,
		})
	}
	slices.SortStableFunc(d.Ports, func(a, b Port) int { return CompareNames(a.Name, b.Name) })
	return d
}

// site names the most specific override that shapes a port's policy, and compiles the policy.
func (r *resolver) site(m *model.Device, role *model.Override, p *model.Port, silent bool, l link) (string, *compiled) {
	k, site := chain{host: m.Host, silent: silent && m.Host, border: p.Role == "border", link: l}, "fabric"
	if carries := p.Carries.V; m.Host && carries != 0 && carries&model.CarriesRDMA == 0 {
		k.storage = carries&model.CarriesStorage != 0
		k.plain = !k.storage
	}
	if role.Shapes() {
		k.role, site = role, m.Role
	}
	if m.Override.Shapes() {
		k.device, site = m.Override, m.Role+"."+m.Name
	}
	if k.border {
		site += ".border"
	}
	if p.Override.Shapes() {
		k.port, site = p.Override, m.Role+"."+m.Name+"."+p.Name
	}
	c := r.cache[k]
	if c == nil {
		c = r.compile(k, m.Role, p.Cable.From)
		c.variant = site + "@" + l.variant()
		if m.Host {
			c.variant = fmt.Sprintf("%s@%s-%s", site, l.cable, model.Carries(p.Carries.V))
		}
		r.cache[k] = c
	}
	return site, c
}

// compile makes the policy of a chain. role is that of the first such device, and cable is where the length of its cable
// is from.
func (r *resolver) compile(k chain, role string, cable *model.Origin) *compiled {
	mtu, watchdog, classes, hosts := r.f.MTU, r.f.Watchdog, slices.Clone(r.f.Classes), r.f.Hosts
	for _, o := range []*model.Override{k.role, k.device, k.port} {
		if o == nil {
			continue
		}
		mtu, watchdog, hosts = o.MTU.Over(mtu), o.Watchdog.Over(watchdog), o.Hosts.Over(hosts)
		for _, c := range o.Classes {
			if i := slices.IndexFunc(classes, func(b model.Class) bool { return b.Name == c.Name }); i >= 0 {
				classes[i] = c.Over(classes[i])
			}
		}
	}
	if k.host {
		return r.host(k, role, mtu, hosts, classes, cable)
	}
	c := &compiled{origins: map[Field]*model.Origin{}}
	os, _, _ := strings.Cut(k.link.platform, "/")
	c.policy = Policy{Known: AreasOf(os), MTU: mtu.Fabric.V}
	c.set("mtu", mtu.Fabric.From)
	c.set("trust", &model.Origin{Kind: model.FromDefault, Ref: "the model speaks of code points, so switches trust DSCP"})
	if k.border {
		for i := range classes {
			classes[i].Lossless = endAtBorder(classes[i].Lossless)
		}
	}
	r.start(c, classes, k.link)
	c.maps(classes)
	if watchdog.Detect.Set && slices.ContainsFunc(classes, func(k model.Class) bool { return k.Lossless.V }) {
		c.watchdog(watchdog)
	}
	if c.policy.Known.Has(AreaBuffer) {
		r.buffers(c, classes, k.link, cable)
		return c
	}
	for i := range classes {
		if classes[i].Lossless.V {
			r.byHand(&classes[i], k.link.platform)
		}
	}
	return c
}

// endAtBorder is what becomes of lossless at a border port: beyond it nobody keeps the agreement, and a pause from there
// would stop the fabric.
func endAtBorder(v model.Value[bool]) model.Value[bool] {
	if !v.V {
		return v
	}
	from := &model.Origin{Kind: model.FromDefault, Ref: "a border port: lossless ends here", Lost: []diag.Pos{v.Pos()}}
	return model.Value[bool]{Set: true, From: from}
}

func (c *compiled) set(f Field, o *model.Origin) {
	if o != nil {
		c.origins[f] = o
	}
}

// maps writes the classes into the policy. A priority is also a traffic class, and a queue.
func (c *compiled) maps(classes []model.Class) {
	c.policy.Trust = TrustDSCP
	for i := range 8 {
		c.policy.TCQueue[i], c.policy.PFCQueue[i] = uint8(i), uint8(i)
	}
	for i := range c.policy.DSCP {
		c.policy.DSCP[i] = Unmapped
	}
	for i := range classes {
		c.class(&classes[i])
	}
	for i := range classes {
		if classes[i].Rest.V {
			c.rest(&classes[i])
		}
	}
}

// class writes one class into the policy.
func (c *compiled) class(k *model.Class) {
	p := k.Priority.V & 7
	line := &model.Origin{Kind: model.FromLine, Pos: k.Pos}
	weight, weightFrom := uint8(k.Bandwidth.V/units.OnePercent), k.Bandwidth.From
	if k.Weight.Set {
		weight, weightFrom = uint8(k.Weight.V), k.Weight.From
	}
	q := Queue{
		Used: !k.NoSched.V, Lossless: k.Lossless.V, Strict: k.Strict.V, Weight: weight,
		ECN: ECN{On: k.ECN.Kmin.Set && k.ECN.Kmax.Set && k.ECN.Pmax.Set},
	}
	c.set(field("class", p), k.Priority.From)
	c.set(field("lossless", p), firstOrigin(k.Lossless.From, line))
	c.set(field("scheduling", p), firstOrigin(k.Strict.From, line))
	c.set(field("weight", p), firstOrigin(weightFrom, line))
	if q.ECN.On {
		q.ECN.Kmin, q.ECN.Kmax, q.ECN.Pmax = k.ECN.Kmin.V, k.ECN.Kmax.V, k.ECN.Pmax.V
		c.set(field("ecn", p)+".kmin", k.ECN.Kmin.From)
		c.set(field("ecn", p)+".kmax", k.ECN.Kmax.From)
		c.set(field("ecn", p)+".pmax", k.ECN.Pmax.From)
	}
	c.policy.Queues[p] = q
	if q.Lossless {
		c.policy.TCPG[p] = p
	}
	for _, d := range k.DSCP {
		c.policy.DSCP[d.V&63] = p
		c.origins[field("dscp", d.V&63)] = d.From
	}
}

// rest gives a class the code points that no class names.
func (c *compiled) rest(k *model.Class) {
	for d := range c.policy.DSCP {
		if c.policy.DSCP[d] == Unmapped {
			c.policy.DSCP[d] = k.Priority.V & 7
			c.set(field("dscp", uint8(d)), k.Rest.From)
		}
	}
}

func (c *compiled) watchdog(w model.Watchdog) {
	ms := func(v model.Value[units.Duration]) int32 { return int32(v.V / units.Millisecond) }
	c.policy.Watchdog = Watchdog{On: true, Detect: ms(w.Detect), Restore: ms(w.Restore), Poll: ms(w.Poll)}
	for a := ActionNone; a <= ActionAlert; a++ {
		if a.String() == w.Action.V {
			c.policy.Watchdog.Action = a
		}
	}
	c.set("watchdog.detect", w.Detect.From)
	c.set("watchdog.restore", w.Restore.From)
	c.set("watchdog.poll", w.Poll.From)
	c.set("watchdog.action", w.Action.From)
}
