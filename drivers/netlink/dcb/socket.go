package dcb

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mdlayher/netlink"
)

// Options of Open and Watch. The zero value is right for the network namespace that the process is in.
type Options struct {
	// NetNS is a file descriptor of another network namespace; 0 is the calling thread's. It must stay open as long as
	// what was opened with it.
	NetNS int
	// Timeout is how long to wait for an answer when the context allows for longer; 0 is DefaultTimeout.
	Timeout time.Duration
}

// DefaultTimeout is what Options waits for an answer. A driver may take its time: some wait for the firmware, or for the
// link to go down and up again.
const DefaultTimeout = 30 * time.Second

// conn is the part of *netlink.Conn that is used.
type conn interface {
	Send(netlink.Message) (netlink.Message, error)
	Receive() ([]netlink.Message, error)
	Close() error
}

// socket is the Transport to the kernel.
//
// A message asks for no acknowledgement: that would be a second answer, and says 0 even when the driver refused. After
// anything but an answer to what was asked, the connection is given up and the next message gets a new one, so that no
// late answer is taken for one to a later question.
type socket struct {
	dial    func() (conn, error)
	timeout time.Duration
	turn    chan conn // holds the connection while nobody uses it; nil = none yet
}

func newSocket(dial func() (conn, error), timeout time.Duration) (*socket, error) {
	c, err := dial()
	if err != nil {
		return nil, fmt.Errorf("dcbnl: %w", err)
	}
	if timeout <= 0 {
		timeout = DefaultTimeout
	}
	s := &socket{dial: dial, timeout: timeout, turn: make(chan conn, 1)}
	s.turn <- c
	return s, nil
}

// Close closes the connection, after the message that is under way.
func (s *socket) Close() error {
	c := <-s.turn
	s.turn <- closed{}
	if c == nil {
		return nil
	}
	return c.Close()
}

func (s *socket) Execute(ctx context.Context, typ uint16, data []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	var c conn
	select {
	case c = <-s.turn:
	case <-ctx.Done():
		return nil, fmt.Errorf("nothing was sent: %w", ctx.Err())
	}
	if err := ctx.Err(); err != nil {
		s.turn <- c
		return nil, fmt.Errorf("nothing was sent: %w", err)
	}
	if c == nil {
		var err error
		if c, err = s.dial(); err != nil {
			s.turn <- nil
			return nil, fmt.Errorf("nothing was sent: %w", kernelError(err))
		}
	}
	answer, err := exchange(ctx, c, typ, data)
	if _, refused := errors.AsType[Errno](err); err == nil || refused {
		s.turn <- c
		return answer, err
	}
	if _, gone := c.(closed); gone {
		s.turn <- c
		return nil, err
	}
	go c.Close() // which waits for a sender that the kernel still holds
	s.turn <- nil
	return nil, err
}

// exchange sends a message and waits for the answer or for the end of ctx. The kernel works on a message inside the
// system call that sends it, and waits there for its lock and for the driver as long as it likes: then the sender is
// left behind, to end when the kernel lets it.
func exchange(ctx context.Context, c conn, typ uint16, data []byte) ([]byte, error) {
	type result struct {
		data []byte
		err  error
	}
	done := make(chan result, 1)
	go func() {
		b, err := roundTrip(c, typ, data)
		done <- result{b, err}
	}()
	select {
	case r := <-done:
		return r.data, r.err
	case <-ctx.Done():
		return nil, fmt.Errorf("no answer from the kernel, so whether it was done is open: %w", ctx.Err())
	}
}

// strangers is how many messages that answer something else are passed over.
const strangers = 16

func roundTrip(c conn, typ uint16, data []byte) ([]byte, error) {
	sent, err := c.Send(netlink.Message{
		Header: netlink.Header{Type: netlink.HeaderType(typ), Flags: netlink.Request},
		Data:   data,
	})
	if err != nil {
		return nil, kernelError(err)
	}
	for range strangers {
		msgs, err := c.Receive()
		if err != nil {
			return nil, kernelError(err)
		}
		for _, m := range msgs {
			if m.Header.Sequence == sent.Header.Sequence && m.Header.Type == sent.Header.Type {
				return m.Data, nil
			}
		}
	}
	return nil, errors.New("the kernel answers, but not to what was asked")
}

// closed is what a closed socket has for a connection.
type closed struct{}

var errClosed = errors.New("the connection was closed")

func (closed) Send(netlink.Message) (netlink.Message, error) { return netlink.Message{}, errClosed }
func (closed) Receive() ([]netlink.Message, error)           { return nil, errClosed }
func (closed) Close() error                                  { return nil }
