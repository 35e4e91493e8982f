package render

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fabricctl/fabricctl/model/diag"
)

// sonicMaxText bounds what is parsed. A whole ConfigDB of a large switch is a few megabytes.
const sonicMaxText = 64 << 20

// sonicParse reads a config_db.json, or the answer to a Get of CONFIG_DB: every table, known or not. References of
// images from before 2022 ("[WRED_PROFILE|X]") are read as the plain name.
func sonicParse(running []byte) (Config, diag.List) {
	p := sonicParser{}
	if len(running) > sonicMaxText {
		p.say(diag.Error, "", "the configuration is %d bytes long; at most %d are read", len(running), sonicMaxText)
		return nil, p.findings
	}
	if !json.Valid(running) {
		p.say(diag.Error, "", "the configuration is not JSON: %s", jsonFault(running))
		return nil, p.findings
	}
	p.text = string(running)
	p.settings = make(Config, 0, strings.Count(p.text, `":`))
	p.members("", p.space(0), func(table string, k Key) bool { return k.Scope == table }, p.table)
	if !p.sorted() {
		p.settings.Sorted()
	}
	if len(p.settings) == 0 {
		return nil, p.findings.Sort()
	}
	return p.settings, p.findings.Sort()
}

// jsonFault says in words where and why b is not JSON.
func jsonFault(b []byte) string {
	var fault *json.SyntaxError
	err := json.Unmarshal(b, new(json.RawMessage))
	if !errors.As(err, &fault) {
		return "it is nested too deeply"
	}
	before := b[:min(int(fault.Offset), len(b))]
	line := 1 + bytes.Count(before, []byte{'\n'})
	return fmt.Sprintf("line %d: %s", line, strings.TrimPrefix(fault.Error(), "json: "))
}

// sonicParser goes through the text once. Its settings share the text's memory; they come sorted from a device that
// sorts what it sends.
type sonicParser struct {
	jsonText
	settings  Config
	findings  diag.List
	bracketed bool
	seen      [3]names // of the objects that are open: the database, a table, a row
	depth     int      // how many are
}

func (p *sonicParser) sorted() bool {
	return slices.IsSortedFunc(p.settings, func(a, b Setting) int { return a.Key.Compare(b.Key) })
}

func (p *sonicParser) say(s diag.Severity, at, format string, a ...any) {
	p.findings.Add(diag.Finding{Rule: "parse", Severity: s, At: at, Msg: fmt.Sprintf(format, a...)})
}

// members calls each for the members of the object at i, with the name and the place of the value; each returns where
// the value ends, and so does members. Anything but an object is a finding and has none. Of members of one name the last
// one counts: part says which settings were read of the earlier one.
func (p *sonicParser) members(at string, i int, part func(name string, k Key) bool, each func(name string, i int) int) int {
	if p.text[i] != '{' {
		p.say(diag.Error, at, "a JSON object is needed here; it is read as empty")
		return p.skip(i)
	}
	seen := &p.seen[p.depth]
	seen.reset()
	p.depth++
	for i = p.space(i + 1); p.text[i] != '}'; {
		name, end := p.quoted(i)
		if seen.again(name) {
			p.settings = slices.DeleteFunc(p.settings, func(s Setting) bool { return part(name, s.Key) })
		}
		i = p.space(each(name, p.space(p.space(end)+1))) // over the colon
		if p.text[i] == ',' {
			i = p.space(i + 1)
		}
	}
	p.depth--
	return i + 1
}

func (p *sonicParser) table(table string, i int) int {
	part := func(row string, k Key) bool { return k.Scope == table && k.Object == row }
	return p.members(table, i, part, func(row string, i int) int { return p.row(table, row, i) })
}

func (p *sonicParser) row(table, row string, i int) int {
	at := table + "|" + row
	before := len(p.settings)
	put := func(field, value string) {
		p.settings = append(p.settings, Setting{Key: Key{table, row, field}, Value: value})
	}
	part := func(field string, k Key) bool { return k.Scope == table && k.Object == row && SonicField(k) == field }
	end := p.members(at, i, part, func(field string, i int) int {
		value, ok, end := p.scalar(i)
		_, _, isItem := sonicItem(Key{table, row, field})
		switch {
		case field == "NULL" && value == "NULL": // how redis holds an empty row
		case !ok:
			p.say(diag.Error, at, "field %q holds neither a string nor a list of strings; it is left out", field)
		case field == "" || isItem:
			p.say(diag.Error, at, "no ConfigDB field can be named %q; it is left out", field)
		case sonicIsList(table, field):
			put(field, "")
			for _, item := range listItems(value) {
				put(field+"["+item+"]", "on")
			}
		default:
			put(field, p.plain(table, field, value))
		}
		return end
	})
	if len(p.settings) == before {
		put("", "")
	}
	return end
}

// plain is a reference without the brackets of old images.
func (p *sonicParser) plain(table, field, value string) string {
	target := sonicTarget(table, field)
	for target != "" && strings.HasPrefix(value, "["+target+"|") && strings.HasSuffix(value, "]") {
		value = value[len("["+target+"|") : len(value)-1]
		if !p.bracketed {
			p.bracketed = true
			p.say(diag.Warning, "", "references are written in brackets, as images from before 2022 do; "+
				"fabricctl reads them, and writes plain names, which such an image does not follow")
		}
	}
	return value
}

// listItems is a comma list without blanks and repeats.
func listItems(s string) []string {
	var items []string
	for item := range strings.SplitSeq(s, ",") {
		if item = strings.TrimSpace(item); item != "" && !slices.Contains(items, item) {
			items = append(items, item)
		}
	}
	return items
}

// scalar is the value at i as redis holds it: a string, a number or truth as its text, a list joined by commas. end is
// where it ends.
func (p *sonicParser) scalar(i int) (value string, ok bool, end int) {
	switch p.text[i] {
	case '"':
		value, end = p.quoted(i)
		return value, true, end
	case '{', 'n':
		return "", false, p.skip(i)
	case '[':
		var items []string
		ok = true
		for i = p.space(i + 1); p.text[i] != ']'; {
			item, fits, end := p.scalar(i)
			ok = ok && fits && p.text[i] != '['
			items = append(items, item)
			if i = p.space(end); p.text[i] == ',' {
				i = p.space(i + 1)
			}
		}
		if !ok {
			return "", false, i + 1
		}
		return strings.Join(items, ","), true, i + 1
	}
	end = p.skip(i)
	return p.text[i:end], true, end
}
