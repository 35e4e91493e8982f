package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/fabricctl/fabricctl/cmd/show"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/tuning/sim"
)

// usualBest is how many settings of a grid are run unless somebody says.
const usualBest = 5

// gridFlag is a flag for a grid.
type gridFlag struct{ to **sim.Grid }

func (g *gridFlag) String() string {
	if g.to == nil || *g.to == nil {
		return ""
	}
	return (*g.to).String()
}

func (g *gridFlag) Set(text string) error {
	grid, err := sim.ParseGrid(text)
	if err == nil {
		*g.to = &grid
	}
	return err
}

func (g *gridFlag) Type() string { return "grid" }

// checkGrid refuses what does not go with --grid.
func (o *simFlags) checkGrid() error {
	switch {
	case o.grid == nil && o.best != usualBest:
		return usage("--best is how many settings of --grid are run, and there is no --grid")
	case o.grid == nil:
		return nil
	case o.best < 0 || (o.best+1)*o.seeds > mostSeeds:
		return usage("--best %d with %s: want at most %d runs, one more of each seed for the setting that there is", o.best, diag.Count(o.seeds, "seed"), mostSeeds)
	case o.noECN:
		return usage("--grid compares how switches mark, and with --no-ecn none does")
	case o.plot+o.series+o.flows != "" || o.sample > 0 || len(o.watch) > 0:
		return usage("--plot, --series, --flows, --sample and --watch are of one run: leave out --grid")
	}
	return nil
}

// simGrid ranks settings by the fluid model, runs the first of them and the one that there is, and shows both.
func (a *app) simGrid(ctx context.Context, job sim.Job, o simFlags, json bool) error {
	r, err := a.screen(ctx, job, o)
	if err != nil {
		return a.simRefused(ctx, err)
	}
	a.simFindings(r.Findings)
	runs, err := a.runGrid(ctx, job.Net.Fabric, r)
	p := promised(job.Net)
	r.Take(runs, p.broken)
	if e := a.showGrid(r, o, json); e != nil {
		return e
	}
	if err != nil && ctx.Err() != nil {
		return interrupted(ctx, fmt.Errorf("%w; settings are ranked, and packets are shown of those whose runs had ended", context.Cause(ctx)))
	}
	if err != nil {
		return a.simRefused(ctx, err)
	}
	for _, x := range runs[:o.seeds] { // of the setting that there is
		if e := simVerdict(x, p); e != nil {
			return fail(exitError, "", "with the setting that there is, and seed %d: %w", x.Seed, e)
		}
	}
	return nil
}

func (a *app) showGrid(r *sim.GridResult, o simFlags, json bool) error {
	if json {
		return a.printJSON(r)
	}
	printGrid(a.sys.out, r, o.details)
	return nil
}

// screen ranks the settings.
func (a *app) screen(ctx context.Context, job sim.Job, o simFlags) (*sim.GridResult, error) {
	p := a.progressOf(job.Net.Fabric, 1)
	p.what = "ranking settings for " + job.Net.Fabric
	defer p.end()
	return sim.ScreenGrid(ctx, job, *o.grid, sim.GridOptions{Best: o.best, Seeds: o.seeds, Progress: func(done, of int) {
		p.told(0, float64(done)/float64(of), fmt.Sprintf("%d of %d", done, of))
	}})
}

// runGrid makes the runs. The setting that there is comes first.
func (a *app) runGrid(ctx context.Context, fabric string, r *sim.GridResult) ([]*sim.Result, error) {
	jobs := r.Jobs()
	p := a.progressOf(fabric, len(jobs))
	defer p.end()
	for i := range jobs {
		if jobs[i].Options.Progress == nil {
			jobs[i].Options.Progress = p.of(i)
		}
	}
	return sim.RunMany(ctx, jobs, 0, func(i int, _ *sim.Result) { p.done(i) })
}

// printGrid writes the bottleneck, the settings as both see them, and what is to be known of that.
func printGrid(w io.Writer, r *sim.GridResult, details bool) {
	fmt.Fprintf(w, "%s, %s of class %s: %s\n\n", show.Paint(show.Bold, strings.Join(append([]string{r.Fabric + ": " + r.Workload}, r.Changed...), ", ")), diag.Count(len(r.Rows), "setting"), r.Class, modelsAnswer)
	for _, x := range gridFacts(r) {
		show.Hang(w, show.Pad(x.label, 12), x.text)
	}
	var rows []*sim.GridRow
	for i := range r.Rows {
		if x := &r.Rows[i]; details || x.Packets != nil || r.Blind != "" || i < shortList {
			rows = append(rows, x)
		}
	}
	fmt.Fprintln(w)
	show.Table(w, gridTable(rows, len(r.Seeds) > 1))
	if n := len(r.Rows) - len(rows); n > 0 {
		fmt.Fprintf(w, "  and %d more that the fluid model ranks lower, with --details\n", n)
	}
	sentences(w, "what comes of it", r.Says)
	printDoubts(w, r)
	if r.Bottleneck != nil {
		sentences(w, "what the fluid model takes", r.Bottleneck.Taken)
	}
	sentences(w, "assumed, since the fabric does not say it", r.Assumed)
}

