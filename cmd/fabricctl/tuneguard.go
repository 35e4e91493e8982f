package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fabricctl/fabricctl/drivers/rollout"
	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/journal"
	"github.com/fabricctl/fabricctl/tuning"
)

// A fabric under an experiment has a mark: a file in the state directory that names the experiment, from before its first write to a
// device until its baseline is back. A mark without a holder of the lease is an experiment that died, or that could not bring its baseline
// back. The runs of an experiment are called after it, ID-1, ID-2 and so on, and each is taken back before the next one begins, so that
// the last one is all that can be in force.

// benchMark is the mark of an experiment of ours.
type benchMark struct {
	path string
	log  *journal.Log
}

func marksDir(stateDir string) string { return filepath.Join(stateDir, "benches") }

func markPath(stateDir, fabric string) string {
	return filepath.Join(marksDir(stateDir), fabric+".jsonl")
}

// marked is what stands in a mark.
type marked struct {
	Experiment string `json:"experiment"`
}

// readMark is what stands in the mark of a fabric; nothing where there is none, or where its writer died before it was written.
func readMark(stateDir, fabric string) (m marked, err error) {
	recs, _, err := journal.ReadFile(markPath(stateDir, fabric))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return m, nil
	case err == nil && len(recs) > 0:
		err = recs[0].Into(&m)
	}
	return m, err
}

// markBench marks a fabric. The mark is on the disk when it returns.
func (a *app) markBench(stateDir, fabric, id string, hook func(string)) (*benchMark, error) {
	m := &benchMark{path: markPath(stateDir, fabric)}
	var err error
	if m.log, err = journal.Create(m.path, journal.Options{Now: time.Now, Hook: hook}); err != nil {
		return nil, err
	}
	if err := m.log.Append("experiment", marked{id}); err != nil {
		return nil, errors.Join(err, m.log.Close(), os.Remove(m.path))
	}
	return m, nil
}

func (m *benchMark) remove() error { return os.Remove(m.path) }
func (m *benchMark) close() error  { return m.log.Close() }

// trialRun is the n-th run of an experiment.
func trialRun(id string, n int) string { return id + "-" + strconv.Itoa(n) }

