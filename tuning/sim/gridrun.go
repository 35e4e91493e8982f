package sim

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"

	"github.com/fabricctl/fabricctl/model/derive"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/tuning/sim/fluid"
)

// GridSchema is the schema of a GridResult in JSON.
const GridSchema = "fabricctl/sim-grid/v1"

// GridOptions are how much of a grid is run packet by packet, and how thoroughly.
type GridOptions struct {
	Best    int // settings, those that the fluid model ranks first, besides the one that there is now
	Seeds   int // of each, from the job's own on, the same for all
	Workers int // 0 = one for each core

	Progress func(done, of int) // told, when not nil, how many settings are ranked; one call at a time
}

// GridResult is a grid of settings, as the fluid model ranks them, and what the best of them do packet by packet.
type GridResult struct {
	Schema     string         `json:"schema"`
	Fabric     string         `json:"fabric"`
	Workload   string         `json:"workload"`
	Changed    []string       `json:"changed"` // what Options have changed of the fabric
	Grid       string         `json:"grid"`
	Seeds      []uint64       `json:"seeds"`
	Warmup     units.Duration `json:"warmup"`
	Measured   units.Duration `json:"measured"`
	Class      string         `json:"class"`      // whose marking is set
	Queues     int            `json:"queues"`     // of ports of switches, on which it is
	Skipped    int            `json:"skipped"`    // settings with a kmin above the kmax
	Same       int            `json:"same"`       // settings that are the same in the hardware as one before
	Blind      string         `json:"blind"`      // why the fluid model says nothing; empty: it does
	Bottleneck *Bottleneck    `json:"bottleneck"` // nil when it says nothing
	Rows       []GridRow      `json:"rows"`       // by rank
	Says       []string       `json:"says"`       // what comes of it, in sentences
	Assumed    []string       `json:"assumed"`    // of the fabric, at the packet level
	Findings   diag.List      `json:"findings"`   //

	jobs []Job
	of   []int // rows of the jobs
}

// GridRow is a setting.
type GridRow struct {
	Kmin    units.Bytes   `json:"kmin"`
	Kmax    units.Bytes   `json:"kmax"`
	Pmax    units.Percent `json:"pmax"`
	Now     bool          `json:"now"`     // it is what there is, at the bottleneck
	Fluid   *GridFluid    `json:"fluid"`   // null when the fluid model says nothing
	Packets *GridPackets  `json:"packets"` // null when it was not run, or not to its end

	effect derive.Ramp
}

// GridFluid is what the fluid model says of a setting.
type GridFluid struct {
	Rank    int           `json:"rank"`
	Mean    units.Bytes   `json:"mean"` // queue in the end
	Least   units.Bytes   `json:"least"`
	Most    units.Bytes   `json:"most"`
	Peak    units.Bytes   `json:"peak"`   // of the burst at the start
	Motion  fluid.Motion  `json:"motion"` // settled, settling or swinging
	Margin  *float64      `json:"margin"` // phase margin in degrees; null where there is no point of rest
	Goodput units.BitRate `json:"goodput"`
	Score   float64       `json:"score"`
	Doubts  []string      `json:"doubts"` // words; what they mean is Doubts of the package fluid

	doubts []fluid.Doubt
}

// GridPackets is what a setting does packet by packet, with all seeds.
type GridPackets struct {
	Goodput    GridFigure `json:"goodput"`     // bits per second, of all flows
	P99        GridFigure `json:"p99"`         // ns: of latency where it is measured, else of completion; 0 = nothing ended
	Mean       GridFigure `json:"mean"`        // bytes in the queue of the bottleneck, or in the fullest of the class
	P99Queue   GridFigure `json:"p99_queue"`   //
	Max        GridFigure `json:"max"`         //
	Pauses     GridFigure `json:"pauses"`      // sent in the whole fabric
	PausedTime GridFigure `json:"paused_time"` // ns, sum over ports
	Marked     GridFigure `json:"marked"`      // packets
	Lossless   GridFigure `json:"lossless"`    // packets of lossless classes that were lost
	Ends       []string   `json:"ends"`        // of runs that did not end well
}

// GridFigure is a figure of several runs.
type GridFigure struct {
	Mean float64 `json:"mean"`
	SD   float64 `json:"sd"` // standard deviation of the runs
}

// FluidSpan is how far equations are followed from even rates on, and burstSpan from line rates on, by when the queue has had its peak.
const (
	FluidSpan = 100 * units.Millisecond
	burstSpan = 2 * units.Millisecond
)

