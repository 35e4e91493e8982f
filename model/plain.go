package model

import (
	"slices"
	"strings"

	"github.com/fabricctl/fabricctl/model/diag"
)

// plain reads one document of the plainest YAML in a single walk, without the library: keys that are words, values and
// flow collections on the line of their key, lists and mappings by indentation, quotes without escapes, comments. Large
// models are written by programs that write just that, and the library takes four times as long for it and twice the memory, on one processor.
// At the slightest doubt the library is asked instead: plain never reports anything, and what it does take means to the
// library the same, to the last position (FuzzPlain).
type plain struct {
	*converter
	text   string
	row    int // number of the line at hand, from 0
	begin  int // where it begins in text
	end    int // where it ends
	at     int // the place at hand
	indent int // the column of what begins the line, or stands behind its dashes; -1 behind the last line
	made   int // nodes so far
	doubt  bool
}

// plain is the node of a document; false says that the library must look at it.
func (c *converter) plain(b []byte) (*node, bool) {
	p := plain{converter: c, text: string(b), row: -1, end: -1}
	for _, r := range p.text { // of what is not ASCII, only what a comment may hold
		if r < ' ' && r != '\n' || r > '~' && (r < 0xa1 || r > 0x2027) {
			return nil, false
		}
	}
	if p.line(); p.indent == 0 && p.text[p.at:p.end] == "---" {
		p.line()
	}
	if p.indent < 0 {
		return nil, false
	}
	n := p.block(0)
	if p.doubt || p.indent >= 0 {
		return nil, false
	}
	c.nodes += p.made
	return n, true
}

// line goes on to the next line that is neither blank nor a comment.
func (p *plain) line() {
	for p.end < len(p.text) {
		p.begin, p.row = p.end+1, p.row+1
		if p.begin >= len(p.text) {
			break
		}
		if n := strings.IndexByte(p.text[p.begin:], '\n'); n < 0 {
			p.end = len(p.text)
		} else {
			p.end = p.begin + n
		}
		if p.at = p.begin; !p.blank() {
			p.indent = p.at - p.begin
			return
		}
	}
	p.begin, p.end, p.at, p.indent = len(p.text), len(p.text), len(p.text), -1
}

// blank skips spaces, and reports whether nothing but a comment is left of the line.
func (p *plain) blank() bool {
	for p.at < p.end && p.text[p.at] == ' ' {
		p.at++
	}
	return p.at == p.end || p.text[p.at] == '#' && (p.at == p.begin || p.text[p.at-1] == ' ')
}

// is reports whether c stands at the place at hand.
func (p *plain) is(c byte) bool { return p.at < p.end && p.text[p.at] == c }

// item reports whether a list element begins at the place at hand.
func (p *plain) item() bool { return p.is('-') && p.at+1 < p.end && p.text[p.at+1] == ' ' }

// pos is the place at hand.
func (p *plain) pos() diag.Pos {
	return diag.Pos{File: p.file, Line: p.offset + p.row + 1, Col: p.at - p.begin + 1}
}

// node is a new node at the place at hand.
func (p *plain) node(s shape, depth int) *node {
	if p.made++; depth > maxDepth || p.nodes+p.made > maxNodes {
		p.doubt = true
	}
	n := p.converter.node(p.pos())
	n.shape = s
	return n
}

// block is the list or mapping that begins with the line at hand. What comes after it is at hand then.
func (p *plain) block(depth int) *node {
	if p.item() {
		return p.list(depth)
	}
	return p.mapping(depth)
}

// mapping is the mapping that begins at the place at hand, where its keys are aligned.
func (p *plain) mapping(depth int) *node {
	n, indent := p.node(mapNode, depth), p.indent
	for !p.doubt && p.indent == indent && !p.item() {
		key, pos := p.key()
		if p.doubt {
			break
		}
		if !p.blank() {
			p.put(n, key, pos, p.value(depth+1, false))
			p.doubt = p.doubt || !p.blank()
			p.line()
			continue
		}
		p.line()
		if p.indent < indent || p.indent == indent && !p.item() { // no value
			p.doubt = true
			break
		}
		p.put(n, key, pos, p.block(depth+1))
	}
	p.doubt = p.doubt || p.indent > indent // goes on with a value, or fits nowhere
	return n
}

// list is the list that begins at the place at hand, where its dashes are aligned. It may be the value of a key that
// stands as deep.
func (p *plain) list(depth int) *node {
	n, indent := p.node(listNode, depth), p.indent
	for !p.doubt && p.indent == indent && p.item() {
		if p.at++; p.blank() || p.item() {
			p.doubt = true
			break
		}
		if p.word() > 0 {
			p.indent = p.at - p.begin
			n.items = append(n.items, p.mapping(depth+1))
			continue
		}
		n.items = append(n.items, p.value(depth+1, false))
		p.doubt = p.doubt || !p.blank()
		p.line()
	}
	p.doubt = p.doubt || p.indent > indent
	n.items = slices.Clip(n.items)
	return n
}

