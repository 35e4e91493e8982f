package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/tuning"
)

// triedSet is what a journal has measured, by setting: over all its runs, or over some of them.
type triedSet struct {
	vars  []tuning.Variable
	start tuning.Setting
	best  tuning.Setting // the start where nothing better was found
	all   []tuning.Tried
	byKey map[string]*tuning.Tried
	tails bool // p99.9 is measured
}

// triedIn is what the runs from first to last came to, counted from 1.
func triedIn(r *tuneJSON, h *tuning.History, first, last int) *triedSet {
	s := &triedSet{vars: r.Begin.Vars, start: r.Begin.Start, best: r.Begin.Start, all: h.TriedIn(first, last), byKey: map[string]*tuning.Tried{}}
	for i := range s.all {
		s.byKey[s.all[i].Setting.Key()] = &s.all[i]
		s.tails = s.tails || s.all[i].Tail.N > 0
	}
	if o := r.Outcome; o != nil {
		s.best = o.Best
	}
	return s
}

// triedWhole is what all runs came to.
func triedWhole(r *tuneJSON, h *tuning.History) *triedSet { return triedIn(r, h, 1, math.MaxInt) }

// triedFor is what the runs came to that a decision had: those of the confirmation, which has seeds of its own, or all until then.
func triedFor(r *tuneJSON, h *tuning.History, d *tuning.Decision) *triedSet {
	if d.Step == "confirmation" {
		return triedIn(r, h, d.Total-d.Runs+1, d.Total)
	}
	return triedIn(r, h, 1, d.Total)
}

// of is what was measured of a setting; nil when it was never run.
func (s *triedSet) of(x tuning.Setting) *tuning.Tried { return s.byKey[x.Key()] }

// changed reports whether something else is to be set than what there was.
func (s *triedSet) changed() bool { return s.best.Key() != s.start.Key() }

// those are the settings of arms that were run, in their order.
func (s *triedSet) those(arms []tuning.Arm) []*tuning.Tried {
	var ts []*tuning.Tried
	for i := range arms {
		if t := s.of(arms[i].Setting); t != nil && t.Runs > 0 {
			ts = append(ts, t)
		}
	}
	return ts
}

// front are the settings that nothing beats, by what they carry.
func (s *triedSet) front(o *tuning.Outcome) []tuning.Arm {
	if o == nil {
		return nil
	}
	carries := func(a tuning.Arm) float64 {
		if t := s.of(a.Setting); t != nil {
			return t.Goodput.Est
		}
		return a.Goodput
	}
	return slices.SortedStableFunc(slices.Values(o.Pareto), func(a, b tuning.Arm) int { return cmp.Compare(carries(a), carries(b)) })
}

// effect is J of a setting against the start, with its interval.
func (s *triedSet) effect(t *tuning.Tried) string {
	switch {
	case t.Setting.Key() == s.start.Key():
		return "the start"
	case t.J == nil:
		return "-"
	}
	return fmt.Sprintf("%s %% (%s to %s)", percent(t.J.Est), percent(t.J.Low), percent(t.J.High))
}

// goodputOf is what the usual run of a setting carries.
func goodputOf(t *tuning.Tried) string { return rate(units.BitRate(t.Goodput.Est)) }

// tailOf is p99.9 of the usual run of a setting.
func tailOf(t *tuning.Tried) string {
	if t.Tail.N == 0 {
		return "-"
	}
	return latency(t.Tail.Est)
}

// measured are J against the start, goodput and p99.9 of the usual run, where that is measured, and the number of runs, as cells.
func (s *triedSet) measured(b *band) []string {
	t := b.Tried
	if b.twin != nil {
		t = b.twin
	}
	cells := []string{s.effect(t), goodputOf(t)}
	if s.tails {
		cells = append(cells, tailOf(t))
	}
	return append(cells, strconv.Itoa(b.Runs))
}

// measuredHead is the head of measured.
func (s *triedSet) measuredHead() []string {
	if s.tails {
		return []string{"J against the start", "goodput", "p99.9", "runs"}
	}
	return []string{"J against the start", "goodput", "runs"}
}

// band is a setting, or several that differ in one variable alone and are proven to be the same: they are shown as one.
type band struct {
	*tuning.Tried                 // the one with the most runs
	all           []*tuning.Tried // by value
	at            int             // the variable in which they differ
	twin          *tuning.Tried   // the start or the result, where that is proven to be the same too and has more runs: its numbers are theirs; nil = it is not
}

