package picture

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/units"
)

// mesh makes Nets: devices by name, and links between them.
type mesh struct {
	net intent.Net
	at  map[string]int
}

func (m *mesh) device(name, role string, tier int, change func(*intent.Device)) {
	if m.at == nil {
		m.at = map[string]int{}
	}
	d := intent.Device{Name: name, Role: role, Tier: tier, Host: tier == 0, Platform: "sonic/sn5600"}
	if change != nil {
		change(&d)
	}
	m.at[name] = len(m.net.Devices)
	m.net.Devices = append(m.net.Devices, d)
}

func (m *mesh) link(a, b string) {
	x, y := &m.net.Devices[m.at[a]], &m.net.Devices[m.at[b]]
	p, q := fmt.Sprint("p", len(x.Ports)+1), fmt.Sprint("p", len(y.Ports)+1)
	x.Ports = append(x.Ports, intent.Port{Name: p, Peer: b, PeerPort: q, Speed: 400 * gbps, Role: "fabric"})
	y.Ports = append(y.Ports, intent.Port{Name: q, Peer: a, PeerPort: p, Speed: 400 * gbps, Role: "fabric"})
}

// clos is pods of leaves with hosts below spines; without pods all is in none, and with them super-spines are above.
func clos(pods, spines, leaves, hosts int) *intent.Net {
	m := mesh{net: intent.Net{Fabric: "clos"}}
	for pod := range max(pods, 1) {
		name, in := "", func(*intent.Device) {}
		if pods > 0 {
			name = fmt.Sprintf("pod%d-", pod+1)
			in = func(d *intent.Device) { d.Pod = fmt.Sprintf("pod%d", pod+1) }
		}
		for s := range spines {
			m.device(fmt.Sprintf("%sspine%d", name, s+1), "spine", 2, in)
			for super := range pods {
				if top := fmt.Sprintf("super%d", super+1); pod == 0 && s == 0 {
					m.device(top, "super-spine", 3, nil)
				}
				m.link(fmt.Sprintf("%sspine%d", name, s+1), fmt.Sprintf("super%d", super+1))
			}
		}
		for l := range leaves {
			leaf := fmt.Sprintf("%sleaf%d", name, l+1)
			m.device(leaf, "leaf", 1, in)
			for s := range spines {
				m.link(leaf, fmt.Sprintf("%sspine%d", name, s+1))
			}
			for h := range hosts {
				host := fmt.Sprintf("%shost%d", name, l*hosts+h+1)
				m.device(host, "host", 0, nil)
				m.link(host, leaf)
			}
		}
	}
	slices.SortFunc(m.net.Devices, func(a, b intent.Device) int { return intent.CompareNames(a.Name, b.Name) })
	return &m.net
}

// names are the boxes of a drawing, row by row.
func names(n *intent.Net, s Sheet) []string {
	d := newDrawing(n, s)
	d.placeRows()
	var rows []string
	for _, r := range d.rows {
		var in []string
		for _, j := range r.boxes {
			f := d.faces[j]
			name := f.name
			if f.deep {
				name += " (" + strings.Join(f.lines, ", ") + ")"
			}
			in = append(in, name)
		}
		rows = append(rows, strings.Join(in, " | "))
	}
	return rows
}

