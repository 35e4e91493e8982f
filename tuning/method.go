package tuning

import (
	"context"
	"fmt"
	"math"
	"slices"
)

// hostPausing is the part of the time for which a host may stop its switch before the host is what limits the workload. A host that takes
// what it is sent never does.
const hostPausing = 0.02

// explore looks for the best setting.
func (t *tuner) explore(ctx context.Context) error {
	if err := t.baseline(ctx); err != nil {
		return err
	}
	floor := t.start.setting
	if t.pfc {
		var err error
		if floor, err = t.pfcLadder(ctx); err != nil {
			return err
		}
	} else if t.e.Method == OFAT {
		t.miss("PFC alone, without ECN: it was not asked for, or not allowed here")
	}
	if err := t.formulas(ctx, floor); err != nil {
		return err
	}
	switch t.e.Method {
	case NelderMead:
		return t.simplex(ctx)
	case FullGrid:
		return t.grid(ctx)
	case OFAT:
	}
	return t.cycles(ctx)
}

// baseline measures what there is, and ends the experiment when the fabric is not what limits it.
func (t *tuner) baseline(ctx context.Context) error {
	t.at(baselineStep, "")
	if err := t.bring(ctx, t.e.Looks.First, t.start); err != nil {
		return err
	}
	n := t.start.n()
	pausing, known := 0.0, 0
	for _, r := range t.start.runs[:n] {
		if r.Pausing != nil {
			pausing += *r.Pausing
			known++
		}
	}
	d := Decision{From: t.start.setting, To: t.start.setting, Verdict: NoDifference, Arms: []Arm{t.start.shown("")}}
	broken := t.start.broken(&t.e.Objective)
	switch slow := known > 0 && pausing/float64(known) > hostPausing; {
	case slow:
		d.Verdict, d.Reason = HostBound, fmt.Sprintf("not the fabric: a host stopped its switch for %.1f%% of the time, since it does not take what it is sent", 100*pausing/float64(known))
	case broken != "":
		d.Verdict, d.Reason = Infeasible, "what there is breaks a limit: "+broken
	default:
		d.Reason = "what there is"
	}
	if _, err := t.decide(d); err != nil {
		return err
	}
	if d.Verdict == HostBound {
		return &verdictError{HostBound, d.Reason}
	}
	return nil
}

// formulas races what formulas give against what there is.
func (t *tuner) formulas(ctx context.Context, floor Setting) error {
	t.at("race", "")
	starts, err := t.starts(floor)
	if err != nil {
		return err
	}
	var cands []*arm
	for _, s := range starts {
		a, err := t.candidate(s.Setting)
		if err != nil {
			return err
		}
		cands = append(cands, a)
	}
	_, err = t.race(ctx, cands, t.e.Looks.Most)
	return err
}

// cycles moves one variable after the other until a cycle moves nothing: in the first over the full range, then by steps.
func (t *tuner) cycles(ctx context.Context) error {
	for t.cycle = 1; t.cycle <= t.e.Rounds; t.cycle++ {
		before := t.cur
		for _, i := range t.order() {
			if err := t.tune(ctx, i); err != nil {
				return err
			}
		}
		if !t.e.Plain {
			if err := t.joint(ctx); err != nil {
				return err
			}
		}
		if t.cur == before && t.cycle > 1 {
			break
		}
	}
	t.cycle = 0
	if t.e.Plain {
		t.miss("moves of two variables at once")
	}
	if err := t.polish(ctx); err != nil {
		return err
	}
	if err := t.putBack(ctx); err != nil {
		return err
	}
	return t.interaction(ctx)
}

// putBack has variables that do nothing stand where they stood: a formula or a joint move has moved them, and there is no reason to.
func (t *tuner) putBack(ctx context.Context) error {
	for i := range t.vars {
		if !t.dull[i] || t.cur.setting[i] == t.start.setting[i] {
			continue
		}
		t.at("back", t.vars[i].Name)
		a, err := t.candidate(t.with(t.cur.setting, i, t.start.setting[i]))
		if err != nil {
			return err
		}
		if a == nil {
			continue
		}
		n := min(2, t.e.Looks.First)
		if err := t.bring(ctx, n, a, t.cur); err != nil {
			return err
		}
		if common(a, t.cur) < n || !a.same(t.cur, n) {
			continue
		}
		d := Decision{
			From: t.cur.setting, To: a.setting, Verdict: NoEffect, Arms: []Arm{t.cur.shown(""), a.shown("")},
			Reason: t.vars[i].Name + " does nothing: it stands where it stood, since no packet took another time",
		}
		t.cur = a
		if _, err := t.decide(d); err != nil {
			return err
		}
	}
	return nil
}

