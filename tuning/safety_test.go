package tuning

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/observe"
)

var errBoom = errors.New("boom")

// devices are a Bench that holds one value, and can be told to fail.
type devices struct {
	holds    string // "" = the baseline
	asked    bool   // to apply, since the last run
	applies  int    // of what it did not hold
	restored int
	failAt   int   // the apply that fails, from 1
	stuck    error // what Restore returns
	refuses  func(string) bool
}

func (d *devices) Apply(_ context.Context, p model.Patch) error {
	d.asked = true
	if d.holds == p[0].Value {
		return nil
	}
	if d.refuses != nil && d.refuses(p[0].Value) {
		d.holds = ""
		return &Refusal{Device: "leaf1", Why: "% Invalid input"}
	}
	if d.applies++; d.applies == d.failAt {
		d.holds = "half of " + p[0].Value
		return &Lost{Device: "leaf1", Err: errBoom}
	}
	d.holds = p[0].Value
	return nil
}

func (d *devices) Restore(ctx context.Context) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if d.stuck != nil {
		return d.stuck
	}
	d.restored++
	d.holds = ""
	return nil
}

// knobs holds the value of an external variable.
type knobs struct {
	value float64
	sets  int
}

func (k *knobs) Set(_ context.Context, _ *Variable, x float64) error {
	k.value, k.sets = x, k.sets+1
	return nil
}
func (k *knobs) Get(context.Context, *Variable) (float64, error) { return k.value, nil }

// patchy runs what the devices hold, which has to be what the trial says.
type patchy struct {
	t *testing.T
	d *devices
	surface
	before func(Trial) error
}

func (p *patchy) Run(ctx context.Context, t Trial) (observe.Observation, error) {
	if !p.d.asked {
		p.t.Errorf("trial %d: nobody saw to it that the devices keep its setting", t.N)
	}
	p.d.asked = false
	if p.d.holds != t.Change.Patch[0].Value {
		p.t.Errorf("run %d: the devices hold %q and not %q", t.N, p.d.holds, t.Change.Patch[0].Value)
	}
	if p.before != nil {
		if err := p.before(t); err != nil {
			return observe.Observation{}, err
		}
	}
	return p.surface.Run(ctx, t)
}

// site is an experiment on devices.
func site(t *testing.T) (Experiment, *devices, *patchy) {
	s := plane(1, 0.25, "x", "y")
	s.Vars[0].Ladder = []float64{-4, 0, 4}
	s.Change = func(in Setting) Change { return Change{Patch: model.Patch{{Path: "p", Value: fmt.Sprint(in)}}} }
	e := experiment(s)
	e.Looks = Looks{First: 2, Most: 4, Polish: 4, Confirm: 4}
	d := &devices{}
	return e, d, &patchy{t: t, d: d, surface: surface{noise: 0.01, f: func(s Setting) float64 { return -0.05 * (sq(s[0]-3) + sq(s[1]-1)) }}}
}

// restoredLast checks that the baseline is back, and that the journal says so.
func restoredLast(t *testing.T, d *devices, h *History) {
	t.Helper()
	if d.applies == 0 {
		if d.restored > 0 || len(h.Restores) > 0 {
			t.Errorf("nothing was touched, and %d restores are in the journal", len(h.Restores))
		}
		return
	}
	n := len(h.Restores)
	if d.holds != "" || n < 2 || h.Restores[n-2].Done || !h.Restores[n-1].Done || h.Touched {
		t.Errorf("the devices hold %q; restores %+v, touched %t", d.holds, h.Restores, h.Touched)
	}
}