// ScreenGrid ranks the settings of a grid on a job's fabric by the fluid model of its bottleneck, and prepares the runs of the best of them.
// The error is a *Refused, or ctx's.
func ScreenGrid(ctx context.Context, job Job, g Grid, o GridOptions) (*GridResult, error) {
	s, err := Build(job.Net, job.Workload, job.Options, job.Seed)
	if err != nil {
		return nil, err
	}
	r := &GridResult{
		Schema: GridSchema, Fabric: job.Net.Fabric, Workload: job.Workload.String(), Changed: job.Options.Changes(), Grid: g.String(), Warmup: s.warmup, Measured: s.measured,
		Rows: []GridRow{}, Says: []string{}, Assumed: s.assumed, Findings: s.found,
	}
	for i := range max(o.Seeds, 1) {
		r.Seeds = append(r.Seeds, job.Seed+uint64(i))
	}
	b, why := s.bottleneck()
	at := b
	if b == nil {
		at = s.crowded()
	}
	r.Class = at.Class
	now, tcs := s.rampAt(at)
	if err := r.fill(s, at, g, now, tcs); err != nil {
		return nil, err
	}
	if r.Blind = why; why == "" {
		if err := r.rank(ctx, b, o); err != nil {
			return nil, err
		}
	} else if n := len(r.Rows) - 1; n > o.Best {
		return nil, refuse("sim-grid-blind", fmt.Sprintf("--best %d runs all of them packet by packet", n), "the fluid model cannot rank %s: %s", diag.Count(n, "setting"), why)
	}
	r.prepare(job, tcs, o.Best)
	return r, nil
}

func refuse(rule, hint, format string, a ...any) error {
	return &Refused{diag.List{{Rule: rule, Severity: diag.Error, Msg: fmt.Sprintf(format, a...), Hint: hint}}}
}

// crowded is the queue before the NIC that most flows go to.
func (s *Setup) crowded() *Bottleneck {
	n := map[int]int{}
	best := 0
	for i := range s.flows {
		n[i] = len(s.flowsOf[s.flows[i].to])
		if n[i] > n[best] {
			best = i
		}
	}
	f := &s.flows[best]
	port := s.Config.Ports[s.nics[f.to].port].Peer
	pol := &s.ports[port].pol
	b := &Bottleneck{port: port}
	b.Place = s.place(port, queueOf(pol, classOf(pol, f.dscp)))
	return b
}

// rampAt is the ramp of a queue, and the traffic classes that are in it and mark; none when it does not mark. The ramp is that of
// the class of the queue's own number, or of the lowest.
func (s *Setup) rampAt(b *Bottleneck) (now derive.Ramp, tcs []int) {
	pol := &s.ports[b.port].pol
	for tc := range pol.Queues {
		if e := pol.Queues[tc].ECN; queueOf(pol, tc) == b.Queue && e.On {
			if len(tcs) == 0 || tc == b.Queue {
				now = derive.Ramp{Kmin: e.Kmin, Kmax: e.Kmax, Pmax: e.Pmax}
			}
			tcs = append(tcs, tc)
		}
	}
	return now, tcs
}

// fill makes the rows: what there is now first, and then the points of the grid, of which one may be the same.
func (r *GridResult) fill(s *Setup, at *Bottleneck, g Grid, now derive.Ramp, tcs []int) error {
	dev := s.ports[at.port].dev
	if len(tcs) == 0 {
		return refuse("sim-grid-ecn", "give the class an ecn with kmin, kmax and pmax", "%s does not mark: there is nothing to set", at.Place)
	}
	pool := units.Bytes(s.Config.Switches[s.Config.Ports[at.port].Switch].Pools[0].Size)
	if found := g.check(dev, pool); len(found) > 0 {
		return &Refused{found.Sort()}
	}
	ps, skipped, same := g.points(now, dev)
	r.Skipped, r.Same = skipped, same
	if len(ps) == 0 {
		return refuse("sim-grid", "write a kmax that is larger than a kmin", "of %s, all have a kmin above the kmax: no setting is left", diag.Count(skipped, "setting"))
	}
	r.Rows = append(r.Rows, GridRow{Kmin: now.Kmin, Kmax: now.Kmax, Pmax: now.Pmax, Now: true, effect: inHardware(now, dev)})
	for _, p := range ps {
		_, queues, changed := withRamp(s.net, tcs, p.ramp)
		if r.Queues = queues; changed > 0 || p.effect != r.Rows[0].effect {
			r.Rows = append(r.Rows, GridRow{Kmin: p.ramp.Kmin, Kmax: p.ramp.Kmax, Pmax: p.ramp.Pmax, effect: p.effect})
		}
	}
	return nil
}

// rank asks the fluid model about all rows, and puts them in its order.
func (r *GridResult) rank(ctx context.Context, b *Bottleneck, o GridOptions) error {
	models := make([]fluid.Model, len(r.Rows))
	for i := range r.Rows {
		models[i] = b.even(r.Rows[i].effect)
	}
	var mu sync.Mutex
	done := 0
	told := func() {
		mu.Lock()
		defer mu.Unlock()
		if done++; o.Progress != nil {
			o.Progress(done, len(models))
		}
	}
	ranked, err := fluid.Screen(ctx, models, fluid.Options{Span: FluidSpan, Done: told}, cmp.Or(o.Workers, runtime.GOMAXPROCS(0)))
	if err != nil {
		return err
	}
	rows := make([]GridRow, 0, len(r.Rows))
	for rank, c := range ranked {
		row := r.Rows[c.Index]
		row.Fluid = fluidRow(rank+1, c)
		if peak, err := b.burst(row.effect); err == nil {
			row.Fluid.burst(peak)
		}
		rows = append(rows, row)
	}
	r.Rows, r.Bottleneck = rows, b
	return nil
}

