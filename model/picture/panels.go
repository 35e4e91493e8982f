package picture

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/units"
)

const (
	noteColumns = 31 // of the margin's text
	mostListed  = 16 // rules, or hops, in a panel
	mostNotes   = 8  // strands told about in a place
)

// noteText is what the margin says of a strand.
func (d *drawing) noteText(kind int) []string {
	k := d.kinds[kind]
	n := 0
	var short, long units.Length
	for _, w := range d.wires {
		if w.strand != k {
			continue
		}
		for _, l := range w.links {
			n++
			if l.Cable > 0 && (short == 0 || l.Cable < short) {
				short = l.Cable
			}
			long = max(long, l.Cable)
		}
	}
	head := k.lower + " – " + k.upper
	if k.role == "peer-link" {
		head = "peer link " + head
	}
	what := times(k.parallel, k.speed)
	switch {
	case short > 0 && short != long:
		what += ", " + short.String() + " to " + long.String()
	case long > 0:
		what += ", " + long.String()
	}
	lines := []string{head, what + ", " + howMany(n, "link")}
	var more []string
	if k.breakout > 1 {
		more = append(more, "1 of "+itoa(k.breakout)+" of a port")
	}
	if k.bond {
		more = append(more, "bonded")
	}
	if k.rail {
		more = append(more, "on rails")
	}
	if k.state != 0 {
		more = append(more, k.state.String())
	}
	if len(more) > 0 {
		lines = append(lines, strings.Join(more, ", "))
	}
	lossless := k.lossless
	if lossless == "" {
		lossless = "no lossless class"
	}
	return append(lines, lossless)
}

// noteLines is noteText in lines that the margin has room for.
func (d *drawing) noteLines(kind int) []string {
	var lines []string
	for _, l := range d.noteText(kind) {
		lines = append(lines, wrapped(l, noteColumns)...)
	}
	return lines
}

func (d *drawing) notesHigh(r tierRow) int {
	h := 0
	for _, k := range r.notes {
		h += len(d.noteLines(k))*textHigh + 10
	}
	return h + bit(r.untold > 0)*2*textHigh
}

// notes tells in the margin about each row, and above it about the links that lead up from it.
func (d *drawing) notes() []*elem {
	var out []*elem
	for i, r := range d.rows {
		y := r.y - d.notesHigh(r)
		if i > 0 {
			above := d.rows[i-1].y + max(d.rows[i-1].high, 3*textHigh)
			y = above + (r.y-above-d.notesHigh(r))/2
		}
		for _, k := range r.notes {
			g := inside("note")
			for j, l := range d.noteLines(k) {
				y += textHigh
				style := "small"
				if j == 0 {
					style = "noted"
					e := edge{from: point{edgeOfSheet, y - 4}, to: point{edgeOfSheet + 22, y - 4}}
					g.add(inside("edge" + d.dim(true)).add(e.strokes(d.kindClass(k), d.kinds[k].parallel)...))
				}
				g.add(write(style, edgeOfSheet+30, y, l))
			}
			y += 10
			out = append(out, g)
		}
		if r.untold > 0 {
			out = append(out, write("small", edgeOfSheet+30, y+textHigh, fmt.Sprintf("and %d more: graph --links", r.untold)))
		}
		out = append(out, d.rowNote(r))
	}
	return out
}

// rowNote says what a row is.
func (d *drawing) rowNote(r tierRow) *elem {
	roles, platforms := map[string]int{}, map[string]bool{}
	var order, names []string
	for _, t := range d.graph.Tiers {
		if t.Tier != r.tier {
			continue
		}
		if roles[t.Role] == 0 {
			order = append(order, t.Role)
		}
		roles[t.Role] += len(t.Devices)
		if !platforms[t.Platform] {
			platforms[t.Platform] = true
			names = append(names, t.Platform)
		}
	}
	g := inside("note")
	y := r.y + 6
	for _, role := range order {
		y += nameHigh
		g.add(write("rowname", edgeOfSheet, y, cut(howMany(roles[role], role), 24)))
	}
	if len(names) == 1 {
		g.add(write("small", edgeOfSheet, y+textHigh, cut(names[0], noteColumns+4)))
	}
	return g
}

// area is a part of the picture.
type area struct{ left, top, right, bottom int }

// around is the area that boxes take.
func (d *drawing) around(boxes []int) area {
	var a area
	for k, j := range boxes {
		s := d.spots[j]
		b := area{s.x - s.w/2, s.y, s.x + s.w/2, s.y + s.h}
		if k == 0 {
			a = b
			continue
		}
		a = area{min(a.left, b.left), min(a.top, b.top), max(a.right, b.right), max(a.bottom, b.bottom)}
	}
	return a
}

// frames are what stands behind boxes: pods, and planes within a row. names stand before the links.
func (d *drawing) frames() (areas, names []*elem) {
	pods := map[string][]int{}
	var order []string
	for i, b := range d.boxes {
		if b.pod != "" && b.pods == nil {
			if pods[b.pod] == nil {
				order = append(order, b.pod)
			}
			pods[b.pod] = append(pods[b.pod], i)
		}
	}
	sortNames(order)
	style := "frame" + d.dim(true)
	for _, pod := range order {
		a := d.around(pods[pod])
		areas = append(areas, inside(style).add(rect("pod", a.left-14, a.top-40, a.right-a.left+28, a.bottom-a.top+56, 10)))
		names = append(names, inside(style).add(write("framename", a.left-6, a.top-25, pod)))
	}
	for _, r := range d.rows {
		for i := 0; i < len(r.boxes); {
			b := d.boxes[r.boxes[i]]
			j := i
			for j < len(r.boxes) && d.boxes[r.boxes[j]].plane == b.plane && d.boxes[r.boxes[j]].pod == b.pod {
				j++
			}
			if b.plane != "" {
				a := d.around(r.boxes[i:j])
				areas = append(areas, inside(style).add(rect("plane", a.left-7, a.top-20, a.right-a.left+14, a.bottom-a.top+30, 8)))
				names = append(names, inside(style).add(write("planename", a.left, a.top-8, b.plane)))
			}
			i = j
		}
	}
	return areas, names
}

