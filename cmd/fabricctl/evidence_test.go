package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestEvidence: the transcripts of docs/evidence/lossless.md are what the commands in them print; -update prints them anew.
func TestEvidence(t *testing.T) {
	const page = "docs/evidence/lossless.md"
	t.Chdir("../..")
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	played := 0
	block := regexp.MustCompile("(?s)```\n\\$ fabricctl ([^\n]+)\n.*?```\n")
	got := block.ReplaceAllStringFunc(string(text), func(b string) string {
		played++
		words := strings.Fields(block.FindStringSubmatch(b)[1])
		var out strings.Builder
		sys := quiet()
		sys.out = &out
		run(t.Context(), words, sys)
		return "```\n$ fabricctl " + strings.Join(words, " ") + "\n" + out.String() + "```\n"
	})
	if played < 5 {
		t.Errorf("%d transcripts", played)
	}
	if *update {
		if err := os.WriteFile(page, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got != string(text) {
		t.Errorf("%s is not what the commands print; go test -run TestEvidence -update prints it anew", page)
	}
}
