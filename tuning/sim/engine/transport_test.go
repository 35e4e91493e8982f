package engine

import (
	"context"
	"errors"
	"testing"
)

// roundTrip is the time of a frame of 1,048 bytes and its acknowledgement through one switch.
const roundTrip = 2*(1048+24)*80 + 2*(64+24)*80 + 4*Microsecond

// TestMessages: with one message at a time, each takes a round trip, and so does the whole as often.
func TestMessages(t *testing.T) {
	c := star(2)
	c.flow(0, 1, 100_000, lossless).Message = 1000
	c.Flows[0].Depth = 1
	r := c.run(t)
	f := r.Flows[0]
	if f.Completion != 100*roundTrip || f.Messages.Total != 100 || f.Messages.Quantile(0) != LowerEdge(BucketOf(int64(roundTrip)/1000)) {
		t.Errorf("took %d ps, want %d; %+v", f.Completion, 100*roundTrip, f.Messages)
	}
	// With enough on the way the line is the limit: 60 round trips fit in what 5 at a time leave.
	c.Flows[0].Depth = 10
	if r := c.run(t); r.Flows[0].Completion < 100*1072*80 || r.Flows[0].Completion > 12*roundTrip {
		t.Errorf("ten at a time: %d ps", r.Flows[0].Completion)
	}
	// The last message is shorter, and messages of more than a packet end in a short one.
	c.Flows[0].Bytes, c.Flows[0].Message, c.Flows[0].Depth = 100_000, 2300, 2
	r = c.run(t)
	f = r.Flows[0]
	if !f.Done || f.Sent != 43*3+2 || f.Messages.Total != 44 || f.Received != 100_000 || f.Acked != 100_000 {
		t.Errorf("%+v, %d messages", f, f.Messages.Total)
	}
	if tx := r.Ports[1].TxBytes; tx != 100_000+(43*3+2)*48 {
		t.Errorf("%d bytes in frames", tx)
	}
}

// TestAckEvery: fewer acknowledgements, and the last packet of a message is always answered.
func TestAckEvery(t *testing.T) {
	c := star(2)
	c.Transport.AckEvery = 8
	c.flow(0, 1, 100_000, lossless)
	if r := c.run(t); r.Ports[3].TxFrames != 13 || !r.Flows[0].Done { // 12 for 96 packets, and the last
		t.Errorf("%d acknowledgements", r.Ports[3].TxFrames)
	}
	c.Flows[0].Message = 10_000
	if r := c.run(t); r.Ports[3].TxFrames != 20 || !r.Flows[0].Done {
		t.Errorf("%d acknowledgements for ten messages of ten packets", r.Ports[3].TxFrames)
	}
}

// TestTimeout: a lost tail is sent again after the time, and without one never.
func TestTimeout(t *testing.T) {
	c := star(3)
	c.Transport.RTO = 100 * Microsecond
	c.Ports[4].Queues[lossy].Limit = 5 * 1048
	c.flow(0, 2, 20_000, lossy)
	c.flow(1, 2, 20_000, lossy)
	r := c.run(t)
	f := r.Flows[1]
	if f.Timeouts == 0 {
		f = r.Flows[0]
	}
	if r.dropped()[DropEgress] == 0 || f.Timeouts == 0 || !r.Flows[0].Done || !r.Flows[1].Done || f.Completion < 100*Microsecond {
		t.Fatalf("%v drops, %+v", r.dropped(), r.Flows)
	}
	c.Transport.RTO = 0
	if r := c.run(t); r.End != EndIdle || r.Flows[0].Done && r.Flows[1].Done {
		t.Errorf("ended with %d: %+v", r.End, r.Flows)
	}
}

// TestTimerStarts: the timer counts from what was sent when nothing was outstanding, not from the last acknowledgement before.
func TestTimerStarts(t *testing.T) {
	c := star(2)
	c.flow(0, 1, 0, lossless).Start = Millisecond
	s, err := newRun(c)
	if err != nil {
		t.Fatal(err)
	}
	s.limit, s.stop = Millisecond, Millisecond
	s.loop(t.Context())
	q, p := &s.snd[0], &s.ports[1]
	q.una, q.progress, s.now = q.nxt, 0, 3*Millisecond
	s.sendNext(p, 1, &s.nics[0])
	if q.progress != s.now || q.nxt != q.una+1 {
		t.Errorf("progress at %d, %d packets outstanding", q.progress, q.nxt-q.una)
	}
	if s.drop(0, DropIngress, &packet{}); q.clean {
		t.Error("a flow that has lost a frame is taken for one that has not")
	}
}

