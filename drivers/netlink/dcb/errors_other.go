//go:build !linux

package dcb

// Is matches nothing beyond equality: the numbers of this system are not those of Linux.
func (Errno) Is(error) bool { return false }
