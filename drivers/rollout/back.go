package rollout

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/render"
)

// unreadable is an error that leaves the state of a device unknown.
type unreadable struct{ error }

func (u unreadable) Unwrap() error { return u.error }

// takeBack restores a device whose steps could not all be carried out, and says what it holds. It works on after an
// interruption, for as long as Grace.
func (s *session) takeBack(ctx context.Context, why error) Result {
	c := cause(ctx, why)
	if s.unanswered {
		s.notef("it did not answer, and may still carry the change out: look again later, then resume or roll back")
		return s.result(Unknown, c, 0, why)
	}
	ctx, cancel := s.e.fresh(ctx)
	defer cancel()
	s.emit(Event{Stage: StageUndo, Message: diag.OneLine(why.Error())})
	err := error(nil)
	if !stopped(why) {
		err = s.restore(ctx)
	}
	switch {
	case stopped(why), stopped(err), errors.Is(err, drivers.ErrJobs):
		return s.handsOff(ctx, errors.Join(why, err))
	case err != nil:
		return s.result(s.lost(err), c, 0, errors.Join(why, err))
	case s.wrote:
		return s.result(RolledBack, c, 0, why)
	}
	return s.result(Unchanged, c, 0, why)
}

// lost is the outcome when restoring failed.
func (s *session) lost(err error) Outcome {
	s.noteTimer()
	if u := (unreadable{}); errors.As(err, &u) {
		return Unknown
	}
	return NeedsHands
}

// noteTimer says what the device does if it is left alone.
func (s *session) noteTimer() {
	if !s.reverts.IsZero() {
		s.notef("unless somebody confirms it, the device reverts by itself by %s", s.reverts.UTC().Format(time.RFC3339))
	}
}

// handsOff says what a device holds that we may not write to any more: the lease is gone, somebody holds the device, or
// jobs have begun on it that the way back would kill.
func (s *session) handsOff(ctx context.Context, why error) Result {
	err := &RefusedError{Reason: why.Error(), Hint: "nothing more is written; " + s.e.command("lock", "list") + " and " + s.e.command("runs", "list") + " say who is at work", Err: why}
	if errors.Is(why, ErrHeld) {
		err.Hint = "nothing more is written until the hold is over or released: then " + s.goOn()
	} else if errors.Is(why, drivers.ErrJobs) {
		err.Hint = "nothing more is written while jobs run there: " + s.goOn() + " when they are done, or with --allow-jobs"
	}
	live, readErr := s.reread(ctx)
	if readErr != nil {
		return s.result(s.lost(unreadable{readErr}), Refused, 0, errors.Join(err, readErr))
	}
	n, half, ok := s.j.position(live)
	switch {
	case ok && n == 0 && !half:
		return s.result(Unchanged, Refused, 0, err)
	case ok:
		s.notef("%d of %d steps are in force", n, len(s.dp.Steps))
	}
	s.noteTimer()
	return s.result(NeedsHands, Refused, n, err)
}

// goOn is what can be done with the run of s later: it is finished or taken back, a trial taken back alone.
func (s *session) goOn() string {
	back := s.e.command("runs", "rollback", s.a.run.ID)
	if s.a.leave.Trial != "" {
		return back
	}
	return s.e.command("runs", "resume", s.a.run.ID) + " or " + back
}

// restore brings a device back to what it held before the run: it aborts our transactions, undoes what is in force,
// and saves if the new configuration may have been saved. Nil means that the device was read and holds the old state;
// an unreadable error that it could not be read.
func (s *session) restore(ctx context.Context) error {
	if err := s.redial(ctx); err != nil {
		return unreadable{err}
	}
	own, foreign, err := s.pending(ctx)
	if err == nil {
		err = errors.Join(s.drop(ctx, own, nil), s.strange(foreign))
	}
	switch {
	case stopped(err):
		return err
	case err != nil:
		s.notef("%s", diag.OneLine(err.Error()))
	}
	live, err := s.reread(ctx)
	if err != nil {
		return unreadable{err}
	}
	if live, err = s.undo(ctx, live); err != nil {
		return err
	}
	if own, _, err = s.pending(ctx); err != nil {
		return unreadable{err}
	}
	if len(own) > 0 {
		return fmt.Errorf("%s holds the old configuration, but transaction %s is still %s on it", s.dp.Name, own[0].ID, own[0].State)
	}
	if s.j.print(live, nil) != s.dp.Steps[0].Before {
		if what := s.j.moved(live, 0); what != "" {
			s.notef("besides the run, owned settings changed: %s", what)
		}
	}
	return s.saveOld(ctx)
}

