package rollout

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/journal"
	"github.com/fabricctl/fabricctl/render"
)

// session is the work on one device in one attempt. It is used by one goroutine.
type session struct {
	e          *Engine
	a          *attempt
	dp         *DevicePlan
	dev        drivers.Device
	caps       drivers.Caps
	facts      render.Facts
	j          judge
	notes      []string
	seen       render.Config // what was read last; nil before
	wrote      bool          // the device was seen changed by this attempt
	unanswered bool          // a transaction was given up on, and the device may still carry it out
	drained    bool          // traffic was taken off the device, or was to be
	reverts    time.Time     // when the device takes back by itself what is not confirmed; zero when nothing is
}

// dial opens a connection of its own and makes sure that it leads to the device of the plan. A connection that was
// open is closed first: what is read afterwards is read anew.
func (s *session) dial(ctx context.Context) error {
	s.close()
	m, ok := s.a.first.take(s.dp.Name)
	if !ok {
		m = s.e.reach(ctx, s.dp.Name)
	}
	if s.dev = m.dev; m.err != nil {
		return m.err
	}
	s.caps = m.caps
	return s.meet(m.facts)
}

// meet wants a device that says f of itself to be the one of the plan, and takes the plan for what it asks of such a one.
func (s *session) meet(f render.Facts) error {
	if err := sameDevice(s.dp.Facts, f); err != nil {
		return &RefusedError{Reason: s.dp.Name + ": " + err.Error(), Err: err}
	}
	dialect := s.e.Dialect(s.dp.OS)
	if dialect == nil {
		return fmt.Errorf("%s: no dialect is called %q", s.dp.Name, s.dp.OS)
	}
	f.Names = s.dp.Adopted
	if s.j.d == nil || !sameFacts(s.facts, f) { // what the model asks for depends on nothing else
		s.j = newJudge(dialect, f, *s.dp.Intent, s.dp.Steps)
	}
	s.facts = f
	return nil
}

// sameFacts compares all that a device says about itself. Names come from the plan.
func sameFacts(a, b render.Facts) bool {
	return a.Hostname == b.Hostname && a.Serial == b.Serial && a.Model == b.Model && a.Version == b.Version &&
		maps.Equal(a.Aliases, b.Aliases) && slices.Equal(a.Owners, b.Owners) && slices.Equal(a.Notes, b.Notes) &&
		slices.EqualFunc(a.NICs, b.NICs, render.HostNIC.Equal)
}

// redial is dial with patience, for a device that was just changed.
func (s *session) redial(ctx context.Context) error {
	var err error
	pauses := []time.Duration{0, time.Second, 3 * time.Second, 9 * time.Second}
	if s.dp.Cut != nil { // our way comes back with the port, and routing takes its time
		pauses = append(pauses, 20*time.Second, 40*time.Second)
	}
	for _, pause := range pauses {
		if pause > 0 {
			if s.e.wait(ctx, pause) != nil {
				break
			}
		}
		if err = s.dial(ctx); err == nil || errors.Is(err, drivers.ErrIdentity) {
			break
		}
	}
	return err
}

// reread is what the device holds, over a new connection.
func (s *session) reread(ctx context.Context) (render.Config, error) {
	if err := s.redial(ctx); err != nil {
		return nil, err
	}
	return s.read(ctx)
}

func (s *session) read(ctx context.Context) (render.Config, error) {
	live, err := s.dev.Read(ctx)
	if err != nil {
		return nil, fmt.Errorf("read: %w", err)
	}
	s.seen = live
	return live, nil
}

func (s *session) close() {
	if s.dev == nil {
		return
	}
	if err := s.dev.Close(); err != nil {
		s.e.log().Debug("close", "device", s.dp.Name, "error", err)
	}
	s.dev = nil
}

// sameDevice compares what a device says about itself with what it said when the plan was made.
func sameDevice(plan, now render.Facts) error {
	for _, x := range []struct{ what, was, is string }{
		{"serial number", plan.Serial, now.Serial}, {"hostname", plan.Hostname, now.Hostname}, {"model", plan.Model, now.Model},
	} {
		if x.was != x.is {
			return fmt.Errorf("%w: its %s is %q, the plan was made for %q", drivers.ErrIdentity, x.what, x.is, x.was)
		}
	}
	return nil
}

// identify compares a device with the inventory: the serial number where both give one, the hostname (up to the first
// dot) where the inventory gives one. When neither can be compared, the device must call itself by its name in the model.
func identify(d *intent.Device, f render.Facts) error {
	return drivers.Identity{Name: d.Name, Serial: d.Serial, Hostname: d.Hostname}.Is(f)
}

// owners refuses a device that somebody else configures.
func owners(name string, f render.Facts) error {
	if len(f.Owners) == 0 {
		return nil
	}
	return &RefusedError{Reason: name + " has another owner: " + strings.Join(f.Owners, "; ")}
}

