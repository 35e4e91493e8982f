// Package hostlocal is a host that looks after itself: what it is to hold comes from a file, which fabricctl writes from
// the model, and the same engine that works on switches plans and applies it here. The agent does so again and again.
//
// A host is not given the model. The file holds what the model comes to for this one host, linted and resolved: it needs
// no network and no loader of models, which would double the program, and the host does not learn how to reach the others.
package hostlocal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/profiles"
)

// FileSchema names the format of a host file. A reader that does not know it refuses the file.
const FileSchema = "fabricctl/host-file/v1"

// DefaultFile is where a host has its file.
const DefaultFile = "/etc/fabricctl/host.json"

// File is what one host is to hold. It has no secrets.
type File struct {
	Schema string            `json:"schema"`         // FileSchema
	Tool   string            `json:"tool"`           // version of fabricctl that wrote it
	Model  string            `json:"model"`          // digest of the model
	Device intent.Device     `json:"device"`         // without Origins
	Know   []json.RawMessage `json:"know,omitempty"` // what the user told of NICs: profiles.Catalog.Know

	Variants []string                             `json:"variants,omitempty"` // by port: where its values are in Lines
	Lines    map[string]map[intent.Field]diag.Pos `json:"lines,omitempty"`    // the model's lines that the values come from
}

// FileOf is the file of one device of a model. Knobs of the user that run programs are left out unless the model is
// trusted.
func FileOf(d intent.Device, digest, tool string, trusted bool) *File {
	f := &File{Schema: FileSchema, Tool: tool, Model: digest, Device: d, Lines: map[string]map[intent.Field]diag.Pos{}}
	if d.Catalog != nil {
		f.Know = d.Catalog.Tell(trusted)
	}
	f.Device.Origins, f.Device.Catalog = nil, nil
	for _, p := range d.Ports {
		f.Variants = append(f.Variants, p.Variant)
		if f.Lines[p.Variant] != nil {
			continue
		}
		at := map[intent.Field]diag.Pos{}
		for field, o := range d.Origins[p.Variant] {
			if pos := o.At(); !pos.IsZero() {
				at[field] = pos
			}
		}
		f.Lines[p.Variant] = at
	}
	return f
}

// Encode is the file as indented JSON. The same file gives the same bytes.
func (f *File) Encode() ([]byte, error) {
	b, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("host file: %w", err)
	}
	return append(b, '\n'), nil
}

// Decode reads what Encode writes. A file of another schema, with fields that are not known here, or with anything after
// it is refused: what is not understood whole is not applied.
func Decode(b []byte) (*File, error) {
	var head struct {
		Schema string `json:"schema"`
		Tool   string `json:"tool"`
	}
	if err := json.Unmarshal(b, &head); err != nil {
		return nil, errors.New("it is not JSON, or not whole")
	}
	if head.Schema != FileSchema {
		return nil, fmt.Errorf("schema is %q, this version reads %q", head.Schema, FileSchema)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	f := new(File)
	if err := d.Decode(f); err != nil {
		return nil, fmt.Errorf("it is of fabricctl %s, and says what this version does not know: %w", head.Tool, err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("there is more after its end")
	}
	return f, f.check()
}

// check refuses what would make the engine stumble.
func (f *File) check() error {
	d := &f.Device
	switch {
	case d.Name == "" || d.Fabric == "":
		return errors.New("it names no device, or no fabric")
	case !d.Host || d.OS() != "linux":
		return fmt.Errorf("%s is no Linux host", d.Name)
	case len(f.Variants) > 0 && len(f.Variants) != len(d.Ports):
		return fmt.Errorf("%d variants of %d ports", len(f.Variants), len(d.Ports))
	}
	if i := slices.IndexFunc(d.Ports, func(p intent.Port) bool { return p.Policy < 0 || int(p.Policy) >= len(d.Policies) }); i >= 0 {
		return fmt.Errorf("port %s has no policy", d.Ports[i].Name)
	}
	return nil
}

// ReadFile reads a host file.
func ReadFile(path string) (*File, error) {
	b, err := readFile(path)
	if err != nil {
		return nil, err
	}
	f, err := Decode(b)
	if err != nil {
		return nil, fmt.Errorf("%s is not a host file: %w", path, err)
	}
	return f, nil
}

// maxFile is more than any file of ours has.
const maxFile = 16 << 20

// readFile is os.ReadFile of a file that is not endless.
func readFile(path string) ([]byte, error) {
	r, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	b, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err == nil && len(b) > maxFile {
		err = fmt.Errorf("%s is larger than %d bytes", path, maxFile)
	}
	return b, err
}

// Net is the host alone, with the lines of the model that its values come from, and what is known of NICs.
func (f *File) Net() (*intent.Net, error) {
	c, err := f.Catalog()
	if err != nil {
		return nil, err
	}
	d := f.Device
	d.Catalog, d.Ports, d.Origins = c, slices.Clone(d.Ports), intent.OriginTable{}
	for i, v := range f.Variants {
		d.Ports[i].Variant = v
	}
	for variant, fields := range f.Lines {
		at := map[intent.Field]*model.Origin{}
		for field, pos := range fields {
			at[field] = &model.Origin{Kind: model.FromLine, Pos: pos}
		}
		d.Origins[variant] = at
	}
	return &intent.Net{Fabric: d.Fabric, Devices: []intent.Device{d}}, nil
}

// Catalog is what is built in, and what the file says besides. A nil File says nothing.
func (f *File) Catalog() (*profiles.Catalog, error) {
	c, err := profiles.OfHosts()
	if err != nil || f == nil {
		return c, err
	}
	return c.Know(f.Know)
}
