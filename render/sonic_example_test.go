package render

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/render/yang"
)

// examplePolicy is the sample of the documentation: training on 3 without loss, CNPs on 6, the rest on 0.
func examplePolicy() intent.Policy {
	p := intent.Policy{
		Known: intent.SwitchAreas, MTU: 9216, Trust: intent.TrustDSCP,
		Watchdog: intent.Watchdog{On: true, Detect: 200, Restore: 400, Poll: 100, Action: intent.ActionDrop},
	}
	for i := range p.TCQueue {
		p.TCQueue[i], p.PFCQueue[i] = uint8(i), uint8(i)
	}
	p.DSCP[26], p.DSCP[48], p.TCPG[3] = 3, 6, 3
	p.Queues[0] = intent.Queue{Used: true, Weight: 40}
	p.Queues[3] = intent.Queue{
		Used: true, Lossless: true, Weight: 60,
		ECN: intent.ECN{On: true, Kmin: 800_000, Kmax: 3_200_000, Pmax: 200_000},
	}
	p.Queues[6] = intent.Queue{Used: true, Strict: true}
	return p
}

// exampleDevice has the sample's policy on interfaces, everything owned.
func exampleDevice(ifaces ...string) intent.Device {
	d := intent.Device{
		Name: "leaf1", Fabric: "pod1", Role: "leaf", Platform: "sonic/sn5600",
		Classes: [8]string{0: "default", 3: "training", 6: "cnp"},
	}
	for i := range d.Manage {
		d.Manage[i] = intent.Own
	}
	for i, iface := range ifaces {
		d.Ports = append(d.Ports, intent.Port{
			Name: fmt.Sprintf("port-%d", i+1), Iface: iface, Site: "fabric", Manage: d.Manage, Policy: d.Intern(examplePolicy()),
		})
	}
	return d
}

func TestSonicText(t *testing.T) {
	c, l := sonicRender(exampleDevice("Ethernet0", "Ethernet8"), Facts{})
	if len(l) > 0 {
		t.Fatal(l)
	}
	checkGolden(t, "sonic.json", sonicText(c))
}

// In an adopted map, entries of classes that the model does not name are not written.
func TestSonicRenderAdopted(t *testing.T) {
	d := exampleDevice("Ethernet0")
	for table, want := range map[string]int{"TC_TO_QUEUE_MAP": 3, "TC_TO_PRIORITY_GROUP_MAP": 3, "MAP_PFC_PRIORITY_TO_QUEUE": 3, "DSCP_TO_TC_MAP": 64} {
		f := Facts{Names: Names{{table, "fctl-pod1-fabric", ""}: "AZURE"}}
		c, l := sonicRender(d, f)
		got := c.Filter(func(k Key) bool { return k.Scope == table })
		if len(l) > 0 || len(got) != want || len(got.Filter(sonicOwns(d, f))) != want || got[0].Key.Object != "AZURE" {
			t.Errorf("%s: %d entries, want %d: %q", table, len(got), want, got.lines())
		}
	}
}

// On a fresh switch: maps and profiles, then what binds them, then in a transaction of its own the watchdog, the
// polling interval first.
func TestSonicOrder(t *testing.T) {
	want, _ := sonicRender(exampleDevice("Ethernet0", "Ethernet8"), Facts{})
	cs := Diff(&sonic, Facts{}, nil, want)
	phases := Phases(&sonic, cs)
	if len(phases) != 2 || len(phases[1]) != 7 || phases[1][0].Key != sonicPoll {
		t.Fatalf("%d phases, the last %s", len(phases), changes(phases[len(phases)-1]))
	}
	rank := func(c Change) int {
		switch {
		case c.Key.Scope == "QUEUE" || c.Key.Scope == "PORT_QOS_MAP":
			return 1
		case c.Key.Scope == "PFC_WD" && c.Key != sonicPoll:
			return 2
		}
		return 0
	}
	if !slices.IsSortedFunc(cs, func(a, b Change) int { return rank(a) - rank(b) }) {
		t.Errorf("order: %s", changes(cs))
	}
}

