package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fabricctl/fabricctl/cmd/show"
	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/journal"
	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/tuning"
)

// carryOut begins an experiment, or goes on with the one of h, and shows what came of it.
func (a *app) carryOut(ctx context.Context, x *experiment, id string, h *tuning.History, json bool) (err error) {
	ctx, stop := x.shuts(ctx, time.Now())
	defer stop()
	dir, err := a.tuneDir()
	if err != nil {
		return err
	}
	unlock, err := lockTune(ctx, dir, id)
	if err != nil {
		return diskWords(err)
	}
	defer unlock()
	if !x.live() { // simulations leave much behind that is dead at once: processor is dearer than memory here
		defer debug.SetGCPercent(debug.SetGCPercent(200))
	}
	if h != nil {
		if err := a.unchanged(id, h); err != nil {
			return err
		}
	}
	hook, err := a.failpoints()
	if err != nil {
		return err
	}
	end, err := a.attach(ctx, x, id)
	if err != nil {
		return a.unbegun(dir, id, err)
	}
	defer func() { err = errors.Join(err, end()) }()
	if h != nil {
		if err := sameFirmware(&h.Begin.Context, &x.exp.Context); err != nil {
			return err
		}
	}
	log, err := openTuneLog(dir, id, h == nil, journal.Options{Now: time.Now, Hook: hook})
	if err != nil {
		return diskWords(err)
	}
	if h != nil && h.Touched {
		if err := a.broughtBack(ctx, id, h, x.lab, log); err != nil {
			return errors.Join(err, log.Close())
		}
	}
	fmt.Fprintf(a.sys.err, "run %s, journal %s\n", id, tunePath(dir, id))
	t := a.tuneTeller()
	var o tuning.Outcome
	if h == nil {
		o, err = tuning.Run(ctx, x.exp, x.lab, log, t.tell)
	} else {
		o, err = tuning.Resume(ctx, x.exp, h, x.lab, log, t.tell)
	}
	t.end()
	if err == nil {
		err = a.gate(ctx, x, id, &o, log)
	}
	err = errors.Join(err, log.Close())
	r, told, unread := a.tuned(id)
	if unread != nil && o.State == "" { // it ended before it was written down
		return a.unwritten(dir, id, errors.Join(err, unread))
	}
	if unread != nil {
		return diskWords(errors.Join(err, unread))
	}
	switch {
	case r.Outcome != nil:
	case o.State != "": // the journal has no end, and this was one
		r.Outcome, r.State = &o, o.State
	default: // it did not begin: the process that is at work on it is this one
		r.State = told.State(false)
	}
	if e := a.showTuned(r, told, false, json); e != nil {
		return e
	}
	return a.tuneEnd(ctx, r, &o, err)
}

// unchanged wants a journal, now that nobody else works on it, to have the trials that it had when it was read: a question may have been answered
// in between. That the baseline was restored meanwhile is no matter, and what a resume begins with.
func (a *app) unchanged(id string, was *tuning.History) error {
	_, is, err := a.tuned(id)
	if err == nil && (len(is.Trials) != len(was.Trials) || len(is.Measures) != len(was.Measures)) {
		err = fail(exitRefused, a.command("tune", "show", id)+" shows how it stands now", "another process has gone on with experiment %s meanwhile; nothing was done", id)
	}
	return err
}

// unbegun is the error of an experiment that was not begun: nothing is left of it.
func (a *app) unbegun(dir, id string, err error) error {
	if _, e := os.Stat(tunePath(dir, id)); errors.Is(e, fs.ErrNotExist) {
		_ = os.Remove(tuneLockPath(dir, id))
	}
	return diskWords(err)
}

// unwritten is the error of an experiment whose journal has not even its beginning: nothing is left of it.
func (a *app) unwritten(dir, id string, err error) error {
	if info, e := os.Stat(tunePath(dir, id)); e == nil && info.Size() == 0 {
		_ = os.Remove(tunePath(dir, id))
	}
	return a.unbegun(dir, id, err)
}

// openTuneLog is the journal of an experiment, to be written.
func openTuneLog(dir, id string, fresh bool, o journal.Options) (*journal.Log, error) {
	if fresh {
		return journal.Create(tunePath(dir, id), o)
	}
	log, _, _, err := journal.Open(tunePath(dir, id), o)
	return log, err
}

