package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Distances, in units of which the picture is as many wide as a telephone has pixels and a little more; wider screens enlarge it.
const (
	wide      = 480.0
	enlarged  = 640 // the width that is asked for where there is room
	leftOf    = 56.0
	rightOf   = 12.0
	plotHigh  = 132.0
	lineHigh  = 16.0
	charWide  = 7.25 // of the font for text
	swatch    = 16.0
	perLine   = 64 // columns of text
	perTitle  = 50
	farAbove  = 3.0 // times the largest number: from there on a level is not drawn
	mostNames = 12  // in a legend
)

// SVG draws a chart. The same chart gives the same bytes.
func SVG(c Chart) []byte { return c.svg(-1) }

// svg is the chart as a file of its own, or as the picture of a number, from 0, in a page that has the style.
func (c Chart) svg(number int) []byte {
	d := drawing{Chart: c, x: xScale(c)}
	d.head()
	for i := range c.Panels {
		d.panel(&c.Panels[i], i == 0, i == len(c.Panels)-1)
	}
	high := d.y + 8

	var out page
	title, desc := "title", "desc"
	if number >= 0 {
		title, desc = "title"+strconv.Itoa(number), "desc"+strconv.Itoa(number)
	}
	out.open("svg", "xmlns", "http://www.w3.org/2000/svg", "role", "img", "aria-labelledby", title+" "+desc,
		"viewBox", "0 0 "+num(wide)+" "+num(high), "width", strconv.Itoa(enlarged), "height", num(high*enlarged/wide))
	out.say("title", c.Title, "id", title)
	out.say("desc", c.describe(), "id", desc)
	if number < 0 {
		style := look
		if c.marked() {
			style += lookOfMarks
		}
		out.b.WriteString("<style>" + style + "</style>\n")
	}
	out.empty("rect", "class", "bg", "width", num(wide), "height", num(high))
	out.b.Write(d.b.Bytes())
	out.close("svg")
	return out.b.Bytes()
}

// drawing is the body of a chart in the making; y is where it has come to.
type drawing struct {
	Chart
	page
	x    scale
	y    float64
	plot float64 // the height of the panel at hand
}

// xScale is the axis that all panels share: from the first point, or 0 where that is near, to the last.
func xScale(c Chart) scale {
	lo, hi := math.Inf(1), math.Inf(-1)
	reach := func(xs ...float64) {
		for _, x := range xs {
			if drawable(x, c.LogX) {
				lo, hi = min(lo, x), max(hi, x)
			}
		}
	}
	points := false
	for _, p := range c.Panels {
		for _, l := range p.Lines {
			reach(l.X...)
		}
		for _, m := range p.Marks {
			reach(m.X...)
			points = true
		}
	}
	for _, p := range c.Places {
		reach(p.X)
	}
	switch {
	case lo > hi && c.LogX:
		lo, hi = 1, 10
	case lo > hi:
		lo, hi = 0, 0
	case c.LogX:
		lo, hi = lo/margin(lo, hi), hi*margin(lo, hi)
	case points: // none lies on the frame
		room := max((hi-lo)/24, math.Abs(hi)/1e3)
		lo, hi = lo-room, hi+room
	case lo > 0 && lo < hi/20: // the first of many samples
		lo = 0
	}
	if c.LogX {
		return logScaleOf(c.X.Of, lo, hi, 7)
	}
	return scaleOf(c.X.Of, lo, hi, 6, false)
}

// margin is the factor by which a logarithmic axis goes on beyond the first and the last of its numbers.
func margin(lo, hi float64) float64 { return max(math.Pow(hi/lo, 1.0/24), 1.02) }

// head writes title and caption.
func (d *drawing) head() {
	d.y = 8
	for _, s := range wrapped(d.Title, perTitle) {
		d.y += 18
		d.text("title", 8, d.y-4, s)
	}
	for _, s := range wrapped(d.Caption, perLine) {
		d.y += lineHigh
		d.text("caption", 8, d.y-4, s)
	}
}

