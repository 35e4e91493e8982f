package lint

import (
	"fmt"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
)

var watchdogOn = Rule{
	ID:       "watchdog-on",
	Title:    "a PFC watchdog guards every port that can be paused",
	Severity: diag.Error,
	Areas:    intent.AreaSet(intent.AreaWatchdog, intent.AreaPFC),
	Run:      runWatchdogOn,
}

// unguarded is a watchdog that is off where priorities are lossless, or that polls too seldom.
type unguarded struct {
	lossless                     uint8
	dog                          intent.Watchdog
	class, detect, restore, poll diag.Pos
	active                       bool
}

func runWatchdogOn(p *Pass) {
	var bad causes[unguarded]
	for _, pl := range p.Places {
		if pl.Device.Host || !pl.Knows(intent.AreaWatchdog) {
			continue
		}
		at := func(f intent.Field) diag.Pos { return pl.Origin(f).At() }
		dog, lossless := pl.Policy.Watchdog, losslessBits(pl.Policy)
		switch {
		case !dog.On && lossless != 0 && pl.Knows(intent.AreaPFC) && pl.Port.Role != "border": // there, PFC itself is wrong
			first := pl.Policy.Lossless()[0]
			bad.add(unguarded{lossless: lossless, class: at(perQueue("lossless.", first, "")), active: pl.Active}, pl)
		case dog.On && (dog.Detect < dog.Poll || dog.Restore < dog.Poll):
			bad.add(unguarded{
				dog: dog, detect: at("watchdog.detect"), restore: at("watchdog.restore"), poll: at("watchdog.poll"), active: pl.Active,
			}, pl)
		}
	}
	for c, w := range bad.all {
		if c.dog.On {
			reportSlowPoll(p, c, w)
			continue
		}
		p.report(w, diag.Finding{
			Pos:  c.class,
			Msg:  fmt.Sprintf("no PFC watchdog on %s, where %s can be paused: one stuck neighbour stops the fabric", w, priorities(c.lossless)),
			Hint: "add pfc_watchdog: {detect: 200ms, restore: 400ms, poll: 100ms, action: drop}",
		})
	}
}

func reportSlowPoll(p *Pass, c unguarded, w *where) {
	d := c.dog
	hint := fmt.Sprintf("lower poll to at most %dms", min(d.Detect, d.Restore))
	if d.Poll <= longestDetect {
		switch {
		case d.Detect >= d.Poll:
			hint += fmt.Sprintf(", or raise restore to at least %dms", d.Poll)
		case d.Restore >= d.Poll:
			hint += fmt.Sprintf(", or raise detect to at least %dms", d.Poll)
		default:
			hint += fmt.Sprintf(", or raise detect to at least %dms and restore to at least %dms", d.Poll, d.Poll)
		}
	}
	p.report(w, diag.Finding{
		Pos: c.poll,
		Related: []diag.Related{
			setHere("detect", w.first.Origin("watchdog.detect")), setHere("restore", w.first.Origin("watchdog.restore")),
		},
		Msg:  fmt.Sprintf("the watchdog on %s polls every %dms, but is to detect after %dms and to restore after %dms", w, d.Poll, d.Detect, d.Restore),
		Hint: hint,
	})
}
