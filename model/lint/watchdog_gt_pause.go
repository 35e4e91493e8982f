package lint

import (
	"cmp"
	"fmt"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/units"
)

var watchdogGtPause = Rule{
	ID:       "watchdog-gt-pause",
	Title:    "the watchdog waits longer than congestion pauses, and not so long that a storm spreads",
	Severity: diag.Warning,
	Areas:    intent.AreaSet(intent.AreaWatchdog),
	Run:      runWatchdogGtPause,
}

// Detection times between which congestion and a storm are told apart, in milliseconds.
const (
	shortestDetect = 100
	longestDetect  = 1000
)

// shortestPoll is the shortest time between looks that switches take (SONiC's PFC_WD: 100 to 3000), in milliseconds.
const shortestPoll = 100

// millis is a time in milliseconds as people write it.
func millis(ms int32) units.Duration { return units.Duration(ms) * units.Millisecond }

// dogTimes is one pair of times from one pair of lines.
type dogTimes struct {
	detect, poll     int32
	detectAt, pollAt diag.Pos
	active           bool
}

func runWatchdogGtPause(p *Pass) {
	var bad causes[dogTimes]
	for _, pl := range p.Places {
		w := pl.Policy.Watchdog
		if pl.Device.Host || !pl.Knows(intent.AreaWatchdog) || !w.On || w.Detect >= shortestDetect && w.Detect <= longestDetect {
			continue
		}
		bad.add(dogTimes{w.Detect, w.Poll, pl.Origin("watchdog.detect").At(), pl.Origin("watchdog.poll").At(), pl.Active}, pl)
	}
	for c, w := range bad.all {
		msg, hint := "congestion alone can pause a port that long, and the watchdog would drop packets of a healthy fabric",
			fmt.Sprintf("raise detect to at least %s", millis(shortestDetect))
		if c.detect > longestDetect {
			msg, hint = "a storm spreads over the fabric before that", fmt.Sprintf("lower detect to at most %s", millis(longestDetect))
			if c.poll > longestDetect {
				hint += fmt.Sprintf(" and poll to at most %s", millis(longestDetect))
			}
		}
		p.report(w, diag.Finding{
			Pos: cmp.Or(c.detectAt, c.pollAt), Related: []diag.Related{setHere("poll", w.first.Origin("watchdog.poll"))},
			Msg:  fmt.Sprintf("the watchdog on %s detects after %s, outside of %s to %s: %s", w, millis(c.detect), millis(shortestDetect), millis(longestDetect), msg),
			Hint: hint,
		})
	}
}
