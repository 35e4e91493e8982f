package dcb

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// Open is a client of the kernel.
func Open(o Options) (*Client, error) {
	s, err := newSocket(func() (conn, error) { return dial(o) }, o.Timeout)
	if err != nil {
		return nil, err
	}
	return New(s), nil
}

func dial(o Options) (*netlink.Conn, error) {
	c, err := netlink.Dial(unix.NETLINK_ROUTE, &netlink.Config{NetNS: o.NetNS})
	if err != nil {
		return nil, err
	}
	// The kernel's own sentence beside the error number, where the kernel has it (4.12).
	_ = c.SetOption(netlink.ExtendedAcknowledge, true)
	return c, nil
}

// kernelError turns the kernel's answer that a message is refused into an Errno, with the kernel's sentence before it if
// there is one. Trouble with the socket, which the netlink library wraps once more, stays what it is.
func kernelError(err error) error {
	op, ok := errors.AsType[*netlink.OpError](err)
	if !ok {
		return err
	}
	n, ok := op.Err.(syscall.Errno)
	switch {
	case !ok:
		return err
	case op.Message != "":
		return fmt.Errorf("%s: %w", op.Message, Errno(n))
	}
	return Errno(n)
}
