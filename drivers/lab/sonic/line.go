package sonic

import (
	"net"
	"sync"
)

// line is a listener that counts what passes, and can cut all its connections.
type line struct {
	net.Listener
	mu    sync.Mutex
	conns map[*conn]bool
	dials int
	bytes int64
	left  int64 // until the cut; 0 = none
}

func newLine(l net.Listener) *line { return &line{Listener: l, conns: map[*conn]bool{}} }

// Accept waits for the next connection.
func (l *line) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	x := &conn{Conn: c, line: l}
	l.mu.Lock()
	l.dials++
	l.conns[x] = true
	l.mu.Unlock()
	return x, nil
}

func (l *line) counts() (dials, open int, bytes int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dials, len(l.conns), l.bytes
}

func (l *line) dropAfter(n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.left = n
}

func (l *line) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.conns {
		_ = c.Conn.Close()
	}
}

// pass counts n bytes and says how many of them go through, and whether the cut comes after them.
func (l *line) pass(n int) (int, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	last := l.left > 0 && int64(n) >= l.left
	if last {
		n, l.left = int(l.left), 0
	} else if l.left > 0 {
		l.left -= int64(n)
	}
	l.bytes += int64(n)
	return n, last
}

type conn struct {
	net.Conn
	line *line
}

// Read counts what comes in.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	n, last := c.line.pass(n)
	if last {
		c.line.cut()
	}
	return n, err
}

// Write counts what goes out.
func (c *conn) Write(b []byte) (int, error) {
	n, last := c.line.pass(len(b))
	n, err := c.Conn.Write(b[:n])
	if last {
		c.line.cut()
		return n, net.ErrClosed
	}
	return n, err
}

// Close forgets the connection.
func (c *conn) Close() error {
	c.line.mu.Lock()
	delete(c.line.conns, c)
	c.line.mu.Unlock()
	return c.Conn.Close()
}
