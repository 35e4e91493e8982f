package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/fabricctl/fabricctl/model/units"
)

// schema is a part of a JSON Schema (2020-12). Written out, its keys are sorted.
type schema map[string]any

// JSONSchema is the schema of the documents that Load reads, as JSON Schema 2020-12 for editors and other validators: keys
// with their descriptions, shapes, units, ranges and words. It is made from the schema that Load itself checks with, so
// the two accept the same documents, but for what a schema cannot say: what no two places of a document may have in
// common, what must agree, how far a number may go, and how it is spelled (010, 4.0).
//
// A whole document has all that is required. With layer, required is only what Load requires of each document by
// itself, since layers fill each other's gaps. The same program gives the same bytes.
func JSONSchema(layer bool) []byte {
	g := generator{layer: layer}
	s := schema{
		"$schema":     "https://json-schema.org/draft/2020-12/schema",
		"title":       "fabricctl model (" + APIVersion + ")",
		"description": "A document of a fabricctl model: what a RoCEv2 fabric agrees on (kind Fabric), which box is which (Inventory), or a piece of hardware (Profile).",
		"type":        "object",
		"required":    []string{"apiVersion", "kind"},
		"properties":  schema{"kind": schema{"description": "what the document is about", "enum": kinds()}},
	}
	defs, rules := schema{}, []schema{}
	for _, kind := range kinds() {
		defs[kind] = g.place(schemaOf(kind))
		rules = append(rules, schema{
			"if":   schema{"properties": schema{"kind": schema{"const": kind}}, "required": []string{"kind"}},
			"then": schema{"$ref": "#/$defs/" + kind},
		})
	}
	s["$defs"], s["allOf"] = defs, rules
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(s); err != nil { // maps, lists and texts alone
		panic(err)
	}
	return b.Bytes()
}

// generator turns fields into schemas.
type generator struct{ layer bool }

// place is the schema of one place. Where a word may stand in place of a mapping or list, the two are alternatives, so
// that an editor offers the words; otherwise the keywords of different types stand beside each other.
func (g generator) place(f *field) schema {
	var shapes []schema
	if f.scalar != nil {
		shapes = append(shapes, f.scalar.schema())
	}
	switch {
	case f.kids != nil:
		shapes = append(shapes, g.mapping(f))
	case f.dict != nil:
		shapes = append(shapes, schema{
			"type": "object", "patternProperties": schema{"^" + namePattern + "$": g.place(f.dict)}, "additionalProperties": false,
		})
	}
	if f.list != nil {
		shapes = append(shapes, schema{"type": "array", "items": g.element(f)})
	}
	s := schema{}
	if len(shapes) == 1 {
		s = shapes[0]
	} else {
		s["anyOf"] = shapes
	}
	if d := f.description(); d != "" {
		s["description"] = d
	}
	return s
}

