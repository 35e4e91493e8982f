package tuning

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/model/observe"
)

// seen is an observation of a second in which counters of a device grew.
func seen(grown map[string]map[observe.Port]uint64) *observe.Observation {
	g, p := 1e9, 250*time.Microsecond
	o := &observe.Observation{Goodput: &g, P999: &p, Digest: "abc", Before: map[string]observe.Counters{}, After: map[string]observe.Counters{}}
	for device, values := range grown {
		before, after := map[observe.Port]uint64{}, map[observe.Port]uint64{}
		for port, v := range values {
			before[port], after[port] = 100, 100+v
		}
		o.Before[device] = observe.Counters{At: time.Unix(10, 0), Values: before}
		o.After[device] = observe.Counters{At: time.Unix(11, 0), Values: after}
	}
	return o
}

// TestMeasure: what counts is of the lossless priorities; who stops whom depends on the side and on what is behind a port.
func TestMeasure(t *testing.T) {
	const ms = 1_000_000
	s := Sight{Lossless: []int{3, 4}, Hosts: map[string]bool{"host1": true}, ToHost: map[string][]string{"leaf1": {"p1"}}}
	got, err := s.Measure(seen(map[string]map[observe.Port]uint64{
		"leaf1": {
			{Iface: "p1", Name: observe.Drop.Of(3)}: 2, {Iface: "p1", Name: observe.DropIn.Of(3)}: 2, // the same packets
			{Iface: "p2", Name: observe.DropIn.Of(4)}: 3, {Iface: "p2", Name: observe.DropOut.Of(4)}: 4, // two sides, and nothing that has both
			{Iface: "p2", Name: observe.Drop.Of(0)}:      1000, // lossy
			{Iface: "p1", Name: observe.ECNMarked.Of(3)}: 5, {Iface: "p1", Name: observe.WatchdogStuck.Of(4)}: 1,
			{Iface: "p1", Name: observe.PFCPaused.Of(3)}: 10 * ms, {Iface: "p1", Name: observe.PFCPausing.Of(3)}: 300 * ms, // its host stops it; it stops its host
			{Iface: "p2", Name: observe.PFCPaused.Of(4)}: 400 * ms, {Iface: "p2", Name: observe.PFCPausing.Of(4)}: 900 * ms, // another switch, which counts that itself
		},
		"host1": {
			{Iface: "rdma0", Name: observe.PFCPausing.Of(3)}: 20 * ms, {Iface: "rdma0", Name: observe.PFCPaused.Of(3)}: 310 * ms,
			{Iface: "rdma0", Name: observe.OutOfSequence}: 6, {Iface: "rdma0", Name: observe.NAKReceived}: 7, {Iface: "rdma0", Name: observe.NoBuffer}: 8,
			{Iface: "rdma0", Name: observe.PauseStorm}: 2,
		},
	}))
	if err != nil {
		t.Fatal(err)
	}
	u, f := func(v uint64) *uint64 { return &v }, func(v float64) *float64 { return &v }
	want := &Measure{
		Goodput: 1e9, P999: 250e-6, Digest: "abc", Drops: u(2 + 3 + 4 + 8), Watchdog: u(3), Sequence: u(13), Marked: u(5), Paused: f(0.4), Pausing: f(0.02),
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	// Nothing counted is not zero.
	if got, err = s.Measure(seen(nil)); err != nil || got.Drops != nil || got.Paused != nil || got.Sequence != nil {
		t.Errorf("%+v %v", got, err)
	}
	// Counters that began anew say nothing, and neither does a run that measured nothing.
	o := seen(map[string]map[observe.Port]uint64{"leaf1": {{Iface: "p1", Name: observe.ECNMarked.Of(3)}: 5}})
	o.After["leaf1"].Values[observe.Port{Iface: "p1", Name: observe.ECNMarked.Of(3)}] = 1
	var r *Rejected
	if _, err := s.Measure(o); !errors.As(err, &r) || r.Code != "counters" {
		t.Error(err)
	}
	if _, err := s.Measure(&observe.Observation{}); !errors.As(err, &r) || r.Code != "nothing" {
		t.Error(err)
	}
}

// TestPooled: p99.9 of several runs is of all their values together, and no mean of theirs.
func TestPooled(t *testing.T) {
	at := func(from time.Duration, n uint64) observe.Bucket { return observe.Bucket{From: from, Count: n} }
	a := &arm{runs: []*run{
		{Measure: &Measure{P999: 1, Latency: []observe.Bucket{at(10, 5000)}}},
		{Measure: &Measure{P999: 1, Latency: []observe.Bucket{at(10, 4989), at(20, 2), at(30, 9)}}},
	}}
	if got := a.pooled(0.999); got != time.Duration(20).Seconds() {
		t.Errorf("%v", got)
	}
	a.runs[1].Latency = []observe.Bucket{at(10, 4990), at(30, 10)}
	if got := a.pooled(0.999); got != time.Duration(10).Seconds() {
		t.Errorf("%v", got)
	}
}

// TestPareto: who is beaten in both is not shown, nor who was left after a glance.
func TestPareto(t *testing.T) {
	e := experiment(plane(1, 0, "x"))
	u := newTuner(e, Lab{}, silent{}, nil)
	for i, x := range []struct{ good, tail float64 }{{1, 1}, {2, 2}, {0.9, 1.1}, {3, 0.5}, {0.5, 0.4}} {
		a := u.armOf(Setting{float64(i)})
		for k := range 6 {
			a.runs = append(a.runs, &run{Measure: &Measure{}, good: x.good + 0.001*float64(k), tail: x.tail})
		}
	}
	glance := u.armOf(Setting{9})
	glance.runs = []*run{{Measure: &Measure{}, good: 9}, {Measure: &Measure{}, good: 9}}
	var got []float64
	for _, a := range u.pareto() {
		got = append(got, a.Setting[0])
	}
	if d := cmp.Diff([]float64{3, 4}, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

// TestWithout: a variable that does nothing and is in the result all the same is said to have come along.
func TestWithout(t *testing.T) {
	tu := &tuner{vars: []Variable{{Name: "alpha"}, {Name: "kmax"}, {Name: "pmax"}}, start: &arm{setting: Setting{1, 2, 3}}}
	for _, c := range []struct {
		dull map[int]bool
		best Setting
		want string
	}{
		{map[int]bool{}, Setting{1, 3, 3}, ""},
		{map[int]bool{0: true, 1: true, 2: true}, Setting{1, 2, 3}, ""},
		{map[int]bool{0: true}, Setting{1, 3, 3}, "; alpha does nothing here, as far as this workload goes"},
		{map[int]bool{0: true, 2: true}, Setting{1, 3, 3}, "; alpha and pmax do nothing here, as far as this workload goes"},
		{map[int]bool{0: true, 2: true}, Setting{2, 3, 3}, "; alpha and pmax do nothing here, as far as this workload goes; alpha was moved together with others all the same: to keep what there is, leave it out of --variables"},
		{map[int]bool{0: true, 2: true}, Setting{2, 3, 4}, "; alpha and pmax do nothing here, as far as this workload goes; alpha and pmax were moved together with others all the same: to keep what there is, leave them out of --variables"},
	} {
		tu.decisions = nil
		for i := range c.dull {
			tu.decisions = append(tu.decisions, Decision{Step: "ladder", Verdict: NoEffect, Variable: tu.vars[i].Name})
		}
		if got := tu.without(c.best); got != c.want {
			t.Errorf("%v, %v: %q, want %q", c.dull, c.best, got, c.want)
		}
	}
}
