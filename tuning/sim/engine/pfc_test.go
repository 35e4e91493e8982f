package engine

import (
	"slices"
	"testing"
)

// stormy is a sender and a receiver that pauses from 100 to 700 us, in frames that stop for 65535 quanta.
func stormy() *Config {
	c := star(2)
	c.NICs[1].Storms = []Storm{{From: 100 * Microsecond, To: 700 * Microsecond, Priorities: 1 << lossless}}
	c.NICs[1].Buffer, c.NICs[1].Xoff = 1<<20, 1<<19
	c.Transport.RTO = 5 * Millisecond
	for i := range c.Ports {
		c.Ports[i].Quanta = 65535
	}
	c.flow(0, 1, 0, lossless)
	return c
}

// quantaTime is 65535 quanta at 100 Gb/s.
const quantaTime = 65535 * 5120

// TestRefresh: a pause is sent again at each half of its time, and is obeyed from the time of reaction after its arrival on.
func TestRefresh(t *testing.T) {
	c := stormy()
	var on, off []Time
	c.Pauses = func(at Time, port, priority int, isOn bool) {
		if port != 2 {
			return
		}
		if isOn {
			on = append(on, at)
		} else {
			off = append(off, at)
		}
	}
	r := c.run(t)
	// A frame of 64 bytes and its overhead, a microsecond of fibre and half a microsecond of reaction.
	first := 100*Microsecond + 88*80 + Microsecond + 500*Nanosecond
	want := []Time{first, first + quantaTime/2, first + quantaTime/2*2, first + quantaTime/2*3}
	slack := Time(64 * 80) // an acknowledgement may be on the wire already
	if !slices.EqualFunc(on, want, func(a, b Time) bool { return b <= a && a <= b+88*80+slack }) {
		t.Errorf("pauses were obeyed at %v, want %v", on, want)
	}
	if len(off) != 1 || off[0] < first+600*Microsecond || off[0] > first+600*Microsecond+2*slack {
		t.Errorf("resumed at %v", off)
	}
	g := r.Ports[2].Groups[lossless]
	if g.PausesReceived != 4 || g.Paused != off[0]-on[0] || r.Ports[2].PausedLongest[lossless] != g.Paused {
		t.Errorf("%d pauses of %d ps, the longest of %d, want %d", g.PausesReceived, g.Paused, r.Ports[2].PausedLongest[lossless], off[0]-on[0])
	}
	if g := r.Ports[3].Groups[lossless]; g.PausesSent != 1 || g.RefreshesSent != 3 || g.ResumesSent != 1 {
		t.Errorf("sent %d pauses, %d refreshes, %d resumes", g.PausesSent, g.RefreshesSent, g.ResumesSent)
	}
	if d := r.dropped(); d != [NumDropReasons]uint64{} {
		t.Errorf("drops: %v", d)
	}
}

// TestExpiry: a pause ends by itself when the frame that would refresh it waits for a long one.
func TestExpiry(t *testing.T) {
	c := stormy()
	for i := range c.Ports {
		c.Ports[i].Quanta = 64 // 328 ns, and a frame of 9,048 bytes takes 726
	}
	c.flow(1, 0, 0, lossy).Payload = 9000
	resumed := 0
	c.Pauses = func(at Time, port, _ int, on bool) {
		if port == 2 && !on && at < 600*Microsecond {
			resumed++
		}
	}
	c.run(t)
	if resumed < 100 {
		t.Errorf("resumed %d times in 500 us", resumed)
	}
	c.Flows[1].Payload = 100
	resumed = 0
	if c.run(t); resumed != 0 {
		t.Errorf("resumed %d times although refreshes are in time", resumed)
	}
}

// TestPauseIgnored: without PFC on the switch's port, a pause is counted and changes nothing.
func TestPauseIgnored(t *testing.T) {
	c := stormy()
	c.Ports[2].Obeys[lossless] = 0
	r := c.run(t)
	if g := r.Ports[2].Groups[lossless]; g.PausesReceived != 0 || g.Paused != 0 || g.PausesIgnored != 4 {
		t.Errorf("%+v", g)
	}
	if d := r.dropped(); d[DropNIC] == 0 {
		t.Error("the NIC that takes nothing in dropped nothing")
	}
}

