package rollout

import (
	"slices"
	"strings"
	"testing"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/units"
)

// A plan says where the fabric will not agree once it is carried out, because something is not owned or not part of it.
func TestPlanOutlook(t *testing.T) {
	policy := func(on bool) intent.Policy {
		p := intent.Policy{Known: intent.AreaSet(intent.AreaPFC)}
		p.Queues[3].Lossless = on
		return p
	}
	device := func(name, peer string, on bool) intent.Device {
		d := intent.Device{Name: name, Role: "leaf", Ports: []intent.Port{{Name: "p1", Iface: "p1", Peer: peer, PeerPort: "p1", Role: "fabric"}}}
		d.Ports[0].Policy = d.Intern(policy(on))
		return d
	}
	want := &intent.Net{Devices: []intent.Device{device("a", "b", true), device("b", "a", true)}}
	stays := func(ds ...intent.Device) (os []outlooks) {
		for _, d := range ds {
			os = append(os, outlooks{now: d, after: d, free: d})
		}
		return os
	}
	if l := theRules().outcome(nil, want, stays(want.Devices...), nil, "fabricctl hold list --state-dir s"); len(l) > 0 {
		t.Errorf("the fabric as wanted: %v", l)
	}
	l := theRules().outcome(nil, want, stays(device("a", "b", true), device("b", "a", false)), nil, "fabricctl hold list --state-dir s")
	if len(l) != 1 || l[0].Rule != "pfc-symmetry" || l[0].Severity != diag.Warning || !strings.HasPrefix(l[0].Msg, "after this plan, a:p1") {
		t.Errorf("one end only, as it is now: %v", l)
	}
	if hint := "own pfc on b, or set it by hand: the model says priority 3 pfc on, b off"; len(l) != 1 || l[0].Hint != hint {
		t.Errorf("got hint %q, want %q", l[0].Hint, hint)
	}
	ours := want.With(slices.Clone(want.Devices))
	for i := range ours.Devices {
		d := &ours.Devices[i]
		d.Ports = slices.Clone(d.Ports)
		d.Ports[0].Manage[intent.AreaPFC] = intent.Own
	}
	kept := stays(device("a", "b", true), device("b", "a", false))
	kept[1].refused = true
	if hint, l := "nothing in the model: mend what this plan refuses on b", theRules().outcome(nil, ours, kept, nil, "fabricctl hold list --state-dir s"); len(l) != 1 || l[0].Hint != hint {
		t.Errorf("%v: want the hint %q", l, hint)
	}
	kept[1].refused = false
	if hint, l := "nothing in the model: wait for the end of what is held on b", theRules().outcome(nil, ours, kept, []string{"b"}, "fabricctl hold list --state-dir s"); len(l) != 1 || l[0].Hint != hint {
		t.Errorf("%v: want the hint %q", l, hint)
	}
	if l := theRules().outcome(nil, want, stays(device("a", "b", true), intent.Join(want.Devices[1], nil)), nil, "fabricctl hold list --state-dir s"); len(l) > 0 {
		t.Errorf("an end that is not known: %v", l)
	}

	off, on := []intent.Device{device("a", "b", false), device("b", "a", false)}, want.Devices
	half := []intent.Device{device("a", "b", true), device("b", "a", false)}
	looks := func(now, after []intent.Device) (os []outlooks) {
		for i := range now {
			os = append(os, outlooks{now: now[i], after: after[i], free: on[i]})
		}
		return os
	}
	if l := theRules().outcome(nil, want, looks(off, half), []string{"b"}, "fabricctl hold list --state-dir s"); len(l) != 1 || l[0].Severity != diag.Error || !strings.HasPrefix(l[0].Msg, "with b left out, ") || !strings.Contains(l[0].Hint, "(fabricctl hold list --state-dir s)") {
		t.Errorf("leaving b out breaks what was whole: %v", l)
	}
	if l := theRules().outcome(nil, want, looks(off, half), nil, "fabricctl hold list --state-dir s"); len(l) != 1 || l[0].Severity != diag.Error || !strings.HasPrefix(l[0].Msg, "after this plan, and not now, a:p1") {
		t.Errorf("writing to a alone breaks what was whole: %v", l)
	}
	if l := theRules().outcome(nil, want, looks(half, half), []string{"b"}, "fabricctl hold list --state-dir s"); len(l) != 1 || l[0].Severity != diag.Warning {
		t.Errorf("what is broken already does not stop the others: %v", l)
	}
	if l := theRules().outcome(nil, want, looks(half, on), []string{"b"}, "fabricctl hold list --state-dir s"); len(l) > 0 {
		t.Errorf("nothing is broken: %v", l)
	}
}

// A repair of one device of two is no new error, although the message is another one; a second device with the same error is.
func TestPlanOutlookOfParts(t *testing.T) {
	device := func(name string, mtu units.Bytes) intent.Device {
		d := intent.Device{Name: name, Role: "leaf", Ports: []intent.Port{{Name: "p1", Iface: "p1", Peer: "spine", PeerPort: name, Role: "fabric"}}}
		d.Ports[0].Policy = d.Intern(intent.Policy{Known: intent.AreaSet(intent.AreaMTU), MTU: mtu})
		return d
	}
	spine := intent.Device{Name: "spine", Role: "spine"}
	net := func(a, b units.Bytes) []intent.Device {
		return []intent.Device{device("a", a), device("b", b), device("c", 9214), device("d", 9214), device("e", 9214), spine}
	}
	looks := func(now, after []intent.Device) (os []outlooks) {
		for i := range now {
			os = append(os, outlooks{now: now[i], after: after[i], free: after[i]})
		}
		return os
	}
	want := &intent.Net{Devices: net(9214, 9214)}
	for name, c := range map[string]struct {
		now, after []intent.Device
		severity   diag.Severity
	}{
		"a repaired":    {net(1500, 1500), net(9214, 1500), diag.Warning},
		"b broken":      {net(9214, 9214), net(9214, 1500), diag.Error},
		"b broken, too": {net(1500, 9214), net(1500, 1500), diag.Error},
	} {
		l := theRules().outcome(nil, want, looks(c.now, c.after), nil, "fabricctl hold list --state-dir s")
		if len(l) != 1 || l[0].Rule != "mtu-path" || l[0].Severity != c.severity {
			t.Errorf("%s: got %v, want one %s of mtu-path", name, l, c.severity)
		}
	}
}
