package rollout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/render"
)

// Drainer takes traffic off devices whose ports are about to go down, and lets it come back: a job scheduler, a
// load balancer, a person. Both calls return when it is done, or ctx ends, and may say something in one line.
type Drainer interface {
	// Drain takes traffic off ports of a device, by the device's own names; none are the device as a whole.
	Drain(ctx context.Context, device string, ports []string) (said string, err error)
	// Undrain lets it come back. outcome is what became of the device. It may be called for one that is not drained.
	Undrain(ctx context.Context, device string, outcome Outcome) (said string, err error)
}

// disturbs is the ports of a device that its steps hit worse than hitless, and whether there is such a thing. No ports
// are the device as a whole.
func (d *DevicePlan) disturbs() (ports []string, yes bool) {
	whole := false
	for _, r := range d.Risks {
		if r.Class == render.Hitless || r.Class == render.Refused {
			continue
		}
		yes = true
		whole = whole || len(r.Ports) == 0
		ports = append(ports, r.Ports...)
	}
	if whole {
		return nil, yes
	}
	slices.Sort(ports)
	return slices.Compact(ports), yes
}

// drain takes traffic off the device before its first write, once in an attempt, where somebody can and a link goes
// down. It is in the journal before it is begun. did is true when it has taken its time, and what was read before is old.
func (s *session) drain(ctx context.Context) (did bool, err error) {
	ports, yes := s.dp.disturbs()
	if s.e.Drainer == nil || !yes || s.drained {
		return false, nil
	}
	if err := s.a.stuck(); err != nil {
		return false, err
	}
	if err := s.may(ctx); err != nil {
		return false, err
	}
	if err := s.a.append(recDrain, drainRecord{Device: s.dp.Name, Ports: ports}); err != nil {
		return false, err
	}
	s.drained = true // whatever comes of it: part of it may be
	s.emit(Event{Stage: StageDrain, Message: strings.Join(ports, " ")})
	stop := s.a.keepLease(ctx)
	said, err := s.e.Drainer.Drain(ctx, s.dp.Name, ports)
	stop()
	s.a.record(recDrained, drainRecord{Device: s.dp.Name, Said: said, Error: errorText(err)}, s.note)
	if err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return false, &RefusedError{Reason: fmt.Sprintf("%s: it could not be drained: %s", s.dp.Name, diag.OneLine(err.Error())), Err: err}
	}
	if said != "" {
		s.notef("drained: %s", said)
	}
	return true, nil
}

// undrain lets traffic come back to a device that was drained in this attempt, or in an earlier one that did not
// come to that. It is tried whatever became of the device, and after an interruption too.
func (s *session) undrain(ctx context.Context, r *Result) {
	before := s.a.story != nil && s.a.story.drained[s.dp.Name]
	if !s.drained && !before {
		return
	}
	ctx, cancel := s.e.fresh(ctx)
	defer cancel()
	note := func(text string) { r.Notes = append(r.Notes, text) }
	s.emit(Event{Stage: StageUndrain})
	said, err := "", errors.New("there is no drain hook in this call")
	if s.e.Drainer != nil {
		stop := s.a.keepLease(ctx)
		said, err = s.e.Drainer.Undrain(ctx, s.dp.Name, r.Outcome)
		stop()
	}
	s.a.record(recUndrain, drainRecord{Device: s.dp.Name, Said: said, Error: errorText(err)}, note)
	switch {
	case err != nil:
		r.Drained = true
		note("it is still drained: " + diag.OneLine(err.Error()) + "; undrain it by hand, or let runs resume or runs rollback try again")
		s.a.jam(fmt.Errorf("%s could not be undrained, so no other device is drained", s.dp.Name), s.goOn())
	case said != "":
		note("undrained: " + said)
	}
}

// keepLease keeps the lease of the run alive until stop is called, while somebody else works who may take his time. That
// it was lost shows before the next write.
func (a *attempt) keepLease(ctx context.Context) (stop func()) {
	return a.lease.Keep(ctx, func(err error) { a.e.log().Debug("lease", "run", a.run.ID, "error", err) })
}

// stuck is why nothing more is drained: what was drained before does not come back.
func (a *attempt) stuck() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.jammed
}

// jam ends the draining; goOn is what can be done with the run later.
func (a *attempt) jam(why error, goOn string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.jammed = cmp.Or(a.jammed, error(&RefusedError{Reason: why.Error(), Hint: "repair the drain hook, then " + goOn}))
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return diag.OneLine(err.Error())
}
