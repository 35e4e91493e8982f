package secret

import (
	"context"
	"sync"
	"time"
)

// Kept follows references for many devices that have the same few: what one led to is kept for KeepFor, so that a file is
// not read, and a program not run, for each connection. A failure is not kept. While somebody follows a reference, others
// who ask for it wait. The zero value is ready; it may be used by several goroutines.
type Kept struct {
	Now func() time.Time // clock; nil means time.Now

	mu    sync.Mutex
	cells map[question]*cell
}

// KeepFor is how long a secret is kept: a token may be good for no more than some minutes, and a run may take hours.
const KeepFor = time.Minute

// question is what is asked; other options do not differ within a run.
type question struct {
	ref, base string
	untrusted bool
}

type cell struct {
	turn chan struct{} // holds an element while somebody reads or fills the rest
	at   time.Time     // when it was read; zero before
	s    Secret
}

// Resolve is Resolve, or what it said a moment ago.
func (k *Kept) Resolve(ctx context.Context, ref string, o Options) (Secret, error) {
	q := question{ref, o.Base, o.Untrusted}
	k.mu.Lock()
	c := k.cells[q]
	if c == nil {
		if k.cells == nil {
			k.cells = map[question]*cell{}
		}
		c = &cell{turn: make(chan struct{}, 1)}
		k.cells[q] = c
	}
	k.mu.Unlock()
	select {
	case c.turn <- struct{}{}:
	case <-ctx.Done():
		return Secret{}, context.Cause(ctx)
	}
	defer func() { <-c.turn }()
	now := time.Now
	if k.Now != nil {
		now = k.Now
	}
	if age := now().Sub(c.at); !c.at.IsZero() && age >= 0 && age < KeepFor {
		return c.s, nil
	}
	asked := now() // what changes while it is read is not missed for longer
	s, err := Resolve(ctx, ref, o)
	if err == nil {
		c.s, c.at = s, asked
	}
	return s, err
}
