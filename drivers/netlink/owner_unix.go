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

// ownSession lets a program outlive the session that it is started in.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
