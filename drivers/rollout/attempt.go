package rollout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/model/journal"
)

// attempt is one process working on one run: it holds the lease and the open journal.
type attempt struct {
	e     *Engine
	plan  *Plan
	leave ApplyOptions // given for an apply; what a resume or a rollback writes needs none, and only Trial is kept
	run   *Run
	lease *journal.Held
	log   *journal.Log
	story *story          // what earlier attempts left; nil for Apply
	keep  map[string]bool // devices that need no work by the journal: only read
	first *reached        // devices that were reached before the journal had its head; nil for none

	mu    sync.Mutex
	tx    int             // number of the last transaction
	saves map[string]bool // devices whose new configuration may have been saved
	gone  error           // the journal vanished: nothing can be begun any more

	jammed error // what was drained does not come back: nothing more is drained
}

func (a *attempt) append(kind string, data any) error { return a.seen(a.log.Append(kind, data)) }

// seen is err, the answer of the journal, after a look at whether it vanished.
func (a *attempt) seen(err error) error {
	if errors.Is(err, journal.ErrGone) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.gone = err
	}
	return err
}

// record is append where the work goes on without it.
func (a *attempt) record(kind string, data any, note func(string)) {
	a.without(a.append(kind, data), note)
}

// recordDone leaves it to the record that follows, of the next step, a save or the result, to bring this one to the disk:
// until then the transaction counts as one whose outcome is unknown, and the device is asked.
func (a *attempt) recordDone(rec stepRecord, note func(string)) {
	a.without(a.seen(a.log.Put(recDone, rec)), note)
}

// without notes that the work goes on without a record. That the journal vanished is said once, at the end.
func (a *attempt) without(err error, note func(string)) {
	if err != nil && a.vanished() == nil {
		note("the journal could not be extended: " + err.Error())
	}
}

// vanished is why nothing new may be begun, nil as long as the journal is there.
func (a *attempt) vanished() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.gone
}

// nextTx is the id of a transaction that no attempt on this run has used.
func (a *attempt) nextTx() drivers.TxID {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tx++
	return txID(a.run.ID, a.tx)
}

// mine reports whether a transaction belongs to this run. Run ids are unique, and the run's journal is open.
func (a *attempt) mine(tx drivers.TxID) bool { return runOf(tx) == a.run.ID }

func (a *attempt) mayHaveSaved(device string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.saves[device] = true
}

func (a *attempt) saved(device string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.saves[device]
}

func (a *attempt) emit(ev Event) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.e.log().Debug(string(ev.Stage), "run", a.run.ID, "device", ev.Device, "step", ev.Step, "of", ev.Of, "message", ev.Message)
	if a.e.Progress != nil {
		a.e.Progress(ev)
	}
}

// begin takes the lease and opens the journal with open; nothing was done when it fails.
func (e *Engine) begin(ctx context.Context, id string, kind Kind, fabric string, open func(journal.Options) (*attempt, error)) (*attempt, error) {
	o := journal.Options{Now: e.Now, Hook: e.Hook}
	lease, err := e.lease(ctx, fabric, id)
	if err != nil {
		return nil, err
	}
	a, err := open(o)
	if err == nil {
		l := lease.Lease()
		a.e, a.lease = e, lease
		a.run = &Run{ID: id, Fabric: fabric, Kind: kind, Owner: l.Owner, Fence: l.Fence, Started: e.Now().UTC()}
		err = a.append(recAttempt, attemptRecord{Kind: kind, Owner: l.Owner, Fence: l.Fence, Tool: e.Tool})
	}
	if err != nil {
		if a != nil {
			if e := a.log.Close(); e != nil {
				err = errors.Join(err, e)
			}
		}
		if e := e.release(context.WithoutCancel(ctx), lease); e != nil {
			err = errors.Join(err, e)
		}
		return nil, fmt.Errorf("no device was touched: %w", err)
	}
	return a, nil
}

// lease is the one that a run is made under: the caller's, or one of its own.
func (e *Engine) lease(ctx context.Context, fabric, id string) (*journal.Held, error) {
	if e.Lease == nil {
		return e.Acquire(ctx, fabric, id)
	}
	if l := e.Lease.Lease(); l.Name != fabric {
		return nil, fmt.Errorf("no device was touched: the lease is of fabric %s, and the run of %s", l.Name, fabric)
	}
	return e.Lease, e.Lease.Check(ctx)
}

// Acquire takes the lease of a fabric for the holder that is called id, a run or what makes several. errors.As
// *RefusedError when somebody else has it.
func (e *Engine) Acquire(ctx context.Context, fabric, id string) (*journal.Held, error) {
	l, err := journal.Acquire(ctx, LeasesDir(e.StateDir), fabric, journal.Self(id), e.leaseTTL(), journal.Options{Now: e.Now, Hook: e.Hook})
	var held *journal.HeldError
	if errors.As(err, &held) {
		hint := "wait, or " + e.command("lock", "break", fabric) + " when that run is dead"
		if alive, known := held.Lease.Alive(); known && alive {
			hint = "wait until it has ended, or interrupt it: its process lives"
		}
		return nil, &RefusedError{Reason: "fabric " + fabric + " is busy: " + held.Error(), Hint: hint, Err: err}
	}
	return l, err
}

