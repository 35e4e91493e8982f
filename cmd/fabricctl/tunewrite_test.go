package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/journal"
	"github.com/fabricctl/fabricctl/tuning"
	"github.com/fabricctl/fabricctl/tuning/report"
	"github.com/fabricctl/fabricctl/tuning/stats"
)

// TestUnified: whatever the texts, the difference says where it is, and leads from one to the other.
func TestUnified(t *testing.T) {
	line := rapid.SampledFrom([]string{"a\n", "b\n", "c\r\n", "\n", "--- x\n"})
	text := rapid.Custom(func(t *rapid.T) string {
		s := strings.Join(rapid.SliceOfN(line, 0, 40).Draw(t, "lines"), "")
		if rapid.Bool().Draw(t, "open") {
			s = strings.TrimSuffix(s, "\n")
		}
		return s
	})
	rapid.Check(t, func(t *rapid.T) {
		before, after := text.Draw(t, "before"), text.Draw(t, "after")
		patch := unified("f", []byte(before), []byte(after))
		if got, err := patched(before, patch); err != nil || got != after {
			t.Errorf("%q and %q: %q, which makes %q (%v)", before, after, patch, got, err)
		}
	})
	want := "--- a/f\n+++ b/f\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n@@ -14,4 +14,4 @@\n 14\n 15\n 16\n-17\n\\ No newline at end of file\n+17\n"
	if d := cmp.Diff(want, unified("f", numbered(17, false), bytes.Replace(numbered(17, true), []byte("\n5\n"), []byte("\nfive\n"), 1))); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

func numbered(n int, closed bool) []byte {
	var b []byte
	for i := range n {
		b = append(strconv.AppendInt(b, int64(i+1), 10), '\n')
	}
	if !closed {
		b = b[:len(b)-1]
	}
	return b
}

// patched applies a unified diff as the tools do: each hunk at its line, with every line of it there.
func patched(text, patch string) (string, error) {
	lines := linesOf([]byte(text))
	var out []string
	at := 0
	rest := linesOf([]byte(patch))
	for i := 0; i < len(rest); i++ {
		l := rest[i]
		if i < 2 {
			continue // names
		}
		if strings.HasPrefix(l, "@@ ") {
			var from, n, to, m int
			if _, err := fmt.Sscanf(l, "@@ -%d,%d +%d,%d @@", &from, &n, &to, &m); err != nil {
				return "", err
			}
			if n > 0 {
				from--
			}
			for ; at < from; at++ {
				out = append(out, lines[at])
			}
			continue
		}
		body := l[1:]
		if i+1 < len(rest) && strings.HasPrefix(rest[i+1], `\ `) {
			body = strings.TrimSuffix(body, "\n")
		}
		switch l[0] {
		case '\\':
		case '+':
			out = append(out, body)
		default:
			if at >= len(lines) || lines[at] != body {
				return "", fmt.Errorf("line %d is not %q", at+1, body)
			}
			if at++; l[0] == ' ' {
				out = append(out, body)
			}
		}
	}
	return strings.Join(append(out, lines[at:]...), ""), nil
}

// promoted is an experiment that found something better, on made-up numbers: alpha 1/8 to 1/4, two ladders, one run of which was rejected.
func promoted() (*tuneJSON, *tuning.History) {
	at := time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)
	vars := []tuning.Variable{
		{Name: "alpha", Doc: "how much of the free buffer a port may fill", Of: tuning.Factor, Low: 1.0 / 64, High: 4, Step: 2, Paths: []string{"classes.training.pfc.xoff.alpha"}},
		{Name: "queue", Doc: "a knob <b>of</b> a box", Of: tuning.Size, Low: 1e5, High: 1e7, Step: 2, External: &tuning.External{Set: []string{"ssh", "box", "set {value}"}}},
	}
	start, best := tuning.Setting{1.0 / 8, 1e6}, tuning.Setting{1.0 / 4, 4e6}
	h := &tuning.History{
		Begin: tuning.Begin{
			At: at, Vars: vars, Base: start, Start: start, Workload: "incast:8", Method: tuning.OFAT, Seed: 7, Objective: tuning.Objective{Exchange: 0.1, Tie: 0.005},
			Looks: tuning.Looks{First: 4, Every: 2, Most: 8, Confirm: 4, Confidence: 0.99}, Budget: tuning.Budget{Runs: 100},
			Context: tuning.Context{
				Fabric: "pod1", Digest: "d1", Version: "v1", Runner: "perftest", Class: "training", Command: []string{"tune", "run", "-f", "my fabric.yaml"}, Layers: []string{"my fabric.yaml"},
				Devices: []string{"leaf1"}, Ports: []string{"leaf1:down-1"}, Firmware: map[string]string{"leaf1": "1.2 | `x`"}, Fingerprint: "f1", Note: []string{"the hosts share a switch"},
			},
		},
		Measures: map[int]*tuning.Measured{}, Last: at.Add(time.Hour), Notices: []string{"the baseline was restored"},
	}
	first := 700_000 // of the seeds
	run := func(s tuning.Setting, goodput, p999 float64) {
		for i := range 4 {
			n := len(h.Trials) + 1
			h.Trials = append(h.Trials, tuning.Trial{N: n, Setting: s, Seed: uint64(first + i), Change: tuning.Change{
				Patch: model.Patch{{Path: "classes.training.pfc.xoff.alpha", Value: vars[0].Text(s[0])}}, External: []tuning.Assign{{Variable: "queue", Value: s[1]}},
			}})
			wave := 1 + 0.01*float64(i%3)
			h.Measures[n] = &tuning.Measured{N: n, At: at, Measure: &tuning.Measure{Goodput: goodput * wave, P999: p999 / wave}}
		}
	}
	lost := uint64(12)
	run(start, 90e9, 200e-6)
	run(tuning.Setting{1.0 / 16, 1e6}, 80e9, 150e-6)
	run(tuning.Setting{1.0 / 4, 1e6}, 93e9, 210e-6)
	run(tuning.Setting{1, 1e6}, 92e9, 400e-6)
	run(best, 95e9, 205e-6)
	run(tuning.Setting{1.0 / 4, 8e6}, 96e9, 300e-6)
	first = 750_000
	run(start, 91e9, 210e-6)
	run(best, 96e9, 214e-6)
	h.Measures[24].Measure.Drops = &lost
	h.Measures[16] = &tuning.Measured{N: 16, At: at, Rejected: &tuning.Rejected{Code: "failed", Why: "host3: no route to host"}}
	interval := func(est, half float64) *stats.Interval {
		return &stats.Interval{Est: est, Low: est - half, High: est + half, N: 4, Conf: 0.99}
	}
	arms := func(values ...tuning.Setting) (as []tuning.Arm) {
		for _, s := range values {
			as = append(as, tuning.Arm{Setting: s, Runs: 4, Goodput: 95e9, P999: 210e-6, J: 26})
		}
		return as
	}
	middle := tuning.Setting{1.0 / 4, 1e6}
	h.Decisions = []tuning.Decision{
		{N: 1, Step: "baseline", From: start, To: start, Verdict: tuning.NoDifference, Runs: 4, Total: 4, Reason: "what there is", Arms: arms(start)},
		{
			N: 2, Step: "ladder", Variable: "alpha", Cycle: 1, From: start, To: middle, Verdict: tuning.Better, J: interval(.03, .02), Goodput: interval(.033, .02), Tail: interval(.05, .2), Runs: 12, Total: 16, Looks: 2,
			Reason: "alpha 1/4 instead of 1/8", Arms: arms(start, tuning.Setting{1.0 / 16, 1e6}, middle, tuning.Setting{1, 1e6}),
		},
		{N: 3, Step: "ladder", Variable: "queue", Cycle: 1, From: middle, To: best, Verdict: tuning.Better, J: interval(.02, .01), Runs: 8, Total: 24, Looks: 1, Reason: "queue 4MB instead of 1MB", Arms: arms(middle, best, tuning.Setting{1.0 / 4, 8e6})},
		{N: 4, Step: "confirmation", From: start, To: best, Verdict: tuning.Better, J: interval(.051, .012), Goodput: interval(.054, .01), Tail: interval(.02, .1), Runs: 8, Total: 32, Looks: 1, Reason: "on fresh seeds it is better", Arms: arms(start, best)},
	}
	o := tuning.Outcome{
		State: tuning.Done, Best: best, Verdict: tuning.Better, Words: "alpha 1/4 instead of 1/8 is better", Confirmed: &h.Decisions[3], Pareto: arms(tuning.Setting{1.0 / 16, 1e6}, start, best),
		Untested: []string{"pmax: it was not asked for"}, Runs: 24, Rejected: 1,
	}
	h.End = &o
	return tunedJSON("261130-090000-0a1b2c3d", h, false), h
}