// panel draws one panel below what there is.
func (d *drawing) panel(p *Panel, first, last bool) {
	s, shown, told := p.scale()
	d.y += lineHigh + 6
	if !first { // below the lowest number of the axis above
		d.y += 5
	}
	d.text("axis", 8, d.y-4, axisText(p.Y.Label, s.unit))
	d.legend(p)
	for _, t := range told {
		for _, line := range wrapped(t, perLine) {
			d.y += lineHigh
			d.text("caption", 8, d.y-4, line)
		}
	}
	if first {
		d.aboveNames()
	}
	d.y += 4
	top, width := d.y, wide-leftOf-rightOf
	d.plot = plotHigh
	if p.Tall {
		d.plot *= 2
	}
	d.spans(top)
	d.grid(s, top)
	for _, l := range shown {
		y := top + d.plot - s.place(l.Y, d.plot)
		d.line("level", leftOf, y, wide-rightOf, y)
	}
	for _, at := range d.Places {
		if drawable(at.X, d.LogX) {
			d.line("place", d.atX(at.X), top, d.atX(at.X), top+d.plot)
		}
	}
	d.levelNames(p, s, shown, top) // below the lines: they hide nothing
	names := p.names()
	for _, l := range p.Lines {
		if path := d.path(l, s, top); path != "" {
			d.empty("path", "class", "data "+colour(slices.Index(names, l.Name)), "d", path)
		}
	}
	for _, m := range p.Marks {
		d.marks(m, slices.Index(names, m.Name), s, top)
	}
	d.empty("rect", "class", "frame", "x", num(leftOf), "y", num(top), "width", num(width), "height", num(d.plot))
	if !slices.ContainsFunc(names, p.drawn) {
		d.text("caption mid", leftOf+width/2, top+d.plot/2, "nothing was measured")
	}
	d.y = top + d.plot
	if last {
		d.feet()
	}
}

// scale is the vertical axis of a panel, which levels it has room for, and what to say of the others.
func (p *Panel) scale() (s scale, shown []Level, told []string) {
	lo, hi := p.reach()
	levels := slices.Clone(p.Levels)
	slices.SortStableFunc(levels, func(a, b Level) int { return cmp.Compare(a.Y, b.Y) })
	least, most := lo, hi*farAbove
	switch {
	case p.LogY:
		least = lo / farAbove
	case p.Free:
		least, most = lo-(hi-lo), hi+(hi-lo)
	case hi == 0 && len(levels) > 0:
		most = levels[0].Y // lines at 0 all along: the lowest level says how far they are from it
	}
	var above, below []string
	for _, l := range levels {
		if !(l.Y <= most && l.Y >= least) || !drawable(l.Y, p.LogY) {
			if text := l.Name + " " + p.Y.Of.text(l.Y); l.Y > hi {
				above = append(above, text)
			} else {
				below = append(below, text)
			}
			continue
		}
		shown, lo, hi = append(shown, l), min(lo, l.Y), max(hi, l.Y)
	}
	if len(above) > 0 {
		told = append(told, "above what is drawn: "+strings.Join(above, ", "))
	}
	if len(below) > 0 {
		told = append(told, "below what is drawn: "+strings.Join(below, ", "))
	}
	if p.LogY {
		f := margin(lo, hi)
		return logScaleOf(p.Y.Of, lo/f, hi*f, 5), shown, told
	}
	if p.Free {
		room := max((hi-lo)/20, math.Abs(hi)/200)
		lo, hi = lo-room, hi+room
	}
	return scaleOf(p.Y.Of, lo, hi, 4, true), shown, told
}

// reach is how far the numbers of a panel go.
func (p *Panel) reach() (lo, hi float64) {
	lo, hi = math.Inf(1), math.Inf(-1)
	see := func(ys []float64) {
		for _, y := range ys {
			if drawable(y, p.LogY) {
				lo, hi = min(lo, y), max(hi, y)
			}
		}
	}
	for _, l := range p.Lines {
		see(l.Y)
	}
	for _, m := range p.Marks {
		see(m.Y)
	}
	least, most := p.beyond(lo, hi)
	clip := func(ys []float64) {
		for _, y := range ys {
			if drawable(y, p.LogY) {
				see([]float64{min(max(y, least), most)})
			}
		}
	}
	for _, m := range p.Marks {
		clip(m.Low)
		clip(m.High)
	}
	switch {
	case lo > hi && p.LogY:
		return 1, 10
	case lo > hi:
		return 0, 0
	case p.Free, p.LogY:
		return lo, hi
	}
	return min(lo, 0), max(hi, 0)
}

// beyond is how far intervals may carry an axis beyond points from lo to hi: as far again, or as far as those of usual length go. One of few runs may
// have nearly no end, and is not what the picture is about.
func (p *Panel) beyond(lo, hi float64) (least, most float64) {
	at, back := func(v float64) float64 { return v }, func(v float64) float64 { return v }
	if p.LogY {
		at, back = math.Log, math.Exp
	}
	var long []float64
	for _, m := range p.Marks {
		for i := range m.Low[:min(len(m.Low), len(m.High))] {
			if drawable(m.Low[i], p.LogY) && drawable(m.High[i], p.LogY) {
				long = append(long, at(m.High[i])-at(m.Low[i]))
			}
		}
	}
	room := 0.0
	if lo < hi {
		room = at(hi) - at(lo)
	}
	if len(long) > 0 {
		slices.Sort(long)
		room = max(room, long[(len(long)-1)/2])
	}
	return back(at(lo) - room), back(at(hi) + room)
}

