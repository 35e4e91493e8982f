package tuning

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/fabricctl/fabricctl/tuning/stats"
)

// doubt is the part of its goodput by which a setting has to look worse than the best before it is left out although that is not sure: 15 %.
// It lies between what may be lost and what nobody would put up with, so that noise mistakes neither for the other until it hides as much as that.
const doubt = 0.15

// least searches the smallest value of variable i that breaks no limit and is as good as the best, as far as can be told: down the ladder from its
// top until something is lost, and then by bisection between the last that held and the first that did not.
func (t *tuner) least(ctx context.Context, i int) error {
	v := &t.vars[i]
	t.at("ladder", v.Name)
	l := &leastSearch{t: t, i: i, from: t.cur, below: math.NaN(), why: map[*arm]string{}, seen: map[*arm]compared{}}
	levels := slices.Clone(v.Ladder)
	if len(levels) == 0 {
		levels = []float64{v.Low, v.High}
	}
	if x := t.cur.setting[i]; x >= v.Low && x <= v.High { // what there is takes part
		levels = append(levels, x)
	}
	slices.Sort(levels)
	for _, x := range slices.Backward(slices.Compact(levels)) {
		if err := l.try(ctx, x); err != nil {
			return err
		}
		if !math.IsNaN(l.below) {
			break
		}
	}
	for l.good != nil && !math.IsNaN(l.below) && !v.close(l.good.setting[i], l.below) {
		good, below := l.good, l.below
		if err := l.try(ctx, v.between(below, good.setting[i])); err != nil {
			return err
		}
		if l.good == good && l.below == below { // there is nothing between them
			break
		}
	}
	return l.conclude()
}

// close reports whether two values are so near that nothing is looked for between them.
func (v *Variable) close(a, b float64) bool {
	fine := v.Fine
	switch {
	case v.Whole && math.Abs(a-b) <= 1:
		return true
	case v.Linear:
		return math.Abs(a-b) <= fine
	}
	return max(a, b) <= min(a, b)*max(fine, 1.02)
}

// between is the middle.
func (v *Variable) between(a, b float64) float64 {
	x := math.Sqrt(a * b)
	if v.Linear || a <= 0 || b <= 0 {
		x = (a + b) / 2
	}
	if v.Whole {
		x = math.Round(x)
	}
	return x
}

// leastSearch is a search for the smallest value that holds: it breaks no limit in any run, and is as good as the best. Where noise hides a
// part of goodput as small as loss, what can be seen decides: losses do, and goodput only where it looks much worse.
type leastSearch struct {
	t     *tuner
	i     int
	from  *arm
	top   *arm    // the best that was seen; a larger value that holds, until a smaller one is surely better
	good  *arm    // the smallest that holds; nil = none does
	below float64 // the largest value below good that does not, or that lint refuses; NaN = none
	bad   *arm    // that of below; nil = lint refuses it
	tried []*arm
	why   map[*arm]string   // what does not hold, and why
	seen  map[*arm]compared // with top
	looks int
}

// compared is what a comparison came to while both were measured side by side.
type compared struct {
	stats.Interval // of what comes first
	with           *arm
	told           Decision // its intervals
}

// try finds out whether a value holds. One that lint refuses does not.
func (l *leastSearch) try(ctx context.Context, x float64) error {
	s, err := l.t.rounded(l.t.with(l.from.setting, l.i, x))
	if err != nil {
		return err
	}
	a, err := l.t.checked(s)
	if err != nil || a != nil && slices.Contains(l.tried, a) {
		return err
	}
	if a != nil {
		l.tried = append(l.tried, a)
		if l.why[a], err = l.fails(ctx, a); err != nil {
			return err
		}
	}
	switch {
	case a != nil && l.why[a] == "":
		l.good = a
	case l.good != nil:
		l.below, l.bad = s[l.i], a
	}
	return nil
}

