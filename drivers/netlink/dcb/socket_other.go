//go:build !linux

package dcb

import "errors"

// Open needs Linux.
func Open(Options) (*Client, error) { return nil, errors.New("dcbnl is part of Linux") }

func kernelError(err error) error { return err }

// Watch needs Linux.
func Watch(Options) (*Watcher, error) { return nil, errors.New("dcbnl is part of Linux") }
