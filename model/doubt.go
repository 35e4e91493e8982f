package model

import (
	"slices"

	"github.com/fabricctl/fabricctl/model/diag"
)

// Doubts says what the errors of a load leave open. What is not in doubt can be judged all the same, so that people see
// everything that is wrong at once, and nothing that merely follows from it. The zero Doubts leave nothing open.
type Doubts struct {
	All      bool // the documents or the topology themselves
	MTU      bool // sizes of frames
	Watchdog bool

	at map[diag.Pos]bool // errors, and the values of classes, applications and devices that lost a value to one
}

// Touches reports whether a finding may be a consequence of an error of the load: it is about the same place, about a
// class that lost a value, or about no line at all.
func (d Doubts) Touches(f diag.Finding) bool {
	if len(d.at) == 0 && !d.All {
		return false
	}
	if d.All || f.Pos.IsZero() || d.at[f.Pos] {
		return true
	}
	for _, r := range f.Related {
		if d.at[r.Pos] {
			return true
		}
	}
	return false
}

// Doubts are those that the errors in found, which f was loaded with, leave.
func (f *Fabric) Doubts(found diag.List) Doubts {
	d := Doubts{at: map[diag.Pos]bool{}, All: f.shaken || f.docs.fabric == nil}
	whole := map[diag.Pos]bool{} // places of which all values are in doubt
	for _, x := range found {
		if x.Severity != diag.Error {
			continue
		}
		d.at[x.Pos] = true
		for _, r := range x.Related {
			d.at[r.Pos] = true
		}
		whole[x.Pos] = whole[x.Pos] || x.Rule == "missing"
	}
	if d.All {
		return d
	}
	root := f.docs.fabric
	d.All = lost(root.kid("topology")) || lost(root.kid("overrides")) || lost(root.kid("manage"))
	d.MTU, d.Watchdog = lost(root.kid("mtu")), lost(root.kid("pfc_watchdog"))
	d.elements(root.kid("classes"), whole)
	d.elements(root.kid("applications"), whole)
	return d
}

func lost(n *node) bool { return n != nil && hasBad(n) }

// elements puts each element of a list in doubt that lost a value; a list that is none is lost altogether.
func (d *Doubts) elements(n *node, whole map[diag.Pos]bool) {
	if n == nil {
		return
	}
	d.All = d.All || n.bad
	for _, e := range n.items {
		if p := e.kid("priority"); lost(e) || holds(e, whole) || p != nil && d.at[p.pos()] {
			d.values(e)
		}
	}
}

// holds reports whether one of places is in n.
func holds(n *node, places map[diag.Pos]bool) bool {
	if places[n.pos()] || slices.ContainsFunc(n.items, func(c *node) bool { return holds(c, places) }) {
		return true
	}
	for _, x := range n.keys {
		if holds(x.kid, places) {
			return true
		}
	}
	return false
}

func (d *Doubts) values(n *node) {
	d.at[n.pos()] = true
	for _, e := range n.items {
		d.values(e)
	}
	for _, x := range n.keys {
		d.values(x.kid)
	}
}
