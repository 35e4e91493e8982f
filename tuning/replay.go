package tuning

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fabricctl/fabricctl/tuning/stats"
)

// Replay decides again from the measures of a journal alone, and returns what it has decided. An error is a decision that is not the
// one in the journal, another result, or a trial that the method would not have asked for. whole is false when the journal ends before the experiment
// does.
func Replay(h *History) (decisions []Decision, best Setting, whole bool, err error) {
	for _, g := range h.grants() {
		if g.end == nil || !g.end.Spent {
			continue
		}
		if decisions, best, _, err = h.before(g).replay(); err != nil {
			return decisions, best, false, fmt.Errorf("before it was given more: %w", err)
		}
	}
	return h.replay()
}

// replay is Replay of what came last.
func (h *History) replay() (decisions []Decision, best Setting, whole bool, err error) {
	e := h.Begin.Experiment(func() time.Time { return h.Last })
	t := newTuner(e, Lab{}, silent{}, nil)
	t.rewind(h)
	o, err := t.search(context.Background())
	switch {
	case errors.Is(err, errTape):
		err = nil
	case err == nil:
		whole = true
	}
	if err == nil && len(t.decisions) < len(h.Decisions) {
		err = fmt.Errorf("the journal has %d decisions, and its measures lead to %d", len(h.Decisions), len(t.decisions))
	}
	if end := h.End; err == nil && whole && end != nil && (end.State == Done || end.Spent) && (end.Best.Key() != o.Best.Key() || end.Verdict != o.Verdict) {
		err = fmt.Errorf("the journal ends with %q and %s, and its measures lead to %q and %s", end.Verdict, SettingText(t.vars, end.Best), o.Verdict, SettingText(t.vars, o.Best))
	}
	return t.decisions, o.Best, whole, err
}

// silent is a log that forgets.
type silent struct{}

func (silent) Append(string, any) error { return nil }
func (silent) Put(string, any) error    { return nil }

// equal reports whether two decisions conclude the same from the same.
func (d *Decision) equal(x *Decision) bool {
	return d.N == x.N && d.Step == x.Step && d.Variable == x.Variable && d.Cycle == x.Cycle && d.From.Key() == x.From.Key() && d.To.Key() == x.To.Key() &&
		d.Verdict == x.Verdict && d.Runs == x.Runs && d.Total == x.Total && d.Looks == x.Looks &&
		slices.EqualFunc(d.Arms, x.Arms, func(a, b Arm) bool { return a.Setting.Key() == b.Setting.Key() && a.Runs == b.Runs && a.J == b.J }) &&
		alike(d.J, x.J) && alike(d.Goodput, x.Goodput) && alike(d.Tail, x.Tail)
}

func alike(a, b *stats.Interval) bool { return a == b || a != nil && b != nil && *a == *b }
