package engine_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/fabricctl/fabricctl/model/derive"
	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/tuning/sim/engine"
	"github.com/fabricctl/fabricctl/tuning/sim/fluid"
)

// wire is the time of so many bytes at a speed.
func wire(bytes, gbps int64) engine.Time { return engine.Time(bytes * 8 * 1000 / gbps) }

// pauseCycles are those of n ports that share one, without congestion control (science's pfc_cycle table): how often each pauses, for how
// long, and between which lengths it swings.
func pauseCycles(t testing.TB, _ bool) (cs []claim) {
	for _, c := range []fluid.PauseCycle{
		{Speed: 100 * units.Gbps, Ports: 2, Xoff: 500_000, Xon: 490_784, Loop: units.Microsecond},
		{Speed: 100 * units.Gbps, Ports: 4, Xoff: 500_000, Xon: 490_784, Loop: units.Microsecond},
		{Speed: 400 * units.Gbps, Ports: 2, Xoff: 2_000_000, Xon: 1_990_784, Loop: 1500 * units.Nanosecond},
		{Speed: 400 * units.Gbps, Ports: 8, Xoff: 2_000_000, Xon: 1_800_000, Loop: 1500 * units.Nanosecond},
		{Speed: 100 * units.Gbps, Ports: 2, Xoff: 30_000, Xon: 20_784, Loop: units.Microsecond},
		{Speed: 100 * units.Gbps, Ports: 16, Xoff: 1_000_000, Xon: 950_000, Loop: 2 * units.Microsecond},
	} {
		want, err := c.Solve()
		if err != nil {
			t.Fatal(err)
		}
		got := pauseCycle(t, c)
		what := fmt.Sprintf("%d ports of %s, xoff %s, xon %s, loop %s: ", c.Ports, c.Speed, c.Xoff, c.Xon, c.Loop)
		cs = append(
			cs,
			claim{what + "period", want.Period * 1e6, got.Period * 1e6, "us", 0.2},
			claim{what + "paused", want.Paused * 100, got.Paused * 100, "% of the time", 0.2},
			claim{what + "peak", want.Peak, got.Peak, "B", 0.2},
			claim{what + "trough", want.Trough, got.Trough, "B", 0.2},
			claim{what + "headroom used", want.Headroom, got.Headroom, "B", 0.2},
		)
	}
	return cs
}

// pauseCycle is what the engine makes of a cycle: means over the ports, headroom and trough when all of them together hold the most and the least, and the
// longest of all for the peak. Frames are short: long ones make ports take turns, where levels would rise together. Of the loop, the reaction of
// the senders is what two propagation times, the pause frame and the frame that follows it leave.
func pauseCycle(t testing.TB, pc fluid.PauseCycle) fluid.Cycle {
	gbps := int64(pc.Speed / units.Gbps)
	const hop, frame = 200 * engine.Nanosecond, 128
	c := star(pc.Ports+1, int64(pc.Speed), hop)
	incast(c)
	for i := range c.Flows {
		c.Flows[i].Payload = frame - c.Transport.Header
	}
	loop := engine.Time(pc.Loop) * engine.Nanosecond
	for i := range c.Ports {
		g := &c.Ports[i].Groups[dataClass]
		g.Static, g.Xon, g.XonOffset, g.Headroom = int64(pc.Xoff), int64(pc.Xon), 0, 1<<20
		c.Ports[i].Reaction = loop - 2*hop - wire(64+frame, gbps)
	}
	c.Sample, c.Watch = 100*engine.Nanosecond, []engine.QueueRef{{Port: pc.Ports, Queue: dataClass}}
	const span = 2 * engine.Millisecond
	r := measured(t, c, span/4, span)
	x := fluid.Cycle{Trough: 1e18}
	n := float64(pc.Ports)
	x.Headroom = float64(r.Ports[pc.Ports].Queues[dataClass].Max)/n - float64(pc.Xoff)
	for i := range pc.Ports {
		in, out := r.Ports[i].Groups[dataClass], r.Ports[pc.Ports+1+i].Groups[dataClass]
		x.Period += seconds(span) / float64(in.PausesSent) / n
		x.Paused += seconds(out.Paused) / seconds(span) / n
		if most := loop + wire(frame, gbps); float64(in.HeadroomMax) > seconds(most)*float64(pc.Speed)/8 {
			t.Errorf("port %d uses %d bytes of headroom, more than comes in a loop", i, in.HeadroomMax)
		}
		x.Peak = max(x.Peak, float64(in.Max+in.HeadroomMax))
	}
	for _, s := range r.Series {
		if s.At > span/4 {
			x.Trough = min(x.Trough, float64(s.Queues[0])/n)
		}
	}
	return x
}

