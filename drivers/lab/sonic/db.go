package sonic

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
)

// DB is a ConfigDB: table, row key, field, value. A value is a string, or a list of strings where the YANG model has
// a leaf-list that redis keeps as "name@". An empty row is an empty map.
type DB map[string]map[string]map[string]any

// Parse reads a config_db.json. Numbers and booleans become strings, as sonic-cfggen makes them. Errors begin with the line,
// where there is one.
func Parse(text []byte) (DB, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var db DB
	err := d.Decode(&db)
	if err == nil {
		if _, err = d.Token(); err == nil {
			return nil, fmt.Errorf("line %d: something follows the object of tables", lineAt(text, d.InputOffset()))
		} else if errors.Is(err, io.EOF) {
			err = nil
		}
	}
	if err != nil {
		return nil, notDB(text, err)
	}
	for table, rows := range db {
		for row, fields := range rows {
			if fields == nil {
				rows[row] = map[string]any{}
			}
			for field, v := range fields {
				x, ok := asValue(v)
				if !ok {
					return nil, fmt.Errorf("%s|%s|%s is neither a value nor a list of values", table, row, field)
				}
				fields[field] = x
				if field == "NULL" && x == "NULL" {
					delete(fields, field) // how redis keeps an empty row
				}
			}
		}
	}
	return db, nil
}

// notDB says what is wrong with a text that is not a configuration.
func notDB(text []byte, err error) error {
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("line %d: not valid JSON: %w", lineAt(text, syntax.Offset), err)
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("line %d: a %s where an object belongs: want tables of rows of fields", lineAt(text, wrong.Offset), wrong.Value)
	}
	switch {
	case len(bytes.TrimSpace(text)) == 0:
		return errors.New("the file is empty; want tables of rows of fields")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("line %d: not valid JSON: it ends too early", lineAt(text, int64(len(text))))
	}
	return fmt.Errorf("not valid JSON: %w", err)
}

// lineAt is the line of the byte before offset.
func lineAt(text []byte, offset int64) int {
	return 1 + bytes.Count(text[:min(int64(len(text)), max(0, offset-1))], []byte{'\n'})
}

func asValue(v any) (any, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case json.Number:
		return v.String(), true
	case bool:
		return fmt.Sprint(v), true
	case []any:
		list := make([]string, 0, len(v))
		for _, x := range v {
			s, ok := asValue(x)
			text, isText := s.(string)
			if !ok || !isText {
				return nil, false
			}
			list = append(list, text)
		}
		return list, true
	}
	return nil, false
}

// JSON is config_db.json as `config save` writes it, with sorted keys.
func (db DB) JSON() []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "    ")
	_ = e.Encode(db) // strings into memory: cannot fail
	return b.Bytes()
}

// Get is the text at table, row and field, "" when there is none.
func (db DB) Get(table, row, field string) string {
	s, _ := db[table][row][field].(string)
	return s
}

// Set puts a value, making table and row where they are missing.
func (db DB) Set(table, row, field string, value any) {
	if db[table] == nil {
		db[table] = map[string]map[string]any{}
	}
	if db[table][row] == nil {
		db[table][row] = map[string]any{}
	}
	db[table][row][field] = value
}

// Put sets every value of other.
func (db DB) Put(other DB) {
	for table, rows := range other {
		for row, fields := range rows {
			if db[table] == nil {
				db[table] = map[string]map[string]any{}
			}
			if db[table][row] == nil {
				db[table][row] = map[string]any{}
			}
			maps.Copy(db[table][row], fields)
		}
	}
}

func (db DB) clone() DB {
	r := make(DB, len(db))
	for t, rows := range db {
		r[t] = make(map[string]map[string]any, len(rows))
		for k, fields := range rows {
			r[t][k] = maps.Clone(fields)
		}
	}
	return r
}

// items is a value as a list: of a list, or of a comma list.
func items(v any) []string {
	switch v := v.(type) {
	case []string:
		return v
	case string:
		var out []string
		for x := range bytes.SplitSeq([]byte(v), []byte(",")) {
			out = append(out, string(x))
		}
		return out
	}
	return nil
}

func equalRow(a, b map[string]any) bool {
	return maps.EqualFunc(a, b, func(x, y any) bool { return slices.Equal(items(x), items(y)) })
}