// drawn reports whether a panel has a point of that name.
func (p *Panel) drawn(name string) bool {
	return slices.ContainsFunc(p.Lines, func(l Line) bool { return l.Name == name && slices.ContainsFunc(l.Y, finite) }) ||
		slices.ContainsFunc(p.Marks, func(m Marks) bool { return m.Name == name && slices.ContainsFunc(m.Y, finite) })
}

// names are those of the lines and then of the marks, in their order, each once.
func (p *Panel) names() []string {
	var names []string
	add := func(name string) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, l := range p.Lines {
		add(l.Name)
	}
	for _, m := range p.Marks {
		add(m.Name)
	}
	return names
}

// legend writes the names of the lines with their colours.
func (d *drawing) legend(p *Panel) {
	names := p.names()
	x := 8.0
	d.y += lineHigh
	entry := func(name string, k int) {
		name = cut(name, perLine-4)
		need := float64(columns(name))*charWide + 14
		if k >= 0 {
			need += swatch + 4
		}
		if x > 8 && x+need > wide {
			x = 8
			d.y += lineHigh
		}
		at := x
		if k >= 0 {
			if i := slices.IndexFunc(p.Marks, func(m Marks) bool { return m.Name == names[k] }); i < 0 {
				d.line("data "+colour(k), x, d.y-8, x+swatch, d.y-8)
			} else {
				d.glyph(k, p.Marks[i].Big, x+swatch/2, d.y-8)
			}
			at += swatch + 4
		}
		d.text("legend", at, d.y-4, name)
		x += need
	}
	if len(names) == 1 && names[0] == "" { // the axis says it
		names = nil
	}
	for i, n := range names {
		if !p.drawn(n) {
			continue
		}
		if i == mostNames && len(names) > mostNames+1 {
			entry(fmt.Sprintf("and %d more", len(names)-i), -1)
			return
		}
		entry(n, i)
	}
	if len(names) == 0 {
		d.y -= lineHigh - 6
	}
}

// colour is the classes of the line of a place in the legend.
func colour(i int) string {
	k := "k" + strconv.Itoa(i%colours)
	if i/colours%2 == 1 {
		k += " again"
	}
	return k
}

// spans draws the parts of the axis that have a name.
func (d *drawing) spans(top float64) {
	for _, s := range d.seen() {
		d.empty("rect", "class", "span", "x", num(d.atX(s.From)), "y", num(top), "width", num(d.atX(s.To)-d.atX(s.From)), "height", num(d.plot))
	}
}

// aboveNames writes the names of spans and places above the first panel, in as many rows as keep them apart.
func (d *drawing) aboveNames() {
	var ends []float64 // of the rows
	names := d.seen()
	for _, at := range d.Places {
		if drawable(at.X, d.LogX) {
			names = append(names, Span{Name: at.Name, From: at.X})
		}
	}
	slices.SortStableFunc(names, func(a, b Span) int { return cmp.Compare(a.From, b.From) })
	for _, s := range names {
		name := cut(s.Name, perLine/2)
		need := float64(columns(name)) * charWide
		x := max(min(d.atX(s.From), wide-rightOf-need), 8)
		row := slices.IndexFunc(ends, func(end float64) bool { return end < x })
		if row < 0 {
			row = len(ends)
			ends = append(ends, 0)
		}
		ends[row] = x + need + charWide
		d.text("spanname", x, d.y+lineHigh*float64(row+1)-4, name)
	}
	d.y += lineHigh * float64(len(ends))
}

// seen are the spans as far as they are in the picture.
func (d *drawing) seen() []Span {
	var in []Span
	for _, s := range d.Spans {
		if s.From, s.To = max(s.From, d.x.lo), min(s.To, d.x.hi); s.To > s.From {
			in = append(in, s)
		}
	}
	return in
}

// grid draws lines at the ticks of both axes, and the numbers of the vertical one.
func (d *drawing) grid(s scale, top float64) {
	xs, _ := d.x.ticks()
	for _, v := range xs {
		d.line("grid", d.atX(v), top, d.atX(v), top+d.plot)
	}
	ys, texts := s.ticks()
	for i, v := range ys {
		y := top + d.plot - s.place(v, d.plot)
		d.line("grid", leftOf, y, wide-rightOf, y)
		d.text("tick end", leftOf-5, y+4, texts[i])
	}
}

