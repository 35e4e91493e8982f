package main

import (
	"encoding/json"
	"encoding/xml"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/cmd/show"
	"github.com/fabricctl/fabricctl/drivers/rollout"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/render"
)

// hostileFindings are findings of every kind, whose texts try to end what they stand in.
func hostileFindings() diag.List {
	const attack = "a,b: 100%\r\n::error::forged <x> ]]> & \"q\" \x1b[31m"
	at := diag.Pos{File: "dir with space/f,ile:1.yaml", Line: 3, Col: 7}
	return diag.List{
		{Rule: "units", Severity: diag.Error, Pos: at, Msg: attack, Hint: attack, Related: []diag.Related{{Pos: at, Msg: attack}, {Msg: "nowhere"}}},
		{Rule: "mtu-path", Severity: diag.Warning, Pos: diag.Pos{File: "/abs/f.yaml", Line: 1, Col: 1}, Msg: "m", Ack: attack},
		{Rule: "load", Severity: diag.Error, Pos: diag.Pos{File: "gone.yaml"}, Msg: "there is no such file"},
		{Rule: "no-such-rule", Severity: diag.Info, At: "leaf1:" + attack, Msg: "live"},
		{Rule: "document", Severity: diag.Error, Msg: "no layer holds a Fabric document"},
	}
}

// TestSARIF: what the format requires is there, and the texts are whole.
func TestSARIF(t *testing.T) {
	b, err := json.Marshal(sarifOf(hostileFindings()))
	if err != nil {
		t.Fatal(err)
	}
	var s sarif
	dec := json.NewDecoder(strings.NewReader(string(b)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&s); err != nil {
		t.Fatal(err)
	}
	run := s.Runs[0]
	if s.Version != "2.1.0" || len(s.Runs) != 1 || run.Tool.Driver.Name != "fabricctl" || len(run.Results) != 5 {
		t.Fatalf("%s", b)
	}
	if !slices.IsSortedFunc(run.Tool.Driver.Rules, func(a, b sarifRule) int { return strings.Compare(a.ID, b.ID) }) {
		t.Error("the rules are not sorted")
	}
	for i, f := range hostileFindings() {
		r := run.Results[i]
		if r.RuleID != f.Rule || run.Tool.Driver.Rules[r.RuleIndex].ID != f.Rule || run.Tool.Driver.Rules[r.RuleIndex].Text.Text == "" ||
			!strings.HasPrefix(r.Message.Text, f.Msg) || !slices.Contains([]string{"error", "warning", "note"}, r.Level) || r.Fingerprints["fabricctl/v1"] == "" {
			t.Errorf("%+v", r)
		}
		if (f.Ack != "") != (len(r.Suppressions) == 1) {
			t.Errorf("suppressions: %+v", r)
		}
	}
	if got := run.Results[0].Locations[0].Physical; got.Artifact.URI != "dir%20with%20space/f,ile:1.yaml" || got.Region.Line != 3 || got.Region.Col != 7 {
		t.Errorf("%+v", got)
	}
	if got := run.Results[0].Related; len(got) != 2 || got[1].Physical != nil {
		t.Errorf("%+v", got)
	}
	if got := run.Results[1].Locations[0].Physical.Artifact.URI; got != "file:///abs/f.yaml" {
		t.Error(got)
	}
	if run.Results[2].Locations[0].Physical.Region != nil || run.Results[3].Locations[0].Logical[0].Name == "" || run.Results[4].Locations != nil {
		t.Errorf("%s", b)
	}
	if b, err := json.Marshal(sarifOf(nil)); err != nil || !strings.Contains(string(b), `"results":[]`) || !strings.Contains(string(b), `"rules":[]`) {
		t.Errorf("%s, %v", b, err)
	}
}

// TestJUnit: the XML is well formed, also on a screen, and counts what it holds.
func TestJUnit(t *testing.T) {
	var b strings.Builder
	if err := writeJUnit(&show.Screen{To: &b}, nil, hostileFindings()); err != nil {
		t.Fatal(err)
	}
	for dec := xml.NewDecoder(strings.NewReader(b.String())); ; {
		if _, err := dec.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, &b)
		}
	}
	var s junitSuites
	if err := xml.Unmarshal([]byte(b.String()), &s); err != nil {
		t.Fatal(err)
	}
	tests, failures, skipped := 0, 0, 0
	for _, x := range s.Suites {
		if x.Tests != len(x.Cases) {
			t.Errorf("%s: %d tests, %d cases", x.Name, x.Tests, len(x.Cases))
		}
		tests, failures, skipped = tests+x.Tests, failures+x.Failures, skipped+x.Skipped
	}
	if s.Tests != 5 || tests != 5 || s.Failures != 3 || failures != 3 || skipped != 1 {
		t.Errorf("%d tests, %d failures, %d skipped in\n%s", tests, failures, skipped, &b)
	}
	b.Reset()
	if err := writeJUnit(&b, []string{"a.yaml"}, nil); err != nil || !strings.Contains(b.String(), `tests="1" failures="0"`) {
		t.Errorf("%v\n%s", err, &b)
	}
}

