package engine

import "testing"

// TestRateComesBack: a burst cuts senders to a rate at which a frame takes longer than the run. Their rates rise by their timers, and they do not
// wait out the gap of the rate before.
func TestRateComesBack(t *testing.T) {
	c := star(9)
	c.Stop, c.Measure = 8*Millisecond, 2*Millisecond
	for i := range c.Ports {
		c.Ports[i].Delay = 10 * Microsecond // much is under way before the first notification is back
	}
	for i := range c.NICs {
		n := &c.NICs[i]
		n.CNPGap = 4 * Microsecond
		n.React.MinRate, n.React.AlphaTimer, n.React.RateTimer, n.React.ByteCounter = 1e6, Microsecond, 300*Microsecond, 0
		n.React.FastRecovery, n.React.AI, n.React.HAI = 1, 50e6, 500e6
	}
	for i := range 8 {
		c.flow(i, 8, 0, lossless)
	}
	r := c.run(t)
	for i, f := range r.Flows {
		if got := gbps(f.Received, r.Span); got < 2 {
			t.Errorf("flow %d: %.2f Gbps of %d Gbps that are left for it, with %d cuts", i, got, 100/8, f.Cuts)
		}
	}
}
