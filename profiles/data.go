package profiles

import (
	"embed"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	"gopkg.in/yaml.v3"

	"github.com/fabricctl/fabricctl/model/diag"
)

//go:embed data
var data embed.FS

// embedded reads the embedded data once; each load of a model asks for it.
var embedded = sync.OnceValues(func() (*Catalog, error) {
	var all []Entry
	for _, dir := range []struct {
		kind Kind
		path string
	}{{KindASIC, "data/asics"}, {KindPlatform, "data/platforms"}, {KindNIC, "data/nics"}} {
		files, err := data.ReadDir(dir.path)
		if err != nil {
			return nil, fmt.Errorf("profiles: %w", err)
		}
		for _, file := range files {
			name := path.Join(dir.path, file.Name())
			b, err := data.ReadFile(name)
			if err != nil {
				return nil, fmt.Errorf("profiles: %w", err)
			}
			es, err := readEntries(dir.kind, "profiles/"+name, b)
			if err != nil {
				return nil, err
			}
			all = append(all, es...)
		}
	}
	return new(Catalog).With(all...), nil
})

// Default is the catalog that comes with fabricctl. An error means that the embedded data is broken.
func Default() (*Catalog, error) { return embedded() }

// readEntries reads a list of rows of one kind. It is as strict as the reader of user documents: unknown and doubled
// keys, wrong units and facts without source or confidence are errors, all of them reported.
func readEntries(kind Kind, file string, b []byte) ([]Entry, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(b, &doc); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if len(doc.Content) != 1 || doc.Content[0].Kind != yaml.SequenceNode {
		return nil, fmt.Errorf("%s: want one list of rows", file)
	}
	var es []Entry
	var errs []error
	for _, row := range doc.Content[0].Content {
		r := rowReader{kind: kind, file: file}
		e := r.entry(row)
		es, errs = append(es, e), append(errs, r.errs...)
	}
	return es, errors.Join(errs...)
}

// rowReader reads one row.
type rowReader struct {
	kind Kind
	file string
	errs []error
}

func (r *rowReader) fail(n *yaml.Node, format string, a ...any) {
	r.errs = append(r.errs, fmt.Errorf("%s:%d: %s", r.file, n.Line, fmt.Sprintf(format, a...)))
}

// pairs are the keys and values of a mapping, aliases followed, without doubled keys.
func (r *rowReader) pairs(n *yaml.Node) [][2]*yaml.Node {
	if n.Kind != yaml.MappingNode {
		r.fail(n, "want a mapping")
		return nil
	}
	var ps [][2]*yaml.Node
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		if v.Kind == yaml.AliasNode {
			v = v.Alias
		}
		if seen[k.Value] {
			r.fail(k, "%s is given twice", k.Value)
			continue
		}
		seen[k.Value] = true
		ps = append(ps, [2]*yaml.Node{k, v})
	}
	return ps
}

// lines are the lines of a block of text, each with its own position; comments are left out.
func lines(n *yaml.Node) []*yaml.Node {
	var ls []*yaml.Node
	for i, text := range strings.Split(n.Value, "\n") {
		if text != "" && text[0] != '#' {
			ls = append(ls, &yaml.Node{Kind: yaml.ScalarNode, Value: text, Line: n.Line + 1 + i, Column: n.Column})
		}
	}
	return ls
}

func (r *rowReader) entry(n *yaml.Node) Entry {
	e := Entry{Kind: r.kind, Pos: diag.Pos{File: r.file, Line: n.Line, Col: n.Column}}
	fields := fieldsOf(r.kind)
	given := map[string]Fact{}
	for _, p := range r.pairs(n) {
		k, v := p[0], p[1]
		if k.Value == "name" {
			e.Name = v.Value
			continue
		}
		i := slices.IndexFunc(fields, func(f Field) bool { return f.Key == k.Value })
		if i < 0 {
			r.fail(k, "%s is no field of a %s", k.Value, r.kind)
			continue
		}
		given[k.Value] = r.fact(fields[i], k, v)
	}
	source, confidence := given["source"].Text(), given["confidence"].Text()
	for _, f := range fields {
		fact, ok := given[f.Key]
		switch {
		case !ok && f.Must:
			r.fail(n, "%s has no %s", e.Name, f.Key)
		case ok && !f.About:
			e.Facts = append(e.Facts, fact.Default(source, confidence))
		case ok:
			e.Facts = append(e.Facts, fact)
		}
	}
	return e
}

// fact reads a value, or a mapping of a value with its own source and confidence.
func (r *rowReader) fact(f Field, k, n *yaml.Node) Fact {
	out := Fact{Key: f.Key, BuiltIn: true, Pos: diag.Pos{File: r.file, Line: k.Line, Col: k.Column}}
	if n.Kind == yaml.MappingNode && !f.About {
		var value *yaml.Node
		for _, p := range r.pairs(n) {
			switch p[0].Value {
			case "value":
				value = p[1]
			case "source":
				out.Source = p[1].Value
			case "confidence":
				out.Confidence = p[1].Value
				if !slices.Contains(confidences(), out.Confidence) {
					r.fail(p[1], "%s: confidence %q", f.Key, out.Confidence)
				}
			default:
				r.fail(p[0], "%s.%s is not value, source or confidence", f.Key, p[0].Value)
			}
		}
		if value == nil {
			r.fail(n, "%s has no value", f.Key)
			return out
		}
		n = value
	}
	items := []*yaml.Node{n}
	switch {
	case n.Kind == yaml.SequenceNode && f.List:
		items = n.Content
	case n.Kind == yaml.ScalarNode && f.Shape == Row:
		items = lines(n)
	case f.List:
		r.fail(n, "%s wants a list", f.Key)
	}
	for _, item := range items {
		if item.Kind != yaml.ScalarNode {
			r.fail(item, "%s wants a single value", f.Key)
			continue
		}
		v, err := f.check(strings.TrimSpace(item.Value))
		if err != nil {
			r.fail(item, "%s: %v", f.Key, err)
		}
		out.Values = append(out.Values, v)
	}
	if len(out.Values) == 0 {
		r.fail(n, "%s is empty", f.Key)
	}
	return out
}
