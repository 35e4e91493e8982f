package lint

import (
	"fmt"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
)

var pfcNotGlobalPause = Rule{
	ID:       "pfc-not-global-pause",
	Title:    "802.3x link pause is off where PFC is on",
	Severity: diag.Error,
	Areas:    intent.AreaSet(intent.AreaPFC),
	Run:      runPFCNotGlobalPause,
}

// bothPauses is link pause beside lossless priorities.
type bothPauses struct {
	pause    intent.Pause
	lossless uint8
	line     diag.Pos
	active   bool
}

func runPFCNotGlobalPause(p *Pass) {
	var bad causes[bothPauses]
	for _, pl := range p.Places {
		lossless := losslessBits(pl.Policy)
		if pl.Knows(intent.AreaPFC) && lossless != 0 && pl.Policy.Pause != (intent.Pause{}) {
			bad.add(bothPauses{pl.Policy.Pause, lossless, pl.Origin("pause").At(), pl.Active}, pl)
		}
	}
	for c, w := range bad.all {
		p.report(w, diag.Finding{
			Pos: c.line,
			Msg: fmt.Sprintf("802.3x link pause (%s) is on beside PFC for %s on %s: it stops all priorities at once, notifications too",
				c.pause, priorities(c.lossless), w),
			Hint: fmt.Sprintf("switch link pause off on %s", w),
		})
	}
}
