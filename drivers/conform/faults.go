package conform

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/render"
)

// cancelled: the device has a write request in hand and does not answer; the caller gives up. The call comes back
// with the context's error, and whatever happened is described truthfully by Read.
func cancelled(c *call) {
	c.need(c.s.Stall != nil, "Stall")
	d := c.open()
	was, cs := c.read(d), c.set(d, c.s.Changes)
	old := c.s.State()
	held := c.s.Stall()
	ctx, cancel := context.WithCancel(c.ctx())
	defer cancel()
	result := make(chan error, 1)
	go func() { result <- d.Commit(ctx, "conform-1", cs, 0) }()
	select {
	case <-held:
	case err := <-result:
		c.Fatalf("commit ended (%v) before the device held a write request", err)
	case <-c.ctx().Done():
		c.Fatal("the device never saw a write request")
	}
	cancel()
	select {
	case err := <-result:
		c.is(err, context.Canceled, "cancelled commit")
	case <-time.After(patience):
		c.Fatal("the cancelled commit did not come back")
	}
	_ = d.Close()
	c.truthful(old, was, cs)
}

// disconnects cuts the connection at points spread over the whole exchange of opening, reading, committing and
// closing, each time on a fresh device.
func disconnects(t *testing.T, mk func(*testing.T) Subject) { cuts(t, mk, 0, 0, 12) }

// timedDisconnects does so around a commit that has to be confirmed, which is at the end of the exchange: whatever a
// lost connection leaves is found and aborted.
func timedDisconnects(t *testing.T, mk func(*testing.T) Subject) { cuts(t, mk, time.Hour, 0.9, 24) }

// cuts is disconnects with points in what follows a part of the exchange.
func cuts(t *testing.T, mk func(*testing.T) Subject, within time.Duration, part float64, points int64) {
	c := &call{T: t, s: mk(t)}
	c.need(c.s.DropAfter != nil && c.s.Bytes != nil, "DropAfter and Bytes")
	if within > 0 {
		_, caps := c.facts(c.open())
		c.need(caps.Confirm, "confirm window")
	}
	start := c.s.Bytes()
	d := c.open()
	c.commit(d, "conform-1", c.set(d, c.s.Changes), within)
	if err := d.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	total := c.s.Bytes() - start
	if total < points {
		t.Fatalf("the whole exchange has %d bytes: Bytes does not count", total)
	}
	first, noticed := int64(part*float64(total)), int64(0)
	for i := range points {
		n := first + (total-first)*(2*i+1)/(2*points)
		t.Run(fmt.Sprintf("%d of %d", n, total), func(t *testing.T) {
			if cutAt(&call{T: t, s: mk(t)}, n, within) {
				noticed++
			}
		})
		if t.Failed() {
			return // eleven more of the same help nobody
		}
	}
	if noticed < points/3 {
		t.Errorf("%d of %d cuts led to an error: DropAfter does not cut", noticed, points)
	}
}

// cutAt reports whether the cut was noticed.
func cutAt(c *call, n int64, within time.Duration) (noticed bool) {
	routines := settled(0)
	first := c.open()
	was, cs := c.read(first), c.set(first, c.s.Changes)
	_ = first.Close()
	old := c.s.State()

	ctx := c.ctx()
	c.s.DropAfter(n)
	d, err := c.s.Open(ctx)
	if err == nil {
		_, err = d.Read(ctx)
		if err == nil {
			err = d.Commit(ctx, "conform-1", cs, within)
		}
		committed := err == nil
		_ = d.Close()
		c.s.DropAfter(-1)
		if committed {
			fresh := c.open()
			f, _ := c.facts(fresh)
			c.holds("commit said yes", f, c.read(fresh), cs, after)
			_ = fresh.Close()
		}
	}
	c.s.DropAfter(-1)
	if err != nil {
		c.tells(err, "cut connection")
		if errors.Is(err, context.DeadlineExceeded) {
			c.Errorf("the cut was only noticed by the end of the context: %v", err)
		}
	}
	c.truthful(old, was, cs)
	if now := settled(routines); now > routines {
		c.Errorf("%d goroutines before the cut, %d after everything was closed:\n%s", routines, now, stacks())
	}
	return err != nil
}

// truthful checks what Read says over a new connection against the device's own state after an unknown outcome, and
// that committing the same changes again finishes the job.
func (c *call) truthful(old string, was render.Config, cs []render.Change) {
	c.Helper()
	d, err := c.s.Open(c.ctx())
	if err != nil {
		c.Fatalf("open after the fault: %v", err)
	}
	defer func() { _ = d.Close() }()
	f, caps := c.facts(d)
	state, live := c.steady(d)
	c.untouched("after the fault", was, live, cs)
	undone, undo := c.differ(f, live, cs, after), c.differ(f, live, cs, before)
	switch {
	case state == old && len(undo) > 0:
		c.Errorf("the device did nothing, but read says %s", strings.Join(undo, "; "))
	case state != old && len(undo) == 0:
		c.Error("the device changed, but read shows the old values")
	case caps.Atomic && len(undone) > 0 && len(undo) > 0:
		c.Errorf("an atomic device is half way: %s", strings.Join(append(undone, undo...), "; "))
	}
	for _, x := range cs {
		one := []render.Change{x}
		if len(c.differ(f, live, one, before)) > 0 && len(c.differ(f, live, one, after)) > 0 {
			c.Errorf("%s is %s, neither %s nor %s", x.Key, text(value(live, x.Key)), text(x.Before), text(x.After))
		}
	}
	c.sweep(d)
	c.commit(d, "conform-2", cs, 0)
	c.holds("finished after the fault", f, c.read(d), cs, after)
}

// steady reads until the device's own state is the same before and after: it may still be working on what it got.
func (c *call) steady(d drivers.Reader) (string, render.Config) {
	c.Helper()
	for range 1000 {
		state := c.s.State()
		live := c.read(d)
		if c.s.State() == state {
			return state, live
		}
	}
	c.Fatal("the device keeps changing")
	return "", nil
}

// settled is the number of goroutines, once it is at most want or has been looked at often enough. Goroutines end some
// time after what they serve; there is nothing to wait on but the count.
func settled(want int) int {
	n := runtime.NumGoroutine()
	if want == 0 {
		// The baseline: let what is ending end, until the count holds still.
		for same := 0; same < 20; same++ {
			time.Sleep(time.Millisecond)
			if now := runtime.NumGoroutine(); now != n {
				n, same = now, 0
			}
		}
		return n
	}
	for range 3000 {
		if n = runtime.NumGoroutine(); n <= want {
			break
		}
		time.Sleep(time.Millisecond)
	}
	return n
}

func stacks() string {
	b := make([]byte, 1<<16)
	return string(b[:runtime.Stack(b, true)])
}
