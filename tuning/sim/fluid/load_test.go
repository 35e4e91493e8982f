package fluid

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fabricctl/fabricctl/model/derive"
	"github.com/fabricctl/fabricctl/model/units"
)

// link is one of 40 Gbps with the paper's ramp.
func link() Link {
	return Link{Speed: 40 * units.Gbps, Ramp: derive.Ramp{Kmin: 5 * units.KB, Kmax: 200 * units.KB, Pmax: units.OnePercent}}
}

func near(t *testing.T, what string, got, want, part float64) {
	t.Helper()
	if math.Abs(got-want) > part*math.Abs(want) {
		t.Errorf("%s is %.6g, want %.6g within %.2g of it", what, got, want, part)
	}
}

// p* depends on speed and senders through their quotient alone, and so does where the queue rests.
func TestScaling(t *testing.T) {
	a := solve(t, Equal(derive.PaperDCQCN(), 4, link(), 4*units.Microsecond), Options{})
	l := link()
	l.Speed = 100 * units.Gbps
	b := solve(t, Equal(derive.PaperDCQCN(), 10, l, 4*units.Microsecond), Options{})
	near(t, "queue", b.Links[0].Mean, a.Links[0].Mean, 1e-3)
}

// A step of half the length changes nothing that matters, at rest and on the way there, and where it swings.
func TestSteps(t *testing.T) {
	for _, delay := range []units.Duration{0, 4 * units.Microsecond, 100 * units.Microsecond} {
		m := Equal(derive.PaperDCQCN(), 10, link(), delay)
		a := solve(t, m, Options{Span: 60 * units.Millisecond})
		b := solve(t, m, Options{Span: 60 * units.Millisecond, Step: 1 * units.Microsecond})
		if a.Motion != b.Motion {
			t.Errorf("delay %s: %s, with short steps %s", delay, a.Motion, b.Motion)
		}
		near(t, "mean at "+delay.String(), a.Links[0].Mean, b.Links[0].Mean, 0.01)
		near(t, "longest at "+delay.String(), a.Links[0].Max, b.Links[0].Max, 0.01)
		near(t, "peak at "+delay.String(), a.Links[0].Peak, b.Links[0].Peak, 0.01)
	}
}

// What is felt is what was so a feedback time before, between two steps in proportion.
func TestFelt(t *testing.T) {
	s := &solver{h: 1e-6, n: 20}
	f := &flow{feedback: 2.25e-6, past: make([]response, 5)}
	for n := s.n - 4; n <= s.n; n++ {
		f.past[n%5] = response{cut: float64(n), lose: 2 * float64(n), half: 3 * float64(n), add: 4 * float64(n), up: 5 * float64(n), down: 6 * float64(n)}
	}
	for part, want := range map[float64]float64{0: 17.75, 0.5: 18.25, 1: 18.75} {
		got := s.felt(f, part)
		if diff := cmp.Diff(response{want, 2 * want, 3 * want, 4 * want, 5 * want, 6 * want}, got, cmp.AllowUnexported(response{}), cmpopts.EquateApprox(1e-9, 0)); diff != "" {
			t.Errorf("%v of a step on (-want +got):\n%s", part, diff)
		}
	}
}

// A swing that dies out slowly is told from one that does not, and the border between them is where the margin is zero.
func TestBorder(t *testing.T) {
	at := func(delay units.Duration) Model {
		return extended(Equal(derive.PaperDCQCN(), 10, link(), delay))
	}
	lo, hi := 10*units.Microsecond, 200*units.Microsecond
	for hi-lo > 10*units.Nanosecond {
		mid := (lo + hi) / 2
		if x, _ := RestOf(at(mid)); x.Margin > 0 {
			lo = mid
		} else {
			hi = mid
		}
	}
	for _, part := range []units.Duration{95, 105} {
		m := at(lo * part / 100)
		x, ok := RestOf(m)
		if !ok {
			t.Fatal("no point of rest")
		}
		m = rests(m, x)
		m.Links[0].Queue = units.Bytes(x.Queue * 1.2)
		s := solve(t, m, Options{Span: 100 * units.Millisecond})
		if want := map[units.Duration]Motion{95: Settling, 105: Swinging}[part]; s.Motion != want {
			t.Errorf("at %d %% of %s: %s between %.0f and %.0f, want %s", part, lo, s.Motion, s.Links[0].Min, s.Links[0].Max, want)
		}
	}
}

