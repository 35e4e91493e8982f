package fluid

import (
	"fmt"
	"math"

	"github.com/fabricctl/fabricctl/model/units"
)

// Options say how far and how finely a model is followed.
type Options struct {
	Span units.Duration // 0 = 300 ms, at most a minute. A model that has come to rest is not followed further
	Step units.Duration // 0 = a tenth of DCQCN's times, 5 us at most; never more than the shortest feedback
	Done func()         // told by Screen, when not nil, each time that it is through with a model; from several goroutines
}

const (
	windows   = 12     // parts of the span, which are compared
	samples   = 100    // rows of the series in each
	leastStep = 100e-9 // in seconds; a feedback that is shorter counts as none

	still    = 0.02 // a queue that swings by less than this part of its mean, or by a packet, is at rest
	even     = 0.10 // rates count as settled within this part of their mean in the end
	decaying = 0.80 // a swing that dies out has less than this part left four windows later
	done     = 5e-4 // nothing is followed further once all changes by less than this part in two windows
)

// Motion is what a load does in the end.
type Motion string

// What a load does in the end.
const (
	Settled  Motion = "settled"  // queues rest
	Settling Motion = "settling" // they swing less and less, and the span was too short to see them at rest
	Swinging Motion = "swinging" // they swing for ever
)

// Solution is what becomes of a model. Means, least and most are of the last part (a twelfth) of the time that it was followed for.
type Solution struct {
	Motion  Motion
	Settled units.Duration // from when on no rate is more than a tenth from its mean in the end
	Span    units.Duration // for which the model was followed: less than what was asked for when it is at rest
	Links   []LinkState
	Flows   []FlowState
	Jain    float64 // fairness of all senders' mean rates: 1/n to 1
	Series  []Sample
}

// LinkState is what becomes of a link.
type LinkState struct {
	Mean, Min, Max float64 // queue, bytes
	Used           float64 // part of the speed, 0 to 1
	Marked         float64 // mean probability of a mark
	Peak           float64 // longest queue of all time, bytes
	PeakAt         units.Duration
	WouldPause     bool           // the queue was longer than Link.Pause at some time: from then on the model is not what would happen
	PauseAt        units.Duration // when it first was
	PausesInTheEnd bool           // it was so in the last part too
}

// FlowState is what becomes of each sender of a flow.
type FlowState struct {
	Mean, Min, Max units.BitRate // that its reaction point allows
	Goodput        units.BitRate // that comes out of the last link, on average
	Alpha          float64
}

// Sample is the state at a time: queues in bytes, rates of each sender.
type Sample struct {
	At     units.Duration
	Queues []float64
	Rates  []units.BitRate
}

// window is what is gathered in a part of the span, by link and by flow, in packets and packets per second.
type window struct {
	queues []stretch
	marks  []stretch
	used   []stretch
	rates  []stretch
	out    []stretch // of rates, what comes out of the last link
}

// stretch is a figure over time.
type stretch struct {
	sum, min, max float64
	n             int
}

func (s *stretch) add(v float64) {
	if s.n == 0 {
		s.min, s.max = v, v
	}
	s.n++
	s.sum += v
	s.min, s.max = min(s.min, v), max(s.max, v)
}

func (s stretch) mean() float64  { return s.sum / float64(max(s.n, 1)) }
func (s stretch) swing() float64 { return s.max - s.min }

// Solve follows a model through time. An error says what in it makes no sense.
func Solve(m Model, o Options) (Solution, error) {
	if err := m.validate(); err != nil {
		return Solution{}, err
	}
	if o.Span < 0 || o.Step < 0 || o.Span > units.Minute {
		return Solution{}, fmt.Errorf("a span of %s in steps of %s: at most a minute", o.Span, o.Step)
	}
	r := newRecord(m, o)
	for range windows {
		r.window()
		if r.atRest() {
			break
		}
	}
	return r.solution(), nil
}

// record follows a solver and notes what it does.
type record struct {
	m       Model
	s       *solver
	perStep int // steps in a sample
	sample  float64
	windows []window
	series  []Sample
	peaks   []LinkState // Peak, PeakAt, WouldPause and PauseAt; in packets
}

func newRecord(m Model, o Options) *record {
	span := seconds(o.Span)
	if span <= 0 {
		span = 0.3
	}
	r := &record{m: m, sample: span / windows / samples, peaks: make([]LinkState, len(m.Links))}
	h := seconds(o.Step)
	if h <= 0 {
		h = min(seconds(m.DCQCN.CNPInterval)/10, seconds(m.DCQCN.RateTimer)/10, seconds(m.DCQCN.AlphaTimer)/m.Gain/2, 5e-6)
	}
	for _, f := range m.Flows {
		if d := seconds(f.Feedback); d >= leastStep {
			h = min(h, d)
		}
	}
	r.perStep = max(int(math.Ceil(r.sample/max(h, leastStep))), 1)
	r.s = newSolver(m, r.sample/float64(r.perStep))
	r.note()
	return r
}

