package tuning

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/fabricctl/fabricctl/model/units"
)

// An experiment whose budget is spent confirms what it has found, and ends. Given a larger one it goes on where the first was spent, as if there had
// been more from the beginning: what was made after that point to come to an end (the last verdict of a comparison that was broken off, the
// confirmation) counts as spent, and nothing is decided by it any more. The record of the resume holds the budget, and how much was there before
// it, so that a replay comes to the same point, and goes on from there in the same way.

// grant is a larger budget, with what the journal had when it was given.
type grant struct {
	budget    Budget
	after     int      // the last trial that was begun
	decisions int      // how many
	end       *Outcome // what it had come to; nil = it was broken off
}

// covers reports whether b allows whatever o allows.
func (b Budget) covers(o Budget) bool {
	return (b.Runs == 0 || o.Runs > 0 && b.Runs >= o.Runs) && (b.Time == 0 || o.Time > 0 && b.Time >= o.Time)
}

// grants are the larger budgets that were given, in order.
func (h *History) grants() (out []grant) {
	was := h.Begin.Budget
	for _, r := range h.resumes {
		if r.budget != was {
			was = r.budget
			out = append(out, r.grant)
		}
	}
	return out
}

// Budget is what may be spent: what the experiment began with, or what it was given since.
func (h *History) Budget() Budget {
	if g := h.grants(); len(g) > 0 {
		return g[len(g)-1].budget
	}
	return h.Begin.Budget
}

// granted is a larger budget that is given now.
func (h *History) granted(b Budget) grant {
	g := grant{budget: b, decisions: len(h.Decisions), end: h.End}
	for n := range h.trials { // one that was begun has its number, whatever came of it
		g.after = max(g.after, n)
	}
	return g
}

// Enough is an error that says what it would take when an experiment whose budget is spent would come no further with a larger one. It decides
// everything again to find that out.
func (h *History) Enough(b Budget) error {
	if !b.covers(h.Budget()) {
		return fmt.Errorf("what may be spent cannot be less than it was: %s", h.Budget().text())
	}
	t := newTuner(h.Begin.Experiment(func() time.Time { return h.Last }), Lab{}, silent{}, nil)
	t.rewind(h)
	t.grants = append(t.grants, h.granted(b))
	o, err := t.search(context.Background())
	short := t.confirming && t.lacks != Budget{} // the search has made nothing, and only what it had come to would be confirmed once more
	switch {
	case errors.Is(err, errTape) && !short:
		return nil
	case errors.Is(err, errTape):
		o.Spent = true
	case err != nil:
		return err
	}
	switch {
	case o.Trip != "":
		return fmt.Errorf("a limit has ended it, and no budget takes it past that: %s", o.Trip)
	case o.Spent && t.lacks.Runs > 0:
		return fmt.Errorf("with %d runs it comes no further: what is next takes %d in all, those of a new confirmation with them", b.Runs, t.lacks.Runs)
	case o.Spent:
		return fmt.Errorf("with %s it comes no further: what is next takes %s in all or more, the time of a new confirmation with it", b.Time, (time.Duration(t.lacks.Time) + time.Second - 1).Truncate(time.Second))
	}
	return nil
}

// text is "780 runs and 2h".
func (b Budget) text() string {
	switch {
	case b.Runs > 0 && b.Time > 0:
		return fmt.Sprintf("%d runs and %s", b.Runs, b.Time)
	case b.Runs > 0:
		return fmt.Sprintf("%d runs", b.Runs)
	case b.Time > 0:
		return b.Time.String()
	}
	return "no limit"
}

// reserve is how many runs are kept for the confirmation.
func (t *tuner) reserve() int {
	if t.confirming {
		return 0
	}
	n := 2 * t.confirmPairs()
	if !t.e.Rejects {
		return n
	}
	return n + Spare(n, t.rejected, t.runs)
}

// Spare is how many more runs are kept where n are to be used and some may be rejected: as many as it takes when they are rejected as often as until
// now, but a tenth at least, and no more than n.
func Spare(n, rejected, runs int) int {
	most := (n + 9) / 10
	if used := runs - rejected; rejected > 0 {
		most = max(most, (n*rejected+max(used, 1)-1)/max(used, 1))
	}
	return min(most, n)
}

// kept is the time that the confirmation is likely to take, by what runs took until now. On devices a run before which something is written takes
// longer, and in a confirmation (A B B A) half of the runs are such; one more is for bringing the baseline back, and during the search one for the run
// that is about to be made.
func (t *tuner) kept() time.Duration {
	if t.runs == 0 {
		return 0
	}
	n := t.reserve()
	if t.moved.n == 0 {
		return t.spent / time.Duration(t.runs) * time.Duration(n)
	}
	writes, more := 2, 2
	if t.drifts {
		writes = n/2 + 1
	}
	if t.confirming {
		more = 1
	}
	still := t.moved.mean()
	if n := t.runs - t.moved.n; n > 0 {
		still = (t.spent - t.moved.took) / time.Duration(n)
	}
	return still*time.Duration(max(n-writes, 0)) + t.moved.mean()*time.Duration(min(writes, n)+more)
}

