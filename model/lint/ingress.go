package lint

import (
	"cmp"
	"fmt"

	"github.com/fabricctl/fabricctl/model/derive"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/units"
)

// What the rules about buffers share: each looks at the lossless priorities of switch ports whose buffer is known.

// ingress is one lossless priority of a place. Buffer is what the hardware makes of what is asked; sure is false where that
// is in a table of the device that nobody here knows.
type ingress struct {
	Place
	prio   int
	buffer intent.Buffer
	sure   bool
}

// ingresses yields each lossless priority whose buffer is known, of ports in use.
func (p *Pass) ingresses(yield func(ingress) bool) {
	for _, pl := range p.Places {
		if pl.Device.Host || !pl.Knows(intent.AreaBuffer) || !pl.Knows(intent.AreaPFC) {
			continue
		}
		for _, prio := range pl.Policy.Lossless() {
			if !yield(ingressAt(pl, prio)) {
				return
			}
		}
	}
}

// ingressAt is one lossless priority of a place.
func ingressAt(pl Place, prio int) ingress {
	b, sure := intent.BufferInEffect(pl.Device, pl.Port, prio)
	return ingress{pl, prio, b, sure}
}

// class names the priority.
func (in ingress) class() string { return class(in.Device, in.prio) }

// at is the origin of a value of the buffer: "headroom", "xoff", "xon".
func (in ingress) at(what string) diag.Pos {
	return in.Origin(perQueue(what+".", in.prio, "")).At()
}

// place is where a value of the buffer is to be changed: its own line, or that which made the priority lossless, where a
// profile or a formula gives the value.
func (in ingress) place(what string) diag.Pos { return cmp.Or(in.at(what), in.at("lossless")) }

// needs is what decides the headroom of a port. The cable is the model's, or where no model has it what the device is told.
func needs(pl *Place) intent.Ingress {
	need := intent.IngressOf(pl.Device, pl.Port)
	need.Cable = cmp.Or(need.Cable, pl.Policy.Cable)
	return need
}

// link is one direction of the cable; false when speed, cable or frames are not known.
func link(need intent.Ingress) (derive.Link, bool) {
	return derive.Link{Speed: need.Speed, Cable: need.Cable, Frame: need.MTU}, need.Speed > 0 && need.Cable > 0 && need.MTU > 0
}

// route says over what: "over 40m at 400Gbps with frames of 9216B".
func route(l derive.Link) string {
	return fmt.Sprintf("over %s at %s with frames of %s", l.Cable, l.Speed, l.Frame)
}

// setHeadroom is what to do about a headroom: to size, or to what auto takes where that is more. Where no line of the
// model gives the headroom, the hint says where it belongs.
func (in ingress) setHeadroom(size units.Bytes) string {
	size = derive.RoundUp(size, in.Device.Profile.Cell)
	if c, ok := intent.AutoHeadroom(needs(&in.Place)); ok {
		size = max(size, c.Bytes)
	}
	if in.at("headroom").IsZero() || in.buffer.Device {
		return fmt.Sprintf("set pfc.headroom of %s to %s", in.class(), size)
	}
	return fmt.Sprintf("raise headroom to at least %s, or set headroom to auto", size)
}

// headroomPlace are the lines that decide a headroom: its own, and those of what it depends on.
func (p *Pass) headroomPlace(in ingress) (at diag.Pos, related []diag.Related) {
	if q := modelPort(p, in.Device.Name, in.Port.Name); q != nil {
		related = append(related, diag.Related{Pos: q.Cable.Pos(), Msg: "cable set here"}, diag.Related{Pos: q.Speed.Pos(), Msg: "speed set here"})
	}
	return in.place("headroom"), append(related, setHere("mtu", in.Origin("mtu")))
}
