package model

import (
	"bytes"
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"github.com/fabricctl/fabricctl/model/diag"
)

// spliceFile is the text of a file, what the YAML library reads in it, and what is to change.
type spliceFile struct {
	name  string
	text  []byte
	lines []int // where each begins; one more, where the text ends
	docs  []spliceDoc
	edits []spliceEdit
}

// spliceDoc is a document of a file.
type spliceDoc struct {
	root *yaml.Node
	line int // number of lines before it
}

// spliceEdit puts text in place of what stands from from to to.
type spliceEdit struct {
	from, to int
	text     []string // lines: the first goes on where it is put
	line     int      // above which a note stands; -1: within text, above its second line, which is the first of its own
	indent   string   // of the note
	value    SplicedValue
}

// spliceRefusal is why the text cannot be changed in a place.
type spliceRefusal struct {
	what, hint string
	related    []diag.Related
}

func refusal(format string, a ...any) *spliceRefusal {
	return &spliceRefusal{what: fmt.Sprintf(format, a...)}
}

// newSpliceFile reads a file that Load has read.
func newSpliceFile(name string, b []byte) *spliceFile {
	f := &spliceFile{name: name, text: b, lines: []int{0}}
	for i, c := range b {
		if c == '\n' && i+1 < len(b) {
			f.lines = append(f.lines, i+1)
		}
	}
	f.lines = append(f.lines, len(b))
	for _, p := range split(bytes.Clone(b)) { // split changes what it reads
		for dec := yaml.NewDecoder(bytes.NewReader(p.text)); ; {
			y, err := decode(dec)
			if err != nil {
				break
			}
			if len(y.Content) == 1 {
				f.docs = append(f.docs, spliceDoc{y.Content[0], p.line})
			}
		}
	}
	return f
}

// place is a node of the library with the nodes around it, from the top of its document.
type splicePlace struct {
	*yaml.Node
	doc    spliceDoc
	around []*yaml.Node
}

// find is the innermost node at pos for which fits holds; around it are those above it.
func (f *spliceFile) find(pos diag.Pos, fits func(*yaml.Node) bool) (splicePlace, bool) {
	for _, d := range f.docs {
		var around []*yaml.Node
		var best splicePlace
		var visit func(y *yaml.Node)
		visit = func(y *yaml.Node) {
			if d.line+y.Line == pos.Line && y.Column == pos.Col && fits(y) {
				best = splicePlace{y, d, slices.Clone(around)}
			}
			around = append(around, y)
			for _, c := range y.Content {
				visit(c)
			}
			around = around[:len(around)-1]
		}
		visit(d.root)
		if best.Node != nil {
			return best, true
		}
	}
	return splicePlace{}, false
}

// shared refuses a place whose text counts in other places too: it, or something around it, has an anchor that is used.
func (f *spliceFile) shared(p splicePlace) *spliceRefusal {
	for _, y := range append(slices.Clone(p.around), p.Node) {
		if y.Anchor == "" {
			continue
		}
		r := refusal("it stands in the anchor &%s, which other places use too", clip(y.Anchor))
		var visit func(*yaml.Node)
		visit = func(c *yaml.Node) {
			if c.Kind == yaml.AliasNode && c.Alias == y && len(r.related) < 3 {
				r.related = append(r.related, diag.Related{Pos: diag.Pos{File: f.name, Line: p.doc.line + c.Line, Col: c.Column}, Msg: "used here"})
			}
			for _, k := range c.Content {
				visit(k)
			}
		}
		if visit(p.doc.root); len(r.related) > 0 {
			return r
		}
	}
	return nil
}

// offset is where a place of the library begins in the text; false when there is none such.
func (f *spliceFile) offset(line, col int) (int, bool) {
	if line < 1 || line >= len(f.lines) {
		return 0, false
	}
	at, end := f.lines[line-1], f.lines[line]
	if line == 1 && bytes.HasPrefix(f.text, []byte("\ufeff")) {
		at += len("\ufeff")
	}
	for ; col > 1 && at < end; col-- {
		_, n := utf8.DecodeRune(f.text[at:])
		at += n
	}
	return at, col == 1
}

// lineOf is the number, from 1, of the line that holds an offset.
func (f *spliceFile) lineOf(at int) int {
	i, found := slices.BinarySearch(f.lines[:len(f.lines)-1], at)
	if found {
		return i + 1
	}
	return i
}

