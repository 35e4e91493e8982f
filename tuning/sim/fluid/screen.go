package fluid

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/fabricctl/fabricctl/model/derive"
	"github.com/fabricctl/fabricctl/model/units"
)

// Doubt is a reason why packets may do something else than the fluid model says.
type Doubt string

// Reasons for doubt.
const (
	DoubtInvalid   Doubt = "the model makes no sense"
	DoubtIdle      Doubt = "no link is congested: nothing here depends on the setting"
	DoubtSaturated Doubt = "the marks that it takes are above pmax: the queue swings around kmax, as far as the burst of marks there lets it"
	DoubtEdge      Doubt = "the queue rests near kmax: what passes it is marked in full, which keeps the queue of packets some percent lower"
	DoubtUnstable  Doubt = "a disturbance grows or hardly dies out: the queue swings, and packets make it swing more"
	DoubtUnsettled Doubt = "it was not at rest when the span was over"
	DoubtCoarse    Doubt = "the queue rests within a few packets of kmin: packets and not levels decide there"
	DoubtBurst     Doubt = "the burst at the start passes the pause threshold: pauses act then, which the model has not"
	DoubtPauses    Doubt = "the queue goes on to pass the pause threshold: pauses act all the time, which the model has not"
)

// Word is a doubt in a word, for tables.
func (d Doubt) Word() string {
	switch d {
	case DoubtInvalid:
		return "invalid"
	case DoubtIdle:
		return "idle"
	case DoubtSaturated:
		return "saturated"
	case DoubtEdge:
		return "edge"
	case DoubtUnstable:
		return "unstable"
	case DoubtUnsettled:
		return "unsettled"
	case DoubtCoarse:
		return "coarse"
	case DoubtBurst:
		return "burst"
	case DoubtPauses:
		return "pauses"
	}
	return string(d)
}

// What counts as too little.
const (
	fewDegrees = 5
	fewPackets = 5
	edge       = 0.75 // of pmax
)

// Candidate is a setting and what the fluid model says of it.
type Candidate struct {
	Index    int // among the models that were asked about
	Err      error
	Solution Solution // without its series
	Rest     Rest     // when HasRest
	HasRest  bool
	Goodput  units.BitRate  // of all flows together, in the end
	Delay    units.Duration // of the flow that waits longest in the end: the longest queues on its way, and its feedback time
	Score    float64
	Doubts   []Doubt
}

// Screen asks about many models, on so many goroutines, and ranks them: those that make no sense last, before them those that pause in
// the end, and the others by their score, ln(goodput) - 0.1 ln(delay), in which one percent of goodput is worth ten of delay.
// Models that are alike in that keep their order. A rank with doubts is a guess: read Candidate.Doubts before leaving one out.
func Screen(ctx context.Context, models []Model, o Options, workers int) ([]Candidate, error) {
	all := make([]Candidate, len(models))
	var next atomic.Int64
	var wg sync.WaitGroup
	for range max(min(workers, len(models)), 1) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(models) && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				all[i] = judge(models[i], o)
				all[i].Index = i
				if o.Done != nil {
					o.Done()
				}
			}
		})
	}
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("screen %d models: %w", len(models), err)
	}
	slices.SortStableFunc(all, func(a, b Candidate) int {
		return cmp.Or(cmp.Compare(a.class(), b.class()), cmp.Compare(b.Score, a.Score))
	})
	return all, nil
}

func (c Candidate) class() int {
	switch {
	case c.Err != nil:
		return 2
	case slices.Contains(c.Doubts, DoubtPauses):
		return 1
	}
	return 0
}

func judge(m Model, o Options) Candidate {
	s, err := Solve(m, o)
	if err != nil {
		return Candidate{Err: err, Score: math.Inf(-1), Doubts: []Doubt{DoubtInvalid}}
	}
	s.Series = nil
	c := Candidate{Solution: s}
	c.Rest, c.HasRest = RestOf(m)
	for i, f := range m.Flows {
		c.Goodput += units.BitRate(f.Count) * s.Flows[i].Goodput
		delay := seconds(f.Feedback)
		for _, l := range f.Path {
			delay += s.Links[l].Max * 8 / float64(m.Links[l].Speed)
		}
		c.Delay = max(c.Delay, at(delay))
	}
	c.Score = math.Log(float64(max(c.Goodput, 1))) - 0.1*math.Log(float64(max(c.Delay, 1)))
	c.Doubts = c.doubts(m)
	return c
}

func (c Candidate) doubts(m Model) (ds []Doubt) {
	doubt := func(d Doubt, when bool) {
		if when {
			ds = append(ds, d)
		}
	}
	var marked, saturated, near, coarse, burst, pauses bool
	for i, l := range c.Solution.Links {
		r := rampOf(m.Links[i].Ramp, m.DCQCN.Packet)
		busy := l.Marked > 0
		marked = marked || busy || l.Mean > 0 && l.Used > 1-1e-6
		saturated = saturated || busy && l.Marked > r.pmax
		near = near || busy && l.Marked > edge*r.pmax
		coarse = coarse || busy && l.Mean/float64(m.DCQCN.Packet)-r.kmin < fewPackets
		burst, pauses = burst || l.WouldPause && !l.PausesInTheEnd, pauses || l.PausesInTheEnd
	}
	doubt(DoubtIdle, !marked)
	saturated = saturated || c.HasRest && c.Rest.Saturated
	doubt(DoubtSaturated, saturated)
	doubt(DoubtEdge, near && !saturated)
	doubt(DoubtUnstable, c.Solution.Motion == Swinging || c.HasRest && !(c.Rest.Margin >= fewDegrees))
	doubt(DoubtUnsettled, c.Solution.Motion == Settling)
	doubt(DoubtCoarse, coarse)
	doubt(DoubtBurst, burst)
	doubt(DoubtPauses, pauses)
	return ds
}

// Grid is a model with each ramp that the lists make, on all of its links. Those whose Kmin is above their Kmax are left out.
func Grid(m Model, kmins, kmaxs []units.Bytes, pmaxs []units.Percent) []Model {
	var grid []Model
	for _, kmin := range kmins {
		for _, kmax := range kmaxs {
			for _, pmax := range pmaxs {
				if kmin <= kmax {
					grid = append(grid, m.With(derive.Ramp{Kmin: kmin, Kmax: kmax, Pmax: pmax}))
				}
			}
		}
	}
	return grid
}

// With is the model with a ramp on all of its links.
func (m Model) With(r derive.Ramp) Model {
	m.Links = slices.Clone(m.Links)
	for i := range m.Links {
		m.Links[i].Ramp = r
	}
	return m
}