// put adds a key. What is there twice is not for plain to report.
func (p *plain) put(n *node, key string, pos diag.Pos, v *node) {
	p.doubt = p.doubt || n.find(key) != nil
	n.put(pair{key, pos, v})
}

// word is the length of the key at the place at hand, 0 when there is none: letters, digits, and "_", "-", ".", "/", of
// which the first two may begin it, and a colon behind it.
func (p *plain) word() int {
	const most = 256 // YAML ends at 1024
	for n, c := range []byte(p.text[p.at:min(p.end, p.at+most)]) {
		switch {
		case isAlnum(c) || c == '_' || n > 0 && (c == '-' || c == '.' || c == '/'):
			continue
		case c == ':' && n > 0 && (p.at+n+1 == p.end || p.text[p.at+n+1] == ' '):
			return n
		}
		break
	}
	return 0
}

// key takes a key and its colon.
func (p *plain) key() (string, diag.Pos) {
	n, pos := p.word(), p.pos()
	if n == 0 {
		p.doubt = true
		return "", pos
	}
	p.at += n + 1
	return p.text[p.at-n-1 : p.at-1], pos
}

// value takes a scalar or a flow collection, in a flow collection or not.
func (p *plain) value(depth int, inFlow bool) *node {
	switch {
	case p.is('{'):
		return p.flow(mapNode, '}', depth)
	case p.is('['):
		return p.flow(listNode, ']', depth)
	}
	n := p.node(scalarNode, depth)
	switch {
	case p.is('"'), p.is('\''):
		n.text = p.quoted()
	default:
		n.text = p.bare(inFlow)
		n.null = n.text == "null" || n.text == "Null" || n.text == "NULL"
	}
	return n
}

// flow takes a collection in braces or brackets.
func (p *plain) flow(s shape, closing byte, depth int) *node {
	n := p.node(s, depth)
	p.at++
	if p.blank(); p.is(closing) {
		p.at++
		return n
	}
	for !p.doubt {
		if s == mapNode {
			key, pos := p.key()
			if p.doubt || p.blank() {
				p.doubt = true
				break
			}
			p.put(n, key, pos, p.value(depth+1, true))
		} else {
			n.items = append(n.items, p.value(depth+1, true))
		}
		if p.blank() {
			p.doubt = true
		} else if p.at++; p.text[p.at-1] == closing {
			break
		}
		p.doubt = p.doubt || p.text[p.at-1] != ',' || p.blank()
	}
	n.items = slices.Clip(n.items)
	return n
}

// quoted takes a scalar in quotes that holds neither those nor escapes.
func (p *plain) quoted() string {
	quote := p.text[p.at]
	n := strings.IndexByte(p.text[p.at+1:p.end], quote)
	if n < 0 {
		p.doubt = true
		return ""
	}
	s := p.text[p.at+1 : p.at+1+n]
	p.at += n + 2
	p.doubt = p.doubt || strings.ContainsFunc(s, func(r rune) bool { return r == '\\' && quote == '"' || r > '~' })
	return s
}

// bare takes a scalar without quotes. It ends with the line or before a comment, and in a flow collection with what
// closes it or separates its parts. A colon in it stands before a letter or digit, so that it is none of a key.
func (p *plain) bare(inFlow bool) string {
	from, to := p.at, p.at // to is behind the last that is no space
	for ; p.at < p.end; p.at++ {
		more := byte(' ')
		if p.at+1 < p.end {
			more = p.text[p.at+1]
		}
		switch c := p.text[p.at]; {
		case isAlnum(c), c == '_', c == '.', c == '/':
		case to > from && c == ' ':
			continue
		case c == '-' && (to > from || isAlnum(more)):
		case c == ':' && to > from && isAlnum(more):
		case to > from && strings.IndexByte("%+=@;()<>~^$", c) >= 0, to > from && c == ',' && !inFlow:
		case inFlow && (c == ',' || c == ']' || c == '}'), !inFlow && c == '#' && p.text[p.at-1] == ' ':
			p.doubt = p.doubt || to == from
			return p.text[from:to]
		default:
			p.doubt = true
			return ""
		}
		to = p.at + 1
	}
	p.doubt = p.doubt || to == from || inFlow
	return p.text[from:to]
}

func isAlnum(c byte) bool { return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' }