// What Render leaves out, because nobody serves it: ports that are not in service or not bound.
func TestSonicRenderSkips(t *testing.T) {
	d := exampleDevice("Ethernet0", "", "Ethernet16", "Ethernet24")
	d.Ports[2].State, d.Ports[3].State = intent.Planned, intent.Maintenance
	c, l := sonicRender(d, Facts{})
	if len(l) > 0 {
		t.Error(l)
	}
	if want, _ := sonicRender(exampleDevice("Ethernet0"), Facts{}); !want.Equal(c) {
		t.Error(cmp.Diff(want.lines(), c.lines()))
	}
	own := sonicOwns(d, Facts{})
	for iface, want := range map[string]bool{"Ethernet0": true, "Ethernet16": false, "Ethernet24": false} {
		if own(Key{"PORT", iface, "mtu"}) != want {
			t.Errorf("%s: owned is not %v", iface, want)
		}
	}
}

// What SONiC cannot express is a finding, with both numbers.
func TestSonicRenderFindings(t *testing.T) {
	for _, c := range []struct {
		name  string
		edit  func(*intent.Device, *intent.Policy)
		wants []string
	}{
		{"mtu", func(_ *intent.Device, p *intent.Policy) { p.MTU = 9300 }, []string{"mtu is 9300; SONiC takes 68 to 9216"}},
		{"part of a percent", func(_ *intent.Device, p *intent.Policy) { p.Queues[3].ECN.Pmax = 15_000 }, []string{"pmax of class training is 1.5%; SONiC takes whole percent"}},
		{"less than a percent", func(_ *intent.Device, p *intent.Policy) { p.Queues[3].ECN.Pmax = 1000 }, []string{"pmax of class training is 0.1%"}},
		{"pmax", func(_ *intent.Device, p *intent.Policy) { p.Queues[3].ECN.Pmax = 1_010_000 }, []string{"ecn.3.pmax is 101; SONiC takes 0 to 100"}},
		{"inverted", func(_ *intent.Device, p *intent.Policy) { p.Queues[3].ECN.Kmin = 4_000_000 }, []string{"kmin 4MB of class training is above its kmax 3.2MB"}},
		{"weight", func(_ *intent.Device, p *intent.Policy) { p.Queues[0].Weight = 200 }, []string{"weight.0 is 200; SONiC takes 1 to 100"}},
		{"detect", func(_ *intent.Device, p *intent.Policy) { p.Watchdog.Detect = 6000 }, []string{"watchdog.detect is 6s; SONiC takes 100ms to 5s"}},
		{"restore", func(_ *intent.Device, p *intent.Policy) { p.Watchdog.Restore = 60_001 }, []string{"watchdog.restore is 60001"}},
		{"poll", func(_ *intent.Device, p *intent.Policy) { p.Watchdog.Poll = 50 }, []string{"watchdog.poll is 50ms; SONiC takes 100ms to 1s"}},
		{"detect below poll", func(_ *intent.Device, p *intent.Policy) { p.Watchdog.Poll = 300 }, []string{"detect 200ms of the watchdog is below its poll 300ms"}},
		{"action", func(_ *intent.Device, p *intent.Policy) { p.Watchdog.Action = intent.ActionNone }, []string{"the watchdog's action is none"}},
		{"trust", func(_ *intent.Device, p *intent.Policy) { p.Trust = intent.TrustPCP }, []string{"trust is pcp"}},
		{"link pause", func(_ *intent.Device, p *intent.Policy) { p.Pause.Send = true }, []string{"link pause (802.3x) is to be on (send)"}},
		{"drop", func(_ *intent.Device, p *intent.Policy) { p.Queues[3].Drop = true }, []string{"class training drops early"}},
		{"nobody's priority", func(_ *intent.Device, p *intent.Policy) { p.Queues[4].Lossless = true }, []string{"priority 4 is configured, but no class of leaf1 has it"}},
		{"interface", func(d *intent.Device, _ *intent.Policy) { d.Ports[0].Iface = "Ethernet1/1" }, []string{`port-1 of leaf1 is bound to "Ethernet1/1"`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := exampleDevice("Ethernet0", "Ethernet8")
			c.edit(&d, &d.Policies[0])
			_, l := sonicRender(d, Facts{})
			if len(l) != len(c.wants) {
				t.Fatalf("%d findings, want %d: %v", len(l), len(c.wants), l)
			}
			for i, want := range c.wants {
				if !strings.Contains(l[i].Msg, want) || l[i].Severity != diag.Error {
					t.Errorf("got %s\nwant an error with %q", l[i], want)
				}
			}
		})
	}
}

