package lint

import (
	"fmt"
	"strings"

	"github.com/fabricctl/fabricctl/model/derive"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/units"
)

var xonBelowXoff = Rule{
	ID:       "xon-below-xoff",
	Title:    "sending goes on a frame or more below where it was paused",
	Severity: diag.Error,
	Areas:    intent.AreaSet(intent.AreaBuffer),
	Run:      runXonBelowXoff,
}

// mostGroups is how many congested groups a dynamic threshold is judged with: it falls with each.
const mostGroups = 16

// noHysteresis is an xon too close to the pause threshold.
type noHysteresis struct {
	prio             int
	xon, xoff, frame units.Bytes
	alpha            units.Ratio // zero where the threshold is static
	xonAt, xoffAt    diag.Pos
	active           bool
}

func runXonBelowXoff(p *Pass) {
	var bad causes[noHysteresis]
	for in := range p.ingresses {
		b := in.buffer
		at, ok := p.asked.pausePoint(b, in.Device.Pools, mostGroups)
		if !in.sure || !ok || b.Xon <= 0 || at.Each-in.Policy.MTU >= b.Xon {
			continue
		}
		k := noHysteresis{in.prio, b.Xon, at.Each, in.Policy.MTU, b.Alpha, in.place("xon"), in.at("xoff"), in.Active}
		bad.add(k, in.Place)
	}
	for k, w := range bad.all {
		in := ingressAt(w.first, k.prio)
		threshold := k.xoff.String()
		if k.alpha != (units.Ratio{}) {
			threshold = fmt.Sprintf("%s (alpha %s of a %s pool, %d groups congested)", k.xoff, k.alpha, in.Device.Pools.Shared, mostGroups)
		}
		f := diag.Finding{
			Pos: k.xonAt, Related: []diag.Related{setHere("xoff", in.Origin(perQueue("xoff.", in.prio, "")))},
			Msg: fmt.Sprintf("xon %s of %s on %s is not a frame of %s below its pause threshold %s: pause goes on and off with every frame",
				k.xon, in.class(), w, k.frame, threshold),
			Hint: k.hint(in.Device),
		}
		p.report(w, f)
	}
}

func (k noHysteresis) hint(d *intent.Device) string {
	most := k.xoff - k.frame
	var ways []string
	if most > 0 {
		ways = append(ways, fmt.Sprintf("lower xon to at most %s", most))
	}
	if k.alpha == (units.Ratio{}) {
		ways = append(ways, fmt.Sprintf("raise xoff to at least %s", derive.RoundUp(derive.Add(k.xon, k.frame), d.Profile.Cell)))
	} else if a, ok := derive.AlphaNeeded(d.Pools.Shared, derive.Add(k.xon, k.frame), mostGroups); ok {
		ways = append(ways, fmt.Sprintf("raise alpha to at least %s", a))
	}
	return strings.Join(ways, ", or ")
}
