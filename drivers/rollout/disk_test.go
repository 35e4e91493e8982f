package rollout

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/fabricctl/fabricctl/model/witness"

	"github.com/fabricctl/fabricctl/model/journal"
)

// Disks that are full or cannot be written stop a run before the first device write.
func TestNoDisk(t *testing.T) {
	check := func(t *testing.T, dir string, want error) {
		f := newFabric(dir, "s1")
		p := f.plan(t)
		r, err := f.e.Apply(context.Background(), p, leave)
		if ExitCode(r, err) != 1 || want != nil && !errors.Is(err, want) {
			t.Errorf("exit %d, %v", ExitCode(r, err), err)
		}
		f.mustHold(t, dir, false, nil)
		if f.boxes["s1"].writes > 0 {
			t.Error("a device was written to")
		}
	}
	t.Run("lease on a full disk", func(t *testing.T) {
		dir := stateDir(t)
		if info, err := os.Stat("/dev/full"); err != nil || info.Mode()&os.ModeCharDevice == 0 {
			witness.Missing(t, "/dev/full is no device")
		}
		if err := errors.Join(os.Mkdir(LeasesDir(dir), 0o700), os.Symlink("/dev/full", filepath.Join(LeasesDir(dir), "pod1.new"))); err != nil {
			witness.Missing(t, err.Error())
		}
		check(t, dir, syscall.ENOSPC)
	})
	t.Run("no directory", func(t *testing.T) { check(t, "/sys/fabricctl", nil) })
	t.Run("runs is a file", func(t *testing.T) {
		dir := stateDir(t)
		if err := os.WriteFile(filepath.Join(dir, "runs"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		check(t, dir, syscall.ENOTDIR)
		if l, err := journal.ReadLease(journal.LeasePath(LeasesDir(dir), "pod1")); err != nil || l.Free != "released" {
			t.Errorf("lease %+v, %v", l, err)
		}
	})
	// Sizes from too small for the lease to nearly enough for the run: wherever the disk is full, devices hold the old
	// or the new state and that is what is said.
	t.Run("full in the middle", func(t *testing.T) {
		for blocks := 2; blocks < 14; blocks++ {
			dir := t.TempDir()
			if err := syscall.Mount("none", dir, "tmpfs", 0, fmt.Sprintf("nr_blocks=%d,nr_inodes=64", blocks)); err != nil {
				witness.Missing(t, "mounting a small disk needs root: "+err.Error())
			}
			defer syscall.Unmount(dir, 0)
			f := newFabric(dir, "s1", "s2", "h1")
			p := f.plan(t)
			r, err := f.e.Apply(context.Background(), p, leave)
			if err != nil {
				if f.writes() > 0 || !errors.Is(err, syscall.ENOSPC) {
					t.Errorf("%d blocks: %d writes, %v", blocks, f.writes(), err)
				}
				continue
			}
			for _, x := range r.Results {
				want := oldConfig()
				if x.Outcome == Applied {
					want = f.wanted(x.Device, want)
				}
				if b := f.boxes[x.Device]; x.Outcome == Unknown || x.Outcome == NeedsHands || !b.running.Equal(want) {
					t.Errorf("%d blocks: %s is %s and runs\n%s", blocks, x.Device, x.Outcome, text(b.running))
				}
			}
			t.Logf("%d blocks: exit %d", blocks, ExitCode(r, err))
		}
	})
}
