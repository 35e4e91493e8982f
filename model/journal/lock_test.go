package journal

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := Lock(t.Context(), path, "the agent", 0)
	if err != nil {
		t.Fatal(err)
	}
	var busy *BusyError
	if _, err := Lock(t.Context(), path, "apply", 0); !errors.As(err, &busy) || busy.By != "the agent" || busy.PID != os.Getpid() {
		t.Fatalf("a second lock: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Lock(ctx, path, "apply", time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("an impatient one: %v", err)
	}
	got := make(chan error)
	go func() {
		second, err := Lock(t.Context(), path, "apply", time.Hour)
		if err == nil {
			second()
		}
		got <- err
	}()
	unlock()
	if err := <-got; err != nil {
		t.Errorf("one that waits: %v", err)
	}
	if unlock, err = Lock(t.Context(), path, "apply", 0); err != nil {
		t.Fatalf("afterwards: %v", err)
	}
	unlock()
}

func TestLocked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	if Locked(path) {
		t.Error("a file that is not there is locked")
	}
	unlock, err := Lock(t.Context(), path, "test", 0)
	if err != nil {
		t.Fatal(err)
	}
	if !Locked(path) {
		t.Error("what is locked is not")
	}
	unlock()
	if Locked(path) {
		t.Error("what was unlocked is locked")
	}
}

func TestLockSaysWhatItCannot(t *testing.T) {
	dir := t.TempDir()
	if _, err := Lock(t.Context(), filepath.Join(dir, "none", "lock"), "x", 0); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no directory: %v", err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(t.Context(), filepath.Join(dir, "link"), "x", 0); err == nil {
		t.Error("a link was followed")
	}
	held := filepath.Join(dir, "held")
	unlock, err := Lock(t.Context(), held, "x", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	if err := os.WriteFile(held, []byte("\x1b[2J not JSON"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(t.Context(), held, "y", 0); err == nil || err.Error() != held+" is locked by another process" {
		t.Errorf("a note that is none: %v", err)
	}
}

// On a disk that is full nobody can be told who has the lock; that keeps nobody from having it.
func TestLockOnAFullDisk(t *testing.T) {
	const full = "/dev/full"
	if _, err := os.Stat(full); err != nil {
		t.Skip("this system has no /dev/full")
	}
	unlock, err := Lock(t.Context(), full, "test", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	if !Locked(full) {
		t.Error("it is not locked")
	}
}
