package netlink

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/drivers/netlink/dcb"
	"github.com/fabricctl/fabricctl/drivers/netlink/dcb/dcbfake"
	"github.com/fabricctl/fabricctl/profiles"
	"github.com/fabricctl/fabricctl/render"
	"github.com/google/go-cmp/cmp"
)

// died is what a failpoint ends a process with.
type died string

// until runs f and reports whether it died at the failpoint n, from 0 on.
func (r *rig) dies(n int, f func()) (at string, dead bool) {
	r.t.Helper()
	i := 0
	r.Device.cfg.Hook = func(p string) {
		if i == n {
			i++
			panic(died(p))
		}
		i++
	}
	r.Device.memory.hook, r.Device.nccl.hook, r.Device.limits.hook = r.cfg.Hook, r.cfg.Hook, r.cfg.Hook
	defer func() {
		if p := recover(); p != nil {
			d, ok := p.(died)
			if !ok {
				panic(p)
			}
			at, dead = string(d), true
		}
	}()
	f()
	return "", false
}

// everything is a change of every kind, with two code points for all.
func everything(t *testing.T, r *rig) []render.Change {
	want := slices.DeleteFunc(wanted("mlx5", "eth0"), func(s string) bool {
		return strings.HasPrefix(s, "app|") && !strings.HasPrefix(s, "app|eth0|dscp 26=") && !strings.HasPrefix(s, "app|eth0|dscp 48=")
	})
	return changes(t, r, append(want, "nccl|/etc/nccl.conf|NCCL_IB_TC=104", "limit|"+render.MemlockPath+"|memlock=unlimited")...)
}

// holds is what the machine holds: its settings, and its files byte for byte.
func (r *rig) holds() string {
	r.t.Helper()
	s := read(r.t, r.Device)
	for _, name := range []string{render.NCCLPath, render.MemlockPath} {
		p := filepath.Join(r.cfg.Root, name)
		st, err := os.Stat(p)
		if err != nil {
			s += name + " absent\n"
			continue
		}
		b, _ := os.ReadFile(p)
		s += fmt.Sprintf("%s %v %q\n", name, st.Mode(), b)
	}
	// The firmware of mlx5 is willing as soon as it rules again.
	return strings.Replace(s, "ets|eth0|willing on", "ets|eth0|willing off", 1)
}

// A process that dies at any point of a timed commit leaves a machine that is as it was when the time is over, by the
// timer or by whatever starts next.
func TestKilledAnywhere(t *testing.T) {
	points := map[string]bool{}
	for n := 0; ; n++ {
		r, _ := nicRig(t, "mlx5")
		conf := filepath.Join(r.cfg.Root, render.NCCLPath)
		if n%2 == 0 { // without a line end, which an edit adds
			if err := os.WriteFile(conf, []byte("# theirs\r\nNCCL_DEBUG=INFO"), 0o640); err != nil {
				t.Fatal(err)
			}
		}
		was := r.holds()
		cs := everything(t, r)
		at, dead := r.dies(n, func() {
			if err := r.Commit(t.Context(), "tx1", cs, time.Minute); err != nil {
				t.Errorf("%d: %v", n, err)
			}
		})
		if !dead {
			break
		}
		points[at] = true
		r.reopen()
		r.clock = r.clock.Add(2 * time.Minute)
		if err := r.Expire(t.Context()); err != nil {
			t.Errorf("died at %d (%s): %v", n, at, err)
		}
		if d := cmp.Diff(was, r.holds()); d != "" {
			t.Errorf("died at %d (%s): (-before +after)\n%s", n, at, d)
		}
		if txs, err := r.Pending(t.Context()); err != nil || len(txs) > 0 {
			t.Errorf("died at %d (%s): still pending %v, %v", n, at, txs, err)
		}
	}
	for _, p := range []string{"write eth0 before", "write eth0 after", "mkdir /sys/kernel/config/rdma_cm/mlx5_0 after"} {
		if !points[p] {
			t.Errorf("no death at %q", p)
		}
	}
}

// Taking back survives its own death: whoever comes next takes back the rest.
func TestKilledWhileTakingBack(t *testing.T) {
	for n := 0; ; n++ {
		r, _ := nicRig(t, "mlx5")
		was := r.holds()
		if err := r.Commit(t.Context(), "tx1", everything(t, r), time.Minute); err != nil {
			t.Fatal(err)
		}
		r.clock = r.clock.Add(2 * time.Minute)
		at, dead := r.dies(n, func() {
			if err := r.Expire(t.Context()); err != nil {
				t.Errorf("%d: %v", n, err)
			}
		})
		r.reopen()
		if err := r.Expire(t.Context()); err != nil {
			t.Errorf("died at %d (%s): %v", n, at, err)
		}
		if d := cmp.Diff(was, r.holds()); d != "" {
			t.Errorf("died at %d (%s): (-before +after)\n%s", n, at, d)
		}
		if !dead {
			return
		}
	}
}

