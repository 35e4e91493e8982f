package render

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/model/intent"
)

// TestEOSLinkPause: where a priority is lossless and PFC is ours, link pause is switched off; elsewhere it is left alone.
func TestEOSLinkPause(t *testing.T) {
	live, l := eosParse([]byte(`
interface Ethernet1/1
   flowcontrol send on
   flowcontrol receive desired
interface Ethernet2/1
   flowcontrol receive on
`))
	if len(l) > 0 {
		t.Fatal(l)
	}
	lifted, _ := eosLift(live, Facts{})
	if got, want := lifted["Ethernet1/1"].Pause, (intent.Pause{Send: true, Receive: true}); got != want {
		t.Errorf("lifted %v, want %v", got, want)
	}
	d := intent.Device{Name: "leaf1", Role: "leaf", Platform: "eos/7060x6", Fabric: "pod1", Classes: [8]string{0: "default", 3: "training"}}
	for i := range d.Manage {
		d.Manage[i] = intent.Own
	}
	lossy := eosFactory(9214)
	lossy.Queues[0] = intent.Queue{Used: true, Weight: 100}
	lossless := lossy
	lossless.Queues[3], lossless.TCPG[3] = intent.Queue{Used: true, Strict: true, Lossless: true}, 3
	for i, p := range []intent.Policy{lossless, lossy} {
		d.Ports = append(d.Ports, intent.Port{
			Name: []string{"p1", "p2"}[i], Iface: []string{"Ethernet1/1", "Ethernet2/1"}[i], Site: []string{"fabric", "border"}[i],
			Manage: d.Manage, Policy: d.Intern(p),
		})
	}
	want, l := eosRender(d, Facts{})
	if len(l) > 0 {
		t.Fatal(l)
	}
	own := eosOwns(d, Facts{})
	cs := Diff(&eos, Facts{}, live.Filter(own), want.Filter(own))
	var typed []string
	for _, line := range eosLines(live, cs) {
		if strings.Contains(line.Text, "flowcontrol") {
			typed = append(typed, line.Text)
		}
	}
	if diff := cmp.Diff([]string{"default flowcontrol receive", "default flowcontrol send"}, typed); diff != "" {
		t.Errorf("typed (-want +got)\n%s", diff)
	}
	after, _ := eosLift(Apply(live, cs), Facts{})
	if got := after["Ethernet1/1"].Pause; got != (intent.Pause{}) {
		t.Errorf("link pause of a lossless port is left at %v", got)
	}
	if got := after["Ethernet2/1"].Pause; got != (intent.Pause{Receive: true}) {
		t.Errorf("link pause of a port without lossless priorities became %v", got)
	}
	flaps := false
	for _, r := range eosRisk(live, cs, Facts{}) {
		flaps = flaps || r.Class == Flap && cmp.Equal(r.Ports, []string{"Ethernet1/1"})
	}
	if !flaps {
		t.Error("nothing says that a link may flap")
	}
}
