package engine_test

import (
	"fmt"
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
	exact.WriteString("| run | figures compared | that differ | longest flow, reference | ours | pauses, reference | ours | drops, reference | ours | marks, reference | ours |\n|---|---|---|---|---|---|---|---|---|---|---|\n")
	marked.WriteString("| run with marks | columns | inside the span of 20 seeds | inside it widened | mean queue, reference | ours: median (span) | marks, reference | ours: median (span) |\n|---|---|---|---|---|---|---|---|\n")
	means.WriteString("| run | mean of | reference, 5 seeds | ours, the same 5 | ours, 30 other seeds | difference | the reference's 5 differ by |\n|---|---|---|---|---|---|---|\n")
	all := records(t, keptRuns)
	for _, r := range all {
		if r.Row != nil {
			r.exactRow(t, &exact)
		}
	}
	for _, group := range alike(all) {
		ours := drawn(t, group)
		for _, r := range group {
			r.markedRow(t, &marked, ours[:seeds])
			for _, m := range r.means(t, ours) {
				diff := "equal"
				if m.Recorded != m.Ours {
					diff = fmt.Sprintf("%+.1f %%", 100*(m.Ours-m.Recorded)/m.Recorded)
				}
				fmt.Fprintf(&means, "| %s | %s | %.1f | %.1f | %.1f | %s | %v %% |\n", r.Name, m.Column, m.Recorded, m.Five, m.Ours, diff, m.CV)
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
	figures, differ := r.exact(t, p)
	fmt.Fprintf(out, "| %s | %d | %d | %s ns | %.0f ns | %s | %.0f | %s | %.0f | %s | %.0f |\n", r.Name, figures, len(differ),
		r.Row["fct_max_ns"], got["fct_max_ns"], r.Row["pause_sent"], got["pause_sent"], r.Row["drops"], got["drops"], r.Row["ecn_marks"], got["ecn_marks"])
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
