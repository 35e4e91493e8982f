package tuning

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// TestHold: a gate judges while the devices hold the best setting, and whatever it says the baseline is back after it.
func TestHold(t *testing.T) {
	for _, c := range []struct {
		name  string
		gated Gated
		err   error // of the judge
		apply int   // that fails
		stuck error // of Restore
	}{
		{name: "passed", gated: Gated{Passed: true, Why: "exit code 0"}},
		{name: "refused", gated: Gated{Why: "exit code 1"}},
		{name: "nobody judges", err: errBoom},
		{name: "not applied", apply: 1},
		{name: "stuck", gated: Gated{Passed: true, Why: "exit code 0"}, stuck: errors.New("leaf1 does not answer")},
	} {
		e, d, r := site(t)
		log := &memory{}
		o, err := Run(t.Context(), e, Lab{Runner: r, Bench: d}, log, nil)
		if err != nil || o.Verdict != Better {
			t.Fatalf("%+v %v", o, err)
		}
		d.applies, d.failAt, d.stuck = 0, c.apply, c.stuck
		want := e.Space.Change(o.Best).Patch[0].Value
		judged := false
		err = Hold(t.Context(), e, history(t, log.recs), Lab{Runner: r, Bench: d}, log, &o, func(context.Context) (Gated, error) {
			judged = true
			if d.holds != want {
				t.Errorf("%s: the devices hold %q, and %q is judged", c.name, d.holds, want)
			}
			return c.gated, c.err
		})
		h := history(t, log.recs)
		switch {
		case judged != (c.apply == 0):
			t.Errorf("%s: judged %t", c.name, judged)
		case (err != nil) != (c.err != nil || c.apply > 0):
			t.Errorf("%s: %v", c.name, err)
		case c.stuck != nil:
			if o.State != NeedsHands || h.State(false) != NeedsHands || !strings.Contains(o.Left, "leaf1 does not answer") || !h.Touched {
				t.Errorf("%s: %+v, the journal says %s", c.name, o, h.State(false))
			}
			continue
		case d.holds != "" || h.Touched || h.State(false) != Done:
			t.Errorf("%s: the devices hold %q, the journal says %s", c.name, d.holds, h.State(false))
		}
		if c.err == nil && c.apply == 0 && (h.Gate == nil || *h.Gate.brief() != *c.gated.brief()) {
			t.Errorf("%s: the journal has %+v", c.name, h.Gate)
		}
		if ds, _, whole, err := Replay(h); err != nil || !whole || len(ds) != len(h.Decisions) {
			t.Errorf("%s: a replay is whole %t, %v", c.name, whole, err)
		}
	}
}

// brief is what tests compare of a verdict.
func (g *Gated) brief() *struct {
	passed bool
	why    string
} {
	return &struct {
		passed bool
		why    string
	}{g.Passed, g.Why}
}
