package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fabricctl/fabricctl/drivers/lab/eos"
)

// TestNoSecret puts a password through every command at debug level, successes and failures, and looks for it in all
// that was printed and in every file that was written.
func TestNoSecret(t *testing.T) {
	b := newBench(t, trio)
	raw, err := os.ReadFile(filepath.Join(b.dir, "lab", "password"))
	if err != nil {
		t.Fatal(err)
	}
	canary := strings.TrimSpace(string(raw))
	if len(canary) < 16 {
		t.Fatalf("the lab's password is %q", canary)
	}
	planFile := filepath.Join(b.dir, "plan.json")
	var seen []string
	play := func(verb ...string) {
		t.Helper()
		for _, format := range []string{"text", "json"} {
			r := b.call(t, append(slices.Clone(verb), "--log-level", "debug", "--log-format", format, "-o", format)...)
			seen = append(seen, verb[0])
			for _, c := range []string{canary, "canary"} {
				if strings.Contains(r.out, c) || strings.Contains(r.err, c) {
					t.Errorf("%v prints the password:\n%s", verb, r)
				}
			}
			if r.code == exitUsage {
				t.Errorf("%v is not a call: %s", verb, r)
			}
		}
	}
	play("version")
	play("rules")
	play("profiles")
	play("validate")
	play("schema", "--check")
	play("explain", "leaf1")
	play("render")
	play("import", "--force", "--out", filepath.Join(b.dir, "imported"))
	play("plan", "--details", "--out", planFile)
	play("plan", "show", planFile)
	play("apply", planFile, "--allow-disruptive")
	id := b.runs(t)[0].ID
	play("drift")
	play("plan")
	play("runs", "list")
	play("runs", "show", id)
	play("runs", "rollback", id)
	play("runs", "resume", id)
	play("check")
	play("hold", "leaf1", "--for", "1h", "--reason", "test")
	play("profiles")
	play("doctor", "leaf1")
	play("hold", "list")
	play("plan", "--simulate")
	play("sim", "--live", "--workload", "incast")
	play("tune", "run", "--runner", "lab", "--workload", "incast", "--yes", "--persist-trials", "--variables", "kmax", "--looks", "2,1,2", "--confirm", "4", "--max-runs", "10")
	play("tune", "list")
	play("hold", "release", "leaf1")
	play("lock", "list")
	play("lock", "break", "trio", "--yes")

	// A wrong password, a device that quotes what it was sent, and a device that is gone.
	if err := os.WriteFile(filepath.Join(b.dir, "lab", "password"), []byte("canary-"+canary), 0o600); err != nil {
		t.Fatal(err)
	}
	play("plan")
	if err := os.WriteFile(filepath.Join(b.dir, "lab", "password"), raw, 0o600); err != nil {
		t.Fatal(err)
	}
	b.lab.Box("leaf1").(*eos.Switch).SetFaults(eos.Faults{NoEnd: true})
	play("plan")
	_ = b.lab.Close()
	play("drift")
	play("graph")
	play("deadlock")

	for _, c := range (&app{sys: quiet()}).root().Commands() {
		if name := c.Name(); !slices.Contains(seen, name) && !slices.Contains([]string{"init", "lab", "demo", "completion", "host"}, name) {
			t.Errorf("%s was not played", name) // those left out take no password: host is about this machine alone
		}
	}
	err = filepath.WalkDir(b.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path == filepath.Join(b.dir, "lab", "password") {
			return err
		}
		text, err := os.ReadFile(path)
		if strings.Contains(string(text), canary) {
			t.Errorf("%s holds the password", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestOneAttempt: a wrong password is tried once per device and call, so that no account is locked.
func TestOneAttempt(t *testing.T) {
	b := newBench(t, trio)
	if err := os.WriteFile(filepath.Join(b.dir, "lab", "password"), []byte("wrong"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := b.must(t, exitError, "plan")
	for _, d := range []string{"leaf1", "spine1", "host1"} {
		if !strings.Contains(r.out, d) {
			t.Errorf("%s is not named:\n%s", d, r)
		}
	}
	if n := b.lab.Box("leaf1").(*eos.Switch).Counters().AuthFailures; n != 1 {
		t.Errorf("leaf1 saw %d attempts", n)
	}
	if b.writes() != 0 {
		t.Errorf("%d writes", b.writes())
	}
}
