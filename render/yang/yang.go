// Package yang is the second witness of SONiC configurations: it turns a ConfigDB into RFC 7951 JSON by reading the
// SONiC YANG models themselves, and has yanglint judge it. Only tests import it. The models are not ours to ship;
// they are found below FABRICCTL_REFERENCE.
package yang

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Models are the YANG modules of a directory.
type Models struct {
	tables    map[string]table       // ConfigDB table to its container
	typedefs  map[string]statement   // name to its type statement
	groupings map[string][]statement // name to what it holds
}

type table struct {
	module string
	sub    []statement
}

// Load reads every .yang file of a directory.
func Load(dir string) (*Models, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.yang"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("%s holds no YANG models", dir)
	}
	m := &Models{tables: map[string]table{}, typedefs: map[string]statement{}, groupings: map[string][]statement{}}
	var modules []statement
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		list, err := parse(string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		modules = append(modules, list...)
	}
	for _, module := range modules {
		for _, s := range module.sub {
			switch s.keyword {
			case "typedef":
				m.typedefs[s.arg], _ = s.find("type")
			case "grouping":
				m.groupings[s.arg] = s.sub
			}
		}
	}
	for _, module := range modules {
		for _, top := range module.sub {
			if top.keyword != "container" || top.arg != module.arg {
				continue
			}
			for _, s := range m.expand(top.sub) {
				if s.keyword == "container" {
					m.tables[s.arg] = table{module.arg, s.sub}
				}
			}
		}
	}
	return m, nil
}

// expand replaces uses by what they use, and choices by all that can be chosen.
func (m *Models) expand(list []statement) []statement {
	var out []statement
	for _, s := range list {
		switch s.keyword {
		case "choice", "case":
			out = append(out, m.expand(s.sub)...)
		case "uses":
			out = append(out, m.expand(m.groupings[local(s.arg)])...)
		default:
			out = append(out, s)
		}
	}
	return out
}

func (m *Models) pick(list []statement, keywords ...string) []statement {
	var out []statement
	for _, s := range m.expand(list) {
		if slices.Contains(keywords, s.keyword) {
			out = append(out, s)
		}
	}
	return out
}

// Instance converts a config_db.json. Tables and rows that no model describes are left out and listed.
func (m *Models) Instance(configDB []byte) (instance []byte, unmodelled []string, err error) {
	var db map[string]map[string]map[string]any
	if err := json.Unmarshal(configDB, &db); err != nil {
		return nil, nil, fmt.Errorf("config_db.json: %w", err)
	}
	out := map[string]map[string]map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(db)) {
		t, ok := m.tables[name]
		if !ok {
			unmodelled = append(unmodelled, name)
			continue
		}
		top := t.module + ":" + t.module
		if out[top] == nil {
			out[top] = map[string]map[string]any{}
		}
		var left []string
		out[top][name], left = m.table(name, t, db[name])
		unmodelled = append(unmodelled, left...)
	}
	instance, err = json.MarshalIndent(out, "", " ")
	return instance, unmodelled, err
}

// table converts rows: a row with a container of its name becomes an object, the others elements of the list with as
// many keys as the row key has parts.
func (m *Models) table(name string, t table, rows map[string]map[string]any) (out map[string]any, unmodelled []string) {
	out = map[string]any{}
	containers, lists := m.pick(t.sub, "container"), m.pick(t.sub, "list")
	for _, row := range slices.Sorted(maps.Keys(rows)) {
		if i := slices.IndexFunc(containers, func(s statement) bool { return s.arg == row }); i >= 0 {
			out[row] = m.row(containers[i].sub, rows[row])
			continue
		}
		parts := strings.Split(row, "|")
		var list *statement
		for i, l := range lists {
			if len(keys(l)) == len(parts) && (list == nil || l.arg == name+"_LIST") {
				list = &lists[i]
			}
		}
		if list == nil {
			unmodelled = append(unmodelled, name+"|"+row)
			continue
		}
		element := m.row(list.sub, rows[row])
		leaves := m.pick(list.sub, "leaf")
		for i, key := range keys(*list) {
			if j := slices.IndexFunc(leaves, func(s statement) bool { return s.arg == key }); j >= 0 {
				element[key] = m.value(leaves[j], parts[i])
			}
		}
		elements, _ := out[list.arg].([]any)
		out[list.arg] = append(elements, element)
	}
	return out, unmodelled
}

func keys(list statement) []string {
	key, _ := list.find("key")
	return strings.Fields(key.arg)
}

// row converts fields. What is no leaf becomes an element of the inner list, for tables whose fields are entries.
func (m *Models) row(sub []statement, fields map[string]any) map[string]any {
	leaves, inner := m.pick(sub, "leaf", "leaf-list"), m.pick(sub, "list")
	out := map[string]any{}
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		v, name := fields[field], strings.TrimSuffix(field, "@")
		i := slices.IndexFunc(leaves, func(s statement) bool { return s.arg == name })
		switch {
		case field == "NULL":
		case i >= 0:
			out[name] = m.value(leaves[i], v)
		case len(inner) > 0:
			elements, _ := out[inner[0].arg].([]any)
			out[inner[0].arg] = append(elements, m.entry(inner[0], field, v))
		default:
			out[field] = v // unknown: yanglint says so
		}
	}
	return out
}

func (m *Models) entry(list statement, field string, v any) map[string]any {
	e, key := map[string]any{}, keys(list)
	for _, leaf := range m.pick(list.sub, "leaf") {
		if slices.Contains(key, leaf.arg) {
			e[leaf.arg] = m.value(leaf, field)
		} else {
			e[leaf.arg] = m.value(leaf, v)
		}
	}
	return e
}

// value converts one value by the type of its leaf: RFC 7951 has small integers as numbers and 64-bit ones as strings.
func (m *Models) value(leaf statement, v any) any {
	kind := m.kind(leaf)
	if leaf.keyword == "leaf-list" {
		items, isList := v.([]any)
		if !isList {
			for item := range strings.SplitSeq(text(v), ",") {
				items = append(items, item)
			}
		}
		out := []any{}
		for _, x := range items {
			out = append(out, scalar(kind, text(x)))
		}
		return out
	}
	return scalar(kind, text(v))
}

func text(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	b, _ := json.Marshal(v)
	return string(b)
}

func scalar(kind, s string) any {
	switch {
	case regexp.MustCompile(`^u?int(8|16|32)$`).MatchString(kind):
		if n, err := strconv.ParseInt(s, 10, 64); err == nil {
			return n
		}
	case kind == "boolean" && strings.EqualFold(s, "true"):
		return true
	case kind == "boolean" && strings.EqualFold(s, "false"):
		return false
	}
	return s
}

// kind is the built-in type of a leaf, through typedefs.
func (m *Models) kind(leaf statement) string {
	t, _ := leaf.find("type")
	for range 10 {
		d, ok := m.typedefs[local(t.arg)]
		if !ok {
			break
		}
		t = d
	}
	return local(t.arg)
}
