package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fabricctl/fabricctl/drivers/ssh"
	"github.com/fabricctl/fabricctl/tuning/perftest"
)

// testHosts are the hosts that verbs tests run on, reached over SSH. Short commands go by one connection of each host, tests by others, since what has to be
// waited for no longer can only be left by closing its connection.
type testHosts struct {
	dial func(ctx context.Context, host string) (*ssh.Client, error)

	mu    sync.Mutex
	hosts map[string]*testHost
}

// testHost is one of them.
type testHost struct {
	turns chan struct{} // of short commands at a time

	mu      sync.Mutex
	control *ssh.Client // nil before the first command, and after one that failed
	work    []*workConn
}

// workConn is a connection that tests run by.
type workConn struct {
	*ssh.Client
	sessions int
}

// An sshd allows ten sessions to a connection (MaxSessions), and closes some of many logins at once (MaxStartups).
const (
	mostSessions = 8
	mostTurns    = 4
	loginTries   = 4
)

// mostTestOutput is the most bytes of an output of a test that are kept.
const mostTestOutput = 16 << 20

// testHosts are the hosts of a dialler's model.
func (d *dialler) testHosts() *testHosts {
	return &testHosts{hosts: map[string]*testHost{}, dial: func(ctx context.Context, host string) (*ssh.Client, error) {
		e := d.fabric.Endpoints[host]
		if e == nil || !e.Address.Set {
			return nil, noAddress(host)
		}
		c, err := d.ssh(ctx, e)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", host, err)
		}
		for try := 1; ; try++ {
			cl, err := ssh.Dial(ctx, c)
			if err == nil || !errors.Is(err, ssh.ErrReset) || try == loginTries {
				return cl, err
			}
			select {
			case <-ctx.Done():
				return nil, err
			case <-time.After(time.Duration(try) * 300 * time.Millisecond):
			}
		}
	}}
}

func (t *testHosts) host(name string) *testHost {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.hosts[name]
	if h == nil {
		h = &testHost{turns: make(chan struct{}, mostTurns)}
		t.hosts[name] = h
	}
	return h
}

// Run runs a short command. One that the connection did not last for is run again by a new one: all of them may be.
func (t *testHosts) Run(ctx context.Context, host, command string) (perftest.Output, error) {
	h := t.host(host)
	select {
	case h.turns <- struct{}{}:
		defer func() { <-h.turns }()
	case <-ctx.Done():
		return perftest.Output{}, fmt.Errorf("%s: %w", host, context.Cause(ctx))
	}
	for {
		c, fresh, err := t.controlOf(ctx, host, h)
		if err != nil {
			return perftest.Output{}, err
		}
		out, err := c.Run(ctx, command, nil)
		if err == nil {
			return perftest.Output{Stdout: out.Stdout, Stderr: out.Stderr, Status: out.Exit}, nil
		}
		h.drop(c)
		if fresh || ctx.Err() != nil {
			return perftest.Output{}, err
		}
	}
}

// controlOf is the connection for short commands; fresh is whether it was made for this one.
func (t *testHosts) controlOf(ctx context.Context, host string, h *testHost) (c *ssh.Client, fresh bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.control == nil {
		if h.control, err = t.dial(ctx, host); err != nil {
			h.control = nil
			return nil, true, err
		}
		fresh = true
	}
	return h.control, fresh, nil
}

// drop forgets a connection for short commands that has failed.
func (h *testHost) drop(c *ssh.Client) {
	h.mu.Lock()
	defer h.mu.Unlock()
	_ = c.Close() // it failed, and says nothing new
	if h.control == c {
		h.control = nil
	}
}

// lend is a connection with room for another session.
func (t *testHosts) lend(ctx context.Context, host string, h *testHost) (*workConn, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, w := range h.work {
		if w.sessions < mostSessions {
			w.sessions++
			return w, nil
		}
	}
	c, err := t.dial(ctx, host)
	if err != nil {
		return nil, err
	}
	w := &workConn{Client: c, sessions: 1}
	h.work = append(h.work, w)
	return w, nil
}

