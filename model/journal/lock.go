package journal

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// BusyError is a lock that another process has.
type BusyError struct {
	Path string
	By   string // what it said that it is; "" when it has not said yet
	PID  int
}

func (e *BusyError) Error() string {
	if e.By == "" {
		return e.Path + " is locked by another process"
	}
	return fmt.Sprintf("%s is locked by %s (pid %d)", e.Path, e.By, e.PID)
}

// lockNote is what a lock file holds.
type lockNote struct {
	By  string `json:"by"`
	PID int    `json:"pid"`
}

// Lock keeps other processes of this machine out of what the file stands for, until unlock is called or this process
// ends, however it does. by says who has it, for the others. While somebody else has it, Lock waits for as long as
// patience, and then is a *BusyError. The file stays behind, and its directory has to be there.
func Lock(ctx context.Context, path, by string, patience time.Duration) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	for end := time.Now().Add(patience); ; {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == nil:
			if b, err := json.Marshal(lockNote{By: by, PID: os.Getpid()}); err == nil {
				_ = errors.Join(f.Truncate(0), writeAt(f, append(b, '\n'))) // a full disk must not stop who takes a change back
			}
			return func() { _ = errors.Join(f.Truncate(0), f.Close()) }, nil // the end of f is the end of the lock
		case errors.Is(err, syscall.EINTR):
		case !errors.Is(err, syscall.EWOULDBLOCK):
			_ = f.Close()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		case !time.Now().Before(end):
			busy := &BusyError{Path: path}
			busy.By, busy.PID = noteOf(f)
			_ = f.Close()
			return nil, busy
		}
		select {
		case <-ctx.Done():
			_ = f.Close()
			return nil, fmt.Errorf("lock %s: %w", path, context.Cause(ctx))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Locked reports whether a process, this one too, has the lock of a file. It does not keep it, and makes no file.
func Locked(path string) bool {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	return errors.Is(syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}

func writeAt(f *os.File, b []byte) error {
	_, err := f.WriteAt(b, 0)
	return err
}

// noteOf is what the file says of its holder. It is read while somebody may write it.
func noteOf(f *os.File) (by string, pid int) {
	b := make([]byte, 512)
	n, _ := f.ReadAt(b, 0)
	var note lockNote
	if json.Unmarshal(bytes.TrimSpace(b[:n]), &note) != nil {
		return "", 0
	}
	return note.By, note.PID
}
