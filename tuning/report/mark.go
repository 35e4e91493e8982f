package report

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// marked reports whether a chart has points or places.
func (c Chart) marked() bool {
	return len(c.Places) > 0 || slices.ContainsFunc(c.Panels, func(p Panel) bool { return len(p.Marks) > 0 })
}

// marks draws points of place k among the names of their panel: intervals, the thin line, and then the points. Points that fall onto
// one another are drawn once.
func (d *drawing) marks(m Marks, k int, s scale, top float64) {
	line := colour(k)
	seen := map[[2]int]bool{}
	var dots []dot
	var joined strings.Builder
	pen := "M"
	for i, x := range m.X[:min(len(m.X), len(m.Y))] {
		y := m.Y[i]
		if !drawable(x, d.LogX) || !drawable(y, s.log) {
			pen = "M"
			continue
		}
		at := dot{d.atX(x), top + d.plot - s.place(y, d.plot)}
		joined.WriteString(pen + num(at.x) + " " + num(at.y))
		pen = "L"
		pixel := [2]int{int(math.Round(at.x)), int(math.Round(at.y))}
		if seen[pixel] {
			continue
		}
		seen[pixel] = true
		d.whisker(m, i, line, at, s, top)
		dots = append(dots, at)
	}
	if m.Joined && len(dots) > 1 {
		d.empty("path", "class", "data thin "+line, "d", joined.String())
	}
	for _, at := range dots {
		d.glyph(k, m.Big, at.x, at.y)
	}
}

// whisker draws the interval of a point, as far as it is in the picture.
func (d *drawing) whisker(m Marks, i int, class string, at dot, s scale, top float64) {
	if i >= len(m.Low) || i >= len(m.High) || math.IsNaN(m.Low[i]) || math.IsNaN(m.High[i]) {
		return
	}
	end := func(v float64) (float64, bool) {
		switch {
		case v < s.lo || s.log && v <= 0:
			return top + d.plot, false
		case v > s.hi:
			return top, false
		}
		return top + d.plot - s.place(v, d.plot), true
	}
	low, isLow := end(m.Low[i])
	high, isHigh := end(m.High[i])
	class = "whisker " + class
	d.line(class, at.x, low, at.x, high)
	if isLow {
		d.line(class, at.x-3, low, at.x+3, low)
	}
	if isHigh {
		d.line(class, at.x-3, high, at.x+3, high)
	}
}

// glyph draws a point of place k among the names of its panel: forms differ too, for who tells no colours apart.
func (d *drawing) glyph(k int, big bool, x, y float64) {
	r, class := 3.2, "mark m"+strconv.Itoa(k%colours)
	if big {
		r = 5.5
	}
	var way []dot
	switch k % 4 {
	case 0: // a circle
		d.empty("circle", "class", class, "cx", num(x), "cy", num(y), "r", num(r))
		return
	case 1: // a square that stands on a corner
		way = []dot{{0, -1.35}, {1.35, 0}, {0, 1.35}, {-1.35, 0}}
	case 2: // a triangle
		way = []dot{{0, -1.3}, {1.25, .95}, {-1.25, .95}}
	case 3: // a square
		way = []dot{{-1, -1}, {1, -1}, {1, 1}, {-1, 1}}
	}
	var b strings.Builder
	pen := "M"
	for _, p := range way {
		b.WriteString(pen + num(x+p.x*r) + " " + num(y+p.y*r))
		pen = "L"
	}
	d.empty("path", "class", class, "d", b.String()+"Z")
}

// levelNames writes the names of levels above their lines, the lower ones out of the way of the higher.
func (d *drawing) levelNames(p *Panel, s scale, shown []Level, top float64) {
	free := top + 11
	for _, l := range slices.Backward(shown) {
		y := max(top+d.plot-s.place(l.Y, d.plot)-3, free)
		text := cut(l.Name+" "+p.Y.Of.text(l.Y), perLine-10)
		need := float64(columns(text)) * charWide
		at, class := d.roomAt(p, s, top, y, need)
		d.text(class, at, y, text)
		free = y + 13
	}
}

// roomAt is where a text of a width is in no point's way, and the class that has it there: at the right, or at the left, or between them. Where all
// is full it is at the right.
func (d *drawing) roomAt(p *Panel, s scale, top, y, need float64) (x float64, class string) {
	const parts = 12
	left, right := leftOf+4, wide-rightOf-4
	if !d.covered(p, s, top, right-need, right, y) {
		return right, "levelname end"
	}
	for i := range parts {
		if x := left + float64((right-need-left)*float64(i)/parts); !d.covered(p, s, top, x, x+need, y) {
			return x, "levelname"
		}
	}
	return right, "levelname end"
}

// covered reports whether a place, a point or its interval, or the line through points is where a line of text from column x0 to x1 stands.
func (d *drawing) covered(p *Panel, s scale, top, x0, x1, y float64) bool {
	const ascent, room = 12, 5
	hit := func(from, to dot) bool { // a line between two points, from the left to the right
		if from.x > to.x {
			from, to = to, from
		}
		if to.x < x0-room || from.x > x1+room {
			return false
		}
		at := func(x float64) float64 {
			if x = min(max(x, from.x), to.x); to.x > from.x {
				return from.y + float64((to.y-from.y)*(x-from.x))/(to.x-from.x)
			}
			return from.y
		}
		ys := []float64{at(x0 - room), at(x1 + room)}
		if from.x == to.x {
			ys = []float64{from.y, to.y}
		}
		return slices.Min(ys)-room < y && slices.Max(ys)+room > y-ascent
	}
	for _, at := range d.Places {
		if x := d.atX(at.X); drawable(at.X, d.LogX) && x > x0-room && x < x1+room {
			return true
		}
	}
	for _, m := range p.Marks {
		var last *dot
		for i, x := range m.X[:min(len(m.X), len(m.Y))] {
			if !drawable(x, d.LogX) || !drawable(m.Y[i], s.log) {
				last = nil
				continue
			}
			to := func(v float64) dot { return dot{d.atX(x), top + d.plot - s.place(v, d.plot)} }
			here := to(m.Y[i])
			low, high := here, here
			if i < len(m.Low) && i < len(m.High) && drawable(m.Low[i], s.log) && drawable(m.High[i], s.log) {
				low, high = to(m.Low[i]), to(m.High[i])
			}
			if hit(low, high) || m.Joined && last != nil && hit(*last, here) {
				return true
			}
			last = &here
		}
	}
	return false
}
