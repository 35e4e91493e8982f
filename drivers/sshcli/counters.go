package sshcli

import (
	"context"
	"errors"
	"fmt"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/model/observe"
)

// tally is a line that shows counters.
type tally struct {
	lines  []string       // the line, and others to try where a switch refuses it: what it has depends on the chip
	counts []observe.Name // what it is asked for, without priorities
	// take reads an answer to lines[i] into what other tallies have found.
	take func(i int, answer string, found map[observe.Port]uint64) error
}

// Sense types the lines that show what is asked for: each at most once, and so at most as many as the flow has. A line that
// the switch refuses says that it does not have those counters.
func (d *Device) Sense(ctx context.Context, names []observe.Name) (observe.Counters, error) {
	k, err := d.connected(ctx)
	if err != nil {
		return observe.Counters{}, err
	}
	want, found := observe.Wanted(names), map[observe.Port]uint64{}
	for _, t := range d.flow.counters {
		if !t.wanted(want) {
			continue
		}
		if err := d.count(ctx, k, t, found); err != nil {
			return observe.Counters{}, err
		}
	}
	c := observe.Counters{At: d.config.Now(), Values: map[observe.Port]uint64{}}
	for p, v := range found {
		if want(p.Name) {
			c.Values[p] = v
		}
	}
	return c, nil
}

func (t tally) wanted(want func(observe.Name) bool) bool {
	for _, n := range t.counts {
		if want(n) {
			return true
		}
		for p := range 8 {
			if want(n.Of(p)) {
				return true
			}
		}
	}
	return false
}

// count asks for one tally.
func (d *Device) count(ctx context.Context, k *console, t tally, found map[observe.Port]uint64) error {
	for i, line := range t.lines {
		answer, err := k.ask(ctx, line)
		if rejected, ok := errors.AsType[*drivers.RejectedError](err); ok {
			d.config.Log.Debug("no such counters", "device", d.config.Name, "line", line, "sentence", rejected.Sentence)
			continue
		}
		if err != nil {
			return err
		}
		if err := t.take(i, answer, found); err != nil {
			return fmt.Errorf("%s: %q: not understood: %w", d.config.Name, line, err)
		}
		return nil
	}
	return nil
}
