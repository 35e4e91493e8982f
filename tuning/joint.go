package tuning

import "context"

// joint moves two variables at once, in all four directions, for what no single variable can reach.
func (t *tuner) joint(ctx context.Context) error {
	for range mostSteps {
		t.at("joint", "")
		from := t.cur
		cands, err := t.corners()
		if err != nil {
			return err
		}
		if _, err := t.race(ctx, cands, t.e.Looks.Most); err != nil {
			return err
		}
		if t.cur == from {
			return nil
		}
	}
	return nil
}

// corners are a step of each pair of variables that matters, in all four directions.
func (t *tuner) corners() (cands []*arm, err error) {
	for _, p := range t.pairs() {
		for _, by := range [][2]float64{{-1, -1}, {1, 1}, {-1, 1}, {1, -1}} {
			s := t.stepped(t.cur.setting, p[0], t.vars[p[0]].Step, by[0])
			a, err := t.candidate(t.stepped(s, p[1], t.vars[p[1]].Step, by[1]))
			if err != nil {
				return nil, err
			}
			cands = append(cands, a)
		}
	}
	return cands, nil
}
