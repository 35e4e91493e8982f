package conform

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"time"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/render"
)

// facts: the device identifies itself, says the same twice, and has the companions that its capabilities promise.
func facts(c *call) {
	d := c.open()
	f, caps := c.facts(d)
	if g, again := c.facts(d); !reflect.DeepEqual(f, g) || caps != again {
		c.Errorf("facts differ from call to call: %+v %+v, then %+v %+v", f, caps, g, again)
	}
	if f.Hostname == "" && f.Serial == "" {
		c.Error("facts have neither hostname nor serial number: the device cannot be told from another")
	}
	if f.Names != nil {
		c.Error("facts carry names, which are plan data and never a driver's")
	}
	if _, ok := d.(drivers.Confirmer); ok != caps.Confirm {
		c.Errorf("Caps.Confirm is %v, but implementing Confirmer is %v", caps.Confirm, ok)
	}
	if _, ok := d.(drivers.Sensor); ok != caps.Counters {
		c.Errorf("Caps.Counters is %v, but implementing Sensor is %v", caps.Counters, ok)
	}
}

// hundredReads: drift must be stable, so reading an unchanged device gives the same every time.
func hundredReads(c *call) {
	d := c.open()
	first := c.read(d)
	if len(first) == 0 {
		c.Fatal("the device shows no settings at all")
	}
	c.noWrites("a hundred reads", func() {
		for i := range 100 {
			if again := c.read(d); !first.Equal(again) {
				c.Fatalf("read %d differs from the first", i+2)
			}
		}
	})
	if !first.Equal(c.read(c.open())) {
		c.Error("a read over a new connection differs")
	}
}

func readYourWrites(c *call) {
	d := c.open()
	f, _ := c.facts(d)
	was, cs := c.read(d), c.set(d, c.s.Changes)
	if n := c.wrote(func() { c.commit(d, "conform-1", cs, 0) }); n == 0 {
		c.Error("commit succeeded, but the device saw no write request")
	}
	is := c.read(d)
	c.holds("after commit, same connection", f, is, cs, after)
	c.untouched("after commit", was, is, cs)
	c.holds("after commit, new connection", f, c.read(c.open()), cs, after)
}

func nothingToDo(c *call) {
	d := c.open()
	c.noWrites("commit of nothing", func() { c.commit(d, "conform-1", nil, 0) })
}

// idempotent: the second commit of the same changes finds them done and sends nothing, on either connection.
func idempotent(c *call) {
	d := c.open()
	cs := c.set(d, c.s.Changes)
	c.commit(d, "conform-1", cs, 0)
	state := c.s.State()
	c.noWrites("second commit, same connection", func() { c.commit(d, "conform-2", cs, 0) })
	e := c.open()
	c.noWrites("third commit, new connection", func() { c.commit(e, "conform-3", cs, 0) })
	if c.s.State() != state {
		c.Error("the second commit changed the device")
	}
}

// halfApplied: a run that was killed half way is finished by committing the whole set.
func halfApplied(c *call) {
	d := c.open()
	f, _ := c.facts(d)
	cs := c.set(d, c.s.Changes)
	c.commit(d, "conform-1", cs[:1], 0)
	c.commit(d, "conform-2", cs, 0)
	c.holds("after the second half", f, c.read(d), cs, after)
}

func undoRestores(c *call) {
	d := c.open()
	f, _ := c.facts(d)
	was, cs := c.read(d), c.set(d, c.s.Changes)
	c.commit(d, "conform-1", cs, 0)
	c.commit(d, "conform-2", render.Undo(cs), 0)
	is := c.read(c.open())
	c.holds("after undo", f, is, cs, before)
	c.untouched("after undo", was, is, cs)
}

// changedBehind: the plan was made, somebody changed one of its values by hand, and nothing may be written.
func changedBehind(c *call) {
	c.need(c.s.ChangeBehind != nil, "ChangeBehind")
	cs := c.set(c.open(), c.s.Changes)
	c.s.ChangeBehind(cs[len(cs)-1].Key)
	state := c.s.State()
	d := c.open()
	var err error
	c.noWrites("commit over a change by hand", func() { err = d.Commit(c.ctx(), "conform-1", cs, 0) })
	c.is(err, drivers.ErrMoved, "commit over a change by hand")
	if c.s.State() != state {
		c.Error("the refused commit changed the device")
	}
}

