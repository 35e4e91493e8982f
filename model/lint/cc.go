package lint

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
)

var ccOnLossless = Rule{
	ID:       "cc-on-lossless",
	Title:    "NICs slow down for the marks of every priority that switches mark",
	Severity: diag.Error,
	Areas:    intent.AreaSet(intent.AreaCC),
	Run:      runCCOnLossless,
}

// deaf is priorities whose marks a NIC does not act on.
type deaf struct {
	prios  uint8
	on     uint8 // where it does
	line   diag.Pos
	active bool
}

func runCCOnLossless(p *Pass) {
	var bad causes[deaf]
	for host, leaf := range p.hostLinks {
		c := host.Policy.CC
		if !host.Knows(intent.AreaCC) || !c.On || !leaf.Knows(intent.AreaECN) || !leaf.Knows(intent.AreaPFC) {
			continue
		}
		var marked uint8
		for i, q := range leaf.Policy.Queues {
			if q.Lossless && q.ECN.On {
				marked |= 1 << i
			}
		}
		if missing := marked &^ c.Priorities; missing != 0 {
			k := deaf{missing, c.Priorities, host.Origin("cc.priorities").At(), host.Active && leaf.Active}
			host.Active, host.Ports = k.active, 1
			bad.add(k, host)
		}
	}
	for k, w := range bad.all {
		first := bits.TrailingZeros8(k.prios)
		p.report(w, diag.Finding{
			Pos: cmp.Or(k.line, classLine(p, w.first.Device.Classes[first])),
			Msg: fmt.Sprintf("switches mark %s, but the congestion control of %s is on for %s: nobody slows down before pause comes",
				priorities(k.prios), w, priorities(k.on)),
			Hint: fmt.Sprintf("turn congestion control on for %s on %s", priorities(k.prios), w),
		})
	}
}

var ccAlgorithm = Rule{
	ID:       "cc-algorithm",
	Title:    "all NICs run one congestion control, and one that they have",
	Severity: diag.Warning,
	Areas:    intent.AreaSet(intent.AreaCC),
	Run:      runCCAlgorithm,
}

// runs is an algorithm of the NICs of one model.
type runs struct {
	algorithm intent.Algorithm
	nic       string
	line      diag.Pos
	active    bool
}

func runCCAlgorithm(p *Pass) {
	var all causes[runs]
	ports := map[intent.Algorithm]int{}
	for _, pl := range p.Places {
		c := pl.Policy.CC
		if !pl.Device.Host || !pl.Linked || !pl.Knows(intent.AreaCC) || !c.On || c.Algorithm == intent.AlgorithmNotSaid {
			continue
		}
		if pl.Active {
			ports[c.Algorithm] += pl.Ports
		}
		all.add(runs{c.Algorithm, pl.Port.NIC, pl.Origin("cc.algorithm").At(), pl.Active}, pl)
	}
	var common intent.Algorithm
	for _, k := range all.keys {
		if common == intent.AlgorithmNotSaid || ports[k.algorithm] > ports[common] {
			common = k.algorithm
		}
	}
	for k, w := range all.all {
		nic, ok := p.nic(k.nic)
		switch has := nic.CongestionControl; {
		case ok && len(has) > 0 && !slices.Contains(has, k.algorithm.String()):
			p.report(w, diag.Finding{
				Severity: diag.Error, Pos: k.line,
				Msg:  fmt.Sprintf("%s is asked of %s, whose NIC %s is known to have %s", k.algorithm, w, nic.Name, strings.Join(has, ", ")),
				Hint: fmt.Sprintf("set algorithm to %s, or correct congestion_control of %s in a document of kind Profile", has[0], nic.Name),
			})
		case k.algorithm != common:
			p.report(w, diag.Finding{
				Pos:  k.line,
				Msg:  fmt.Sprintf("the NICs of %s run %s, and the others of the fabric %s: the two do not share a link evenly", w.names(), k.algorithm, common),
				Hint: fmt.Sprintf("set algorithm to %s, or acknowledge %s with the reason", common, p.rule.ID),
			})
		}
	}
}
