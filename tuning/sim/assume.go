package sim

import (
	"fmt"

	"github.com/fabricctl/fabricctl/model/intent"
)

// assumptions are what was taken for something that a Net does not say, each with the places that it is about.
type assumptions struct {
	order []string
	where map[string][]string
}

// say notes an assumption about a place; "" is the fabric as a whole.
func (a *assumptions) say(what, place string) {
	if a.where == nil {
		a.where = map[string][]string{}
	}
	if _, known := a.where[what]; !known {
		a.order = append(a.order, what)
	}
	a.where[what] = append(a.where[what], place)
}

// sentences are the assumptions, in the order in which they came up, each with the first place and how many more.
func (a *assumptions) sentences() []string {
	var all []string
	for _, what := range a.order {
		places := a.where[what]
		switch n := len(places) - 1; {
		case places[0] == "":
			all = append(all, what)
		case n > 0:
			all = append(all, fmt.Sprintf("%s (%s and %d more)", what, places[0], n))
		default:
			all = append(all, fmt.Sprintf("%s (%s)", what, places[0]))
		}
	}
	return all
}

// donors are the first ports that know an area, by what they are: of those, others take what they do not know.
type donors map[donorKey]int

type donorKey struct {
	area           intent.Area
	host           bool
	role, portRole string // "" = any
	platform       string // buffers depend on it
}

// simulated are the areas that a simulation needs of a switch and of a host.
func simulated(host bool) []intent.Area {
	if host {
		return []intent.Area{intent.AreaMTU, intent.AreaMaps, intent.AreaPFC, intent.AreaScheduler, intent.AreaRoCE, intent.AreaCC}
	}
	return []intent.Area{intent.AreaMTU, intent.AreaMaps, intent.AreaPFC, intent.AreaECN, intent.AreaBuffer, intent.AreaScheduler, intent.AreaWatchdog}
}

// keys are where to look for an area that x does not know, the nearest first.
func keys(x *port, a intent.Area) []donorKey {
	k := donorKey{area: a, host: x.dev.Host, role: x.dev.Role, portRole: x.port.Role}
	if a == intent.AreaBuffer {
		k.platform = x.dev.Platform
		return []donorKey{k, {area: a, role: k.role, platform: k.platform}, {area: a, platform: k.platform}}
	}
	return []donorKey{k, {area: a, host: k.host, role: k.role}, {area: a, host: k.host}}
}

// policies makes the policy of each port whole: what its device does not say is as on another one that does, or else a
// default, and said.
func (b *builder) policies() {
	b.donors = donors{}
	for i := range b.ports {
		x := &b.ports[i]
		pol := x.dev.PolicyOf(x.port)
		for _, a := range simulated(x.dev.Host) {
			if !pol.Known.Has(a) {
				continue
			}
			for _, k := range keys(x, a) {
				if _, taken := b.donors[k]; !taken {
					b.donors[k] = i
				}
			}
		}
	}
	for i := range b.ports {
		x := &b.ports[i]
		x.pol = *x.dev.PolicyOf(x.port)
		for _, a := range simulated(x.dev.Host) {
			if !x.pol.Known.Has(a) {
				b.stand(i, a)
			}
		}
		x.pol = inEffect(x)
	}
	b.classes = classesOf(b.ports)
}

// inEffect is what the hardware makes of the port's policy.
func inEffect(x *port) intent.Policy {
	d, p := *x.dev, *x.port
	d.Policies, p.Policy = []intent.Policy{x.pol}, 0
	return intent.Effective(&d, &p)
}

// stand takes an area of a port from the nearest one that knows it, or else from a default.
func (b *builder) stand(i int, a intent.Area) {
	x := &b.ports[i]
	for _, k := range keys(x, a) {
		if j, ok := b.donors[k]; ok {
			y := &b.ports[j]
			adopt(&x.pol, y.dev.PolicyOf(y.port), a)
			b.assume.say(fmt.Sprintf("%s as on %s where it is not known", a, b.name(j)), b.name(i))
			return
		}
	}
	what := ""
	switch a {
	case intent.AreaMTU:
		what = "frames of any size pass where the mtu is not known"
	case intent.AreaMaps:
		what = "the class selector of a code point is its traffic class where the maps are not known"
		x.pol.Trust = intent.TrustDSCP
		for d := range x.pol.DSCP {
			x.pol.DSCP[d] = uint8(d >> 3)
		}
		for tc := range x.pol.TCQueue {
			x.pol.TCQueue[tc], x.pol.TCPG[tc], x.pol.PFCQueue[tc] = uint8(tc), uint8(tc), uint8(tc)
		}
	case intent.AreaPFC:
		what = "no PFC where it is not known"
	case intent.AreaECN:
		what = "no marking where it is not known"
	case intent.AreaScheduler:
		what = "all queues alike where the scheduler is not known"
	case intent.AreaWatchdog:
		what = "no PFC watchdog where it is not known"
	case intent.AreaBuffer, intent.AreaRoCE, intent.AreaCC:
		return // said where they are made
	}
	b.assume.say(what, b.name(i))
}

