package model

import (
	"io/fs"

	"github.com/fabricctl/fabricctl/model/diag"
)

type roots struct{}

// Load reads layers, each a file or a directory, into one Fabric. Later layers win over earlier ones. All findings are
// returned together; with errors among them the Fabric is not to be used for anything but looking.
func Load(fsys fs.FS, layers ...string) (*Fabric, diag.List) {
	return &Fabric{}, nil
}

// With is f with p applied. f is not changed.
func (f *Fabric) With(p Patch) (*Fabric, diag.List) { return f, nil }

// Digest is a SHA-256, in hex, over the canonical merged values: independent of layers, order and comments.
func (f *Fabric) Digest() string { return "" }

// Acknowledge fills Ack of the warnings in l that the model acknowledges, and adds an info finding for each
// acknowledgement that matched nothing. l is not changed.
func (f *Fabric) Acknowledge(l diag.List) diag.List { return l }

// Leaves lists every scalar of the merged Fabric document, sorted by path.
func (f *Fabric) Leaves() []Leaf { return nil }
