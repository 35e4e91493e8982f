package tuning

import (
	"cmp"
	"context"
	"fmt"
	"slices"
)

// mostGrid is how many settings a grid may have.
const mostGrid = 100_000

// TooLarge is a grid of more settings than are compared.
type TooLarge struct{ Most int }

func (e *TooLarge) Error() string {
	return fmt.Sprintf("a grid of more than %d settings: leave variables out", e.Most)
}

// gridStep is the step that compares a grid.
const gridStep = "grid"

// grid compares all combinations of the ladders. A look with few runs is better than none, so each has as many before the first as the budget allows,
// and none is begun that the budget cannot take to its first look.
func (t *tuner) grid(ctx context.Context) error {
	t.at(gridStep, "")
	size := 1
	for i := range t.vars {
		if size *= max(len(t.vars[i].Ladder), 1); size > mostGrid {
			return &TooLarge{Most: mostGrid}
		}
	}
	cands := make([]*arm, 0, size)
	for k := range size {
		s := t.cur.setting
		for i := range t.vars {
			if l := t.vars[i].Ladder; len(l) > 0 {
				s = t.with(s, i, l[k%len(l)])
				k /= len(l)
			}
		}
		a, err := t.candidate(s)
		if err != nil {
			return err
		}
		cands = append(cands, a)
	}
	first := t.e.Looks.First
	for {
		left := t.affordable()
		for t.e.Looks.First = first; t.e.Looks.First > 2 && t.firstLook(cands) > left; {
			t.e.Looks.First--
		}
		need := t.firstLook(cands)
		if need <= left {
			break
		}
		t.lacks = orElse(t.lacks, t.takes(need))
		if more, err := t.enlarge(); !more {
			return cmp.Or(err, errBudget)
		}
	}
	_, err := t.race(ctx, cands, t.e.Looks.Most)
	return err
}

// firstLook is how many runs it takes to the first look of a race.
func (t *tuner) firstLook(cands []*arm) (runs int) {
	arms := []*arm{t.cur}
	if a := t.anchor(); a != nil && !slices.Contains(cands, a) {
		arms = append(arms, a)
	}
	seen := map[*arm]bool{}
	for _, a := range append(arms, cands...) {
		if a == nil || a.left != "" || seen[a] {
			continue
		}
		seen[a] = true
		if runs += t.e.Looks.First; !t.drifts {
			runs -= min(a.n(), t.e.Looks.First)
		}
	}
	if t.e.Rejects {
		runs += Spare(runs, t.rejected, t.runs)
	}
	return runs
}
