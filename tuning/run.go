package tuning

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/tuning/stats"
)

// Log is where an experiment is written down: a *journal.Log. Append returns when the record is on the disk, and Put leaves it to the
// next that is appended.
type Log interface {
	Append(kind string, data any) error
	Put(kind string, data any) error
}

// tuner is an experiment under way. What it decides follows from the experiment and the measures alone, in the order in which trials
// are numbered, whoever has measured them and when.
type tuner struct {
	e       Experiment
	vars    []Variable
	lab     Lab
	log     Log
	tell    func(Event)
	tape    *History // what was measured before; nil = nothing
	moves   bool     // there are devices or knobs to bring to a setting
	drifts  bool     // what is compared takes turns, and is measured anew each time
	guarded bool     // a limit that is broken ends it
	pfc     bool     // the phase without ECN is part of it
	arms    map[string]*arm
	all     []*arm // in the order in which they were asked for
	start   *arm
	cur     *arm            // the best that is known
	held    []*arm          // that were the best before
	below   float64         // J that was given up for goodput since it was the highest, as far as races have seen
	said    map[string]Said // answers of the space, by what was asked
	dull    map[int]bool    // variables without an effect
	above   map[int][]*arm  // of variables whose least value is wanted, what held above that, the smallest first

	student        stats.Student
	step, variable string // what is being done
	cycle          int
	trials         int    // numbered
	runs, rejected int    // made; of these, rejected
	rejectedFor    string // why the last of them was
	row            int    // rejected, one after the other
	decisions      []Decision
	decided        int // runs until the decision before
	untested       []string
	confirming     bool    // nothing is kept for the confirmation any more
	cut            bool    // the confirmation wants more runs than the budget has
	confirmed      int     // confirmations that were begun
	tail           int8    // whether p99.9 is measured: 1 yes, -1 no, 0 not known yet
	grants         []grant // larger budgets that were given, and are not taken yet
	lacks          Budget  // what it would take to go on; zero = nothing
	clock          time.Time
	spent          time.Duration
	moved          runTimes // of runs before which something was written
	ran            string   // key of the setting of the last run
	applied        string   // key of the setting that devices and knobs have; "" = not known
	externals      map[string]float64
	touched        bool // something was moved, or may have been
}

// baselineStep is the step before anything is moved.
const baselineStep = "baseline"

// Errors that end the search, and not the experiment.
var (
	errBudget = errors.New("the budget is spent")
	errTape   = errors.New("the journal ends here")
)

// verdictError ends the search with an answer.
type verdictError struct {
	verdict Verdict
	words   string
}

func (e *verdictError) Error() string { return e.words }

// tripError is a limit that was broken.
type tripError struct{ words string }

func (e *tripError) Error() string { return e.words }

// Run carries out an experiment. The outcome says how it ended and is in the journal too; the error is what kept it from going on: that
// of ctx, of the runner, of a device, or of the journal. Whatever happens, the baseline is brought back before Run returns, with a context that
// outlives ctx, or the outcome's state is NeedsHands.
//
// tell, when not nil, is called as things happen, one call at a time.
func Run(ctx context.Context, e Experiment, lab Lab, log Log, tell func(Event)) (Outcome, error) {
	if !e.Looks.sane() {
		return Outcome{}, fmt.Errorf("looks of %+v", e.Looks)
	}
	t := newTuner(e, lab, log, tell)
	b := t.begin()
	if err := t.readExternals(ctx, &b); err != nil {
		return Outcome{}, err
	}
	if err := log.Append(recBegin, b); err != nil {
		return Outcome{}, err
	}
	t.clock = b.At
	return t.carry(ctx)
}

