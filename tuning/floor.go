package tuning

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
)

// loss is the part of goodput that PFC alone, or a variable whose least value is wanted, may lose against the best: 1 %.
const loss = 0.01

// threshold is the top of a variable that says when PFC pauses, from which its ladder goes down: alpha 1, or half of the pool where xoff is a
// size. False of other variables.
func (v *Variable) threshold() (top float64, ok bool) {
	name, _, _ := strings.Cut(v.Name, "@")
	switch {
	case v.Of == Factor:
		return 1, true
	case name == Xoff:
		return v.High, true
	}
	return 0, false
}

// pfcLadder goes down with the thresholds of PFC, without ECN, from their top by halves, until goodput is surely lost. The floor is the least
// that keeps it: no choice, only where a search begins.
func (t *tuner) pfcLadder(ctx context.Context) (Setting, error) {
	t.at("pfc ladder", "")
	base := t.start.setting
	var of []int // variables that are thresholds
	var tops []float64
	for i := range t.vars {
		if top, ok := t.vars[i].threshold(); ok {
			of, tops = append(of, i), append(tops, top)
		}
	}
	if len(of) == 0 {
		return base, nil
	}
	at := func(s Setting, part float64) Setting {
		for k, i := range of {
			s = t.with(s, i, part*tops[k])
		}
		return s
	}
	floor := slices.Clone(base)
	var tried []*arm
	var top *arm
	d := Decision{From: base, To: base, Verdict: Plateau}
	for part := 1.0; part > 0 && part*tops[0] >= t.vars[of[0]].Low; part /= 2 {
		a, err := t.unmarked(at(base, part))
		if err != nil {
			return nil, err
		}
		if a == nil {
			continue
		}
		if err := t.bring(ctx, t.e.Looks.First, a); err != nil {
			return nil, err
		}
		tried = append(tried, a)
		d.Looks++
		if a.left != "" {
			break
		}
		if top == nil || t.value(a, top, common(a, top)) > 0 && a.broken(&t.e.Objective) == "" {
			top = a
		}
		x := t.against(a, top, byGood, t.e.Looks.Confidence)
		if a.broken(&t.e.Objective) != "" || a != top && x.High < math.Log(1-loss) {
			break
		}
		if a == top || x.Est >= math.Log(1-loss) {
			floor = at(floor, part)
		}
	}
	for _, a := range tried {
		d.Arms = append(d.Arms, a.shown(""))
	}
	d.Reason = fmt.Sprintf("without ECN, %s is the least that keeps goodput within %.0f%%: a floor to begin from, and no choice", t.vars[of[0]].Name+" "+t.vars[of[0]].Text(floor[of[0]]), 100*loss)
	_, err := t.decide(d)
	return floor, err
}

// least searches the smallest value of variable i that is as good as the best, and breaks no limit: down the ladder from its top until something is
// lost, and then by bisection between the last that held and the first that did not.
func (t *tuner) least(ctx context.Context, i int) error {
	v := &t.vars[i]
	t.at("ladder", v.Name)
	l := &leastSearch{t: t, i: i, from: t.cur, below: math.NaN()}
	levels := slices.Clone(v.Ladder)
	if len(levels) == 0 {
		levels = []float64{v.Low, v.High}
	}
	slices.Sort(levels)
	for _, x := range slices.Backward(levels) {
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

// leastSearch is a search for the smallest value that is as good as the best.
type leastSearch struct {
	t     *tuner
	i     int
	from  *arm
	top   *arm    // the best that was seen
	good  *arm    // the smallest that holds; nil = none does
	below float64 // the largest value below it that does not, or that lint refuses; NaN = none
	bad   *arm    // that of below; nil = lint refuses it
	tried []*arm
	looks int
}

// try finds out whether a value is as good as the best. One that lint refuses is none.
func (l *leastSearch) try(ctx context.Context, x float64) error {
	s, err := l.t.rounded(l.t.with(l.from.setting, l.i, x))
	if err != nil {
		return err
	}
	a, err := l.t.checked(s)
	if err != nil || a != nil && slices.Contains(l.tried, a) {
		return err
	}
	holds := false
	if a != nil {
		l.tried = append(l.tried, a)
		if holds, err = l.holds(ctx, a); err != nil {
			return err
		}
	}
	switch {
	case holds:
		l.good = a
	case l.good != nil:
		l.below, l.bad = s[l.i], a
	}
	return nil
}

// holds reports whether a is as good as the best. It is looked at again until that is sure either way.
func (l *leastSearch) holds(ctx context.Context, a *arm) (bool, error) {
	t := l.t
	for n := t.e.Looks.First; ; n += t.e.Looks.Every {
		n = min(n, t.e.Looks.Most)
		arms := []*arm{a}
		if l.top != nil {
			arms = append(arms, l.top)
		}
		if err := t.bring(ctx, n, arms...); err != nil {
			return false, err
		}
		l.looks++
		if a.left != "" || a.n() == 0 || a.broken(&t.e.Objective) != "" {
			return false, nil
		}
		if l.top == nil || t.value(a, l.top, common(a, l.top)) > 0 {
			l.top = a
			return true, nil
		}
		d := t.against(a, l.top, t.main(), t.e.Looks.Confidence)
		switch limit := math.Log(1 - loss); {
		case d.Low >= limit:
			return true, nil
		case d.High < limit:
			return false, nil
		case n == t.e.Looks.Most:
			return d.Est >= limit, nil
		}
	}
}

// conclude moves to the smallest that holds.
func (l *leastSearch) conclude() error {
	t := l.t
	v := &t.vars[l.i]
	d := Decision{From: l.from.setting, To: l.from.setting, Looks: l.looks, Verdict: Infeasible, Reason: "no value of " + v.Name + " holds what is wanted"}
	if to := l.good; to != nil {
		if to != l.from && l.from.n() > 1 {
			t.compare(&d, to, l.from, 1)
		}
		d.To, d.Verdict = to.setting, Plateau
		d.Reason = fmt.Sprintf("%s is the least that is as good as the best, and breaks no limit", v.Text(to.setting[l.i]))
		if !math.IsNaN(l.below) {
			d.Reason += fmt.Sprintf("; %s is not", v.Text(l.below))
			if l.bad == nil {
				d.Reason += ": lint refuses it"
			} else if why := l.bad.broken(&t.e.Objective); why != "" {
				d.Reason += ": " + why
			}
		}
		t.cur = to
	}
	for _, a := range l.tried {
		d.Arms = append(d.Arms, a.shown(a.broken(&t.e.Objective)))
	}
	_, err := t.decide(d)
	return err
}