// panels are what stands below the drawing: the cycle, the findings, and the legend. The result is the picture's height.
func (d *drawing) panels() ([]*elem, int) {
	y := d.body
	var out []*elem
	head := func(text string) {
		y += 26
		out = append(out, write("rowname", edgeOfSheet, y, text))
	}
	limit := (d.width - 2*edgeOfSheet - 40) / smallLetter
	if len(d.sheet.Cycle) > 0 {
		head("The cycle")
		for i, h := range d.sheet.Cycle {
			if i == 2*mostListed {
				y += textHigh
				out = append(out, write("small", edgeOfSheet+30, y, fmt.Sprintf("and %d more hops", len(d.sheet.Cycle)-i)))
				break
			}
			y += textHigh + 6
			out = append(out, circle("number", edgeOfSheet+10, y-4, 9), middle("numbertext", edgeOfSheet+10, y, itoa(i+1)),
				write("small", edgeOfSheet+30, y, cut(d.hopText(h), limit)))
		}
	}
	var all []int
	for i, f := range d.sheet.Findings {
		if drawn(f) {
			all = append(all, i)
		}
	}
	rules := tallies(d.sheet.Findings, all)
	if len(rules) > 0 {
		head(howMany(len(all), "finding"))
	}
	for i, t := range rules {
		if i == mostListed {
			y += textHigh + 2
			out = append(out, write("small", edgeOfSheet+44, y, fmt.Sprintf("and %d more rules: fabricctl validate lists them all", len(rules)-i)))
			break
		}
		y += 10
		out = append(out, badge(t.severity, edgeOfSheet+14, y+8, len(t.findings))...)
		text := t.severity.String() + ": " + t.rule + ": " + d.sheet.Findings[t.findings[0]].Msg
		if len(t.findings) > 1 {
			text += fmt.Sprintf("; and %d more of this rule", len(t.findings)-1)
		}
		for j, l := range wrapped(text, limit-2) {
			if j == 3 {
				break
			}
			y += textHigh
			out = append(out, write("found", edgeOfSheet+44, y-3, l))
		}
	}
	legend, y := d.legend(y)
	return append(out, legend...), y + edgeOfSheet
}

// legend explains the signs that the picture has, in one line or more.
func (d *drawing) legend(y int) ([]*elem, int) {
	has := func(f func(face) bool) bool { return slices.ContainsFunc(d.faces, f) }
	kind := func(f func(strand) bool) bool { return slices.ContainsFunc(d.kinds, f) }
	x := edgeOfSheet
	y += 34
	out := []*elem{line("rule", point{edgeOfSheet, y - 20}, point{d.width - edgeOfSheet, y - 20})}
	entry := func(shown bool, text string, sign func(x, y int) []*elem) {
		if !shown {
			return
		}
		w := 40 + columns(text)*smallLetter + 24
		if x+w > d.width-edgeOfSheet && x > edgeOfSheet {
			x, y = edgeOfSheet, y+24
		}
		out = append(out, sign(x, y)...)
		out = append(out, write("small", x+38, y+4, text))
		x += w
	}
	sample := func(style string) func(x, y int) []*elem {
		return func(x, y int) []*elem { return []*elem{rect(style, x, y-9, 30, 18, 4)} }
	}
	stroke := func(style string, n int) func(x, y int) []*elem {
		return func(x, y int) []*elem {
			e := edge{from: point{x, y}, to: point{x + 30, y}}
			return e.strokes(style, n)
		}
	}
	entry(true, "switch", sample("switch"))
	entry(slices.ContainsFunc(d.boxes, func(b box) bool { return b.pods == nil && d.net.Devices[b.devices[0]].Host }), "host", sample("host"))
	entry(has(func(f face) bool { return f.deep }), "several devices alike", func(x, y int) []*elem {
		return []*elem{rect("switch", x+4, y-6, 26, 16, 4), rect("switch", x, y-10, 26, 16, 4)}
	})
	entry(has(func(f face) bool { return f.dashed }), "planned, or in maintenance", sample("switch dashed"))
	entry(kind(func(s strand) bool { return s.parallel > 1 }), "parallel links", stroke("link k0", 2))
	entry(kind(func(s strand) bool { return s.lossless == "" }), "no lossless class", stroke("link k0 lossy", 1))
	entry(kind(func(s strand) bool { return s.bond }), "bond", func(x, y int) []*elem {
		return append(stroke("link k0", 1)(x, y), ellipse("bond", x+15, y, 5, 9))
	})
	entry(has(func(f face) bool { return len(f.rules) > 0 && f.worst() == diag.Error }), "errors", func(x, y int) []*elem { return badge(diag.Error, x+14, y, 2) })
	entry(has(func(f face) bool { return len(f.rules) > 0 && f.worst() == diag.Warning }), "warnings only", func(x, y int) []*elem { return badge(diag.Warning, x+14, y, 2) })
	entry(d.sheet.Cycle != nil, "cycle, hop by hop", stroke("cycle", 1))
	return out, y + 12
}
