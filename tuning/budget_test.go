package tuning

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/observe"
	"github.com/fabricctl/fabricctl/model/units"
)

// slowly is a Bench and a Runner on a clock: a write takes 20 s, a run 1 s.
type slowly struct {
	*devices
	*patchy
	now time.Time
}

func (s *slowly) Apply(ctx context.Context, p model.Patch) error {
	if s.holds != p[0].Value {
		s.now = s.now.Add(20 * time.Second)
	}
	return s.devices.Apply(ctx, p)
}

func (s *slowly) Run(ctx context.Context, t Trial) (observe.Observation, error) {
	s.now = s.now.Add(time.Second)
	return s.patchy.Run(ctx, t)
}

// TestTimeKept: whatever time there is, what was found is confirmed within it, though a run takes much longer when something is written before
// it than the runs of the baseline did; and a replay comes to the same.
func TestTimeKept(t *testing.T) {
	confirmed := 0
	for _, steady := range []bool{false, true} {
		for budget := 60; budget < 4000; budget += 60 {
			e, d, r := site(t)
			e.Steady = steady
			e.Looks = Looks{First: 6, Most: 8, Polish: 8, Confirm: 4}
			s := &slowly{devices: d, patchy: r, now: time.Unix(1000, 0)}
			d.holds = fmt.Sprint(e.Space.Base) // so that the baseline is no write
			began := s.now
			e.Now = func() time.Time { return s.now }
			e.Budget.Time = units.Duration(budget) * units.Second
			log := &memory{}
			o, err := Run(t.Context(), e, Lab{Runner: s, Bench: s}, log, nil)
			if err != nil || strings.Contains(o.Words, "was not confirmed") {
				t.Errorf("%d s, steady %t: %+v %v", budget, steady, o, err)
			}
			if o.Confirmed != nil {
				confirmed++
			}
			if took := s.now.Sub(began); took > time.Duration(budget+21)*time.Second {
				t.Errorf("%d s, steady %t: it took %s", budget, steady, took)
			}
			h := history(t, log.recs)
			if ds, _, _, err := Replay(h); err != nil || len(ds) != len(h.Decisions) {
				t.Errorf("%d s, steady %t: replay: %v", budget, steady, err)
			}
		}
	}
	if confirmed < 20 {
		t.Errorf("only %d were confirmed", confirmed)
	}
}

// TestUnused: a budget that is spent before anything was found says what of it was kept, and for what.
func TestUnused(t *testing.T) {
	for _, c := range []struct {
		runs  int
		words string
	}{
		{60, "; 14 of 60 runs were made, and 40 were kept for a confirmation that was not needed: the other 6 are too few for what comes next"},
		{0, ""},
	} {
		e := experiment(plane(1, 0.25, "x", "y"))
		for i := range e.Space.Vars {
			e.Space.Vars[i].Ladder = []float64{-8, -4, 0, 4, 8}
		}
		e.Looks.Confirm = 20
		e.Budget.Runs = c.runs
		o, err := Run(t.Context(), e, Lab{Runner: &surface{noise: 0.01, f: func(s Setting) float64 { return -0.02 * (sq(s[0]) + sq(s[1])) }}}, &memory{}, nil)
		if err != nil || (c.words == "") != (o.State == Done) || !strings.Contains(o.Words, c.words) || c.words == "" && strings.Contains(o.Words, "kept for") {
			t.Errorf("%d runs: %+v %v", c.runs, o, err)
		}
	}
}

