package render

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	eosswitch "github.com/fabricctl/fabricctl/drivers/lab/eos"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/units"
)

// eosForeign is a running configuration with a profile of somebody else's, bound by a port that the model knows, and
// with settings on the port itself.
const eosForeign = `
hostname leaf1
qos map dscp 24 to traffic-class 4
qos profile ROCE
   qos trust dscp
   !
   uc-tx-queue 3
      no priority
      bandwidth percent 10
      random-detect ecn minimum-threshold 500 kbytes maximum-threshold 2000 kbytes max-mark-probability 20 weight 0
   !
   uc-tx-queue 5
      priority strict
   !
   priority-flow-control on
   priority-flow-control priority 4 no-drop
   priority-flow-control pause watchdog port action drop
!
interface Ethernet1/1
   description host1
   mtu 9214
   no switchport
   service-profile ROCE
   qos trust dscp
   !
   uc-tx-queue 3
      priority strict
   !
   uc-tx-queue 5
      priority strict
   !
   priority-flow-control priority 3 drop
   priority-flow-control priority 4 no-drop
!
interface Ethernet9/1
   mtu 1500
`

// onePort is eosLeaf with its first port only.
func onePort(f func(d *intent.Device)) intent.Device {
	return edit(func(d *intent.Device) {
		d.Ports = d.Ports[:1]
		if f != nil {
			f(d)
		}
	})
}

// plan is what an engine does: adopt if asked, then the difference in what is owned.
func plan(t *testing.T, d intent.Device, live Config, adopt bool) (Facts, []Change, diag.List) {
	t.Helper()
	var f Facts
	if adopt {
		f.Names, _ = Adopt(&eos, d, f, live)
	}
	own := eos.Owns(d, f)
	want, l := eos.Render(d, f)
	return f, Diff(&eos, f, live.Filter(own), want.Filter(own)), l
}

