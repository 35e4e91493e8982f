package lint

import (
	"cmp"
	"fmt"

	"github.com/fabricctl/fabricctl/model/derive"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/units"
)

var ecnDCTCP = Rule{
	ID:       "ecn-dctcp",
	Title:    "marking leaves a link busy",
	Severity: diag.Warning,
	Areas:    intent.AreaSet(intent.AreaECN),
	Run:      runECNDCTCP,
}

// hastyRamp is a ramp that begins below what a link needs.
type hastyRamp struct {
	prio   int
	class  string
	ecn    intent.ECN
	lines  lines
	active bool
}

func runECNDCTCP(p *Pass) {
	rtt := p.feedback()
	least := map[units.BitRate]units.Bytes{}
	fastest := map[hastyRamp]units.BitRate{}
	var bad causes[hastyRamp]
	for _, r := range p.ramps() {
		speed := r.Port.Speed
		if _, known := least[speed]; !known {
			least[speed] = derive.DCTCPMin(speed, rtt).Up()
		}
		if r.ecn.Kmin < least[speed] {
			k := hastyRamp{r.prio, r.class, r.ecn, r.lines(), r.Active}
			bad.add(k, r.Place)
			fastest[k] = max(fastest[k], speed)
		}
	}
	for k, w := range bad.all {
		speed := fastest[k]
		need := onStep(&w.first, above(least[speed]), true)
		hint := fmt.Sprintf("raise kmin to at least %v", need)
		if least := derive.Add(need, room(&w.first)); k.ecn.Kmax < least {
			hint += fmt.Sprintf(" and kmax to at least %v", onStep(&w.first, above(least), true))
		}
		kmax := w.first.Origin(perQueue("ecn.", k.prio, ".kmax"))
		p.report(w, diag.Finding{
			Pos: cmp.Or(k.lines.kmin, k.lines.kmax), Related: []diag.Related{setHere("kmax", kmax)},
			Msg: fmt.Sprintf("kmin %v of %s is below %s on %s: at %v and a round trip of %v (%v and the cables) senders slow down so far that the link runs empty",
				k.ecn.Kmin, k.class, roughly(least[speed]), w, speed, rtt, base),
			Hint: hint + ", or acknowledge " + p.rule.ID + " with the reason",
		})
	}
}
