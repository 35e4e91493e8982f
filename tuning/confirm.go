package tuning

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/fabricctl/fabricctl/tuning/stats"
)

// freshSeeds is where the seeds of confirmations begin, beyond those of any comparison before.
const freshSeeds = 50_000

// worth is the difference in J, or in ln goodput where that comes first, which the confirmation is to find with a power of 0.9.
const worth, worthPower = 0.02, 0.9

// Of the runs that were made, a confirmation may cost a quarter more, and it has no more than four times the pairs that were asked for.
const confirmPart, confirmMost = 8, 4

// confirmPairs is how many pairs of runs the confirmation may need, by how much pairs of what there was and of the best vary: a gain is told
// from nothing by twice as many pairs when it is half as large.
func (t *tuner) confirmPairs() int {
	least := t.e.Looks.Confirm
	n := common(t.start, t.cur)
	if t.cur == t.start || n < t.e.Looks.First || n < 2 {
		return least
	}
	d := stats.Differences(t.cur.values(t.main(), n), t.start.values(t.main(), n))
	// Repeats is of two samples: what the differences of pairs vary by has both in it.
	pairs := stats.Repeats(stats.SD(d)/math.Sqrt2, max(worth, stats.Mean(d)/2), 0, 1-t.e.Looks.Confidence, worthPower)
	return max(least, min(pairs, confirmMost*least, t.runs/confirmPart))
}

// againSeeds is how far the seeds of a confirmation are from those of the next.
const againSeeds = confirmMost * MostConfirm

// MostConfirm is how many pairs may be asked for: with four times as many, the next confirmation still has seeds of its own.
const MostConfirm = 250

// confirm compares the best with what there was, on seeds that decided nothing. nil is that there is nothing to confirm. Where a variable's least
// value is wanted and does not hold after all, the next that held is confirmed in its place.
func (t *tuner) confirm(ctx context.Context) (*Decision, error) {
	if t.cur == t.start {
		return nil, nil
	}
	t.at("confirmation", "")
	t.decided = t.runs // what a comparison had made when the budget ended is nobody's
	first := freshSeeds + againSeeds*t.confirmed
	t.confirmed++
	a := &arm{setting: t.start.setting, key: t.start.key, first: first}
	b := &arm{setting: t.cur.setting, key: t.cur.key, first: first}
	o := &t.e.Objective
	d := Decision{From: a.setting, To: a.setting, Verdict: NoDifference}
	pairs := t.confirmPairs()
	for n := t.e.Looks.Confirm; ; n = min(n+t.e.Looks.Confirm, pairs) {
		if err := t.bring(ctx, n, a, b); errors.Is(err, errBudget) && d.J != nil {
			d.Reason = "on fresh seeds it is not surely better, the budget has no more of them, and what there is is kept: " + t.difference(&d)
			d.Arms = []Arm{a.shown(""), b.shown("")}
			t.cut = true
			return t.decide(d)
		} else if err != nil {
			return nil, err
		}
		d.Looks++
		t.compare(&d, b, a, 1)
		d.Arms = []Arm{a.shown(""), b.shown("")}
		switch {
		case b.left != "" || b.broken(o) != "":
			d.Verdict, d.Reason = Infeasible, fmt.Sprintf("%s does not hold on fresh seeds, and what there is is kept: %s", t.change(a.setting, b.setting), orElse(b.left, b.broken(o)))
		case a.broken(o) != "":
			d.To, d.Verdict, d.Reason = b.setting, Better, "what there was breaks a limit: "+a.broken(o)
		case a.left != "": // a run that cannot be used says nothing of its setting
			d.Verdict, d.Reason = Undecided, "what there was could not be measured on fresh seeds, and is kept: "+a.left
		case d.J == nil:
			d.Verdict, d.Reason = Undecided, "there were too few runs to compare"
		case t.leastMoved():
			bad := t.doubtful(b, a)
			switch worse := d.J.High < math.Log(1-loss); {
			case bad && !worse && n < 2*t.e.Looks.Confirm: // it looks bad, and noise may look so
				pairs = max(pairs, 2*t.e.Looks.Confirm)
				continue
			case bad || worse:
				d.Verdict, d.Reason = Worse, "on fresh seeds it is worse, and what there is is kept: "+t.difference(&d)
			default:
				d.To, d.Verdict, d.Reason = b.setting, Better, "on fresh seeds the least value holds: "+t.stands(&d)
			}
		case !o.Lexicographic && d.J.Low > 0 || o.Lexicographic && t.prefers(&d, o):
			d.To, d.Verdict, d.Reason = b.setting, Better, "on fresh seeds it is better: "+t.difference(&d)
		case t.surelyWorse(&d):
			d.Verdict, d.Reason = Worse, "on fresh seeds it is worse, and what there is is kept: "+t.difference(&d)
		case n < pairs && t.mayPay(&d):
			continue
		default:
			d.Reason = "on fresh seeds it is not surely better, and what there is is kept: " + t.difference(&d)
		}
		if failed := cmp.Or(b.left, b.broken(o)); (failed != "" || d.Verdict == Worse && t.leastMoved()) && t.raise() {
			if failed == "" {
				failed = t.difference(&d)
			}
			d.To, d.Reason = t.cur.setting, fmt.Sprintf("%s does not hold on fresh seeds: %s; the next that held is %s", t.words(b.setting), failed, t.words(t.cur.setting))
			if _, err := t.decide(d); err != nil {
				return nil, err
			}
			return t.confirm(ctx)
		}
		return t.decide(d)
	}
}