// TestDuplicate: whose acknowledgement was lost is told again.
func TestDuplicate(t *testing.T) {
	c := star(3)
	c.Transport.RTO = 50 * Microsecond
	c.Ports[0].Queues[lossy].Limit = 1 // acknowledgements to the sender, which a flow from there to it holds up
	c.flow(0, 2, 3000, lossy)
	c.flow(1, 0, 30_000, lossless)
	c.Ports[0].Queues[lossy].Limit = 60
	r := c.run(t)
	if r.Flows[0].Done {
		t.Fatal("done without any acknowledgement")
	}
	c.Ports[0].Queues[lossy].Limit = 64
	if r = c.run(t); !r.Flows[0].Done || r.End != EndDone {
		t.Errorf("%d %+v", r.End, r.Flows[0])
	}
}

// TestBlackHole: what is longer than a port on the way takes never arrives, while small messages do.
func TestBlackHole(t *testing.T) {
	c := star(2)
	c.Ports[2].MTU = 1047
	c.Stop = 0
	c.flow(0, 1, 10_000, lossless)
	c.flow(0, 1, 100_000, lossless).Payload = 500
	r := c.run(t)
	if r.End != EndLivelock || r.Flows[0].Received != 0 || !r.Flows[1].Done || r.Flows[0].Timeouts < 10 {
		t.Errorf("ended with %d: %+v", r.End, r.Flows)
	}
	if r.dropped()[DropMTU] != r.Flows[0].Sent {
		t.Errorf("%d of %d were dropped", r.dropped()[DropMTU], r.Flows[0].Sent)
	}
}

// TestBlackHoleWithoutTimers: whoever sends for ever what no port takes is stopped before a timer of 17 s, as NCCL has it, would say anything.
func TestBlackHoleWithoutTimers(t *testing.T) {
	c := star(2)
	c.Ports[2].MTU = 1047
	c.Transport.RTO, c.Stop, c.ToStop = 17*Second, Second, true
	c.flow(0, 1, 0, lossless)
	r := c.run(t)
	if r.End != EndLivelock || r.At > 10*Millisecond || r.Flows[0].Received != 0 || r.Flows[0].Sent < restless {
		t.Errorf("ended with %d at %d: %+v", r.End, r.At, r.Flows[0])
	}
}

// TestAnswersClass: acknowledgements leave by the receiver's own queue, and a pause of that one alone holds them up.
func TestAnswersClass(t *testing.T) {
	for _, answers := range []int8{0, 1 + lossless, 1 + lossy} {
		c := star(2)
		c.flow(0, 1, 10_000, lossless).Answers = answers
		r := c.run(t)
		own := int(lossless)
		if answers > 0 {
			own = int(answers - 1)
		}
		for q := range NumPriorities {
			if sent := r.Ports[c.NICs[1].Port].Queues[q].TxFrames; (sent > 0) != (q == own) {
				t.Errorf("answers %d: %d frames by queue %d", answers, sent, q)
			}
		}
	}
}

// TestAfter: a flow starts when the one before has been received, not when that is known.
func TestAfter(t *testing.T) {
	c := star(3)
	c.flow(0, 1, 10_000, lossless)
	c.flow(1, 2, 10_000, lossless)
	c.Flows[1].After, c.Flows[1].Start = 0, 10*Microsecond
	r := c.run(t)
	arrived := Time(11*1072*80) + 2*Microsecond
	if r.Flows[1].Start != arrived+10*Microsecond || !r.Flows[1].Done {
		t.Errorf("started at %d, want %d", r.Flows[1].Start, arrived+10*Microsecond)
	}
}

