package rollout

import (
	"context"
	"fmt"
	"sync"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/render"
)

// met is a device at the other end of a new connection, and what it says of itself.
type met struct {
	dev   drivers.Device // nil where there is no connection
	facts render.Facts
	caps  drivers.Caps
	err   error
}

// reach opens a connection and asks who is there.
func (e *Engine) reach(ctx context.Context, device string) (m met) {
	if m.dev, m.err = e.Open(ctx, device); m.err != nil {
		m.dev = nil // not a typed one
		return m
	}
	if m.facts, m.caps, m.err = m.dev.Facts(ctx); m.err != nil {
		m.err = fmt.Errorf("facts: %w", m.err)
	}
	return m
}

// reached are the devices that a run begins with, reached while its plan is on its way to the journal. That they are looked at
// is all: nothing is written to a device before the plan is on the disk. Hosts are not among them, since a driver may bring
// them a program of ours first.
type reached struct {
	give context.CancelFunc
	mu   sync.Mutex
	wait map[string]func() met
}

// reachFirst begins to reach the first devices of w, as many as are worked on at a time.
func (e *Engine) reachFirst(ctx context.Context, w wave) *reached {
	ctx, give := context.WithCancel(ctx)
	r := &reached{give: give, wait: map[string]func() met{}}
	for _, dp := range w[:min(len(w), e.parallel())] {
		if !dp.Host && !e.Lines.has(dp.Name) {
			m := sync.OnceValue(func() met { return e.reach(ctx, dp.Name) })
			r.wait[dp.Name] = m
			go m()
		}
	}
	return r
}

// take hands a device over; ok is false where it was not reached early, or taken before.
func (r *reached) take(device string) (m met, ok bool) {
	if r == nil {
		return m, false
	}
	r.mu.Lock()
	f := r.wait[device]
	delete(r.wait, device)
	r.mu.Unlock()
	if f == nil {
		return m, false
	}
	return f(), true
}

// close ends the connections that nobody took. It is for the end of the run.
func (r *reached) close() {
	if r == nil {
		return
	}
	r.give()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, f := range r.wait {
		if m := f(); m.dev != nil {
			_ = m.dev.Close() // nothing was sent over it that could be lost
		}
	}
	r.wait = nil
}
