package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/fabricctl/fabricctl/drivers/lab/host"
	"github.com/fabricctl/fabricctl/drivers/lab/perftest"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/observe"
	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/tuning/sim"
)

// errClosed is why what a lab does ends with it.
var errClosed = errors.New("the lab was closed")

// largestExact is the largest test of so many messages that is simulated from its begin to its end, in bytes of all its queue
// pairs: what a 400G link carries in the window.
const largestExact = 400_000_000

// measure simulates verbs tests that take place at the same time. Each is a part of one workload. Those between whose hosts no way
// leads are dead, and the others take place without them.
func (l *Lab) measure(ctx context.Context, tests []host.Test) ([]host.Outcome, error) {
	var order []int // not that in which they began
	for i := range tests {
		if tests[i].Client.Host == tests[i].Server.Host {
			return nil, errors.New("the lab does not emulate a test of a host with itself")
		}
		order = append(order, i)
	}
	slices.SortFunc(order, func(i, j int) int { return compareTests(&tests[i], &tests[j]) })
	net, _, err := l.Net()
	if err != nil {
		return nil, err
	}
	outcomes, seed := make([]host.Outcome, len(tests)), l.runs.Add(1)
	o := sim.Options{Duration: sim.DefaultDuration, Warmup: sim.DefaultWarmup}
	w, exact := together(tests, order)
	r, err := l.simulate(ctx, net, w, o, seed)
	if _, refused := errors.AsType[*sim.Refused](err); refused {
		order = slices.DeleteFunc(order, func(i int) bool {
			outcomes[i].Dead = apart(net, tests, i, o)
			return outcomes[i].Dead
		})
		if len(order) == 0 {
			return outcomes, nil
		}
		w, exact = together(tests, order)
		r, err = l.simulate(ctx, net, w, o, seed)
	}
	if err != nil {
		return nil, err
	}
	longest, dead := time.Duration(0), true
	for k, i := range order {
		part := slices.IndexFunc(r.Parts, func(g sim.Group) bool { return g.Name == w.Parts[k].Name })
		if part < 0 {
			return nil, fmt.Errorf("sim: nothing is known of %s", w.Parts[k].Name)
		}
		var took time.Duration
		outcomes[i], took = outcomeOf(&tests[i], &w.Parts[k], &r.Parts[part], r)
		longest = max(longest, took)
		exact = exact && r.Parts[part].Unfinished == 0
		dead = dead && outcomes[i].Dead
	}
	if dead { // what was sent was sent at the begin
		o.Warmup = 1
		if r, err = l.simulate(ctx, net, w, o, seed); err != nil {
			return nil, err
		}
	}
	duration := units.Duration(longest)
	if exact || dead { // all of it was simulated
		duration = r.Measured
	}
	l.count(r, max(duration, 1))
	return outcomes, nil
}

// together is tests as one workload; exact is whether each ends in the window. Otherwise none does: one that ends in the middle
// would leave the others another fabric.
func together(tests []host.Test, order []int) (w observe.Workload, exact bool) {
	exact = true
	for k, i := range order {
		p, sized := partOf(&tests[i])
		p.Name = fmt.Sprintf("test%d", k+1)
		w.Parts = append(w.Parts, p)
		exact = exact && sized
	}
	for k := range w.Parts {
		if !exact {
			w.Parts[k].Bytes, w.Parts[k].Start = 0, 0
		}
	}
	return w, exact
}

// apart reports whether no way leads from the client of a test to its server.
func apart(net *intent.Net, tests []host.Test, i int, o sim.Options) bool {
	w, _ := together(tests, []int{i})
	_, err := sim.Build(net, w, o, 0)
	refused, ok := errors.AsType[*sim.Refused](err)
	return ok && slices.ContainsFunc(refused.Findings, func(f diag.Finding) bool { return f.Rule == "sim-no-way" || f.Rule == "sim-no-host" })
}

func compareTests(a, b *host.Test) int {
	return cmp.Or(cmp.Compare(a.Client.Host, b.Client.Host), cmp.Compare(a.Client.Link, b.Client.Link), cmp.Compare(a.Server.Host, b.Server.Host),
		cmp.Compare(a.Server.Link, b.Server.Link), cmp.Compare(a.Port, b.Port), cmp.Compare(a.Name, b.Name))
}

