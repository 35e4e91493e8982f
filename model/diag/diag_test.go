package diag

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func at(file string, line, col int) Pos { return Pos{file, line, col} }

// The text of a finding is what users read and pipelines grep.
func TestString(t *testing.T) {
	f := Finding{
		Rule: "ecn-order", Severity: Error, Pos: at("fabric.yaml", 42, 11), Msg: "kmin 400KB of class training is above its kmax 350KB on leaf1",
		Hint: "raise kmax to at least 400KB, or lower kmin to at most 350KB", Related: []Related{{at("site.yaml", 7, 11), "kmax set here"}},
	}
	want := `fabric.yaml:42:11: error: ecn-order: kmin 400KB of class training is above its kmax 350KB on leaf1
    site.yaml:7:11: kmax set here
    hint: raise kmax to at least 400KB, or lower kmin to at most 350KB`
	if d := cmp.Diff(want, f.String()); d != "" {
		t.Error(d)
	}
	for f, want := range map[string]Finding{
		"leaf1:Ethernet0: warning: lift: odd":                        {Rule: "lift", Severity: Warning, At: "leaf1:Ethernet0", Msg: "odd"},
		"info: x: y":                                                 {Rule: "x", Msg: "y"},
		"f.yaml: error: load: no such file":                          {Rule: "load", Severity: Error, Pos: Pos{File: "f.yaml"}, Msg: "no such file"},
		"f.yaml:1:2: acknowledged: a: b\n    reason: meant to be so": {Rule: "a", Severity: Warning, Pos: at("f.yaml", 1, 2), Msg: "b", Ack: "meant to be so"},
	} {
		if got := want.String(); got != f {
			t.Errorf("got %q, want %q", got, f)
		}
	}
}

// No text of a finding ends its line, whatever a device calls itself.
func TestStringKeepsItsLines(t *testing.T) {
	const evil = "evil\n::stop-commands::x\r\u2028pod1/fabric.yaml: error: forged\x1b[2K\u0085\xff é"
	f := Finding{
		Rule: "lldp", Severity: Warning, At: "leaf1:" + evil, Msg: evil, Hint: evil, Ack: evil,
		Related: []Related{{Pos{File: evil}, evil}},
	}
	const tame = `evil\n::stop-commands::x\r\u2028pod1/fabric.yaml: error: forged\x1b[2K\u0085` + "\xff é"
	want := "leaf1:" + tame + ": acknowledged: lldp: " + tame + "\n    " + tame + ": " + tame + "\n    reason: " + tame
	if d := cmp.Diff(want, f.String()); d != "" {
		t.Error(d)
	}
	f.At, f.Pos = "", Pos{File: evil, Line: 1, Col: 1}
	f.Ack = ""
	if got := f.String(); !strings.HasSuffix(got, "\n    hint: "+tame) {
		t.Errorf("the hint of %q", got)
	}
	if got := strings.Count(f.String(), "\n"); got != 2 {
		t.Errorf("%d line ends in %q", got, f)
	}
}

func TestSortAndCount(t *testing.T) {
	var l List
	l.Warningf("b", at("f", 2, 1), "", "later")
	l.Infof("a", at("f", 1, 9), "", "first")
	l.Errorf("c", at("f", 2, 1), "", "worse")
	l.Errorf("c", at("f", 2, 1), "", "worse")
	l.Add(Finding{Rule: "d", Severity: Warning, At: "leaf1", Msg: "no line"}, Finding{Rule: "e", Severity: Warning, Pos: at("g", 1, 1), Msg: "meant", Ack: "yes"})
	l = l.Sort()
	var got []string
	for _, f := range l {
		got = append(got, f.Rule)
	}
	if d := cmp.Diff([]string{"d", "a", "c", "b", "e"}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if l.Count(Warning) != 2 || l.Count(Error) != 1 || l.Count(Info) != 1 || !l.HasErrors() {
		t.Errorf("%d warnings, %d errors, %d infos", l.Count(Warning), l.Count(Error), l.Count(Info))
	}
}

// What is known is taken out whatever its severity and hint, and what differs in rule, words or place stays.
func TestWithout(t *testing.T) {
	l := List{{Rule: "a", Msg: "x"}, {Rule: "b", Msg: "x"}, {Rule: "a", Msg: "y"}, {Rule: "a", Msg: "x", Pos: at("f", 1, 1)}, {Rule: "a", Msg: "x", Severity: Error}}
	want := List{l[1], l[2], l[3]}
	if d := cmp.Diff(want, l.Without(List{{Rule: "a", Msg: "x", Hint: "h"}, {Rule: "c"}})); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// A plan file carries findings, so their JSON must read back.
func TestJSON(t *testing.T) {
	want := List{{Rule: "r", Severity: Warning, Pos: at("f", 3, 4), At: "x", Msg: "m", Hint: "h", Related: []Related{{at("g", 1, 1), "there"}}, Ack: "a"}}
	b, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got List
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if err := json.Unmarshal([]byte(`[{"severity":"fatal"}]`), &got); err == nil {
		t.Error("an unknown severity was read")
	}
}

// Digests of models and of what devices hold are over this: it may never differ from strconv.
func TestAppendQuoted(t *testing.T) {
	for c := range rune(0x200) {
		for _, s := range []string{string(c), "a" + string(c) + "b", string([]byte{byte(c)})} {
			if got, want := string(AppendQuoted([]byte("x"), s)), "x"+strconv.Quote(s); got != want {
				t.Errorf("%q: got %s, want %s", s, got, want)
			}
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "s")
		if got, want := string(AppendQuoted(nil, s)), strconv.Quote(s); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}
