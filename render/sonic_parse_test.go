package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/model/diag"
)

func TestSonicParse(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []string // settings
		says       []string // findings
	}{
		{"empty", `{}`, nil, nil},
		{"a row", `{"PORT": {"Ethernet0": {"mtu": "9100", "alias": "etp1"}}}`, []string{`PORT|Ethernet0|alias = "etp1"`, `PORT|Ethernet0|mtu = "9100"`}, nil},
		{"an empty row", `{"QUEUE": {"Ethernet0|3": {}}}`, []string{`QUEUE|Ethernet0|3 = ""`}, nil},
		{"an empty row as redis has it", `{"QUEUE": {"Ethernet0|3": {"NULL": "NULL"}}}`, []string{`QUEUE|Ethernet0|3 = ""`}, nil},
		{"an empty table", `{"QUEUE": {}}`, nil, nil},
		{
			"a list, unsorted, with blanks and repeats", `{"PORT_QOS_MAP": {"Ethernet0": {"pfc_enable": "4, 3,,4"}}}`,
			[]string{`PORT_QOS_MAP|Ethernet0|pfc_enable = ""`, `PORT_QOS_MAP|Ethernet0|pfc_enable[3] = "on"`, `PORT_QOS_MAP|Ethernet0|pfc_enable[4] = "on"`},
			nil,
		},
		{"an empty list", `{"PORT_QOS_MAP": {"Ethernet0": {"pfc_enable": ""}}}`, []string{`PORT_QOS_MAP|Ethernet0|pfc_enable = ""`}, nil},
		{"a reference of old images", `{"QUEUE": {"Ethernet0|3": {"wred_profile": "[WRED_PROFILE|AZURE]"}}}`, []string{`QUEUE|Ethernet0|3|wred_profile = "AZURE"`}, []string{"warning: parse: references are written in brackets"}},
		{"brackets that are no reference", `{"PORT": {"Ethernet0": {"description": "[WRED_PROFILE|AZURE]"}}}`, []string{`PORT|Ethernet0|description = "[WRED_PROFILE|AZURE]"`}, nil},
		{
			"values that are no strings", `{"PORT": {"Ethernet0": {"mtu": 9100, "up": true, "speeds": ["1", 2]}}}`,
			[]string{`PORT|Ethernet0|mtu = "9100"`, `PORT|Ethernet0|speeds = "1,2"`, `PORT|Ethernet0|up = "true"`},
			nil,
		},
		{
			"values that no field can have", `{"PORT": {"Ethernet0": {"a": null, "b": {"c": "d"}, "e": [["f"]], "g": [null], "h": "i"}}}`,
			[]string{`PORT|Ethernet0|h = "i"`},
			[]string{`field "a" holds neither`, `field "b" holds neither`, `field "e" holds neither`, `field "g" holds neither`},
		},
		{
			"names that no field can have", `{"PORT_QOS_MAP": {"Ethernet0": {"": "x", "pfc_enable[3]": "on"}}}`,
			[]string{`PORT_QOS_MAP|Ethernet0 = ""`},
			[]string{`can be named ""`, `can be named "pfc_enable[3]"`},
		},
		{"a table that is none", `{"PORT": [], "QUEUE": "x"}`, nil, []string{"PORT: error: parse: a JSON object", "QUEUE: error: parse: a JSON object"}},
		{"a row that is none", `{"PORT": {"Ethernet0": "x"}}`, []string{`PORT|Ethernet0 = ""`}, []string{"PORT|Ethernet0: error: parse: a JSON object"}},
		{"not an object", `["PORT"]`, nil, []string{"error: parse: a JSON object is needed here"}},
		{"null", `null`, nil, []string{"a JSON object is needed here"}},
		{"nothing", ``, nil, []string{"the configuration is not JSON: line 1: unexpected end"}},
		{"cut off", "{\"PORT\":\n {\"Ethernet0\"", nil, []string{"the configuration is not JSON: line 2: unexpected end"}},
		{"two documents", `{} {}`, nil, []string{"the configuration is not JSON: line 1: invalid character"}},
		{"an error page", `<html>`, nil, []string{"the configuration is not JSON: line 1: invalid character '<'"}},
		{"a comma too many", `{"PORT": {"Ethernet0": {"mtu": "1",}}}`, nil, []string{"the configuration is not JSON: line 1: invalid character '}'"}},
		{"no colon", `{"PORT" {}}`, nil, []string{"the configuration is not JSON: line 1: invalid character '{'"}},
		{"no comma", `{"PORT": {} "QUEUE": {}}`, nil, []string{"the configuration is not JSON: line 1: invalid character '\"'"}},
		{"a number with a zero", `{"PORT": {"Ethernet0": {"mtu": 09}}}`, nil, []string{"the configuration is not JSON: line 1: invalid character '9'"}},
		{"half a word", `{"PORT": {"Ethernet0": {"up": tru}}}`, nil, []string{"the configuration is not JSON: line 1: invalid character '}'"}},
		{"a line break in a string", "{\"PORT\": {\"a\nb\": {}}}", nil, []string{"the configuration is not JSON: line 2: invalid character '\\n' in string"}},
		{"an escape that is none", `{"PORT": {"Ethernet0": {"alias": "\x41"}}}`, nil, []string{"the configuration is not JSON: line 1: invalid character 'x'"}},
		{"as deep as may be", `{"a": {"b": {"c": ` + strings.Repeat("[", jsonDepth-3) + strings.Repeat("]", jsonDepth-3) + `}}}`, []string{`a|b = ""`}, []string{`field "c" holds neither`}},
		{"deeper", `{"a": {"b": {"c": ` + strings.Repeat("[", jsonDepth-2) + strings.Repeat("]", jsonDepth-2) + `}}}`, nil, []string{"the configuration is not JSON"}},
		{"a deep one", strings.Repeat(`{"a":`, 20_000), nil, []string{"the configuration is not JSON"}},
		{"a long one", strings.Repeat(" ", sonicMaxText+1), nil, []string{"at most 67108864 are read"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, l := sonicParse([]byte(c.text))
			if diff := cmp.Diff(c.want, got.lines()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if len(l) != len(c.says) {
				t.Fatalf("findings %v, want %q", l, c.says)
			}
			for i, want := range c.says {
				if !strings.Contains(l[i].String(), want) {
					t.Errorf("finding %s, want %q", l[i], want)
				}
			}
		})
	}
}

