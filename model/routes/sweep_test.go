package routes

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/fabricctl/fabricctl/model/intent"
)

// outcome is what a loss leads to, without names.
func outcome(f *Failure) string {
	if f == nil {
		return "nothing"
	}
	return fmt.Sprint(f.During, len(f.Cycle), f.Size)
}

// allLosses are the losses that matter, each by itself, with the element that stands for it.
func allLosses(t *Topology) (ls []loss, elements []int32) {
	o := t.symmetries()
	for v := range t.nodes {
		if !t.nodes[v].host {
			ls, elements = append(ls, loss{outage{int32(v), -1}, 1}), append(elements, o.find(int32(v)))
		}
	}
	for x := range t.bundles {
		if t.lower(int32(x)) && t.matters(int32(x)) {
			ls, elements = append(ls, loss{outage{-1, int32(x)}, 1}), append(elements, o.find(o.link(int32(x))))
		}
	}
	return ls, elements
}

// drawPods is a net with symmetries, some of them broken: pods of leaves and spines below common spines, with bonds, peer
// links and listed routes now and then.
func drawPods(t *rapid.T) *intent.Net {
	b := newBuilder()
	b.net.Routing = rapid.SampledFrom([]intent.Routing{intent.UpDown, intent.ShortestPath}).Draw(t, "routing")
	pods, spines, leaves := rapid.IntRange(1, 3).Draw(t, "pods"), rapid.IntRange(1, 3).Draw(t, "spines"), rapid.IntRange(1, 4).Draw(t, "leaves")
	supers, parallel := rapid.IntRange(1, 2).Draw(t, "supers"), rapid.IntRange(1, 2).Draw(t, "parallel")
	bonds, peers := rapid.Bool().Draw(t, "bonds"), rapid.Bool().Draw(t, "peers")
	for s := range supers {
		b.device(fmt.Sprint("super", s), 3)
	}
	for p := range pods {
		for s := range spines {
			b.device(fmt.Sprint("p", p, "s", s), 2)
			for u := range supers {
				b.link(fmt.Sprint("p", p, "s", s), fmt.Sprint("super", u), 8)
			}
		}
		for l := range leaves {
			leaf := fmt.Sprint("p", p, "l", l)
			b.device(leaf, 1)
			for s := range spines {
				for range parallel {
					b.link(leaf, fmt.Sprint("p", p, "s", s), 8)
				}
			}
			if l%2 == 1 && peers {
				b.link(leaf, fmt.Sprint("p", p, "l", l-1), 8)
			}
			for h := range 2 {
				host := fmt.Sprint("p", p, "h", l, "x", h)
				b.device(host, 0)
				q, _ := b.link(host, leaf, 8)
				if l%2 == 1 && bonds {
					q.Bond = "b"
					q, _ = b.link(host, fmt.Sprint("p", p, "l", l-1), 8)
					q.Bond = "b"
				}
			}
		}
	}
	for range rapid.IntRange(0, 2).Draw(t, "odd links") {
		x := fmt.Sprint("p", rapid.IntRange(0, pods-1).Draw(t, "pod"), "l", rapid.IntRange(0, leaves-1).Draw(t, "leaf"))
		y := fmt.Sprint("p", rapid.IntRange(0, pods-1).Draw(t, "pod"), rapid.SampledFrom([]string{"s0", "l0"}).Draw(t, "to"))
		if x != y {
			b.link(x, y, rapid.SampledFrom([]uint8{8, 24, 0}).Draw(t, "mask"))
		}
	}
	if rapid.Bool().Draw(t, "listed") && leaves > 1 {
		b.net.Routes = []intent.Route{{
			Hops: []intent.Hop{{Device: "p0h0x0", Priority: 3}, {Device: "p0l0", Priority: 3}, {Device: "p0s0", Priority: 3}, {Device: "p0l1", Priority: 3}},
			End:  "p0h1x0",
		}}
	}
	return b.done()
}

// TestSymmetriesLoseNothing: each loss does what the one that stands for it does.
func TestSymmetriesLoseNothing(t *testing.T) {
	look := func(t *rapid.T, n *intent.Net) {
		top := Of(n)
		s := sweep{t: top}
		s.steady()
		w, h := newWalker(top), newHolds(top)
		ls, elements := allLosses(top)
		first := map[int32]string{}
		for i, l := range ls {
			got := outcome(s.lose(w, h, l))
			if want, ok := first[elements[i]]; ok && want != got {
				t.Fatalf("loss %+v: %s, but what stands for it: %s", l, got, want)
			}
			first[elements[i]] = got
		}
		found, err := top.Sweep(context.Background(), nil, 0)
		if err != nil || found.Classes != len(first) {
			t.Fatalf("%d kinds, %v; want %d", found.Classes, err, len(first))
		}
		bad := 0
		for _, o := range first {
			if o != "nothing" {
				bad++
			}
		}
		if len(found.Failures) != bad {
			t.Fatalf("%d failures, want %d", len(found.Failures), bad)
		}
	}
	t.Run("any", rapid.MakeCheck(func(t *rapid.T) { look(t, drawNet(t)) }))
	t.Run("pods", rapid.MakeCheck(func(t *rapid.T) { look(t, drawPods(t)) }))
}