// gridFacts are the bottleneck and what was done.
func gridFacts(r *sim.GridResult) (facts []answer) {
	if b := r.Bottleneck; b != nil {
		text := fmt.Sprintf("%s: %s, and %s could send %.3g times as much at once; marks are heard of after %s", placeText(b.Place), b.Speed, diag.Count(b.Flows, "flow"), b.Load, lasting(b.Feedback))
		if b.Pause > 0 {
			text += ", and pauses begin at " + size(b.Pause)
		}
		facts = append(facts, answer{label: "bottleneck", text: text})
	} else {
		facts = append(facts, answer{label: "fluid", text: "says nothing: " + r.Blind})
	}
	acts := "on " + diag.Count(r.Queues, "queue") + " of switches"
	if r.Skipped > 0 {
		acts += fmt.Sprintf("; %s with a kmin above the kmax left out", diag.Count(r.Skipped, "setting"))
	}
	if r.Same > 0 {
		acts += fmt.Sprintf("; %s left out that the hardware makes the same of as of one before", diag.Count(r.Same, "setting"))
	}
	facts = append(facts, answer{label: "settings", text: acts})
	long := lasting(r.Measured)
	if r.Warmup > 0 {
		long += " after " + lasting(r.Warmup) + " of warm-up"
	}
	seeds := fmt.Sprintf("seed %d", r.Seeds[0])
	if n := len(r.Seeds); n > 1 {
		seeds = fmt.Sprintf("seeds %d to %d, the same for all", r.Seeds[0], r.Seeds[n-1])
	}
	return append(facts, answer{label: "packets", text: fmt.Sprintf("%s of %s, %s", long, diag.Count(gridRun(r), "setting"), seeds)})
}

// gridRun is how many settings were run to the end.
func gridRun(r *sim.GridResult) (n int) {
	for i := range r.Rows {
		if r.Rows[i].Packets != nil {
			n++
		}
	}
	return n
}

// gridTable has a row for each setting: what the fluid model says of it on the left, and what packets do on the right.
func gridTable(rows []*sim.GridRow, spread bool) [][]string {
	table := [][]string{
		{"", "", "", "", "fluid", "", "", "", "", "|", "packets", "", "", "", "", ""},
		{"", "kmin", "kmax", "pmax", "queue", "swings", "burst", "margin", "doubts", "|", "goodput", "p99", "queue", "q. p99", "pauses", "lost"},
	}
	for _, x := range rows {
		row := []string{"  now", x.Kmin.String(), x.Kmax.String(), x.Pmax.String(), "-", "-", "-", "-", "-", "|", "-", "-", "-", "-", "-", "-"}
		if f := x.Fluid; f != nil {
			row[0] = "  " + strconv.Itoa(f.Rank)
			if x.Now {
				row[0] += " now"
			}
			row[4], row[5], row[6], row[8] = size(f.Mean), size(f.Least)+" to "+size(f.Most), size(f.Peak), cmp.Or(strings.Join(f.Doubts, ","), "none")
			if f.Margin != nil {
				row[7] = strconv.FormatFloat(*f.Margin, 'f', 0, 64) + "°"
			}
		} else if !x.Now {
			row[0] = ""
		}
		if p := x.Packets; p != nil {
			copy(row[10:], packetCells(p, spread))
		}
		table = append(table, row)
	}
	return untimed(table)
}

// timedColumn is where a table has the percentile of what was timed.
const timedColumn = 11

// untimed leaves that out of a table in which nothing was.
func untimed(table [][]string) [][]string {
	if slices.ContainsFunc(table[2:], func(row []string) bool { return row[timedColumn] != "-" }) {
		return table
	}
	for i := range table {
		table[i] = slices.Delete(table[i], timedColumn, timedColumn+1)
	}
	return table
}

// packetCells are the figures of a row's runs, with their spread where there are several.
func packetCells(p *sim.GridPackets, spread bool) []string {
	cell := func(unit string, f sim.GridFigure) string {
		s := figureText(unit, f.Mean)
		if spread && f.SD > 0 {
			s += " ±" + figureText(unit, f.SD)
		}
		return s
	}
	timed := "-"
	if p.P99.Mean > 0 {
		timed = cell("ns", p.P99)
	}
	lost := cell("", p.Lossless)
	if p.Lossless.Mean > 0 || len(p.Ends) > 0 {
		lost = show.Paint(show.Red, strings.Join(append([]string{lost}, p.Ends...), ", "))
	}
	return []string{cell("bps", p.Goodput), timed, cell("bytes", p.Mean), cell("bytes", p.P99Queue), cell("", p.Pauses), lost}
}

// printDoubts says what the fluid model is blind to in these rows, and what it is for.
func printDoubts(w io.Writer, r *sim.GridResult) {
	if r.Blind != "" {
		return
	}
	var list []string
	for _, d := range r.Doubts() {
		list = append(list, d.Word()+": "+string(d))
	}
	slices.Sort(list)
	sentences(w, "doubts, which say where packets may do something else than the fluid model", list)
	fmt.Fprintln(w)
	show.Hang(w, "", fmt.Sprintf("The fluid model is of one queue, %s after all rates were even, and only chooses what is run: believe the columns on the right before those on the left. "+
		"Nothing is written back: choosing a setting for the model is the work of tuning it.", sim.FluidSpan))
}

// told says how far a part of the work is.
func (p *progress) told(i int, part float64, words string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.part[i], p.said[i] = part, words
	p.tell()
}
