package model

import (
	"bytes"
	"cmp"
	"fmt"
	"io/fs"
	"slices"

	"github.com/fabricctl/fabricctl/model/diag"
)

// Spliced is a file of a model in which values were replaced or added. All else in it is as it was, to the byte.
type Spliced struct {
	File          string
	Before, After []byte
	Values        []SplicedValue // in the order of the file
}

// SplicedValue is one value that was replaced or added.
type SplicedValue struct {
	Path   string
	Pos    diag.Pos // of the value before, or of what the new one was put behind
	Before string   // "" when there was none
	After  string
}

// Splice writes p into the text of layers: what Load makes of the result is what With(p) makes of what Load makes of layers. Of a value
// that several layers give, the line that wins is edited; a key that is new goes beside its neighbours. Comments, order, blank lines,
// quotes and line ends stay. note is put as a comment above what changes, in place of an earlier note; "" for none. Nothing is written.
//
// What cannot be done this way is refused, whole: a value that aliases share, or that goes over several lines. Files that do not change
// are not returned, so that of a patch which the text has already, nothing is.
func Splice(fsys fs.FS, layers []string, p Patch, note string) ([]Spliced, diag.List) {
	f, found := Load(fsys, layers...)
	if found.HasErrors() {
		return nil, found
	}
	g, found := f.With(p)
	if found.HasErrors() {
		return nil, found
	}
	s := splicer{fsys: fsys, layers: layers, files: map[string]*spliceFile{}}
	s.compare(fabricSchema(), f.docs.fabric, g.docs.fabric, nil)
	if s.found.HasErrors() {
		return nil, s.found.Sort()
	}
	want := g.Digest()
	var l diag.List
	for _, text := range []string{note, ""} { // the note is left out where a comment cannot stand
		out := s.spliced(text)
		again, found := Load(overlaid{fsys, out}, layers...)
		if !found.HasErrors() && again.Digest() == want {
			return out, nil
		}
		why := "something else would change with them"
		if i := slices.IndexFunc(found, func(f diag.Finding) bool { return f.Severity == diag.Error }); i >= 0 {
			why = found[i].Pos.String() + " would be wrong: " + found[i].Msg
		}
		l = nil
		l.Errorf("splice", f.Pos, "change them by hand", "the values cannot be put into the text: %s", why)
	}
	return nil, l
}

// splicer finds where the text of a model is to change.
type splicer struct {
	fsys   fs.FS
	layers []string
	files  map[string]*spliceFile
	found  diag.List
}

// compare collects what has to change so that the text says now where it says before. Both are at the same place, and before is there.
func (s *splicer) compare(f *field, before, now *node, at *trail) {
	if before == now || f == nil {
		return
	}
	switch {
	case before.shape != now.shape:
		s.replace(before, now.text, at) // a patch puts a single value in place of a mapping, and never the other way
	case now.shape == scalarNode:
		if old, p := f.scalar.parse(before.text); p != nil || old != now.text {
			s.replace(before, now.text, at)
		}
	case now.shape == mapNode:
		for _, x := range now.keys {
			c := f.kid(x.key)
			if c == nil {
				c = f.dict
			}
			to := &trail{up: at, key: x.key}
			if old := before.kid(x.key); old != nil {
				s.compare(c, old, x.kid, to)
			} else {
				s.insert(f, before, x, to)
			}
		}
	default:
		for i, e := range now.items {
			to := &trail{up: at, key: e.name(), index: i}
			if i < len(before.items) {
				s.compare(f.list, before.items[i], e, to)
			} else {
				s.extend(before, e, to)
			}
		}
	}
}

// file reads a file once.
func (s *splicer) file(name string) *spliceFile {
	if f, ok := s.files[name]; ok {
		return f
	}
	b, _ := readFile(s.fsys, name) // in what cannot be read, nothing is found
	f := newSpliceFile(name, b)
	s.files[name] = f
	return f
}