// TestRestored: whatever ends an experiment, and at whichever run, the baseline is back and the journal says how it came.
func TestRestored(t *testing.T) {
	e, d, r := site(t)
	log := &memory{}
	o, err := Run(t.Context(), e, Lab{Runner: r, Bench: d}, log, nil)
	if err != nil || o.State != Done || o.Verdict != Better {
		t.Fatalf("%+v %v", o, err)
	}
	restoredLast(t, d, history(t, log.recs))
	for _, c := range []struct {
		name  string
		state State
		err   error
		fail  func(cancel func(), p *patchy, o *observe.Observation) error
	}{
		{"by hand", Stopped, context.Canceled, func(cancel func(), _ *patchy, _ *observe.Observation) error { cancel(); return nil }},
		{"runner", Stopped, errBoom, func(func(), *patchy, *observe.Observation) error { return errBoom }},
		{"drops", Tripped, nil, func(_ func(), _ *patchy, o *observe.Observation) error { lose(o, observe.Drop.Of(3), 2); return nil }},
		{"watchdog", Tripped, nil, func(_ func(), _ *patchy, o *observe.Observation) error {
			lose(o, observe.WatchdogStuck.Of(3), 1)
			return nil
		}},
	} {
		for at := 1; at <= o.Runs; at += 3 {
			e, d, r := site(t)
			e.Sight = Sight{Lossless: []int{3}}
			e.Limits = Limits{Drops: 1}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var fault error
			r.each = func(o *observe.Observation, tr Trial) {
				if tr.N == at {
					fault = c.fail(cancel, r, o)
				}
			}
			w := failing{r, &fault}
			log := &memory{}
			got, err := Run(ctx, e, Lab{Runner: w, Bench: d}, log, nil)
			if got.State != c.state || !errors.Is(err, c.err) || (err == nil) != (c.err == nil) {
				t.Fatalf("%s at run %d: %+v, %v", c.name, at, got, err)
			}
			if (c.state == Tripped) != (got.Trip != "") || c.state == Tripped && !strings.Contains(got.Trip, fmt.Sprintf(" in run %d, ", at)) {
				t.Errorf("%s at run %d: %+v", c.name, at, got)
			}
			h := history(t, log.recs)
			restoredLast(t, d, h)
			if h.End == nil || h.State(false) != c.state {
				t.Errorf("%s at run %d: the journal says %v", c.name, at, h.State(false))
			}
		}
	}
}

// TestHostPause: a host that stops its switch for too long ends an experiment on devices at the first run that shows it, whether that can be
// used or not; one that does so from the beginning is the answer.
func TestHostPause(t *testing.T) {
	slow := &Rejected{Code: "host", Why: "host1 was the bottleneck", Host: true}
	for _, c := range []struct {
		name    string
		from    int     // the first run with a slow host
		limit   float64 // of its pauses
		err     error   // of those runs
		state   State
		verdict Verdict
		words   string
	}{
		{"the baseline", 1, 0.2, nil, Done, HostBound, "not the fabric: a host stopped its switch for 30.0%"},
		{"the baseline, which is rejected", 1, 0.2, slow, Done, HostBound, "not the fabric: host1"},
		{"a setting", 8, 0.2, nil, Tripped, Undecided, "a host stopped its switch for 30.0% of run 8, and 20.0% is the most"},
		{"a setting, which is rejected", 8, 0.2, slow, Tripped, Undecided, "a host stopped its switch for 30.0% of run 8, and 20.0% is the most"},
		{"within the limit", 8, 0.5, nil, Done, Better, "is better"},
		{"without a limit", 8, 0, nil, Done, Better, "is better"},
	} {
		e, d, r := site(t)
		e.Sight = Sight{Lossless: []int{3}, ToHost: map[string][]string{"leaf1": {"Ethernet1"}}}
		e.Limits = Limits{Pausing: c.limit}
		var fault error
		r.each = func(o *observe.Observation, tr Trial) {
			if tr.N >= c.from {
				lose(o, observe.PFCPaused.Of(3), 300_000_000)
				after := o.After["leaf1"]
				after.At = after.At.Add(1e9)
				o.After["leaf1"] = after
				fault = c.err
			}
		}
		log := &memory{}
		o, err := Run(t.Context(), e, Lab{Runner: failing{r, &fault}, Bench: d}, log, nil)
		if err != nil || o.State != c.state || o.Verdict != c.verdict || !strings.Contains(o.Words, c.words) {
			t.Errorf("%s: %+v %v", c.name, o, err)
		}
		h := history(t, log.recs)
		restoredLast(t, d, h)
		if c.state == Tripped && o.Runs != c.from {
			t.Errorf("%s: it ended after run %d", c.name, o.Runs)
		}
		if ds, _, _, err := Replay(h); err != nil || len(ds) != len(h.Decisions) {
			t.Errorf("%s: replay: %v", c.name, err)
		}
	}
}

// failing returns an error that a run has left.
type failing struct {
	Runner
	err *error
}

