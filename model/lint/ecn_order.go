package lint

import (
	"cmp"
	"fmt"

	"github.com/fabricctl/fabricctl/model/derive"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/units"
)

var ecnOrder = Rule{
	ID:       "ecn-order",
	Title:    "0 < kmin <= kmax and 0 < pmax <= 100%",
	Severity: diag.Error,
	Areas:    intent.AreaSet(intent.AreaECN),
	Run:      runECNOrder,
}

const wholePercent = 100 * units.OnePercent

// rampCause is one ramp of one class from one set of lines.
type rampCause struct {
	prio             int
	class            string
	ecn              intent.ECN
	kmin, kmax, pmax diag.Pos
	active           bool
}

func runECNOrder(p *Pass) {
	var ramps causes[rampCause]
	for _, pl := range p.Places {
		if !pl.Knows(intent.AreaECN) {
			continue
		}
		for i, q := range pl.Policy.Queues {
			e := q.ECN
			if !e.On {
				continue
			}
			at := func(suffix string) diag.Pos { return pl.Origin(perQueue("ecn.", i, suffix)).At() }
			ramps.add(rampCause{i, class(pl.Device, i), e, at(".kmin"), at(".kmax"), at(".pmax"), pl.Active}, pl)
		}
	}
	common := commonRamps(p)
	for c, w := range ramps.all {
		if soundRamp(c.ecn) {
			continue
		}
		at := len(p.found)
		reportRamp(p, c, w)
		if m, ok := common[alike(&w.first, c.prio)]; ok { // any other sound ramp would be an odd one
			for i := range p.found[at:] {
				p.found[at+i].Hint = setRamp(c.ecn, m.ecn) + " as on the other ports"
			}
		}
	}
}

// sortRamp says how kmin comes below kmax, by so much as the chip of pl needs.
func sortRamp(e intent.ECN, pl *Place) string {
	hint := fmt.Sprintf("raise kmax to at least %v", onStep(pl, derive.Add(e.Kmin, room(pl)), true))
	if most := e.Kmax - room(pl); most > 0 {
		hint += fmt.Sprintf(", or lower kmin to at most %v", onStep(pl, most, false))
	}
	return hint
}

// reportRamp says each thing that is wrong with one ramp. kmin equal to kmax is sound.
func reportRamp(p *Pass, c rampCause, w *where) {
	o := func(suffix string) diag.Related {
		return setHere(suffix, w.first.Origin(perQueue("ecn.", c.prio, "."+suffix)))
	}
	e, start := c.ecn, start(&w.first)
	switch {
	case e.Kmin > e.Kmax && e.Kmax > 0:
		p.report(w, diag.Finding{
			Pos: cmp.Or(c.kmin, c.kmax), Related: []diag.Related{o("kmin"), o("kmax")},
			Msg:  fmt.Sprintf("kmin %v of %s is above its kmax %v on %s", e.Kmin, c.class, e.Kmax, w),
			Hint: sortRamp(e, &w.first),
		})
	case e.Kmin <= 0 && e.Kmax > 0:
		hint := fmt.Sprintf("set kmin to %v", start.Kmin)
		if e.Kmax < start.Kmin {
			hint = fmt.Sprintf("set kmin to %v and kmax to %v", start.Kmin, start.Kmax)
		}
		p.report(w, diag.Finding{
			Pos: cmp.Or(c.kmin, c.kmax), Related: []diag.Related{o("kmin"), o("kmax")},
			Msg:  fmt.Sprintf("kmin of %s is %v with kmax %v on %s: even an empty queue would mark", c.class, e.Kmin, e.Kmax, w),
			Hint: hint,
		})
	case e.Kmax <= 0:
		kmin := e.Kmin
		if kmin <= 0 {
			kmin = start.Kmin
		}
		hint := fmt.Sprintf("set kmax to %v", onStep(&w.first, max(start.Kmax, derive.Add(kmin, room(&w.first))), true))
		if e.Kmin <= 0 {
			hint = fmt.Sprintf("set kmin to %v and kmax to %v", start.Kmin, start.Kmax)
		}
		p.report(w, diag.Finding{
			Pos: cmp.Or(c.kmax, c.kmin), Related: []diag.Related{o("kmin"), o("kmax")},
			Msg:  fmt.Sprintf("kmax of %s is %v with kmin %v on %s: there is no ramp", c.class, e.Kmax, e.Kmin, w),
			Hint: hint,
		})
	}
	pmax := diag.Finding{Pos: cmp.Or(c.pmax, c.kmax, c.kmin), Related: []diag.Related{o("pmax")}}
	switch {
	case e.Pmax <= 0:
		pmax.Msg = fmt.Sprintf("pmax of %s is %v on %s: nothing is marked between kmin %v and kmax %v", c.class, e.Pmax, w, e.Kmin, e.Kmax)
		pmax.Hint = fmt.Sprintf("set pmax to %v", start.Pmax)
	case e.Pmax > wholePercent:
		pmax.Msg = fmt.Sprintf("pmax %v of %s is above %v on %s", e.Pmax, c.class, wholePercent, w)
		pmax.Hint = fmt.Sprintf("lower pmax to at most %v", wholePercent)
	default:
		return
	}
	p.report(w, pmax)
}
