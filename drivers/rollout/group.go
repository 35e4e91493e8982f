package rollout

import (
	"slices"
	"sort"
	"strings"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/render"
)

// Group is one change in the words of the model, over all the ports of all the devices that share it to the last value
// and to the model line of each. A port stands in one group at most.
type Group struct {
	On      []Set            `json:"on"`                // where; a device stands in one set
	Ports   int              `json:"ports"`             // how many
	Changes []BehaviourValue `json:"changes"`           // in the order in which people read a policy
	Like    int              `json:"like,omitempty"`    // number, from 1, of an earlier group that most of the values are shared with; 0 = none
	Risk    render.RiskClass `json:"risk"`              // the worst that happens to one of the ports
	AtRisk  int              `json:"at_risk"`           // how many ports that happens to
	Refused []string         `json:"refused,omitempty"` // devices of it that are refused as a whole: nothing is written to them
}

// Set is the same ports on several devices, both in their natural order of appearance.
type Set struct {
	Devices []string `json:"devices"`
	Ports   []string `json:"ports"` // the device's interface names; empty for the devices as a whole
}

// Devices are the devices of g.
func (g *Group) Devices() []string {
	var names []string
	for _, s := range g.On {
		names = append(names, s.Devices...)
	}
	return names
}

// Groups are the changes of a plan, the one with the most ports first: ports that differ from all others stand last,
// each kind in a group of its own.
func Groups(p *Plan) []Group {
	return grouped(p, func(d *DevicePlan) []Behaviour { return d.Behaviour })
}

// ObservedGroups are what differs from the model and is nobody's to write.
func ObservedGroups(p *Plan) []Group {
	return grouped(p, func(d *DevicePlan) []Behaviour { return d.Observed })
}

func grouped(p *Plan, of func(*DevicePlan) []Behaviour) []Group {
	var gs []Group
	at := map[string]int{} // the text of changes, to their place in gs
	for i := range p.Devices {
		d := &p.Devices[i]
		classes := portClasses(d)
		for _, b := range of(d) {
			key := b.key()
			n, ok := at[key]
			if !ok {
				n, at[key] = len(gs), len(gs)
				gs = append(gs, Group{Changes: b.Changes})
			}
			gs[n].add(d.Name, b.Ports, classes)
			if d.Blocked {
				gs[n].Refused = append(gs[n].Refused, d.Name)
			}
		}
	}
	sort.SliceStable(gs, func(i, j int) bool { return gs[i].Ports > gs[j].Ports })
	alike(gs)
	return gs
}

// alike fills in what groups are like.
func alike(gs []Group) {
	var bases []base
	for i := range gs {
		b := newBase(i+1, gs[i].Changes)
		if gs[i].Like = like(bases, b); gs[i].Like == 0 && len(bases) < mostBases { // a reader should have to look up one group, not a chain of them
			bases = append(bases, b)
		}
	}
}

// base is a group that others may be like.
type base struct {
	number  int
	changes []BehaviourValue
	points  []string // codePoints of changes
	values  map[BehaviourValue]bool
	labels  map[string]bool
}

func newBase(number int, cs []BehaviourValue) base {
	b := base{number, cs, codePoints(cs), make(map[BehaviourValue]bool, len(cs)), make(map[string]bool, len(cs))}
	for _, c := range cs {
		b.values[c], b.labels[c.Label] = true, true
	}
	return b
}

// shared counts the values that b and g share, and those in which they differ, as Compare lists them. It gives up, with
// nothing shared, as soon as more than a quarter of those of g differ.
func (b *base) shared(g *base) (same, differ int) {
	for _, c := range g.changes {
		switch {
		case b.values[c]:
			same++
		case 4*differ >= len(g.changes):
			return 0, len(g.changes)
		default:
			differ++
		}
	}
	for _, c := range b.changes {
		if !g.labels[c.Label] {
			differ++
		}
	}
	return same, differ
}

// mostBases is how many groups others are compared with: the largest. With more than that, a reader has no use for the
// number of one, and comparing all with all takes its time.
const mostBases = 32

// key tells changes apart. No part of it holds a zero byte: names and positions are text of one line.
func (b *Behaviour) key() string {
	var s strings.Builder
	for _, c := range b.Changes {
		for _, part := range []string{string(c.Field), c.Label, c.Before, c.After, c.From.String()} {
			s.WriteString(part)
			s.WriteByte(0)
		}
	}
	return s.String()
}

// add puts ports of a device into g, with the risk that each runs.
func (g *Group) add(device string, ports []string, classes func(port string) render.RiskClass) {
	i := slices.IndexFunc(g.On, func(s Set) bool { return slices.Equal(s.Ports, ports) })
	if i < 0 {
		i = len(g.On)
		g.On = append(g.On, Set{Ports: ports})
	}
	g.On[i].Devices = append(g.On[i].Devices, device)
	g.Ports += max(1, len(ports))
	for _, port := range ports {
		switch c := classes(port); {
		case c > g.Risk:
			g.Risk, g.AtRisk = c, 1
		case c == g.Risk:
			g.AtRisk++
		}
	}
}

// portClasses is the worst risk of each port of a device.
func portClasses(d *DevicePlan) func(port string) render.RiskClass {
	whole, of := render.Hitless, map[string]render.RiskClass{}
	for _, r := range d.Risks {
		if len(r.Ports) == 0 {
			whole = max(whole, r.Class)
		}
		for _, port := range r.Ports {
			of[port] = max(of[port], r.Class)
		}
	}
	return func(port string) render.RiskClass { return max(whole, of[port]) }
}