// order is in which variables are moved: thresholds of PFC after all others, since a race has looked at several of them.
func (t *tuner) order() []int {
	order := make([]int, 0, len(t.vars))
	for _, last := range []bool{false, true} {
		for i := range t.vars {
			if (t.vars[i].Of == Factor) == last {
				order = append(order, i)
			}
		}
	}
	return order
}

// tune moves variable i.
func (t *tuner) tune(ctx context.Context, i int) error {
	v := &t.vars[i]
	switch {
	case v.Least:
		if t.cycle == 1 {
			return t.least(ctx, i)
		}
		return nil
	case t.cycle == 1 && len(v.Ladder) > 0:
		return t.ladder(ctx, i)
	case t.dull[i]:
		return nil
	}
	return t.walk(ctx, i)
}

// ladder compares levels over the full range of variable i.
func (t *tuner) ladder(ctx context.Context, i int) error {
	t.at("ladder", t.vars[i].Name)
	var cands []*arm
	for _, x := range t.vars[i].Ladder {
		a, err := t.candidate(t.with(t.cur.setting, i, x))
		if err != nil {
			return err
		}
		cands = append(cands, a)
	}
	d, err := t.race(ctx, cands, t.e.Looks.Most)
	if d != nil && d.Verdict == NoEffect {
		t.dull[i] = true
	}
	return err
}

// mostSteps is how far a walk goes at once.
const mostSteps = 6

// walk moves variable i by its step, up or down, as long as that pays.
func (t *tuner) walk(ctx context.Context, i int) error {
	t.at("walk", t.vars[i].Name)
	step := t.vars[i].Step
	moves := []float64{-1, 1}
	for range mostSteps {
		from := t.cur
		var cands []*arm
		for _, m := range moves {
			a, err := t.candidate(t.stepped(t.cur.setting, i, step, m))
			if err != nil {
				return err
			}
			cands = append(cands, a)
		}
		if _, err := t.race(ctx, cands, t.e.Looks.Most); err != nil {
			return err
		}
		if t.cur == from {
			return nil
		}
		moves = []float64{math.Copysign(1, t.cur.setting[i]-from.setting[i])}
	}
	return nil
}

// mostPairs is how many pairs of variables are moved together.
const mostPairs = 3

// pairs are the variables to move together: those that matter most, first.
func (t *tuner) pairs() (ps [][2]int) {
	order := t.byEffect()
	for b := 1; b < len(order); b++ {
		for a := range b {
			ps = append(ps, [2]int{order[a], order[b]})
		}
	}
	return ps[:min(len(ps), mostPairs)]
}

// byEffect are the variables that do something, those with the largest differences between their levels first.
func (t *tuner) byEffect() []int {
	span := make([]float64, len(t.vars))
	for _, d := range t.decisions {
		i := slices.IndexFunc(t.vars, func(v Variable) bool { return v.Name == d.Variable })
		if i < 0 {
			continue
		}
		low, high := math.Inf(1), math.Inf(-1)
		for _, a := range d.Arms {
			if a.Runs > 0 {
				low, high = min(low, a.J), max(high, a.J)
			}
		}
		span[i] = max(span[i], high-low)
	}
	var order []int
	for i := range t.vars {
		if !t.dull[i] && !t.vars[i].Least {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case span[a] > span[b]:
			return -1
		case span[a] < span[b]:
			return 1
		}
		return 0
	})
	return order
}

// polish moves each variable by small steps, with more runs.
func (t *tuner) polish(ctx context.Context) error {
	for _, i := range t.byEffect() {
		if t.vars[i].Fine == 0 {
			continue
		}
		t.at("polish", t.vars[i].Name)
		var cands []*arm
		for _, m := range []float64{-1, 1} {
			a, err := t.candidate(t.stepped(t.cur.setting, i, t.vars[i].Fine, m))
			if err != nil {
				return err
			}
			cands = append(cands, a)
		}
		if _, err := t.race(ctx, cands, t.e.Looks.Polish); err != nil {
			return err
		}
	}
	return nil
}
