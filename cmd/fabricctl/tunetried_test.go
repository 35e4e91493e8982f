package main

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/cmd/show"
	"github.com/fabricctl/fabricctl/tuning"
	"github.com/fabricctl/fabricctl/tuning/report"
)

// dullLadder is promoted with a ladder of alpha that changes no packet, and a result that has moved it all the same.
func dullLadder() (*tuneJSON, *tuning.History) {
	r, h := promoted()
	at := h.Measures[1].At
	levels := []float64{1.0 / 64, 1.0 / 16, 1.0 / 8, 1.0 / 2, 4}
	d := tuning.Decision{N: 5, Step: "ladder", Variable: "alpha", Cycle: 1, From: tuning.Setting{1.0 / 4, 4e6}, To: tuning.Setting{1.0 / 4, 4e6}, Verdict: tuning.NoEffect, Runs: 10, Total: 42}
	d.Arms = append(d.Arms, tuning.Arm{Setting: d.From, Runs: 8})
	for _, x := range levels {
		d.Arms = append(d.Arms, tuning.Arm{Setting: tuning.Setting{x, 4e6}, Runs: 2})
		for i := range 2 {
			n := len(h.Trials) + 1
			h.Trials = append(h.Trials, tuning.Trial{N: n, Setting: tuning.Setting{x, 4e6}, Seed: uint64(700_000 + i)})
			h.Measures[n] = &tuning.Measured{N: n, At: at, Measure: h.Measures[17+i].Measure}
		}
	}
	h.Decisions = append(h.Decisions, d)
	r.Decisions = h.Decisions
	return r, h
}

// TestTuneFlatLadder: levels that are proven to be the same have one row and no bars, in both printers; what is to be known of them stands in
// the answer.
func TestTuneFlatLadder(t *testing.T) {
	r, h := dullLadder()
	page := tunePage(r, h, modelEdit{}, (&app{}).command)
	text := string(report.Markdown(page))
	for _, want := range []string{
		"Alpha ladder: the same packets at every level, in each run that they share, so there is no picture; alpha does nothing here, as far as this load goes.",
		"| 1/64 to 4 | 4MB | +5.2 % (+5.2 to +5.2) | 96.2Gbps | 208us | 8 |",
		"Alpha does nothing here, as far as this load goes.",
		"Alpha was moved together with others all the same; to keep what there is, leave it out of the variables that are moved.",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q:\n%s", want, text)
		}
	}
	for _, s := range page.Sections {
		for _, b := range s.Blocks {
			if pic, ok := b.(report.Picture); ok && pic.Chart.Title == "alpha ladder" && len(pic.Numbers.Rows) > 4 {
				t.Errorf("the flat ladder has a picture: %+v", pic.Numbers)
			}
		}
	}
	var b bytes.Buffer
	printTuned(&show.Screen{To: &b}, r, h, true)
	if got := b.String(); !strings.Contains(got, "1/64 to 4  4MB    +5.2 % (+5.2 to +5.2)  96.2Gbps  208us  2     the same packets as with alpha 1/4") {
		t.Errorf("the terminal lacks the row:\n%s", got)
	}
}

// TestTuneNumbers: a number of a setting is the same on the page and on the terminal, and a change is that between the two numbers beside it.
func TestTuneNumbers(t *testing.T) {
	r, h := promoted()
	var b bytes.Buffer
	printTuned(&show.Screen{To: &b}, r, h, false)
	term, page := b.String(), string(report.Markdown(tunePage(r, h, modelEdit{}, (&app{}).command)))
	for _, cell := range [][]string{
		{"1/16", "1MB", "-8.9 % (-8.9 to -8.9)", "80.6Gbps", "149us", "4"},
		{"1/8", "1MB", "the start", "91.2Gbps", "203us", "8"},
		{"1/4", "4MB", "+5.2 % (+5.2 to +5.2)", "96.2Gbps", "208us", "8"},
	} {
		if !slices.ContainsFunc(strings.Split(term, "\n"), func(l string) bool { return slices.Equal(strings.Fields(l), strings.Fields(strings.Join(cell, " "))) }) {
			t.Errorf("the terminal lacks %q:\n%s", cell, term)
		}
		if row := strings.Join(cell, " | "); !strings.Contains(strings.ReplaceAll(page, "*", ""), "| "+row+" |") {
			t.Errorf("the page lacks %q:\n%s", row, page)
		}
	}
	for in, want := range map[string][]string{
		term: {"goodput     +5.5 % (+4.5 to +6.6 at 99 %): 96.7Gbps instead of 91.7Gbps on these seeds", "p99.9       +2.0 % (-7.7 to +12.7 at 99 %): 212us instead of 208us on these seeds"},
		page: {"| goodput | 96.7Gbps | from 91.7Gbps on fresh seeds; +5.5 % (+4.5 to +6.6 at 99 %) |", "| p99.9 | 212us | from 208us on fresh seeds; +2.0 % (-7.7 to +12.7 at 99 %) |"},
	} {
		for _, w := range want {
			if !strings.Contains(in, w) {
				t.Errorf("%q is not in\n%s", w, in)
			}
		}
	}
}

