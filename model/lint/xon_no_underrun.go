package lint

import (
	"fmt"

	"github.com/fabricctl/fabricctl/model/derive"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/units"
)

var xonNoUnderrun = Rule{
	ID:       "xon-no-underrun",
	Title:    "a queue does not run empty before a paused neighbour sends again",
	Severity: diag.Warning,
	Areas:    intent.AreaSet(intent.AreaBuffer),
	Run:      runXonNoUnderrun,
}

// underrun is a point of resumption that is too low.
type underrun struct {
	prio         int
	resume, need units.Bytes
	link         derive.Link
	line         diag.Pos
	active       bool
}

func runXonNoUnderrun(p *Pass) {
	var bad causes[underrun]
	for in := range p.ingresses {
		need := needs(&in.Place)
		l, ok := link(need)
		resume, known := resumePoint(in)
		if !ok || !known || !in.sure || publishedXon(need, in.buffer) {
			continue
		}
		least := derive.XonMin(l, l.Speed, derive.StandardDelays(l.Speed)).Total
		if resume < least {
			k := underrun{in.prio, resume, least, l, in.place("xon"), in.Active}
			bad.add(k, in.Place)
		}
	}
	for k, w := range bad.all {
		in := ingressAt(w.first, k.prio)
		p.report(w, diag.Finding{
			Pos: k.line, Related: []diag.Related{setHere("xoff", in.Origin(perQueue("xoff.", in.prio, "")))},
			Msg: fmt.Sprintf("xon %s of %s on %s is below the %s that drain before a neighbour that answers slowly fills the queue again %s: the link idles after each pause",
				k.resume, in.class(), w, k.need, route(k.link)),
			Hint: fmt.Sprintf("raise xon to at least %s, or acknowledge %s with the reason", derive.RoundUp(k.need, in.Device.Profile.Cell), p.rule.ID),
		})
	}
}

// resumePoint is what a group holds when its neighbour may send again: xon, or so much below the threshold of a lone group
// where that is more. False when that is not known.
func resumePoint(in ingress) (units.Bytes, bool) {
	b := in.buffer
	if b.XonOffset == 0 {
		return b.Xon, b.Xon > 0
	}
	at, ok := intent.PausePoint(b, in.Device.Pools, 1)
	return max(b.Xon, at.Each-b.XonOffset), ok
}

// publishedXon reports whether b resumes where the platform's own table says for this link. Its makers count on less time
// than the standard lets a neighbour take.
func publishedXon(need intent.Ingress, b intent.Buffer) bool {
	row, _, ok := need.Platform.HeadroomAt(need.Speed, need.Cable)
	if ok && row.Xon == b.Xon && row.XonOffset == b.XonOffset {
		return true
	}
	c, ok := intent.AutoHeadroom(need) // the makers' formula
	return ok && c.Xon > 0 && c.Xon == b.Xon && b.XonOffset == 0
}