// feet writes the numbers of the shared axis below the last panel.
func (d *drawing) feet() {
	d.y += lineHigh
	at, texts := d.x.ticks()
	for i, v := range at {
		class := "tick mid"
		if d.atX(v) > wide-rightOf-charWide*2 {
			class = "tick end"
		}
		d.text(class, d.atX(v), d.y-2, texts[i])
	}
	d.y += lineHigh
	d.text("axis mid", leftOf+(wide-leftOf-rightOf)/2, d.y-2, axisText(d.X.Label, d.x.unit))
}

// axisText is "queue, KB".
func axisText(label string, u unit) string {
	if u.name == "" {
		return label
	}
	return label + ", " + u.name
}

// atX is the column of a number of the shared axis.
func (d *drawing) atX(v float64) float64 { return leftOf + d.x.place(v, wide-leftOf-rightOf) }

// path is a line's way. Where several points fall into one column, the first and last of it and its extremes stand for all.
func (d *drawing) path(l Line, s scale, top float64) string {
	var b strings.Builder
	var col column
	pen := "M"
	put := func(p dot) {
		b.WriteString(pen + num(p.x) + " " + num(top+d.plot-s.place(p.y, d.plot)))
		pen = "L"
	}
	for i, x := range l.X[:min(len(l.X), len(l.Y))] {
		y := l.Y[i]
		if !drawable(y, s.log) || !drawable(x, d.LogX) {
			col.flush(put)
			pen = "M"
			continue
		}
		at := d.atX(x)
		if col.n > 0 && math.Floor(at) != math.Floor(col.first.x) {
			col.flush(put)
		}
		col.add(dot{at, y})
	}
	col.flush(put)
	return b.String()
}

// column is the points of a line that fall into one column: the first, the lowest, the highest and the last.
type column struct {
	n                            int
	first, lowest, highest, last dot
}

// dot is a point of a line: its column, and its number.
type dot struct{ x, y float64 }

func (c *column) add(p dot) {
	c.n++
	c.last = p
	if c.n == 1 {
		c.first, c.lowest, c.highest = p, p, p
	}
	if p.y < c.lowest.y {
		c.lowest = p
	}
	if p.y > c.highest.y {
		c.highest = p
	}
}

// flush puts the points of a column in their order, each once, and empties it.
func (c *column) flush(put func(dot)) {
	if c.n == 0 {
		return
	}
	order := []dot{c.first, c.lowest, c.highest, c.last}
	if c.highest.x < c.lowest.x {
		order[1], order[2] = c.highest, c.lowest
	}
	for _, p := range slices.Compact(order) {
		put(p)
	}
	c.n = 0
}

// describe is a chart in words, for who cannot see it.
func (c Chart) describe() string {
	var parts []string
	for _, p := range c.Panels {
		names := p.names()
		for i, n := range names {
			if i == mostNames && len(names) > mostNames+1 {
				parts = append(parts, fmt.Sprintf("%s: %d more", p.Y.Label, len(names)-i))
				break
			}
			lo, hi := math.Inf(1), math.Inf(-1)
			see := func(name string, ys []float64) {
				for _, y := range ys {
					if name == n && finite(y) {
						lo, hi = min(lo, y), max(hi, y)
					}
				}
			}
			for _, l := range p.Lines {
				see(l.Name, l.Y)
			}
			for _, m := range p.Marks {
				see(m.Name, m.Y)
			}
			what := "nothing"
			if lo <= hi {
				what = p.Y.Of.text(lo) + " to " + p.Y.Of.text(hi)
			}
			if n != "" {
				n = " of " + n
			}
			parts = append(parts, p.Y.Label+n+": "+what)
		}
		for _, l := range p.Levels {
			parts = append(parts, l.Name+" "+p.Y.Of.text(l.Y))
		}
	}
	for _, at := range c.Places {
		parts = append(parts, at.Name+" at "+c.X.Of.text(at.X))
	}
	return strings.Join(parts, "; ")
}

// finite reports whether v can be drawn: what is beyond 1e30 of anything is no number either.
func finite(v float64) bool { return math.Abs(v) <= 1e30 }

// drawable reports whether v can be drawn on an axis: on a logarithmic one, what is not above 0, or hardly, has no place.
func drawable(v float64, log bool) bool { return finite(v) && (!log || v >= 1e-30) }