func (f failing) Run(ctx context.Context, t Trial) (observe.Observation, error) {
	o, err := f.Runner.Run(ctx, t)
	if err == nil {
		err = *f.err
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return o, err
}

// lose adds a counter of a switch.
func lose(o *observe.Observation, n observe.Name, v uint64) {
	p := observe.Port{Iface: "Ethernet1", Name: n}
	o.Before = map[string]observe.Counters{"leaf1": {Values: map[observe.Port]uint64{p: 5}}}
	o.After = map[string]observe.Counters{"leaf1": {Values: map[observe.Port]uint64{p: 5 + v}}}
}

// TestLostDevice: a device that is lost while it is changed ends the experiment, and what it has half of is taken back.
func TestLostDevice(t *testing.T) {
	for at := 1; at < 12; at++ {
		e, d, r := site(t)
		d.failAt = at
		log := &memory{}
		o, err := Run(t.Context(), e, Lab{Runner: r, Bench: d}, log, nil)
		var lost *Lost
		if o.State != Stopped || !errors.As(err, &lost) || lost.Device != "leaf1" {
			t.Errorf("apply %d: %+v %v", at, o, err)
		}
		restoredLast(t, d, history(t, log.recs))
	}
}

// TestNeedsHands: when the baseline cannot be brought back, the outcome says what is left, and Recover can do it later.
func TestNeedsHands(t *testing.T) {
	e, d, r := site(t)
	d.stuck = errors.New("leaf1: no answer; fabricctl apply -f fabric.yaml brings it back")
	log := &memory{}
	o, err := Run(t.Context(), e, Lab{Runner: r, Bench: d}, log, nil)
	if o.State != NeedsHands || err != nil || !strings.Contains(o.Left, "leaf1: no answer") {
		t.Fatalf("%+v %v", o, err)
	}
	h := history(t, log.recs)
	if !h.Touched || h.State(false) != NeedsHands {
		t.Errorf("touched %t, %v", h.Touched, h.State(false))
	}
	d.stuck = nil
	if left := Recover(t.Context(), h, Lab{Bench: d}, log); left != "" || d.holds != "" {
		t.Errorf("%s: %q", left, d.holds)
	}
	if h := history(t, log.recs); h.Touched || h.State(false) != Stopped {
		t.Errorf("touched %t, %v", h.Touched, h.State(false))
	}
}

// brokenLog fails from one record on.
type brokenLog struct {
	memory
	from int
}

func (l *brokenLog) Append(kind string, data any) error {
	if len(l.recs)+1 >= l.from {
		return errBoom
	}
	return l.memory.Append(kind, data)
}

func (l *brokenLog) Put(kind string, data any) error { return l.Append(kind, data) }

// TestFullDisk: when the journal cannot be written, nothing more is changed than what it announced, and the baseline is brought back.
func TestFullDisk(t *testing.T) {
	for from := 1; from < 60; from++ {
		e, d, r := site(t)
		log := &brokenLog{from: from}
		if _, err := Run(t.Context(), e, Lab{Runner: r, Bench: d}, log, nil); !errors.Is(err, errBoom) {
			t.Fatalf("from record %d: %v", from, err)
		}
		announced := 0
		for _, r := range log.recs {
			if r.Kind == recApply {
				announced++
			}
		}
		if d.holds != "" || d.applies > announced {
			t.Errorf("from record %d: the devices hold %q, %d applies of %d announced", from, d.holds, d.applies, announced)
		}
	}
}

// TestExternal: an external variable is read before it is moved, set only where it changes, searched for its least value, and set back.
func TestExternal(t *testing.T) {
	s := &Space{Base: Setting{4000}, Vars: []Variable{{
		Name: "limit", Of: Size, Low: 1000, High: 64_000, Ladder: []float64{1000, 4000, 16_000, 64_000}, Step: 2, Fine: 1.1, Least: true, External: &External{Set: []string{"set", "{value}"}},
	}}}
	s.Change = func(in Setting) Change { return Change{External: []Assign{{"limit", in[0]}}} }
	k := &knobs{value: 4321}
	e := experiment(s)
	e.Sight = Sight{Lossless: []int{3}}
	w := &surface{noise: 0.01, f: func(Setting) float64 { return 0 }}
	w.each = func(o *observe.Observation, _ Trial) {
		if k.value < 9000 {
			lose(o, observe.Drop.Of(3), 7)
		}
	}
	log := &memory{}
	o, err := Run(t.Context(), e, Lab{Runner: w, Knobs: k}, log, nil)
	if err != nil || o.Best[0] < 9000 || o.Best[0] > 9900 || o.Verdict != Better {
		t.Errorf("%+v %v", o, err)
	}
	h := history(t, log.recs)
	if k.value != 4321 || h.Begin.Externals["limit"] != 4321 || h.Touched {
		t.Errorf("%v %v", k.value, h.Begin.Externals)
	}
	if !slices.ContainsFunc(h.Decisions, func(d Decision) bool {
		return d.Verdict == Plateau && strings.Contains(d.Reason, "packets of lossless classes were lost")
	}) {
		t.Errorf("it does not say why less does not do: %+v", h.Decisions)
	}
}

// TestLeastRounds: the smallest value is looked for among those that there can be, and that lint takes.
func TestLeastRounds(t *testing.T) {
	s := &Space{Base: Setting{65536}, Vars: []Variable{{Name: "limit", Of: Size, Low: 4096, High: 65536, Step: 2, Fine: 1.1, Least: true}}}
	s.Normal = func(in Setting) Setting { return Setting{math.Ceil(in[0]/4096) * 4096} }
	s.Check = func(in Setting) diag.List {
		var l diag.List
		if in[0] < 8192 {
			l.Errorf("too-small", diag.Pos{}, "", "it is too small")
		}
		return l
	}
	for _, x := range []struct {
		lossy, want float64 // what loses something, and the least that does not
		why         string
	}{
		{20_000, 20_480, "; 16384B does not: it is worse: goodput "},
		{0, 8192, "; 4096B does not: lint refuses it"},
	} {
		tried := map[float64]bool{}
		w := &surface{f: func(s Setting) float64 {
			tried[s[0]] = true
			if s[0] < x.lossy {
				return -1
			}
			return 0
		}}
		e := experiment(s)
		e.Parallel = 1
		log := &memory{}
		o, err := Run(t.Context(), e, Lab{Runner: w}, log, nil)
		ds := history(t, log.recs).Decisions
		said := slices.ContainsFunc(ds, func(d Decision) bool { return d.Verdict == Plateau && strings.Contains(d.Reason, x.why) })
		if err != nil || o.Best[0] != x.want || tried[4096] || !said {
			t.Errorf("%+v %v, tried %v: %+v", o, err, tried, ds)
		}
	}
}

// TestDrift: when the surroundings change in the middle, that is said, and nothing is called better for it.
func TestDrift(t *testing.T) {
	e, d, r := site(t)
	e.Looks.First = 6
	e.Looks.Most = 8
	r.f = func(Setting) float64 { return 0 }
	r.each = func(o *observe.Observation, tr Trial) {
		if tr.N > 24 {
			*o.Goodput *= 0.8
		}
	}
	log := &memory{}
	o, err := Run(t.Context(), e, Lab{Runner: r, Bench: d}, log, nil)
	h := history(t, log.recs)
	if err != nil || o.Best.Key() != e.Space.Base.Key() || !slices.Contains(h.Notices, driftWords) {
		t.Errorf("%+v %v %v", o, err, h.Notices)
	}
	e.Steady = true
	log = &memory{}
	if o, err = Run(t.Context(), e, Lab{Runner: r, Bench: d}, log, nil); err != nil || len(history(t, log.recs).Notices) > 0 {
		t.Errorf("%+v %v", o, err)
	}
}

// TestFourAnswers: a variable that does nothing, a slow host, a wrong class and a healthy fabric are told apart.
func TestFourAnswers(t *testing.T) {
	s := plane(1, 0.25, "kmin", "kmax")
	for i := range s.Vars {
		s.Vars[i].Ladder = []float64{-8, -4, 0, 4, 8}
	}
	bowl := &surface{f: func(s Setting) float64 { return -0.02 * sq(s[1]) }}
	sight := Sight{Lossless: []int{3}, ToHost: map[string][]string{"leaf1": {"Ethernet1"}}}
	run := func(w Runner) (Outcome, *History) {
		e := experiment(s)
		e.Sight = sight
		log := &memory{}
		o, err := Run(t.Context(), e, Lab{Runner: w}, log, nil)
		if err != nil {
			t.Fatal(err)
		}
		return o, history(t, log.recs)
	}
	// Noise that follows the seed alone: what differs in kmin alone is the same to the packet.
	same := &surface{f: bowl.f}
	same.each = func(o *observe.Observation, tr Trial) { *o.Goodput *= 1 + 0.01*float64(tr.Seed%7)/7 }
	o, h := run(same)
	if !slices.ContainsFunc(h.Decisions, func(d Decision) bool { return d.Variable == "kmin" && d.Verdict == NoEffect }) || o.Verdict != NoDifference {
		t.Errorf("kmin does nothing: %+v", o)
	}
	slow := &surface{noise: 0.01, f: bowl.f}
	slow.each = func(o *observe.Observation, _ Trial) {
		lose(o, observe.PFCPaused.Of(3), 400_000_000)
		after := o.After["leaf1"]
		after.At = after.At.Add(1e9)
		o.After["leaf1"] = after
	}
	if o, _ := run(slow); o.Verdict != HostBound || o.State != Done || o.Best.Key() != s.Base.Key() || !strings.Contains(o.Words, "40.0%") {
		t.Errorf("a host is slow: %+v", o)
	}
	if o, _ := run(always{&Rejected{Code: "host", Why: "the sender's CPU was at its end", Host: true}}); o.Verdict != HostBound {
		t.Errorf("a host is slow: %+v", o)
	}
	if o, _ := run(always{&Rejected{Code: "wrong-class", Why: "98% of the bytes went through class default"}}); o.Verdict != WrongClass || o.Runs != 6 && o.Rejected == 0 {
		t.Errorf("the wrong class: %+v", o)
	}
	if o, h := run(&surface{noise: 0.01, f: bowl.f}); o.Verdict != NoDifference || o.Best.Key() != s.Base.Key() || slices.ContainsFunc(h.Decisions, func(d Decision) bool { return d.Verdict == NoEffect }) {
		t.Errorf("a healthy fabric: %+v", o)
	}
}

// TestPutBack: what does nothing stands at the end where it stood, though the formula that won had moved it.
func TestPutBack(t *testing.T) {
	s := plane(1, 0.25, "kmin", "kmax")
	for i := range s.Vars {
		s.Vars[i].Ladder = []float64{-8, -4, 0, 4, 8}
	}
	s.Starts = func(Setting) []Start { return []Start{{Name: "formula", Setting: Setting{4, 3}}} }
	same := &surface{f: func(s Setting) float64 { return -0.02 * sq(s[1]-3) }}
	same.each = func(o *observe.Observation, tr Trial) { *o.Goodput *= 1 + 0.01*float64(tr.Seed%7)/7 }
	log := &memory{}
	o, err := Run(t.Context(), experiment(s), Lab{Runner: same}, log, nil)
	if err != nil {
		t.Fatal(err)
	}
	if o.Verdict != Better || o.Best[0] != 0 || o.Best[1] != 3 {
		t.Errorf("%+v", o)
	}
	if h := history(t, log.recs); !slices.ContainsFunc(h.Decisions, func(d Decision) bool {
		return d.Step == "back" && d.Variable == "kmin" && d.Verdict == NoEffect
	}) {
		t.Error("no decision says so")
	} else if _, _, whole, err := Replay(h); err != nil || !whole {
		t.Errorf("replay: %v, whole %v", err, whole)
	}
}

type always struct{ err error }

func (a always) Run(context.Context, Trial) (observe.Observation, error) {
	return observe.Observation{}, a.err
}

// TestTurns: where things drift, arms take turns there and back, so that what falls steadily makes none of them better.
func TestTurns(t *testing.T) {
	e, d, r := site(t)
	e.Space.Vars = e.Space.Vars[:1]
	e.Space.Base = e.Space.Base[:1]
	r.f = func(Setting) float64 { return 0 }
	r.noise = 0.001
	var order []string
	r.each = func(o *observe.Observation, tr Trial) {
		*o.Goodput *= 1 - 0.004*float64(tr.N)
		order = append(order, fmt.Sprint(tr.Setting[0]))
	}
	e.Looks = Looks{First: 4, Most: 4, Polish: 4, Confirm: 4}
	log := &memory{}
	o, err := Run(t.Context(), e, Lab{Runner: r, Bench: d}, log, nil)
	if err != nil || o.Best.Key() != e.Space.Base.Key() {
		t.Errorf("%+v %v", o, err)
	}
	if got := strings.Join(order[4:10], " "); got != "0 -4 4 4 -4 0" {
		t.Errorf("the runs are of %s", got)
	}
}
