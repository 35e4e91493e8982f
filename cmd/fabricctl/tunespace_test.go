package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/tuning"
)

// TestUnreached: what is moved of a ramp that no queue comes to needs a kmax of the same devices.
func TestUnreached(t *testing.T) {
	net := &intent.Net{Devices: []intent.Device{{Name: "leaf1", Role: "leaf"}, {Name: "leaf2", Role: "leaf"}, {Name: "spine1", Role: "spine"}}}
	both := diag.Finding{Rule: unreachedRule, Devices: []string{"leaf1", "leaf2", "spine1"}}
	leaf := diag.Finding{Rule: unreachedRule, Devices: []string{"leaf1", "leaf2"}}
	other := diag.Finding{Rule: "ecn-order", Devices: []string{"spine1"}}
	for _, x := range []struct {
		vars         string
		names, lacks string
		found        diag.List
	}{
		{"pmax,kmin/kmax", "pmax kmin/kmax", "kmax", diag.List{both}},
		{"pmax,kmax", "", "", diag.List{both}},
		{"kmax@spine,pmax@leaf", "pmax@leaf", "kmax@leaf", diag.List{both}},
		{"kmax@spine,pmax@leaf", "", "", diag.List{other}},
		{"kmax@spine,pmax@spine", "", "", diag.List{both}},
		{"pmax@spine", "", "", diag.List{leaf, other}},
		{"kmax,pmax@leaf", "", "", diag.List{leaf}},
		{"kmax@leaf,pmax", "", "", diag.List{both}}, // it does something there
		{"kmax@leaf,pmax@leaf1", "", "", diag.List{leaf}},
		{"kmax@leaf1,pmax@leaf2,kmin/kmax@leaf2", "pmax@leaf2 kmin/kmax@leaf2", "kmax@leaf2", diag.List{leaf}},
		{"alpha,kmax", "", "", diag.List{both}},
	} {
		var vars []tuning.Variable
		for name := range strings.SplitSeq(x.vars, ",") {
			vars = append(vars, tuning.Variable{Name: name})
		}
		names, lacks := unreached(net, x.found, vars)
		if diff := cmp.Diff([]string{x.names, x.lacks}, []string{strings.Join(names, " "), strings.Join(lacks, " ")}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", x.vars, diff)
		}
	}
}