// fails is why a does not hold; "" when it does. It is looked at again until that is sure either way, or there are no more looks.
func (l *leastSearch) fails(ctx context.Context, a *arm) (string, error) {
	t := l.t
	o := &t.e.Objective
	arms := []*arm{a}
	if l.top != nil {
		arms = append(arms, l.top)
	}
	if why := cmp.Or(a.left, a.broken(o)); why != "" { // as the baseline may have shown
		return why, nil
	}
	t.fresh(arms) // both are measured side by side
	most, looks := t.e.Looks.Most, t.e.Looks.leastLooks()
	for n := min(t.e.Looks.First, most); ; n = min(n+t.e.Looks.Every, most) {
		if err := l.bring(ctx, n, arms); err != nil {
			return "", err
		}
		l.looks++
		if why := cmp.Or(a.left, a.broken(o)); why != "" {
			return why, nil
		}
		if l.top != nil && l.top != a {
			l.why[l.top] = cmp.Or(l.top.left, l.top.broken(o)) // what held until now may lose something yet
		}
		if l.top == nil || l.why[l.top] != "" {
			l.top = a
			return "", nil
		}
		d := t.against(a, l.top, t.main(), 1-(1-t.e.Looks.Confidence)/float64(looks))
		c := compared{Interval: d, with: l.top}
		t.compare(&c.told, a, l.top, looks)
		l.seen[a] = c
		switch {
		case d.Low >= math.Log(1-loss):
			if d.Low > 0 {
				l.top = a
			}
			return "", nil
		case d.High < math.Log(1-loss):
			return "it is worse: " + t.mainWords(d), nil
		case n < most:
			continue
		case a.counts() && !t.doubtful(a, l.top), !a.counts() && d.Est >= math.Log(1-loss):
			return "", nil
		case a.counts() && most == t.e.Looks.Most:
			most *= 2 // it looks bad, and noise may look so
		default:
			return "it looks worse: " + t.mainWords(d), nil
		}
	}
}

// leastLooks is how often a value is looked at, at most: the usual looks, and those that come when it looks bad after them. What is called
// sure of it has to be so at all of them together, so the doubt that confidence leaves is divided by so many (Bonferroni).
func (l Looks) leastLooks() int {
	to := func(n int) int { return (n + l.Every - 1) / l.Every }
	return 1 + to(l.Most-min(l.First, l.Most)) + to(l.Most)
}

// bring has arms run until each has n runs. Where they take turns, a run of the first that breaks a limit ends it.
func (l *leastSearch) bring(ctx context.Context, n int, arms []*arm) error {
	if !l.t.drifts {
		return l.t.bring(ctx, n, arms...)
	}
	first := arms[0]
	for k := first.n() + 1; k <= n && first.left == "" && first.broken(&l.t.e.Objective) == ""; k++ {
		turn := slices.Clone(arms)
		if k%2 == 0 {
			slices.Reverse(turn)
		}
		if err := l.t.bring(ctx, k, turn...); err != nil {
			return err
		}
	}
	return nil
}

// doubtful reports whether a looks worse than b by more than nobody would put up with: by the median of the pairs, which a few
// runs that something disturbed do not move.
func (t *tuner) doubtful(a, b *arm) bool {
	n := common(a, b)
	return stats.Median(stats.Differences(a.values(t.main(), n), b.values(t.main(), n))) < math.Log(1-doubt)
}

// counts reports whether anything has counted losses in runs of a.
func (a *arm) counts() bool {
	return slices.ContainsFunc(a.runs, func(r *run) bool { return r != nil && (r.Drops != nil || r.Sequence != nil) })
}

// mainWords are a difference in what comes first, for people: of goodput in percent of it.
func (t *tuner) mainWords(x stats.Interval) string {
	if !t.e.Objective.Lexicographic && t.e.Objective.Exchange != 0 && t.tail > 0 {
		return "J " + percent(x)
	}
	x.Est, x.Low, x.High = math.Expm1(x.Est), math.Expm1(x.Low), math.Expm1(x.High)
	return "goodput " + percent(x)
}

