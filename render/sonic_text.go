package render

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// sonicText is config_db.json as `config save` writes it: four spaces, sorted keys. It is SonicRows as JSON, written
// straight from the sorted settings: a fabric's renderings are tens of megabytes, most of them here.
func sonicText(c Config) []byte {
	if len(c) == 0 {
		return []byte("{}\n")
	}
	size := 0
	for i := range c {
		size += len(c[i].Key.Field) + len(c[i].Value) + 20
	}
	w := sonicWriter{b: make([]byte, 0, size+size/4)}
	w.b = append(w.b, '{')
	for i := 0; i < len(c); {
		table := c[i].Key.Scope
		w.open(i == 0, "    ", table)
		for first := true; i < len(c) && c[i].Key.Scope == table; first = false {
			end := i + 1
			for end < len(c) && c[end].Key.Scope == table && c[end].Key.Object == c[i].Key.Object {
				end++
			}
			w.row(first, c[i:end])
			i = end
		}
		w.b = append(w.b, "\n    }"...)
	}
	return append(w.b, "\n}\n"...)
}

// sonicWriter writes JSON as encoding/json does with an indent of four spaces and without escaping for HTML.
type sonicWriter struct {
	b      []byte
	fields []sonicMember // of the row at hand
}

// sonicMember is one field of a row.
type sonicMember struct{ name, value string }

// open begins an object that is a member of another.
func (w *sonicWriter) open(first bool, indent, name string) {
	w.name(first, indent, name)
	w.b = append(w.b, '{')
}

func (w *sonicWriter) name(first bool, indent, name string) {
	if !first {
		w.b = append(w.b, ',')
	}
	w.b = append(w.b, '\n')
	w.b = append(w.b, indent...)
	w.text(name)
	w.b = append(w.b, ": "...)
}

// row writes the settings of one row, list items joined.
func (w *sonicWriter) row(first bool, c Config) {
	w.open(first, "        ", c[0].Key.Object)
	w.fields = w.fields[:0]
	ordered := true
	for i := range c {
		field, item, isItem := sonicItem(c[i].Key)
		switch {
		case c[i].Key.Field == "":
			continue
		case !isItem:
			w.fields = append(w.fields, sonicMember{field, c[i].Value})
		default:
			at := slices.IndexFunc(w.fields, func(f sonicMember) bool { return f.name == field })
			switch {
			case at < 0:
				w.fields = append(w.fields, sonicMember{field, item})
			case w.fields[at].value == "":
				w.fields[at].value = item
			default:
				w.fields[at].value += "," + item
			}
		}
		if n := len(w.fields); n > 1 && w.fields[n-2].name > w.fields[n-1].name {
			ordered = false // a list without a setting of its own stands where its first item does
		}
	}
	if !ordered {
		slices.SortFunc(w.fields, func(a, b sonicMember) int { return strings.Compare(a.name, b.name) })
	}
	for i, f := range w.fields {
		w.name(i == 0, "            ", f.name)
		w.text(f.value)
	}
	if len(w.fields) > 0 {
		w.b = append(w.b, "\n        "...)
	}
	w.b = append(w.b, '}')
}

// text writes a string, with the encoder's help where it is not plain.
func (w *sonicWriter) text(s string) {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			var b bytes.Buffer
			e := json.NewEncoder(&b)
			e.SetEscapeHTML(false)
			_ = e.Encode(s) // a string into memory: cannot fail
			w.b = append(w.b, bytes.TrimSuffix(b.Bytes(), []byte("\n"))...)
			return
		}
	}
	w.b = append(w.b, '"')
	w.b = append(w.b, s...)
	w.b = append(w.b, '"')
}
