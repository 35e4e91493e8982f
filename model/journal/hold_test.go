package journal_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/model/journal"
)

func TestHolds(t *testing.T) {
	ctx, dir := context.Background(), filepath.Join(t.TempDir(), "state", "holds")
	noon := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	o := journal.Options{Now: func() time.Time { return noon }}
	hold := func(device, port, owner string, hours time.Duration) journal.Hold {
		return journal.Hold{Device: device, Port: port, Owner: owner, Host: "ops", Since: noon, Until: noon.Add(hours * time.Hour), Reason: "optics"}
	}
	set := func(h journal.Hold) *journal.Hold {
		t.Helper()
		was, err := journal.SetHold(ctx, dir, "pod1", h, o)
		if err != nil {
			t.Fatal(err)
		}
		return was
	}
	read := func() ([]journal.Hold, error) {
		all, err := journal.AllHolds(dir)
		if len(all) == 0 {
			return nil, err
		}
		return all[0].Holds, err
	}
	if hs, err := read(); hs != nil || err != nil {
		t.Errorf("before the first: %v, %v", hs, err)
	}
	set(hold("leaf2", "", "ann", 2))
	set(hold("leaf1", "downlink-1", "ann", 2))
	if was := set(hold("leaf2", "", "ann", 1)); was == nil || was.Until != noon.Add(2*time.Hour) {
		t.Errorf("what was replaced: %v", was)
	}
	if was := set(hold("leaf2", "", "bob", 3)); was == nil || was.Owner != "ann" {
		t.Errorf("a longer hold of somebody else: %v", was)
	}
	if _, err := journal.SetHold(ctx, dir, "pod1", hold("leaf2", "", "ann", 2), o); !errors.Is(err, journal.ErrOtherHold) {
		t.Errorf("a hold that would end somebody else's early: %v", err)
	}
	got, err := read()
	if d := cmp.Diff([]journal.Hold{hold("leaf1", "downlink-1", "ann", 2), hold("leaf2", "", "bob", 3)}, got); d != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, d)
	}
	if h := got[1]; !h.Active(noon) || !h.Active(noon.Add(3*time.Hour-1)) || h.Active(noon.Add(3*time.Hour)) {
		t.Error("a hold is in force until its end, and not at it")
	}
	for path, want := range map[string]os.FileMode{filepath.Dir(dir): 0o700, dir: 0o700, journal.HoldPath(dir, "pod1"): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v, want %v", path, info.Mode(), err, want)
		}
	}
	if was, err := journal.ReleaseHold(ctx, dir, "pod1", "leaf1", "", o); was != nil || err != nil {
		t.Errorf("nobody holds all of leaf1: %v, %v", was, err)
	}
	if was, err := journal.ReleaseHold(ctx, dir, "pod1", "leaf1", "downlink-1", o); was == nil || err != nil {
		t.Errorf("release: %v, %v", was, err)
	}
	if was, err := journal.ReleaseHold(ctx, dir, "pod9", "leaf1", "", o); was != nil || err != nil {
		t.Errorf("a fabric without holds: %v, %v", was, err)
	}
	if _, err := journal.SetHold(ctx, dir, "../pod1", hold("a", "", "ann", 1), o); err == nil {
		t.Error("a fabric's name leads out of the directory")
	}
	for _, text := range []string{"", "{", `{"fabric":""}`, `{"fabric":"pod1","holds":[],"more":1}`, `{"fabric":"pod1"} x`} {
		if err := os.WriteFile(journal.HoldPath(dir, "pod1"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if hs, err := read(); err == nil {
			t.Errorf("%q reads as %v", text, hs)
		}
		if _, err := journal.SetHold(ctx, dir, "pod1", hold("a", "", "ann", 1), o); err == nil {
			t.Errorf("%q is written over", text)
		}
	}
	if err := os.WriteFile(journal.HoldPath(dir, "pod2"), []byte(`{"fabric":"pod2","holds":[]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if all, err := journal.AllHolds(journal.HoldPath(dir, "pod2")); all != nil || err != nil {
		t.Errorf("a file where the directory was to be: %v, %v", all, err)
	}
	if all, err := journal.AllHolds(dir); len(all) != 1 || all[0].Fabric != "pod2" || err == nil {
		t.Errorf("a damaged file beside a good one: %v, %v", all, err)
	}
}