// indentOf is what a line begins with.
func (f *spliceFile) indentOf(line int) string {
	l := f.text[f.lines[line-1]:f.lines[line]]
	return string(l[:len(l)-len(bytes.TrimLeft(l, " "))])
}

// replace puts v.After where something of a shape stands at v.Pos.
func (f *spliceFile) replace(v SplicedValue, s shape) *spliceRefusal {
	p, ok := f.find(v.Pos, func(y *yaml.Node) bool { return y.Kind == yaml.ScalarNode == (s == scalarNode) })
	if !ok {
		return refusal("it was not found in the text")
	}
	if r := f.shared(p); r != nil {
		return r
	}
	from, to, ok := f.extent(p.Node, p.doc.line)
	if p.Style&yaml.FlowStyle != 0 {
		if from, ok = f.offset(p.doc.line+p.Line, p.Column); ok {
			to, ok = f.end(p.Node, p.doc.line)
		}
	}
	if !ok {
		return refusal("what stands there is written over several lines")
	}
	text := bareText(v.After)
	switch f.text[from] {
	case '\'':
		text = "'" + strings.ReplaceAll(v.After, "'", "''") + "'"
	case '"':
		text = fmt.Sprintf("%q", v.After)
	}
	line := f.lineOf(from)
	f.edits = append(f.edits, spliceEdit{from: from, to: to, text: []string{text}, line: line, indent: f.indentOf(line), value: v})
	return nil
}

// extent is where a scalar begins and ends in the text, without its anchor; false when it is not on one line, as written.
func (f *spliceFile) extent(y *yaml.Node, before int) (from, to int, ok bool) {
	from, ok = f.offset(before+y.Line, y.Column)
	if !ok {
		return 0, 0, false
	}
	line := f.text[from:f.lines[f.lineOf(from)]]
	if y.Anchor != "" {
		rest := bytes.TrimLeft(bytes.TrimPrefix(line, []byte("&"+y.Anchor)), " ")
		from += len(line) - len(rest)
		line = rest
	}
	switch {
	case y.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 || len(line) == 0:
		return 0, 0, false
	case y.Style&yaml.DoubleQuotedStyle != 0 && line[0] == '"':
		for i := 1; i < len(line); i++ {
			switch line[i] {
			case '\\':
				i++
			case '"':
				return from, from + i + 1, true
			}
		}
		return 0, 0, false
	case y.Style&yaml.SingleQuotedStyle != 0 && line[0] == '\'':
		for i := 1; i < len(line); i++ {
			if line[i] != '\'' {
				continue
			}
			if i+1 < len(line) && line[i+1] == '\'' {
				i++
				continue
			}
			return from, from + i + 1, true
		}
		return 0, 0, false
	}
	return from, from + len(y.Value), y.Value != "" && bytes.HasPrefix(line, []byte(y.Value))
}

// end is where what a node says ends in the text; false when that cannot be told.
func (f *spliceFile) end(y *yaml.Node, before int) (int, bool) {
	switch {
	case y.Kind == yaml.AliasNode:
		from, ok := f.offset(before+y.Line, y.Column)
		return from + 1 + len(y.Value), ok
	case y.Kind == yaml.ScalarNode:
		_, to, ok := f.extent(y, before)
		return to, ok
	case y.Style&yaml.FlowStyle == 0:
		if n := len(y.Content); n > 0 {
			return f.end(y.Content[n-1], before)
		}
		return 0, false
	}
	from, ok := f.offset(before+y.Line, y.Column)
	if !ok {
		return 0, false
	}
	if n := len(y.Content); n > 0 { // what closes it follows the last that is in it
		if from, ok = f.end(y.Content[n-1], before); !ok {
			return 0, false
		}
		return f.closing(from)
	}
	if y.Anchor != "" {
		from += len("&" + y.Anchor)
	}
	i := bytes.IndexAny(f.text[from:], "{[")
	if i < 0 {
		return 0, false
	}
	return f.closing(from + i + 1)
}

// closing is behind the bracket that closes a flow collection whose last part ends at from.
func (f *spliceFile) closing(from int) (int, bool) {
	for i := from; i < len(f.text); i++ {
		switch f.text[i] {
		case '}', ']':
			return i + 1, true
		case '#':
			for i+1 < len(f.text) && f.text[i+1] != '\n' {
				i++
			}
		case ' ', '\t', '\r', '\n', ',':
		default:
			return 0, false
		}
	}
	return 0, false
}