// partOf is a test as a part of a workload. Data is marked as the side that sends it marks: of a read, the server. sized is
// whether it ends within the window, and is simulated whole.
func partOf(t *host.Test) (p observe.Part, sized bool) {
	tos := t.Client.ToS
	p = observe.Part{
		Kind: observe.Single, Hosts: []string{t.Client.Host + ":" + t.Client.Link, t.Server.Host + ":" + t.Server.Link},
		Message: units.Bytes(t.Size), QPs: t.QPs, MTU: units.Bytes(t.MTU), Both: t.Both, Latency: t.Latency,
	}
	switch t.Op {
	case perftest.Read:
		p.Op, tos = observe.OpRead, t.Server.ToS
	case perftest.Send:
		p.Op = observe.OpSend
	}
	if !t.Latency {
		p.Depth = t.Depth
	}
	dscp := tos >> 2
	p.DSCP = &dscp
	if total := t.Iterations * t.Size; t.Duration == 0 && !t.Latency && total <= largestExact/t.QPs {
		p.Bytes, p.Start, sized = units.Bytes(total), sim.DefaultWarmup, true
	}
	return p, sized
}

// outcomeOf is what a test measures, and how long it takes, with the margins, which lie inside its duration.
func outcomeOf(t *host.Test, p *observe.Part, g *sim.Group, r *sim.Result) (out host.Outcome, took time.Duration) {
	n := &out.Numbers
	took = time.Duration(t.Duration) * time.Second
	if t.Latency {
		return latencyOf(t, g, took)
	}
	n.Bits = float64(g.Goodput)
	if p.Bytes > 0 && g.Unfinished == 0 {
		n.Bits = float64(p.Bytes) * 8 * float64(g.Completed) / time.Duration(g.Completion.Max).Seconds()
	}
	if n.Bits == 0 {
		return host.Outcome{Dead: true}, time.Duration(r.Measured)
	}
	n.Rate = n.Bits / 8 / float64(t.Size)
	n.Iterations = int64(t.Iterations)
	if t.Duration > 0 {
		n.Iterations = int64(n.Rate * float64(t.Measured()))
		if t.Both { // each side counts its own
			n.Iterations /= 2
		}
	} else {
		took = time.Duration(float64(t.Iterations*t.QPs) / n.Rate * float64(time.Second))
	}
	return out, took
}

// latencyOf is what a latency test measures: of writes and sends, half of the way there and back. A mean and a deviation are those of
// what was counted, whose buckets are 1.6 % wide.
func latencyOf(t *host.Test, g *sim.Group, took time.Duration) (out host.Outcome, _ time.Duration) {
	if g.Latency.Count == 0 {
		return host.Outcome{Dead: true}, took
	}
	us := func(d units.Duration) float64 { return float64(d) / 1e3 }
	times := g.Counted()
	n := &out.Numbers
	n.Min, n.Max, n.Typical, n.Average = float64(times[0].From)/1e3, us(g.Latency.Max), us(g.Latency.P50), us(g.Latency.Mean)
	n.P99, n.P999 = us(g.Latency.P99), us(g.Latency.P999)
	var sum, count float64
	for _, b := range times {
		d := float64(b.From)/1e3 - n.Average
		sum, count = sum+d*d*float64(b.Count), count+float64(b.Count)
	}
	n.Stdev = math.Sqrt(sum / count)
	trip := n.Average
	if t.Op != perftest.Read {
		trip *= 2
	}
	n.Rate = 1e6 / trip
	n.Iterations = int64(t.Iterations)
	if t.Duration > 0 {
		n.Iterations = int64(n.Rate * float64(t.Measured()))
		return out, took
	}
	if t.Samples {
		n.Latencies = samplesOf(times, t.Iterations)
	}
	return out, time.Duration(float64(t.Iterations) * trip * 1e3)
}

// tail is how many of the largest samples perftest leaves out.
const tail = 3

// samplesOf are n samples with the distribution of what was counted, in us, ascending, as perftest prints them.
func samplesOf(times []observe.Bucket, n int) []float64 {
	var all uint64
	for _, b := range times {
		all += b.Count
	}
	out := make([]float64, 0, n)
	var seen uint64
	for _, b := range times {
		seen += b.Count
		for len(out) < n-tail && float64(len(out))+.5 <= float64(seen)/float64(all)*float64(n) {
			out = append(out, float64(b.From)/1e3)
		}
	}
	return out
}
