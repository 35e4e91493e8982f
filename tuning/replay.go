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
	if err == nil {
		err = t.ends(h.End, &o, whole)
	}
	return t.decisions, o.Best, whole, err
}

// ends is an error when the end of a journal does not follow from its measures, which have come to o, or to no end where whole is false. Of an
// experiment that was broken off they do not say by what; what it can have come to is that nothing was found.
func (t *tuner) ends(end, o *Outcome, whole bool) error {
	if end == nil {
		return nil
	}
	differs := func(is, leads string) error {
		return fmt.Errorf("the journal ends with %s, and its measures lead to %s", is, leads)
	}
	result := func(o *Outcome) string { return fmt.Sprintf("%q and %s", o.Verdict, SettingText(t.vars, o.Best)) }
	finished := end.State == Done || end.Spent || end.Trip != ""
	nothing := end.Verdict == Undecided && end.Best.Key() == t.start.key
	switch {
	case !whole && finished:
		return differs(result(end), "no end")
	case !finished && nothing:
		return nil
	case !whole, end.State == Stopped && !end.Spent:
		return differs(result(end), "nothing yet")
	case end.Trip != o.Trip:
		return differs(fmt.Sprintf("limit %q", end.Trip), fmt.Sprintf("%q", o.Trip))
	case end.Best.Key() != o.Best.Key() || end.Verdict != o.Verdict:
		return differs(result(end), result(o))
	case end.Runs != o.Runs || end.Rejected != o.Rejected:
		return differs(fmt.Sprintf("%d runs, %d of them rejected", end.Runs, end.Rejected), fmt.Sprintf("%d and %d", o.Runs, o.Rejected))
	case (end.Confirmed == nil) != (o.Confirmed == nil) || end.Confirmed != nil && !end.Confirmed.equal(o.Confirmed):
		return differs("another confirmation than its decisions have", "theirs")
	}
	return nil
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
