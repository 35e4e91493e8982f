package report

import (
	"bytes"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// page is an SVG document in the making.
type page struct{ b bytes.Buffer }

// open begins an element; pairs are its attributes with their values.
func (p *page) open(name string, pairs ...string) { p.tag(name, pairs, ">\n") }

// close ends an element that open began.
func (p *page) close(name string) { p.b.WriteString("</" + name + ">\n") }

// empty is an element with nothing in it.
func (p *page) empty(name string, pairs ...string) { p.tag(name, pairs, "/>\n") }

// say is an element that holds text.
func (p *page) say(name, text string, pairs ...string) {
	p.tag(name, pairs, ">")
	p.b.WriteString(escaped(text))
	p.close(name)
}

func (p *page) tag(name string, pairs []string, end string) {
	p.b.WriteString("<" + name)
	for i := 0; i+1 < len(pairs); i += 2 {
		p.b.WriteString(" " + pairs[i] + `="` + escaped(pairs[i+1]) + `"`)
	}
	p.b.WriteString(end)
}

// text is a line of text at a place.
func (p *page) text(class string, x, y float64, s string) {
	p.say("text", s, "class", class, "x", num(x), "y", num(y))
}

// line is a straight line.
func (p *page) line(class string, x1, y1, x2, y2 float64) {
	p.empty("line", "class", class, "x1", num(x1), "y1", num(y1), "x2", num(x2), "y2", num(y2))
}

// num is a coordinate, to a tenth.
func num(v float64) string {
	s := strconv.FormatFloat(v, 'f', 1, 64)
	s = strings.TrimSuffix(s, ".0")
	if s == "-0" {
		return "0"
	}
	return s
}

// escaped is text as an element and an attribute may hold it.
func escaped(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;").Replace(cleaned(s))
}

// cleaned is text in which what hides or turns text, and what a document may not hold, is U+FFFD: names may come from devices.
func cleaned(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co, unicode.Noncharacter_Code_Point) {
			return utf8.RuneError
		}
		return r
	}, strings.ToValidUTF8(s, "\ufffd"))
}

// columns is how many columns of a fixed-width font text takes.
func columns(s string) int {
	n := 0
	for _, r := range s {
		if r >= 0x1100 && r < 0x1160 || r >= 0x2e80 { // East Asian text, most of which is wide
			n++
		}
		n++
	}
	return n
}

// cut is s in at most so many columns, with an ellipsis where something is missing.
func cut(s string, limit int) string {
	if columns(s) <= limit {
		return s
	}
	n := 0
	for i, r := range s {
		if n += columns(string(r)); n > limit-1 {
			return s[:i] + "…"
		}
	}
	return s
}

// wrapped breaks s at spaces into lines of at most so many columns.
func wrapped(s string, limit int) []string {
	var lines []string
	for _, w := range strings.Fields(s) {
		w = cut(w, limit)
		if n := len(lines); n > 0 && columns(lines[n-1])+1+columns(w) <= limit {
			lines[n-1] += " " + w
			continue
		}
		lines = append(lines, w)
	}
	return lines
}
