package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/fabricctl/fabricctl/tuning"
)

// sufficient finds out whether the budget of an experiment that is to begin takes it to a comparison, and refuses a grid that it does not take.
func (x *experiment) sufficient(ctx context.Context) error {
	grid := x.exp.Method == tuning.FullGrid
	most := x.exp.Budget.Runs
	if most == 0 && !grid {
		return nil
	}
	drifts := (x.writes() || x.lab.Knobs != nil) && x.flags.runner != runnerLab
	need, err := tuning.Suffices(ctx, x.exp, drifts, x.writes())
	var large *tuning.TooLarge
	switch {
	case errors.As(err, &large):
		return fail(exitUsage, "name fewer with --variables", "%w; it was not begun", err)
	case err != nil:
		return err
	case most == 0 || most >= need:
	case grid:
		return fail(exitUsage, fmt.Sprintf("give --max-runs %d or more, or name fewer with --variables", need), "--max-runs %d: the grid takes at least %d, those with it that are kept for its confirmation; it was not begun", most, need)
	default:
		x.exp.Context.Takes = need
		x.scant = fmt.Sprintf("%d runs may all be spent before anything is compared with what there is: that takes at least %d, those with them that are kept for a confirmation; tune resume can give more", most, need)
	}
	return nil
}
