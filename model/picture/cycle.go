package picture

import (
	"math"
	"strings"

	"github.com/fabricctl/fabricctl/model/intent"
)

// findHops finds the edges that the cycle goes over.
func (d *drawing) findHops() {
	at := map[string]int{}
	for i := range d.net.Devices {
		at[d.net.Devices[i].Name] = i
	}
	for n, h := range d.sheet.Cycle {
		i, ok := at[h.Device]
		if !ok {
			continue
		}
		p := d.net.Devices[i].Port(h.Port)
		if p == nil {
			continue
		}
		for j := range d.edges {
			if down, ok := d.carries(&d.edges[j], i, p); ok {
				d.hops = append(d.hops, hop{j, down, n + 1})
				break
			}
		}
	}
}

// carries reports whether an edge has the link of a port, and whether it leaves the device against the edge's direction.
func (d *drawing) carries(e *edge, device int, p *intent.Port) (down, ok bool) {
	name := d.net.Devices[device].Name
	for _, w := range e.wires {
		for _, l := range d.wires[w].links {
			switch {
			case l.A.Device == name && l.A.Port == p.Name:
				return false, true
			case l.B.Device == name && l.B.Port == p.Name:
				return true, true
			}
		}
	}
	return false, false
}

// dim is the class of what a picture of a cycle shows in grey.
func (d *drawing) dim(beside bool) string {
	if d.sheet.Cycle != nil && beside {
		return " dim"
	}
	return ""
}

func (d *drawing) inCycle(box int) bool {
	for _, h := range d.hops {
		if e := d.edges[h.edge]; e.low == box || e.high == box {
			return true
		}
	}
	return false
}

// cycle draws the hops: strong, with an arrow and a number each, to the right of their way, so that two directions of one
// link are two lines.
func (d *drawing) cycle() []*elem {
	var lines, marks []*elem
	before := map[[2]int]int{} // hops over an edge in one direction
	for _, h := range d.hops {
		e := d.edges[h.edge]
		a, b := e.from, e.to
		if h.down {
			a, b = b, a
		}
		k := [2]int{h.edge, bit(h.down)}
		aside := 4 + 9*before[k]
		before[k]++
		g := inside("hop").add(tip(itoa(h.label) + ": " + d.hopText(d.sheet.Cycle[h.label-1])))
		var at func(t float64) (x, y float64)
		if e.via != (point{}) {
			up := -aside
			if h.down {
				up = aside
			}
			o := point{0, up}
			a, b = a.plus(o), b.plus(o)
			c := e.via.plus(o)
			g.add(curve("cycle", a, c, b))
			at = func(t float64) (x, y float64) {
				u := 1 - t
				return u*u*float64(a.x) + 2*u*t*float64(c.x) + t*t*float64(b.x), u*u*float64(a.y) + 2*u*t*float64(c.y) + t*t*float64(b.y)
			}
		} else {
			o := sidestep(a, b, aside)
			a, b = a.plus(o), b.plus(o)
			g.add(line("cycle", a, b))
			at = func(t float64) (x, y float64) {
				return float64(a.x) + t*float64(b.x-a.x), float64(a.y) + t*float64(b.y-a.y)
			}
		}
		g.add(arrow(at, 0.75))
		lines = append(lines, g)
		part := 0.28 // not in the middle, where ways cross
		if e.via != (point{}) {
			part = 0.45 // but near the top, where arcs are apart
		}
		x, y := at(part)
		p := point{int(math.Round(x)), int(math.Round(y))}
		marks = append(marks, circle("number", p.x, p.y, 10), middle("numbertext", p.x, p.y+4, itoa(h.label)))
	}
	return append(lines, marks...)
}

// arrow is the head of an arrow at a part of a way.
func arrow(at func(float64) (x, y float64), t float64) *elem {
	x, y := at(t)
	x0, y0 := at(t - 0.02)
	l := math.Hypot(x-x0, y-y0)
	if l == 0 {
		return nil
	}
	ux, uy := (x-x0)/l, (y-y0)/l
	p := func(along, aside float64) point {
		return point{int(math.Round(x + along*ux - aside*uy)), int(math.Round(y + along*uy + aside*ux))}
	}
	return polygon("arrow", p(10, 0), p(-8, 8), p(-8, -8))
}

// hopText is "leaf1:up-1 → spine1:down-1, priority 3 training".
func (d *drawing) hopText(h Hop) string {
	s := h.Device + ":" + h.Port
	if dev := d.net.Device(h.Device); dev != nil {
		if p := dev.Port(h.Port); p != nil && p.Peer != "" {
			s += " → " + p.Peer + ":" + p.PeerPort
		}
	}
	return s + strings.TrimRight(", priority "+itoa(h.Priority)+" "+h.Class, " ")
}
