package picture

import (
	"cmp"
	"math"
	"slices"

	"github.com/fabricctl/fabricctl/model/intent"
)

// edge is what is drawn between two boxes for the wires of one strand.
type edge struct {
	low, high int // boxes
	kind      int // strand
	from, to  point
	via       point // where a curve goes; zero for a line
	red       bool  // a finding is about exactly its two devices
	wires     []int
}

// hop is a hop of the cycle as it is drawn.
type hop struct {
	edge  int
	down  bool // against the direction of the edge
	label int
}

// findEdges groups wires by the boxes that they join, and decides where they meet the boxes.
func (d *drawing) findEdges() {
	type key struct{ low, high, kind int }
	index := map[key]int{}
	pairs := d.redPairs()
	for i, w := range d.wires {
		a, b := d.box[w.low], d.box[w.high]
		if a < 0 || b < 0 || a == b {
			continue
		}
		k := key{a, b, d.kindAt[w.strand]}
		j, ok := index[k]
		if !ok {
			j = len(d.edges)
			index[k] = j
			d.edges = append(d.edges, edge{low: a, high: b, kind: k.kind})
		}
		d.edges[j].wires = append(d.edges[j].wires, i)
		d.edges[j].red = d.edges[j].red || pairs[[2]int{min(w.low, w.high), max(w.low, w.high)}]
	}
	d.attach()
}

// redPairs are the pairs of devices that a finding is about, and nothing else.
func (d *drawing) redPairs() map[[2]int]bool {
	at := map[string]int{}
	for i := range d.net.Devices {
		at[d.net.Devices[i].Name] = i
	}
	pairs := map[[2]int]bool{}
	for _, f := range d.sheet.Findings {
		if names := about(f); drawn(f) && len(names) == 2 {
			a, b := at[names[0]], at[names[1]]
			pairs[[2]int{min(a, b), max(a, b)}] = true
		}
	}
	return pairs
}

// attach spreads the ends of edges over the sides of boxes, in the order of what they lead to.
func (d *drawing) attach() {
	type end struct {
		edge   int
		high   bool
		toward int
	}
	above, below := make([][]end, len(d.boxes)), make([][]end, len(d.boxes))
	for i := range d.edges {
		e := &d.edges[i]
		switch lo, hi := d.spots[e.low], d.spots[e.high]; {
		case d.boxes[e.low].tier != d.boxes[e.high].tier:
			above[e.low] = append(above[e.low], end{i, false, hi.x})
			below[e.high] = append(below[e.high], end{i, true, lo.x})
		case d.adjacent(e.low, e.high) && d.sheet.Cycle == nil:
			d.sideways(e)
		default:
			above[e.low] = append(above[e.low], end{i, false, hi.x})
			above[e.high] = append(above[e.high], end{i, true, lo.x})
		}
	}
	for _, side := range []struct {
		ends  [][]end
		lower bool
	}{{above, false}, {below, true}} {
		for b, ends := range side.ends {
			slices.SortStableFunc(ends, func(x, y end) int { return cmp.Or(x.toward-y.toward, d.edges[x.edge].kind-d.edges[y.edge].kind) })
			s := d.spots[b]
			step := min(22, (s.w-20)/max(len(ends), 1))
			for k, x := range ends {
				p := point{s.x + (2*k-len(ends)+1)*step/2, s.y}
				if side.lower {
					p.y += s.h
				}
				if x.high {
					d.edges[x.edge].to = p
				} else {
					d.edges[x.edge].from = p
				}
			}
		}
	}
	for i := range d.edges {
		if e := &d.edges[i]; d.boxes[e.low].tier == d.boxes[e.high].tier && e.from.y == e.to.y && e.via == (point{}) && e.from.y == d.spots[e.low].y {
			e.via = point{(e.from.x + e.to.x) / 2, e.from.y - 2*arcHigh(e.from.x-e.to.x)}
		}
	}
}

// arcHigh is how high a link within a row goes between two ends so far apart: the farther the higher, so that it goes over
// those between.
func arcHigh(apart int) int {
	return min(120, 14+max(apart, -apart)*3/10)
}

