package tuning

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/journal"
	"github.com/fabricctl/fabricctl/model/observe"
)

// hilly is a space whose functions all answer otherwise than they were asked, so that a replay needs what they said.
func hilly() *Space {
	s := plane(1, 0.25, "x", "y")
	s.Vars[0].Ladder, s.Vars[1].Ladder = []float64{-8, -4, 0, 4, 8}, []float64{-9, -3, 3, 9}
	s.Vars = append(s.Vars, Variable{Name: "alpha", Of: Factor, Low: 1. / 16, High: 4, Ladder: []float64{1. / 16, 1. / 4, 1, 4}, Step: 2, Fine: 1.25})
	s.Base = Setting{0, 0, 1}
	s.Normal = func(in Setting) Setting { return Setting{math.Round(in[0]*2) / 2, in[1], in[2]} }
	s.Check = func(in Setting) (l diag.List) {
		if in[0] > 7 {
			l.Errorf("too-far", diag.Pos{}, "", "x is %g", in[0])
		}
		return l
	}
	s.Unmarked = func(in Setting) Setting { return Setting{-10, in[1], in[2]} }
	s.Starts = func(floor Setting) []Start {
		return []Start{{Name: "formula", Setting: Setting{2, 2, floor[2]}}, {Name: "other", Setting: Setting{-2, 2, 1}}}
	}
	s.Change = func(in Setting) Change { return Change{Patch: model.Patch{{Path: "p", Value: fmt.Sprint(in)}}} }
	return s
}

func hill(s Setting) float64 {
	if len(s) == 1 {
		return -0.02 * sq(s[0]-3)
	}
	return -0.02*sq(s[0]-3) - 0.03*sq(s[1]-1) - 0.1*sq(math.Log2(s[2])+1)
}

// rig is a Runner of the hill that rejects a run now and then.
func rig() *surface {
	return &surface{noise: 0.01, f: hill, tail: func(s Setting) float64 { return 0.3*math.Abs(s[len(s)/2]) + 1 }}
}

type choosy struct{ *surface }

func (c choosy) Run(ctx context.Context, t Trial) (observe.Observation, error) {
	if t.N%17 == 0 {
		return observe.Observation{}, &Rejected{Code: "failed", Why: "rc 1"}
	}
	return c.surface.Run(ctx, t)
}

func history(t *testing.T, recs []journal.Record) *History {
	t.Helper()
	h, err := Read(recs)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// decided are the decisions of a journal as JSON.
func decided(t *testing.T, recs []journal.Record) string {
	t.Helper()
	b, err := json.Marshal(history(t, recs).Decisions)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestResume: wherever a journal ends, the experiment goes on from there to the same decisions, and a replay of what was there agrees with it
// as far as it goes.
func TestResume(t *testing.T) {
	e := experiment(hilly())
	e.Looks = Looks{First: 3, Most: 5, Polish: 6, Confirm: 4}
	whole := &memory{}
	if _, err := Run(context.Background(), e, Lab{Runner: choosy{rig()}}, whole, nil); err != nil {
		t.Fatal(err)
	}
	want := decided(t, whole.recs)
	kinds := map[string]int{}
	for _, r := range whole.recs {
		kinds[r.Kind]++
	}
	if kinds[recSaid] < 3 || kinds[recDecision] < 8 || kinds[recMeasure] < 100 {
		t.Fatalf("the experiment is too small: %v", kinds)
	}
	step := 1
	if testing.Short() {
		step = 13
	}
	for n := 1; n < len(whole.recs); n += step {
		m := &memory{recs: append([]journal.Record{}, whole.recs[:n]...)}
		h := history(t, m.recs)
		ds, _, _, err := Replay(h)
		if err != nil || len(ds) < len(h.Decisions) {
			t.Fatalf("replay of %d records: %d decisions, %v", n, len(ds), err)
		}
		if _, err := Resume(context.Background(), e, h, Lab{Runner: choosy{rig()}}, m, nil); err != nil {
			t.Fatalf("after %d records: %v", n, err)
		}
		if got := decided(t, m.recs); got != want {
			t.Fatalf("after %d records it decides otherwise:\n%s\nand not\n%s", n, got, want)
		}
		if made := rigRuns(history(t, m.recs)); made != kinds[recMeasure] {
			t.Fatalf("after %d records there are %d measures, not %d: something was measured twice", n, made, kinds[recMeasure])
		}
	}
}

func rigRuns(h *History) int { return len(h.Measures) }

// TestParallel: how many runs are made at once changes nothing that is decided.
func TestParallel(t *testing.T) {
	var want string
	for _, parallel := range []int{1, 2, 7} {
		e := experiment(hilly())
		e.Parallel = parallel
		log := &memory{}
		if _, err := Run(context.Background(), e, Lab{Runner: choosy{rig()}}, log, nil); err != nil {
			t.Fatal(err)
		}
		got := decided(t, log.recs)
		if want == "" {
			want = got
		}
		if got != want {
			t.Errorf("%d at once decide otherwise:\n%s\n%s", parallel, got, want)
		}
	}
}

// TestReplayRefuses a journal in which somebody has changed a measure.
func TestReplayRefuses(t *testing.T) {
	log := &memory{}
	if _, err := Run(context.Background(), experiment(hilly()), Lab{Runner: rig()}, log, nil); err != nil {
		t.Fatal(err)
	}
	changed := 0
	for i, r := range log.recs {
		if r.Kind != recMeasure || i%9 != 0 || i < 60 {
			continue
		}
		var m Measured
		if err := json.Unmarshal(r.Data, &m); err != nil {
			t.Fatal(err)
		}
		m.Measure.Goodput *= 1.5
		b, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		recs := append([]journal.Record{}, log.recs...)
		recs[i].Data = b
		if _, _, _, err := Replay(history(t, recs)); err == nil || !strings.Contains(err.Error(), "journal") {
			t.Errorf("record %d: %v", i, err)
		}
		if changed++; changed == 5 {
			break
		}
	}
	h := history(t, log.recs)
	e := experiment(hilly())
	e.Context.Digest = "another"
	if _, err := Resume(context.Background(), e, h, Lab{Runner: rig()}, log, nil); err == nil {
		t.Error("an experiment on another model is resumed")
	}
}

// TestAnyFunction: whatever J depends on, an experiment ends, its journal is read and replayed, and what it recommends is not worse than
// what there was.
func TestAnyFunction(t *testing.T) {
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 3))
		s := &Space{}
		c := make([]float64, 0, 8)
		for i := range 1 + r.IntN(4) {
			v := Variable{Name: string(rune('a' + i)), Low: 1, High: 1000, Step: 2, Fine: 1.25, Whole: r.IntN(3) == 0}
			for x := 1.0; x <= 1000 && r.IntN(4) > 0; x *= 4 {
				v.Ladder = append(v.Ladder, x)
			}
			s.Vars, s.Base = append(s.Vars, v), append(s.Base, 1+math.Floor(999*r.Float64()))
			c = append(c, 10*r.Float64(), r.Float64()-0.5)
		}
		f := func(s Setting) float64 {
			j := 0.0
			for i, x := range s {
				j += c[2*i+1]*0.3*math.Log2(x) - 0.02*sq(math.Log2(x)-c[2*i]) + 0.05*math.Sin(3*math.Log2(x)+float64(i))*math.Log2(s[0])
			}
			return j
		}
		log := &memory{}
		e := experiment(s)
		e.Seed, e.Budget.Runs = seed, 100+r.IntN(600)
		e.Method = []Method{OFAT, OFAT, NelderMead}[r.IntN(3)]
		o, err := Run(context.Background(), e, Lab{Runner: &surface{noise: 0.03 * r.Float64(), f: f}}, log, nil)
		if err != nil || o.Runs > e.Budget.Runs {
			t.Fatalf("seed %d: %+v %v", seed, o, err)
		}
		if f(o.Best) < f(s.Base)-0.01 {
			t.Errorf("seed %d: %v is recommended, which is worse than %v: %g and %g", seed, o.Best, s.Base, f(o.Best), f(s.Base))
		}
		h := history(t, log.recs)
		if ds, best, whole, err := Replay(h); err != nil || !whole || best.Key() != o.Best.Key() || len(ds) != len(h.Decisions) {
			t.Errorf("seed %d: replay: %v %v %v", seed, best, whole, err)
		}
	}
}

