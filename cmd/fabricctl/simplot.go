package main

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/tuning/report"
	"github.com/fabricctl/fabricctl/tuning/sim"
)

// write writes the files that were asked for.
func (o *simFlags) write(a *app, r *sim.Result) error {
	for _, f := range []struct {
		path  string
		bytes func() []byte
	}{
		{o.series, func() []byte { return seriesCSV(r) }},
		{o.flows, func() []byte { return flowsCSV(r) }},
		{o.plot, func() []byte { return report.SVG(simChart(r, o.faults)) }},
	} {
		if f.path == "" {
			continue
		}
		if err := os.WriteFile(f.path, f.bytes(), 0o644); err != nil {
			return fail(exitError, "", "%s was not written: %w", f.path, err)
		}
		fmt.Fprintln(a.sys.err, "wrote", f.path)
	}
	return nil
}

// Limits of what one picture shows: more lines than these nobody tells apart.
const (
	mostQueueLines = 6
	mostFlowLines  = 6
)

// simChart is queues with their thresholds, rates, and how much of the time ports were paused.
func simChart(r *sim.Result, faults []string) report.Chart {
	c := report.Chart{
		Title: simTitle(r), X: report.Axis{Label: "time", Of: report.Time},
		Caption: fmt.Sprintf("Simulated with seed %d: %s. Goodput %s over %s, %s lost.", r.Seed, modelsAnswer,
			rate(r.Totals.Goodput), diag.Count(len(r.Flows), "flow"), orNothing(r.Totals.Drops, "packet")),
	}
	if r.Warmup > 0 {
		c.Spans = append(c.Spans, report.Span{Name: "warm-up", To: seconds(r.Warmup)})
	}
	for _, text := range faults {
		if f, err := sim.ParseFault(text); err == nil && f.Kind == sim.Storm {
			to := seconds(f.To)
			if f.To == 0 {
				to = seconds(r.End.At)
			}
			c.Spans = append(c.Spans, report.Span{Name: string(f.Kind) + " of " + f.Device, From: seconds(f.From), To: to})
		}
	}
	if r.Series == nil || len(r.Series.Rows) == 0 {
		c.Panels = []report.Panel{{Y: report.Axis{Label: "queue", Of: report.Bytes}}}
		return c
	}
	x := make([]float64, len(r.Series.Rows))
	for i, row := range r.Series.Rows {
		x[i] = seconds(row.At)
	}
	c.Panels = []report.Panel{queuePanel(r, x)}
	c.Panels = append(c.Panels, goodputPanel(r))
	if slices.ContainsFunc(r.Flows, func(f sim.Flow) bool { return f.Cuts > 0 }) {
		c.Panels = append(c.Panels, ratePanel(r, x, "rate that congestion control allows", func(row *sim.Row) []units.BitRate { return row.Rates }))
	}
	if r.Totals.Pauses > 0 {
		c.Panels = append(c.Panels, pausePanel(r, x))
	}
	if r.Totals.Drops > 0 {
		c.Panels = append(c.Panels, countPanel(r, x))
	}
	return c
}

func orNothing(n uint64, noun string) string {
	if n == 0 {
		return "nothing"
	}
	return diag.Count(int(n), noun)
}

func seconds(d units.Duration) float64 { return float64(d) / float64(units.Second) }

// column is the y of a line: what f says of each row.
func column(r *sim.Result, f func(*sim.Row) float64) []float64 {
	y := make([]float64, len(r.Series.Rows))
	for i := range r.Series.Rows {
		y[i] = f(&r.Series.Rows[i])
	}
	return y
}

// queuePanel is the fullest of the queues that were watched, with the thresholds that they have in common.
func queuePanel(r *sim.Result, x []float64) report.Panel {
	p := report.Panel{Y: report.Axis{Label: "queue", Of: report.Bytes}}
	most := make([]units.Bytes, len(r.Series.Queues))
	order := make([]int, len(most))
	for i := range order {
		order[i] = i
		for _, row := range r.Series.Rows {
			most[i] = max(most[i], row.Queues[i])
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(most[b], most[a]) })
	shown := slices.IndexFunc(order, func(i int) bool { return most[i] < most[order[0]]/100 || most[i] == 0 }) // of no account, from there on
	if shown < 0 {
		shown = len(order)
	}
	order = order[:min(max(shown, 1), len(order), mostQueueLines)]
	marks := map[[2]units.Bytes]bool{}
	for _, i := range order {
		at := r.Series.Queues[i]
		p.Lines = append(p.Lines, report.Line{Name: placeText(at), X: x, Y: column(r, func(row *sim.Row) float64 { return float64(row.Queues[i]) })})
		for _, q := range r.Queues {
			if same(q.Place, at) && q.Kmax > 0 {
				marks[[2]units.Bytes{q.Kmin, q.Kmax}] = true
			}
		}
	}
	for k := range marks {
		if len(marks) == 1 { // of different ones nobody would know whose they are
			p.Levels = append(p.Levels, report.Level{Name: "Kmin", Y: float64(k[0])}, report.Level{Name: "Kmax", Y: float64(k[1])})
		}
	}
	return p
}

