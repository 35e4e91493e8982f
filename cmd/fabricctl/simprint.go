package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/fabricctl/fabricctl/cmd/show"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/tuning/sim"
)

// modelsAnswer is said wherever numbers of a simulation are shown.
const modelsAnswer = "a model's answer, not a measurement"

// shortList is how many rows of a table are shown without --details.
const shortList = 8

// printSim writes a result: the answer first, then where things happened, then why, and what was assumed.
func printSim(w io.Writer, r *sim.Result, p promise, details bool) {
	fmt.Fprintf(w, "%s, %s, seed %d: %s\n\n", show.Paint(show.Bold, simTitle(r)), howLong(r), r.Seed, modelsAnswer)
	for _, f := range answers(r, p) {
		text := f.text
		if f.style != show.Plain {
			text = show.Paint(f.style, text)
		}
		show.Hang(w, show.Pad(f.label, 12), text)
	}
	limit := shortList
	if details {
		limit = 1 << 30
	}
	printGroups(w, "parts of the workload", r.Parts, endless(r, func(f *sim.Flow) string { return f.Part }))
	printGroups(w, "classes", r.Classes, endless(r, func(f *sim.Flow) string { return f.Class }))
	printFlows(w, r, limit)
	printQueues(w, r.Queues, limit)
	printPauses(w, r.Pauses, limit)
	printDrops(w, r.Drops, limit)
	printBuffers(w, r.Buffers, limit)
	printWatchdogs(w, r.Watchdog, limit)
	sentences(w, "why", r.Why)
	sentences(w, "assumed, since the fabric does not say it", r.Assumed)
}

// simTitle is "pod1: incast:8, without ECN, storm:host1,from=2ms": what was simulated, and what was changed for it.
func simTitle(r *sim.Result) string {
	return strings.Join(append([]string{r.Fabric + ": " + r.Workload}, r.Changed...), ", ")
}

// howLong is "10ms after 1ms of warm-up".
func howLong(r *sim.Result) string {
	s := lasting(r.Measured)
	if r.Warmup > 0 {
		s += " after " + lasting(r.Warmup) + " of warm-up"
	}
	return s
}

// answer is a line of the answer.
type answer struct {
	label, text string
	style       show.Style
}

// answers are the answer in a few lines.
func answers(r *sim.Result, p promise) []answer {
	t := &r.Totals
	facts := []answer{{"goodput", goodputText(r), show.Plain}}
	if t.Latency.Count > 0 {
		facts = append(facts, answer{"latency", timesText(t.Latency) + " (" + diag.Count(int(t.Latency.Count), "message") + ")", show.Plain})
	}
	if n := t.Completed + t.Unfinished; n > 0 {
		text := fmt.Sprintf("%d of %s ended", t.Completed, diag.Count(n, "flow"))
		if t.Completion.Count > 0 {
			text += ", " + timesText(t.Completion)
		}
		if t.Unfinished > 0 && r.End.Why == "stop" {
			text += fmt.Sprintf("; %d under way when time was over", t.Unfinished)
		}
		facts = append(facts, answer{"completion", text, show.Plain})
	}
	lost := answer{"lost", "nothing", show.Green}
	if t.Drops > 0 || t.Resent > 0 || t.Timeouts > 0 {
		lost.text, lost.style = diag.Count(int(t.Drops), "packet"), show.Plain
		if n := p.broken(r); n > 0 {
			lost.text += fmt.Sprintf(", %d of them of lossless classes", n)
			lost.style = show.Red
		}
		lost.text += fmt.Sprintf("; %d sent again, %s", t.Resent, diag.Count(int(t.Timeouts), "timeout"))
	}
	facts = append(facts, lost)
	pauses := "none"
	if t.Pauses > 0 || t.PausedTime > 0 {
		pauses = fmt.Sprintf("%d sent; ports stood still for %s in sum", t.Pauses, lasting(t.PausedTime))
	}
	marks := "none"
	if t.Marked > 0 || t.CNPs > 0 {
		marks = diag.Count(int(t.Marked), "packet") + ", " + diag.Count(int(t.CNPs), "notification") + " sent"
	}
	facts = append(facts, answer{"pauses", pauses, show.Plain}, answer{"marks", marks, show.Plain})
	if t.WatchdogHit > 0 {
		facts = append(facts, answer{"watchdog", "found queues stopped for too long " + diag.Plural(int(t.WatchdogHit), "time", "times"), show.Red})
	}
	switch r.End.Why {
	case "stop", "done":
	default:
		facts = append(facts, answer{"end", r.End.Why + " at " + r.End.At.String() + ": " + r.End.Words, show.Red})
		for _, s := range r.End.Stuck {
			text := fmt.Sprintf("%s holds %s", placeText(s.Queue), s.Bytes)
			if s.Paused.Device != "" {
				text += ", paused by " + portText(s.Paused)
			}
			facts = append(facts, answer{"", text, show.Plain})
		}
	}
	return facts
}

