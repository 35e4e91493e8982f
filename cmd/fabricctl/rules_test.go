package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestEveryRuleIsListed: whatever id a finding of any package carries, rules has it, and every listed one is in use.
func TestEveryRuleIsListed(t *testing.T) {
	ids := ruleIDs()
	used := map[string]bool{}
	calls := regexp.MustCompile(`(?:Errorf|Warningf|Infof|Rule:|\bblock|dp\.refuse|\bw\.(?:warn|info)|NeedsAdoption =)[\s(]*(?:[^,"]+(?:"")?, |"", )?"([a-z]+(?:-[a-z]+)*)"`)
	for _, dir := range []string{".", "../../model", "../../profiles", "../../render", "../../drivers"} {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for _, m := range calls.FindAllStringSubmatch(string(b), -1) {
				used[m[1]] = true
				if !slices.Contains(ids, m[1]) {
					t.Errorf("%s: no rule %s is listed", path, m[1])
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range otherRules() {
		if !used[r.ID] && r.ID != "watchdog-polling" {
			t.Errorf("no source uses the rule %s", r.ID)
		}
	}
	for i, r := range allRules() {
		if slices.Contains(ids[:i], r.ID) {
			t.Errorf("%s is listed twice", r.ID)
		}
		if p := r.page(); !strings.Contains(p, r.ID) {
			t.Errorf("%s has no page", r.ID)
		}
	}
}
