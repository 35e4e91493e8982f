package main

import (
	"cmp"
	"context"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/fabricctl/fabricctl/model/observe"
	"github.com/fabricctl/fabricctl/tuning"
	"github.com/fabricctl/fabricctl/tuning/sim"
)

// tuneLoad is a workload on a fabric, for trying how well it is tuned.
type tuneLoad struct {
	name     string
	space    *tuning.Space
	workload observe.Workload
	sight    tuning.Sight
	runner   *simRunner
}

// standardLoads are the standard workloads with their fabrics.
func standardLoads() map[string]string {
	return map[string]string{"ap": "bench-ap", "a": "bench-ap", "b": "bench-b", "c": "bench-c"}
}

// loadOf is a standard workload on its fabric.
func loadOf(tb testing.TB, name string) *tuneLoad {
	tb.Helper()
	w, ok, err := tuning.Standard(name, nil)
	if !ok || err != nil {
		tb.Fatal(name, ok, err)
	}
	return loadOn(tb, name, "../../examples/"+standardLoads()[name], w)
}

// loadOn is a workload on a fabric.
func loadOn(tb testing.TB, name, dir string, w observe.Workload) *tuneLoad {
	tb.Helper()
	tb.Setenv("FABRIC_USER", "user")
	tb.Setenv("FABRIC_PASSWORD", "password")
	m, err := (&app{sys: quiet()}).load(context.Background(), []string{dir})
	if err != nil || m.findings.HasErrors() {
		tb.Fatal(err, m.findings)
	}
	s, found := tuning.NewSpace(m.fabric, tuning.SpaceOptions{Workload: w})
	if found.HasErrors() {
		tb.Fatal(found)
	}
	return &tuneLoad{name: name, space: s, workload: w, sight: tuning.SightOf(m.net), runner: newSimRunner(m.fabric, sim.Options{}, "training")}
}

// at is the place of a variable.
func (l *tuneLoad) at(tb testing.TB, name string) int {
	i := slices.IndexFunc(l.space.Vars, func(v tuning.Variable) bool { return v.Name == name })
	if i < 0 {
		tb.Fatalf("%s has no variable %s", l.name, name)
	}
	return i
}

// setting is alpha, kmax, kmin/kmax and pmax in the order of the space.
func (l *tuneLoad) setting(tb testing.TB, alpha, kmax, ratio, pmax float64) tuning.Setting {
	s := slices.Clone(l.space.Base)
	for name, v := range map[string]float64{tuning.Alpha: alpha, tuning.Kmax: kmax, tuning.KminRatio: ratio, tuning.Pmax: pmax} {
		s[l.at(tb, name)] = v
	}
	return s
}

// judged is runs of a setting in the numbers that are judged.
type judged struct {
	good, tail []float64 // bits per second, and p99.9 in seconds, by seed
	sum        float64   // p99.9 of all runs together
	broken     bool      // something was lost, or a watchdog acted
}

// j is ln goodput - 0.1 ln p99.9 by seed.
func (r *judged) j() []float64 {
	x := make([]float64, len(r.good))
	for i := range x {
		x[i] = math.Log(r.good[i]) - 0.1*math.Log(r.tail[i])
	}
	return x
}

func logsOf(x []float64) []float64 {
	y := make([]float64, len(x))
	for i := range x {
		y[i] = math.Log(x[i])
	}
	return y
}

// run runs a setting with n seeds from first on.
func (l *tuneLoad) run(tb testing.TB, s tuning.Setting, first uint64, n int) *judged {
	tb.Helper()
	r := &judged{}
	counts := map[time.Duration]uint64{}
	total := uint64(0)
	for i := range n {
		o, err := l.runner.Run(tb.Context(), tuning.Trial{Setting: s, Change: l.space.Change(s), Seed: first + uint64(i), Workload: l.workload})
		if err != nil {
			tb.Fatal(err)
		}
		m, err := l.sight.Measure(&o)
		if err != nil {
			tb.Fatal(err)
		}
		r.good, r.tail = append(r.good, m.Goodput), append(r.tail, m.P999)
		r.broken = r.broken || m.Drops == nil || *m.Drops > 0 || m.Watchdog != nil && *m.Watchdog > 0
		for _, b := range m.Latency {
			counts[b.From] += b.Count
			total += b.Count
		}
	}
	all := make([]time.Duration, 0, len(counts))
	for from := range counts {
		all = append(all, from)
	}
	slices.Sort(all)
	seen := uint64(0)
	for _, from := range all {
		if seen += counts[from]; float64(seen) >= 0.999*float64(total) {
			r.sum = from.Seconds()
			break
		}
	}
	return r
}

// byMean sorts places by a mean, the largest first.
func byMean(n int, of func(int) float64) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(of(b), of(a)) })
	return order
}
