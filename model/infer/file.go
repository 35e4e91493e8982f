package infer

import (
	"io"
	"io/fs"
	"path"
	"time"
)

// opened is an open file of single; rest is what was not read yet.
type opened struct {
	single
	rest []byte
}

func (o *opened) Stat() (fs.FileInfo, error) { return info(o.single), nil }

func (o *opened) Close() error { return nil }

func (o *opened) Read(b []byte) (int, error) {
	if len(o.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(b, o.rest)
	o.rest = o.rest[n:]
	return n, nil
}

// info describes the file of single.
type info single

func (i info) Name() string     { return path.Base(i.name) }
func (i info) Size() int64      { return int64(len(i.text)) }
func (info) Mode() fs.FileMode  { return 0o444 }
func (info) ModTime() time.Time { return time.Time{} }
func (info) IsDir() bool        { return false }
func (info) Sys() any           { return nil }
