package render

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/witness"
	"github.com/fabricctl/fabricctl/render/yang"
)

// goldenLive is the reference ConfigDB: a 64-port leaf with the vendor's QoS on 28 ports.
func goldenLive(t *testing.T) Config {
	t.Helper()
	b, err := os.ReadFile(witness.Reference(t, "reference/sonic-pg/golden/config_db.json"))
	if err != nil {
		t.Fatal(err)
	}
	c, l := sonicParse(b)
	if len(l) > 0 {
		t.Fatal(l)
	}
	return c
}

// goldenFacts is what its switch says about itself.
func goldenFacts() Facts {
	return Facts{Hostname: "leaf1", Model: "Mellanox-SN4600C-C64", Version: "SONiC.20240531.12"}
}

// goldenDevice models the first n ports of it.
func goldenDevice(live Config, n int) intent.Device {
	var ifaces []string
	for i := 0; len(ifaces) < n && i < 512; i += 4 {
		if iface := fmt.Sprintf("Ethernet%d", i); live.Get("PORT", iface, "lanes") != "" {
			ifaces = append(ifaces, iface)
		}
	}
	return exampleDevice(ifaces...)
}

// Adoption on the golden ConfigDB: what can be taken over, and why the rest cannot.
func TestSonicAdoptGolden(t *testing.T) {
	for _, c := range []struct {
		ports int
		names []string // table: ours = live
		says  []string
	}{
		{ // the maps are shared with 24 more ports, the profiles with queues that the model does not name
			ports: 4,
			says: []string{
				"DSCP_TO_TC_MAP|AZURE_UPLINK stays", "TC_TO_QUEUE_MAP|AZURE stays", "TC_TO_PRIORITY_GROUP_MAP|AZURE stays",
				"MAP_PFC_PRIORITY_TO_QUEUE|AZURE stays", "WRED_PROFILE|AZURE_LOSSLESS stays",
				"SCHEDULER|scheduler.0 stays", "SCHEDULER|scheduler.1 stays",
			},
		},
		{ // every port: the maps of ports become ours to edit; the switch itself uses the DSCP map
			ports: 64,
			names: []string{
				"MAP_PFC_PRIORITY_TO_QUEUE fctl-pod1-fabric = AZURE",
				"TC_TO_PRIORITY_GROUP_MAP fctl-pod1-fabric = AZURE",
				"TC_TO_QUEUE_MAP fctl-pod1-fabric = AZURE",
			},
			says: []string{
				"DSCP_TO_TC_MAP|AZURE stays as it is: PORT_QOS_MAP|global", "WRED_PROFILE|AZURE_LOSSLESS stays", "SCHEDULER|scheduler.0 stays",
				"SCHEDULER|scheduler.1 stays",
			},
		},
	} {
		t.Run(fmt.Sprintf("%d ports", c.ports), func(t *testing.T) {
			live, f := goldenLive(t), goldenFacts()
			d := goldenDevice(live, c.ports)
			if len(d.Ports) != c.ports {
				t.Fatalf("%d ports", len(d.Ports))
			}
			names, says := Adopt(&sonic, d, f, live)
			var got []string
			for _, k := range sortedNames(names) {
				got = append(got, k.Scope+" "+k.Object+" = "+names[k])
			}
			if diff := cmp.Diff(c.names, got); diff != "" {
				t.Errorf("names (-want +got):\n%s", diff)
			}
			for _, want := range c.says {
				found := false
				for _, s := range says {
					found = found || strings.Contains(s.Msg, want)
				}
				if !found {
					t.Errorf("nothing says %q in %v", want, says)
				}
			}
			for _, facts := range []Facts{f, {Hostname: f.Hostname, Model: f.Model, Version: f.Version, Names: names}} {
				checkGoldenApply(t, live, d, facts)
			}
		})
	}
}

// checkGoldenApply plans, applies and plans again.
func checkGoldenApply(t *testing.T, live Config, d intent.Device, f Facts) {
	t.Helper()
	own := sonicOwns(d, f)
	want, l := sonicRender(d, f)
	if len(l) > 0 {
		t.Fatal(l)
	}
	for _, s := range want {
		if !own(s.Key) {
			t.Errorf("%s is rendered and not owned", s.Key)
		}
	}
	cs := Diff(&sonic, f, live.Filter(own), want)
	ops := map[string]int{}
	for _, c := range cs {
		ops[string(c.Op)+" "+c.Key.Scope]++
	}
	after := Apply(live, cs)
	t.Logf("%d names adopted: %d changes %v, risks %v", len(f.Names), len(cs), ops, sonicRisk(live, cs, f))
	if again := Diff(&sonic, f, after.Filter(own), want); len(again) > 0 {
		t.Errorf("the second plan is not empty: %s", changes(again))
	}
	foreign := func(k Key) bool { return !own(k) }
	if a, b := live.Filter(foreign), after.Filter(foreign); !a.Equal(b) {
		t.Errorf("what is not ours changed (-before +after):\n%s", cmp.Diff(a.lines(), b.lines()))
	}
	// Priority 4 is in use and has no name in the model.
	for _, p := range d.Ports {
		for _, k := range []Key{{"QUEUE", p.Iface + "|4", "wred_profile"}, {"PORT_QOS_MAP", p.Iface, "pfc_enable[4]"}} {
			was, had := live.Find(k)
			if is, has := after.Find(k); was != is || had != has {
				t.Errorf("%s was %q and is %q", k, was, is)
			}
		}
	}
	if err := yang.Check(t, sonicText(after)); err != nil {
		t.Error(err)
	}
	lifted, _ := sonicLift(after, f)
	for i := range d.Ports {
		p := &d.Ports[i]
		got := lifted[p.Iface]
		for prio, class := range d.Classes { // what the model names is as it says; the rest is as it was
			want := d.PolicyOf(p).Queues[prio]
			want.Buffer = got.Queues[prio].Buffer // nobody owns it here
			if class != "" && got.Queues[prio] != want {
				t.Fatalf("%s priority %d is %+v, want %+v", p.Iface, prio, got.Queues[prio], want)
			}
		}
	}
}