// apply types cs into an emulated switch that runs text and returns what it shows then.
func apply(t *testing.T, text string, cs []Change) Config {
	t.Helper()
	sw, err := eosswitch.New(eosswitch.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := sw.Boot(text); err != nil {
		t.Fatal(err)
	}
	if err := sw.Type(typed(eos.Lines(parsed(t, []byte(sw.Running())), cs))); err != nil {
		t.Fatal(err)
	}
	return parsed(t, []byte(sw.Running()))
}

func keysOf(cs []Change) []string {
	var s []string
	for _, c := range cs {
		if !strings.HasPrefix(c.Key.Object, "qos map dscp") {
			s = append(s, string(c.Op)+" "+c.Key.String())
		}
	}
	slices.Sort(s)
	return s
}

func TestEOSAdopt(t *testing.T) {
	d, live := onePort(nil), parsed(t, []byte(eosForeign))
	_, cs, l := plan(t, d, live, true)
	if len(l) > 0 {
		t.Fatal(l)
	}
	const q = "qos profile ROCE>uc-tx-queue "
	want := []string{
		"add interface Ethernet1/1>uc-tx-queue 3|random-detect ecn count",
		"add priority-flow-control pause watchdog action",
		"add priority-flow-control pause watchdog default polling-interval",
		"add priority-flow-control pause watchdog default recovery-time",
		"add priority-flow-control pause watchdog default timeout",
		"add " + q + "0|bandwidth percent",
		"add " + q + "0|priority",
		"add " + q + "6|priority",
		"add qos profile ROCE|priority-flow-control pause watchdog",
		"add qos profile ROCE|priority-flow-control priority 3",
		"add qos profile ROCE|uc-tx-queue 0",
		"add qos profile ROCE|uc-tx-queue 6",
		"remove interface Ethernet1/1>uc-tx-queue 3|priority",
		"remove interface Ethernet1/1|priority-flow-control priority 3",
		"remove qos profile ROCE|priority-flow-control pause watchdog port action",
		"set " + q + "3|bandwidth percent",
		"set " + q + "3|random-detect ecn|maximum-threshold",
		"set " + q + "3|random-detect ecn|minimum-threshold",
	}
	// "priority 3 drop" on the port would win over the profile. The strict queue 5 and priority 4 stay.
	if diff := cmp.Diff(want, keysOf(cs)); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	after := apply(t, eosForeign, cs)
	f, again, _ := plan(t, d, after, true)
	if len(again) > 0 {
		t.Errorf("the second plan is not empty: %s", changes(again))
	}
	own := eos.Owns(d, f)
	foreign := func(k Key) bool { return !own(k) }
	if diff := cmp.Diff(live.Filter(foreign).lines(), after.Filter(foreign).lines()); diff != "" {
		t.Errorf("foreign settings (-before +after):\n%s", diff)
	}
}

// TestEOSPartOwned: the model owns ECN alone. Adopted, only ECN changes; without adoption, binding a profile of ours
// would write the rest too, and is refused.
func TestEOSPartOwned(t *testing.T) {
	d := onePort(func(d *intent.Device) { d.Ports[0].Manage = intent.Manage{intent.AreaECN: intent.Own} })
	live := parsed(t, []byte(eosForeign))
	_, _, l := plan(t, d, live, false)
	if !l.HasErrors() || !strings.Contains(l[0].Msg, "carries ecn, which the model owns, together with maps, pfc, scheduler, watchdog") {
		t.Errorf("findings without adoption: %v", l)
	}
	d.Ports[0].State = intent.Planned
	if _, _, l := plan(t, d, live, false); len(l) > 0 {
		t.Errorf("findings on a port that is not in use: %v", l)
	}
	d.Ports[0].State = intent.Active
	_, cs, l := plan(t, d, live, true)
	if len(l) > 0 {
		t.Fatal(l)
	}
	want := []string{
		"add interface Ethernet1/1>uc-tx-queue 3|random-detect ecn count",
		"set qos profile ROCE>uc-tx-queue 3|random-detect ecn|maximum-threshold",
		"set qos profile ROCE>uc-tx-queue 3|random-detect ecn|minimum-threshold",
	}
	if diff := cmp.Diff(want, keysOf(cs)); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	other := d // a second port of the site that binds nothing: binding it would write more than ECN
	other.Ports = append(slices.Clone(d.Ports), d.Ports[0])
	other.Ports[1].Name, other.Ports[1].Iface = "downlink-9", "Ethernet9/1"
	names, said := Adopt(&eos, other, Facts{}, live)
	if len(names) > 0 || len(said) != 1 || !strings.Contains(said[0].Msg, "naming it in interface Ethernet9/1|service-profile would bring the rest") {
		t.Errorf("adopted %v: %v", names, said)
	}
}

// TestEOSShared: what is one for all ports is written for all of them or refused, never by half.
func TestEOSShared(t *testing.T) {
	adopted := Facts{Names: Names{{"", "qos profile fctl-pod1-leaf", ""}: "qos profile ROCE"}}
	for _, tt := range []struct {
		name string
		f    Facts
		edit func(d *intent.Device)
		want string // part of the error, "" for none
	}{
		{
			"another port observed",
			Facts{},
			func(d *intent.Device) { d.Ports[2].Manage = intent.Manage{} },
			"the model owns maps and watchdog on downlink-1 and not on downlink-3; on EOS that is one thing for the whole device",
		},
		{"in maintenance and observed", Facts{}, func(d *intent.Device) {
			d.Ports[2].Manage, d.Ports[2].State = intent.Manage{}, intent.Maintenance
		}, "not on downlink-3"},
		{"in maintenance", Facts{}, func(d *intent.Device) { d.Ports[2].State = intent.Maintenance }, ""},
		{"planned", Facts{}, func(d *intent.Device) { d.Ports[2].Manage, d.Ports[2].State = intent.Manage{}, intent.Planned }, ""},
		{"unused", Facts{}, func(d *intent.Device) {
			d.Ports[2].Manage, d.Ports[2].Role, d.Ports[2].Policy = intent.Manage{}, "unused", d.Intern(intent.Policy{})
		}, ""},
		{"no watchdog in the model", Facts{}, func(d *intent.Device) {
			d.Ports[2].Manage[intent.AreaWatchdog] = intent.Observe
			d.Ports[2].Manage[intent.AreaPFC], d.Ports[2].State = intent.Observe, intent.Maintenance
			for i := range d.Policies {
				d.Policies[i].Watchdog = intent.Watchdog{}
			}
		}, ""},
		{"the device in maintenance", Facts{}, func(d *intent.Device) {
			d.Ports[2].Manage, d.State = intent.Manage{}, intent.Maintenance
		}, ""},
		{
			"a part of an adopted profile", adopted, func(d *intent.Device) { d.Ports[1].Manage[intent.AreaPFC] = intent.Observe },
			"the model owns pfc on downlink-1 and not on downlink-2; on EOS that is one thing for all ports that bind qos profile ROCE",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := edit(tt.edit)
			_, l := eos.Render(d, tt.f)
			switch {
			case tt.want == "" && len(l) > 0, tt.want != "" && (len(l) != 1 || l[0].Severity != diag.Error || !strings.Contains(l[0].Msg, tt.want)):
				t.Errorf("findings %v", l)
			}
			if own := eos.Owns(d, tt.f); tt.want == "" && d.State == intent.Active && !own(Key{"", eosDSCP(26), ""}) {
				t.Error("the maps are not owned")
			}
		})
	}
	watched := edit(func(d *intent.Device) { // the only watched port has its lines in our profile, and is in maintenance
		d.Policies[0].Watchdog, d.Ports[2].State = intent.Watchdog{}, intent.Maintenance
	})
	if !eos.Owns(watched, Facts{})(Key{"", eosTimeout, ""}) {
		t.Error("a profile of ours has the watchdog on, and its timers are not owned")
	}
}

