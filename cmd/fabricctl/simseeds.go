package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"github.com/fabricctl/fabricctl/cmd/show"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/tuning/sim"
)

// seedsJSON is the result of sim --seeds.
type seedsJSON struct {
	Schema   string        `json:"schema"`
	Fabric   string        `json:"fabric"`
	Workload string        `json:"workload"`
	Seeds    []uint64      `json:"seeds"`
	Spread   []spreadJSON  `json:"spread"`
	Runs     []*sim.Result `json:"runs"` // in the order of Seeds
}

// spreadJSON is how far a figure is apart from run to run.
type spreadJSON struct {
	Name  string  `json:"name"`
	Unit  string  `json:"unit"` // "bps", "ns", "bytes" or "" for counts
	Mean  float64 `json:"mean"`
	Least float64 `json:"least"`
	Most  float64 `json:"most"`
	SD    float64 `json:"sd"` // standard deviation of the runs
}

// simSeeds runs a job with several seeds, as many at a time as there are cores.
func (a *app) simSeeds(ctx context.Context, job sim.Job, o simFlags, json bool) error {
	jobs := make([]sim.Job, o.seeds)
	told, p := a.progressOf(job.Net.Fabric, o.seeds), promised(job.Net)
	for i := range jobs {
		jobs[i] = job
		jobs[i].Seed = job.Seed + uint64(i)
		jobs[i].Options.Progress = told.of(i)
		if json {
			jobs[i].Options.Sample = o.sample
		}
	}
	runs, err := sim.RunMany(ctx, jobs, 0, func(i int, r *sim.Result) {
		r.Release()
		told.done(i)
	})
	told.end()
	runs = slices.DeleteFunc(runs, func(r *sim.Result) bool { return r == nil || r.End.Why == "interrupted" })
	if len(runs) == 0 {
		return a.simRefused(ctx, err)
	}
	a.simFindings(runs[0].Findings)
	s := seedsJSON{Schema: "fabricctl/sim-seeds/v1", Fabric: runs[0].Fabric, Workload: runs[0].Workload, Spread: spreads(runs, p), Runs: runs}
	for _, r := range runs {
		s.Seeds = append(s.Seeds, r.Seed)
	}
	if json {
		if err := a.printJSON(s); err != nil {
			return err
		}
	} else {
		printSeeds(a.sys.out, &s, p, o.details)
	}
	if err != nil && ctx.Err() != nil {
		return interrupted(ctx, fmt.Errorf("%w; what is shown is of the %s that had ended", context.Cause(ctx), diag.Count(len(runs), "run")))
	}
	if err != nil {
		return a.simRefused(ctx, err)
	}
	bad := 0
	for _, r := range runs {
		if e := simVerdict(r, p); e != nil {
			err, bad = e, bad+1
		}
	}
	if bad > 1 {
		return fail(exitError, "", "%d of %d runs went wrong; of the last of them: %w", bad, len(runs), err)
	}
	return err
}

// spreads are the figures of several runs.
func spreads(runs []*sim.Result, p promise) []spreadJSON {
	var out []spreadJSON
	for _, f := range figures(p) {
		if !slices.ContainsFunc(runs, f.has) {
			continue
		}
		s := spreadJSON{Name: f.name, Unit: f.unit, Least: math.Inf(1), Most: math.Inf(-1)}
		for _, r := range runs {
			v := f.of(r)
			s.Mean += v / float64(len(runs))
			s.Least, s.Most = min(s.Least, v), max(s.Most, v)
		}
		for _, r := range runs {
			s.SD += (f.of(r) - s.Mean) * (f.of(r) - s.Mean)
		}
		if len(runs) > 1 {
			s.SD = math.Sqrt(s.SD / float64(len(runs)-1))
		} else {
			s.SD = 0
		}
		out = append(out, s)
	}
	return out
}

// figure is a number of a run that is compared: between seeds, and between fabrics.
type figure struct {
	name, unit string
	of         func(*sim.Result) float64
	has        func(*sim.Result) bool // it says something of the run
}

