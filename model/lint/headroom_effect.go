package lint

import (
	"fmt"
	"slices"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/units"
)

var headroomEffect = Rule{
	ID:       "headroom-effect",
	Title:    "every lossless priority has headroom in effect",
	Severity: diag.Error,
	Areas:    intent.AreaSet(intent.AreaBuffer, intent.AreaPFC),
	Run:      runHeadroomEffect,
}

// without is why a lossless priority has no headroom.
type without struct {
	prio   int
	on     bool // there is a buffer
	device bool // the device fills it in, and its table has no row
	speed  units.BitRate
	told   units.Length // cable that the device is told
	line   diag.Pos
	active bool
}

func runHeadroomEffect(p *Pass) {
	var bad causes[without]
	for in := range p.ingresses {
		unknown := in.Port.Cable == 0 && in.Policy.Cable == 0
		switch {
		case !in.sure || in.buffer.On && in.buffer.Headroom > 0:
			continue
		case unknown && (in.buffer.Device || in.Port.Peer == ""): // cable-unknown, and what no link says anything about
			continue
		case in.Knows(intent.AreaMaps) && !slices.Contains(in.Policy.DSCP[:], uint8(in.prio)): // nothing arrives
			continue
		}
		k := without{prio: in.prio, on: in.buffer.On, device: in.buffer.Device, line: in.at("headroom"), active: in.Active}
		if k.device {
			k.speed, k.told = in.Port.Speed, in.Policy.Cable
		}
		bad.add(k, in.Place)
	}
	for k, w := range bad.all {
		in := ingressAt(w.first, k.prio)
		f := diag.Finding{Msg: k.message(in, w), Hint: k.hint(in)}
		f.Pos, f.Related = p.headroomPlace(in)
		p.report(w, f)
	}
}

func (k without) message(in ingress, w *where) string {
	const lost = "what arrives after a pause is dropped"
	switch {
	case !k.on:
		return fmt.Sprintf("%s is lossless on %s, but its priority group has no lossless buffer: %s", in.class(), w, lost)
	case k.device && k.told == 0:
		return fmt.Sprintf("%s is lossless on %s, but the device is told no cable, and makes no lossless buffer: %s", in.class(), w, lost)
	case k.device:
		return fmt.Sprintf("headroom 0B of %s on %s: the table of %s has no row for %s and %s, and the device then makes no lossless buffer: %s",
			in.class(), w, in.Device.Platform, k.speed, k.told, lost)
	}
	return fmt.Sprintf("headroom 0B of %s on %s: %s", in.class(), w, lost)
}

func (k without) hint(in ingress) string {
	if k.device {
		need := needs(&in.Place)
		if row, _, ok := need.Platform.HeadroomAt(need.Speed, need.Cable); ok {
			return fmt.Sprintf("%s, or tell the device a cable of %s, the next that its table has", in.setHeadroom(0), row.Cable)
		}
	}
	if _, ok := intent.AutoHeadroom(needs(&in.Place)); !ok {
		return "give the link its speed and cable"
	}
	return in.setHeadroom(0)
}
