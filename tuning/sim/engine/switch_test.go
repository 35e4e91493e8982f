package engine

import "testing"

// goodput of a whole link for frames of 1,048 bytes with 24 of overhead.
const ceiling = 100.0 * 1000 / 1072

// TestDWRR: two classes share a port by their weights, and a third that is strict takes what it wants first.
func TestDWRR(t *testing.T) {
	c := star(5).unmarked()
	c.Ports[8].Queues[lossless].Weight = 3 * 4096
	c.Ports[8].Queues[lossy].Weight = 4096
	c.Measure = Millisecond
	for i := range c.Ports { // lossy traffic must not be lost here: it is the scheduler's turn
		c.Ports[i].Groups[lossy] = c.Ports[i].Groups[lossless]
		c.Ports[i].Obeys[lossy] = 1 << lossy
	}
	c.flow(0, 4, 0, lossless)
	c.flow(1, 4, 0, lossy)
	r := c.run(t)
	near(t, "the heavy class", gbps(r.Flows[0].Received, r.Span), ceiling*3/4, 0.01)
	near(t, "the light class", gbps(r.Flows[1].Received, r.Span), ceiling/4, 0.01)

	c.flow(2, 4, 0, notices).Message = 10_000
	c.Flows[2].Depth = 1 // ten frames for each time there and back
	r = c.run(t)
	alone := star(5)
	alone.Measure = Millisecond
	*alone.flow(2, 4, 0, notices) = c.Flows[2]
	want := gbps(alone.run(t).Flows[0].Received, Millisecond)
	got := gbps(r.Flows[2].Received, r.Span)
	near(t, "the strict class", got, want, 0.1)
	near(t, "the heavy class beside it", gbps(r.Flows[0].Received, r.Span), (ceiling-got)*3/4, 0.02)
}

// TestStrict: of two strict classes, the higher has all that it wants.
func TestStrict(t *testing.T) {
	c := star(4).unmarked()
	c.Measure = Millisecond
	for i := range c.Ports {
		p := &c.Ports[i]
		p.Groups[notices], p.Groups[lossy] = p.Groups[lossless], p.Groups[lossless]
		p.Obeys[notices], p.Obeys[lossy] = 1<<notices, 1<<lossy
		p.Queues[lossless].Strict = true
	}
	for i, kind := range []int8{lossy, lossless, notices} {
		c.flow(i, 3, 0, kind)
	}
	r := c.run(t)
	near(t, "the highest class", gbps(r.Flows[2].Received, r.Span), ceiling, 0.01)
	if r.Flows[0].Received+r.Flows[1].Received > 10_000 {
		t.Errorf("the others received %d and %d bytes", r.Flows[1].Received, r.Flows[0].Received)
	}
}

// TestNICShares: classes of a NIC share its line by their weights, whatever number of flows each has.
func TestNICShares(t *testing.T) {
	c := star(4).unmarked()
	c.Measure = Millisecond
	c.Ports[1].Queues[lossless].Weight, c.Ports[1].Queues[lossy].Weight = 3*4096, 4096
	c.flow(0, 1, 0, lossless)
	for i := range 3 {
		c.flow(0, 1+i, 0, lossy)
	}
	r := c.run(t)
	near(t, "the heavy class", gbps(r.Flows[0].Received, r.Span), ceiling*3/4, 0.01)
	for i := range 3 {
		near(t, "a flow of the light class", gbps(r.Flows[1+i].Received, r.Span), ceiling/12, 0.01)
	}
}

