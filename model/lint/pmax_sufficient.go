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

// weakRamp is a pmax that so many flows at one speed need more of.
type weakRamp struct {
	prio   int
	class  string
	pmax   units.Percent
	line   diag.Pos
	speed  units.BitRate
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
	for _, r := range p.ramps() {
		l := p.load(r.Device, r.prio)
		at := point{r.Port.Speed, l.fanIn * l.flows}
		if _, known := need[at]; !known {
			if x, ok := derive.FixedPointOf(derive.PaperDCQCN(), at.speed, at.flows); ok {
				need[at] = x.PmaxNeeded()
			} else {
				need[at] = 0
			}
		}
		if r.ecn.Pmax < need[at] {
			bad.add(weakRamp{r.prio, r.class, r.ecn.Pmax, r.lines().pmax, at.speed, l, r.Active}, r.Place)
		}
	}
	for k, w := range bad.all {
		needed := need[point{k.speed, k.load.fanIn * k.load.flows}]
		fanIn, flows := k.load.related()
		p.report(w, diag.Finding{
			Pos: cmp.Or(k.line, fanIn.Pos, flows.Pos), Related: []diag.Related{fanIn, flows},
			Msg: fmt.Sprintf("pmax %v of %s is too little for %d flows (fan-in %d, %d each) at %v on %s: DCQCN comes to rest where %v is marked, so the queue leaves the ramp and swings around kmax",
				k.pmax, k.class, k.load.fanIn*k.load.flows, k.load.fanIn, k.load.flows, k.speed, w, needed),
			Hint: fmt.Sprintf("raise pmax to at least %v, or acknowledge %s with the reason", needed, p.rule.ID),
		})
	}
}
