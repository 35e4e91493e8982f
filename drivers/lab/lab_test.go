package lab

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fabricctl/fabricctl/model/intent"
)

// Who waits for the inventory may read it as soon as it is there: it appears whole. A link to the one of an earlier lab
// keeps that one, which it would not if the file were written in place.
func TestInventoryAppearsWhole(t *testing.T) {
	dir := t.TempDir()
	path, old := filepath.Join(dir, "inventory.yaml"), filepath.Join(dir, "old")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(path, old); err != nil {
		t.Fatal(err)
	}
	l, err := Up(&intent.Net{}, Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if b, err := os.ReadFile(old); err != nil || string(b) != "old" {
		t.Errorf("the inventory was written in place: %q, %v", b, err)
	}
	if b, err := os.ReadFile(path); err != nil || !strings.Contains(string(b), "kind: Inventory") {
		t.Errorf("the inventory: %q, %v", b, err)
	}
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(left) != 6 { // ca, control, inventory.yaml, known_hosts, password, and old
		t.Errorf("the directory holds %q, %v", left, err)
	}
}

// A second lab does not take the directory of one that runs, which nobody would find any more; when that has ended, it does.
func TestUpTwice(t *testing.T) {
	dir := t.TempDir()
	l, err := Up(&intent.Net{}, Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if second, err := Up(&intent.Net{}, Options{Dir: dir}); err == nil || !strings.Contains(err.Error(), "a lab runs with "+dir+" already") {
		t.Errorf("%v", err)
		if second != nil {
			_ = second.Close()
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := Up(&intent.Net{}, Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}
