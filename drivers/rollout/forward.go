package rollout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/render"
)

// apply carries out the steps of a device that stands where the plan found it.
func (s *session) apply(ctx context.Context) Result {
	s.emit(Event{Stage: StageRead})
	if _, disturbs := s.dp.disturbs(); s.e.Drainer == nil || !disturbs {
		if r, done := s.onward(ctx); done {
			return r
		}
	}
	err := s.approach(ctx)
	if err == nil {
		var did bool
		if did, err = s.drain(ctx); did { // that may have taken an hour
			err = s.approach(ctx)
		}
	}
	if err != nil {
		return s.untouched(ctx, nil, err)
	}
	return s.forward(ctx, 0)
}

// approach wants a device, over a new connection, to stand where the plan found it.
func (s *session) approach(ctx context.Context) error {
	if err := s.dial(ctx); err != nil {
		return err
	}
	if err := s.unowned(); err != nil {
		return err
	}
	if err := s.reclaim(ctx, nil); err != nil {
		return err
	}
	live, err := s.read(ctx)
	if err != nil {
		return err
	}
	return s.unmoved(live)
}

// onward carries out the steps over the connection that the plan has left open. What the device was then need not be so
// any more, nor need it be the same one behind that connection: its first commit looks at all of that, as apply does,
// on what it reads before it writes. done is false where there is no such connection, or it did not last: nothing was
// sent then.
func (s *session) onward(ctx context.Context) (r Result, done bool) {
	dev, ok := s.e.Lines.take(s.dp.Name).(drivers.Guarded)
	if !ok {
		return Result{}, false
	}
	s.dev, s.caps = dev.(drivers.Device), s.dp.Caps
	rec := stepRecord{Device: s.dp.Name, Tx: s.a.nextTx()}
	var begun atomic.Bool
	var refused, failed error
	sent := s.send(ctx, begun.Load, func(asked context.Context) error {
		return dev.CommitIf(asked, rec.Tx, s.dp.Steps[0].Changes, 0, func(f render.Facts, live render.Config) error {
			begun.Store(true) // before ctx is looked at: from here on, its end does not break off what is sent
			if refused = s.enter(ctx, f, live); refused == nil {
				failed = s.begin(ctx, rec)
			}
			return cmp.Or(refused, failed)
		})
	})
	switch {
	case refused != nil:
		return s.untouched(ctx, nil, refused), true
	case failed != nil:
		return s.takeBack(ctx, failed), true
	case !begun.Load():
		s.e.log().Debug("the connection of the plan did not last", "device", s.dp.Name, "error", sent)
		return Result{}, false
	}
	if err := s.conclude(ctx, rec, sent); err != nil {
		return s.takeBack(ctx, err), true
	}
	return s.forward(ctx, 1), true
}

// enter wants a device that says f of itself and holds live to stand where the plan found it.
func (s *session) enter(ctx context.Context, f render.Facts, live render.Config) error {
	s.seen = live
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if err := s.meet(f); err != nil {
		return err
	}
	if err := s.unowned(); err != nil {
		return err
	}
	return s.unmoved(live)
}

// unowned refuses a device that somebody else configures by now, or that runs something else than when it was planned.
func (s *session) unowned() error {
	if err := owners(s.dp.Name, s.facts); err != nil {
		return err
	}
	if was, is := s.dp.Facts.Version, s.facts.Version; was != is {
		return &RefusedError{Reason: fmt.Sprintf("%s runs version %q, the plan was made for %q", s.dp.Name, is, was), Hint: "plan again"}
	}
	return nil
}

// unmoved refuses a device that does not hold what the plan found, or of which the plan does not hold any more.
func (s *session) unmoved(live render.Config) error {
	if s.j.print(live, nil) != s.dp.Steps[0].Before {
		if n, _, ok := s.j.position(live); ok && n == len(s.dp.Steps) {
			return &RefusedError{Reason: s.dp.Name + " already holds what this plan asks for", Hint: "plan again", Err: drivers.ErrMoved}
		}
		return s.stale(live, 0)
	}
	return s.holds(live)
}