// TestUnheardAnswers: a pause stops what a NIC sends by the queue that it stops, and nothing else. Answers of a lossless flow come in by its group
// at the switch; where the NIC has them in a queue of another class, the pauses of the group do not stop them, and it drops whatever its
// headroom is; where they are in the queue of their own class it drops nothing.
func TestUnheardAnswers(t *testing.T) {
	for _, queue := range []int8{lossless, lossy} {
		c := stormy().unmarked()
		c.NICs[1].Storms, c.NICs[0].Storms = nil, []Storm{{Priorities: 1 << lossless}} // the answers cannot leave the switch
		c.NICs[0].Buffer = 1 << 20
		f := &c.Flows[0]
		f.Payload, f.Answers = 64, 1+queue
		g := &c.Ports[2].Groups[lossless]
		// A frame of 112 bytes on its way out, the pause, an answer on its way in, and what arrives in 2.5 us, at 80 ps for each byte.
		g.Static, g.Headroom, g.XonOffset = 10_000, 112+64+64+3*24+int64((2*Microsecond+500*Nanosecond)/80), 3000
		r := c.run(t)
		got := r.Ports[2].Groups[lossless]
		if got.PausesSent == 0 || r.Ports[3].Groups[lossless].PausesReceived == 0 || got.HeadroomMax == 0 {
			t.Fatalf("queue %d: %+v", queue, got)
		}
		if (got.Drops > 0) != (queue == lossy) {
			t.Errorf("answers in queue %d: %d dropped, headroom %d of %d", queue, got.Drops, got.HeadroomMax, g.Headroom)
		}
	}
}

// TestWatchdog: the storm is found at a poll, acted on, and over some time after its end.
func TestWatchdog(t *testing.T) {
	for _, action := range []WatchdogAction{WatchdogDrop, WatchdogForward, WatchdogAlert} {
		c := stormy()
		c.NICs[1].Storms[0].To = 1100 * Microsecond
		c.flow(0, 1, 0, lossy)
		// Another pause in the middle changes nothing for what the watchdog has let go.
		c.NICs[1].Storms = append(c.NICs[1].Storms, Storm{From: 600 * Microsecond, To: 650 * Microsecond, Priorities: 1 << notices})
		c.Ports[2].Obeys[notices] = 1 << notices
		c.Ports[2].Watchdog = Watchdog{Action: action, Queues: 1 << lossless, Poll: 100 * Microsecond, Detect: 200 * Microsecond, Restore: 150 * Microsecond}
		c.Sample, c.Watch, c.Stop = 50*Microsecond, []QueueRef{{2, lossless}}, 3*Millisecond
		r := c.run(t)
		q := r.Ports[2].Queues[lossless]
		if q.Stuck != 1 || q.Restored != 1 {
			t.Errorf("action %d: found %d times, restored %d times", action, q.Stuck, q.Restored)
		}
		// Paused at 101.5 us; 200 us later the next poll is at 400 us. It ends at 1101.5 us and is 150 us past at 1,300 us.
		at := func(when Time) Sample { return r.Series[when/c.Sample-1] }
		if at(350 * Microsecond).Queues[0] == 0 {
			t.Errorf("action %d: the queue is empty before the poll that finds it", action)
		}
		d := r.dropped()
		switch action {
		case WatchdogDrop:
			if at(450 * Microsecond).Queues[0] != 0 || at(400*Microsecond).Drops == 0 && at(450*Microsecond).Drops == 0 {
				t.Error("the queue was not emptied at 400 us")
			}
			if d[DropWatchdog] == 0 || d[DropWatchdog] != r.Ports[2].Drops[DropWatchdog] || q.Drops != d[DropWatchdog] {
				t.Errorf("drops: %v, of the queue %d", d, q.Drops)
			}
			if at(1300*Microsecond).Drops == 0 || at(1350*Microsecond).Drops != 0 {
				t.Errorf("%d drops before the queue is restored, %d after", at(1300*Microsecond).Drops, at(1350*Microsecond).Drops)
			}
			if r.Flows[0].NACKs == 0 || r.Flows[0].Received < 1e6 {
				t.Errorf("after the storm: %+v", r.Flows[0])
			}
		case WatchdogForward:
			if d[DropWatchdog] != 0 || d[DropNIC] == 0 || at(450 * Microsecond).Queues[0] >= at(400 * Microsecond).Queues[0] {
				t.Errorf("drops: %v; queue at 400 us %d, at 450 us %d", d, at(400 * Microsecond).Queues[0], at(450 * Microsecond).Queues[0])
			}
		case WatchdogAlert:
			if d[DropWatchdog] != 0 || at(1100 * Microsecond).Queues[0] == 0 {
				t.Errorf("drops: %v; queue %d", d, at(1100 * Microsecond).Queues[0])
			}
		}
		if action == WatchdogAlert { // the others let the sender go on, and the class has half of its line
			near(t, "the other class beside the storm", gbps(at(1000 * Microsecond).Acked[1]-at(300 * Microsecond).Acked[1], 700*Microsecond), ceiling, 0.01)
		}
	}
}

