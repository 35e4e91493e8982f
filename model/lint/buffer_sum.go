package lint

import (
	"fmt"
	"sort"
	"strings"

	"github.com/fabricctl/fabricctl/model/derive"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/units"
)

var bufferSum = Rule{
	ID:       "buffer-sum",
	Title:    "pools, headroom and reserves fit into the chip's packet buffer",
	Severity: diag.Error,
	Areas:    intent.AreaSet(intent.AreaBuffer),
	Run:      runBufferSum,
}

func runBufferSum(p *Pass) {
	var bad causes[promises]
	for d, in := range p.heaviest {
		g := intent.BudgetOf(d)
		if g.Buffer == 0 || g.Promised <= g.Buffer || contradicts(d) {
			continue
		}
		left := g.Buffer - (g.Promised - g.Headroom)
		if !g.Dedicated {
			left = 0 // what groups take of the pool is counted with the pool
		}
		bad.add(promised(in, g, g.Promised, g.Buffer, max(left, 0)), in.Place)
	}
	for k, w := range bad.all {
		in := ingressAt(w.first, k.prio)
		g := intent.BudgetOf(in.Device)
		parts := fmt.Sprintf("%s of headroom and %s of reserves for %s, a shared pool of %s", about(g.Headroom), about(g.Reserved), diag.Count(k.groups, "priority group"), about(g.Pools.Shared))
		if !g.Dedicated {
			parts = fmt.Sprintf("a shared pool of %s, a headroom pool of %s, %s of reserves", about(g.Pools.Shared), about(g.Pools.Headroom), about(g.Reserved))
		}
		f := diag.Finding{
			Msg: fmt.Sprintf("%s of buffer are promised on %s, but %s has %s: %s", about(k.total), w.names(), in.Device.Profile.Chip.Name, about(k.room), parts),
		}
		f.Hint = k.hint(in, fmt.Sprintf("take a switch with at least %s of packet buffer", about(k.total)))
		f.Pos, f.Related = p.headroomPlace(in)
		p.report(w, f)
	}
	p.reportFloors()
}

// floor is what arrives on a device after its pauses, whatever the neighbours do, and what its chip has. Places that take
// most are heavy.
type floor struct {
	total, room units.Bytes
	rest        units.Bytes // of the groups that are not heavy
	groups      int
	heavy       int
	prio        int
	link        derive.Link // of the heavy ones
	active      bool
}

// reportFloors judges switches of which nobody knows what headroom they keep: no more can be said of them than that the chip
// has less than what arrives.
func (p *Pass) reportFloors() {
	var bad causes[floor]
	for i := 0; i < len(p.Places); {
		d, from := p.Places[i].Device, i
		for i < len(p.Places) && p.Places[i].Device == d {
			i++
		}
		if d.Host || d.Profile.Chip.Buffer == 0 || judged(p.Places[from:i]) {
			continue
		}
		if k, heaviest, ok := floorOf(p.Places[from:i]); ok && k.total > k.room {
			bad.add(k, heaviest)
		}
	}
	for k, w := range bad.all {
		in := ingressAt(w.first, k.prio)
		f := diag.Finding{
			Msg: fmt.Sprintf("%s arrive on %s of %s after a pause, whatever the neighbours do (physics_min), but %s has a packet buffer of %s",
				about(k.total), diag.Count(k.groups, "priority group"), w.names(), in.Device.Profile.Chip.Name, about(k.room)),
			Hint: k.hint(in),
		}
		f.Pos, f.Related = p.headroomPlace(in)
		p.report(w, f)
	}
}

// judged reports whether the headroom of a device is known, so that it is added up as it is.
func judged(places []Place) bool {
	for _, pl := range places {
		for _, prio := range pl.Policy.Lossless() {
			if in := ingressAt(pl, prio); in.sure && in.buffer.On {
				return true
			}
		}
	}
	return false
}

// floorOf adds up what arrives at the ports of a device that are in use; false when no link of theirs is known.
func floorOf(places []Place) (k floor, heaviest Place, ok bool) {
	k.room = places[0].Device.Profile.Chip.Buffer
	var most units.Bytes
	for _, pl := range places {
		l, known := link(needs(&pl))
		prios := pl.Policy.Lossless()
		if !pl.Active || !pl.Knows(intent.AreaPFC) || pl.Port.Manage[intent.AreaBuffer] == intent.Ignore || !known || len(prios) == 0 {
			continue
		}
		ok = true
		each, n := derive.PhysicsMin(l).Xoff, pl.Ports*len(prios)
		switch {
		case each > most:
			k.rest, k.heavy, k.link, k.prio, k.active = k.total, n, l, prios[0], pl.Active
			most, heaviest = each, pl
		case each == most:
			k.heavy += n
		default:
			k.rest = derive.Add(k.rest, derive.Times(each, n))
		}
		k.groups += n
		k.total = derive.Add(k.total, derive.Times(each, n))
	}
	return k, heaviest, ok
}

// hint is what would have to change.
func (k floor) hint(in ingress) string {
	var ways []string
	each := max(k.room-k.rest, 0) / units.Bytes(max(k.heavy, 1))
	at := func(metres int) units.Bytes {
		l := k.link
		l.Cable = units.Length(metres) * units.Metre
		return derive.PhysicsMin(l).Xoff
	}
	if cable := sort.Search(int(k.link.Cable/units.Metre), func(i int) bool { return at(i+1) > each }); cable > 0 {
		ways = append(ways, fmt.Sprintf("lower cable to at most %s, which leaves each of %s at %s its %s", units.Length(cable)*units.Metre,
			diag.Count(k.heavy, "priority group"), k.link.Speed, at(cable)))
	}
	if ports := int(max(k.room-k.rest, 0)/at(int(k.link.Cable/units.Metre))) / max(len(in.Policy.Lossless()), 1); ports > 0 {
		ways = append(ways, fmt.Sprintf("connect at most %s like %s", diag.Count(ports, "port"), in.Place))
	}
	return strings.Join(append(ways, fmt.Sprintf("take a switch with at least %s of packet buffer", about(k.total))), ", or ")
}

// contradicts reports whether the chip's buffer is less than the platform's own pools. Then one of the two published
// figures is not what it seems, and nothing follows from them.
func contradicts(d *intent.Device) bool {
	for _, hosts := range []bool{true, false} {
		if p := d.Profile.Pools(hosts); derive.Add(p.Lossless, p.Headroom) > d.Profile.Chip.Buffer {
			return true
		}
	}
	return false
}
