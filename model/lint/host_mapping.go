package lint

import (
	"fmt"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
)

var hostMapping = Rule{
	ID:       "host-mapping",
	Title:    "host and leaf put a packet in the same class",
	Severity: diag.Error,
	Areas:    intent.AreaSet(intent.AreaMaps),
	Run:      runHostMapping,
}

// mismatch is code points that a host and its leaf have in different priorities, where one of them is lossless or of
// notifications.
type mismatch struct {
	host, leaf [64]uint8 // zero where both agree or it does not matter
	dscp       uint64    // where it matters
	trust      intent.Trust
	line       diag.Pos
	active     bool
}

func runHostMapping(p *Pass) {
	var bad causes[mismatch]
	leaves := map[mismatch]Place{}
	for host, leaf := range p.hostLinks {
		if !host.Knows(intent.AreaMaps) || !leaf.Knows(intent.AreaMaps) {
			continue
		}
		m := differ(host, leaf)
		if host.Policy.Trust != intent.TrustUnknown && host.Policy.Trust != leaf.Policy.Trust && leaf.Policy.Trust == intent.TrustDSCP { // else trust-dscp says it
			m.trust, m.dscp, m.host, m.leaf = host.Policy.Trust, 0, [64]uint8{}, [64]uint8{} // with another header, the map is beside the point
		}
		if m.dscp == 0 && m.trust == intent.TrustUnknown {
			continue
		}
		m.active = host.Active && leaf.Active
		host.Active, host.Ports = m.active, 1
		bad.add(m, host)
		if _, known := leaves[m]; !known {
			leaves[m] = leaf
		}
	}
	for m, w := range bad.all {
		leaf := leaves[m]
		if m.trust != intent.TrustUnknown {
			p.report(w, diag.Finding{
				Pos:  m.line,
				Msg:  fmt.Sprintf("%s takes the class of a packet from %v, and %s at the other end from %v: they agree only by chance", w, m.trust, leaf, leaf.Policy.Trust),
				Hint: fmt.Sprintf("have %s trust %v", w, leaf.Policy.Trust),
			})
			continue
		}
		points := codePoints(func(d int) bool { return m.dscp&(1<<d) != 0 })
		p.report(w, diag.Finding{
			Pos: m.line,
			Msg: fmt.Sprintf("dscp %s: to %s on %s, but to %s on %s: a pause for the one does not stop the other",
				intent.Ranges(points), targets(&m.host, points), w, targets(&m.leaf, points), leaf),
			Hint: fmt.Sprintf("map dscp %s on %s as its leaf does: to %s", intent.Ranges(points), w, targets(&m.leaf, points)),
		})
	}
}

// differ finds the code points that matter and that the two ends have in different priorities.
func differ(host, leaf Place) (m mismatch) {
	matters := func(pl Place, prio uint8) bool {
		return prio < 8 && (pl.Policy.Queues[prio].Lossless || pl.Device.CNP != "" && pl.Device.Classes[prio] == pl.Device.CNP)
	}
	for d := range 64 {
		h, l := host.Policy.DSCP[d], leaf.Policy.DSCP[d]
		if h != l && (matters(leaf, l) || matters(host, h)) {
			m.dscp |= 1 << d
			m.host[d], m.leaf[d] = h, l
			if m.line.IsZero() {
				m.line = leaf.Origin(dscpField(d)).At()
			}
		}
	}
	return m
}
