package sim

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/fabricctl/fabricctl/model/derive"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/tuning/sim/engine"
)

// Run runs s. When ctx ends before, the Result is of the time until then, and comes with ctx's error.
func (s *Setup) Run(ctx context.Context) (*Result, error) {
	cfg := *s.Config
	if told := s.options.Progress; told != nil {
		end := units.Duration(0)
		if s.asked() {
			end = s.warmup + s.measured
		}
		cfg.Progress = func(at engine.Time) { told(toDuration(at), end) }
	}
	raw, err := engine.Run(ctx, &cfg)
	if raw == nil {
		if err != nil && ctx.Err() == nil {
			err = fmt.Errorf("simulation: %w", err)
		}
		return nil, err
	}
	return s.collect(raw), err
}

// asked reports whether how long the run is was asked for, or follows from flows that never end.
func (s *Setup) asked() bool {
	return cmp.Or(s.options.Duration, s.workload.Duration) > 0 || s.measured == DefaultDuration
}

func (s *Setup) collect(raw *engine.Result) *Result {
	r := &Result{
		Schema: Schema, Fabric: s.net.Fabric, Workload: s.workload.String(), Changed: s.options.Changes(), Seed: s.seed, Hash: fmt.Sprintf("%016x", raw.Hash),
		Events: raw.Events, Packets: raw.Packets, Warmup: s.warmup, Measured: toDuration(raw.Span),
		Assumed: orEmpty(s.assumed), Findings: orEmpty(s.found), setup: s, raw: raw,
	}
	r.end()
	r.flows()
	r.places()
	r.series()
	r.totals()
	r.silence()
	r.Why = orEmpty(r.why())
	return r
}

// orEmpty is a list that JSON writes as [], also when it is empty.
func orEmpty[L ~[]T, T any](l L) L {
	if l == nil {
		return L{}
	}
	return l
}

// end says why the run ended.
func (r *Result) end() {
	raw := r.raw
	e := End{At: toDuration(raw.At)}
	at := lasting(e.At)
	for _, x := range raw.Stuck {
		st := Stuck{Queue: r.setup.place(x.Port, x.Queue), Bytes: units.Bytes(x.Bytes)}
		if x.PausedBy != engine.None {
			st.Paused = r.setup.place(x.PausedBy, x.Queue)
		}
		e.Stuck = append(e.Stuck, st)
	}
	switch raw.End {
	case engine.EndStop:
		e.Why, e.Words = "stop", fmt.Sprintf("its time was over, after %s", at)
		if len(e.Stuck) > 0 {
			e.Words += ", with ports that wait for each other until a PFC watchdog ends it: " + waits(e.Stuck)
		}
	case engine.EndDone:
		e.Why, e.Words = "done", fmt.Sprintf("all flows of a known size had ended, after %s", at)
	case engine.EndIdle:
		e.Why, e.Words = "idle", fmt.Sprintf("nothing could happen any more after %s: %s", at, waits(e.Stuck))
	case engine.EndDeadlock:
		e.Why, e.Words = "deadlock", fmt.Sprintf("deadlock at %s: %s", at, waits(e.Stuck))
	case engine.EndLivelock:
		e.Why, e.Words = "livelock", fmt.Sprintf("packets moved and none was delivered any more at %s: %s", at, waits(e.Stuck))
	default:
		e.Why, e.Words = "interrupted", fmt.Sprintf("it was interrupted after %s", at)
	}
	r.End = e
}

// String is the place as people write it.
func (p Place) String() string { return p.Device + ":" + p.Port }

// waits says who waits for whom.
func waits(all []Stuck) string {
	const few = 8
	if len(all) == 0 {
		return "what has not ended was lost, and nobody sends it again"
	}
	text := ""
	for i, x := range all {
		switch {
		case i == few:
			return text + fmt.Sprintf(", and %d more", len(all)-few)
		case i > 0:
			text += ", "
		}
		text += fmt.Sprintf("%s queue %d holds %s", x.Queue, x.Queue.Queue, about(x.Bytes))
		if x.Paused != (Place{}) {
			text += " and waits for " + x.Paused.String()
		}
	}
	return text
}

