package render

import (
	"encoding/json"
	"strings"
)

// jsonDepth is how deep encoding/json lets values be nested.
const jsonDepth = 10_000

// jsonText is JSON to walk through once, without building it and without asking json.Valid before. What is not JSON sets
// broken, and the walk then stands at the end of the text, where no value is: who walks on does not go far, and what came
// of it is worth nothing. It takes what encoding/json takes.
type jsonText struct {
	text   string
	depth  int // of the value at hand
	broken bool
}

// at is the byte at i, 0 behind the end: JSON has no such byte.
func (j *jsonText) at(i int) byte {
	if i < len(j.text) {
		return j.text[i]
	}
	return 0
}

// fail is the end of a text that is not JSON.
func (j *jsonText) fail() int {
	j.broken = true
	return len(j.text)
}

// space is the first place from i on that is no white space.
func (j *jsonText) space(i int) int {
	for i < len(j.text) {
		switch j.text[i] {
		case ' ', '\t', '\n', '\r':
			i++
		default:
			return i
		}
	}
	return i
}

// quoted is the string at i, and where it ends. It shares the text's memory where it is plain.
func (j *jsonText) quoted(i int) (s string, end int) {
	if j.at(i) != '"' {
		return "", j.fail()
	}
	text, plain := j.text, true
	for end = i + 1; ; end++ {
		if end >= len(text) {
			return "", j.fail()
		}
		switch c := text[end]; {
		case c == '"':
			end++
			if plain {
				return text[i+1 : end-1], end
			}
			return unquoted(text[i:end]), end
		case c == '\\':
			plain = false
			n := j.escape(end + 1)
			if n == 0 {
				return "", j.fail()
			}
			end += n
		case c < ' ':
			return "", j.fail()
		case c >= 0x80: // perhaps not UTF-8
			plain = false
		}
	}
}

// unquoted is a string that is not plain, on its own since what has its address taken is allocated each time.
func unquoted(text string) (s string) {
	_ = json.Unmarshal([]byte(text), &s) // it is one: cannot fail
	return s
}

// escape is how many bytes at i follow a backslash in a string, 0 when they may not.
func (j *jsonText) escape(i int) int {
	switch j.at(i) {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 1
	case 'u':
		for k := 1; k <= 4; k++ {
			if c := j.at(i + k); (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'f') {
				return 0
			}
		}
		return 5
	}
	return 0
}

// word is where a number, true, false or null at i ends.
func (j *jsonText) word(i int) int {
	switch c := j.at(i); c {
	case 't', 'f', 'n':
		for _, w := range [...]string{"true", "false", "null"} {
			if w[0] == c && strings.HasPrefix(j.text[i:], w) {
				return i + len(w)
			}
		}
		return j.fail()
	case '-':
		i++
	}
	digits := func() bool {
		from := i
		for c := j.at(i); c >= '0' && c <= '9'; c = j.at(i) {
			i++
		}
		return i > from
	}
	if j.at(i) == '0' {
		i++
	} else if !digits() {
		return j.fail()
	}
	if j.at(i) == '.' {
		if i++; !digits() {
			return j.fail()
		}
	}
	if c := j.at(i); c == 'e' || c == 'E' {
		if i++; j.at(i) == '+' || j.at(i) == '-' {
			i++
		}
		if !digits() {
			return j.fail()
		}
	}
	return i
}

// open enters the object or array at i: at is its first member or item, if there is any, else what comes behind it.
//
//	at, more := j.open(i, '}')
//	for more {
//		name, value := j.member(at)
//		at, more = j.next(j.skip(value), '}')
//	}
func (j *jsonText) open(i int, closing byte) (at int, more bool) {
	if j.depth++; j.depth > jsonDepth {
		return j.fail(), false
	}
	if i = j.space(i + 1); j.at(i) != closing {
		return i, true
	}
	j.depth--
	return i + 1, false
}

// next goes on after a member or item that ends at i: to the one after the comma, or behind the bracket that closes all.
func (j *jsonText) next(i int, closing byte) (at int, more bool) {
	i = j.space(i)
	switch j.at(i) {
	case ',':
		return j.space(i + 1), true
	case closing:
		j.depth--
		return i + 1, false
	}
	return j.fail(), false
}

// member is the name of the member of an object at i, and where its value begins.
func (j *jsonText) member(i int) (name string, value int) {
	name, i = j.quoted(i)
	if i = j.space(i); j.at(i) != ':' {
		return name, j.fail()
	}
	return name, j.space(i + 1)
}

// skip is where the value at i ends.
func (j *jsonText) skip(i int) int {
	switch j.at(i) {
	case '"':
		_, end := j.quoted(i)
		return end
	case '{':
		at, more := j.open(i, '}')
		for more {
			_, value := j.member(at)
			at, more = j.next(j.skip(value), '}')
		}
		return at
	case '[':
		at, more := j.open(i, ']')
		for more {
			at, more = j.next(j.skip(at), ']')
		}
		return at
	}
	return j.word(i)
}

// names are the names of one object so far. While they come sorted, none can come again.
type names struct {
	seen []string
	set  map[string]bool // once they did not
}

func (n *names) reset() { n.seen, n.set = n.seen[:0], nil }

// again adds a name, and reports whether it was there.
func (n *names) again(name string) bool {
	if n.set == nil {
		if len(n.seen) == 0 || n.seen[len(n.seen)-1] < name {
			n.seen = append(n.seen, name)
			return false
		}
		n.set = make(map[string]bool, 2*len(n.seen))
		for _, s := range n.seen {
			n.set[s] = true
		}
	}
	was := n.set[name]
	n.set[name] = true
	return was
}
