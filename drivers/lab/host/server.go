package host

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"
)

// Listen starts the SSH server on a free port of 127.0.0.1 and returns its address.
func (h *Host) Listen() (string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.listen("127.0.0.1:0"); err != nil {
		return "", err
	}
	h.addr = h.listener.Addr().String()
	return h.addr, nil
}

// Addr is where it listens, host:port.
func (h *Host) Addr() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.addr
}

// listen takes connections at addr. The host's lock is held.
func (h *Host) listen(addr string) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("emulated %s: %w", h.opt.Hostname, err)
	}
	h.listener = l
	h.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			h.wg.Go(func() { h.serve(c) })
		}
	})
	return nil
}

func (h *Host) serverConfig() *ssh.ServerConfig {
	cfg := &ssh.ServerConfig{MaxAuthTries: h.opt.MaxAuthTries}
	denied := errors.New("denied")
	if h.opt.Password != "" {
		cfg.PasswordCallback = func(m ssh.ConnMetadata, p []byte) (*ssh.Permissions, error) {
			ok := m.User() == h.opt.User && string(p) == h.opt.Password
			h.count(func(c *Counters) {
				c.Passwords++
				if !ok {
					c.Refused++
				}
			})
			if !ok {
				return nil, denied
			}
			return nil, nil
		}
	}
	if len(h.opt.AuthorizedKeys) > 0 {
		cfg.PublicKeyCallback = func(m ssh.ConnMetadata, k ssh.PublicKey) (*ssh.Permissions, error) {
			for _, a := range h.opt.AuthorizedKeys {
				if m.User() == h.opt.User && bytes.Equal(a.Marshal(), k.Marshal()) {
					return nil, nil
				}
			}
			return nil, denied
		}
	}
	cfg.AddHostKey(h.opt.HostKey)
	return cfg
}

// serve runs one connection to its end.
func (h *Host) serve(raw net.Conn) {
	h.mu.Lock()
	h.conns[raw] = true
	h.counters.Connections++
	if h.lost { // it was accepted at the last moment
		_ = raw.Close()
	}
	h.mu.Unlock()
	gone := make(chan struct{})
	defer func() {
		_ = raw.Close()
		close(gone)
		h.mu.Lock()
		delete(h.conns, raw)
		h.mu.Unlock()
	}()
	conn, chans, reqs, err := ssh.NewServerConn(&metered{Conn: raw, limit: func() int { return h.currentFaults().DropAfter }}, h.serverConfig())
	if err != nil {
		return
	}
	ended := make(chan struct{})
	h.wg.Go(func() { ssh.DiscardRequests(reqs) })
	h.wg.Go(func() { _ = conn.Wait(); close(ended) })
	for n := range chans {
		if n.ChannelType() != "session" {
			_ = n.Reject(ssh.UnknownChannelType, "only sessions")
			continue
		}
		ch, reqs, err := n.Accept()
		if err != nil {
			return
		}
		h.wg.Go(func() { h.session(ch, reqs, ended) })
	}
}

// session waits for what to run, and runs it.
func (h *Host) session(ch ssh.Channel, reqs <-chan *ssh.Request, gone <-chan struct{}) {
	defer ch.Close()
	for r := range reqs {
		var payload struct{ Text string }
		switch r.Type {
		case "exec", "subsystem":
			if ssh.Unmarshal(r.Payload, &payload) != nil || r.Type == "subsystem" && payload.Text != "sftp" {
				_ = r.Reply(false, nil)
				continue
			}
		case "env", "pty-req":
			_ = r.Reply(true, nil)
			continue
		case "shell":
			_ = r.Reply(true, nil)
			_, _ = io.WriteString(ch.Stderr(), "this host is emulated and has no interactive shell: give a command\r\n")
			exit(ch, 1)
			return
		default:
			_ = r.Reply(false, nil)
			continue
		}
		_ = r.Reply(true, nil)
		h.wg.Go(func() { ssh.DiscardRequests(reqs) })
		if r.Type == "subsystem" {
			s := sftp.NewRequestServer(ch, h.handlers(), sftp.WithStartDirectory(h.home()))
			_ = s.Serve()
			exit(ch, 0)
			return
		}
		h.count(func(c *Counters) { c.Commands++ })
		exit(ch, h.run(payload.Text, ch, gone))
		return
	}
}

// exit says how a program ended: its status, or the signal that ended it.
func exit(ch ssh.Channel, status int) {
	if status >= killed {
		for name, number := range signals() {
			if number == status-killed {
				_, _ = ch.SendRequest("exit-signal", false, ssh.Marshal(struct {
					Signal      string
					Core        bool
					Error, Lang string
				}{Signal: name}))
			}
		}
		return
	}
	_, _ = ch.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{uint32(status)}))
}

// metered cuts a connection after so many bytes, both directions counted.
type metered struct {
	net.Conn
	limit func() int // 0 = none

	mu   sync.Mutex
	seen int
}

// pass is how many of n bytes may still pass, and whether that was the last.
func (m *metered) pass(n int) (int, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	limit := m.limit()
	if limit == 0 || m.seen+n < limit {
		m.seen += n
		return n, false
	}
	n = max(limit-m.seen, 0)
	m.seen = limit
	return n, true
}

func (m *metered) Read(b []byte) (int, error) {
	n, err := m.Conn.Read(b)
	if n, last := m.pass(n); last {
		_ = m.Close()
		return n, io.EOF
	}
	return n, err
}

func (m *metered) Write(b []byte) (int, error) {
	n, last := m.pass(len(b))
	n, err := m.Conn.Write(b[:n])
	if last {
		_ = m.Close()
		err = io.ErrClosedPipe
	}
	return n, err
}