// flows are the flows, and what the parts and classes come to.
func (r *Result) flows() {
	s := r.setup
	parts := make([]tally, len(s.workload.Parts))
	for i := range parts {
		parts[i].group.Name = s.workload.Label(i)
	}
	classes := make([]tally, 8)
	r.Flows = make([]Flow, len(s.flows))
	for i := range s.flows {
		r.Flows[i] = r.flow(i)
		for _, t := range []*tally{&parts[s.flows[i].part], &classes[s.flows[i].priority]} {
			t.add(r, i)
		}
	}
	for i := range parts {
		r.Parts = append(r.Parts, parts[i].done(r.raw.Span))
	}
	for p := range classes {
		if classes[p].group.Flows > 0 {
			classes[p].group.Name = s.classes.of(p)
			r.Classes = append(r.Classes, classes[p].done(r.raw.Span))
		}
	}
}

func (r *Result) flow(i int) Flow {
	s := r.setup
	f, c, x := &s.flows[i], &s.Config.Flows[i], &r.raw.Flows[i]
	out := Flow{
		Part: s.workload.Label(f.part), Class: s.classes.of(f.priority), DSCP: f.dscp,
		From: s.place(s.nics[f.from].port, int(c.Class)), To: s.place(s.nics[f.to].port, int(c.Class)),
		Bytes: units.Bytes(c.Bytes), Start: toDuration(x.Start), Started: x.Started, Done: x.Done, Completion: toDuration(x.Completion),
		Received: units.Bytes(x.Received), Rate: units.BitRate(x.Rate), Marked: x.Marked, CNPs: x.CNPs, Cuts: x.Cuts,
		Drops: x.Dropped, Resent: x.Resent, NAKs: x.NACKs, Timeouts: x.Timeouts,
	}
	if !x.Started {
		out.Start = toDuration(c.Start)
	}
	out.Goodput = rateOf(x.Received, r.active(i, s.Config.Measure))
	if c.Bytes > 0 {
		out.Ideal = s.ideal(i)
		out.Goodput = rateOf(x.Received+x.Before, r.active(i, 0)) // what straddles the end of the warm-up came in no time
	}
	if h := x.Messages; f.latency && h != nil && h.Total > 0 {
		var t timed
		t.merge(h, s.correction(i))
		out.Latency = t.times()
	}
	return out
}

// silence finds the flows of which nothing ever arrived.
func (r *Result) silence() {
	s := r.setup
	busy := make([]int64, len(s.nics)) // flows of each NIC that have not ended
	for i := range s.flows {
		if x := &r.raw.Flows[i]; x.Started && !x.Done {
			busy[s.flows[i].from]++
			busy[s.flows[i].to]++
		}
	}
	for i := range s.flows {
		f, x, c := &s.flows[i], &r.raw.Flows[i], &s.Config.Flows[i]
		if !x.Started || x.Done || x.Received+x.Before > 0 {
			continue
		}
		frame := int64(c.Payload + s.Config.Transport.Header + s.Config.Overhead)
		turn := max(wire(busy[f.from]*frame, s.Config.Ports[s.nics[f.from].port].Rate), wire(busy[f.to]*frame, s.Config.Ports[s.nics[f.to].port].Rate))
		if since := r.raw.At - x.Start; since > r.raw.At/2 && since > 10*max(turn, toTime(r.Flows[i].Ideal)) {
			r.silent = append(r.silent, i)
		}
	}
}

// active is for how long a flow was at work since a time.
func (r *Result) active(i int, since engine.Time) engine.Time {
	x := &r.raw.Flows[i]
	if !x.Started {
		return 0
	}
	from, to := max(x.Start, since), r.raw.At
	if x.Done {
		to = min(to, x.Start+x.Completion)
	}
	return max(to-from, 0)
}

