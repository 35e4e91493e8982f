package lint

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
)

var cnpClass = Rule{
	ID:       "cnp-class",
	Title:    "notifications overtake data: their class is strict and never paused",
	Severity: diag.Error,
	Areas:    intent.AreaSet(intent.AreaPFC, intent.AreaScheduler),
	Run:      runCNPClass,
}

// slowNotice is one way in which congestion notifications are held up.
type slowNotice struct {
	prio   int
	paused bool  // else shared by weight
	weight uint8 // 0 = none given
	line   diag.Pos
	active bool
}

func runCNPClass(p *Pass) {
	var bad causes[slowNotice]
	for _, pl := range p.Places {
		prio := cnpPriority(pl.Device)
		if prio < 0 || pl.Device.Host {
			continue
		}
		q := pl.Policy.Queues[prio]
		at := func(field string) diag.Pos { return pl.Origin(perQueue(field, prio, "")).At() }
		if pl.Knows(intent.AreaPFC) && q.Lossless {
			bad.add(slowNotice{prio: prio, paused: true, line: at("lossless."), active: pl.Active}, pl)
		}
		if pl.Knows(intent.AreaScheduler) && q.Used && !q.Strict { // what an unused queue does is the device's default
			bad.add(slowNotice{prio: prio, weight: q.Weight, line: at("scheduling."), active: pl.Active}, pl)
		}
	}
	for c, w := range bad.all {
		f := diag.Finding{Pos: c.line}
		name := class(w.first.Device, c.prio)
		switch share := w.first.Origin(perQueue("weight.", c.prio, "")); {
		case c.paused:
			f.Msg = fmt.Sprintf("%s carries congestion notifications and is lossless on %s: priority %d can be paused, and then nobody slows down", name, w, c.prio)
			f.Hint = fmt.Sprintf("take priority %d out of the lossless ones on %s", c.prio, w)
		case c.weight == 0:
			f.Msg = fmt.Sprintf("%s carries congestion notifications and is not strict on %s: they wait behind the data of %s", name, w, others(w.first, c.prio))
			f.Hint = fmt.Sprintf("add scheduling: strict to %s", name)
		default:
			f.Msg = fmt.Sprintf("%s carries congestion notifications and has weight %d instead of strict priority on %s: they wait behind the data of %s",
				name, c.weight, w, others(w.first, c.prio))
			f.Hint = fmt.Sprintf("add scheduling: strict to %s in place of its bandwidth", name)
			f.Pos, f.Related = cmp.Or(share.At(), f.Pos), []diag.Related{setHere("priority", w.first.Origin(perQueue("class.", c.prio, "")))}
		}
		p.report(w, f)
	}
}

// cnpPriority is the priority of the class that carries congestion notifications, or -1.
func cnpPriority(d *intent.Device) int {
	if d.CNP == "" {
		return -1
	}
	return slices.Index(d.Classes[:], d.CNP)
}

// others names the used priorities beside prio: "priorities 0,3".
func others(pl Place, prio int) string {
	var m uint8
	for i, q := range pl.Policy.Queues {
		if q.Used && i != prio {
			m |= 1 << i
		}
	}
	return priorities(m)
}
