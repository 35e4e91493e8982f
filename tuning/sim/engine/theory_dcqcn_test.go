package engine_test

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/fabricctl/fabricctl/model/derive"
	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/tuning/sim/engine"
	"github.com/fabricctl/fabricctl/tuning/sim/fluid"
)

// load is n senders of DCQCN on one link, with the paper's parameters: what both the equations and the engine can be asked about.
type load struct {
	Timed bool // a timer cuts, as the equations have it; else notifications do, 50 us apart, as the paper and NICs have it
	Gbps  int64
	N     int
	AI    int64 // Mb/s
	Ramp  derive.Ramp
	Delay engine.Time // feedback time: tau*
}

func paperRamp() derive.Ramp {
	return derive.Ramp{Kmin: 5 * units.KB, Kmax: 200 * units.KB, Pmax: units.OnePercent}
}

func (l load) String() string {
	by := "cut by notifications"
	if l.Timed {
		by = "cut by a timer"
	}
	return fmt.Sprintf("%d:1 at %d Gbps, Kmin %s, Kmax %s, Pmax %s, AI %d Mbps, feedback after %v us, %s", l.N, l.Gbps, l.Ramp.Kmin, l.Ramp.Kmax, l.Ramp.Pmax, l.AI, float64(l.Delay)/float64(engine.Microsecond), by)
}

// fluid is the load as equations. A timer that cuts learns of a mark half of its period late.
func (l load) fluid() fluid.Model {
	d := derive.PaperDCQCN()
	d.Increase = units.BitRate(l.AI) * units.Mbps
	delay := units.Duration(l.Delay / engine.Nanosecond)
	if l.Timed {
		delay += d.CNPInterval / 2
	}
	m := fluid.Equal(d, l.N, fluid.Link{Speed: units.BitRate(l.Gbps) * units.Gbps, Ramp: l.Ramp}, delay)
	m.Spaced = !l.Timed
	return m
}

// packets is the load as a fabric: n hosts and one more around a switch. A mark is made when a packet leaves the queue; until the
// sender's new rate comes in there, two frames and a notification pass the wire, and four propagation times. There is no hyper
// increase in the equations: its step is the additive one.
func (l load) packets() *engine.Config {
	wires := wire(2*frame+2*64, l.Gbps)
	c := star(l.N+1, l.Gbps*1e9, max(l.Delay-wires, 0)/4)
	incast(c)
	for i := range c.Flows { // within a notification's interval: timers of senders that start together would tick together for ever
		c.Flows[i].Start = engine.Time(i) * 50 * us / engine.Time(l.N)
	}
	for i := range c.NICs {
		n := &c.NICs[i]
		if l.Timed {
			n.CNPGap = 0
		}
		n.React = engine.Reaction{
			On: true, CutOnCNP: !l.Timed, CutTimer: 50 * engine.Microsecond, ClampTarget: true, AlphaTimer: 55 * engine.Microsecond, RateTimer: 55 * engine.Microsecond,
			ByteCounter: 10_000_000, FastRecovery: 5, G: 1. / 256, AI: l.AI * 1e6, HAI: l.AI * 1e6, MinRate: 1e6,
		}
	}
	eachSwitchPort(c, func(p *engine.Port) {
		q := &p.Queues[dataClass]
		q.Marks, q.Kmin, q.Kmax, q.Pmax = true, int64(l.Ramp.Kmin), int64(l.Ramp.Kmax), float64(l.Ramp.Pmax)/float64(100*units.OnePercent)
	})
	return c
}

// queue is the one in front of the receiver, from warm on.
func (l load) queue(t testing.TB, warm, span engine.Time) engine.QueueResult {
	t.Helper()
	return measured(t, l.packets(), warm, span).Ports[l.N].Queues[dataClass]
}

func (l load) rest(t testing.TB) fluid.Rest {
	t.Helper()
	x, ok := fluid.RestOf(l.fluid())
	if !ok {
		t.Fatalf("%s: no point of rest", l)
	}
	return x
}