func same(a, b sim.Place) bool { return a.Device == b.Device && a.Port == b.Port && a.Queue == b.Queue }

// goodputPoints is about how many points a line of goodput has: acknowledgements come in lumps, and a point is the mean of the rows since the one before.
const goodputPoints = 140

// goodputPanel is the goodput of flows, or of the parts of the workload.
func goodputPanel(r *sim.Result) report.Panel {
	each := max(1, len(r.Series.Rows)/goodputPoints)
	smooth := *r
	smooth.Series = &sim.Series{Queues: r.Series.Queues, Flows: r.Series.Flows}
	var x []float64
	for i := each - 1; i < len(r.Series.Rows); i += each {
		row := sim.Row{At: r.Series.Rows[i].At, Goodput: make([]units.BitRate, len(r.Series.Flows))}
		for _, one := range r.Series.Rows[i-each+1 : i+1] {
			for j, g := range one.Goodput {
				row.Goodput[j] += g / units.BitRate(each)
			}
		}
		smooth.Series.Rows = append(smooth.Series.Rows, row)
		x = append(x, seconds(row.At))
	}
	return ratePanel(&smooth, x, "goodput", func(row *sim.Row) []units.BitRate { return row.Goodput })
}

// ratePanel is a rate of each flow where they are few, else the least, the mean and the greatest of each part of the workload.
func ratePanel(r *sim.Result, x []float64, label string, of func(*sim.Row) []units.BitRate) report.Panel {
	p := report.Panel{Y: report.Axis{Label: label, Of: report.Rate}}
	if len(r.Series.Flows) <= mostFlowLines {
		for i, at := range r.Series.Flows {
			f := &r.Flows[at]
			p.Lines = append(p.Lines, report.Line{Name: flowName(r, at, f), X: x, Y: column(r, func(row *sim.Row) float64 { return float64(of(row)[i]) })})
		}
		return p
	}
	var parts []string
	columns := map[string][]int{}
	for i, at := range r.Series.Flows {
		part := r.Flows[at].Part
		if columns[part] == nil {
			parts = append(parts, part)
		}
		columns[part] = append(columns[part], i)
	}
	for _, part := range parts {
		cols := columns[part]
		if len(cols) == 1 {
			p.Lines = append(p.Lines, report.Line{Name: part, X: x, Y: column(r, func(row *sim.Row) float64 { return float64(of(row)[cols[0]]) })})
			continue
		}
		for _, pick := range []struct {
			name string
			of   func([]units.BitRate) float64
		}{{"slowest", least}, {"mean", mean}, {"fastest", greatest}} {
			p.Lines = append(p.Lines, report.Line{
				Name: fmt.Sprintf("%s, %s of %d", part, pick.name, len(cols)), X: x, Y: column(r, func(row *sim.Row) float64 {
					rates := make([]units.BitRate, len(cols))
					for j, c := range cols {
						rates[j] = of(row)[c]
					}
					return pick.of(rates)
				}),
			})
		}
	}
	return p
}

func least(rs []units.BitRate) float64    { return float64(slices.Min(rs)) }
func greatest(rs []units.BitRate) float64 { return float64(slices.Max(rs)) }

func mean(rs []units.BitRate) float64 {
	var sum units.BitRate
	for _, r := range rs {
		sum += r
	}
	return float64(sum) / float64(len(rs))
}

// flowName is "host1 to host9", with the ports where two flows of one part are between the same hosts.
func flowName(r *sim.Result, at int, f *sim.Flow) string {
	name := f.From.Device + " to " + f.To.Device
	twice := 0
	for i := range r.Flows {
		o := &r.Flows[i]
		if o.From.Device == f.From.Device && o.To.Device == f.To.Device {
			twice++
		}
	}
	if twice > 1 {
		name = portText(f.From) + " to " + portText(f.To) + ", flow " + strconv.Itoa(at+1)
	}
	if len(r.Parts) > 1 {
		name += " (" + f.Part + ")"
	}
	return name
}

