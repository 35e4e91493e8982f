package eos

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// A pattern is what a command looks like: words, and places for values.
//
//	word          a keyword, which may be abbreviated while it is unambiguous
//	a|b           either keyword
//	[x y]         may be left out
//	<0-63>        a whole number in the range
//	<0.01-60>     a number with at most two decimals (three when the lower bound has three)
//	<0-63>...     one number or more
//	NAME          one word of letters, digits, "_", "-", "." and ":"
//	WORD          one word of anything
//	INTF          an interface name, long or short: Ethernet1/1, et1/1, ethernet 1/1
//	TIME          HH:MM:SS
//	UNIT          a unit of queue length, in full
//	ALPHA         a dynamic threshold: 1/4, 3/4, 8
//	LINE          the rest of the line
//	PIPE          the word "|"
type token struct {
	kind   byte // 'k' keyword, 'i' whole number, 'f' decimal, and one letter for each of the named places
	word   string
	lo, hi float64
	digits int // decimals allowed
	many   bool
}

// variant is one way to write a command: a pattern without options or alternatives.
type variant struct {
	tokens []token
	rule   *rule
	verb   verb
}

// verb says whether a line sets something, or takes it back with "no" or "default".
type verb uint8

const (
	set verb = iota
	negate
	reset
)

// match is a line that was understood.
type match struct {
	variant
	words []string // the line with keywords spelled out, values in canonical form
	args  []string // the values alone
}

func (m *match) text() string { return strings.Join(m.words, " ") }

// The sentences of a line that is not understood.
const (
	invalid    = "% Invalid input"
	incomplete = "% Incomplete command"
	ambiguous  = "% Ambiguous command"
)

// compile expands a pattern into its variants.
func compile(pattern string) [][]token {
	if i := strings.LastIndex(pattern, "["); i >= 0 {
		j := i + strings.Index(pattern[i:], "]")
		return append(compile(pattern[:i]+pattern[i+1:j]+pattern[j+1:]), compile(pattern[:i]+pattern[j+1:])...)
	}
	out := [][]token{nil}
	for _, f := range strings.Fields(pattern) {
		var next [][]token
		for _, t := range tokens(f) {
			for _, v := range out {
				next = append(next, append(slices.Clone(v), t))
			}
		}
		out = next
	}
	return out
}

// tokens reads one field of a pattern; more than one for alternatives.
func tokens(f string) []token {
	switch f {
	case "NAME":
		return []token{{kind: 'n'}}
	case "WORD":
		return []token{{kind: 'w'}}
	case "INTF":
		return []token{{kind: 'p'}}
	case "TIME":
		return []token{{kind: 't'}}
	case "UNIT":
		return []token{{kind: 'u'}}
	case "ALPHA":
		return []token{{kind: 'a'}}
	case "LINE":
		return []token{{kind: 'l'}}
	case "PIPE":
		return []token{{kind: 'k', word: "|"}}
	}
	if body, ok := strings.CutPrefix(f, "<"); ok {
		body, many := strings.CutSuffix(body, "...")
		lo, hi, _ := strings.Cut(strings.TrimSuffix(body, ">"), "-")
		t := token{kind: 'i', many: many}
		if _, frac, ok := strings.Cut(lo, "."); ok {
			t.kind, t.digits = 'f', len(frac)
		}
		t.lo, _ = strconv.ParseFloat(lo, 64)
		t.hi, _ = strconv.ParseFloat(hi, 64)
		return []token{t}
	}
	var ts []token
	for w := range strings.SplitSeq(f, "|") {
		ts = append(ts, token{kind: 'k', word: w})
	}
	return ts
}

