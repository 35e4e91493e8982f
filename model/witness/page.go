package witness

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Table is the rows of a table that a run of something wrote into a page of docs, between the comments <!-- NAME … -->
// and <!-- end -->. FABRICCTL_VM_OUT names the folder with what such a run left: when it has NAME.md, its rows have to be
// those of the page, or become those with update. The heading, and what stands before it, may differ.
func Table(t testing.TB, page, name string, update bool) []string {
	t.Helper()
	page = filepath.Join(moduleRoot(t), page)
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, table, tail, ok := cut(string(text), name)
	if !ok {
		t.Fatalf("%s has no place for the table %s", page, name)
	}
	dir := os.Getenv("FABRICCTL_VM_OUT")
	if dir == "" {
		return rows(table)
	}
	found, err := os.ReadFile(filepath.Join(dir, name+".md"))
	switch {
	case os.IsNotExist(err):
		return rows(table)
	case err != nil:
		t.Fatal(err)
	case update:
		table = "\n" + string(found) + "\n"
		if err := os.WriteFile(page, []byte(head+table+tail), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, got := rows(table), rows(string(found)); !slices.Equal(want, got) {
		t.Errorf("the table %s is not what the run found; make vm UPDATE=-update takes it over:\n%s", name, FirstDifference(want, got))
	}
	return rows(table)
}

func cut(text, name string) (head, table, tail string, ok bool) {
	begin := strings.Index(text, "<!-- "+name+" ")
	if begin < 0 {
		return "", "", "", false
	}
	_, rest, ok1 := strings.Cut(text[begin:], "\n")
	table, _, ok2 := strings.Cut(rest, "<!-- end -->")
	at := len(text) - len(rest)
	return text[:at], table, text[at+len(table):], ok1 && ok2
}

// rows is the lines of a table without its heading.
func rows(text string) (out []string) {
	heading := 2
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "|") {
			continue
		}
		if heading--; heading < 0 {
			out = append(out, strings.TrimSpace(line))
		}
	}
	return out
}

// FirstDifference shows where two lists of lines part.
func FirstDifference(want, got []string) string {
	for i := range min(len(want), len(got)) {
		if want[i] != got[i] {
			return fmt.Sprintf("want %s\ngot  %s", want[i], got[i])
		}
	}
	return fmt.Sprintf("want %d lines, got %d", len(want), len(got))
}
