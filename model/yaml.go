package model

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"github.com/fabricctl/fabricctl/model/diag"
)

// Limits on input, far above any real model. What passes them is read within seconds and less than a GB; what does not is
// read up to the first of them.
const (
	maxFile      = 8 << 20   // bytes of one file
	maxLoad      = 32 << 20  // bytes of one load
	maxDocuments = 20_000    // of one load
	maxNodes     = 1_000_000 // values of one load, aliases expanded
	maxFound     = 10_000    // findings of reading, and of checking
	maxDepth     = 32        // levels of nesting; the schema needs 9
)

// reader turns files into nodes. It is the only part that knows the YAML library.
type reader struct {
	found diag.List
	size  int // bytes read
	docs  int // documents read
	nodes int
	deep  bool       // the limit on depth was reported
	full  bool       // a limit on the whole was reported, and nothing more is read
	wrong int        // documents that are not YAML
	room  []struct { // for nodes to come, of whichever document
		node   node
		origin Origin
	}
}

// stop reports that a limit on the whole was passed. Nothing is read from then on.
func (r *reader) stop(pos diag.Pos, format string, a ...any) {
	if !r.full {
		r.full = true
		r.found.Errorf("limits", pos, "", format+"; the rest is not read", a...)
	}
}

// over reports whether a limit on the whole was passed.
func (r *reader) over(pos diag.Pos) bool {
	switch {
	case r.nodes > maxNodes:
		r.stop(pos, "more than %d values, anchors expanded", maxNodes)
	case len(r.found) >= maxFound:
		r.stop(pos, "more than %d findings", maxFound)
	}
	return r.full
}

// documents reads the YAML documents of one file. A document that is not YAML is reported, and the others are read.
func (r *reader) documents(file string, layer int, b []byte) []*node {
	if r.size += len(b); r.size > maxLoad {
		r.stop(diag.Pos{File: file}, "the files of the model are larger than %d MiB together", maxLoad>>20)
	}
	if r.full {
		return nil
	}
	if !utf8.Valid(b) {
		line := 1 + bytes.Count(b[:firstInvalid(b)], []byte("\n"))
		r.found.Errorf("yaml", diag.Pos{File: file, Line: line, Col: 1}, "save the file as UTF-8", "the file is not UTF-8 text")
		return nil
	}
	var out []*node
	for _, p := range split(b) {
		c := converter{reader: r, file: file, layer: layer, offset: p.line}
		// The library makes its own nodes of a whole document, before they are counted.
		at := diag.Pos{File: file, Line: p.line + 1, Col: 1}
		if values(p.text) > 2*maxNodes {
			r.stop(at, "a document of more than %d values", 2*maxNodes)
		}
		if r.full {
			break
		}
		if n, ok := c.plain(p.text); ok {
			if r.docs++; r.docs > maxDocuments {
				r.stop(at, "more than %d documents", maxDocuments)
				break
			}
			out = append(out, n)
			continue
		}
		dec := yaml.NewDecoder(bytes.NewReader(p.text))
		for !r.full {
			y, err := decode(dec)
			if errors.Is(err, io.EOF) {
				break
			}
			if r.docs++; r.docs > maxDocuments {
				r.stop(at, "more than %d documents", maxDocuments)
				break
			}
			if err != nil {
				r.syntax(file, p, err)
				break
			}
			if len(y.Content) == 1 && !isNull(y.Content[0]) {
				out = append(out, c.convert(y.Content[0], 0))
			}
		}
	}
	return out
}

// decode reads one document and turns a panic of the library into an error: input must not be able to end the program.
func decode(dec *yaml.Decoder) (y *yaml.Node, err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("the document cannot be read")
		}
	}()
	y = new(yaml.Node)
	return y, dec.Decode(y)
}

// values is how many values a text can hold: about as many as it does if it is YAML, or more. A value begins a line, or
// follows what opens a list or a mapping, or separates the parts of one.
func values(b []byte) int {
	n := 1
	for l := range bytes.Lines(b) {
		l = bytes.TrimLeft(l, " \t\r\n")
		if len(l) == 0 || l[0] == '#' {
			continue
		}
		n++
		for i, c := range l {
			switch c {
			case ',', '[', '{':
				n++
			case '-', '?': // of a list, of a key that is none
				if i > 0 && i+1 < len(l) && (l[i+1] == ' ' || l[i+1] == '\t') {
					n++
				}
			}
		}
	}
	return n
}

// part is one document's text, and the number of lines before it.
type part struct {
	text []byte
	line int
}

// split cuts a file at its "---" lines, so that a broken document does not hide the others. A line that begins with
// "---" always starts a document (YAML 1.2 section 9.1.2), also inside quotes. The parts are parts of b, which is changed
// where it names a version that the library does not know. What is past the limit on documents is left out.
func split(b []byte) []part {
	var parts []part
	all, start := b, 0 // the whole, and where the part at hand begins
	cur, line, content := part{}, 0, false
	for len(b) > 0 {
		end := bytes.IndexByte(b, '\n') + 1
		if end == 0 {
			end = len(b)
		}
		l := b[:end]
		rest, marker := bytes.CutPrefix(l, []byte("---"))
		if marker && (len(rest) == 0 || strings.IndexByte(" \t\r\n", rest[0]) >= 0) && content {
			if parts = append(parts, cur); len(parts) > maxDocuments {
				return parts
			}
			start += len(cur.text)
			cur = part{line: line}
		}
		if cur.text = all[start : start+len(cur.text)+len(l)]; bytes.HasPrefix(l, []byte("%YAML 1.2")) {
			l[len("%YAML 1.")] = '1' // the library reads 1.2, but knows only 1.1 by name
		}
		if t := bytes.TrimSpace(l); len(t) > 0 && t[0] != '%' && t[0] != '#' {
			content = true // directives and comments belong to the document that follows
		}
		b, line = b[end:], line+1
	}
	return append(parts, cur)
}