// TestWatchdogShort: what is stopped for less than the time of detection, or holds nothing, is left alone.
func TestWatchdogShort(t *testing.T) {
	c := stormy()
	c.Ports[2].Watchdog = Watchdog{Action: WatchdogDrop, Queues: 1 << lossless, Poll: 100 * Microsecond, Detect: 700 * Microsecond, Restore: Millisecond}
	if r := c.run(t); r.Ports[2].Queues[lossless].Stuck != 0 {
		t.Error("found, 700 us before it could")
	}
	c.Ports[2].Watchdog.Detect, c.Flows[0].Start = 200*Microsecond, Millisecond
	if r := c.run(t); r.Ports[2].Queues[lossless].Stuck != 0 || r.Flows[0].Received == 0 {
		t.Error("found with an empty queue")
	}
}

// TestSlowReceiver: a NIC that takes in a tenth of the line has its switch, and so the sender, slow down; without PFC it drops.
func TestSlowReceiver(t *testing.T) {
	c := star(2).unmarked()
	c.NICs[1].Drain, c.NICs[1].Buffer, c.NICs[1].Xoff, c.NICs[1].Xon = 10e9, 200_000, 100_000, 50_000
	c.Measure, c.Transport.RTO = Millisecond, 5*Millisecond
	c.flow(0, 1, 0, lossless)
	r := c.run(t)
	near(t, "goodput", gbps(r.Flows[0].Received, r.Span), 10*1000./1048, 0.01)
	if d := r.dropped(); d != [NumDropReasons]uint64{} {
		t.Errorf("drops: %v", d)
	}
	if m := r.NICs[1].HeldMax; m <= 100_000 || m > 150_000 {
		t.Errorf("held up to %d bytes, xoff is at 100000", m)
	}
	g := r.Ports[2].Groups[lossless]
	near(t, "paused time", float64(g.Paused), 0.9*float64(r.Span), 0.02)
	if n := r.Ports[3].Groups[lossless].PausesSent; n > 25 { // 1.25 MB in steps of 50 kB and more
		t.Errorf("%d pauses", n)
	}
	c.Ports[3].Groups[lossless].Lossless = false
	if r := c.run(t); r.dropped()[DropNIC] == 0 || r.Ports[3].Groups[lossless].PausesSent != 0 {
		t.Errorf("without PFC: %+v, drops %v", r.Ports[3].Groups[lossless], r.dropped())
	}
}

// TestResumeOther: a group that holds still, since a NIC stops the port that it would leave by, resumes when others give buffer
// back and the threshold grows. With Compat, as in the reference, it does not. Headroom that is in use keeps it paused, so that the
// flow whose last frame trips the threshold has to be looked for.
func TestResumeOther(t *testing.T) {
	for _, compat := range []bool{false, true} {
		pauses, resumes := uint64(0), uint64(0)
		for size := int64(190_000); size < 220_000; size += 1000 {
			c := star(5).unmarked()
			c.Compat, c.Stop, c.Transport.RTO = compat, 800*Microsecond, 0
			c.NICs[1].Storms = []Storm{{To: Millisecond, Priorities: 1 << lossless}}
			c.NICs[1].Buffer = 1 << 20
			c.Switches[0].Pools[0].Size = 2 << 20
			c.flow(0, 1, size, lossless)
			c.flow(2, 4, 1_500_000, lossless) // two that fill the pool until 250 us
			c.flow(3, 4, 1_500_000, lossless)
			g := c.run(t).Ports[0].Groups[lossless]
			pauses += g.PausesSent
			resumes += g.ResumesSent
		}
		if pauses == 0 || (resumes > 0) == compat {
			t.Errorf("compat %v: %d pauses, %d resumes", compat, pauses, resumes)
		}
	}
}