// TestDrops: each reason, where it belongs, and only it.
func TestDrops(t *testing.T) {
	for name, x := range map[string]struct {
		kind   int8
		change func(*Config)
		reason DropReason
		port   int // where
	}{
		"headroom":     {lossless, func(c *Config) { c.Ports[0].Groups[lossless].Headroom = 5000 }, DropHeadroom, 0},
		"no PFC":       {lossless, func(c *Config) { c.Ports[1].Obeys[lossless] = 0 }, DropHeadroom, 0},
		"shared room":  {lossless, func(c *Config) { c.Switches[0].Headroom = 5000 }, DropHeadroom, 0},
		"ingress":      {lossy, func(c *Config) { c.Ports[0].Groups[lossy].Alpha = 1 << 10 }, DropIngress, 0},
		"full pool":    {lossy, func(c *Config) { c.Switches[0].Pools[1].Size = 50_000 }, DropIngress, 0},
		"limit":        {lossy, func(c *Config) { c.Ports[4].Queues[lossy].Limit = 20_000 }, DropEgress, 4},
		"egress alpha": {lossy, func(c *Config) { c.Ports[4].Queues[lossy].Alpha = 1 << 12 }, DropEgress, 4},
		"WRED": {lossy, func(c *Config) {
			q := &c.Ports[4].Queues[lossy]
			q.Drops, q.Kmin, q.Kmax, q.Pmax = true, 10_000, 50_000, 0.5
		}, DropWRED, 4},
		"MTU in":       {lossless, func(c *Config) { c.Ports[0].MTU = 1047 }, DropMTU, 0},
		"MTU out":      {lossless, func(c *Config) { c.Ports[4].MTU = 1047 }, DropMTU, 4},
		"unclassified": {lossless, func(c *Config) { c.Ports[0].Classify[lossless].Group = None }, DropUnclassified, 0},
	} {
		t.Run(name, func(t *testing.T) {
			c := star(3).unmarked()
			c.flow(0, 2, 500_000, x.kind)
			c.flow(1, 2, 500_000, x.kind)
			for _, p := range []int{0, 2} { // thresholds that are reached soon
				c.Ports[p].Groups[lossless].Static = 30_000
			}
			if r := c.run(t); r.dropped() != [NumDropReasons]uint64{} {
				t.Fatalf("drops without a reason: %v", r.dropped())
			}
			x.change(c)
			r := c.run(t)
			all := r.dropped()
			n := all[x.reason]
			if all[x.reason] = 0; n == 0 || all != [NumDropReasons]uint64{} {
				t.Errorf("%d drops for this reason, others: %v", n, all)
			}
			if most := r.Switches[0].SharedMax[1]; most > c.Switches[0].Pools[1].Size {
				t.Errorf("%d bytes in a pool of %d", most, c.Switches[0].Pools[1].Size)
			}
			if r.Ports[x.port].Drops[x.reason] == 0 {
				t.Errorf("none at port %d", x.port)
			}
			if o := r.Ports[x.port]; x.port == 0 && x.reason <= DropIngress && o.Groups[x.kind].Drops == 0 || x.reason == DropEgress && o.Queues[x.kind].Drops == 0 {
				t.Error("its group or queue counts none")
			}
		})
	}
}

// TestMarkingPoint: a queue marks when it is longer than Kmax, seen from its tail or from its head.
func TestMarkingPoint(t *testing.T) {
	for _, entry := range []bool{false, true} {
		c := star(4)
		c.Switches[0].OnEntry = entry
		c.Ports[6].Queues[lossless].Kmin, c.Ports[6].Queues[lossless].Kmax = 20_000, 20_000
		for i := range 3 {
			c.flow(i, 3, 30_000, lossless)
			c.NICs[i].React.On = false
		}
		marked := func(r *Result) uint64 { return r.Flows[0].Marked + r.Flows[1].Marked + r.Flows[2].Marked }
		r := c.run(t)
		// In the time of a frame three come and one goes: of 30 of these times, 20 and the last frame of the one before find
		// 20 frames that wait, or leave as many behind.
		if q := r.Ports[6].Queues[lossless]; q.Marked != 61 || marked(r) != 61 {
			t.Errorf("entry %v: %d marked, %d arrived so, want 61", entry, q.Marked, marked(r))
		}
		// Marks at the tail arrive when what was queued before has.
		c.Stop = 2*Microsecond + 29*85760
		if early := marked(c.run(t)); entry != (early == 0) {
			t.Errorf("entry %v: %d marks among the first frames", entry, early)
		}
	}
}

// TestLine: one flow alone fills a link to the last picosecond, at rates that divide a picosecond and at one that does not.
func TestLine(t *testing.T) {
	for _, rate := range []int64{10e9, 25e9, 40e9, 56e9, 100e9, 400e9, 800e9} {
		c := &Config{Overhead: 24, Transport: star(0).Transport, Audit: 1000}
		c.addSwitch(8 << 20)
		c.addHost(0, rate)
		c.addHost(0, rate)
		c.flow(0, 1, 1_000_000, lossless)
		r := c.run(t)
		frame, small := 1072*8*Second/Time(rate), 88*8*Second/Time(rate)
		if want := 1001*frame + 2*small + 4*Microsecond; r.Flows[0].Completion != want {
			t.Errorf("at %d bit/s: %d ps, want %d", rate, r.Flows[0].Completion, want)
		}
	}
}