// difference is what was found of a comparison, in what comes first.
func (t *tuner) difference(d *Decision) string {
	if !t.e.Objective.Lexicographic {
		return "J " + percent(*d.J)
	}
	words := "goodput " + percent(*d.Goodput)
	if d.Tail != nil {
		words += "; p99.9 " + percent(*d.Tail)
	}
	return words
}

// surelyWorse reports whether what was compared is worse in what comes first: where that is goodput, less of it, or no more than a tie and more latency.
func (t *tuner) surelyWorse(d *Decision) bool {
	if !t.e.Objective.Lexicographic {
		return d.J.High < 0
	}
	return d.Goodput.High < 0 || d.Goodput.High <= t.e.Objective.Tie && d.Tail != nil && d.Tail.Low > 0
}

// mayPay reports whether what was compared may still be better by more than a tie.
func (t *tuner) mayPay(d *Decision) bool {
	if t.e.Objective.Lexicographic {
		return d.Goodput.High > t.e.Objective.Tie || d.Tail != nil && d.Tail.Low < 0
	}
	return d.J.High > t.e.Objective.Tie
}

// interaction looks whether the two variables that matter most have to be moved together: all four corners a step around where the search
// has ended.
func (t *tuner) interaction(ctx context.Context) error {
	order := t.byEffect()
	if len(order) < 2 {
		return nil
	}
	t.at("interaction", "")
	x, y := order[0], order[1]
	var corners []*arm
	for _, by := range [][2]float64{{-1, -1}, {1, -1}, {-1, 1}, {1, 1}} {
		s := t.stepped(t.cur.setting, x, t.vars[x].Step, by[0])
		a, err := t.candidate(t.stepped(s, y, t.vars[y].Step, by[1]))
		if err != nil {
			return err
		}
		if a == nil || slices.Contains(corners, a) {
			return nil // at the edge there are no four corners
		}
		corners = append(corners, a)
	}
	t.fresh(corners)
	if err := t.bring(ctx, t.e.Looks.First, corners...); err != nil {
		return err
	}
	n := common(corners...)
	if n < 2 {
		return nil
	}
	d := Decision{From: t.cur.setting, To: t.cur.setting, Looks: 1, Verdict: NoDifference}
	f := factorial(corners, n)
	names := t.vars[x].Name + " and " + t.vars[y].Name
	if f.Interacts() {
		d.Verdict = Interacting
		d.Reason = fmt.Sprintf("%s have to be moved together: together they make %+.1f%% J beyond what each makes (%+.1f%% and %+.1f%%), with a standard error of %.1f%%", names, 100*f.AB, 100*f.A, 100*f.B, 100*f.SE)
	} else {
		d.Reason = fmt.Sprintf("%s can be moved one at a time: together they make %+.1f%% J beyond what each makes, with a standard error of %.1f%%", names, 100*f.AB, 100*f.SE)
	}
	for _, a := range corners {
		d.Arms = append(d.Arms, a.shown(""))
	}
	_, err := t.decide(d)
	return err
}

// factorial is the 2x2 of four corners. What all corners have in common with a seed is no part of the spread.
func factorial(corners []*arm, n int) stats.Factorial {
	ab := make([]float64, n)
	for i := range n {
		j := func(k int) float64 { return corners[k].runs[i].j }
		ab[i] = (j(3) - j(1) - j(2) + j(0)) / 2
	}
	m := func(k int) float64 { return corners[k].mean(byJ, n) }
	return stats.Factorial2x2(m(0), m(1), m(2), m(3), stats.SD(ab), n)
}

// pareto are the settings that no other beats in both goodput and latency. Those that have been left after a glance are not among them.
func (t *tuner) pareto() []Arm {
	var all []*arm
	for _, a := range t.all {
		if a.left == "" && !a.bare && a.n() >= max(2, t.e.Looks.First) && a.broken(&t.e.Objective) == "" {
			all = append(all, a)
		}
	}
	var set []Arm
	for _, a := range all {
		if !slices.ContainsFunc(all, func(b *arm) bool { return b != a && t.beats(b, a) }) {
			set = append(set, a.shown(""))
		}
	}
	return set
}

// beats reports whether b is better than a in both goodput and latency: surely so in one of them, or as far as can be told from at least as many
// runs as a has.
func (t *tuner) beats(b, a *arm) bool {
	n := common(a, b)
	good, tail := b.mean(byGood, n)-a.mean(byGood, n), a.mean(byTail, n)-b.mean(byTail, n)
	switch {
	case good < 0 || tail < 0 || good == 0 && tail == 0:
		return false
	case b.n() >= a.n():
		return true
	}
	conf := t.e.Looks.Confidence
	return t.against(b, a, byGood, conf).Low > 0 || t.against(b, a, byTail, conf).High < 0
}