// tuneEnd is how an experiment ended, as an error where its exit code is not 0.
func (a *app) tuneEnd(ctx context.Context, r *tuneJSON, o *tuning.Outcome, err error) error {
	again := a.command("tune", "resume", r.ID) + " goes on"
	switch {
	case o.State == tuning.NeedsHands:
		return fail(exitNeedsHands, "when that is mended, "+again, "the baseline is not back: %s", diag.OneLine(o.Left))
	case ctx.Err() != nil && errors.Is(context.Cause(ctx), context.Canceled):
		return fail(exitInterrupted, again, "%w; %s", context.Cause(ctx), baseline(r, o))
	case isFull(err):
		return fail(exitError, "make room; then "+again, "the disk of the journal is full: %w; %s", err, baseline(r, o))
	case o.State == tuning.Tripped:
		return fail(exitRefused, "", "a limit tripped: %s; the baseline holds", diag.OneLine(o.Trip))
	case err != nil:
		return fail(exitError, again, "%w; %s", err, baseline(r, o))
	case r.Gate != nil && !r.Gate.Passed:
		return fail(exitRefused, "", "the gate refused the result: %s; the baseline holds", diag.OneLine(r.Gate.Why))
	}
	return nil
}

// baseline says what holds after an experiment that did not reach its end.
func baseline(r *tuneJSON, o *tuning.Outcome) string {
	switch {
	case o.State == "":
		return "nothing was touched"
	case r.Begin.Context.Runner == runnerSim:
		return "no device was written"
	}
	return "the baseline holds"
}

// moreFlags are what a resume gives beyond what an experiment had.
type moreFlags struct {
	runs    int
	time    time.Duration
	changed func(flag string) bool
	yes     bool
}

func (a *app) newTuneResume() *cobra.Command {
	var o moreFlags
	c := &cobra.Command{
		Use:   "resume RUN",
		Short: "Finish an experiment that was interrupted or that died, or go on with one whose budget was spent",
		Long: `Finish an experiment: what was measured stands in its journal and is not measured again, what was decided is decided again in the same
way, and then it goes on. Where devices were written and the baseline is not back, it is restored first. The model has to be the one that the
experiment began with; -f is needed only where its layers are found elsewhere now.

One whose budget was spent goes on with a larger one, where the search was: --max-runs and --max-time say how much it may come to in all,
with what was spent already. The confirmation that it had ended with is made again, on other seeds.`,
		Example: "  fabricctl tune resume 261130-093012-1c2d3e4f\n  fabricctl tune resume 261130-093012-1c2d3e4f --max-runs 1500",
		Args:    wantTuned,
		RunE: func(c *cobra.Command, args []string) error {
			o.changed = c.Flags().Changed
			return a.runTuneResume(c.Context(), args[0], o)
		},
	}
	f := c.Flags()
	f.IntVar(&o.runs, "max-runs", 0, "runs at most in all, more than it had (0 = no limit)")
	f.DurationVar(&o.time, "max-time", 0, "time at most in all, more than it had, such as 4h (0 = no limit)")
	f.BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	return c
}

// budget is what an experiment may spend from now on.
func (o *moreFlags) budget(h *tuning.History) (tuning.Budget, error) {
	b := h.Budget()
	switch {
	case o.runs < 0:
		return b, usage("--max-runs %d: want a number from 0 on", o.runs)
	case o.time < 0 || o.time > 0 && o.time < leastTime:
		return b, usage("--max-time %s: want a time of %s or more, such as 4h, or 0 for no limit", o.time, leastTime)
	}
	if o.changed("max-runs") {
		b.Runs = o.runs
	}
	if o.changed("max-time") {
		b.Time = units.Duration(o.time)
	}
	return b, nil
}

// resumable refuses to go on with what has ended, or is under way, and with a budget that takes it no further.
func (a *app) resumable(r *tuneJSON, h *tuning.History, b tuning.Budget) error {
	shows := a.command("tune", "show", r.ID) + " shows its answer"
	switch spent := r.Outcome != nil && r.Outcome.Spent; {
	case r.State == tuning.Done:
		return fail(exitError, shows, "experiment %s has ended; there is nothing to finish", r.ID)
	case r.State == tuning.Tripped:
		return fail(exitError, shows, "a limit has ended experiment %s: %s; there is nothing to finish", r.ID, diag.OneLine(r.Outcome.Trip))
	case r.State == tuning.Running:
		return fail(exitRefused, "wait until it has ended, or interrupt it", "another process works on experiment %s", r.ID)
	case b == h.Budget() && spent:
		return fail(exitError, shows+"; "+a.command(append([]string{"tune", "resume", r.ID}, moreOf(r)...)...)+" goes on", "experiment %s has spent its budget; there is nothing to finish", r.ID)
	case b != h.Budget():
		if err := h.Enough(b); err != nil {
			return fail(exitUsage, "give more", "experiment %s: %w; nothing was done", r.ID, err)
		}
	}
	return nil
}

