package main

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/drivers/hostwire"
	"github.com/fabricctl/fabricctl/model/witness"
	"github.com/fabricctl/fabricctl/render"
)

// pipes is a running program's standard input and output.
type pipes struct {
	io.Reader
	io.WriteCloser
}

// A change that is not confirmed goes back though everything that asked for it was killed: the laptop's end, and the
// host's. One that is confirmed stays.
func TestTimerOutlivesAll(t *testing.T) {
	runtime.LockOSThread() // without unlocking: the thread ends with the goroutine, and the namespace with it
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSYS) {
			witness.Missing(t, "a network namespace is not permitted: "+err.Error())
		}
		t.Fatal(err)
	}
	ip := witness.Tool(t, "ip")
	if out, err := exec.Command(ip, "link", "add", "rail0", "type", "veth", "peer", "name", "rail1").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	mtu := func() string {
		out, err := exec.Command(ip, "-o", "link", "show", "rail0").Output()
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(out), " mtu ")
		n, _, _ := strings.Cut(rest, " ")
		return n
	}
	dir := t.TempDir()
	bin, state := filepath.Join(dir, "fabricctl-host"), filepath.Join(dir, "state")
	if out, err := exec.Command("go", "build", "-buildvcs=false", "-o", bin, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	start := func() (*hostwire.Client, *exec.Cmd) {
		cmd := exec.Command(bin, "serve", "--state-dir", state)
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		c, err := hostwire.NewClient(t.Context(), "here", pipes{out, in})
		if err != nil {
			t.Fatal(err)
		}
		if _, caps, err := c.Facts(t.Context()); err != nil || !caps.Confirm {
			t.Fatalf("%+v, %v", caps, err)
		}
		return c, cmd
	}
	up := render.Change{Op: render.Modify, Key: render.Key{Scope: "link", Object: "rail0", Field: "mtu"}, Before: new("1500"), After: new("9000")}

	c, cmd := start()
	if err := c.Commit(t.Context(), "tx1", []render.Change{up}, time.Minute); err != nil {
		t.Fatal(err)
	}
	timer, ok := c.Timer()
	if !ok {
		t.Fatal("no timer")
	}
	if err := timer.Confirm(t.Context(), "tx1"); err != nil || mtu() != "9000" {
		t.Fatalf("%v, mtu %s", err, mtu())
	}
	if err := c.Commit(t.Context(), "tx2", []render.Change{up.Invert()}, time.Second); err != nil {
		t.Fatal(err)
	}
	if txs, err := timer.Pending(t.Context()); err != nil || len(txs) > 1 || len(txs) == 1 && txs[0].State != drivers.TxTimed {
		t.Errorf("%v, %v", txs, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	_ = c.Close()
	// The timer's program is what is left; a net is under it in case it never comes.
	tick, net := time.NewTicker(20*time.Millisecond), time.After(30*time.Second)
	defer tick.Stop()
	for pending := true; pending || mtu() != "9000"; {
		select {
		case <-tick.C:
			left, err := os.ReadDir(filepath.Join(state, "pending"))
			pending = err != nil || len(left) > 0
		case <-net:
			t.Fatalf("nothing took it back: mtu %s, pending %v", mtu(), pending)
		}
	}
}
