package profiles

import (
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/fabricctl/fabricctl/model/diag"
)

// The rows of hosts' kinds and of switches', as package rows makes them of data/; go test ./profiles/rows -update writes them anew.
var (
	//go:embed hosts.rows
	hostRows string
	//go:embed switches.rows
	switchRows string
)

// ofHosts and embedded find the built-in rows once; each load of a model asks for them. A row is read when somebody asks for it: a
// call needs few of them.
var ofHosts, all shelf

// shelf is a catalog that is made once.
type shelf struct {
	once sync.Once
	c    *Catalog
	err  error
}

func (s *shelf) with(rows ...string) (*Catalog, error) {
	s.once.Do(func() {
		s.c = &Catalog{rows: map[Kind]map[string]*row{}}
		for _, k := range Kinds() {
			s.c.rows[k] = map[string]*row{}
		}
		for _, r := range rows {
			if s.err = errors.Join(s.err, s.c.index(r)); s.err != nil {
				s.c = nil
				return
			}
		}
	})
	return s.c, s.err
}

// Default is the catalog that comes with fabricctl. An error means that the built-in data is broken.
func Default() (*Catalog, error) { return all.with(hostRows, switchRows) }

// OfHosts is the part of Default that a host needs to know itself: NICs, personalities and the compatibility matrix.
func OfHosts() (*Catalog, error) { return ofHosts.with(hostRows) }

// row is one entry of a catalog, read when it is first asked for.
type row struct {
	kind Kind
	name string
	file string // of the embedded data
	line int    // of it, from 1, where the row begins
	tree string // the row itself, see package rows; "" = entry was given

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
		if r.tree != "" {
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

// index adds the rows of a file of rows to c.
func (c *Catalog) index(file string) error {
	d := treeReader{left: file}
	for d.left != "" && d.err == nil {
		r := &row{kind: Kind(d.text()), name: d.text(), file: d.text(), line: d.number()}
		r.tree = d.text()
		switch {
		case d.err != nil:
		case c.rows[r.kind] == nil:
			return fmt.Errorf("%s:%d: %s is no kind of row", r.file, r.line, r.kind)
		case c.rows[r.kind][r.name] != nil:
			return fmt.Errorf("%s:%d: %s is there twice", r.file, r.line, r.name)
		default:
			c.rows[r.kind][r.name] = r
		}
	}
	return d.err
}

// parse reads the row. It is as strict as the reader of user documents: unknown and doubled keys, wrong units and facts
// without source or confidence are errors, all of them reported.
func (r *row) parse() (Entry, error) {
	d := treeReader{left: r.tree}
	n := d.node(r.line)
	if d.err != nil {
		return Entry{}, fmt.Errorf("%s:%d: %w", r.file, r.line, d.err)
	}
	x := rowReader{kind: r.kind, file: r.file}
	e := x.entry(n)
	return e, errors.Join(x.errs...)
}

// rowReader reads one row.
type rowReader struct {
	kind Kind
	file string
	errs []error
}

func (r *rowReader) fail(n *node, format string, a ...any) {
	r.errs = append(r.errs, fmt.Errorf("%s:%d: %s", r.file, n.line, fmt.Sprintf(format, a...)))
}

func (r *rowReader) pos(n *node) diag.Pos {
	return diag.Pos{File: r.file, Line: n.line, Col: n.col}
}

// pairs are the keys and values of a mapping, without doubled keys.
func (r *rowReader) pairs(n *node) [][2]*node {
	if n.kind != mapping {
		r.fail(n, "want a mapping")
		return nil
	}
	var ps [][2]*node
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.kids); i += 2 {
		k, v := n.kids[i], n.kids[i+1]
		if seen[k.value] {
			r.fail(k, "%s is given twice", k.value)
			continue
		}
		seen[k.value] = true
		ps = append(ps, [2]*node{k, v})
	}
	return ps
}

// lines are the lines of a block of text, each with its own position; comments are left out.
func lines(n *node) []*node {
	var ls []*node
	for i, text := range strings.Split(n.value, "\n") {
		if text != "" && text[0] != '#' {
			ls = append(ls, &node{kind: scalar, value: text, line: n.line + 1 + i, col: n.col})
		}
	}
	return ls
}

func (r *rowReader) entry(n *node) Entry {
	e := Entry{Kind: r.kind, Pos: r.pos(n)}
	fields := fieldsOf(r.kind)
	given := map[string]Fact{}
	for _, p := range r.pairs(n) {
		k, v := p[0], p[1]
		if k.value == "name" {
			e.Name = v.value
			continue
		}
		i := slices.IndexFunc(fields, func(f Field) bool { return f.Key == k.value })
		if i < 0 {
			r.fail(k, "%s is no field of a %s", k.value, r.kind)
			continue
		}
		given[k.value] = r.fact(fields[i], k, v)
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
func (r *rowReader) fact(f Field, k, n *node) Fact {
	out := Fact{Key: f.Key, BuiltIn: true, Pos: r.pos(k)}
	if f.Shape == KnobRow {
		return r.knob(out, n)
	}
	if n.kind == mapping && !f.About {
		var value *node
		for _, p := range r.pairs(n) {
			switch p[0].value {
			case "value":
				value = p[1]
			case "source":
				out.Source = p[1].value
			case "confidence":
				out.Confidence = p[1].value
				if !slices.Contains(confidences(), out.Confidence) {
					r.fail(p[1], "%s: confidence %q", f.Key, out.Confidence)
				}
			default:
				r.fail(p[0], "%s.%s is not value, source or confidence", f.Key, p[0].value)
			}
		}
		if value == nil {
			r.fail(n, "%s has no value", f.Key)
			return out
		}
		n = value
	}
	items := []*node{n}
	switch {
	case n.kind == list && f.List:
		items = n.kids
	case n.kind == scalar && f.Shape == Row:
		items = lines(n)
	case f.List:
		r.fail(n, "%s wants a list", f.Key)
	}
	for _, item := range items {
		if item.kind != scalar {
			r.fail(item, "%s wants a single value", f.Key)
			continue
		}
		v, err := f.check(strings.TrimSpace(item.value))
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
func (r *rowReader) knob(out Fact, n *node) Fact {
	parts := map[string][]string{}
	fields := KnobFields()
	for _, p := range r.pairs(n) {
		k, v := p[0], p[1]
		switch i := slices.IndexFunc(fields, func(f Field) bool { return f.Key == k.value }); {
		case k.value == "source":
			out.Source = v.value
		case k.value == "confidence":
			if out.Confidence = v.value; !slices.Contains(confidences(), v.value) {
				r.fail(v, "%s: confidence %q", out.Key, v.value)
			}
		case i < 0:
			r.fail(k, "%s.%s is no part of a knob", out.Key, k.value)
		case fields[i].List != (v.kind == list):
			r.fail(v, "%s.%s wants %s", out.Key, k.value, map[bool]string{true: "a list", false: "a single value"}[fields[i].List])
		case v.kind == list:
			for _, item := range v.kids {
				parts[k.value] = append(parts[k.value], item.value)
			}
		default:
			parts[k.value] = []string{v.value}
		}
	}
	k, err := KnobOf(parts)
	if err != nil {
		r.fail(n, "%s: %v", out.Key, err)
	}
	out.Values = []string{k.String()}
	return out
}
