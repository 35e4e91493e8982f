package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"strconv"
	"strings"

	"github.com/fabricctl/fabricctl/cmd/show"
	"github.com/fabricctl/fabricctl/model/derive"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/tuning/sim"
	"github.com/fabricctl/fabricctl/tuning/sim/fluid"
)

// grid is what --grid asks for: values of each setting; none = what the fabric has.
type grid struct {
	kmin, kmax []units.Bytes
	pmax       []units.Percent
}

// mostSettings is how many settings a grid may have.
const mostSettings = 10_000

// parseGrid reads "kmin=100KB/400KB,kmax=1600KB,pmax=1%/5%/20%".
func parseGrid(text string) (grid, error) {
	var g grid
	for pair := range strings.SplitSeq(text, ",") {
		key, values, _ := strings.Cut(pair, "=")
		for v := range strings.SplitSeq(values, "/") {
			var err error
			var b units.Bytes
			var p units.Percent
			switch key {
			case "kmin":
				b, err = units.ParseBytes(v)
				g.kmin = append(g.kmin, b)
			case "kmax":
				b, err = units.ParseBytes(v)
				g.kmax = append(g.kmax, b)
			case "pmax":
				if p, err = units.ParsePercent(v); err == nil && (p <= 0 || p > 100*units.OnePercent) {
					return g, fail(exitUsage, "write more than 0% and at most 100%", "--grid: pmax: %s is not a probability", p)
				}
				g.pmax = append(g.pmax, p)
			default:
				return g, fail(exitUsage, "for example: --grid kmin=400KB/800KB,kmax=3200KB,pmax=1%/20%", "--grid: %q is not kmin, kmax or pmax", key)
			}
			if e, ok := errors.AsType[*units.Error](err); ok {
				return g, fail(exitUsage, e.Hint, "--grid: %s: %w", key, err)
			} else if err != nil {
				return g, usage("--grid: %s: %w", key, err)
			}
		}
	}
	if n := max(len(g.kmin), 1) * max(len(g.kmax), 1) * max(len(g.pmax), 1); n > mostSettings {
		return g, usage("--grid asks for %d settings: at most %d", n, mostSettings)
	}
	return g, nil
}

// over is m with each setting of the grid.
func (g grid) over(m fluid.Model) []fluid.Model {
	now := m.Links[0].Ramp
	or := func(v []units.Bytes, usual units.Bytes) []units.Bytes {
		if len(v) == 0 {
			return []units.Bytes{usual}
		}
		return v
	}
	pmax := g.pmax
	if len(pmax) == 0 {
		pmax = []units.Percent{now.Pmax}
	}
	return fluid.Grid(m, or(g.kmin, now.Kmin), or(g.kmax, now.Kmax), pmax)
}

// gridJSON is the result of sim --grid.
type gridJSON struct {
	Schema   string        `json:"schema"`
	Says     string        `json:"says"` // whose answer it is
	Fabric   string        `json:"fabric"`
	Workload string        `json:"workload"`
	Queues   []sim.Place   `json:"queues"`
	Taken    []string      `json:"taken"`
	Settings []gridRowJSON `json:"settings"` // the best first
}

// gridRowJSON is what the equations say of a setting.
type gridRowJSON struct {
	Kmin    units.Bytes    `json:"kmin"`
	Kmax    units.Bytes    `json:"kmax"`
	Pmax    units.Percent  `json:"pmax"`
	Goodput units.BitRate  `json:"goodput"`
	Queue   units.Bytes    `json:"queue"`     // of the longest, on average
	Most    units.Bytes    `json:"queue_max"` // that it has in the end
	Delay   units.Duration `json:"delay"`
	Motion  fluid.Motion   `json:"motion"`
	Margin  *float64       `json:"margin"` // degrees; null where there is none
	Settled units.Duration `json:"settled"`
	Doubts  []fluid.Doubt  `json:"doubts"`
}

