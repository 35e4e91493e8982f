package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/lint"
	"github.com/fabricctl/fabricctl/model/witness"
)

// TestSchemaOfPages: the passing example of every rule's page, and every model in the documentation, pass the schema as a
// layer.
func TestSchemaOfPages(t *testing.T) {
	j, err := newJudge(model.JSONSchema(true))
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$")
	n := 0
	check := func(where, text string) {
		if !strings.Contains(text, "kind: ") {
			return // a part of a document
		}
		n++
		path := filepath.Join(t.TempDir(), "page.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		docs, l := model.Documents(osFS{}, path)
		for _, d := range docs {
			l.Add(j.violations(d)...)
		}
		if l.Count(diag.Error) > 0 {
			t.Errorf("%s:\n%s%v", where, text, l)
		}
	}
	for _, r := range lint.Rules() {
		page, _ := lint.Page(r.ID)
		for _, b := range block.FindAllStringSubmatch(page, -1) { // what fails is wrong in what it says, not in how
			check("rule "+r.ID, b[1])
		}
	}
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range append(pages, "../../README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range block.FindAllStringSubmatch(string(text), -1) {
			check(page, b[1])
		}
	}
	if n < 8 {
		t.Errorf("only %d documents were found", n)
	}
}

// TestSchemaElsewhere lets another language's validator read the schema, which must be valid itself, and judge what
// init writes, the examples, and documents with a mistake.
func TestSchemaElsewhere(t *testing.T) {
	python := pythonWith(t, "jsonschema, yaml")
	dir := t.TempDir()
	for name, text := range map[string]string{
		"whole.json": string(model.JSONSchema(false)), "layer.json": string(model.JSONSchema(true)), "judge.py": `import json, sys, yaml, jsonschema
schema = json.load(open(sys.argv[1]))
jsonschema.Draft202012Validator.check_schema(schema)
v = jsonschema.Draft202012Validator(schema)
for path in sys.argv[2:]:
    for i, doc in enumerate(yaml.safe_load_all(open(path))):
        for e in v.iter_errors(doc):
            print(path, i, "/".join(map(str, e.absolute_path)))
`,
		"good.yaml": "apiVersion: fabricctl/v1\nkind: Inventory\ndevices: {leaf1: {address: 10.0.0.1, gnmi: {port: 50051, password: 'env:A'}}}\n",
		"bad.yaml": "apiVersion: fabricctl/v1\nkind: Fabric\nmetadata: {name: a}\ntopology: {}\nclasses: []\nmtu: {fabric: 9216, host: 9000B, roche: 1B}\n" +
			"---\napiVersion: fabricctl/v1\nkind: Inventory\ndevices: {leaf1: {address: 10.0.0, gnmi: {port: 0, password: secret}}}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	judge := func(schema string, files ...string) string {
		c := exec.Command(python, append([]string{"judge.py", schema}, files...)...)
		c.Dir = dir
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return string(out)
	}
	run(t.Context(), []string{"init", filepath.Join(dir, "pod1")}, quiet())
	if out := judge("whole.json", "pod1/fabric.yaml", "pod1/inventory.yaml", "good.yaml"); out != "" {
		t.Errorf("what is right is refused:\n%s", out)
	}
	examples, err := filepath.Glob("../../examples/*/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	examples = slices.DeleteFunc(examples, func(e string) bool { return filepath.Base(filepath.Dir(e)) == "workloads" }) // are no models
	for i, e := range examples {
		if examples[i], err = filepath.Abs(e); err != nil {
			t.Fatal(err)
		}
	}
	if out := judge("layer.json", examples...); out != "" {
		t.Errorf("examples are refused:\n%s", out)
	}
	out := judge("whole.json", "bad.yaml")
	for _, want := range []string{"bad.yaml 0 mtu/fabric\n", "bad.yaml 0 mtu\n", "bad.yaml 1 devices/leaf1/address\n", "bad.yaml 1 devices/leaf1/gnmi/port\n", "bad.yaml 1 devices/leaf1/gnmi/password\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

// pythonWith is a python3 that has these modules: Debian's has those of Debian's packages, whichever comes first in PATH.
func pythonWith(t *testing.T, modules string) string {
	t.Helper()
	for _, python := range []string{witness.Tool(t, "python3"), "/usr/bin/python3"} {
		if exec.Command(python, "-c", "import "+modules).Run() == nil {
			return python
		}
	}
	witness.Missing(t, "python3 has no "+modules+" (Debian: python3-jsonschema, python3-yaml)")
	return ""
}
