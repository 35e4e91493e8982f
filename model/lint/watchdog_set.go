package lint

import (
	"fmt"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
)

var watchdogSet = Rule{
	ID:       "watchdog-set",
	Title:    "the watchdog watches every lossless priority",
	Severity: diag.Error,
	Areas:    intent.AreaSet(intent.AreaWatchdog, intent.AreaPFC),
	Run:      runWatchdogSet,
}

// unwatched is a set of lossless priorities that the watchdog leaves out.
type unwatched struct {
	prios, lossless uint8
	line            diag.Pos
	active          bool
}

func runWatchdogSet(p *Pass) {
	var bad causes[unwatched]
	for _, pl := range p.Places {
		if pl.Device.Host || !pl.Knows(intent.AreaWatchdog) || !pl.Knows(intent.AreaPFC) {
			continue
		}
		lossless := losslessBits(pl.Policy) & named(pl.Device)
		if skips := pl.Policy.Watchdog.Skips & lossless; pl.Policy.Watchdog.On && skips != 0 {
			bad.add(unwatched{skips, lossless, pl.Origin("watchdog.detect").At(), pl.Active}, pl)
		}
	}
	for c, w := range bad.all {
		watches := "does not watch"
		if c.lossless != c.prios {
			watches = "watches " + priorities(c.lossless&^c.prios) + ", and not"
		}
		p.report(w, diag.Finding{
			Pos:  c.line,
			Msg:  fmt.Sprintf("the watchdog on %s %s %s, which is lossless: a stuck pause there is never ended", w, watches, priorities(c.prios)),
			Hint: fmt.Sprintf("have the watchdog watch %s on %s too", priorities(c.prios), w),
		})
	}
}

// named are the priorities that the model names on d, as bits; all of them where it names none. What else is lossless there is observed:
// nobody asks for it, and nobody writes it.
func named(d *intent.Device) (bits uint8) {
	for prio, class := range d.Classes {
		if class != "" {
			bits |= 1 << prio
		}
	}
	if bits == 0 {
		return 0xff
	}
	return bits
}
