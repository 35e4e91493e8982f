package main

import (
	"cmp"
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/drivers/rollout"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/tuning"
	"github.com/fabricctl/fabricctl/tuning/sim"
)

// benchText is the file of a bench fabric with other values in it: what is replaced, and by what, one after the other.
func benchText(tb testing.TB, dir string, replaced ...string) string {
	tb.Helper()
	b, err := os.ReadFile("../../examples/" + dir + "/fabric.yaml")
	if err != nil {
		tb.Fatal(err)
	}
	text := string(b)
	for i := 0; i < len(replaced); i += 2 {
		if !strings.Contains(text, replaced[i]) {
			tb.Fatalf("%s has no %q", dir, replaced[i])
		}
		text = strings.ReplaceAll(text, replaced[i], replaced[i+1])
	}
	return text
}

// emulatedLoad is a standard load on its fabric, whose devices are emulated.
type emulatedLoad struct {
	*tuneLoad
	bench *bench
	app   *app
	model loaded
}

// emulatedLoadOf starts the fabric of a load and has its model applied.
func emulatedLoadOf(t *testing.T, name string) *emulatedLoad {
	t.Helper()
	dir := standardLoads()[name]
	b := newBench(t, benchText(t, dir), dir+"/bench-box.yaml", dir+"/inventory.yaml")
	b.must(t, exitOK, "apply", "--yes", "--allow-disruptive")
	a, m, _ := b.tuner(t)
	l := loadOf(t, name)
	l.runner = newSimRunner(m.fabric, sim.Options{}, "training")
	return &emulatedLoad{l, b, a, m}
}

// from is the load on devices that hold the setting of a start.
func (l *emulatedLoad) from(t *testing.T, s badStart) *emulatedLoad {
	t.Helper()
	out := *l
	out.tuneLoad = l.tuneLoad.from(t, s)
	out.model.fabric = out.runner.fabric
	net, found := intent.Resolve(out.model.fabric)
	if found.HasErrors() {
		t.Fatal(found)
	}
	out.model.net = net
	out.app.held(t, out.model)
	return &out
}

// held has devices hold what a model says, whatever the linter says of that: it goes over their protocols, and nobody asks, as when somebody
// has typed it.
func (a *app) held(t *testing.T, m loaded) {
	t.Helper()
	e, err := a.engine(a.dialler(m.fabric, m.net).open)
	if err != nil {
		t.Fatal(err)
	}
	e.Progress = nil
	plan := func() *rollout.Plan {
		p, err := e.Plan(t.Context(), m.net, rollout.PlanOptions{Model: m.fabric.Digest(), Fabric: m.fabric, Adopt: m.fabric.Adopt.V, Lab: true})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	if r, err := e.Apply(t.Context(), plan(), rollout.ApplyOptions{AllowDisruptive: true}); rollout.ExitCode(r, err) != exitOK {
		t.Fatal(err, r)
	}
	if err := (&tuneBench{}).isBaseline(plan(), ""); err != nil {
		t.Fatal(err)
	}
}

// tried carries an experiment out.
func tried(t *testing.T, e *tuning.Experiment, l tuning.Lab) (ds []tuning.Decision, o tuning.Outcome) {
	t.Helper()
	o, err := tuning.Run(t.Context(), *e, l, nowhere{}, func(ev tuning.Event) {
		if ev.Decision != nil {
			ds = append(ds, *ev.Decision)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	o.Took = 0
	return ds, o
}

// tune carries an experiment out on the emulated fabric, and in the simulator, and wants the same of both; the row is not judged yet. again
// are the runs that the simulator has made before.
func (l *emulatedLoad) tune(t *testing.T, seed uint64, runs int, again *repeated) (r *matrixRow, best tuning.Setting) {
	t.Helper()
	before := l.bench.config(t)
	e := l.experiment(seed)
	e.Steady, e.PFCAlone = true, true // as on no real fabric, and as in the simulator
	if runs < e.Budget.Runs {
		e.Budget.Runs, e.Looks.Confirm = runs, min(20, runs/10)
	}
	emulated, err := l.app.newLabRunner(l.model, l.workload, "training")
	if err != nil {
		t.Fatal(err)
	}
	x, err := l.app.openBench(t.Context(), l.model, rollout.NewRunID(time.Now()), benchOptions{Persist: true})
	if err != nil {
		t.Fatal(err)
	}
	began, cpu := time.Now(), cpuTime()
	there, got := tried(t, &e, tuning.Lab{Runner: emulated, Bench: x})
	cpu = cpuTime() - cpu
	if err := errors.Join(x.Close(t.Context()), emulated.Close()); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d runs on the emulated fabric in %s, with %.0f ms of CPU each: %s", got.Runs, time.Since(began).Round(time.Second), 1e3*cpu.Seconds()/float64(max(got.Runs, 1)), got.Words)
	l.bench.same(t, before, "after the experiment")
	here, want := tried(t, &e, tuning.Lab{Runner: again.over(l.runner)})
	if d := gocmp.Diff(here, there); d != "" || len(here) < 2 {
		t.Errorf("%d decisions (-simulator +emulated):\n%s", len(here), d)
	}
	if d := gocmp.Diff(want, got); d != "" {
		t.Errorf("(-simulator +emulated):\n%s", d)
	}
	return &matrixRow{
		Runner: "lab", Load: l.name, Seed: seed, Verdict: got.Verdict, Runs: got.Runs, CPU: cpu.Seconds(), Setting: l.words(got.Best),
		Same: got.Best.Key() == l.space.Base.Key(),
	}, got.Best
}

// TestTuneEmulated: on emulated fabrics, written over gNMI and loaded over SSH, an experiment comes to the decisions that it comes to in
// the simulator, one by one, and the fabric holds afterwards what it held before, to the byte. Usually runs are few, of ap from two starts. With
// FABRICCTL_TUNE_EMULATED, which is how many runs are made at most, it is ap from one start with two seeds, and held to the reference; with
// FABRICCTL_TUNE_MATRIX and FABRICCTL_TUNE_SEEDS as for TestTuneMatrix, what comes of it is kept as there.
func TestTuneEmulated(t *testing.T) {
	runs, commit := 60, ""
	loads, seeds, starts := []string{"ap"}, []string{"1"}, []badStart{badStarts("ap")[0], badStarts("ap")[2]}
	judged := false
	if s := os.Getenv("FABRICCTL_TUNE_EMULATED"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		runs, judged, seeds, starts = n, true, []string{"1", "2"}, starts[:1]
		if all := os.Getenv("FABRICCTL_TUNE_MATRIX"); all != "" {
			commit = commitNow(t)
			loads = strings.Fields(all)
			seeds = strings.Fields(cmp.Or(os.Getenv("FABRICCTL_TUNE_SEEDS"), "1 2 3 4 5 6 7 8 9 10"))
		}
	}
	for _, name := range loads {
		l := emulatedLoadOf(t, name)
		if commit != "" {
			starts = badStarts(name)
		}
		tuneEach(t, &l.sight, seeds, starts, func(b badStart, seed uint64, again *repeated) *matrixRow {
			x := l.from(t, b)
			r, best := x.tune(t, seed, runs, again)
			if !judged {
				return nil
			}
			r.Start, r.Commit, r.judgement = b.name, commit, x.judge(t, best)
			if commit != "" {
				keepTuned(t, r)
			}
			return r
		})
	}
}
