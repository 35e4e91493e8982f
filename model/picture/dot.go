package picture

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
)

// Dot is n in the language of Graphviz, device by device, the highest tier at the top, with links between the same two
// devices that look the same in one line. Findings are red, what is planned or in maintenance is dashed, and of a cycle
// each hop is an arrow with its number. The bytes are the same for the same n and s.
func Dot(n *intent.Net, s Sheet) string {
	d := dotter{net: n, sheet: s, graph: Of(n), marks: marksOf(s.Findings), index: map[string]*intent.Device{}}
	for i := range n.Devices {
		d.index[n.Devices[i].Name] = &n.Devices[i]
	}
	d.cycle()
	label := "Fabric " + n.Fabric
	if s.Digest != "" {
		label += fmt.Sprintf(", model %.12s", s.Digest)
	}
	if s.Caption != "" {
		label += "\n" + s.Caption
	}
	fmt.Fprintf(&d.b, "graph %s {\n  rankdir=TB; label=%s; labelloc=t; node [shape=box]; edge [fontsize=10];\n", quote(n.Fabric), quote(label))
	d.nodes()
	for _, e := range d.edges() {
		d.edge(e)
	}
	d.exits()
	for i, h := range s.Cycle {
		if peer := peerOf(n, h); d.index[peer] != nil {
			fmt.Fprintf(&d.b, "  %s -- %s [label=%s, dir=forward, color=orangered, fontcolor=orangered, penwidth=3, constraint=false];\n",
				quote(h.Device), quote(peer), quote(itoa(i+1)+": "+strings.TrimSpace(itoa(h.Priority)+" "+h.Class)))
		}
	}
	d.b.WriteString("}\n")
	return d.b.String()
}

// dotter is a dot document in the making.
type dotter struct {
	net    *intent.Net
	sheet  Sheet
	graph  Graph
	marks  marks
	index  map[string]*intent.Device
	hopped map[string]bool // devices of the cycle
	b      bytes.Buffer
}

func (d *dotter) cycle() {
	d.hopped = map[string]bool{}
	for _, h := range d.sheet.Cycle {
		d.hopped[h.Device], d.hopped[peerOf(d.net, h)] = true, true
	}
}

// shows reports whether a device is drawn.
func (d *dotter) shows(name string) bool {
	dev := d.index[name]
	return dev != nil && (!dev.Host || !d.sheet.NoHosts || d.hopped[name])
}

// nodes writes the devices, those of a tier on one level.
func (d *dotter) nodes() {
	open, tier := false, 0
	for _, t := range d.graph.Tiers {
		for _, name := range t.Devices {
			if !d.shows(name) {
				continue
			}
			if open && tier != t.Tier {
				d.b.WriteString("  }\n")
			}
			if !open || tier != t.Tier {
				d.b.WriteString("  { rank=same;\n")
			}
			open, tier = true, t.Tier
			d.node(d.index[name])
		}
	}
	if open {
		d.b.WriteString("  }\n")
	}
}

func (d *dotter) node(dev *intent.Device) {
	label, attrs := dev.Name+"\n"+dev.Platform, ""
	if dev.State != intent.Active {
		label, attrs = label+"\n"+dev.State.String(), ", style=dashed"
	}
	rules := tallies(d.sheet.Findings, d.marks[dev.Name])
	for _, t := range rules {
		label += "\n" + t.rule
		if len(t.findings) > 1 {
			label += " ×" + itoa(len(t.findings))
		}
	}
	switch {
	case len(rules) > 0 && rules[0].severity == diag.Error:
		attrs += ", color=red, fontcolor=red, penwidth=3"
	case len(rules) > 0:
		attrs += ", color=red, fontcolor=red"
	case d.sheet.Cycle != nil && !d.hopped[dev.Name]:
		attrs += ", color=gray, fontcolor=gray"
	}
	fmt.Fprintf(&d.b, "    %s [label=%s%s];\n", quote(dev.Name), quote(label), attrs)
}

// dotEdge is all links between two devices that look the same.
type dotEdge struct {
	upper, lower, speed, role, lossless string
	state                               intent.State
	n                                   int
}

// edges are the links as they are drawn, by their upper and then their lower end.
func (d *dotter) edges() []dotEdge {
	var es []dotEdge
	at := map[dotEdge]int{}
	for _, l := range d.graph.Links {
		if !d.shows(l.A.Device) || !d.shows(l.B.Device) {
			continue
		}
		e := dotEdge{
			upper: l.B.Device, lower: l.A.Device, role: l.Role, lossless: losslessText(l.Lossless, l.A.Device),
			state: worse(d.index[l.A.Device].State, d.index[l.B.Device].State),
		}
		if l.Speed > 0 {
			e.speed = l.Speed.String()
		}
		i, ok := at[e]
		if !ok {
			i = len(es)
			at[e] = i
			es = append(es, e)
		}
		es[i].n++
	}
	slices.SortStableFunc(es, func(a, b dotEdge) int {
		return cmp.Or(intent.CompareNames(a.upper, b.upper), intent.CompareNames(a.lower, b.lower))
	})
	return es
}

func (d *dotter) edge(e dotEdge) {
	label := e.speed
	if e.n > 1 {
		label = fmt.Sprintf("%d x %s", e.n, e.speed)
	}
	if e.lossless != "" {
		label += "\n" + e.lossless
	}
	attrs := ""
	if e.role == "peer-link" {
		attrs = ", constraint=false"
	}
	switch {
	case e.state != intent.Active:
		attrs += ", style=dashed"
	case e.lossless == "":
		attrs += ", style=dotted"
	}
	if d.sheet.Cycle != nil {
		attrs += ", color=gray, fontcolor=gray"
	}
	fmt.Fprintf(&d.b, "  %s -- %s [label=%s%s];\n", quote(e.upper), quote(e.lower), quote(label), attrs)
}

func (d *dotter) exits() {
	for i, x := range d.graph.Exits {
		id := quote(fmt.Sprintf("outside %d", i+1))
		fmt.Fprintf(&d.b, "  %s [label=\"outside\", shape=plaintext];\n  %s -- %s [label=%s];\n", id, id, quote(x.Device), quote(x.Port))
	}
}

// quote is s as a quoted identifier of the dot language, where a line break is written \n.
func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(seen(s)) + `"`
}