// rateOf is a rate in megabits, or kilobits where it is low.
func rateOf(bytes int64, in engine.Time) units.BitRate {
	if in <= 0 {
		return 0
	}
	rate, unit := units.BitRate(float64(bytes)*8*float64(engine.Second)/float64(in)), units.BitRate(1)
	switch {
	case rate >= units.Gbps:
		unit = units.Mbps
	case rate >= units.Mbps:
		unit = units.Kbps
	}
	return (rate + unit/2) / unit * unit
}

// ideal is how long a flow takes at least that is alone: as long as its packets take on the slowest link of a way, and there
// and back for the last of them.
func (s *Setup) ideal(i int) units.Duration {
	f, c := &s.flows[i], &s.Config.Flows[i]
	path := s.way(f.from, f.to)
	if len(path) == 0 {
		return 0
	}
	frame := int64(c.Payload + s.Config.Transport.Header + s.Config.Overhead)
	ack := int64(s.Config.Transport.AckSize + s.Config.Overhead)
	packets := (c.Bytes + int64(c.Payload) - 1) / int64(c.Payload)
	bytes := c.Bytes + packets*(frame-int64(c.Payload))
	last := min(frame, bytes-(packets-1)*frame)
	slowest := s.Config.Ports[path[0]].Rate
	var there engine.Time
	for _, p := range path {
		x := &s.Config.Ports[p]
		slowest = min(slowest, x.Rate)
		there += 2*x.Delay + wire(last, x.Rate) + wire(ack, x.Rate)
	}
	return toDuration(there + wire(bytes-last, slowest))
}

// wire is how long bytes take at a rate.
func wire(bytes, rate int64) engine.Time {
	return engine.Time(float64(bytes) * 8 * float64(engine.Second) / float64(rate))
}

// timed is times that are counted.
type timed struct {
	h   engine.Histogram // ns
	sum float64
}

func (t *timed) add(d units.Duration) {
	t.h.Add(int64(d), 1)
	t.sum += float64(d)
}

// merge adds counted times, made those of perftest.
func (t *timed) merge(h *engine.Histogram, as func(int64) int64) {
	for b, n := range h.Counts {
		if n > 0 {
			v := as(min(engine.LowerEdge(b), h.Max))
			t.h.Add(v, n)
			t.sum += float64(v) * float64(n)
		}
	}
	t.h.Max = max(t.h.Max, as(h.Max))
}

// correction makes of the times of a flow's messages what perftest reports. Of a write or a send, the time is that there and
// back, and half of it is reported. A READ is timed from its first packet on, and the request has gone before that: as long as
// it takes alone.
func (s *Setup) correction(i int) func(int64) int64 {
	f := &s.flows[i]
	if !s.Config.Flows[i].Read {
		return func(ns int64) int64 { return ns / 2 }
	}
	var request engine.Time
	for _, p := range s.way(f.to, f.from) {
		c := &s.Config.Ports[p]
		request += c.Delay + wire(int64(s.Config.Transport.AckSize+s.Config.Overhead), c.Rate)
	}
	return func(ns int64) int64 { return ns + int64(toDuration(request)) }
}

func (t *timed) times() Times {
	if t.h.Total == 0 {
		return Times{}
	}
	q := func(p float64) units.Duration { return units.Duration(t.h.Quantile(p)) }
	return Times{
		Count: t.h.Total, Mean: units.Duration(t.sum / float64(t.h.Total)), P50: q(0.5), P99: q(0.99), P999: q(0.999),
		Max: units.Duration(t.h.Max),
	}
}

// tally adds up the flows of a group.
type tally struct {
	group           Group
	received        int64
	ended, messages timed
	rates           []float64 // of endless flows
	any             bool      // there is one that has begun
}

