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
	if top == nil && len(tried) > 0 {
		d.Verdict, d.Reason = Undecided, "without ECN nothing could be compared: "+tried[0].left
	}
	_, err := t.decide(d)
	return floor, err
}