// Senders that hear at different times share alike (Azure, NSDI'23, section 8: 2 us and 1.77 ms, 17 Gbps each), although at such a
// delay the queue swings even with a wide ramp and a small step.
func TestUnequalFeedback(t *testing.T) {
	d := derive.PaperDCQCN()
	d.Increase = 5 * units.Mbps
	l := link()
	l.Ramp = derive.Ramp{Kmin: units.MB, Kmax: 8 * units.MB, Pmax: 5 * units.OnePercent}
	m := Equal(d, 1, l, 2*units.Microsecond)
	far := m.Flows[0]
	far.Feedback = 1770 * units.Microsecond
	m.Flows = append(m.Flows, far)
	s := solve(t, m, Options{Span: 2 * units.Second})
	near(t, "rate of who is near", float64(s.Flows[0].Mean), 20e9, 0.1)
	near(t, "rate of who is far", float64(s.Flows[1].Mean), 20e9, 0.1)
}

// The parking lot: a flow over two links, and one more on each. Who is marked twice gets less, both links are full, and the
// queues are alike.
func TestParkingLot(t *testing.T) {
	m := Model{DCQCN: derive.PaperDCQCN(), Gain: 1. / 256, Links: []Link{link(), link()}}
	for _, path := range [][]int{{0, 1}, {0}, {1}} {
		m.Flows = append(m.Flows, Flow{Count: 1, Path: path, Line: 40 * units.Gbps, Feedback: 4 * units.Microsecond})
	}
	s := solve(t, m, Options{Span: units.Second})
	long, a, b := float64(s.Flows[0].Mean), float64(s.Flows[1].Mean), float64(s.Flows[2].Mean)
	near(t, "first link", long+a, 40e9, 0.01)
	near(t, "second link", long+b, 40e9, 0.01)
	near(t, "second queue", s.Links[1].Mean, s.Links[0].Mean, 0.05)
	if long > 0.8*a {
		t.Errorf("the long flow has %.2f Gbps, the short ones %.2f: want clearly less", long/1e9, a/1e9)
	}
}

// A link behind a narrower one has nothing to queue.
func TestBehindTheBottleneck(t *testing.T) {
	wide := link()
	wide.Speed = 100 * units.Gbps
	m := Equal(derive.PaperDCQCN(), 4, link(), 4*units.Microsecond)
	m.Links = append(m.Links, wide)
	m.Flows[0].Path = []int{0, 1}
	s := solve(t, m, Options{})
	near(t, "first queue", s.Links[0].Mean, 41809.49, 1e-3)
	if s.Links[1].Peak != 0 {
		t.Errorf("the second link queues %.0f bytes", s.Links[1].Peak)
	}
	near(t, "use of the second", s.Links[1].Used, 0.4, 0.01)
	near(t, "goodput", float64(s.Flows[0].Goodput), 10e9, 0.01)
}