func (t *tally) add(r *Result, i int) {
	f, x, c := &r.Flows[i], &r.raw.Flows[i], &r.setup.Config.Flows[i]
	g := &t.group
	g.Flows++
	g.Marked += f.Marked
	g.CNPs += f.CNPs
	g.Resent += f.Resent
	g.Drops += f.Drops
	t.received += x.Received
	probe := r.setup.flows[i].latency
	switch {
	case c.Bytes == 0:
		t.rates = append(t.rates, float64(f.Goodput))
	case f.Done && x.Start >= r.setup.Config.Measure:
		g.Completed++
		t.ended.add(f.Completion)
		if probe && x.Messages == nil {
			t.messages.add(f.Completion)
		}
	case f.Done:
		g.Completed++
	case f.Started:
		g.Unfinished++
	}
	if probe && x.Messages != nil {
		t.messages.merge(x.Messages, r.setup.correction(i))
	}
	if c.Bytes == 0 && f.Started {
		if !t.any || f.Goodput < g.Least { // the least may be nothing at all
			g.Least = f.Goodput
		}
		g.Most, t.any = max(g.Most, f.Goodput), true
	}
}

func (t *tally) done(span engine.Time) Group {
	g := t.group
	g.Goodput = rateOf(t.received, span)
	g.Fairness = jain(t.rates)
	g.Completion, g.Latency = t.ended.times(), t.messages.times()
	g.counted = t.ended.h
	if t.messages.h.Total > 0 {
		g.counted, g.measured = t.messages.h, true
	}
	return g
}

// jain is Jain's index of fairness, (sum x)^2 / (n sum x^2); 0 without flows.
func jain(xs []float64) float64 {
	var sum, squares float64
	for _, x := range xs {
		sum += x
		squares += float64(x * x)
	}
	if squares == 0 {
		return 0
	}
	return sum * sum / (float64(len(xs)) * squares)
}

// totals are sums over everything.
func (r *Result) totals() {
	t := &r.Totals
	all := tally{}
	for i := range r.Flows {
		all.add(r, i)
		t.Timeouts += r.Flows[i].Timeouts
	}
	g := all.done(r.raw.Span)
	t.Goodput, t.Completed, t.Unfinished, t.Completion, t.Latency = g.Goodput, g.Completed, g.Unfinished, g.Completion, g.Latency
	t.Resent, t.Fairness = g.Resent, g.Fairness
	for _, n := range r.raw.NICs {
		t.CNPs += n.CNPsSent
		t.OutOfOrder += n.OutOfSeq
	}
	for i := range r.raw.Ports {
		for q := range r.raw.Ports[i].Queues {
			t.Marked += r.raw.Ports[i].Queues[q].Marked
		}
	}
	for _, p := range r.Pauses {
		t.Pauses += p.Sent
		t.PausedTime += p.Paused
	}
	for _, d := range r.Drops {
		t.Drops += d.Packets
		if d.Lossless {
			t.Lossless += d.Packets
		}
	}
	for _, w := range r.Watchdog {
		t.WatchdogHit += w.Stuck
	}
}

