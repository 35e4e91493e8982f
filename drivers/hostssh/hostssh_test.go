package hostssh

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	xssh "golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/drivers/lab/host"
	"github.com/fabricctl/fabricctl/drivers/secret"
	"github.com/fabricctl/fabricctl/drivers/ssh"
	"github.com/fabricctl/fabricctl/render"
)

const canary = "hunter2-canary"

// emulated is a host of the lab and how to reach it.
func emulated(t *testing.T, o host.Options) (*host.Host, Config) {
	t.Helper()
	if o.Links == nil {
		o.Links = []host.Link{{Name: "eth0", MTU: 1500, Min: 68, Max: 9978, PCI: "0000:17:00.0"}, {Name: "eth1", MTU: 9000, Min: 68, Max: 9978}}
	}
	if o.Hostname == "" {
		o.Hostname = "gpu-17"
	}
	o.User, o.Password = "ops", canary
	h, err := host.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	addr, err := h.Listen()
	if err != nil {
		t.Fatal(err)
	}
	return h, Config{
		SSH: ssh.Config{Name: "host1", Address: addr, User: "ops", Password: secret.New(canary), KnownHosts: knows(t, addr, h.HostKey())},
		Binary: func(goos, goarch string) (*Binary, error) {
			return NewBinary([]byte("fabricctl-host for " + goos + "/" + goarch)), nil
		},
		Wait: func(context.Context, time.Duration) error { return nil },
	}
}

