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
	for table, rows := range p.object("", running) {
		for row, fields := range p.object(table, rows) {
			p.row(table, row, fields)
		}
	}
	return p.config.Sorted(), p.findings.Sort()
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

type sonicParser struct {
	config    Config
	findings  diag.List
	bracketed bool
}

func (p *sonicParser) say(s diag.Severity, at, format string, a ...any) {
	p.findings.Add(diag.Finding{Rule: "parse", Severity: s, At: at, Msg: fmt.Sprintf(format, a...)})
}

// object is the members of a JSON object; anything else is a finding and has none.
func (p *sonicParser) object(at string, b []byte) map[string]json.RawMessage {
	m := map[string]json.RawMessage{}
	if b = bytes.TrimSpace(b); len(b) == 0 || b[0] != '{' || json.Unmarshal(b, &m) != nil {
		p.say(diag.Error, at, "a JSON object is needed here; it is read as empty")
		return nil
	}
	return m
}

func (p *sonicParser) row(table, row string, raw []byte) {
	at := table + "|" + row
	found := false
	put := func(field, value string) {
		found = true
		p.config = append(p.config, Setting{Key: Key{table, row, field}, Value: value})
	}
	for field, b := range p.object(at, raw) {
		value, ok := sonicScalar(b)
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
	}
	if !found {
		put("", "")
	}
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

// sonicScalar is a JSON value as redis holds it: a string, a number or truth as its text, a list joined by commas.
func sonicScalar(b []byte) (string, bool) {
	switch b[0] {
	case '"':
		var s string
		err := json.Unmarshal(b, &s)
		return s, err == nil
	case '{', 'n':
		return "", false
	case '[':
		var list []json.RawMessage
		if json.Unmarshal(b, &list) != nil {
			return "", false
		}
		items := make([]string, 0, len(list))
		for _, x := range list {
			if x[0] == '[' {
				return "", false
			}
			s, ok := sonicScalar(x)
			if !ok {
				return "", false
			}
			items = append(items, s)
		}
		return strings.Join(items, ","), true
	}
	return string(b), true
}