// back takes a connection back. One that a session was left on is closed, with all others on it: they end for the same reason.
func (h *testHost) back(w *workConn, broken bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	w.sessions--
	if broken {
		_ = w.Close()
		h.work = slices.DeleteFunc(h.work, func(x *workConn) bool { return x == w })
	}
}

// Start begins a command that goes on, and returns once head has seen what it waits for.
func (t *testHosts) Start(ctx context.Context, host, command string, head func(line string) bool) (perftest.Running, error) {
	h := t.host(host)
	w, err := t.lend(ctx, host, h)
	if err != nil {
		return nil, err
	}
	r := &runningTest{done: make(chan struct{}), host: host}
	st, err := w.Open(ctx, ssh.Spec{Command: command, Stderr: &r.stderr})
	if err != nil {
		h.back(w, true)
		return nil, err
	}
	stop := w.CloseOn(ctx) // whatever blocks on it ends with ctx
	in := bufio.NewReaderSize(io.LimitReader(st.Out, mostTestOutput), 64<<10)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			stop()
			h.back(w, true)
			why := error(nil)
			if why = context.Cause(ctx); why == nil {
				why = fmt.Errorf("the command has ended before it began: %s", oneSaid(line, r.stderr.text()))
			}
			return nil, fmt.Errorf("%s: %w", host, why)
		}
		if head(line) {
			break
		}
	}
	go func() {
		defer close(r.done)
		rest, err := io.ReadAll(in)
		var out ssh.Output
		if err == nil {
			out, err = st.Wait()
		}
		if stop(); ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		h.back(w, err != nil)
		r.out, r.err = perftest.Output{Stdout: rest, Stderr: r.stderr.text(), Status: exitStatus(out)}, err
		if err != nil && ctx.Err() == nil {
			r.err = fmt.Errorf("the connection to it has ended: %w", err)
		}
	}()
	return r, nil
}

// oneSaid is what a command has said when it ended too early.
func oneSaid(line string, stderr []byte) string {
	if s := strings.TrimSpace(string(stderr)); s != "" {
		return s
	}
	if s := strings.TrimSpace(line); s != "" {
		return s
	}
	return "it said nothing"
}

// runningTest is a test that goes on.
type runningTest struct {
	host   string
	stderr boundedText
	done   chan struct{}
	out    perftest.Output
	err    error
}

// Wait waits for its end, or for that of the context that it was begun with.
func (r *runningTest) Wait() (perftest.Output, error) {
	<-r.done
	return r.out, r.err
}

// boundedText keeps the first bytes of what is written to it.
type boundedText struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (t *boundedText) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if room := mostTestOutput - t.b.Len(); room > 0 {
		t.b.Write(p[:min(len(p), room)])
	}
	return len(p), nil
}

func (t *boundedText) text() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	return bytes.Clone(t.b.Bytes())
}

// Close ends all connections. What runs on hosts goes on.
func (t *testHosts) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	var errs []error
	for _, h := range t.hosts {
		h.mu.Lock()
		if h.control != nil {
			errs = append(errs, h.control.Close())
			h.control = nil
		}
		for _, w := range h.work {
			errs = append(errs, w.Close())
		}
		h.work = nil
		h.mu.Unlock()
	}
	return errors.Join(errs...)
}

// exitStatus is how a command has ended as a shell says it: 128 and the number of a signal that ended it.
func exitStatus(o ssh.Output) int {
	if o.Exit >= 0 || o.Signal == "" {
		return o.Exit
	}
	numbers := map[string]int{"HUP": 1, "INT": 2, "QUIT": 3, "ABRT": 6, "KILL": 9, "SEGV": 11, "PIPE": 13, "TERM": 15}
	if n, ok := numbers[o.Signal]; ok {
		return 128 + n
	}
	return 255
}
