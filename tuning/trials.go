package tuning

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"
)

// job is a run that is to be made.
type job struct {
	a     *arm
	i     int
	trial Trial
}

// seed is that of run i, the same for every arm.
func (t *tuner) seed(i int) uint64 { return t.e.Seed*100_000 + uint64(i) }

// bring has every arm run until it has n runs, or is left. It returns errBudget before it begins what the budget does not allow.
func (t *tuner) bring(ctx context.Context, n int, arms ...*arm) error {
	for {
		jobs := t.missing(n, arms)
		if len(jobs) == 0 {
			return nil
		}
		if ok, err := t.runsFor(len(jobs)); !ok || err != nil {
			return cmp.Or(err, errBudget)
		}
		if err := t.make(ctx, jobs); err != nil {
			return err
		}
	}
}

// missing are the runs that arms lack to have n, in the order in which they are made. Where things drift, all arms take turns, there and
// back again, so that what drifts steadily is the same for all: with two arms that is ABBA.
func (t *tuner) missing(n int, arms []*arm) (jobs []job) {
	lacks := map[*arm][]int{}
	rounds := 0
	for _, a := range arms {
		if a.left != "" || lacks[a] != nil {
			continue
		}
		for i := range n {
			if i >= len(a.runs) {
				a.runs = append(a.runs, nil)
			}
			if a.runs[i] == nil {
				lacks[a] = append(lacks[a], i)
			}
		}
		rounds = max(rounds, len(lacks[a]))
	}
	if !t.drifts {
		for _, a := range arms {
			for _, i := range lacks[a] {
				jobs = append(jobs, job{a: a, i: i})
			}
			delete(lacks, a)
		}
		return jobs
	}
	order := slices.Clone(arms)
	for k := range rounds {
		for _, a := range order {
			if k < len(lacks[a]) {
				jobs = append(jobs, job{a: a, i: lacks[a][k]})
			}
		}
		slices.Reverse(order)
	}
	return jobs
}

// outcome is what came of a job.
type outcome struct {
	m   Measured
	no  *NotTaken // devices do not take its setting: there is no m
	err error
}

// make numbers the jobs and has them run, as many at once as are allowed; what came of them is taken in their order.
func (t *tuner) make(ctx context.Context, jobs []job) error {
	t.number(jobs)
	for len(jobs) > 0 {
		if jobs[0].a.refused { // devices take one setting at a time, and so is what they refuse
			jobs = jobs[1:]
			continue
		}
		if m, no, _ := t.tape.came(&jobs[0].trial); m == nil && no == nil { // what was made, there was time for
			given := len(t.grants)
			if ok, err := t.timeFor(); !ok || err != nil {
				return cmp.Or(err, errBudget)
			}
			if len(t.grants) < given {
				t.number(jobs)
			}
		}
		n := min(len(jobs), t.e.Parallel)
		if err := t.together(ctx, jobs[:n]); err != nil {
			return err
		}
		jobs = jobs[n:]
	}
	return nil
}

// number gives jobs the next numbers.
func (t *tuner) number(jobs []job) {
	for i := range jobs {
		t.trials++
		j := &jobs[i]
		j.trial = Trial{N: t.trials, Setting: j.a.setting, Seed: t.seed(j.a.first + j.i), Workload: WorkloadAt(t.e.Workload, t.vars, j.a.setting)}
	}
}

