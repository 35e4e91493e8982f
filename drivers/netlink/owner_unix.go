//go:build unix

package netlink

import (
	"io/fs"
	"syscall"
)

// owner is who a file belongs to.
func owner(st fs.FileInfo) (uid, gid int) {
	if s, ok := st.Sys().(*syscall.Stat_t); ok {
		return int(s.Uid), int(s.Gid)
	}
	return -1, -1
}

// writable is the system's word on writing into a file or a directory that is there.
func writable(path string) error {
	const write = 2 // W_OK
	if err := syscall.Access(path, write); err != nil {
		return &fs.PathError{Op: "write", Path: path, Err: err}
	}
	return nil
}

// ownSession lets a program outlive the session that it is started in.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
