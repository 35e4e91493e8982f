package main

import (
	"fmt"

	"github.com/fabricctl/fabricctl/tuning"
)

// sensible refuses what an experiment that is to begin can have no use for, and finds out whether its budget takes it to a comparison.
func (x *experiment) sensible() error {
	o := &x.flags
	if o.pausing.given && !x.writes() {
		return fail(exitUsage, "leave it away", "--max-host-pause ends an experiment that writes devices, and what is moved here is on none; nothing was done")
	}
	grid := x.exp.Method == tuning.FullGrid
	most := x.exp.Budget.Runs
	if most == 0 && !grid {
		return nil
	}
	drifts := (x.writes() || x.lab.Knobs != nil) && o.runner != runnerLab
	need, err := tuning.Suffices(x.exp, drifts, x.writes())
	switch {
	case err != nil:
		return fail(exitUsage, "name fewer with --variables", "%w; nothing was done", err)
	case most == 0 || most >= need:
	case grid:
		return fail(exitUsage, fmt.Sprintf("give --max-runs %d or more, or name fewer with --variables", need), "--max-runs %d: the grid takes at least %d, those with it that are kept for its confirmation; nothing was done", most, need)
	default:
		x.scant = fmt.Sprintf("%d runs may all be spent before anything is compared with what there is, and %d suffice for that, those with them that are kept for a confirmation; tune resume can give more", most, need)
	}
	return nil
}
