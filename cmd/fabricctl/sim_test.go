package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/fabricctl/fabricctl/cmd/show"
	"github.com/fabricctl/fabricctl/drivers/lab/eos"
	"github.com/fabricctl/fabricctl/model/observe"
	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/tuning/sim"
)

// quartet is a leaf with four hosts behind one spine.
var quartet = strings.Replace(trio, "per_leaf: 1", "per_leaf: 4", 1)

// TestSimLive: what the devices hold is simulated, not the model: PFC that is taken from one port by hand costs packets, which the model, simulated
// beside it, does not lose.
func TestSimLive(t *testing.T) {
	b := newBench(t, quartet)
	b.must(t, exitOK, "apply", "--yes", "--allow-disruptive")
	// Without marks the senders press on, so that PFC alone keeps the class lossless.
	load := []string{"--workload", "incast:3,to=host4", "--no-ecn", "--duration", "30ms"}
	good := b.must(t, exitOK, append([]string{"sim", "--live"}, load...)...)
	if !strings.Contains(good.out, "lost        nothing") || !strings.Contains(good.err, "reading 6 devices\n") {
		t.Fatalf("%s", good)
	}
	leaf := b.lab.Box("leaf1").(*eos.Switch)
	if err := leaf.Type("interface Ethernet1/1\n   priority-flow-control priority 3 drop\n"); err != nil {
		t.Fatal(err)
	}
	bad := b.must(t, exitError, append([]string{"sim", "--live"}, load...)...)
	if !regexp.MustCompile(`(?m)^  leaf1:Ethernet1/1 .* ingress buffer full$`).MatchString(bad.out) || !strings.Contains(bad.err, "pfc-symmetry") {
		t.Errorf("%s", bad)
	}
	b.must(t, exitOK, append([]string{"sim"}, load...)...)
}

// TestPlanSimulate: now and after stand beside each other in every format; the plan's file and exit codes are as without.
func TestPlanSimulate(t *testing.T) {
	b := newBench(t, quartet)
	load := "--simulate=incast:3,to=host4,bytes=100KB"
	file := filepath.Join(b.dir, "plan.json")
	r := b.must(t, exitChanges, "plan", load, "--detailed-exitcode", "--out", file)
	title := "simulated under incast:3,to=host4,bytes=100KB"
	if !strings.Contains(r.out, title) || !strings.Contains(r.out, ": "+modelsAnswer) || !regexp.MustCompile(`(?m)^ +now +after$`).MatchString(r.out) ||
		!regexp.MustCompile(`(?m)^  goodput +\S+bps +\S+bps$`).MatchString(r.out) {
		t.Errorf("%s", r)
	}
	if text, err := os.ReadFile(file); err != nil || strings.Contains(string(text), "simul") {
		t.Errorf("the plan's file holds the simulation, or is not there: %v", err)
	}
	r = b.must(t, exitOK, "plan", load, "-o", "markdown")
	if !strings.Contains(r.out, "\n#### "+title) || !strings.Contains(r.out, "|  | now | after |\n|---|---:|---:|\n| goodput | ") || len(r.out) > show.DefaultComment {
		t.Errorf("%s", r)
	}
	r = b.must(t, exitOK, "plan", load, "-o", "markdown", "--max-bytes", "2000")
	if len(r.out) > 2000 {
		t.Errorf("%d bytes", len(r.out))
	}
	r = b.must(t, exitOK, "plan", load, "-o", "json")
	var got planJSON
	if err := json.Unmarshal([]byte(r.out), &got); err != nil || got.Simulation == nil || len(got.Simulation.Fabrics) != 2 || len(got.Simulation.Figures) == 0 {
		t.Errorf("%v\n%s", err, r)
	}
	// What cannot be simulated is said, and fails nothing.
	r = b.must(t, exitOK, "plan", "--simulate=incast:99")
	if !strings.Contains(r.out, "now could not be simulated: sim-few-hosts: ") {
		t.Errorf("%s", r)
	}
	// What makes no sense is said before a device is read.
	r = b.must(t, exitUsage, "plan", "--simulate=nonsense")
	if strings.Contains(r.err, "reading") {
		t.Errorf("%s", r)
	}
	r = b.must(t, exitUsage, "plan", "--simulate", "incast:3")
	if !strings.Contains(r.err, "hint: write --simulate=incast:3") {
		t.Errorf("%s", r)
	}
	// Once it is applied, before and after are the same. A device that is not read is taken to be as the model says.
	b.must(t, exitOK, "apply", "--yes", "--allow-disruptive")
	r = b.must(t, exitOK, "plan", load, "--device", "leaf1")
	if !strings.Contains(r.out, "the plan changes nothing that a port does") || !strings.Contains(r.out, "not read, and taken to be as the model says: host[1-4], spine1") {
		t.Errorf("%s", r)
	}
}

// TestTrafficFile: a file that has no end is not read to it.
func TestTrafficFile(t *testing.T) {
	for _, name := range []string{"load.yaml", "flows.csv"} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, observe.MaxTrace+1); err != nil {
			t.Fatal(err)
		}
		text := path
		if name == "flows.csv" {
			text = "trace:" + path
		}
		if _, err := readWorkload(text); err == nil || !strings.Contains(err.Error(), "is longer than 64 MiB") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSimInterrupted: Ctrl-C ends a run, and shows what was seen until then as such.
func TestSimInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	a := &app{sys: quiet(), parallel: 1, output: "text"}
	var out, errs bytes.Buffer
	a.sys.out, a.sys.err = &show.Screen{To: &out}, &show.Screen{To: &errs}
	m, err := a.load(ctx, []string{"../../examples/small"})
	if err != nil {
		t.Fatal(err)
	}
	o := simFlags{seed: 1, seeds: 1, duration: units.Second}
	job, err := o.job(m.net)
	if err != nil {
		t.Fatal(err)
	}
	job.Options.Progress = func(at, _ units.Duration) {
		if at > 2*units.Millisecond {
			cancel()
		}
	}
	err = a.simOnce(ctx, job, o, false)
	if code := exitCode(ctx, err); code != exitInterrupted {
		t.Fatalf("exit %d: %v", code, err)
	}
	if !regexp.MustCompile(`what is shown is of the first [23]`).MatchString(err.Error()) || !strings.Contains(out.String(), "goodput ") {
		t.Errorf("%v\n%s", err, &out)
	}
}

// TestDocumentedWorkloads: every kind and option of a workload stands in the documentation, and what it shows can be read.
func TestDocumentedWorkloads(t *testing.T) {
	text, err := os.ReadFile("../../docs/simulator.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	for _, k := range observe.Kinds() {
		if !regexp.MustCompile("(?m)^\\| `" + string(k.Kind) + "[`:]").MatchString(page) {
			t.Errorf("nothing is said of %s", k.Kind)
		}
	}
	n := 0
	for _, m := range regexp.MustCompile("(?ms)^```\n(.*?)^```$").FindAllStringSubmatch(page, -1) {
		if !strings.HasPrefix(m[1], "for:") {
			continue
		}
		n++
		if w, err := observe.ReadWorkload([]byte(m[1])); err != nil || len(w.Parts) != 3 {
			t.Errorf("%v\n%s", err, m[1])
		}
	}
	if n == 0 {
		t.Error("no workload was found")
	}
	script, err := os.ReadFile("testdata/script/sim.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"headroom.yaml", "mtu.yaml"} { // layers that the script plays
		_, layer, _ := strings.Cut(page, "\n# "+file+"\n")
		layer, _, _ = strings.Cut(layer, "```")
		if layer == "" || !strings.Contains(string(script), "-- "+file+" --\n"+layer) {
			t.Errorf("%s is not the one that is played:\n%s", file, layer)
		}
	}
}

// TestDemoLossless: the demo plays to its end; a port that loses its QoS costs packets, which the switch's own counters show, and apply repairs it.
func TestDemoLossless(t *testing.T) {
	sys := quiet()
	var out, errs bytes.Buffer
	sys.out, sys.err = &out, &errs
	if code := run(t.Context(), []string{"demo"}, sys); code != exitOK {
		t.Fatalf("exit %d\n%s%s", code, &out, &errs)
	}
	for _, want := range []string{
		`(?s)lost +nothing\n.*\$ ssh leaf1 'enable; configure; interface Ethernet2/1; no service-profile.*lost +[1-9]\d* packets, [1-9]\d* of them of lossless classes`,
		`(?s)"Ethernet1/1": \{\s+"inDiscards": \d+,\s+"outDiscards": [1-9]`,
		`(?s)lost +[1-9]\d* packets, [1-9]\d* of them of lossless classes.*\(exit 1\)\n.*fabricctl apply.*lost +nothing\n`,
		`(?s)fabricctl tune run .*\nanswer      kmax [\d.]+[KM]B instead of 10KB is better: J \+.*\n\$ fabricctl tune replay \S+\nequal: \d+ decisions, from \d+ runs\n`,
	} {
		if !regexp.MustCompile(want).Match(out.Bytes()) {
			t.Errorf("no match for %s in\n%s", want, &out)
		}
	}
	if !strings.Contains(errs.String(), "pfc-symmetry") {
		t.Errorf("the rules do not see it:\n%s", &errs)
	}
}

// TestGridInterrupted: Ctrl-C while packets are run shows what is ranked and what was run, and while settings are ranked it shows nothing.
func TestGridInterrupted(t *testing.T) {
	for _, ranking := range []bool{true, false} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		a := &app{sys: quiet(), parallel: 1, output: "text"}
		var out, errs bytes.Buffer
		a.sys.out, a.sys.err = &show.Screen{To: &out}, &show.Screen{To: &errs}
		m, err := a.load(ctx, []string{"../../examples/small"})
		if err != nil {
			t.Fatal(err)
		}
		o := simFlags{seed: 1, seeds: 1, best: 1, duration: units.Second, grid: &sim.Grid{Kmin: []units.Bytes{100 * units.KB}}}
		job, err := o.job(m.net)
		if err != nil {
			t.Fatal(err)
		}
		job.Options.Progress = func(at, _ units.Duration) {
			if at > 2*units.Millisecond {
				cancel()
			}
		}
		if ranking {
			cancel()
		}
		err = a.simGrid(ctx, job, o, false)
		if code := exitCode(ctx, err); code != exitInterrupted {
			t.Fatalf("exit %d: %v", code, err)
		}
		if ranking != (out.Len() == 0) {
			t.Errorf("ranking %v: %v\n%s", ranking, err, &out)
		}
		if !ranking && (!strings.Contains(err.Error(), "settings are ranked") || !strings.Contains(out.String(), " of 0 settings, seed 1") || !strings.Contains(out.String(), "100KB  3.2MB  20%")) {
			t.Errorf("%v\n%s", err, &out)
		}
	}
}
