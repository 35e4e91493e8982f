package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/render"
	"github.com/fabricctl/fabricctl/tuning"
)

// tuned is a model of the examples, with the space of some options.
func tuned(t *testing.T, o tuning.SpaceOptions, layers ...string) (loaded, *tuning.Space) {
	t.Helper()
	for i := range layers {
		layers[i] = "../../examples/" + layers[i]
	}
	m, err := (&app{sys: quiet()}).load(t.Context(), layers)
	if err != nil {
		t.Fatal(err)
	}
	s, found := tuning.NewSpace(m.fabric, o)
	if found.HasErrors() {
		t.Fatal(found)
	}
	return m, s
}

func costs(s *tuning.Space) string {
	var b strings.Builder
	for i := range s.Vars {
		for _, c := range s.Vars[i].Costs {
			fmt.Fprintf(&b, "%s\n", strings.TrimSpace(fmt.Sprintf("%s on %s (%d): %s %s", s.Vars[i].Name, c.Platform, len(c.Devices), c.Kind, c.Why)))
		}
	}
	return b.String()
}

func allHosts(m loaded) (names []string) {
	for i := range m.net.Devices {
		if d := &m.net.Devices[i]; d.Host {
			names = append(names, d.Name)
		}
	}
	return names
}

// TestTuneCosts: what moving variables does, by platform: edits of profiles in place are hitless, what binds others is not, and what
// nobody owns is not written.
func TestTuneCosts(t *testing.T) {
	for _, x := range []struct {
		name    string
		options tuning.SpaceOptions
		layers  []string
		want    string
	}{
		{"the usual ones", tuning.SpaceOptions{}, []string{"small/fabric.yaml"}, `alpha on sonic/sn5600 (6): hitless
kmax on sonic/sn5600 (6): hitless
kmin/kmax on sonic/sn5600 (6): hitless
pmax on sonic/sn5600 (6): hitless
`},
		{"of one role, where profiles are of the fabric", tuning.SpaceOptions{Variables: []string{"kmax@leaf"}}, []string{"small/fabric.yaml"}, "kmax@leaf on sonic/sn5600 (4): flaps flap of 10 ports: the generic config updater takes a port down and up again to change its QUEUE, PORT_QOS_MAP or BUFFER_PG row; " +
			"write overrides.leaf.classes.training.ecn.kmax into the model with the value that it has now, and apply that first: from then on it is edited in place, and no port goes down\n"},
		{"another system", tuning.SpaceOptions{Variables: []string{"kmax"}}, []string{"three-tier/fabric.yaml", "three-tier/edge-box.yaml"}, "kmax on eos/edge-box (2): hitless\nkmax on eos/7060x6 (8): hitless\nkmax on sonic/sn5600 (8): hitless\n"},
		{"hosts", tuning.SpaceOptions{Variables: []string{"cc.ai_rate"}}, []string{"small/fabric.yaml", "../cmd/fabricctl/testdata/tune/cc.yaml"}, "cc.ai_rate on linux/generic (32): flaps flap of 1 port: the driver may close and open the port to set cc (whether it does is not known): connections over it may fail\n"},
		{"observed", tuning.SpaceOptions{Variables: []string{"kmax"}}, []string{"small/fabric.yaml", "../cmd/fabricctl/testdata/tune/observed.yaml"}, "kmax on sonic/sn5600 (4): unowned the model does not own it there, or the system has no such setting\nkmax on sonic/sn5600 (2): hitless\n"},
	} {
		m, s := tuned(t, x.options, x.layers...)
		if _, err := tuneReachOf(m.fabric, m.net, s, allHosts(m), nil, nil); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(x.want, costs(s)); d != "" {
			t.Errorf("%s (-want +got):\n%s", x.name, d)
		}
	}
}

// TestTuneReach: which ports share what is edited, and whose lossless traffic they carry.
func TestTuneReach(t *testing.T) {
	m, s := tuned(t, tuning.SpaceOptions{Variables: []string{"kmax@leaf1"}}, "small/fabric.yaml")
	for _, x := range []struct {
		hosts  []string
		ports  []string
		others []string
		refuse string
	}{
		{allHosts(m), nil, nil, ""},
		{[]string{"host1", "host2", "host3", "host4", "host5", "host6", "host7"}, []string{"leaf1:uplink-1", "leaf1:Ethernet56", "leaf1:uplink-2"}, nil, ""},
		{[]string{"host1", "host2", "host3", "host4", "host5", "host6", "host7"}, nil, []string{
			"leaf1:downlink-8 (host8)", "leaf1:uplink-1 (host[8-32] (25 devices) may send over it)", "leaf1:uplink-2 (host[8-32] (25 devices) may send over it)",
		}, "--allow-pfc-only: on 3 ports, lossless traffic that is not of the experiment would lose ECN: leaf1:downlink-8 (host8), leaf1:uplink-1 (host[8-32]"},
		{[]string{"host1", "host2"}, nil, nil, "leaf1:downlink-3 (host3), leaf1:downlink-4 (host4), leaf1:downlink-5 (host5) and 5 more"},
	} {
		r, err := tuneReachOf(m.fabric, m.net, s, x.hosts, x.ports, nil)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff([]string{"leaf1"}, r.devices); d != "" || len(r.ports) != 10 || r.ports[0] != "leaf1:downlink-1" || r.ports[9] != "leaf1:uplink-2" {
			t.Errorf("%v: ports %v, devices (-want +got):\n%s", x.hosts, r.ports, d)
		}
		if d := cmp.Diff(x.others, r.others); len(x.others) > 0 && d != "" {
			t.Errorf("%v: others (-want +got):\n%s", x.hosts, d)
		}
		err = r.pfcAlone()
		if x.refuse == "" && err != nil || x.refuse != "" && (err == nil || !strings.Contains(err.Error(), x.refuse) || exitCode(t.Context(), err) != exitRefused) {
			t.Errorf("%v: PFC alone: %v, want %s", x.hosts, err, x.refuse)
		}
	}
}

// TestTuneReachHeld: what a device holds counts, not what the model thinks of it: an object of ours that somebody else uses is not edited.
func TestTuneReachHeld(t *testing.T) {
	m, s := tuned(t, tuning.SpaceOptions{Variables: []string{"kmax"}}, "small/fabric.yaml")
	h := asModelled(m.net.Device("leaf1"))
	profile := h.config.Get("QUEUE", "Ethernet0|3", "wred_profile")
	h.config = append(h.config, render.Setting{Key: render.Key{Scope: "QUEUE", Object: "Ethernet504|3", Field: "wred_profile"}, Value: profile}).Sorted()
	r, err := tuneReachOf(m.fabric, m.net, s, allHosts(m), nil, map[string]held{"leaf1": h})
	if err != nil {
		t.Fatal(err)
	}
	want := "kmax on sonic/sn5600 (1): refused WRED_PROFILE|fctl-small-fabric-training has our name and would change, but QUEUE|Ethernet504|3|wred_profile, which the model does not know, uses it\nkmax on sonic/sn5600 (5): hitless\n"
	if d := cmp.Diff(want, costs(s)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{"leaf2", "leaf3", "leaf4", "spine1", "spine2"}, r.devices); d != "" {
		t.Errorf("devices (-want +got):\n%s", d)
	}
}
