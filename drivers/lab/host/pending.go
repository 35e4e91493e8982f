package host

import (
	"fmt"
	"slices"
	"time"
)

// pending is a transaction that is taken back at its deadline unless it is confirmed before.
type pending struct {
	tx       string
	timed    bool // all of it is written
	deadline time.Time
	undo     []change
	stop     func() bool
}

// wireTx is a transaction on the wire.
type wireTx struct {
	ID       string `json:"id"`
	State    string `json:"state"`
	Deadline string `json:"deadline"`
}

// now is the host's clock.
func (h *Host) now() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return time.Now().Add(h.skew)
}

// Advance moves the host's clock, and takes back what is then over.
func (h *Host) Advance(d time.Duration) {
	h.mu.Lock()
	h.skew += d
	h.mu.Unlock()
	h.expire()
}

// begin keeps the way back and starts the timer.
func (h *Host) begin(tx string, todo []change, withinMS int) *wireError {
	within := time.Duration(withinMS) * time.Millisecond
	deadline := h.now().Add(within)
	h.mu.Lock()
	defer h.mu.Unlock()
	if slices.ContainsFunc(h.open, func(p *pending) bool { return p.tx == tx }) {
		return failed("commit: transaction %s is still pending: confirm or abort it", tx)
	}
	p := &pending{tx: tx, deadline: deadline}
	for _, c := range slices.Backward(todo) {
		p.undo = append(p.undo, change{Key: c.Key, Before: c.After, After: c.Before})
	}
	p.stop = time.AfterFunc(within, h.expire).Stop
	h.open = append(h.open, p)
	return nil
}

// LeaveOpen leaves a transaction behind that wrote nothing yet, as a process that was killed would.
func (h *Host) LeaveOpen(tx string) { h.begin(tx, nil, int(time.Hour/time.Millisecond)) }

// timed notes that all of a transaction is written.
func (h *Host) timed(tx string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range h.open {
		p.timed = p.timed || p.tx == tx
	}
}

// transactions lists what is pending.
func (h *Host) transactions() (out []wireTx) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range h.open {
		state := "open"
		if p.timed {
			state = "timed"
		}
		out = append(out, wireTx{p.tx, state, p.deadline.UTC().Format(time.RFC3339Nano)})
	}
	return out
}

// settle confirms or aborts a transaction.
func (h *Host) settle(op, tx string) *wireError {
	h.writer.Lock()
	defer h.writer.Unlock()
	now := h.now()
	h.mu.Lock()
	i := slices.IndexFunc(h.open, func(p *pending) bool { return p.tx == tx })
	var p *pending
	if i >= 0 {
		p = h.open[i]
	}
	h.mu.Unlock()
	switch {
	case p == nil:
		return failed("%s: no transaction %s is pending here", op, tx)
	case op == "confirm" && !p.timed:
		return failed("confirm: transaction %s was not written to its end: abort it", tx)
	case op == "confirm" && now.Before(p.deadline):
		h.forget(p)
		return nil
	}
	h.takeBack(p)
	if op == "confirm" {
		return failed("confirm: the time of transaction %s was over at %s", tx, p.deadline.UTC().Format(time.RFC3339))
	}
	return nil
}

// expire takes back every transaction whose time is over.
func (h *Host) expire() {
	h.writer.Lock()
	defer h.writer.Unlock()
	now := h.now()
	h.mu.Lock()
	over := slices.DeleteFunc(slices.Clone(h.open), func(p *pending) bool { return now.Before(p.deadline) })
	h.mu.Unlock()
	for _, p := range slices.Backward(over) {
		h.takeBack(p)
		h.count(func(c *Counters) { c.Reverts++ })
	}
}

// takeBack undoes what of a transaction is in force. Settings that somebody has moved since stay as they are.
func (h *Host) takeBack(p *pending) {
	w := &work{h: h, allowed: true, back: true}
	w.text, _ = h.NCCL()
	undo := slices.DeleteFunc(slices.Clone(p.undo), func(c change) bool { return !holds(c.Key, h.value(c.Key, w.text), c.Before) })
	w.run(undo)
	h.forget(p)
}

func (h *Host) forget(p *pending) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p.stop()
	h.open = slices.DeleteFunc(h.open, func(o *pending) bool { return o == p })
}

func failed(format string, a ...any) *wireError {
	return &wireError{Code: "failed", Message: fmt.Sprintf(format, a...)}
}
