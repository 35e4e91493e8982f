package derive

import (
	"maps"
	"math"
	"math/big"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/fabricctl/fabricctl/model/units"
)

// sane draws quantities of real fabrics and beyond: 100 Mbps to 3.2 Tbps, up to 120 km.
func saneLink(t *rapid.T) Link {
	return Link{
		Speed: units.BitRate(rapid.Int64Range(1, 32_000).Draw(t, "speed")) * 100 * units.Mbps,
		Cable: units.Length(rapid.Int64Range(0, 120_000_000).Draw(t, "cable")),
		Frame: units.Bytes(rapid.Int64Range(64, 16384).Draw(t, "frame")),
	}
}

// sonicOf is SONiC's formula for l on a chip drawn from the known ones, in a form drawn from the published ones.
func sonicOf(t *rapid.T, l Link) Sonic {
	in := Sonic{
		Form:  rapid.SampledFrom([]SonicForm{SonicScript(), SonicDesign(), SonicStatic()}).Draw(t, "form"),
		Speed: l.Speed, Cable: l.Cable, MTU: l.Frame, Lanes: rapid.SampledFrom([]int{1, 2, 4, 8}).Draw(t, "lanes"),
		LosslessMTU: units.Bytes(rapid.Int64Range(64, 9216).Draw(t, "lossless")), SmallPercent: rapid.IntRange(0, 100).Draw(t, "small"),
		Cell: rapid.SampledFrom([]units.Bytes{96, 144, 192, 256}).Draw(t, "cell"), Pipeline: 19 * units.KiB, MacPhy: oneTwo(4096, 5), PeerResponse: oneTwo(19456, 5),
	}
	if rapid.Bool().Draw(t, "gearbox") {
		in.Gearbox = 50 * units.Nanosecond
	}
	return in
}

// models is each model's headroom for l, by name.
func models(in Sonic, l Link, d Delays) map[Model]func(Link) Headroom {
	return map[Model]func(Link) Headroom{
		ModelPhysicsMin: PhysicsMin,
		ModelStdMax:     func(l Link) Headroom { return StdMax(l, d) },
		ModelSonicMlnx: func(l Link) Headroom {
			in := in
			in.Speed, in.Cable = l.Speed, l.Cable
			in.Quanta = d.Quanta // a table of responses is not monotone in speed
			return SonicMlnx(in)
		},
		ModelMLX5NIC:  func(l Link) Headroom { return MLX5NIC(l.Speed, l.Cable, l.Frame) },
		ModelCisco10G: func(l Link) Headroom { return Cisco10G(l, CiscoTransceiver) },
	}
}

// TestHeadroomGrowsWithSpeedAndCable: but for the step that SONiC adds for mixed traffic, which comes or goes with the rounding of
// what it is compared with.
func TestHeadroomGrowsWithSpeedAndCable(t *testing.T) {
	xoff := func(h Headroom) units.Bytes {
		for _, x := range h.Terms {
			if x.Name == "traffic pattern" {
				return h.Xoff - patternStep
			}
		}
		return h.Xoff
	}
	rapid.Check(t, func(t *rapid.T) {
		l := saneLink(t)
		d := StandardDelays(l.Speed)
		hs := models(sonicOf(t, l), l, d)
		for _, name := range slices.Sorted(maps.Keys(hs)) { // in order: what is drawn must not depend on that of a map
			h := hs[name]
			base := xoff(h(l))
			longer, faster, larger := l, l, l
			longer.Cable += units.Length(rapid.Int64Range(0, 1_000_000).Draw(t, "more cable"))
			faster.Speed += units.BitRate(rapid.Int64Range(0, 4000).Draw(t, "more speed")) * 100 * units.Mbps
			larger.Frame += units.Bytes(rapid.Int64Range(0, 4096).Draw(t, "more frame"))
			for what, more := range map[string]Link{"cable": longer, "speed": faster, "frame": larger} {
				if got := xoff(h(more)); got < base {
					t.Fatalf("%s with more %s: %d, was %d", name, what, got, base)
				}
			}
		}
	})
}

