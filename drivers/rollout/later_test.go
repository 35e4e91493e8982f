package rollout

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// What later runs have made of a run is told device by device, and it counts as replaced only where nothing of it is left.
func TestLater(t *testing.T) {
	made := 0
	run := func(results ...Result) trace {
		made++
		h := &History{Plan: &Plan{Fabric: "pod1"}, Attempts: []*Run{{Results: results}}, sent: map[string]bool{}}
		h.ID, h.Fabric, h.Started = fmt.Sprint("run-", made), "pod1", time.Unix(int64(made), 0)
		for i := range results {
			x := &results[i]
			x.Steps = 1
			d := DevicePlan{Name: x.Device}
			if x.Message == "held" {
				d.Left = &Left{}
			}
			h.Plan.Devices = append(h.Plan.Devices, d)
			h.sent[x.Device] = true
		}
		return h.trace()
	}
	on := func(o Outcome, devices ...string) (rs []Result) {
		for _, d := range devices {
			rs = append(rs, Result{Device: d, Outcome: o})
		}
		return rs
	}
	before, first := run(on(Applied, "a", "b")...), run(append(on(Applied, "a", "b"), on(RolledBack, "c")...)...)
	for _, x := range []struct {
		name  string
		after [][]Result
		want  *Later
		whole bool
	}{
		{"nobody", nil, nil, false},
		{"elsewhere", [][]Result{on(Applied, "d"), on(Applied, "c")}, nil, false},
		{"taken back", [][]Result{on(RolledBack, "a", "b"), on(Unchanged, "a", "b")}, nil, false},
		{"everywhere", [][]Result{on(Applied, "a", "b", "d")}, &Later{Runs: []string{"run-3"}, Devices: []string{"a", "b"}}, true},
		{"in part", [][]Result{on(Applied, "b")}, &Later{Runs: []string{"run-3"}, Devices: []string{"b"}, Left: []string{"a"}}, false},
		{"in parts", [][]Result{on(Applied, "b"), on(Applied, "a")}, &Later{Runs: []string{"run-3", "run-4"}, Devices: []string{"a", "b"}}, true},
		{"not known", [][]Result{on(Unknown, "a"), on(NeedsHands, "b")}, &Later{Runs: []string{"run-3", "run-4"}, Unknown: []string{"a", "b"}}, false},
		{"known before", [][]Result{on(Applied, "a", "b"), on(Unknown, "a")}, &Later{Runs: []string{"run-3", "run-4"}, Devices: []string{"a", "b"}}, true},
		{"held", [][]Result{{{Device: "a", Outcome: Applied, Message: "held"}, {Device: "b", Outcome: Applied}}}, &Later{Runs: []string{"run-3"}, Devices: []string{"b"}, Unknown: []string{"a"}}, false},
	} {
		made = 2
		all := []trace{before, first}
		for _, r := range x.after {
			all = append(all, run(r...))
		}
		got := first.later(all)
		if d := cmp.Diff(x.want, got); d != "" || got.Whole() != x.whole {
			t.Errorf("%s: whole %v (-want +got):\n%s", x.name, got.Whole(), d)
		}
	}
}

// A list of runs reads each journal once, however many of them are unfinished.
func TestRunsReadOnce(t *testing.T) {
	f := newFabric(stateDir(t), "s1")
	cost := map[int]float64{}
	for n := 1; n <= 24; n++ {
		f.now = f.now.Add(time.Minute)
		f.want["s1"] = append(newConfig(), conf(fmt.Sprintf("watch p1 time %d", 900+n))...).Sorted()
		o := leave
		o.Trial = "exp-1"
		if r, err := f.e.Apply(context.Background(), f.plan(t), o); ExitCode(r, err) != 0 {
			t.Fatal(r, err)
		}
		if n%12 != 0 {
			continue
		}
		cost[n] = testing.AllocsPerRun(1, func() {
			all, err := Runs(f.e.StateDir, f.now)
			if err != nil || len(all) != n || all[0].Status != Unfinished || n > 1 && !all[0].Later.Whole() {
				t.Fatalf("%+v, %v", all[0], err)
			}
		})
	}
	if cost[24] > 2.3*cost[12] {
		t.Errorf("%v allocations of 24 runs, and %v of 12", cost[24], cost[12])
	}
}

// A run in whose place a later one stands everywhere is not taken back below it, and nobody is told to take back the later one for it: that
// would bring into force what was replaced.
func TestRollbackReplaced(t *testing.T) {
	f := newFabric(stateDir(t), "s1")
	var ids []string
	for n := range 2 {
		f.now = f.now.Add(time.Minute)
		f.want["s1"] = append(newConfig(), conf(fmt.Sprintf("watch p1 time %d", 900+n))...).Sorted()
		o := leave
		o.Trial = "exp-1"
		r, err := f.e.Apply(context.Background(), f.plan(t), o)
		if ExitCode(r, err) != 0 {
			t.Fatal(r, err)
		}
		ids = append(ids, r.ID)
	}
	_, err := f.e.Rollback(context.Background(), ids[0])
	var refused *RefusedError
	if !errors.As(err, &refused) || refused.Hint != "nothing of this run is in force any more; fabricctl tune resume exp-1 goes on with its experiment" {
		t.Errorf("%+v", err)
	}
}
