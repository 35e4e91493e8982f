package hostlocal

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// ListenUevents listens to the kernel's uevents of the network namespace that the calling thread is in. It needs no
// privilege.
func ListenUevents() (Uevents, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_KOBJECT_UEVENT)
	if err != nil {
		return nil, fmt.Errorf("uevents: %w", os.NewSyscallError("socket", err))
	}
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: 1}); err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("uevents: %w", os.NewSyscallError("bind", err))
	}
	return ueventSocket{os.NewFile(uintptr(fd), "uevents")}, nil
}

type ueventSocket struct{ f *os.File }

func (s ueventSocket) Close() error { return s.f.Close() }

// Receive waits for a text of the kernel. What other processes send is passed over.
func (s ueventSocket) Receive() (string, error) {
	conn, err := s.f.SyscallConn()
	if err != nil {
		return "", errOver
	}
	b := make([]byte, 16<<10)
	for {
		var n int
		var from unix.Sockaddr
		var failed error
		err := conn.Read(func(fd uintptr) bool {
			n, from, failed = unix.Recvfrom(int(fd), b, 0)
			return failed != unix.EAGAIN && failed != unix.EINTR
		})
		switch {
		case err != nil:
			return "", errOver
		case errors.Is(failed, unix.ENOBUFS):
			return "", nil
		case failed != nil:
			return "", fmt.Errorf("uevents: %w", failed)
		}
		if a, ok := from.(*unix.SockaddrNetlink); ok && a.Pid == 0 && n > 0 {
			return string(b[:n]), nil
		}
	}
}