// TestCableTerm doubles the cable: what is added is the cable's term, and nothing else.
func TestCableTerm(t *testing.T) {
	term := func(h Headroom) Amount {
		for _, x := range h.Terms {
			if x.Name == "cable" {
				return x.Bytes
			}
		}
		return 0
	}
	rapid.Check(t, func(t *rapid.T) {
		l := saneLink(t)
		double := l
		double.Cable *= 2
		d := StandardDelays(l.Speed)
		for name, h := range models(sonicOf(t, l), l, d) {
			within := 1.0
			switch name {
			case ModelMLX5NIC:
				continue // its cable is inside whole numbers
			case ModelSonicMlnx:
				within = 1024 + 2048 // KiB, and the step of mixed traffic may come or go
			}
			one, two := h(l), h(double)
			if !near(float64(term(two)), 2*float64(term(one)), 1e-12) {
				t.Fatalf("%s: cable %s, doubled %s", name, term(one), term(two))
			}
			if added := float64(two.Xoff - one.Xoff); math.Abs(added-float64(term(one))) > within {
				t.Fatalf("%s: doubling the cable adds %.0f, its term is %s", name, added, term(one))
			}
		}
		want := times(whole(2), whole(int64(l.Cable)), whole(int64(l.Speed)), frac(5, 1000*8*1e9))
		if _, got := l.cable(); got.Cmp(want) != 0 {
			t.Fatalf("cable of %v: %s, want %s", l, got, want)
		}
	})
}

func TestStandardIsAbovePhysics(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := saneLink(t)
		d := StandardDelays(l.Speed)
		phys, std := PhysicsMin(l), StdMax(l, d)
		if want := phys.Xoff + units.Bytes(d.Quanta)*quantum + d.Interface; std.Xoff != want || d.Quanta <= 0 || d.Interface <= 0 {
			t.Fatalf("%v with %+v: %d, want %d", l, d, std.Xoff, want)
		}
	})
}

func TestStandardDelays(t *testing.T) {
	for _, c := range []struct {
		speed  units.BitRate
		quanta int64
		intf   units.Bytes
		sure   bool
	}{
		{10 * units.Gbps, 67, 1024, true},
		{25 * units.Gbps, 80, 768, true},
		{40 * units.Gbps, 118, 3072, true},
		{100 * units.Gbps, 394, 15360, true},
		{400 * units.Gbps, 905, 57920, false},    // the interface is derived
		{800 * units.Gbps, 1810, 115840, false},  // the time of 400G
		{1600 * units.Gbps, 3620, 231680, false}, // and again
		{50 * units.Gbps, 147, 7680, false},      // 100G's 1228.8 ns are longer than 40G's 614.4
		{200 * units.Gbps, 453, 30720, false},
		{1 * units.Gbps, 7, 103, false},
		{0, 0, 0, false},
	} {
		d := StandardDelays(c.speed)
		if d.Quanta != c.quanta || d.Interface != c.intf || (d.Unverified == "") != c.sure {
			t.Errorf("%s: %+v, want %d quanta, %d bytes, verified %v", c.speed, d, c.quanta, c.intf, c.sure)
		}
	}
	// 800 Gbps as auto takes it, in numbers that were worked out apart (5 m, 40 m, 300 m, 2 km, 10 km).
	for cable, want := range map[units.Length]units.Bytes{5: 255236, 40: 290236, 300: 550236, 2000: 2250236, 10000: 10250236} {
		l := Link{Speed: 800 * units.Gbps, Cable: cable * units.Metre, Frame: 9216}
		if got := StdMax(l, StandardDelays(l.Speed)).Xoff; got != want {
			t.Errorf("800 Gbps, %s: %d, want %d", l.Cable, got, want)
		}
	}
}

func TestCisco10G(t *testing.T) {
	l := Link{Speed: 10 * units.Gbps, Cable: 100 * units.Metre, Frame: 9216, PeerFrame: 2300}
	if got, want := Cisco10G(l, CiscoTransceiver).Xoff, units.Bytes(9216+2300+3840+2*641+1280); got != want {
		t.Errorf("%d, want %d", got, want)
	}
}

