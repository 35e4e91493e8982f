package lint

import (
	"cmp"
	"fmt"

	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/derive"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/units"
)

var ecnBeforePFC = Rule{
	ID:       "ecn-before-pfc",
	Title:    "marking begins before the first pause",
	Severity: diag.Warning,
	Areas:    intent.AreaSet(intent.AreaECN, intent.AreaBuffer),
	Run:      func(p *Pass) { runMarkingOrder(p, marksLate) },
}

var ecnNeverMarks = Rule{
	ID:       "ecn-never-marks",
	Title:    "a queue can reach kmin before all that fill it are paused",
	Severity: diag.Error,
	Areas:    intent.AreaSet(intent.AreaECN, intent.AreaBuffer),
	Run:      func(p *Pass) { runMarkingOrder(p, marksNever) },
}

var ecnKmaxBelowPFC = Rule{
	ID:       "ecn-kmax-below-pfc",
	Title:    "the ramp is complete before the first pause",
	Severity: diag.Info,
	Areas:    intent.AreaSet(intent.AreaECN, intent.AreaBuffer),
	Run:      func(p *Pass) { runMarkingOrder(p, rampCut) },
}

// order is how a ramp lies to the pause thresholds of the ports that fill its queue. Each ramp has the worst alone: the
// others follow from it.
type order uint8

const (
	inOrder    order = iota
	rampCut          // the first pause is between kmin and kmax
	marksLate        // it is before kmin
	marksNever       // even if all other ports fill the queue, it is
)

// ordered is one ramp with the pause threshold that it is compared with.
type ordered struct {
	ramped
	group group
	n     int           // ports that fill the queue
	at    units.Bytes   // what they hold together at the first pause
	most  int           // ports that can fill it
	last  units.Bytes   // what those hold
	in    units.BitRate // of the fastest port that can fill it
}

func (o ordered) is() order {
	switch {
	case o.ecn.Kmin >= o.last:
		return marksNever
	case o.ecn.Kmin >= o.at:
		return marksLate
	case o.ecn.Kmax > o.at:
		return rampCut
	}
	return inOrder
}

// whole is the packet buffer, as far as it is known.
func (o ordered) whole() units.Bytes {
	d := o.Device
	return max(d.Profile.Chip.Buffer, derive.Add(d.Pools.Shared, d.Pools.Headroom))
}

// bare reports whether the ramp marks nothing on purpose: one step, beyond the whole buffer. That is how ECN is switched off in place,
// with all bindings as they are; a ramp that is only too high has a kmax of its own.
func (o ordered) bare() bool {
	return o.ecn.Kmin >= o.whole() && o.ecn.Kmax <= derive.Add(o.ecn.Kmin, room(&o.Place))
}

// outOfOrder is a ramp and a threshold from one set of lines.
type outOfOrder struct {
	prio      int
	class     string
	ecn       intent.ECN
	lines     lines
	alpha     diag.Pos
	threshold string
	n, most   int
	at, last  units.Bytes
	active    bool
}

// runMarkingOrder reports the ramps that are in this order. With n ports that fill one queue together it holds n times
// the threshold of each when the first of them pauses (n alpha B/(1+alpha n) for a dynamic one), so that is what kmin and kmax have
// to be below, and not the threshold itself (Zhu et al., Congestion Control for Large-Scale RDMA Deployments, SIGCOMM'15, section 4,
// turned around).
func runMarkingOrder(p *Pass, want order) {
	var bad causes[outOfOrder]
	firsts := map[outOfOrder]ordered{}
	in := p.pauses()
	for _, r := range p.ramps() {
		if in[r.Device] == nil {
			continue
		}
		from := in[r.Device][r.prio]
		o := ordered{ramped: r, n: from.fanIn(r, p.load(r.Device, r.prio).fanIn), most: from.others(), in: from.speed}
		var ok bool
		if o.group, o.at, ok = from.at(o.n, false); !ok {
			continue
		}
		if _, o.last, _ = from.at(o.most, true); o.is() != want {
			continue
		}
		words, line := o.group.threshold(r.prio)
		k := outOfOrder{
			r.prio, r.class, r.ecn, r.lines(), line.At(), words, o.n, o.most, o.at, o.last, r.Active,
		}
		if want == marksNever { // there, the case that the model declares is beside the point
			k.n, k.at = 0, 0
		}
		bad.add(k, r.Place)
		if _, known := firsts[k]; !known {
			firsts[k] = o
		}
	}
	for k, w := range bad.all {
		p.report(w, firsts[k].finding(p, k, w))
	}
}

