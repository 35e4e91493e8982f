package picture

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/units"
)

// face is what a box shows.
type face struct {
	name     string
	lines    []string
	rules    []tally // findings, the worst rules first
	dashed   bool    // planned or in maintenance
	deep     bool    // several devices
	w, h     int
	platform string // "" when they differ
}

// Sizes in pixels: an average letter of the fixed-width fonts that viewers have is 0.62 of its height.
const (
	nameLetter, smallLetter = 9, 7
	leastBox, mostBox       = 84, 300
	mostRules               = 3 // findings of one box that are told in it
)

func (d *drawing) facesOf() {
	d.faces = make([]face, len(d.boxes))
	platforms := map[int]map[string]bool{} // of each tier
	for i, b := range d.boxes {
		d.faces[i] = d.faceOf(b)
		if platforms[b.tier] == nil {
			platforms[b.tier] = map[string]bool{}
		}
		if p := d.faces[i].platform; p != "" {
			platforms[b.tier][p] = true
		}
	}
	for i, b := range d.boxes {
		f := &d.faces[i]
		if len(platforms[b.tier]) > 1 && f.platform != "" {
			f.lines = slices.Insert(f.lines, 0, f.platform)
		}
		f.measure()
	}
}

// faceOf is what a box shows, but for the platform that a row has in common.
func (d *drawing) faceOf(b box) face {
	first := &d.net.Devices[b.devices[0]]
	names, roles, tier := make([]string, len(b.devices)), map[string]int{}, map[string]int{}
	var order []string
	f := face{name: first.Name, platform: first.Platform, deep: len(b.devices) > 1}
	var at []int
	seen := map[int]bool{}
	for k, i := range b.devices {
		dev := &d.net.Devices[i]
		names[k] = dev.Name
		if roles[dev.Role]++; roles[dev.Role] == 1 {
			order = append(order, dev.Role)
			tier[dev.Role] = dev.Tier
		}
		if dev.Platform != f.platform {
			f.platform = ""
		}
		for _, x := range d.marks[dev.Name] {
			if !seen[x] {
				seen[x] = true
				at = append(at, x)
			}
		}
	}
	slices.Sort(at)
	f.rules = tallies(d.sheet.Findings, at)
	switch {
	case b.pods != nil:
		slices.SortStableFunc(order, func(x, y string) int { return tier[y] - tier[x] })
		f.name, f.platform = span(b.pods), ""
		f.lines = append(f.lines, "like "+b.like)
		if len(b.pods) > 1 {
			f.lines = append(f.lines, "together:")
		}
		for _, r := range order {
			f.lines = append(f.lines, howMany(roles[r], r))
		}
	case b.mixed:
		f.name = howMany(len(names), first.Role)
		f.lines = append(f.lines, "not all alike", span(names))
	case b.like != "":
		f.name = howMany(len(names), first.Role)
		f.lines = append(f.lines, span(names), "like "+b.like)
	case f.deep:
		f.name = howMany(len(names), first.Role)
		f.lines = append(f.lines, span(names))
	}
	if b.pods == nil {
		f.lines = append(f.lines, d.facts(b, first)...)
	}
	f.dashed = first.State == intent.Planned || first.State == intent.Maintenance
	if f.dashed {
		f.lines = append(f.lines, first.State.String())
	}
	return f
}

// facts is what a box says of its first device: speeds of a host, the rail of a leaf, ways out of the fabric.
func (d *drawing) facts(b box, first *intent.Device) []string {
	var lines []string
	if first.Host {
		lines = append(lines, d.nics(b.devices[0]))
		if n, role := d.onEach(b); n > 0 {
			lines = append(lines, itoa(n)+" on each "+role)
		}
	}
	var rails []int
	for _, r := range d.graph.Rails {
		if slices.Contains(r.Leaves, first.Name) {
			rails = append(rails, r.Rail)
		}
	}
	if len(rails) > 0 && len(rails) < len(d.graph.Rails) && b.like == "" && !b.mixed {
		lines = append(lines, "rail "+intent.Ranges(rails))
	}
	out, speed := 0, units.BitRate(0)
	for _, x := range d.graph.Exits {
		if x.Device == first.Name {
			out++
			speed = max(speed, x.Speed)
		}
	}
	if out > 0 {
		lines = append(lines, "→ outside "+times(out, speed))
	}
	return lines
}

// onEach is how many of a box's hosts each switch has that they hang on, when those share a box and there are as many on
// each; 0 otherwise.
func (d *drawing) onEach(b box) (n int, role string) {
	on := -1
	for _, w := range d.near[b.devices[0]] {
		at := d.box[d.other(w, b.devices[0])]
		if at < 0 || on >= 0 && at != on {
			return 0, ""
		}
		on = at
	}
	if on < 0 {
		return 0, ""
	}
	count := map[int]int{}
	for _, i := range b.devices {
		for _, w := range d.near[i] {
			count[d.other(w, i)]++
		}
	}
	switches := d.boxes[on].devices
	for _, i := range switches {
		if count[i] != count[switches[0]] {
			return 0, ""
		}
	}
	if len(switches) < 2 || len(d.near[b.devices[0]]) > 1 {
		return 0, ""
	}
	return count[switches[0]], d.net.Devices[switches[0]].Role
}

