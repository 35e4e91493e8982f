package render

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSonicSharedRows: a row that an older image writes for several ports is read as a row of each. What the row says is
// never written beside it: a change of one of its ports is refused, and one of another port is not.
func TestSonicSharedRows(t *testing.T) {
	const objects = `{"DSCP_TO_TC_MAP":{"AZURE":{"3":"3"}},"SCHEDULER":{"s":{"type":"DWRR","weight":"14"}},
"PORT":{"Ethernet0":{"mtu":"9100"},"Ethernet8":{"mtu":"9100"},"Ethernet16":{"mtu":"9100"}},`
	shared, said := sonicParse([]byte(objects + `"PORT_QOS_MAP":{"Ethernet0, Ethernet8":{"dscp_to_tc_map":"[DSCP_TO_TC_MAP|AZURE]","pfc_enable":"3,4","pfcwd_sw_enable":"3,4"}},
"QUEUE":{"Ethernet0,Ethernet8|3-4":{"scheduler":"[SCHEDULER|s]"}},
"PFC_WD":{"Ethernet0,Ethernet8":{"action":"drop","detection_time":"200","restoration_time":"400"}}}`))
	if said.HasErrors() {
		t.Fatal(said)
	}
	const row, dog = `{"dscp_to_tc_map":"AZURE","pfc_enable":"3,4","pfcwd_sw_enable":"3,4"}`, `{"action":"drop","detection_time":"200","restoration_time":"400"}`
	single, _ := sonicParse([]byte(objects + `"PORT_QOS_MAP":{"Ethernet0":` + row + `,"Ethernet8":` + row + `},
"QUEUE":{"Ethernet0|3-4":{"scheduler":"s"},"Ethernet8|3-4":{"scheduler":"s"}},"PFC_WD":{"Ethernet0":` + dog + `,"Ethernet8":` + dog + `}}`))
	got, l := sonicLift(shared, Facts{})
	want, _ := sonicLift(single, Facts{})
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if n := strings.Count(fmt.Sprint(l), "one row is for several ports"); n != 1 {
		t.Errorf("%d of 1: %v", n, l)
	}
	for _, tt := range []struct {
		key     Key
		refused bool
	}{
		{Key{"PORT_QOS_MAP", "Ethernet0", "pfc_enable[3]"}, true},
		{Key{"QUEUE", "Ethernet8|3", "scheduler"}, true},
		{Key{"PFC_WD", "Ethernet8", "action"}, true},
		{Key{"PORT_QOS_MAP", "Ethernet16", "pfc_enable[3]"}, false},
		{Key{"PORT", "Ethernet0", "mtu"}, false},
	} {
		v, refused := "on", false
		for _, r := range sonicRisk(shared, []Change{{Op: Add, Key: tt.key, After: &v}}, Facts{}) {
			refused = refused || r.Class == Refused && strings.Contains(r.Why, "is for several ports")
		}
		if refused != tt.refused {
			t.Errorf("%s: refused %v, want %v", tt.key, refused, tt.refused)
		}
	}
	if ports, _ := sonicSharedRow("Ethernet0,../x|3"); ports != nil {
		t.Error(ports)
	}
}
