package lint

import (
	"fmt"
	"math/bits"
	"strings"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
)

var pfcPrioCount = Rule{
	ID:       "pfc-prio-count",
	Title:    "at most two lossless priorities",
	Severity: diag.Warning,
	Run:      runPFCPrioCount,
}

// mostLossless is how many lossless priorities large fabrics run with.
const mostLossless = 2

// manyLossless is a set of lossless priorities; line is that of the first one too many.
type manyLossless struct {
	prios  uint8
	line   diag.Pos
	active bool
}

func runPFCPrioCount(p *Pass) {
	var bad causes[manyLossless]
	for _, pl := range p.Places {
		if !pl.Knows(intent.AreaPFC) {
			continue
		}
		if l := pl.Policy.Lossless(); len(l) > mostLossless {
			bad.add(manyLossless{losslessBits(pl.Policy), pl.Origin(perQueue("lossless.", l[mostLossless], "")).At(), pl.Active}, pl)
		}
	}
	for c, w := range bad.all {
		var names []string
		for _, i := range w.first.Policy.Lossless() {
			names = append(names, class(w.first.Device, i))
		}
		n := bits.OnesCount8(c.prios)
		p.report(w.first, diag.Finding{
			Pos: c.line,
			Msg: fmt.Sprintf("%d lossless priorities on %s, more than %d (%s): each takes headroom of its own on every port",
				n, w, mostLossless, strings.Join(names, ", ")),
			Hint: fmt.Sprintf("make %s of them lossy, or acknowledge %s with the reason", plural(n-mostLossless, "class", "classes"), p.rule.ID),
		})
	}
}