// TestKindsOfLosses: what is alike is found to be.
func TestKindsOfLosses(t *testing.T) {
	bonded := clos(4, 8, 0)
	for l := range 8 {
		for h := range 3 {
			host := fmt.Sprint("h", l, "x", h)
			bonded.device(host, 0)
			for _, leaf := range []int{l, l ^ 1} {
				p, _ := bonded.link(host, fmt.Sprint("l", leaf), 8)
				p.Bond = "b"
			}
		}
	}
	pods := newBuilder()
	for s := range 4 {
		pods.device(fmt.Sprint("super", s), 3)
	}
	for p := range 3 {
		for s := range 2 {
			spine := fmt.Sprint("p", p, "s", s)
			pods.device(spine, 2)
			for u := range 2 { // of its own group
				pods.link(spine, fmt.Sprint("super", s*2+u), 8)
			}
		}
		for l := range 4 {
			leaf, host := fmt.Sprint("p", p, "l", l), fmt.Sprint("p", p, "h", l)
			pods.device(leaf, 1)
			pods.device(host, 0)
			pods.link(host, leaf, 8)
			for s := range 2 {
				pods.link(leaf, fmt.Sprint("p", p, "s", s), 8)
			}
		}
	}
	odd := clos(16, 64, 2)
	odd.link("l7", "s3", 8) // a second link
	for name, x := range map[string]struct {
		b    *netBuilder
		want Losses
	}{
		"clos":     {clos(16, 64, 2), Losses{Links: 16*64 + 128, Switches: 80, Classes: 3}},
		"one more": {odd, Losses{Links: 16*64 + 129, Switches: 80, Classes: 7}}, // l7, s3 and others; of links those of l7, of s3, and others
		"bonds":    {bonded, Losses{Links: 4*8 + 48, Switches: 12, Classes: 4}},
		"pods":     {pods, Losses{Links: 12 + 24 + 12, Switches: 4 + 6 + 12, Classes: 5}},
	} {
		got, err := Of(x.b.done()).Sweep(context.Background(), nil, 0)
		if err != nil || got.Links != x.want.Links || got.Switches != x.want.Switches || got.Classes != x.want.Classes || len(got.Failures) != 0 {
			t.Errorf("%s: got %+v, %v, want %+v", name, got, err, x.want)
		}
	}
}

// TestNamesDoNotMatter: other names in another order give the same result.
func TestNamesDoNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := drawNet(t)
		if rapid.Bool().Draw(t, "pods") {
			n = drawPods(t)
		}
		m := renamed(n, rapid.Uint64().Draw(t, "seed"))
		var got [2]string
		for i, x := range []*intent.Net{n, m} {
			top := Of(x)
			r := top.Steady()
			l, _ := top.Sweep(context.Background(), nil, 0)
			got[i] = fmt.Sprint(r.Buffers, r.Edges, r.Priorities, l.Links, l.Switches)
			var parts []string
			for _, c := range r.Components {
				parts = append(parts, fmt.Sprint("steady ", len(c.Cycle), c.Size, len(c.Buffers)))
			}
			losses := map[string]int{}
			for _, f := range l.Failures {
				losses[fmt.Sprint(f.During, f.Device != "", len(f.Cycle), f.Size)] += f.Alike
			}
			got[i] += strings.Join(parts, ",") + fmt.Sprint(losses)
		}
		if got[0] != got[1] {
			t.Fatalf("got %s\nrenamed %s", got[0], got[1])
		}
	})
}

// renamed is n with other names of devices and ports, in another order.
func renamed(n *intent.Net, seed uint64) *intent.Net {
	r := rand.New(rand.NewPCG(seed, 0))
	names, order := map[string]string{"": ""}, r.Perm(len(n.Devices))
	for i := range n.Devices {
		names[n.Devices[i].Name] = fmt.Sprint("d", order[i])
	}
	port := func(s string) string { return strings.Map(func(c rune) rune { return c ^ 1 }, s) }
	m := n.With(nil)
	m.Routes = nil
	for _, x := range n.Routes {
		y := intent.Route{End: names[x.End]}
		for _, h := range x.Hops {
			y.Hops = append(y.Hops, intent.Hop{Device: names[h.Device], Port: port(h.Port), Priority: h.Priority})
		}
		m.Routes = append(m.Routes, y)
	}
	for _, d := range n.Devices {
		d.Name = names[d.Name]
		ps := make([]intent.Port, len(d.Ports))
		for i, at := range r.Perm(len(ps)) {
			p := d.Ports[at]
			p.Name, p.Peer, p.PeerPort = port(p.Name), names[p.Peer], port(p.PeerPort)
			ps[i] = p
		}
		d.Ports = ps
		m.Devices = append(m.Devices, d)
	}
	r.Shuffle(len(m.Devices), func(i, j int) { m.Devices[i], m.Devices[j] = m.Devices[j], m.Devices[i] })
	return m
}

// A call that is cancelled ends with the reason.
func TestSweepEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Of(clos(2, 4, 1).done()).Sweep(ctx, nil, 0); err != context.Canceled {
		t.Errorf("got %v", err)
	}
}

func BenchmarkSteady16x64(b *testing.B) {
	benchmark(b, intent.UpDown, func(t *Topology) { t.Steady() })
}

func BenchmarkSweep16x64(b *testing.B) { benchmark(b, intent.UpDown, every) }

func BenchmarkSweepShortest16x64(b *testing.B) { benchmark(b, intent.ShortestPath, every) }

// BenchmarkPlainSweep16x64 looks at every loss by itself: what symmetries save.
func BenchmarkPlainSweep16x64(b *testing.B) {
	benchmark(b, intent.UpDown, func(t *Topology) {
		s := sweep{t: t}
		s.steady()
		w, h := newWalker(t), newHolds(t)
		ls, _ := allLosses(t)
		for _, l := range ls {
			s.lose(w, h, l)
		}
	})
}

func every(t *Topology) { t.Sweep(context.Background(), nil, 0) }

func benchmark(b *testing.B, r intent.Routing, do func(*Topology)) {
	n := clos(16, 64, 32).done()
	n.Routing = r
	b.ReportAllocs()
	for b.Loop() {
		do(Of(n))
	}
}
