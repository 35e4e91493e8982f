package lint

import (
	"cmp"
	"fmt"
	"strings"

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
	var ways []string
	if least := min(d.Detect, d.Restore); least >= shortestPoll {
		ways = append(ways, "lower poll to at most "+millis(least).String())
	}
	if d.Poll <= longestDetect {
		poll := millis(d.Poll).String()
		switch {
		case d.Detect >= d.Poll:
			ways = append(ways, "raise restore to at least "+poll)
		case d.Restore >= d.Poll:
			ways = append(ways, "raise detect to at least "+poll)
		default:
			ways = append(ways, fmt.Sprintf("raise detect to at least %s and restore to at least %s", poll, poll))
		}
	}
	hint := strings.Join(ways, ", or ")
	if hint == "" {
		hint = fmt.Sprintf("raise detect and restore to at least %s, and lower poll to what the smaller of them is", millis(shortestPoll))
	}
	at := c.poll
	if min(d.Detect, d.Restore) < shortestPoll { // poll cannot follow
		at = c.restore
		if d.Detect < d.Restore {
			at = c.detect
		}
	}
	related := []diag.Related{setHere("poll", w.first.Origin("watchdog.poll"))}
	if d.Detect < d.Poll {
		related = append(related, setHere("detect", w.first.Origin("watchdog.detect")))
	}
	if d.Restore < d.Poll {
		related = append(related, setHere("restore", w.first.Origin("watchdog.restore")))
	}
	p.report(w, diag.Finding{
		Pos: cmp.Or(at, c.poll), Related: related,
		Msg:  fmt.Sprintf("the watchdog on %s polls every %s, but is to detect after %s and to restore after %s", w, millis(d.Poll), millis(d.Detect), millis(d.Restore)),
		Hint: hint,
	})
}
