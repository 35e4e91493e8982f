package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/lint"
)

// TestBesides damages a sound model, one line or value at a time. Whatever stands in it, loading ends, and the linter says
// nothing beside the errors that merely follows from them: the model was sound before.
func TestBesides(t *testing.T) {
	text, err := os.ReadFile("../../examples/small/fabric.yaml")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "fabric.yaml")
	check := func(what, damaged string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(damaged), 0o600); err != nil {
			t.Fatal(err)
		}
		m, err := (&app{sys: quiet()}).load(t.Context(), []string{file})
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		loads := slices.ContainsFunc(m.findings, func(f diag.Finding) bool {
			_, linted := lint.Page(f.Rule)
			return f.Severity == diag.Error && !linted
		})
		if !loads {
			return // it loads, so the linter may say what it likes
		}
		for _, f := range m.findings {
			if _, linted := lint.Page(f.Rule); linted && f.Severity != diag.Info && f.Rule != "cnp-class" { // of which a part is the loader's
				t.Errorf("%s: %s\nof\n%s", what, f, damaged)
			}
		}
	}
	lines := strings.SplitAfter(string(text), "\n")
	value := regexp.MustCompile(`: ([^\s{}\[\],]+)`)
	for i, line := range lines {
		check("without "+line, strings.Join(slices.Concat(lines[:i], lines[i+1:]), ""))
		for _, at := range value.FindAllStringSubmatchIndex(line, -1) {
			damaged := slices.Clone(lines)
			damaged[i] = line[:at[2]] + "nonsense!" + line[at[3]:]
			check("nonsense in "+line, strings.Join(damaged, ""))
		}
	}
}