// guarded: before anything is written, all that the device holds now is shown, after Rest too, and an error of who looks
// keeps the write away.
func guarded(c *call) {
	d := c.open()
	g, ok := d.(drivers.Guarded)
	c.need(ok, "Guarded")
	f, _ := c.facts(d)
	cs := c.set(d, c.s.Changes)
	c.read(d)
	g.Rest()
	if c.s.ChangeBehind != nil {
		c.s.ChangeBehind(cs[len(cs)-1].Key) // what was read before does not count
	}
	now := c.read(c.open())
	looks, no := 0, errors.New("not now")
	look := func(says render.Facts, live render.Config) error {
		if looks++; !reflect.DeepEqual(says, f) || !live.Equal(now) {
			c.Errorf("it shows %+v and %d settings, and has %+v and %d", says, len(live), f, len(now))
		}
		return no
	}
	var err error
	c.noWrites("a commit that who looks refuses", func() { err = g.CommitIf(c.ctx(), "conform-1", cs, 0, look) })
	if looks != 1 || !errors.Is(err, no) {
		c.Errorf("looked at %d times: %v", looks, err)
	}
	ended, cancel := context.WithCancel(c.ctx())
	cancel()
	c.noWrites("a guarded commit with an ended context", func() { err = g.CommitIf(ended, "conform-2", cs, 0, look) })
	if c.is(err, context.Canceled, "a guarded commit with an ended context"); looks != 1 {
		c.Error("an ended context looked")
	}
	willing := func(render.Facts, render.Config) error { return nil }
	if c.s.ChangeBehind != nil {
		c.noWrites("a guarded commit over a change by hand", func() { err = g.CommitIf(c.ctx(), "conform-3", cs, 0, willing) })
		c.is(err, drivers.ErrMoved, "a guarded commit over a change by hand")
	}
	again := c.set(d, c.s.Changes)
	if err := g.CommitIf(c.ctx(), "conform-4", again, 0, willing); err != nil {
		c.Errorf("guarded commit: %v", err)
	}
	c.holds("after the guarded commit", f, c.read(c.open()), again, after)
}

// concurrent: two connections hold plans made from the same state. The first wins and the second is refused, even
// when its connection has read the old state before.
func concurrent(c *call) {
	a, b := c.open(), c.open()
	as, bs := c.set(a, c.s.Changes), c.set(b, c.s.Other)
	c.read(b)
	c.commit(a, "conform-a", as, 0)
	state := c.s.State()
	var err error
	c.noWrites("second of two plans", func() { err = b.Commit(c.ctx(), "conform-b", bs, 0) })
	c.is(err, drivers.ErrMoved, "second of two plans")
	if c.s.State() != state {
		c.Error("the refused commit changed the device")
	}
}

// endedContext: a context that has ended before the call stops everything.
func endedContext(c *call) {
	d := c.open()
	cs := c.set(d, c.s.Changes)
	ctx, cancel := context.WithCancel(c.ctx())
	cancel()
	c.noWrites("an ended context", func() {
		_, err := d.Read(ctx)
		c.is(err, context.Canceled, "read with an ended context")
		_, _, err = d.Facts(ctx)
		c.is(err, context.Canceled, "facts with an ended context")
		c.is(d.Commit(ctx, "conform-1", cs, 0), context.Canceled, "commit with an ended context")
	})
	if e, err := c.s.Open(ctx); err == nil { // a transport that connects late finds out at the first call
		c.Cleanup(func() { _ = e.Close() })
		_, err = e.Read(ctx)
		c.is(err, context.Canceled, "open and read with an ended context")
	} else {
		c.is(err, context.Canceled, "open with an ended context")
	}
	c.read(c.open())
}

// closedDevice: closing writes nothing, may be repeated, and what comes after it is an error.
func closedDevice(c *call) {
	d := c.open()
	cs := c.set(d, c.s.Changes)
	c.noWrites("a closed device", func() {
		if err := d.Close(); err != nil {
			c.Errorf("close: %v", err)
		}
		_ = d.Close()
		_, err := d.Read(c.ctx())
		c.fails(err, "read after close")
		c.fails(d.Commit(c.ctx(), "conform-1", cs, 0), "commit after close")
	})
}

// refusedByRule: the device refuses one change of the middle by its own rules.
func refusedByRule(c *call) {
	c.need(c.s.Bad != nil, "Bad")
	d := c.open()
	live := c.read(d)
	cs, bad := c.s.Bad(live)
	if bad < 0 || bad >= len(cs)-1 {
		c.Fatalf("the subject's bad change has number %d of %d, want one with a successor", bad, len(cs))
	}
	state := c.s.State()
	err := d.Commit(c.ctx(), "conform-1", cs, 0)
	c.rejected(err, "")
	c.stopped(state, cs, bad)
}