// TestFold: boxes are shared where there are many, and what differs has its own.
func TestFold(t *testing.T) {
	about := func(devices ...string) Sheet {
		return Sheet{Findings: diag.List{{Rule: "ecn-order", Severity: diag.Error, Devices: devices}}}
	}
	unlike := clos(0, 2, 40, 1)
	for i := range unlike.Devices {
		if d := &unlike.Devices[i]; d.Role == "leaf" {
			d.Platform += strings.TrimPrefix(d.Name, "leaf")
		}
	}
	var everyHost diag.List
	for i := range 40 {
		everyHost.Add(diag.Finding{Rule: fmt.Sprint("rule-", i), Severity: diag.Warning, Devices: []string{fmt.Sprint("host", i+1)}})
	}
	for _, c := range []struct {
		name string
		net  *intent.Net
		s    Sheet
		want []string
	}{
		{"hosts of a leaf", clos(0, 1, 2, 3), Sheet{}, []string{"spine1", "leaf1 | leaf2", "3 hosts (host1 – host3, 400Gbps) | 3 hosts (host4 – host6, 400Gbps)"}},
		{"no hosts", clos(0, 1, 2, 3), Sheet{NoHosts: true}, []string{"spine1", "leaf1 | leaf2"}},
		{"one of them is wrong", clos(0, 1, 1, 4), about("host2"), []string{"spine1", "leaf1", "3 hosts (host1, host3, host4, 400Gbps) | host2"}},
		{
			"many leaves", clos(0, 2, 128, 32), about("leaf77"),
			[]string{
				"spine1 | spine2", "leaf1 | leaf2 | leaf3 | 124 leaves (leaf4 … leaf128, like leaf1) | leaf77",
				"32 hosts (host1 – host32, 400Gbps) | 32 hosts (host33 – host64, 400Gbps) | 32 hosts (host65 – host96, 400Gbps) | " +
					"3968 hosts (host97 … host4096, 400Gbps, 32 on each leaf) | 32 hosts (host2433 – host2464, 400Gbps)",
			},
		},
		{
			"pods that are alike", clos(5, 2, 4, 1), about("pod3-leaf1"),
			[]string{
				"super1 | super2 | super3 | super4 | super5",
				"pod1-spine1 | pod1-spine2 | pod2, pod4, pod5 (like pod1, together:, 6 spines, 12 leaves, 12 hosts) | pod3-spine1 | pod3-spine2",
				"pod1-leaf1 | pod1-leaf2 | pod1-leaf3 | pod1-leaf4 | pod3-leaf1 | pod3-leaf2 | pod3-leaf3 | pod3-leaf4",
				"pod1-host1 | pod1-host2 | pod1-host3 | pod1-host4 | pod3-host1 | pod3-host2 | pod3-host3 | pod3-host4",
			},
		},
		{
			"leaves that are not alike", unlike,
			Sheet{NoHosts: true},
			[]string{"spine1 | spine2", "leaf1 | leaf2 | leaf3 | leaf4 | leaf5 | leaf6 | leaf7 | leaf8 | leaf9 | leaf10 | leaf11 | leaf12 | 28 leaves (not all alike, leaf13 – leaf40)"},
		},
		{
			"hosts that are not alike", clos(0, 1, 1, 40),
			Sheet{Findings: everyHost},
			[]string{"spine1", "leaf1", "host1 | host2 | host3 | host4 | host5 | host6 | host7 | host8 | host9 | host10 | host11 | host12 | 28 hosts (not all alike, host13 – host40, 400Gbps)"},
		},
		{
			"a cycle's devices", clos(0, 2, 20, 0),
			Sheet{Cycle: []Hop{{"leaf5", "p1", 3, ""}, {"spine1", "p9", 3, ""}}},
			[]string{"spine1 | spine2", "leaf1 | leaf2 | leaf3 | 15 leaves (leaf4 … leaf20, like leaf1) | leaf5 | leaf9"},
		},
	} {
		if got := names(c.net, c.s); !slices.Equal(got, c.want) {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
}

// TestLayout: whatever the topology, boxes stand on the sheet and beside each other, the document is well-formed, and a
// second drawing has the same bytes.
func TestLayout(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		m := mesh{net: intent.Net{Fabric: "any"}}
		n := rapid.IntRange(1, 60).Draw(r, "devices")
		var all []string
		for i := range n {
			tier := rapid.IntRange(0, 3).Draw(r, "tier")
			name := strings.Repeat("x", rapid.IntRange(1, 40).Draw(r, "length")) + fmt.Sprint(i)
			m.device(name, []string{"host", "leaf", "spine", "super-spine"}[tier], tier, func(d *intent.Device) {
				d.Pod = rapid.SampledFrom([]string{"", "pod1", "pod2"}).Draw(r, "pod")
				d.Plane = rapid.SampledFrom([]string{"", "plane1"}).Draw(r, "plane")
				d.State = rapid.SampledFrom([]intent.State{intent.Active, intent.Planned, intent.Absent}).Draw(r, "state")
			})
			all = append(all, name)
		}
		for range rapid.IntRange(0, 3*n).Draw(r, "links") {
			if a, b := rapid.SampledFrom(all).Draw(r, "a"), rapid.SampledFrom(all).Draw(r, "b"); a != b {
				m.link(a, b)
			}
		}
		var s Sheet
		for range rapid.IntRange(0, 4).Draw(r, "hops") {
			s.Cycle = append(s.Cycle, Hop{rapid.SampledFrom(all).Draw(r, "hop"), "p1", 3, ""})
		}
		svg := SVG(&m.net, s)
		if !bytes.Equal(svg, SVG(&m.net, s)) {
			r.Error("two drawings differ")
		}
		parse(r, svg)
		d := newDrawing(&m.net, s)
		d.placeRows()
		rowsApart(r, d)
		for i := range m.net.Devices {
			if absent := m.net.Devices[i].State == intent.Absent; absent != (d.box[i] < 0) {
				r.Errorf("%s: absent %v, box %d", all[i], absent, d.box[i])
			}
		}
	})
}

// rowsApart checks that boxes of a row do not touch, that rows do not, and that all is on the sheet.
func rowsApart(t fatal, d *drawing) {
	bottom := edgeOfSheet
	for _, r := range d.rows {
		right, next := edgeOfSheet+margin, 0
		for _, j := range r.boxes {
			s := d.spots[j]
			if s.x-s.w/2 < right+boxGap/2 || s.x+s.w/2 > d.width-edgeOfSheet || s.y < bottom+boxGap || s.y+s.h > d.body {
				t.Errorf("box %q at %+v: right edge before it %d, row above ends %d, sheet %d x %d", d.faces[j].name, s, right, bottom, d.width, d.body)
			}
			right, next = s.x+s.w/2, max(next, s.y+s.h)
		}
		bottom = next
	}
}

// TestManyKinds: the margin tells of some kinds of links, and how many there are besides.
func TestManyKinds(t *testing.T) {
	n := clos(0, 1, 12, 1)
	for i := range n.Devices {
		for j := range n.Devices[i].Ports {
			n.Devices[i].Ports[j].Speed = units.BitRate(len(n.Devices[i].Ports)*1000+i*12+j+1) * gbps
		}
	}
	texts := parse(t, SVG(n, Sheet{NoHosts: true}))
	if slices.Contains(texts["small"], "host") {
		t.Error("the legend explains hosts, and none are drawn")
	}
	if len(texts["noted"]) != mostNotes || !slices.Contains(texts["small"], "and 4 more: graph --links") {
		t.Errorf("notes %q of %q", texts["noted"], texts["small"])
	}
}

// TestPlace: boxes stand where they want to be, and those that want to be too close stand around the middle.
func TestPlace(t *testing.T) {
	w := []int{80, 80, 80, 80}
	xs := make([]int, 4)
	place([]int{0, 1, 2, 3}, xs, w, []int{40, 300, 300, 900})
	if want := []int{40, 251, 349, 900}; !slices.Equal(xs, want) {
		t.Errorf("got %v, want %v", xs, want)
	}
}
