//go:build release

package main

import (
	"bytes"
	"compress/gzip"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
)

// hostFiles are fabricctl-host for Linux on each architecture, compressed: make release puts them there.
//
//go:embed hostbin/fabricctl-host-linux-amd64.gz hostbin/fabricctl-host-linux-arm64.gz
var hostFiles embed.FS

// embeddedHost is fabricctl-host for a kind of machine, nil where this release has none.
func embeddedHost(goos, goarch string) ([]byte, error) {
	b, err := hostFiles.ReadFile("hostbin/fabricctl-host-" + goos + "-" + goarch + ".gz")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	r, err := gzip.NewReader(bytes.NewReader(b))
	if err == nil {
		b, err = io.ReadAll(r)
	}
	if err != nil {
		return nil, fmt.Errorf("fabricctl-host in this program: %w", err)
	}
	return b, nil
}
