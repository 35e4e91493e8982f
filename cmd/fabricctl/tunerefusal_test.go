package main

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/fabricctl/fabricctl/drivers/lab/eos"
	"github.com/fabricctl/fabricctl/drivers/rollout"
	"github.com/fabricctl/fabricctl/tuning"
)

// TestTuneRefused: over real gNMI and SSH, settings that a switch refuses are left out in its own words, and all else is tried; the journal alone
// leads to the same.
func TestTuneRefused(t *testing.T) {
	b := applied(t, tunedQuartet)
	old := b.config(t)
	b.lab.Box("leaf1").(*eos.Switch).SetFaults(eos.Faults{Reject: regexp.MustCompile("maximum-threshold 6000000 bytes"), RejectWith: "% Threshold is above the limit of this port"})
	r := b.must(t, exitOK, tunes("tune", "run")...)
	if !strings.Contains(r.out, "leaf1 refuses it: % Threshold is above the limit of this port") || !strings.Contains(r.err, "is left out: leaf1 refuses it") {
		t.Errorf("%s", r)
	}
	b.same(t, old, "after the experiment")
	ids := b.experiments(t)
	id := ids[len(ids)-1]
	if r := b.must(t, exitOK, "tune", "replay", id); !strings.HasPrefix(r.out, "equal: ") {
		t.Errorf("%s", r)
	}
	a, _, _ := b.tuner(t)
	_, h, err := a.tuned(id)
	if err != nil || len(h.NotTaken) == 0 || h.End.State != tuning.Done && !h.End.Spent {
		t.Fatalf("%d refusals, %+v, %v", len(h.NotTaken), h.End, err)
	}
	for n, x := range h.NotTaken {
		if x.Device != "leaf1" || h.Measures[n] != nil {
			t.Errorf("%+v", x)
		}
	}
}

// TestTuneCame: where a device was broken off there is no setting in force, whoever has broken it off.
func TestTuneCame(t *testing.T) {
	var b tuneBench
	results := []rollout.Result{{Device: "leaf1", Outcome: rollout.Unchanged, Cause: rollout.Interrupted, Message: "the transaction took longer than the lease allows"}}
	lost, ok := errors.AsType[*tuning.Lost](b.came(t.Context(), results))
	if !ok || lost.Device != "leaf1" || !strings.Contains(lost.Error(), "longer than the lease allows") {
		t.Errorf("%v", lost)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := b.came(ctx, results); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
