//go:build unix

package netlink

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/fabricctl/fabricctl/drivers"
)

// lock keeps other processes from writing, confirming or taking back meanwhile. It waits a moment for them: the timer of
// a transaction may be at work.
func (d *Device) lock(ctx context.Context) (unlock func(), err error) {
	if d.cfg.State == "" {
		return func() {}, nil
	}
	if err := os.MkdirAll(d.cfg.State, 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(d.cfg.State, "settings.lock"), os.O_RDWR|os.O_CREATE|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, err
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for range 500 {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if err != syscall.EWOULDBLOCK && err != syscall.EINTR {
			f.Close()
			return nil, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			f.Close()
			return nil, ctx.Err()
		}
	}
	f.Close()
	return nil, fmt.Errorf("%w on this host's settings", drivers.ErrBusy)
}