// like is the number of the base that shares most values with g: at least three, and three times as many as
// are not shared. 0 when there is none.
func like(bases []base, g base) int {
	const least = 3
	best, most := 0, least-1
	for _, b := range bases {
		if !slices.Equal(b.points, g.points) {
			continue
		}
		if same, differ := b.shared(&g); same > most && same >= 3*differ {
			best, most = b.number, same
		}
	}
	return best
}

// codePoints are the ranges of code points that cs moves. Ranges that overlap without being the same cannot be compared
// one by one.
func codePoints(cs []BehaviourValue) []string {
	var labels []string
	for _, c := range cs {
		if strings.HasPrefix(string(c.Field), "dscp.") {
			labels = append(labels, c.Label)
		}
	}
	return labels
}

// Compare is what cs does otherwise than base: its values that base does not have, and those values of base that it
// leaves alone, with Before and After empty.
func Compare(base, cs []BehaviourValue) []BehaviourValue {
	var out []BehaviourValue
	for _, c := range cs {
		if !slices.Contains(base, c) {
			out = append(out, c)
		}
	}
	for _, b := range base {
		if !slices.ContainsFunc(cs, func(c BehaviourValue) bool { return c.Label == b.Label }) {
			b.Before, b.After = "", ""
			out = append(out, b)
		}
	}
	return out
}

// RiskRow is one thing that a plan does to traffic, with all the devices and ports that it is done to.
type RiskRow struct {
	Class render.RiskClass `json:"class"`
	Why   string           `json:"why"`
	On    []Set            `json:"on"`
	Ports int              `json:"ports"`          // how many; 0 when devices are hit as a whole
	Jobs  int              `json:"jobs,omitempty"` // live queue pairs that it kills, as far as they can be counted

	Uncounted []string `json:"uncounted,omitempty"` // devices where they cannot be counted
}

// Kills says in words which live queue pairs do not survive; "" for none.
func (r *RiskRow) Kills() string {
	if r.Class == render.Hitless || r.Class == render.Refused || r.Jobs == 0 && len(r.Uncounted) == 0 {
		return ""
	}
	return "kills " + jobsWord(r.Jobs, len(r.Uncounted) == 0)
}

// Devices are the devices of r.
func (r *RiskRow) Devices() []string {
	g := Group{On: r.On}
	return g.Devices()
}

// Risks are what a plan does to traffic, the worst first. A device to which nothing is written is only in the rows that
// say why it is refused.
func Risks(p *Plan) []RiskRow {
	type kind struct {
		class render.RiskClass
		why   string
	}
	var rows []RiskRow
	at := map[kind]int{}
	for i := range p.Devices {
		d := &p.Devices[i]
		for _, r := range d.Risks {
			if len(d.Steps) == 0 && r.Class != render.Refused {
				continue
			}
			n, ok := at[kind{r.Class, r.Why}]
			if !ok {
				n, at[kind{r.Class, r.Why}] = len(rows), len(rows)
				rows = append(rows, RiskRow{Class: r.Class, Why: r.Why})
			}
			g := Group{On: rows[n].On}
			g.add(d.Name, r.Ports, func(string) render.RiskClass { return r.Class })
			rows[n].On = g.On
			rows[n].Ports += len(r.Ports)
			if rows[n].Jobs += max(r.Jobs, 0); r.Jobs < 0 {
				rows[n].Uncounted = append(rows[n].Uncounted, d.Name)
			}
		}
	}
	sort.SliceStable(rows, func(i, j int) bool { return rows[i].Class > rows[j].Class })
	return rows
}

// Note is one sentence that a reader should know about several devices.
type Note struct {
	Text    string   `json:"text"`
	Devices []string `json:"devices"`
}

// Notes are what a plan says about its devices beside their changes: how each takes a change back, and what it says
// about itself when something is written to it, or with all when nothing is.
func Notes(p *Plan, all bool) []Note {
	var notes []Note
	at := map[string]int{}
	add := func(device, text string) {
		n, ok := at[text]
		if !ok {
			n, at[text] = len(notes), len(notes)
			notes = append(notes, Note{Text: text})
		}
		notes[n].Devices = append(notes[n].Devices, device)
	}
	first := p.firsts()
	for i := range p.Devices {
		d := &p.Devices[i]
		if first[d.Name] {
			add(d.Name, "nobody has tried this platform on a real device: the change is made here first, and nowhere else until it was read back")
		}
		if len(d.Steps) > 0 {
			add(d.Name, undo(d.Caps))
			if d.Cut != nil {
				add(d.Name, cutNote(d.Caps))
			}
		}
		if all || d.Ops.Total() > 0 {
			for _, n := range d.Facts.Notes {
				add(d.Name, n)
			}
		}
	}
	return notes
}

// cutNote says that a change may cut our own way, what is done about that, and what is not.
func cutNote(c drivers.Caps) string {
	s := "managed in-band: this change may cut our own way to the device; it is made after the others, one device at a time, the farthest first"
	if !c.Confirm {
		s += "; the device cannot take it back by itself, so if the way does not come back somebody has to go there"
	}
	return s
}

// undo says who takes a change back.
func undo(c drivers.Caps) string {
	switch {
	case c.Confirm:
		return "the device takes the change back by itself unless it is confirmed"
	case c.PersistsOnCommit:
		return "saved at once, and the device cannot take it back by itself: the undo is in fabricctl's journal"
	}
	return "the device cannot take it back by itself: the undo is in fabricctl's journal"
}
