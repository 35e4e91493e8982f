package lint

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/units"
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
	speeds := map[unmarked]map[units.BitRate]bool{}
	for _, pl := range p.Places {
		if !pl.Knows(intent.AreaPFC) || !pl.Knows(intent.AreaECN) {
			continue
		}
		for i, q := range pl.Policy.Queues {
			if q.Lossless && !q.ECN.On && !q.Drop { // what drops is wred-on-lossless's
				k := unmarked{i, class(pl.Device, i), pl.Origin(perQueue("lossless.", i, "")).At(), pl.Active}
				bad.add(k, pl)
				if speeds[k] == nil {
					speeds[k] = map[units.BitRate]bool{}
				}
				speeds[k][pl.Port.Speed] = true
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
			write := fmt.Sprintf("write %s in place of off (%s)", ramp, label)
			if many := slices.Sorted(maps.Keys(speeds[c])); many[len(many)-1] > mostScale*many[0] { // ecn-scale would not have one ramp for all
				write = fmt.Sprintf("take away ecn: off, and ports of %v and of %v each start with a ramp for their speed", many[0], many[len(many)-1])
			}
			f.Hint = fmt.Sprintf("if PFC alone is meant, acknowledge %s with the reason; if not, %s", p.rule.ID, write)
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