func TestMLX5Thresholds(t *testing.T) {
	h := MLX5NIC(100*units.Gbps, 5*units.Metre, 9216).Xoff // 56167
	for _, c := range []struct {
		buffer, xoff, xon units.Bytes
		ok                bool
	}{
		{100_000, 43_833, 34_617, true},
		{h + 9216 + 128, 9344, 128, true},
		{h + 9216 + 127, 0, 0, false},
		{0, 0, 0, false},
	} {
		if xoff, xon, ok := MLX5Thresholds(c.buffer, h, 9216, 128); xoff != c.xoff || xon != c.xon || ok != c.ok {
			t.Errorf("buffer %d: %d, %d, %v; want %d, %d, %v", c.buffer, xoff, xon, ok, c.xoff, c.xon, c.ok)
		}
	}
}

// TestXonMin is the rule's own example: 100 Gbps with 2 us until traffic resumes drain 25 kB.
func TestXonMin(t *testing.T) {
	x := XonMin(Link{Speed: 100 * units.Gbps, Frame: 1024}, 100*units.Gbps, Delays{Quanta: 394}).Total
	if want := units.Bytes(394*64 + 1024); x != want {
		t.Errorf("%d, want %d", x, want)
	}
	half := XonMin(Link{Speed: 100 * units.Gbps, Cable: 40 * units.Metre, Frame: 1024}, 50*units.Gbps, Delays{Quanta: 394}).Total
	if want := units.Bytes(394*64/2 + 5000/2 + 1024); half != want {
		t.Errorf("half the drain: %d, want %d", half, want)
	}
}

func TestThresholdProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pool := units.Bytes(rapid.Int64Range(1, 1<<40).Draw(t, "pool"))
		alpha, _ := Alpha(rapid.IntRange(minExponent, maxExponent).Draw(t, "exponent"))
		n := rapid.IntRange(1, 512).Draw(t, "groups")
		each, used, free := dynamic(pool, alpha, n)
		if plus(used, free).Cmp(whole(int64(pool))) != 0 || times(ratio(alpha), free).Cmp(each) != 0 {
			t.Fatalf("%d by %d at %s: each %s, used %s, free %s", pool, n, alpha, each, used, free)
		}
		more, usedMore, _ := dynamic(pool, alpha, n+1)
		if more.Cmp(each) >= 0 || usedMore.Cmp(used) <= 0 {
			t.Fatalf("one more group: each %s then %s, used %s then %s", each, more, used, usedMore)
		}
		want := units.Bytes(rapid.Int64Range(1, int64(pool)).Draw(t, "threshold"))
		if a, ok := AlphaNeeded(pool, want, n); ok {
			if e, _, _ := dynamic(pool, a, n); e.Cmp(whole(int64(want))) < 0 {
				t.Fatalf("alpha %s does not reach %d", a, want)
			}
			if x, _ := Exponent(a); x > minExponent {
				b, _ := Alpha(x - 1)
				if e, _, _ := dynamic(pool, b, n); e.Cmp(whole(int64(want))) >= 0 {
					t.Fatalf("alpha %s is enough for %d", b, want)
				}
			}
		}
	})
}

// TestFixedPointScales holds the scaling law of the fluid model: p* depends on speed and flows through their ratio.
func TestFixedPointScales(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		speed := units.BitRate(rapid.Int64Range(1, 80).Draw(t, "speed")) * 10 * units.Gbps
		n, k := rapid.IntRange(1, 64).Draw(t, "flows"), rapid.IntRange(1, 16).Draw(t, "times")
		a, ok1 := FixedPointOf(PaperDCQCN(), speed, n)
		b, ok2 := FixedPointOf(PaperDCQCN(), speed*units.BitRate(k), n*k)
		if !ok1 || !ok2 || !near(a.P, b.P, 1e-9) {
			t.Fatalf("%s and %d: %g, %d times both: %g", speed, n, a.P, k, b.P)
		}
		more, _ := FixedPointOf(PaperDCQCN(), speed, n+1)
		if more.P <= a.P || a.P <= 0 || a.P >= 1 {
			t.Fatalf("%s: p %g with %d flows, %g with one more", speed, a.P, n, more.P)
		}
	})
}

