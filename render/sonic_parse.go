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
	p.text = string(running)
	p.settings = make(Config, 0, strings.Count(p.text, `":`))
	end := p.database(p.space(0))
	if p.broken || p.space(end) < len(p.text) {
		p.findings = nil // they are about what was read of it
		p.say(diag.Error, "", "the configuration is not JSON: %s", jsonFault(running))
		return nil, p.findings
	}
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
	seen      [3]names // of the objects that are open, by depth: the database, a table, a row
}

func (p *sonicParser) sorted() bool {
	return slices.IsSortedFunc(p.settings, func(a, b Setting) int { return a.Key.Compare(b.Key) })
}

func (p *sonicParser) say(s diag.Severity, at, format string, a ...any) {
	p.findings.Add(diag.Finding{Rule: "parse", Severity: s, At: at, Msg: fmt.Sprintf(format, a...)})
}

// noObject is a finding, and where the value at i ends that should be an object.
func (p *sonicParser) noObject(at string, i int) int {
	end := p.skip(i)
	p.say(diag.Error, at, "a JSON object is needed here; it is read as empty")
	return end
}

// forget drops the settings of a member whose name came again: the last one counts.
func (p *sonicParser) forget(part func(Key) bool) {
	p.settings = slices.DeleteFunc(p.settings, func(s Setting) bool { return part(s.Key) })
}

func (p *sonicParser) database(i int) int {
	if p.at(i) != '{' {
		return p.noObject("", i)
	}
	p.seen[0].reset()
	at, more := p.open(i, '}')
	for more {
		table, value := p.member(at)
		if p.seen[0].again(table) {
			p.forget(func(k Key) bool { return k.Scope == table })
		}
		at, more = p.next(p.table(table, value), '}')
	}
	return at
}

func (p *sonicParser) table(table string, i int) int {
	if p.at(i) != '{' {
		return p.noObject(table, i)
	}
	p.seen[1].reset()
	at, more := p.open(i, '}')
	for more {
		row, value := p.member(at)
		if p.seen[1].again(row) {
			p.forget(func(k Key) bool { return k.Scope == table && k.Object == row })
		}
		before := len(p.settings)
		end := p.row(table, row, value)
		if len(p.settings) == before {
			p.put(table, row, "", "")
		}
		at, more = p.next(end, '}')
	}
	return at
}

func (p *sonicParser) row(table, row string, i int) int {
	if p.at(i) != '{' {
		return p.noObject(table+"|"+row, i)
	}
	p.seen[2].reset()
	at, more := p.open(i, '}')
	for more {
		field, value := p.member(at)
		if p.seen[2].again(field) {
			p.forget(func(k Key) bool { return k.Scope == table && k.Object == row && SonicField(k) == field })
		}
		at, more = p.next(p.field(table, row, field, value), '}')
	}
	return at
}

func (p *sonicParser) field(table, row, field string, i int) int {
	value, ok, end := p.scalar(i)
	_, _, isItem := sonicItem(Key{table, row, field})
	switch {
	case field == "NULL" && value == "NULL": // how redis holds an empty row
	case !ok:
		p.say(diag.Error, table+"|"+row, "field %q holds neither a string nor a list of strings; it is left out", field)
	case field == "" || isItem:
		p.say(diag.Error, table+"|"+row, "no ConfigDB field can be named %q; it is left out", field)
	case sonicIsList(table, field):
		p.put(table, row, field, "")
		for _, item := range listItems(value) {
			p.put(table, row, field+"["+item+"]", "on")
		}
	default:
		p.put(table, row, field, p.plain(table, field, value))
	}
	return end
}

func (p *sonicParser) put(table, row, field, value string) {
	p.settings = append(p.settings, Setting{Key: Key{table, row, field}, Value: value})
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
	switch p.at(i) {
	case '"':
		value, end = p.quoted(i)
		return value, true, end
	case '{', 'n':
		return "", false, p.skip(i)
	case '[':
		return p.list(i)
	}
	end = p.word(i)
	return p.text[min(i, end):end], true, end
}

// list is the items of the array at i joined by commas.
func (p *sonicParser) list(i int) (value string, ok bool, end int) {
	var items []string
	ok = true
	end, more := p.open(i, ']')
	for more {
		nested := p.at(end) == '['
		item, fits, behind := p.scalar(end)
		ok = ok && fits && !nested
		items = append(items, item)
		end, more = p.next(behind, ']')
	}
	if !ok {
		return "", false, end
	}
	return strings.Join(items, ","), true, end
}