// settles is how long a load needs until its rates are even, by the equations, and some more.
func (l load) settles(t testing.TB) engine.Time {
	t.Helper()
	s, err := fluid.Solve(l.fluid(), fluid.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return engine.Time(s.Settled)*engine.Nanosecond*3/2 + 10*engine.Millisecond
}

const us = engine.Microsecond

// fixedPoints are loads whose rest is on the ramp, more than a few packets above Kmin, and stable with eight degrees of margin: with less, what is drawn for each packet makes the queue swing. Senders start within 50 us:
// one that starts later sends at line rate until its first packet has passed the queue, which no equation here has.
func fixedPoints(t testing.TB, long bool) (cs []claim) {
	wide := derive.Ramp{Kmin: 150 * units.KB, Kmax: 1500 * units.KB, Pmax: 10 * units.OnePercent}
	sonic := derive.Ramp{Kmin: units.MB, Kmax: 2 * units.MB, Pmax: 5 * units.OnePercent}
	ls := []load{
		{true, 40, 2, 40, paperRamp(), 4 * us},
		{true, 40, 4, 40, paperRamp(), 4 * us},
		{true, 40, 10, 10, paperRamp(), 4 * us},
		{true, 100, 4, 40, paperRamp(), 4 * us},
		{false, 40, 2, 40, paperRamp(), 4 * us},
		{false, 40, 4, 40, paperRamp(), 4 * us},
		{false, 40, 10, 40, derive.Ramp{Kmin: 5 * units.KB, Kmax: 400 * units.KB, Pmax: 2 * units.OnePercent}, 4 * us},
		{false, 100, 4, 40, paperRamp(), 4 * us},
		{false, 100, 8, 40, wide, 4 * us},
		{false, 100, 16, 40, paperRamp(), 4 * us},
	}
	if long {
		ls = append(
			ls,
			load{true, 25, 2, 40, paperRamp(), 4 * us},
			load{true, 100, 8, 10, wide, 4 * us},
			load{false, 40, 10, 40, paperRamp(), 4 * us},
			load{false, 25, 2, 40, paperRamp(), 4 * us},
			load{false, 25, 4, 40, paperRamp(), 4 * us},
			load{false, 40, 2, 40, sonic, 4 * us},
			load{false, 100, 32, 40, wide, 4 * us},
			load{false, 200, 16, 40, paperRamp(), 4 * us},
			load{false, 200, 32, 40, paperRamp(), 4 * us},
			load{false, 400, 16, 40, paperRamp(), 4 * us},
			load{false, 400, 32, 40, paperRamp(), 4 * us},
			load{false, 400, 16, 80, derive.Ramp{Kmin: 1600 * units.KB, Kmax: 6400 * units.KB, Pmax: 20 * units.OnePercent}, 4 * us},
		)
	}
	for _, l := range ls {
		x := l.rest(t)
		if x.Margin < 8 || x.Saturated {
			t.Errorf("%s: a margin of %.1f degrees, saturated %v: nothing can be claimed", l, x.Margin, x.Saturated)
		}
		span := 4 * engine.Second / engine.Time(l.Gbps)
		if l.Timed {
			span *= 2 // its queue swings more
		}
		q := l.queue(t, l.settles(t), span)
		cs = append(cs, claim{fmt.Sprintf("%s (margin %.0f degrees)", l, x.Margin), x.Queue, q.Mean, "B", 0.15})
	}
	return cs
}

// stability is loads that are more than five degrees from the border. A queue that swings between nothing and twice its mean, as a
// sine, has a deviation of 0.71 of it; one that rests has that of what is drawn for each packet.
func stability(t testing.TB, long bool) (cs []claim) {
	wide := derive.Ramp{Kmin: 5 * units.KB, Kmax: units.MB, Pmax: 5 * units.OnePercent}
	ls := []load{
		{false, 40, 10, 40, wide, 4 * us},
		{false, 40, 10, 40, wide, 25 * us},
		{false, 40, 10, 40, wide, 200 * us},
		{false, 100, 10, 40, wide, 4 * us},
		{false, 100, 10, 40, wide, 50 * us},
		{false, 100, 10, 40, wide, 120 * us},
	}
	if long {
		ls = append(
			ls, load{false, 100, 10, 40, wide, 200 * us}, load{false, 100, 20, 40, wide, 4 * us}, load{false, 100, 20, 40, wide, 120 * us},
			load{false, 40, 20, 40, wide, 4 * us}, load{false, 40, 10, 10, wide, 100 * us}, load{true, 100, 10, 10, wide, 4 * us}, load{true, 100, 10, 40, wide, 100 * us},
		)
	}
	for _, l := range ls {
		x := l.rest(t)
		s, err := fluid.Solve(l.fluid(), fluid.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(x.Margin) < 5 || (x.Margin > 0) != (s.Motion != fluid.Swinging) {
			t.Errorf("%s: a margin of %.1f degrees, and the equations are %s", l, x.Margin, s.Motion)
		}
		deviation := l.deviation(t)
		verdict, want := "rests", 0.0
		if x.Margin < 0 {
			verdict, want = "swings", 1
		}
		got := 0.0
		if deviation > 0.71 {
			got = 1
		}
		cs = append(cs, claim{fmt.Sprintf("%s: %s with a margin of %.1f degrees; deviation of the queue %.2f of its mean", l, verdict, x.Margin, deviation), want, got, "(1 = swings)", 0})
	}
	return cs
}

// deviation is the standard deviation of the queue's length over time, as a part of its mean.
func (l load) deviation(t testing.TB) float64 {
	c := l.packets()
	c.Sample, c.Watch = 10*us, []engine.QueueRef{{Port: l.N, Queue: dataClass}}
	warm, span := l.settles(t), 25*engine.Millisecond
	var n, sum, squares float64
	for _, s := range measured(t, c, warm, span).Series {
		if q := float64(s.Queues[0]); s.At > warm {
			n, sum, squares = n+1, sum+q, squares+q*q
		}
	}
	return math.Sqrt(squares/n-sum/n*sum/n) / (sum / n)
}

// fairness is the shares of two that started together, and of three of whom one crosses two full links.
func fairness(t testing.TB, _ bool) (cs []claim) {
	for _, timed := range []bool{true, false} {
		l := load{timed, 10, 2, 40, paperRamp(), 4 * us} // at 40 Gbps rates need four times as long to change sides
		for i, part := range shares(measured(t, l.packets(), l.settles(t), 2*engine.Second)) {
			cs = append(cs, claim{fmt.Sprintf("%s: share of flow %d", l, i), 50, part, "%", 0.02})
		}
	}
	m, c := parkingLot()
	s, err := fluid.Solve(m, fluid.Options{Span: units.Second})
	if err != nil {
		t.Fatal(err)
	}
	r := measured(t, c, 100*engine.Millisecond, 300*engine.Millisecond)
	for i, what := range []string{"over both links", "over the first alone", "over the second alone"} {
		goodput := float64(r.Flows[i].Received) * 8 / seconds(r.Span) / 1e9 * frame / float64(frame-c.Transport.Header)
		cs = append(cs, claim{"parking lot of two links of 40 Gbps: rate of the flow " + what, float64(s.Flows[i].Goodput) / 1e9, goodput, "Gbps", 0.1})
	}
	return cs
}

// parkingLot is three flows of 40 Gbps and two switches: one flow crosses the link between them and then shares the last hop, and of two more each shares
// one of these links with it.
func parkingLot() (fluid.Model, *engine.Config) {
	l := load{Gbps: 40, N: 4, AI: 40, Ramp: paperRamp(), Delay: 4 * us}
	c := l.packets()
	c.Flows = nil
	c.Switches = append(c.Switches, c.Switches[0])
	for _, i := range []int{2, 3, 4} { // these hosts are at the second switch
		c.Ports[i].Switch = 1
	}
	between := c.Ports[0]
	for sw, peer := range []int{len(c.Ports) + 1, len(c.Ports)} {
		between.Switch, between.Peer = sw, peer
		c.Ports = append(c.Ports, between)
	}
	flow(c, 0, 3)
	flow(c, 1, 4).Start = 30 * us
	flow(c, 2, 3).Start = 60 * us
	m := l.fluid()
	m.Links = append(m.Links, m.Links[0])
	f := m.Flows[0]
	f.Count = 1
	m.Flows = nil
	for i, path := range [][]int{{0, 1}, {0}, {1}} {
		f.Path, f.Start = path, units.Duration(i*30)*units.Microsecond
		m.Flows = append(m.Flows, f)
	}
	return m, c
}

// screening is a grid of ramps: where the equations have no doubts, the engine has the queue where they have it, and in their order.
func screening(t testing.TB, _ bool) (cs []claim) {
	l := load{false, 40, 10, 40, paperRamp(), 4 * us}
	grid := fluid.Grid(
		l.fluid(), []units.Bytes{5 * units.KB, 80 * units.KB}, []units.Bytes{200 * units.KB, 800 * units.KB},
		[]units.Percent{units.OnePercent, 2 * units.OnePercent, 5 * units.OnePercent},
	)
	ranked, err := fluid.Screen(context.Background(), grid, fluid.Options{}, 2)
	if err != nil {
		t.Fatal(err)
	}
	var best, before float64
	pairs, same := 0, 0
	for _, c := range ranked {
		if len(c.Doubts) > 0 || c.Rest.Margin < 8 {
			continue
		}
		l.Ramp = grid[c.Index].Links[0].Ramp
		want, got := c.Solution.Links[0].Mean, l.queue(t, 25*engine.Millisecond, 60*engine.Millisecond).Mean
		cs = append(cs, claim{l.String(), want, got, "B", 0.15})
		if best > 0 && want > 1.1*best { // else they are too alike to have an order
			pairs++
			if got > before {
				same++
			}
		}
		best, before = want, got
	}
	return append(cs, claim{"settings that are in the order of their rank, of those whose queues differ by a tenth", float64(pairs), float64(same), "pairs", 0})
}

// Notifications that wait for longer than the gap between them come at the gap all the same.
func TestNotificationsOnTheirWay(t *testing.T) {
	for _, wait := range []engine.Time{0, 3 * us, 55 * us} {
		l := load{false, 40, 2, 40, derive.Ramp{Pmax: 100 * units.OnePercent}, 4 * us} // all is marked
		c := l.packets()
		for i := range c.NICs {
			c.NICs[i].CNPGap, c.NICs[i].CNPWait = 10*us, wait
			c.NICs[i].React.On = false
		}
		r := measured(t, c, engine.Millisecond, engine.Millisecond)
		for i, f := range r.Flows { // two flows take turns on the wire: 200 ns each
			if f.CNPs < 95 || f.CNPs > 100 {
				t.Errorf("flow %d has %d notifications in a millisecond that wait %d ps, want one each 10 us", i, f.CNPs, wait)
			}
		}
	}
}