// TestTuneNoLatency: where nothing measures latency there is no column for it, and J is said to be goodput.
func TestTuneNoLatency(t *testing.T) {
	r, h := promoted()
	for _, m := range h.Measures {
		if m.Measure != nil {
			m.Measure.P999 = 0
		}
	}
	for i := range h.Decisions {
		h.Decisions[i].Tail = nil
	}
	for i := range r.Outcome.Pareto {
		r.Outcome.Pareto[i].P999 = 0
	}
	page := string(report.Markdown(tunePage(r, h, modelEdit{}, (&app{}).command)))
	var b bytes.Buffer
	printTuned(&show.Screen{To: &b}, r, h, true)
	if want := "| 1/8 | the start | 91.2Gbps | 8 |"; !strings.Contains(page, want) || strings.Contains(page, "p99.9 |") {
		t.Errorf("the page lacks %q, or speaks of p99.9:\n%s", want, page)
	}
	if want := "No latency was measured, so J is goodput alone: more of it is better."; !strings.Contains(page, want) {
		t.Errorf("the page lacks %q", want)
	}
	if got := b.String(); !strings.Contains(got, "  1/8    1MB    the start              91.7Gbps  4") || strings.Contains(got, "p99.9") {
		t.Errorf("the terminal has a column without numbers:\n%s", got)
	}
}

// TestTuneUnheld: where what there is breaks a limit and stays, both printers say so, and whether something else does not.
func TestTuneUnheld(t *testing.T) {
	for _, all := range []bool{false, true} {
		r, h := promoted()
		r.Outcome.Best, r.Outcome.Confirmed, r.Outcome.Verdict, r.Outcome.Words = r.Begin.Start, nil, tuning.NoDifference, "nothing was found"
		lost := uint64(1)
		for i := range h.Trials {
			if m := h.Measures[i+1].Measure; m != nil && (all || h.Trials[i].Setting.Key() == r.Begin.Start.Key()) {
				m.Drops = &lost
			}
		}
		want := "hat there is breaks a limit: 8 packets of lossless classes were lost; 4 of 6 settings that were tried break none"
		if all {
			want = "hat there is breaks a limit: 8 packets of lossless classes were lost; so does everything else that was tried"
		}
		a := tunePage(r, h, modelEdit{}, (&app{}).command).Answer
		if !slices.Contains(a.Text, "W"+want+".") || a.Tone != report.Bad {
			t.Errorf("the page says %q", a.Text)
		}
		if got := tuneAnswers(r, h); got[1].label != "limits" || got[1].text != "w"+want {
			t.Errorf("the terminal says %+v", got)
		}
	}
}

// TestTuneHintsWhole: a command that comes next can be copied from any screen in one piece.
func TestTuneHintsWhole(t *testing.T) {
	state := t.TempDir()
	if code, out := playOut(t.Context(), io.Discard, shortTune(state)...); code != exitOK {
		t.Fatalf("exit %d\n%s", code, out)
	}
	_, out := playOut(t.Context(), io.Discard, "tune", "show", onlyRun(t, state).ID, "--state-dir", state)
	if want := "fabricctl tune report " + onlyRun(t, state).ID + " --out report.html --state-dir " + state + "\n"; !strings.Contains(out, want) {
		t.Errorf("%q is not in one piece:\n%s", want, out)
	}
}

// TestPageFormat: the name of a file says which format it gets, or -o does, and a name that says nothing is refused.
func TestPageFormat(t *testing.T) {
	got := map[string]string{}
	for _, x := range [][2]string{{"text", ""}, {"text", "a.html"}, {"text", "a.HTM"}, {"text", "a.md"}, {"text", "a.markdown"}, {"text", "/dev/stdout"}, {"text", "a.txt"}, {"html", "a.txt"}, {"markdown", "a.html"}} {
		_, name, err := pageFormat(x[0], x[1])
		if err != nil {
			name = err.Error()
		}
		got[x[0]+" "+x[1]] = name
	}
	want := map[string]string{
		"text ": "Markdown", "text a.html": "HTML", "text a.HTM": "HTML", "text a.md": "Markdown", "text a.markdown": "Markdown", "text /dev/stdout": "Markdown",
		"text a.txt": "--out a.txt: the name does not say which format is wanted", "html a.txt": "HTML", "markdown a.html": "Markdown",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}