// value reads a value at the head of in; used is how many fields it took, 0 when it does not fit.
func (t token) value(in []string) (v string, used int) {
	s := in[0]
	switch t.kind {
	case 'i', 'f':
		x, err := strconv.ParseFloat(s, 64)
		_, frac, _ := strings.Cut(s, ".")
		if err != nil || x < t.lo || x > t.hi || len(frac) > t.digits || strings.Trim(s, "0123456789.") != "" {
			return "", 0
		}
		return strconv.FormatFloat(x, 'f', -1, 64), 1
	case 'n':
		for _, r := range s {
			if !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("_-.:", r)) {
				return "", 0
			}
		}
		return s, 1
	case 'w':
		return s, 1
	case 'p':
		return parseInterface(in)
	case 't':
		if _, ok := parseTimer(s); !ok {
			return "", 0
		}
		return s, 1
	case 'u':
		if !slices.Contains([]string{"bytes", "kbytes", "mbytes", "segments", "milliseconds", "microseconds"}, s) {
			return "", 0
		}
		return s, 1
	case 'a':
		p, q, frac := strings.Cut(s, "/")
		x, err1 := strconv.Atoi(p)
		y, err2 := strconv.Atoi(q)
		if err1 != nil || x < 1 || x > 128 || frac && (err2 != nil || y < 1 || y > 128) {
			return "", 0
		}
		return s, 1
	case 'l':
		return strings.Join(in, " "), len(in)
	}
	return "", 0
}

// parseTimer reads HH:MM:SS.
func parseTimer(s string) (time.Duration, bool) {
	parts := strings.Split(s, ":")
	if len(parts) != 3 {
		return 0, false
	}
	var n [3]int
	for i, p := range parts {
		v, err := strconv.Atoi(p)
		if err != nil || v < 0 || len(p) > 2 || i > 0 && v > 59 {
			return 0, false
		}
		n[i] = v
	}
	return time.Duration(n[0]*3600+n[1]*60+n[2]) * time.Second, true
}

// parseInterface reads "Ethernet1/1", "et1/1" or "ethernet 1/1". Ranges and lists are not understood.
func parseInterface(in []string) (string, int) {
	s, used := in[0], 1
	if strings.Trim(strings.ToLower(s), "abcdefghijklmnopqrstuvwxyz-") == "" && len(in) > 1 {
		s, used = s+in[1], 2
	}
	i := strings.IndexAny(s, "0123456789")
	if i < 2 {
		return "", 0
	}
	name, number := strings.ToLower(s[:i]), s[i:]
	for part := range strings.SplitSeq(number, "/") {
		if n, err := strconv.Atoi(part); err != nil || n > 4094 || part[0] == '-' || part[0] == '+' {
			return "", 0
		}
	}
	for _, kind := range []string{"Ethernet", "Loopback", "Management", "Port-Channel"} {
		if strings.HasPrefix(strings.ToLower(kind), name) {
			return kind + number, used
		}
	}
	return "", 0
}

// find looks a line up among variants the way a CLI does: an exact keyword beats an abbreviation, an abbreviation
// must be the only one, values come last.
func find(vs []variant, in []string) (*match, string) {
	type cand struct {
		*variant
		at          int // next token
		take        int // fields used by a value of more than one
		repeat      bool
		words, args []string
	}
	cands := make([]cand, len(vs))
	for i := range vs {
		cands[i] = cand{variant: &vs[i]}
	}
	for i := 0; i < len(in); i++ {
		var exact, short, values []cand
		abbreviated := map[string]bool{}
		for _, c := range cands {
			if c.take > 0 { // inside a value already read
				c.take--
				values = append(values, c)
				continue
			}
			if c.repeat {
				if v, used := c.tokens[c.at-1].value(in[i:]); used > 0 {
					c.words, c.args = append(slices.Clip(c.words), v), append(slices.Clip(c.args), v)
					values = append(values, c)
					continue
				}
				c.repeat = false
			}
			if c.at == len(c.tokens) {
				continue
			}
			t := c.tokens[c.at]
			c.at++
			if t.kind != 'k' {
				if v, used := t.value(in[i:]); used > 0 {
					c.words, c.args = append(slices.Clip(c.words), v), append(slices.Clip(c.args), v)
					c.take, c.repeat = used-1, t.many
					values = append(values, c)
				}
				continue
			}
			c.words = append(slices.Clip(c.words), t.word)
			switch w := strings.ToLower(in[i]); {
			case w == t.word:
				exact = append(exact, c)
			case strings.HasPrefix(t.word, w):
				short = append(short, c)
				abbreviated[t.word] = true
			}
		}
		switch {
		case len(exact) > 0:
			cands = exact
		case len(abbreviated) > 1:
			return nil, ambiguous
		case len(short) > 0:
			cands = short
		case len(values) > 0:
			cands = values
		default:
			return nil, invalid
		}
	}
	for _, c := range cands {
		if c.at == len(c.tokens) && c.take == 0 {
			return &match{*c.variant, c.words, c.args}, ""
		}
	}
	return nil, incomplete
}
