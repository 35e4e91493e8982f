package check

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/drivers/whole"
	"github.com/fabricctl/fabricctl/render"
)

// CaptureSchema names the format of a capture's MANIFEST.json.
const CaptureSchema = "fabricctl/capture/v1"

// Evidence is what was collected from one device, secrets included. It is for Capture.Bytes to scrub.
type Evidence struct {
	Diagnosis  *Diagnosis
	OS         string
	Raw        []byte              // the running configuration as the device writes it
	Neighbours []drivers.Neighbour // what it hears over LLDP
	Missing    []string            // what could not be had, and why
}

// Collect reads what a capture holds of a device. A view that is nil gives the diagnosis alone.
func Collect(ctx context.Context, d *Diagnosis, v *drivers.View) Evidence {
	e := Evidence{Diagnosis: d, OS: d.OS}
	if v == nil {
		e.Missing = append(e.Missing, "everything but the diagnosis: the device could not be read")
		return e
	}
	miss := func(what string, err error) {
		e.Missing = append(e.Missing, what+": "+d.nameless(err))
	}
	var err error
	e.Raw, err = v.Raw(ctx)
	if errors.Is(err, errors.ErrUnsupported) {
		var c render.Config
		if c, err = v.Read(ctx); err == nil {
			e.Raw = render.ByOS(d.OS).Text(c)
		}
	}
	if err != nil {
		miss("running configuration", err)
	}
	if e.Neighbours, err = v.Neighbours(ctx); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		miss("LLDP", err)
	}
	return e
}

// Capture is what is to become of evidence.
type Capture struct {
	Tool      string // version of fabricctl
	Anonymise bool   // replace names, addresses and serial numbers
}

// Manifest says what a capture holds and what was taken out of it.
type Manifest struct {
	Schema     string           `json:"schema"` // CaptureSchema
	Tool       string           `json:"tool"`
	Anonymised bool             `json:"anonymised"` // names, addresses and serial numbers are stand-ins
	Devices    []ManifestDevice `json:"devices"`
}

// ManifestDevice is one device of a capture.
type ManifestDevice struct {
	Name     string    `json:"name"`
	OS       string    `json:"os"`
	Files    []string  `json:"files"`
	Missing  []string  `json:"missing,omitempty"`
	Scrubbed []Removal `json:"scrubbed,omitempty"`
}

// file is one file of a capture.
type file struct {
	name string
	text string
}

// Bytes is the capture as a gzipped tar file, and its manifest. The same evidence gives the same bytes: no time, no
// owner and nothing random is in it.
func (c Capture) Bytes(es []Evidence) ([]byte, Manifest, error) {
	m := Manifest{Schema: CaptureSchema, Tool: c.Tool, Anonymised: c.Anonymise}
	s, names := newScrubber(), newMasks()
	of := make([][]file, len(es)) // by device
	for i := range es {
		before := len(s.removed)
		files, missing, err := es[i].files(s)
		if err != nil {
			return nil, m, err
		}
		of[i] = files
		es[i].learn(files, names)
		m.Devices = append(m.Devices, ManifestDevice{Name: es[i].Diagnosis.Name, OS: es[i].OS, Missing: missing, Scrubbed: slices.Clone(s.removed[before:])})
	}
	for i := range es {
		es[i].keep(of[i], names)
	}
	var all []file
	taken := map[string]int{}
	for i := range es {
		dir := folder(m.Devices[i].Name)
		if c.Anonymise {
			dir = orElse(names.names[m.Devices[i].Name].full, fmt.Sprintf("target-%d", i+1))
		}
		if taken[dir]++; taken[dir] > 1 {
			dir = fmt.Sprintf("%s.%d", dir, taken[dir])
		}
		for _, f := range of[i] {
			f.name = dir + "/" + f.name
			all, m.Devices[i].Files = append(all, f), append(m.Devices[i].Files, f.name)
		}
	}
	text, err := indented(m)
	if err != nil {
		return nil, m, err
	}
	all = append([]file{{"MANIFEST.json", text}}, all...)
	clean, known := s.everywhere(), names.phrases()
	for i := range all {
		all[i].text = doctorSession.ReplaceAllString(clean.Replace(all[i].text), "fctl-doctor-XXXXXXXX")
		if c.Anonymise {
			all[i].text = names.text(known, all[i].text)
		}
	}
	b, err := archive(all)
	return b, m, err
}

