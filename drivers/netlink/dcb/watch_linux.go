package dcb

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// Watch listens to the kernel from now on. It needs no privilege.
func Watch(o Options) (*Watcher, error) {
	const groups = 1<<(groupLink-1) | 1<<(groupDCB-1)
	c, err := netlink.Dial(unix.NETLINK_ROUTE, &netlink.Config{NetNS: o.NetNS, Groups: groups})
	if err != nil {
		return nil, fmt.Errorf("dcbnl: notifications: %w", err)
	}
	return NewWatcher(&groupSource{conn: c}), nil
}

// groupSource is the Source of the kernel.
type groupSource struct {
	conn *netlink.Conn
	rest []netlink.Message // of a datagram with several
}

func (s *groupSource) Close() error { return s.conn.Close() }

func (s *groupSource) Receive(ctx context.Context) (uint16, []byte, error) {
	for len(s.rest) == 0 {
		if err := s.fill(ctx); err != nil {
			return 0, nil, err
		}
	}
	m := s.rest[0]
	s.rest = s.rest[1:]
	return uint16(m.Header.Type), m.Data, nil
}

// fill waits for a datagram. The end of ctx moves the deadline of the socket to the past, and may do so late, when there
// is a new one already.
func (s *groupSource) fill(ctx context.Context) error {
	if err := s.conn.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	interrupt := context.AfterFunc(ctx, func() { _ = s.conn.SetReadDeadline(time.Unix(1, 0)) })
	defer interrupt()
	msgs, err := s.conn.Receive()
	if ctx.Err() != nil {
		s.rest = append(s.rest, msgs...)
		return ctx.Err()
	}
	s.rest = msgs
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil
	}
	if n, ok := errors.AsType[syscall.Errno](err); ok && (n == unix.ENOBUFS || n == unix.EMSGSIZE) {
		return Errno(n) // the next notification may come all the same
	}
	return err
}