// figures are what runs are compared by, the most important first.
func figures(p promise) []figure {
	always := func(*sim.Result) bool { return true }
	latency := func(r *sim.Result) bool { return r.Totals.Latency.Count > 0 }
	ended := func(r *sim.Result) bool { return r.Totals.Completion.Count > 0 }
	return []figure{
		{"goodput", "bps", func(r *sim.Result) float64 { return float64(r.Totals.Goodput) }, always},
		{"fairness", "", func(r *sim.Result) float64 { return r.Totals.Fairness }, func(r *sim.Result) bool { return r.Totals.Fairness > 0 }},
		{"latency p50", "ns", func(r *sim.Result) float64 { return float64(r.Totals.Latency.P50) }, latency},
		{"latency p99", "ns", func(r *sim.Result) float64 { return float64(r.Totals.Latency.P99) }, latency},
		{"latency p99.9", "ns", func(r *sim.Result) float64 { return float64(r.Totals.Latency.P999) }, latency},
		{"completion p50", "ns", func(r *sim.Result) float64 { return float64(r.Totals.Completion.P50) }, ended},
		{"completion p99", "ns", func(r *sim.Result) float64 { return float64(r.Totals.Completion.P99) }, ended},
		{"completion p99.9", "ns", func(r *sim.Result) float64 { return float64(r.Totals.Completion.P999) }, ended},
		{"flows not ended", "", func(r *sim.Result) float64 { return float64(r.Totals.Unfinished) }, func(r *sim.Result) bool { return r.Totals.Unfinished > 0 }},
		{"fullest queue", "bytes", fullest, always},
		{"marked packets", "", func(r *sim.Result) float64 { return float64(r.Totals.Marked) }, always},
		{"pauses", "", func(r *sim.Result) float64 { return float64(r.Totals.Pauses) }, always},
		{"time stood still", "ns", func(r *sim.Result) float64 { return float64(r.Totals.PausedTime) }, always},
		{"lost packets", "", func(r *sim.Result) float64 { return float64(r.Totals.Drops) }, always},
		{"of lossless classes", "", func(r *sim.Result) float64 { return float64(p.broken(r)) }, func(*sim.Result) bool { return len(p) > 0 }},
		{"sent again", "", func(r *sim.Result) float64 { return float64(r.Totals.Resent) }, always},
	}
}

// fullest is the most that a queue of a switch held.
func fullest(r *sim.Result) float64 {
	most := units.Bytes(0)
	for i := range r.Queues {
		if !r.Queues[i].Host {
			most = max(most, r.Queues[i].Max)
		}
	}
	return float64(most)
}

// figureText is a figure in its unit.
func figureText(unit string, v float64) string {
	whole := math.Round(v)
	switch unit {
	case "bps":
		return rate(units.BitRate(whole))
	case "ns":
		return lasting(units.Duration(whole))
	case "bytes":
		return size(units.Bytes(whole))
	}
	decimals := 3
	if whole == v || v >= 1000 {
		decimals = 0
	} else if v >= 10 {
		decimals = 1
	}
	return strconv.FormatFloat(v, 'f', decimals, 64)
}

// printSeeds writes how far runs are apart, and with details each of them.
func printSeeds(w io.Writer, s *seedsJSON, p promise, details bool) {
	r := s.Runs[0]
	fmt.Fprintf(w, "%s, %s of %s, seeds %d to %d: %s\n", show.Paint(show.Bold, simTitle(r)), diag.Count(len(s.Runs), "run"), howLong(r),
		s.Seeds[0], s.Seeds[len(s.Seeds)-1], modelsAnswer)
	section(w, "over all runs", []string{"", "mean", "least", "most", "spread"}, len(s.Spread), len(s.Spread), func(i int) []string {
		x := &s.Spread[i]
		apart := "none"
		if x.SD > 0 && x.Mean != 0 {
			apart = strconv.FormatFloat(100*x.SD/math.Abs(x.Mean), 'f', 1, 64) + "%"
		}
		return []string{x.Name, figureText(x.Unit, x.Mean), figureText(x.Unit, x.Least), figureText(x.Unit, x.Most), apart}
	})
	fmt.Fprintln(w, "\nSpread is the standard deviation of the runs in percent of their mean: two settings that differ by less are not told apart by one run each.")
	for _, r := range s.Runs {
		if details {
			fmt.Fprintln(w)
			printSim(w, r, p, false)
		} else if e := simVerdict(r, p); e != nil {
			show.Hang(w, fmt.Sprintf("seed %d: ", r.Seed), show.Paint(show.Red, e.Error()))
		}
	}
	if !details {
		sentences(w, fmt.Sprintf("why, with seed %d", r.Seed), r.Why)
		sentences(w, "assumed, since the fabric does not say it", r.Assumed)
	}
}