// TestTunePage: the page as it was read, of made-up numbers; as HTML it is well-formed.
func TestTunePage(t *testing.T) {
	r, h := promoted()
	page := tunePage(r, h, modelEdit{}, (&app{}).command)
	got := report.Markdown(page)
	const golden = "testdata/tune-page.md"
	if *update {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	wellFormed(t, report.HTML(page))
}

func wellFormed(t *testing.T, html []byte) {
	t.Helper()
	for dec := xml.NewDecoder(bytes.NewReader(html)); ; {
		if _, err := dec.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// TestTunePageAlways: an experiment has a page at any time, whatever came of it.
func TestTunePageAlways(t *testing.T) {
	for name, change := range map[string]func(*tuneJSON, *tuning.History){
		"not ended": func(r *tuneJSON, h *tuning.History) { r.Outcome, r.State, h.End = nil, tuning.Dead, nil },
		"just begun": func(r *tuneJSON, h *tuning.History) {
			*h = tuning.History{Begin: h.Begin}
			*r = *tunedJSON(r.ID, h, true)
		},
		"host bound": func(r *tuneJSON, h *tuning.History) {
			r.Outcome.Verdict, r.Outcome.Best = tuning.HostBound, h.Begin.Start
		},
		"needs hands": func(r *tuneJSON, h *tuning.History) { r.State, r.Outcome.Left = tuning.NeedsHands, "leaf1: run this" },
		"interrupted": func(r *tuneJSON, h *tuning.History) {
			r.State, r.Outcome.Best, r.Outcome.Words = tuning.Stopped, h.Begin.Start, "interrupt"
		},
		"gate failed": func(r *tuneJSON, _ *tuning.History) { r.Gate = &tuning.Gated{Why: "exit code 3"} },
		"grid":        func(_ *tuneJSON, h *tuning.History) { h.Decisions = nil },
		"all was rejected": func(r *tuneJSON, h *tuning.History) {
			for n := range h.Measures {
				h.Measures[n] = &tuning.Measured{N: n, Rejected: &tuning.Rejected{Code: "host", Why: "slow"}}
			}
		},
	} {
		r, h := promoted()
		change(r, h)
		r.Decisions = h.Decisions
		page := tunePage(r, h, modelEdit{}, (&app{}).command)
		wellFormed(t, report.HTML(page))
		if page.Answer.Head == "" || len(page.Sections) < 4 {
			t.Errorf("%s: the page has no answer, or nothing behind it: %+v", name, page.Answer)
		}
	}
}

// TestTunedNote: a comment says what was gained, or that no gain was wanted.
func TestTunedNote(t *testing.T) {
	r, h := promoted()
	for _, want := range []string{
		"tuned 2026-11-30: +5.1 % J (+3.9 to +6.3, 99 %), 4 pairs with verbs tests, run 261130-090000-0a1b2c3d",
		"tuned 2026-11-30: the least that holds, -1.0 % J (-3.0 to +1.0, 99 %), 4 pairs with verbs tests, run 261130-090000-0a1b2c3d",
	} {
		if got := tunedNote(r, h); got != want {
			t.Errorf("%s, want %s", got, want)
		}
		r.Outcome.Confirmed.J = &stats.Interval{Est: -.01, Low: -.03, High: .01, N: 4, Conf: 0.99}
	}
}

// TestPromotable: only what was found, confirmed and let through is written, and words say why the rest is not.
func TestPromotable(t *testing.T) {
	for _, c := range []struct {
		name          string
		change        func(*tuneJSON)
		nothing, fail string
	}{
		{"confirmed", func(*tuneJSON) {}, "", ""},
		{"the gate passed", func(r *tuneJSON) { r.Gate = &tuning.Gated{Passed: true} }, "", ""},
		{"confirmed, and the budget was spent before", func(r *tuneJSON) { r.State, r.Outcome.State, r.Outcome.Spent = tuning.Stopped, tuning.Stopped, true }, "", ""},
		{"no difference", func(r *tuneJSON) { r.Outcome.Verdict, r.Outcome.Words = tuning.NoDifference, "nothing was found" }, "nothing was found", ""},
		{"not ended", func(r *tuneJSON) { r.Outcome, r.State = nil, tuning.Running }, "", "it did not reach its end"},
		{"interrupted", func(r *tuneJSON) { r.State = tuning.Stopped }, "", "it did not reach its end"},
		{"tripped", func(r *tuneJSON) { r.State = tuning.Tripped }, "", "ended by a limit"},
		{"needs hands", func(r *tuneJSON) { r.State = tuning.NeedsHands }, "", "the baseline is not back"},
		{"not confirmed", func(r *tuneJSON) { r.Outcome.Confirmed = nil }, "", "not confirmed on fresh seeds"},
		{"confirmed otherwise", func(r *tuneJSON) { r.Outcome.Confirmed = &tuning.Decision{Verdict: tuning.Better, To: r.Begin.Start} }, "", "not confirmed on fresh seeds"},
		{"gate failed", func(r *tuneJSON) { r.Gate = &tuning.Gated{Why: "exit code 3"} }, "", "the gate refused the result: exit code 3"},
		{"gate not run", func(r *tuneJSON) { r.Begin.Context.Command = []string{"tune", "run", "--gate", "g.yaml"} }, "", "the gate g.yaml has not judged the result"},
	} {
		r, _ := promoted()
		c.change(r)
		nothing, err := (&app{}).promotable(r)
		switch {
		case nothing != c.nothing, (err != nil) != (c.fail != ""):
			t.Errorf("%s: %q, %v", c.name, nothing, err)
		case err != nil && (!strings.Contains(err.Error(), c.fail) || exitCode(t.Context(), err) != exitRefused):
			t.Errorf("%s: %v (exit %d), want %q", c.name, err, exitCode(t.Context(), err), c.fail)
		}
	}
}

// TestWriteReplays: what does not follow from the measures of a journal is neither written into a model nor shown, though each line of it is sound; and what it
// means for the model is worked out from the model.
func TestWriteReplays(t *testing.T) {
	dir := t.TempDir()
	layer := filepath.Join(dir, "fabric.yaml")
	text, err := os.ReadFile("../../examples/bench-ap/fabric.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text = bytes.Replace(text, []byte("{kmin: 150KB, kmax: 1.5MB, pmax: 10%}"), []byte("{kmin: 5KB, kmax: 10KB, pmax: 100%}"), 1)
	if err := os.WriteFile(layer, text, 0o600); err != nil {
		t.Fatal(err)
	}
	layers := []string{"-f", layer}
	if others, _ := filepath.Glob("../../examples/bench-ap/*.yaml"); len(others) > 1 {
		for _, o := range others {
			if filepath.Base(o) != "fabric.yaml" {
				layers = append(layers, "-f", o)
			}
		}
	}
	state := filepath.Join(dir, "state")
	call := func(want int, args ...string) result {
		var out, errs bytes.Buffer
		sys := quiet()
		sys.out, sys.err = &out, &errs
		r := result{run(t.Context(), append(append(args, layers...), "--state-dir", state), sys), "", ""}
		if r.out, r.err = out.String(), errs.String(); r.code != want {
			t.Fatalf("%v: want exit %d, got %s", args, want, r)
		}
		return r
	}
	call(exitOK, "tune", "run", "--workload", "ap", "--variables", "kmax", "--duration", "1ms", "--looks", "2,2,4", "--confirm", "8", "--max-runs", "90")
	files, err := filepath.Glob(filepath.Join(state, "tune", "*.jsonl"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	recs, _, err := journal.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	forge := func(name string, change func(i int, r journal.Record) []byte) {
		same := true
		forged, err := journal.Create(filepath.Join(state, "tune", name+".jsonl"), journal.Options{Now: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range recs {
			data := change(i, r)
			same = same && bytes.Equal(data, r.Data)
			if err := forged.Append(r.Kind, json.RawMessage(data)); err != nil {
				t.Fatal(err)
			}
		}
		if err := forged.Close(); err != nil || same {
			t.Fatalf("%s: %v, or nothing was forged", name, err)
		}
	}
	forge("measures", func(i int, r journal.Record) []byte {
		if r.Kind == "measure" && i > len(recs)/2 {
			return regexp.MustCompile(`"goodput":[0-9.e+]+`).ReplaceAll(r.Data, []byte(`"goodput":99000000000`))
		}
		return r.Data
	})
	for _, flag := range [][]string{{"--write"}, {"--patch", filepath.Join(dir, "forged.patch")}, nil} {
		r := call(exitRefused, append([]string{"tune", "diff", "measures"}, flag...)...)
		if !strings.Contains(r.err, "than the journal's measures lead to") || !strings.Contains(r.err, "nothing was written") || !strings.Contains(r.err, "tune replay measures") || r.out != "" {
			t.Errorf("%s", r)
		}
	}
	forge("meaning", func(_ int, r journal.Record) []byte {
		return regexp.MustCompile(`"path":"[^"]+ecn.kmax","value":"[^"]+"`).ReplaceAll(r.Data, []byte(`"path":"fabric.mtu","value":"1500"`))
	})
	forge("older", func(i int, r journal.Record) []byte {
		data := regexp.MustCompile(`"version":"[^"]*"`).ReplaceAll(r.Data, []byte(`"version":"v0.1"`))
		if r.Kind == "decision" {
			data = bytes.Replace(data, []byte(`"conf":0.99`), []byte(`"conf":0.98`), 1)
		}
		return data
	})
	if r := call(exitRefused, "tune", "diff", "older"); !strings.Contains(r.err, "it was begun by fabricctl v0.1, and this is ") || !strings.Contains(call(exitError, "tune", "replay", "older").out, "v0.1") {
		t.Errorf("%s", r)
	}
	forge("begun", func(_ int, r journal.Record) []byte {
		return regexp.MustCompile(`"base":\[[0-9.e+]+\]`).ReplaceAll(r.Data, []byte(`"base":[20000]`))
	})
	if r := call(exitError, "tune", "diff", "begun", "--write"); !strings.Contains(r.err, "kmax is 10KB in the model, and the experiment began with 20KB") {
		t.Errorf("%s", r)
	}
	if now, err := os.ReadFile(layer); err != nil || !bytes.Equal(now, text) {
		t.Errorf("the model was written: %v", err)
	}
	id := strings.TrimSuffix(filepath.Base(files[0]), ".jsonl")
	sound := call(exitOK, "tune", "diff", id)
	if forged := call(exitOK, "tune", "diff", "meaning"); forged.out != strings.ReplaceAll(sound.out, id, "meaning") || strings.Contains(forged.out, "mtu") {
		t.Errorf("what a setting means was taken from the journal: %s", forged)
	}
	call(exitOK, "tune", "diff", id, "--write")
}
