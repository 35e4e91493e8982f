//go:build !linux

package netlink

import "errors"

// Dial needs Linux.
func Dial() (Links, error) { return nil, errors.New("rtnetlink is part of Linux") }

// DialEthtool needs Linux.
func DialEthtool() (Ethtool, error) { return nil, errors.New("ethtool is part of Linux") }

// DialRDMA needs Linux.
func DialRDMA() (RDMA, error) { return nil, errors.New("RDMA netlink is part of Linux") }
