package routes

import (
	"cmp"
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/fabricctl/fabricctl/model/intent"
)

// kind is where a link leads.
type kind uint8

const (
	up      kind = iota // to a higher tier
	lateral             // to the same tier
	down                // to a lower tier
)

// node is a switch, or endpoints that are alike: NICs and bonds of hosts, linked to the same switches in the same way.
// What a host forwards to itself is nothing.
type node struct {
	name  string // of the first device
	tier  int
	host  bool
	n     int     // how many endpoints; 1 for a switch
	fixed bool    // on a listed route, and so like no other
	out   []int32 // bundles that leave it
}

// bundle is the links from one node to another that do the same.
type bundle struct {
	from, to         int32
	back             int32 // the same links, in the other direction
	at               int32 // its place in out of from
	kind             kind
	mask             uint8  // priorities that are lossless at both ends
	n                int32  // links
	own              int32  // not 0: a listed route names a port of it, so it is like no other
	fromPort, toPort string // of the first link
}

// Topology is the devices and links of a Net that are built. It is not changed once made, and may be shared.
type Topology struct {
	routing intent.Routing
	routes  []listed
	nodes   []node
	bundles []bundle
	hosts   []int32 // nodes that are hosts
	byTier  []int32 // nodes from the lowest tier up
	row     []int32 // where the row of a bundle begins in a relation; one more at the end
	lateral bool    // there are links within a tier
	classes [8]string
}

// Of is the topology of n: its devices and ports that are active or in maintenance, linked where both ends name each
// other. Ports that carry nothing but management are left out. A priority is lossless on a link where both ends pause
// for it; an end of which that is not known does as the other. n is not changed.
func Of(n *intent.Net) *Topology {
	t := &Topology{routing: n.Routing}
	b := builder{net: n, t: t, at: make(map[string]int, len(n.Devices)), ports: map[string]map[string]int{}, switchOf: map[int]int32{}}
	for i := range n.Devices {
		b.at[n.Devices[i].Name] = i
		for p, name := range n.Devices[i].Classes {
			t.classes[p] = cmp.Or(t.classes[p], name)
		}
	}
	b.named()
	b.switches()
	b.endpoints()
	for i := range b.switchAt {
		b.trunks(i)
	}
	b.finish()
	for i := range n.Routes {
		b.route(i)
	}
	return t
}

type end struct{ device, port string }

// builder makes a Topology.
type builder struct {
	net      *intent.Net
	t        *Topology
	at       map[string]int            // devices of the Net by name
	ports    map[string]map[string]int // ports of devices with many, by name
	switchOf map[int]int32             // node of a switch, by its place in the Net
	switchAt []int                     // the other way round

	onRoute map[string]bool    // devices that listed routes name
	number  map[end]int32      // ports that they name, from 1
	nodesOf map[string][]int32 // nodes of the devices that they name
	taken   map[end]int32      // bundle of a port of such a device
}

// named notes what listed routes name.
func (b *builder) named() {
	b.onRoute, b.number, b.nodesOf, b.taken = map[string]bool{}, map[end]int32{}, map[string][]int32{}, map[end]int32{}
	for i := range b.net.Routes {
		r := &b.net.Routes[i]
		for _, h := range r.Hops {
			b.onRoute[h.Device] = true
			if p := (end{h.Device, h.Port}); h.Port != "" && b.number[p] == 0 {
				b.number[p] = int32(len(b.number) + 1)
			}
		}
		b.onRoute[r.End] = true
	}
}

func built(d *intent.Device, p *intent.Port) bool {
	is := func(s intent.State) bool { return s == intent.Active || s == intent.Maintenance }
	return is(d.State) && (p == nil || is(p.State) && p.Role != "unused")
}

// switches makes the nodes of switches. Where a Net gives no tier to a switch, it is its distance from the hosts.
func (b *builder) switches() {
	missing := false
	for i := range b.net.Devices {
		d := &b.net.Devices[i]
		if d.Host || !built(d, nil) {
			continue
		}
		b.switchOf[i] = int32(len(b.t.nodes))
		b.switchAt = append(b.switchAt, i)
		if b.onRoute[d.Name] {
			b.nodesOf[d.Name] = []int32{b.switchOf[i]}
		}
		b.t.nodes = append(b.t.nodes, node{name: d.Name, tier: d.Tier, n: 1, fixed: b.onRoute[d.Name]})
		missing = missing || d.Tier < 1
	}
	if missing {
		b.measure()
	}
}

// measure gives tiers to switches by their distance from hosts.
func (b *builder) measure() {
	far := make([]int, len(b.net.Devices))
	var next []int
	for i := range b.net.Devices {
		if b.net.Devices[i].Host {
			next = append(next, i)
			far[i] = 1
		}
	}
	for len(next) > 0 {
		d := next[0]
		next = next[1:]
		for j := range b.net.Devices[d].Ports {
			if p, ok := b.at[b.net.Devices[d].Ports[j].Peer]; ok && far[p] == 0 {
				far[p] = far[d] + 1
				next = append(next, p)
			}
		}
	}
	for v, i := range b.switchAt {
		if nd := &b.t.nodes[v]; nd.tier < 1 {
			nd.tier = max(far[i]-1, 1)
		}
	}
}