// insertKey puts x into the mapping that has a key at v.Pos, behind that key and its value.
func (f *spliceFile) insertKey(v SplicedValue, x pair) *spliceRefusal {
	key, ok := f.find(v.Pos, func(y *yaml.Node) bool { return y.Kind == yaml.ScalarNode })
	if !ok || len(key.around) == 0 {
		return refusal("its neighbours were not found in the text")
	}
	into := key.around[len(key.around)-1]
	i := slices.Index(into.Content, key.Node)
	if into.Kind != yaml.MappingNode || i%2 != 0 {
		return refusal("its neighbours are no mapping")
	}
	if r := f.shared(key); r != nil {
		return r
	}
	value := into.Content[i+1]
	end, ok := f.end(value, key.doc.line)
	if !ok {
		return refusal("the value before it is written over several lines")
	}
	if into.Style&yaml.FlowStyle != 0 {
		line := f.lineOf(end)
		f.edits = append(f.edits, spliceEdit{
			from: end, to: end, text: []string{", " + keyText(x.key) + ": " + flowText(x.kid)}, line: line, indent: f.indentOf(line), value: v,
		})
		return nil
	}
	f.insertLines(end, strings.Repeat(" ", into.Content[0].Column-1), blockText(x, 0), v)
	return nil
}

// insertFirst puts x into the empty mapping in braces at v.Pos.
func (f *spliceFile) insertFirst(v SplicedValue, x pair) *spliceRefusal {
	p, ok := f.find(v.Pos, func(y *yaml.Node) bool {
		return y.Kind == yaml.MappingNode && y.Style&yaml.FlowStyle != 0 && len(y.Content) == 0
	})
	if !ok {
		return refusal("there is no mapping to put it in")
	}
	return f.fill(p, v, keyText(x.key)+": "+flowText(x.kid))
}

// fill puts text into an empty flow collection.
func (f *spliceFile) fill(p splicePlace, v SplicedValue, text string) *spliceRefusal {
	if r := f.shared(p); r != nil {
		return r
	}
	end, ok := f.end(p.Node, p.doc.line)
	if !ok {
		return refusal("where it ends cannot be told")
	}
	line := f.lineOf(end - 1)
	f.edits = append(f.edits, spliceEdit{from: end - 1, to: end - 1, text: []string{text}, line: line, indent: f.indentOf(line), value: v})
	return nil
}

// appendItem puts e behind the last element of the list that has one at v.Pos, or into the empty list that stands there.
func (f *spliceFile) appendItem(v SplicedValue, e *node, empty bool) *spliceRefusal {
	if empty {
		p, ok := f.find(v.Pos, func(y *yaml.Node) bool { return y.Kind == yaml.SequenceNode && len(y.Content) == 0 })
		if !ok {
			return refusal("there is no list to put it in")
		}
		return f.fill(p, v, flowText(e))
	}
	last, ok := f.find(v.Pos, func(y *yaml.Node) bool { return y.Kind == yaml.MappingNode })
	if !ok || len(last.around) == 0 {
		return refusal("its neighbours were not found in the text")
	}
	into := last.around[len(last.around)-1]
	if into.Kind != yaml.SequenceNode {
		return refusal("its neighbours are no list")
	}
	if r := f.shared(last); r != nil {
		return r
	}
	end, ok := f.end(into.Content[len(into.Content)-1], last.doc.line)
	if !ok {
		return refusal("the element before it is written over several lines")
	}
	if into.Style&yaml.FlowStyle != 0 {
		line := f.lineOf(end)
		f.edits = append(f.edits, spliceEdit{from: end, to: end, text: []string{", " + flowText(e)}, line: line, indent: f.indentOf(line), value: v})
		return nil
	}
	f.insertLines(end, strings.Repeat(" ", into.Column-1), itemText(e), v)
	return nil
}

// insertLines puts lines behind the line that holds the place before end.
func (f *spliceFile) insertLines(end int, indent string, lines []string, v SplicedValue) {
	at := f.lines[f.lineOf(end-1)]
	text := make([]string, 0, len(lines)+1)
	for _, l := range lines {
		text = append(text, indent+l)
	}
	if at > 0 && f.text[at-1] != '\n' { // the file ends without a line end, and goes on so
		text = append([]string{""}, text...)
	} else {
		text = append(text, "")
	}
	f.edits = append(f.edits, spliceEdit{from: at, to: at, text: text, line: -1, indent: indent, value: v})
}

