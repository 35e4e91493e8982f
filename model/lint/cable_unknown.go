package lint

import (
	"cmp"
	"fmt"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/units"
)

var cableUnknown = Rule{
	ID:       "cable-unknown",
	Title:    "every lossless link says how long its cable is, and the device is told no less",
	Severity: diag.Error,
	Areas:    intent.AreaSet(intent.AreaBuffer),
	Run:      runCableUnknown,
}

// wrongCable is a lossless link of unknown length, or one that is longer than its device is told.
type wrongCable struct {
	prio       int         // the first lossless one
	asked      units.Bytes // its headroom, where somebody asks for it in bytes
	real, told units.Length
	line       diag.Pos // of a cable that is too long
	active     bool
}

func runCableUnknown(p *Pass) {
	var bad causes[wrongCable]
	for _, pl := range p.Places {
		lossless := pl.Policy.Lossless()
		if pl.Device.Host || pl.Port.Peer == "" || pl.Port.Role == "border" || len(lossless) == 0 || !pl.Knows(intent.AreaPFC) || pl.Port.Manage[intent.AreaBuffer] == intent.Ignore ||
			!pl.Policy.Known.Has(intent.AreaBuffer) && !intent.AreasOf(pl.Device.OS()).Has(intent.AreaBuffer) {
			continue // a wanted buffer is unknown as long as nothing says how long the cable is
		}
		real, told := pl.Port.Cable, pl.Policy.Cable
		if short := real > told && told > 0; short || real == 0 && told == 0 {
			k := wrongCable{prio: lossless[0], real: real, told: told, active: pl.Active}
			if short {
				k.line = p.cableLine(&pl)
			} else if b := pl.Policy.Queues[k.prio].Buffer; b.On && !b.Device {
				k.asked = b.Headroom
			}
			bad.add(k, pl)
		}
	}
	for k, w := range bad.all {
		in, where := ingressAt(w.first, k.prio), w.String()
		if w.ports > 1 {
			where = fmt.Sprintf("%s on %s", diag.Count(w.ports, "port"), w.names())
		}
		f := diag.Finding{Pos: cmp.Or(k.line, p.cableLine(&w.first))}
		switch {
		case k.real > 0:
			f.Msg = fmt.Sprintf("cable %s on %s is longer than the %s that the device is told, from which it makes its headroom", k.real, w, k.told)
			f.Hint = fmt.Sprintf("tell the device %s: own buffer there and apply, or correct cable to %s", k.real, k.told)
		case k.asked > 0: // nothing is made of a length that nobody knows
			f.Severity = diag.Warning
			f.Msg = fmt.Sprintf("no cable is given for %s: nobody can say whether headroom %s of %s is enough there", where, k.asked, in.class())
			f.Hint = "add the length of the link, such as cable: 40m"
		default:
			f.Msg = fmt.Sprintf("no cable is given for %s: %s is lossless there, and nobody knows how much arrives after a pause", where, in.class())
			if v := in.Port.Speed; v > 0 {
				f.Msg += fmt.Sprintf(" (at %s, %s a metre)", v, perMetre(v))
			}
			f.Hint = "add the length of the link, such as cable: 40m"
		}
		p.report(w, f)
	}
}

// cableLine is the line to change for a link's cable: where it is given, else where the link is.
func (p *Pass) cableLine(pl *Place) diag.Pos {
	if q := modelPort(p, pl.Device.Name, pl.Port.Name); q != nil {
		return cmp.Or(q.Cable.Pos(), q.Speed.Pos(), q.From.At())
	}
	return diag.Pos{}
}

// perMetre is what a metre of cable holds both ways, at 5 ns/m: a byte for each 800 Mbps.
func perMetre(speed units.BitRate) units.Bytes { return units.Bytes(speed / (800 * units.Mbps)) }
