//go:build unix

package netlink

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/model/journal"
)

// patience is how long a writer waits for another one: the timer of a transaction, the agent.
const patience = 10 * time.Second

// AgentLock is the file of the state directory that an agent has locked while it runs.
const AgentLock = "agent.lock"

// kept reports whether an agent runs on this host.
func (d *Device) kept() bool {
	return d.cfg.State != "" && journal.Locked(filepath.Join(d.cfg.State, AgentLock))
}

// lock keeps other processes from writing, confirming or taking back meanwhile. Who finds it taken says who has it.
func (d *Device) lock(ctx context.Context) (unlock func(), err error) {
	if d.cfg.State == "" {
		return func() {}, nil
	}
	if err := os.MkdirAll(d.cfg.State, 0o755); errors.Is(err, fs.ErrPermission) {
		return nil, fmt.Errorf("%w: it takes root to set a host", err)
	} else if err != nil {
		return nil, err
	}
	by := filepath.Base(os.Args[0])
	if len(os.Args) > 1 {
		by += " " + os.Args[1]
	}
	unlock, err = journal.Lock(ctx, filepath.Join(d.cfg.State, "settings.lock"), by, patience)
	if busy := (*journal.BusyError)(nil); errors.As(err, &busy) {
		return nil, fmt.Errorf("%w: %w", drivers.ErrBusy, err)
	}
	return unlock, err
}
