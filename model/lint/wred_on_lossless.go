package lint

import (
	"fmt"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
)

var wredOnLossless = Rule{
	ID:       "wred-on-lossless",
	Title:    "no lossless queue drops early",
	Severity: diag.Error,
	Areas:    intent.AreaSet(intent.AreaPFC, intent.AreaECN),
	Run:      runWREDOnLossless,
}

// dropping is a lossless priority whose queue drops by WRED.
type dropping struct {
	prio   int
	class  string
	ecn    intent.ECN
	line   diag.Pos
	active bool
}

func runWREDOnLossless(p *Pass) {
	var bad causes[dropping]
	for _, pl := range p.Places {
		if !pl.Knows(intent.AreaPFC) || !pl.Knows(intent.AreaECN) {
			continue
		}
		for i, q := range pl.Policy.Queues {
			if q.Lossless && q.Drop {
				bad.add(dropping{i, class(pl.Device, i), q.ECN, pl.Origin(perQueue("lossless.", i, "")).At(), pl.Active}, pl)
			}
		}
	}
	for c, w := range bad.all {
		what := "its WRED profile does not mark"
		if c.ecn.On {
			what = fmt.Sprintf("its WRED profile drops between %v and %v", c.ecn.Kmin, c.ecn.Kmax)
		}
		p.report(w, diag.Finding{
			Pos:  c.line,
			Msg:  fmt.Sprintf("%s is lossless, but queue %d drops packets early on %s: %s", c.class, c.prio, w, what),
			Hint: fmt.Sprintf("turn on ECN in the profile of queue %d on %s, or take the profile off", c.prio, w),
		})
	}
}
