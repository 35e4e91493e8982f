package conform

import (
	"slices"
	"time"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/render"
)

const (
	window = 2 * time.Minute
	beyond = 3 * time.Minute
)

// noConfirm: a window asked of a device that cannot revert is refused before anything is written.
func noConfirm(c *call) {
	d := c.open()
	_, caps := c.facts(d)
	if caps.Confirm {
		c.Skip("not applicable: the device has a confirm timer")
	}
	cs := c.set(d, c.s.Changes)
	c.noWrites("commit with a window", func() {
		c.is(d.Commit(c.ctx(), "conform-1", cs, window), drivers.ErrNoConfirm, "commit with a window")
	})
}

// timed commits the Subject's changes with a window and closes the connection, as a killed process would. It returns
// the state before.
func (c *call) timed(tx drivers.TxID) (old string, cs []render.Change) {
	c.Helper()
	d := c.open()
	_, caps := c.facts(d)
	c.need(caps.Confirm, "confirm timer")
	c.need(c.s.Advance != nil, "Advance")
	cs = c.set(d, c.s.Changes)
	old = c.s.State()
	c.commit(d, tx, cs, window)
	_ = d.Close()
	return old, cs
}

func (c *call) confirmer() drivers.Confirmer {
	c.Helper()
	cf, ok := c.open().(drivers.Confirmer)
	if !ok {
		c.Fatal("Caps.Confirm is true, but the device is no Confirmer")
	}
	return cf
}

// pending checks which state the device gives tx over a new connection; "" = none.
func (c *call) pending(tx drivers.TxID, want drivers.TxState) {
	c.Helper()
	txs, err := c.confirmer().Pending(c.ctx())
	if err != nil {
		c.Fatalf("pending: %v", err)
	}
	i := slices.IndexFunc(txs, func(t drivers.Tx) bool { return t.ID == tx })
	switch {
	case i < 0 && want != "":
		c.Errorf("pending: %s is missing from %v, want it %s", tx, txs, want)
	case i >= 0 && txs[i].State != want:
		c.Errorf("pending: %s is %q, want %q", tx, txs[i].State, want)
	}
}

func (c *call) inEffect(cs []render.Change) {
	c.Helper()
	d := c.open()
	f, _ := c.facts(d)
	c.holds("new connection", f, c.read(d), cs, after)
}

func (c *call) reverted(old, when string) {
	c.Helper()
	if c.s.State() != old {
		c.Errorf("%s, the device does not hold its old configuration", when)
	}
}

func unconfirmed(c *call) {
	old, cs := c.timed("conform-1")
	c.inEffect(cs)
	c.pending("conform-1", drivers.TxTimed)
	c.s.Advance(window / 2)
	c.inEffect(cs)
	c.s.Advance(beyond)
	c.reverted(old, "after the window")
	c.pending("conform-1", "")
	c.fails(c.confirmer().Confirm(c.ctx(), "conform-1"), "confirm after the window")
	c.reverted(old, "after a late confirm")
}

func confirmed(c *call) {
	_, cs := c.timed("conform-1")
	if err := c.confirmer().Confirm(c.ctx(), "conform-1"); err != nil {
		c.Fatalf("confirm: %v", err)
	}
	c.s.Advance(beyond)
	c.inEffect(cs)
	c.pending("conform-1", "")
	c.fails(c.confirmer().Confirm(c.ctx(), "conform-unknown"), "confirm of an unknown transaction")
}

func abortTimed(c *call) {
	old, _ := c.timed("conform-1")
	if err := c.confirmer().Abort(c.ctx(), "conform-1"); err != nil {
		c.Fatalf("abort: %v", err)
	}
	c.reverted(old, "after abort")
	c.pending("conform-1", "")
	c.s.Advance(beyond)
	c.reverted(old, "long after abort")
}

// openTransaction: one that a killed process left uncommitted is listed, cannot be confirmed, and can be dropped.
func openTransaction(c *call) {
	_, caps := c.facts(c.open())
	c.need(caps.Confirm && c.s.LeaveOpen != nil, "LeaveOpen with a confirm timer")
	old := c.s.State()
	c.s.LeaveOpen("conform-7")
	c.pending("conform-7", drivers.TxOpen)
	c.fails(c.confirmer().Confirm(c.ctx(), "conform-7"), "confirm of an open transaction")
	c.reverted(old, "after confirming an open transaction")
	c.pending("conform-7", drivers.TxOpen)
	if err := c.confirmer().Abort(c.ctx(), "conform-7"); err != nil {
		c.Fatalf("abort: %v", err)
	}
	c.pending("conform-7", "")
	c.reverted(old, "after dropping an open transaction")
}
