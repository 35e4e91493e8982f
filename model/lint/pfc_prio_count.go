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
	Areas:    intent.AreaSet(intent.AreaPFC),
	Run:      runPFCPrioCount,
}

// mostLossless is how many lossless priorities large fabrics run with.
const mostLossless = 2

// manyLossless is a set of lossless priorities; line is that of the first one too many.
type manyLossless struct {
	prios  uint8
	line   diag.Pos
	asic   string // of the switch, "" when not known
	active bool
}

func runPFCPrioCount(p *Pass) {
	var bad causes[manyLossless]
	for _, pl := range p.Places {
		if pl.Device.Host || !pl.Knows(intent.AreaPFC) {
			continue // a host is judged by its NIC (nic-limits)
		}
		most := mostLossless
		if n := pl.Device.Profile.Chip.MaxLossless; n > 0 {
			most = min(most, n)
		}
		if l := pl.Policy.Lossless(); len(l) > most {
			bad.add(manyLossless{losslessBits(pl.Policy), pl.Origin(perQueue("lossless.", l[most], "")).At(), pl.Device.Profile.ASIC, pl.Active}, pl)
		}
	}
	for c, w := range bad.all {
		if p.aboveLimit(c, w) {
			continue
		}
		var names []string
		for _, i := range w.first.Policy.Lossless() {
			names = append(names, class(w.first.Device, i))
		}
		n := bits.OnesCount8(c.prios)
		p.report(w, diag.Finding{
			Pos: c.line,
			Msg: fmt.Sprintf("%d lossless priorities on %s, more than %d (%s): each takes headroom of its own on every port",
				n, w, mostLossless, strings.Join(names, ", ")),
			Hint: fmt.Sprintf("make %s of them lossy, or acknowledge %s with the reason", diag.Plural(n-mostLossless, "class", "classes"), p.rule.ID),
		})
	}
}

// aboveLimit reports priorities that the switch's chip does not have, as an error; false when it has them, or nobody
// knows.
func (p *Pass) aboveLimit(c manyLossless, w *where) bool {
	asic := w.first.Device.Profile.Chip
	n := bits.OnesCount8(c.prios)
	if asic.MaxLossless == 0 || n <= asic.MaxLossless {
		return false
	}
	p.report(w, diag.Finding{
		Severity: diag.Error, Pos: c.line,
		Msg:  fmt.Sprintf("%d lossless priorities on %s, but %s has PFC for %d at once", n, w, asic.Name, asic.MaxLossless),
		Hint: fmt.Sprintf("make %s of them lossy", diag.Plural(n-asic.MaxLossless, "class", "classes")),
	})
	return true
}