// adjacent reports whether two boxes of a row stand side by side.
func (d *drawing) adjacent(a, b int) bool {
	for _, r := range d.rows {
		if i := slices.Index(r.boxes, a); i >= 0 {
			return i+1 < len(r.boxes) && r.boxes[i+1] == b || i > 0 && r.boxes[i-1] == b
		}
	}
	return false
}

// sideways joins two boxes that stand side by side.
func (d *drawing) sideways(e *edge) {
	l, r := d.spots[e.low], d.spots[e.high]
	y := l.y + min(l.h, r.h)/2
	e.from, e.to = point{l.x + l.w/2, y}, point{r.x - r.w/2, y}
	if l.x > r.x {
		e.from, e.to = point{l.x - l.w/2, y}, point{r.x + r.w/2, y}
	}
}

// kindClass is how the links of a strand are drawn.
func (d *drawing) kindClass(k int) string {
	s := d.kinds[k]
	c := "link k" + itoa(k%6)
	if k >= 6 {
		c += " again"
	}
	switch {
	case s.state != intent.Active:
		c += " dashed"
	case s.lossless == "":
		c += " lossy"
	}
	return c
}

// links are the edges, those with findings last.
func (d *drawing) links() []*elem {
	var out, red []*elem
	for i := range d.edges {
		e := &d.edges[i]
		style := d.kindClass(e.kind)
		if e.red {
			style = "link redlink"
		}
		g := inside("edge" + d.dim(true))
		g.add(tip(d.edgeTip(e)))
		g.add(e.strokes(style, d.kinds[e.kind].parallel)...)
		if e.red {
			red = append(red, g)
		} else {
			out = append(out, g)
		}
	}
	return append(out, red...)
}

// strokes draws e as so many parallel links, up to four.
func (e *edge) strokes(style string, n int) []*elem {
	n = min(n, 4)
	out := make([]*elem, n)
	for k := range out {
		out[k] = e.stroke(style, (2*k-n+1)*2)
	}
	return out
}

// stroke draws e, so many pixels to the right of its way.
func (e *edge) stroke(style string, aside int) *elem {
	if e.via != (point{}) {
		up := point{0, -aside}
		return curve(style, e.from.plus(up), e.via.plus(up), e.to.plus(up))
	}
	o := sidestep(e.from, e.to, aside)
	return line(style, e.from.plus(o), e.to.plus(o))
}

func (p point) plus(q point) point { return point{p.x + q.x, p.y + q.y} }

// sidestep is the offset of a line from a to b that is moved n pixels to its right.
func sidestep(a, b point, n int) point {
	dx, dy := float64(b.x-a.x), float64(b.y-a.y)
	l := math.Hypot(dx, dy)
	if l == 0 {
		return point{}
	}
	return point{int(math.Round(-dy / l * float64(n))), int(math.Round(dx / l * float64(n)))}
}

// edgeTip says what an edge stands for, port by port when there are few.
func (d *drawing) edgeTip(e *edge) string {
	s := ""
	n := 0
	for _, w := range e.wires {
		for _, l := range d.wires[w].links {
			if n++; n <= 8 {
				s += l.A.Device + ":" + l.A.Port + " to " + l.B.Device + ":" + l.B.Port + "\n"
			}
		}
	}
	if n > 8 {
		s += "and " + itoa(n-8) + " more\n"
	}
	k := d.kinds[e.kind]
	s += k.speed.String()
	if k.lossless != "" {
		s += ", " + k.lossless
	}
	return s
}

// bonds are rings around the links of a bond, near the host.
func (d *drawing) bonds() []*elem {
	var out []*elem
	for b := range d.boxes {
		left, right, n, y := 0, 0, 0, 0
		for i := range d.edges {
			e := &d.edges[i]
			if e.low != b || !d.kinds[e.kind].bond {
				continue
			}
			if n == 0 || e.from.x < left {
				left = e.from.x
			}
			if n == 0 || e.from.x > right {
				right = e.from.x
			}
			n, y = n+len(e.wires), e.from.y
		}
		if n > 0 {
			out = append(out, inside("edge"+d.dim(true)).add(ellipse("bond", (left+right)/2, y-11, (right-left)/2+9, 5)))
		}
	}
	return out
}
