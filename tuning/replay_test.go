package tuning

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/fabricctl/fabricctl/model/journal"
	"github.com/fabricctl/fabricctl/model/observe"
)

// TestReplayEnds: however an experiment has ended, its end is compared with what its measures lead to, as far as they do.
func TestReplayEnds(t *testing.T) {
	with := func(change func(e *Experiment, d *devices, cancel func(), o *observe.Observation, n int)) []journal.Record {
		e, d, r := site(t)
		e.Sight = Sight{Lossless: []int{3}}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		r.each = func(o *observe.Observation, tr Trial) { change(&e, d, cancel, o, tr.N) }
		change(&e, d, cancel, &observe.Observation{}, 0)
		log := &memory{}
		_, _ = Run(ctx, e, Lab{Runner: failing{r, new(error)}, Bench: d}, log, nil) // how it ends is in the journal
		return log.recs
	}
	stuck := errors.New("leaf1: no answer")
	for name, c := range map[string]struct {
		state  State
		recs   []journal.Record
		forged []func(*Outcome)
	}{
		"done": {Done, with(func(*Experiment, *devices, func(), *observe.Observation, int) {}), []func(*Outcome){
			func(o *Outcome) { o.Verdict = NoDifference },
			func(o *Outcome) { o.Best = Setting{7, 7} },
			func(o *Outcome) { o.Runs++ },
			func(o *Outcome) { o.Rejected++ },
			func(o *Outcome) { o.Confirmed = nil },
			func(o *Outcome) { o.Confirmed.J.Low += 0.01 },
			func(o *Outcome) { o.Trip = "a limit" },
			func(o *Outcome) { o.State = Stopped },
		}},
		"spent": {Stopped, with(func(e *Experiment, _ *devices, _ func(), _ *observe.Observation, _ int) { e.Budget.Runs = 30 }), []func(*Outcome){
			func(o *Outcome) { o.Verdict = Worse },
			func(o *Outcome) { o.Runs = 7 },
		}},
		"tripped": {Tripped, with(func(_ *Experiment, _ *devices, _ func(), o *observe.Observation, n int) {
			if n == 9 {
				lose(o, observe.Drop.Of(3), 2)
			}
		}), []func(*Outcome){
			func(o *Outcome) { o.Trip = "2 packets of lossless classes were lost in run 8, and 0 is the most" },
			func(o *Outcome) { o.Trip, o.State, o.Verdict = "", Done, Better },
			func(o *Outcome) { o.Best = Setting{3, 1} },
		}},
		"by hand": {Stopped, with(func(_ *Experiment, _ *devices, cancel func(), _ *observe.Observation, n int) {
			if n == 9 {
				cancel()
			}
		}), []func(*Outcome){
			func(o *Outcome) { o.Verdict, o.Best = Better, Setting{3, 1} },
			func(o *Outcome) { o.State = Done },
			func(o *Outcome) { o.Spent = true },
			func(o *Outcome) { o.Trip = "a limit" },
		}},
		"needs hands": {NeedsHands, with(func(_ *Experiment, d *devices, _ func(), _ *observe.Observation, _ int) { d.stuck = stuck }), []func(*Outcome){
			func(o *Outcome) { o.Best = Setting{7, 7} },
			func(o *Outcome) { o.Verdict = Worse },
		}},
		"needs hands, in the middle": {NeedsHands, with(func(_ *Experiment, d *devices, cancel func(), _ *observe.Observation, n int) {
			if d.stuck = stuck; n == 9 {
				cancel()
			}
		}), []func(*Outcome){
			func(o *Outcome) { o.Verdict, o.Best = Better, Setting{3, 1} },
		}},
	} {
		h := history(t, c.recs)
		if h.End == nil || h.End.State != c.state {
			t.Errorf("%s: it ended as %+v", name, h.End)
			continue
		}
		if _, _, _, err := Replay(h); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for i, forge := range c.forged {
			text, err := json.Marshal(h.End)
			if err != nil {
				t.Fatal(err)
			}
			var o Outcome
			if err := json.Unmarshal(text, &o); err != nil {
				t.Fatal(err)
			}
			forge(&o)
			x := *h
			x.End = &o
			if _, _, _, err := Replay(&x); err == nil {
				t.Errorf("%s: end %d is believed", name, i)
			}
		}
	}
}
