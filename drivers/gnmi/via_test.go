package gnmi_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	xssh "golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/fabricctl/fabricctl/drivers/gnmi"
	"github.com/fabricctl/fabricctl/drivers/lab/sonic"
	"github.com/fabricctl/fabricctl/drivers/secret"
	"github.com/fabricctl/fabricctl/drivers/ssh"
)

// jumpHost is an SSH server that forwards TCP connections and does nothing else. What it does not let through is given as
// an address and the reason; cut ends all its connections.
type jumpHost struct {
	addr, knownHosts string
	forwarded        atomic.Int32
	refuse           string
	why              xssh.RejectionReason

	mu   sync.Mutex
	open []net.Conn
}

func (j *jumpHost) cut() {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, c := range j.open {
		_ = c.Close()
	}
}

// config is how to enter it.
func (j *jumpHost) config(name string) ssh.Config {
	return ssh.Config{Name: name, Address: j.addr, User: "jumper", Password: secret.New(canary), KnownHosts: []string{j.knownHosts}}
}

func startJump(t *testing.T) *jumpHost {
	t.Helper()
	_, raw, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key, err := xssh.NewSignerFromKey(raw)
	if err != nil {
		t.Fatal(err)
	}
	server := &xssh.ServerConfig{PasswordCallback: func(_ xssh.ConnMetadata, pw []byte) (*xssh.Permissions, error) {
		if string(pw) != canary {
			return nil, fmt.Errorf("wrong")
		}
		return nil, nil
	}}
	server.AddHostKey(key)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	j := &jumpHost{addr: l.Addr().String()}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			j.mu.Lock()
			j.open = append(j.open, c)
			j.mu.Unlock()
			wg.Go(func() { j.forward(c, server) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		j.cut()
		wg.Wait()
	})
	j.knownHosts = filepath.Join(t.TempDir(), "known_hosts")
	if err := os.WriteFile(j.knownHosts, []byte(knownhosts.Line([]string{knownhosts.Normalize(j.addr)}, key.PublicKey())+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return j
}

func (j *jumpHost) forward(c net.Conn, server *xssh.ServerConfig) {
	defer c.Close()
	_, chans, reqs, err := xssh.NewServerConn(c, server)
	if err != nil {
		return
	}
	go xssh.DiscardRequests(reqs)
	for n := range chans {
		var to struct {
			Host string
			Port uint32
			From string
			P    uint32
		}
		_ = xssh.Unmarshal(n.ExtraData(), &to)
		addr := net.JoinHostPort(to.Host, fmt.Sprint(to.Port))
		if addr == j.refuse {
			_ = n.Reject(j.why, "open failed")
			continue
		}
		out, err := net.Dial("tcp", addr)
		if err != nil {
			_ = n.Reject(xssh.ConnectionFailed, "connection refused")
			continue
		}
		ch, reqs, err := n.Accept()
		if err != nil {
			return
		}
		j.forwarded.Add(1)
		go xssh.DiscardRequests(reqs)
		go func() {
			_, _ = io.Copy(out, ch)
			_ = out.Close()
		}()
		go func() {
			_, _ = io.Copy(ch, out)
			_ = ch.Close()
		}()
	}
}

// gNMI goes through jump hosts, TLS end to end, and hangs up on them when closed. Each error names the hop.
func TestVia(t *testing.T) {
	s := launch(t, sonic.Options{})
	first, second := startJump(t), startJump(t)
	c := config(s)
	c.Via = []ssh.Config{first.config("jump1"), second.config("jump2")}
	d := open(t, c)
	if got := read(t, d).Get("DEVICE_METADATA", "localhost", "hostname"); got != "leaf1" {
		t.Errorf("hostname %q", got)
	}
	if a, b := first.forwarded.Load(), second.forwarded.Load(); a != 1 || b != 1 {
		t.Errorf("the jump hosts forwarded %d and %d connections, want 1 each", a, b)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}

	c.Via[1].KnownHosts = []string{first.knownHosts}
	_, err := gnmi.Dial(patience(t), c)
	says(t, err, ssh.ErrHostUnknown, "leaf1: via jump2: ssh "+second.addr)
	c.Via = c.Via[:1]
	c.Via[0].Password = secret.New("wrong")
	_, err = gnmi.Dial(patience(t), c)
	says(t, err, ssh.ErrAuth, "leaf1: via jump1: ssh "+first.addr, `login refused for user "jumper"`)
	c.Via[0] = first.config("jump1")
	first.refuse, first.why = c.Address, xssh.Prohibited
	_, err = gnmi.Dial(patience(t), c)
	says(t, err, nil, "leaf1: gnmi dial "+c.Address+" via jump1: jump1 does not forward connections there")
	first.refuse = ""
	c.Address = "127.0.0.1:1"
	_, err = gnmi.Dial(patience(t), c)
	says(t, err, nil, "leaf1: gnmi dial 127.0.0.1:1 via jump1: jump1 cannot connect there", "connection refused")
}

// A jump host that dies in the middle ends the call at once, and is named. A wrong certificate behind it is told as
// without it.
func TestViaDies(t *testing.T) {
	s := launch(t, sonic.Options{})
	jump := startJump(t)
	c := config(s)
	c.Via = []ssh.Config{jump.config("jump1")}
	d := open(t, c)
	jump.cut()
	_, err := d.Read(patience(t))
	says(t, err, nil, "leaf1: gnmi get", " via jump1: ")

	c.TLS.ServerName = "another.example"
	_, err = gnmi.Dial(patience(t), c)
	says(t, err, nil, "leaf1: gnmi dial "+c.Address+" via jump1: ", "the certificate is for another name")
}