// TestRead: data goes the other way, on request, and the end is when it has arrived.
func TestRead(t *testing.T) {
	c := star(2)
	c.flow(0, 1, 10_000, lossless).Read = true
	r := c.run(t)
	if want := 11*1072*80 + 2*88*80 + 4*Microsecond; r.Flows[0].Completion != want {
		t.Errorf("took %d ps, want %d", r.Flows[0].Completion, want)
	}
	if r.Ports[3].TxFrames != 10 || r.Ports[1].TxFrames != 1 {
		t.Errorf("%d frames of data, %d requests", r.Ports[3].TxFrames, r.Ports[1].TxFrames)
	}
	c.Flows[0].Message, c.Flows[0].Depth = 2000, 1
	if r = c.run(t); r.Ports[1].TxFrames != 5 || r.Flows[0].Messages.Total != 5 || !r.Flows[0].Done {
		t.Errorf("%d requests for 5 messages: %+v", r.Ports[1].TxFrames, r.Flows[0])
	}
	// What is lost is asked for again: the middle because something arrives after it, the tail after a time.
	c = star(4)
	c.Transport.RTO = 100 * Microsecond
	c.Ports[6].Queues[lossy].Limit = 5 * 1048
	for i := range 3 {
		f := c.flow(3, i, 100_000, lossy)
		f.Read, f.Message, f.Depth = true, 10_000, 2
	}
	r = c.run(t)
	resent := uint64(0)
	for i := range 3 {
		resent += r.Flows[i].Resent
		if f := r.Flows[i]; !f.Done || f.Received != 100_000 {
			t.Errorf("%+v", f)
		}
	}
	if lost := r.dropped()[DropEgress]; lost == 0 || resent < lost {
		t.Errorf("%d lost, %d sent again", lost, resent)
	}
}

// TestNotifications: at most one in each gap, some time after the mark, and a stopped data class does not stop them.
func TestNotifications(t *testing.T) {
	c := star(3)
	for i := range 2 {
		c.flow(i, 2, 0, lossless)
		c.NICs[i].React.On = false
	}
	c.Stop = 1010 * Microsecond
	r := c.run(t)
	if n := r.Flows[0].CNPs; n < 19 || n > 21 {
		t.Errorf("%d notifications in 1 ms, one each 50 us", n)
	}
	if r.NICs[2].CNPsSent != r.Ports[5].Queues[notices].TxFrames || r.NICs[2].CNPsSent < 38 {
		t.Errorf("%d sent, %d frames in their class", r.NICs[2].CNPsSent, r.Ports[5].Queues[notices].TxFrames)
	}
	c.NICs[2].CNPWait = 400 * Microsecond
	if r = c.run(t); r.Flows[0].CNPs < 11 || r.Flows[0].CNPs > 13 {
		t.Errorf("%d notifications in 1 ms, one each 50 us and each 400 us after a mark", r.Flows[0].CNPs)
	}
}

// TestMeasure: results are of the time from then on, and samples of all of it.
func TestMeasure(t *testing.T) {
	c := star(2)
	c.flow(0, 1, 0, lossless)
	c.Sample, c.Watch, c.Measure = 100*Microsecond, []QueueRef{{2, lossless}}, Millisecond
	r := c.run(t)
	if r.Span != Millisecond || r.At != 2*Millisecond || len(r.Series) != 20 {
		t.Errorf("span %d at %d, %d samples", r.Span, r.At, len(r.Series))
	}
	near(t, "received", gbps(r.Flows[0].Received, r.Span), ceiling, 0.001)
	near(t, "acknowledged", gbps(r.Flows[0].Acked, r.Span), ceiling, 0.001)
	near(t, "sent by the port", gbps(int64(r.Ports[1].TxBytes), r.Span), 100*1048./1072, 0.001)
	if s := r.Series[9]; s.At != Millisecond || s.Rates[0] != 100e9 || s.Queues[0] > 1048 {
		t.Errorf("%+v", s)
	}
	near(t, "received at 1 ms", gbps(r.Series[9].Received[0], Millisecond-roundTrip/2), ceiling, 0.001)
	near(t, "acknowledged at 1 ms", gbps(r.Series[9].Acked[0], Millisecond-roundTrip), ceiling, 0.001)
}

// TestInterrupt: the context's end ends the run within a few thousand events, with what was counted until then.
func TestInterrupt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := star(2)
	c.flow(0, 1, 0, lossless)
	c.Stop = 10 * Second
	c.Progress = func(at Time) {
		if at > Millisecond {
			cancel()
		}
	}
	r, err := Run(ctx, c)
	if !errors.Is(err, context.Canceled) || r == nil || r.End != EndInterrupted || r.At < Millisecond || r.At > 2*Millisecond || r.Flows[0].Received == 0 {
		t.Errorf("%v: %+v", err, r)
	}
}

// TestAllocations: twice the time takes no more of the heap, once rings have grown.
func TestAllocations(t *testing.T) {
	c := star(5)
	for i := range 4 {
		c.flow(i, 4, 0, lossless)
	}
	c.Audit = 0
	allocs := func(stop Time) float64 {
		c.Stop = stop
		return testing.AllocsPerRun(2, func() { c.run(t) })
	}
	short, long := allocs(4*Millisecond), allocs(12*Millisecond)
	if long > short+2 {
		t.Errorf("%v allocations for 4 ms, %v for 12", short, long)
	}
}