// places are the queues, groups and ports at which something happened.
func (r *Result) places() {
	s := r.setup
	r.Queues, r.Pauses, r.Drops, r.Buffers, r.Watchdog = []Queue{}, []Pause{}, []Drop{}, []Buffer{}, []Watchdog{}
	for i := range r.raw.Ports {
		x, c := &r.raw.Ports[i], &s.Config.Ports[i]
		for q := range 8 {
			if c.Switch != engine.None {
				r.queue(i, q)
				r.buffer(i, q)
			}
			g := &x.Groups[q]
			if g.PausesSent+g.PausesReceived > 0 || g.Paused > 0 {
				r.Pauses = append(r.Pauses, Pause{
					Place: s.place(i, q), Sent: g.PausesSent, Received: g.PausesReceived, Paused: toDuration(g.Paused),
					Longest: toDuration(x.PausedLongest[q]), Part: part(g.Paused, r.raw.Span),
				})
			}
		}
		for reason := range engine.NumDropReasons {
			if x.Drops[reason] > 0 {
				r.Drops = append(r.Drops, r.drop(i, reason))
			}
		}
	}
	slices.SortStableFunc(r.Queues, func(a, b Queue) int { return cmp.Compare(b.Max, a.Max) })
	slices.SortStableFunc(r.Pauses, func(a, b Pause) int {
		return cmp.Or(cmp.Compare(b.Paused, a.Paused), cmp.Compare(b.Sent, a.Sent))
	})
	slices.SortStableFunc(r.Drops, func(a, b Drop) int { return cmp.Compare(b.Packets, a.Packets) })
	slices.SortStableFunc(r.Buffers, func(a, b Buffer) int {
		return cmp.Or(cmp.Compare(b.HeadroomMax, a.HeadroomMax), cmp.Compare(b.Max, a.Max))
	})
}

func part(t, of engine.Time) float64 {
	if of <= 0 {
		return 0
	}
	return float64(t) / float64(of)
}

func (r *Result) queue(i, q int) {
	x, c := &r.raw.Ports[i].Queues[q], &r.setup.Config.Ports[i].Queues[q]
	if x.Max > 0 || x.Drops > 0 {
		out := Queue{
			Place: r.setup.place(i, q), Mean: units.Bytes(x.Mean + 0.5), P99: units.Bytes(x.P99), Max: units.Bytes(x.Max),
			Bytes: x.TxBytes, Frames: x.TxFrames, Marked: x.Marked, Drops: x.Drops,
		}
		if c.Marks {
			out.Kmin, out.Kmax = units.Bytes(c.Kmin), units.Bytes(c.Kmax)
		}
		r.Queues = append(r.Queues, out)
	}
	if x.Stuck+x.Restored > 0 {
		r.Watchdog = append(r.Watchdog, Watchdog{
			Place: r.setup.place(i, q), Stuck: x.Stuck, Restored: x.Restored, Dropped: r.raw.Ports[i].Drops[engine.DropWatchdog],
		})
	}
}

func (r *Result) buffer(i, g int) {
	x, c := &r.raw.Ports[i].Groups[g], &r.setup.Config.Ports[i].Groups[g]
	if x.Max == 0 && x.HeadroomMax == 0 {
		return
	}
	sw := r.setup.Config.Ports[i].Switch
	b := Buffer{
		Place: r.setup.place(i, g), Max: units.Bytes(x.Max), Headroom: units.Bytes(c.Headroom), HeadroomMax: units.Bytes(x.HeadroomMax),
		PoolMax: units.Bytes(r.raw.Switches[sw].SharedMax[c.Pool]), Pool: units.Bytes(r.setup.Config.Switches[sw].Pools[c.Pool].Size),
	}
	b.Class = r.setup.classes.ofGroup(&r.setup.ports[i].pol, g)
	if c.Lossless {
		b.Threshold = r.setup.threshold(i, g)
	}
	r.Buffers = append(r.Buffers, b)
}

// threshold is where a group pauses that is the only one to hold anything, reserved bytes included.
func (s *Setup) threshold(i, g int) units.Bytes {
	c := &s.Config.Ports[i].Groups[g]
	if c.Static > 0 {
		return units.Bytes(c.Static + c.Reserved)
	}
	pool := units.Bytes(s.Config.Switches[s.Config.Ports[i].Switch].Pools[c.Pool].Size)
	share := derive.DynamicThreshold(pool, units.Ratio{Num: int32(min(c.Alpha, 1<<30)), Den: 1 << 16}, 1)
	return share.Each.Down() + units.Bytes(c.Reserved)
}

