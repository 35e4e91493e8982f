package conform

import (
	"context"

	"github.com/fabricctl/fabricctl/drivers"
)

// trials: trying what an account may do changes nothing, leaves no transaction behind, and ends with its context.
func trials(c *call) {
	d := c.open()
	tr, ok := d.(drivers.Trier)
	c.need(ok, "Trier")
	state := c.s.State()
	ts, err := tr.Try(c.ctx())
	if err != nil {
		c.Fatalf("try: %v", err)
	}
	if len(ts) == 0 {
		c.Error("try: nothing was tried, and nothing was said about it")
	}
	for _, t := range ts {
		valid := t.Verdict == drivers.Allowed || t.Verdict == drivers.Refused || t.Verdict == drivers.NotTried
		if t.Operation == "" || t.How == "" || !valid || (t.Verdict != drivers.Refused) != (t.Answer == "") {
			c.Errorf("try: %+v does not say what was tried, how, and what came of it", t)
		}
	}
	c.asBefore(d, state, "a trial")
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = tr.Try(ended)
	c.fails(err, "try with a context that has ended")
	c.asBefore(c.open(), state, "a trial without time")
}

// asBefore wants the device to hold what it held, with no transaction open.
func (c *call) asBefore(d drivers.Device, state, after string) {
	c.Helper()
	if c.s.State() != state {
		c.Errorf("the device changed by %s", after)
	}
	cf, ok := d.(drivers.Confirmer)
	if !ok {
		return
	}
	if txs, err := cf.Pending(c.ctx()); err != nil || len(txs) > 0 {
		c.Errorf("after %s: transactions %v, %v", after, txs, err)
	}
}
