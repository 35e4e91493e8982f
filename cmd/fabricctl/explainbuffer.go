package main

import (
	"strconv"

	"github.com/fabricctl/fabricctl/model/derive"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/units"
)

// explainHeadroom is one way to say how much headroom a port needs, with its arithmetic.
type explainHeadroom struct {
	Model       string        `json:"model"`
	Bytes       units.Bytes   `json:"bytes"` // what would be configured
	Xoff        units.Bytes   `json:"xoff"`  // before it is rounded
	Xon         units.Bytes   `json:"xon,omitempty"`
	XonFormula  string        `json:"xon_formula,omitempty"`
	Size        units.Bytes   `json:"size,omitempty"`
	SizeFormula string        `json:"size_formula,omitempty"`
	Taken       string        `json:"taken,omitempty"` // "auto": headroom: auto takes it; "driver": the adapter's driver does
	Note        string        `json:"note,omitempty"`
	Source      string        `json:"source"`
	Terms       []explainTerm `json:"terms"`
}

type explainTerm struct {
	Name    string `json:"name"`
	Formula string `json:"formula"`
	Bytes   string `json:"bytes"`
}

// explainPause is where the pause of a lossless priority begins, and how far below it marking does.
type explainPause struct {
	Priority int                 `json:"priority"`
	Class    string              `json:"class,omitempty"`
	Kmin     units.Bytes         `json:"kmin,omitempty"` // in effect
	Points   []explainPausePoint `json:"points"`
}

type explainPausePoint struct {
	Groups int         `json:"groups"` // congested at once
	Each   units.Bytes `json:"each"`   // what each holds at its pause
	Sum    units.Bytes `json:"sum"`    // the queue at the egress that all of them fill
	Left   units.Bytes `json:"left"`   // of the pool
	Lead   string      `json:"ecn_lead,omitempty"`
}

// explainBudget is what a device promises of its buffer.
type explainBudget struct {
	Buffer       units.Bytes `json:"buffer,omitempty"` // of the chip
	Shared       units.Bytes `json:"shared_pool,omitempty"`
	HeadroomPool units.Bytes `json:"headroom_pool,omitempty"`
	Egress       units.Bytes `json:"egress_pool,omitempty"`
	Groups       int         `json:"groups"`
	Empty        int         `json:"groups_without_headroom,omitempty"`
	Unknown      int         `json:"groups_unknown,omitempty"`
	Headroom     units.Bytes `json:"headroom"` // promised
	Reserved     units.Bytes `json:"reserved"`
	Dedicated    bool        `json:"headroom_dedicated"`
	Ratio        float64     `json:"headroom_ratio,omitempty"`
	Published    float64     `json:"published_ratio,omitempty"`
	Promised     units.Bytes `json:"promised"`
}

// headroomsOf is how much headroom a port needs, by each model that applies to it; none where nothing is lossless.
func (x *explainer) headroomsOf(d *intent.Device, p *intent.Port) []explainHeadroom {
	if len(x.lossless(d, p)) == 0 {
		return nil
	}
	in := intent.IngressOf(d, p)
	if d.Host {
		in.NIC, _ = x.fabric.Catalog.NIC(p.NIC)
	}
	var hs []explainHeadroom
	for _, c := range intent.Headrooms(in) {
		h := explainHeadroom{
			Model: string(c.Model), Bytes: c.Bytes, Xoff: c.Xoff, Xon: c.Xon, XonFormula: c.XonFormula, Size: c.Size, SizeFormula: c.SizeFormula,
			Taken: takenBy(d, p, c), Note: c.Note, Source: c.Source, Terms: []explainTerm{},
		}
		for _, t := range c.Terms {
			h.Terms = append(h.Terms, explainTerm{t.Name, t.Formula, t.Bytes.String()})
		}
		hs = append(hs, h)
	}
	return hs
}

// takenBy says who takes a headroom; "" where nobody does.
func takenBy(d *intent.Device, p *intent.Port, c intent.Choice) string {
	switch {
	case d.Host && c.Model == derive.ModelMLX5NIC:
		return "driver"
	case c.Auto && !d.Host && d.PolicyOf(p).Known.Has(intent.AreaBuffer):
		return "auto"
	}
	return ""
}

// lossless are the priorities of a port that are lossless, or those of the switch that a host's port is linked to: hosts
// do not say.
func (x *explainer) lossless(d *intent.Device, p *intent.Port) []int {
	pol := d.PolicyOf(p)
	if !pol.Known.Has(intent.AreaPFC) {
		if peer, q := x.peer(p); q != nil {
			pol = peer.PolicyOf(q)
		}
	}
	var ps []int
	for _, i := range pol.Lossless() {
		if x.priority < 0 || x.priority == i {
			ps = append(ps, i)
		}
	}
	return ps
}

// pausesOf is where each lossless priority of a port pauses.
func (x *explainer) pausesOf(d *intent.Device, p *intent.Port, effective *intent.Policy) []explainPause {
	var ps []explainPause
	for _, i := range x.lossless(d, p) {
		q := effective.Queues[i]
		if !q.Buffer.On {
			continue
		}
		e := explainPause{Priority: i, Class: d.Classes[i]}
		if q.ECN.On {
			e.Kmin = q.ECN.Kmin
		}
		for _, at := range intent.PausePoints(q.Buffer, d.Pools) {
			point := explainPausePoint{Groups: at.Groups, Each: at.Each, Sum: at.Sum, Left: at.Left}
			if q.ECN.On {
				point.Lead = lead(at.Sum, e.Kmin)
			}
			e.Points = append(e.Points, point)
		}
		if len(e.Points) > 0 {
			ps = append(ps, e)
		}
	}
	return ps
}

// lead is by how much marking starts before the pause: negative where it does not.
func lead(pause, kmin units.Bytes) string {
	if kmin > pause {
		return "-" + (kmin - pause).String()
	}
	return (pause - kmin).String()
}

// budgetOf is what a switch promises of its buffer; nil where neither its pools nor its groups are known.
func budgetOf(d *intent.Device) *explainBudget {
	g := intent.BudgetOf(d)
	if d.Host || g.Groups == 0 && g.Pools == (intent.Pools{}) {
		return nil
	}
	return &explainBudget{
		Buffer: g.Buffer, Shared: g.Pools.Shared, HeadroomPool: g.Pools.Headroom, Egress: g.Pools.Egress, Groups: g.Groups, Empty: g.Empty,
		Unknown: g.Unknown, Headroom: g.Headroom, Reserved: g.Reserved, Dedicated: g.Dedicated, Ratio: g.Ratio, Published: g.Published, Promised: g.Promised,
	}
}

// about writes a size as people compare it, in three digits.
func about(v units.Bytes) string {
	for _, u := range []struct {
		size units.Bytes
		name string
	}{{units.GB, "GB"}, {units.MB, "MB"}, {units.KB, "KB"}} {
		if f := float64(v) / float64(u.size); f >= 0.9995 {
			decimals := 0
			switch {
			case f < 9.995:
				decimals = 2
			case f < 99.95:
				decimals = 1
			}
			return strconv.FormatFloat(f, 'f', decimals, 64) + u.name
		}
	}
	return v.String()
}