// TestIncastLimit holds the numbers of the derivation, and that the limit is where the inequality turns.
func TestIncastLimit(t *testing.T) {
	one := oneTwo(1, 1)
	for speed, want := range map[units.BitRate]int{100 * units.Gbps: 118, 400 * units.Gbps: 28} { // N < 119 and N < 29
		if got := IncastLimit(12*units.MB, one, speed, 8*units.Microsecond); got != want {
			t.Errorf("%s: %d, want %d", speed, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		pool := units.Bytes(rapid.Int64Range(1, 1<<32).Draw(t, "pool"))
		alpha, _ := Alpha(rapid.IntRange(minExponent, maxExponent).Draw(t, "exponent"))
		speed, rtt := 100*units.Gbps, 8*units.Microsecond
		n := IncastLimit(pool, alpha, speed, rtt)
		above, _, _ := dynamic(pool, alpha, n+1)
		if above.Cmp(bdp(speed, rtt)) > 0 {
			t.Fatalf("%d senders are let through, %d would be too", n, n+1)
		}
		if at, _, _ := dynamic(pool, alpha, n); n > 0 && at.Cmp(bdp(speed, rtt)) <= 0 {
			t.Fatalf("%d senders are let through, and are not", n)
		}
	})
}

func TestRounding(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := units.Bytes(rapid.Int64Range(0, 1<<50).Draw(t, "v"))
		step := units.Bytes(rapid.Int64Range(1, 1<<20).Draw(t, "step"))
		u, d := RoundUp(v, step), RoundDown(v, step)
		if u < v || u >= v+step || u%step != 0 || d > v || d <= v-step || d%step != 0 {
			t.Fatalf("%d by %d: up %d, down %d", v, step, u, d)
		}
	})
	if u, d := RoundUp(100, 0), RoundDown(-1, 7); u != 100 || d != 0 {
		t.Errorf("without a step %d, below zero %d", u, d)
	}
}

func TestPartOf(t *testing.T) {
	for _, x := range []struct {
		v     units.Bytes
		share units.Percent
		want  units.Bytes
	}{
		{17_437_696, 50 * units.OnePercent, 8_718_848},
		{999_999, 50 * units.OnePercent, 499_999},
		{10, units.OnePercent / 2, 0},
		{math.MaxInt64, 100 * units.OnePercent, math.MaxInt64},
		{-5, 50 * units.OnePercent, 0},
		{5, -1, 0},
		{3 * units.MB, 33_3333, 999_999},
	} {
		if got := PartOf(x.v, x.share); got != x.want {
			t.Errorf("%s of %d = %d, want %d", x.share, int64(x.v), int64(got), int64(x.want))
		}
	}
}

