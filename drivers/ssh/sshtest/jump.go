// Package sshtest is a jump host for tests: an SSH server on a loopback port that forwards TCP connections and does
// nothing else. Who may enter is the caller's to say.
package sshtest

import (
	"crypto/ed25519"
	"crypto/rand"
	"io"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	xssh "golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// Jump is a running jump host. It ends with its test.
type Jump struct {
	Addr      string       // host:port
	KnownHost string       // its line of a known_hosts file, line end included
	Forwarded atomic.Int32 // how many connections it has made

	mu     sync.Mutex
	open   []net.Conn // those that it has accepted
	closed string     // the address that it does not let through
	why    xssh.RejectionReason
}

// Start starts a jump host. server says who may enter, and gets a host key.
func Start(t testing.TB, server *xssh.ServerConfig) *Jump {
	t.Helper()
	_, raw, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key, err := xssh.NewSignerFromKey(raw)
	if err != nil {
		t.Fatal(err)
	}
	server.AddHostKey(key)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	j := &Jump{Addr: l.Addr().String()}
	j.KnownHost = knownhosts.Line([]string{knownhosts.Normalize(j.Addr)}, key.PublicKey()) + "\n"
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
			wg.Go(func() { j.serve(c, server) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		j.Cut()
		wg.Wait()
	})
	return j
}

// Refuse makes it refuse to connect to an address, "" for none, for a reason.
func (j *Jump) Refuse(addr string, why xssh.RejectionReason) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.closed, j.why = addr, why
}

// Cut ends all its connections.
func (j *Jump) Cut() {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, c := range j.open {
		_ = c.Close()
	}
}

// serve forwards for one client until it hangs up.
func (j *Jump) serve(c net.Conn, server *xssh.ServerConfig) {
	defer c.Close()
	_, chans, reqs, err := xssh.NewServerConn(c, server)
	if err != nil {
		return
	}
	go xssh.DiscardRequests(reqs)
	for n := range chans {
		j.forward(n)
	}
}

// forward makes one connection, as RFC 4254 section 7.2 asks for it.
func (j *Jump) forward(n xssh.NewChannel) {
	var to struct {
		Host string
		Port uint32
		From string
		P    uint32
	}
	_ = xssh.Unmarshal(n.ExtraData(), &to)
	addr := net.JoinHostPort(to.Host, strconv.Itoa(int(to.Port)))
	j.mu.Lock()
	closed, why := j.closed, j.why
	j.mu.Unlock()
	if addr == closed {
		_ = n.Reject(why, "open failed")
		return
	}
	out, err := net.Dial("tcp", addr)
	if err != nil {
		_ = n.Reject(xssh.ConnectionFailed, "connection refused")
		return
	}
	ch, reqs, err := n.Accept()
	if err != nil {
		_ = out.Close()
		return
	}
	j.Forwarded.Add(1)
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
