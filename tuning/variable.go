package tuning

import (
	"math"

	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/derive"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/units"
)

// The variables that a Space has unless others are named. Kmin follows kmax by their ratio, so that each can move alone; where the
// model gives xoff in bytes, xoff takes alpha's place.
const (
	Alpha     = "alpha"
	Xoff      = "xoff"
	Kmax      = "kmax"
	KminRatio = "kmin/kmax"
	Pmax      = "pmax"
)

// row is a variable as the table has it: what a Variable is before it is known of which part of which fabric, how its value is read
// from a port, and how it is written into the model.
type row struct {
	Variable
	area intent.Area // that has to be owned, and known to the device
	host bool        // it is the hosts': its paths are below the hosts of a scope, not below the class

	paths []string                                         // below the class, or below hosts
	read  func(p *place) (v float64, why refusal)          // what holds at a port
	span  func(sc *scope, now float64) (low, high float64) // its range; nil: Low and High of the row
	rungs func(sc *scope, low, high float64) []float64     // its ladder; nil: that of the row
	set   func(sc *scope, now, v float64) []model.Edit     // nil: it is a part of the ramp, which is written as a whole
	grain func(sc *scope) (step float64, lowest float64)   // what the hardware counts it in; nil: nothing is known
	power bool                                             // hardware takes powers of two alone
}

// refusal is why a variable cannot be moved; the zero refusal is none.
type refusal struct{ what, hint string }

// variableRows is the table of the variables of switches. Those of hosts are in hostRows.
func variableRows() []row {
	return []row{
		{
			Variable: Variable{
				Name: Alpha, Of: Factor, Low: 1.0 / 64, High: 4, Step: 2, Ladder: []float64{1.0 / 64, 1.0 / 16, 1.0 / 4, 1, 4},
				Doc: "how much of the free buffer a port may fill before it pauses its neighbour",
			},
			area: intent.AreaBuffer, paths: []string{"pfc.xoff.alpha"}, power: true, read: readAlpha,
			set: func(sc *scope, _, v float64) []model.Edit {
				return []model.Edit{{Path: sc.class + "pfc.xoff.alpha", Value: factorText(v)}}
			},
		},
		{
			Variable: Variable{Name: Xoff, Of: Size, Step: 2, Fine: 1.25, Doc: "how many bytes a port holds before it pauses its neighbour"},
			area:     intent.AreaBuffer, paths: []string{"pfc.xoff"}, read: readXoff, span: spanXoff, rungs: halves, grain: cells,
			set: func(sc *scope, _, v float64) []model.Edit {
				return []model.Edit{{Path: sc.class + "pfc.xoff", Value: bytesText(v)}}
			},
		},
		{
			Variable: Variable{Name: "xon-offset", Of: Size, Step: 2, Fine: 1.25, Doc: "how far below the pause threshold sending goes on"},
			area:     intent.AreaBuffer, paths: []string{"pfc.xon_offset"}, read: readXonOffset, span: spanXonOffset, rungs: doubles, grain: cells,
			set: func(sc *scope, _, v float64) []model.Edit {
				return []model.Edit{{Path: sc.class + "pfc.xon_offset", Value: bytesText(v)}}
			},
		},
		{
			Variable: Variable{Name: "headroom", Of: Size, Step: 1.5, Fine: 1.25, Doc: "what is kept for packets that still arrive after the pause; never below the derived need"},
			area:     intent.AreaBuffer, paths: []string{"pfc.headroom"}, read: readHeadroom, span: spanHeadroom, rungs: doubles, grain: cells,
			set: func(sc *scope, _, v float64) []model.Edit {
				return []model.Edit{{Path: sc.class + "pfc.headroom", Value: bytesText(v)}}
			},
		},
		{
			Variable: Variable{Name: Kmax, Of: Size, Step: 2, Fine: 1.25, Doc: "queue at which marking reaches pmax; kmin follows it"},
			area:     intent.AreaECN, paths: []string{"ecn.kmax", "ecn.kmin"}, span: spanKmax, rungs: quadruples, grain: ecnSteps,
			read: func(p *place) (float64, refusal) { return float64(p.queue().ECN.Kmax), p.unmarked() },
		},
		{
			Variable: Variable{Name: KminRatio, Of: Ratio, Low: 0.02, High: 0.9, Step: 2, Fine: 1.25, Ladder: []float64{0.02, 0.08, 0.3, 0.9}, Doc: "queue at which marking begins, as a part of kmax"},
			area:     intent.AreaECN, paths: []string{"ecn.kmin"},
			read: func(p *place) (float64, refusal) {
				e := p.queue().ECN
				return float64(e.Kmin) / float64(max(e.Kmax, 1)), p.unmarked()
			},
		},
		{
			Variable: Variable{Name: Pmax, Of: Share, Low: 0.01, High: 1, Step: 2, Fine: 1.25, Ladder: []float64{0.01, 0.05, 0.2, 1}, Doc: "share of packets that are marked at kmax"},
			area:     intent.AreaECN, paths: []string{"ecn.pmax"},
			grain: func(*scope) (float64, float64) { return 0.01, 0.01 },
			read: func(p *place) (float64, refusal) {
				return float64(p.queue().ECN.Pmax) / float64(100*units.OnePercent), p.unmarked()
			},
		},
		{
			Variable: Variable{Name: "bandwidth", Of: Share, Low: 0.05, High: 0.95, Linear: true, Step: 0.1, Fine: 0.05, Ladder: []float64{0.1, 0.25, 0.5, 0.75, 0.9}, Doc: "share of a port among the weighted classes; the others share the rest as before"},
			area:     intent.AreaScheduler, paths: []string{"bandwidth"}, read: readBandwidth, set: setBandwidth,
			grain: func(*scope) (float64, float64) { return 0.01, 0.01 },
		},
		{
			Variable: Variable{Name: "weight", Of: Number, Whole: true, Low: 1, High: 100, Step: 2, Fine: 1.25, Ladder: []float64{1, 3, 10, 30, 100}, Doc: "weight of the class's queue against those of the other classes"},
			area:     intent.AreaScheduler, paths: []string{"weight"}, read: readWeight,
			set: func(sc *scope, _, v float64) []model.Edit {
				return []model.Edit{{Path: sc.class + "weight", Value: numberText(v)}}
			},
		},
	}
}