// TestHostile gives every formula the numbers nobody writes: none panics, none goes below zero or around.
func TestHostile(t *testing.T) {
	extremes := []int64{math.MinInt64, -1, 0, 1, 1 << 31, math.MaxInt64}
	ratios := []units.Ratio{{}, {Num: 1}, {Den: 1}, {Num: -1, Den: 1}, {Num: math.MaxInt32, Den: 1}, {Num: 1, Den: math.MaxInt32}}
	rapid.Check(t, func(t *rapid.T) {
		n := func(name string) int64 { return rapid.SampledFrom(extremes).Draw(t, name) }
		r := func(name string) units.Ratio { return rapid.SampledFrom(ratios).Draw(t, name) }
		l := Link{units.BitRate(n("speed")), units.Length(n("cable")), units.Bytes(n("frame")), units.Bytes(n("peer"))}
		d := StandardDelays(l.Speed)
		hs := []Headroom{
			PhysicsMin(l), StdMax(l, d), StdMax(l, Delays{Quanta: n("quanta"), Interface: units.Bytes(n("interface"))}),
			MLX5NIC(l.Speed, l.Cable, l.Frame), Cisco10G(l, units.Bytes(n("transceiver"))),
			SonicMlnx(Sonic{
				Form:  SonicForm{CableDivisor: n("divisor"), WholeCells: rapid.Bool().Draw(t, "cells"), ByBytes: rapid.Bool().Draw(t, "bytes"), LaneDiscount: units.Bytes(n("discount"))},
				Speed: l.Speed, Cable: l.Cable, MTU: l.Frame, Lanes: 8, LosslessMTU: units.Bytes(n("lossless")), SmallPercent: int(n("small")),
				Gearbox: units.Duration(n("gearbox")), Cell: units.Bytes(n("cell")), Pipeline: units.Bytes(n("pipeline")), MacPhy: r("macphy"), PeerResponse: r("response"),
				Quanta: n("quanta"), Tile: units.Duration(n("tile")), Extra: units.Bytes(n("extra")),
			}),
		}
		for _, h := range hs {
			if h.Xoff < 0 || h.Xon < 0 || h.Size < 0 {
				t.Fatalf("%s: %+v", h.Model, h)
			}
		}
		pool, alpha, groups := units.Bytes(n("pool")), r("alpha"), int(n("groups"))
		s := DynamicThreshold(pool, alpha, groups)
		b := ECNBeforePFC(pool, groups, int(n("ports")), units.Bytes(n("headroom")), alpha)
		f := FirstReaction(Incast{l.Speed, groups, pool, units.Bytes(n("xoff")), units.Duration(n("feedback"))})
		x, _ := FixedPointOf(PaperDCQCN(), l.Speed, groups)
		q, _ := x.Queue(Ramp{pool, l.Frame, units.Percent(n("pmax") >> 32)})
		for i, v := range []float64{float64(s.Each), float64(s.Used), float64(b.PFC), float64(b.ECNDynamic), f.ToKmin, f.ToXoff, float64(f.AtCut), x.P} {
			if math.IsNaN(v) || v < 0 {
				t.Fatalf("%d: %g of %+v %+v %+v %+v %s", i, v, s, b, f, x, q)
			}
		}
		if IncastLimit(pool, alpha, l.Speed, units.Duration(n("rtt"))) < 0 || FirstPause(pool, alpha, groups) < 0 || DCTCPMin(l.Speed, units.Duration(n("rtt"))) < 0 {
			t.Fatal("a limit below zero")
		}
		AlphaNeeded(pool, units.Bytes(n("threshold")), groups)
		MLX5Thresholds(pool, hs[0].Xoff, l.Frame, units.Bytes(n("cell")))
		if XonMin(l, units.BitRate(n("drain")), d).Total < 0 || Oversubscribed(pool, alpha, hs[1].Xoff).Needed < 0 {
			t.Fatal("a size below zero")
		}
	})
	if got := PhysicsMin(Link{Speed: math.MaxInt64, Cable: math.MaxInt64, Frame: math.MaxInt64}).Xoff; got != math.MaxInt64 {
		t.Errorf("what does not fit is %d", got)
	}
	if got := up(new(big.Rat).SetFrac64(7, 2), 3); got != 6 {
		t.Errorf("7/2 in threes is %d, want 6", got)
	}
}

func TestAmount(t *testing.T) {
	for a, want := range map[Amount]string{218.75: "218.75B", 625: "625B", 9216: "9216B", 1e6: "1MB"} {
		if got := a.String(); got != want {
			t.Errorf("%g: %s, want %s", float64(a), got, want)
		}
	}
	if a := Amount(218.75); a.Up() != 219 || a.Down() != 218 || Amount(math.Inf(1)).Up() != math.MaxInt64 || Amount(math.NaN()).Down() != 0 {
		t.Error("rounding of amounts")
	}
}

func TestOversubscribed(t *testing.T) {
	// 64 ports with two priorities of 96928 bytes on a pool of 6 MB: a ratio of 2.07 at least.
	promised := units.Bytes(64 * 2 * 96928)
	p := Oversubscribed(6*units.MB, oneTwo(2, 1), promised)
	if p.Promised != 12406784 || p.Needed != 6203392 || !near(float64(p.NeededRatio), 2.0678, 1e-4) {
		t.Errorf("%+v", p)
	}
}