// runTimes are runs, and the time that they took.
type runTimes struct {
	n    int
	took time.Duration
}

func (r *runTimes) mean() time.Duration { return r.took / time.Duration(max(r.n, 1)) }

// affordable is how many runs the budget still has for the search, by what runs took until now.
func (t *tuner) affordable() int {
	n := math.MaxInt
	if b := t.e.Budget.Runs; b > 0 {
		n = max(b-t.runs-t.reserve(), 0)
	}
	if b := time.Duration(t.e.Budget.Time); b > 0 && t.runs > 0 {
		n = min(n, int(max(b-t.spent-t.kept(), 0)/t.usual()))
	}
	return n
}

// usual is the time of a run, by those until now.
func (t *tuner) usual() time.Duration { return max(t.spent/time.Duration(max(t.runs, 1)), 1) }

// takes is a budget that has n runs more, of the kind that the one there is has not.
func (t *tuner) takes(n int) Budget {
	if need := t.runs + n + t.reserve(); t.e.Budget.Runs > 0 && need > t.e.Budget.Runs {
		return Budget{Runs: need}
	}
	return Budget{Time: units.Duration(t.spent + t.kept() + time.Duration(n)*t.usual())}
}

// runsFor reports whether the budget has so many runs more, with what is kept for the confirmation. A larger one is taken where it has not.
func (t *tuner) runsFor(n int) (bool, error) {
	for {
		need := t.runs + n + t.reserve()
		if b := t.e.Budget.Runs; b == 0 || need <= b {
			return true, nil
		}
		t.lacks = orElse(t.lacks, Budget{Runs: need})
		if more, err := t.enlarge(); !more {
			return false, err
		}
	}
}

// timeFor reports whether the budget has time for a run more, in the same way.
func (t *tuner) timeFor() (bool, error) {
	for {
		need := t.spent + t.kept()
		if b := time.Duration(t.e.Budget.Time); b == 0 || need < b {
			return true, nil
		}
		t.lacks = orElse(t.lacks, Budget{Time: units.Duration(need)})
		if more, err := t.enlarge(); !more {
			return false, err
		}
	}
}

// enlarge takes the next larger budget that was given, where the one before is spent. What the journal has beyond this point, up to where the larger
// one was given, is counted.
func (t *tuner) enlarge() (bool, error) {
	if len(t.grants) == 0 {
		return false, nil
	}
	g := t.grants[0]
	t.grants, t.e.Budget, t.lacks = t.grants[1:], g.budget, Budget{}
	var made []int
	for n := range t.tape.Measures {
		if n > t.trials && n <= g.after {
			made = append(made, n)
		}
	}
	slices.Sort(made)
	for _, n := range made {
		m, tr := t.tape.Measures[n], t.tape.trials[n]
		t.pass(n, m.At, tr.Setting.Key())
		if i := int(tr.Seed - t.seed(freshSeeds)); i >= 0 { // the next confirmation is on seeds that nobody has seen
			t.confirmed = max(t.confirmed, i/againSeeds+1)
		}
		if m.Rejected != nil {
			t.rejected++
		}
		if harm := m.harm(); t.trip(n, &harm) != nil { // no budget takes it past that
			return false, t.trip(n, &harm)
		}
	}
	void := len(made)
	t.trials = max(t.trials, g.after)
	t.decided += void
	for n := len(t.decisions); n < g.decisions; n++ {
		t.decisions = append(t.decisions, t.tape.Decisions[n])
	}
	words := "there may be spent " + g.budget.text() + " now"
	if g.budget == (Budget{}) {
		words = "there is no limit any more"
	}
	words += ": the search goes on where the budget was spent"
	if void > 0 {
		words += fmt.Sprintf("; %d runs that were made then to come to an end count, and decide nothing any more", void)
	}
	return true, t.notice(words)
}

// before is the history up to a grant: what the journal was then.
func (h *History) before(g grant) *History {
	was := *h
	was.Measures, was.NotTaken = map[int]*Measured{}, map[int]*NotTaken{}
	for n, m := range h.Measures {
		if n <= g.after {
			was.Measures[n] = m
		}
	}
	for n, x := range h.NotTaken {
		if n <= g.after {
			was.NotTaken[n] = x
		}
	}
	was.Decisions, was.End, was.resumes = h.Decisions[:g.decisions], g.end, nil
	for _, r := range h.resumes {
		if r.grant == g {
			break
		}
		was.resumes = append(was.resumes, r)
	}
	return &was
}
