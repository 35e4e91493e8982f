package lint

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
)

var losslessProtected = Rule{
	ID:       "lossless-protected",
	Title:    "what the model calls lossless has PFC wherever it goes",
	Severity: diag.Error,
	Areas:    intent.AreaSet(intent.AreaMaps, intent.AreaPFC),
	Run:      runLosslessProtected,
}

// unprotected are code points of a lossless class that a port sends to a priority without PFC.
type unprotected struct {
	class  int    // in the model
	to     uint8  // or intent.Unmapped
	dscp   uint64 // a bit per code point
	has    uint8  // the priorities that have PFC there
	active bool
}

// runLosslessProtected holds what switches do against what the model promises of its classes.
func runLosslessProtected(p *Pass) {
	if p.Fabric == nil {
		return
	}
	var bad causes[unprotected]
	for _, pl := range p.Places {
		if pl.Device.Host || pl.Port.Role == "border" || !pl.Knows(intent.AreaMaps) || !pl.Knows(intent.AreaPFC) {
			continue
		}
		for i := range p.Fabric.Classes {
			to := strays(pl.Policy, &p.Fabric.Classes[i])
			for _, prio := range slices.Sorted(maps.Keys(to)) {
				bad.add(unprotected{i, prio, to[prio], losslessBits(pl.Policy), pl.Active}, pl)
			}
		}
	}
	for k, w := range bad.all {
		p.report(w, k.finding(&p.Fabric.Classes[k.class], w))
	}
}

// strays are the code points of a lossless class, by the priority without PFC to which the port sends them, which is
// intent.Unmapped where it does not map them. Nil where there are none.
func strays(p *intent.Policy, c *model.Class) map[uint8]uint64 {
	if !c.Lossless.V || !c.Priority.Set { // without one, the class is nowhere yet
		return nil
	}
	var to map[uint8]uint64
	for _, d := range c.DSCP {
		tc := p.DSCP[d.V&63]
		if tc < 8 && p.Queues[tc].Lossless {
			continue
		}
		if to == nil {
			to = map[uint8]uint64{}
		}
		to[tc] |= 1 << (d.V & 63)
	}
	return to
}

func (k unprotected) finding(c *model.Class, w *where) diag.Finding {
	ds := codePoints(func(d int) bool { return k.dscp&(1<<d) != 0 })
	want := c.Priority.V & 7
	f := diag.Finding{
		Pos: w.first.Origin(dscpField(ds[0])).At(),
		Msg: fmt.Sprintf("class %s is lossless, but its dscp %s leads to %s on %s, where PFC is on for %s: a full buffer drops it",
			c.Name, intent.Ranges(ds), leadsTo(k.to), w, priorities(k.has)),
		Hint: fmt.Sprintf("map dscp %s to priority %d on %s", intent.Ranges(ds), want, w),
	}
	switch {
	case k.to == want:
		f.Pos = cmp.Or(w.first.Origin(perQueue("lossless.", int(want), "")).At(), f.Pos)
		f.Hint = fmt.Sprintf("switch PFC on for priority %d on %s", want, w)
	case k.has&(1<<want) == 0:
		f.Hint = fmt.Sprintf("map dscp %s to priority %d, and switch PFC on for it, on %s", intent.Ranges(ds), want, w)
	}
	return f
}

func leadsTo(prio uint8) string {
	if prio == intent.Unmapped {
		return "no priority"
	}
	return "priority " + strconv.Itoa(int(prio))
}