// TestGitHub: each finding is one command on one line, and nothing in it makes another, or another property.
func TestGitHub(t *testing.T) {
	var b strings.Builder
	if err := writeGitHub(&show.Screen{To: &b}, hostileFindings()); err != nil {
		t.Fatal(err)
	}
	want := `::error file=dir with space/f%2Cile%3A1.yaml,line=3,col=7,title=units::a,b: 100%25%0D%0A::error::forged <x> ]]> & "q" \x1b[31m%0Ahint: a,b: 100%25%0D%0A::error::forged <x> ]]> & "q" \x1b[31m
::error file=gone.yaml,title=load::there is no such file
::notice title=no-such-rule::leaf1:a,b: 100%25%0D%0A::error::forged <x> ]]> & "q" \x1b[31m: live
::error title=document::no layer holds a Fabric document
`
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", &b, want)
	}
}

// TestLinesOfOurs: what a device calls its objects, and what it holds in them, begins no line of ours.
func TestLinesOfOurs(t *testing.T) {
	const evil = "x\n::error::forged"
	before, after := evil, "1"
	c := render.Change{Op: render.Modify, Key: render.Key{Scope: "QUEUE", Object: evil, Field: evil}, Before: &before, After: &after}
	d := rollout.DevicePlan{
		Name: "leaf1", Mode: rollout.Write, Steps: []rollout.Step{{Changes: []render.Change{c}}}, Findings: diag.List{{Rule: "lift", Severity: diag.Warning, Msg: evil}},
		Adopted: map[render.Key]string{{Scope: "SCHEDULER", Object: "ours"}: evil},
	}
	x := areaJSON{Area: "ecn", Of: 1, Not: []unreadyAt{{"leaf1", 1, evil}}}
	text := show.DeviceText(d, true) + "\n" + strings.Join(x.lines(map[string]string{}), "\n")
	if strings.Contains(text, "\n::") || strings.Count(text, `x\n::error::forged`) != 6 {
		t.Errorf("%d in\n%s", strings.Count(text, `x\n::error::forged`), text)
	}
}

// TestAreaLines: a cause has a line, says whether it is refused, and is said once for several areas.
func TestAreaLines(t *testing.T) {
	said := map[string]string{}
	not := []unreadyAt{{"leaf1", 0, "leaf1: two ports share a row"}, {"leaf2", 3, "first mtu"}}
	maps := areaJSON{Area: "maps", Ready: 1, Of: 3, Not: not}
	pfc := areaJSON{Area: "pfc", Ready: 1, Of: 3, Not: []unreadyAt{not[0], {"leaf2", 2, "first mtu"}}}
	want := []string{
		"nothing on 1 of 3 devices", "leaf1: refused: two ports share a row", "leaf2: 3 settings (first mtu)",
		"nothing on 1 of 3 devices", "leaf1: refused: as for maps", "leaf2: 2 settings (as for maps)",
	}
	if d := cmp.Diff(want, append(maps.lines(said), pfc.lines(said)...)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
