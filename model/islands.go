package model

import (
	"cmp"
	"fmt"

	"github.com/fabricctl/fabricctl/model/diag"
)

// islands reports hosts that no path of links joins to the others. Hosts count as joints: without spines, the leaves of
// different rails meet in them.
func (t *topology) islands() {
	ds := t.f.Devices
	index := make(map[string]int, len(ds))
	part := make([]int, len(ds)) // of each device, another one of its part; a part's own root points at itself
	for i := range ds {
		index[ds[i].Name], part[i] = i, i
	}
	root := func(i int) int {
		for part[i] != i {
			part[i] = part[part[i]]
			i = part[i]
		}
		return i
	}
	linked := make([]bool, len(ds))
	for i := range ds {
		for j := range ds[i].Ports {
			if peer, ok := index[ds[i].Ports[j].Peer]; ok {
				linked[i] = true
				part[root(peer)] = root(i)
			}
		}
	}
	host := map[int]*Device{} // the first host of each part
	var parts []int
	for i := range ds {
		if r := root(i); ds[i].Host && linked[i] && host[r] == nil {
			host[r] = &ds[i]
			parts = append(parts, r)
		}
	}
	if len(parts) < 2 {
		return
	}
	a, b := host[parts[0]], host[parts[1]]
	topology := t.f.docs.fabric.get("topology")
	hint, at := "add the links between them", b.From.At()
	switch {
	case a.Pod != b.Pod:
		hint, at = "give topology.super_spines and topology.links.spine_super", topology.get("pods").pos()
	case !topology.has("spines") && topology.has("leaves"):
		hint, at = "give topology.spines and topology.links.leaf_spine", topology.get("leaves").pos()
	case integer(topology.get("spines", "count")).V == 0 && topology.has("spines"):
		hint, at = "raise topology.spines.count", topology.get("spines", "count").pos()
	}
	t.found.Add(diag.Finding{
		Rule: "islands", Severity: diag.Warning, Pos: cmp.Or(at, b.From.At()), Hint: hint + ", or acknowledge islands with the reason",
		Msg: fmt.Sprintf("the hosts are in %d parts that no link joins: %s has no path to %s", len(parts), a.Name, b.Name),
	})
}

// speeds reports links without a speed, once for each kind of link. Of listed ones it is only info: they may stand for
// what nobody has looked at yet.
func (t *topology) speeds() {
	type group struct {
		first *Port
		on    *Device
		more  int
	}
	type kindOf struct {
		lower, upper string
		laidOut      bool
	}
	var groups []*group
	of := map[kindOf]*group{}
	for i := range t.f.Devices {
		d := &t.f.Devices[i]
		for j := range d.Ports {
			p := &d.Ports[j]
			peer := t.devices[p.Peer]
			if p.Speed.Set || peer == nil || p.Role == "unused" || CompareNames(p.Peer, d.Name) < 0 {
				continue
			}
			k := kindOf{d.Role, peer.Role, p.laidOut}
			if peer.Tier < d.Tier {
				k.lower, k.upper = k.upper, k.lower
			}
			if g := of[k]; g != nil {
				g.more++
				continue
			}
			of[k] = &group{first: p, on: d}
			groups = append(groups, of[k])
		}
	}
	for _, g := range groups {
		d, peer := g.on, t.devices[g.first.Peer]
		if peer.Tier < d.Tier {
			d, peer = peer, d
		}
		kind := map[[2]string]string{
			{"leaf", "spine"}: "leaf_spine", {"spine", "super-spine"}: "spine_super", {"host", "leaf"}: "host_leaf", {"storage", "leaf"}: "storage_leaf",
		}[[2]string{d.Role, peer.Role}]
		hint, at := "give the link a speed, such as speed: 400Gbps", g.first.From.At()
		if g.first.laidOut && kind != "" {
			hint = fmt.Sprintf("give topology.links.%s a speed, such as speed: 400Gbps", kind)
			at = cmp.Or(t.f.docs.fabric.get("topology", "links", kind).pos(), at)
		}
		more := ""
		if g.more > 0 {
			more = fmt.Sprintf(" and %d more", g.more)
		}
		f := diag.Finding{Rule: "no-speed", Severity: diag.Info, Pos: at, Hint: hint, Msg: fmt.Sprintf("the speed of %s:%s%s is not known, so uplinks and thresholds are not judged by it", g.on.Name, g.first.Name, more)}
		if g.first.laidOut {
			f.Severity = diag.Warning
		}
		t.found.Add(f)
	}
}