func TestConfirm(t *testing.T) {
	r, n := nicRig(t, "mlx5")
	n.Alter(func(h *dcbfake.Hardware) { h.DCBX |= dcb.Host })
	cs := changes(t, r, "pfc|eth0|priorities=3")
	if err := r.Commit(t.Context(), "tx1", cs, time.Minute); err != nil {
		t.Fatal(err)
	}
	if at := r.timer.armed["tx1"]; !at.Equal(r.clock.Add(time.Minute)) {
		t.Errorf("armed for %v", at)
	}
	txs, err := r.Pending(t.Context())
	if err != nil || len(txs) != 1 || txs[0] != (drivers.Tx{ID: "tx1", State: drivers.TxTimed, Deadline: r.clock.Add(time.Minute)}) {
		t.Errorf("got %v, %v", txs, err)
	}
	r.reopen() // a new connection
	if err := r.Confirm(t.Context(), "tx1"); err != nil {
		t.Fatal(err)
	}
	r.clock = r.clock.Add(time.Hour)
	if err := r.Expire(t.Context()); err != nil || n.Hardware().PFC.Enabled != 8 {
		t.Errorf("after confirming: %v, PFC %08b", err, n.Hardware().PFC.Enabled)
	}
	if err := r.Confirm(t.Context(), "tx1"); err == nil || !strings.Contains(err.Error(), "no transaction tx1 is pending here") {
		t.Errorf("got %v", err)
	}
	if err := r.Confirm(t.Context(), "../x"); err == nil || !strings.Contains(err.Error(), "cannot be the id") {
		t.Errorf("got %v", err)
	}
}

// Without a way back on disk, or without a timer, nothing is written.
func TestTimerFails(t *testing.T) {
	r, n := nicRig(t, "mlx5")
	n.Alter(func(h *dcbfake.Hardware) { h.DCBX |= dcb.Host })
	cs := changes(t, r, "pfc|eth0|priorities=3")
	r.timer.err = errors.New("no systemd here")
	if err := r.Commit(t.Context(), "tx1", cs, time.Minute); err == nil || !strings.Contains(err.Error(), "arm the timer: no systemd here") || r.writes() > 0 {
		t.Errorf("got %v after %d writes", err, r.writes())
	}
	if txs, err := r.Pending(t.Context()); len(txs) > 0 || err != nil {
		t.Errorf("left behind: %v, %v", txs, err)
	}
	r.cfg.Timer = nil
	if err := r.Commit(t.Context(), "tx2", cs, time.Minute); !errors.Is(err, drivers.ErrNoConfirm) || r.writes() > 0 {
		t.Errorf("got %v after %d writes", err, r.writes())
	}
}

// What somebody set by hand meanwhile stays, and the rest goes back.
func TestTakeBackLeavesWhatMoved(t *testing.T) {
	r, n := nicRig(t, "mlx5")
	n.Alter(func(h *dcbfake.Hardware) { h.DCBX |= dcb.Host })
	if err := r.Commit(t.Context(), "tx1", changes(t, r, "pfc|eth0|priorities=3", "cc|eth0|ai_rate=10", "link|eth0|mtu=9000"), time.Minute); err != nil {
		t.Fatal(err)
	}
	r.k.links[1].MTU = 4200
	r.rdma.qps["mlx5_0"] = 4 // in nobody's way: this was promised
	if err := r.Abort(t.Context(), "tx1"); err != nil {
		t.Fatal(err)
	}
	want := []string{"pfc|eth0|priorities=none", "cc|eth0|ai_rate=5", "link|eth0|mtu=4200"}
	if rest := changes(t, r, want...); len(rest) > 0 {
		t.Errorf("%v", rest)
	}
}

