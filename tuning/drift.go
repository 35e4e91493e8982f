package tuning

import (
	"math"

	"github.com/fabricctl/fabricctl/tuning/stats"
)

// Drift is found when a setting that was measured before is more than this many robust standard deviations from where it was.
const driftLimit = 3

// enoughForDrift is how many runs it takes to say how far a setting spreads.
const enoughForDrift = 5

const driftWords = "what was there before is measured otherwise than it was: the surroundings have changed, so the runs of this comparison are discarded and made again"

// fresh forgets the runs of arms that are about to be compared where the surroundings may have changed since they were made, and returns what the
// first of them was measured at.
func (t *tuner) fresh(arms []*arm) (before []float64) {
	if !t.drifts {
		return nil
	}
	if n := arms[0].n(); n > 0 {
		before = arms[0].values(byJ, n)
	}
	for _, a := range arms {
		a.runs = nil
	}
	return before
}

// drifted reports whether an arm is not where it was.
func (t *tuner) drifted(before []float64, a *arm) bool {
	n := a.n()
	if len(before) < enoughForDrift || n < enoughForDrift {
		return false
	}
	sigma := stats.RobustSD(before)
	return sigma > 0 && math.Abs(stats.Median(a.values(byJ, n))-stats.Median(before)) > driftLimit*sigma
}