// bands are settings in their order, those that are the same folded into the first of them. The start and the result stand alone, since people
// look for them.
func (s *triedSet) bands(ts []*tuning.Tried) []band {
	var out []band
	for _, t := range ts {
		joined := false
		for i := range out {
			if joined = s.join(&out[i], t); joined {
				break
			}
		}
		if !joined {
			out = append(out, band{Tried: t, all: []*tuning.Tried{t}})
		}
	}
	for i := range out {
		b := &out[i]
		slices.SortFunc(b.all, func(x, y *tuning.Tried) int { return cmp.Compare(x.Setting[b.at], y.Setting[b.at]) })
		b.Tried = slices.MaxFunc(b.all, func(x, y *tuning.Tried) int { return cmp.Compare(x.Runs, y.Runs) })
		for _, t := range ts {
			if s.sought(t) && !s.sought(b.Tried) && t.Runs > b.Runs && onlyDifference(t.Setting, b.Setting) >= 0 && t.Alike(b.Tried) {
				b.twin = t
			}
		}
	}
	return out
}

// sought reports whether t is a setting that people look for: the start or the result.
func (s *triedSet) sought(t *tuning.Tried) bool {
	k := t.Setting.Key()
	return k == s.start.Key() || k == s.best.Key()
}

// join takes t into b, and reports whether it belongs there.
func (s *triedSet) join(b *band, t *tuning.Tried) bool {
	if s.sought(b.all[0]) || s.sought(t) {
		return false
	}
	at := b.at
	for _, o := range b.all {
		i := onlyDifference(o.Setting, t.Setting)
		if i < 0 || len(b.all) > 1 && i != at || !o.Alike(t) {
			return false
		}
		at = i
	}
	b.at, b.all = at, append(b.all, t)
	return true
}

// onlyDifference is the only variable in which two settings differ, -1 when there is none or there are several.
func onlyDifference(x, y tuning.Setting) int {
	at := -1
	for i := range x {
		if x[i] != y[i] {
			if at >= 0 {
				return -1
			}
			at = i
		}
	}
	return at
}

// mostListed is how many values of a band are named; of more, the first and the last are.
const mostListed = 3

// value is variable i of a band: "1/8", or "1/16 to 1".
func (b *band) value(vars []tuning.Variable, i int) string {
	if len(b.all) == 1 || i != b.at {
		return vars[i].Text(b.Setting[i])
	}
	var values []string
	for _, t := range b.all {
		values = append(values, vars[i].Text(t.Setting[i]))
	}
	if len(values) > mostListed {
		return values[0] + " to " + values[len(values)-1]
	}
	return strings.Join(values, ", ")
}

// settingTexts are the values of a setting.
func settingTexts(vars []tuning.Variable, x tuning.Setting) []string {
	out := make([]string, len(vars))
	for i := range vars {
		out[i] = vars[i].Text(x[i])
	}
	return out
}

// values are all variables of a band.
func (b *band) values(vars []tuning.Variable) []string {
	out := make([]string, len(vars))
	for i := range vars {
		out[i] = b.value(vars, i)
	}
	return out
}

// note is what is to be known of a band: the limit that it breaks, or what it is the same as.
func (b *band) note(vars []tuning.Variable) string {
	switch {
	case b.Broken != "":
		return b.Broken
	case b.twin != nil:
		i := onlyDifference(b.twin.Setting, b.Setting)
		return fmt.Sprintf("the same packets as with %s %s", vars[i].Name, vars[i].Text(b.twin.Setting[i]))
	case len(b.all) > 1:
		return fmt.Sprintf("the same packets at all %d", len(b.all))
	}
	return ""
}

// allAlike reports whether several settings are all proven to be the same.
func allAlike(ts []*tuning.Tried) bool {
	for i, t := range ts {
		for _, o := range ts[:i] {
			if !t.Alike(o) {
				return false
			}
		}
	}
	return len(ts) > 1
}

// unheld says that what stays in place breaks a limit, and whether something else does not; "" when all is well, or when the result is another.
func (s *triedSet) unheld() string {
	t := s.of(s.start)
	if t == nil || t.Broken == "" || s.changed() {
		return ""
	}
	held := 0
	for i := range s.all {
		if x := &s.all[i]; x.Runs > 0 && x.Broken == "" && !x.Unmarked {
			held++
		}
	}
	words := "what there is breaks a limit: " + t.Broken
	if held == 0 {
		return words + "; so does everything else that was tried"
	}
	return words + fmt.Sprintf("; %d of %d settings that were tried break none", held, len(s.all))
}