// Resume goes on with an experiment that a journal tells of: what was measured is not measured again, and what was decided is decided
// again, in the same way. e gives the Space, which answers what the journal does not, the workload and what else no journal
// holds; all else is as h began. Whoever resumes
// has seen to it that the baseline is there.
func Resume(ctx context.Context, e Experiment, h *History, lab Lab, log Log, tell func(Event)) (Outcome, error) {
	if err := h.Begin.same(&e); err != nil {
		return Outcome{}, err
	}
	if !e.Budget.covers(h.Budget()) {
		return Outcome{}, fmt.Errorf("what may be spent cannot be less than it was: %s", h.Budget().text())
	}
	x := h.Begin.Experiment(e.Now)
	x.Space, x.Workload, x.Sight, x.Parallel = e.Space, e.Workload, e.Sight, e.Parallel
	t := newTuner(x, lab, log, tell)
	t.rewind(h)
	b := t.begin()
	b.Budget = e.Budget
	t.rewind(h.resumedBy(&b))
	if err := log.Append(recResume, b); err != nil {
		return Outcome{}, err
	}
	return t.carry(ctx)
}

// rewind has t take from h what h knows.
func (t *tuner) rewind(h *History) {
	t.grants = h.grants()
	t.tape, t.drifts, t.guarded, t.pfc = h, h.Begin.Drifts, h.Begin.Guarded, h.Begin.PFC
	t.externals, t.clock = h.Begin.Externals, h.Begin.At
	for _, s := range h.Said {
		t.said[s.Of+s.In.Key()] = s
	}
}

func newTuner(e Experiment, lab Lab, log Log, tell func(Event)) *tuner {
	e.Looks = e.Looks.filled()
	e.Objective.Tie = orElse(e.Objective.Tie, usualTie(e.Objective.Lexicographic))
	e.Rounds, e.Parallel, e.Limits.Rejected = orElse(e.Rounds, 4), max(e.Parallel, 1), orElse(e.Limits.Rejected, 3)
	if e.Method == "" {
		e.Method = OFAT
	}
	if e.Start == nil {
		e.Start = e.Space.Base
	}
	if lab.Bench != nil || lab.Knobs != nil {
		e.Parallel = 1
	}
	if tell == nil {
		tell = func(Event) {}
	}
	return &tuner{
		e: e, vars: e.Space.Vars, lab: lab, log: log, tell: tell, moves: lab.Bench != nil || lab.Knobs != nil, drifts: (lab.Bench != nil || lab.Knobs != nil) && !e.Steady, guarded: lab.Bench != nil,
		pfc:  e.Space.Unmarked != nil && (lab.Bench == nil || e.PFCAlone) && e.Method == OFAT,
		arms: map[string]*arm{}, said: map[string]Said{}, dull: map[int]bool{}, above: map[int][]*arm{},
	}
}

func orElse[T comparable](v, otherwise T) T {
	var zero T
	if v == zero {
		return otherwise
	}
	return v
}

func usualTie(lexicographic bool) float64 {
	if lexicographic {
		return 0.01
	}
	return 0.005
}

// filled are looks with the usual numbers where there are none.
func (l Looks) filled() Looks {
	l.First, l.Every, l.Most = orElse(l.First, 6), orElse(l.Every, 2), orElse(l.Most, 16)
	l.Polish, l.Confirm, l.Confidence = orElse(l.Polish, 20), orElse(l.Confirm, 20), orElse(l.Confidence, 0.99)
	return l
}

func (t *tuner) begin() Begin {
	e := &t.e
	return Begin{
		Schema: RecordSchema, At: e.Now().UTC(), Context: e.Context, Vars: t.vars, Base: e.Space.Base, Start: e.Start, Workload: e.Workload.String(), Load: e.Workload.Name,
		Objective: e.Objective, Limits: e.Limits, Budget: e.Budget, Method: e.Method, Seed: e.Seed, Looks: e.Looks,
		Rounds: e.Rounds, Plain: e.Plain, PFC: t.pfc, Drifts: t.drifts, Guarded: t.guarded, Rejects: e.Rejects, Externals: t.externals,
	}
}

// carry searches, confirms, and brings the baseline back.
func (t *tuner) carry(ctx context.Context) (Outcome, error) {
	began := t.e.Now()
	o, err := t.search(ctx)
	if errors.Is(err, errTape) {
		return o, err
	}
	why := "the experiment has ended"
	if err != nil {
		why = err.Error()
	}
	if left := t.restore(ctx, why); left != "" {
		o.State, o.Left = NeedsHands, left
	}
	o.Took = units.Duration(t.e.Now().Sub(began))
	if e := t.log.Append(recEnd, o); err == nil {
		err = e
	}
	return o, err
}

