package render

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/model/intent"
)

// risksOf is class, ports and the start of why.
func risksOf(rs []Risk) []string {
	var s []string
	for _, r := range rs {
		s = append(s, r.Class.String()+" "+strings.Join(r.Ports, ",")+": "+r.Why)
	}
	return s
}

func TestSonicRisk(t *testing.T) {
	up := config(
		[4]string{"PORT", "Ethernet0", "admin_status", "up"}, [4]string{"PORT", "Ethernet8", "admin_status", "down"},
		[4]string{"PORT", "Ethernet16", "admin_status", "up"}, [4]string{"PFC_WD", "Ethernet0", "action", "drop"},
		[4]string{"QUEUE", "Ethernet16|0-2", "scheduler", "s"}, [4]string{"QUEUE", "Ethernet24|4", "wred_profile", "mine"},
		[4]string{"QUEUE", "Ethernet24|3", "wred_profile", "mine"}, [4]string{"WRED_PROFILE", "mine", "ecn", "ecn_all"},
	)
	set := func(table, row, field string) Change {
		return Change{Op: Modify, Key: Key{table, row, field}, Before: ptr("x"), After: ptr("y")}
	}
	known := goldenFacts()
	for _, c := range []struct {
		name  string
		facts Facts
		cs    []Change
		wants []string
	}{
		{"profiles and maps are hitless", known, []Change{set("WRED_PROFILE", "x", "ecn"), set("SCHEDULER", "x", "weight"), set("DSCP_TO_TC_MAP", "x", "3"), set("PORT", "Ethernet0", "mtu")}, nil},
		{
			"rows flap ports that are up, once", known,
			[]Change{set("QUEUE", "Ethernet16|3", "scheduler"), set("QUEUE", "Ethernet0|3", "scheduler"), set("PORT_QOS_MAP", "Ethernet0", "pfc_enable[3]"), set("PORT_QOS_MAP", "Ethernet8", "pfc_enable[3]"), set("PORT_QOS_MAP", "global", "dscp_to_tc_map")},
			[]string{"flap Ethernet0,Ethernet16: the generic config updater takes a port down"},
		},
		{"watchdog on a listed SKU", known, []Change{set("PFC_WD", "Ethernet0", "action")}, nil},
		{"watchdog on an unknown SKU", Facts{Model: "Best-Switch"}, []Change{set("PFC_WD", "Ethernet0", "action")}, []string{`refused Ethernet0: the generic config updater does not know HwSKU "Best-Switch"`}},
		{"watchdog on an old image", Facts{Model: known.Model, Version: "SONiC.20191130"}, []Change{set("PFC_WD", "Ethernet0", "action")}, []string{"refused Ethernet0: replace of PFC_WD action needs an image of"}},
		{"the polling interval stays", known, []Change{{Op: Remove, Key: sonicPoll, Before: ptr("100")}}, []string{"refused : the generic config updater never removes PFC_WD|GLOBAL"}},
		{
			"a queue inside a range", known,
			[]Change{{Op: Add, Key: Key{"QUEUE", "Ethernet16|1", "scheduler"}, After: ptr("s")}},
			[]string{"refused Ethernet16: one row holds queues 0-2 of the port", "flap Ethernet16: "},
		},
		{"a queue with a row of its own", known, []Change{{Op: Add, Key: Key{"QUEUE", "Ethernet24|3", "scheduler"}, After: ptr("s")}}, nil},
		{
			"an object that others use", known,
			[]Change{{Op: Remove, Key: Key{"QUEUE", "Ethernet24|3", "wred_profile"}, Before: ptr("mine")}, {Op: Remove, Key: Key{"WRED_PROFILE", "mine", "ecn"}, Before: ptr("ecn_all")}},
			[]string{"refused Ethernet24: WRED_PROFILE mine is to go, but QUEUE, which"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := sonicRisk(up, c.cs, c.facts)
			ok := slices.EqualFunc(c.wants, risksOf(got), func(want, got string) bool { return strings.HasPrefix(got, want) })
			if !ok {
				t.Error(cmp.Diff(c.wants, risksOf(got)))
			}
			for _, r := range got {
				if r.Class == Refused && len(r.Keys) == 0 {
					t.Errorf("nothing says which change is refused: %v", r)
				}
			}
		})
	}
}

// A VOQ system keys its queues otherwise.
func TestSonicRiskVOQ(t *testing.T) {
	live := config([4]string{"DEVICE_METADATA", "localhost", "switch_type", "voq"})
	cs := []Change{{Op: Add, Key: Key{"QUEUE", "Ethernet0|3", "scheduler"}, After: ptr("s")}}
	if r := sonicRisk(live, cs, goldenFacts()); len(r) != 1 || r[0].Class != Refused {
		t.Errorf("risks %v", r)
	}
}

