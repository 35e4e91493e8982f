package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/fabricctl/fabricctl/cmd/show"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/tuning"
	"github.com/fabricctl/fabricctl/tuning/stats"
)

// unconfirmed is a setting that looked better than what there was, and is no answer: it was not confirmed.
type unconfirmed struct {
	Setting tuning.Setting  `json:"setting"`
	Change  string          `json:"change"`            // what is other than at the start, in words
	Search  *stats.Interval `json:"search"`            // J against the start on the seeds that chose it, which is always too good; null = none were common
	Why     string          `json:"why"`               // it was not confirmed
	Command string          `json:"command,omitempty"` // that would confirm it; "" = none would
}

// unconfirmedOf is the setting that an experiment would have liked best; nil where it is the answer, where there is none, and while it goes on.
func (a *app) unconfirmedOf(r *tuneJSON, h *tuning.History) *unconfirmed {
	o := r.Outcome
	if r.State == tuning.Running || o != nil && (o.Verdict == tuning.HostBound || o.Verdict == tuning.WrongClass || o.Best.Key() != r.Begin.Start.Key()) {
		return nil
	}
	searched := math.MaxInt
	var c *tuning.Decision
	if o != nil && o.Confirmed != nil && len(o.Confirmed.Arms) == 2 {
		c = o.Confirmed
		searched = c.Total - c.Runs
	}
	to := looked(r, c)
	if len(to) != len(r.Begin.Vars) || to.Key() == r.Begin.Start.Key() {
		return nil
	}
	u := &unconfirmed{Setting: to, Change: changeWords(r.Begin.Vars, r.Begin.Start, to)}
	if t := triedIn(r, h, 1, searched).of(to); t != nil {
		u.Search = t.J
	}
	resume := a.command("tune", "resume", r.ID)
	switch {
	case r.State == tuning.Tripped:
		u.Why = "a limit has ended the experiment"
	case o == nil || o.State == tuning.NeedsHands || r.State == tuning.Stopped && !o.Spent:
		u.Why, u.Command = "the experiment has not come to its end", resume
	case o.Spent && (c == nil || c.Verdict == tuning.NoDifference):
		u.Why, u.Command = "the budget was spent", a.command("tune", "resume", r.ID, moreOf(r.Budget))
	case c == nil:
		u.Why = "nothing was confirmed"
	default:
		a.doubts(u, r, c)
	}
	return u
}

// looked is what looked best: what was compared with the start on fresh seeds, or else where the search was.
func looked(r *tuneJSON, c *tuning.Decision) tuning.Setting {
	if c != nil {
		return c.Arms[1].Setting
	}
	for i := range slices.Backward(r.Decisions) {
		if d := &r.Decisions[i]; d.Step != "confirmation" {
			return d.To
		}
	}
	return nil
}

// changeWords is "kmax 1.6MB instead of 400KB".
func changeWords(vars []tuning.Variable, from, to tuning.Setting) string {
	var parts []string
	for i := range vars {
		if from[i] != to[i] {
			parts = append(parts, fmt.Sprintf("%s %s instead of %s", vars[i].Name, vars[i].Text(to[i]), vars[i].Text(from[i])))
		}
	}
	return strings.Join(parts, ", ")
}

// sure is how many times as wide as the interval that just tells a difference from nothing another one may be that does so nine times of ten: of a normal
// distribution, the quantiles of 99.5 % and of 90 % together against the first.
const sure = (2.576 + 1.282) / 2.576

// doubts say why a confirmation did not find a setting better, and how many pairs of runs would.
func (a *app) doubts(u *unconfirmed, r *tuneJSON, c *tuning.Decision) {
	switch {
	case c.Verdict == tuning.Infeasible:
		u.Why = "it breaks a limit on fresh seeds"
	case c.Verdict == tuning.Worse:
		u.Why = "it is surely worse on fresh seeds: the search was lucky"
	case c.J == nil || c.Verdict == tuning.Undecided:
		u.Why, u.Command = "too few runs on fresh seeds could be compared", a.runAgain(r, c, r.Begin.Looks.Confirm)
	case c.J.Est <= 0:
		u.Why = "it does not look better any more on fresh seeds: the search was lucky"
	default:
		half := (c.J.High - c.J.Low) / 2
		pairs := math.Ceil(float64(c.J.N) * math.Pow(sure*half/c.J.Est, 2))
		u.Why = fmt.Sprintf("%s too few to be sure of %s %% J, which takes about %.0f", diag.Plural(c.J.N, "pair of runs on fresh seeds is", "pairs of runs on fresh seeds are"), percent(c.J.Est), pairs)
		if pairs > tuning.MostConfirm {
			u.Why += fmt.Sprintf(", and %d is the most: take it for no difference", tuning.MostConfirm)
			return
		}
		u.Command = a.runAgain(r, c, max(int(pairs), r.Begin.Looks.Confirm))
	}
}

// runAgain is the command of an experiment with another number of pairs to confirm, and a budget that has room for them: with the simulator the search comes to
// the same.
func (a *app) runAgain(r *tuneJSON, c *tuning.Decision, pairs int) string {
	words := []string{"fabricctl"}
	for i, w := range r.Begin.Context.Command {
		if w == "--confirm" || w == "--max-runs" || i > 0 && (r.Begin.Context.Command[i-1] == "--confirm" || r.Begin.Context.Command[i-1] == "--max-runs") ||
			strings.HasPrefix(w, "--confirm=") || strings.HasPrefix(w, "--max-runs=") {
			continue
		}
		words = append(words, quote(w))
	}
	words = append(words, "--confirm", strconv.Itoa(pairs))
	if most := r.Begin.Budget.Runs; most > 0 {
		words = append(words, "--max-runs", strconv.Itoa(max(most, c.Total-c.Runs+2*pairs+2*pairs/10)))
	}
	return a.remember(strings.Join(words, " "))
}

// answers are the lines of it in an answer.
func (u *unconfirmed) answers() []answer {
	if u == nil {
		return nil
	}
	return []answer{{"looked best", u.words(), show.Plain}, {"", "not confirmed: " + u.Why, show.Plain}}
}

// words are what it was, and by how much it looked better.
func (u *unconfirmed) words() string {
	if u.Search == nil {
		return u.Change
	}
	return fmt.Sprintf("%s: J %s in the search, on the seeds that chose it", u.Change, effectText(u.Search))
}