// given is an experiment that was resumed with larger budgets, one after the other, each when the one before was spent.
func given(t *testing.T, e Experiment, r Runner, budgets ...Budget) (Outcome, *memory) {
	t.Helper()
	log := &memory{}
	e.Budget = budgets[0]
	o, err := Run(t.Context(), e, Lab{Runner: r}, log, nil)
	for _, b := range budgets[1:] {
		if err != nil || !o.Spent {
			t.Fatalf("%+v %v", o, err)
		}
		h := history(t, log.recs)
		if err := h.Enough(b); err != nil {
			t.Fatal(err)
		}
		e.Budget = b
		o, err = Resume(t.Context(), e, h, Lab{Runner: r}, log, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return o, log
}

// TestEnlarged: an experiment whose budget was spent goes on with a larger one to what it would have come to at once, but for the runs of a
// confirmation that was made in between, and for the seeds of the next; wherever its journal ends it comes to the same, and a replay agrees.
func TestEnlarged(t *testing.T) {
	e := experiment(hilly())
	e.Looks = Looks{First: 3, Most: 5, Polish: 6, Confirm: 4}
	at := func(runs ...int) (bs []Budget) {
		for _, n := range runs {
			bs = append(bs, Budget{Runs: n})
		}
		return bs
	}
	key := func(d *Decision) string {
		return fmt.Sprint(d.Step, d.Variable, d.From, d.To, d.Verdict, d.Runs, d.Looks)
	}
	var want []string // without rejections, which go by the number of a trial: a confirmation in between moves those
	_, plain := given(t, e, rig(), at(0)...)
	for _, d := range history(t, plain.recs).Decisions {
		if d.Step != "confirmation" {
			want = append(want, key(&d))
		}
	}
	for _, first := range []int{24, 40, 61, 90, 133} {
		o, log := given(t, e, rig(), at(first, 0)...)
		h := history(t, log.recs)
		void := h.grants()[0]
		old := 0 // decisions before the first budget was spent
		for i := range h.Decisions[:void.decisions] {
			if key(&h.Decisions[i]) == want[i] {
				old++
			} else {
				break
			}
		}
		got := want[:0:0]
		for i := range h.Decisions {
			if d := &h.Decisions[i]; d.Step != "confirmation" && (i < old || i >= void.decisions) {
				got = append(got, key(d))
			}
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("after %d runs it goes on otherwise than at once:\n%s\nand not\n%s", first, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if o.State != Done || o.Runs != len(h.Measures) {
			t.Errorf("%d: %+v, %d measures", first, o, len(h.Measures))
		}
		seeds := map[uint64]int{} // of the last confirmation
		for _, tr := range h.Trials {
			if tr.Seed%100_000 >= freshSeeds {
				seeds[tr.Seed]++
			}
		}
		for s, n := range seeds {
			if n > 2 {
				t.Errorf("%d: seed %d was used for two confirmations", first, s)
			}
		}
	}
	for _, budgets := range [][]Budget{at(24, 0), at(40, 130, 0), at(60, 200), at(33, 90, 160, 300)} {
		o, log := given(t, e, choosy{rig()}, budgets...)
		last := budgets[len(budgets)-1]
		if last.Runs > 0 && o.Runs > last.Runs {
			t.Errorf("%v: %d runs", budgets, o.Runs)
		}
		h := history(t, log.recs)
		if h.Budget() != last {
			t.Errorf("%v: the budget is %v", budgets, h.Budget())
		}
		if ds, best, w, err := Replay(h); err != nil || !w || best.Key() != o.Best.Key() || len(ds) != len(h.Decisions) {
			t.Errorf("%v: replay: %d decisions of %d, %v %v", budgets, len(ds), len(h.Decisions), w, err)
		}
		want, given := decided(t, log.recs), 0
		for n, rec := range log.recs {
			if rec.Kind == recResume {
				given++
			}
			if n%5 > 0 || given < len(budgets)-1 {
				continue
			}
			m := &memory{recs: append(log.recs[:n:n], rec)}
			x := e
			x.Budget = last
			if _, err := Resume(t.Context(), x, history(t, m.recs), Lab{Runner: choosy{rig()}}, m, nil); err != nil || decided(t, m.recs) != want {
				t.Fatalf("%v: after %d records: %v, or it decides otherwise", budgets, n, err)
			}
		}
		forged := append(log.recs[:0:0], log.recs...)
		for i, rec := range forged {
			if rec.Kind == recDecision && strings.Contains(string(rec.Data), `"step":"confirmation"`) {
				forged[i].Data = []byte(strings.Replace(string(rec.Data), `"verdict":"`, `"verdict":"x`, 1))
				if _, _, _, err := Replay(history(t, forged)); err == nil {
					t.Errorf("%v: a confirmation that was changed is believed", budgets)
				}
				break
			}
		}
	}
}

// TestEnlargedDead: a process that died while it confirmed what its budget had come to has numbers and seeds in the journal that are not used again
// when there is given more.
func TestEnlargedDead(t *testing.T) {
	e := experiment(hilly())
	e.Looks = Looks{First: 3, Most: 5, Polish: 6, Confirm: 4}
	_, whole := given(t, e, rig(), Budget{Runs: 61})
	cut := 0
	for n, rec := range whole.recs {
		var tr Trial
		if rec.Kind != recRun || json.Unmarshal(rec.Data, &tr) != nil || tr.Seed%100_000 < freshSeeds {
			continue
		}
		cut++
		m := &memory{recs: slices.Clone(whole.recs[:n+1])}
		h := history(t, m.recs)
		x := e
		x.Budget.Runs = 300
		o, err := Resume(t.Context(), x, h, Lab{Runner: rig()}, m, nil)
		if err != nil {
			t.Fatal(err)
		}
		h, err = Read(m.recs)
		if err != nil {
			t.Fatalf("after %d records: %v", n+1, err)
		}
		if _, best, whole, err := Replay(h); err != nil || !whole || best.Key() != o.Best.Key() {
			t.Errorf("after %d records: replay: %v %v %v", n+1, best, whole, err)
		}
	}
	if cut < 4 {
		t.Errorf("it died %d times in a confirmation", cut)
	}
}

// TestEnlargedTripped: a limit that a confirmation broke after the budget was spent is not passed over with a larger one.
func TestEnlargedTripped(t *testing.T) {
	e, d, r := site(t)
	e.Sight, e.Budget.Runs = Sight{Lossless: []int{3}}, 34
	r.each = func(o *observe.Observation, tr Trial) {
		if tr.Seed%100_000 >= freshSeeds && tr.Setting.Key() != e.Space.Base.Key() {
			lose(o, observe.Drop.Of(3), 2)
		}
	}
	log := &memory{}
	o, err := Run(t.Context(), e, Lab{Runner: r, Bench: d}, log, nil)
	if err != nil || o.State != Tripped || !o.Spent {
		t.Fatalf("%+v %v", o, err)
	}
	h := history(t, log.recs)
	e.Budget.Runs = 300
	if err := h.Enough(e.Budget); err == nil || !strings.Contains(err.Error(), "no budget takes it past that: 2 packets") {
		t.Error(err)
	}
	applies := d.applies
	o, err = Resume(t.Context(), e, h, Lab{Runner: r, Bench: d}, log, nil)
	if err != nil || o.State != Tripped || d.applies != applies {
		t.Errorf("%d applies: %+v %v", d.applies-applies, o, err)
	}
	if _, _, whole, err := Replay(history(t, log.recs)); err != nil || !whole {
		t.Errorf("replay: %v %v", whole, err)
	}
}

// TestEnough: a budget that takes an experiment no further is refused, and what it would take is said and is true.
func TestEnough(t *testing.T) {
	e := experiment(hilly())
	e.Looks = Looks{First: 3, Most: 5, Polish: 6, Confirm: 4}
	_, log := given(t, e, rig(), Budget{Runs: 60})
	h := history(t, log.recs)
	least := 0
	for n := 61; least == 0; n++ {
		err := h.Enough(Budget{Runs: n})
		if err == nil {
			least = n
			break
		}
		var runs, need int
		if _, e := fmt.Sscanf(err.Error(), "with %d runs it comes no further: what is next takes %d in all", &runs, &need); e != nil || need <= n || n > 200 {
			t.Fatalf("%d: %v", n, err)
		}
		if e := h.Enough(Budget{Runs: need}); e != nil {
			t.Errorf("%d was said to be enough: %v", need, e)
		}
	}
	if err := h.Enough(Budget{Runs: 59}); err == nil || !strings.Contains(err.Error(), "cannot be less than it was: 60 runs") {
		t.Error(err)
	}
	if err := h.Enough(Budget{Runs: 100, Time: 5}); err == nil {
		t.Error("a limit where there was none is not more")
	}
	e.Budget.Runs = least
	o, err := Resume(t.Context(), e, h, Lab{Runner: rig()}, log, nil)
	if err != nil || o.Runs > least || o.Confirmed == nil && strings.Contains(o.Words, "was not confirmed") {
		t.Errorf("%+v %v", o, err)
	}
	e.Budget.Runs = 30
	if _, err := Resume(t.Context(), e, history(t, log.recs), Lab{Runner: rig()}, log, nil); err == nil {
		t.Error("a budget was made smaller")
	}
}

// TestTimeParallel: runs that were begun together were in time together, though the first of them came to its end when the time was over; a replay,
// which has them one after the other, agrees, and so it does when there is given more.
func TestTimeParallel(t *testing.T) {
	for budget := 20; budget < 400; budget += 17 {
		var mu sync.Mutex
		now := time.Unix(1000, 0)
		e := experiment(hilly())
		e.Looks = Looks{First: 3, Most: 5, Polish: 6, Confirm: 4}
		e.Parallel = 5
		e.Now = func() time.Time {
			mu.Lock()
			defer mu.Unlock()
			now = now.Add(time.Second)
			return now
		}
		e.Budget.Time = units.Duration(budget) * units.Second
		log := &memory{}
		o, err := Run(t.Context(), e, Lab{Runner: choosy{rig()}}, log, nil)
		if err != nil {
			t.Fatal(err)
		}
		h := history(t, log.recs)
		if ds, best, whole, err := Replay(h); err != nil || !whole || best.Key() != o.Best.Key() || len(ds) != len(h.Decisions) {
			t.Errorf("%d s: replay: %v %v", budget, whole, err)
		}
		if !o.Spent {
			continue
		}
		e.Budget.Time *= 3
		if h.Enough(e.Budget) != nil {
			continue
		}
		if o, err = Resume(t.Context(), e, h, Lab{Runner: choosy{rig()}}, log, nil); err != nil {
			t.Fatal(err)
		}
		h = history(t, log.recs)
		if ds, best, whole, err := Replay(h); err != nil || !whole || best.Key() != o.Best.Key() || len(ds) != len(h.Decisions) {
			t.Errorf("%d s, and three times that: replay: %v %v", budget, whole, err)
		}
	}
}
