//go:build unix

package hostlocal

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// DialNotify is the datagram socket of a service manager.
func DialNotify(address string) (send func(string) error, err error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
	if err != nil {
		return nil, fmt.Errorf("notify: %w", err)
	}
	unix.CloseOnExec(fd)
	to := &unix.SockaddrUnix{Name: address} // "@" begins the name of an abstract one here too
	return func(s string) error {
		if err := unix.Sendto(fd, []byte(s), unix.MSG_DONTWAIT, to); err != nil {
			return fmt.Errorf("notify: %w", os.NewSyscallError("sendto", err))
		}
		return nil
	}, nil
}
