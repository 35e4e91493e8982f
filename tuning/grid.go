package tuning

import (
	"context"
	"fmt"
)

// mostGrid is how many settings a grid may have.
const mostGrid = 100_000

// grid compares all combinations of the ladders.
func (t *tuner) grid(ctx context.Context) error {
	t.at("grid", "")
	size := 1
	for i := range t.vars {
		if size *= max(len(t.vars[i].Ladder), 1); size > mostGrid {
			return fmt.Errorf("a grid of more than %d settings: leave variables out", mostGrid)
		}
	}
	left := t.affordable()
	for t.e.Looks.First > 2 && size*t.e.Looks.First > left {
		t.e.Looks.First-- // a look with few runs is better than none
	}
	if need := size * t.e.Looks.First; need > left {
		return fmt.Errorf("a grid of %d settings takes at least %d runs, and the budget has %d left for it: allow more, or leave variables out", size, need, left)
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
	_, err := t.race(ctx, cands, t.e.Looks.Most)
	return err
}