func (g generator) mapping(f *field) schema {
	properties, required := schema{}, []string{}
	for i := range f.kids {
		k := &f.kids[i]
		properties[k.key] = g.place(k)
		if k.required && (!g.layer || k.key == "apiVersion" || k.key == "kind") {
			required = append(required, k.key)
		}
	}
	s := schema{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}

// element is the schema of a list's elements; named ones are told apart by their name, in every layer.
func (g generator) element(f *field) schema {
	s := g.place(f.list)
	if f.named && g.layer {
		s["required"] = []string{"name"}
	}
	return s
}

// description is what an editor shows: what the place means, and how its value is written where that is not plain.
func (f *field) description() string {
	parts := []string{f.doc}
	if f.doc == "" {
		parts = nil
	}
	if s := f.scalar; s != nil && strings.ContainsAny(s.noun, "0123456789:") && s.schema()["enum"] == nil {
		parts = append(parts, withArticle(s.noun))
	}
	return strings.Join(parts, "; ")
}

// The languages of scalars, as regular expressions that ECMA 262, RE2 and Python read alike.
const (
	namePattern  = `[A-Za-z0-9][-A-Za-z0-9_.]{0,63}`
	ifacePattern = `[A-Za-z0-9][-A-Za-z0-9_./:]{0,63}`
	textPattern  = `[^\x00-\x1f\x7f-\x9f` + "\u2028\u2029" + `]+`
	envPattern   = `env:[A-Za-z_][A-Za-z0-9_]*`
	sharePattern = `(100(\.0+)?|[1-9]?[0-9](\.[0-9]{1,4}0*)?)%`
	ratioPattern = `0*[1-9][0-9]*(/0*[1-9][0-9]*)?`
	octetPattern = `(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])`
	ip4Pattern   = `(` + octetPattern + `\.){3}` + octetPattern
	hexPattern   = `[0-9A-Fa-f]{1,4}`
	ip6Pattern   = `((` + hexPattern + `:){7}` + hexPattern + `|(` + hexPattern + `(:` + hexPattern + `){0,6})?::(` + hexPattern + `(:` + hexPattern + `){0,6})?` +
		`|(` + hexPattern + `:){6}` + ip4Pattern + `|(` + hexPattern + `(:` + hexPattern + `){0,4})?::(` + hexPattern + `:){0,5}` + ip4Pattern + `)`
	hostPattern = `(([A-Za-z]|[0-9][0-9.]{0,62}[-A-Za-z_])[-A-Za-z0-9_.]{0,62}` +
		`|(` + labelPattern + `\.)*([A-Za-z]|[0-9]+[-A-Za-z_])[-A-Za-z0-9_]{0,63}(\.` + labelPattern + `)*)`
	addressPattern = ip4Pattern + "|" + ip6Pattern + "(%.+)?|" + hostPattern
	labelPattern   = `[A-Za-z0-9][-A-Za-z0-9_]{0,63}`
	prefixPattern  = ip4Pattern + `/(3[0-2]|[12]?[0-9])|` + ip6Pattern + `/(12[0-8]|1[01][0-9]|[1-9]?[0-9])`
	hopPattern     = `(` + namePattern + `@)?(` + ip4Pattern + `|\[` + ip6Pattern + `\]|` + ip6Pattern + `(%[^@,\]]+)?|` + hostPattern + `)(:(` + portPattern + `))?`
	hopsPattern    = hopPattern + "(," + hopPattern + ")*"
	portPattern    = `6553[0-5]|655[0-2][0-9]|65[0-4][0-9]{2}|6[0-4][0-9]{3}|[1-5][0-9]{4}|[1-9][0-9]{0,3}`
	pciPattern     = `[0-9A-Fa-f]{4}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f]`
	exactPattern   = `(0|[1-9][0-9]{0,5})(\.[0-9]{1,3})?(B|KiB)`
	dscpPattern    = `([1-5]?[0-9]|6[0-3])-([1-5]?[0-9]|6[0-3])`
)

// quantityPattern is a decimal number with one of these units.
func quantityPattern(us func() []units.Unit) func() string {
	return func() string {
		var alternatives []string
		for _, u := range us() {
			switch {
			case u.Decimals == 0:
				alternatives = append(alternatives, `(\.0+)?`+u.Name)
			case u.Decimals > 0:
				alternatives = append(alternatives, fmt.Sprintf(`(\.[0-9]{1,%d}0*)?%s`, u.Decimals, u.Name))
			default:
				alternatives = append(alternatives, `(\.[0-9]+)?`+u.Name)
			}
		}
		return `(0|[1-9][0-9]*)(` + strings.Join(alternatives, "|") + `)`
	}
}

// wordPattern is textPattern without some characters.
func wordPattern(without string) string { return "[^" + without + textPattern[len("[^"):] }

// textSchema is text that matches pattern whole.
func textSchema(pattern string) func() schema { return written(pattern, "string") }

// hostSchema is textSchema for names of hosts, one of which may be called true.
func hostSchema(pattern string) func() schema { return written(pattern, "string", "boolean") }

// plainSchema is textSchema for what YAML may take for a number or a truth value.
func plainSchema(pattern string) func() schema {
	return written(pattern, "string", "number", "boolean")
}

// written is a scalar of these types that, as text, matches pattern whole.
func written(pattern string, types ...string) func() schema {
	return func() schema {
		s := schema{"type": types, "pattern": "^(" + pattern + ")$"}
		if len(types) == 1 {
			s["type"] = types[0]
		}
		return s
	}
}

// numberSchema is a whole number from lo to hi.
func numberSchema(lo, hi int) func() schema {
	return func() schema { return schema{"type": "integer", "minimum": lo, "maximum": hi} }
}

// numberOrText is a whole number from lo to hi, or text that matches pattern.
func numberOrText(lo, hi int, pattern string) func() schema {
	return func() schema {
		s := written(pattern, "integer", "string")()
		s["minimum"], s["maximum"] = lo, hi
		return s
	}
}
