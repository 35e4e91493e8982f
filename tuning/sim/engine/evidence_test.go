package engine_test

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
)

// writePart replaces the part of a page between the lines that name its maker.
func writePart(t testing.TB, path, maker, text string) {
	t.Helper()
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := "<!-- "+maker+" writes what follows -->\n", "<!-- end of what "+maker+" writes -->\n"
	head, rest, found := strings.Cut(string(page), begin)
	_, tail, ends := strings.Cut(rest, end)
	if !found || !ends {
		t.Fatalf("%s does not say where the part goes: %q and %q", path, begin, end)
	}
	if err := os.WriteFile(path, []byte(head+begin+"\n"+strings.TrimSpace(text)+"\n\n"+end+tail), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestReferenceEvidence writes the table of all recorded runs into the page that FABRICCTL_SIM_EVIDENCE names. The tests beside it judge; this
// one shows.
func TestReferenceEvidence(t *testing.T) {
	path := os.Getenv("FABRICCTL_SIM_EVIDENCE")
	if path == "" {
		t.Skip("FABRICCTL_SIM_EVIDENCE names no file for the table; make sim-evidence does")
	}
	var exact, marked, means strings.Builder
	exact.WriteString("| run without marks | figures compared | that differ | largest difference | longest flow, reference | ours | pauses, reference | ours | drops, reference | ours |\n|---|---|---|---|---|---|---|---|---|---|\n")
	marked.WriteString("| run with marks | columns | inside the span of 20 seeds | inside it widened | mean queue, reference | ours: median (span) | marks, reference | ours: median (span) |\n|---|---|---|---|---|---|---|---|\n")
	means.WriteString("| run | mean of | reference, 5 seeds | ours, 30 seeds | difference | judged |\n|---|---|---|---|---|---|\n")
	all := records(t, keptRuns)
	for _, r := range all {
		if r.deterministic() {
			r.exactRow(t, &exact)
		}
	}
	for _, group := range alike(all) {
		ours := drawn(t, group)
		for _, r := range group {
			r.markedRow(t, &marked, ours[:seeds])
			for _, m := range r.means(t, ours) {
				diff, judged := "equal", fmt.Sprintf("no: its seeds differ by %v %%", m.CV)
				if m.Recorded != m.Ours {
					diff = fmt.Sprintf("%+.1f %%", 100*(m.Ours-m.Recorded)/m.Recorded)
				}
				if m.Sure {
					judged = "3 %"
				}
				fmt.Fprintf(&means, "| %s | %s | %.1f | %.1f | %s | %s |\n", r.Name, m.Column, m.Recorded, m.Ours, diff, judged)
			}
		}
	}
	if !t.Failed() {
		writePart(t, path, "make sim-evidence", exact.String()+"\n"+marked.String()+"\n"+means.String())
	}
}

func (r *recorded) exactRow(t testing.TB, out *strings.Builder) {
	p := r.play(t, r.In.Config.Seed)
	got := p.totals(&r.In)
	figures, differ, worst := 0, 0, 0.0
	compare := func(recorded string, v float64) {
		if recorded == "" {
			return
		}
		figures++
		if !same(recorded, v) {
			differ++
			want := (row{"": recorded}).num(t, "")
			worst = max(worst, math.Abs(v-want)/max(math.Abs(want), 1))
		}
	}
	for _, c := range append(countColumns, meanColumns...) {
		compare(r.Row[c], got[c])
	}
	for _, x := range r.Flows {
		if x["state"] == "done" {
			compare(x["fct_or_elapsed_ns"], ns(p.Result.Flows[p.flow(t, x)].Completion))
		}
	}
	for _, x := range r.Queues {
		for c, v := range queueColumns(&p.Result.Ports[p.ports[[2]int{x.int(t, "switch"), x.int(t, "port")}]].Queues[dataPriority]) {
			compare(x[c], v)
		}
	}
	difference := "none"
	if differ > 0 {
		difference = fmt.Sprintf("%.2g %%", 100*worst)
	}
	fmt.Fprintf(out, "| %s | %d | %d | %s | %s ns | %.0f ns | %s | %.0f | %s | %.0f |\n", r.Name, figures, differ, difference,
		r.Row["fct_max_ns"], got["fct_max_ns"], r.Row["pause_sent"], got["pause_sent"], r.Row["drops"], got["drops"])
}

func (r *recorded) markedRow(t testing.TB, out *strings.Builder, ours []*played) {
	inside, widened := 0, 0
	show := map[string]string{}
	all := r.spans(t, ours)
	for _, s := range all {
		if s.Recorded >= s.Least && s.Recorded <= s.Most {
			inside++
		}
		if s.holds() {
			widened++
		}
		show[s.Column] = fmt.Sprintf("%.0f (%.0f to %.0f)", s.Median, s.Least, s.Most)
	}
	fmt.Fprintf(out, "| %s | %d | %d | %d | %s B | %s | %s | %s |\n", r.Name, len(all), inside, widened, r.Row["bq_mean_bytes"], show["bq_mean_bytes"], r.Row["ecn_marks"], show["ecn_marks"])
}