// TestReadSettings: whatever record has a setting that is not one of the experiment, the journal is refused.
func TestReadSettings(t *testing.T) {
	log := &memory{}
	e := experiment(hilly())
	e.Looks, e.Rounds = Looks{First: 2, Most: 2, Polish: 2, Confirm: 2}, 1
	if o, err := Run(t.Context(), e, Lab{Runner: choosy{rig()}}, log, nil); err != nil || o.Confirmed == nil {
		t.Fatal(o, err)
	}
	kinds := map[string]bool{}
	for i, r := range log.recs {
		for _, at := range regexp.MustCompile(`"(setting|from|to|best|base|start|in)":\[[^\]]+\]`).FindAllIndex(r.Data, -1) {
			recs := slices.Clone(log.recs)
			recs[i].Data = slices.Concat(r.Data[:at[1]-1], []byte(",1]"), r.Data[at[1]:])
			if _, err := Read(recs); err == nil {
				t.Errorf("taken: %s %s", r.Kind, recs[i].Data)
			}
			kinds[r.Kind] = true
		}
	}
	for _, kind := range []string{recBegin, recRun, recDecision, recEnd} {
		if !kinds[kind] {
			t.Errorf("no %s was tried", kind)
		}
	}
}

// FuzzRead: whatever a journal holds, reading and replaying it end, without a panic.
func FuzzRead(f *testing.F) {
	for _, s := range []*Space{hilly(), plane(1, 0.5, "x")} {
		e := experiment(s)
		e.Looks, e.Rounds, e.Budget.Runs = Looks{First: 2, Most: 2, Polish: 2, Confirm: 2}, 1, 24
		log := &memory{}
		if _, err := Run(context.Background(), e, Lab{Runner: choosy{rig()}}, log, nil); err != nil {
			f.Fatal(err)
		}
		if h, err := Read(log.recs); err == nil && h.End.Spent { // and given more
			e.Budget.Runs = 40
			if _, err := Resume(context.Background(), e, h, Lab{Runner: choosy{rig()}}, log, nil); err != nil {
				f.Fatal(err)
			}
		}
		var all bytes.Buffer
		for _, r := range log.recs {
			fmt.Fprintf(&all, "%s %s\n", r.Kind, r.Data)
		}
		f.Add(all.Bytes())
	}
	f.Add([]byte("begin {}\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 1<<18 {
			return
		}
		var recs []journal.Record
		for line := range bytes.Lines(b) {
			kind, data, _ := strings.Cut(strings.TrimSuffix(string(line), "\n"), " ")
			recs = append(recs, journal.Record{Seq: uint64(len(recs) + 1), Time: time.Unix(0, 0), Kind: kind, Data: json.RawMessage(data)})
		}
		h, err := Read(recs)
		if err != nil {
			return
		}
		_, _, _, _ = Replay(h)
		h.State(true)
	})
}
