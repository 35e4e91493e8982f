package lint

import (
	"cmp"
	"fmt"
	"math/bits"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
)

var pfcSymmetry = Rule{
	ID:       "pfc-symmetry",
	Title:    "both ends of a link pause for the same priorities",
	Severity: diag.Error,
	Areas:    intent.AreaSet(intent.AreaPFC),
	Run:      runPFCSymmetry,
}

// oneSided is a kind of link whose ends disagree, written so that the end with fewer lossless priorities comes
// second. Kinds are told apart by the tiers and override sites of both ends.
type oneSided struct {
	more, less         uint8 // lossless priorities of each end
	moreRole, lessRole string
	moreSite, lessSite string
	active             bool
}

func runPFCSymmetry(p *Pass) {
	var bad causes[oneSided]
	first := map[oneSided]Link{}
	for _, l := range p.Links {
		if !l.A.Knows(intent.AreaPFC) || !l.B.Knows(intent.AreaPFC) {
			continue
		}
		a, b := losslessBits(l.A.Policy), losslessBits(l.B.Policy)
		if a == b || (l.A.Port.Role == "border") != (l.B.Port.Role == "border") { // the latter is border's business
			continue
		}
		if bits.OnesCount8(a) < bits.OnesCount8(b) {
			l.A, l.B, a, b = l.B, l.A, b, a
		}
		k := oneSided{
			more: a, less: b, moreRole: l.A.Device.Role, lessRole: l.B.Device.Role,
			moreSite: l.A.Port.Site, lessSite: l.B.Port.Site, active: l.A.Active && l.B.Active,
		}
		if _, seen := first[k]; !seen {
			first[k] = l
		}
		pl := l.B
		pl.Active = k.active
		bad.add(k, pl)
	}
	for k, w := range bad.all {
		reportOneSided(p, k, first[k], w)
	}
}

func reportOneSided(p *Pass, k oneSided, l Link, w *where) {
	missing := k.more &^ k.less
	field := perQueue("lossless.", bits.TrailingZeros8(missing), "")
	msg := fmt.Sprintf("%s pauses for %s, but %s at the other end for %s", l.A, priorities(k.more), l.B, priorities(k.less))
	switch more := w.ports - 1; {
	case more == 1:
		msg += fmt.Sprintf("; 1 more link on %s is the same", w.names())
	case more > 1:
		msg += fmt.Sprintf("; %d more links on %s are the same", more, w.names())
	}
	hint := fmt.Sprintf("make %s lossless on %s too, or on neither end", priorities(missing), w)
	if k.less&^k.more != 0 {
		hint = fmt.Sprintf("make the same priorities lossless on both ends: %s", priorities(k.more|k.less))
	}
	p.report(w, diag.Finding{
		Pos:     cmp.Or(l.A.Origin(field).At(), l.B.Origin(field).At()),
		Related: []diag.Related{setHere("lossless", l.B.Origin(field))},
		Msg:     msg,
		Hint:    hint,
	})
}

func losslessBits(p *intent.Policy) (m uint8) {
	for _, i := range p.Lossless() {
		m |= 1 << i
	}
	return m
}