// moreOf are the flags for twice the budget that an experiment had, of runs and of time, or for as many runs as it is known to take: whichever was
// spent, more of the other alone takes it nowhere.
func moreOf(r *tuneJSON) (flags []string) {
	b := r.Budget
	if b.Runs > 0 {
		flags = append(flags, "--max-runs", strconv.Itoa(max(2*b.Runs, r.Begin.Context.Takes)))
	}
	if b.Time > 0 {
		flags = append(flags, "--max-time", time.Duration(2*b.Time).String())
	}
	return flags
}

func (a *app) runTuneResume(ctx context.Context, name string, more moreFlags) error {
	ctx, cancel := a.limit(ctx)
	defer cancel()
	json, err := a.wants("text", "json")
	if err != nil {
		return err
	}
	r, h, err := a.experimentOf(name)
	if err != nil {
		return err
	}
	id := r.ID
	budget, err := more.budget(h)
	if err != nil {
		return err
	}
	if err := a.resumable(r, h, budget); err != nil {
		return err
	}
	o, err := a.flagsOf(h.Begin.Context.Command)
	if err != nil {
		return err
	}
	o.yes = o.yes || more.yes
	if a.readOnly && o.runner != runnerSim {
		return fail(exitRefused, "leave --read-only out", "tune resume: %w", drivers.ErrReadOnly)
	}
	if len(a.fabric) == 0 {
		a.fabric = h.Begin.Context.Layers
	}
	x, err := a.experiment(ctx, o, h)
	if err != nil {
		return err
	}
	x.exp.Budget = budget
	printTunePlan(a.sys.err, x)
	if err := a.agree(ctx, x); err != nil {
		return err
	}
	return a.thenWrite(ctx, o.write, id, a.carryOut(ctx, x, id, h, json))
}

// flagsOf reads the flags of tune run from the command that began an experiment.
func (a *app) flagsOf(command []string) (tuneFlags, error) {
	_, o, err := a.callOf(command)
	return o, err
}

// callOf is the call of tune run that began an experiment, with its flags.
func (a *app) callOf(command []string) (then *app, o tuneFlags, err error) {
	then = &app{sys: a.sys}
	c := &cobra.Command{Use: "run"}
	then.globals(c.Flags())
	o.register(c)
	if err := c.ParseFlags(command); err != nil { // "tune" and "run" are left over
		return then, o, fmt.Errorf("the command in the journal is not one of this version of fabricctl: %w", err)
	}
	o.take(c, then)
	return then, o, nil
}

type replayJSON struct {
	Schema    string `json:"schema"`
	ID        string `json:"id"`
	Equal     bool   `json:"equal"`
	Decisions int    `json:"decisions"`
	Whole     bool   `json:"whole"`
	Differs   string `json:"differs,omitempty"`
}

func (a *app) newTuneReplay() *cobra.Command {
	return &cobra.Command{
		Use:   "replay RUN",
		Short: "Make all decisions of an experiment again, from its journal alone",
		Long:  "Make all decisions of an experiment again, from what its journal has of runs, and compare them with those in the journal. No model is needed, and nothing is run. Exit 1 when a decision differs.",
		Args:  wantTuned,
		RunE: func(_ *cobra.Command, args []string) error {
			json, err := a.wants("text", "json")
			if err != nil {
				return err
			}
			r, h, err := a.experimentOf(args[0])
			if err != nil {
				return err
			}
			ds, _, whole, err := replayed(h)
			p := replayJSON{Schema: "fabricctl/tune-replay/v1", ID: r.ID, Equal: err == nil, Decisions: len(ds), Whole: whole}
			if err != nil {
				p.Differs = diag.OneLine(err.Error())
			}
			if json {
				if err := a.printJSON(p); err != nil {
					return err
				}
			} else {
				a.printReplay(r, p)
			}
			if !p.Equal {
				return done(exitError)
			}
			return nil
		},
	}
}

// printReplay says whether a replay came to the same.
func (a *app) printReplay(r *tuneJSON, p replayJSON) {
	if !p.Equal {
		fmt.Fprintf(a.sys.out, "%s after %s: %s\n", show.Paint(show.Red, "differs"), diag.Count(p.Decisions, "decision"), p.Differs)
		return
	}
	of := []string{diag.Count(p.Decisions, "decision"), "from " + diag.Count(r.Runs, "run")}
	if !p.Whole {
		of = append(of, "as far as the journal goes")
	}
	fmt.Fprintf(a.sys.out, "%s: %s\n", show.Paint(show.Green, "equal"), strings.Join(of, ", "))
}
