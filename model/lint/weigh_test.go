package lint_test

import (
	"strings"
	"testing"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/lint"
)

// TestWeigh: an error stays one where any area of its rule is owned on any port, and whatever is owned when it is about
// the document. Of what nobody owns it is a warning that says so; nothing else changes.
func TestWeigh(t *testing.T) {
	owning := func(a ...intent.Area) *intent.Net {
		n := &intent.Net{Devices: []intent.Device{{Name: "leaf1", Ports: make([]intent.Port, 2)}, {Name: "leaf2", Ports: make([]intent.Port, 2)}}}
		for _, x := range a {
			n.Devices[1].Ports[1].Manage[x] = intent.Own
		}
		return n
	}
	for _, r := range lint.Rules() {
		if r.Severity == diag.Error && r.Areas == 0 && r.ID != "marking" {
			t.Errorf("%s: an error about no area", r.ID)
		}
		given := diag.List{{Rule: r.ID, Severity: diag.Error, Msg: "x"}, {Rule: r.ID, Severity: diag.Info, Msg: "x"}}
		for a := range intent.NumAreas {
			l := lint.Weigh(owning(a), given)
			want, suffix := diag.Error, ""
			if r.Areas != 0 && !r.Areas.Has(a) {
				want, suffix = diag.Warning, "; an error once "+strings.Join(r.Areas.Names(), " or ")+" is owned"
			}
			if l[0].Severity != want || l[0].Msg != "x"+suffix || l[1].Severity != diag.Info || l[1].Msg != "x" {
				t.Errorf("%s with %s owned: %v", r.ID, a, l)
			}
		}
		if given[0].Severity != diag.Error || given[0].Msg != "x" {
			t.Errorf("%s: the list that was given has changed", r.ID)
		}
	}
	if l := lint.Weigh(owning(), diag.List{{Rule: "not-expressible", Severity: diag.Error}}); l[0].Severity != diag.Error {
		t.Error("a finding of somebody else has changed")
	}
}