// refusedLine: the device refuses the first write request with a sentence of ours, which has to reach the user.
func refusedLine(c *call) {
	c.need(c.s.RejectNext != nil, "RejectNext")
	d := c.open()
	cs := c.set(d, c.s.Changes)
	state := c.s.State()
	const sentence = "conformance suite does not allow this"
	c.s.RejectNext(sentence)
	err := d.Commit(c.ctx(), "conform-1", cs, 0)
	c.rejected(err, sentence)
	c.stopped(state, cs, 0)
}

// rejected checks for a RejectedError with the device's own sentence.
func (c *call) rejected(err error, sentence string) {
	c.Helper()
	c.fails(err, "commit")
	var r *drivers.RejectedError
	if !errors.As(err, &r) {
		c.Fatalf("commit: got %q, want a RejectedError", err)
	}
	if r.Device != c.s.Name || r.Sent == "" || r.Sentence == "" {
		c.Errorf("commit: incomplete RejectedError: device %q, sent %q, sentence %q", r.Device, r.Sent, r.Sentence)
	}
	if sentence != "" && !strings.Contains(r.Sentence, sentence) {
		c.Errorf("commit: the device said %q, the error says %q", sentence, r.Sentence)
	}
}

// stopped checks, over a new connection, that nothing from change number bad on was applied, and nothing at all on
// an atomic device; and that the device can be worked with again.
func (c *call) stopped(state string, cs []render.Change, bad int) {
	c.Helper()
	d := c.open()
	f, caps := c.facts(d)
	if caps.Atomic && c.s.State() != state {
		c.Error("the device says that commits are atomic, but a refused one changed it")
	}
	c.holds("after the refusal", f, c.read(d), cs[bad:], before)
	good := c.s.Changes(c.read(d))
	c.sweep(d)
	c.commit(d, "conform-9", good, 0)
	c.holds("commit after the refusal", f, c.read(d), good, after)
}

// sweep aborts what earlier commits of the suite left behind, as the engine does with its own ids.
func (c *call) sweep(d drivers.Device) {
	c.Helper()
	cf, ok := d.(drivers.Confirmer)
	if !ok {
		return
	}
	txs, err := cf.Pending(c.ctx())
	if err != nil {
		c.Fatalf("pending: %v", err)
	}
	for _, tx := range txs {
		if err := cf.Abort(c.ctx(), tx.ID); err != nil {
			c.Fatalf("abort %s: %v", tx.ID, err)
		}
	}
}

// saved: a commit leaves startup behind running until Save.
func saved(c *call) {
	d := c.open()
	sv, ok := d.(drivers.Saver)
	c.need(ok, "Saver")
	if err := sv.Save(c.ctx()); err != nil {
		c.Fatalf("save: %v", err)
	}
	is := func(want bool, when string) {
		c.Helper()
		got, err := c.open().(drivers.Saver).Saved(c.ctx())
		if err != nil || got != want {
			c.Errorf("saved %s: %v %v, want %v", when, got, err, want)
		}
	}
	is(true, "after save")
	_, caps := c.facts(d)
	c.commit(d, "conform-1", c.set(d, c.s.Changes), 0)
	is(caps.PersistsOnCommit, "after commit")
	state := c.s.State()
	if err := sv.Save(c.ctx()); err != nil {
		c.Fatalf("save: %v", err)
	}
	is(true, "after the second save")
	if c.s.State() != state {
		c.Error("saving changed the configuration in effect")
	}
}

// slowAnswers: a device that takes its time is not a device that fails.
func slowAnswers(c *call) {
	c.need(c.s.Slow != nil, "Slow")
	d := c.open()
	f, _ := c.facts(d)
	cs := c.set(d, c.s.Changes)
	c.s.Slow(100 * time.Millisecond)
	c.commit(d, "conform-1", cs, 0)
	c.s.Slow(0)
	c.holds("after slow answers", f, c.read(d), cs, after)
}

// okButDidNot: the device accepts a commit and does not carry it out. The driver may notice or not; Read must show it.
func okButDidNot(c *call) {
	c.need(c.s.OKButDoNot != nil, "OKButDoNot")
	d := c.open()
	f, _ := c.facts(d)
	cs := c.set(d, c.s.Changes)
	state := c.s.State()
	c.s.OKButDoNot()
	if err := d.Commit(c.ctx(), "conform-1", cs, 0); err != nil {
		c.tells(err, "commit that was not carried out")
	}
	if c.s.State() != state {
		c.Fatal("the subject's OKButDoNot did it all the same")
	}
	c.holds("same connection", f, c.read(d), cs, before)
	c.holds("new connection", f, c.read(c.open()), cs, before)
}
