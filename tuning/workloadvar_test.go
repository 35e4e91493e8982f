package tuning

import (
	"strings"
	"testing"

	"github.com/fabricctl/fabricctl/model/observe"
)

func workload(t *testing.T, text string) observe.Workload {
	t.Helper()
	w, err := observe.ParseWorkload(text)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// A variable of the load moves the parts that send without pauses, and nothing of the workload that it was made from.
func TestWorkloadVariables(t *testing.T) {
	w := workload(t, "incast:8,size=16KiB,depth=32 + victim:1,size=16KiB,depth=32 + single,latency + probe,every=2us")
	before := w.String()
	depth, now, err := WorkloadVariable("workload.depth", &w)
	if err != nil || now != 32 || depth.Name != "workload.depth" || !depth.IsWorkload() || !depth.Whole {
		t.Fatalf("%+v at %g: %v", depth, now, err)
	}
	size, now, err := WorkloadVariable("workload.size@victim", &w)
	if err != nil || now != 16<<10 {
		t.Fatalf("at %g: %v", now, err)
	}
	got := WorkloadAt(w, []Variable{{Name: "alpha"}, depth, size}, Setting{.125, 6, 4096})
	if s, want := got.String(), "incast:8,size=16384B,depth=6 + victim:1,size=4096B,depth=6 + single,latency + probe,every=2us"; s != want {
		t.Errorf("%s\nwant %s", s, want)
	}
	if err := got.Check(); err != nil {
		t.Error(err)
	}
	if w.String() != before {
		t.Errorf("it has changed the workload of the experiment: %s", w.String())
	}
}

// What a workload does not say is what verbs tests have, and a depth gives messages a size, which they need.
func TestWorkloadVariablesUnsaid(t *testing.T) {
	w := workload(t, "incast:8")
	for name, want := range map[string]float64{"workload.depth": 128, "workload.qps": 1, "workload.size": 65536} {
		v, now, err := WorkloadVariable(name, &w)
		if err != nil || now != want || now < v.Low || now > v.High {
			t.Errorf("%s is at %g in %g to %g: %v", name, now, v.Low, v.High, err)
		}
	}
	d, _, _ := WorkloadVariable("workload.depth", &w)
	got := WorkloadAt(w, []Variable{d}, Setting{8})
	if err := got.Check(); err != nil || got.String() != "incast:8,size=65536B,depth=8" {
		t.Errorf("%s: %v", got.String(), err)
	}
}

func TestWorkloadVariablesRefused(t *testing.T) {
	for text, want := range map[string]string{
		"workload.mtu | incast:8":          "there are workload.depth, workload.qps and workload.size",
		"depth | incast:8":                 "is not a variable of a workload",
		"workload.depth@nobody | incast:8": "there is incast",
		"workload.depth | single,latency":  "no part of the workload has it",
		"workload.depth | incast:8,size=4KiB,depth=4 + victim:1,size=4KiB,depth=8": "name one of them: workload.depth@",
	} {
		name, of, _ := strings.Cut(text, " | ")
		w := workload(t, of)
		if _, _, err := WorkloadVariable(name, &w); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
