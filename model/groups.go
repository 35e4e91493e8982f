package model

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/fabricctl/fabricctl/model/diag"
)

// tiers counts how far each switch is from the hosts. Generated ones know; others go by their role, or else by their links.
func (t *topology) tiers() {
	var next []*Device
	known := map[string]bool{}
	for i := range t.f.Devices {
		d := &t.f.Devices[i]
		switch {
		case d.Host:
			d.Tier = 0
		case d.Tier > 0:
		default:
			if d.Tier = tierOfRole(d.Role); d.Tier == 0 {
				continue
			}
		}
		known[d.Name] = true
		next = append(next, d)
	}
	slices.SortStableFunc(next, func(a, b *Device) int { return cmp.Compare(a.Tier, b.Tier) })
	for len(next) > 0 {
		d := next[0]
		next = next[1:]
		for i := range d.Ports {
			if p := t.devices[d.Ports[i].Peer]; p != nil && !known[p.Name] {
				known[p.Name] = true
				p.Tier = d.Tier + 1
				next = append(next, p)
			}
		}
	}
	for i := range t.f.Devices { // linked to nothing that is known
		if d := &t.f.Devices[i]; !known[d.Name] {
			d.Tier = 1
		}
	}
}

// tierOfRole is the tier that a role stands for; 0 when it says nothing.
func tierOfRole(role string) int {
	switch {
	case strings.HasSuffix(role, "super-spine"), strings.HasSuffix(role, "superspine"), strings.HasSuffix(role, "core"):
		return 3
	case strings.HasSuffix(role, "spine"):
		return 2
	case strings.HasSuffix(role, "leaf"), strings.HasSuffix(role, "border"):
		return 1
	}
	return 0
}

// sets are disjoint sets of devices, by their place in Fabric.Devices.
type sets []int

func (s sets) find(i int) int {
	for s[i] != i {
		s[i] = s[s[i]]
		i = s[i]
	}
	return i
}

// join makes one set of two; its representative is the smaller one.
func (s sets) join(i, j int) {
	i, j = s.find(i), s.find(j)
	s[max(i, j)] = min(i, j)
}

// groups derives the redundancy groups that the model does not name: switches that serve one host (by a bond, by rails or
// planes), switches with a peer link, and switches of one tier, pod and plane that are alternatives for the same
// neighbours. Spines that are alone by that stand in for each other all the same. What is alone then is in no group.
func (t *topology) groups() {
	place := make(map[string]int, len(t.f.Devices))
	s := make(sets, len(t.f.Devices))
	for i := range t.f.Devices {
		place[t.f.Devices[i].Name] = i
		s[i] = i
	}
	alike := map[string]int{}
	for i := range t.f.Devices {
		d := &t.f.Devices[i]
		first := -1
		for j := range d.Ports {
			p := &d.Ports[j]
			peer, ok := place[p.Peer]
			if !ok || t.f.Devices[peer].Host {
				continue
			}
			switch {
			case d.Host && first >= 0:
				s.join(first, peer)
			case d.Host:
				first = peer
			case p.Role == "peer-link":
				s.join(i, peer)
			}
		}
		if key := t.serves(d, place); key != "" {
			if other, ok := alike[key]; ok {
				s.join(i, other)
			} else {
				alike[key] = i
			}
		}
	}
	t.alone(s, func(d *Device) string { return fmt.Sprintf("%d %s %s", d.Tier, d.Pod, d.Plane) })
	t.alone(s, func(d *Device) string { return fmt.Sprintf("%d %s", d.Tier, d.Pod) })
	t.nameGroups(s)
	t.splitBonds()
}

// alone joins the spines that nothing has joined yet and that have the same key: where each has neighbours of its own, the
// tier of the pod still needs one of them, and where a plane has only one, the other planes stand in for it.
func (t *topology) alone(s sets, key func(*Device) string) {
	size := make([]int, len(s))
	for i := range s {
		size[s.find(i)]++
	}
	first := map[string]int{}
	for i := range t.f.Devices {
		d := &t.f.Devices[i]
		if d.Host || d.Tier < 2 || size[s.find(i)] > 1 {
			continue
		}
		if j, ok := first[key(d)]; ok {
			s.join(i, j)
		} else {
			first[key(d)] = i
		}
	}
}

// serves is what a switch is an alternative for, so that equal keys mean that one can stand in for the other; "" when it
// serves hosts, or nothing. That of a spine is what is below it; that of a border switch is what is above.
func (t *topology) serves(d *Device, place map[string]int) string {
	if d.Host {
		return ""
	}
	border := false
	var at []int
	for i := range d.Ports {
		peer, ok := place[d.Ports[i].Peer]
		if ok && d.Tier == 1 && t.f.Devices[peer].Host {
			return ""
		}
		border = border || d.Ports[i].Role == "border"
		if ok && (d.Tier == 1 || t.f.Devices[peer].Tier < d.Tier) && (len(at) == 0 || at[len(at)-1] != peer) {
			at = append(at, peer)
		}
	}
	if len(at) == 0 || d.Tier == 1 && !border {
		return ""
	}
	slices.Sort(at)
	key := fmt.Appendf(nil, "%d %s %s ", d.Tier, d.Pod, d.Plane)
	for _, i := range slices.Compact(at) {
		key = binary.BigEndian.AppendUint32(key, uint32(i))
	}
	return string(key)
}

