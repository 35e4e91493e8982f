package lint

import (
	"fmt"
	"strconv"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
)

var chainConsistent = Rule{
	ID:       "chain-consistent",
	Title:    "a lossless class is one thing from code point to pause",
	Severity: diag.Error,
	Areas:    intent.AreaSet(intent.AreaMaps, intent.AreaPFC),
	Run:      runChainConsistent,
}

// brokenChain is a lossless priority whose packets and pause do not meet. Other is a traffic class that shares its
// queue or group, or -1; then Queue and Group say where.
type brokenChain struct {
	prio, other            int
	group, queue, pfcQueue uint8
	line                   diag.Pos
	active                 bool
}

func runChainConsistent(p *Pass) {
	var bad causes[brokenChain]
	for _, pl := range p.Places {
		if pl.Device.Host || pl.Port.Role == "border" || !pl.Knows(intent.AreaMaps) || !pl.Knows(intent.AreaPFC) {
			continue
		}
		pol := pl.Policy
		reached := reachedClasses(pol)
		for _, prio := range pol.Lossless() {
			c := brokenChain{
				prio: prio, other: -1, group: pol.TCPG[prio], queue: pol.TCQueue[prio], pfcQueue: pol.PFCQueue[prio],
				line: pl.Origin(perQueue("class.", prio, "")).At(), active: pl.Active,
			}
			if reached[prio] && (c.queue == intent.Unmapped || c.queue != c.pfcQueue || int(c.group) != prio) { // where no code point leads, no packet is lost
				bad.add(c, pl)
			}
			for tc := range pol.TCQueue {
				if tc == prio || !reached[tc] {
					continue
				}
				c.other, c.group, c.queue = tc, pol.TCPG[tc], pol.TCQueue[tc]
				if c.queue == pol.TCQueue[prio] && c.queue != intent.Unmapped || int(c.group) == prio {
					bad.add(c, pl)
				}
			}
		}
	}
	for c, w := range bad.all {
		name := class(w.first.Device, c.prio)
		f := diag.Finding{Pos: c.line}
		if c.other >= 0 {
			f.Msg = fmt.Sprintf("traffic class %d of %s goes to priority group %s and queue %s on %s, beside lossless %s: it fills a buffer that priority %d has to pause for",
				c.other, class(w.first.Device, c.other), mapped(c.group), mapped(c.queue), w, name, c.prio)
			f.Hint = fmt.Sprintf("map traffic class %d to a group and a queue of lossy traffic on %s", c.other, w)
		} else {
			f.Msg = fmt.Sprintf("%s: packets of priority %d go to priority group %s and queue %s on %s, but its pause is sent for group %d and stops queue %s",
				name, c.prio, mapped(c.group), mapped(c.queue), w, c.prio, mapped(c.pfcQueue))
			f.Hint = fmt.Sprintf("map traffic class %d to priority group %d and queue %d, and pause of priority %d to queue %d on %s",
				c.prio, c.prio, c.prio, c.prio, c.prio, w)
		}
		p.report(w, f)
	}
}

// reachedClasses says which traffic classes some code point leads to.
func reachedClasses(p *intent.Policy) (reached [8]bool) {
	for _, tc := range p.DSCP {
		if tc < 8 {
			reached[tc] = true
		}
	}
	return reached
}

// mapped is a map's entry for people.
func mapped(n uint8) string {
	if n == intent.Unmapped {
		return "none"
	}
	return strconv.Itoa(int(n))
}
