package lint

import (
	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/derive"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/units"
)

// ramped is one priority of a place that marks, by a ramp that ecn-order has nothing to say about.
type ramped struct {
	Place
	prio  int
	class string
	ecn   intent.ECN // as it was asked for
}

// room is how far kmax has to stay above kmin at pl: where the chip takes only a ramp, enough for one that rises gradually;
// else nothing, since kmin equal to kmax marks in one step.
func room(pl *Place) units.Bytes {
	chip := pl.Device.Profile.Chip
	if !chip.ECNApart {
		return 0
	}
	step := intent.ECNStep(chip)
	return fewSteps * max(step, derive.RoundUp(pl.Device.Profile.Cell, step))
}

// onStep makes v what the chip of pl can hold: below it, or above it.
func onStep(pl *Place, v units.Bytes, up bool) units.Bytes {
	step := intent.ECNStep(pl.Device.Profile.Chip)
	if up {
		return derive.RoundUp(v, step)
	}
	if w := derive.RoundDown(v, step); w > 0 {
		return w
	}
	return v
}

// field is where a value of the ramp came from.
func (r ramped) field(key string) *model.Origin {
	return r.Origin(perQueue("ecn.", r.prio, "."+key))
}

// ramps are the lossless priorities of switches that mark, place by place.
func (p *Pass) ramps() []ramped {
	var rs []ramped
	for _, pl := range p.Places {
		if pl.Device.Host || !pl.Knows(intent.AreaECN) || !pl.Knows(intent.AreaPFC) {
			continue
		}
		for prio, q := range pl.Policy.Queues {
			if q.Lossless && q.ECN.On && soundRamp(q.ECN) {
				rs = append(rs, ramped{pl, prio, class(pl.Device, prio), q.ECN})
			}
		}
	}
	return rs
}

// load is what the model says of the traffic of a class.
type load struct {
	fanIn, flows     int
	fanInAt, flowsAt diag.Pos // lines that say so; zero for the defaults
}

// The load of a class that says nothing: two ports that send to one, with 16 flows each.
const (
	defaultFanIn = 2
	defaultFlows = 16
)

// load is the load of a priority of d.
func (p *Pass) load(d *intent.Device, prio int) load {
	l := load{fanIn: defaultFanIn, flows: defaultFlows}
	c := classOf(p, d.Classes[prio])
	if c == nil {
		return l
	}
	if c.FanIn.Set {
		l.fanIn, l.fanInAt = c.FanIn.V, c.FanIn.Pos()
	}
	if c.Flows.Set {
		l.flows, l.flowsAt = c.Flows.V, c.Flows.Pos()
	}
	return l
}

// related are the lines that give the load, as related places.
func (l load) related() (fanIn, flows diag.Related) {
	return diag.Related{Pos: l.fanInAt, Msg: "fan_in set here"}, diag.Related{Pos: l.flowsAt, Msg: "flows set here"}
}

// roughly is v cut to three digits, so that a number which a formula gave can be read.
func roughly(v units.Bytes) string { return cut(v, 3).String() }

// cut keeps the first digits of v and makes the others zero.
func cut(v units.Bytes, digits int) units.Bytes {
	step := units.Bytes(1)
	for limit := pow10(digits); v/step >= limit; {
		step *= 10
	}
	return derive.RoundDown(v, step)
}

func pow10(n int) (v units.Bytes) {
	for v = 1; n > 0; n-- {
		v *= 10
	}
	return v
}

// below is a round number below limit and not below least.
func below(limit, least units.Bytes) units.Bytes {
	for digits := 2; digits < 19; digits++ {
		if v := cut(limit-1, digits); v >= least {
			return v
		}
	}
	return max(limit-1, least)
}

// above is a round number that is at least v.
func above(v units.Bytes) units.Bytes {
	c := cut(v, 2)
	if c == v {
		return v
	}
	step := units.Bytes(1)
	for v/step >= 100 {
		step *= 10
	}
	return c + step
}

// base is what a sender's reaction takes beside the cables: the way of a mark to the receiver, of its notification to the
// sender, and of the first slower packet to the queue, through NICs and idle switches. It is an assumption, and the one
// that published arithmetic uses for 100G and more.
const base = 8 * units.Microsecond

// feedback is how long a mark takes to slow down its sender: base, and light in both directions through the longest
// cables of the way up and down (5ns a metre, IEEE 802.1Qbb).
func (p *Pass) feedback() units.Duration {
	var longest [8]units.Length // by the lower tier of the ends
	tier := map[string]int{}
	for i := range p.Net.Devices {
		tier[p.Net.Devices[i].Name] = p.Net.Devices[i].Tier
	}
	for _, pl := range p.Places {
		peer, ok := tier[pl.Port.Peer]
		if low := min(pl.Device.Tier, peer); ok && pl.Active && low >= 0 && low < len(longest) {
			longest[low] = max(longest[low], pl.Port.Cable)
		}
	}
	var way units.Length // up; as much again down
	for _, l := range longest {
		way += l
	}
	const nsPerMetre = 5
	return base + units.Duration(way)*4*nsPerMetre/units.Duration(units.Metre)
}

// lines are the positions of a ramp's values, for grouping by cause.
type lines struct{ kmin, kmax, pmax diag.Pos }

func (r ramped) lines() lines {
	if x := (lines{r.field("kmin").At(), r.field("kmax").At(), r.field("pmax").At()}); x != (lines{}) {
		return x
	}
	at := r.Origin(perQueue("lossless.", r.prio, "")).At() // nobody wrote the ramp: it is a starting value of the class
	return lines{at, at, at}
}
