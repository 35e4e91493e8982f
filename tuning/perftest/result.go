package perftest

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/fabricctl/fabricctl/model/observe"
)

// judge says what a run has measured, and whether that may be used.
func (r *run) judge(res *Result) {
	res.Observation.Workload = observe.Workload{} // whoever made the plan has it
	var reports []*Report
	for i := 0; i < len(r.sides); i += 2 {
		rep := r.judgePair(res, r.sides[i], r.sides[i+1])
		reports = append(reports, rep)
	}
	if first := r.first; first != nil && !first.server && res.Rejected != nil { // what failed first is nearest to the cause
		if why := r.failed(first); why != nil {
			res.Rejected = why
		}
	}
	r.fits(reports)
	res.reject(r.unloaded())
	if res.Rejected != nil {
		return
	}
	r.measured(res, reports)
	c := census{plan: r.plan, pairs: r.pairs(), rates: rates(reports), change: map[string]observe.Change{}}
	for _, device := range named(res.After) {
		if was, ok := res.Before[device]; ok {
			c.change[device] = observe.Delta(was, res.After[device])
			for _, n := range c.change[device].Notes() {
				res.note(device + ": " + n)
			}
		}
	}
	res.reject(c.wrongClass(res.note))
	res.reject(c.slowHost())
}

// fits sets how many messages latency tests have from now on.
func (r *run) fits(reports []*Report) {
	for i, rep := range reports {
		if x := r.sides[2*i+1]; x.pair.Latency && len(rep.Rows) > 0 {
			r.fit(x.pair, &rep.Rows[0], x.at.Sub(x.begun))
		}
	}
}

// unloaded is the rejection of a run in which the load had ended before a latency test had. The next one has fewer messages.
func (r *run) unloaded() *Rejection {
	var first time.Time // that any of the load ended
	for _, x := range r.sides {
		if !x.server && !x.pair.Latency && x.ended && (first.IsZero() || x.at.Before(first)) {
			first = x.at
		}
	}
	for _, x := range r.sides {
		if !x.server && x.pair.Latency && x.ended && !first.IsZero() && !r.o.Instant && x.at.After(first) {
			return &Rejection{Unloaded, x.who() + ": it measured on when the load had ended; the next run has fewer messages, and a longer one (for=10s) has room for more", false}
		}
	}
	return nil
}

// limits are those of a test: a latency test has as many messages as fit, however short that is.
func (r *run) limits(t *Test) Limits {
	l := r.o.Limits
	if t.Latency {
		l.Time = time.Nanosecond
	}
	return l
}

func (r *run) pairs() (out []*ready) {
	for i := 1; i < len(r.sides); i += 2 {
		out = append(out, r.sides[i].pair)
	}
	return out
}

func (res *Result) note(s string) {
	if !slices.Contains(res.Notes, s) {
		res.Notes = append(res.Notes, s)
	}
}

// reject takes the first reason that there is.
func (res *Result) reject(why *Rejection) {
	if res.Rejected == nil {
		res.Rejected = why
	}
}

// report is what a side has said; a side that was not seen to end has no exit code.
func (x *side) report() (Report, error) {
	out, ended, err := x.outcome()
	rc := out.Status
	if !ended {
		rc = -1
	}
	rep, bad := Parse(out.Stdout, out.Stderr, nil, rc)
	if err != nil {
		return rep, err
	}
	return rep, bad
}

// who begins the sentence about a side.
func (x *side) who() string {
	if x.server {
		return fmt.Sprintf("%s, server of %s", x.host(), x.pair.Client.Host)
	}
	return fmt.Sprintf("%s, client of %s", x.host(), x.pair.Server.Host)
}

// failed is why a side has failed; nil when it has not.
func (r *run) failed(x *side) *Rejection {
	rep, err := x.report()
	code, why := NoResult, ""
	switch {
	case errors.Is(err, errLate):
		code, why = NoEnd, fmt.Sprintf("it did not end within %s, and was ended", r.limit)
	case errors.Is(err, errBroken):
		code, why = Killed, "it was ended, since another test of the run had failed"
	case err != nil && rep.RC < 0:
		code, why = Killed, err.Error()
	case err != nil:
		why = err.Error()
	default:
		fs := (&judge{r: &rep, t: x.test, l: r.limits(x.test)}).failures()
		if len(fs) == 0 {
			return nil
		}
		return x.rejection(fs[0])
	}
	return &Rejection{code, x.who() + ": " + why, false}
}

// failures are why the test has failed.
func (j *judge) failures() []Finding {
	j.failure()
	return j.found
}

func (x *side) rejection(f Finding) *Rejection {
	why := x.who() + ": " + f.Why
	if f.Line != "" {
		why += fmt.Sprintf(" (%q)", f.Line)
	}
	return &Rejection{f.Code, why, f.Code == Host || f.Code == Clock}
}

