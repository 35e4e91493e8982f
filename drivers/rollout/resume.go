package rollout

import (
	"context"
	"errors"

	"github.com/fabricctl/fabricctl/drivers"
)

// resume carries out what is left of a run that died or was stopped. What waits to be confirmed is confirmed when it
// is whole, and aborted otherwise.
func (s *session) resume(ctx context.Context, st *story) Result {
	s.emit(Event{Stage: StageRead})
	if err := s.dial(ctx); err != nil {
		return s.untouched(ctx, st, err)
	}
	if err := owners(s.dp.Name, s.facts); err != nil {
		return s.untouched(ctx, st, err)
	}
	live, err := s.read(ctx)
	if err != nil {
		return s.untouched(ctx, st, err)
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
	if live, err = s.reread(ctx); err != nil {
		return s.untouched(ctx, st, err)
	}
	n, _, ok := s.j.position(live)
	if !ok {
		return s.untouched(ctx, st, s.stale(live, 0))
	}
	return s.forward(ctx, n)
}

// untouched is the result of a device that this attempt could not write to: its state is what earlier attempts left,
// as far as that is known; nothing, when st is nil.
func (s *session) untouched(ctx context.Context, st *story, err error) Result {
	c := cause(ctx, err)
	if st == nil {
		return s.result(Unchanged, c, 0, err)
	}
	last, known := st.last[s.dp.Name]
	switch {
	case !st.begun[s.dp.Name] && st.torn == nil:
		return s.result(Unchanged, c, 0, err)
	case st.open[s.dp.Name]:
	case known && (last.Outcome == RolledBack || last.Outcome == Unchanged):
		return s.result(last.Outcome, c, 0, err)
	case known && last.Outcome == Applied:
		return s.result(Applied, c, last.Done, err)
	}
	if errors.Is(err, drivers.ErrMoved) {
		return s.result(NeedsHands, c, 0, err)
	}
	return s.result(Unknown, c, 0, err)
}
