package check

import "strings"

// phrases finds many texts in another in one pass. A text is found where it stands as words of its own: no letter,
// digit, "_" or "-" stands beside it.
type phrases struct {
	next map[string]*phrases // by the word, or the one byte that is none, that follows
	full string              // the stand-in of what ends here
	name string              // the original; "" = none ends here
}

// add makes name one that is found.
func (p *phrases) add(name, full, text string) {
	for text != "" {
		n := token(text)
		if p.next == nil {
			p.next = map[string]*phrases{}
		}
		if p.next[text[:n]] == nil {
			p.next[text[:n]] = &phrases{}
		}
		p, text = p.next[text[:n]], text[n:]
	}
	if p.name == "" {
		p.name, p.full = name, full
	}
}

// token is the length of the word at the beginning of s, or 1 where none stands.
func token(s string) int {
	n := 0
	for n < len(s) && isWord(s[n]) {
		n++
	}
	return max(n, 1)
}

// at calls f for each text that stands at the beginning of s, shorter ones first, with its length.
func (p *phrases) at(s string, f func(p *phrases, n int)) {
	for n := 0; n < len(s); {
		k := token(s[n:])
		p = p.next[s[n:n+k]]
		if p == nil {
			return
		}
		n += k
		if p.name != "" && (n == len(s) || !isWord(s[n]) || isWord(s[n-1])) {
			f(p, n)
		}
	}
}

// each calls f for each text that stands in s, also inside others.
func (p *phrases) each(s string, f func(name string)) {
	for i := 0; i < len(s); i += token(s[i:]) {
		if i == 0 || !isWord(s[i-1]) {
			p.at(s[i:], func(p *phrases, _ int) { f(p.name) })
		}
	}
}

// replace is s with stand-ins: of texts that begin at the same place, that of the longest.
func (p *phrases) replace(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		n, with := 0, ""
		if i == 0 || !isWord(s[i-1]) {
			p.at(s[i:], func(p *phrases, k int) { n, with = k, p.full })
		}
		if n == 0 {
			n = token(s[i:])
			with = s[i : i+n]
		}
		b.WriteString(with)
		i += n
	}
	return b.String()
}

func isWord(c byte) bool {
	return c == '_' || c == '-' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}
