package ssh_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	xssh "golang.org/x/crypto/ssh"

	"github.com/fabricctl/fabricctl/drivers/secret"
	"github.com/fabricctl/fabricctl/drivers/ssh"
	"github.com/fabricctl/fabricctl/model/witness"
)

// sshd is the system's OpenSSH server behind a listener of ours: one `sshd -i` per connection, so there is no port to
// guess and no daemon to leave behind.
type sshd struct {
	addr string
	key  xssh.PublicKey // of the host
	stop func()         // waits for every connection's sshd
	mu   sync.Mutex
	log  bytes.Buffer
}

// Write collects what sshd logs.
func (d *sshd) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.log.Write(p)
}

func startSSHD(t *testing.T, client xssh.PublicKey, extra ...string) *sshd {
	t.Helper()
	bin := witness.Tool(t, "sshd")
	if os.Getuid() == 0 { // OpenSSH's empty directory for privilege separation
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
			witness.Missing(t, "sshd needs /run/sshd: "+err.Error())
		}
	}
	key, pem := newKey(t)
	dir := t.TempDir()
	for name, text := range map[string]string{
		"host":       string(pem),
		"authorized": string(xssh.MarshalAuthorizedKey(client)),
		"config": strings.Join(slices.Concat(extra, []string{ // the first line of a keyword counts
			"HostKey " + filepath.Join(dir, "host"),
			"AuthorizedKeysFile " + filepath.Join(dir, "authorized"),
			"StrictModes no", "UsePAM no", "PidFile none", "PermitRootLogin yes", "LogLevel VERBOSE",
			"KbdInteractiveAuthentication no", "Subsystem sftp internal-sftp",
		}), "\n") + "\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command(bin, "-t", "-f", filepath.Join(dir, "config")).CombinedOutput(); err != nil {
		t.Fatalf("sshd refuses the test's configuration: %v\n%s", err, out)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := &sshd{addr: l.Addr().String(), key: key.PublicKey()}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			f, err := c.(*net.TCPConn).File()
			_ = c.Close()
			if err != nil {
				continue
			}
			cmd := exec.Command(bin, "-i", "-e", "-f", filepath.Join(dir, "config"))
			cmd.Stdin, cmd.Stdout, cmd.Stderr = f, f, d
			wg.Go(func() {
				_ = cmd.Run() // ends when the client hangs up
				_ = f.Close()
			})
		}
	})
	d.stop = func() {
		_ = l.Close()
		wg.Wait()
	}
	t.Cleanup(func() {
		d.stop()
		if t.Failed() {
			t.Logf("sshd:\n%s", &d.log)
		}
	})
	return d
}