// now is the solver's time in seconds.
func (r *record) now() float64 { return float64(r.s.n) * r.s.h }

func at(seconds float64) units.Duration {
	return units.Duration(math.Round(seconds * float64(units.Second)))
}

// note adds a row to the series.
func (r *record) note() {
	x := Sample{At: at(r.now()), Queues: make([]float64, len(r.s.queues)), Rates: make([]units.BitRate, len(r.s.flows))}
	for l, q := range r.s.queues {
		x.Queues[l] = r.bytes(q.length)
	}
	for i := range r.s.flows {
		if f := &r.s.flows[i]; r.now() >= f.begins {
			x.Rates[i] = r.bits(f.rate)
		}
	}
	r.series = append(r.series, x)
}

func (r *record) bytes(packets float64) float64 { return packets * float64(r.m.DCQCN.Packet) }

func (r *record) bits(packets float64) units.BitRate {
	return units.BitRate(math.Round(packets * 8 * float64(r.m.DCQCN.Packet)))
}

// window follows the model through one more part of the span.
func (r *record) window() {
	w := window{
		queues: make([]stretch, len(r.s.queues)), marks: make([]stretch, len(r.s.queues)),
		used: make([]stretch, len(r.s.queues)), rates: make([]stretch, len(r.s.flows)), out: make([]stretch, len(r.s.flows)),
	}
	for range samples {
		for range r.perStep {
			r.s.step()
			r.look(&w)
		}
		r.note()
	}
	r.windows = append(r.windows, w)
}

// look counts the state after a step.
func (r *record) look(w *window) {
	for l := range r.s.queues {
		q, x := &r.s.queues[l], &r.peaks[l]
		w.queues[l].add(q.length)
		w.marks[l].add(q.at(q.length))
		w.used[l].add(q.served)
		if q.length > x.Peak {
			x.Peak, x.PeakAt = q.length, at(r.now())
		}
		if limit := r.m.Links[l].Pause; limit > 0 && !x.WouldPause && r.bytes(q.length) > float64(limit) {
			x.WouldPause, x.PauseAt = true, at(r.now())
		}
	}
	for i := range r.s.flows {
		w.rates[i].add(r.s.flows[i].rate)
		w.out[i].add(r.s.flows[i].through)
	}
}

// atRest is true when all has begun and nothing has moved in the last window, nor since the one before.
func (r *record) atRest() bool {
	if len(r.windows) < 2 {
		return false
	}
	a, b := r.windows[len(r.windows)-2], r.windows[len(r.windows)-1]
	moves := func(a, b stretch, least float64) bool {
		return max(a.max, b.max)-min(a.min, b.min) > max(done*b.mean(), least)
	}
	for i := range b.rates {
		if r.now() < r.s.flows[i].begins || moves(a.rates[i], b.rates[i], 0) {
			return false
		}
	}
	for l := range b.queues {
		if moves(a.queues[l], b.queues[l], 1e-3) {
			return false
		}
	}
	return true
}

// motion compares the last window with the one four before it.
func (r *record) motion() Motion {
	last, before := r.windows[len(r.windows)-1], r.windows[max(len(r.windows)-5, 0)]
	m := Settled
	for l, q := range last.queues {
		if swing := q.swing(); swing > max(still*q.mean(), 1) {
			if swing > decaying*before.queues[l].swing() {
				return Swinging
			}
			m = Settling
		}
	}
	return m
}

func (r *record) solution() Solution {
	last := r.windows[len(r.windows)-1]
	s := Solution{Motion: r.motion(), Span: r.series[len(r.series)-1].At, Links: r.peaks, Series: r.series}
	for l := range s.Links {
		x := &s.Links[l]
		q := last.queues[l]
		x.Mean, x.Min, x.Max, x.Peak = r.bytes(q.mean()), r.bytes(q.min), r.bytes(q.max), r.bytes(x.Peak)
		x.Used, x.Marked = min(last.used[l].mean(), 1), last.marks[l].mean()
		limit := r.m.Links[l].Pause
		x.PausesInTheEnd = limit > 0 && x.Max > float64(limit)
	}
	var n, sum, squares float64
	for i, w := range last.rates {
		s.Flows = append(s.Flows, FlowState{Mean: r.bits(w.mean()), Min: r.bits(w.min), Max: r.bits(w.max), Goodput: r.bits(last.out[i].mean()), Alpha: r.s.flows[i].alpha})
		c := r.s.flows[i].count
		n, sum, squares = n+c, sum+c*w.mean(), squares+c*w.mean()*w.mean()
	}
	if squares > 0 {
		s.Jain = sum * sum / (n * squares)
	}
	for _, x := range r.series {
		for i, f := range s.Flows {
			if math.Abs(float64(x.Rates[i]-f.Mean)) > even*float64(f.Mean) {
				s.Settled = x.At
			}
		}
	}
	return s
}