func TestEOSOwns(t *testing.T) {
	observed := func(d *intent.Device, port int) { d.Ports[port].Manage = intent.Manage{} }
	var (
		profile = Key{"qos profile fctl-pod1-leaf", "qos trust", ""}
		stale   = Key{"", "qos profile fctl-pod1-gone", ""}
		dscp    = Key{"", eosDSCP(26), ""}
		timer   = Key{"", eosTimeout, ""}
		mtu     = Key{"interface Ethernet1/1", eosMTU, ""}
		binding = Key{"interface Ethernet1/1", eosBinding, ""}
		noDrop3 = Key{"interface Ethernet1/1", eosNoDrop(3), ""}
		pfc     = Key{"interface Ethernet1/1", eosPFC, ""}
		tc      = Key{"", eosTC(3), ""}
		allOff  = Key{"", eosAllOff, ""}
	)
	all := []Key{profile, stale, dscp, tc, timer, allOff, mtu, binding, pfc, noDrop3}
	for _, tt := range []struct {
		name string
		edit func(d *intent.Device)
		want []Key
	}{
		{"all", func(*intent.Device) {}, all},
		{"nothing", func(d *intent.Device) { observed(d, 0); observed(d, 1); observed(d, 2) }, nil},
		{"another port observed", func(d *intent.Device) { observed(d, 2) }, []Key{profile, stale, mtu, binding, pfc, noDrop3}},
		{"another port observed and absent", func(d *intent.Device) { observed(d, 2); d.Ports[2].State = intent.Absent }, all},
		{"another port observed, in maintenance", func(d *intent.Device) { observed(d, 2); d.Ports[2].State = intent.Maintenance }, []Key{profile, stale, mtu, binding, pfc, noDrop3}},
		{"the port planned", func(d *intent.Device) { d.Ports[0].State = intent.Planned }, []Key{profile, stale, dscp, tc, timer, allOff}},
		{"the device in maintenance", func(d *intent.Device) { d.State = intent.Maintenance }, nil},
		{"mtu alone", func(d *intent.Device) {
			for i := range d.Ports {
				d.Ports[i].Manage = intent.Manage{intent.AreaMTU: intent.Own}
			}
		}, []Key{mtu}},
		{"no watchdog in the model", func(d *intent.Device) {
			for i := range d.Policies {
				d.Policies[i].Watchdog = intent.Watchdog{}
			}
		}, []Key{profile, stale, dscp, tc, allOff, mtu, binding, pfc, noDrop3}},
		{"no lossless class", func(d *intent.Device) {
			for i := range d.Policies {
				d.Policies[i].Queues[3].Lossless = false
			}
		}, []Key{profile, stale, dscp, tc, timer, mtu, binding, noDrop3}},
		{"class 3 not named", func(d *intent.Device) { d.Classes[3] = "" }, []Key{profile, stale, dscp, timer, allOff, mtu, binding, pfc}},
	} {
		own := eos.Owns(edit(tt.edit), Facts{})
		var got []Key
		for _, k := range all {
			if own(k) {
				got = append(got, k)
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
		for _, k := range []Key{
			{"", "qos profile ROCE", ""},
			{"qos profile ROCE", eosTrust, ""},
			{"", "qos profile fctl-pod1--a-leaf", ""}, // of fabric pod1-a
			{"interface Ethernet9/1", eosMTU, ""},
			{"interface Ethernet1/1", "description host1", ""},
			{"interface Ethernet1/1", eosNoDrop(4), ""},
			{"interface Ethernet1/1>uc-tx-queue 5", eosPriority, ""},
			{"interface Ethernet1/1>tx-queue 3", eosPriority, ""},
			{"", eosTC(5), ""},
			{"", "hostname leaf1", ""},
			{"router bgp 65000", eosPriority, ""},
		} {
			if own(k) {
				t.Errorf("%s: %s is owned", tt.name, k)
			}
		}
	}
}

// TestEOSOwnsAdopted: in somebody else's profile, what all ports that bind it own, in queues of named classes.
func TestEOSOwnsAdopted(t *testing.T) {
	d := edit(func(d *intent.Device) { d.Ports[0].Manage[intent.AreaPFC] = intent.Observe })
	f := Facts{Names: Names{{"", "qos profile fctl-pod1-leaf", ""}: "qos profile ROCE"}}
	own := eos.Owns(d, f)
	const q3 = "qos profile ROCE>uc-tx-queue 3"
	for k, want := range map[Key]bool{
		{"", "qos profile ROCE", ""}:                     true,
		{"qos profile ROCE", eosTrust, ""}:               true,
		{"qos profile ROCE", eosNoDrop(3), ""}:           false, // observed on one of the two ports
		{"qos profile ROCE", "uc-tx-queue 3", ""}:        true,
		{"qos profile ROCE", "uc-tx-queue 4", ""}:        false,
		{"qos profile ROCE", "shape rate 1", ""}:         false,
		{q3, eosShare, ""}:                               true,
		{q3, eosCount, ""}:                               false, // we count on the port
		{q3, "random-detect drop minimum-threshold", ""}: true,
		{q3, "shape rate 1", ""}:                         false,
		{"qos profile fctl-pod1-leaf", eosTrust, ""}:     true,
	} {
		if own(k) != want {
			t.Errorf("%s owned: %v", k, !want)
		}
	}
}

func TestEOSCannotExpress(t *testing.T) {
	for _, tt := range []struct {
		name string
		edit func(d *intent.Device)
		want string // part of the one finding
		sev  diag.Severity
	}{
		{"two maps", func(d *intent.Device) { d.Policies[1].DSCP[26] = 0 }, `downlink-1 asks for "3", downlink-3 for "0"`, diag.Error},
		{"two maps, one in maintenance", func(d *intent.Device) {
			d.Policies[1].DSCP[26] = 0
			d.Ports[2].State = intent.Maintenance
		}, `downlink-1 asks for "3", downlink-3 for "0"`, diag.Info},
		{"two maps, one planned, which does not decide", func(d *intent.Device) {
			d.Policies[0].DSCP[26] = 0
			d.Ports[0].State, d.Ports[1].State = intent.Planned, intent.Planned
		}, `downlink-3 asks for "3", downlink-1 for "0"`, diag.Info},
		{"two watchdogs", func(d *intent.Device) { d.Policies[1].Watchdog.Restore = 500 }, `"0.4", downlink-3 for "0.5"`, diag.Error},
		{"action", func(d *intent.Device) {
			d.Policies[0].Watchdog.Action, d.Policies[1].Watchdog.Action = intent.ActionForward, intent.ActionDrop
		}, "watchdog action forward has no certain name", diag.Error},
		{"polling too slow", func(d *intent.Device) { d.Policies[0].Watchdog.Poll, d.Policies[1].Watchdog.Poll = 101, 101 }, "poll 101ms is above half", diag.Warning},
		{"steps of the watchdog", func(d *intent.Device) {
			d.Policies[0].Watchdog.Detect, d.Policies[1].Watchdog.Detect = 205, 205
		}, "detect of 205ms: EOS takes 10ms to 60000ms in steps of 10ms", diag.Error},
		{"fraction of a percent", func(d *intent.Device) { d.Policies[0].Queues[3].ECN.Pmax = units.OnePercent * 3 / 2 }, "pmax 1.5%; EOS takes whole percent", diag.Error},
		{"threshold", func(d *intent.Device) { d.Policies[0].Queues[3].ECN.Kmax = 256_000_001 }, "kmax 256000001B is outside 1B to 256MB", diag.Error},
		{"mtu", func(d *intent.Device) { d.Profile.MaxMTU, d.Policies[0].MTU, d.Policies[1].MTU = 9214, 9216, 9214 }, "mtu 9216B is above the largest of eos/7060x6, 9214B", diag.Error},
		{"trust", func(d *intent.Device) { d.Policies[0].Trust = intent.TrustPCP }, "trust pcp: only DSCP", diag.Error},
		{"early drop", func(d *intent.Device) { d.Policies[0].Queues[3].Drop = true }, "priority 3 drops by WRED", diag.Error},
		{"weight", func(d *intent.Device) { d.Policies[0].Queues[0].Weight = 101 }, "weight 101", diag.Error},
		{"weight of a strict queue", func(d *intent.Device) { d.Policies[0].Queues[6].Weight = 10 }, "priority 6: weight 10", diag.Error},
		{"thresholds of nothing", func(d *intent.Device) { d.Policies[0].Queues[3].ECN.Kmin = 0 }, "kmin 0B is outside", diag.Error},
		{"priority groups", func(d *intent.Device) { d.Policies[0].TCPG[3] = 4 }, "traffic class 3 in priority group 4", diag.Error},
		{"code points of no class", func(d *intent.Device) {
			d.Policies[0].DSCP[63], d.Policies[1].DSCP[63] = intent.Unmapped, intent.Unmapped
		}, "none for [63]", diag.Error},
		{"no queue", func(d *intent.Device) {
			d.Policies[0].TCQueue[3], d.Policies[1].TCQueue[3] = intent.Unmapped, intent.Unmapped
		}, "traffic class 3 has no queue", diag.Error},
		{"hostile name", func(d *intent.Device) { d.Ports[2].Iface = "Ethernet1\nreload" }, `"Ethernet1\nreload" is not the name`, diag.Error},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, l := eos.Render(edit(tt.edit), Facts{})
			said := map[string]bool{}
			for _, f := range l { // once for each site
				_, what, _ := strings.Cut(f.Msg, ":")
				said[what] = true
			}
			if len(said) != 1 || len(l) > 2 || !strings.Contains(l[0].Msg, tt.want) || l[0].Severity != tt.sev {
				t.Fatalf("findings %v", l)
			}
			for _, s := range c {
				if strings.ContainsAny(s.Key.String()+s.Value, "\n;") {
					t.Errorf("rendered %s = %q", s.Key, s.Value)
				}
			}
			if got, _ := eos.Parse(eos.Text(c)); !got.Equal(c) {
				t.Errorf("what is left does not parse back: %s", cmp.Diff(c.lines(), got.lines()))
			}
		})
	}
}

