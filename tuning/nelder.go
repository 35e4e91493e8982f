package tuning

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
)

// The coefficients of Nelder and Mead (1965): how far a simplex is reflected, expanded, contracted and shrunk.
const (
	reflection  = 1.0
	expansion   = 2.0
	contraction = 0.5
	shrinkage   = 0.5
)

// A simplex has ended after so many moves, or when all its corners are within so many steps of a polish.
const (
	mostMoves  = 60
	smallSteps = 1.0
)

// simplex moves all variables at once by the method of Nelder and Mead, in steps of the walks, on means of runs with common seeds. Its best
// corner gets more runs as it stays the best, so that luck does not.
func (t *tuner) simplex(ctx context.Context) error {
	t.at("simplex", "")
	from := t.cur
	var free []int
	for i := range t.vars {
		if t.vars[i].Step != 0 {
			free = append(free, i)
		}
	}
	s := &simplexSearch{t: t, free: free}
	if err := s.begin(ctx); err != nil {
		return err
	}
	for range mostMoves {
		s.sort()
		if s.small() {
			break
		}
		if err := s.move(ctx); errors.Is(err, errBudget) {
			return s.settle(err)
		} else if err != nil {
			return err
		}
	}
	s.sort()
	best := s.corners[0].a
	t.cur = from
	if best == from {
		_, err := t.decide(Decision{From: from.setting, To: from.setting, Verdict: NoDifference, Looks: s.moves, Reason: "the simplex came back to what there was"})
		return err
	}
	t.variable = ""
	_, err := t.race(ctx, []*arm{best}, t.e.Looks.Polish)
	return err
}

// settle goes to the best corner that there is, when there is no budget to compare it once more.
func (s *simplexSearch) settle(err error) error {
	s.sort()
	t, best := s.t, s.corners[0]
	d := Decision{From: t.cur.setting, To: t.cur.setting, Verdict: NoDifference, Looks: s.moves, Reason: "no corner of the simplex was better when the budget was spent"}
	if n := common(best.a, t.cur); best.a != t.cur && n > 1 && t.value(best.a, t.cur, n) > t.e.Objective.Tie {
		d.To, d.Verdict = best.a.setting, Undecided
		d.Reason = "the best corner of the simplex when the budget was spent: " + t.change(t.cur.setting, best.a.setting)
		t.compare(&d, best.a, t.cur, len(t.all))
		d.Arms = []Arm{t.cur.shown(""), best.a.shown("")}
		t.cur = best.a
	}
	_, e := t.decide(d)
	return cmp.Or(e, err)
}

// corner is a point of the simplex, in steps from where it began.
type corner struct {
	at []float64
	a  *arm
	j  float64
}

type simplexSearch struct {
	t       *tuner
	free    []int // variables
	corners []corner
	moves   int
}

func (s *simplexSearch) begin(ctx context.Context) error {
	for k := range len(s.free) + 1 {
		at := make([]float64, len(s.free))
		if k > 0 {
			at[k-1] = 2
			if v := s.t.vars[s.free[k-1]]; s.setting(at)[s.free[k-1]] >= v.High {
				at[k-1] = -2
			}
		}
		c, err := s.value(ctx, at)
		if err != nil {
			return err
		}
		s.corners = append(s.corners, c)
	}
	return nil
}

// setting is a point as a setting.
func (s *simplexSearch) setting(at []float64) Setting {
	out := s.t.start.setting
	if s.t.cur != nil {
		out = s.t.cur.setting
	}
	for k, i := range s.free {
		out = s.t.stepped(out, i, s.t.vars[i].Step, at[k])
	}
	return out
}

// value runs a point. What breaks a limit, or must not be tried, is worse than anything.
func (s *simplexSearch) value(ctx context.Context, at []float64) (corner, error) {
	c := corner{at: at, a: s.t.cur, j: math.Inf(-1)}
	a, err := s.t.candidate(s.setting(at))
	if err != nil {
		return c, err
	}
	if a == nil {
		if s.setting(at).Key() != s.t.cur.key {
			return c, nil
		}
		a = s.t.cur
	}
	if err := s.t.bring(ctx, s.t.e.Looks.First, a); err != nil {
		return c, err
	}
	c.a = a
	if a.left == "" && a.broken(&s.t.e.Objective) == "" && a.n() > 0 {
		c.j = a.mean(s.t.main(), a.n())
	}
	return c, nil
}

// sort puts the best corner first.
func (s *simplexSearch) sort() {
	slices.SortStableFunc(s.corners, func(a, b corner) int { return cmp.Compare(b.j, a.j) })
}

// small reports whether all corners are nearly the same.
func (s *simplexSearch) small() bool {
	for k, i := range s.free {
		v := &s.t.vars[i]
		low, high := math.Inf(1), math.Inf(-1)
		for _, c := range s.corners {
			low, high = min(low, c.at[k]), max(high, c.at[k])
		}
		fine := 0.25
		if !v.Linear && v.Fine > 1 && v.Step > 1 {
			fine = math.Log(v.Fine) / math.Log(v.Step)
		} else if v.Linear && v.Fine > 0 {
			fine = v.Fine / v.Step
		}
		if high-low > smallSteps*fine {
			return false
		}
	}
	return true
}

// move replaces the worst corner, or shrinks the simplex.
func (s *simplexSearch) move(ctx context.Context) error {
	s.moves++
	last := len(s.corners) - 1
	worst, best := s.corners[last], s.corners[0]
	if n := min(best.a.n()+s.t.e.Looks.Every, s.t.e.Looks.Polish); n > best.a.n() { // the best is looked at again
		if err := s.t.bring(ctx, n, best.a); err != nil {
			return err
		}
		s.corners[0].j = best.a.mean(s.t.main(), best.a.n())
	}
	middle := make([]float64, len(s.free))
	for _, c := range s.corners[:last] {
		for k := range middle {
			middle[k] += c.at[k] / float64(last)
		}
	}
	try := func(by float64) (corner, error) {
		at := make([]float64, len(middle))
		for k := range at {
			at[k] = middle[k] + by*(middle[k]-worst.at[k])
		}
		return s.value(ctx, at)
	}
	r, err := try(reflection)
	if err != nil {
		return err
	}
	switch {
	case r.j > best.j:
		e, err := try(expansion)
		if err != nil {
			return err
		}
		if e.j > r.j {
			r = e
		}
		s.corners[last] = r
		return nil
	case r.j > s.corners[last-1].j:
		s.corners[last] = r
		return nil
	}
	by := -contraction
	if r.j > worst.j {
		by = contraction
	}
	c, err := try(by)
	if err != nil {
		return err
	}
	if c.j > max(worst.j, r.j) {
		s.corners[last] = c
		return nil
	}
	return s.shrink(ctx)
}

// shrink draws all corners towards the best.
func (s *simplexSearch) shrink(ctx context.Context) error {
	best := s.corners[0]
	for k := 1; k < len(s.corners); k++ {
		at := make([]float64, len(best.at))
		for i := range at {
			at[i] = best.at[i] + shrinkage*(s.corners[k].at[i]-best.at[i])
		}
		c, err := s.value(ctx, at)
		if err != nil {
			return err
		}
		s.corners[k] = c
	}
	return nil
}
