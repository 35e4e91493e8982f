package model

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/fabricctl/fabricctl/model/diag"
)

// Limits on the search for the line that a syntax error is on. Beyond them the library's guess has to do.
const (
	maxSearched = 128 << 10 // bytes of a document
	maxWrong    = 20        // documents of a load
	maxOpen     = 8         // lines over which a list or mapping in brackets is taken to go on
)

// syntax reports what the library refused: on the line up to which the document is good, and in words for what people
// do to YAML most often. Its own line is that of the surrounding block, and its words are those of its grammar.
func (r *reader) syntax(file string, p part, err error) {
	msg, guess := strings.TrimPrefix(err.Error(), "yaml: "), 1
	if rest, ok := strings.CutPrefix(msg, "line "); ok { // "line 3: what is wrong"
		if number, what, ok := strings.Cut(rest, ": "); ok {
			guess, _ = strconv.Atoi(number)
			msg = what
		}
	}
	lines := bytes.Split(p.text, []byte("\n"))
	at := min(max(guess, 1), len(lines)) - 1
	if r.wrong++; r.wrong <= maxWrong && len(p.text) <= maxSearched {
		at = firstBad(lines)
	}
	f := explain(lines, at, msg)
	if f.Msg == "" {
		f.Msg, f.Hint = "not readable as YAML: "+clip(msg), "look at this line and the ones around it"
	}
	f.Rule, f.Severity = "yaml", diag.Error
	f.Pos = diag.Pos{File: file, Line: p.line + f.Pos.Line + 1, Col: max(f.Pos.Col, 1)}
	r.found.Add(f)
}