// headrooms is the arithmetic of what arrives after a pause: with exactly that much nothing is dropped, with physics' minimum less both frames
// something is, and a response time that the formula does not count overflows it.
func headrooms(t testing.TB, long bool) (cs []claim) {
	speeds, cables := []units.BitRate{100, 400}, []units.Length{5, 300}
	if long {
		speeds, cables = []units.BitRate{25, 100, 400, 800}, []units.Length{5, 40, 300, 2000}
	}
	for _, gbps := range speeds {
		for _, metres := range cables {
			l := derive.Link{Speed: gbps * units.Gbps, Cable: metres * units.Metre, Frame: 9216}
			d := derive.StandardDelays(l.Speed)
			d.Interface = 0 // the engine's ports have none of their own
			physics, std := derive.PhysicsMin(l).Xoff, derive.StdMax(l, d).Xoff
			what := fmt.Sprintf("%s, %s: ", l.Speed, l.Cable)
			need, _ := burst(t, l, d.Quanta, 1<<30)
			_, enough := burst(t, l, d.Quanta, std)
			_, short := burst(t, l, d.Quanta, physics)
			_, still := burst(t, l, 0, physics)
			_, below := burst(t, l, 0, physics-2*l.Frame)
			right := 0
			for _, ok := range []bool{enough == 0, still == 0, below > 0, short > 0 || d.Quanta*64 < 2*int64(l.Frame)} {
				if ok { // for a short response, the chance of the worst alignment decides about the last
					right++
				}
			}
			cs = append(
				cs,
				claim{what + "bytes that arrive after the pause with the standard's response, to two frames", float64(std), float64(need), "B", 2 * float64(l.Frame) / float64(std)},
				claim{what + "no drops with the formula, nor with physics' minimum if nothing responds late; drops with two frames less, and if it does", 4, float64(right), "of 4", 0},
			)
			if need > std {
				t.Errorf("%sneeds %d bytes of headroom, more than the formula's %d", what, need, std)
			}
		}
	}
	return cs
}

// burst has a receiver stop its switch again and again, so that all that its sender has in flight ends in headroom, while the pauses
// wait behind frames of another class that are as long as the link takes. It returns the most headroom in use, and drops.
func burst(t testing.TB, l derive.Link, quanta int64, headroom units.Bytes) (units.Bytes, uint64) {
	c := star(3, int64(l.Speed), engine.Time(l.Cable/units.Metre)*5*engine.Nanosecond)
	c.Overhead = 20
	const static = 200_000
	for i := range c.Ports {
		g := &c.Ports[i].Groups[dataClass]
		g.Static, g.Xon, g.XonOffset, g.Headroom = static, static/2, 0, int64(headroom)
		c.Ports[i].Reaction = engine.Time(quanta) * 512 * engine.Second / engine.Time(l.Speed)
	}
	flow(c, 0, 1).Payload = int32(l.Frame) - c.Transport.Header
	back := flow(c, 2, 0) // what keeps the port busy that pauses host 0
	back.Payload = int32(l.Frame) - c.Transport.Header
	back.Mark, back.Class = cnpMark, cnpClass
	fill := engine.Time(float64(static+2*headroomOf(l)) * 8e12 / float64(l.Speed))
	const storms = 100
	every := 4*fill + wire(int64(l.Frame)+20, int64(l.Speed/units.Gbps))/storms // so that they meet frames at each of their bytes
	c.Transport.AckEvery = 1 << 20
	n := &c.NICs[1]
	n.Buffer, n.Xon = 1<<40, 1<<40
	for i := range engine.Time(storms) {
		n.Storms = append(n.Storms, engine.Storm{From: i * every, To: i*every + 2*fill, Priorities: 1 << dataClass})
	}
	r := measured(t, c, 0, storms*every)
	var drops uint64
	for i := range r.Ports {
		drops += r.Ports[i].Drops[engine.DropHeadroom]
	}
	if all := dropped(r); all != drops {
		t.Fatalf("%d packets are dropped, %d for want of headroom", all, drops)
	}
	return units.Bytes(r.Ports[0].Groups[dataClass].HeadroomMax), drops
}

func headroomOf(l derive.Link) int64 {
	return int64(derive.StdMax(l, derive.StandardDelays(l.Speed)).Xoff)
}

// dynamicThresholds is what n ports hold whose receiver takes nothing: alpha B / (1 + alpha n) each (Choudhury and Hahne 1998).
func dynamicThresholds(t testing.TB, _ bool) (cs []claim) {
	const pool = 12_000_000
	for _, exponent := range []int{-3, -1, 0, 1, 3} {
		for _, n := range []int{1, 2, 8, 32} {
			alpha, ok := derive.Alpha(exponent)
			if !ok {
				t.Fatal(exponent)
			}
			c := star(n+1, 100e9, 200*engine.Nanosecond)
			incast(c)
			c.Switches[0].Pools[0].Size = pool
			for i := range c.Ports {
				g := &c.Ports[i].Groups[dataClass]
				g.Alpha, g.Headroom = 65536*int64(alpha.Num)/int64(alpha.Den), 1<<20
			}
			c.NICs[n].Buffer = 1 << 40
			c.NICs[n].Storms = []engine.Storm{{To: 10 * engine.Millisecond, Priorities: 1 << dataClass}}
			r := measured(t, c, 0, 4*engine.Millisecond)
			held := 0.0
			for i := range n {
				held += float64(r.Ports[i].Groups[dataClass].Max) / float64(n)
			}
			want := derive.DynamicThreshold(pool, alpha, n)
			cs = append(cs, claim{fmt.Sprintf("alpha %s, %d ports: held by each when all are paused", alpha, n), float64(want.Each), held, "B", 0.01})
		}
	}
	return cs
}

