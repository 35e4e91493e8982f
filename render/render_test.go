package render

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/model/diag"
)

// What a plan file holds reads back as it was written; what it cannot hold is an error in words.
func TestPlanJSON(t *testing.T) {
	type plan struct {
		Changes []Change
		Names   Names
		Risks   []Risk
	}
	want := plan{
		Changes: []Change{
			{Op: Add, Key: Key{"QUEUE", "Ethernet0|3", "scheduler"}, After: ptr(""), From: diag.Pos{File: "f.yaml", Line: 3, Col: 1}},
			{Op: Remove, Key: Key{"", "a>b", ""}, Before: ptr("x")},
		},
		Names: Names{{"WRED_PROFILE", "b", ""}: "B", {"WRED_PROFILE", "a", ""}: "A"},
		Risks: []Risk{{Class: Flap, Ports: []string{"Ethernet0"}, Why: "because"}},
	}
	b, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got plan
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, bad := range []string{`["a","b"]`, `["a","b","c","d"]`, `"a"`, `[1,2,3]`, `null`} {
		var k Key
		if err := json.Unmarshal([]byte(bad), &k); err == nil || !strings.Contains(err.Error(), "three strings") {
			t.Errorf("%s: key %v, error %v", bad, k, err)
		}
	}
	var r RiskClass
	if err := json.Unmarshal([]byte(`"made-up"`), &r); err != nil || r != Refused {
		t.Errorf("an unknown risk is %s, %v: it must be the worst", r, err)
	}
}

// BenchmarkSonicPlan is a plan for 64 ports against the ConfigDB they have.
func BenchmarkSonicPlan(b *testing.B) {
	var ifaces []string
	for i := range 64 {
		ifaces = append(ifaces, fmt.Sprintf("Ethernet%d", 8*i))
	}
	d := exampleDevice(ifaces...)
	c, _ := sonicRender(d, Facts{})
	text := sonicText(c)
	b.ReportAllocs()
	for b.Loop() {
		live, _ := sonicParse(text)
		own := sonicOwns(d, Facts{})
		want, _ := sonicRender(d, Facts{})
		if cs := Diff(&sonic, Facts{}, live.Filter(own), want); len(cs) > 0 {
			b.Fatal(cs)
		}
		sonicLift(live, Facts{})
	}
}
