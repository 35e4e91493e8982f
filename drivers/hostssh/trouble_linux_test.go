package hostssh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/drivers/lab/host"
	"github.com/fabricctl/fabricctl/drivers/ssh"
	"github.com/fabricctl/fabricctl/model/journal"
	"github.com/fabricctl/fabricctl/model/witness"
	"github.com/fabricctl/fabricctl/render"
)

// wire is a way to a server that can be cut.
type wire struct {
	addr string

	mu      sync.Mutex
	conns   []net.Conn
	resets  int // how many connections are still to be reset at once
	dialled int
	sent    int // bytes to the server
}

func newWire(t *testing.T, to string) *wire {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{addr: l.Addr().String()}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			if w.reset() {
				_ = near.(*net.TCPConn).SetLinger(0)
				_ = near.Close()
				continue
			}
			far, err := net.Dial("tcp", to)
			if err != nil {
				_ = near.Close()
				continue
			}
			w.mu.Lock()
			w.conns = append(w.conns, near, far)
			w.mu.Unlock()
			wg.Go(func() { _, _ = io.Copy(near, far); near.Close() })
			wg.Go(func() { _, _ = io.Copy(io.MultiWriter(far, w), near); far.Close() })
		}
	})
	t.Cleanup(func() { l.Close(); w.cut(); wg.Wait() })
	return w
}

func (w *wire) reset() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dialled++
	w.resets--
	return w.resets >= 0
}

// next resets as many connections from now on, and is how many there were up to here.
func (w *wire) next(resets int) (dialled int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	dialled, w.dialled, w.resets = w.dialled, 0, resets
	return dialled
}

func (w *wire) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sent += len(p)
	return len(p), nil
}

func (w *wire) bytes() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sent
}

func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.conns {
		_ = c.Close()
	}
}

// through is cfg by way of w.
func through(t *testing.T, cfg Config, w *wire) Config {
	t.Helper()
	known, err := os.ReadFile(cfg.SSH.KnownHosts[0])
	if err != nil {
		t.Fatal(err)
	}
	host, port, err := net.SplitHostPort(w.addr)
	if err != nil {
		t.Fatal(err)
	}
	_, key, _ := strings.Cut(string(known), " ")
	path := filepath.Join(t.TempDir(), "known_hosts")
	if err := os.WriteFile(path, []byte(fmt.Sprintf("[%s]:%s %s", host, port, key)), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg.SSH.Address, cfg.SSH.KnownHosts = w.addr, []string{path}
	return cfg
}

// A server that is not the one of known_hosts gets nothing, and nothing is copied to it.
func TestRealHostWithAnotherKey(t *testing.T) {
	cfg := thisHost(t, nil)
	other, _ := keyFile(t)
	cfg.SSH.KnownHosts = knows(t, cfg.SSH.Address, other)
	if _, err := Dial(t.Context(), cfg); !errors.Is(err, ssh.ErrHostChanged) || !strings.Contains(err.Error(), "host key changed: it offers ssh-ed25519 SHA256:") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(cfg.Dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("something was copied: %v", err)
	}
}

// tools puts programs of ours before the system's, for what sshd starts.
func tools(t *testing.T, scripts map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range scripts {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return "SetEnv PATH=" + dir + ":/usr/sbin:/usr/bin:/sbin:/bin"
}

// sudo that wants a password is refused at once and says so; one that does not is passed through.
func TestRealHostSudo(t *testing.T) {
	cfg := thisHost(t, nil, tools(t, map[string]string{"sudo": `echo "sudo: a password is required" >&2; exit 1`}))
	cfg.Sudo = true
	if _, err := Dial(t.Context(), cfg); err == nil || err.Error() != "here: hello: it ended without a hello: sudo: a password is required" {
		t.Errorf("got %v", err)
	}
	cfg = thisHost(t, nil, tools(t, map[string]string{"sudo": `test "$1" = -n && shift && exec "$@"`}))
	cfg.Sudo = true
	if f, _, err := dial(t, cfg).Facts(t.Context()); err != nil || f.Hostname == "" {
		t.Errorf("%+v, %v", f, err)
	}
}

// A machine for which there is no binary is read with its own tools, and says why it cannot be written.
func TestRealHostOfAnotherKind(t *testing.T) {
	cfg := thisHost(t, nil, tools(t, map[string]string{"uname": `test "$1" = -sm && echo Linux aarch64 || exec /bin/uname "$@"`}))
	one := cfg.Binary
	cfg.Binary = func(goos, goarch string) (*Binary, error) {
		if goarch != "amd64" {
			return nil, fmt.Errorf("this program has fabricctl-host for linux/amd64 alone, and the host is %s/%s", goos, goarch)
		}
		return one(goos, goarch)
	}
	d := dial(t, cfg)
	_, caps, err := d.Facts(t.Context())
	if want := "this program has fabricctl-host for linux/amd64 alone, and the host is linux/arm64"; err != nil || caps.ReadOnly != want {
		t.Errorf("%+v, %v", caps, err)
	}
	if err := d.Commit(t.Context(), "tx", []render.Change{change("lo", "1", "2")}, 0); !errors.Is(err, drivers.ErrReadOnly) {
		t.Errorf("commit: %v", err)
	}
	if _, err := os.Stat(cfg.Dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("something was copied: %v", err)
	}
}

// A full disk is said as what it is, and nothing is left behind on it.
func TestRealHostWithAFullDisk(t *testing.T) {
	disk := t.TempDir()
	cfg := thisHost(t, func() error {
		if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
			return fmt.Errorf("mount namespace: %w", err)
		}
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			return fmt.Errorf("mount namespace: %w", err)
		}
		return unix.Mount("none", disk, "tmpfs", 0, "size=256k,mode=0700")
	})
	cfg.Dir = filepath.Join(disk, "cache")
	_, err := Dial(t.Context(), cfg)
	if err == nil || !strings.HasPrefix(err.Error(), "here: push fabricctl-host: "+cfg.Dir) || !strings.Contains(err.Error(), " bytes are needed, and ") || !strings.Contains(err.Error(), " are free: make room") {
		t.Fatalf("got %v", err)
	}
	stock := cfg
	stock.Binary = nil
	look := dial(t, stock).(interface {
		run(context.Context, string) ([]byte, error)
	})
	if out, err := look.run(t.Context(), "ls -A "+quote(cfg.Dir)); err != nil || len(out) > 0 {
		t.Errorf("left behind: %s, %v", out, err)
	}
}

