package sim

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/tuning/sim/engine"
)

// setup builds a run without running it.
func setup(t *testing.T, n *intent.Net, load string, o Options) *Setup {
	t.Helper()
	s, err := Build(n, workload(t, load), o, 1)
	var refused *Refused
	if errors.As(err, &refused) {
		t.Fatal(refused.Findings)
	}
	return s
}

// TestWays: every way between two NICs goes up and then down, is as short as any, and takes no link between peers as long as there
// is another.
func TestWays(t *testing.T) {
	for _, name := range []string{"small", "rail8", "three-tier", "mixed", "storage-and-training"} {
		s := setup(t, example(t, name), "single", Options{})
		tier := func(sw int) int { return s.switches[sw].Tier }
		for a := range s.nics {
			for b := range s.nics {
				if a == b || !s.leads(a, b) {
					continue // planes and rails have no way between them
				}
				var walk func(sw, hops int, fell bool) int
				walk = func(sw, hops int, fell bool) int {
					lengths := map[int]bool{}
					for _, p := range s.ways.nexts(sw, b) {
						peer := s.Config.Ports[p].Peer
						next := s.Config.Ports[peer].Switch
						if next == engine.None {
							return hops
						}
						down := tier(next) < tier(sw)
						if fell && !down || s.ports[p].port.Role == "peer-link" {
							t.Fatalf("%s: from %s to %s by %s", name, s.name(s.nics[a].port), s.name(s.nics[b].port), s.name(int(p)))
						}
						lengths[walk(next, hops+1, down)] = true
					}
					if len(lengths) != 1 {
						t.Fatalf("%s: ways from %s to %s have lengths %v", name, s.name(s.nics[a].port), s.name(s.nics[b].port), lengths)
					}
					for n := range lengths {
						return n
					}
					return 0
				}
				hops := walk(s.nics[a].leaf, 1, false)
				if got := len(s.way(a, b)); got != hops+1 {
					t.Errorf("%s: a way of %d ports, and %d switches on it", name, got, hops)
				}
			}
		}
	}
}

// TestUneven: two flows that hash to one of two ways are told from two that do not.
func TestUneven(t *testing.T) {
	n := example(t, "small")
	said := 0
	for seed := range uint64(8) {
		r := run(t, n, "single,hosts=host1,to=host9 + single,hosts=host2,to=host10", Options{Duration: units.Millisecond}, seed)
		collide := r.busyPart(r.setup.mustFind(t, "leaf1", "Ethernet64")) > 0.9 || r.busyPart(r.setup.mustFind(t, "leaf1", "Ethernet72")) > 0.9
		if says := strings.Contains(strings.Join(r.Why, "\n"), "ways up from leaf1 are used unevenly: leaf1:Ethernet"); says != collide {
			t.Errorf("seed %d: %s\n%s", seed, r.Totals.Goodput, strings.Join(r.Why, "\n"))
		} else if says {
			said++
		}
	}
	if said == 0 || said == 8 {
		t.Errorf("%d of 8 seeds collide", said)
	}
}

// TestPeerLink: a link between peers is taken when nothing else leads there.
func TestPeerLink(t *testing.T) {
	n := example(t, "storage-and-training")
	lost := faults(t, "down:leaf1:uplink-1", "down:leaf1:uplink-2")
	r := run(t, n, "single,hosts=host1,to=host3,bytes=1MB", Options{Faults: lost}, 1)
	if r.Totals.Completed != 1 {
		t.Fatal(r.Why)
	}
	s := setup(t, n, "single", Options{Faults: lost})
	for i := range s.nics {
		if x := &s.ports[s.nics[i].port]; x.dev.Name == "host3" {
			if next := s.ways.nexts(s.nics[0].leaf, i); len(next) != 1 || s.ports[next[0]].port.Name != "peer-1" {
				t.Errorf("from leaf1 to host3 by %v", next)
			}
		}
	}
}