// Who takes a transaction back is another process, and nobody tells it what a user knows of NICs: that is kept with the way
// back. A transaction that cannot be taken back does not stand before another one.
func TestWayBackKnowsNICs(t *testing.T) {
	r := newRig(t)
	n := r.plug("eth0", "17", "1234:5678", dcbfake.Generic(), "mine_0")
	built, err := profiles.Default()
	if err != nil {
		t.Fatal(err)
	}
	fact := func(key, value string) string {
		return fmt.Sprintf(`{"key":%q,"values":[%q],"source":"s","confidence":"high"}`, key, value)
	}
	told := `{"name":"mine","facts":[` + strings.Join([]string{fact("status", "managed"), fact("drivers", "generic"), fact("pfc", "settable"), fact("pfc_effect", "none")}, ",") + `]}`
	cat, err := built.Know([]json.RawMessage{json.RawMessage(told)})
	if err != nil {
		t.Fatal(err)
	}
	r.Know(cat)
	if err := r.Commit(t.Context(), "tx1", changes(t, r, "pfc|eth0|priorities=3"), time.Minute); err != nil {
		t.Fatal(err)
	}
	r.plug("eth1", "18", "1234:5678", dcbfake.Generic(), "mine_1")
	if err := r.Commit(t.Context(), "tx2", changes(t, r, "pfc|eth1|priorities=4"), time.Minute); err != nil {
		t.Fatal(err)
	}
	r.reopen()
	r.nics["eth1"].Use(dcbfake.Generic().Refusing(-16, dcbfake.PFC))
	r.clock = r.clock.Add(2 * time.Minute)
	if err := r.Expire(t.Context()); err == nil || !strings.Contains(err.Error(), "tx2") || !strings.Contains(err.Error(), "busy") {
		t.Errorf("a driver that is busy: %v", err)
	}
	if on := n.Hardware().PFC.Enabled; on != 0 {
		t.Errorf("tx1 is in force still: PFC %08b", on)
	}
	if txs, err := r.Pending(t.Context()); err != nil || len(txs) != 1 || txs[0].ID != "tx2" {
		t.Errorf("pending %v, %v", txs, err)
	}
	if r.cfg.Catalog != nil {
		t.Error("what tx1 knew is known afterwards")
	}
	const note = "transaction tx2 was not confirmed and should have been taken back at 2026-11-30T03:01:00Z: fabricctl-host revert tx2, or the next commit, does it"
	if f, _, err := r.Facts(t.Context()); err != nil || !slices.Contains(f.Notes, note) {
		t.Errorf("%v, notes:\n%s", err, strings.Join(f.Notes, "\n"))
	}
	if err := os.WriteFile(r.pendingFile("tx3"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if f, _, err := r.Facts(t.Context()); err != nil || !strings.Contains(strings.Join(f.Notes, "\n"), "whether a change waits to be taken back cannot be read: ") {
		t.Errorf("a damaged file: %v, notes:\n%s", err, strings.Join(f.Notes, "\n"))
	}
}

// The process that waits for a deadline does not give up on a NIC that is busy just then.
func TestAwaitTriesAgain(t *testing.T) {
	r, n := nicRig(t, "mlx5")
	n.Alter(func(h *dcbfake.Hardware) { h.DCBX |= dcb.Host })
	if err := r.Commit(t.Context(), "tx1", changes(t, r, "pfc|eth0|priorities=3"), time.Minute); err != nil {
		t.Fatal(err)
	}
	r.clock = r.clock.Add(2 * time.Minute)
	n.Use(dcbfake.MLX5().Refusing(-16, dcbfake.PFC))
	err := r.Commit(t.Context(), "tx2", changes(t, r, "link|eth0|mtu=9000"), 0) // what is overdue comes first, and says how it does not
	if err == nil || !strings.Contains(err.Error(), "take back transaction tx1: ") || !strings.Contains(err.Error(), "move "+r.pendingFile("tx1")+" away") {
		t.Errorf("another commit: %v", err)
	}
	tries := make(chan time.Time)
	done := make(chan error, 1)
	go func() { done <- r.await(t.Context(), "tx1", tries) }()
	for range 5 { // it tried, and waits
		tries <- r.clock
	}
	n.Use(dcbfake.MLX5())
	for {
		select {
		case tries <- r.clock:
		case err := <-done:
			if err != nil || n.Hardware().PFC.Enabled != 0 {
				t.Errorf("%v, PFC %08b", err, n.Hardware().PFC.Enabled)
			}
			return
		}
	}
}

// A clock that is set moves no deadline; a reboot leaves the clock alone to judge.
func TestClockIsSet(t *testing.T) {
	r, n := nicRig(t, "mlx5")
	n.Alter(func(h *dcbfake.Hardware) { h.DCBX |= dcb.Host })
	r.tree.files["proc/sys/kernel/random/boot_id"] = "one\n"
	r.tree.files["proc/uptime"] = "1000.50 90.0\n"
	if err := r.Commit(t.Context(), "tx1", changes(t, r, "pfc|eth0|priorities=3"), time.Minute); err != nil {
		t.Fatal(err)
	}
	enabled := func() uint8 {
		t.Helper()
		if err := r.Expire(t.Context()); err != nil {
			t.Fatal(err)
		}
		return n.Hardware().PFC.Enabled
	}
	r.clock = r.clock.Add(24 * time.Hour)
	if enabled() != 8 {
		t.Error("the clock went forward, and it was taken back early")
	}
	r.clock = r.clock.Add(-48 * time.Hour)
	r.tree.files["proc/uptime"] = "1060.50 90.0\n"
	if f, _, err := r.Facts(t.Context()); err != nil || !strings.Contains(strings.Join(f.Notes, "\n"), "transaction tx1 was not confirmed") {
		t.Errorf("%v, %q", err, f.Notes)
	}
	if enabled() != 0 {
		t.Error("the clock went back, and it was not taken back")
	}
	if err := r.Commit(t.Context(), "tx2", changes(t, r, "pfc|eth0|priorities=3"), time.Minute); err != nil {
		t.Fatal(err)
	}
	r.tree.files["proc/sys/kernel/random/boot_id"], r.tree.files["proc/uptime"] = "two\n", "5.0 1.0\n"
	if enabled() != 8 {
		t.Error("taken back right after a reboot, long before its time")
	}
	r.clock = r.clock.Add(2 * time.Minute)
	if enabled() != 0 {
		t.Error("not taken back after a reboot")
	}
}

// A driver that answers 1 to a DCBX mode has not acknowledged it.
func TestDCBXRefused(t *testing.T) {
	r, n := nicRig(t, "bnxt")
	n.Alter(func(h *dcbfake.Hardware) { h.DCBX = dcb.IEEE })
	cs := changes(t, r, "dcbx|eth0|mode=host ieee")
	n.Alter(func(h *dcbfake.Hardware) { h.FirmwareLLDP = true }) // between the look and the write it cannot be
	r.cfg.Hook = func(string) {}
	err := r.Commit(t.Context(), "tx1", cs, 0)
	if err == nil || errors.As(err, new(*drivers.DiffersError)) {
		t.Errorf("got %v", err)
	}
	n.Alter(func(h *dcbfake.Hardware) { h.FirmwareLLDP = false })
	cs = changes(t, r, "dcbx|eth0|mode=host ieee")
	n.Use(dcbfake.BNXT().Refusing(1, dcbfake.DCBX))
	err = r.Commit(t.Context(), "tx2", cs, 0)
	if err == nil || !strings.Contains(err.Error(), `device refused "dcbx|eth0|mode host ieee": the driver answered 1`) {
		t.Errorf("got %v", err)
	}
}

// A NIC that cannot be taken back, as its firmware rules again, keeps no other one from it: that may lead to the host.
func TestTakeBackGoesOn(t *testing.T) {
	r, n := nicRig(t, "mlx5")
	r.mlx5("eth1", "18", "mlx5_1")
	n.Alter(func(h *dcbfake.Hardware) { h.DCBX |= dcb.Host })
	cs := changes(t, r, "pfc|eth0|priorities=3", "link|eth1|mtu=9000", "nccl|/etc/nccl.conf|A=1")
	if err := r.Commit(t.Context(), "tx1", cs, time.Minute); err != nil {
		t.Fatal(err)
	}
	n.Alter(func(h *dcbfake.Hardware) { h.DCBX &^= dcb.Host })
	r.clock = r.clock.Add(2 * time.Minute)
	if err := r.Expire(t.Context()); err == nil || !strings.Contains(err.Error(), "eth0") {
		t.Errorf("got %v", err)
	}
	if got := read(t, r.Device); !strings.Contains(got, "link|eth1|mtu 1500\n") || strings.Contains(got, "nccl.conf|A 1") {
		t.Errorf("eth1 is not as it was:\n%s", got)
	}
	n.Alter(func(h *dcbfake.Hardware) { h.DCBX |= dcb.Host })
	if err := r.Expire(t.Context()); err != nil || n.Hardware().PFC.Enabled != 0 {
		t.Errorf("got %v, PFC %x", err, n.Hardware().PFC.Enabled)
	}
	if ps, err := r.Pending(t.Context()); err != nil || len(ps) > 0 {
		t.Errorf("still pending: %v, %v", ps, err)
	}
}
