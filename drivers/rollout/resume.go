package rollout

import (
	"context"
	"errors"
	"fmt"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/render"
)

// resume carries out what is left of a run that died or was stopped. What waits to be confirmed is confirmed when it
// is whole, and aborted otherwise.
func (s *session) resume(ctx context.Context, st *story) Result {
	s.emit(Event{Stage: StageRead})
	if err := s.dial(ctx); err != nil {
		return s.untouched(ctx, st, unreadable{err})
	}
	if err := owners(s.dp.Name, s.facts); err != nil {
		return s.untouched(ctx, st, err)
	}
	live, err := s.read(ctx)
	if err != nil {
		return s.untouched(ctx, st, unreadable{err})
	}
	var whole []drivers.Tx // steps of this run that are in force and wait to be confirmed
	err = s.reclaim(ctx, func(tx drivers.Tx) bool {
		rec, ok := st.txs[tx.ID]
		keep := ok && !rec.Undo && rec.Device == s.dp.Name && tx.State == drivers.TxTimed && s.j.look(live, rec.Step).after()
		if keep {
			whole = append(whole, tx)
		}
		return keep
	})
	if err != nil {
		return s.untouched(ctx, st, err)
	}
	for _, tx := range whole {
		rec := st.txs[tx.ID]
		if err := s.confirm(ctx, rec.Step, tx.ID); err != nil {
			return s.takeBack(ctx, err)
		}
		s.notef("step %d was waiting to be confirmed, and is", rec.Step+1)
		if err := s.a.append(recDone, rec); err != nil {
			return s.takeBack(ctx, err)
		}
	}
	n, err := s.where(ctx)
	if err == nil && n < len(s.dp.Steps) {
		var did bool
		if did, err = s.drain(ctx); did {
			n, err = s.where(ctx)
		}
	}
	if err != nil {
		return s.untouched(ctx, st, err)
	}
	return s.forward(ctx, n)
}

// where is the number of steps that are in force, read over a new connection.
func (s *session) where(ctx context.Context) (int, error) {
	live, err := s.reread(ctx)
	if err != nil {
		return 0, unreadable{err}
	}
	n, _, ok := s.j.position(live)
	if !ok {
		return 0, s.stale(live, 0)
	}
	return n, nil
}

// untouched is the result of a device that this attempt does not write to, and why; nil when it needs nothing. What it
// holds is read, since what the journal says of it was true at some time. In the first attempt (st is nil) nothing was
// sent to it, and it holds what the plan read.
func (s *session) untouched(ctx context.Context, st *story, why error) Result {
	if st == nil {
		return s.result(Unchanged, cause(ctx, why), 0, why)
	}
	sent := st.begun[s.dp.Name] || st.torn != nil
	live, err := s.glance(ctx, why)
	switch {
	case errors.Is(err, drivers.ErrIdentity):
		return s.replaced(ctx, sent, err)
	case err != nil && !sent && s.a.run.Kind == KindResume:
		return s.result(Unchanged, cause(ctx, err), 0, err)
	case err != nil:
		return s.result(Unknown, cause(ctx, err), 0, err)
	}
	was := Unchanged // what to call the old state
	if last, known := st.last[s.dp.Name]; sent && !(known && last.Outcome == Unchanged) {
		was = RolledBack
	}
	old, fresh := s.j.old(live), s.j.fresh(live)
	if back := s.a.run.Kind == KindRollback; old && (back || !fresh) {
		if why == nil && !back {
			why = &RefusedError{Reason: s.dp.Name + " holds what it held before the run, although by the journal the run was carried out on it", Hint: "plan again", Err: drivers.ErrMoved}
		}
		return s.result(was, cause(ctx, why), 0, why)
	} else if fresh {
		if why == nil && back {
			says := "it was taken back"
			if !sent {
				says = "nothing was sent to it"
			}
			why = &RefusedError{Reason: s.dp.Name + " holds what the run asks for, although by the journal " + says, Hint: "somebody else may have done it; plan shows what the model wants", Err: drivers.ErrMoved}
		}
		if err := s.quiet(ctx, ""); err != nil {
			return s.result(NeedsHands, Refused, len(s.dp.Steps), errors.Join(why, err))
		}
		if saver, ok := s.dev.(drivers.Saver); ok {
			if saved, err := saver.Saved(ctx); !saved || err != nil {
				s.notef("its running configuration differs from startup: a reboot loses the difference; save it on the device")
			}
		}
		return s.result(Applied, cause(ctx, why), len(s.dp.Steps), why)
	}
	if why == nil {
		why = fmt.Errorf("%s: %w: it holds neither what it held before the run nor what the run asks for", s.dp.Name, drivers.ErrMoved)
		if others := s.j.strangers(live); len(others) > 0 {
			why = fmt.Errorf("%w: %s", why, list(others))
		}
	}
	return s.result(NeedsHands, cause(ctx, why), 0, why)
}

// replaced is the result of a device in whose place another one stands by now: this attempt sent nothing to it, and what
// the run did to the old one went with it. Nothing is left to be done for a rollback of a run that never touched it.
func (s *session) replaced(ctx context.Context, sent bool, err error) Result {
	if s.a.run.Kind == KindRollback && !sent {
		s.notef("another device stands in its place by now; nothing was sent to either")
		return s.result(Unchanged, None, 0, nil)
	}
	err = &RefusedError{
		Reason: diag.OneLine(err.Error()) + "; nothing was sent to the one that is there now",
		Hint:   "this run is about the old one: correct the inventory and plan again", Err: drivers.ErrIdentity,
	}
	return s.result(Unchanged, cause(ctx, err), 0, err)
}

// glance reads a device once, without patience. It does not try when why says that this failed already, or ctx has
// ended; an error holds why.
func (s *session) glance(ctx context.Context, why error) (render.Config, error) {
	if u := (unreadable{}); errors.As(why, &u) || why != nil && ctx.Err() != nil {
		return nil, why
	}
	err := s.dial(ctx)
	if err == nil {
		var live render.Config
		if live, err = s.read(ctx); err == nil {
			return live, nil
		}
	}
	return nil, errors.Join(why, unreadable{err})
}
