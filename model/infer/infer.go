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
}

// Infer writes the model of n, whose devices have roles, links and the policies that were read. name is the fabric's,
// and file what Text will be called, for positions. Devices that nobody read have policies that know nothing: they
// become planned ones.
//
// The findings say what is a guess, what the ports do otherwise than the document says, and what is wrong with the
// document itself; with errors among them a plan of it is refused.
func Infer(n *intent.Net, name, file string) (Model, diag.List) {
	var found diag.List
	d := draftOf(n, &found)
	d.levels()
	m := Model{Text: d.text(name), Roles: d.roles, Exceptions: d.exceptions()}
	f, l := model.Load(single{file, []byte(m.Text)}, file)
	found.Add(l...)
	m.Fabric, m.Classes = f, len(f.Classes)
	if !l.HasErrors() {
		net, more := intent.Resolve(f)
		found.Add(more...)
		m.Net = net
		found.Add(deviations(n, net)...)
	}
	return m, found.Sort()
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
