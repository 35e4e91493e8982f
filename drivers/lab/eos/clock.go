package eos

import (
	"sync"
	"time"
)

// Clock is what commit timers and time stamps run on.
type Clock interface {
	Now() time.Time
	// AfterFunc calls f once, d from now, in its own goroutine or in that of whoever moves the clock. stop prevents
	// it and may be called at any time.
	AfterFunc(d time.Duration, f func()) (stop func())
}

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

func (systemClock) AfterFunc(d time.Duration, f func()) func() {
	t := time.AfterFunc(d, f)
	return func() { t.Stop() }
}

// ManualClock stands still until it is moved. The zero value is not ready; use NewManualClock.
type ManualClock struct {
	mu     sync.Mutex
	now    time.Time
	timers map[*manualTimer]bool
}

type manualTimer struct {
	at time.Time
	f  func()
}

// NewManualClock is a clock that shows t.
func NewManualClock(t time.Time) *ManualClock {
	return &ManualClock{now: t, timers: map[*manualTimer]bool{}}
}

// Now is the time that the clock shows.
func (c *ManualClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// AfterFunc arms a timer.
func (c *ManualClock) AfterFunc(d time.Duration, f func()) func() {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &manualTimer{c.now.Add(d), f}
	c.timers[t] = true
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.timers, t)
	}
}

// Advance moves the clock forward and runs the timers that fall due, one after the other, before it returns.
func (c *ManualClock) Advance(d time.Duration) {
	c.mu.Lock()
	end := c.now.Add(d)
	for {
		var due *manualTimer
		for t := range c.timers {
			if !t.at.After(end) && (due == nil || t.at.Before(due.at)) {
				due = t
			}
		}
		if due == nil {
			break
		}
		delete(c.timers, due)
		c.now = due.at
		c.mu.Unlock()
		due.f()
		c.mu.Lock()
	}
	c.now = end
	c.mu.Unlock()
}
