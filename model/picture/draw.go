package picture

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/fabricctl/fabricctl/model/intent"
)

// Distances in pixels.
const (
	edgeOfSheet = 24  // around everything
	margin      = 236 // where rows and links are told about, left of the drawing
	headerHigh  = 76
	rowGap      = 96 // between rows, at least
	textHigh    = 15 // one line of small text
	nameHigh    = 18
	leastWide   = 760
)

// drawing is an SVG in the making.
type drawing struct {
	*plan
	sheet  Sheet
	graph  Graph
	marks  marks
	kinds  []strand
	kindAt map[strand]int
	faces  []face // of boxes
	spots  []spot // of boxes
	rows   []tierRow
	edges  []edge
	hops   []hop
	width  int // of the whole
	body   int // where the drawing ends and the panels begin
}

// tierRow is a row of boxes over all pods.
type tierRow struct {
	row
	y, high int
	notes   []int // strands told about above the row
	untold  int   // how many there are besides
}

// SVG draws n: every tier in a row, the highest at the top, with what links look like told beside them. Devices that are
// alike share a box where hosts hang on the same switches, or where a row would become too wide. The bytes are the same
// for the same n and s. The document holds no script and refers to nothing outside; what names and findings hold is text.
func SVG(n *intent.Net, s Sheet) []byte {
	d := newDrawing(n, s)
	d.placeRows()
	d.findEdges()
	d.findHops()
	root := el("svg", str("xmlns", "http://www.w3.org/2000/svg"), str("role", "img"), str("aria-labelledby", "title desc"))
	body := inside("sheet")
	areas, names := d.frames()
	body.add(areas...)
	body.add(d.links()...)
	body.add(names...)
	body.add(d.bonds()...)
	body.add(d.boxElems()...)
	body.add(d.cycle()...)
	body.add(d.notes()...)
	panels, high := d.panels()
	body.add(panels...)
	root.attrs = append(root.attrs, str("viewBox", fmt.Sprintf("0 0 %d %d", d.width, high)), num("width", d.width), num("height", high))
	root.add(
		el("title", str("id", "title")).say("Fabric "+d.graph.Fabric),
		el("desc", str("id", "desc")).say(d.describe()),
		el("style").say(look),
		el("rect", class("bg"), num("width", d.width), num("height", high)),
		d.header(), body,
	)
	var b bytes.Buffer
	b.WriteString("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n")
	root.encode(&b)
	return b.Bytes()
}

func newDrawing(n *intent.Net, s Sheet) *drawing {
	d := &drawing{sheet: s, graph: Of(n), marks: marksOf(s.Findings), kindAt: map[strand]int{}}
	at, states := map[string]int{}, make([]intent.State, len(n.Devices))
	for i := range n.Devices {
		at[n.Devices[i].Name], states[i] = i, n.Devices[i].State
	}
	single := make([]bool, len(n.Devices))
	for _, h := range s.Cycle {
		for _, name := range []string{h.Device, peerOf(n, h)} {
			if i, ok := at[name]; ok {
				single[i] = true
			}
		}
	}
	shown, looks := make([]bool, len(n.Devices)), make([]string, len(n.Devices))
	exits := map[string]string{}
	for _, x := range d.graph.Exits {
		exits[x.Device] += x.Speed.String() + " "
	}
	for i := range n.Devices {
		dev := &n.Devices[i]
		shown[i] = dev.State != intent.Absent && (!s.NoHosts || !dev.Host || single[i])
		for _, t := range tallies(s.Findings, d.marks[dev.Name]) {
			looks[i] += fmt.Sprintf("%s %d ", t.rule, t.severity)
		}
		looks[i] += exits[dev.Name]
	}
	ws := d.graph.wiresOf(at, states)
	d.plan = fold(n, ws, shown, looks, single)
	d.kinds = strands(slices.DeleteFunc(slices.Clone(ws), func(w wire) bool { return d.box[w.low] < 0 || d.box[w.high] < 0 }))
	for i, k := range d.kinds {
		d.kindAt[k] = i
	}
	return d
}

// peerOf is the device at the far end of a hop, "" when there is none.
func peerOf(n *intent.Net, h Hop) string {
	if d := n.Device(h.Device); d != nil {
		if p := d.Port(h.Port); p != nil {
			return p.Peer
		}
	}
	return ""
}

