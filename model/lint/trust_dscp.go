package lint

import (
	"fmt"
	"slices"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
)

var trustDSCP = Rule{
	ID:       "trust-dscp",
	Title:    "ports of the fabric classify by DSCP",
	Severity: diag.Error,
	Areas:    intent.AreaSet(intent.AreaMaps),
	Run:      runTrustDSCP,
}

// distrust is a way to classify that is not DSCP.
type distrust struct {
	trust  intent.Trust
	line   diag.Pos
	active bool
}

func runTrustDSCP(p *Pass) {
	var bad causes[distrust]
	for _, pl := range p.Places {
		t := pl.Policy.Trust
		if pl.Device.Host || pl.Port.Role == "border" || !pl.Knows(intent.AreaMaps) || t == intent.TrustDSCP || t == intent.TrustUnknown {
			continue
		}
		if t == intent.TrustNone && !slices.ContainsFunc(pl.Policy.DSCP[:], func(tc uint8) bool { return tc != intent.Unmapped }) {
			continue // no map at all, which dscp-total says
		}
		if pl.Linked || len(pl.Policy.Lossless()) > 0 {
			bad.add(distrust{t, pl.Origin("trust").At(), pl.Active}, pl)
		}
	}
	for c, w := range bad.all {
		how := "looks at the VLAN tag's priority, which routed packets do not have"
		if c.trust == intent.TrustNone {
			how = "looks at no field of the packet, so that all of them share one class"
		}
		p.report(w, diag.Finding{
			Pos:  c.line,
			Msg:  fmt.Sprintf("trust is %s on %s, not dscp: the switch %s", c.trust, w, how),
			Hint: fmt.Sprintf("have %s trust DSCP", w),
		})
	}
}