// nics is what a host is linked with: "400Gbps", "2 × 200Gbps".
func (d *drawing) nics(device int) string {
	count := map[units.BitRate]int{}
	var order []units.BitRate
	for _, w := range d.near[device] {
		s := d.wires[w].speed
		if count[s] == 0 {
			order = append(order, s)
		}
		count[s] += d.wires[w].parallel
	}
	slices.SortFunc(order, func(a, b units.BitRate) int { return int(b/1e6 - a/1e6) })
	words := make([]string, len(order))
	for i, s := range order {
		words[i] = times(count[s], s)
	}
	return strings.Join(words, ", ")
}

// times is "2 × 400Gbps".
func times(n int, speed units.BitRate) string {
	s := "of unknown speed"
	if speed > 0 {
		s = speed.String()
	}
	if n == 1 {
		return s
	}
	return itoa(n) + " × " + s
}

// ruleLines are the findings of a box in words.
func (f *face) ruleLines() []string {
	var lines []string
	for i, t := range f.rules {
		if i == mostRules && len(f.rules) > mostRules {
			lines = append(lines, fmt.Sprintf("and %d more rules", len(f.rules)-i))
			break
		}
		s := t.rule
		if len(t.findings) > 1 {
			s += " ×" + itoa(len(t.findings))
		}
		lines = append(lines, s)
	}
	return lines
}

// worst is the worst severity of a box's findings.
func (f *face) worst() diag.Severity { return f.rules[0].severity }

// total is how many findings there are.
func (f *face) total() int {
	n := 0
	for _, t := range f.rules {
		n += len(t.findings)
	}
	return n
}

// measure gives a box the size that its text needs.
func (f *face) measure() {
	f.w = leastBox
	f.w = max(f.w, columns(f.name)*nameLetter+24)
	lines := append(slices.Clone(f.lines), f.ruleLines()...)
	for _, l := range lines {
		f.w = max(f.w, columns(l)*smallLetter+20)
	}
	f.w = min(f.w, mostBox)
	f.w += f.w % 2
	f.h = 14 + nameHigh + len(lines)*textHigh
}

// boxElems are the boxes.
func (d *drawing) boxElems() []*elem {
	var out []*elem
	for i := range d.boxes {
		out = append(out, d.boxElem(i))
	}
	return out
}

func (d *drawing) boxElem(i int) *elem {
	b, f, s := d.boxes[i], d.faces[i], d.spots[i]
	style := "switch"
	switch {
	case d.net.Devices[b.devices[0]].Host && b.pods == nil:
		style = "host"
	case b.pods != nil:
		style = "pods"
	}
	if f.dashed {
		style += " dashed"
	}
	if len(f.rules) > 0 {
		style += [...]string{"", " warned", " wrong"}[f.worst()]
	}
	g := inside("box" + d.dim(!d.inCycle(i)))
	g.add(tip(d.boxTip(i)))
	left := s.x - s.w/2
	if f.deep {
		for k := 2; k > 0; k-- {
			g.add(rect(style, left+4*k, s.y+4*k, s.w, s.h, 6))
		}
	}
	g.add(rect(style, left, s.y, s.w, s.h, 6))
	y := s.y + 20
	g.add(middle("name", s.x, y, cut(f.name, (s.w-16)/nameLetter+1)))
	y += 2
	for _, l := range f.lines {
		y += textHigh
		g.add(middle("small", s.x, y, cut(l, (s.w-8)/smallLetter)))
	}
	for _, l := range f.ruleLines() {
		y += textHigh
		g.add(middle("found", s.x, y, cut(l, (s.w-8)/smallLetter)))
	}
	if len(f.rules) > 0 {
		g.add(badge(f.worst(), left+s.w-2, s.y+2, f.total())...)
	}
	return g
}

// badge is the number of findings in a circle: filled for errors.
func badge(s diag.Severity, x, y, n int) []*elem {
	style := "badge"
	if s != diag.Error {
		style = "badge light"
	}
	text := itoa(n)
	if n > 99 {
		text = "99+"
	}
	w := 14 + 6*len(text)
	return []*elem{rect(style, x-w/2, y-10, w, 20, 10), middle(style+"text", x, y+4, text)}
}

// boxTip is all there is to say of a box.
func (d *drawing) boxTip(i int) string {
	b := d.boxes[i]
	var names []string
	for _, k := range b.devices {
		names = append(names, d.net.Devices[k].Name)
	}
	const most = 32
	more := ""
	if len(names) > most {
		more = fmt.Sprintf(" and %d more", len(names)-most)
		names = names[:most]
	}
	first := &d.net.Devices[b.devices[0]]
	lines := []string{strings.Join(names, ", ") + more, first.Role + ", " + first.Platform + ", " + first.State.String()}
	if first.Group != "" && len(b.devices) == 1 {
		lines = append(lines, "redundancy group "+first.Group)
	}
	for _, t := range d.faces[i].rules {
		for _, x := range t.findings {
			lines = append(lines, t.severity.String()+": "+t.rule+": "+d.sheet.Findings[x].Msg)
		}
	}
	return strings.Join(lines, "\n")
}