func TestSonicRows(t *testing.T) {
	c := config(
		[4]string{"QUEUE", "Ethernet0|3", "", ""},
		[4]string{"PORT_QOS_MAP", "Ethernet0", "pfc_enable", ""}, [4]string{"PORT_QOS_MAP", "Ethernet0", "pfc_enable[3]", "on"},
		[4]string{"PORT_QOS_MAP", "Ethernet0", "pfc_enable[4]", "on"}, [4]string{"PORT_QOS_MAP", "Ethernet0", "pfcwd_sw_enable", ""},
		[4]string{"PORT_QOS_MAP", "Ethernet8", "pfc_enable[6]", "on"}, // Apply to a row that had no such field
		[4]string{"PORT", "Ethernet0", "odd[1]", "x"},
	)
	want := SonicDB{
		"QUEUE": {"Ethernet0|3": {}},
		"PORT_QOS_MAP": {
			"Ethernet0": {"pfc_enable": "3,4", "pfcwd_sw_enable": ""},
			"Ethernet8": {"pfc_enable": "6"},
		},
		"PORT": {"Ethernet0": {"odd[1]": "x"}},
	}
	if diff := cmp.Diff(want, SonicRows(c)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for field, want := range map[string]string{"pfc_enable[3]": "pfc_enable", "pfc_enable": "pfc_enable", "": "", "dscp_to_tc_map": "dscp_to_tc_map"} {
		if got := SonicField(Key{"PORT_QOS_MAP", "Ethernet0", field}); got != want {
			t.Errorf("SonicField(%q) = %q, want %q", field, got, want)
		}
	}
}

// asEncodingJSON compares what was read of a text with what encoding/json makes of it: whether it is JSON, and every plain
// value.
func asEncodingJSON(t *testing.T, text []byte, c Config, l diag.List) {
	t.Helper()
	refused := len(l) > 0 && strings.HasPrefix(l[0].Msg, "the configuration is not JSON")
	if json.Valid(text) == refused {
		t.Fatalf("valid to encoding/json: %v; findings %v", !refused, l)
	}
	var db map[string]map[string]map[string]any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if refused || d.Decode(&db) != nil { // of another shape: there are findings
		return
	}
	n := 0
	for table, rows := range db {
		for row, fields := range rows {
			for field, want := range fields {
				k := Key{table, row, field}
				_, _, isItem := sonicItem(k)
				switch want.(type) {
				case string, json.Number, bool:
				default:
					continue
				}
				if field == "" || isItem || field == "NULL" && want == "NULL" || sonicIsList(table, field) {
					continue
				}
				n++
				if got, ok := c.Find(k); !ok || got != fmt.Sprint(want) && !strings.HasPrefix(fmt.Sprint(want), "["+sonicTarget(table, field)+"|") {
					t.Errorf("%s is %q, encoding/json reads %v", k, got, want)
				}
			}
		}
	}
	if n > len(c) {
		t.Errorf("%d settings, %d plain values", len(c), n)
	}
}

// Nothing that a device can send makes us panic, lose what we read, or speak of Go.
func FuzzSonicParse(f *testing.F) {
	golden, err := os.ReadFile("testdata/sonic.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(golden)
	for _, s := range []string{
		`{"QUEUE": {"Ethernet0|0-2": {"scheduler": "[SCHEDULER|[SCHEDULER|x]]"}, "Ethernet0|4-3": {}, "a|b|c|1": {}, "CPU|0": {}}}`,
		`{"PORT_QOS_MAP": {"Ethernet0": {"pfc_enable": "3-4,[9],]", "pfcwd_sw_enable": ["3", "4"], "dscp_to_tc_map": "m"}}, "DSCP_TO_TC_MAP": {"m": {"64": "9", "x": "1", "3": "16"}}}`,
		`{"WRED_PROFILE": {"w": {"ecn": "ecn_green_blue", "wred_green_enable": "yes"}}, "PFC_WD": {"Ethernet0": {"detection_time": "-1"}, "GLOBAL": {}}}`,
		`{"PORT": {"Ethernet0": {"mtu": -0.5E+07, "\u00e9\n\/\ud83d\ude00\ud83d": "\"\\", "t": true, "f": [false, "x", 1e5]}}} `, "{\"a\": {\"b\": {\"c\": \"\xff\"}}}",
		`{"a": {"b": 01}}`, `{"a": {"b": {"c": "\u12g4"}}}`, `{"a": {"b": {"c": 1.}}}`, `{"a": {"b": {"c": [1,]}}}`, `{"a": {"b": {"c": nul}}}`, `{"a": {},}`, `{"a" {}}`, `{"a": {"b": {"c": "d" "e": "f"}}}`,
		`{"PORT": {"Ethernet0": {"mtu": 1e400, "a": null, "b": [{}], "NULL": "NULL"}, "": {"": ""}}, "": {}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		c, l := sonicParse(b)
		asEncodingJSON(t, b, c, l)
		again, more := sonicParse(sonicText(c))
		if !c.Equal(again) {
			t.Errorf("Parse(Text(c)) (-c +again):\n%s", cmp.Diff(c.lines(), again.lines()))
		}
		if more.Count(diag.Error) > 0 {
			t.Errorf("our own text has findings: %v", more)
		}
		for i := 1; i < len(c); i++ {
			if c[i-1].Key.Compare(c[i].Key) >= 0 {
				t.Fatalf("%s is there twice, or out of order", c[i].Key)
			}
		}
		_, lifted := sonicLift(c, Facts{})
		for _, x := range append(l, lifted...) {
			if strings.Contains(x.Msg, "Go value") || strings.Contains(x.Msg, "json.") || strings.Contains(x.Msg, "strconv") {
				t.Errorf("a finding speaks of Go: %s", x)
			}
		}
		Diff(&sonic, Facts{}, c, nil)
		sonicRisk(c, Diff(&sonic, Facts{}, nil, c), Facts{})
	})
}
