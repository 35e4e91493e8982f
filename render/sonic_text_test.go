package render

import (
	"bytes"
	"encoding/json"
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
