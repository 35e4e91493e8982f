package tuning

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/observe"
	"github.com/fabricctl/fabricctl/model/units"
)

// slowly is a Bench and a Runner on a clock: a write takes 20 s, a run 1 s.
type slowly struct {
	*devices
	*patchy
	now time.Time
}

func (s *slowly) Apply(ctx context.Context, p model.Patch) error {
	if s.holds != p[0].Value {
		s.now = s.now.Add(20 * time.Second)
	}
	return s.devices.Apply(ctx, p)
}

func (s *slowly) Run(ctx context.Context, t Trial) (observe.Observation, error) {
	s.now = s.now.Add(time.Second)
	return s.patchy.Run(ctx, t)
}

// TestTimeKept: whatever time there is, what was found is confirmed within it, though a run takes much longer when something is written before
// it than the runs of the baseline did; and a replay comes to the same.
func TestTimeKept(t *testing.T) {
	confirmed := 0
	for _, steady := range []bool{false, true} {
		for budget := 60; budget < 4000; budget += 60 {
			e, d, r := site(t)
			e.Steady = steady
			e.Looks = Looks{First: 6, Most: 8, Polish: 8, Confirm: 4}
			s := &slowly{devices: d, patchy: r, now: time.Unix(1000, 0)}
			d.holds = fmt.Sprint(e.Space.Base) // so that the baseline is no write
			began := s.now
			e.Now = func() time.Time { return s.now }
			e.Budget.Time = units.Duration(budget) * units.Second
			log := &memory{}
			o, err := Run(t.Context(), e, Lab{Runner: s, Bench: s}, log, nil)
			if err != nil || strings.Contains(o.Words, "was not confirmed") {
				t.Errorf("%d s, steady %t: %+v %v", budget, steady, o, err)
			}
			if o.Confirmed != nil {
				confirmed++
			}
			if took := s.now.Sub(began); took > time.Duration(budget+21)*time.Second {
				t.Errorf("%d s, steady %t: it took %s", budget, steady, took)
			}
			h := history(t, log.recs)
			if ds, _, _, err := Replay(h); err != nil || len(ds) != len(h.Decisions) {
				t.Errorf("%d s, steady %t: replay: %v", budget, steady, err)
			}
		}
	}
	if confirmed < 20 {
		t.Errorf("only %d were confirmed", confirmed)
	}
}

// TestUnused: a budget that is spent before anything was found says what of it was kept, and for what.
func TestUnused(t *testing.T) {
	for _, c := range []struct {
		runs  int
		words string
	}{
		{60, "; 14 of 60 runs were made, and 40 were kept for a confirmation that was not needed: the other 6 are too few for what comes next"},
		{0, ""},
	} {
		e := experiment(plane(1, 0.25, "x", "y"))
		for i := range e.Space.Vars {
			e.Space.Vars[i].Ladder = []float64{-8, -4, 0, 4, 8}
		}
		e.Looks.Confirm = 20
		e.Budget.Runs = c.runs
		o, err := Run(t.Context(), e, Lab{Runner: &surface{noise: 0.01, f: func(s Setting) float64 { return -0.02 * (sq(s[0]) + sq(s[1])) }}}, &memory{}, nil)
		if err != nil || (c.words == "") != (o.State == Done) || !strings.Contains(o.Words, c.words) || c.words == "" && strings.Contains(o.Words, "kept for") {
			t.Errorf("%d runs: %+v %v", c.runs, o, err)
		}
	}
}