// judgePair judges both sides of a test.
func (r *run) judgePair(res *Result, server, client *side) *Report {
	for _, x := range []*side{server, client} {
		res.reject(r.failed(x))
	}
	mine, err := client.report()
	if err != nil {
		return &mine
	}
	findings := mine.Judge(client.test, r.limits(client.test))
	if theirs, err := server.report(); err == nil {
		findings = append(findings, Compare(&mine, &theirs)...)
		for _, f := range theirs.Judge(server.test, r.limits(server.test)) {
			if f.Reject && (f.Code == Clock && !r.o.AnyClock || f.Code == WrongMTU || f.Code == Host) { // and those of its numbers are the client's
				res.reject(server.rejection(f))
			}
		}
	}
	for _, f := range findings {
		switch {
		case f.Reject && !(f.Code == Clock && r.o.AnyClock):
			res.reject(client.rejection(f))
		default:
			res.note(client.who() + ": " + f.Why)
		}
	}
	return &mine
}

// rates are the goodputs of tests, 0 for those of latency.
func rates(reports []*Report) []float64 {
	out := make([]float64, len(reports))
	for i, r := range reports {
		if !r.Latency && len(r.Rows) > 0 {
			out[i] = float64(r.Rows[0].Goodput().V)
		}
	}
	return out
}

// leftOut is how many of the largest samples a test leaves out at most, when it prints them all: they are as long as its longest, at least.
const leftOut = 4

// measured puts together what the tests have measured.
func (r *run) measured(res *Result, reports []*Report) {
	res.Parts = map[string]float64{}
	var total float64
	var times []time.Duration
	var tails []*Row
	for i, rep := range reports {
		p := &r.sides[2*i+1].pair.Pair
		w := &rep.Rows[0]
		if p.Latency {
			times = append(times, rep.Samples...)
			if left := w.Iterations - int64(len(rep.Samples)); len(rep.Samples) > 0 && left > 0 && left <= leftOut && w.Max.Set {
				times = append(times, slices.Repeat([]time.Duration{w.Max.V}, int(left))...)
			}
			tails = append(tails, w)
			continue
		}
		v := float64(w.Goodput().V)
		total += v
		res.Parts[p.Part] += v
	}
	if len(res.Parts) > 0 {
		res.Goodput = &total
		res.Fairness = fairness(r.plan, rates(reports))
	}
	res.latency(times, tails)
	if r.version != "" {
		res.note("perftest " + r.version)
	}
}

// fairness is Jain's index (sum x)^2 / (n sum x^2) over the tests of the first part that has more than one.
func fairness(plan *Plan, rate []float64) *float64 {
	for _, p := range plan.Pairs {
		var n, sum, squares float64
		for i, x := range rate {
			if plan.Pairs[i].Part == p.Part && !p.Latency {
				n, sum, squares = n+1, sum+x, squares+x*x
			}
		}
		if n > 1 && squares > 0 {
			v := sum * sum / (n * squares)
			return &v
		}
	}
	return nil
}

// latency counts the samples of all latency tests together. Without samples there are the percentiles that the tests print, of which the
// largest stand.
func (res *Result) latency(times []time.Duration, rows []*Row) {
	set := func(to **time.Duration, v time.Duration) { *to = &v }
	if len(times) == 0 {
		most := func(to **time.Duration, of func(*Row) Value[time.Duration]) {
			for _, w := range rows {
				if v := of(w); v.Set && (*to == nil || v.V > **to) {
					set(to, v.V)
				}
			}
		}
		most(&res.P50, func(w *Row) Value[time.Duration] { return w.Typical })
		most(&res.P99, func(w *Row) Value[time.Duration] { return w.P99 })
		most(&res.P999, func(w *Row) Value[time.Duration] { return w.P999 })
		return
	}
	slices.Sort(times)
	at := func(share float64) time.Duration { return times[max(int(math.Ceil(share*float64(len(times))))-1, 0)] } // the nearest rank
	set(&res.P50, at(.5))
	set(&res.P99, at(.99))
	set(&res.P999, at(.999))
	counts := map[time.Duration]uint64{}
	for _, t := range times {
		counts[bucket(t)]++
	}
	for _, from := range slices.SortedFunc(maps.Keys(counts), cmp.Compare[time.Duration]) {
		res.Latency = append(res.Latency, observe.Bucket{From: from, Count: counts[from]})
	}
}

// bucket is where the bucket of a time begins: 64 to each factor of two, 1.6 % wide, as those of the simulator.
func bucket(t time.Duration) time.Duration {
	if t < 128 {
		return t
	}
	step := time.Duration(1)
	for t/step >= 128 {
		step *= 2
	}
	return t - t%step
}
