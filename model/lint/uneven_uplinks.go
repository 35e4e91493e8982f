package lint

import (
	"fmt"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/units"
)

var unevenUplinks = Rule{
	ID:       "uneven-uplinks",
	Title:    "a switch's uplinks are of one speed, and as many to each switch above",
	Severity: diag.Warning,
	Run:      runUnevenUplinks,
}

// uneven is a kind of switch whose trunks differ, by its most and least.
type uneven struct {
	role        string
	most, least trunkKind
	peers       int
	active      bool
}

// trunkKind is a trunk without its name.
type trunkKind struct {
	links int
	rate  units.BitRate
	speed units.BitRate
	mixed bool
}

func runUnevenUplinks(p *Pass) {
	var bad causes[uneven]
	type pair struct {
		f           *fanout
		most, least trunk
	}
	first := map[uneven]pair{}
	fs := fanouts(p)
	for i := range fs {
		f := &fs[i]
		most, least := f.up[0], f.up[0]
		if !f.uneven() {
			continue
		}
		for _, t := range f.up[1:] {
			if t.rate > most.rate {
				most = t
			}
			if t.rate < least.rate {
				least = t
			}
		}
		kind := func(t trunk) trunkKind { return trunkKind{t.links, t.rate, t.speed, t.mixed} }
		k := uneven{f.dev.Role, kind(most), kind(least), len(f.up), f.active}
		if _, seen := first[k]; !seen {
			first[k] = pair{f, most, least}
		}
		bad.add(k, Place{Device: f.dev, Port: least.first, Ports: f.links(), Active: f.active})
	}
	for k, w := range bad.all {
		x := first[k]
		msg := fmt.Sprintf("%s: %s to %s, but %s to %s: ECMP spreads flows over links alike, and the weaker ones fill first",
			w.names(), x.most, x.most.peer, x.least, x.least.peer)
		if k.most == k.least {
			msg = fmt.Sprintf("%s: %s to %s: ECMP spreads flows over links alike, and the slower ones fill first", w.names(), x.most, x.most.peer)
		}
		p.report(w, diag.Finding{
			Pos: portLine(p, x.f.dev.Name, x.least.first.Name), Msg: msg,
			Hint: fmt.Sprintf("give %s as many links of one speed to each switch above, or acknowledge %s with the reason (weighted ECMP, say)", w.names(), p.rule.ID),
		})
	}
}

// String is "2 links of 400Gbps", or the sum where speeds differ.
func (t trunk) String() string {
	if t.mixed {
		return fmt.Sprintf("%s of several speeds, %v together", diag.Plural(t.links, "link", "links"), t.rate)
	}
	return fmt.Sprintf("%s of %v", diag.Plural(t.links, "link", "links"), t.speed)
}
