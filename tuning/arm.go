package tuning

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/fabricctl/fabricctl/model/observe"
	"github.com/fabricctl/fabricctl/tuning/stats"
)

// arm is a setting and the runs that were made of it. Run i of every arm has the same seed.
type arm struct {
	setting Setting
	key     string
	first   int    // the index of the seed of its first run
	runs    []*run // without gaps, but while runs are being made
	failed  int    // rejected runs in a row
	left    string // why it is not to be run any more
	refused bool   // left, since devices do not take it
	bare    bool   // it never marks: of the phase without ECN
}

// run is a measure in the numbers that are compared.
type run struct {
	*Measure
	good float64 // ln of goodput
	tail float64 // ln of p99.9; 0 when nobody measures it
	j    float64
}

// metric is a number of a run.
type metric func(*run) float64

func byJ(r *run) float64    { return r.j }
func byGood(r *run) float64 { return r.good }
func byTail(r *run) float64 { return r.tail }

// n is how many runs a has from the first on without a gap.
func (a *arm) n() int {
	if i := slices.Index(a.runs, nil); i >= 0 {
		return i
	}
	return len(a.runs)
}

// values are a metric of the first n runs.
func (a *arm) values(m metric, n int) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = m(a.runs[i])
	}
	return x
}

func (a *arm) mean(m metric, n int) float64 {
	s := 0.0
	for _, r := range a.runs[:n] {
		s += m(r)
	}
	return s / float64(n)
}

// common is how many runs all arms have.
func common(arms ...*arm) int {
	n := math.MaxInt
	for _, a := range arms {
		n = min(n, a.n())
	}
	return n
}

// against is the interval of a's metric less b's, over the seeds that both have run.
func (t *tuner) against(a, b *arm, m metric, conf float64) stats.Interval {
	n := common(a, b)
	return t.student.Paired(a.values(m, n), b.values(m, n), conf)
}

// same reports whether the first n runs of a and b cannot be told apart: no packet took another time, which under the same
// seeds proves that what differs between the settings was never reached.
func (a *arm) same(b *arm, n int) bool {
	for i := range n {
		if !a.runs[i].same(b.runs[i]) {
			return false
		}
	}
	return true
}

// same reports whether two runs cannot be told apart.
func (r *run) same(o *run) bool {
	x, y := r.Measure, o.Measure
	return x.Goodput == y.Goodput && x.P999 == y.P999 && x.P50 == y.P50 && slices.Equal(x.Latency, y.Latency)
}

// broken is the limit that a setting breaks in any of its runs; "" when it breaks none.
func (a *arm) broken(o *Objective) string {
	var drops, watchdog, sequence uint64
	paused, n := 0.0, 0
	for _, r := range a.runs {
		if r == nil {
			continue
		}
		n++
		drops, watchdog, sequence = drops+value(r.Drops), watchdog+value(r.Watchdog), sequence+value(r.Sequence)
		if r.Paused != nil {
			paused += *r.Paused
		}
	}
	switch {
	case drops > 0:
		return fmt.Sprintf("%d packets of lossless classes were lost", drops)
	case watchdog > 0:
		return fmt.Sprintf("the PFC watchdog acted %d times", watchdog)
	case sequence > 0:
		return fmt.Sprintf("%d packets were out of sequence, refused or not acknowledged in time", sequence)
	case o.PausedMost > 0 && n > 0 && paused/float64(n) > o.PausedMost:
		return fmt.Sprintf("a port stood still for %.1f%% of the time, and %.1f%% is the most", 100*paused/float64(n), 100*o.PausedMost)
	}
	return ""
}

func value(p *uint64) uint64 {
	if p == nil {
		return 0
	}
	return *p
}

// shown is a as a decision shows it.
func (a *arm) shown(why string) Arm {
	n := a.n()
	s := Arm{Setting: a.setting, Runs: n, Left: cmp.Or(why, a.left)}
	if n == 0 {
		return s
	}
	for _, r := range a.runs[:n] {
		s.Goodput += r.Goodput / float64(n)
	}
	s.J, s.P999 = a.mean(byJ, n), a.pooled(0.999)
	return s
}

// pooled is a quantile of the times of all runs together, in seconds; of runs that counted none, the geometric mean of their p99.9.
func (a *arm) pooled(q float64) float64 {
	counts := map[time.Duration]uint64{}
	total := uint64(0)
	for _, r := range a.runs[:a.n()] {
		for _, b := range r.Latency {
			counts[b.From] += b.Count
			total += b.Count
		}
	}
	if total == 0 {
		if a.runs[0].P999 == 0 {
			return 0
		}
		return math.Exp(a.mean(byTail, a.n()))
	}
	all := make([]observe.Bucket, 0, len(counts))
	for from, count := range counts {
		all = append(all, observe.Bucket{From: from, Count: count})
	}
	slices.SortFunc(all, func(x, y observe.Bucket) int { return cmp.Compare(x.From, y.From) })
	rank, seen := uint64(math.Ceil(q*float64(total))), uint64(0)
	for _, b := range all {
		if seen += b.Count; seen >= rank {
			return b.From.Seconds()
		}
	}
	return all[len(all)-1].From.Seconds()
}
