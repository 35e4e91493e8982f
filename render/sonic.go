package render

import (
	"bytes"
	"encoding/json"
	"strings"
)

// sonic is SONiC's ConfigDB, written over gNMI (origin sonic-db) or with config apply-patch. A setting is one field
// of one row, {TABLE, row, field}; every value is a string. Two spellings are ours:
//
//	{TABLE, row, ""} = ""                          the row exists and is empty
//	{"PORT_QOS_MAP", port, "pfc_enable"} = ""      the list field exists
//	{"PORT_QOS_MAP", port, "pfc_enable[3]"} = "on" the list has item 3
//
// Lists (pfc_enable, pfcwd_sw_enable) are settings of their own per item because the model owns single priorities of
// them. SonicRows joins them back.
//
// Facts: SONiC YANG models of sonic-buildimage 086b03bd; the generic config updater of sonic-utilities 691b1bbc.
// Not verified on a real switch.
var sonic = Dialect{
	OS:   "sonic",
	Text: sonicText,
}

// SonicDB is a ConfigDB: table to row key to field to value. An empty row is an empty map.
type SonicDB map[string]map[string]map[string]string

// SonicRows is c as the device holds it: list items joined ("3,4"; "" for an empty list, written as such because
// SONiC leaves PFC on when the field merely goes away). It shares nothing with c.
func SonicRows(c Config) SonicDB {
	db := SonicDB{}
	for _, s := range c {
		rows := db[s.Key.Scope]
		if rows == nil {
			rows = map[string]map[string]string{}
			db[s.Key.Scope] = rows
		}
		row := rows[s.Key.Object]
		if row == nil {
			row = map[string]string{}
			rows[s.Key.Object] = row
		}
		field, item, isItem := sonicItem(s.Key)
		switch {
		case s.Key.Field == "":
		case isItem && row[field] != "":
			row[field] += "," + item // c is sorted, and so are the items
		case isItem:
			row[field] = item
		default:
			row[field] = s.Value
		}
	}
	return db
}

// SonicField is the ConfigDB field that carries the setting at k: "pfc_enable" for "pfc_enable[3]", the field itself
// for all others, "" for the row. To write one, take its value from SonicRows of the whole changed configuration.
func SonicField(k Key) string {
	field, _, _ := sonicItem(k)
	return field
}

// sonicItem splits the field of a list item; for any other key, item is "" and field is k.Field.
func sonicItem(k Key) (field, item string, ok bool) {
	if k.Scope == "PORT_QOS_MAP" && strings.HasSuffix(k.Field, "]") {
		if f, i, found := strings.Cut(k.Field[:len(k.Field)-1], "["); found && sonicIsList(k.Scope, f) {
			return f, i, true
		}
	}
	return k.Field, "", false
}

// sonicIsList reports whether we own single items of the comma list in a field.
func sonicIsList(table, field string) bool {
	return table == "PORT_QOS_MAP" && (field == "pfc_enable" || field == "pfcwd_sw_enable")
}

// sonicText is config_db.json: four spaces, sorted keys, as `config save` writes it.
func sonicText(c Config) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "    ")
	if err := e.Encode(SonicRows(c)); err != nil {
		panic("render: maps of strings do not encode: " + err.Error()) // cannot happen
	}
	return b.Bytes()
}