func (s *splicer) refuse(pos diag.Pos, why *spliceRefusal, at *trail, value string) {
	s.found.Add(diag.Finding{
		Rule: "splice", Severity: diag.Error, Pos: pos, Related: why.related,
		Msg: fmt.Sprintf("%s cannot be written here: %s", at, why.what), Hint: cmp.Or(why.hint, "change it by hand: "+value),
	})
}

// replace puts a single value where n stands.
func (s *splicer) replace(n *node, text string, at *trail) {
	v := SplicedValue{Path: at.String(), Pos: n.from.Pos, Before: n.text, After: text}
	if n.shape != scalarNode {
		v.Before = flowText(n)
	}
	if why := s.file(n.from.Pos.File).replace(v, n.shape); why != nil {
		s.refuse(n.from.Pos, why, at, keyText(at.key)+": "+text)
	}
}

// insert puts a key with what stands there into a mapping: behind the nearest key that the schema has before it, in the layer that gives
// that one.
func (s *splicer) insert(f *field, into *node, x pair, at *trail) {
	behind := slices.Clone(into.keys)
	rank := func(key string) int {
		if i := slices.IndexFunc(f.kids, func(k field) bool { return k.key == key }); i >= 0 {
			return i
		}
		return len(f.kids)
	}
	here := rank(x.key)
	far := func(p pair) int { // how far in front, and behind all of those what comes later
		if r := rank(p.key); r <= here {
			return here - r
		}
		return len(f.kids) + 1
	}
	if f.dict != nil && len(f.kids) == 0 {
		slices.Reverse(behind) // names have no order: behind the last
	} else {
		slices.SortStableFunc(behind, func(a, b pair) int { return cmp.Compare(far(a), far(b)) })
	}
	value := SplicedValue{Path: at.String(), After: flowText(x.kid)}
	pos := into.from.Pos
	var why *spliceRefusal
	for _, p := range behind {
		value.Pos = p.at
		refused := s.file(p.at.File).insertKey(value, x)
		if refused == nil {
			return
		}
		why = cmp.Or(why, refused)
	}
	if len(behind) == 0 {
		value.Pos = pos
		if why = s.file(pos.File).insertFirst(value, x); why == nil {
			return
		}
	}
	s.refuse(pos, why, at, keyText(x.key)+": "+value.After)
}

// extend puts an element behind the others of a list.
func (s *splicer) extend(into, e *node, at *trail) {
	pos := into.from.Pos
	if n := len(into.items); n > 0 {
		pos = into.items[n-1].from.Pos // of several layers, the last that has any
	}
	value := SplicedValue{Path: at.String(), Pos: pos, After: flowText(e)}
	if why := s.file(pos.File).appendItem(value, e, len(into.items) == 0); why != nil {
		s.refuse(pos, why, at, "- "+value.After)
	}
}

// spliced is the files that change, sorted.
func (s *splicer) spliced(note string) []Spliced {
	var out []Spliced
	for _, name := range sortedKeys(s.files) {
		if f := s.files[name]; len(f.edits) > 0 {
			out = append(out, Spliced{File: name, Before: f.text, After: f.result(note), Values: f.values()})
		}
	}
	return out
}

// overlaid is a file system with some files in other words.
type overlaid struct {
	fs.FS
	changed []Spliced
}

// Open opens the changed file in place of the one below it.
func (o overlaid) Open(name string) (fs.File, error) {
	f, err := o.FS.Open(name)
	if err != nil {
		return nil, err
	}
	for _, c := range o.changed {
		if c.File == name {
			return changedFile{f, bytes.NewReader(c.After)}, nil
		}
	}
	return f, nil
}

// changedFile is a file that reads as other bytes.
type changedFile struct {
	fs.File
	r *bytes.Reader
}

func (f changedFile) Read(b []byte) (int, error) { return f.r.Read(b) }
