package picture

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// elem is an element of an SVG document in the making: a name, attributes in order, and text or elements inside.
type elem struct {
	name  string
	attrs []attr
	text  string
	kids  []*elem
}

type attr struct{ key, value string }

func str(key, value string) attr { return attr{key, value} }
func num(key string, v int) attr { return attr{key, itoa(v)} }
func class(names string) attr    { return attr{"class", names} }
func itoa(n int) string          { return strconv.Itoa(n) }

func el(name string, attrs ...attr) *elem { return &elem{name: name, attrs: attrs} }

// add appends elements inside e, and leaves out those that are nil.
func (e *elem) add(kids ...*elem) *elem {
	for _, k := range kids {
		if k != nil {
			e.kids = append(e.kids, k)
		}
	}
	return e
}

// say gives e text.
func (e *elem) say(text string) *elem {
	e.text = text
	return e
}

// tip is what a viewer shows of an element under the pointer, and reads aloud.
func tip(text string) *elem { return el("title").say(text) }

func inside(classes string) *elem { return el("g", class(classes)) }

func rect(classes string, x, y, w, h, radius int) *elem {
	return el("rect", class(classes), num("x", x), num("y", y), num("width", w), num("height", h), num("rx", radius))
}

// write is text whose left end is at x; middle is text around x.
func write(classes string, x, y int, text string) *elem {
	return el("text", class(classes), num("x", x), num("y", y)).say(text)
}

func middle(classes string, x, y int, text string) *elem { return write(classes+" mid", x, y, text) }

func circle(classes string, x, y, r int) *elem {
	return el("circle", class(classes), num("cx", x), num("cy", y), num("r", r))
}

func ellipse(classes string, x, y, rx, ry int) *elem {
	return el("ellipse", class(classes), num("cx", x), num("cy", y), num("rx", rx), num("ry", ry))
}

func line(classes string, a, b point) *elem {
	return el("line", class(classes), num("x1", a.x), num("y1", a.y), num("x2", b.x), num("y2", b.y))
}

// curve is a path from a to b that is drawn towards c.
func curve(classes string, a, c, b point) *elem {
	return el("path", class(classes), str("d", fmt.Sprintf("M%d %dQ%d %d %d %d", a.x, a.y, c.x, c.y, b.x, b.y)))
}

func polygon(classes string, ps ...point) *elem {
	s := make([]string, len(ps))
	for i, p := range ps {
		s[i] = itoa(p.x) + "," + itoa(p.y)
	}
	return el("polygon", class(classes), str("points", strings.Join(s, " ")))
}

// point is a place in the picture, in pixels from its upper left corner.
type point struct{ x, y int }

// encode writes e and what is in it, one element a line where it holds others.
func (e *elem) encode(b *bytes.Buffer) {
	b.WriteByte('<')
	b.WriteString(e.name)
	for _, a := range e.attrs {
		b.WriteByte(' ')
		b.WriteString(a.key)
		b.WriteString(`="`)
		escape(b, a.value)
		b.WriteByte('"')
	}
	switch {
	case len(e.kids) > 0:
		b.WriteString(">\n")
		for _, k := range e.kids {
			k.encode(b)
		}
		b.WriteString("</" + e.name + ">\n")
	case e.text != "":
		b.WriteByte('>')
		escape(b, e.text)
		b.WriteString("</" + e.name + ">\n")
	default:
		b.WriteString("/>\n")
	}
}

// escape writes text as XML may hold it.
func escape(b *bytes.Buffer, s string) {
	r := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;")
	_, _ = r.WriteString(b, seen(s)) // a Buffer takes everything
}

// seen is s with escapes of ours for what hides or turns text, and for what a document may not hold: names and findings
// may come from devices. Line ends stay.
func seen(s string) string {
	if strings.IndexFunc(s, unseen) < 0 && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case r != '\n' && unseen(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	return b.String()
}

// unseen reports whether r steers instead of showing: control and format characters, separators of lines, and code
// points that are no characters.
func unseen(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co, unicode.Noncharacter_Code_Point)
}

// columns is how many columns of a fixed-width font text takes.
func columns(s string) int {
	n := 0
	for _, r := range s {
		switch {
		case unseen(r):
			n += 6
		case r >= 0x1100 && r < 0x1160, r >= 0x2e80: // East Asian text, most of which is wide
			n += 2
		default:
			n++
		}
	}
	return n
}

// cut is s in at most so many columns, with an ellipsis when something is missing.
func cut(s string, limit int) string {
	if columns(s) <= limit {
		return s
	}
	at := 0
	for i, r := range s {
		if at += columns(string(r)); at > limit-1 {
			return s[:i] + "…"
		}
	}
	return s
}

// wrapped breaks s at spaces into lines of at most so many columns.
func wrapped(s string, limit int) []string {
	var lines []string
	at := ""
	for _, w := range strings.Fields(s) {
		w = cut(w, limit)
		switch {
		case at == "":
			at = w
		case columns(at)+1+columns(w) <= limit:
			at += " " + w
		default:
			lines = append(lines, at)
			at = w
		}
	}
	if at != "" {
		lines = append(lines, at)
	}
	return lines
}
