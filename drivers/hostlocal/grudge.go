package hostlocal

import (
	"slices"
	"time"

	"github.com/fabricctl/fabricctl/render"
)

// A setting that had to be repaired often within a while is given up: somebody else sets it, and two that fight over a NIC
// do more harm than a wrong value. Each further time it is left alone for longer.
const (
	fights   = 3                // repairs
	fightsIn = 10 * time.Minute // within this
	leaveMin = 10 * time.Minute
	leaveMax = 6 * time.Hour
	forgetIn = 24 * time.Hour // without a repair, after which all is forgotten
)

// grudge is what is remembered of a setting that was repaired.
type grudge struct {
	repairs []time.Time // the last ones
	leave   time.Duration
	until   time.Time // left alone until then
}

type grudges map[render.Key]*grudge

// bears reports whether a setting is left alone at a time.
func (g grudges) bears(k render.Key, now time.Time) bool {
	return g[k] != nil && now.Before(g[k].until)
}

// note remembers that settings were repaired, or that it was tried, and returns those that are given up by that.
func (g grudges) note(cs []render.Change, now time.Time) (given []render.Key) {
	for _, c := range cs {
		x := g[c.Key]
		if x == nil {
			x = &grudge{}
			g[c.Key] = x
		}
		x.repairs = append(slices.DeleteFunc(x.repairs, func(t time.Time) bool { return now.Sub(t) >= fightsIn }), now)
		if len(x.repairs) < fights {
			continue
		}
		x.leave = min(max(2*x.leave, leaveMin), leaveMax)
		x.until, x.repairs = now.Add(x.leave), nil
		given = append(given, c.Key)
	}
	return given
}

// forgive forgets settings that stayed as they are for long.
func (g grudges) forgive(now time.Time) {
	for k, x := range g {
		last := x.until
		if n := len(x.repairs); n > 0 && x.repairs[n-1].After(last) {
			last = x.repairs[n-1]
		}
		if now.Sub(last) >= forgetIn {
			delete(g, k)
		}
	}
}

// borne is how many settings are left alone at a time.
func (g grudges) borne(now time.Time) int {
	n := 0
	for k := range g {
		if g.bears(k, now) {
			n++
		}
	}
	return n
}