// goodputText is "94.8Gbps over 8 flows, each 11.2Gbps to 12.6Gbps, fairness 0.99".
func goodputText(r *sim.Result) string {
	s := show.Paint(show.Bold, rate(r.Totals.Goodput)) + " over " + diag.Count(len(r.Flows), "flow")
	if r.Totals.Fairness > 0 {
		least, most, n := units.BitRate(0), units.BitRate(0), 0
		for i := range r.Flows {
			if f := &r.Flows[i]; f.Bytes == 0 && f.Started {
				if n == 0 || f.Goodput < least {
					least = f.Goodput
				}
				most, n = max(most, f.Goodput), n+1
			}
		}
		if n > 1 {
			s += fmt.Sprintf("; endless ones %s to %s, fairness %.3f", rate(least), rate(most), r.Totals.Fairness)
		}
	}
	return s
}

func timesText(t sim.Times) string {
	return fmt.Sprintf("p50 %s, p99 %s, p99.9 %s, at most %s", lasting(t.P50), lasting(t.P99), lasting(t.P999), lasting(t.Max))
}

// scaled is a number in the largest unit of which there is one at least, in three digits or as many as stand before the point.
func scaled(v float64, units ...string) string {
	of, name := 1.0, units[0]
	for _, u := range units[1:] {
		if v < of*999.5 {
			break
		}
		of, name = of*1000, u
	}
	v /= of
	decimals := 0
	for x := v; x > 0 && x < 99.95 && decimals < 2; x *= 10 {
		decimals++
	}
	s := strconv.FormatFloat(v, 'f', decimals, 64)
	if decimals > 0 {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s + name
}

// rate, lasting and size are quantities in so many digits as a model's answer is worth.
func rate(r units.BitRate) string     { return scaled(float64(r), "bps", "Kbps", "Mbps", "Gbps", "Tbps") }
func lasting(d units.Duration) string { return scaled(float64(d), "ns", "us", "ms", "s") }
func size(b units.Bytes) string       { return scaled(float64(b), "B", "KB", "MB", "GB", "TB") }

// placeText is "leaf1:Ethernet8 queue 3 training".
func placeText(p sim.Place) string {
	return strings.TrimSpace(fmt.Sprintf("%s queue %d %s", portText(p), p.Queue, p.Class))
}

func portText(p sim.Place) string { return p.Device + ":" + p.Port }

// classCell is "3 training", or "-" of what was not classified yet.
func classCell(p sim.Place) string {
	if p.Queue < 0 {
		return "-"
	}
	return strings.TrimSpace(strconv.Itoa(p.Queue) + " " + p.Class)
}

// counts is how many of n sorted sizes are of account: at least a hundredth of the first one. With details it is all of them.
func counts(n, limit int, of func(int) units.Bytes) int {
	if limit > shortList {
		return limit
	}
	for i := range min(n, limit) {
		if i > 0 && of(i) < of(0)/100 {
			return i
		}
	}
	return limit
}

// section writes a table below a heading, as far as limit rows, and says how many there are more.
func section(w io.Writer, title string, head []string, n, limit int, row func(int) []string) {
	if n == 0 {
		return
	}
	shown := min(n, limit)
	rows := [][]string{head}
	for i := range shown {
		rows = append(rows, row(i))
	}
	for _, r := range rows {
		r[0] = "  " + r[0]
	}
	fmt.Fprintln(w, "\n"+title+":")
	show.Table(w, rows)
	if n > shown {
		fmt.Fprintf(w, "  and %d more, with --details\n", n-shown)
	}
}

// endless are the names of groups in which a flow goes on until the end: of others, no flow has a goodput throughout.
func endless(r *sim.Result, group func(*sim.Flow) string) map[string]bool {
	in := map[string]bool{}
	for i := range r.Flows {
		if f := &r.Flows[i]; f.Bytes == 0 && f.Started {
			in[group(f)] = true
		}
	}
	return in
}

func printGroups(w io.Writer, title string, gs []sim.Group, endless map[string]bool) {
	if len(gs) < 2 {
		return
	}
	section(w, title, []string{"", "flows", "goodput", "worst", "best", "p50", "p99", "p99.9", "marked", "again", "lost"}, len(gs), len(gs), func(i int) []string {
		g := &gs[i]
		t := g.Completion
		if g.Latency.Count > 0 {
			t = g.Latency
		}
		least, most := "-", "-"
		if endless[g.Name] {
			least, most = rate(g.Least), rate(g.Most)
		}
		return []string{
			g.Name, strconv.Itoa(g.Flows), rate(g.Goodput), least, most, timeCell(t, t.P50), timeCell(t, t.P99), timeCell(t, t.P999),
			strconv.FormatUint(g.Marked, 10), strconv.FormatUint(g.Resent, 10), strconv.FormatUint(g.Drops, 10),
		}
	})
}

// timeCell is a percentile, or "-" where nothing was timed.
func timeCell(t sim.Times, d units.Duration) string {
	if t.Count == 0 {
		return "-"
	}
	return lasting(d)
}

// printFlows lists the flows that did worst in comparison with the best of their part, or with what they would have taken alone. Without details,
// those whose messages are timed one by one stand in the numbers of their part alone.
func printFlows(w io.Writer, r *sim.Result, limit int) {
	timed, best := map[string]bool{}, map[string]units.BitRate{}
	for i := range r.Parts {
		timed[r.Parts[i].Name] = r.Parts[i].Latency.Count > 0 && limit <= shortList
		best[r.Parts[i].Name] = r.Parts[i].Most
	}
	var order []*sim.Flow
	for i := range r.Flows {
		if f := &r.Flows[i]; !timed[f.Part] {
			order = append(order, f)
		}
	}
	if len(r.Flows) == 1 {
		return // the answer is about it
	}
	title := "flows"
	if len(order) > limit {
		title = "flows that did worst"
		worse := func(f *sim.Flow) float64 {
			switch {
			case f.Done:
				return float64(f.Completion) / float64(max(f.Ideal, 1))
			case f.Bytes > 0 || f.Goodput == 0:
				return math.Inf(1)
			}
			return float64(best[f.Part]) / float64(f.Goodput)
		}
		slices.SortStableFunc(order, func(a, b *sim.Flow) int { return cmp.Compare(worse(b), worse(a)) })
	}
	head := []string{"from", "to", "part", "class", "goodput", "marked", "cuts", "again"}
	sized := slices.ContainsFunc(order, func(f *sim.Flow) bool { return f.Bytes > 0 || !f.Started })
	if sized {
		head = slices.Insert(head, 5, "took", "ideal")
	}
	section(w, title, head, len(order), limit, func(i int) []string { return flowRow(order[i], sized) })
}

// flowRow is a row of the flows; where some have a size, with how long it took.
func flowRow(f *sim.Flow, sized bool) []string {
	row := []string{
		portText(f.From), portText(f.To), f.Part, cmp.Or(f.Class, "dscp "+strconv.Itoa(int(f.DSCP))), rate(f.Goodput),
		strconv.FormatUint(f.Marked, 10), strconv.FormatUint(f.Cuts, 10), strconv.FormatUint(f.Resent, 10),
	}
	if !sized {
		return row
	}
	took, ideal := "-", "-"
	switch {
	case f.Done:
		took = lasting(f.Completion)
	case !f.Started:
		took = "not begun"
	case f.Bytes > 0:
		took = "not ended"
	}
	if f.Ideal > 0 {
		ideal = lasting(f.Ideal)
	}
	return slices.Insert(row, 5, took, ideal)
}

func printQueues(w io.Writer, qs []sim.Queue, limit int) {
	section(w, "queues, the fullest first", []string{"port", "queue", "mean", "p99", "max", "kmin", "kmax", "marked", "lost"}, len(qs), counts(len(qs), limit, func(i int) units.Bytes { return qs[i].Max }), func(i int) []string {
		q := &qs[i]
		kmin, kmax := "-", "-"
		if q.Kmax > 0 {
			kmin, kmax = q.Kmin.String(), q.Kmax.String()
		}
		return []string{
			portText(q.Place), classCell(q.Place), size(q.Mean), size(q.P99), size(q.Max), kmin, kmax,
			strconv.FormatUint(q.Marked, 10), strconv.FormatUint(q.Drops, 10),
		}
	})
}

func printPauses(w io.Writer, ps []sim.Pause, limit int) {
	section(w, "pauses, the longest stopped first", []string{"port", "priority", "sent", "obeyed", "stopped", "of the time", "longest"}, len(ps), limit, func(i int) []string {
		p := &ps[i]
		return []string{
			portText(p.Place), classCell(p.Place), strconv.FormatUint(p.Sent, 10), strconv.FormatUint(p.Received, 10), lasting(p.Paused),
			strconv.FormatFloat(100*p.Part, 'f', 1, 64) + "%", lasting(p.Longest),
		}
	})
}

func printDrops(w io.Writer, ds []sim.Drop, limit int) {
	section(w, "lost, the most first", []string{"port", "class", "packets", "bytes", "", "reason"}, len(ds), limit, func(i int) []string {
		d := &ds[i]
		kind := "lossy"
		switch {
		case d.Lossless:
			kind = show.Paint(show.Red, "lossless")
		case d.Queue < 0:
			kind = ""
		}
		return []string{portText(d.Place), classCell(d.Place), strconv.FormatUint(d.Packets, 10), size(units.Bytes(d.Bytes)), kind, d.Reason}
	})
}

func printBuffers(w io.Writer, bs []sim.Buffer, limit int) {
	section(w, "ingress buffers, the fullest first", []string{"port", "priority", "held", "pause at", "headroom", "of", "pool", "of"}, len(bs), counts(len(bs), limit, func(i int) units.Bytes { return bs[i].Max }), func(i int) []string {
		b := &bs[i]
		pause := "never"
		if b.Threshold > 0 {
			pause = size(b.Threshold)
		}
		return []string{
			portText(b.Place), classCell(b.Place), size(b.Max), pause, size(b.HeadroomMax), size(b.Headroom), size(b.PoolMax), size(b.Pool),
		}
	})
}

func printWatchdogs(w io.Writer, ws []sim.Watchdog, limit int) {
	section(w, "watchdog", []string{"port", "queue", "stuck", "restored", "discarded"}, len(ws), limit, func(i int) []string {
		x := &ws[i]
		return []string{
			portText(x.Place), classCell(x.Place), strconv.FormatUint(x.Stuck, 10), strconv.FormatUint(x.Restored, 10), strconv.FormatUint(x.Dropped, 10),
		}
	})
}

// sentences writes a list of them below a heading.
func sentences(w io.Writer, title string, list []string) {
	if len(list) == 0 {
		return
	}
	fmt.Fprintln(w, "\n"+title+":")
	for _, s := range list {
		show.Hang(w, "  - ", s)
	}
}
