package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestHostWithoutAgent: where fabricctl-host is not beside the program, hosts can be read and not written. A plan shows
// what it would change; apply refuses it before any device is written to, whether it made the plan itself or a file
// comes from a machine that has the binary. The others alone can be applied.
func TestHostWithoutAgent(t *testing.T) {
	b := newBench(t, trio)
	file := filepath.Join(b.dir, "plan.json")
	site := filepath.Join(b.dir, "real.yaml")
	if err := os.WriteFile(site, []byte("apiVersion: fabricctl/v1\nkind: Inventory\ndevices:\n  host1: {lab: false}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.layers = append(b.layers, "-f", site)
	leave := []string{"--allow-disruptive", "--accept-unverified"}
	const why = "fabricctl-host-linux-amd64 is not in "
	if r := b.must(t, exitOK, "plan", "--out", file); !strings.Contains(r.out, strings.Fields(why)[0]) || !strings.Contains(r.out, "rdma0") {
		t.Errorf("plan: %s", r)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	said := regexp.MustCompile(`,\s*"read_only": "[^"]*"`)
	if !said.Match(text) {
		t.Fatalf("the file does not say that host1 cannot be written:\n%.2000s", text)
	}
	elsewhere := filepath.Join(b.dir, "elsewhere.json") // as if it was made where the binary is
	if err := os.WriteFile(elsewhere, said.ReplaceAll(text, nil), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"--yes"}, {file}, {elsewhere}} {
		r := b.must(t, exitRefused, append(append([]string{"apply"}, args...), leave...)...)
		if !strings.Contains(r.err, "error: nothing was written: the plan has changes for host1, which can only be read: "+why) ||
			!strings.Contains(r.err, "put it there\nhint: do that, or plan the other devices alone with --device\n") {
			t.Errorf("apply %s: %s", args, r)
		}
		if b.writes() != 0 || len(b.runs(t)) != 0 {
			t.Fatalf("apply %s: %d writes, runs %v", args, b.writes(), b.runs(t))
		}
	}
	b.must(t, exitOK, append([]string{"apply", "--yes", "--device", "leaf1", "--device", "spine1"}, leave...)...)
	if b.writes() == 0 {
		t.Error("the others were not written to")
	}
}
