package conform

import (
	"net"
	"sync"
	"testing"
)

// Proxy is a TCP relay in front of an emulator. It counts the bytes that pass and can cut all connections at any of
// them, without the emulator's help. Its methods are safe for concurrent use.
type Proxy struct {
	ln     net.Listener
	target string
	wg     sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]bool
	bytes int64
	left  int64 // until the cut; negative = none
}

// NewProxy listens on a free loopback port and relays to target until the test ends.
func NewProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{ln: ln, target: target, left: -1, conns: map[net.Conn]bool{}}
	p.wg.Go(p.accept)
	t.Cleanup(func() {
		_ = ln.Close()
		p.cut()
		p.wg.Wait()
	})
	return p
}

// Addr is where to connect instead of the emulator.
func (p *Proxy) Addr() string { return p.ln.Addr().String() }

// Bytes is how many bytes were relayed in both directions since the start.
func (p *Proxy) Bytes() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.bytes
}

// DropAfter cuts all connections, once, when n more bytes have passed; negative disarms it.
func (p *Proxy) DropAfter(n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left = n
}

func (p *Proxy) accept() {
	for {
		client, err := p.ln.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.target)
		if err != nil {
			_ = client.Close()
			continue
		}
		p.mu.Lock()
		p.conns[client], p.conns[server] = true, true
		p.mu.Unlock()
		p.wg.Go(func() { p.relay(server, client) })
		p.wg.Go(func() { p.relay(client, server) })
	}
}

// relay copies one direction; when it ends, both do.
func (p *Proxy) relay(to, from net.Conn) {
	defer func() {
		p.mu.Lock()
		delete(p.conns, to)
		delete(p.conns, from)
		p.mu.Unlock()
		_, _ = to.Close(), from.Close()
	}()
	b := make([]byte, 16<<10)
	for {
		n, err := from.Read(b)
		n, last := p.pass(n)
		if _, werr := to.Write(b[:n]); werr != nil || last {
			if last {
				p.cut()
			}
			return
		}
		if err != nil {
			return
		}
	}
}

// pass counts n bytes and says how many of them may go on, and whether the cut comes after them.
func (p *Proxy) pass(n int) (int, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := p.left >= 0 && int64(n) >= p.left
	if last {
		n, p.left = int(p.left), -1
	} else if p.left >= 0 {
		p.left -= int64(n)
	}
	p.bytes += int64(n)
	return n, last
}

func (p *Proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.Close()
	}
}
