package engine

import (
	"errors"
	"slices"
	"testing"
)

// circular is three switches in a circle, each with two hosts that send to the host of the next but one switch, clockwise.
func circular(buffer int64) *Config {
	c := star(0).unmarked()
	c.Switches, c.Stop = nil, 20*Millisecond
	for range 3 {
		c.addSwitch(buffer)
	}
	var clockwise [3]int32
	for i := range 3 {
		a, _ := c.cable(i, (i+1)%3, 100e9)
		clockwise[i] = int32(a)
	}
	for i := range 6 {
		c.addHost(i%3, 100e9)
	}
	home := func(nic int) (int, int32) {
		port := c.Ports[c.NICs[nic].Port].Peer
		return c.Ports[port].Switch, int32(port)
	}
	c.Next = func(sw, nic int) []int32 {
		if at, port := home(nic); at == sw {
			return []int32{port}
		}
		return []int32{clockwise[sw]}
	}
	for i := range 6 {
		c.flow(i, (i+2)%3+3*(i/3), 0, lossless)
		c.NICs[i].React.On = false
	}
	return c.unmarked()
}

// TestDeadlock: a circle of pauses ends the run and is named, in its order; marks keep it from forming, and a watchdog opens it.
func TestDeadlock(t *testing.T) {
	c := circular(300_000)
	r := c.run(t)
	if r.End != EndDeadlock || r.At > 5*Millisecond || len(r.Stuck) != 3 {
		t.Fatalf("ended with %d at %d: %+v", r.End, r.At, r.Stuck)
	}
	for i, s := range r.Stuck {
		next := r.Stuck[(i+1)%3]
		if c.Ports[s.Port].Peer != s.PausedBy || c.Ports[s.PausedBy].Switch != c.Ports[next.Port].Switch || s.Queue != lossless || s.Bytes == 0 {
			t.Errorf("%+v waits for %+v, after which comes %+v", s, s.PausedBy, next)
		}
	}
	for i := range c.Ports[:6] {
		c.Ports[i].Watchdog = Watchdog{Action: WatchdogDrop, Queues: 1 << lossless, Poll: 100 * Microsecond, Detect: 200 * Microsecond, Restore: 200 * Microsecond}
	}
	if r = c.run(t); r.End != EndStop || r.dropped()[DropWatchdog] == 0 {
		t.Errorf("with a watchdog it ended with %d at %d, %v drops", r.End, r.At, r.dropped())
	}
	for i := range c.Ports[:6] {
		c.Ports[i].Watchdog.Action = WatchdogAlert
	}
	if r = c.run(t); r.End != EndDeadlock {
		t.Errorf("a watchdog that only tells: ended with %d", r.End)
	}
	c = circular(300_000)
	c.Flows = c.Flows[:1] // no circle
	if r = c.run(t); r.End != EndStop {
		t.Errorf("one flow: ended with %d", r.End)
	}
}

// TestNoDeadlock: pauses that end are none, however many there are: an incast over two tiers, a slow receiver.
func TestNoDeadlock(t *testing.T) {
	c := circular(300_000)
	c.Flows = nil
	for i := range 5 {
		c.flow(i, 5, 2_000_000, lossless)
	}
	c.Next = nil
	c.NICs[5].Drain, c.NICs[5].Buffer, c.NICs[5].Xoff, c.NICs[5].Xon = 20e9, 400_000, 200_000, 100_000
	r := c.run(t)
	paused := Time(0)
	for i := range r.Ports {
		paused += r.Ports[i].Groups[lossless].Paused
	}
	if r.End != EndDone || paused < Millisecond {
		t.Errorf("ended with %d at %d, after %d ps of pauses", r.End, r.At, paused)
	}
}

// TestStarved: a storm without an end stops everything, and the run says who waits for whom.
func TestStarved(t *testing.T) {
	c := stormy()
	c.NICs[1].Storms[0].To, c.Stop = 0, 10*Second
	r := c.run(t)
	if r.End != EndIdle || r.At > Second || !slices.Equal(r.Stuck, []Stuck{{2, lossless, r.Stuck[0].Bytes, 3}}) {
		t.Errorf("ended with %d at %d: %+v", r.End, r.At, r.Stuck)
	}
	c.NICs[1].Storms[0].To, c.Stop = 100*Millisecond, 150*Millisecond
	if r = c.run(t); r.End != EndStop || r.Flows[0].Received == 0 {
		t.Errorf("a storm that ends: ended with %d at %d", r.End, r.At)
	}
}

// TestLateStart: waiting for what starts late is no standstill.
func TestLateStart(t *testing.T) {
	c := star(2)
	c.flow(0, 1, 10_000, lossless)
	c.flow(0, 1, 10_000, lossless).Start = 500 * Millisecond
	c.Stop = Second
	if r := c.run(t); r.End != EndDone || !r.Flows[1].Done {
		t.Errorf("ended with %d at %d", r.End, r.At)
	}
}

// TestAudit: books that are wrong end the run, with what is wrong and by how much.
func TestAudit(t *testing.T) {
	for name, spoil := range map[string]func(*run){
		"queue 3 of port 4":                   func(s *run) { s.queues[s.place(4, 3)].bytes -= 10; s.switches[0].held -= 10; s.ledger.sent -= 10 },
		"group 3 of port 0":                   func(s *run) { s.groups[s.place(0, 3)].held += 10 },
		"pool 0 of switch 0, for its groups,": func(s *run) { s.switches[0].pools[0].in += 10 },
		"the fabric":                          func(s *run) { s.ledger.taken += 10 },
		"headroom of switch 0":                func(s *run) { s.switches[0].headroom += 10 },
		"all wires together":                  func(s *run) { s.ledger.flying += 10; s.ledger.sent += 10 },
	} {
		c := star(3)
		c.Audit = 1
		c.flow(0, 2, 0, lossless)
		c.flow(1, 2, 0, lossless)
		s, err := newRun(c)
		if err != nil {
			t.Fatal(err)
		}
		s.stop = 50 * Microsecond
		s.limit = s.stop
		if s.loop(t.Context()); s.err != nil {
			t.Fatal(s.err)
		}
		spoil(s)
		s.ledger.check(s)
		var e *AuditError
		if !errors.As(s.err, &e) || e.Place != name || e.Holds-e.Books != 10 && e.Books-e.Holds != 10 {
			t.Errorf("%s: %v", name, s.err)
		}
	}
}
