package tuning

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fabricctl/fabricctl/model/journal"
	"github.com/fabricctl/fabricctl/model/observe"
)

// surface is a Runner whose J is a function of the setting: goodput is e to the power of it.
type surface struct {
	f     func(Setting) float64
	noise float64 // standard deviation of ln goodput
	tail  func(Setting) float64
	each  func(*observe.Observation, Trial)

	mu   sync.Mutex
	runs int
}

func (s *surface) Run(_ context.Context, t Trial) (observe.Observation, error) {
	s.mu.Lock()
	s.runs++
	s.mu.Unlock()
	h := uint64(0)
	for _, c := range []byte(t.Setting.Key()) {
		h = h*1099511628211 + uint64(c)
	}
	r := rand.New(rand.NewPCG(t.Seed, h))
	g := 1e9 * math.Exp(s.f(t.Setting)+s.noise*r.NormFloat64())
	o := observe.Observation{Goodput: &g}
	if s.tail != nil {
		p := time.Duration(1e5 * math.Exp(s.tail(t.Setting)))
		o.P999 = &p
	}
	if s.each != nil {
		s.each(&o, t)
	}
	return o, nil
}

// memory is a Log in memory, as records.
type memory struct {
	mu   sync.Mutex
	recs []journal.Record
}

func (m *memory) Append(kind string, data any) error {
	b, err := json.Marshal(data)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.recs = append(m.recs, journal.Record{Seq: uint64(len(m.recs) + 1), Kind: kind, Data: b})
	return err
}
func (m *memory) Put(kind string, data any) error { return m.Append(kind, data) }

// ticking is a clock that goes on by a second each time that somebody looks.
func ticking() func() time.Time {
	var mu sync.Mutex
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	return func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		at = at.Add(time.Second)
		return at
	}
}

func plane(step, fine float64, names ...string) *Space {
	s := &Space{}
	for _, n := range names {
		s.Vars = append(s.Vars, Variable{Name: n, Low: -10, High: 10, Linear: true, Step: step, Fine: fine})
		s.Base = append(s.Base, 0)
	}
	return s
}

func experiment(s *Space) Experiment {
	return Experiment{Space: s, Objective: Objective{Exchange: 0.1}, Seed: 1, Now: ticking(), Parallel: 2}
}

func TestSeparable(t *testing.T) {
	s := plane(1, 0.25, "x", "y")
	s.Vars[0].Ladder = []float64{-8, -4, 0, 4, 8}
	s.Vars[1].Ladder = s.Vars[0].Ladder
	log := &memory{}
	var lines []string
	e := experiment(s)
	o, err := Run(context.Background(), e, Lab{Runner: &surface{noise: 0.01, f: func(s Setting) float64 {
		return -0.05 * ((s[0]-3)*(s[0]-3) + 2*(s[1]+1)*(s[1]+1))
	}}}, log, func(e Event) {
		if e.Decision != nil {
			lines = append(lines, fmt.Sprintf("%d %s %s %v %s: %s", e.Decision.Total, e.Decision.Step, e.Decision.Variable, e.Decision.To, e.Decision.Verdict, e.Decision.Reason))
		}
	})
	if err != nil || o.State != Done || o.Verdict != Better || math.Abs(o.Best[0]-3) > 0.5 || math.Abs(o.Best[1]+1) > 0.5 {
		t.Errorf("%+v %v", o, err)
	}
	for _, l := range lines {
		t.Log(l)
	}
	h, err := Read(log.recs)
	if err != nil {
		t.Fatal(err)
	}
	// Every arm has the same seeds, and the confirmation has others, the same for both.
	fresh := map[uint64]int{}
	for _, trial := range h.Trials {
		if confirms := trial.N > o.Runs-40; confirms != (trial.Seed >= e.Seed*100_000+freshSeeds) {
			t.Errorf("run %d has seed %d", trial.N, trial.Seed)
		} else if confirms {
			fresh[trial.Seed]++
		}
	}
	for seed, n := range fresh {
		if n != 2 || len(fresh) != 20 {
			t.Errorf("seed %d confirms %d times, one of %d", seed, n, len(fresh))
		}
	}
	ds, best, whole, err := Replay(h)
	if err != nil || !whole || best.Key() != o.Best.Key() || len(ds) != len(h.Decisions) {
		t.Errorf("replay: %d decisions, %v %v %v", len(ds), best, whole, err)
	}
	end := *h.End
	for name, change := range map[string]func(){"best": func() { h.End.Best = h.Begin.Base }, "verdict": func() { h.End.Verdict = NoEffect }} {
		change()
		if _, _, _, err := Replay(h); err == nil || !strings.Contains(err.Error(), "the journal ends with") {
			t.Errorf("another %s at the end: %v", name, err)
		}
		*h.End = end
	}
}