// 0% marks nothing, so nobody is told to choose it.
func TestSonicPmaxHint(t *testing.T) {
	for pmax, want := range map[units.Percent]string{1000: "choose 1%", 15_000: "choose 1% or 2%"} {
		d := exampleDevice("Ethernet0")
		d.Policies[0].Queues[3].ECN.Pmax = pmax
		if _, l := sonicRender(d, Facts{}); len(l) != 1 || l[0].Hint != want {
			t.Errorf("%s: %v, want %q", pmax, l, want)
		}
	}
}

// Two ports that share an object, or the device's polling interval, and disagree: both are named.
func TestSonicTwoValues(t *testing.T) {
	for _, c := range []struct {
		name string
		edit func(*intent.Policy)
		want string
	}{
		{"poll", func(p *intent.Policy) { p.Watchdog.Poll = 200 }, "port port-2 asks for 200 of POLL_INTERVAL in PFC_WD GLOBAL, port port-1 for 100"},
		{"kmax", func(p *intent.Policy) { p.Queues[3].ECN.Kmax = 9_000_000 }, "of green_max_threshold in WRED_PROFILE fctl-pod1-fabric-training"},
	} {
		d := exampleDevice("Ethernet0", "Ethernet8")
		p := examplePolicy()
		c.edit(&p)
		d.Ports[1].Policy = d.Intern(p)
		_, l := sonicRender(d, Facts{})
		if len(l) != 1 || !strings.Contains(l[0].Msg, c.want) || l[0].Rule != "one-value" {
			t.Errorf("%s: got %v, want one finding with %q", c.name, l, c.want)
		}
	}
}

// Ownership by area and by priority.
func TestSonicOwns(t *testing.T) {
	d := exampleDevice("Ethernet0")
	for area := range intent.NumAreas {
		d.Ports[0].Manage[area] = intent.Observe
	}
	d.Ports[0].Manage[intent.AreaPFC] = intent.Own
	d.Ports[0].Manage[intent.AreaECN] = intent.Own
	d.Ports[0].Manage[intent.AreaMaps] = intent.Own
	own := sonicOwns(d, Facts{Names: Names{
		{"WRED_PROFILE", "fctl-pod1-fabric-training", ""}: "AZURE_LOSSLESS",
		{"TC_TO_QUEUE_MAP", "fctl-pod1-fabric", ""}:       "AZURE",
	}})
	for k, want := range map[Key]bool{
		{"PORT_QOS_MAP", "Ethernet0", "pfc_enable"}:                          true,
		{"PORT_QOS_MAP", "Ethernet0", "pfc_enable[3]"}:                       true,
		{"PORT_QOS_MAP", "Ethernet0", "pfc_enable[4]"}:                       false, // nobody named it
		{"PORT_QOS_MAP", "Ethernet0", "pfcwd_sw_enable[3]"}:                  false, // watchdog is observed
		{"PORT_QOS_MAP", "Ethernet0", "dscp_to_tc_map"}:                      true,
		{"PORT_QOS_MAP", "Ethernet0", ""}:                                    true, // an empty row ends when it gets fields
		{"PORT_QOS_MAP", "Ethernet0", "tc_to_dscp_map"}:                      false,
		{"PORT_QOS_MAP", "Ethernet8", "pfc_enable[3]"}:                       false, // not modelled
		{"PORT_QOS_MAP", "global", "dscp_to_tc_map"}:                         false,
		{"QUEUE", "Ethernet0|3", "wred_profile"}:                             true,
		{"QUEUE", "Ethernet0|3", "scheduler"}:                                false,
		{"QUEUE", "Ethernet0|4", "wred_profile"}:                             false,
		{"TC_TO_QUEUE_MAP", "AZURE", "3"}:                                    true,
		{"TC_TO_QUEUE_MAP", "AZURE", "4"}:                                    false,
		{"QUEUE", "Ethernet0|3-4", "wred_profile"}:                           false,
		{"WRED_PROFILE", "AZURE_LOSSLESS", "green_min_threshold"}:            true, // adopted
		{"WRED_PROFILE", "AZURE_LOSSLESS", "something"}:                      false,
		{"WRED_PROFILE", "fctl-pod1-old-training", "something"}:              true, // ours by name
		{"WRED_PROFILE", "fctl-pod2-fabric-training", "green_min_threshold"}: false,
		{"WRED_PROFILE", "OTHER", "ecn"}:                                     false,
		{"SCHEDULER", "fctl-pod1-fabric-training", "weight"}:                 false, // scheduler is observed
		{"PORT", "Ethernet0", "mtu"}:                                         false,
		{"PORT", "Ethernet0", "speed"}:                                       false,
		{"PFC_WD", "Ethernet0", "action"}:                                    false,
		{"PFC_WD", "GLOBAL", "POLL_INTERVAL"}:                                false,
	} {
		if own(k) != want {
			t.Errorf("%s: owned is not %v", k, want)
		}
	}
}