// unmarked is why there is no ramp to move.
func (p *place) unmarked() refusal {
	switch {
	case p.queue().ECN.On && p.queue().ECN.Kmax > 0:
		return refusal{}
	case p.space.class.ECNOff.V:
		return refusal{"the class has ecn: off", "write a ramp in its place, such as ecn: {kmin: 400KB, kmax: 1600KB, pmax: 10%}, or name only other variables"}
	}
	return refusal{"its queues do not mark, and kmin and kmax have to be there before anything of a ramp is moved", "give the class ecn: {kmin: 400KB, kmax: 1600KB, pmax: 10%}"}
}

func readAlpha(p *place) (float64, refusal) {
	b, why := p.buffer()
	switch {
	case why.what != "":
		return 0, why
	case b.Static > 0:
		return 0, refusal{"xoff is " + b.Static.String() + " there, and no part of what is free", "name " + Xoff + " in its place, or write xoff: {alpha: 1/8} where the pool is dynamic"}
	case p.space.class.Xoff.Share.Set:
		return 0, refusal{"xoff is a share there", "write xoff: {alpha: " + b.Alpha.String() + "} in its place, which is the same"}
	}
	return float64(b.Alpha.Num) / float64(max(b.Alpha.Den, 1)), refusal{}
}

func readXoff(p *place) (float64, refusal) {
	b, why := p.buffer()
	switch {
	case why.what != "":
		return 0, why
	case b.Static == 0:
		return 0, refusal{"xoff is alpha " + b.Alpha.String() + " of what is free there, and not a size", "name " + Alpha + " in its place"}
	case p.space.class.Xoff.Share.Set:
		return 0, refusal{"xoff is a share there", "write xoff: " + b.Static.String() + " in its place, which is the same"}
	}
	return float64(b.Static), refusal{}
}

func readXonOffset(p *place) (float64, refusal) {
	b, why := p.buffer()
	if why.what == "" && b.XonOffset == 0 {
		why = refusal{"sending goes on below xon " + b.Xon.String() + " there, and not by an offset", "write xon_offset in place of xon"}
	}
	return float64(b.XonOffset), why
}

func readHeadroom(p *place) (float64, refusal) {
	b, why := p.buffer()
	if why.what == "" && b.Headroom == 0 {
		why = refusal{"no headroom is in effect there", "fabricctl explain " + p.String() + " shows why"}
	}
	return float64(b.Headroom), why
}

func readBandwidth(p *place) (float64, refusal) {
	c := p.space.class
	switch {
	case c.Strict.V || c.NoSched.V:
		return 0, refusal{"its queue is not weighted", "give the class a bandwidth in place of scheduling"}
	case c.Weight.Set || !c.Bandwidth.Set:
		return 0, refusal{"the class has no bandwidth", "name weight in its place, or give the classes bandwidths that add up to 100%"}
	}
	return float64(p.queue().Weight) / 100, refusal{}
}

func readWeight(p *place) (float64, refusal) {
	if !p.space.class.Weight.Set {
		return 0, refusal{"the class has no weight", "name bandwidth in its place, or give the classes weights"}
	}
	return float64(p.queue().Weight), refusal{}
}

// setBandwidth gives the class a share, and the other weighted classes what is left in the proportion that they had.
func setBandwidth(sc *scope, _, v float64) []model.Edit {
	var others [8]int
	for i := range sc.space.f.Classes {
		c := &sc.space.f.Classes[i]
		if c.Name != sc.space.class.Name && c.Bandwidth.Set && !c.Strict.V {
			others[c.Priority.V&7] = int(sc.ref.pol.Queues[c.Priority.V&7].Weight)
		}
	}
	mine := int(math.Round(100 * v))
	rest := shares(others, 100-mine)
	edits := []model.Edit{{Path: sc.class + "bandwidth", Value: numberText(float64(mine)) + "%"}}
	for i := range sc.space.f.Classes {
		if c := &sc.space.f.Classes[i]; rest[c.Priority.V&7] > 0 {
			edits = append(edits, model.Edit{Path: sc.classPath(c.Name) + "bandwidth", Value: numberText(float64(rest[c.Priority.V&7])) + "%"})
		}
	}
	return edits
}

