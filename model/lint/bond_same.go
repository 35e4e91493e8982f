package lint

import (
	"fmt"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
)

var bondSame = Rule{
	ID:       "bond-same",
	Title:    "the members of a bond are set alike",
	Severity: diag.Error,
	Areas: intent.AreaSet(intent.AreaMTU, intent.AreaMaps, intent.AreaPFC, intent.AreaScheduler, intent.AreaBuffer, intent.AreaRoCE,
		intent.AreaCC, intent.AreaSystem),
	Run: runBondSame,
}

// unlike is a value that two members of a bond do not share.
type unlike struct {
	diff   intent.Difference
	active bool
}

func runBondSame(p *Pass) {
	var bad causes[unlike]
	first := map[unlike]pair{}
	for i := range p.Net.Devices {
		d := &p.Net.Devices[i]
		if !d.Host || d.State == intent.Absent {
			continue
		}
		member := map[string]*intent.Port{}
		for j := range d.Ports {
			q := &d.Ports[j]
			if q.Bond == "" || q.State == intent.Absent || q.Role == "unused" {
				continue
			}
			o := member[q.Bond]
			if o == nil {
				member[q.Bond] = q
				continue
			}
			p.compareMembers(d, o, q, func(k unlike, pl Place) {
				bad.add(k, pl)
				if _, known := first[k]; !known {
					first[k] = pair{o, q}
				}
			})
		}
	}
	for k, w := range bad.all {
		x := first[k]
		p.report(w, diag.Finding{
			Pos: w.first.Origin(k.diff.Field).At(), Related: []diag.Related{setHere(k.diff.Label, w.first.Device.Origin(x.a, k.diff.Field))},
			Msg: fmt.Sprintf("%s of %s is %s, and %s of %s, the other member of %s, %s: a flow's behaviour depends on the member that it takes",
				k.diff.Label, w, k.diff.After, k.diff.Label, x.a.Name, x.a.Bond, k.diff.Before),
			Hint: "give the members of a bond the same values",
		})
	}
}

// compareMembers yields each value that two members of a bond do not share, in the areas that both know and nobody ignores.
func (p *Pass) compareMembers(d *intent.Device, a, b *intent.Port, found func(unlike, Place)) {
	if a.Policy == b.Policy {
		return
	}
	x, y := *d.PolicyOf(a), *d.PolicyOf(b)
	both := x.Known & y.Known & p.rule.Areas
	for area := range intent.NumAreas {
		if a.Manage[area] == intent.Ignore || b.Manage[area] == intent.Ignore {
			both &^= intent.AreaSet(area)
		}
	}
	x, y = x.Only(both), y.Only(both)
	x.Cable, y.Cable = 0, 0 // each has its own
	active := d.State == intent.Active && a.State == intent.Active && b.State == intent.Active
	for _, diff := range intent.Differences(&x, &y) {
		found(unlike{diff, active}, Place{Device: d, Port: b, Policy: d.PolicyOf(b), Ports: 1, Active: active})
	}
}