// stale is the refusal to touch a device that is not as after n steps.
func (s *session) stale(live render.Config, n int) error {
	what := s.j.moved(live, n)
	if what == "" {
		what = "its owned settings are not those of the plan"
	}
	return &RefusedError{Reason: s.dp.Name + " changed since the plan: " + what, Hint: "plan again", Err: drivers.ErrMoved}
}

// forward carries out the steps from one on, and saves. Whatever fails is taken back, all steps of the device with it.
func (s *session) forward(ctx context.Context, from int) Result {
	for i := from; i < len(s.dp.Steps); i++ {
		if err := s.step(ctx, i); err != nil {
			return s.takeBack(ctx, err)
		}
	}
	if s.a.leave.Trial != "" {
		s.noteTimer()
	} else if err := s.save(ctx); err != nil {
		return s.takeBack(ctx, err)
	}
	r := s.result(Applied, None, len(s.dp.Steps), nil)
	r.Reverts = s.reverts
	return r
}

// step is one transaction: journal, commit, read back over a new connection, confirm.
func (s *session) step(ctx context.Context, i int) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	rec := stepRecord{Device: s.dp.Name, Step: i, Tx: s.a.nextTx(), Within: s.within()}
	if err := s.begin(ctx, rec); err != nil {
		return err
	}
	return s.conclude(ctx, rec, s.commit(ctx, rec.Tx, s.dp.Steps[i].Changes, rec.Within))
}

// begin journals a transaction that may be sent now.
func (s *session) begin(ctx context.Context, rec stepRecord) error {
	if err := s.may(ctx); err != nil {
		return err
	}
	s.reverts = time.Time{}
	if err := s.a.append(recBegin, rec); err != nil {
		return err
	}
	s.emit(Event{Stage: StageCommit, Step: rec.Step + 1, Changes: len(s.dp.Steps[rec.Step].Changes)})
	s.e.at("device.commit.before")
	if rec.Within > 0 {
		s.reverts = s.e.Now().Add(rec.Within)
	}
	return nil
}

// conclude is what comes after a transaction was sent, with or without an error.
func (s *session) conclude(ctx context.Context, rec stepRecord, sent error) error {
	s.e.at("device.commit.after")
	if sent != nil {
		sent = fmt.Errorf("commit: %w", sent)
	}
	if err := s.verify(ctx, rec.Step, rec.Tx, sent); err != nil {
		return err
	}
	if rec.Within > 0 && s.a.leave.Trial == "" {
		if err := s.confirm(ctx, rec.Step, rec.Tx); err != nil {
			return err
		}
		s.reverts = time.Time{}
	}
	s.a.recordDone(rec, s.note)
	return s.a.vanished()
}

// commit sends a transaction.
func (s *session) commit(ctx context.Context, tx drivers.TxID, cs []render.Change, within time.Duration) error {
	begun := func() bool { return true }
	return s.send(ctx, begun, func(ctx context.Context) error { return s.dev.Commit(ctx, tx, cs, within) })
}

// send carries a transaction out by do, and gives up before the lease can run out under it. A device that cannot revert by
// itself may carry a change out after its client is gone, so once it has begun its answer is waited for even when the run
// is to stop: only then does what it holds say what it will hold.
func (s *session) send(ctx context.Context, begun func() bool, do func(context.Context) error) error {
	asked := ctx
	ctx, cancel := context.WithTimeoutCause(ctx, s.e.leaseTTL()*2/3, errors.New("the transaction took longer than the lease allows"))
	defer cancel()
	if s.caps.Confirm {
		return do(ctx)
	}
	ctx, give := context.WithCancelCause(context.WithoutCancel(ctx))
	defer give(nil)
	defer context.AfterFunc(asked, func() {
		if begun() {
			s.emit(Event{Stage: StageCommit, Message: "to be stopped; waiting for the answer, since the device may still carry the change out"})
			if s.e.wait(ctx, s.e.answer()) != nil {
				return
			}
		}
		give(context.Cause(asked))
	})()
	err := do(ctx)
	s.unanswered = err != nil && ctx.Err() != nil && begun()
	return err
}

