package tuning

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fabricctl/fabricctl/model/journal"
)

// History is what a journal tells of an experiment.
type History struct {
	Begin     Begin
	Said      []Said
	Trials    []Trial           // that were begun, by number; those that a resumed process made again are there once
	Measures  map[int]*Measured // by the number of the trial
	NotTaken  map[int]*NotTaken // trials that devices did not take, the same
	Decisions []Decision
	Notices   []string
	Restores  []Restore
	Resumed   []time.Time
	Touched   bool     // something was moved, and was not brought back since
	Applied   *Trial   // whose setting devices and knobs were last told to have; nil = what there was
	End       *Outcome // of the last process that came to an end; nil = it is running, or gone
	Gate      *Gated   // of the best setting; nil = there was none
	Last      time.Time

	resumes []resumed
	trials  map[int]*Trial
}

// resumed is a process that goes on.
type resumed struct {
	at time.Time
	grant
}

// Read understands the records of a journal. An error is a journal that is none of an experiment, or has been changed.
func Read(records []journal.Record) (*History, error) {
	h := &History{Measures: map[int]*Measured{}, NotTaken: map[int]*NotTaken{}, trials: map[int]*Trial{}}
	if len(records) == 0 {
		return nil, errors.New("the experiment died before it was written down: nothing was touched")
	}
	if records[0].Kind != recBegin {
		return nil, errors.New("the journal is not that of an experiment")
	}
	for i := range records {
		if err := h.read(&records[i]); err != nil {
			return nil, err
		}
		h.Last = records[i].Time
	}
	for _, t := range h.trials {
		h.Trials = append(h.Trials, *t)
	}
	slices.SortFunc(h.Trials, func(a, b Trial) int { return a.N - b.N })
	return h, nil
}

// resumedBy is the history with one process more.
func (h *History) resumedBy(b *Begin) *History {
	is := *h
	is.Resumed = append(slices.Clip(h.Resumed), b.At)
	is.resumes = append(slices.Clip(h.resumes), resumed{b.At, h.granted(b.Budget)})
	is.End = nil
	return &is
}

func into[T any](r *journal.Record) (*T, error) {
	v := new(T)
	if err := json.Unmarshal(r.Data, v); err != nil {
		return nil, fmt.Errorf("journal record %d (%s): %w", r.Seq, r.Kind, err)
	}
	return v, nil
}

func (h *History) read(r *journal.Record) error {
	switch r.Kind {
	case recBegin:
		b, err := into[Begin](r)
		if err != nil {
			return err
		}
		return h.begin(r, b)
	case recResume:
		b, err := into[Begin](r)
		if err != nil {
			return err
		}
		*h = *h.resumedBy(b)
	case recSaid:
		if err := gather(r, &h.Said); err != nil {
			return err
		}
		s := &h.Said[len(h.Said)-1]
		all := []Setting{s.In}
		if s.Out != nil {
			all = append(all, s.Out)
		}
		for i := range s.Starts {
			all = append(all, s.Starts[i].Setting)
		}
		return h.fits(r, all...)
	case recApply, recRun:
		t, err := into[Trial](r)
		if err != nil {
			return err
		}
		if r.Kind == recApply {
			h.Touched, h.Applied = true, t
		}
		if old := h.trials[t.N]; old != nil && (old.Seed != t.Seed || old.Setting.Key() != t.Setting.Key()) {
			return fmt.Errorf("journal record %d (%s): trial %d is there twice, with another setting", r.Seq, r.Kind, t.N)
		}
		h.trials[t.N] = t
		return h.fits(r, t.Setting)
	case recMeasure:
		m, err := into[Measured](r)
		if err != nil {
			return err
		}
		if h.trials[m.N] == nil || (m.Measure == nil) == (m.Rejected == nil) {
			return fmt.Errorf("journal record %d (%s): a measure of trial %d, which was not begun, or without an outcome", r.Seq, r.Kind, m.N)
		}
		h.Measures[m.N] = m
	case recRefused:
		x, err := into[NotTaken](r)
		if err != nil {
			return err
		}
		if h.trials[x.N] == nil || h.Measures[x.N] != nil {
			return fmt.Errorf("journal record %d (%s): trial %d was not begun, or was run", r.Seq, r.Kind, x.N)
		}
		h.NotTaken[x.N], h.Applied = x, nil
	case recDecision:
		if err := gather(r, &h.Decisions); err != nil {
			return err
		}
		if n := len(h.Decisions); h.Decisions[n-1].N != n {
			return fmt.Errorf("journal record %d (%s): decision %d stands where %d is to be", r.Seq, r.Kind, h.Decisions[n-1].N, n)
		}
		return h.fits(r, h.Decisions[len(h.Decisions)-1].settings()...)
	case recNotice:
		n, err := into[Notice](r)
		if err != nil {
			return err
		}
		h.Notices = append(h.Notices, n.Text)
	case recRestore:
		if err := gather(r, &h.Restores); err != nil {
			return err
		}
		if h.Restores[len(h.Restores)-1].Done {
			h.Touched, h.Applied = false, nil
		}
	case recEnd:
		o, err := into[Outcome](r)
		if err != nil {
			return err
		}
		h.End = o
		return h.fits(r, o.settings()...)
	case recGate:
		g, err := into[Gated](r)
		if err != nil {
			return err
		}
		h.Gate = g
	default:
		return fmt.Errorf("journal record %d is of kind %q, which this version of fabricctl does not know", r.Seq, r.Kind)
	}
	return nil
}

