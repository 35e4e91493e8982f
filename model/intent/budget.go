package intent

import (
	"github.com/fabricctl/fabricctl/model/derive"
	"github.com/fabricctl/fabricctl/model/units"
)

// Budget is what a device promises of its buffer, and what is left of it.
type Budget struct {
	Pools  Pools
	Groups int // lossless priority groups with a buffer on ports in use
	Empty  int // of these, how many have no headroom in effect

	Headroom units.Bytes // what all groups may take of headroom
	Reserved units.Bytes // what they have to themselves besides
	Unknown  int         // groups of which the device says itself how much they take, in a table that is not known

	Dedicated bool        // each group's headroom is its own; otherwise they share Pools.Headroom
	Ratio     float64     // how many times Pools.Headroom is promised; 0 when it is not shared
	Published float64     // the same for the platform's own table, see published; 0 when not known
	Buffer    units.Bytes // packet buffer of the chip; 0 = not known
	Promised  units.Bytes // of that: shared pool, headroom and reserves
}

// Sure is how many groups have a headroom that is known.
func (g Budget) Sure() int { return g.Groups - g.Empty - g.Unknown }

// BufferInEffect is what the hardware makes of the buffer of a priority: the device's own table where it fills that in, and
// whole cells. It has no headroom where the table has no row for exactly this speed and cable, since SONiC then makes no
// lossless group and says so in its log alone. False when that is not known.
func BufferInEffect(d *Device, p *Port, priority int) (Buffer, bool) {
	pol := d.PolicyOf(p)
	b := pol.Queues[priority].Buffer
	if b.On && b.Device {
		if len(d.Profile.Headroom) == 0 || p.Speed == 0 {
			return b, false
		}
		row, exact, _ := d.Profile.HeadroomAt(p.Speed, pol.Cable)
		if !exact {
			return Buffer{On: true, Device: true}, true
		}
		b.Static, b.Alpha, b.Xon, b.XonOffset = row.Static, row.Alpha, row.Xon, row.XonOffset
		b.Headroom, b.Reserved = row.Xoff, row.Size
	}
	cell := d.Profile.Cell
	b.Headroom, b.Reserved, b.Static = derive.RoundUp(b.Headroom, cell), derive.RoundUp(b.Reserved, cell), derive.RoundDown(b.Static, cell)
	return b, pol.Known.Has(AreaBuffer)
}

// Dedicated reports whether headroom is a part of what b reserves for its group, and of no pool (SONiC's size on chips
// that have no shared headroom).
func (b Buffer) Dedicated() bool { return b.Headroom > 0 && b.Reserved >= b.Headroom }

// Group is one priority of a port that has a buffer for lossless traffic, as it is in effect.
type Group struct {
	Port     *Port
	Priority int
	Buffer   Buffer
	Sure     bool // what is in effect is known
}

// Groups yields the groups of the ports in use whose buffers are known.
func (d *Device) Groups(yield func(Group) bool) {
	for i := range d.Ports {
		p := &d.Ports[i]
		pol := d.PolicyOf(p)
		if p.State != Active || p.Role == "unused" || !pol.Known.Has(AreaBuffer) {
			continue
		}
		for prio, q := range pol.Queues {
			if !q.Buffer.On {
				continue
			}
			b, sure := BufferInEffect(d, p, prio)
			if !yield(Group{p, prio, b, sure}) {
				return
			}
		}
	}
}

// BudgetOf adds up the lossless groups of d over the ports in use.
func BudgetOf(d *Device) Budget {
	g := Budget{Pools: d.Pools, Buffer: d.Profile.Chip.Buffer, Dedicated: d.Pools.Headroom == 0}
	for x := range d.Groups {
		g.add(x)
	}
	if !g.Dedicated {
		g.Ratio = float64(derive.Oversubscribed(g.Pools.Headroom, units.Ratio{}, g.Headroom).NeededRatio)
		if g.Pools.Headroom == d.Profile.Pools(true).Headroom || g.Pools.Headroom == d.Profile.Pools(false).Headroom {
			g.Published = published(d, g.Pools.Headroom)
		}
	}
	g.Promised = derive.Add(g.Pools.Shared, g.Pools.Headroom, g.Reserved)
	if g.Dedicated {
		g.Promised = derive.Add(g.Promised, g.Headroom)
	}
	return g
}

func (g *Budget) add(x Group) {
	g.Groups++
	switch {
	case !x.Sure:
		g.Unknown++
		return
	case x.Buffer.Headroom == 0:
		g.Empty++
	}
	g.Headroom = derive.Add(g.Headroom, x.Buffer.Headroom)
	own := x.Buffer.Reserved
	if x.Buffer.Dedicated() {
		own -= x.Buffer.Headroom
	}
	g.Reserved = derive.Add(g.Reserved, own)
}

// published is how many times the platform's own pool is promised by its own table, with two lossless priorities on each
// port at full speed and cables of 300 m, which are the longest that most tables are made for.
func published(d *Device, pool units.Bytes) float64 {
	const priorities, cable = 2, 300 * units.Metre
	row, _, ok := d.Profile.HeadroomAt(d.Profile.Speed, cable)
	if !ok || pool <= 0 {
		return 0
	}
	return float64(row.Xoff) * float64(d.Profile.Ports) * priorities / float64(pool)
}

// PauseAt is where the pause threshold of a group settles, in bytes.
type PauseAt struct {
	Groups int         // that are congested at once
	Each   units.Bytes // what each of them holds then
	Sum    units.Bytes // what all of them hold: the queue at the egress when they fill one
	Left   units.Bytes // what is free of the pool
}

// PausePoints is the effective pause threshold of b with 1, 4 and 16 congested groups; nil when it is dynamic in a pool
// that is not known.
func PausePoints(b Buffer, pools Pools) []PauseAt {
	var points []PauseAt
	for _, n := range []int{1, 4, 16} {
		if at, ok := PausePoint(b, pools, n); ok {
			points = append(points, at)
		}
	}
	return points
}

// PausePoint is the effective pause threshold of b with n congested groups: alpha B / (1 + alpha n) of a dynamic one,
// rounded down, and the static one as it is. False when that cannot be said.
func PausePoint(b Buffer, pools Pools, n int) (PauseAt, bool) {
	switch {
	case b.Static > 0:
		sum := derive.Times(b.Static, n)
		return PauseAt{n, b.Static, sum, max(pools.Shared-sum, 0)}, true
	case b.Alpha == (units.Ratio{}) || pools.Shared == 0:
		return PauseAt{}, false
	}
	s := derive.DynamicThreshold(pools.Shared, b.Alpha, n)
	return PauseAt{n, s.Each.Down(), s.Used.Down(), s.Free.Down()}, true
}

// SharedPool is what lossless groups of d share besides headroom and what each has to itself: the pool of its platform, or what these
// leave of the chip's buffer. False when neither is known.
func SharedPool(d *Device) (units.Bytes, bool) {
	if d.Pools.Shared > 0 {
		return d.Pools.Shared, true
	}
	g := BudgetOf(d)
	own := derive.Add(g.Headroom, g.Reserved)
	if g.Pools.Headroom > 0 {
		own = derive.Add(g.Pools.Headroom, g.Reserved)
	}
	return max(g.Buffer-own, 0), g.Buffer > own
}