// reasons are why packets are discarded, in words.
func reasons() [engine.NumDropReasons]string {
	return [engine.NumDropReasons]string{
		engine.DropHeadroom: "no headroom left", engine.DropIngress: "ingress buffer full", engine.DropEgress: "egress queue full",
		engine.DropWRED: "WRED", engine.DropMTU: "longer than the MTU", engine.DropWatchdog: "PFC watchdog", engine.DropUnclassified: "not classified",
		engine.DropNIC: "no buffer in the NIC",
	}
}

// dropsOf is what a group or a queue of a port has discarded that may have been for a reason. What fits no port, or no group takes,
// is counted of none.
func (r *Result) dropsOf(i, q int, reason engine.DropReason) uint64 {
	x, lossless := &r.raw.Ports[i], r.setup.Config.Ports[i].Groups[q].Lossless
	switch reason {
	case engine.DropEgress, engine.DropWRED, engine.DropWatchdog:
		return x.Queues[q].Drops
	case engine.DropNIC:
		return x.Groups[q].Drops
	case engine.DropHeadroom:
		if lossless {
			return x.Groups[q].Drops
		}
	case engine.DropIngress:
		if !lossless {
			return x.Groups[q].Drops
		}
	}
	return 0
}

// drop is what a port has discarded for a reason. The engine counts by reason, and by group or queue; where several of these drop
// for several reasons, the priority is not known, and -1.
func (r *Result) drop(i int, reason engine.DropReason) Drop {
	x, pol := &r.raw.Ports[i], &r.setup.ports[i].pol
	at, count := -1, 0
	for q := range 8 {
		if r.dropsOf(i, q, reason) > 0 {
			at, count = q, count+1
		}
	}
	if count > 1 {
		at = -1
	}
	d := Drop{Place: r.setup.place(i, max(at, 0)), Reason: reasons()[reason], Packets: x.Drops[reason], Bytes: x.DropBytes[reason]}
	d.Queue = at
	if at < 0 {
		d.Class = ""
	}
	d.Lossless = reason == engine.DropHeadroom || at >= 0 && pol.Queues[at].Lossless
	return d
}

// ofGroup names the class whose packets a priority group of a port is for.
func (c *classes) ofGroup(pol *intent.Policy, group int) string {
	for tc := range pol.TCPG {
		if groupOf(pol, tc) == group && c.name[tc] != "" && (tc == group || c.name[group] == "") {
			return c.name[tc]
		}
	}
	return ""
}

// series is the rows over time.
func (r *Result) series() {
	s := r.setup
	if s.options.Sample <= 0 {
		return
	}
	out := &Series{Queues: []Place{}, Flows: []int{}, Rows: []Row{}}
	for _, w := range s.Config.Watch {
		out.Queues = append(out.Queues, s.place(w.Port, w.Queue))
	}
	for i := range s.flows {
		if len(out.Flows) < mostSeries && !s.flows[i].latency {
			out.Flows = append(out.Flows, i)
		}
	}
	var before engine.Time
	received := make([]int64, len(s.flows))
	for i := range r.raw.Series {
		x := &r.raw.Series[i]
		row := Row{At: toDuration(x.At), Marked: x.Marked, Drops: x.Drops, Queues: []units.Bytes{}, Goodput: []units.BitRate{}, Rates: []units.BitRate{}}
		for _, q := range x.Queues {
			row.Queues = append(row.Queues, units.Bytes(q))
		}
		for _, f := range out.Flows {
			row.Goodput = append(row.Goodput, rateOf(x.Received[f]-received[f], x.At-before))
			row.Rates = append(row.Rates, units.BitRate(x.Rates[f]))
		}
		for _, t := range x.Paused {
			row.Paused += toDuration(t)
		}
		copy(received, x.Received)
		before = x.At
		out.Rows = append(out.Rows, row)
	}
	r.Series = out
}

// mostSeries is the most flows in the rows of a series.
const mostSeries = 64