// keeps says how a setting compares with another in what comes first.
func (t *tuner) keeps(x stats.Interval, than string) string {
	words := t.mainWords(x)
	switch {
	case x.Low > 0:
		return fmt.Sprintf("it is better than %s: %s", than, words)
	case x.Low >= math.Log(1-loss):
		return fmt.Sprintf("it is as good as %s within %.0f%%: %s", than, 100*loss, words)
	}
	return fmt.Sprintf("it cannot be told from %s to %.0f%%: %s", than, 100*loss, words)
}

// stands says how the best has stood a confirmation, of a variable whose least value is wanted.
func (t *tuner) stands(c *Decision) string {
	words := fmt.Sprintf("it breaks no limit in %d runs", c.Arms[1].Runs)
	if !t.cur.counts() {
		words += ", in which nobody counts losses"
	}
	x := c.J
	if t.e.Objective.Lexicographic {
		x = c.Goodput
	}
	if x == nil {
		return words
	}
	return words + ", and " + t.keeps(*x, "what there was")
}

// conclude moves to the smallest that holds.
func (l *leastSearch) conclude() error {
	t := l.t
	v := &t.vars[l.i]
	d := Decision{From: l.from.setting, To: l.from.setting, Looks: l.looks, Verdict: Infeasible, Reason: "no value of " + v.Name + " holds what is wanted"}
	for _, a := range l.tried { // what it was compared with may have lost something last of all
		l.why[a] = cmp.Or(l.why[a], a.left, a.broken(&t.e.Objective))
	}
	held := slices.DeleteFunc(slices.Clone(l.tried), func(a *arm) bool { return l.why[a] != "" })
	slices.SortFunc(held, func(a, b *arm) int { return cmp.Compare(a.setting[l.i], b.setting[l.i]) })
	if len(held) > 0 {
		to := held[0]
		switch c := l.seen[to]; {
		case c.with == l.from:
			d.J, d.Goodput, d.Tail = c.told.J, c.told.Goodput, c.told.Tail
		case !t.drifts && to != l.from && l.from.n() > 1:
			t.compare(&d, to, l.from, 1)
		}
		d.To, d.Verdict = to.setting, Plateau
		d.Reason = fmt.Sprintf("%s is the least that holds: it breaks no limit in %d runs", v.Text(to.setting[l.i]), to.n())
		if !to.counts() {
			d.Reason += ", in which nobody counts losses"
		}
		if c, ok := l.seen[to]; ok {
			d.Reason += ", and " + t.keeps(c.Interval, v.Text(c.with.setting[l.i]))
		}
		if !math.IsNaN(l.below) {
			why := "lint refuses it"
			if l.bad != nil {
				why = l.why[l.bad]
			}
			d.Reason += fmt.Sprintf("; %s does not: %s", v.Text(l.below), why)
		}
		t.cur, t.above[l.i] = to, held[1:]
	}
	for _, a := range l.tried {
		d.Arms = append(d.Arms, a.shown(l.why[a]))
	}
	_, err := t.decide(d)
	return err
}

// leastMoved reports whether what was moved are only variables whose least value is wanted: of these as good is better.
func (t *tuner) leastMoved() bool {
	for i := range t.vars {
		if t.cur.setting[i] != t.start.setting[i] && !t.vars[i].Least {
			return false
		}
	}
	return true
}

// raise moves the variables whose least value is wanted up to the next value that held, or to where they began if that is nearer: the best has
// lost something after all. False is that there is none.
func (t *tuner) raise() bool {
	to := slices.Clone(t.cur.setting)
	for i := range t.vars {
		was := t.start.setting[i]
		if !t.vars[i].Least || to[i] == was {
			continue
		}
		k := slices.IndexFunc(t.above[i], func(a *arm) bool { return a.setting[i] > to[i] })
		switch startHolds := t.start.broken(&t.e.Objective) == ""; {
		case k >= 0 && (was < to[i] || was > t.above[i][k].setting[i] || !startHolds):
			to[i] = t.above[i][k].setting[i]
		case was > to[i] && startHolds:
			to[i] = was
		}
	}
	if to.Key() == t.cur.key {
		return false
	}
	t.cur = t.armOf(to)
	return true
}