// Who starts later takes its share.
func TestLateStart(t *testing.T) {
	m := Equal(derive.PaperDCQCN(), 1, link(), 4*units.Microsecond)
	late := m.Flows[0]
	late.Start = 40 * units.Millisecond
	m.Flows = append(m.Flows, late)
	s := solve(t, m, Options{})
	near(t, "rate of who came late", float64(s.Flows[1].Mean), 20e9, 0.01)
	near(t, "queue", s.Links[0].Mean, 20151.28, 1e-3)
	for _, x := range s.Series {
		if x.At < late.Start && (x.Rates[1] != 0 || x.Rates[0] != 40*units.Gbps) {
			t.Fatalf("at %s rates are %v: one alone has the line", x.At, x.Rates)
		}
	}
	if s.Jain < 0.9999 {
		t.Errorf("fairness %.5f", s.Jain)
	}
	if s.Links[0].PeakAt < late.Start || s.Settled < late.Start {
		t.Errorf("the queue is longest at %s, and rates settle at %s, before the second starts", s.Links[0].PeakAt, s.Settled)
	}
}

// Without a byte counter, time alone raises rates, more slowly: fewer marks are needed.
func TestTimeAlone(t *testing.T) {
	d := derive.PaperDCQCN()
	d.ByteCounter = 100 * units.KB
	with := solve(t, Equal(d, 2, link(), 4*units.Microsecond), Options{})
	d.ByteCounter = 0
	m := Equal(d, 2, link(), 4*units.Microsecond)
	without := solve(t, m, Options{})
	x, ok := RestOf(m)
	if !ok || with.Links[0].Mean < without.Links[0].Mean*1.05 {
		t.Errorf("queue %.0f with a byte counter, %.0f without", with.Links[0].Mean, without.Links[0].Mean)
	}
	near(t, "queue", without.Links[0].Mean, x.Queue, 1e-3)
}