// release gives a lease back that was the run's own.
func (e *Engine) release(ctx context.Context, l *journal.Held) error {
	if l == e.Lease {
		return nil
	}
	return l.Release(ctx)
}

// wave is the part of a run whose devices are worked on at the same time.
type wave []*DevicePlan

// waves splits the devices that have steps by wave, in order, or in reverse for going back. The first device of a platform
// that nobody has tried is alone before the others; devices to which our own way may be cut come last in their wave,
// each alone, in either direction.
func (p *Plan) waves(back bool) []wave {
	byNumber := map[int]wave{}
	last := 0
	for i := range p.Devices {
		if d := &p.Devices[i]; len(d.Steps) > 0 {
			n := d.Steps[0].Wave
			byNumber[n] = append(byNumber[n], d)
			last = max(last, n)
		}
	}
	var ws []wave
	first := p.firsts()
	for n := range last + 1 {
		if back {
			n = last - n
		}
		var others wave
		for _, d := range byNumber[n] {
			if !back && first[d.Name] {
				ws = append(ws, wave{d})
			} else {
				others = append(others, d)
			}
		}
		ws = append(ws, others.alone()...)
	}
	return ws
}

// work carries out the waves one after the other. A wave starts only when every device of the ones before is as
// wished; the last one, of hosts, also only when hosts is nil.
func (a *attempt) work(ctx context.Context, ws []wave, hosts error, f func(context.Context, *session) Result) {
	var gate error
	for _, w := range ws {
		if w[0].Steps[0].Wave == waveHosts && gate == nil {
			gate = hosts
		}
		results := make([]Result, len(w))
		slots := make(chan struct{}, a.e.parallel())
		idle := make(chan struct{}) // closed when no device of the wave is worked on any more
		var devices, wg sync.WaitGroup
		devices.Add(len(w))
		for i, dp := range w {
			slots <- struct{}{}
			wg.Go(func() {
				results[i] = func() Result {
					defer devices.Done()
					defer func() { <-slots }() // the next device need not wait for the record of this one
					return a.device(ctx, dp, gate, f)
				}()
				err := a.seen(a.log.AppendSoon(recResult, results[i], idle))
				a.without(err, func(note string) { results[i].Notes = append(results[i].Notes, note) })
			})
		}
		devices.Wait()
		close(idle)
		wg.Wait()
		for _, r := range results {
			a.run.Results = append(a.run.Results, r)
			idle := a.run.Kind == KindRollback && a.keep[r.Device] // it was back before, or never went
			if !a.run.good(r) && !idle && gate == nil && !a.backFromTrial() {
				gate = fmt.Errorf("%s is %s, and later devices depend on it", r.Device, r.Outcome)
				if r.Drained {
					gate = a.stuck()
				}
			}
		}
	}
}

// backFromTrial reports whether the run takes a trial back: it has to reach all devices that it can, whatever became of others.
func (a *attempt) backFromTrial() bool { return a.leave.Trial != "" && a.run.Kind == KindRollback }

func (a *attempt) device(ctx context.Context, dp *DevicePlan, gate error, f func(context.Context, *session) Result) Result {
	s := &session{e: a.e, a: a, dp: dp}
	defer s.close()
	if err := a.vanished(); err != nil && gate == nil {
		gate = err
	}
	var r Result
	switch err := context.Cause(ctx); {
	case err != nil:
		r = s.untouched(ctx, a.story, err)
	case a.keep[dp.Name]:
		r = s.untouched(ctx, a.story, nil)
	case gate != nil:
		r = s.untouched(ctx, a.story, gate)
		r.Cause = NotStarted
	default:
		r = f(ctx, s)
	}
	s.undrain(ctx, &r)
	s.emit(Event{Stage: StageDone, Outcome: r.Outcome, Message: r.Message})
	return r
}

// end closes the journal and gives the lease back.
func (a *attempt) end(ctx context.Context) *Run {
	a.run.Interrupted = ctx.Err() != nil && slices.ContainsFunc(a.run.Results, func(r Result) bool { return r.Cause == Interrupted })
	ctx, cancel := a.e.fresh(ctx)
	defer cancel()
	sortedResults(a.plan, a.run.Results)
	note := func(what string, err error) {
		if err != nil {
			a.run.Notes = append(a.run.Notes, what+": "+err.Error())
		}
	}
	note("the journal could not be extended", a.append(recEnd, endRecord{Interrupted: a.run.Interrupted, Notes: a.run.Notes}))
	note("the lease could not be given back", a.e.release(ctx, a.lease))
	note("the journal could not be closed", a.log.Close())
	a.run.Unrecorded = a.vanished() != nil
	a.run.Ended = a.e.Now().UTC()
	return a.run
}

func (e *Engine) at(point string) {
	if e.Hook != nil {
		e.Hook(point)
	}
}

// fresh is a context for restoring: it outlives the end of ctx, by Grace at most.
func (e *Engine) fresh(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(context.WithoutCancel(ctx), e.grace(), errors.New("the device took longer than the grace time"))
}

func (e *Engine) wait(ctx context.Context, d time.Duration) error {
	if e.Wait != nil {
		return e.Wait(ctx, d)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
