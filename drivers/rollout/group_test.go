package rollout

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/render"
)

// moves are values "label before after", all from one line of the model.
func moves(values ...string) []BehaviourValue {
	var out []BehaviourValue
	for _, v := range values {
		w := strings.Fields(v)
		f := intent.Field(w[0])
		if strings.HasPrefix(w[0], "dscp") {
			f = "dscp." + f
		}
		out = append(out, BehaviourValue{intent.Difference{Field: f, Label: w[0], Before: w[1], After: w[2]}, diag.Pos{File: "f.yaml", Line: 1, Col: 1}})
	}
	return out
}

// groupsText shows groups in short.
func groupsText(gs []Group) string {
	var b strings.Builder
	for i, g := range gs {
		fmt.Fprintf(&b, "%d: %d ports, %s of %d, like %d, refused %v\n", i+1, g.Ports, g.Risk, g.AtRisk, g.Like, g.Refused)
		for _, s := range g.On {
			fmt.Fprintf(&b, "  %v %v\n", s.Devices, s.Ports)
		}
		for _, c := range g.Changes {
			fmt.Fprintf(&b, "  %s %s>%s\n", c.Label, c.Before, c.After)
		}
	}
	return b.String()
}

// However many groups there are, each is compared with a few: the work does not grow with their square.
func TestManyGroups(t *testing.T) {
	d := DevicePlan{Name: "l1"}
	add := func(ports int, values ...string) {
		d.Behaviour = append(d.Behaviour, Behaviour{Ports: make([]string, ports), Changes: moves(values...)})
	}
	for i := range mostBases + 1 { // each like no other
		add(2, fmt.Sprintf("kmin 1 %d", i), fmt.Sprintf("kmax 1 %d", i), fmt.Sprintf("pmax 1 %d", i))
	}
	add(1, "kmin 1 0", "kmax 1 0", "pmax 1 0", "mtu 1 2")
	add(1, fmt.Sprintf("kmin 1 %d", mostBases), fmt.Sprintf("kmax 1 %d", mostBases), fmt.Sprintf("pmax 1 %d", mostBases), "mtu 1 2")
	gs := Groups(&Plan{Devices: []DevicePlan{d}})
	if first, last := gs[len(gs)-2], gs[len(gs)-1]; first.Like != 1 || last.Like != 0 {
		t.Errorf("like %d, want 1; like %d, want none: it stands behind the first %d", first.Like, last.Like, mostBases)
	}
}

// Groups join what is the same over ports and devices; what is not stands apart, beside what it is like.
func TestGroups(t *testing.T) {
	same := moves("kmin 1 2", "kmax 1 2", "pmax 1 2", "mtu 1 2")
	p := &Plan{Lab: true, Devices: []DevicePlan{
		{
			Name: "l1", Behaviour: []Behaviour{
				{Ports: []string{"p1"}, Changes: moves("kmin 1 3", "kmax 1 2", "pmax 1 2", "mtu 1 2")}, {Ports: []string{"p2", "p3"}, Changes: same},
			}, Risks: []render.Risk{{Class: render.Flap, Ports: []string{"p2"}, Why: "a"}}, Steps: []Step{{}}, Caps: drivers.Caps{Confirm: true},
		},
		{Name: "l2", Behaviour: []Behaviour{{Ports: []string{"p2", "p3"}, Changes: same}}, Blocked: true, Risks: []render.Risk{
			{Class: render.Refused, Ports: []string{"p2"}, Why: "b"}, {Class: render.Flap, Ports: []string{"p3"}, Why: "a"},
		}},
		{
			Name: "l3", Behaviour: []Behaviour{
				{Ports: []string{"p1"}, Changes: moves("kmin 1 2", "kmax 1 2", "pmax 1 2")},
				{Ports: []string{"p2"}, Changes: moves("dscp1 1 2", "kmin 1 2", "kmax 1 2", "pmax 1 2", "mtu 1 2")},
			}, Risks: []render.Risk{{Class: render.Reboot, Why: "c"}}, Steps: []Step{{}}, Facts: render.Facts{Notes: []string{"n"}},
		},
		{Name: "l4", Observed: []Behaviour{{Ports: []string{"p9"}, Changes: same}}, Facts: render.Facts{Notes: []string{"n"}}},
	}}
	want := `1: 4 ports, refused of 1, like 0, refused [l2]
  [l1 l2] [p2 p3]
  kmin 1>2
  kmax 1>2
  pmax 1>2
  mtu 1>2
2: 1 ports, hitless of 1, like 1, refused []
  [l1] [p1]
  kmin 1>3
  kmax 1>2
  pmax 1>2
  mtu 1>2
3: 1 ports, reboot of 1, like 1, refused []
  [l3] [p1]
  kmin 1>2
  kmax 1>2
  pmax 1>2
4: 1 ports, reboot of 1, like 0, refused []
  [l3] [p2]
  dscp1 1>2
  kmin 1>2
  kmax 1>2
  pmax 1>2
  mtu 1>2
`
	if d := cmp.Diff(want, groupsText(Groups(p))); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if got := groupsText(ObservedGroups(p)); !strings.HasPrefix(got, "1: 1 ports, hitless of 1, like 0, refused []\n  [l4] [p9]\n") {
		t.Error(got)
	}
	but := Compare(same, moves("kmin 1 3", "pmax 1 2", "mtu 1 2"))
	if len(but) != 2 || but[0].After != "3" || but[1].Label != "kmax" || but[1].Before+but[1].After != "" {
		t.Errorf("%v", but)
	}
	wantRisks := []RiskRow{
		{Class: render.Refused, Why: "b", On: []Set{{[]string{"l2"}, []string{"p2"}}}, Ports: 1},
		{Class: render.Reboot, Why: "c", On: []Set{{[]string{"l3"}, nil}}},
		{Class: render.Flap, Why: "a", On: []Set{{[]string{"l1"}, []string{"p2"}}}, Ports: 1}, // nothing is written to l2, so nothing flaps there
	}
	if d := cmp.Diff(wantRisks, Risks(p)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	wantNotes := []Note{
		{"the device takes the change back by itself unless it is confirmed", []string{"l1"}},
		{"the device cannot take it back by itself: the undo is in fabricctl's journal", []string{"l3"}},
	}
	if d := cmp.Diff(wantNotes, Notes(p, false)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if all := Notes(p, true); len(all) != 3 || len(all[2].Devices) != 2 {
		t.Errorf("%v", all)
	}
}