// nameGroups gives each set of at least two switches the name that the model gives to one of them, or else one made of
// its first and last member. Where the model gives several, it has divided the set, and the others stay together.
func (t *topology) nameGroups(s sets) {
	members := map[int][]*Device{}
	var order []int
	for i := range t.f.Devices {
		if d := &t.f.Devices[i]; !d.Host {
			r := s.find(i)
			if members[r] == nil {
				order = append(order, r)
			}
			members[r] = append(members[r], d)
		}
	}
	for _, r := range order {
		var rest []*Device
		given, many := "", false
		for _, d := range members[r] {
			switch {
			case d.Group == "":
				rest = append(rest, d)
			default:
				many = many || given != "" && given != d.Group
				given = d.Group
			}
		}
		name := given
		if given == "" || many {
			switch n := len(rest); {
			case n < 2:
				continue
			case n == 2:
				name = rest[0].Name + "+" + rest[1].Name
			default:
				name = rest[0].Name + ".." + rest[n-1].Name
			}
		}
		for _, d := range rest {
			d.Group = name
		}
	}
}

// splitBonds warns of bonds whose switches the model puts into different groups: both could then be worked on at once.
func (t *topology) splitBonds() {
	said := map[[2]string]bool{}
	for i := range t.f.Devices {
		d := &t.f.Devices[i]
		first := map[string]*Device{}
		for j := range d.Ports {
			p := &d.Ports[j]
			sw := t.devices[p.Peer]
			if !d.Host || p.Bond == "" || sw == nil {
				continue
			}
			o := first[p.Bond]
			if o == nil {
				first[p.Bond] = sw
				continue
			}
			if o.Group == sw.Group || said[[2]string{o.Group, sw.Group}] {
				continue
			}
			said[[2]string{o.Group, sw.Group}] = true
			at, other := sw.GroupAt, o.GroupAt
			if at == nil {
				at, other = other, at
			}
			f := diag.Finding{
				Rule: "redundancy", Severity: diag.Warning, Pos: at.At(), Devices: []string{o.Name, sw.Name},
				Msg: fmt.Sprintf("%s of %s is on %s (group %s) and on %s (group %s), which could both be down at once",
					p.Bond, d.Name, o.Name, cmp.Or(o.Group, "none"), sw.Name, cmp.Or(sw.Group, "none")),
				Hint: fmt.Sprintf("give %s and %s the same group", o.Name, sw.Name),
			}
			if pos := other.At(); !pos.IsZero() {
				f.Related = []diag.Related{{Pos: pos, Msg: "the other group is given here"}}
			}
			t.found.Add(f)
		}
	}
}

// capacity reports switches that are given more links than they have front ports.
func (t *topology) capacity() {
	said := map[*Origin]int{}
	for i := range t.f.Devices {
		d := &t.f.Devices[i]
		p, ok := t.f.Catalog.Platform(d.Platform.V)
		if d.Host || !ok || p.Ports == 0 {
			continue
		}
		need := t.frontPorts(d, slices.Max(append([]int{1}, p.Breakouts...)))
		if need <= p.Ports {
			continue
		}
		if at, again := said[d.From]; again {
			t.found[at].Devices = append(t.found[at].Devices, d.Name)
			continue
		}
		said[d.From] = len(t.found)
		t.found.Add(diag.Finding{
			Rule: "capacity", Severity: diag.Error, Pos: d.From.At(), Devices: []string{d.Name}, Roles: []string{d.Role},
			Msg:     fmt.Sprintf("%s needs %d front ports, but %s has %d", d.Name, need, p.Name, p.Ports),
			Hint:    fmt.Sprintf("that is %d too many: remove links, split ports with breakout, or choose a larger platform", need-p.Ports),
			Related: []diag.Related{{Pos: d.Platform.Pos(), Msg: "the platform is given here"}},
		})
	}
	for _, at := range said {
		if n := len(t.found[at].Devices) - 1; n > 0 {
			t.found[at].Msg += fmt.Sprintf(" (and %d more of its kind)", n)
		}
	}
}

// frontPorts is how many physical ports the links and listed ports of a switch need at least: those of generated links as
// they were laid out, others by how many share one, or could.
func (t *topology) frontPorts(d *Device, most int) int {
	n := 0
	if m := t.front[d.Name]; m != nil {
		n = m.port
	}
	extra := map[int]int{}
	for i := range d.Ports {
		if p := &d.Ports[i]; !p.laidOut {
			extra[cmp.Or(p.Breakout, most)]++
		}
	}
	for parts, links := range extra {
		n += (links + parts - 1) / parts
	}
	return n
}
