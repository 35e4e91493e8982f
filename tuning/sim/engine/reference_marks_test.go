package engine_test

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/fabricctl/fabricctl/tuning/sim/engine"
)

// How many seeds of our own a run with marks is played with: the recorded one is one draw of the same kind. Means are of more.
const (
	seeds     = 20
	meanSeeds = 30
)

// TestReferenceMarks plays the recorded runs with marks with seeds of our own, and compares what comes of them, what the rates were
// on the way, and where the reference has run with five seeds the means: with these five, and with thirty others.
func TestReferenceMarks(t *testing.T) {
	if testing.Short() {
		t.Skip("twenty or thirty seeds of each run take half a minute")
	}
	for _, group := range alike(everyRun(t)) {
		t.Run(group[0].Name, func(t *testing.T) {
			t.Parallel()
			ours := drawn(t, group)
			for _, r := range group {
				for _, s := range r.spans(t, ours[:seeds]) {
					if !s.holds() {
						t.Errorf("%s: %s was %v, ours are %v to %v", r.Name, s.Column, s.Recorded, s.Least, s.Most)
					}
				}
				r.rates(t, ours[:seeds])
				for _, m := range r.means(t, ours) {
					if !same(m.Text, m.Five) && !r.Further {
						t.Errorf("%s: mean of %s with the same seeds is %v, recorded was %s", r.Name, m.Column, m.Five, m.Text)
					}
					if m.Sure && math.Abs(m.Ours-m.Recorded) > 0.03*m.Recorded {
						t.Errorf("%s: mean of %s is %v, recorded was %v", r.Name, m.Column, m.Ours, m.Recorded)
					}
				}
			}
		})
	}
}

// alike is the runs with marks, those together that differ in their seed alone, and in what was recorded.
func alike(all []*recorded) (groups [][]*recorded) {
	plain := func(r *recorded) input {
		in := r.In
		in.Run, in.FlowsFields, in.LinksFields, in.Config.Seed, in.Config.Every = "", nil, nil, 0, 0
		return in
	}
	for _, r := range all {
		if r.Row == nil || r.deterministic() {
			continue
		}
		i := slices.IndexFunc(groups, func(g []*recorded) bool { return reflect.DeepEqual(plain(g[0]), plain(r)) })
		if i < 0 {
			i, groups = len(groups), append(groups, nil)
		}
		groups[i] = append(groups[i], r)
	}
	return groups
}

// drawn is our runs of a group, one for each seed.
func drawn(t testing.TB, group []*recorded) (ours []*played) {
	t.Helper()
	n, most := seeds, *group[0]
	for _, r := range group {
		if len(r.Spreads) > 0 {
			n = meanSeeds
		}
		most.In.Config.Every = max(most.In.Config.Every, r.In.Config.Every)
	}
	for seed := range n {
		ours = append(ours, most.play(t, uint64(1000+seed)))
	}
	return ours
}

// span is a recorded figure, and the least and the greatest of ours.
type span struct {
	Column                        string
	Recorded, Least, Most, Median float64
}

// holds widens the span, after the issue, by 10 % of the greatest, and by 20 % where a few packets decide.
func (s *span) holds() bool {
	slack := 0.1 * math.Abs(s.Most)
	if strings.Contains(s.Column, "p99") || strings.Contains(s.Column, "max") || strings.Contains(s.Column, "longest") {
		slack *= 2
	}
	return s.Recorded >= s.Least-slack && s.Recorded <= s.Most+slack
}

// spans compares every column of runs.csv.
func (r *recorded) spans(t testing.TB, ours []*played) (all []span) {
	t.Helper()
	values := map[string][]float64{}
	for _, p := range ours {
		for c, v := range p.totals(&r.In) {
			values[c] = append(values[c], v)
		}
	}
	for _, c := range slices.Sorted(maps.Keys(values)) {
		if rec := r.Row[c]; rec != "" && c != "bq_switch" && c != "bq_port" {
			v := slices.Sorted(slices.Values(values[c]))
			all = append(all, span{c, r.Row.num(t, c), v[0], v[len(v)-1], v[len(v)/2]})
		}
	}
	return all
}

// rates compares what was acknowledged every 50 us, and the rates. Where all of our seeds agree, chance has not decided anything yet, and the
// recorded figure is the same; elsewhere one in ten may lie outside our seeds' widened span, as the least or the greatest of 21 alike would.
func (r *recorded) rates(t testing.TB, ours []*played) {
	t.Helper()
	sure, outside, figures := 0, 0, 0
	compare := func(what string, at engine.Time, recorded float64, of func(*played) int64) {
		s := span{Recorded: recorded, Least: math.Inf(1), Most: math.Inf(-1)}
		for _, p := range ours {
			v := float64(of(p))
			s.Least, s.Most = min(s.Least, v), max(s.Most, v)
		}
		figures++
		switch {
		case s.Least == s.Most:
			sure++
			if s.Recorded != s.Least {
				t.Errorf("%s: %s at %v ns is %v for all seeds, recorded was %v", r.Name, what, ns(at), s.Least, s.Recorded)
			}
		case !s.holds():
			outside++
		}
	}
	sum := map[engine.Time]float64{}
	for _, x := range r.Rates {
		at := engine.Time(x.int(t, "t_ns")) * engine.Nanosecond
		i := ours[0].flow(t, x)
		sum[at] += x.num(t, "acked_bytes")
		compare(fmt.Sprintf("acked by flow %d", i), at, x.num(t, "acked_bytes"), func(p *played) int64 { return p.ackedAt(at, i) })
		compare(fmt.Sprintf("rate of flow %d", i), at, x.num(t, "rp_rate_bps"), func(p *played) int64 { return p.rateAt(at, i) })
	}
	for _, at := range slices.Sorted(maps.Keys(sum)) {
		compare("acked by all flows", at, sum[at], func(p *played) int64 { return p.ackedAt(at) })
	}
	if figures == 0 {
		return
	}
	if sure == 0 || outside*10 > figures {
		t.Errorf("%s: of %d figures, %d are the same for all seeds, and %d lie outside their span", r.Name, figures, sure, outside)
	}
	t.Logf("reference: %s: of %d figures every %v us %d are certain and equal, %d lie outside the span of our seeds", r.Name, figures, r.In.Config.Every, sure, outside)
}

// mean is a column of seed_spread.csv.
type mean struct {
	Column         string
	Text           string  // as recorded
	Recorded, Ours float64 //
	Five           float64 // ours, with the seeds of the reference
	CV             float64 // percent, of the reference's seeds
	Sure           bool    // they say their mean to 1 %: it is its standard error, the variation over the root of their number
}

func (r *recorded) means(t testing.TB, ours []*played) (all []mean) {
	t.Helper()
	if len(r.Spreads) == 0 {
		return nil
	}
	sum, five := map[string]float64{}, map[string]float64{}
	for _, p := range ours {
		for c, v := range p.totals(&r.In) {
			sum[c] += v
		}
	}
	for seed := range uint64(5) {
		for c, v := range r.play(t, seed+1).totals(&r.In) {
			if strings.HasSuffix(c, "_ns") || strings.HasSuffix(c, "_bytes") {
				v = math.Round(v) // as it was recorded of each
			}
			five[c] += v / 5
		}
	}
	for _, x := range r.Spreads {
		c := x["metric"]
		if _, have := sum[c]; !have {
			continue
		}
		cv := x.num(t, "cv_percent")
		all = append(all, mean{c, x["mean"], x.num(t, "mean"), sum[c] / float64(len(ours)), five[c], cv, cv/math.Sqrt(x.num(t, "seeds")) <= 1})
	}
	return all
}