// TestRunMany: results come in the order of the jobs, and one error stops them all.
func TestRunMany(t *testing.T) {
	n := example(t, "small")
	var jobs []Job
	for seed := range uint64(6) {
		jobs = append(jobs, Job{Net: n, Workload: workload(t, "permutation,bytes=50KB"), Seed: seed})
	}
	calls := 0
	rs, err := RunMany(context.Background(), jobs, 2, func(i int, r *Result) {
		calls++
		if r.Seed != uint64(i) {
			t.Errorf("job %d has the result of seed %d", i, r.Seed)
		}
	})
	if err != nil || calls != len(jobs) {
		t.Fatal(err, calls)
	}
	for i, r := range rs {
		if one := run(t, n, "permutation,bytes=50KB", Options{}, uint64(i)); r.Seed != uint64(i) || r.Hash != one.Hash {
			t.Errorf("result %d is of seed %d, hash %s, alone %s", i, r.Seed, r.Hash, one.Hash)
		}
	}
	jobs[1].Workload = workload(t, "incast:99")
	var refused *Refused
	if _, err := RunMany(context.Background(), jobs, 2, nil); !errors.As(err, &refused) {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := RunMany(ctx, jobs, 2, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// TestPerftest: the workloads of perftest come to what the links allow.
func TestPerftest(t *testing.T) {
	n := example(t, "small")
	r := run(t, n, "single,size=64KiB,depth=128", Options{}, 1)
	if g := r.Totals.Goodput; g < 390*units.Gbps || g > 393*units.Gbps { // 400 * 4096 / (4096 + 58 + 24)
		t.Errorf("ib_write_bw: %s", g)
	}
	if both := run(t, n, "single,size=64KiB,depth=128,both", Options{}, 1); both.Totals.Goodput < 2*r.Totals.Goodput*97/100 {
		t.Errorf("ib_write_bw -b: %s", both.Totals.Goodput)
	}
	if qps := run(t, n, "single,size=64KiB,depth=16,qps=4", Options{}, 1); len(qps.Flows) != 4 || qps.Totals.Fairness < 0.999 || qps.Totals.Goodput < r.Totals.Goodput*99/100 {
		t.Errorf("ib_write_bw -q 4: %d flows, %s, fairness %v", len(qps.Flows), qps.Totals.Goodput, qps.Totals.Fairness)
	}
	one := run(t, n, "single,size=64KiB,depth=1", Options{}, 1) // 2.4 us for each message, of which 1.3 us are the bytes and the rest the way there and back
	if one.Totals.Goodput > r.Totals.Goodput*2/3 || one.Totals.Goodput < r.Totals.Goodput/5 {
		t.Errorf("ib_write_bw -t 1: %s", one.Totals.Goodput)
	}
	read := run(t, n, "single,size=64KiB,depth=128,op=read", Options{}, 1)
	if f := read.Flows[0]; f.From.Device != "host9" || f.To.Device != "host1" || read.Totals.Goodput < r.Totals.Goodput*95/100 {
		t.Errorf("ib_read_bw: from %s to %s, %s", f.From, f.To, read.Totals.Goodput)
	}
	small := run(t, n, "single,size=64KiB,depth=128,mtu=1024B", Options{}, 1)
	if g := small.Totals.Goodput; g < 368*units.Gbps || g > 371*units.Gbps { // 400 * 1024 / (1024 + 58 + 24)
		t.Errorf("ib_write_bw -m 1024: %s", g)
	}
	lat := run(t, n, "single,latency,size=2B", Options{}, 1)
	// Half of the way there and back: 90 m of cable are 450 ns, and small frames are short.
	if p := lat.Totals.Latency; p.Count < 1000 || p.P50 < 450 || p.P50 > 470 {
		t.Errorf("ib_write_lat: %+v", p)
	}
	far := run(t, n, "single,latency,size=2B,op=read", Options{}, 1)
	if p := far.Totals.Latency; p.P50 < 900 || p.P50 > 940 {
		t.Errorf("ib_read_lat: %+v", p)
	}
}

// TestProbes: probes come at the mean rate that was asked for, and their times are those of packets that wait for nothing.
func TestProbes(t *testing.T) {
	r := run(t, example(t, "small"), "probe,every=2us", Options{}, 1)
	if n := r.Totals.Latency.Count; n < 4700 || n > 5300 {
		t.Errorf("%d probes in 10 ms", n)
	}
	if p := r.Totals.Latency; p.P50 < 500 || p.P99 > 1100 {
		t.Errorf("%+v", p)
	}
	o := r.Observation()
	var counted uint64
	for _, b := range o.Latency {
		counted += b.Count
	}
	if o.P999 == nil || counted != r.Totals.Latency.Count {
		t.Errorf("%d times counted", counted)
	}
}

// TestBackground: a background loads the links as it was asked to.
func TestBackground(t *testing.T) {
	r := run(t, example(t, "small"), "background:20%,bytes=64KB", Options{Duration: 2 * units.Millisecond}, 1)
	want := units.BitRate(32) * 400 * units.Gbps / 5
	if g := r.Totals.Goodput; g < want*90/100 || g > want*110/100 {
		t.Errorf("%s of %s", g, want)
	}
}

// TestTried: the workloads that tuning was tried on say what they said there: a victim, bursts and probes.
func TestTried(t *testing.T) {
	r := run(t, example(t, "small"), "incast:8,to=host17 + incast:16,to=host17,bytes=64KiB,spread=2us,every=500us,jitter=10% + victim:1 + probe,to=host17,bytes=1024B,every=2us,for=5ms,warmup=1ms", Options{}, 1)
	if len(r.Parts) != 4 || r.Parts[1].Flows != 16*12 && r.Parts[1].Flows != 16*13 || r.Parts[2].Goodput == 0 || r.Parts[3].Latency.Count < 2000 {
		t.Errorf("%+v", r.Parts)
	}
	v := r.Flows[len(r.Flows)-1]
	for i := range r.Flows {
		if r.Flows[i].Part == "victim" {
			v = r.Flows[i]
		}
	}
	if v.From.Device != r.Flows[0].From.Device || v.To.Device == "host17" {
		t.Errorf("victim from %s to %s", v.From, v.To)
	}
	c := run(t, example(t, "small"), "permutation,across + incast:8,across,random,bytes=64KiB,spread=2us,every=500us,jitter=50% + victim:4 + probe,every=2us", Options{Duration: 2 * units.Millisecond}, 1)
	if len(c.Parts) != 4 || c.Parts[0].Flows != 32 || c.Parts[2].Flows != 4 {
		t.Errorf("%+v", c.Parts)
	}
}

// TestSeries: rows come as often as asked, and what they say adds up to the result.
func TestSeries(t *testing.T) {
	r := run(t, example(t, "small"), "incast:4", Options{Sample: 100 * units.Microsecond, Duration: 2 * units.Millisecond}, 1)
	s := r.Series
	if s == nil || len(s.Rows) < 29 || len(s.Flows) != 4 || len(s.Queues) != 1 || s.Queues[0].Device != "leaf1" {
		t.Fatalf("%+v", s)
	}
	var most units.Bytes
	var marked uint64
	for i, row := range s.Rows {
		if i > 0 && row.At-s.Rows[i-1].At != 100*units.Microsecond {
			t.Errorf("row %d is %s after the one before", i, row.At-s.Rows[i-1].At)
		}
		if most = max(most, row.Queues[0]); row.At > r.Warmup {
			marked += row.Marked
		}
	}
	if most == 0 || marked > r.Totals.Marked {
		t.Errorf("queue at most %s, %d marked of %d", most, marked, r.Totals.Marked)
	}
	w := run(t, example(t, "small"), "incast:4", Options{Sample: 100 * units.Microsecond, Duration: units.Millisecond, Watch: []Ref{{"leaf2", "Ethernet64", 3}}}, 1)
	if len(w.Series.Queues) != 1 || w.Series.Queues[0].String() != "leaf2:Ethernet64" {
		t.Errorf("%+v", w.Series.Queues)
	}
}