// search is the experiment without what comes after it. The error is what kept it from going on.
func (t *tuner) search(ctx context.Context) (o Outcome, err error) {
	t.start = t.armOf(t.e.Start)
	t.cur, t.ran = t.start, t.start.key
	err = t.explore(ctx)
	o = Outcome{State: Done, Verdict: NoDifference}
	unused := ""
	if errors.Is(err, errBudget) {
		o.State, o.Spent, err = Stopped, true, nil
		unused = t.unused()
		t.untested = append(t.untested, fmt.Sprintf("what would have come after %d runs: the budget was spent (%s)", t.runs, t.step))
	}
	if err == nil {
		t.confirming = true
		o.Confirmed, err = t.confirm(ctx)
		if errors.Is(err, errBudget) || err == nil && t.cut {
			o.State, o.Spent, err = Stopped, true, nil
		}
	}
	t.conclude(&o, err)
	if o.Words != "" && o.Confirmed == nil {
		o.Words += unused
	}
	var v *verdictError
	var trip *tripError
	switch {
	case errors.As(err, &v):
		o.Verdict, o.Words, o.Best, err = v.verdict, v.words, t.start.setting, nil
	case errors.As(err, &trip):
		o.State, o.Trip, o.Words, err = Tripped, trip.words, trip.words, nil
	case err != nil:
		o.State, o.Spent, o.Words = Stopped, false, err.Error()
	}
	return o, err
}

// conclude says what came of it.
func (t *tuner) conclude(o *Outcome, err error) {
	o.Best, o.Runs, o.Rejected, o.Untested = t.start.setting, t.runs, t.rejected, t.untested
	o.Pareto = t.pareto()
	c := o.Confirmed
	switch {
	case err != nil:
		o.Verdict = Undecided
	case c != nil && c.Verdict == Better:
		o.Verdict, o.Best = Better, c.To
		o.Words = t.change(t.start.setting, c.To)
		switch {
		case t.leastMoved():
			o.Words += " is the least that holds: " + t.stands(c)
		case c.J == nil:
			o.Words += " is better: " + c.Reason
		default:
			o.Words += " is better: " + t.difference(c)
		}
	case c != nil:
		o.Verdict, o.Words = c.Verdict, c.Reason
	case t.silent():
		o.Verdict, o.Words = Undecided, "nothing of the load arrived in any run: it moves nothing, or not while it is measured"
	case t.cur == t.start && len(t.dull) == len(t.vars):
		o.Verdict, o.Words = NoEffect, "nothing that was moved does anything here, as far as this workload goes"
	case t.cur == t.start && o.Spent && !t.compared():
		o.Verdict, o.Words = Undecided, "the budget was spent before anything was compared with what there is"+t.spoilt()
	case t.cur == t.start:
		o.Words = "nothing was found that is better than what there is"
	default:
		o.Verdict, o.Words = Undecided, fmt.Sprintf("%s looked better, and was not confirmed: what there is is kept", t.change(t.start.setting, t.cur.setting))
	}
	if o.Words != "" {
		o.Words += t.without(o.Best)
	}
}

// spoilt says that runs could not be used, and why the last one could not; "" where all could.
func (t *tuner) spoilt() string {
	if t.rejected == 0 {
		return ""
	}
	return fmt.Sprintf("; %d of %d runs could not be used, the last since %s", t.rejected, t.runs, t.rejectedFor)
}