func firstInvalid(b []byte) int {
	i := 0
	for i < len(b) {
		c, n := utf8.DecodeRune(b[i:])
		if c == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return i
}

// converter makes the nodes of one document.
type converter struct {
	*reader
	file   string
	layer  int
	offset int
}

func (c *converter) pos(y *yaml.Node) diag.Pos {
	return diag.Pos{File: c.file, Line: c.offset + max(y.Line, 1), Col: max(y.Column, 1)}
}

func (c *converter) convert(y *yaml.Node, depth int) *node {
	n := c.node(c.pos(y))
	for hops := 0; y.Kind == yaml.AliasNode && hops < maxDepth; hops++ {
		y = y.Alias
		n.from.Pos = c.pos(y)
	}
	c.nodes++
	switch {
	case c.over(n.from.Pos):
		n.bad = true
		return n
	case depth > maxDepth:
		if !c.deep { // aliases of aliases may lead there a million times
			c.deep = true
			c.found.Errorf("limits", c.pos(y), "", "nested deeper than %d levels", maxDepth)
		}
		n.bad = true
		return n
	case y.Style&yaml.TaggedStyle != 0:
		c.found.Errorf("yaml", c.pos(y), "remove the tag", "the tag %s is not used here", clip(y.Tag))
		n.bad = true
		return n
	}
	switch y.Kind {
	case yaml.MappingNode:
		n.shape, n.keys = mapNode, make([]pair, 0, len(y.Content)/2)
		c.mapping(n, y, depth)
	case yaml.SequenceNode:
		n.shape = listNode
		n.items = make([]*node, 0, len(y.Content))
		for _, e := range y.Content {
			if c.full {
				break
			}
			n.items = append(n.items, c.convert(e, depth+1))
		}
	default:
		n.text, n.null = y.Value, isNull(y)
	}
	return n
}

// node is a new node with the origin of its line. They are made by the hundred, since a large model has a million.
func (c *converter) node(pos diag.Pos) *node {
	const hundred = 128
	if len(c.room) == 0 {
		c.room = make([]struct {
			node   node
			origin Origin
		}, hundred)
	}
	x := &c.room[0]
	c.room = c.room[1:]
	x.origin = Origin{Kind: FromLine, Pos: pos}
	x.node = node{layer: int32(c.layer), from: &x.origin}
	return &x.node
}

func isNull(y *yaml.Node) bool {
	return y.Kind == yaml.ScalarNode && y.Tag == "!!null" && y.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) == 0
}

// mapping fills n from the pairs of y. Merge keys ("<<") are honoured: keys written out win over merged ones.
func (c *converter) mapping(n *node, y *yaml.Node, depth int) {
	var merged []*yaml.Node
	for i := 0; i+1 < len(y.Content) && !c.over(n.from.Pos); i += 2 {
		k, v := y.Content[i], y.Content[i+1]
		for hops := 0; k.Kind == yaml.AliasNode && hops < maxDepth; hops++ {
			k = k.Alias
		}
		switch {
		case k.Kind != yaml.ScalarNode:
			hint := ""
			if k.Kind == yaml.MappingNode && k.Style&yaml.FlowStyle != 0 {
				hint = "write the value itself: {{ }} of templates is not filled in here"
			}
			c.found.Errorf("yaml", c.pos(k), hint, "a key must be a single word")
			n.bad = true
			continue
		case k.Tag == "!!merge":
			merged = append(merged, v)
			continue
		}
		if first := n.find(k.Value); first != nil {
			c.found.Add(diag.Finding{
				Rule: "duplicate-key", Severity: diag.Error, Pos: c.pos(k), Msg: fmt.Sprintf("%s is written twice here", clip(k.Value)),
				Hint: "keep one of the two", Related: []diag.Related{{Pos: first.at, Msg: "first here"}},
			})
			if first.kid.shape == scalarNode {
				first.kid.bad = true // nobody knows which is meant; a mapping is checked all the same
			}
			continue
		}
		n.put(pair{k.Value, c.pos(k), c.convert(v, depth+1)})
	}
	for _, v := range merged {
		m := c.convert(v, depth+1)
		from := []*node{m}
		if m.shape == listNode {
			from = m.items
		}
		for _, s := range from {
			if s.bad {
				continue
			}
			if s.shape != mapNode {
				c.found.Errorf("yaml", s.pos(), "", "<< takes a mapping or a list of mappings")
				continue
			}
			for _, x := range s.keys {
				if n.find(x.key) == nil {
					n.put(x)
				}
			}
		}
	}
}
