package report

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// text is a Markdown document in the making. Names may come from devices and from whoever wrote the model: none can become a tag,
// a link, a mention or a line of its own.
type text struct{ strings.Builder }

// Markdown is the page for a pull request or a wiki, in the dialect of GitHub and GitLab. It holds the numbers of charts, and no
// charts. The same page gives the same bytes.
func Markdown(p Page) []byte {
	t := &text{}
	t.block("# " + within(p.Title))
	if p.Subtitle != "" {
		t.block(plainly(p.Subtitle))
	}
	if p.Answer.Head != "" {
		t.block("**" + within(p.Answer.Head) + "**")
	}
	for _, s := range p.Answer.Text {
		t.block(plainly(s))
	}
	if len(p.Facts) > 0 {
		facts := Table{Head: []string{"number", "", ""}}
		for _, f := range p.Facts {
			facts.Rows = append(facts.Rows, Row{Cells: []string{f.Name, f.Value, f.Note}})
		}
		facts.markdown(t)
	}
	for _, s := range p.Sections {
		t.block("## " + within(s.Title))
		for _, b := range s.Blocks {
			b.markdown(t)
		}
	}
	if p.Foot != "" {
		t.block("---")
		t.block(plainly(p.Foot))
	}
	return []byte(t.String())
}

// block writes lines, and a blank one before them.
func (t *text) block(s string) {
	if t.Len() > 0 {
		t.WriteByte('\n')
	}
	t.WriteString(s + "\n")
}

// plainly is text that begins a line, in which nothing means anything to Markdown.
func plainly(s string) string {
	out := within(s)
	if out != "" && strings.IndexByte("#+-=:", out[0]) >= 0 {
		return `\` + out
	}
	// "1." at the beginning would be a list.
	if digits := len(out) - len(strings.TrimLeft(out, "0123456789")); digits > 0 && digits < len(out) && strings.IndexByte(".)", out[digits]) >= 0 {
		out = out[:digits] + `\` + out[digits:]
	}
	return out
}

// within is text on one line, behind something else, in which nothing means anything to Markdown.
func within(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	var b strings.Builder
	before := ' '
	for _, r := range cleaned(s) {
		word := before == '_' || unicode.IsLetter(before) || unicode.IsDigit(before)
		before = r
		switch {
		case r == '<':
			b.WriteString("&lt;")
		case r == '>':
			b.WriteString("&gt;")
		case r == '&':
			b.WriteString("&amp;")
		case r == '@' && !word: // would call somebody
			b.WriteString("&#64;")
		case strings.ContainsRune("\\`*_[]|~$", r):
			b.WriteString(`\` + string(r))
		default:
			b.WriteRune(r)
		}
	}
	return strings.NewReplacer("://", "&#58;//", "www.", "www&#46;").Replace(b.String()) // else they would be links
}

func (t Text) markdown(to *text) { to.block(plainly(string(t))) }

func (l List) markdown(to *text) {
	if len(l) == 0 {
		return
	}
	var lines []string
	for _, s := range l {
		lines = append(lines, "- "+plainly(s))
	}
	to.block(strings.Join(lines, "\n"))
}

func (t Table) markdown(to *text) {
	if len(t.Head) == 0 {
		return
	}
	if t.Caption != "" {
		to.block(plainly(t.Caption))
	}
	row := func(cells []string) string { return "| " + strings.Join(cells, " | ") + " |" }
	var head, rule []string
	for i, h := range t.Head {
		head = append(head, within(h))
		if slices.Contains(t.Numbers, i) {
			rule = append(rule, "--:")
		} else {
			rule = append(rule, "---")
		}
	}
	lines := []string{row(head), row(rule)}
	for _, r := range t.Rows {
		var cells []string
		for i := range t.Head {
			c := within(r.cell(i))
			if r.Strong && i == 0 && c != "" {
				c = "**" + c + "**"
			}
			cells = append(cells, c)
		}
		lines = append(lines, row(cells))
	}
	to.block(strings.Join(lines, "\n"))
}

func (p Picture) markdown(to *text) {
	numbers := p.Numbers
	if len(numbers.Head) == 0 {
		to.block(plainly(p.Chart.Title + ": " + p.Chart.describe()))
		return
	}
	if numbers.Caption == "" {
		numbers.Caption = p.Chart.Title + ". " + p.Chart.Caption
	}
	numbers.markdown(to)
}

func (l Log) markdown(to *text) {
	var lines []string
	for i, e := range l {
		number := fmt.Sprintf("%d. ", i+1)
		more := "\\\n" + strings.Repeat(" ", len(number))
		s := number + "**" + within(e.Head) + "**"
		if e.Tag != "" {
			s += ": " + within(e.Tag)
		}
		if e.Text != "" {
			s += more + plainly(e.Text)
		}
		if len(e.Facts) > 0 {
			s += more + "*" + within(strings.Join(e.Facts, " · ")) + "*"
		}
		lines = append(lines, s)
	}
	if len(lines) > 0 {
		to.block(strings.Join(lines, "\n"))
	}
}

func (c Code) markdown(to *text) {
	fence := "```"
	for strings.Contains(c.Text, fence) {
		fence += "`"
	}
	var b strings.Builder
	b.WriteString(fence + c.Lang + "\n")
	for _, line := range codeLines(c.Text) {
		b.WriteString(cleaned(line) + "\n")
	}
	to.block(b.String() + fence)
}
