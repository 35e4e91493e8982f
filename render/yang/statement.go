package yang

import (
	"fmt"
	"regexp"
	"strings"
)

// statement is one YANG statement: keyword, argument and what is inside.
type statement struct {
	keyword, arg string
	sub          []statement
}

// tokens is a string, a comment, a bracket or semicolon, or a word (RFC 7950 section 6.1).
const tokens = `"(?:\\.|[^"\\])*"|'[^']*'|//[^\n]*|(?s:/\*.*?\*/)|[{};]|[^\s{};"']+`

// parse reads a module. It knows no YANG beyond the shape of statements, which is all that the conversion needs.
func parse(text string) ([]statement, error) {
	p := parser{}
	for _, t := range regexp.MustCompile(tokens).FindAllString(text, -1) {
		if !strings.HasPrefix(t, "//") && !strings.HasPrefix(t, "/*") {
			p.tokens = append(p.tokens, t)
		}
	}
	list := p.statements()
	if len(p.tokens) > 0 || p.short {
		return nil, fmt.Errorf("brackets do not match near %q", strings.Join(p.tokens[:min(3, len(p.tokens))], " "))
	}
	return list, nil
}

type parser struct {
	tokens []string
	short  bool // the text ended inside a statement
}

func (p *parser) next() string {
	if len(p.tokens) == 0 {
		p.short = true
		return ";"
	}
	t := p.tokens[0]
	p.tokens = p.tokens[1:]
	return t
}

func (p *parser) statements() []statement {
	var list []statement
	for len(p.tokens) > 0 && p.tokens[0] != "}" {
		s := statement{keyword: p.next()}
		t := p.next()
		for ; t != "{" && t != ";"; t = p.next() {
			switch {
			case t == "+": // joins strings
			case t[0] == '"' || t[0] == '\'':
				s.arg += t[1 : len(t)-1]
			default:
				s.arg += t
			}
		}
		if t == "{" {
			s.sub = p.statements()
			p.next()
		}
		list = append(list, s)
	}
	return list
}

// find is the first substatement with a keyword.
func (s statement) find(keyword string) (statement, bool) {
	for _, x := range s.sub {
		if x.keyword == keyword {
			return x, true
		}
	}
	return statement{}, false
}

// local is a name without its prefix.
func local(name string) string { return name[strings.LastIndex(name, ":")+1:] }