// together makes runs at the same time.
func (t *tuner) together(ctx context.Context, jobs []job) error {
	out := make([]outcome, len(jobs))
	var wg sync.WaitGroup
	for i := range jobs {
		j := &jobs[i]
		m, no, err := t.tape.came(&j.trial)
		switch {
		case err != nil:
			return err
		case m != nil:
			out[i].m = *m
			continue
		case no != nil:
			out[i].no = no
			continue
		case t.lab.Runner == nil:
			return errTape
		}
		if out[i].no, err = t.refused(j, t.prepare(ctx, j)); err != nil {
			return err
		}
		if out[i].no != nil {
			continue
		}
		wg.Go(func() { out[i] = t.run(ctx, j.trial) })
	}
	wg.Wait()
	var first error
	for i := range jobs {
		if err := t.take(&jobs[i], &out[i]); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// prepare brings devices and knobs to the setting of a trial and writes down that it is about to be run.
func (t *tuner) prepare(ctx context.Context, j *job) error {
	if f := t.e.Space.Change; f != nil {
		j.trial.Change = f(j.trial.Setting)
	}
	if err := t.apply(ctx, &j.trial); err != nil {
		return err
	}
	if t.moves {
		return t.log.Append(recRun, &j.trial)
	}
	return t.log.Put(recRun, &j.trial)
}

// refused is what devices said when they did not take the setting of a trial, once it is written down; any other err is returned. What there
// was cannot be refused: they held it.
func (t *tuner) refused(j *job, err error) (*NotTaken, error) {
	var r *Refusal
	if !errors.As(err, &r) || j.a.key == t.start.key {
		return nil, err
	}
	no := &NotTaken{N: j.trial.N, Device: r.Device, Why: r.Why}
	return no, t.log.Append(recRefused, no)
}

// run makes a run.
func (t *tuner) run(ctx context.Context, trial Trial) outcome {
	o, err := t.lab.Runner.Run(ctx, trial)
	r := outcome{m: Measured{N: trial.N}}
	if err == nil {
		r.m.Measure, err = t.e.Sight.Measure(&o)
	}
	r.m.At = t.e.Now().UTC()
	if errors.As(err, &r.m.Rejected) {
		err = nil
		if t.guarded {
			r.m.Harm = t.e.Sight.Harm(&o)
		}
	}
	if err != nil {
		r.err = fmt.Errorf("run %d: %w", trial.N, err)
		if cause := context.Cause(ctx); cause != nil {
			r.err = cause
		}
	}
	return r
}

// take writes down what came of a job and counts it.
func (t *tuner) take(j *job, o *outcome) error {
	switch {
	case o.err != nil:
		return o.err
	case o.no != nil:
		t.leave(j, o.no)
		return nil
	}
	if t.tape == nil || t.tape.Measures[j.trial.N] == nil {
		if err := t.log.Put(recMeasure, &o.m); err != nil {
			return err
		}
	}
	t.pass(j.trial.N, o.m.At, j.a.key)
	why := o.m.Rejected
	if why == nil {
		why = t.unusable(o.m.Measure)
	}
	harm := o.m.harm()
	if why != nil {
		err := t.reject(j, why)
		if trip := t.trip(j.trial.N, &harm); trip != nil { // what it has done is done
			return trip
		}
		return err
	}
	t.row, j.a.failed = 0, 0
	j.a.runs[j.i] = t.e.Objective.valued(o.m.Measure, t.tail > 0)
	t.progress()
	return t.trip(j.trial.N, &harm)
}

// pass counts run n, which had ended at a time, and how long it took. A process that stood still has spent nothing.
func (t *tuner) pass(n int, at time.Time, setting string) {
	t.runs++
	took := time.Duration(0)
	if from := t.tape.from(n, t.clock); at.After(from) {
		took = at.Sub(from)
		t.spent += took
		t.clock = at
	}
	if (t.guarded || t.externals != nil) && setting != t.ran { // something was written for it
		t.moved.n++
		t.moved.took += took
	}
	t.ran = setting
}

// leave leaves a setting out that devices do not take. That is no run.
func (t *tuner) leave(j *job, no *NotTaken) {
	words := no.Device + " refuses it: " + no.Why
	j.a.left, j.a.refused = words, true
	t.miss(t.words(j.a.setting) + ": " + words)
	t.tell(Event{Notice: t.words(j.a.setting) + " is left out: " + words})
}

// noLatency is the code of a run in which nothing came through of what measures latency.
const noLatency = "no-latency"

// unusable is why a measure cannot be compared with those before it; nil when it can.
func (t *tuner) unusable(m *Measure) *Rejected {
	measured := int8(-1)
	if m.P999 > 0 {
		measured = 1
	}
	t.tail = cmp.Or(t.tail, measured)
	if t.tail > measured {
		return &Rejected{Code: noLatency, Why: "no latency was measured, as it was in the runs before"}
	}
	return nil
}

// valued is a measure in logarithms, and what it is worth. tails says that p99.9 is measured. Less than a bit per second counts as one.
func (o *Objective) valued(m *Measure, tails bool) *run {
	r := &run{Measure: m, good: math.Log(max(m.Goodput, 1))}
	if tails {
		r.tail = math.Log(m.P999)
	}
	r.j = r.good - o.Exchange*r.tail
	return r
}

// reject counts a run that cannot be used. An arm with too many in a row is left, and when nothing else worked since, the experiment ends. Where
// the same seed makes the same run, one without latency is what the setting does, and the setting alone is left.
func (t *tuner) reject(j *job, why *Rejected) error {
	t.rejected, t.rejectedFor = t.rejected+1, why.Why
	t.tell(Event{Notice: fmt.Sprintf("run %d rejected (%s): %s", j.trial.N, why.Code, why.Why)})
	if why.Code == noLatency && !t.drifts && j.a.key != t.start.key {
		j.a.left = why.Why
		t.miss(t.words(j.a.setting) + " to the end: nothing that measures latency came through in a run")
		return nil
	}
	t.row++
	j.a.failed++
	most := t.e.Limits.Rejected
	if j.a.failed < most {
		return nil
	}
	words := fmt.Sprintf("%d runs in a row could not be used: %s", j.a.failed, why.Why)
	if j.a != t.start && t.row < 2*most {
		j.a.left = words
		return nil
	}
	switch {
	case why.Host:
		return &verdictError{HostBound, "not the fabric: " + why.Why}
	case why.Code == "wrong-class":
		return &verdictError{WrongClass, why.Why}
	}
	return &verdictError{Undecided, words}
}

// trip is the limit that run n on devices has broken. That a host stops its switch in the baseline is an answer, and nothing to be taken back.
func (t *tuner) trip(n int, m *Harm) error {
	l := &t.e.Limits
	if !t.guarded {
		return nil
	}
	switch {
	case value(m.Drops) > l.Drops:
		return &tripError{fmt.Sprintf("%d packets of lossless classes were lost in run %d, and %d is the most", *m.Drops, n, l.Drops)}
	case value(m.Watchdog) > l.Watchdog:
		return &tripError{fmt.Sprintf("the PFC watchdog acted %d times in run %d, and %d is the most", *m.Watchdog, n, l.Watchdog)}
	case l.Pausing > 0 && t.step != baselineStep && m.Pausing != nil && *m.Pausing > l.Pausing:
		return &tripError{fmt.Sprintf("a host stopped its switch for %.1f%% of run %d, and %.1f%% is the most", 100**m.Pausing, n, 100*l.Pausing)}
	}
	return nil
}

func (t *tuner) progress() {
	p := Progress{Step: t.step, Runs: t.runs, Most: t.e.Budget.Runs}
	if n := len(t.grants); n > 0 {
		p.Most = t.grants[n-1].budget.Runs
	}
	if t.variable != "" {
		p.Step = t.variable + " " + t.step
	}
	if p.Most > 0 {
		p.Left = t.spent / time.Duration(t.runs) * time.Duration(max(p.Most-t.runs, 0))
	}
	t.tell(Event{Progress: &p})
}
