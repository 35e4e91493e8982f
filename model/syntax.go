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
	f := explain(lines, at)
	if f.Msg == "" {
		f.Msg, f.Hint = "not readable as YAML: "+clip(msg), "look at this line and the ones around it"
	}
	f.Rule, f.Severity = "yaml", diag.Error
	f.Pos = diag.Pos{File: file, Line: p.line + at + 1, Col: max(f.Pos.Col, 1)}
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

// explain says what is wrong with the line at, as far as that can be told; otherwise the Msg is empty. Only the column
// of its Pos is set.
func explain(lines [][]byte, at int) diag.Finding {
	say := func(col int, hint, format string, a ...any) diag.Finding {
		return diag.Finding{Pos: diag.Pos{Col: col + 1}, Hint: hint, Msg: fmt.Sprintf(format, a...)}
	}
	l := string(lines[at])
	start := len(l) - len(strings.TrimLeft(l, " \t-"))
	if tab := strings.IndexByte(l[:start], '\t'); tab >= 0 {
		return say(tab, "indent with spaces", "a tab in the indentation; YAML allows only spaces there")
	}
	if col, what, end := unclosed(l); what != "" {
		return say(col, "close it with "+end, "the %s that opens here is not closed", what)
	}
	key := strings.Contains(l, ": ") || strings.HasSuffix(strings.TrimRight(l, " \r"), ":")
	indent := len(l) - len(strings.TrimLeft(l, " "))
	above, open, opens := levels(lines[:at])
	switch {
	case !key && strings.TrimLeft(l, " ")[:min(1, len(l)-indent)] != "-":
		if word, rest, ok := strings.Cut(strings.TrimSpace(l), ":"); ok && isName(word, "_-") && rest != "" {
			return say(indent, "write a space after the colon", "a space is missing after %s:", word) // the rest may be a secret
		}
	case len(open) > 0 && indent > above && !opens:
		return say(indent, fmt.Sprintf("indent it by %d, or end the line above with a colon", above),
			"this line is indented by %d, more than the line above, which is complete", indent)
	case len(open) > 0 && indent < above && !slices.Contains(open, indent):
		var known []string
		for _, n := range open {
			known = append(known, strconv.Itoa(n))
		}
		return say(indent, "indent it by "+strings.Join(known, " or "), "this line is indented by %d, unlike any line that it could belong to", indent)
	}
	return diag.Finding{Pos: diag.Pos{Col: indent + 1}}
}

// levels are the indentations that are open after these lines, and the last line's own; a key after "- " counts
// from its own column. opens reports whether the last line may have something below it.
func levels(lines [][]byte) (last int, open []int, opens bool) {
	for _, b := range lines {
		l := strings.TrimRight(string(b), " \r")
		text := strings.TrimLeft(l, " ")
		if text == "" || text[0] == '#' || strings.HasPrefix(l, "---") {
			continue
		}
		last = len(l) - len(text)
		open = slices.DeleteFunc(open, func(n int) bool { return n > last })
		for {
			if !slices.Contains(open, last) {
				open = append(open, last)
			}
			item, ok := strings.CutPrefix(text, "-")
			if !ok || item != "" && item[0] != ' ' {
				break
			}
			text = strings.TrimLeft(item, " ")
			last = len(l) - len(text)
		}
		opens = strings.HasSuffix(l, ":") || text == "" || strings.HasSuffix(l, "|") || strings.HasSuffix(l, ">")
	}
	return last, open, opens
}

// unclosed finds the bracket or quote of a line that opens and does not end on it.
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
