package tuning

import (
	"context"
	"fmt"
)

// Hold brings devices and knobs to the best setting of an experiment that h tells of and that came to o, has a gate judge it, and brings
// the baseline back. What the gate says is written down, and so is an outcome whose baseline is not back, which o is then. The error is
// what kept the gate from judging.
func Hold(ctx context.Context, e Experiment, h *History, lab Lab, log Log, o *Outcome, judge func(context.Context) (Gated, error)) error {
	t := newTuner(e, lab, log, nil)
	t.rewind(h)
	trial := Trial{N: lastTrial(h) + 1, Setting: o.Best, Workload: e.Workload}
	if f := e.Space.Change; f != nil {
		trial.Change = f(o.Best)
	}
	err := t.apply(ctx, &trial)
	if err == nil {
		var g Gated
		if g, err = judge(ctx); err == nil {
			err = log.Append(recGate, g)
		}
	}
	if err != nil {
		err = fmt.Errorf("gate: %w", err)
	}
	if left := t.restore(ctx, "the gate has judged"); left != "" {
		o.State, o.Left = NeedsHands, left
		if e := log.Append(recEnd, o); err == nil {
			err = e
		}
	}
	return err
}

// lastTrial is the number of the last trial that was begun.
func lastTrial(h *History) int {
	if n := len(h.Trials); n > 0 {
		return h.Trials[n-1].N
	}
	return 0
}