// fits is an error when a setting is not about the variables of the experiment.
func (h *History) fits(r *journal.Record, settings ...Setting) error {
	for _, s := range settings {
		if n := len(h.Begin.Vars); len(s) != n {
			return fmt.Errorf("journal record %d (%s): a setting has %d values, and not %d", r.Seq, r.Kind, len(s), n)
		}
	}
	return nil
}

// settings are all that a decision is about.
func (d *Decision) settings() []Setting { return append(settingsOf(d.Arms), d.From, d.To) }

func settingsOf(arms []Arm) (all []Setting) {
	for i := range arms {
		all = append(all, arms[i].Setting)
	}
	return all
}

// settings are all that an outcome is about.
func (o *Outcome) settings() []Setting {
	all := append(settingsOf(o.Pareto), o.Best)
	if o.Confirmed != nil {
		all = append(all, o.Confirmed.settings()...)
	}
	return all
}

func gather[T any](r *journal.Record, to *[]T) error {
	v, err := into[T](r)
	if err == nil {
		*to = append(*to, *v)
	}
	return err
}

// begin takes the first record and refuses what no experiment begins with.
func (h *History) begin(r *journal.Record, b *Begin) error {
	switch {
	case r.Seq != 1:
		return fmt.Errorf("journal record %d: another experiment begins here", r.Seq)
	case b.Schema != RecordSchema:
		return fmt.Errorf("the journal is of schema %q, this version of fabricctl reads %q", b.Schema, RecordSchema)
	case !b.Looks.sane():
		return fmt.Errorf("journal record 1: looks of %+v", b.Looks)
	case len(b.Vars) == 0 || len(b.Base) != len(b.Vars) || len(b.Start) != len(b.Vars):
		return fmt.Errorf("journal record 1: %d variables, and settings of %d and %d", len(b.Vars), len(b.Base), len(b.Start))
	}
	h.Begin = *b
	return nil
}

// mostLooked is the most runs that an arm may be asked for.
const mostLooked = 10_000

// sane reports whether there can be such looks.
func (l Looks) sane() bool {
	for _, n := range []int{l.First, l.Every, l.Most, l.Polish} {
		if n < 0 || n > mostLooked {
			return false
		}
	}
	return l.Confirm >= 0 && l.Confirm <= MostConfirm && l.Confidence >= 0 && l.Confidence < 1
}

// State is how the experiment stands. A journal without an end is Running while somebody holds it, which alive says, and Dead else.
func (h *History) State(alive bool) State {
	switch {
	case h.End != nil && (h.End.State != NeedsHands || h.Touched):
		return h.End.State
	case h.End != nil: // it has been restored since
		return Stopped
	case alive:
		return Running
	}
	return Dead
}

// came is what the journal has of a trial, which must be the one that is asked for now: its outcome, or that it was refused.
func (h *History) came(t *Trial) (*Measured, *NotTaken, error) {
	if h == nil || h.Measures[t.N] == nil && h.NotTaken[t.N] == nil {
		return nil, nil, nil
	}
	if was := h.trials[t.N]; was.Seed != t.Seed || was.Setting.Key() != t.Setting.Key() {
		return nil, nil, fmt.Errorf("trial %d of the journal is another one than the journal's measures lead to: the experiment is not the same, or the method has changed", t.N)
	}
	return h.Measures[t.N], h.NotTaken[t.N], nil
}

// decided reports whether the journal has a decision.
func (h *History) decided(n int) bool { return h != nil && n <= len(h.Decisions) }

// from is since when the time of trial n counts: since the clock, or since its process began.
func (h *History) from(n int, clock time.Time) time.Time {
	if h != nil {
		for _, r := range h.resumes {
			if r.after < n && r.at.After(clock) {
				clock = r.at
			}
		}
	}
	return clock
}

// same is an error when e is not the experiment that began.
func (b *Begin) same(e *Experiment) error {
	if b.Context.Digest != e.Context.Digest {
		return errors.New("the model is not the one that the experiment began with")
	}
	if len(b.Vars) != len(e.Space.Vars) {
		return errors.New("the variables are not those that the experiment began with")
	}
	for i := range b.Vars {
		if b.Vars[i].Name != e.Space.Vars[i].Name || b.Base[i] != e.Space.Base[i] {
			return fmt.Errorf("variable %s was %s when the experiment began, and now %s is %s", b.Vars[i].Name, b.Vars[i].Text(b.Base[i]), e.Space.Vars[i].Name, e.Space.Vars[i].Text(e.Space.Base[i]))
		}
	}
	return nil
}

// Experiment is the experiment that b began, as far as a journal knows it: its Space answers as the journal says.
func (b *Begin) Experiment(now func() time.Time) Experiment {
	return Experiment{
		Context: b.Context, Space: &Space{Vars: b.Vars, Base: b.Base}, Start: b.Start, Objective: b.Objective, Limits: b.Limits, Budget: b.Budget,
		Method: b.Method, Seed: b.Seed, Looks: b.Looks, Rounds: b.Rounds, Plain: b.Plain, Rejects: b.Rejects, Now: now,
	}
}
