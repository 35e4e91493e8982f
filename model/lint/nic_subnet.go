package lint

import (
	"fmt"
	"net/netip"
	"strconv"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
)

var nicSubnet = Rule{
	ID:       "nic-subnet",
	Title:    "the NICs of a host are in subnets of their own",
	Severity: diag.Warning,
	Run:      runNICSubnet,
}

// together is hosts of a role with NICs in one subnet.
type together struct {
	role   string
	active bool
}

// pair is two NICs of a host.
type pair struct{ a, b *intent.Port }

func runNICSubnet(p *Pass) {
	var bad causes[together]
	first := map[together]pair{}
	for i := range p.Net.Devices {
		d := &p.Net.Devices[i]
		if !d.Host || d.State == intent.Absent {
			continue
		}
		x, ok := sameSubnet(d)
		if !ok {
			continue
		}
		k := together{d.Role, d.State == intent.Active && x.a.State == intent.Active && x.b.State == intent.Active}
		bad.add(k, Place{Device: d, Port: x.b, Policy: d.PolicyOf(x.b), Ports: 1, Active: k.active})
		if _, known := first[k]; !known {
			first[k] = x
		}
	}
	for k, w := range bad.all {
		x := first[k]
		p.report(w, diag.Finding{
			Pos: x.b.IPAt.At(), Related: []diag.Related{setHere("the other address", x.a.IPAt)},
			Msg: fmt.Sprintf("%s (%s) and %s (%s) are in one subnet on %s: Linux answers ARP for either address on both, and sends from both addresses over the first",
				x.a.Name, x.a.IP, x.b.Name, x.b.IP, w.names()),
			Hint: "give each NIC a subnet of its own, or acknowledge " + p.rule.ID + " once net.ipv4.conf.all has arp_ignore=1, arp_announce=2 and rp_filter=2, and ip rule gives each address a routing table",
		})
	}
}

// sameSubnet finds two NICs of a host that are in one subnet and no bond of each other.
func sameSubnet(d *intent.Device) (pair, bool) {
	type addressed struct {
		port   *intent.Port
		subnet netip.Prefix
	}
	var seen []addressed
	for i := range d.Ports {
		a := &d.Ports[i]
		x, err := netip.ParsePrefix(a.IP)
		if err != nil || a.State == intent.Absent {
			continue
		}
		for _, b := range seen {
			if x.Overlaps(b.subnet) && (a.Bond == "" || a.Bond != b.port.Bond) {
				return pair{b.port, a}, true
			}
		}
		seen = append(seen, addressed{a, x})
	}
	return pair{}, false
}

var railSubnet = Rule{
	ID:       "rail-subnet",
	Title:    "a NIC's address is of the subnet of its rail",
	Severity: diag.Warning,
	Run:      runRailSubnet,
}

// railOf is a subnet with the rail that most NICs in it are on.
type railOf struct {
	subnet netip.Prefix
	rail   int
}

// strayRail is a host with NICs whose addresses are of other rails.
type strayRail struct{ device string }

func runRailSubnet(p *Pass) {
	votes := map[railOf]int{}
	var order []railOf
	each := func(visit func(d *intent.Device, q *intent.Port, subnet netip.Prefix)) {
		for i := range p.Net.Devices {
			d := &p.Net.Devices[i]
			for j := range d.Ports {
				q := &d.Ports[j]
				ip, err := netip.ParsePrefix(q.IP)
				if d.Host && q.Rail > 0 && err == nil && ip.Bits() < ip.Addr().BitLen()-1 { // a link of two has no others to compare with
					visit(d, q, ip.Masked())
				}
			}
		}
	}
	each(func(_ *intent.Device, q *intent.Port, subnet netip.Prefix) {
		k := railOf{subnet, q.Rail}
		if votes[k] == 0 {
			order = append(order, k)
		}
		votes[k]++
	})
	of := map[netip.Prefix]int{}
	for _, k := range order {
		if rail, ok := of[k.subnet]; !ok || votes[k] > votes[railOf{k.subnet, rail}] {
			of[k.subnet] = k.rail
		}
	}
	var bad causes[strayRail]
	each(func(d *intent.Device, q *intent.Port, subnet netip.Prefix) {
		rail := of[subnet]
		if rail == q.Rail || votes[railOf{subnet, rail}] == votes[railOf{subnet, q.Rail}] || 2*votes[railOf{subnet, q.Rail}] > votes[railOf{subnet, rail}] {
			return // one subnet for several rails, on purpose: nic-subnet says what that costs
		}
		bad.add(strayRail{d.Name}, Place{Device: d, Port: q, Policy: d.PolicyOf(q), Ports: 1, Active: d.State == intent.Active && q.State == intent.Active})
	})
	for _, w := range bad.all {
		q := w.first.Port
		ip := netip.MustParsePrefix(q.IP)
		more := ""
		if w.ports > 1 {
			more = fmt.Sprintf(" (%s more of its NICs likewise)", strconv.Itoa(w.ports-1))
		}
		p.report(w, diag.Finding{
			Pos: q.IPAt.At(),
			Msg: fmt.Sprintf("%s is on rail %d, but its address %s is of the subnet of rail %d%s: NICs have changed places, or their addresses have",
				w.first, q.Rail-1, q.IP, of[ip.Masked()]-1, more),
			Hint: fmt.Sprintf("give each NIC of %s an address of its rail, such as one of rail %d to %s, or give each the cable of the rail that its address is of", w.names(), q.Rail-1, q.Name),
		})
	}
}
