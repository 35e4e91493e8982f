package main

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/fabricctl/fabricctl/tuning"
)

// TestSufficient: leaving variables out helps a grid that is too large, and not what went wrong otherwise.
func TestSufficient(t *testing.T) {
	space := &tuning.Space{Base: tuning.Setting{1, 1, 1}}
	for i := range space.Base {
		v := tuning.Variable{Name: fmt.Sprint(i), Of: tuning.Factor, Low: 1, High: 100, Step: 2}
		for k := range 100 {
			v.Ladder = append(v.Ladder, float64(k+1))
		}
		space.Vars = append(space.Vars, v)
	}
	x := &experiment{flags: tuneFlags{runner: runnerSim}, exp: tuning.Experiment{Space: space, Method: tuning.FullGrid, Now: time.Now}}
	var e *exitErr
	if err := x.sufficient(t.Context()); !errors.As(err, &e) || e.code != exitUsage || e.hint != "name fewer with --variables" {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("gone")
	cancel(gone)
	x.exp.Method, x.exp.Budget.Runs = tuning.OFAT, 100
	if err := x.sufficient(ctx); !errors.Is(err, gone) || errors.As(err, &e) {
		t.Errorf("interrupted: %v", err)
	}
}