// equationsAnswer is said above a grid.
const equationsAnswer = "ranked by equations, which is a screening and no simulation"

// simGrid ranks settings by the fluid model.
func (a *app) simGrid(ctx context.Context, job sim.Job, g grid, json bool) error {
	s, err := sim.Build(job.Net, job.Workload, job.Options, job.Seed)
	if err != nil {
		return a.simRefused(ctx, err)
	}
	e, err := s.Equations()
	if err != nil {
		return fail(exitError, "simulate without --grid", "--grid: %w", err)
	}
	models := g.over(e.Model)
	if len(models) == 0 {
		return usage("--grid: in no setting of it is kmin at most kmax")
	}
	ranked, err := fluid.Screen(ctx, models, fluid.Options{}, runtime.GOMAXPROCS(0))
	if err != nil {
		return interrupted(ctx, err)
	}
	out := gridJSON{
		Schema: "fabricctl/sim-grid/v1", Says: equationsAnswer, Fabric: job.Net.Fabric, Workload: job.Workload.String(), Queues: e.Queues,
		Taken: show.Some(e.Taken), Settings: []gridRowJSON{},
	}
	for i := range ranked {
		out.Settings = append(out.Settings, gridRowOf(&ranked[i], models[ranked[i].Index].Links[0].Ramp))
	}
	if json {
		return a.printJSON(out)
	}
	printGrid(a.sys.out, &out)
	return nil
}

func gridRowOf(c *fluid.Candidate, r derive.Ramp) gridRowJSON {
	x := gridRowJSON{
		Kmin: r.Kmin, Kmax: r.Kmax, Pmax: r.Pmax, Goodput: c.Goodput / units.Mbps * units.Mbps, Delay: c.Delay, Motion: c.Solution.Motion, Settled: c.Solution.Settled, Doubts: show.Some(c.Doubts),
	}
	for _, l := range c.Solution.Links {
		x.Queue, x.Most = max(x.Queue, units.Bytes(l.Mean)), max(x.Most, units.Bytes(l.Max))
	}
	if c.HasRest && !math.IsNaN(c.Rest.Margin) {
		x.Margin = &c.Rest.Margin
	}
	return x
}

// printGrid writes the ranking: each doubt has a letter in it, and a sentence below.
func printGrid(w io.Writer, g *gridJSON) {
	fmt.Fprintf(w, "%s, %s: %s\n", show.Paint(show.Bold, g.Fabric+": "+g.Workload), diag.Count(len(g.Settings), "setting"), equationsAnswer)
	var doubts []fluid.Doubt
	letter := map[fluid.Doubt]string{}
	section(w, "settings, the best first", []string{"kmin", "kmax", "pmax", "throughput", "queue", "at most", "delay", "even after", "margin", "in the end", "doubts"}, len(g.Settings), len(g.Settings), func(i int) []string {
		x := &g.Settings[i]
		margin, marks := "-", ""
		if x.Margin != nil {
			margin = strconv.FormatFloat(*x.Margin, 'f', 0, 64)
		}
		for _, d := range x.Doubts {
			if letter[d] == "" {
				letter[d] = string(rune('a' + len(doubts)))
				doubts = append(doubts, d)
			}
			marks += letter[d]
		}
		return []string{
			x.Kmin.String(), x.Kmax.String(), x.Pmax.String(), rate(x.Goodput), size(x.Queue), size(x.Most), lasting(x.Delay), lasting(x.Settled), margin, string(x.Motion), marks,
		}
	})
	if len(doubts) > 0 {
		fmt.Fprintln(w, "\ndoubts: packets may do something else than the equations say")
		for _, d := range doubts {
			show.Hang(w, "  "+letter[d]+"  ", string(d))
		}
	}
	var queues []string
	for _, q := range g.Queues {
		queues = append(queues, fmt.Sprintf("%s queue %d", q, q.Queue))
	}
	sentences(w, "queues of the equations", queues)
	sentences(w, "taken for the equations", g.Taken)
}