// firstBad is the index of the line after the longest good beginning of a document that is not good. A beginning that
// ends inside brackets or quotes is bad although nothing may be wrong; those that go over a few lines are stepped over.
func firstBad(lines [][]byte) int {
	lastGood := func(n int) int { // the number of lines of a good beginning, at most n and near it, or -1
		for i := n; i >= 0 && i > n-maxOpen; i-- {
			_, err := decode(yaml.NewDecoder(bytes.NewReader(bytes.Join(lines[:i], []byte("\n")))))
			if err == nil || errors.Is(err, io.EOF) {
				return i
			}
		}
		return -1
	}
	if n := lastGood(len(lines)); n >= 0 {
		return min(n, len(lines)-1)
	}
	lo, hi := 0, len(lines) // a good beginning ends near lo, none near hi
	for hi-lo > 1 {
		if mid := (lo + hi) / 2; lastGood(mid) >= 0 {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lastGood(lo)
}

// explain says what is wrong with the line at, or the one before it, as far as that can be told; otherwise the Msg is
// empty. Of its Pos, the line is an index of lines. words are the library's.
func explain(lines [][]byte, at int, words string) diag.Finding {
	say := func(col int, hint, format string, a ...any) diag.Finding {
		return diag.Finding{Pos: diag.Pos{Line: at, Col: col + 1}, Hint: hint, Msg: fmt.Sprintf(format, a...)}
	}
	if rest, ok := strings.CutPrefix(words, "unknown anchor '"); ok {
		name := strings.TrimSuffix(rest, "' referenced")
		if i := slices.IndexFunc(lines, func(l []byte) bool { return bytes.Contains(l, []byte("*"+name)) }); i >= 0 {
			at = i
		}
		return say(max(bytes.IndexByte(lines[at], '*'), 0), "put the value in quotes, if no anchor is meant", "unknown anchor: a value that begins with * stands for one, and there is none of that name")
	}
	l := string(lines[at])
	if m := strings.TrimRight(l, "\r"); strings.HasPrefix(m, "<<<<<<<") || strings.HasPrefix(m, ">>>>>>>") || m == "=======" {
		return say(0, "resolve the conflict, and remove the three marks", "a mark of a merge conflict")
	}
	if col := strings.IndexRune(l, '\u00a0'); col >= 0 {
		return say(col, "write a plain space", "a no-break space, which YAML does not take for a space")
	}
	start := len(l) - len(strings.TrimLeft(l, " \t-"))
	if tab := strings.IndexByte(l[:start], '\t'); tab >= 0 {
		return say(tab, "indent with spaces", "a tab in the indentation; YAML allows only spaces there")
	}
	if col, what, end := unclosed(l); end != "" {
		return say(col, "close it with "+end, "the %s that opens here is not closed", what)
	} else if what != "" {
		return say(col, "remove it, or put the value in quotes", "the %s here closes nothing", what)
	}
	key := strings.Contains(l, ": ") || strings.HasSuffix(strings.TrimRight(l, " \r"), ":")
	if col := reserved(l); col >= 0 {
		return say(col, "put the value in quotes", "a value cannot begin with %c in YAML", l[col])
	}
	if at > 0 {
		if f := above(string(lines[at-1])); f.Msg != "" {
			f.Pos.Line = at - 1
			return f
		}
	}
	if col := second(l); col >= 0 && strings.HasPrefix(words, "mapping values") {
		return say(col, "put the value in quotes, or the second key on a line of its own", "a second colon with a space behind it in one line")
	}
	return misplaced(lines, at, key)
}

// misplaced says what is wrong with the line at as a part of the lists and mappings around it. key reports whether it
// holds a colon that ends a key.
func misplaced(lines [][]byte, at int, key bool) diag.Finding {
	l := string(lines[at])
	indent := len(l) - len(strings.TrimLeft(l, " "))
	say := func(col int, hint, format string, a ...any) diag.Finding {
		return diag.Finding{Pos: diag.Pos{Line: at, Col: col + 1}, Hint: hint, Msg: fmt.Sprintf(format, a...)}
	}
	b := levels(lines[:at])
	item := strings.HasPrefix(l[indent:], "- ")
	switch word, rest, more := strings.Cut(strings.TrimSpace(l), " "); {
	case !key && !item && isName(word, "_-") && !b.opens && (!more || !strings.Contains(rest, ":")):
		if more {
			return say(indent, "write "+word+": and then the value", "a colon is missing after %q", word) // the rest may be a secret
		}
		return say(indent, "end it with a colon", "a colon is missing at the end of this line")
	case !key && strings.TrimLeft(l, " ")[:min(1, len(l)-indent)] != "-":
		if word, rest, ok := strings.Cut(strings.TrimSpace(l), ":"); ok && isName(word, "_-") && rest != "" {
			return say(indent, "write a space after the colon", "a space is missing after %s:", word) // the rest may be a secret
		}
	case item && len(b.items) > 0 && !slices.Contains(b.items, indent) && !(b.opens && indent >= b.last):
		near := b.items[len(b.items)-1]
		return say(indent, fmt.Sprintf("indent it by %d", near), "this list element is indented by %d, the one above it by %d", indent, near)
	case !item && key && slices.Contains(b.items, indent) && !slices.Contains(b.keys, indent):
		return say(indent, fmt.Sprintf("indent it by %d, like the keys above, or begin an element with a -", b.last),
			"this key is indented by %d, where list elements begin, and the keys above it by %d", indent, b.last)
	case b.any() && indent > b.last && !b.opens:
		return say(indent, fmt.Sprintf("indent it by %d, or end the line above with a colon", b.last),
			"this line is indented by %d, more than the line above, which is complete", indent)
	case b.any() && indent < b.last && !slices.Contains(b.keys, indent) && !slices.Contains(b.items, indent):
		var known []string
		for _, n := range slices.Compact(slices.Sorted(slices.Values(append(slices.Clone(b.keys), b.items...)))) {
			known = append(known, strconv.Itoa(n))
		}
		return say(indent, "indent it by "+strings.Join(known, " or "), "this line is indented by %d, unlike any line that it could belong to", indent)
	}
	return diag.Finding{Pos: diag.Pos{Line: at, Col: indent + 1}}
}

// above says what is wrong with a line of a list that the library stumbles over on the next one; without a Msg when
// nothing is.
func above(l string) diag.Finding {
	text := strings.TrimLeft(l, " ")
	col := len(l) - len(text) + 1
	if rest, dash := strings.CutPrefix(text, "-"); dash && isName(rest[:min(1, len(rest))], "") && strings.Contains(rest, ": ") {
		return diag.Finding{Pos: diag.Pos{Col: col + 1}, Hint: "write - and a space", Msg: "a space is missing after the - that begins a list element"}
	}
	rest, item := strings.CutPrefix(text, "- ")
	if word, more, ok := strings.Cut(strings.TrimSpace(rest), " "); item && ok && isName(word, "_-") && !strings.Contains(more, ":") {
		return diag.Finding{Pos: diag.Pos{Col: col + 2}, Hint: "write " + word + ": and then the value", Msg: fmt.Sprintf("a colon is missing after %q", word)}
	}
	return diag.Finding{}
}

// reserved is the column of a value that begins with a character that YAML keeps for itself, or -1.
func reserved(l string) int {
	for i := 1; i < len(l); i++ {
		if strings.IndexByte("%@`", l[i]) >= 0 && (strings.IndexByte("[{,", l[i-1]) >= 0 || l[i-1] == ' ' && strings.IndexByte(":-,[{", l[max(i-2, 0)]) >= 0) {
			return i
		}
	}
	return -1
}

// second is the column of the second colon of a line that has two keys' worth of them outside of brackets and quotes, or
// -1.
func second(l string) int {
	first := strings.Index(l, ": ")
	if first < 0 || strings.ContainsAny(l, "{[\"'") {
		return -1
	}
	if i := strings.Index(l[first+2:], ": "); i >= 0 {
		return first + 2 + i
	}
	return -1
}

// blocks are the mappings and lists that are open after some lines.
type blocks struct {
	last        int   // indentation of the last line; a key after "- " counts from its own column
	keys, items []int // indentations of their keys and elements, outermost first
	opens       bool  // the last line may have something below it
}

func (b blocks) any() bool { return len(b.keys)+len(b.items) > 0 }

// levels are the blocks that are open after lines.
func levels(lines [][]byte) (b blocks) {
	for _, line := range lines {
		l := strings.TrimRight(string(line), " \r")
		text := strings.TrimLeft(l, " ")
		if text == "" || text[0] == '#' || strings.HasPrefix(l, "---") {
			continue
		}
		b.last = len(l) - len(text)
		deeper := func(n int) bool { return n > b.last }
		b.keys, b.items = slices.DeleteFunc(b.keys, deeper), slices.DeleteFunc(b.items, deeper)
		for {
			item, ok := strings.CutPrefix(text, "-")
			if ok = ok && (item == "" || item[0] == ' '); !ok {
				if !slices.Contains(b.keys, b.last) {
					b.keys = append(b.keys, b.last)
				}
				break
			}
			if !slices.Contains(b.items, b.last) {
				b.items = append(b.items, b.last)
			}
			text = strings.TrimLeft(item, " ")
			b.last = len(l) - len(text)
		}
		b.opens = strings.HasSuffix(l, ":") || text == "" || strings.HasSuffix(l, "|") || strings.HasSuffix(l, ">")
	}
	return b
}

// unclosed finds the bracket or quote of a line that opens and does not end on it, or a bracket that closes what none
// opened; end is then "".
func unclosed(l string) (col int, what, end string) {
	type opening struct {
		col int
		c   byte
	}
	var stack []opening
	quote := opening{-1, 0}
	if comment := strings.Index(l, " #"); comment >= 0 {
		l = l[:comment]
	}
	for i := range len(l) {
		c := l[i]
		before := i == 0 || strings.IndexByte(" ,[{:", l[i-1]) >= 0 // a quote in the middle of a word is no quote
		switch {
		case quote.c != 0:
			if c == quote.c && (c != '"' || l[i-1] != '\\') {
				quote.c = 0
			}
		case (c == '"' || c == '\'') && before:
			quote = opening{i, c}
		case c == '{' || c == '[':
			if before || len(stack) > 0 {
				stack = append(stack, opening{i, c})
			}
		case (c == '}' || c == ']') && len(stack) > 0:
			stack = stack[:len(stack)-1]
		case (c == '}' || c == ']') && strings.ContainsAny(l[:i], "{["):
			return i, string(c), ""
		}
	}
	switch {
	case quote.c != 0:
		return quote.col, "quote", string(quote.c)
	case len(stack) == 0:
		return 0, "", ""
	}
	top := stack[len(stack)-1]
	return top.col, string(top.c), map[byte]string{'{': "}", '[': "]"}[top.c]
}