func TestOpenSSHServer(t *testing.T) {
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	mine, minePEM := newKey(t)
	d := startSSHD(t, mine.PublicKey(), "PasswordAuthentication yes")
	good := ssh.Config{
		Name: "host1", Address: d.addr, User: me.Username, Keys: []ssh.Key{{Path: write(t, "id", string(minePEM))}},
		KnownHosts: knows(t, d.addr, d.key),
	}

	t.Run("commands and files", func(t *testing.T) {
		cl := mustDial(t, good)
		o, err := cl.Run(t.Context(), "cat; echo err >&2; exit 7", strings.NewReader("in"))
		if err != nil || string(o.Stdout) != "in" || string(o.Stderr) != "err\n" || o.Exit != 7 {
			t.Errorf("%+v %v", o, err)
		}
		if o, err = cl.Run(t.Context(), "kill -TERM $$", nil); err != nil || o.Exit != -1 || o.Signal != "TERM" {
			t.Errorf("%+v %v", o, err)
		}
		st, err := cl.Open(t.Context(), ssh.Spec{PTY: true, Command: "tty; stty size"})
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(st.Out)
		if !strings.HasPrefix(string(b), "/dev/") || !strings.Contains(string(b), "24 511") {
			t.Errorf("%q", b)
		}
		f, err := cl.SFTP(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		path := filepath.Join(t.TempDir(), "file")
		w, err := f.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = w.Write([]byte("text")); err != nil {
			t.Fatal(err)
		}
		_ = w.Close()
		if b, err := os.ReadFile(path); err != nil || string(b) != "text" {
			t.Errorf("%q %v", b, err)
		}
	})
	t.Run("host keys", func(t *testing.T) {
		other, _ := newKey(t)
		bad := good
		bad.KnownHosts = knows(t, d.addr, other.PublicKey())
		_, err := ssh.Dial(t.Context(), bad)
		is(t, err, ssh.ErrHostChanged, "host1: ssh "+d.addr+": host key changed", xssh.FingerprintSHA256(d.key), xssh.FingerprintSHA256(other.PublicKey()))
		bad.KnownHosts = knows(t, "10.9.9.9:22", d.key)
		_, err = ssh.Dial(t.Context(), bad)
		is(t, err, ssh.ErrHostUnknown, "host1: ssh "+d.addr+": host key unknown")
	})
	t.Run("login", func(t *testing.T) {
		bad := good
		_, pem := newKey(t)
		bad.Keys = []ssh.Key{{Path: write(t, "id", string(pem))}}
		_, err := ssh.Dial(t.Context(), bad)
		is(t, err, ssh.ErrAuth, `login refused for user "`+me.Username+`"`)
		bad.Keys, bad.Password = nil, secret.New(canary)
		_, err = ssh.Dial(t.Context(), bad)
		is(t, err, ssh.ErrAuth, "password tried once")
		asks := startSSHD(t, mine.PublicKey(), "PasswordAuthentication no", "KbdInteractiveAuthentication yes")
		bad.Address, bad.KnownHosts = asks.addr, knows(t, asks.addr, asks.key)
		_, err = ssh.Dial(t.Context(), bad)
		is(t, err, ssh.ErrAuth, "the server asks this user for no password")
	})
	t.Run("jump", func(t *testing.T) {
		inner := startSSHD(t, mine.PublicKey())
		far := good
		far.Name, far.Address, far.KnownHosts = "host2", inner.addr, knows(t, inner.addr, inner.key)
		hop := good
		hop.Name = "jump1"
		far.Via = []ssh.Config{hop}
		cl := mustDial(t, far)
		o, err := cl.Run(t.Context(), `echo "$SSH_CONNECTION"`, nil)
		if err != nil || !strings.HasSuffix(strings.TrimSpace(string(o.Stdout)), strings.Split(inner.addr, ":")[1]) {
			t.Errorf("%+v %v", o, err)
		}
		far.Via[0].KnownHosts = nil
		_, err = ssh.Dial(t.Context(), far)
		is(t, err, ssh.ErrHostUnknown, "host2: via jump1: ssh "+d.addr)
		far.Via[0].KnownHosts = hop.KnownHosts
		far.KnownHosts = knows(t, inner.addr, d.key)
		_, err = ssh.Dial(t.Context(), far)
		is(t, err, ssh.ErrHostChanged, "host2: ssh "+inner.addr+" via jump1: ")
		far.Address = "127.0.0.1:1"
		_, err = ssh.Dial(t.Context(), far)
		is(t, err, nil, "host2: ssh 127.0.0.1:1 via jump1: jump1 cannot connect there: ", "refused")
	})
	t.Run("chain", func(t *testing.T) {
		second, inner := startSSHD(t, mine.PublicKey()), startSSHD(t, mine.PublicKey())
		at := func(name string, d *sshd) ssh.Config {
			c := good
			c.Name, c.Address, c.KnownHosts = name, d.addr, knows(t, d.addr, d.key)
			return c
		}
		far := at("host2", inner)
		far.Via = []ssh.Config{at("jump1", d), at("jump2", second)}
		if o, err := mustDial(t, far).Run(t.Context(), "echo there", nil); err != nil || string(o.Stdout) != "there\n" {
			t.Errorf("%+v %v", o, err)
		}
		far.Via[1].KnownHosts = nil
		_, err := ssh.Dial(t.Context(), far)
		is(t, err, ssh.ErrHostUnknown, "host2: via jump2: ssh "+second.addr+" via jump1: host key unknown")
	})
	t.Run("no forwarding", func(t *testing.T) {
		strict := startSSHD(t, mine.PublicKey(), "AllowTcpForwarding no")
		far := good
		far.Name = "host2"
		hop := good
		hop.Name, hop.Address, hop.KnownHosts = "jump1", strict.addr, knows(t, strict.addr, strict.key)
		far.Via = []ssh.Config{hop}
		_, err := ssh.Dial(t.Context(), far)
		is(t, err, nil, "host2: ssh "+d.addr+" via jump1: jump1 does not forward connections there (AllowTcpForwarding")
	})
	d.stop()
	if n := strings.Count(d.log.String(), "Failed password"); n != 1 {
		t.Errorf("sshd saw %d passwords, want 1", n)
	}
}

func is(t *testing.T, err, want error, parts ...string) {
	t.Helper()
	if err == nil || want != nil && !errors.Is(err, want) {
		t.Errorf("got %v, want %v", err, want)
		return
	}
	for _, p := range parts {
		if !strings.Contains(fmt.Sprint(err), p) {
			t.Errorf("%q does not say %q", err, p)
		}
	}
}
