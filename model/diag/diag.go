// Package diag holds findings: what fabricctl says about a model, a device or a plan, with the position of the
// value to change. A finding is data; printers (text, JSON, SARIF) live with the command.
//
// A finding is written for the person who has to act: a rule id, the position, both numbers, and a hint that
// can be applied as it stands. No finding carries a Go type name or a stack.
package diag

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Pos is a place in an input file. Line and Col count from 1; the zero Pos means "no file position".
type Pos struct {
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
	Col  int    `json:"column,omitempty"`
}

// IsZero reports whether p names no place.
func (p Pos) IsZero() bool { return p == Pos{} }

// String is file:line:col, the file alone when the line is unknown, or "" for the zero Pos.
func (p Pos) String() string {
	switch {
	case p.IsZero():
		return ""
	case p.Line == 0:
		return p.File
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Col)
}

// Compare orders positions by file, line and column.
func (p Pos) Compare(q Pos) int {
	return cmp.Or(cmp.Compare(p.File, q.File), cmp.Compare(p.Line, q.Line), cmp.Compare(p.Col, q.Col))
}

// Severity says what a finding does to a run.
type Severity uint8

const (
	Info    Severity = iota // printed
	Warning                 // needs an acknowledgement, or is printed every time
	Error                   // blocks plan and apply
)

// String is the lower-case word that users see.
func (s Severity) String() string {
	switch s {
	case Info:
		return "info"
	case Warning:
		return "warning"
	}
	return "error"
}

// MarshalText writes the lower-case word.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the lower-case word.
func (s *Severity) UnmarshalText(b []byte) error {
	for _, x := range []Severity{Info, Warning, Error} {
		if x.String() == string(b) {
			*s = x
			return nil
		}
	}
	return fmt.Errorf("unknown severity %q", b)
}

// Related is another place that took part in a finding.
type Related struct {
	Pos Pos    `json:"pos"`
	Msg string `json:"message"`
}

// Finding is one thing worth a user's attention.
type Finding struct {
	Rule     string    `json:"rule"`                   // lower-case id, for example "ecn-order"
	Severity Severity  `json:"severity"`               //
	Pos      Pos       `json:"pos"`                    // the value to change; zero when only a device is known
	At       string    `json:"at,omitempty"`           // device:key for a finding on a live device without a model line
	Msg      string    `json:"message"`                // both numbers, no period at the end
	Hint     string    `json:"hint,omitempty"`         // what to do; when applied it removes the finding
	Related  []Related `json:"related,omitempty"`      //
	Devices  []string  `json:"devices,omitempty"`      // the devices that it is about, for acknowledgements; sorted
	Roles    []string  `json:"roles,omitempty"`        // the roles of those devices; sorted
	Ack      string    `json:"acknowledged,omitempty"` // the reason given in the model, when acknowledged
}

// Word is how much the finding weighs, as users see it: its severity, or that the model acknowledges it.
func (f Finding) Word() string {
	if f.Ack != "" {
		return "acknowledged"
	}
	return f.Severity.String()
}

// String is the finding as validate prints it: a first line, then indented related places and the hint, or the reason of
// what is acknowledged. What it holds
// of devices and models makes no line of its own.
func (f Finding) String() string {
	var b strings.Builder
	if at := cmp.Or(f.Pos.String(), f.At); at != "" {
		b.WriteString(Line(at) + ": ")
	}
	fmt.Fprintf(&b, "%s: %s: %s", f.Word(), Line(f.Rule), Line(f.Msg))
	for _, r := range f.Related {
		fmt.Fprintf(&b, "\n    %s: %s", Line(r.Pos.String()), Line(r.Msg))
	}
	if f.Hint != "" && f.Ack == "" {
		b.WriteString("\n    hint: " + Line(f.Hint))
	}
	if f.Ack != "" {
		b.WriteString("\n    reason: " + Line(f.Ack))
	}
	return b.String()
}

// Line is s on one line. A control character or a separator of lines stands there as an escape, so that a name which a
// device made up cannot begin a line that looks like one of ours, or like a command to a pipeline that reads along.
func Line(s string) string {
	if strings.IndexFunc(s, breaks) < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if breaks(r) {
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		} else {
			b.WriteString(s[i : i+n]) // bytes that are no character too, as they are
		}
		i += n
	}
	return b.String()
}