// pending is the transactions that the device still knows, split into those of our journals and others. It keeps when
// one of ours runs out.
func (s *session) pending(ctx context.Context) (own, foreign []drivers.Tx, err error) {
	c, ok := s.dev.(drivers.Confirmer)
	if !ok {
		return nil, nil, nil
	}
	all, err := c.Pending(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("pending transactions: %w", err)
	}
	for _, tx := range all {
		if s.a.mine(tx.ID) || ours(s.e.StateDir, tx.ID) {
			own = append(own, tx)
		} else {
			foreign = append(foreign, tx)
		}
	}
	timed := slices.IndexFunc(own, func(tx drivers.Tx) bool { return tx.State == drivers.TxTimed })
	switch {
	case timed < 0:
		s.reverts = time.Time{}
	case !own[timed].Deadline.IsZero():
		s.reverts = own[timed].Deadline
	}
	return own, foreign, nil
}

// quiet wants no commit timer on the device, whoever's, but that of tx: when one runs out, what was read is gone, and
// what was saved meanwhile is not what runs.
func (s *session) quiet(ctx context.Context, tx drivers.TxID) error {
	if _, ok := s.dev.(drivers.Confirmer); !ok {
		return nil
	}
	f, _, err := s.dev.Facts(ctx)
	if err != nil {
		return fmt.Errorf("facts: %w", err)
	}
	if err := owners(s.dp.Name, f); err != nil {
		return err
	}
	own, foreign, err := s.pending(ctx)
	if err != nil {
		return err
	}
	for _, x := range append(own, foreign...) {
		if x.State == drivers.TxTimed && x.ID != tx {
			return fmt.Errorf("%s: transaction %s is still waiting to be confirmed", s.dp.Name, x.ID)
		}
	}
	return nil
}

// reclaim aborts what earlier runs of this state directory left on the device, except what keep holds back. What
// looks like ours and is not in our journals is named and refused.
func (s *session) reclaim(ctx context.Context, keep func(drivers.Tx) bool) error {
	own, foreign, err := s.pending(ctx)
	if err != nil {
		return err
	}
	if err := s.strange(foreign); err != nil {
		return err
	}
	return s.drop(ctx, own, keep)
}

// strange refuses transactions that look like ours and are not in our journals.
func (s *session) strange(foreign []drivers.Tx) error {
	if len(foreign) == 0 {
		return nil
	}
	ids := make([]string, len(foreign))
	for i, tx := range foreign {
		ids[i] = fmt.Sprintf("%s (%s)", tx.ID, tx.State)
	}
	slices.Sort(ids)
	return &RefusedError{Reason: fmt.Sprintf("%s has transactions that look like ours and stand in no journal here: %s",
		s.dp.Name, strings.Join(ids, ", ")), Hint: "another operator may be at work; abort them on the device when nobody is"}
}

// drop aborts transactions of ours, except what keep holds back.
func (s *session) drop(ctx context.Context, own []drivers.Tx, keep func(drivers.Tx) bool) error {
	for _, tx := range own {
		if keep != nil && keep(tx) {
			continue
		}
		if err := s.abort(ctx, tx); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) abort(ctx context.Context, tx drivers.Tx) error {
	if err := s.may(ctx); err != nil {
		return err
	}
	s.e.at("device.abort.before")
	err := s.dev.(drivers.Confirmer).Abort(ctx, tx.ID)
	s.e.at("device.abort.after")
	if err != nil {
		return fmt.Errorf("abort transaction %s: %w", tx.ID, err)
	}
	if tx.State == drivers.TxTimed {
		s.wrote = true
	}
	s.notef("left-over %s transaction %s was aborted", tx.State, tx.ID)
	return nil
}

// may reports whether a transaction may begin now: the lease is ours, and nobody holds the device, or a port that the
// run moves. It is asked again before each; what has begun is brought to its end.
func (s *session) may(ctx context.Context) error {
	if err := s.a.lease.Check(ctx); err != nil {
		return err
	}
	hs, err := s.e.holds(s.a.plan.Fabric)
	if err != nil {
		return err
	}
	for _, h := range hs.of(s.dp.Intent, s.facts) {
		if wholly(s.dp.Intent, h) || s.seen == nil || movesPort(s.j.d, s.facts, s.seen, s.dp.Steps, heldIfaces(s.dp.Intent, h)) {
			return &RefusedError{Reason: h.String(), Err: ErrHeld}
		}
	}
	return nil
}

// stopped reports whether err says that nothing may be written any more, not even what takes back.
func stopped(err error) bool { return errors.Is(err, journal.ErrFenced) || errors.Is(err, ErrHeld) }

func (s *session) notef(format string, a ...any) { s.note(fmt.Sprintf(format, a...)) }

func (s *session) note(text string) { s.notes = append(s.notes, text) }

// result makes the result of the device, with the state already known.
func (s *session) result(o Outcome, c Cause, done int, err error) Result {
	r := Result{Device: s.dp.Name, Outcome: o, Cause: c, Steps: len(s.dp.Steps), Done: done, Notes: s.notes, Err: err}
	if err != nil {
		r.Message = diag.OneLine(err.Error())
	}
	return r
}

// cause sorts an error.
func cause(ctx context.Context, err error) Cause {
	var refused *RefusedError
	switch {
	case err == nil:
		return None
	case errors.As(err, &refused), errors.Is(err, drivers.ErrMoved), errors.Is(err, drivers.ErrJobs),
		errors.Is(err, ErrHeld), errors.Is(err, drivers.ErrBusy), errors.Is(err, drivers.ErrReadOnly), errors.Is(err, drivers.ErrIdentity):
		return Refused
	case ctx.Err() != nil:
		return Interrupted
	}
	return FailedCause
}
