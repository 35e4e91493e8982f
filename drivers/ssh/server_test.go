package ssh_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	xssh "golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// server is a small SSH server in the process. What a test needs to misbehave is a field.
type server struct {
	t        *testing.T
	addr     string
	key      xssh.Signer
	second   xssh.Signer // another host key, of another type
	password string
	askTwice string // a second keyboard-interactive question
	kbd      bool   // offer keyboard-interactive, else password
	both     bool   // offer both
	user     xssh.PublicKey
	silent   bool        // accept TCP and say nothing
	asked    chan string // the first request outside of sessions, when not nil
	deaf     bool        // execute nothing, answer no request after login

	attempts atomic.Int32 // passwords seen, by either method
	logins   atomic.Int32
	conns    sync.WaitGroup
}

func newKey(t *testing.T) (xssh.Signer, []byte) {
	t.Helper()
	_, k, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	s, err := xssh.NewSignerFromKey(k)
	if err != nil {
		t.Fatal(err)
	}
	block, err := xssh.MarshalPrivateKey(k, "")
	if err != nil {
		t.Fatal(err)
	}
	return s, pem.EncodeToMemory(block)
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// knows is a known_hosts file with key for addr.
func knows(t *testing.T, addr string, keys ...xssh.PublicKey) []string {
	var b strings.Builder
	for _, k := range keys {
		fmt.Fprintln(&b, knownhosts.Line([]string{knownhosts.Normalize(addr)}, k))
	}
	return []string{write(t, "known_hosts", b.String())}
}

func (s *server) start(t *testing.T) *server {
	t.Helper()
	s.t = t
	if s.key == nil {
		s.key, _ = newKey(t)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.addr = l.Addr().String()
	var mu sync.Mutex
	var open []net.Conn
	s.conns.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open = append(open, c)
			mu.Unlock()
			s.conns.Go(func() { s.serve(c) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		mu.Lock()
		for _, c := range open {
			_ = c.Close()
		}
		mu.Unlock()
		s.conns.Wait()
	})
	return s
}

func (s *server) config() *xssh.ServerConfig {
	check := func(pw string) (*xssh.Permissions, error) {
		s.attempts.Add(1)
		if pw != s.password {
			return nil, fmt.Errorf("wrong")
		}
		return nil, nil
	}
	c := &xssh.ServerConfig{}
	c.AddHostKey(s.key)
	if s.second != nil {
		c.AddHostKey(s.second)
	}
	if s.kbd || s.both {
		c.KeyboardInteractiveCallback = func(_ xssh.ConnMetadata, ask xssh.KeyboardInteractiveChallenge) (*xssh.Permissions, error) {
			a, err := ask("", "", []string{"Password: "}, []bool{false})
			if err != nil {
				return nil, err
			}
			if s.askTwice != "" {
				if _, err := ask("", "", []string{s.askTwice}, []bool{false}); err != nil {
					return nil, err
				}
			}
			return check(a[0])
		}
	}
	if !s.kbd {
		c.PasswordCallback = func(_ xssh.ConnMetadata, pw []byte) (*xssh.Permissions, error) { return check(string(pw)) }
	}
	if s.user != nil {
		c.PublicKeyCallback = func(_ xssh.ConnMetadata, k xssh.PublicKey) (*xssh.Permissions, error) {
			if string(k.Marshal()) != string(s.user.Marshal()) {
				return nil, fmt.Errorf("unknown key")
			}
			return nil, nil
		}
	}
	return c
}

func (s *server) serve(c net.Conn) {
	defer c.Close()
	if s.silent {
		_, _ = io.Copy(io.Discard, c)
		return
	}
	conn, chans, reqs, err := xssh.NewServerConn(c, s.config())
	if err != nil {
		return
	}
	s.logins.Add(1)
	if s.deaf {
		for range chans {
		}
		_ = conn.Wait()
		return
	}
	go func() {
		for r := range reqs {
			select {
			case s.asked <- r.Type:
			default:
			}
			_ = r.Reply(false, nil)
		}
	}()
	for n := range chans {
		ch, reqs, err := n.Accept()
		if err != nil {
			return
		}
		go session(ch, reqs)
	}
}

// session echoes: "cat" copies stdin, "exit N" ends with N, "hang" never ends, a shell greets and copies.
func session(ch xssh.Channel, reqs <-chan *xssh.Request) {
	end := func(status uint32) {
		_, _ = ch.SendRequest("exit-status", false, xssh.Marshal(struct{ S uint32 }{status}))
		_ = ch.Close()
	}
	var pty string
	for r := range reqs {
		_ = r.Reply(true, nil)
		var p struct{ Command string }
		switch r.Type {
		case "pty-req":
			var q struct {
				Term             string
				Cols, Rows, W, H uint32
				Modes            string
			}
			_ = xssh.Unmarshal(r.Payload, &q)
			pty = fmt.Sprintf("%s %dx%d", q.Term, q.Rows, q.Cols)
		case "shell":
			go func() {
				fmt.Fprintf(ch, "hello on %s\n", pty)
				_, _ = io.Copy(ch, ch)
				end(0)
			}()
		case "exec":
			_ = xssh.Unmarshal(r.Payload, &p)
			go func() {
				var n uint32
				switch {
				case p.Command == "cat":
					_, _ = io.Copy(ch, ch)
					end(0)
				case p.Command == "signal":
					_, _ = ch.SendRequest("exit-signal", false, xssh.Marshal(struct {
						Signal string
						Core   bool
						A, B   string
					}{"TERM", false, "", ""}))
					_ = ch.Close()
				case p.Command == "vanish":
					_ = ch.Close()
				case p.Command == "flood":
					for b := make([]byte, 1<<20); ; {
						if n += 1 << 20; n > 66<<20 {
							break
						}
						_, _ = ch.Write(b)
					}
					end(0)
				case p.Command == "hang":
				default:
					_, _ = fmt.Sscanf(p.Command, "exit %d", &n)
					fmt.Fprint(ch, "out")
					fmt.Fprint(ch.Stderr(), "err")
					end(n)
				}
			}()
		}
	}
}