// link is one link as seen from one of its ends.
type link struct {
	peer     int // place of the other end's device in the Net
	port     *intent.Port
	peerPort *intent.Port
	mask     uint8
}

// links are the links of a device that are built.
func (b *builder) links(i int) []link {
	d := &b.net.Devices[i]
	var ls []link
	for j := range d.Ports {
		p := &d.Ports[j]
		k, ok := b.at[p.Peer]
		if !ok || !built(d, p) {
			continue
		}
		o := &b.net.Devices[k]
		q := b.peerPort(o, p.PeerPort)
		if q == nil || q.Peer != d.Name || q.PeerPort != p.Name || !built(o, q) {
			continue
		}
		ls = append(ls, link{k, p, q, mask(d, p, o, q)})
	}
	return ls
}

// peerPort finds a port by its name, at once on a device with many.
func (b *builder) peerPort(d *intent.Device, name string) *intent.Port {
	const few = 16
	if len(d.Ports) <= few {
		if i := slices.IndexFunc(d.Ports, func(p intent.Port) bool { return p.Name == name }); i >= 0 {
			return &d.Ports[i]
		}
		return nil
	}
	at := b.ports[d.Name]
	if at == nil {
		at = make(map[string]int, len(d.Ports))
		for i := range d.Ports {
			at[d.Ports[i].Name] = i
		}
		b.ports[d.Name] = at
	}
	if i, ok := at[name]; ok {
		return &d.Ports[i]
	}
	return nil
}

// mask is the priorities that are lossless on a link. A packet's priority is the same at both ends unless a switch marks
// it anew, since both ends classify it by its code point; where their maps differ, the pause of one stops another queue at
// the other, and nothing waits.
func mask(d *intent.Device, p *intent.Port, o *intent.Device, q *intent.Port) uint8 {
	a, ok1 := lossless(d, p)
	z, ok2 := lossless(o, q)
	switch {
	case !ok1:
		return z
	case !ok2:
		return a
	}
	return a & z
}

func lossless(d *intent.Device, p *intent.Port) (m uint8, known bool) {
	policy := d.PolicyOf(p)
	if !policy.Known.Has(intent.AreaPFC) || p.Manage[intent.AreaPFC] == intent.Ignore {
		return 0, false
	}
	for i, q := range policy.Queues {
		if q.Lossless {
			m |= 1 << i
		}
	}
	return m, true
}

// trunks adds the bundles from the v-th switch to others.
func (b *builder) trunks(v int) {
	type alike struct {
		to, own int32
		mask    uint8
	}
	i, at := b.switchAt[v], map[alike]int32{}
	for _, l := range b.links(i) {
		to, ok := b.switchOf[l.peer]
		if !ok || to == int32(v) {
			continue
		}
		k := alike{to, b.own(i, l), l.mask}
		x, ok := at[k]
		if !ok {
			x = b.add(bundle{from: int32(v), to: to, mask: l.mask, own: k.own, fromPort: l.port.Name, toPort: l.peerPort.Name})
			at[k] = x
		}
		b.t.bundles[x].n++
		b.remember(i, l.port.Name, x)
	}
}

// endpoints makes the nodes of hosts, with their bundles in both directions. The NIC ports of a bond are one endpoint, any
// other NIC port is one by itself.
func (b *builder) endpoints() {
	alike := map[string]int32{}
	for i := range b.net.Devices {
		d := &b.net.Devices[i]
		if !d.Host || !built(d, nil) {
			continue
		}
		bonds := map[string]int{}
		var points [][]link
		for _, l := range b.links(i) {
			if _, ok := b.switchOf[l.peer]; !ok || l.port.OnlyManagement() {
				continue
			}
			at, ok := bonds[l.port.Bond]
			if !ok || l.port.Bond == "" {
				at = len(points)
				points = append(points, nil)
				bonds[l.port.Bond] = at
			}
			points[at] = append(points[at], l)
		}
		for _, ls := range points {
			b.endpoint(i, ls, alike)
		}
	}
}

