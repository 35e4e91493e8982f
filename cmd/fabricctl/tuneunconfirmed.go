package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

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
		u.Why, u.Command = "the budget was spent", a.command(append([]string{"tune", "resume", r.ID}, moreOf(r)...)...)
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
	o := &r.Begin.Objective
	g := gained(o, c)
	switch {
	case c.Verdict == tuning.Infeasible:
		u.Why = "it breaks a limit on fresh seeds"
	case c.Verdict == tuning.Worse:
		u.Why = "it is worse on fresh seeds: the search was lucky"
	case g == nil || c.Verdict == tuning.Undecided:
		u.Why, u.Command = "too few runs on fresh seeds could be compared", a.runAgain(r, c, r.Begin.Looks.Confirm)
	case g.by.Est <= 0:
		u.Why = "it does not look better any more on fresh seeds: the search was lucky"
	case o.Lexicographic && g.by.Est <= g.tie: // what looks no better than that is never preferred, however sure it is
		u.Why = fmt.Sprintf("on fresh seeds it makes %s, and up to %.3g %% count as no difference", g.words(g.by.Est), 100*g.tie)
	case g.by.High <= g.tie:
		u.Why = fmt.Sprintf("on fresh seeds it makes %s at most, and up to %.3g %% count as no difference", g.words(g.by.High), 100*g.tie)
	default:
		half := (g.by.High - g.by.Low) / 2
		pairs := math.Ceil(float64(g.by.N) * math.Pow(sure*half/g.by.Est, 2))
		u.Why = fmt.Sprintf("%s too few to be sure of %s, which takes about %.0f", diag.Plural(g.by.N, "pair of runs on fresh seeds is", "pairs of runs on fresh seeds are"), g.words(g.by.Est), pairs)
		if pairs > tuning.MostConfirm {
			u.Why += fmt.Sprintf(", and %d is the most: take it for no difference", tuning.MostConfirm)
			return
		}
		u.Command = a.runAgain(r, c, max(int(pairs), r.Begin.Looks.Confirm))
	}
}

// gain is what a confirmation is decided by.
type gain struct {
	by    stats.Interval       // more than 0 is better
	tie   float64              // up to here it counts as no difference; 0 = whatever is sure counts
	words func(float64) string // so much of it, for people
}

// gained is what a confirmation was decided by: J; or of a lexicographic objective goodput, unless that is within a tie of what there was and latency
// is what looks better. nil = there is nothing to compare.
func gained(o *tuning.Objective, c *tuning.Decision) *gain {
	switch good, tail := c.Goodput, c.Tail; {
	case !o.Lexicographic && c.J != nil:
		return &gain{*c.J, o.Tie, func(x float64) string { return percent(x) + " % J" }}
	case !o.Lexicographic || good == nil:
		return nil
	case good.Est <= o.Tie && good.Est > -o.Tie && tail != nil && tail.Est < 0:
		less := stats.Interval{Est: -tail.Est, Low: -tail.High, High: -tail.Low, N: tail.N, Conf: tail.Conf}
		return &gain{less, 0, func(x float64) string { return "p99.9 " + percent(math.Expm1(-x)) + " %" }}
	default:
		return &gain{*good, o.Tie, func(x float64) string { return "goodput " + percent(math.Expm1(x)) + " %" }}
	}
}

// runAgain is the command of an experiment with another number of pairs to confirm, and a budget that has room for them. It is made on other seeds: on
// the same ones the confirmation would begin with the runs that have said how many it takes.
func (a *app) runAgain(r *tuneJSON, c *tuning.Decision, pairs int) string {
	words, timed := []string{"fabricctl"}, false
	argv := r.Begin.Context.Command
	for i := 0; i < len(argv); i++ {
		switch flag, _, joined := strings.Cut(argv[i], "="); flag {
		case "--confirm", "--max-runs", "--max-time", "--seed":
			timed = timed || flag == "--max-time"
			if !joined {
				i++
			}
		default:
			words = append(words, quote(argv[i]))
		}
	}
	need := c.Total - c.Runs + 2*pairs
	need += tuning.Spare(need, r.Rejected, r.Runs) // what is rejected, and a search that takes longer on other seeds
	most := r.Budget
	if most.Runs > 0 {
		most.Runs = max(most.Runs, need)
	}
	words = append(words, "--confirm", strconv.Itoa(pairs), "--seed", strconv.FormatUint(r.Begin.Seed+1, 10), "--max-runs", strconv.Itoa(most.Runs))
	if timed && most.Time > 0 {
		longer := time.Duration(float64(most.Time) * max(1, float64(need)/float64(max(c.Total, 1))))
		words = append(words, "--max-time", (longer + time.Second - 1).Truncate(time.Second).String())
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
