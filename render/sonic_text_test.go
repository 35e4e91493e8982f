package render

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// The text is SonicRows in JSON, whatever the names and values are.
func TestSonicTextIsRows(t *testing.T) {
	word := rapid.OneOf(
		rapid.SampledFrom([]string{"PORT_QOS_MAP", "QUEUE", "Ethernet0", "Ethernet0|3", "mtu", "a\"b\\c", "<&>", "é\u2028\x7f", "\xff", "\n", "0"}),
		rapid.String(),
	)
	field := rapid.OneOf(word, rapid.SampledFrom([]string{
		"", "pfc_enable", "pfc_enable2", "pfc_enable[3]", "pfc_enable[4]", "pfcwd_sw_enable[0]", "pfcwd_sw_enable",
	}))
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SliceOfDistinct(rapid.Custom(func(t *rapid.T) Key {
			if rapid.Bool().Draw(t, "of one row") {
				return Key{"PORT_QOS_MAP", "Ethernet0", field.Draw(t, "field")}
			}
			return Key{word.Draw(t, "table"), word.Draw(t, "row"), field.Draw(t, "field")}
		}), rapid.ID[Key]).Draw(t, "keys")
		var c Config
		for _, k := range keys {
			c = append(c, Setting{Key: k, Value: word.Draw(t, "value")})
		}
		c = c.Sorted()
		var want bytes.Buffer
		e := json.NewEncoder(&want)
		e.SetEscapeHTML(false)
		e.SetIndent("", "    ")
		if err := e.Encode(SonicRows(c)); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want.String(), string(sonicText(c))); d != "" {
			t.Fatalf("of %v (-rows +text):\n%s", c.lines(), d)
		}
	})
}

// Parsing reads what encoding/json reads of the same text: white space, escapes, members in any order and twice.
func TestSonicParseIsJSON(t *testing.T) {
	space := rapid.SampledFrom([]string{"", "", "", " ", "\n\t", "\r"})
	name := rapid.SampledFrom([]string{`"a"`, `"b"`, `"\u0061"`, `"PORT_QOS_MAP"`, `"pfc_enable"`, `"pfc_enable[3]"`, `"\"\\"`, `""`, `"NULL"`, "\"\xff\"", `"é"`})
	value := rapid.SampledFrom([]string{`"x"`, `"3,4"`, `"\u00e9\n"`, `"NULL"`, `1e3`, `-0.5`, `true`, `null`, `[]`, `["3", 4]`, `[ "a" , {"b": 1} ]`, `{}`, `{"a": ["}"]}`, `[[1]]`, "\"\xff\""})
	var object func(depth int) *rapid.Generator[string]
	object = func(depth int) *rapid.Generator[string] {
		return rapid.Custom(func(t *rapid.T) string {
			if depth == 0 || rapid.IntRange(0, 9).Draw(t, "odd") == 0 {
				return value.Draw(t, "value")
			}
			var members []string
			for range rapid.IntRange(0, 4).Draw(t, "members") {
				members = append(members, space.Draw(t, "s")+name.Draw(t, "name")+space.Draw(t, "s")+":"+space.Draw(t, "s")+
					object(depth-1).Draw(t, "of")+space.Draw(t, "s"))
			}
			return "{" + space.Draw(t, "s") + strings.Join(members, ",") + "}"
		})
	}
	rapid.Check(t, func(t *rapid.T) {
		text := space.Draw(t, "s") + object(3).Draw(t, "text") + space.Draw(t, "s")
		got, _ := sonicParse([]byte(text))
		if d := cmp.Diff(parsedByMaps([]byte(text)).lines(), got.lines()); d != "" {
			t.Fatalf("%s (-maps +parse):\n%s", text, d)
		}
	})
}

// parsedByMaps is sonicParse over encoding/json's maps, without its findings.
func parsedByMaps(text []byte) Config {
	object := func(b []byte) map[string]json.RawMessage {
		m := map[string]json.RawMessage{}
		_ = json.Unmarshal(b, &m)
		return m
	}
	var scalar func(b []byte) (string, bool)
	scalar = func(b []byte) (string, bool) {
		switch b[0] {
		case '"':
			var s string
			err := json.Unmarshal(b, &s)
			return s, err == nil
		case '{', 'n':
			return "", false
		case '[':
			var list []json.RawMessage
			_ = json.Unmarshal(b, &list)
			var items []string
			for _, x := range list {
				s, ok := scalar(x)
				if !ok || x[0] == '[' {
					return "", false
				}
				items = append(items, s)
			}
			return strings.Join(items, ","), true
		}
		return string(b), true
	}
	var c Config
	for table, rows := range object(text) {
		for row, fields := range object(rows) {
			var mine Config
			for field, b := range object(fields) {
				v, ok := scalar(b)
				if _, _, isItem := sonicItem(Key{table, row, field}); !ok || field == "" || isItem || field == "NULL" && v == "NULL" {
					continue
				}
				if !sonicIsList(table, field) {
					mine = append(mine, Setting{Key: Key{table, row, field}, Value: v})
					continue
				}
				mine = append(mine, Setting{Key: Key{table, row, field}})
				for _, item := range listItems(v) {
					mine = append(mine, Setting{Key: Key{table, row, field + "[" + item + "]"}, Value: "on"})
				}
			}
			if len(mine) == 0 {
				mine = Config{{Key: Key{table, row, ""}}}
			}
			c = slices.Concat(c, mine)
		}
	}
	return c.Sorted()
}