// pausePanel is how many ports stood still, on average since the row before.
func pausePanel(r *sim.Result, x []float64) report.Panel {
	y := make([]float64, len(x))
	for i := range r.Series.Rows {
		before := units.Duration(0)
		if i > 0 {
			before = r.Series.Rows[i-1].At
		}
		if row := &r.Series.Rows[i]; row.At > before {
			y[i] = float64(row.Paused) / float64(row.At-before)
		}
	}
	return report.Panel{Y: report.Axis{Label: "ports that stand still", Of: report.Count}, Lines: []report.Line{{Name: "on average", X: x, Y: y}}}
}

// countPanel is packets lost since the start.
func countPanel(r *sim.Result, x []float64) report.Panel {
	var sum uint64
	y := column(r, func(row *sim.Row) float64 {
		sum += row.Drops
		return float64(sum)
	})
	return report.Panel{Y: report.Axis{Label: "packets lost so far", Of: report.Count}, Lines: []report.Line{{Name: "all reasons and places", X: x, Y: y}}}
}

// seriesCSV is a row for each sample. Units stand in the headings.
func seriesCSV(r *sim.Result) []byte {
	head := []string{"time_ns"}
	s := cmp.Or(r.Series, &sim.Series{})
	for _, q := range s.Queues {
		head = append(head, fmt.Sprintf("queue_bytes %s:%s:%d", q.Device, q.Port, q.Queue))
	}
	for _, what := range []string{"goodput_bps", "rate_bps"} {
		for _, at := range s.Flows {
			f := &r.Flows[at]
			head = append(head, fmt.Sprintf("%s %d %s %s>%s", what, at+1, f.Part, portText(f.From), portText(f.To)))
		}
	}
	head = append(head, "paused_ns", "marked_packets", "lost_packets")
	return table(head, len(s.Rows), func(i int) []string {
		row := &s.Rows[i]
		cells := []string{number(row.At)}
		for _, q := range row.Queues {
			cells = append(cells, number(q))
		}
		for _, g := range row.Goodput {
			cells = append(cells, number(g))
		}
		for _, g := range row.Rates {
			cells = append(cells, number(g))
		}
		return append(cells, number(row.Paused), strconv.FormatUint(row.Marked, 10), strconv.FormatUint(row.Drops, 10))
	})
}

// flowsCSV is a row for each flow. What did not end has no completion, and what never ends no size.
func flowsCSV(r *sim.Result) []byte {
	head := strings.Fields("flow part class dscp from to bytes start_ns done completion_ns ideal_ns goodput_bps received_bytes rate_bps messages latency_p50_ns latency_p99_ns " +
		"latency_p999_ns marked_packets cnps cuts resent_packets naks timeouts")
	return table(head, len(r.Flows), func(i int) []string {
		f := &r.Flows[i]
		blank := func(s string, known bool) string {
			if known {
				return s
			}
			return ""
		}
		cells := []string{
			strconv.Itoa(i + 1), f.Part, f.Class, strconv.Itoa(int(f.DSCP)), portText(f.From), portText(f.To), blank(number(f.Bytes), f.Bytes > 0),
			blank(number(f.Start), f.Started), strconv.FormatBool(f.Done), blank(number(f.Completion), f.Done), blank(number(f.Ideal), f.Ideal > 0),
			number(f.Goodput), number(f.Received), number(f.Rate), strconv.FormatUint(f.Latency.Count, 10),
		}
		for _, d := range []units.Duration{f.Latency.P50, f.Latency.P99, f.Latency.P999} {
			cells = append(cells, blank(number(d), f.Latency.Count > 0))
		}
		for _, n := range []uint64{f.Marked, f.CNPs, f.Cuts, f.Resent, f.NAKs, f.Timeouts} {
			cells = append(cells, strconv.FormatUint(n, 10))
		}
		return cells
	})
}

// number is a quantity in its base unit.
func number[T ~int64](v T) string { return strconv.FormatInt(int64(v), 10) }

// table is CSV. A cell that a spreadsheet would take for a formula gets a quote before it: names may come from devices.
func table(head []string, n int, row func(int) []string) []byte {
	var b strings.Builder
	w := csv.NewWriter(&b)
	put := func(cells []string) {
		for i, c := range cells {
			if c != "" && strings.ContainsRune("=+@\t\r", rune(c[0])) {
				cells[i] = "'" + c
			}
		}
		_ = w.Write(cells) // a Builder takes everything
	}
	put(head)
	for i := range n {
		put(row(i))
	}
	w.Flush()
	return []byte(b.String())
}