// adopt copies one area of a policy.
func adopt(to, from *intent.Policy, a intent.Area) {
	switch a {
	case intent.AreaMTU:
		to.MTU = from.MTU
	case intent.AreaMaps:
		to.Trust, to.DSCP, to.TCQueue, to.TCPG, to.PFCQueue = from.Trust, from.DSCP, from.TCQueue, from.TCPG, from.PFCQueue
	case intent.AreaPFC:
		to.Pause = from.Pause
	case intent.AreaBuffer:
		to.Cable = from.Cable
	case intent.AreaWatchdog:
		to.Watchdog = from.Watchdog
	case intent.AreaRoCE:
		to.RoCE = from.RoCE
	case intent.AreaCC:
		to.CC = from.CC
	}
	for i := range to.Queues {
		p, q := &to.Queues[i], &from.Queues[i]
		switch a {
		case intent.AreaPFC:
			p.Lossless = q.Lossless
		case intent.AreaECN:
			p.ECN, p.Drop = q.ECN, q.Drop
		case intent.AreaBuffer:
			p.Buffer = q.Buffer
		case intent.AreaScheduler:
			p.Used, p.Strict, p.Weight = q.Used, q.Strict, q.Weight
		}
	}
	to.Known |= intent.AreaSet(a)
}

// classes are the classes of a fabric as most of its devices have them.
type classes struct {
	name     [8]string // by priority, "" = the fabric names none
	priority [64]uint8 // of a code point
	cnp      int       // priority of congestion notifications, or -1
	lossless uint8     // priorities that are lossless at most ports, as bits
}

// classesOf lets the switch ports of a fabric vote, and the hosts where there are no others.
func classesOf(ports []port) classes {
	c := classes{cnp: -1}
	var votes [64][9]int
	var on, known [8]int
	for i := range ports {
		x := &ports[i]
		for p, name := range x.dev.Classes {
			if c.name[p] == "" && name != "" {
				c.name[p] = name
				if name == x.dev.CNP {
					c.cnp = p
				}
			}
		}
		if x.pol.Known.Has(intent.AreaMaps) {
			for d, tc := range x.pol.DSCP {
				votes[d][min(tc, 8)]++
			}
		}
		if x.pol.Known.Has(intent.AreaPFC) {
			for p := range x.pol.Queues {
				known[p]++
				if x.pol.Queues[p].Lossless {
					on[p]++
				}
			}
		}
	}
	for d := range votes {
		best := 0
		for tc := range 8 {
			if votes[d][tc] > votes[d][best] {
				best = tc
			}
		}
		c.priority[d] = uint8(best)
	}
	for p := range on {
		if 2*on[p] > known[p] {
			c.lossless |= 1 << p
		}
	}
	return c
}

// of names the class of a priority: as the model does, or else by its number.
func (c *classes) of(priority int) string {
	if n := c.name[priority]; n != "" {
		return n
	}
	return fmt.Sprintf("priority-%d", priority)
}

// ofQueue names the class whose packets a queue of a port is for; "" when there is none.
func (c *classes) ofQueue(pol *intent.Policy, queue int) string {
	for tc := range pol.TCQueue {
		if queueOf(pol, tc) == queue && c.name[tc] != "" {
			return c.name[tc]
		}
	}
	return ""
}

// find is the priority of a class by its name.
func (c *classes) find(name string) (priority int, ok bool) {
	for p := range c.name {
		if c.of(p) == name {
			return p, true
		}
	}
	return 0, false
}

// names are the classes that the fabric names.
func (c *classes) names() []string {
	var all []string
	for _, n := range c.name {
		if n != "" {
			all = append(all, n)
		}
	}
	return all
}

// point is the code point that packets of a class carry: the lowest that leads to its priority.
func (c *classes) point(priority int) (uint8, bool) {
	for d, p := range c.priority {
		if int(p) == priority {
			return uint8(d), true
		}
	}
	return 0, false
}

// queueOf is the queue of a traffic class, and groupOf its priority group. A device without a map for queues has those of the same
// number; one without a map for groups puts everything in group 0.
func queueOf(pol *intent.Policy, tc int) int {
	if q := pol.TCQueue[tc]; q != intent.Unmapped {
		return int(q & 7)
	}
	return tc
}

func groupOf(pol *intent.Policy, tc int) int {
	if g := pol.TCPG[tc]; g != intent.Unmapped {
		return int(g & 7)
	}
	return 0
}

// classOf is the traffic class that a port puts a packet in. Packets of a routed fabric carry no VLAN tag, so that a port
// which trusts that, or nothing, takes all of them for class 0, and so it does with code points that it has no entry for.
func classOf(pol *intent.Policy, dscp uint8) int {
	if pol.Trust == intent.TrustPCP || pol.Trust == intent.TrustNone {
		return 0
	}
	if tc := pol.DSCP[dscp]; tc != intent.Unmapped {
		return int(tc & 7)
	}
	return 0
}