func knows(t *testing.T, addr string, key xssh.PublicKey) []string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "known_hosts")
	line := knownhosts.Line([]string{knownhosts.Normalize(addr)}, key)
	if err := os.WriteFile(path, []byte(line+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{path}
}

func dial(t *testing.T, cfg Config) drivers.Device {
	t.Helper()
	d, err := Dial(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func text(t *testing.T, d drivers.Reader) string {
	t.Helper()
	c, err := d.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(render.ByOS("linux").Text(c)), "\n\n", "\n")
}

func change(link, from, to string) render.Change {
	return render.Change{Op: render.Modify, Key: render.Key{Scope: "link", Object: link, Field: "mtu"}, Before: &from, After: &to}
}

const seen = "link eth0 mtu 1500\nlink eth1 mtu 9000\nfile /etc/nccl.conf\nNCCL_DEBUG=INFO\nNCCL_IB_TC=106\n"

func TestAgent(t *testing.T) {
	h, cfg := emulated(t, host.Options{Serial: "S1", NCCL: "# theirs\nNCCL_IB_TC=106\nNCCL_DEBUG=INFO\n"})
	d := dial(t, cfg)
	f, caps, err := d.Facts(t.Context())
	if err != nil || f.Hostname != "gpu-17" || f.Serial != "S1" || f.Aliases["0000:17:00.0"] != "eth0" || !caps.PersistsOnCommit || caps.Confirm {
		t.Errorf("facts %+v, %+v, %v", f, caps, err)
	}
	if diff := cmp.Diff(seen, text(t, d)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	cs := []render.Change{
		change("eth0", "1500", "9000"),
		{Op: render.Modify, Key: render.Key{Scope: "nccl", Object: render.NCCLPath, Field: "NCCL_IB_TC"}, Before: new("106"), After: new("104")},
	}
	for range 2 { // the second one writes nothing
		if err := d.Commit(t.Context(), "tx", cs, 0); err != nil {
			t.Fatal(err)
		}
	}
	want := "link eth0 mtu 9000\nlink eth1 mtu 9000\n/etc/nccl.conf:\n# theirs\nNCCL_IB_TC=104\nNCCL_DEBUG=INFO\n"
	if n := h.Counters(); h.Held() != want || n.MTUSets != 1 || n.FileWrites != 1 {
		t.Errorf("the host holds\n%s after %+v", h.Held(), n)
	}
}

func TestStockTools(t *testing.T) {
	_, cfg := emulated(t, host.Options{NCCL: "# theirs\nNCCL_IB_TC=106\nNCCL_DEBUG=INFO\n"})
	withAgent := text(t, dial(t, cfg))
	cfg.Binary = func(_, arch string) (*Binary, error) { return nil, fmt.Errorf("no fabricctl-host for %s here", arch) }
	d := dial(t, cfg)
	if diff := cmp.Diff(withAgent, text(t, d)); diff != "" {
		t.Errorf("stock tools see something else (-agent +stock):\n%s", diff)
	}
	f, caps, err := d.Facts(t.Context())
	want := render.Facts{
		Hostname: "gpu-17", Version: "6.12.0-emulated", Aliases: map[string]string{"0000:17:00.0": "eth0"},
		Notes: []string{"seen with stock tools, read-only: no fabricctl-host for amd64 here"},
		NICs: []render.HostNIC{{
			Name: "eth0", PCI: "0000:17:00.0", Personality: "generic", NUMA: -1, GID: -1, GIDWhy: "the host's own tools are not asked for it", QPs: -1,
			Link: render.HostLink{Up: true},
		}},
	}
	if diff := cmp.Diff(want, f); diff != "" || caps != (drivers.Caps{Counters: true, ReadOnly: "no fabricctl-host for amd64 here"}) || err != nil {
		t.Errorf("%v, caps %+v (-want +got):\n%s", err, caps, diff)
	}
	err = d.Commit(t.Context(), "tx", []render.Change{change("eth0", "1500", "9000")}, 0)
	if !errors.Is(err, drivers.ErrReadOnly) || err.Error() != "host1: read-only: no write is possible: no fabricctl-host for amd64 here" {
		t.Errorf("got %v", err)
	}
}

func TestStockToolsWithoutAFile(t *testing.T) {
	_, cfg := emulated(t, host.Options{Machine: "riscv64"})
	cfg.Binary = nil
	if got := text(t, dial(t, cfg)); got != "link eth0 mtu 1500\nlink eth1 mtu 9000\n" {
		t.Errorf("got %q", got)
	}
}

func TestAliases(t *testing.T) {
	got := aliases([]link{
		{Name: "lo"},
		{Name: "br0"},
		{Name: "eth0", ParentBus: "pci", Parent: "0000:17:00.0", Port: "p0"},
		{Name: "eth0vf0", ParentBus: "pci", Parent: "0000:17:00.0", Port: "pf0vf0"},
		{Name: "ens3", ParentBus: "virtio", Parent: "virtio2"},
		{Name: "a", ParentBus: "pci", Parent: "0000:18:00.0"},
		{Name: "b", ParentBus: "pci", Parent: "0000:18:00.0"},
		{Name: "c", ParentBus: "pci", Parent: "0000:18:00.0"},
	})
	if diff := cmp.Diff(map[string]string{"0000:17:00.0": "eth0"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The binary is pushed once per digest, and checked each time.
func TestPush(t *testing.T) {
	h, cfg := emulated(t, host.Options{})
	var asked []string
	bin := []byte("one")
	cfg.Binary = func(goos, goarch string) (*Binary, error) {
		asked = append(asked, goos+"/"+goarch)
		return NewBinary(bin), nil
	}
	for range 3 {
		dial(t, cfg).Close()
	}
	if n := h.Counters().Uploads; n != 1 {
		t.Errorf("%d uploads of one binary", n)
	}
	bin = []byte("two")
	dial(t, cfg).Close()
	if n := h.Counters().Uploads; n != 2 {
		t.Errorf("%d uploads of two binaries", n)
	}
	if diff := cmp.Diff([]string{"linux/amd64", "linux/amd64", "linux/amd64", "linux/amd64"}, asked); diff != "" {
		t.Error(diff)
	}
	want := map[string]string{}
	for _, b := range []string{"one", "two"} {
		want[fmt.Sprintf("fabricctl-host-%x", sha256.Sum256([]byte(b)))] = b + " -rwx------"
	}
	if diff := cmp.Diff(want, cached(t, cfg)); diff != "" {
		t.Errorf("in the cache (-want +got):\n%s", diff)
	}
}

// files opens an sftp session of our own on the host.
func files(t *testing.T, cfg Config, f func(p pusher)) {
	t.Helper()
	c, err := ssh.Dial(t.Context(), cfg.SSH)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s, err := c.SFTP(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	f(pusher{conn: &conn{name: "host1", client: c}, files: s, uid: uint32(os.Getuid())})
}

func cached(t *testing.T, cfg Config) map[string]string {
	t.Helper()
	got := map[string]string{}
	files(t, cfg, func(p pusher) {
		es, err := p.files.ReadDir(DefaultDir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range es {
			f, err := p.files.Open(DefaultDir + "/" + e.Name())
			if err != nil {
				t.Fatal(err)
			}
			var b strings.Builder
			f.WriteTo(&b)
			f.Close()
			got[e.Name()] = b.String() + " " + e.Mode().String()
		}
	})
	return got
}

func TestUntrustedCache(t *testing.T) {
	name := DefaultDir + "/fabricctl-host-" + fmt.Sprintf("%x", sha256.Sum256([]byte("bin")))
	write := func(p pusher, to, what string) error {
		f, err := p.files.Create(to)
		if err != nil {
			return err
		}
		_, err = f.Write([]byte(what))
		return errors.Join(err, f.Close(), p.files.Chmod(to, 0o700))
	}
	for _, tt := range []struct {
		name string
		make func(p pusher) error
		want string
	}{
		{"open directory", func(p pusher) error { return p.files.Chmod(DefaultDir, 0o755) }, "has mode 0755: chmod 700 /home/ops/.cache/fabricctl"},
		{"writable parent", func(p pusher) error { return p.files.Chmod(".cache", 0o777) }, "/home/ops/.cache can be written by others (mode 0777)"},
		{"damaged binary", func(p pusher) error { return write(p, name, "bon") }, "not the one in its name"},
		{"a link in its place", func(p pusher) error {
			return errors.Join(write(p, "real", "bin"), p.files.Symlink("/home/ops/real", name))
		}, "is not a file of user"},
		{"a file in place of the directory", func(p pusher) error {
			return errors.Join(p.files.RemoveDirectory(DefaultDir), write(p, DefaultDir, "x"))
		}, "is not a directory"},
		{"another owner", func(p pusher) error {
			p.uid++
			_, err := p.directory("/home/ops/" + DefaultDir)
			if err == nil || !strings.Contains(err.Error(), "belongs to another user") {
				return fmt.Errorf("got %v", err)
			}
			return p.files.Chmod(DefaultDir, 0o755)
		}, "has mode 0755"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h, cfg := emulated(t, host.Options{})
			cfg.Binary = func(string, string) (*Binary, error) { return NewBinary([]byte("bin")), nil }
			files(t, cfg, func(p pusher) {
				if err := errors.Join(p.mkdir("/home/ops/"+DefaultDir), tt.make(p)); err != nil {
					t.Fatal(err)
				}
			})
			before := h.Counters().Uploads
			d, err := Dial(t.Context(), cfg)
			if err == nil {
				d.Close()
			}
			if err == nil || !strings.HasPrefix(err.Error(), "host1: push fabricctl-host: ") || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if n := h.Counters().Uploads; n != before {
				t.Errorf("%d uploads", n-before)
			}
		})
	}
}

func TestSudo(t *testing.T) {
	_, cfg := emulated(t, host.Options{})
	cfg.Sudo = true
	text(t, dial(t, cfg))
	_, cfg = emulated(t, host.Options{NoSudo: true})
	cfg.Sudo = true
	if _, err := Dial(t.Context(), cfg); err == nil || err.Error() != "host1: hello: it ended without a hello: sudo: a password is required" {
		t.Errorf("got %v", err)
	}
}

// What a shell's start-up files print is passed over, with the agent and without it.
func TestTalkativeShell(t *testing.T) {
	for _, motd := range []string{"Welcome!\n", "no end of line", "Linux riscv64\n0\n{\"hello\":\"world\"}\n"} {
		_, cfg := emulated(t, host.Options{MOTD: motd})
		const want = "link eth0 mtu 1500\nlink eth1 mtu 9000\n"
		if got := text(t, dial(t, cfg)); got != want {
			t.Errorf("%q: %s", motd, got)
		}
		cfg.Binary = nil
		if got := text(t, dial(t, cfg)); got != want {
			t.Errorf("%q, stock tools: %s", motd, got)
		}
	}
}

func TestWrongPasswordIsTriedOnce(t *testing.T) {
	h, cfg := emulated(t, host.Options{})
	cfg.SSH.Password = secret.New("wrong-" + canary)
	_, err := Dial(t.Context(), cfg)
	if n := h.Counters(); !errors.Is(err, ssh.ErrAuth) || n.Passwords != 1 || n.Refused != 1 || strings.Contains(err.Error(), canary) {
		t.Errorf("got %v after %+v", err, n)
	}
}

// A cancelled Dial comes back, whatever answer it waits for.
func TestDialEnds(t *testing.T) {
	stall := host.Faults{Delay: time.Hour}
	for _, tt := range []struct {
		name     string
		commands int // how many the host has seen when the context ends
		setup    func(*host.Host, *Config)
	}{
		{"uname", 1, func(h *host.Host, _ *Config) { h.SetFaults(stall) }},
		{"id", 1, func(h *host.Host, c *Config) {
			c.Binary = func(string, string) (*Binary, error) { h.SetFaults(stall); return NewBinary([]byte("x")), nil }
		}},
		{"sftp", 1, func(h *host.Host, c *Config) {}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h, cfg := emulated(t, host.Options{})
			tt.setup(h, &cfg)
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				defer cancel()
				for h.Counters().Commands < tt.commands && t.Context().Err() == nil {
					runtime.Gosched()
				}
			}()
			d, err := Dial(ctx, cfg)
			if err == nil { // it was faster than the end of the context
				d.Close()
				return
			}
			if !errors.Is(err, context.Canceled) || !strings.HasPrefix(err.Error(), "host1: ") {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestQuote(t *testing.T) {
	for s, want := range map[string]string{
		"/home/ops/x": "'/home/ops/x'", "o'brien": `'o'\''brien'`, "$(reboot) `x`;\n": "'$(reboot) `x`;\n'", "": "''",
	} {
		if got := quote(s); got != want {
			t.Errorf("quote(%q) is %s, want %s", s, got, want)
		}
	}
}

func TestOneLine(t *testing.T) {
	if got := oneLine([]byte("\x1b[2J a\nb\xff\r\n")); got != "[2J a b?" {
		t.Errorf("got %q", got)
	}
	if got := oneLine([]byte(strings.Repeat("é", 1000))); len(got) > 310 {
		t.Errorf("%d bytes", len(got))
	}
}
