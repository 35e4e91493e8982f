package lint

import (
	"fmt"

	"github.com/fabricctl/fabricctl/model/derive"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/units"
)

var headroomPhys = Rule{
	ID:       "headroom-phys",
	Title:    "headroom holds what arrives after a pause, whatever the neighbour does",
	Severity: diag.Error,
	Areas:    intent.AreaSet(intent.AreaBuffer),
	Run:      runHeadroomPhys,
}

// thin is a headroom below what its link needs.
type thin struct {
	prio           int
	headroom, need units.Bytes
	link           derive.Link
	device         bool // it is the device's own
	line           diag.Pos
	active         bool
}

func runHeadroomPhys(p *Pass) {
	var bad causes[thin]
	for in := range p.ingresses {
		l, ok := link(needs(&in.Place))
		if !ok || !in.sure || in.buffer.Headroom <= 0 {
			continue
		}
		if need := p.asked.physicsMin(l); in.buffer.Headroom < need {
			k := thin{in.prio, in.buffer.Headroom, need, l, in.buffer.Device, in.at("headroom"), in.Active}
			bad.add(k, in.Place)
		}
	}
	for k, w := range bad.all {
		in := ingressAt(w.first, k.prio)
		f := diag.Finding{
			Msg: fmt.Sprintf("headroom %s of %s on %s is below the %s that arrive after a pause %s whatever the neighbour does (physics_min)",
				k.headroom, in.class(), w, k.need, route(k.link)),
			Hint: in.setHeadroom(k.need),
		}
		f.Pos, f.Related = p.headroomPlace(in)
		p.report(w, f)
	}
}