// A class that leaves the model leaves its queues alone, and what they bind stays with them.
func TestKeepUsed(t *testing.T) {
	d := exampleDevice("Ethernet0", "Ethernet8")
	live, _ := sonicRender(d, Facts{})
	p := examplePolicy()
	p.Queues[6] = intent.Queue{}
	d.Classes[6], d.Policies = "", []intent.Policy{p}
	want, _ := sonicRender(d, Facts{})
	cs := Diff(&sonic, Facts{}, live.Filter(sonicOwns(d, Facts{})), want)
	if diff := cmp.Diff([]string{"remove fctl-pod1-fabric-cnp.type"}, short(cs)); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	kept, used := KeepUsed(&sonic, live, cs)
	if len(kept) != 0 || len(used) != 1 || used[0].Object != "fctl-pod1-fabric-cnp" {
		t.Errorf("kept %s, used %v", changes(kept), used)
	}
	// Nothing else is kept: a removal that includes the binding goes through whole.
	cs = Diff(&sonic, Facts{}, live, nil)
	if kept, used := KeepUsed(&sonic, live, cs); len(kept) != len(cs) || used != nil {
		t.Errorf("%d of %d changes, used %v", len(kept), len(cs), used)
	}
}

// Giving back the watchdog leaves its polling interval, which the updater would not let go.
func TestSonicPollStays(t *testing.T) {
	d := exampleDevice("Ethernet0")
	live, _ := sonicRender(d, Facts{})
	d.Policies[0].Watchdog.On = false
	want, _ := sonicRender(d, Facts{})
	cs := Diff(&sonic, goldenFacts(), live.Filter(sonicOwns(d, Facts{})), want)
	wants := []string{
		"remove Ethernet0.action", "remove Ethernet0.detection_time", "remove Ethernet0.restoration_time",
		"remove Ethernet0.pfcwd_sw_enable[3]",
	}
	if diff := cmp.Diff(wants, short(cs)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var phases [][]string
	for _, p := range Phases(&sonic, cs) {
		phases = append(phases, short(p))
	}
	if diff := cmp.Diff([][]string{wants[:3], wants[3:]}, phases); diff != "" {
		t.Errorf("phases (-want +got):\n%s", diff)
	}
	after := SonicRows(Apply(live, cs))
	if got, ok := after["PORT_QOS_MAP"]["Ethernet0"]["pfcwd_sw_enable"]; got != "" || !ok {
		t.Errorf("pfcwd_sw_enable is %q, %v: it must be written as empty", got, ok)
	}
	if after["PFC_WD"]["GLOBAL"]["POLL_INTERVAL"] != "100" {
		t.Error("the polling interval is gone")
	}
}

func TestSonicSame(t *testing.T) {
	for _, c := range []struct {
		table, row, field string
		a, b              *string
		same              bool
	}{
		{"SCHEDULER", "s", "weight", nil, ptr("1"), true},
		{"SCHEDULER", "s", "weight", nil, ptr("2"), false},
		{"SCHEDULER", "s", "type", nil, ptr("WRR"), true},
		{"SCHEDULER", "s", "type", ptr("DWRR"), ptr("WRR"), false},
		{"WRED_PROFILE", "w", "ecn", ptr("ecn_none"), nil, true},
		{"WRED_PROFILE", "w", "wred_green_enable", ptr("false"), nil, true},
		{"WRED_PROFILE", "w", "green_min_threshold", nil, ptr("0"), false},
		{"WRED_PROFILE", "w", "green_min_threshold", ptr("0800"), ptr("800"), true},
		{"PORT", "Ethernet0", "mtu", nil, ptr("9100"), false},
		{"PORT_QOS_MAP", "Ethernet0", "pfc_enable", nil, ptr(""), true},
		{"PORT_QOS_MAP", "Ethernet0", "pfc_enable[3]", nil, ptr("on"), false},
		{"PORT_QOS_MAP", "Ethernet0", "dscp_to_tc_map", ptr("1"), ptr("01"), false},
		{"PFC_WD", "GLOBAL", "POLL_INTERVAL", ptr("200"), nil, true},
		{"PFC_WD", "GLOBAL", "POLL_INTERVAL", nil, ptr("200"), false},
		{"QUEUE", "Ethernet0|3", "", ptr(""), nil, false},
	} {
		k := Key{c.table, c.row, c.field}
		if got := sonicSame(k, c.a, c.b, Facts{}); got != c.same {
			t.Errorf("%s: same is %v, want %v", k, got, c.same)
		}
	}
}
