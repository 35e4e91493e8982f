package lint

import (
	"fmt"

	"github.com/fabricctl/fabricctl/model/derive"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
)

var headroomStd = Rule{
	ID:       "headroom-std",
	Title:    "headroom is enough for a neighbour that keeps to the standard, or what the platform's makers publish",
	Severity: diag.Warning,
	Areas:    intent.AreaSet(intent.AreaBuffer),
	Run:      runHeadroomStd,
}

func runHeadroomStd(p *Pass) {
	var bad causes[thin]
	for in := range p.ingresses {
		need := needs(&in.Place)
		l, ok := link(need)
		if !ok || !in.sure || in.buffer.Headroom < p.asked.physicsMin(l) { // which is headroom-phys, or headroom-effect
			continue
		}
		std := p.asked.standardMax(l)
		if row, _, ok := need.Platform.HeadroomAt(need.Speed, need.Cable); ok {
			std = min(std, row.Xoff)
		}
		if in.buffer.Headroom < std {
			k := thin{in.prio, in.buffer.Headroom, std, l, in.buffer.Device, in.at("headroom"), in.Active}
			bad.add(k, in.Place)
		}
	}
	for k, w := range bad.all {
		in := ingressAt(w.first, k.prio)
		f := diag.Finding{
			Msg: fmt.Sprintf("headroom %s of %s on %s is below the %s that %s: a slow neighbour may overrun it",
				k.headroom, in.class(), w, k.need, standard(needs(&in.Place), k)),
			Hint: in.setHeadroom(k.need) + fmt.Sprintf(", or acknowledge %s with the reason", p.rule.ID),
		}
		f.Pos, f.Related = p.headroomPlace(in)
		p.report(w, f)
	}
}

// standard says who asks for what a headroom is below.
func standard(need intent.Ingress, k thin) string {
	if row, exact, ok := need.Platform.HeadroomAt(need.Speed, need.Cable); ok && row.Xoff == k.need {
		what := fmt.Sprintf("the table of %s has for %s and %s", need.Platform.Name, row.Speed, row.Cable)
		if !exact {
			what += fmt.Sprintf(", the next cable to %s", need.Cable)
		}
		return what
	}
	d := derive.StandardDelays(k.link.Speed)
	what := fmt.Sprintf("the standard lets a neighbour need %s (std_max", route(k.link))
	if d.Unverified != "" {
		what += "; " + d.Unverified
	}
	return what + ")"
}
