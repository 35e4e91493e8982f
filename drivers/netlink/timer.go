package netlink

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fabricctl/fabricctl/drivers"
)

// Detached is a Timer that has systemd start a program at the deadline; where systemd does not run, or does not see the
// network and the files that we see, it starts the program at once, in a session of its own, to wait. The program calls Device.Await with the transaction's id, which is
// its last argument.
type Detached struct {
	Program string   // its absolute path
	Args    []string // before the id
	Now     func() time.Time
}

// Arm returns when the timer is armed, or the program runs.
func (t Detached) Arm(ctx context.Context, tx drivers.TxID, deadline time.Time) error {
	argv := append(append([]string{t.Program}, t.Args...), string(tx))
	if run, err := exec.LookPath("systemd-run"); err == nil && os.Geteuid() == 0 && seenBySystemd() {
		wait := max(deadline.Sub(t.Now()), 0)
		args := append([]string{
			"--quiet", "--collect", "--no-ask-password", "--unit=fabricctl-revert-" + string(tx),
			"--on-active=" + strconv.FormatInt(wait.Milliseconds()+1, 10) + "ms", "--timer-property=AccuracySec=100ms",
		}, argv...)
		out, err := exec.CommandContext(ctx, run, args...).CombinedOutput()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := detach(argv); err != nil {
			return errors.Join(fmt.Errorf("systemd-run: %s", strings.TrimSpace(string(out))), err)
		}
		return nil
	}
	return detach(argv)
}

// seenBySystemd reports whether systemd runs, in the namespaces that this process is in.
func seenBySystemd() bool {
	if st, err := os.Stat("/run/systemd/system"); err != nil || !st.IsDir() {
		return false
	}
	for _, ns := range []string{"net", "mnt"} {
		ours, err1 := os.Readlink("/proc/thread-self/ns/" + ns)
		its, err2 := os.Readlink("/proc/1/ns/" + ns)
		if err1 != nil || err2 != nil || ours != its {
			return false
		}
	}
	return true
}

// detach starts a program that outlives this one.
func detach(argv []string) error {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.SysProcAttr = "/", ownSession()
	if err := cmd.Start(); err != nil {
		return err
	}
	return cmd.Process.Release()
}

// Await waits for the deadline of a transaction and takes it back then. It returns early, and does nothing, when the
// transaction is confirmed or aborted. What cannot be taken back is tried again, more and more rarely, until it is done:
// a driver may be busy, or another writer have the lock.
func (d *Device) Await(ctx context.Context, tx drivers.TxID) error {
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	return d.await(ctx, tx, tick.C)
}

// restTicks is how many ticks lie between two tries at most: half a minute.
const restTicks = 64

func (d *Device) await(ctx context.Context, tx drivers.TxID, tick <-chan time.Time) error {
	var failed error
	for rest := 1; ; {
		ps, err := d.all()
		if err != nil {
			return d.named("await", err)
		}
		i := slices.IndexFunc(ps, func(p pending) bool { return p.ID == tx })
		if i < 0 {
			return nil
		}
		ticks := 1
		if d.over(ps[i]) {
			if failed = d.Expire(ctx); failed == nil {
				return nil
			}
			ticks, rest = rest, min(2*rest, restTicks)
		}
		for range ticks {
			select {
			case <-tick:
			case <-ctx.Done():
				return errors.Join(d.named("await", ctx.Err()), failed)
			}
		}
	}
}
