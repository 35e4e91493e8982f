package intent

import (
	"github.com/fabricctl/fabricctl/model/derive"
	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/profiles"
)

// ECNStep is what a chip counts ECN thresholds in: its own step, or its cells where it is known to count in those; 1 where
// nobody knows.
func ECNStep(chip profiles.ASIC) units.Bytes {
	switch {
	case chip.ECNStep > 0:
		return chip.ECNStep
	case chip.ECNUnit == "cells" && chip.Cell > 0:
		return chip.Cell
	}
	return 1
}

// ECNInEffect is what a chip makes of a ramp: thresholds are rounded down to its steps.
func ECNInEffect(e ECN, chip profiles.ASIC) ECN {
	step := ECNStep(chip)
	e.Kmin, e.Kmax = derive.RoundDown(e.Kmin, step), derive.RoundDown(e.Kmax, step)
	return e
}