// shares divides a whole in the proportion of weights, by the largest remainder; no weight that is not 0 gets 0.
func shares(weight [8]int, whole int) [8]int {
	sum, left := 0, whole
	for _, w := range weight {
		sum += w
	}
	var out [8]int
	for i, w := range weight {
		if w > 0 {
			out[i] = max(w*whole/sum, 1)
			left -= out[i]
		}
	}
	for ; left > 0; left-- {
		best := -1
		for i, w := range weight {
			if w > 0 && (best < 0 || w*whole-out[i]*sum > weight[best]*whole-out[best]*sum) {
				best = i
			}
		}
		if best < 0 {
			break
		}
		out[best]++
	}
	return out
}

// The range of kmax, as far as experiments went (docs/tuning.md): 25KB to 6.4MB at 100Gbps, and in proportion at other speeds, but no
// more than the whole buffer of the chip: beyond it only the slope of the ramp changes, which is pmax's.
const (
	leastKmax = 25e3
	mostKmax  = 6.4e6
)

func spanKmax(sc *scope, now float64) (low, high float64) {
	scale := float64(sc.ref.port.Speed) / float64(100*units.Gbps)
	if scale <= 0 {
		scale = 1
	}
	low, high = leastKmax*scale, mostKmax*scale
	if chip := float64(sc.ref.dev.Profile.Chip.Buffer); chip > 0 {
		high = min(high, round(chip, digits))
	}
	return min(low, high/2, now), max(high, now)
}

func spanXoff(sc *scope, now float64) (low, high float64) {
	low = 2 * float64(max(sc.ref.pol.MTU, units.KB))
	high = now * 16
	if pool := float64(sc.ref.dev.Pools.Shared); pool > 0 {
		high = round(pool/2, digits)
	}
	return min(low, now), max(high, now)
}

func spanXonOffset(sc *scope, now float64) (low, high float64) {
	frame := float64(max(sc.ref.pol.MTU, units.KB))
	return min(frame, now), max(16*frame, now)
}

// spanHeadroom begins at what the port of the scope needs that needs most, which may be more than the one has whose value is there now.
func spanHeadroom(sc *scope, now float64) (low, high float64) {
	for i := range sc.places {
		if c, ok := intent.AutoHeadroom(intent.IngressOf(sc.places[i].dev, sc.places[i].port)); ok {
			low = max(low, float64(c.Bytes))
		}
	}
	if low == 0 {
		low = now
	}
	return low, max(4*low, now)
}

// ladders over the range, ascending: halves and quarters of the upper end, or multiples of the lower.
func halves(_ *scope, low, high float64) []float64     { return ladderDown(low, high, 2) }
func quadruples(_ *scope, low, high float64) []float64 { return ladderUp(low, high, 4) }
func doubles(_ *scope, low, high float64) []float64    { return ladderUp(low, high, 2) }

func ladderUp(low, high, by float64) []float64 {
	var l []float64
	for v := low; v < high; v *= by {
		l = append(l, round(v, digits))
	}
	return append(l, high)
}

func ladderDown(low, high, by float64) []float64 {
	var l []float64
	for v := high; v > low; v /= by {
		l = append([]float64{round(v, digits)}, l...)
	}
	return append([]float64{low}, l...)
}

// ecnSteps is the coarsest step that a chip of the scope counts ECN thresholds in.
func ecnSteps(sc *scope) (step, lowest float64) {
	for i := range sc.places {
		step = max(step, float64(intent.ECNStep(sc.places[i].dev.Profile.Chip)))
	}
	return step, step
}

// cells is the largest buffer cell of the scope.
func cells(sc *scope) (step, lowest float64) {
	for i := range sc.places {
		step = max(step, float64(sc.places[i].dev.Profile.Cell))
	}
	return step, step
}

// digits is how many digits values of experiments have: more would be a precision that no experiment has.
const digits = 3

// round is v with so many significant digits.
func round(v float64, digits int) float64 {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return v
	}
	e := math.Floor(math.Log10(math.Abs(v))) - float64(digits-1)
	if e < 0 {
		p := math.Pow(10, -e)
		return math.Round(v*p) / p
	}
	p := math.Pow(10, e)
	return math.Round(v/p) * p
}

// power is the power of two next to v, of those that hardware has.
func power(v float64) float64 {
	best, apart := v, math.Inf(1)
	for e := -8; e <= 7; e++ {
		if _, ok := derive.Alpha(e); !ok {
			continue
		}
		if d := math.Abs(math.Log2(v) - float64(e)); d < apart {
			best, apart = math.Exp2(float64(e)), d
		}
	}
	return best
}

func bytesText(v float64) string { return units.Bytes(math.Round(v)).String() }

func shareText(v float64) string {
	return units.Percent(math.Round(v * 100 * float64(units.OnePercent))).String()
}
