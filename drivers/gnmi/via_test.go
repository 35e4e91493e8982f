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

// jumpHost is an SSH server that forwards TCP connections and does nothing else.
func jumpHost(t *testing.T) (addr, knownHosts string, forwarded *atomic.Int32) {
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
	forwarded = new(atomic.Int32)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { forward(c, server, forwarded) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		wg.Wait()
	})
	addr = l.Addr().String()
	knownHosts = filepath.Join(t.TempDir(), "known_hosts")
	if err := os.WriteFile(knownHosts, []byte(knownhosts.Line([]string{knownhosts.Normalize(addr)}, key.PublicKey())+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return addr, knownHosts, forwarded
}

func forward(c net.Conn, server *xssh.ServerConfig, forwarded *atomic.Int32) {
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
		out, err := net.Dial("tcp", net.JoinHostPort(to.Host, fmt.Sprint(to.Port)))
		if err != nil {
			_ = n.Reject(xssh.ConnectionFailed, "connection refused")
			continue
		}
		ch, reqs, err := n.Accept()
		if err != nil {
			return
		}
		forwarded.Add(1)
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

// gNMI goes through jump hosts, TLS end to end, and hangs up on them when closed.
func TestVia(t *testing.T) {
	s := launch(t, sonic.Options{})
	first, firstKnown, firstForwarded := jumpHost(t)
	second, secondKnown, secondForwarded := jumpHost(t)
	hop := func(name, addr, known string) ssh.Config {
		return ssh.Config{Name: name, Address: addr, User: "jumper", Password: secret.New(canary), KnownHosts: []string{known}}
	}
	c := config(s)
	c.Via = []ssh.Config{hop("jump1", first, firstKnown), hop("jump2", second, secondKnown)}
	d := open(t, c)
	if got := read(t, d).Get("DEVICE_METADATA", "localhost", "hostname"); got != "leaf1" {
		t.Errorf("hostname %q", got)
	}
	if a, b := firstForwarded.Load(), secondForwarded.Load(); a != 1 || b != 1 {
		t.Errorf("the jump hosts forwarded %d and %d connections, want 1 each", a, b)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}

	c.Via[1].KnownHosts = []string{firstKnown}
	_, err := gnmi.Dial(patience(t), c)
	says(t, err, ssh.ErrHostUnknown, "leaf1: via jump2: ssh "+second)
	c.Via = c.Via[:1]
	c.Address = "127.0.0.1:1"
	_, err = gnmi.Dial(patience(t), c)
	says(t, err, nil, "leaf1: gnmi dial 127.0.0.1:1", "connection refused")
}