// TestEOSPorts: absent and unbound ports ask for nothing, planned ones and those in maintenance keep their profile.
func TestEOSPorts(t *testing.T) {
	c := must(t, edit(func(d *intent.Device) {
		d.Ports[0].State, d.Ports[1].Iface, d.Ports[2].State = intent.Absent, "", intent.Planned
	}))
	text := string(eos.Text(c))
	for part, want := range map[string]bool{
		"fctl-pod1-leaf\n": false, "Ethernet1/1": false, "qos profile fctl-pod1-leaf-storage": true, "Ethernet3/1": true,
	} {
		if strings.Contains(text, part) != want {
			t.Errorf("%q rendered: %v\n%s", part, !want, text)
		}
	}
	crossed := must(t, edit(func(d *intent.Device) { // a class that nobody uses, on another queue
		for i := range d.Policies {
			d.Policies[i].TCQueue[5] = 4
		}
	}))
	if crossed.Get("", eosTC(5), "") != "4" {
		t.Error("the map of an unused class is lost")
	}
}

func TestEOSRisk(t *testing.T) {
	d := eosLeaf()
	live := Apply(must(t, d), []Change{{Op: Add, Key: Key{"interface Ethernet9/1", eosBinding, ""}, After: new("fctl-pod1-leaf-storage")}})
	next := edit(func(d *intent.Device) { d.Ports[2].Site, d.Ports[2].Policy = "leaf", 0 })
	_, cs, _ := plan(t, next, live, false)
	want := []Risk{{
		Class: Refused, Ports: []string{"Ethernet9/1"}, Keys: []Key{{"", "qos profile fctl-pod1-leaf-storage", ""}},
		Why: "qos profile fctl-pod1-leaf-storage is still bound by Ethernet9/1, which this plan does not change; unbind it there first",
	}, {
		Class: Hitless, Ports: []string{"Ethernet3/1"},
		Why: "the bound service-profile changes: no link goes down as far as is known, loss of packets in flight is not verified on a device",
	}}
	got := eos.Risk(live, cs, Facts{})
	if len(got) > 2 { // the removed profile carries PFC: nobody else is touched
		got = got[:2]
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("risks (-want +got):\n%s", diff)
	}
	pfc := edit(func(d *intent.Device) {
		d.Policies[0].Queues[3].Lossless, d.Policies[0].TCPG[3] = false, 0
	})
	_, cs, _ = plan(t, pfc, must(t, d), false)
	got = eos.Risk(must(t, d), cs, Facts{})
	if len(got) != 1 || !slices.Equal(got[0].Ports, []string{"Ethernet1/1", "Ethernet2/1"}) {
		t.Errorf("risk of a class that stops being lossless: %+v", got)
	}
}