func breaks(r rune) bool { return unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp) }

// OneLine joins the lines of a message with semicolons.
func OneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}

// AppendQuoted is strconv.AppendQuote, quick where the text is plain, as nearly all of it is.
func AppendQuoted(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return strconv.AppendQuote(b, s)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

// Count writes "1 device" or "2 devices".
func Count(n int, noun string) string {
	many := noun + "s"
	switch {
	case strings.HasSuffix(noun, "s"), strings.HasSuffix(noun, "ch"), strings.HasSuffix(noun, "sh"), strings.HasSuffix(noun, "x"):
		many = noun + "es"
	case strings.HasSuffix(noun, "leaf"):
		many = strings.TrimSuffix(noun, "f") + "ves"
	case strings.HasSuffix(noun, "ty"), strings.HasSuffix(noun, "ry"):
		many = strings.TrimSuffix(noun, "y") + "ies"
	}
	return Plural(n, noun, many)
}

// Plural writes "1 port differs" or "2 ports differ".
func Plural(n int, one, many string) string { return strconv.Itoa(n) + " " + Agree(n, one, many) }

// Agree is the word that goes with one thing, or with several.
func Agree(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// And joins words as a sentence does: "a, b and c".
func And(words []string) string {
	if n := len(words); n > 1 {
		return strings.Join(words[:n-1], ", ") + " and " + words[n-1]
	}
	return strings.Join(words, "")
}

// List is a set of findings. The zero value is ready to use.
type List []Finding

// Add appends findings.
func (l *List) Add(f ...Finding) { *l = append(*l, f...) }

// Errorf appends an error finding.
func (l *List) Errorf(rule string, pos Pos, hint, format string, a ...any) {
	l.Add(Finding{Rule: rule, Severity: Error, Pos: pos, Hint: hint, Msg: fmt.Sprintf(format, a...)})
}

// Warningf appends a warning finding.
func (l *List) Warningf(rule string, pos Pos, hint, format string, a ...any) {
	l.Add(Finding{Rule: rule, Severity: Warning, Pos: pos, Hint: hint, Msg: fmt.Sprintf(format, a...)})
}

// Infof appends an info finding.
func (l *List) Infof(rule string, pos Pos, hint, format string, a ...any) {
	l.Add(Finding{Rule: rule, Severity: Info, Pos: pos, Hint: hint, Msg: fmt.Sprintf(format, a...)})
}

// Without is l without the findings that known has too: those of the same rule at the same position with the same words.
func (l List) Without(known List) List {
	type same struct {
		rule, msg string
		pos       Pos
	}
	is := make(map[same]bool, len(known))
	for _, f := range known {
		is[same{f.Rule, f.Msg, f.Pos}] = true
	}
	var rest List
	for _, f := range l {
		if !is[same{f.Rule, f.Msg, f.Pos}] {
			rest = append(rest, f)
		}
	}
	return rest
}

// Sort orders findings by position, then place, severity (worst first), rule and message, and drops exact repeats.
func (l List) Sort() List {
	sort.SliceStable(l, func(i, j int) bool {
		a, b := &l[i], &l[j]
		return cmp.Or(a.Pos.Compare(b.Pos), cmp.Compare(a.At, b.At), cmp.Compare(b.Severity, a.Severity),
			cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Msg, b.Msg)) < 0
	})
	return slices.CompactFunc(l, func(a, b Finding) bool {
		return a.Rule == b.Rule && a.Pos == b.Pos && a.At == b.At && a.Msg == b.Msg
	})
}

// Count is the number of findings of severity s that are not acknowledged.
func (l List) Count(s Severity) int {
	n := 0
	for _, f := range l {
		if f.Severity == s && f.Ack == "" {
			n++
		}
	}
	return n
}

// HasErrors reports whether a finding of severity Error is present. Errors cannot be acknowledged.
func (l List) HasErrors() bool {
	return slices.ContainsFunc(l, func(f Finding) bool { return f.Severity == Error })
}