// unused says what of a budget that is spent was kept for a confirmation, where there is nothing to confirm.
func (t *tuner) unused() string {
	b := &t.e.Budget
	switch kept := max(min(t.reserve(), b.Runs-t.runs), 0); {
	case t.cur != t.start:
		return ""
	case b.Time > 0 && t.spent+t.kept() >= time.Duration(b.Time):
		return fmt.Sprintf("; %s of %s were used, and the rest was kept for a confirmation that was not needed", t.spent.Round(time.Second), b.Time)
	default:
		words := fmt.Sprintf("; %d of %d runs were made, and %d were kept for a confirmation that was not needed", t.runs, b.Runs, kept)
		if left := b.Runs - t.runs - kept; left > 0 {
			words += fmt.Sprintf(": the other %d are too few for what comes next", left)
		}
		return words
	}
}

// compared reports whether a decision has held something against where the search began: neither the baseline nor the floor of PFC alone does.
func (t *tuner) compared() bool {
	return slices.ContainsFunc(t.decisions, func(d Decision) bool { return d.Step != baselineStep && d.Step != "pfc ladder" })
}

// silent reports whether no run has seen anything arrive, so that all settings are alike whatever they do.
func (t *tuner) silent() bool {
	for _, a := range t.all {
		for _, r := range a.runs {
			if r != nil && r.Goodput > 0 {
				return false
			}
		}
	}
	return t.start.n() > 0
}

// without names the variables that do nothing, where others do, and those of them that have come into the result all the same: a start
// moves several at once.
func (t *tuner) without(best Setting) string {
	names, along := Idle(t.vars, t.decisions, t.start.setting, best)
	if len(names) == 0 || len(names) == len(t.vars) {
		return ""
	}
	words := "; " + diag.And(names) + diag.Agree(len(names), " does", " do") + " nothing here, as far as this workload goes"
	if n := len(along); n > 0 {
		words += "; " + diag.And(along) + diag.Agree(n, " was", " were") + " moved together with others all the same: to keep what there is, leave " +
			diag.Agree(n, "it", "them") + " out of --variables"
	}
	return words
}

// Idle are the names of the variables that do nothing by these decisions, in their order, and those of them that best has moved all the same.
func Idle(vars []Variable, ds []Decision, start, best Setting) (names, along []string) {
	for i := range vars {
		name := vars[i].Name
		if !slices.ContainsFunc(ds, func(d Decision) bool { return d.Step == "ladder" && d.Verdict == NoEffect && d.Variable == name }) {
			continue
		}
		if names = append(names, name); best[i] != start[i] {
			along = append(along, name)
		}
	}
	return names, along
}

// decide writes a decision down.
func (t *tuner) decide(d Decision) (*Decision, error) {
	d.N, d.Step, d.Cycle, d.Total, d.Runs = len(t.decisions)+1, t.step, t.cycle, t.runs, t.runs-t.decided
	t.decided = t.runs
	if d.Variable == "" {
		d.Variable = t.variable
	}
	t.decisions = append(t.decisions, d)
	last := &t.decisions[len(t.decisions)-1]
	if t.tape.decided(d.N) {
		if !t.tape.Decisions[d.N-1].equal(last) {
			return last, fmt.Errorf("decision %d of the journal is another one than the journal's measures lead to: %s", d.N, t.tape.Decisions[d.N-1].Reason)
		}
		return last, nil
	}
	if err := t.log.Append(recDecision, last); err != nil {
		return last, err
	}
	t.tell(Event{Decision: last})
	return last, nil
}

// notice writes down what happened besides.
func (t *tuner) notice(text string) error {
	if !t.onTape() {
		if err := t.log.Append(recNotice, Notice{text}); err != nil {
			return err
		}
	}
	t.tell(Event{Notice: text})
	return nil
}

// onTape reports whether the next trial is in the journal already.
func (t *tuner) onTape() bool {
	return t.tape != nil && (t.tape.Measures[t.trials+1] != nil || t.tape.NotTaken[t.trials+1] != nil)
}

// at says what is done from now on.
func (t *tuner) at(step, variable string) { t.step, t.variable = step, variable }

// armOf is the arm of a setting.
func (t *tuner) armOf(s Setting) *arm {
	key := s.Key()
	a := t.arms[key]
	if a == nil {
		a = &arm{setting: slices.Clone(s), key: key}
		t.arms[key] = a
		t.all = append(t.all, a)
	}
	return a
}
