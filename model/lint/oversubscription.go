package lint

import (
	"fmt"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/units"
)

var oversubscription = Rule{
	ID:       "oversubscription",
	Title:    "what enters a switch from below fits upwards, also with one spine less",
	Severity: diag.Info,
	Run:      runOversubscription,
}

// Ratios from which something is said. Above tooThin it is a warning. The loss of one device above is mentioned by
// itself when it costs half of the capacity or more.
const (
	tooThin    = 3
	costlyLoss = 2
)

// squeeze is one proportion of one kind of switch.
type squeeze struct {
	role     string
	down, up units.BitRate
	largest  units.BitRate // of the trunks, which is lost when the device above is
	ports    int
	links    int
	peers    int
	active   bool
}

func runOversubscription(p *Pass) {
	var bad causes[squeeze]
	first := map[squeeze]*fanout{}
	fs := fanouts(p)
	for i := range fs {
		f := &fs[i]
		up, largest := f.rate()
		k := squeeze{f.dev.Role, f.down, up, largest, f.downPorts, f.links(), len(f.up), f.active}
		if f.down <= up && (k.peers < 2 || f.uneven() || f.down < costlyLoss*(up-largest)) {
			continue // what an uneven one loses is said by uneven-uplinks
		}
		if first[k] == nil {
			first[k] = f
		}
		bad.add(k, Place{Device: f.dev, Port: f.up[0].first, Ports: k.links, Active: f.active})
	}
	for k, w := range bad.all {
		f := first[k]
		finding := diag.Finding{
			Pos: portLine(p, f.dev.Name, f.up[0].first.Name),
			Msg: fmt.Sprintf("%s: %v from %s below over %v on %s to %s above is %s",
				w.names(), k.down, diag.Plural(k.ports, "port", "ports"), k.up, diag.Plural(k.links, "uplink", "uplinks"),
				diag.Plural(k.peers, "switch", "switches"), ratio(k.down, k.up)),
		}
		if k.peers > 1 {
			finding.Msg += fmt.Sprintf(", and %s when one of them is lost", ratio(k.down, k.up-k.largest))
		}
		finding.Hint = widen(k, f)
		if k.down > tooThin*k.up {
			finding.Severity = diag.Warning
		}
		p.report(w, finding)
	}
}

// widen says what would be enough, in uplinks of the speed that there is.
func widen(k squeeze, f *fanout) string {
	if k.down <= k.up {
		return "spread the uplinks over 3 switches or more, so that each carries a third of them or less"
	}
	speed := f.up[0].speed
	more := func(want units.BitRate) int { return int((want - k.up + speed - 1) / speed) }
	hint := fmt.Sprintf("add %s of %v to each for 1:1", diag.Plural(more(k.down), "uplink", "uplinks"), speed)
	if k.down > tooThin*k.up {
		hint += fmt.Sprintf(", or %d for %d:1", more((k.down+tooThin-1)/tooThin), tooThin)
	}
	return hint
}

// ratio writes a proportion as "2:1" or "1.34:1", rounded up.
func ratio(down, up units.BitRate) string {
	if up <= 0 {
		return "no way up at all"
	}
	hundredths := (down*100 + up - 1) / up
	if hundredths%100 == 0 {
		return fmt.Sprintf("%d:1", hundredths/100)
	}
	if hundredths%10 == 0 {
		return fmt.Sprintf("%d.%d:1", hundredths/100, hundredths%100/10)
	}
	return fmt.Sprintf("%d.%02d:1", hundredths/100, hundredths%100)
}