func TestInvalid(t *testing.T) {
	good := Equal(derive.PaperDCQCN(), 2, link(), 0)
	for name, c := range map[string]struct {
		want  string
		spoil func(*Model)
	}{
		"parameters": {"parameters of DCQCN", func(m *Model) { m.DCQCN.RateTimer = 0 }},
		"gain":       {"a gain of NaN", func(m *Model) { m.Gain = math.NaN() }},
		"least rate": {"a least rate of", func(m *Model) { m.MinRate = -1 }},
		"no flows":   {"no links or no flows", func(m *Model) { m.Flows = nil }},
		"speed":      {"link 0: a speed of 0bps", func(m *Model) { m.Links[0].Speed = 0 }},
		"ramp":       {"link 0: a ramp from 5000B to 4000B", func(m *Model) { m.Links[0].Ramp.Kmax = 4 * units.KB }},
		"pmax":       {"link 0: a marking probability of 101%", func(m *Model) { m.Links[0].Ramp.Pmax = 101 * units.OnePercent }},
		"queue":      {"link 0: a queue of", func(m *Model) { m.Links[0].Queue = -1 }},
		"senders":    {"flow 0: 0 senders", func(m *Model) { m.Flows[0].Count = 0 }},
		"rate":       {"flow 0: rate 41Gbps", func(m *Model) { m.Flows[0].Rate = 41 * units.Gbps }},
		"alpha":      {"flow 0: an alpha of 2", func(m *Model) { m.Flows[0].Alpha = 2 }},
		"start":      {"flow 0: a start at", func(m *Model) { m.Flows[0].Start = -1 }},
		"no way":     {"flow 0: it crosses no link", func(m *Model) { m.Flows[0].Path = nil }},
		"unknown":    {"flow 0: link 1 of 1", func(m *Model) { m.Flows[0].Path = []int{1} }},
		"feedback":   {"feedback after 2s: at most 1s", func(m *Model) { m.Flows[0].Feedback = 2 * units.Second }},
		"backwards":  {"flow 0: link 0 after link 0", func(m *Model) { m.Flows[0].Path = []int{0, 0} }},
	} {
		m := good
		m.Links, m.Flows = slices.Clone(good.Links), slices.Clone(good.Flows)
		c.spoil(&m)
		if _, err := Solve(m, Options{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q in it", name, err, c.want)
		}
		if _, ok := RestOf(m); ok {
			t.Errorf("%s: there is a point of rest", name)
		}
	}
}

// screened is the doubts of the only candidate.
func screened(t *testing.T, m Model) Candidate {
	t.Helper()
	cs, err := Screen(context.Background(), []Model{m}, Options{}, 1)
	if err != nil {
		t.Fatal(err)
	}
	return cs[0]
}

func TestDoubts(t *testing.T) {
	paper := func(n int, feedback units.Duration, change func(*Model)) Model {
		m := Equal(derive.PaperDCQCN(), n, link(), feedback)
		if change != nil {
			change(&m)
		}
		return m
	}
	for name, c := range map[string]struct {
		m    Model
		want []Doubt
	}{
		"none":          {paper(4, 4*units.Microsecond, nil), nil},
		"saturated":     {paper(16, 4*units.Microsecond, nil), []Doubt{DoubtSaturated, DoubtUnstable}},
		"unstable":      {paper(10, 100*units.Microsecond, nil), []Doubt{DoubtSaturated, DoubtUnstable}},
		"hardly stable": {paper(10, 50*units.Microsecond, nil), []Doubt{DoubtUnstable}},
		"timers of a NIC": {paper(8, 4*units.Microsecond, func(m *Model) {
			m.DCQCN.CNPInterval, m.DCQCN.AlphaTimer, m.DCQCN.RateTimer = 4*units.Microsecond, units.Microsecond, 300*units.Microsecond
			m.DCQCN.Recovery, m.DCQCN.ByteCounter = 1, 0
		}), []Doubt{DoubtUnstable}},
		"near the end": {paper(13, 4*units.Microsecond, nil), []Doubt{DoubtEdge}},
		"idle":         {paper(4, 4*units.Microsecond, func(m *Model) { m.Flows[0].Line = 5 * units.Gbps }), []Doubt{DoubtIdle}},
		"burst":        {paper(4, 4*units.Microsecond, func(m *Model) { m.Links[0].Pause = 500 * units.KB }), []Doubt{DoubtBurst}},
		"pauses":       {paper(4, 4*units.Microsecond, func(m *Model) { m.Links[0].Pause = 30 * units.KB }), []Doubt{DoubtPauses}},
		"coarse":       {paper(2, 4*units.Microsecond, func(m *Model) { m.Links[0].Ramp.Pmax = 20 * units.OnePercent }), []Doubt{DoubtCoarse}},
		"invalid":      {paper(0, 0, nil), []Doubt{DoubtInvalid}},
	} {
		x := screened(t, c.m)
		if diff := cmp.Diff(c.want, x.Doubts); diff != "" {
			t.Errorf("%s: doubts (-want +got):\n%s%+v %+v", name, diff, x.Rest, x.Solution)
		}
	}
}

// The order is of goodput and delay, whatever the number of workers; who pauses comes after who does not, and nonsense last.
func TestScreen(t *testing.T) {
	m := Equal(derive.PaperDCQCN(), 4, link(), 4*units.Microsecond)
	m.Links[0].Pause = 300 * units.KB
	grid := Grid(m, []units.Bytes{5 * units.KB, 50 * units.KB, 500 * units.KB}, []units.Bytes{100 * units.KB, 400 * units.KB, 2 * units.MB}, []units.Percent{units.OnePercent, 10 * units.OnePercent})
	if len(grid) != 2*(3+3+1) {
		t.Fatalf("%d models", len(grid))
	}
	grid = append(grid, Model{})
	a, err := Screen(context.Background(), grid, Options{}, 1)
	if err != nil {
		t.Fatal(err)
	}
	b, err := Screen(context.Background(), grid, Options{}, 3)
	if err != nil {
		t.Fatal(err)
	}
	for i := range a {
		if a[i].Index != b[i].Index || a[i].Score != b[i].Score {
			t.Errorf("place %d: model %d with 1 worker, %d with 3", i, a[i].Index, b[i].Index)
		}
		if i == 0 {
			continue
		}
		if p, q := a[i-1], a[i]; p.class() > q.class() || p.class() == q.class() && p.Score < q.Score {
			t.Errorf("place %d: class %d, score %v, after class %d, score %v", i, q.class(), q.Score, p.class(), p.Score)
		}
	}
	best, last := grid[a[0].Index].Links[0].Ramp, a[len(a)-1]
	if best != (derive.Ramp{Kmin: 5 * units.KB, Kmax: 100 * units.KB, Pmax: 10 * units.OnePercent}) {
		t.Errorf("best is %+v: want the shortest queue, since all links are full", best)
	}
	if last.Err == nil || a[len(a)-2].class() != 1 {
		t.Errorf("last: %+v", last)
	}
	near(t, "goodput", float64(a[0].Goodput), 40e9, 1e-3)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Screen(ctx, grid, Options{}, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// Whatever makes sense has an answer in numbers, and none of them is outside of its limits.
func TestAnyModel(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	pick := func(lo, hi float64) float64 { return lo * math.Pow(hi/lo, rng.Float64()) } // as likely in each decade
	for i := range 100 {
		timer := func() units.Duration { return units.Duration(pick(1e2, 1e7)) }
		m := Model{
			DCQCN: derive.DCQCN{
				CNPInterval: timer(), AlphaTimer: timer(), RateTimer: timer(), ByteCounter: units.Bytes(pick(1, 1e9)) - 1, Recovery: 1 + rng.IntN(8),
				Increase: units.BitRate(pick(1e5, 1e10)), Packet: units.Bytes(pick(64, 9216)),
			},
			Gain: pick(1e-4, 0.99), MinRate: units.BitRate(pick(1, 1e9)) - 1, Spaced: rng.IntN(2) == 0,
		}
		for range 1 + rng.IntN(3) {
			kmin := units.Bytes(pick(1, 1e7)) - 1
			m.Links = append(m.Links, Link{
				Speed: units.BitRate(pick(1e9, 1e12)), Pause: units.Bytes(pick(1, 1e7)) - 1,
				Ramp: derive.Ramp{Kmin: kmin, Kmax: kmin + units.Bytes(pick(1, 1e7)) - 1, Pmax: units.Percent(rng.IntN(101)) * units.OnePercent},
			})
		}
		for range 1 + rng.IntN(3) {
			first := rng.IntN(len(m.Links))
			f := Flow{Count: 1 + rng.IntN(100), Line: units.BitRate(pick(1e9, 1e12)), Start: units.Duration(pick(1, 1e6)) - 1, Feedback: units.Duration(pick(1, 1e6)) - 1}
			for l := first; l < len(m.Links); l += 1 + rng.IntN(2) {
				f.Path = append(f.Path, l)
			}
			m.Flows = append(m.Flows, f)
		}
		s := solve(t, m, Options{Span: 3 * units.Millisecond})
		for l, x := range s.Links {
			sane := x.Min >= 0 && x.Min <= x.Mean*(1+1e-9) && x.Mean <= x.Max*(1+1e-9)+1e-9 && x.Max <= x.Peak && x.Used >= 0 && x.Used <= 1 && x.Marked >= 0 && x.Marked <= 1
			if !sane || math.IsInf(x.Peak, 0) {
				t.Errorf("model %d: link %d: %+v", i, l, x)
			}
		}
		for k, f := range s.Flows {
			line := m.Flows[k].Line
			if !(f.Alpha >= 0 && f.Alpha <= 1+1e-9) || f.Min < 0 || f.Min > f.Mean+1 || f.Mean > f.Max+1 || f.Max > line || f.Goodput < 0 {
				t.Errorf("model %d: flow %d of %s: %+v", i, k, line, f)
			}
		}
		if x, ok := RestOf(m); ok && !(x.P > 0 && x.P <= 1 && x.Alpha >= 0 && x.Target >= x.Rate) {
			t.Errorf("model %d: rest at %+v", i, x)
		}
	}
}
