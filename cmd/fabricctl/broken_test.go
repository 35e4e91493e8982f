package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fabricctl/fabricctl/drivers/check"
	"github.com/fabricctl/fabricctl/drivers/lab"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/lint"
)

// TestBroken: every rule fires exactly once in examples/broken, what a model says wrong in the model, and what only devices
// do wrong in what emulated switches hold. Nothing else is found there, so that each finding has its comment.
func TestBroken(t *testing.T) {
	const onHost = "needs what a NIC holds, and the states beside the model are of switches; its page has an example"
	nowhere := map[string]string{
		"bond-same": onHost, "cc-algorithm": onHost, "cc-on-lossless": onHost, "host-mapping": onHost, "nccl-gid": onHost, "nic-buffer": onHost, "roce-marking": onHost,
		"nccl-patience": "needs a longer timeout than the one that is too short for nccl-model; its page has an example",
	}
	loaded := []string{"roce-class"} // said by Resolve
	fired := map[string]diag.List{}
	m, err := (&app{sys: quiet()}).load(t.Context(), []string{"../../examples/broken"})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range append(m.findings, checkState(t, "../../examples/broken/devices")...) {
		fired[f.Rule] = append(fired[f.Rule], f)
	}
	for _, r := range lint.Rules() {
		switch l, why := fired[r.ID], nowhere[r.ID]; {
		case why != "" && len(l) > 0:
			t.Errorf("%s fires, and is said not to, because it %s", r.ID, why)
		case why == "" && len(l) != 1:
			t.Errorf("%s fires %s, want one:\n%s", r.ID, diag.Plural(len(l), "time", "times"), joined(l))
		}
		delete(fired, r.ID)
	}
	for id, l := range fired {
		if slices.Contains(loaded, id) && len(l) == 1 {
			continue
		}
		t.Errorf("%s, which is no rule of the linter, is found besides:\n%s", id, joined(l))
	}
}

// TestBrokenSaysWhere: each finding of the model stands at a comment that names its rule, on its line or above it.
func TestBrokenSaysWhere(t *testing.T) {
	const file = "../../examples/broken/fabric.yaml"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	m, err := (&app{sys: quiet()}).load(t.Context(), []string{"../../examples/broken"})
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	for _, f := range m.findings {
		near := strings.Builder{}
		for _, p := range append([]diag.Related{{Pos: f.Pos}}, f.Related...) {
			if p.Pos.File == file && p.Pos.Line > 0 {
				fmt.Fprintln(&near, strings.Join(lines[max(p.Pos.Line-2, 0):p.Pos.Line], "\n"))
			}
		}
		if !strings.Contains(near.String(), strings.ToUpper(f.Rule)) {
			t.Errorf("no comment says %s beside %s", strings.ToUpper(f.Rule), f)
		}
	}
}

// checkState brings the switches of a model up with what DIR/state holds for them, and gives what the rules say of them.
func checkState(t *testing.T, dir string) diag.List {
	t.Helper()
	m, err := (&app{sys: quiet()}).load(t.Context(), []string{dir})
	if err != nil || len(m.findings) > 0 {
		t.Fatalf("the model beside the states: %v %v", err, m.findings)
	}
	l, err := lab.Up(m.net, lab.Options{Dir: t.TempDir(), State: filepath.Join(dir, "state")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	sys := quiet()
	var out strings.Builder
	sys.out = &out
	if code := run(t.Context(), []string{"check", "-f", dir, "-f", l.Inventory, "-o", "json"}, sys); code != exitChanges {
		t.Fatalf("check: exit %d", code)
	}
	var r check.Report
	if err := json.Unmarshal([]byte(out.String()), &r); err != nil {
		t.Fatal(err)
	}
	for _, d := range r.Devices {
		if d.Error != "" {
			t.Errorf("%s: %s", d.Name, d.Error)
		}
	}
	return r.Findings
}

func joined(l diag.List) string {
	var b strings.Builder
	for _, f := range l {
		fmt.Fprintln(&b, f)
	}
	return b.String()
}
