package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/fabricctl/fabricctl/model/intent"
)

// compare fills in what the ports of want do otherwise than it says. Ports that are planned, absent or unused have no
// say. An area that manage ignores is not compared, and one of which the device says nothing is not known, which is
// not a difference.
func (d *Device) compare(want *intent.Device, lifted map[string]intent.Policy) {
	var seen areas
	g := grouped{ports: map[shown][]string{}}
	for i := range want.Ports {
		p := &want.Ports[i]
		asks := *want.PolicyOf(p)
		if p.State == intent.Planned || p.State == intent.Absent || asks.Known == 0 {
			continue
		}
		is, ok := lifted[p.Iface]
		switch {
		case p.Iface == "":
			d.Unbound = append(d.Unbound, p.Name)
			continue
		case !ok && p.State == intent.Maintenance: // may be out of the box
			continue
		case !ok:
			d.Missing = append(d.Missing, p.Iface)
			continue
		}
		looked := seen.port(p, asks.Known, is.Known)
		asks, is = asks.Only(looked), is.Only(looked)
		for _, v := range seen.values(want, p, intent.Differences(&is, &asks)) {
			g.add(shown{v, p.State == intent.Maintenance}, p.Iface)
		}
	}
	d.Areas, d.Differences = seen.list(), g.list()
}

// grouped collects values by the ports that show them, so that each value stands once.
type grouped struct {
	ports  map[shown][]string
	values []shown // in the order of the first port that shows each
}

// shown is a value, and whether the ports that show it are in maintenance.
type shown struct {
	value       Value
	maintenance bool
}

func (g *grouped) add(v shown, port string) {
	if g.ports[v] == nil {
		g.values = append(g.values, v)
	}
	g.ports[v] = append(g.ports[v], port)
}

// list puts values that the same ports show together; those of the most ports stand first.
func (g *grouped) list() []Difference {
	var out []Difference
	at := map[string]int{} // a set of ports, to its place in out
	for _, v := range g.values {
		set := strings.Join(g.ports[v], " ")
		i, ok := at[set]
		if !ok {
			i, at[set] = len(out), len(out)
			out = append(out, Difference{Ports: g.ports[v], Maintenance: v.maintenance})
		}
		out[i].Values = append(out[i].Values, v.value)
	}
	slices.SortStableFunc(out, func(a, b Difference) int { return cmp.Compare(len(b.Ports), len(a.Ports)) })
	return out
}

// areas counts ports by area.
type areas [intent.NumAreas]struct{ asked, ignored, compared, differ, unknown int }

// port counts a port, and says which areas of it are compared.
func (s *areas) port(p *intent.Port, asked, known intent.Areas) (looked intent.Areas) {
	for a := range intent.NumAreas {
		if !asked.Has(a) {
			continue
		}
		s[a].asked++
		switch {
		case p.Manage[a] == intent.Ignore:
			s[a].ignored++
		case !known.Has(a):
			s[a].unknown++
		default:
			s[a].compared++
			looked |= intent.AreaSet(a)
		}
	}
	return looked
}

// values are the differences of one port with their lines of the model, and counts their areas.
func (s *areas) values(want *intent.Device, p *intent.Port, ds []intent.Difference) []Value {
	var vs []Value
	var differ intent.Areas
	for _, x := range ds {
		vs = append(vs, Value{x.Field, x.Label, x.Before, x.After, want.Origin(p, x.Field).At()})
		if a, ok := x.Field.Area(); ok {
			differ |= intent.AreaSet(a)
		}
	}
	for a := range intent.NumAreas {
		if differ.Has(a) {
			s[a].differ++
		}
	}
	return vs
}

func (s *areas) list() []Area {
	var out []Area
	for a := range intent.NumAreas {
		n := s[a]
		if n.asked == 0 {
			continue
		}
		x := Area{Name: a.String(), Verdict: Agrees, Compared: n.compared, Differ: n.differ, NotKnown: n.unknown}
		switch {
		case n.differ > 0:
			x.Verdict = Differs
		case n.compared == 0 && n.unknown == 0:
			x.Verdict = Ignored
		case n.compared == 0:
			x.Verdict = NotKnown
		}
		out = append(out, x)
	}
	return out
}

// Area is the verdict on an area by its name; "" when the model does not speak about it, or nothing was read.
func (d *Device) Area(name string) Verdict {
	for _, a := range d.Areas {
		if a.Name == name {
			return a.Verdict
		}
	}
	return ""
}

// Counts is how an area reads where ports of one device do not all fare alike: "3 of 64".
func (a Area) Counts() string {
	var parts []string
	if a.Differ > 0 && a.Differ < a.Compared {
		parts = append(parts, fmt.Sprintf("%d of %d", a.Differ, a.Compared))
	}
	if a.NotKnown > 0 && a.Compared > 0 {
		parts = append(parts, fmt.Sprintf("%d not known", a.NotKnown))
	}
	return strings.Join(parts, ", ")
}
