package lint

import (
	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/derive"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/units"
)

// sources are the priority groups of one device that can fill up the queues of a priority.
type sources struct {
	groups []group
	ports  int           // that have such a group
	speed  units.BitRate // of the fastest of them
	known  map[pauseOf]firstPause
	asked  *answers
}

// pauseOf is one question about sources: when so many groups fill a queue, of the lowest or the highest threshold.
type pauseOf struct {
	n       int
	highest bool
}

// firstPause is its answer.
type firstPause struct {
	group group
	sum   units.Bytes
	ok    bool
}

// group is a priority group of a place, with its buffer as the hardware has it.
type group struct {
	Place
	buffer intent.Buffer
}

// pauses is where pause begins on a device, by priority.
type pauses map[*intent.Device]*[8]sources

// pauses finds the priority groups whose thresholds are known, once for all rules.
func (p *Pass) pauses() pauses {
	if p.groups != nil {
		return p.groups
	}
	all := pauses{}
	p.groups = all
	for _, pl := range p.Places {
		if pl.Device.Host || !pl.Knows(intent.AreaBuffer) || !pl.Knows(intent.AreaPFC) {
			continue
		}
		for prio, q := range pl.Policy.Queues {
			if !q.Lossless || !q.Buffer.On {
				continue
			}
			b, ok := intent.BufferInEffect(pl.Device, pl.Port, prio)
			if _, can := p.asked.pausePoint(b, pl.Device.Pools, 1); !ok || !can {
				continue
			}
			if all[pl.Device] == nil {
				all[pl.Device] = &[8]sources{}
			}
			in := &all[pl.Device][prio]
			if in.known == nil {
				in.known, in.asked = map[pauseOf]firstPause{}, &p.asked
			}
			in.groups = append(in.groups, group{pl, b})
			in.ports += pl.Ports
			in.speed = max(in.speed, pl.Port.Speed)
		}
	}
	return all
}

// at is what n groups that fill one queue together hold at their first pause: those with the lowest threshold, or those
// with the highest. False when no group's threshold is known.
func (in sources) at(n int, highest bool) (group, units.Bytes, bool) {
	k := pauseOf{n, highest}
	x, asked := in.known[k]
	if !asked && in.known != nil {
		x = in.find(k)
		in.known[k] = x
	}
	return x.group, x.sum, x.ok
}

func (in sources) find(k pauseOf) (x firstPause) {
	for _, g := range in.groups {
		y, _ := in.asked.pausePoint(g.buffer, g.Device.Pools, k.n)
		if pool := g.Device.Pools.Shared; pool > 0 {
			y.Sum = min(y.Sum, pool)
		}
		if !x.ok || (y.Sum > x.sum) == k.highest && y.Sum != x.sum {
			x = firstPause{g, y.Sum, true}
		}
	}
	return x
}

// fanIn is how many ports fill a queue of r together in the case that the model declares: one where a single port is
// faster than the queue's own, and never more than there are.
func (in sources) fanIn(r ramped, declared int) int {
	if in.speed > r.Port.Speed && r.Port.Speed > 0 {
		return 1
	}
	return max(min(declared, in.others()), 1)
}

// asFast is how many other ports are at least as fast as r's.
func (in sources) asFast(r ramped) (ports int) {
	for _, g := range in.groups {
		if g.Port.Speed >= r.Port.Speed {
			ports += g.Ports
		}
	}
	return max(ports-1, 0)
}

// late reports whether even the load that the model declares is paused before r marks, which is ecn-before-pfc's to say.
func (in sources) late(r ramped, l load) bool {
	_, at, ok := in.at(in.fanIn(r, l.fanIn), false)
	return ok && r.ecn.Kmin >= at
}

// others is how many ports can send to one.
func (in sources) others() int { return max(in.ports-1, 1) }

// threshold is the pause threshold of a group in words, and the line that gives it.
func (g group) threshold(prio int) (words string, from *model.Origin) {
	from = g.Origin(perQueue("xoff.", prio, ""))
	if g.buffer.Static > 0 {
		return "static xoff " + g.buffer.Static.String(), from
	}
	return "alpha " + g.buffer.Alpha.String() + " of a pool of " + roughly(g.Device.Pools.Shared), from
}

// alphaFor is the smallest alpha with which n groups of g's device hold more than v before the first pause, and where that is;
// false when the threshold is static, or no alpha does.
func (g group) alphaFor(v units.Bytes, n int) (alpha units.Ratio, at units.Bytes, ok bool) {
	if g.buffer.Static > 0 {
		return alpha, 0, false
	}
	for e := -8; e <= 7; e++ {
		a, _ := derive.Alpha(e)
		if at := derive.FirstPause(g.Device.Pools.Shared, a, n); at > v {
			return a, at, true
		}
	}
	return alpha, 0, false
}
