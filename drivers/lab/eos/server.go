package eos

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"
)

// Listen starts the SSH server on a free port of 127.0.0.1 and returns its address.
func (s *Switch) Listen() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("emulated %s: %w", s.opt.Hostname, err)
	}
	s.mu.Lock()
	s.listener = l
	s.mu.Unlock()
	s.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.wg.Go(func() { s.serve(c) })
		}
	})
	return l.Addr().String(), nil
}

// Addr is where it listens, host:port; "" before Listen.
func (s *Switch) Addr() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener == nil {
		return ""
	}
	return s.listener.Addr().String()
}

// Close stops the server, cuts its connections and waits for them.
func (s *Switch) Close() error {
	s.mu.Lock()
	l := s.listener
	s.mu.Unlock()
	var err error
	if l != nil {
		err = l.Close()
	}
	s.Disconnect()
	s.wg.Wait()
	return err
}

func (s *Switch) serverConfig() *ssh.ServerConfig {
	cfg := &ssh.ServerConfig{MaxAuthTries: s.opt.MaxAuthTries}
	if s.opt.Password != "" {
		cfg.PasswordCallback = func(m ssh.ConnMetadata, p []byte) (*ssh.Permissions, error) {
			if m.User() == s.opt.User && string(p) == s.opt.Password {
				return nil, nil
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			s.counters.AuthFailures++
			return nil, errors.New("denied")
		}
	}
	if len(s.opt.AuthorizedKeys) > 0 {
		cfg.PublicKeyCallback = func(m ssh.ConnMetadata, k ssh.PublicKey) (*ssh.Permissions, error) {
			for _, a := range s.opt.AuthorizedKeys {
				if m.User() == s.opt.User && bytes.Equal(a.Marshal(), k.Marshal()) {
					return nil, nil
				}
			}
			return nil, errors.New("denied")
		}
	}
	if s.opt.Banner != "" {
		cfg.BannerCallback = func(ssh.ConnMetadata) string { return s.opt.Banner }
	}
	cfg.AddHostKey(s.opt.HostKey)
	return cfg
}

// serve runs one connection to its end.
func (s *Switch) serve(raw net.Conn) {
	c := &meteredConn{Conn: raw, sw: s}
	s.mu.Lock()
	s.conns[c] = true
	s.counters.Connections++
	s.mu.Unlock()
	defer func() {
		c.Close()
		s.mu.Lock()
		delete(s.conns, c)
		s.mu.Unlock()
	}()
	conn, channels, requests, err := ssh.NewServerConn(c, s.serverConfig())
	if err != nil {
		return
	}
	defer conn.Close()
	s.wg.Go(func() { ssh.DiscardRequests(requests) })
	gone := make(chan struct{}) // closed when the connection has ended
	s.wg.Go(func() { conn.Wait(); close(gone) })
	for nc := range channels {
		if nc.ChannelType() != "session" {
			nc.Reject(ssh.UnknownChannelType, "only sessions are served")
			continue
		}
		ch, reqs, err := nc.Accept()
		if err != nil {
			return
		}
		s.wg.Go(func() { s.channel(conn, gone, ch, reqs) })
	}
}

// channel serves one SSH session: a shell, or one command.
func (s *Switch) channel(conn ssh.Conn, gone <-chan struct{}, ch ssh.Channel, reqs <-chan *ssh.Request) {
	defer ch.Close()
	t := &terminal{sw: s, conn: conn, gone: gone, ch: ch}
	s.mu.Lock()
	s.ttys++
	t.sh = &shell{sw: s, tty: fmt.Sprintf("vty%d", s.ttys), enabled: s.opt.Privileged}
	s.mu.Unlock()
	for r := range reqs {
		switch r.Type {
		case "pty-req":
			t.pty = true
			t.sh.cols, t.sh.rows = ptySize(r.Payload)
			r.Reply(true, nil)
		case "env":
			r.Reply(true, nil)
		case "shell", "exec":
			r.Reply(true, nil)
			s.wg.Go(func() {
				for r := range reqs { // window changes and the like
					r.Reply(false, nil)
				}
			})
			if r.Type == "shell" {
				t.interact()
				t.exit(0)
				return
			}
			t.exit(t.run(r.Payload))
			return
		default:
			r.Reply(false, nil)
		}
	}
}

// ptySize reads columns and rows of a pty-req: a string, then two 32-bit numbers.
func ptySize(b []byte) (cols, rows int) {
	var p struct {
		Term       string
		Cols, Rows uint32
		Rest       []byte `ssh:"rest"`
	}
	if ssh.Unmarshal(b, &p) != nil || p.Cols > 1<<20 || p.Rows > 1<<20 {
		return 80, 24
	}
	return int(p.Cols), int(p.Rows)
}

// run is an exec request: lines separated by newlines, the first refused one ends it with status 1.
func (t *terminal) run(payload []byte) uint32 {
	var p struct{ Command string }
	if ssh.Unmarshal(payload, &p) != nil {
		return 1
	}
	t.pty, t.sh.rows = false, 0
	for l := range strings.SplitSeq(p.Command, "\n") {
		out, ok := t.execute(l)
		if !ok {
			return 1
		}
		t.write(out)
		if strings.HasPrefix(out, "% ") {
			return 1
		}
	}
	return 0
}

func (t *terminal) exit(status uint32) {
	t.ch.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{status}))
}

// meteredConn counts the bytes of a connection, both ways, and cuts it where the faults say.
type meteredConn struct {
	net.Conn
	sw *Switch
	mu sync.Mutex
	n  int
}

func (c *meteredConn) allow(want int) (int, bool) {
	limit := c.sw.currentFaults().DropAfter
	c.mu.Lock()
	defer c.mu.Unlock()
	if limit > 0 && c.n+want >= limit {
		want = max(0, limit-c.n)
		c.n = limit
		return want, false
	}
	c.n += want
	return want, true
}

func (c *meteredConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if _, ok := c.allow(n); !ok {
		c.Close()
		return 0, io.ErrClosedPipe
	}
	return n, err
}

func (c *meteredConn) Write(b []byte) (int, error) {
	n, ok := c.allow(len(b))
	if !ok {
		c.Conn.Write(b[:n])
		c.Close()
		return n, io.ErrClosedPipe
	}
	return c.Conn.Write(b)
}
