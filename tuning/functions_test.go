package tuning

import (
	"context"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/model/witness"
)

// function is one of the objective functions that searches are tried on. J is minus its value.
type function struct {
	id, expr string
	f        func(Setting) float64
	start    Setting
	low, hi  float64
	best     Setting
}

func functions() []function {
	return []function{
		{"sep_quadratic", "(x-3)^2 + 2*(y+1)^2", func(s Setting) float64 { return sq(s[0]-3) + 2*sq(s[1]+1) }, Setting{0, 0}, -10, 10, Setting{3, -1}},
		{"rot_quadratic_0.9", "x^2 + y^2 - 2*0.9*x*y", func(s Setting) float64 { return sq(s[0]) + sq(s[1]) - 1.8*s[0]*s[1] }, Setting{1, -1}, -2, 2, Setting{0, 0}},
		{"ridge_stuck", "|x-y| + 0.1*|x+y|", func(s Setting) float64 { return math.Abs(s[0]-s[1]) + 0.1*math.Abs(s[0]+s[1]) }, Setting{1, 1}, -2, 2, Setting{0, 0}},
	}
}

func sq(x float64) float64 { return x * x }

// TestFunctionsAreTheReferences: the functions here are those of the reference, as far as it is there.
func TestFunctionsAreTheReferences(t *testing.T) {
	b, err := os.ReadFile(witness.Reference(t, "reference/optimiser_functions.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var all struct {
		Functions []struct {
			ID, Expr string
			Start    []float64
			Bounds   [][]float64
			Optimum  yaml.Node
		}
	}
	if err := yaml.Unmarshal(b, &all); err != nil {
		t.Fatal(err)
	}
	known := 0
	for _, f := range functions() {
		for _, g := range all.Functions {
			if f.id != g.ID {
				continue
			}
			known++
			var best []float64
			if err := g.Optimum.Decode(&best); err != nil || f.expr != g.Expr || !slices.Equal(f.start, g.Start) || !slices.Equal(f.best, best) || f.low != g.Bounds[0][0] || f.hi != g.Bounds[1][1] {
				t.Errorf("%s is %+v there: %v", f.id, g, err)
			}
		}
	}
	if known != len(functions()) {
		t.Errorf("%d functions of %d are there", known, len(functions()))
	}
}

func (f *function) space() *Space {
	s := plane(0.5, 0.125, "x", "y")
	for i := range s.Vars {
		s.Vars[i].Low, s.Vars[i].High = f.low, f.hi
	}
	s.Base = f.start
	return s
}

// TestFunctions: the joint moves reach the best of all functions, within the step of the polish, under noise.
func TestFunctions(t *testing.T) {
	for _, f := range functions() {
		for seed := range uint64(5) {
			e := experiment(f.space())
			e.Seed = seed
			o, err := Run(context.Background(), e, Lab{Runner: &surface{noise: 0.005, f: func(s Setting) float64 { return -0.2 * f.f(s) }}}, &memory{}, nil)
			if err != nil || o.Verdict != Better {
				t.Errorf("%s: %+v %v", f.id, o, err)
				continue
			}
			if v := f.f(o.Best); v > 0.05 {
				t.Errorf("%s: %v, where it is %.3f above its best after %d runs", f.id, o.Best, v, o.Runs)
			}
		}
	}
}

// TestPlainWalkSeesTheRidge: one variable at a time cannot move from a ridge, and says why.
func TestPlainWalkSeesTheRidge(t *testing.T) {
	f := functions()[2]
	e := experiment(f.space())
	e.Plain = true
	log := &memory{}
	o, err := Run(context.Background(), e, Lab{Runner: &surface{noise: 0.005, f: func(s Setting) float64 { return -0.2 * f.f(s) }}}, log, nil)
	if err != nil || o.Best.Key() != f.start.Key() || o.Verdict != NoDifference {
		t.Errorf("%+v %v", o, err)
	}
	h, err := Read(log.recs)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(h.Decisions, func(d Decision) bool { return d.Step == "interaction" && d.Verdict == Interacting }) {
		t.Error("it does not say that it sees an interaction")
	}
	if !slices.ContainsFunc(o.Untested, func(s string) bool { return s == "moves of two variables at once" }) {
		t.Errorf("it does not say what was not tried: %v", o.Untested)
	}
}

// TestSimplex: Nelder and Mead's method gets off the ridge too.
func TestSimplex(t *testing.T) {
	for _, f := range functions() {
		e := experiment(f.space())
		e.Method = NelderMead
		o, err := Run(context.Background(), e, Lab{Runner: &surface{noise: 0.002, f: func(s Setting) float64 { return -0.2 * f.f(s) }}}, &memory{}, nil)
		if v := f.f(o.Best); err != nil || v > 0.1 {
			t.Errorf("%s: %v, where it is %.3f above its best after %d runs: %v", f.id, o.Best, v, o.Runs, err)
		}
	}
}

// TestFullGrid compares all combinations.
func TestFullGrid(t *testing.T) {
	f := functions()[0]
	s := f.space()
	for i := range s.Vars {
		s.Vars[i].Ladder = []float64{-5, -1, 3, 7}
	}
	e := experiment(s)
	e.Method = FullGrid
	o, err := Run(context.Background(), e, Lab{Runner: &surface{noise: 0.005, f: func(s Setting) float64 { return -0.02 * f.f(s) }}}, &memory{}, nil)
	if err != nil || o.Best.Key() != (Setting{3, -1}).Key() {
		t.Errorf("%+v %v", o, err)
	}
}

// TestLeast: the smallest value that is as good as the best is found by bisection: of 98.1 (1 - exp(-x/90)) that is where 99 % are
// reached, at 414.5.
func TestLeast(t *testing.T) {
	s := &Space{Base: Setting{1600}, Vars: []Variable{{
		Name: "xoff", Low: 20, High: 3200, Ladder: []float64{20, 50, 100, 200, 400, 800, 1600, 3200}, Step: 2, Fine: 1.05, Least: true,
	}}}
	for seed := range uint64(8) {
		e := experiment(s)
		e.Seed = seed
		o, err := Run(context.Background(), e, Lab{Runner: &surface{noise: 0.002, f: func(s Setting) float64 { return math.Log(1 - math.Exp(-s[0]/90)) }}}, &memory{}, nil)
		if err != nil || o.Best[0] < 330 || o.Best[0] > 520 || o.Verdict != Better || !strings.Contains(o.Words, " is the least that holds: it breaks no limit in 20 runs, in which nobody counts losses, and it ") {
			t.Errorf("seed %d: %+v %v", seed, o, err)
		}
	}
}

// TestBudget: a budget that is spent in the middle loses nothing of what was seen, keeps runs for the confirmation, and is not exceeded.
func TestBudget(t *testing.T) {
	f := functions()[0]
	for _, method := range []Method{OFAT, NelderMead, FullGrid} {
		s := f.space()
		for i := range s.Vars {
			s.Vars[i].Ladder = []float64{-5, -1, 3, 7}
		}
		e := experiment(s)
		e.Method, e.Budget.Runs = method, 110
		w := &surface{noise: 0.01, f: func(s Setting) float64 { return -0.05 * f.f(s) }}
		o, err := Run(context.Background(), e, Lab{Runner: w}, &memory{}, nil)
		if err != nil || o.Runs > 110 || o.Verdict != Better || o.Confirmed == nil || o.Confirmed.Runs != 40 {
			t.Errorf("%s: %+v %v", method, o, err)
		}
		// The clock goes on by a second for each look at it: two minutes are fewer runs than that.
		e = experiment(s)
		e.Method, e.Budget.Time, e.Parallel = method, units.Duration(120*time.Second), 1
		log := &memory{}
		o, err = Run(context.Background(), e, Lab{Runner: w}, log, nil)
		if err != nil || !o.Spent && method != FullGrid || o.Confirmed == nil || o.Runs > 120 {
			t.Errorf("%s: %+v %v", method, o, err)
		}
		if _, best, whole, err := Replay(history(t, log.recs)); err != nil || !whole || best.Key() != o.Best.Key() {
			t.Errorf("%s: replay %v %v %v", method, best, whole, err)
		}
	}
	s := f.space()
	for i := range s.Vars {
		s.Vars[i].Ladder = []float64{-5, -1, 3, 7}
	}
	e := experiment(s)
	e.Budget.Runs = 48
	if o, err := Run(context.Background(), e, Lab{Runner: &surface{f: f.f}}, &memory{}, nil); err != nil || o.Verdict != Undecided || !strings.Contains(o.Words, "before anything was compared") {
		t.Errorf("a budget for the baseline alone: %+v %v", o, err)
	}
	e = experiment(s)
	e.Method, e.Budget.Runs = FullGrid, 60
	w := &surface{f: func(Setting) float64 { return 0 }}
	if o, err := Run(context.Background(), e, Lab{Runner: w}, &memory{}, nil); err != nil || !o.Spent || w.runs > 6 {
		t.Errorf("a grid that does not fit is begun: %d runs, %+v %v", w.runs, o, err)
	}
}

// TestSilent: where nothing arrives in any run, that is the answer, and not that what was moved does nothing.
func TestSilent(t *testing.T) {
	o, err := Run(context.Background(), experiment(functions()[0].space()), Lab{Runner: &surface{f: func(Setting) float64 { return math.Inf(-1) }}}, &memory{}, nil)
	if err != nil || o.Verdict != Undecided || !strings.HasPrefix(o.Words, "nothing of the load arrived in any run") {
		t.Errorf("%+v %v", o, err)
	}
}
