//go:build !linux

package netlink

import "errors"

// Dial needs Linux.
func Dial() (Links, error) { return nil, errors.New("rtnetlink is part of Linux") }
