package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/diag"
)

// TestDocumentedModels: every model in the documentation is valid. The README's stands alone; what other pages show is
// a document or a part of one, and is laid over it.
func TestDocumentedModels(t *testing.T) {
	block := regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$")
	dir := t.TempDir()
	base := filepath.Join(dir, "fabric.yaml")
	n := 0
	check := func(page, text string, layers ...string) {
		n++
		var found diag.List
		if strings.HasSuffix(page, "day-one.md") && strings.Contains(text, "kind: Inventory") { // there is no model yet
			_, found = model.LoadInventory(osFS{}, layers[len(layers)-1])
		} else {
			m, err := (&app{sys: quiet()}).load(t.Context(), layers)
			if err != nil {
				t.Fatal(err)
			}
			found = m.findings
		}
		for _, f := range found {
			owned := strings.Contains(text, "ecn: own, pfc: observe") || strings.Contains(text, "switches: {ecn: own}")
			expected := f.Rule == "needs-adoption" && owned // the text below the model says so
			if f.Severity > diag.Info && f.Ack == "" && !expected {
				t.Errorf("%s:\n%s\n%s", page, text, f)
			}
		}
	}
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range append([]string{"../../README.md"}, pages...) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range block.FindAllStringSubmatch(string(text), -1) {
			yaml := b[1]
			if n == 0 {
				if err := os.WriteFile(base, []byte(yaml), 0o600); err != nil {
					t.Fatal(err)
				}
				check(page, yaml, base)
				continue
			}
			if !strings.Contains(yaml, "kind: ") {
				yaml = "apiVersion: fabricctl/v1\nkind: Fabric\nmetadata: {name: pod1}\n" + yaml
			}
			layer := filepath.Join(dir, fmt.Sprintf("layer%d.yaml", n))
			if err := os.WriteFile(layer, []byte(yaml), 0o600); err != nil {
				t.Fatal(err)
			}
			check(page, yaml, base, layer)
		}
	}
	if n < 4 {
		t.Errorf("only %d models were found", n)
	}
}
