// Package infer is the way back from a running fabric to a model: Wire finds out from LLDP who is connected to whom and
// what each device is there for, and Infer writes a Fabric document that says what the ports do, as roles with few
// exceptions instead of a list of ports.
//
// What most ports do is written for the fabric, what most ports of a role do as the override of that role, and so on
// down to single ports. The document is then loaded and resolved like any other, and whatever it does not say as it is
// live is a finding: nothing that an override cannot express is lost in silence.
//
// Everything here is pure: the same devices give the same bytes.
package infer

import (
	"io/fs"
	"slices"

	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
)

// Model is what was inferred.
type Model struct {
	Text       string        // the Fabric document, YAML
	Fabric     *model.Fabric // Text, loaded
	Net        *intent.Net   // Text, resolved; nil when Text has errors
	Classes    int           // in the document
	Roles      []string      // of the devices, upper tiers first
	Exceptions int           // overrides of single devices and ports

	Suggestions []Suggestion // lines of Text that are commented out, in their order
}

// Suggestion is a line that no device asks for and that the rules want before an area is owned.
type Suggestion struct {
	Rule     string `json:"rule"`
	Line     int    `json:"line"`               // where it stands, commented out
	Text     string `json:"text"`               // without the comment sign
	Replaces int    `json:"replaces,omitempty"` // lines above it, in place of which it is
}

// Options say how a model is inferred.
type Options struct {
	Name string // metadata.name of the fabric
	File string // what Text will be called, for positions
	// Judge says what is wrong with a model; nil = nothing. An override of a single device or port that is an error to it
	// is left out: what breaks the agreement is not written as if it were meant, but is a finding.
	Judge func(*intent.Net, *model.Fabric) diag.List
}

// Infer writes the model of n, whose devices have roles, links and the policies that were read. Devices that nobody
// read have policies that know nothing: they become planned ones.
//
// The findings say what is a guess, what the ports do otherwise than the document says, and what is wrong with the
// document itself; with errors among them a plan of it is refused.
func Infer(n *intent.Net, o Options) (Model, diag.List) {
	var found diag.List
	d := draftOf(n, &found)
	d.levels()
	for {
		m, l := d.model(o)
		if m.Net == nil || o.Judge == nil || !d.leaveOut(o.Judge(m.Net, m.Fabric)) {
			if m.Net != nil {
				l.Add(deviations(n, m.Net, d.broken)...)
			}
			return m, append(found, l...).Sort()
		}
	}
}

// model writes the draft, and loads and resolves what it wrote.
func (d *draft) model(o Options) (Model, diag.List) {
	text, said := d.text(o.Name)
	m := Model{Text: text, Roles: d.roles, Exceptions: d.exceptions(), Suggestions: d.suggested}
	f, l := model.Load(single{o.File, []byte(m.Text)}, o.File)
	m.Fabric, m.Classes = f, len(f.Classes)
	if !l.HasErrors() {
		net, more := intent.Resolve(f)
		l.Add(more...)
		m.Net = net
	}
	return m, append(said, l...)
}

// leaveOut takes back the overrides of devices and ports at which errors point; false when there is none.
func (d *draft) leaveOut(l diag.List) bool {
	any := false
	for _, f := range l {
		if f.Severity != diag.Error {
			continue
		}
		at := []diag.Pos{f.Pos}
		for _, r := range f.Related {
			at = append(at, r.Pos)
		}
		for _, pos := range at {
			if undo := d.undo[pos.Line]; undo != nil {
				delete(d.undo, pos.Line)
				undo(f.Rule)
				any = true
			}
		}
	}
	return any
}

// roleOrder sorts roles from the top of a fabric down; others follow by name.
func roleOrder(a, b string) int {
	rank := func(r string) int {
		if i := slices.Index([]string{superSpine, spine, leaf, plain}, r); i >= 0 {
			return i
		}
		if r == host {
			return 9
		}
		return 8
	}
	if c := rank(a) - rank(b); c != 0 {
		return c
	}
	return intent.CompareNames(a, b)
}

// single is a file system of one file, so that a document that stands nowhere yet can be loaded.
type single struct {
	name string
	text []byte
}

// Open opens the file.
func (s single) Open(name string) (fs.File, error) {
	if name != s.name {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return &opened{s, s.text}, nil
}
