package lint

import (
	"fmt"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
)

var border = Rule{
	ID:       "border",
	Title:    "lossless ends at the border, on both sides of it",
	Severity: diag.Error,
	Areas:    intent.AreaSet(intent.AreaPFC, intent.AreaMaps),
	Run:      runBorder,
}

// openBorder is a way in which lossless crosses a border. Peer is the other end of the first link where that is the one
// that is wrong.
type openBorder struct {
	lossless uint8 // with PFC across
	inside   uint8 // lossless inside, and reached from outside
	peer     bool
	line     diag.Pos
	active   bool
}

func runBorder(p *Pass) {
	inside := losslessInside(p)
	var bad causes[openBorder]
	for _, pl := range p.Places {
		if pl.Device.Host || pl.Port.Role != "border" {
			continue
		}
		line := pl.Port.RoleAt.At()
		if l := losslessBits(pl.Policy); l != 0 && pl.Knows(intent.AreaPFC) {
			bad.add(openBorder{lossless: l, line: line, active: pl.Active}, pl)
			continue
		}
		if !pl.Knows(intent.AreaMaps) || pl.Policy.Trust != intent.TrustDSCP {
			continue
		}
		var reached uint8
		for _, tc := range pl.Policy.DSCP {
			if tc < 8 {
				reached |= 1 << tc
			}
		}
		if reached &= inside; reached != 0 {
			bad.add(openBorder{inside: reached, line: line, active: pl.Active}, pl)
		}
	}
	first := map[openBorder]Link{}
	for _, l := range p.Links {
		if l.B.Port.Role == "border" {
			l.A, l.B = l.B, l.A
		}
		prios := losslessBits(l.B.Policy)
		if l.A.Port.Role != "border" || l.B.Port.Role == "border" || l.B.Device.Host || prios == 0 || !l.B.Knows(intent.AreaPFC) {
			continue
		}
		k := openBorder{lossless: prios, peer: true, line: l.A.Port.RoleAt.At(), active: l.A.Active && l.B.Active}
		if _, seen := first[k]; !seen {
			first[k] = l
		}
		l.B.Active = k.active
		bad.add(k, l.B)
	}
	for k, w := range bad.all {
		p.report(w, k.finding(w, first[k]))
	}
}

func (k openBorder) finding(w *where, l Link) diag.Finding {
	f := diag.Finding{Pos: k.line}
	switch {
	case k.peer:
		f.Msg = fmt.Sprintf("%s is a border port, but %s at the other end pauses for %s: whoever pauses there stops the fabric", l.A, w, priorities(k.lossless))
		f.Hint = fmt.Sprintf("give %s role: border too", w)
	case k.lossless != 0:
		f.Msg = fmt.Sprintf("%s is a border port and pauses for %s: a pause from outside stops the fabric", w, priorities(k.lossless))
		f.Hint = fmt.Sprintf("switch PFC off on %s", w)
	default:
		f.Severity = diag.Warning
		var dscp []int
		for d, tc := range w.first.Policy.DSCP {
			if tc < 8 && k.inside&(1<<tc) != 0 {
				dscp = append(dscp, d)
			}
		}
		f.Msg = fmt.Sprintf("what enters at border port %s with dscp %s joins lossless %s: it cannot be paused there, and fills buffers that the fabric then pauses for",
			w, intent.Ranges(dscp), priorities(k.inside))
		f.Hint = "re-mark it at the other side or by a filter on the port, and acknowledge border with that reason"
	}
	return f
}

// losslessInside are the priorities that are lossless on some port that is not at the border.
func losslessInside(p *Pass) (m uint8) {
	for _, pl := range p.Places {
		if !pl.Device.Host && pl.Port.Role != "border" && pl.Knows(intent.AreaPFC) {
			m |= losslessBits(pl.Policy)
		}
	}
	return m
}