// doctorSession is the name of a trial's session, which is another one each time.
var doctorSession = regexp.MustCompile(`fctl-doctor-[0-9a-f]{8}`)

// files are the files about one device, scrubbed by themselves.
func (e *Evidence) files(s *scrubber) ([]file, []string, error) {
	missing := slices.Clone(e.Missing)
	var fs []file
	other := newScrubber() // for sentences of ours and of devices, whose words are not taken for secrets elsewhere
	if e.Raw != nil {
		text, err := s.text(e.OS, e.Raw)
		if err != nil {
			missing = append(missing, "running configuration: "+err.Error())
		} else {
			fs = append(fs, file{"running-config" + extension(e.OS), string(text)})
		}
	}
	for _, x := range []struct {
		name string
		v    any
		is   bool
	}{{"doctor.json", e.Diagnosis, true}, {"lldp.json", e.Neighbours, len(e.Neighbours) > 0}} {
		if !x.is {
			continue
		}
		text, err := indented(x.v)
		if err != nil {
			return nil, nil, err
		}
		fs = append(fs, file{x.name, other.shaped(x.name, text)})
	}
	for i := range missing {
		missing[i] = other.shaped("MANIFEST.json", missing[i])
	}
	s.removed = append(s.removed, other.removed...)
	return fs, missing, nil
}

// learn makes the names of a device ones that are replaced.
func (e *Evidence) learn(files []file, m *masks) {
	d := e.Diagnosis
	if !strings.Contains(d.Name, ":") { // else it is an address, which is replaced as one
		m.host(d.Name)
	}
	if host, _, err := net.SplitHostPort(d.Address); err == nil {
		m.host(host)
	}
	if d.Facts != nil {
		m.host(d.Facts.Hostname)
		m.learn("serial", d.Facts.Serial)
	}
	m.neighbours(e.Neighbours)
	for _, f := range files {
		if f.isConfig() {
			m.config(e.OS, []byte(f.text))
		}
	}
}

// keep leaves those names alone that the device's configuration uses as words of its own, and the keys of our files.
func (e *Evidence) keep(files []file, m *masks) {
	for _, f := range files {
		if f.isConfig() {
			m.keep(e.OS, []byte(f.text))
			continue
		}
		for _, key := range jsonKeyRE.FindAllStringSubmatch(f.text, -1) {
			delete(m.names, key[1])
		}
	}
}

// jsonKeyRE is a key of the JSON that indented writes.
var jsonKeyRE = regexp.MustCompile(`(?m)^ +"(\w+)": `)

func (f file) isConfig() bool { return strings.HasPrefix(f.name, "running-config") }

func extension(os string) string {
	if os == "sonic" {
		return ".json"
	}
	return ".txt"
}

// folder is a device's name as the name of a folder.
func folder(name string) string {
	return strings.TrimLeft(strings.Map(func(r rune) rune {
		if r < 0x80 && (isWord(byte(r)) || r == '.') {
			return r
		}
		return '_'
	}, name), ".")
}

func indented(v any) (string, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return "", fmt.Errorf("capture: %w", err)
	}
	return b.String(), nil
}

// archive packs files.
func archive(files []file) ([]byte, error) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	t := tar.NewWriter(z)
	for _, f := range files {
		h := &tar.Header{Name: f.name, Mode: 0o600, Size: int64(len(f.text)), ModTime: time.Unix(0, 0), Format: tar.FormatPAX}
		if err := t.WriteHeader(h); err != nil {
			return nil, fmt.Errorf("capture: %w", err)
		}
		if _, err := t.Write([]byte(f.text)); err != nil {
			return nil, fmt.Errorf("capture: %w", err)
		}
	}
	if err := errors.Join(t.Close(), z.Close()); err != nil {
		return nil, fmt.Errorf("capture: %w", err)
	}
	return b.Bytes(), nil
}

// WriteNew writes a file with mode 0600, whole or not at all, and never over one that is there.
func WriteNew(path string, b []byte) error {
	s, err := whole.Stage(path, b, 0o600)
	if err != nil {
		return fmt.Errorf("capture: %w", err)
	}
	switch err := errors.Join(s.SettleNew(), s.Drop()); {
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf("capture: %s is there already, and is not overwritten", path)
	case err != nil:
		return fmt.Errorf("capture: %w", err)
	}
	return nil
}