// endpoint adds one endpoint to a node that is like it, or makes one.
func (b *builder) endpoint(i int, ls []link, alike map[string]int32) {
	slices.SortStableFunc(ls, func(x, y link) int {
		return cmp.Or(cmp.Compare(b.switchOf[x.peer], b.switchOf[y.peer]), cmp.Compare(x.mask, y.mask), cmp.Compare(b.own(i, x), b.own(i, y)))
	})
	d := &b.net.Devices[i]
	var key []byte
	for _, l := range ls {
		key = append(binary.BigEndian.AppendUint32(key, uint32(b.switchOf[l.peer])), l.mask)
	}
	v, ok := alike[string(key)]
	if b.onRoute[d.Name] || !ok {
		v = int32(len(b.t.nodes))
		b.t.nodes = append(b.t.nodes, node{name: d.Name, host: true, fixed: b.onRoute[d.Name]})
		b.t.hosts = append(b.t.hosts, v)
		if b.onRoute[d.Name] {
			b.nodesOf[d.Name] = append(b.nodesOf[d.Name], v)
		} else {
			alike[string(key)] = v
		}
	}
	nd := &b.t.nodes[v]
	nd.n++
	run := -1
	for j, l := range ls {
		if j == 0 || ls[j-1].peer != l.peer || ls[j-1].mask != l.mask || b.own(i, ls[j-1]) != b.own(i, l) {
			run++
		}
		if run == len(nd.out) {
			nd.out = append(nd.out, b.access(i, v, l))
		}
		x := nd.out[run]
		y := b.t.bundles[x].back
		b.t.bundles[x].n++
		b.t.bundles[y].n++
		b.remember(i, l.port.Name, x)
		b.remember(l.peer, l.peerPort.Name, y)
	}
}

// access adds the two bundles of a host's link.
func (b *builder) access(i int, v int32, l link) int32 {
	sw, own := b.switchOf[l.peer], b.own(i, l)
	x := b.add(bundle{from: v, to: sw, mask: l.mask, own: own, fromPort: l.port.Name, toPort: l.peerPort.Name})
	y := b.add(bundle{from: sw, to: v, mask: l.mask, own: own, fromPort: l.peerPort.Name, toPort: l.port.Name})
	b.t.bundles[x].back, b.t.bundles[y].back = y, x
	return x
}

// own is what tells a link from its parallel ones: the number of a port of it that a listed route names.
func (b *builder) own(i int, l link) int32 {
	return max(b.number[end{b.net.Devices[i].Name, l.port.Name}], b.number[end{b.net.Devices[l.peer].Name, l.peerPort.Name}])
}

func (b *builder) add(x bundle) int32 {
	b.t.bundles = append(b.t.bundles, x)
	return int32(len(b.t.bundles) - 1)
}

// remember notes which bundle a port belongs to, where a listed route may ask.
func (b *builder) remember(device int, port string, x int32) {
	if name := b.net.Devices[device].Name; b.onRoute[name] {
		b.taken[end{name, port}] = x
	}
}

// finish orders what the builder has added.
func (b *builder) finish() {
	t := b.t
	type alike struct {
		from, to, own int32
		mask          uint8
	}
	at := make(map[alike]int32, len(t.bundles))
	for i := range t.nodes {
		t.nodes[i].out = nil
		t.byTier = append(t.byTier, int32(i))
	}
	for i := range t.bundles {
		x := &t.bundles[i]
		from, to := &t.nodes[x.from], &t.nodes[x.to]
		x.at = int32(len(from.out))
		from.out = append(from.out, int32(i))
		at[alike{x.from, x.to, x.own, x.mask}] = int32(i)
		switch {
		case to.tier > from.tier:
			x.kind = up
		case to.tier == from.tier:
			x.kind = lateral
			t.lateral = true
		default:
			x.kind = down
		}
	}
	t.row = make([]int32, len(t.bundles)+1)
	for i := range t.bundles {
		x := &t.bundles[i]
		x.back = at[alike{x.to, x.from, x.own, x.mask}]
		t.row[i+1] = t.row[i] + int32(len(t.nodes[x.to].out)+63)/64
	}
	slices.SortStableFunc(t.byTier, func(x, y int32) int { return cmp.Compare(t.nodes[x].tier, t.nodes[y].tier) })
}

// listed is a listed route: the bundles that it may take at each hop, and the priority there.
type listed struct {
	hops  [][]int32
	prios []uint8
	fresh uint8        // priorities that count as lossless on all of its links
	route intent.Route // as the Net has it
}

// route adds a listed route. One that names what is not built, or is not linked, gives nothing.
func (b *builder) route(i int) {
	r := &b.net.Routes[i]
	l := listed{route: *r}
	for j, h := range r.Hops {
		next := r.End
		if j+1 < len(r.Hops) {
			next = r.Hops[j+1].Device
		}
		var ways []int32
		for _, v := range b.nodesOf[h.Device] {
			for _, x := range b.t.nodes[v].out {
				if slices.Contains(b.nodesOf[next], b.t.bundles[x].to) && (h.Port == "" || b.taken[end{h.Device, h.Port}] == x) {
					ways = append(ways, x)
				}
			}
		}
		if len(ways) == 0 {
			return
		}
		l.hops, l.prios = append(l.hops, ways), append(l.prios, h.Priority)
	}
	b.t.routes = append(b.t.routes, l)
}

func (t *Topology) priorities() []int {
	m := uint8(0)
	for i := range t.bundles {
		m |= t.bundles[i].mask
	}
	var ps []int
	for ; m != 0; m &= m - 1 {
		ps = append(ps, bits.TrailingZeros8(m))
	}
	return ps
}
