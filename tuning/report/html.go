package report

import (
	"slices"
	"strconv"
	"strings"
)

// writer is an HTML document in the making.
type writer struct {
	page
	charts int
}

// say is a text in which a number and its percent sign stay on one line.
func (w *writer) say(name, text string, pairs ...string) {
	w.page.say(name, strings.ReplaceAll(text, " %", "\u00a0%"), pairs...)
}

// HTML is the page as one file that needs nothing else: no script, no font, no picture from elsewhere. The same page gives the same
// bytes.
func HTML(p Page) []byte {
	w := &writer{}
	w.b.WriteString("<!DOCTYPE html>\n")
	w.open("html", "lang", "en")
	w.open("head")
	w.empty("meta", "charset", "utf-8")
	w.empty("meta", "name", "viewport", "content", "width=device-width, initial-scale=1")
	w.empty("meta", "http-equiv", "Content-Security-Policy", "content", "default-src 'none'; style-src 'unsafe-inline'; img-src data:")
	w.empty("meta", "name", "referrer", "content", "no-referrer")
	w.say("title", p.Title)
	w.b.WriteString("<style>" + lookOfPages)
	if p.pictured() {
		w.b.WriteString(look + lookOfMarks)
	}
	w.b.WriteString("</style>\n")
	w.close("head")
	w.open("body")
	w.open("main")
	w.open("header")
	w.say("h1", p.Title)
	if p.Subtitle != "" {
		w.say("p", p.Subtitle, "class", "under")
	}
	w.close("header")
	w.answer(p.Answer)
	w.facts(p.Facts)
	w.contents(p.Sections)
	for i := range p.Sections {
		w.open("section", "id", sectionID(i))
		w.say("h2", p.Sections[i].Title)
		for _, b := range p.Sections[i].Blocks {
			b.html(w)
		}
		w.close("section")
	}
	if p.Foot != "" {
		w.open("footer")
		w.say("p", p.Foot)
		w.close("footer")
	}
	w.close("main")
	w.close("body")
	w.close("html")
	return w.b.Bytes()
}

// pictured reports whether a page has a chart.
func (p *Page) pictured() bool {
	return slices.ContainsFunc(p.Sections, func(s Section) bool {
		return slices.ContainsFunc(s.Blocks, func(b Block) bool {
			_, ok := b.(Picture)
			return ok
		})
	})
}

func sectionID(i int) string { return "s" + strconv.Itoa(i+1) }

// class is how a tone looks.
func (t Tone) class() string { return [...]string{"plain", "good", "careful", "bad"}[t] }

func (w *writer) answer(a Answer) {
	if a.Head == "" && len(a.Text) == 0 {
		return
	}
	w.open("div", "class", "answer "+a.Tone.class())
	if a.Head != "" {
		w.say("p", a.Head, "class", "head")
	}
	for _, s := range a.Text {
		w.say("p", s)
	}
	w.close("div")
}

func (w *writer) facts(fs []Fact) {
	if len(fs) == 0 {
		return
	}
	w.open("dl", "class", "facts")
	for _, f := range fs {
		w.open("div")
		w.say("dt", f.Name)
		w.say("dd", f.Value, "class", "value")
		if f.Note != "" {
			w.say("dd", f.Note, "class", "note")
		}
		w.close("div")
	}
	w.close("dl")
}

// contents leads to the sections, where there are enough to get lost in.
func (w *writer) contents(ss []Section) {
	if len(ss) < 4 {
		return
	}
	w.open("nav", "aria-label", "contents")
	w.open("ol")
	for i := range ss {
		w.b.WriteString("<li>")
		w.say("a", ss[i].Title, "href", "#"+sectionID(i))
		w.close("li")
	}
	w.close("ol")
	w.close("nav")
}

func (t Text) html(w *writer) { w.say("p", string(t)) }

func (l List) html(w *writer) {
	if len(l) == 0 {
		return
	}
	w.open("ul")
	for _, s := range l {
		w.say("li", s)
	}
	w.close("ul")
}

func (t Table) html(w *writer) {
	if len(t.Head) == 0 {
		return
	}
	label := t.Caption
	if label == "" {
		label = strings.Join(t.Head, ", ")
	}
	if t.Caption != "" {
		w.say("p", t.Caption, "class", "caption") // of a table it would scroll away
	}
	w.open("div", "class", "wide", "tabindex", "0", "role", "region", "aria-label", label) // scrolls by itself where it is too wide
	w.open("table")
	w.open("thead")
	w.open("tr")
	for i, h := range t.Head {
		w.say("th", h, append(t.align(i), "scope", "col")...)
	}
	w.close("tr")
	w.close("thead")
	w.open("tbody")
	for _, r := range t.Rows {
		if r.Strong {
			w.open("tr", "class", "strong")
		} else {
			w.open("tr")
		}
		for i := range t.Head {
			w.say("td", r.cell(i), t.align(i)...)
		}
		w.close("tr")
	}
	w.close("tbody")
	w.close("table")
	w.close("div")
}

// align is the attributes of a cell.
func (t *Table) align(column int) []string {
	if slices.Contains(t.Numbers, column) {
		return []string{"class", "number"}
	}
	return nil
}

func (r *Row) cell(i int) string {
	if i < len(r.Cells) {
		return r.Cells[i]
	}
	return ""
}

func (p Picture) html(w *writer) {
	w.open("figure")
	w.b.Write(p.Chart.svg(w.charts))
	w.charts++
	if len(p.Numbers.Head) > 0 {
		w.open("details")
		w.say("summary", "the same in numbers")
		p.Numbers.html(w)
		w.close("details")
	}
	w.close("figure")
}

func (l Log) html(w *writer) {
	if len(l) == 0 {
		return
	}
	w.open("ol", "class", "log")
	for _, e := range l {
		w.open("li")
		w.open("p", "class", "what")
		w.say("span", e.Head, "class", "asked")
		if e.Tag != "" {
			w.say("span", e.Tag, "class", "tag "+e.Tone.class())
		}
		w.close("p")
		if e.Text != "" {
			w.say("p", e.Text)
		}
		if len(e.Facts) > 0 {
			w.say("p", strings.Join(e.Facts, " · "), "class", "small")
		}
		w.close("li")
	}
	w.close("ol")
}

func (c Code) html(w *writer) {
	w.open("div", "class", "wide", "tabindex", "0", "role", "region", "aria-label", "code")
	w.b.WriteString("<pre><code>")
	for i, line := range codeLines(c.Text) {
		if i > 0 {
			w.b.WriteByte('\n')
		}
		line = escaped(line)
		switch {
		case c.Lang == "diff" && strings.HasPrefix(line, "+"):
			line = `<span class="plus">` + line + "</span>"
		case c.Lang == "diff" && strings.HasPrefix(line, "-"):
			line = `<span class="minus">` + line + "</span>"
		}
		w.b.WriteString(line)
	}
	w.b.WriteString("</code></pre>\n")
	w.close("div")
}

// codeLines are the lines of a text, tabs as spaces: what is no text in them is replaced when they are escaped.
func codeLines(s string) []string {
	s = strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\t", "    ")
	return strings.Split(strings.TrimRight(s, "\n"), "\n")
}