// values are what is changed, in the order of the file.
func (f *spliceFile) values() []SplicedValue {
	var vs []SplicedValue
	for _, e := range f.sorted() {
		vs = append(vs, e.value)
	}
	return vs
}

func (f *spliceFile) sorted() []spliceEdit {
	return slices.SortedStableFunc(slices.Values(f.edits), func(a, b spliceEdit) int { return cmp.Compare(a.from, b.from) })
}

// noted is a line that holds nothing but a note of an earlier experiment.
var noted = regexp.MustCompile(`^ *# tuned [0-9]{4}-[0-9]{2}-[0-9]{2}[:,]`)

// result is the text with all edits, and the note above each group of lines that change, one below the other and as deep.
func (f *spliceFile) result(note string) []byte {
	eol := "\n"
	if n := f.lines[1]; n >= 2 && f.text[n-2] == '\r' {
		eol = "\r\n"
	}
	edits := f.sorted()
	if note != "" {
		edits = f.notes(edits, "# "+diag.Line(note))
	}
	var out bytes.Buffer
	at := 0
	for _, e := range edits {
		out.Write(f.text[at:e.from])
		out.WriteString(strings.Join(e.text, eol))
		at = e.to
	}
	out.Write(f.text[at:])
	return out.Bytes()
}

// notes is edits with those that put notes above changed lines, and take out earlier ones.
func (f *spliceFile) notes(edits []spliceEdit, note string) []spliceEdit {
	earlier := func(line int) bool { return line >= 1 && noted.Match(f.text[f.lines[line-1]:f.lines[line]]) }
	var out []spliceEdit
	last, indent := -1, "" // the line that was changed last, and how deep
	for _, e := range edits {
		line := e.line
		if line < 0 {
			above := f.lineOf(max(e.from-1, 0)) // lines are added behind it
			if above != last || e.indent != indent {
				i := slices.IndexFunc(e.text, func(s string) bool { return s != "" })
				e.text = slices.Insert(slices.Clone(e.text), i, e.indent+note)
			}
			out = append(out, e)
			last, indent = above, e.indent
			continue
		}
		if line != last {
			first := line
			for earlier(first - 1) {
				first--
			}
			n := spliceEdit{from: f.lines[first-1], to: f.lines[line-1]}
			if first-1 != last || e.indent != indent {
				n.text = []string{e.indent + note, ""}
			}
			if n.to > n.from || n.text != nil {
				out = append(out, n)
			}
		}
		out = append(out, e)
		last, indent = line, e.indent
	}
	return out
}

var bareRE = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_./%+-]*$`)

// bareText is a value as YAML takes it for that value, in block and in flow mappings, where no quotes are called for.
func bareText(s string) string {
	if bareRE.MatchString(s) {
		return s
	}
	return fmt.Sprintf("%q", s)
}

// keyText is a name as a key.
func keyText(s string) string { return Scalar(s) }

// flowText is a node on one line.
func flowText(n *node) string {
	var parts []string
	switch n.shape {
	case mapNode:
		for _, x := range n.keys {
			parts = append(parts, keyText(x.key)+": "+flowText(x.kid))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case listNode:
		for _, e := range n.items {
			parts = append(parts, flowText(e))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	return bareText(n.text)
}

// blockText is a key with what stands there as lines: mappings of single values on the line of their key, as models are written.
func blockText(x pair, depth int) []string {
	indent := strings.Repeat("  ", depth)
	head := indent + keyText(x.key) + ":"
	if x.kid.shape == scalarNode || x.kid.shape == mapNode && !slices.ContainsFunc(x.kid.keys, func(k pair) bool { return k.kid.shape != scalarNode }) {
		return []string{head + " " + flowText(x.kid)}
	}
	lines := []string{head}
	for _, k := range x.kid.keys {
		lines = append(lines, blockText(k, depth+1)...)
	}
	for _, e := range x.kid.items {
		for _, l := range itemText(e) {
			lines = append(lines, indent+"  "+l)
		}
	}
	return lines
}

// itemText is an element of a list as lines.
func itemText(e *node) []string {
	if e.shape != mapNode {
		return []string{"- " + flowText(e)}
	}
	var lines []string
	for _, k := range e.keys {
		lines = append(lines, blockText(k, 1)...)
	}
	lines[0] = "- " + strings.TrimPrefix(lines[0], "  ")
	return lines
}
