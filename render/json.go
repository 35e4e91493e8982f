package render

import (
	"encoding/json"
	"strings"
)

// jsonText is valid JSON to walk through without building it: whoever does has asked json.Valid before.
type jsonText struct{ text string }

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
	plain := true
	for end = i + 1; j.text[end] != '"'; end++ {
		if c := j.text[end]; c == '\\' {
			plain = false
			end++
		} else if c >= 0x80 { // perhaps not UTF-8
			plain = false
		}
	}
	end++
	if plain {
		return j.text[i+1 : end-1], end
	}
	_ = json.Unmarshal([]byte(j.text[i:end]), &s) // valid: cannot fail
	return s, end
}

// skip is where the value at i ends.
func (j *jsonText) skip(i int) int {
	switch j.text[i] {
	case '"':
		_, end := j.quoted(i)
		return end
	case '{', '[':
		for depth := 0; ; i++ {
			switch j.text[i] {
			case '"':
				_, end := j.quoted(i)
				i = end - 1
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1
				}
			}
		}
	}
	if n := strings.IndexAny(j.text[i:], ",]} \t\r\n"); n >= 0 {
		return i + n
	}
	return len(j.text)
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
