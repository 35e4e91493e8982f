package dcb

import "syscall"

// Is makes errors.Is work with the numbers of package syscall, and with what those are (fs.ErrPermission and the like).
func (e Errno) Is(target error) bool {
	n := syscall.Errno(e)
	return target == error(n) || n.Is(target)
}