// placeRows decides where boxes stand.
func (d *drawing) placeRows() {
	d.facesOf()
	tiers := map[int][]int{}
	w := make([]int, len(d.boxes))
	for i, b := range d.boxes {
		tiers[b.tier] = append(tiers[b.tier], i)
		w[i] = d.faces[i].w
	}
	xs, width := d.layout(w)
	left := edgeOfSheet + margin + blockGap/2
	d.spots = make([]spot, len(d.boxes))
	y := edgeOfSheet + headerHigh
	for i, r := range d.sorted(tiers) {
		slices.SortFunc(r.boxes, func(a, b int) int { return xs[a] - xs[b] })
		t := tierRow{row: r}
		for k, s := range d.kinds {
			if s.low == r.tier {
				t.notes = append(t.notes, k)
			}
		}
		if len(t.notes) > mostNotes {
			t.untold = len(t.notes) - mostNotes
			t.notes = t.notes[:mostNotes]
		}
		gap := d.notesHigh(t)
		if i > 0 {
			gap = max(gap, rowGap)
		}
		gap = max(gap, d.arcsHigh(r.tier, xs))
		y += gap
		if i > 0 || d.hasPods() {
			y += textHigh
		}
		t.y = y
		for _, j := range r.boxes {
			f := d.faces[j]
			d.spots[j] = spot{left + xs[j], y, f.w, f.h}
			t.high = max(t.high, f.h)
		}
		y += max(t.high, 3*textHigh)
		d.rows = append(d.rows, t)
	}
	d.body = y + edgeOfSheet
	d.width = max(left+width+blockGap/2+edgeOfSheet, leastWide)
}

// arcsHigh is how much room links within a row need above it.
func (d *drawing) arcsHigh(tier int, xs []int) int {
	high := 0
	for _, w := range d.wires {
		if a, b := d.box[w.low], d.box[w.high]; a >= 0 && b >= 0 && a != b && d.boxes[a].tier == tier && d.boxes[b].tier == tier {
			high = max(high, arcHigh(xs[a]-xs[b])+2*textHigh)
		}
	}
	return high
}

func (d *drawing) hasPods() bool {
	return slices.ContainsFunc(d.boxes, func(b box) bool { return b.pod != "" || b.plane != "" })
}

// header is the title and what the picture is of.
func (d *drawing) header() *elem {
	g := inside("head")
	limit := d.width - 2*edgeOfSheet
	g.add(write("title", edgeOfSheet, edgeOfSheet+22, cut("Fabric "+d.graph.Fabric, limit*10/130)))
	sub := d.size()
	if d.sheet.Digest != "" {
		sub += fmt.Sprintf(" · model %.12s", d.sheet.Digest)
	}
	g.add(write("small", edgeOfSheet, edgeOfSheet+42, cut(sub, limit*10/68)))
	if d.sheet.Caption != "" {
		g.add(write("caption", edgeOfSheet, edgeOfSheet+62, cut(d.sheet.Caption, limit*10/75)))
	}
	return g
}

// size counts what the fabric has, whether it is drawn or not.
func (d *drawing) size() string {
	switches, hosts := 0, 0
	for _, t := range d.graph.Tiers {
		if t.Tier == 0 {
			hosts += len(t.Devices)
		} else {
			switches += len(t.Devices)
		}
	}
	return howMany(switches, "switch") + ", " + howMany(hosts, "host") + ", " + howMany(len(d.graph.Links), "link")
}

// describe is the picture in words.
func (d *drawing) describe() string {
	s := "Topology of fabric " + d.graph.Fabric + ": " + d.size() + "."
	for _, t := range d.graph.Tiers {
		s += fmt.Sprintf(" Tier %d: %s, %s: %s.", t.Tier, howMany(len(t.Devices), cmp.Or(t.Role, "device")), t.Platform, span(t.Devices))
	}
	for k := range d.kinds {
		s += " " + strings.Join(d.noteText(k), ", ") + "."
	}
	var all []int
	for i, f := range d.sheet.Findings {
		if drawn(f) {
			all = append(all, i)
		}
	}
	for _, t := range tallies(d.sheet.Findings, all) {
		s += fmt.Sprintf(" %s %s, %s.", t.severity, t.rule, howMany(len(t.findings), "finding"))
	}
	for i, h := range d.sheet.Cycle {
		s += fmt.Sprintf(" Cycle %d: %s.", i+1, d.hopText(h))
	}
	return s
}
