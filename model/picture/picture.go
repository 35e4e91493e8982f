// Package picture shows the topology of a Net: its tiers, links, capacities and redundancy groups as data, and as a
// graph for Graphviz. It says what was modelled; whether that is good is the linter's to judge.
package picture

import (
	"cmp"
	"slices"
	"strings"

	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/units"
)

// Graph is a topology. Everything in it is in a fixed order, and what is absent is left out.
type Graph struct {
	Fabric  string   `json:"fabric"`
	Tiers   []Tier   `json:"tiers"`   // the highest first
	Links   []Link   `json:"links"`   // each once, by its lower end
	Exits   []Exit   `json:"exits"`   // border ports
	Fanouts []Fanout `json:"fanouts"` // of switches with something below and something above
	Rails   []Rail   `json:"rails,omitempty"`
	Groups  []Group  `json:"groups"`
}

// Tier is all devices of one tier, role and platform.
type Tier struct {
	Tier     int      `json:"tier"` // 0 for hosts
	Role     string   `json:"role"`
	Platform string   `json:"platform"`
	Devices  []string `json:"devices"`

	Idle map[string]string `json:"idle,omitempty"` // devices of it that are not active, with their state
}

// End is one end of a link.
type End struct {
	Device string `json:"device"`
	Port   string `json:"port"`
	Iface  string `json:"interface,omitempty"`

	role string // of the device
	tier int
}

// Link is a link; A is the lower end, or the one whose name comes first.
type Link struct {
	A        End           `json:"a"`
	B        End           `json:"b"`
	Speed    units.BitRate `json:"speed,omitempty"`
	Cable    units.Length  `json:"cable,omitempty"`
	Role     string        `json:"role"`               // of B's port: fabric, host, storage, border, peer-link, …
	Breakout int           `json:"breakout,omitempty"` // how many links share B's physical port
	Rail     int           `json:"rail,omitempty"`     // from 1
	Bond     string        `json:"bond,omitempty"`
	Carries  []string      `json:"carries,omitempty"`
	Lossless []Lossless    `json:"lossless,omitempty"`
}

// Exit is a border port with nothing of the model behind it.
type Exit struct {
	Device string        `json:"device"`
	Port   string        `json:"port"`
	Iface  string        `json:"interface,omitempty"`
	Speed  units.BitRate `json:"speed,omitempty"`
}

// Side is the ports of a switch on one side. Planned ports and devices do not count.
type Side struct {
	Ports int           `json:"ports"`
	Rate  units.BitRate `json:"rate"` // of all ports together
}

// Fanout is what a switch has below and above it. Links to what leads out of the fabric are not above.
type Fanout struct {
	Device string  `json:"device"`
	Role   string  `json:"role"`
	Down   Side    `json:"down"`
	Up     Side    `json:"up"`
	Ratio  float64 `json:"oversubscription"` // down to up
}

// Rail is the same for the leaves of one rail: what its hosts have, and their share of the uplinks there.
type Rail struct {
	Rail   int           `json:"rail"` // from 1
	Leaves []string      `json:"leaves"`
	Down   units.BitRate `json:"down"`
	Up     units.BitRate `json:"up"`
	Ratio  float64       `json:"oversubscription"` // down to up; 0 when there is nothing above
}

// Group is a redundancy group: switches that stand in for each other, so that not all may be out at the same time.
type Group struct {
	Name    string   `json:"name"`
	Devices []string `json:"devices"`
}

// Of is the topology of n. It is linear in the number of ports, and n is not changed.
func Of(n *intent.Net) Graph {
	g := Graph{Fabric: n.Fabric, Tiers: []Tier{}, Links: []Link{}, Exits: []Exit{}, Fanouts: []Fanout{}, Groups: []Group{}}
	b := builder{Graph: &g, exits: map[string]bool{}, index: make(map[string]*intent.Device, len(n.Devices)), rails: map[int]*rail{}}
	for i := range n.Devices {
		if d := &n.Devices[i]; d.State != intent.Absent {
			b.index[d.Name] = d
			b.exits[d.Name] = leadsOut(d)
		}
	}
	groups, tiers := map[string]int{}, map[sameTier]int{}
	for i := range n.Devices {
		d := &n.Devices[i]
		if d.State == intent.Absent {
			continue
		}
		k := sameTier{d.Tier, d.Role, d.Platform}
		at, ok := tiers[k]
		if !ok {
			at = len(g.Tiers)
			tiers[k] = at
			g.Tiers = append(g.Tiers, Tier{Tier: d.Tier, Role: d.Role, Platform: d.Platform})
		}
		g.Tiers[at].Devices = append(g.Tiers[at].Devices, d.Name)
		if d.State != intent.Active {
			if g.Tiers[at].Idle == nil {
				g.Tiers[at].Idle = map[string]string{}
			}
			g.Tiers[at].Idle[d.Name] = d.State.String()
		}
		if d.Group != "" {
			at, ok := groups[d.Group]
			if !ok {
				at = len(g.Groups)
				groups[d.Group] = at
				g.Groups = append(g.Groups, Group{Name: d.Group})
			}
			g.Groups[at].Devices = append(g.Groups[at].Devices, d.Name)
		}
		b.ports(d)
	}
	slices.SortStableFunc(g.Tiers, func(a, b Tier) int { return cmp.Or(b.Tier-a.Tier, strings.Compare(a.Role, b.Role)) })
	b.finishRails()
	return g
}