// lastTrial is the number of the last run of an experiment; 0 = there is none.
func lastTrial(stateDir, id string) (int, error) {
	entries, err := os.ReadDir(filepath.Join(stateDir, "runs"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, fmt.Errorf("runs: %w", err)
	}
	last := 0
	for _, e := range entries {
		rest, ours := strings.CutPrefix(e.Name(), id+"-")
		if n, err := strconv.Atoi(strings.TrimSuffix(rest, ".jsonl")); ours && err == nil {
			last = max(last, n)
		}
	}
	return last, nil
}

// benched is an experiment on a fabric that may have something in force there.
type benched struct {
	Experiment string
	Lease      *journal.Lease // of the process that works on it; nil = there is none any more
	Run        string         // of a dead one, that may be in force; "" = none is
	Later      *rollout.Later // what later runs have made of that one; nil = there are none
}

// findBench looks for an experiment on a fabric: one that is under way, or a dead one whose baseline may not be back. nil when there is none. It reads a
// few files.
func (a *app) findBench(stateDir, fabric string, now time.Time) (*benched, error) {
	l, _ := journal.ReadLease(journal.LeasePath(rollout.LeasesDir(stateDir), fabric))
	var holder *benched
	if l.Held(now) {
		holder = &benched{Experiment: l.Run, Lease: &l}
	}
	m, err := readMark(stateDir, fabric)
	switch {
	case err != nil:
		return nil, err
	case holder != nil && (holder.Experiment == m.Experiment || m.Experiment == "" && a.isExperiment(holder.Experiment)):
		return holder, nil
	case m.Experiment == "": // there is none, or it died before it was written down
		return nil, nil
	}
	d := &benched{Experiment: m.Experiment}
	n, err := lastTrial(stateDir, m.Experiment)
	if err != nil || n == 0 {
		return d, err
	}
	run := trialRun(m.Experiment, n)
	if is, later := inForce(&rollout.Engine{StateDir: stateDir, Now: func() time.Time { return now }}, run); is {
		d.Run, d.Later = run, later
	}
	return d, nil
}

// inForce reports whether a trial may be in force: it was not taken back, and there is a device on which nothing that came later stands in its
// place. later is what did come later.
func inForce(e *rollout.Engine, run string) (is bool, later *rollout.Later) {
	h, err := rollout.Show(e.StateDir, run, e.Now())
	switch {
	case errors.Is(err, rollout.ErrUnwritten), errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return true, nil
	case h.Status == rollout.Finished:
		return false, nil
	}
	later, err = e.Later(run)
	return err != nil || !later.Whole(), later
}

// partly is how to bring back the baseline where later runs stand on some devices of a trial: it is not taken back below them.
func (a *app) partly(run string, l *rollout.Later) (hint string) {
	for _, r := range slices.Backward(l.Runs) {
		hint += a.again("rollback", r) + ", then "
	}
	return hint + a.again("rollback", run) + " bring it back; what came later can be applied again after that"
}

// warnTuning says on stderr what a verb that is about to work on a fabric has to know of experiments there: that one is under way, and what it tries, or that
// a dead one may have left a trial in force. Differences to the model may be its doing.
func (a *app) warnTuning(fabric string) {
	dir, err := a.state()
	if err != nil {
		return // the verb says it
	}
	b, err := a.findBench(dir, fabric, time.Now())
	switch {
	case err != nil:
		fmt.Fprintf(a.sys.err, "warning: whether a tuning experiment has left a trial on fabric %s is not known: %s\n", fabric, diag.OneLine(err.Error()))
	case b == nil:
	case b.Lease != nil:
		fmt.Fprintf(a.sys.err, "warning: tuning experiment %s is under way on fabric %s: %s; %s\n", b.Experiment, fabric, heldBy(b.Lease, time.Now()), a.tries(b.Experiment))
		fmt.Fprintf(a.sys.err, "hint: %s\n", a.whole(a.command("tune", "show", b.Experiment)+" says how far it is; interrupt it to have the baseline back"))
	case b.Later != nil:
		fmt.Fprintf(a.sys.err, "warning: tuning experiment %s ended without bringing back its baseline: a part of a trial may be in force on fabric %s: %s; %s\n", b.Experiment, fabric, laterWords(b.Later), a.tries(b.Experiment))
		fmt.Fprintf(a.sys.err, "hint: %s\n", a.whole(a.partly(b.Run, b.Later)))
	case b.Run != "":
		fmt.Fprintf(a.sys.err, "warning: tuning experiment %s ended without bringing back its baseline: a trial may be in force on fabric %s; %s\n", b.Experiment, fabric, a.tries(b.Experiment))
		fmt.Fprintf(a.sys.err, "hint: %s\n", a.whole(fmt.Sprintf("%s takes it back; %s does too, and goes on", a.again("rollback", b.Run), a.command(append([]string{"tune", "resume", b.Experiment}, a.modelFlags("")...)...))))
	}
}

// tries is what an experiment has in force by its journal, beside which a difference to the model is to be seen.
func (a *app) tries(id string) string {
	_, h, err := a.tuned(id)
	switch {
	case err != nil:
		return "what it tries is not known"
	case len(h.Begin.Context.Devices) == 0 && len(h.Begin.Externals) == 0:
		return "it writes no device; leave the fabric as it is while it measures"
	case h.Applied == nil || h.Applied.Setting.Key() == h.Begin.Start.Key():
		return "the baseline is in force now, or about to be, and any trial may come next"
	}
	return "what differs from the model may be its trial, by its journal just now " + movedText(h.Begin.Vars, h.Begin.Start, h.Applied.Setting)
}

// takeBackDead takes back what a dead experiment has left on the fabric of m, says so, and writes that into its journal. It comes before
// anything that devices say of themselves is believed.
func (a *app) takeBackDead(ctx context.Context, m loaded) (err error) {
	d := a.dialler(m.fabric, m.net)
	e, err := a.engine(d.open)
	if err != nil {
		return err
	}
	dead, err := a.findBench(e.StateDir, m.net.Fabric, e.Now())
	if err != nil || dead == nil || dead.Run == "" {
		return err
	}
	if dead.Later != nil {
		return a.notBack(dead.Experiment, dead.Run, dead.Later)
	}
	e.Progress = nil
	if h, err := rollout.Show(e.StateDir, dead.Run, e.Now()); err == nil {
		d.allowJobs = h.Options.AllowJobs // what it was done with, it may be taken back with
	}
	if e.Lease, err = e.Acquire(ctx, m.net.Fabric, dead.Experiment); err != nil {
		return refusal(err)
	}
	defer func() { err = errors.Join(err, e.Lease.Release(context.WithoutCancel(ctx))) }()
	_, h, unread := a.tuned(dead.Experiment)
	if unread != nil || !h.Touched {
		return a.restoreDead(ctx, e, m.net.Fabric)
	}
	a.sayDead(dead.Experiment)
	dir, err := a.tuneDir()
	if err != nil {
		return err
	}
	lab := tuning.Lab{Bench: deadTrial{e, dead.Run}}
	if len(h.Begin.Externals) > 0 {
		lab.Knobs = a.knobs(m.net.Fabric)
	}
	if err := a.recoverTuned(ctx, dir, dead.Experiment, h, lab); err != nil {
		return err
	}
	a.sayRestored(dead.Experiment)
	return nil
}

// notBack is the error of an experiment whose last run later ones have taken over in part.
func (a *app) notBack(id, run string, l *rollout.Later) error {
	return fail(exitNeedsHands, a.partly(run, l), "the baseline of experiment %s is not back: %s", id, laterWords(l))
}

// deadTrial is the bench of an experiment whose process is gone.
type deadTrial struct {
	e   *rollout.Engine
	run string
}

// Apply is for the living.
func (d deadTrial) Apply(context.Context, model.Patch) error {
	return errors.New("a dead experiment tries nothing")
}

// Restore takes back the run that may be in force.
func (d deadTrial) Restore(ctx context.Context) error {
	left, err := rollBack(ctx, d.e, d.run)
	return errors.Join(err, words(left))
}

func (a *app) sayDead(id string) {
	fmt.Fprintf(a.sys.err, "tuning experiment %s ended without bringing back its baseline: taking back its last trial\n", id)
}

func (a *app) sayRestored(id string) {
	fmt.Fprintf(a.sys.err, "the baseline of experiment %s is back\n", id)
}

// restoreDead takes back what a dead experiment has left on a fabric whose lease e has, says so, and removes its mark.
func (a *app) restoreDead(ctx context.Context, e *rollout.Engine, fabric string) error {
	path := markPath(e.StateDir, fabric)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	m, err := readMark(e.StateDir, fabric)
	if err != nil {
		return fail(exitNeedsHands, "roll back its last run, then remove "+path, "the mark of a tuning experiment cannot be read: %w", err)
	}
	n := 0
	if m.Experiment != "" {
		if n, err = lastTrial(e.StateDir, m.Experiment); err != nil {
			return err
		}
	}
	if n > 0 {
		run := trialRun(m.Experiment, n)
		switch is, later := inForce(e, run); {
		case is && later != nil:
			return a.notBack(m.Experiment, run, later)
		case is:
			a.sayDead(m.Experiment)
			left, err := rollBack(ctx, e, run)
			if err != nil || len(left) > 0 {
				return fail(exitNeedsHands, a.again("rollback", run)+" tries it again", "the baseline of experiment %s is not back: %w", m.Experiment, errors.Join(err, words(left)))
			}
			a.sayRestored(m.Experiment)
		}
	}
	return os.Remove(path)
}

// unrestored is a device that does not hold the baseline, or may not.
type unrestored struct {
	device  string
	outcome rollout.Outcome
	why     string
	notes   []string
}

func (u *unrestored) Error() string {
	s := fmt.Sprintf("%s: %s: %s", u.device, u.outcome, u.why)
	for _, n := range u.notes {
		s += "; " + n
	}
	return s
}

// words are the devices that were not restored, as one error; nil for none.
func words(left []*unrestored) error {
	errs := make([]error, len(left))
	for i, u := range left {
		errs[i] = u
	}
	return errors.Join(errs...)
}

// rollBack takes a run back, and returns the devices that are not as before it. A run that died before it was written down was never
// in force.
func rollBack(ctx context.Context, e *rollout.Engine, run string) (left []*unrestored, err error) {
	if is, _ := inForce(e, run); !is {
		return nil, nil
	}
	r, err := e.Rollback(context.WithoutCancel(ctx), run)
	if err != nil {
		return nil, err
	}
	for _, x := range r.Results {
		if x.Outcome != rollout.RolledBack && x.Outcome != rollout.Unchanged {
			left = append(left, &unrestored{x.Device, x.Outcome, x.Message, x.Notes})
		}
	}
	return left, nil
}