// sonicBase is what a switch has before us: its ports, and a few things of others.
func sonicBase(ifaces ...string) Config {
	var c Config
	put := func(table, row, field, value string) {
		c = append(c, Setting{Key: Key{table, row, field}, Value: value})
	}
	for i, iface := range ifaces {
		put("PORT", iface, "lanes", fmt.Sprint(8*i))
		put("PORT", iface, "speed", "400000")
		put("PORT", iface, "admin_status", "up")
		put("PORT_QOS_MAP", iface, "pfc_enable", "")
		put("PORT_QOS_MAP", iface, "pfc_enable[2]", "on")
		put("PORT_QOS_MAP", iface, "tc_to_dscp_map", "AZURE")
	}
	put("TC_TO_DSCP_MAP", "AZURE", "3", "26")
	put("SCHEDULER", "fctl-other-fabric-training", "type", "STRICT")
	put("PFC_WD", "GLOBAL", "POLL_INTERVAL", "400")
	put("BUFFER_POOL", sonicPool, "type", "ingress")
	put("BUFFER_POOL", sonicPool, "mode", "dynamic")
	put("BUFFER_POOL", sonicPool, "size", "67737959")
	return c.Sorted()
}

// What we render passes the device's own models, on a switch of its own base, and from any drawn device.
func TestSonicYang(t *testing.T) {
	d := exampleDevice("Ethernet0", "Ethernet8")
	want, _ := sonicRender(d, Facts{})
	live := sonicBase("Ethernet0", "Ethernet8")
	after := Apply(live, Diff(&sonic, Facts{}, live.Filter(sonicOwns(d, Facts{})), want))
	if err := yang.Check(t, sonicText(after)); err != nil {
		t.Error(err)
	}
	bad := Apply(after, []Change{{Op: Modify, Key: Key{"WRED_PROFILE", "fctl-pod1-fabric-training", "green_max_threshold"}, After: ptr("1")}})
	if err := yang.Check(t, sonicText(bad)); err == nil {
		t.Error("yanglint accepts kmax below kmin: it does not judge what we render")
	}
}

// sonicIfaces is the interfaces of d.
func sonicIfaces(d *intent.Device) []string {
	var s []string
	for _, p := range d.Ports {
		s = append(s, p.Iface)
	}
	slices.SortFunc(s, intent.CompareNames)
	return s
}