// within is the confirm window to use: none where the device cannot revert.
func (s *session) within() time.Duration {
	if _, ok := s.dev.(drivers.Confirmer); !ok || !s.caps.Confirm {
		return 0
	}
	return s.e.confirmWindow()
}

// verify reads over a new connection and wants step i in force and nothing else moved, with no timer running but that
// of tx. sent is the error of the commit: a commit that failed, but did all that was asked, is as good as one that says
// so.
func (s *session) verify(ctx context.Context, i int, tx drivers.TxID, sent error) error {
	if err := context.Cause(ctx); err != nil {
		return errors.Join(err, sent)
	}
	s.emit(Event{Stage: StageVerify, Step: i + 1})
	live, err := s.reread(ctx)
	if err != nil {
		return errors.Join(sent, err)
	}
	p := s.j.look(live, i)
	s.wrote = s.wrote || !p.touchedBefore()
	switch {
	case p.after():
		if err := s.quiet(ctx, tx); err != nil {
			return errors.Join(err, sent)
		}
		if sent != nil {
			s.notef("step %d is in force although %v", i+1, diag.OneLine(sent.Error()))
		}
		return nil
	case sent != nil:
		return sent
	}
	return fmt.Errorf("%s accepted step %d and does not hold it: %s", s.dp.Name, i+1, s.j.moved(live, i+1))
}

// confirm makes a timed transaction permanent, and looks whether it is.
func (s *session) confirm(ctx context.Context, i int, tx drivers.TxID) error {
	if err := s.a.lease.Check(ctx); err != nil {
		return err
	}
	s.emit(Event{Stage: StageConfirm, Step: i + 1})
	s.e.at("device.confirm.before")
	said := s.dev.(drivers.Confirmer).Confirm(ctx, tx)
	s.e.at("device.confirm.after")
	if said != nil {
		said = fmt.Errorf("confirm: %w", said)
		if err := s.redial(ctx); err != nil {
			return errors.Join(said, err)
		}
	}
	if err := s.quiet(ctx, ""); err != nil {
		return errors.Join(said, err)
	}
	live, err := s.read(ctx)
	if err != nil {
		return errors.Join(said, err)
	}
	if !s.j.look(live, i).after() {
		return errors.Join(said, fmt.Errorf("%s reverted step %d although it was confirmed", s.dp.Name, i+1))
	}
	if said != nil {
		s.notef("step %d is confirmed although %v", i+1, diag.OneLine(said.Error()))
	}
	return nil
}

// save writes the running configuration to startup where the device keeps both, and looks whether it did. It wants no
// timer running: startup would keep what the device takes back.
func (s *session) save(ctx context.Context) error {
	if s.dev == nil {
		if err := s.redial(ctx); err != nil {
			return err
		}
	}
	if err := s.quiet(ctx, ""); err != nil {
		return err
	}
	saver, ok := s.dev.(drivers.Saver)
	if !ok {
		return nil
	}
	if saved, err := saver.Saved(ctx); saved && err == nil {
		return nil
	}
	if err := s.may(ctx); err != nil {
		return err
	}
	if err := s.a.append(recSave, saveRecord{s.dp.Name}); err != nil {
		return err
	}
	s.a.mayHaveSaved(s.dp.Name)
	s.emit(Event{Stage: StageSave})
	s.e.at("device.save.before")
	said := saver.Save(ctx)
	s.e.at("device.save.after")
	if said != nil {
		said = fmt.Errorf("save: %w", said)
		if err := s.redial(ctx); err != nil {
			return errors.Join(said, err)
		}
		saver = s.dev.(drivers.Saver)
	}
	saved, err := saver.Saved(ctx)
	if err != nil {
		return errors.Join(said, fmt.Errorf("saved: %w", err))
	}
	if !saved {
		return errors.Join(said, fmt.Errorf("%s was told to save, and its startup configuration still differs", s.dp.Name))
	}
	return nil
}

func (s *session) emit(ev Event) {
	ev.Device, ev.Of = s.dp.Name, len(s.dp.Steps)
	s.a.emit(ev)
}
