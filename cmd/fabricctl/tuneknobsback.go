package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fabricctl/fabricctl/model/journal"
	"github.com/fabricctl/fabricctl/tuning"
)

// knobsBack sets back external variables that dead experiments on a fabric have left moved, and says so. What they have left on devices is
// the business of who takes their lease. An experiment that lives, and has moved some, is an error: it sets them back at its end whoever has the
// lease by then, and until then what they hold is no baseline.
func (a *app) knobsBack(ctx context.Context, fabric string) error {
	all, err := a.allTuned()
	if err != nil {
		return err
	}
	dir, err := a.tuneDir()
	if err != nil {
		return err
	}
	for _, s := range all {
		if s.Fabric != fabric || s.State != tuning.Dead && s.State != tuning.NeedsHands && s.State != tuning.Running {
			continue
		}
		r, h, err := a.tuned(s.ID)
		if err != nil || !h.Touched || len(h.Begin.Externals) == 0 {
			continue // a journal that cannot be read is said to be so by list
		}
		if r.State == tuning.Running {
			return fail(exitRefused, "wait until it has ended, or interrupt it, which sets them back; where its process hangs, kill it: whoever begins next sets them back then",
				"tuning experiment %s is at work on fabric %s and has moved %s: what that holds now is no baseline", s.ID, fabric, strings.Join(slices.Sorted(maps.Keys(h.Begin.Externals)), ", "))
		}
		if err := a.recoverTuned(ctx, dir, s.ID, h, tuning.Lab{Knobs: a.knobs(fabric)}); err != nil {
			return err
		}
	}
	return nil
}

// recoverTuned brings back the baseline of an experiment whose process is gone, as far as lab reaches, and writes that into its journal.
func (a *app) recoverTuned(ctx context.Context, dir, id string, h *tuning.History, lab tuning.Lab) error {
	unlock, err := lockTune(ctx, dir, id)
	if err != nil {
		return err
	}
	defer unlock()
	log, _, _, err := journal.Open(tunePath(dir, id), journal.Options{Now: time.Now})
	if err != nil {
		return diskWords(err)
	}
	left := a.broughtBack(ctx, id, h, lab, log)
	return errors.Join(left, log.Close())
}

// broughtBack is tuning.Recover, with words about external variables; whoever takes the lease of devices has had some about those.
func (a *app) broughtBack(ctx context.Context, id string, h *tuning.History, lab tuning.Lab, log tuning.Log) error {
	if len(h.Begin.Externals) > 0 {
		fmt.Fprintf(a.sys.err, "tuning experiment %s ended without bringing back its external variables: setting them back\n", id)
	}
	if left := tuning.Recover(ctx, h, lab, log); left != "" {
		return fail(exitNeedsHands, "set it back by hand", "the baseline of experiment %s is not back: %s", id, left)
	}
	return nil
}
