package netlink

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ioctls is a socket through which the kernel takes SIOCETHTOOL.
type ioctls struct{ fd int }

// DialEthtool opens the kernel's ethtool in the calling thread's network namespace.
func DialEthtool() (Ethtool, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if errors.Is(err, unix.EAFNOSUPPORT) {
		fd, err = unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	}
	if err != nil {
		return nil, fmt.Errorf("ethtool: %w", err)
	}
	return ioctls{fd}, nil
}

func (i ioctls) Close() error { return unix.Close(i.fd) }

// ifreq is struct ifreq with a pointer in its union.
type ifreq struct {
	name [unix.IFNAMSIZ]byte
	data unsafe.Pointer
	_    [24 - unsafe.Sizeof(unsafe.Pointer(nil))]byte
}

// Do waits for the kernel or for the end of ctx. A driver may hold its lock for long; b is then left to it.
func (i ioctls) Do(ctx context.Context, link string, b []byte) error {
	var r ifreq
	if len(link) == 0 || len(link) >= len(r.name) || len(b) < 4 {
		return unix.EINVAL
	}
	copy(r.name[:], link)
	own := append([]byte(nil), b...)
	_, err := until(ctx, func() (struct{}, error) {
		r.data = unsafe.Pointer(unsafe.SliceData(own))
		_, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(i.fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&r)))
		runtime.KeepAlive(own)
		if e != 0 {
			return struct{}{}, e
		}
		return struct{}{}, nil
	})
	if err == nil {
		copy(b, own)
	}
	return err
}