// classes is a star of one host for each class and one that receives, all lossless and always with something to send.
func classes(c *engine.Config, change func(class int, q *engine.Queue)) {
	for i := range len(c.NICs) - 1 {
		for p := range c.Ports {
			c.Ports[p].Classify[i] = engine.Class{Group: int8(i), Queue: int8(i)}
			c.Ports[p].Obeys[i] = 1 << i
			c.Ports[p].Groups[i] = engine.Group{Lossless: true, Static: 200_000, XonOffset: 20_000, Headroom: 1 << 20}
			q := engine.Queue{Weight: 4096}
			change(i, &q)
			c.Ports[p].Queues[i] = q
		}
		f := flow(c, i, len(c.NICs)-1)
		f.Mark, f.Class = int8(i), int8(i)
	}
	for i := range c.NICs {
		c.NICs[i].CNPMark, c.NICs[i].CNPClass = 0, 0
	}
}

// shares is the parts of what arrives that flows have.
func shares(r *engine.Result) []float64 {
	sum := 0.0
	for _, f := range r.Flows {
		sum += float64(f.Received)
	}
	var parts []float64
	for _, f := range r.Flows {
		parts = append(parts, 100*float64(f.Received)/sum)
	}
	return parts
}

func schedulers(t testing.TB, _ bool) (cs []claim) {
	for _, weights := range [][]float64{{50, 50}, {60, 30, 10}, {40, 30, 20, 10}, {96, 4}} {
		c := star(len(weights)+1, 100e9, 500*engine.Nanosecond)
		classes(c, func(class int, q *engine.Queue) { q.Weight = int32(weights[class] * 500) })
		for i, part := range shares(measured(t, c, engine.Millisecond, 4*engine.Millisecond)) {
			cs = append(cs, claim{fmt.Sprintf("round robin of %v: share of class %d", weights, i), weights[i], part, "%", 0.01})
		}
	}
	// One strict class whose sender has a quarter of the line, and two that share what is left.
	c := star(4, 100e9, 500*engine.Nanosecond)
	classes(c, func(class int, q *engine.Queue) { q.Strict = class == 2 })
	c.Ports[2].Rate, c.Ports[4+2].Rate = 25e9, 25e9
	for i, part := range shares(measured(t, c, engine.Millisecond, 4*engine.Millisecond)) {
		cs = append(cs, claim{fmt.Sprintf("strict class with 25 of 100 Gbps, and two others: share of class %d", i), []float64{37.5, 37.5, 25}[i], part, "%", 0.01})
	}
	// The share of each port, when flows of three come in by one and one by another: C/6 three times, and C/2 (science 3.5).
	c = star(5, 100e9, 500*engine.Nanosecond)
	for i := range c.Ports {
		c.Ports[i].Groups[dataClass] = engine.Group{Lossless: true, Static: 200_000, XonOffset: 20_000, Headroom: 1 << 20}
	}
	for _, src := range []int{0, 0, 0, 1} {
		flow(c, src, 4)
	}
	for i, part := range shares(measured(t, c, engine.Millisecond, 4*engine.Millisecond)) {
		cs = append(cs, claim{fmt.Sprintf("PFC alone, three flows by one port and one by another: share of flow %d", i), []float64{100. / 6, 100. / 6, 100. / 6, 50}[i], part, "%", 0.03})
	}
	return cs
}

// ceilings is the payload that a wire carries: of each packet all but 62 bytes of headers and FCS, and 20 of preamble and gap. The clock of the engine
// is exact: so is the time that one packet more takes.
func ceilings(t testing.TB, _ bool) (cs []claim) {
	for _, gbps := range []int64{25, 40, 100, 200, 400, 800} {
		for _, payload := range []int64{256, 1024, 4096} {
			took := func(packets int64) engine.Time {
				c := star(2, gbps*1e9, 500*engine.Nanosecond)
				c.Overhead, c.Transport.Header = 20, 62
				f := flow(c, 0, 1)
				f.Payload, f.Bytes = int32(payload), packets*payload
				r, err := engine.Run(context.Background(), c)
				if err != nil {
					t.Fatal(err)
				}
				return r.Flows[0].Completion
			}
			each := float64(took(2000)-took(1000)) / 1000
			cs = append(cs, claim{
				fmt.Sprintf("%.2f Gbps at %d Gbps, %d of %d bytes: time for each packet", float64(payload)*8/each*1000, gbps, payload, payload+82),
				float64((payload + 82) * 8 * 1000 / gbps), each, "ps", 0,
			})
		}
	}
	return cs
}
