package sim

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fabricctl/fabricctl/model/derive"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/tuning/sim/fluid"
)

func grid(t testing.TB, text string) Grid {
	t.Helper()
	g, err := ParseGrid(text)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestParseGrid: what is written comes back, and what makes no sense is told with what to write.
func TestParseGrid(t *testing.T) {
	for _, text := range []string{"kmin=100KB/400KB,kmax=1.6MB,pmax=1%/0.5%", "pmax=100%", "kmax=1MiB"} {
		if got := grid(t, text).String(); got != text {
			t.Errorf("%s became %s", text, got)
		}
	}
	for text, want := range map[string]string{
		"":                      "no values",
		"kmin":                  "no values",
		"kmin=":                 "no values",
		"kmin=100KB,":           "no values",
		"kmin=100KB,kmin=200KB": "twice",
		"kmin=100":              "100",
		"kmin=100KB//200KB":     "kmin",
		"pmax=1":                "pmax",
		"pmax=-1%":              "pmax",
		"alpha=1":               "none of kmin, kmax and pmax",
	} {
		if _, err := ParseGrid(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// TestPoints: all combinations, in the order of the lists. What is not listed stays; a kmin above the kmax is skipped, and what a chip makes the same of is one.
func TestPoints(t *testing.T) {
	now := derive.Ramp{Kmin: 7 * units.KB, Kmax: 9 * units.KB, Pmax: units.OnePercent}
	dev := &intent.Device{}
	ps, skipped, same := grid(t, "kmin=1KB/8KB/10KB,pmax=2%/3%").points(now, dev)
	var got []string
	for _, p := range ps {
		got = append(got, p.ramp.Kmin.String()+" "+p.ramp.Kmax.String()+" "+p.ramp.Pmax.String())
	}
	if d := cmp.Diff([]string{"1000B 9000B 2%", "1000B 9000B 3%", "8000B 9000B 2%", "8000B 9000B 3%"}, got); d != "" || skipped != 2 || same != 0 {
		t.Errorf("%d skipped, %d the same (-want +got)\n%s", skipped, same, d)
	}
	dev.Profile.Chip.ECNStep = 5 * units.KB
	ps, _, same = grid(t, "kmin=5KB/8KB/10KB,kmax=20KB,pmax=2%").points(now, dev)
	if len(ps) != 2 || same != 1 || ps[0].effect.Kmin != 5*units.KB || ps[1].effect.Kmin != 10*units.KB {
		t.Errorf("%d the same: %+v", same, ps)
	}
}

// TestBottleneck: what the equations take of examples/small, by hand.
func TestBottleneck(t *testing.T) {
	s := setup(t, example(t, "small"), "incast:8", Options{})
	b, why := s.bottleneck()
	if why != "" {
		t.Fatal(why)
	}
	if b.Device != "leaf1" || b.Port != "Ethernet0" || b.Class != "training" || b.Load != 8 || b.Flows != 8 || b.Speed != 400*units.Gbps {
		t.Errorf("%+v", b)
	}
	frame := 4096 + s.Config.Transport.Header
	net := units.BitRate(400e9 * float64(frame) / float64(frame+24))
	want := fluid.Model{
		DCQCN: derive.DCQCN{
			CNPInterval: 4 * units.Microsecond, AlphaTimer: units.Microsecond, RateTimer: 300 * units.Microsecond, Recovery: 1, Increase: 80 * units.Mbps, Packet: units.Bytes(frame),
		},
		Gain: 5. / 1024, MinRate: 100 * units.Mbps,
		Links: []fluid.Link{{Speed: net, Pause: b.Pause}},
		Flows: []fluid.Flow{{Count: 8, Path: []int{0}, Line: net, Feedback: b.Feedback + 2*units.Microsecond}},
	}
	if d := cmp.Diff(want, b.model, cmpopts.EquateEmpty()); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	// Of the ways in, each holds its part f of Q when reserve + alpha (pool - Q + n reserve) = f Q.
	by := map[int]bool{}
	for i := range s.flows {
		s.walk(&stream{from: s.flows[i].from, to: s.flows[i].to, mark: s.Config.Flows[i].Mark}, s.Config.Ports[s.Config.NICs[s.flows[i].from].Port].Peer, 1, 0, func(h hop) {
			if h.out == b.port {
				by[h.in] = true
			}
		})
	}
	in := s.mustFind(t, "leaf1", "Ethernet64")
	g := s.Config.Ports[in].Groups[3]
	pool := float64(s.Config.Switches[s.Config.Ports[in].Switch].Pools[0].Size)
	share := float64(b.Pause) / float64(len(by))
	if free := pool - float64(b.Pause) + float64(len(by))*float64(g.Reserved); share < 0.98*(float64(g.Reserved)+free/2) || share > 1.02*(float64(g.Reserved)+free/2) {
		t.Errorf("pauses at %s, of which each of %d has %.0f, with %.0f free", b.Pause, len(by), share, free)
	}
}

// TestBottleneckAgrees: of NICs that cut at notifications, the equations that are made of a fabric have the queue that packets have.
func TestBottleneckAgrees(t *testing.T) {
	n := edit(example(t, "small"), switches, func(p *intent.Policy) {
		p.Queues[3].ECN.Kmin, p.Queues[3].ECN.Kmax, p.Queues[3].ECN.Pmax = 400*units.KB, 3200*units.KB, 10*units.OnePercent
	})
	s := setup(t, n, "incast:8,to=host1", Options{Warmup: 30 * units.Millisecond, Duration: 30 * units.Millisecond})
	for i := range s.Config.NICs {
		(&builder{Setup: *s}).paper(&s.Config.NICs[i])
	}
	b, why := s.bottleneck()
	if why != "" {
		t.Fatal(why)
	}
	now, _ := s.rampAt(b)
	f, err := fluid.Solve(b.even(now), fluid.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	theory, packets := f.Links[0].Mean, float64(r.queueAt(b, b.Class).Mean)
	t.Logf("equations %.0f B (%s), packets %.0f B", theory, f.Motion, packets)
	if math.Abs(packets/theory-1) > 0.15 {
		t.Errorf("equations %.0f B, packets %.0f B", theory, packets)
	}
}

// TestBottlenecks: which queue it is, and where there is none.
func TestBottlenecks(t *testing.T) {
	small := example(t, "small")
	slow := edit(small, hosts, func(p *intent.Policy) { p.CC.On, p.CC.Priorities = true, 0; p.Known |= intent.AreaSet(intent.AreaCC) })
	for _, x := range []struct {
		name  string
		net   *intent.Net
		load  string
		port  string
		flows int
		alike int
		why   string
	}{
		{"to one", small, "incast:4,to=host3", "leaf1:Ethernet16", 4, 0, ""},
		{"a burst that comes again counts once", small, "incast:4,to=host3,bytes=1MB,every=100us", "leaf1:Ethernet16", 4, 0, ""},
		{"queue pairs", small, "incast:4,to=host3,qps=3", "leaf1:Ethernet16", 12, 0, ""},
		{"reads go the other way, from one NIC", small, "incast:4,to=host3,op=read", "", 0, 0, "no queue gets more"},
		{"uplinks that all share", small, "alltoall", "leaf1:Ethernet64", 0, 15, ""},
		{"no two meet", small, "pairs:2", "", 0, 0, "no queue gets more"},
		{"what comes and goes", small, "background:30% + probe", "", 0, 0, "no queue gets more"},
		{"nobody listens", slow, "incast:4", "", 0, 0, "has no congestion control"},
	} {
		t.Run(x.name, func(t *testing.T) {
			b, why := setup(t, x.net, x.load, Options{}).bottleneck()
			if x.why != "" {
				if !strings.Contains(why, x.why) {
					t.Errorf("%q, want %q", why, x.why)
				}
				return
			}
			if why != "" {
				t.Fatal(why)
			}
			if got := b.Device + ":" + b.Port; got != x.port || x.flows > 0 && b.Flows != x.flows || b.Alike != x.alike {
				t.Errorf("%s, %d flows, %d alike: %+v", got, b.Flows, b.Alike, b.Taken)
			}
		})
	}
}

// TestWithRamp: the class's queues have another ramp where they mark, others and the Net that was given have what they had.
func TestWithRamp(t *testing.T) {
	n, same := example(t, "small"), example(t, "small")
	r := derive.Ramp{Kmin: 123 * units.KB, Kmax: 456 * units.KB, Pmax: 7 * units.OnePercent}
	m, queues, changed := withRamp(n, []int{3}, r)
	for i := range n.Devices {
		if d := cmp.Diff(same.Devices[i].Policies, n.Devices[i].Policies); d != "" {
			t.Fatalf("the Net that was given changed:\n%s", d)
		}
	}
	marks := 0
	for i := range m.Devices {
		d := &m.Devices[i]
		for j := range d.Ports {
			e := d.PolicyOf(&d.Ports[j]).Queues[3].ECN
			if d.Host || !e.On {
				continue
			}
			if marks++; e != (intent.ECN{On: true, Kmin: r.Kmin, Kmax: r.Kmax, Pmax: r.Pmax}) {
				t.Errorf("%s:%s: %+v", d.Name, d.Ports[j].Name, e)
			}
		}
	}
	if marks == 0 || queues != marks || changed != marks {
		t.Errorf("%d queues, %d changed, %d mark", queues, changed, marks)
	}
	if _, _, changed = withRamp(m, []int{3}, r); changed != 0 {
		t.Errorf("%d changed by what is there", changed)
	}
}

// TestGridRefused: what cannot be is a finding, before anything is run.
func TestGridRefused(t *testing.T) {
	small := example(t, "small")
	unmarked := edit(small, func(d *intent.Device, _ *intent.Port) bool { return !d.Host }, func(p *intent.Policy) { p.Queues[3].ECN = intent.ECN{} })
	for _, x := range []struct {
		name string
		net  *intent.Net
		load string
		grid string
		rule string
		want string
	}{
		{"kmin 0", small, "incast:8", "kmin=0B/100KB", "sim-grid", "kmin 0B"},
		{"kmax 0", small, "incast:8", "kmax=0B", "sim-grid", "kmax 0B"},
		{"pmax 0", small, "incast:8", "pmax=0%", "sim-grid", "pmax 0%"},
		{"pmax above all", small, "incast:8", "pmax=101%", "sim-grid", "pmax 101%"},
		{"longer than the pool", small, "incast:8", "kmin=10GB,kmax=20GB", "sim-grid", "whose pool has"},
		{"too many", small, "incast:8", "kmin=" + strings.Repeat("1KB/", 2000) + "1KB", "sim-grid", "2001 settings"},
		{"none is left", small, "incast:8", "kmin=2MB/3MB,kmax=1MB", "sim-grid", "no setting is left"},
		{"nothing marks", unmarked, "incast:8", "kmin=1KB", "sim-grid-ecn", "does not mark"},
		{"blind", small, "pairs:2", "kmin=1KB/2KB,pmax=1%/2%/3%", "sim-grid-blind", "cannot rank 6 settings"},
	} {
		t.Run(x.name, func(t *testing.T) {
			_, err := ScreenGrid(context.Background(), Job{Net: x.net, Workload: workload(t, x.load), Seed: 1}, grid(t, x.grid), GridOptions{Best: 5})
			var r *Refused
			if !errors.As(err, &r) || len(r.Findings) != 1 || r.Findings[0].Rule != x.rule || !strings.Contains(r.Findings[0].Msg, x.want) || r.Findings[0].Hint == "" {
				t.Errorf("%v %+v", err, r)
			}
		})
	}
}

// TestGrid: the fluid model's rank is the same on any number of goroutines, the first are run and the setting that there is, with the same seeds; and where
// the fluid model sees queues differ by much, packets have them in its order.
func TestGrid(t *testing.T) {
	job := Job{Net: example(t, "small"), Workload: workload(t, "incast:8"), Seed: 3, Options: Options{Duration: 4 * units.Millisecond, Warmup: 4 * units.Millisecond}}
	g := grid(t, "kmin=100KB/800KB,kmax=200KB/1.6MB,pmax=1%/100%")
	var all [2]*GridResult
	for i, workers := range []int{1, 3} {
		told := 0
		r, err := ScreenGrid(context.Background(), job, g, GridOptions{Best: 2, Seeds: 2, Workers: workers, Progress: func(done, of int) { told++ }})
		if err != nil {
			t.Fatal(err)
		}
		if told != len(r.Rows) || r.Skipped != 2 || len(r.Rows) != 7 || len(r.Jobs()) != 6 {
			t.Fatalf("told %d times, %d skipped, %d rows, %d runs", told, r.Skipped, len(r.Rows), len(r.Jobs()))
		}
		runs, err := RunMany(context.Background(), r.Jobs(), workers, nil)
		if err != nil {
			t.Fatal(err)
		}
		if runs[0].Seed != 3 || runs[1].Seed != 4 || runs[4].Seed != 3 {
			t.Error("seeds are not common")
		}
		plain, err := Run(context.Background(), job.Net, job.Workload, job.Options, 3)
		if err != nil || plain.Hash != runs[0].Hash {
			t.Errorf("the first run is not of the fabric as it is: %v", err)
		}
		r.Take(runs, func(r *Result) uint64 { return r.Totals.Lossless })
		all[i] = r
	}
	if d := cmp.Diff(all[0].Rows, all[1].Rows, cmpopts.IgnoreUnexported(GridRow{}, GridFluid{})); d != "" {
		t.Errorf("other goroutines, another answer:\n%s", d)
	}
	r := all[0]
	var ran []*GridRow
	for i := range r.Rows {
		x := &r.Rows[i]
		if x.Fluid.Rank != i+1 || (x.Packets != nil) != (x.Now || len(ran) < 2 && i < 3) {
			t.Errorf("%s: rank %d at %d, packets %v", x, x.Fluid.Rank, i, x.Packets)
		}
		if x.Packets != nil {
			ran = append(ran, x)
		}
	}
	first, now := ran[0], ran[slices.IndexFunc(ran, func(x *GridRow) bool { return x.Now })]
	if first.Fluid.Mean*2 > now.Fluid.Mean || first.Packets.Mean.Mean*2 > now.Packets.Mean.Mean {
		t.Errorf("queues of %s and %s: by the equations %s and %s, by packets %.0f and %.0f", first, now, first.Fluid.Mean, now.Fluid.Mean, first.Packets.Mean.Mean, now.Packets.Mean.Mean)
	}
	if text := strings.Join(r.Says, "\n"); !strings.Contains(text, "most goodput") || !strings.Contains(text, "has the shortest queue: -") {
		t.Error(text)
	}
	if len(r.Doubts()) == 0 {
		t.Error("a queue that swings has no doubts")
	}
}

// TestGridBurst: a burst that passes the pause threshold is a doubt of every row.
func TestGridBurst(t *testing.T) {
	n := edit(example(t, "small"), func(d *intent.Device, _ *intent.Port) bool { return !d.Host }, func(p *intent.Policy) { p.Queues[3].Buffer.Alpha = units.Ratio{Num: 1, Den: 64} })
	r, err := ScreenGrid(context.Background(), Job{Net: n, Workload: workload(t, "incast:8"), Seed: 1}, grid(t, "kmin=100KB,kmax=400KB"), GridOptions{Best: 1, Seeds: 1})
	if err != nil {
		t.Fatal(err)
	}
	for i := range r.Rows {
		x := &r.Rows[i]
		if x.Fluid.Peak <= r.Bottleneck.Pause || !slices.Contains(x.Fluid.Doubts, "burst") && !slices.Contains(x.Fluid.Doubts, "pauses") {
			t.Errorf("%s: peak %s, pauses at %s: %v", x, x.Fluid.Peak, r.Bottleneck.Pause, x.Fluid.Doubts)
		}
	}
}

// TestGridBlind: where the fluid model sees nothing, and few enough are asked for, packets alone answer.
func TestGridBlind(t *testing.T) {
	job := Job{Net: example(t, "small"), Workload: workload(t, "pairs:2"), Seed: 1, Options: Options{Duration: units.Millisecond}}
	r, err := ScreenGrid(context.Background(), job, grid(t, "kmin=100KB/800KB,kmax=3.2MB,pmax=20%"), GridOptions{Best: 5, Seeds: 1})
	if err != nil {
		t.Fatal(err)
	}
	if r.Blind == "" || r.Bottleneck != nil || len(r.Rows) != 2 || !r.Rows[0].Now || len(r.Jobs()) != 2 { // one point is what there is
		t.Fatalf("%+v", r)
	}
	runs, err := RunMany(context.Background(), r.Jobs(), 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Take(runs, func(*Result) uint64 { return 0 })
	if x := r.Rows[1]; x.Fluid != nil || x.Packets == nil || x.Packets.Goodput.Mean == 0 || x.Packets.Max.Mean == 0 {
		t.Errorf("%+v", x)
	}
}

// TestGridCancelled: ranking stops with its context, and a row of which a run is missing has no packets.
func TestGridCancelled(t *testing.T) {
	job := Job{Net: example(t, "small"), Workload: workload(t, "incast:8"), Seed: 1, Options: Options{Duration: units.Millisecond}}
	ctx, cancel := context.WithCancel(context.Background())
	g := grid(t, "kmin=100KB/200KB,kmax=400KB/800KB")
	if _, err := ScreenGrid(ctx, job, g, GridOptions{Best: 1, Workers: 1, Progress: func(int, int) { cancel() }}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	r, err := ScreenGrid(context.Background(), job, g, GridOptions{Best: 1, Seeds: 2})
	if err != nil {
		t.Fatal(err)
	}
	run, err := Run(context.Background(), job.Net, job.Workload, job.Options, 1)
	if err != nil {
		t.Fatal(err)
	}
	r.Take([]*Result{run, run, run, nil}, func(*Result) uint64 { return 0 })
	for i := range r.Rows {
		if x := &r.Rows[i]; (x.Packets != nil) != x.Now {
			t.Errorf("%s: %+v", x, x.Packets)
		}
	}
}
