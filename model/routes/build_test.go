package routes

import (
	"slices"
	"strconv"

	"github.com/fabricctl/fabricctl/model/intent"
)

// builder makes small Nets.
type netBuilder struct {
	net *intent.Net
	at  map[string]int
}

func newBuilder() *netBuilder {
	return &netBuilder{net: &intent.Net{Fabric: "test"}, at: map[string]int{}}
}

// device adds a device of a tier, a host at tier 0.
func (b *netBuilder) device(name string, tier int) *intent.Device {
	i, ok := b.at[name]
	if !ok {
		i = len(b.net.Devices)
		b.at[name] = i
		b.net.Devices = append(b.net.Devices, intent.Device{Name: name, Tier: tier, Host: tier == 0})
	}
	return &b.net.Devices[i]
}

// link joins two devices by new ports, which are lossless for the priorities in mask.
func (b *netBuilder) link(x, y string, mask uint8) (p, q *intent.Port) {
	d, e := &b.net.Devices[b.at[x]], &b.net.Devices[b.at[y]]
	n, m := "p"+strconv.Itoa(len(d.Ports)+1), "p"+strconv.Itoa(len(e.Ports)+1)
	d.Ports = append(d.Ports, intent.Port{Name: n, Peer: y, PeerPort: m, Policy: d.Intern(pausing(d, mask))})
	e.Ports = append(e.Ports, intent.Port{Name: m, Peer: x, PeerPort: n, Policy: e.Intern(pausing(e, mask))})
	return &d.Ports[len(d.Ports)-1], &e.Ports[len(e.Ports)-1]
}

// pausing is a policy with PFC for the priorities in mask; of hosts it is not known.
func pausing(d *intent.Device, mask uint8) (p intent.Policy) {
	if d.Host {
		return p
	}
	p.Known = intent.AreaSet(intent.AreaPFC)
	for i := range 8 {
		p.Queues[i].Lossless = mask>>i&1 == 1
	}
	return p
}

func (b *netBuilder) done() *intent.Net {
	slices.SortStableFunc(b.net.Devices, func(x, y intent.Device) int { return intent.CompareNames(x.Name, y.Name) })
	return b.net
}

// clos is leaves below spines, each with hosts; lossless is priority 3.
func clos(spines, leaves, hosts int) *netBuilder {
	b := newBuilder()
	for s := range spines {
		b.device("s"+strconv.Itoa(s), 2)
	}
	for l := range leaves {
		leaf := "l" + strconv.Itoa(l)
		b.device(leaf, 1)
		for h := range hosts {
			host := "h" + strconv.Itoa(l*hosts+h)
			b.device(host, 0)
			b.link(host, leaf, 8)
		}
		for s := range spines {
			b.link(leaf, "s"+strconv.Itoa(s), 8)
		}
	}
	return b
}
