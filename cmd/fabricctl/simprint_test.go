package main

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/fabricctl/fabricctl/cmd/show"
	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/tuning/sim"
)

// TestProgress: what is said of long work, how often, and when nothing is.
func TestProgress(t *testing.T) {
	var b strings.Builder
	now := time.Unix(0, 0)
	p := &progress{screen: &show.Screen{To: &b}, what: "simulating pod1", now: func() time.Time { return now }, start: now, part: make([]float64, 1), said: make([]string, 1)}
	tell := p.of(0)
	for range 40 {
		now = now.Add(time.Second)
		tell(units.Duration(now.Sub(p.start)/1000), 100*units.Millisecond)
	}
	want := "simulating pod1: 10ms of 100ms simulated, about 1m30s left\nsimulating pod1: 20ms of 100ms simulated, about 1m20s left\n" +
		"simulating pod1: 30ms of 100ms simulated, about 1m10s left\nsimulating pod1: 40ms of 100ms simulated, about 1m0s left\n"
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", &b, want)
	}
}

// TestProgressMany: of several runs it is said how many have ended, and of one without an end how far it is.
func TestProgressMany(t *testing.T) {
	p := &progress{what: "simulating pod1", now: time.Now, part: []float64{1, 0.5, 0, 0}, said: make([]string, 4)}
	if got, want := p.line(3*time.Second), "simulating pod1: 1 of 4 runs, about 5s left"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	p = &progress{what: "simulating pod1", now: time.Now, part: []float64{0}, said: []string{"3ms simulated"}}
	if got, want := p.line(3*time.Second), "simulating pod1: 3ms simulated"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestSpread: mean, ends and standard deviation of known numbers; what no run says anything about is left out.
func TestSpread(t *testing.T) {
	var runs []*sim.Result
	for _, g := range []units.BitRate{2, 4, 4, 4, 5, 5, 7, 9} {
		runs = append(runs, &sim.Result{Totals: sim.Totals{Goodput: g}})
	}
	got := spreads(runs, promise{})
	if s := got[0]; s.Name != "goodput" || s.Mean != 5 || s.Least != 2 || s.Most != 9 || math.Abs(s.SD-math.Sqrt(32./7)) > 1e-12 {
		t.Errorf("%+v", s)
	}
	for _, s := range got {
		if strings.HasPrefix(s.Name, "latency") || s.Name == "fairness" {
			t.Errorf("%s: nothing was measured", s.Name)
		}
	}
}

// TestRounded: numbers are cut to what a model's answer is worth, and never to another magnitude.
func TestRounded(t *testing.T) {
	for _, x := range []struct{ got, want string }{
		{lasting(0), "0ns"},
		{lasting(999_499), "999us"},
		{lasting(999_501), "1ms"},
		{lasting(1_234_567), "1.23ms"},
		{lasting(3_000_000_000_000), "3000s"},
		{rate(94_812_345_678), "94.8Gbps"},
		{rate(1_600_000_000_000), "1.6Tbps"},
		{rate(1), "1bps"},
		{size(1_299_999), "1.3MB"},
		{size(0), "0B"},
	} {
		if x.got != x.want {
			t.Errorf("%s, want %s", x.got, x.want)
		}
	}
}

// TestVerdict: what makes a run end with exit 1. That flows got nothing through is shown by the script about what is broken.
func TestVerdict(t *testing.T) {
	for _, x := range []struct {
		r    sim.Result
		want string
	}{
		{sim.Result{End: sim.End{Why: "stop"}, Totals: sim.Totals{Drops: 9}}, ""},
		{sim.Result{End: sim.End{Why: "done"}, Totals: sim.Totals{Lossless: 2}}, "2 packets of lossless classes were lost"},
		{sim.Result{Classes: []sim.Group{{Name: "training", Drops: 2}, {Name: "default", Drops: 9}}}, "2 packets of lossless classes were lost"},
		{sim.Result{End: sim.End{Why: "deadlock", Words: "a waits for b"}, Totals: sim.Totals{Lossless: 2}}, "the traffic stood still: a waits for b"},
		{sim.Result{End: sim.End{Why: "idle", Words: "lost"}, Totals: sim.Totals{Unfinished: 1}}, "1 flow can never end: lost"},
		{sim.Result{End: sim.End{Why: "idle"}}, ""},
	} {
		got := ""
		if err := simVerdict(&x.r, promise{"training": true}); err != nil {
			got = err.Error()
		}
		if got != x.want {
			t.Errorf("%q, want %q", got, x.want)
		}
	}
}

// TestTableText: what a spreadsheet would run is text.
func TestTableText(t *testing.T) {
	got := string(table([]string{"a", "b"}, 1, func(int) []string { return []string{"=1+1", `x,"y`} }))
	if want := "a,b\n'=1+1,\"x,\"\"y\"\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
