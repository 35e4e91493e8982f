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

// embedded finds the rows of the embedded data once; each load of a model asks for it. A row is read when somebody asks
// for it: a call needs few of them.
var embedded = sync.OnceValues(func() (*Catalog, error) {
	c := &Catalog{rows: map[Kind]map[string]*row{}}
	for _, dir := range []struct {
		kind Kind
		path string
	}{{KindASIC, "data/asics"}, {KindPlatform, "data/platforms"}, {KindNIC, "data/nics"}, {KindPersonality, "data/personalities"}, {KindCompat, "data/compat"}} {
		c.rows[dir.kind] = map[string]*row{}
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
			rs, err := split(dir.kind, "profiles/"+name, string(b))
			if err != nil {
				return nil, err
			}
			for _, r := range rs {
				if c.rows[dir.kind][r.name] != nil {
					return nil, fmt.Errorf("%s:%d: %s is there twice", r.file, r.line, r.name)
				}
				c.rows[dir.kind][r.name] = r
			}
		}
	}
	return c, nil
})

// Default is the catalog that comes with fabricctl. An error means that the embedded data is broken.
func Default() (*Catalog, error) { return embedded() }

// row is one entry of a catalog, read when it is first asked for.
type row struct {
	kind Kind
	name string
	file string // of the embedded data
	line int    // of it, from 1
	text string // the row itself; "" = entry was given

	once     sync.Once
	entry    Entry
	err      error
	platform Platform
	asic     ASIC
	nic      NIC

	personality Personality
	compat      CompatRow
}

// read is the row with its entry and typed values.
func (r *row) read() *row {
	r.once.Do(func() {
		if r.text != "" {
			r.entry, r.err = r.parse()
		}
		switch r.kind {
		case KindPlatform:
			specs, _ := platformTable()
			r.platform = Platform{Name: r.name, IfaceStep: 1}
			fill(&r.platform, specs, r.entry)
		case KindASIC:
			specs, _ := asicTable()
			r.asic = ASIC{Name: r.name}
			fill(&r.asic, specs, r.entry)
		case KindNIC:
			specs, _ := nicTable()
			r.nic = NIC{Name: r.name}
			fill(&r.nic, specs, r.entry)
		case KindPersonality:
			specs, _ := personalityTable()
			r.personality = newPersonality(r.name)
			fill(&r.personality, specs, r.entry)
		case KindCompat:
			specs, _ := compatTable()
			r.compat = CompatRow{Name: r.name}
			fill(&r.compat, specs, r.entry)
		}
	})
	return r
}

// split cuts a file into its rows, which begin with "- name: NAME" at the start of a line, or with "- {name: NAME,".
func split(kind Kind, file, text string) ([]*row, error) {
	var rs []*row
	line := 0
	for l := range strings.Lines(text) {
		line++
		switch {
		case strings.HasPrefix(l, "- "):
			_, name, ok := strings.Cut(strings.TrimPrefix(l[2:], "{"), "name: ")
			if name = strings.TrimSpace(name); !ok {
				name = ""
			}
			name, _, _ = strings.Cut(name, ",")
			rs = append(rs, &row{kind: kind, name: name, file: file, line: line, text: l})
		case len(rs) > 0:
			rs[len(rs)-1].text += l
		case strings.TrimSpace(l) != "" && l[0] != '#':
			return nil, fmt.Errorf("%s:%d: want one list of rows", file, line)
		}
	}
	return rs, nil
}

// parse reads the text. It is as strict as the reader of user documents: unknown and doubled keys, wrong units and facts
// without source or confidence are errors, all of them reported.
func (r *row) parse() (Entry, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(r.text), &doc); err != nil {
		return Entry{}, fmt.Errorf("%s:%d: %w", r.file, r.line, err)
	}
	if len(doc.Content) != 1 || doc.Content[0].Kind != yaml.SequenceNode || len(doc.Content[0].Content) != 1 {
		return Entry{}, fmt.Errorf("%s:%d: want one row", r.file, r.line)
	}
	x := rowReader{kind: r.kind, file: r.file, above: r.line - 1}
	e := x.entry(doc.Content[0].Content[0])
	return e, errors.Join(x.errs...)
}

// rowReader reads one row.
type rowReader struct {
	kind  Kind
	file  string
	above int // lines of the file before the row
	errs  []error
}

func (r *rowReader) fail(n *yaml.Node, format string, a ...any) {
	r.errs = append(r.errs, fmt.Errorf("%s:%d: %s", r.file, r.above+n.Line, fmt.Sprintf(format, a...)))
}

func (r *rowReader) pos(n *yaml.Node) diag.Pos {
	return diag.Pos{File: r.file, Line: r.above + n.Line, Col: n.Column}
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
	e := Entry{Kind: r.kind, Pos: r.pos(n)}
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
	out := Fact{Key: f.Key, BuiltIn: true, Pos: r.pos(k)}
	if f.Shape == KnobRow {
		return r.knob(out, n)
	}
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

// knob reads a mapping of the parts of a knob, with its own source and confidence.
func (r *rowReader) knob(out Fact, n *yaml.Node) Fact {
	parts := map[string][]string{}
	fields := KnobFields()
	for _, p := range r.pairs(n) {
		k, v := p[0], p[1]
		switch i := slices.IndexFunc(fields, func(f Field) bool { return f.Key == k.Value }); {
		case k.Value == "source":
			out.Source = v.Value
		case k.Value == "confidence":
			if out.Confidence = v.Value; !slices.Contains(confidences(), v.Value) {
				r.fail(v, "%s: confidence %q", out.Key, v.Value)
			}
		case i < 0:
			r.fail(k, "%s.%s is no part of a knob", out.Key, k.Value)
		case fields[i].List != (v.Kind == yaml.SequenceNode):
			r.fail(v, "%s.%s wants %s", out.Key, k.Value, map[bool]string{true: "a list", false: "a single value"}[fields[i].List])
		case v.Kind == yaml.SequenceNode:
			for _, item := range v.Content {
				parts[k.Value] = append(parts[k.Value], item.Value)
			}
		default:
			parts[k.Value] = []string{v.Value}
		}
	}
	k, err := KnobOf(parts)
	if err != nil {
		r.fail(n, "%s: %v", out.Key, err)
	}
	out.Values = []string{k.String()}
	return out
}
