package lint

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
)

var ecnOnLossless = Rule{
	ID:       "ecn-on-lossless",
	Title:    "every lossless queue marks",
	Severity: diag.Error,
	Areas:    intent.AreaSet(intent.AreaPFC, intent.AreaECN),
	Run:      runECNOnLossless,
}

// unmarked is one lossless class without a ramp.
type unmarked struct {
	prio   int
	class  string
	line   diag.Pos
	active bool
}

func runECNOnLossless(p *Pass) {
	var bad causes[unmarked]
	for _, pl := range p.Places {
		if !pl.Knows(intent.AreaPFC) || !pl.Knows(intent.AreaECN) {
			continue
		}
		for i, q := range pl.Policy.Queues {
			if q.Lossless && !q.ECN.On && !q.Drop { // what drops is wred-on-lossless's
				bad.add(unmarked{i, class(pl.Device, i), pl.Origin(perQueue("lossless.", i, "")).At(), pl.Active}, pl)
			}
		}
	}
	for c, w := range bad.all {
		ramp, label := startingECN(start(&w.first))
		f := diag.Finding{
			Pos:  c.line,
			Msg:  fmt.Sprintf("%s is lossless, but its queue %d has no ecn on %s: pause is the only control", c.class, c.prio, w),
			Hint: fmt.Sprintf("add %s to %s (%s)", ramp, c.class, label),
		}
		if off := ecnOff(p, c.prio); off != nil {
			f.Severity = diag.Warning
			f.Pos = cmp.Or(off.At(), c.line)
			f.Hint = fmt.Sprintf("if PFC alone is meant, acknowledge %s with the reason; if not, write %s in place of off (%s)", p.rule.ID, ramp, label)
		}
		p.report(w, f)
	}
}

// ecnOff is the line of the model that says that priority prio does without ECN; nil when none does.
func ecnOff(p *Pass, prio int) *model.Origin {
	if p.Fabric == nil {
		return nil
	}
	i := slices.IndexFunc(p.Fabric.Classes, func(c model.Class) bool { return int(c.Priority.V) == prio && c.ECNOff.V })
	if i < 0 {
		return nil
	}
	return p.Fabric.Classes[i].ECNOff.From
}
