package main

import (
	"bytes"
	"io"
)

// relative is w with the demo's directory taken out of paths, so that the play reads as if it ran there.
func (d *demo) relative(w io.Writer) io.Writer {
	return shorten{w, []byte(d.dir + "/")}
}

type shorten struct {
	to     io.Writer
	prefix []byte
}

// Write drops the prefix from p. Printers write whole lines, so a prefix is not split over two writes.
func (s shorten) Write(p []byte) (int, error) {
	if _, err := s.to.Write(bytes.ReplaceAll(p, s.prefix, nil)); err != nil {
		return 0, err
	}
	return len(p), nil
}
