//go:build !linux

package hostlocal

import "errors"

// ListenUevents needs Linux.
func ListenUevents() (Uevents, error) { return nil, errors.New("uevents are part of Linux") }
