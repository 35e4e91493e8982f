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

var headroomSum = Rule{
	ID:       "headroom-sum",
	Title:    "the headroom pool holds what is promised of it",
	Severity: diag.Error,
	Areas:    intent.AreaSet(intent.AreaBuffer),
	Run:      runHeadroomSum,
}

// promises is what a device promises of something that has not so much. Devices that promise the same are one cause.
type promises struct {
	total, room units.Bytes // in all, and what there is
	left        units.Bytes // what the headroom of the groups may come to
	groups      int
	heavy       int         // of the groups, those that take most, and
	rest        units.Bytes // what the others take
	line        diag.Pos    // of the largest headroom
	prio        int
	active      bool
}

func runHeadroomSum(p *Pass) {
	var bad causes[promises]
	for d, in := range p.heaviest {
		g := intent.BudgetOf(d)
		if g.Dedicated {
			continue // it is no pool's, but the chip's: buffer-sum
		}
		left := derive.Amount(float64(g.Pools.Headroom) * max(1, g.Published)).Down()
		if g.Headroom > left {
			bad.add(promised(in, g, g.Headroom, g.Pools.Headroom, left), in.Place)
		}
	}
	for k, w := range bad.all {
		in := ingressAt(w.first, k.prio)
		f := diag.Finding{
			Msg: fmt.Sprintf("the headroom pool of %s holds %s, and %s promise %s of it, %s times as much%s: when they pause together, lossless packets are dropped",
				w.names(), about(k.room), diag.Count(k.groups, "priority group"), about(k.total), twoDigits(k.total, k.room), k.usual()),
			Hint: k.hint(in, fmt.Sprintf("give the platform a headroom_pool of at least %s", about(derive.Amount(float64(k.total)*float64(k.room)/float64(k.left)).Up()))),
		}
		f.Pos, f.Related = p.headroomPlace(in)
		p.report(w, f)
	}
}

// promised is a cause for the device of in, its heaviest group: what is promised, what there is, and what is left of that for
// the headroom of groups.
func promised(in ingress, g intent.Budget, total, room, left units.Bytes) promises {
	k := promises{total: total, room: room, left: left, groups: g.Sure(), line: in.at("headroom"), prio: in.prio, active: in.Active}
	for x := range in.Device.Groups {
		switch {
		case !x.Sure:
		case x.Buffer.Headroom == in.buffer.Headroom:
			k.heavy++
		default:
			k.rest = derive.Add(k.rest, x.Buffer.Headroom)
		}
	}
	return k
}

// about is a sum as people read it: to a tenth of a megabyte above ten of them, up to a tenth of a kilobyte.
func about(v units.Bytes) string {
	if v >= 10*units.MB {
		return derive.RoundUp(v, units.MB/10).String()
	}
	return derive.RoundUp(v, units.KB/10).String()
}

// usual says how many times the platform's makers promise the pool, where that is more than once.
func (k promises) usual() string {
	if k.left <= k.room {
		return ""
	}
	return fmt.Sprintf(" (%s times with the platform's own tables)", twoDigits(k.left, k.room))
}

func twoDigits(a, b units.Bytes) string { return fmt.Sprintf("%.2f", float64(a)/float64(b)) }

// heaviest yields each switch that has lossless buffers, with the one that takes most headroom.
func (p *Pass) heaviest(yield func(*intent.Device, ingress) bool) {
	most := map[*intent.Device]ingress{}
	var order []*intent.Device
	for in := range p.ingresses {
		if !in.Active || !in.buffer.On {
			continue
		}
		m, seen := most[in.Device]
		if !seen {
			order = append(order, in.Device)
		}
		if !seen || in.buffer.Headroom > m.buffer.Headroom {
			most[in.Device] = in
		}
	}
	for _, d := range order {
		if !yield(d, most[d]) {
			return
		}
	}
}

// hint is what would have to change, in the order in which it is easiest, and more last: more room.
func (k promises) hint(in ingress, more string) string {
	var ways []string
	need := needs(&in.Place)
	l, ok := link(need)
	each := derive.RoundDown(max(k.left-k.rest, 0)/units.Bytes(max(k.heavy, 1)), in.Device.Profile.Cell)
	auto, known := intent.AutoHeadroom(need)
	asked := !known || in.buffer.Headroom != derive.RoundUp(auto.Bytes, in.Device.Profile.Cell) // by somebody, and not by the link
	all := derive.RoundDown(k.left/units.Bytes(max(k.groups, 1)), in.Device.Profile.Cell)       // a headroom that is written holds for every port
	switch {
	case ok && all >= derive.StdMax(l, derive.StandardDelays(l.Speed)).Xoff:
		ways = append(ways, fmt.Sprintf("lower headroom to at most %s", all))
	case asked && known && all >= auto.Bytes:
		ways = append(ways, "set headroom to auto")
	}
	if cable := longest(need, each); ok && !asked && cable > 0 {
		ways = append(ways, fmt.Sprintf("lower cable to at most %s, which leaves each of %s at %s its %s", cable,
			diag.Count(k.heavy, "priority group"), l.Speed, each))
	}
	classes := len(in.Policy.Lossless())
	per := derive.Add(k.rest, derive.Times(in.buffer.Headroom, k.heavy)) / units.Bytes(max(classes, 1))
	if fit := int(min(k.left/max(per, 1), 8)); fit > 0 && fit < classes {
		ways = append(ways, fmt.Sprintf("keep %d of %s lossless", fit, diag.Count(classes, "class")))
	}
	if ports := int(max(k.left-k.rest, 0)/max(in.buffer.Headroom, 1)) / max(classes, 1); ports > 0 && ports < k.heavy {
		ways = append(ways, fmt.Sprintf("connect at most %s like %s", diag.Count(ports, "port"), in.Place))
	}
	return strings.Join(append(ways, more), ", or ")
}

// longest is the longest cable in whole metres at which auto takes no more headroom than that; 0 when there is none.
func longest(need intent.Ingress, headroom units.Bytes) units.Length {
	return units.Length(sort.Search(int(need.Cable/units.Metre), func(i int) bool {
		need.Cable = units.Length(i+1) * units.Metre
		c, ok := intent.AutoHeadroom(need)
		return !ok || c.Bytes > headroom
	})) * units.Metre
}