// undo takes back what live shows of the steps, last step first, and returns what the device holds then. Nothing is
// undone when a value is neither old nor new, hence somebody else's; when somebody uses what would be removed; or when
// a commit timer runs, which would take the undo with it.
func (s *session) undo(ctx context.Context, live render.Config) (render.Config, error) {
	if others := s.j.strangers(live); len(others) > 0 {
		return live, fmt.Errorf("%s: %w: %s", s.dp.Name, drivers.ErrMoved, list(others))
	}
	if s.j.old(live) {
		return live, nil
	}
	if used := s.j.dangling(live); used != "" {
		return live, &RefusedError{Reason: s.dp.Name + ": " + used, Hint: "take that away first", Err: drivers.ErrMoved}
	}
	if err := s.quiet(ctx, ""); err != nil {
		return live, err
	}
	did, err := s.drain(ctx)
	if err != nil {
		return live, err
	}
	if did {
		if live, err = s.reread(ctx); err != nil {
			return live, unreadable{err}
		}
	}
	for i := len(s.dp.Steps) - 1; i >= 0; i-- {
		if s.j.undone(live, i) {
			continue
		}
		var err error
		if live, err = s.undoStep(ctx, i, live); err != nil {
			return live, err
		}
	}
	return live, nil
}

// undoStep is one undo: journal, commit without a timer (the old state is the safe one), read back.
func (s *session) undoStep(ctx context.Context, i int, live render.Config) (render.Config, error) {
	if err := s.may(ctx); err != nil {
		return live, err
	}
	s.emit(Event{Stage: StageUndo, Step: i + 1, Changes: len(s.dp.Steps[i].Undo)})
	rec := stepRecord{Device: s.dp.Name, Step: i, Undo: true, Tx: s.a.nextTx()}
	s.a.record(recBegin, rec, s.note) // the undo itself is in the journal since the run began
	s.wrote = true
	s.e.at("undo.commit.before")
	said := s.commit(ctx, rec.Tx, s.dp.Steps[i].Undo, 0)
	s.e.at("undo.commit.after")
	if said != nil {
		said = fmt.Errorf("undo of step %d: %w", i+1, said)
	}
	live, err := s.reread(ctx)
	if err != nil {
		return nil, unreadable{errors.Join(said, err)}
	}
	if !s.j.undone(live, i) {
		return live, errors.Join(said, fmt.Errorf("%s still holds part of step %d: %s", s.dp.Name, i+1, s.j.moved(live, i)))
	}
	for _, c := range s.j.leftovers(live, i) {
		s.notef("%s stays at %q: the device does not let go of it, and it does nothing alone", c.Key, *c.After)
	}
	s.a.recordDone(rec, s.note)
	return live, nil
}

// saveOld saves the restored configuration if the run may have saved the new one.
func (s *session) saveOld(ctx context.Context) error {
	if !s.a.saved(s.dp.Name) {
		return nil
	}
	if err := s.save(ctx); err != nil {
		return fmt.Errorf("%s runs the old configuration, and its startup configuration may hold the new one: %w", s.dp.Name, err)
	}
	return nil
}

// rollback takes a device back to what it held before the run.
func (s *session) rollback(ctx context.Context, st *story) Result {
	ctx, cancel := s.e.fresh(ctx)
	defer cancel()
	s.emit(Event{Stage: StageRead})
	if err := s.dial(ctx); err != nil {
		return s.untouched(ctx, st, unreadable{err})
	}
	if err := owners(s.dp.Name, s.facts); err != nil {
		return s.untouched(ctx, st, err)
	}
	_, foreign, err := s.pending(ctx)
	if err == nil {
		err = s.strange(foreign)
	}
	if err != nil {
		return s.untouched(ctx, st, err)
	}
	err = s.restore(ctx)
	switch {
	case stopped(err), errors.Is(err, drivers.ErrJobs):
		return s.handsOff(ctx, err)
	case err != nil && !s.wrote:
		return s.untouched(ctx, st, err)
	case err != nil:
		return s.result(s.lost(err), cause(ctx, err), 0, err)
	}
	return s.result(RolledBack, None, 0, nil)
}