// With sole binding, a profile is taken over and edited in place: no port flaps.
func TestSonicAdoptSole(t *testing.T) {
	f := goldenFacts()
	d := exampleDevice("Ethernet0", "Ethernet8")
	old := d
	old.Fabric = "somebody"
	live, _ := sonicRender(old, f)
	live = Apply(sonicBase("Ethernet0", "Ethernet8"), Diff(&sonic, f, nil, live))

	d.Policies[0].Queues[3].ECN.Kmax = 6_400_000
	names, says := Adopt(&sonic, d, f, live)
	if len(says) > 0 || len(names) != 8 { // four maps, three schedulers, one profile
		t.Fatalf("%d names: %v, %v", len(names), names, says)
	}
	f.Names = names
	want, _ := sonicRender(d, f)
	cs := Diff(&sonic, f, live.Filter(sonicOwns(d, f)), want)
	wants := []string{
		"set fctl-somebody-fabric-training.green_max_threshold",
		"set fctl-somebody-fabric-training.red_max_threshold",
		"set fctl-somebody-fabric-training.yellow_max_threshold",
	}
	if diff := cmp.Diff(wants, short(cs)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if r := sonicRisk(live, cs, f); r != nil {
		t.Errorf("risks of an edit in place: %v", r)
	}
}

// Where ours is in force already, nothing is adopted in its place: the ports that joined later move to ours.
func TestAdoptKeepsOurs(t *testing.T) {
	f := goldenFacts()
	d := exampleDevice("Ethernet0", "Ethernet8")
	live, _ := sonicRender(d, f)
	late := Key{"QUEUE", "Ethernet8|3", "wred_profile"}
	live = Apply(live, []Change{
		{Op: Modify, Key: late, After: ptr("THEIRS")}, {Op: Add, Key: Key{"WRED_PROFILE", "THEIRS", "ecn"}, After: ptr("ecn_all")},
	})
	names, says := Adopt(&sonic, d, f, live)
	if len(names)+len(says) > 0 {
		t.Errorf("adopted %v, says %v", names, says)
	}
}

// Two live objects where the model wants one: neither is taken.
func TestAdoptIsAFunction(t *testing.T) {
	f := goldenFacts()
	d := exampleDevice("Ethernet0", "Ethernet8")
	old := d
	old.Fabric = "somebody"
	old.Ports = slices.Clone(d.Ports)
	old.Ports[1].Site = "leaf"
	live, _ := sonicRender(old, f)
	names, says := Adopt(&sonic, d, f, live)
	if len(names) != 0 || len(says) != 8 {
		t.Errorf("%d names, says %v", len(names), says)
	}
	for _, s := range says {
		if !strings.Contains(s.Msg, "are used where the model wants one object") {
			t.Error(s)
		}
	}
}

// One live object that two different wishes would edit stays alone, for all of them.
func TestAdoptIsInjective(t *testing.T) {
	f := goldenFacts()
	d := exampleDevice("Ethernet0", "Ethernet8", "Ethernet16")
	old := d
	old.Fabric = "somebody"
	live, _ := sonicRender(old, f)
	for i, site := range []string{"a", "b", "c"} { // a and c want the same, b something else
		p := examplePolicy()
		if site == "b" {
			p.Queues[3].ECN.Kmin = 1000
		}
		d.Ports[i].Site, d.Ports[i].Policy = site, d.Intern(p)
	}
	names, says := Adopt(&sonic, d, f, live)
	for k := range names {
		if k.Scope == "WRED_PROFILE" {
			t.Errorf("%s is adopted as %s", k, names[k])
		}
	}
	if len(says) != 1 || !strings.Contains(says[0].Msg, "would have to be both fctl-pod1-a-training and fctl-pod1-b-training") {
		t.Errorf("says %v", says)
	}
	if len(names) != 12+9 { // maps and schedulers are equal: each of ours stands for the one that is there
		t.Errorf("%d names", len(names))
	}
}
