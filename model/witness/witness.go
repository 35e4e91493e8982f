// Package witness finds the second witnesses of tests: other people's tools and the reference data, which stays
// outside the repository. A missing witness skips the test with the reason, or fails it when
// FABRICCTL_REQUIRE_WITNESSES=1. Only tests import it.
package witness

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Tool is the path of a program. Debian keeps some of them outside an ordinary user's PATH.
func Tool(t testing.TB, name string) string {
	t.Helper()
	if p, err := exec.LookPath(name); err == nil {
		return p
	}
	for _, dir := range []string{"/usr/sbin", "/sbin"} {
		if p, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return p
		}
	}
	Missing(t, name+" is not installed")
	return ""
}

// Reference is a path below FABRICCTL_REFERENCE, the folder with the data that is not ours to ship. A relative one
// starts at the module's root.
func Reference(t testing.TB, path string) string {
	t.Helper()
	root := os.Getenv("FABRICCTL_REFERENCE")
	if root == "" {
		Missing(t, "FABRICCTL_REFERENCE is not set: it names the folder with the SONiC YANG models and reference data")
	}
	if !filepath.IsAbs(root) {
		root = filepath.Join(moduleRoot(t), root)
	}
	p := filepath.Join(root, path)
	if _, err := os.Stat(p); err != nil {
		t.Fatalf("FABRICCTL_REFERENCE is set, but %v", err)
	}
	return p
}

// Agree logs, once the test has passed, how many rows of a reference table it compared; go test -v shows it.
func Agree(t testing.TB, table string, rows int) {
	t.Helper()
	t.Cleanup(func() {
		if !t.Failed() && !t.Skipped() {
			t.Logf("reference: %s: %d rows agree", filepath.Base(table), rows)
		}
	})
}

func moduleRoot(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			t.Fatal("no go.mod above the working directory")
		}
		dir = up
	}
}

// Missing skips the test with the reason, or fails it when witnesses are required.
func Missing(t testing.TB, reason string) {
	t.Helper()
	if os.Getenv("FABRICCTL_REQUIRE_WITNESSES") == "1" {
		t.Fatal("required witness: " + reason)
	}
	t.Skip(reason)
}