// finding says what is out of order, and by how much it has to move.
func (o ordered) finding(p *Pass, k outOfOrder, w *where) diag.Finding {
	_, line := o.group.threshold(o.prio)
	what := "xoff"
	if o.group.buffer.Static == 0 {
		what = "alpha"
	}
	f := diag.Finding{
		Pos:     cmp.Or(k.lines.kmin, k.lines.kmax),
		Related: []diag.Related{setHere("kmin", o.field("kmin")), setHere("kmax", o.field("kmax")), setHere(what, line)},
	}
	fan := fmt.Sprintf("fan-in %d", o.n)
	if o.n == 1 && o.in > o.Port.Speed {
		fan = fmt.Sprintf("one port of %v fills one of %v", o.in, o.Port.Speed)
	} else if by, _ := p.load(o.Device, o.prio).related(); !by.Pos.IsZero() {
		f.Related = append(f.Related, by)
	}
	switch is := o.is(); {
	case is == marksNever && o.bare():
		f.Severity = diag.Warning
		f.Msg = fmt.Sprintf("kmin %v and kmax %v of %s are beyond the whole buffer of %s, %v: nothing is ever marked, and pause is the only control",
			o.ecn.Kmin, o.ecn.Kmax, k.class, w, o.whole())
		f.Hint = fmt.Sprintf("if PFC alone is meant, acknowledge %s with the reason; if not, %s", p.rule.ID, o.lower())
	case is == marksNever:
		f.Msg = fmt.Sprintf("kmin %v of %s is never reached on %s: all %s that can fill a queue are paused at %s (%s)",
			o.ecn.Kmin, k.class, w, diag.Count(o.most, "port"), roughly(o.last), k.threshold)
		f.Hint = o.lower() + o.raise(o.n, line)
	case is == marksLate:
		f.Msg = fmt.Sprintf("kmin %v of %s is not below the first pause at %s on %s (%s, %s)", o.ecn.Kmin, k.class, roughly(o.at), w, k.threshold, fan)
		f.Hint = o.lower() + o.raise(o.n, line)
	default:
		f.Pos = cmp.Or(k.lines.kmax, k.lines.kmin)
		f.Msg = fmt.Sprintf("kmax %v of %s is above the first pause at %s on %s (%s, %s): PFC acts before every packet is marked",
			o.ecn.Kmax, k.class, roughly(o.at), w, k.threshold, fan)
		f.Hint = o.lowerKmax() + o.raise(o.n, line)
	}
	return f
}

// lower says how low kmin has to be, and kmax with it.
func (o ordered) lower() string {
	kmax := o.ecn.Kmax
	if kmax > o.at {
		kmax = o.below(o.at + 1)
	}
	s := fmt.Sprintf("lower kmin to at most %v", o.below(min(o.at, o.under(kmax)+1)))
	if kmax < o.ecn.Kmax {
		s += fmt.Sprintf(" and kmax to at most %v", kmax)
	}
	return s
}

// lowerKmax says how low kmax has to be, and kmin with it where too little would be left between them.
func (o ordered) lowerKmax() string {
	kmax := onStep(&o.Place, below(o.at+1, min(o.ecn.Kmin, o.at)), false)
	s := fmt.Sprintf("lower kmax to at most %v", kmax)
	if kmin := o.under(kmax); kmin < o.ecn.Kmin {
		s += fmt.Sprintf(" and kmin to at most %v", o.below(kmin+1))
	}
	return s
}

// under is the most that kmin may be with this kmax.
func (o ordered) under(kmax units.Bytes) units.Bytes { return max(kmax-room(&o.Place), 1) }

// below is a round number below limit that the chip can hold.
func (o ordered) below(limit units.Bytes) units.Bytes {
	return onStep(&o.Place, below(limit, 1), false)
}

// raise says which alpha is enough for n ports, where a line gives one.
func (o ordered) raise(n int, line *model.Origin) string {
	if line.At().IsZero() {
		return ""
	}
	a, at, ok := o.group.alphaFor(o.ecn.Kmax, n)
	if !ok {
		return ""
	}
	return fmt.Sprintf(", or raise alpha to %v (first pause at %s)", a, roughly(at))
}