// sameTier is what makes devices a tier.
type sameTier struct {
	tier           int
	role, platform string
}

type builder struct {
	*Graph
	exits map[string]bool // devices that lead out of the fabric
	index map[string]*intent.Device
	rails map[int]*rail
}

// rail is a rail in the making: what its hosts have on each leaf, and what each leaf has in all.
type rail struct {
	leaves []string
	down   map[string]units.BitRate
}

// ports adds what the ports of d say.
func (b *builder) ports(d *intent.Device) {
	f := Fanout{Device: d.Name, Role: d.Role}
	for i := range d.Ports {
		p := &d.Ports[i]
		if p.State == intent.Absent || p.Role == "unused" {
			continue
		}
		peer := b.index[p.Peer]
		if peer == nil {
			if p.Role == "border" {
				b.Exits = append(b.Exits, Exit{d.Name, p.Name, p.Iface, p.Speed})
			}
			continue
		}
		if built(d, p.State) && built(peer, intent.Active) {
			switch {
			case peer.Tier < d.Tier:
				f.Down.add(p.Speed)
			case peer.Tier > d.Tier && !b.exits[peer.Name]:
				f.Up.add(p.Speed)
			}
			if d.Host && p.Rail > 0 {
				b.onRail(p)
			}
		}
		if peer.Tier > d.Tier || peer.Tier == d.Tier && less(d.Name, p.Name, p.Peer, p.PeerPort) {
			b.link(d, p, peer)
		}
	}
	if f.Down.Ports > 0 && f.Up.Ports > 0 {
		f.Ratio = ratio(f.Down.Rate, f.Up.Rate)
		b.Fanouts = append(b.Fanouts, f)
	}
}

// leadsOut reports whether a device is there for traffic that leaves the fabric: it has border ports, and is no spine.
func leadsOut(d *intent.Device) bool {
	return d.Role != "spine" && d.Role != "super-spine" && slices.ContainsFunc(d.Ports, func(p intent.Port) bool { return p.Role == "border" })
}

func built(d *intent.Device, port intent.State) bool {
	return d.State != intent.Planned && port != intent.Planned
}

func less(a, pa, b, pb string) bool {
	return cmp.Or(intent.CompareNames(a, b), intent.CompareNames(pa, pb)) < 0
}

func (s *Side) add(v units.BitRate) {
	s.Ports++
	s.Rate += v
}

// ratio is down to up; 0 when one of them is not known.
func ratio(down, up units.BitRate) float64 {
	if up <= 0 {
		return 0
	}
	return float64(down) / float64(up)
}

// link adds the link of a lower end.
func (b *builder) link(d *intent.Device, p *intent.Port, peer *intent.Device) {
	l := Link{
		A: End{d.Name, p.Name, p.Iface, d.Role, d.Tier}, B: End{peer.Name, p.PeerPort, "", peer.Role, peer.Tier},
		Speed: p.Speed, Cable: p.Cable, Role: p.Role, Rail: p.Rail, Bond: p.Bond, Carries: p.Carries.Words(),
	}
	q := peer.Port(p.PeerPort)
	if q != nil {
		l.B.Iface, l.Role, l.Breakout = q.Iface, q.Role, q.Breakout
	}
	l.Lossless = losslessOf(d, p, peer, q)
	b.Links = append(b.Links, l)
}

func (b *builder) onRail(p *intent.Port) {
	r := b.rails[p.Rail]
	if r == nil {
		r = &rail{down: map[string]units.BitRate{}}
		b.rails[p.Rail] = r
	}
	if _, ok := r.down[p.Peer]; !ok {
		r.leaves = append(r.leaves, p.Peer)
	}
	r.down[p.Peer] += p.Speed
}

// finishRails adds the rails: of a leaf that serves others too, a rail has a share of the uplinks.
func (b *builder) finishRails() {
	fanout := make(map[string]*Fanout, len(b.Fanouts))
	for i := range b.Fanouts {
		fanout[b.Fanouts[i].Device] = &b.Fanouts[i]
	}
	for n, r := range b.rails {
		slices.SortFunc(r.leaves, intent.CompareNames)
		x := Rail{Rail: n, Leaves: r.leaves}
		for _, leaf := range r.leaves {
			x.Down += r.down[leaf]
			if f := fanout[leaf]; f != nil && f.Down.Rate > 0 {
				x.Up += units.BitRate(float64(f.Up.Rate) * float64(r.down[leaf]) / float64(f.Down.Rate))
			}
		}
		x.Ratio = ratio(x.Down, x.Up)
		b.Rails = append(b.Rails, x)
	}
	slices.SortFunc(b.Rails, func(x, y Rail) int { return x.Rail - y.Rail })
}

// Kind is links that look alike.
type Kind struct {
	Lower, Upper string // roles of the devices
	Role         string // of the ports
	Speed        units.BitRate
	Cable        units.Length
}

// Kinds counts links by kind, in the order of their first link, the highest tier first.
func (g Graph) Kinds() ([]Kind, map[Kind]int) {
	count, tier := map[Kind]int{}, map[Kind]int{}
	var kinds []Kind
	for _, l := range g.Links {
		k := Kind{l.A.role, l.B.role, l.Role, l.Speed, l.Cable}
		if count[k]++; count[k] == 1 {
			kinds = append(kinds, k)
			tier[k] = l.A.tier
		}
	}
	slices.SortStableFunc(kinds, func(a, b Kind) int { return tier[b] - tier[a] })
	return kinds, count
}