// TestEOSQueueWord: the Jericho family schedules tx-queues, and takes nothing else.
func TestEOSQueueWord(t *testing.T) {
	d := edit(func(d *intent.Device) { d.Profile.Words = map[string]string{"tx_queue": "tx-queue"} })
	c := must(t, d)
	text := string(eos.Text(c))
	if strings.Contains(text, "uc-tx-queue") || !strings.Contains(text, "\n   tx-queue 3\n") {
		t.Errorf("rendered:\n%s", text)
	}
	sw, err := eosswitch.New(eosswitch.Options{TxQueue: "tx-queue"})
	if err != nil {
		t.Fatal(err)
	}
	if err := sw.Boot(text); err != nil {
		t.Fatal(err)
	}
	shown := parsed(t, []byte(sw.Running()))
	own := eos.Owns(d, Facts{})
	if cs := Diff(&eos, Facts{}, shown.Filter(own), c.Filter(own)); len(cs) > 0 || !own(Key{"interface Ethernet1/1>tx-queue 3", eosPriority, ""}) {
		t.Errorf("the switch shows something else: %s", changes(cs))
	}
	got, l := eos.Lift(shown, Facts{})
	if diff := cmp.Diff(behaviour(&d), got); diff != "" || len(l) > 0 {
		t.Errorf("lifted (-want +got):\n%s\n%v", diff, l)
	}
}