func fluidRow(rank int, c fluid.Candidate) *GridFluid {
	f := &GridFluid{Rank: rank, Motion: c.Solution.Motion, Goodput: c.Goodput, Doubts: []string{}, doubts: c.Doubts}
	for _, d := range c.Doubts {
		f.Doubts = append(f.Doubts, d.Word())
	}
	if c.Err != nil {
		return f
	}
	l := c.Solution.Links[0]
	f.Mean, f.Least, f.Most, f.Score = units.Bytes(l.Mean), units.Bytes(l.Min), units.Bytes(l.Max), c.Score
	if c.HasRest && !math.IsNaN(c.Rest.Margin) {
		f.Margin = &c.Rest.Margin
	}
	return f
}

// burst adds what becomes of the queue at the start.
func (f *GridFluid) burst(peak fluid.LinkState) {
	f.Peak = units.Bytes(peak.Peak)
	if d := fluid.DoubtBurst; peak.WouldPause && !slices.Contains(f.doubts, fluid.DoubtPauses) && !slices.Contains(f.doubts, d) {
		f.doubts, f.Doubts = append(f.doubts, d), append(f.Doubts, d.Word())
	}
}

// prepare makes the runs: what there is now, and the first rows besides, each with all seeds.
func (r *GridResult) prepare(job Job, tcs []int, best int) {
	var chosen []int
	for i := range r.Rows {
		if r.Rows[i].Now {
			chosen = append([]int{i}, chosen...)
		} else if best > 0 {
			chosen = append(chosen, i)
			best--
		}
	}
	for _, i := range chosen {
		one := job
		if row := &r.Rows[i]; !row.Now {
			one.Net, _, _ = withRamp(job.Net, tcs, derive.Ramp{Kmin: row.Kmin, Kmax: row.Kmax, Pmax: row.Pmax})
		}
		for _, seed := range r.Seeds {
			one.Seed = seed
			r.jobs, r.of = append(r.jobs, one), append(r.of, i)
		}
	}
}

// Jobs are the runs that are to be made; Take is told what came of them.
func (r *GridResult) Jobs() []Job { return slices.Clone(r.jobs) }

// Take puts the results of Jobs, in their order, into the rows. A row of which one is nil was not run. lost counts what was lost of lossless classes.
func (r *GridResult) Take(runs []*Result, lost func(*Result) uint64) {
	each := map[int][]*Result{}
	for j, run := range runs {
		each[r.of[j]] = append(each[r.of[j]], run)
	}
	for i := range r.Rows {
		if of := each[i]; len(of) > 0 && !slices.Contains(of, nil) {
			r.Rows[i].Packets = r.packets(of, lost)
		}
	}
	r.Says = append(r.Says, r.sentences()...)
}

func (r *GridResult) packets(runs []*Result, lost func(*Result) uint64) *GridPackets {
	over := func(of func(*Result) float64) (f GridFigure) {
		for _, x := range runs {
			f.Mean += of(x) / float64(len(runs))
		}
		for _, x := range runs {
			f.SD += (of(x) - f.Mean) * (of(x) - f.Mean)
		}
		f.SD = math.Sqrt(f.SD / float64(max(len(runs)-1, 1)))
		return f
	}
	queue := func(of func(*Queue) units.Bytes) GridFigure {
		return over(func(x *Result) float64 { q := x.queueAt(r.Bottleneck, r.Class); return float64(of(&q)) })
	}
	p := &GridPackets{
		Goodput:    over(func(x *Result) float64 { return float64(x.Totals.Goodput) }),
		P99:        over(p99),
		Mean:       queue(func(q *Queue) units.Bytes { return q.Mean }),
		P99Queue:   queue(func(q *Queue) units.Bytes { return q.P99 }),
		Max:        queue(func(q *Queue) units.Bytes { return q.Max }),
		Pauses:     over(func(x *Result) float64 { return float64(x.Totals.Pauses) }),
		PausedTime: over(func(x *Result) float64 { return float64(x.Totals.PausedTime) }),
		Marked:     over(func(x *Result) float64 { return float64(x.Totals.Marked) }),
		Lossless:   over(func(x *Result) float64 { return float64(lost(x)) }),
		Ends:       []string{},
	}
	for _, x := range runs {
		if w := x.End.Why; w != "stop" && w != "done" && !slices.Contains(p.Ends, w) {
			p.Ends = append(p.Ends, w)
		}
	}
	return p
}

// p99 is the 99th percentile of what was timed.
func p99(r *Result) float64 {
	if t := r.Totals.Latency; t.Count > 0 {
		return float64(t.P99)
	}
	return float64(r.Totals.Completion.P99)
}
