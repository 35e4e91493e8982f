package lint

import (
	"cmp"
	"fmt"

	"github.com/fabricctl/fabricctl/model/derive"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/units"
)

var pmaxSufficient = Rule{
	ID:       "pmax-sufficient",
	Title:    "pmax is enough for the flows that share a port",
	Severity: diag.Warning,
	Areas:    intent.AreaSet(intent.AreaECN),
	Run:      runPmaxSufficient,
}

// weakRamp is a pmax that so many flows need more of.
type weakRamp struct {
	prio   int
	class  string
	pmax   units.Percent
	line   diag.Pos
	load   load
	active bool
}

func runPmaxSufficient(p *Pass) {
	type point struct {
		speed units.BitRate
		flows int
	}
	need := map[point]units.Percent{}
	var bad causes[weakRamp]
	slowest := map[weakRamp]units.BitRate{} // which needs most
	for _, r := range p.ramps() {
		l := p.load(r.Device, r.prio)
		at := point{r.Port.Speed, l.fanIn * l.flows}
		if _, known := need[at]; !known {
			need[at] = 0 // where there is no fixed point
			if x, ok := derive.FixedPointOf(derive.PaperDCQCN(), at.speed, at.flows); ok {
				need[at] = x.PmaxNeeded()
			}
		}
		if r.ecn.Pmax < need[at] {
			k := weakRamp{r.prio, r.class, r.ecn.Pmax, r.lines().pmax, l, r.Active}
			bad.add(k, r.Place)
			if v, known := slowest[k]; !known || at.speed < v {
				slowest[k] = at.speed
			}
		}
	}
	for k, w := range bad.all {
		speed, flows := slowest[k], k.load.fanIn*k.load.flows
		needed := need[point{speed, flows}]
		fanInLine, flowsLine := k.load.related()
		p.report(w, diag.Finding{
			Pos: cmp.Or(k.line, fanInLine.Pos, flowsLine.Pos), Related: []diag.Related{fanInLine, flowsLine},
			Msg: fmt.Sprintf("pmax %v of %s is too little for %d flows (fan-in %d, %d each) at %v on %s: DCQCN comes to rest where %v is marked, so the queue leaves the ramp and swings around kmax",
				k.pmax, k.class, flows, k.load.fanIn, k.load.flows, speed, w, needed),
			// More than is needed, since no switch takes a fraction of a percent.
			Hint: fmt.Sprintf("raise pmax to at least %v, or acknowledge %s with the reason", upToPercent(needed), p.rule.ID),
		})
	}
}

// upToPercent is v in whole percent, rounded up.
func upToPercent(v units.Percent) units.Percent {
	return (v + units.OnePercent - 1) / units.OnePercent * units.OnePercent
}
