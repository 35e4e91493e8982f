package tuning

import (
	"context"
	"errors"
	"hash/fnv"
	"time"

	"github.com/fabricctl/fabricctl/model/observe"
)

// LeastRuns is how many runs it takes to measure what there is, and to confirm something: no budget is less.
func LeastRuns(l Looks, rejects bool) int {
	l = l.filled()
	n := 2 * l.Confirm
	if rejects {
		n += Spare(n, 0, 0)
	}
	return l.First + n
}

// Suffices is how many runs take an experiment to where something is compared with what there is, those with it that are kept for its confirmation:
// with fewer, all may be spent on the baseline and on the floor of PFC. Of a grid it is what the grid takes; a *TooLarge is one that nobody makes. It
// is found out by an experiment with runs that are all alike, which is the longest way: no level of PFC is left out, nor a setting that lint may
// refuse. Runs that are rejected, and what has drifted and is measured again, come on top of it. drifts is that settings take turns and are measured
// anew for each comparison, and writes that devices are written.
func Suffices(ctx context.Context, e Experiment, drifts, writes bool) (int, error) {
	s := *e.Space
	s.Check = nil
	e.Space, e.Budget = &s, Budget{Runs: 1}
	said := map[string]Said{}
	for {
		t := newTuner(e, Lab{Runner: featureless{}}, silent{}, nil)
		t.drifts, t.pfc, t.said = drifts, t.pfc && (!writes || e.PFCAlone), said
		t.start = t.armOf(t.e.Start)
		t.cur, t.ran = t.start, t.start.key
		err := t.explore(ctx)
		lacks := t.lacks.Runs
		switch {
		case err != nil && !errors.Is(err, errBudget):
			return 0, err
		case err == nil, t.e.Method != FullGrid && t.compared():
			return e.Budget.Runs, nil
		case t.step == gridStep:
			return lacks, nil
		}
		e.Budget.Runs = lacks
	}
}

// featureless makes runs that differ by next to nothing, and are not the same.
type featureless struct{}

func (featureless) Run(ctx context.Context, t Trial) (observe.Observation, error) {
	h := fnv.New32a()
	_, _ = h.Write([]byte(t.Setting.Key()))
	good := 1e9 + float64((uint64(h.Sum32())^t.Seed*2654435761)%1000)
	tail := time.Millisecond
	return observe.Observation{Goodput: &good, P999: &tail}, ctx.Err()
}