// The connection is cut while a commit is under way: the host stops before its next write, and ends. What it had not begun is
// not done, and whoever comes next finds it as it was.
func TestRealCommitIsCut(t *testing.T) {
	ip := witness.Tool(t, "ip")
	cfg := thisHost(t, func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("network namespace: %w", err)
		}
		if out, err := exec.Command(ip, "link", "add", "rail0", "type", "veth", "peer", "name", "rail1").CombinedOutput(); err != nil {
			return fmt.Errorf("ip link add: %w: %s", err, out)
		}
		return nil
	})
	if err := os.MkdirAll(cfg.State, 0o755); err != nil {
		t.Fatal(err)
	}
	unlock, err := journal.Lock(t.Context(), filepath.Join(cfg.State, "settings.lock"), "the test", 0)
	if err != nil {
		t.Fatal(err)
	}
	w := newWire(t, cfg.SSH.Address)
	d := dial(t, through(t, cfg, w))
	before := w.bytes()
	done := make(chan error, 1)
	go func() { done <- d.Commit(t.Context(), "tx1", []render.Change{change("rail0", "1500", "9000")}, 0) }()
	for w.bytes() == before { // until the commit is on its way; the host then waits for the lock
		time.Sleep(time.Millisecond)
	}
	w.cut()
	if err := <-done; err == nil || !strings.HasPrefix(err.Error(), "here: commit: ") {
		t.Errorf("got %v", err)
	}
	for runs(t, cfg.Dir) { // it sees the end of its input while it waits
		time.Sleep(10 * time.Millisecond)
	}
	unlock()
	again := dial(t, cfg)
	if got := text(t, again); !strings.Contains(got, "link rail0 mtu 1500\n") {
		t.Errorf("it went on:\n%s", got)
	}
	if err := again.Commit(t.Context(), "tx2", []render.Change{change("rail0", "1500", "9000")}, 0); err != nil {
		t.Errorf("afterwards: %v", err)
	}
	if got := text(t, again); !strings.Contains(got, "link rail0 mtu 9000\n") {
		t.Errorf("afterwards:\n%s", got)
	}
}

// runs reports whether a program below dir is running.
func runs(t *testing.T, dir string) bool {
	t.Helper()
	procs, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range procs {
		if b, err := os.ReadFile(p); err == nil && strings.HasPrefix(string(b), dir+"/") {
			return true
		}
	}
	return false
}

// An sshd that has too many logins at once closes some. They are tried again, and not for ever.
func TestLoginResets(t *testing.T) {
	_, cfg := emulated(t, host.Options{})
	w := newWire(t, cfg.SSH.Address)
	cfg = through(t, cfg, w)
	var waited []time.Duration
	cfg.Wait = func(_ context.Context, d time.Duration) error { waited = append(waited, d); return nil }
	w.next(2)
	text(t, dial(t, cfg))
	n := w.next(99)
	if n != 3 || len(waited) != 2 || waited[0] > time.Second || waited[1] < waited[0]/2 {
		t.Errorf("%d connections, after %v", n, waited)
	}
	_, err := Dial(t.Context(), cfg)
	if n = w.next(99); !errors.Is(err, ssh.ErrReset) || n != 4 || !strings.HasSuffix(err.Error(), "the server closed the connection during the handshake, 4 times") {
		t.Errorf("%v after %d connections", err, n)
	}
	cfg.Wait = func(context.Context, time.Duration) error { return context.Canceled }
	_, err = Dial(t.Context(), cfg)
	if n = w.next(0); !errors.Is(err, ssh.ErrReset) || n != 1 {
		t.Errorf("who is in a hurry: %v after %d connections", err, n)
	}
}
