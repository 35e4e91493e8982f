package model

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fabricctl/fabricctl/model/diag"
)

// shapeOf are counts of a topology for the tests.
type shapeOf struct {
	pods, planes, supers, groups, spines, leaves, perLeaf, rails, bond int
	storage, storageBond                                               int
	parallelUp, parallelSuper, parallelDown, split                     int
}

func drawShape(t *rapid.T) shapeOf {
	n := func(name string, lo, hi int) int { return rapid.IntRange(lo, hi).Draw(t, name) }
	s := shapeOf{
		pods: n("pods", 0, 3), planes: n("planes", 0, 3), groups: n("groups", 1, 3), perLeaf: n("per_leaf", 0, 4), rails: n("rails", 1, 3),
		bond: n("bond", 1, 2), storage: n("storage", 0, 2), storageBond: n("storage bond", 1, 2), parallelUp: n("parallel up", 1, 3),
		parallelSuper: n("parallel super", 1, 2), parallelDown: n("parallel down", 1, 2), split: n("breakout", 1, 2),
	}
	s.supers = s.groups * n("supers per group", 0, 2)
	s.spines = n("spines", 0, 4)
	if s.supers > 0 {
		s.spines = max(s.spines, s.groups)
	}
	s.leaves = s.rails * s.bond * 2 * n("leaf groups", 1, 2)
	return s
}

func (s shapeOf) model() string {
	var b strings.Builder
	b.WriteString("apiVersion: fabricctl/v1\nkind: Fabric\nmetadata: {name: t}\ntopology:\n")
	for _, x := range []struct {
		key string
		n   int
	}{{"pods", s.pods}, {"planes", s.planes}} {
		if x.n > 0 {
			fmt.Fprintf(&b, "  %s: %d\n", x.key, x.n)
		}
	}
	if s.supers > 0 {
		fmt.Fprintf(&b, "  super_spines: {count: %d, platform: sonic/wide, groups: %d}\n", s.supers, s.groups)
	}
	fmt.Fprintf(&b, "  spines: {count: %d, platform: sonic/wide}\n  leaves: {count: %d, platform: sonic/wide}\n", s.spines, s.leaves)
	fmt.Fprintf(&b, "  hosts: {per_leaf: %d, rails: %d, bond: %d, carries: [rdma]}\n", s.perLeaf, s.rails, s.bond)
	if s.storage > 0 {
		fmt.Fprintf(&b, "  storage: {per_leaf: %d, bond: %d, carries: [storage]}\n", s.storage, s.storageBond)
	}
	fmt.Fprintf(&b, "  links:\n    leaf_spine: {speed: 400Gbps, parallel: %d, breakout: %d}\n", s.parallelUp, s.split)
	if s.supers > 0 {
		fmt.Fprintf(&b, "    spine_super: {speed: 800Gbps, parallel: %d, breakout: {upper: %d}}\n", s.parallelSuper, s.split)
	}
	fmt.Fprintf(&b, "    host_leaf: {speed: 400Gbps, parallel: %d, breakout: %d}\n    storage_leaf: {speed: 200Gbps}\n", s.parallelDown, 3-s.split)
	if s.storage == 0 {
		return strings.Replace(b.String(), "    storage_leaf: {speed: 200Gbps}\n", "", 1) + shapeTail
	}
	return b.String() + shapeTail
}

const shapeTail = `mtu: {fabric: 9216B, host: 9000B}
classes:
  - {name: training, dscp: [26], priority: 3, lossless: true}
  - {name: cnp, role: cnp, dscp: [48], priority: 6}
  - {name: default, dscp: rest, priority: 0}
---
apiVersion: fabricctl/v1
kind: Profile
metadata: {name: sonic/wide}
platform: {iface: Ethernet%d, iface_step: 8, lanes: 8, breakouts: [2, 4], source: me, confidence: low}
`

// TestGeneratedTopologies: whatever the counts, devices and links are as many as the formula says, every link is there at
// both ends, nothing is used or named twice, links stay inside their pod and plane, and groups hold alternatives only.
func TestGeneratedTopologies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawShape(t)
		f, l := Load(files("m.yaml", s.model()), "m.yaml")
		l = slices.DeleteFunc(l, func(f diag.Finding) bool { return f.Rule == "islands" }) // no spines, or pods that nothing joins
		if out := lines(l); out != "" {
			t.Fatalf("%+v\n%s\n%s", s, s.model(), out)
		}
		s.counts(t, f)
		by := map[string]*Device{}
		for i := range f.Devices {
			d := &f.Devices[i]
			if by[d.Name] != nil {
				t.Fatalf("two devices %s", d.Name)
			}
			by[d.Name] = d
		}
		for _, d := range by {
			symmetric(t, d, by)
		}
		grouped(t, f, by)
	})
}

// counts compares what there is with the formula.
func (s shapeOf) counts(t *rapid.T, f *Fabric) {
	pods, planes := max(s.pods, 1), max(s.planes, 1)
	blocks := pods * planes
	hosts := pods * s.leaves / (s.rails * s.bond) * s.perLeaf
	storage := pods * s.leaves / s.storageBond * s.storage
	want := map[string]int{
		"super-spine": planes * s.supers, "spine": blocks * s.spines, "leaf": blocks * s.leaves, "host": hosts, "storage": storage,
		"nic ports":    hosts*s.rails*s.bond*planes*s.parallelDown + storage*s.storageBond*planes,
		"leaf uplinks": blocks * s.leaves * s.spines * s.parallelUp,
		"super links":  blocks * s.spines * s.supers / s.groups * s.parallelSuper,
	}
	got := map[string]int{}
	for k := range want {
		got[k] = 0
	}
	for _, d := range f.Devices {
		got[d.Role]++
		for _, p := range d.Ports {
			switch {
			case d.Host:
				got["nic ports"]++
			case d.Tier == 1 && p.Role == "fabric":
				got["leaf uplinks"]++
			case d.Tier == 3:
				got["super links"]++
			}
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Fatalf("%+v (-want +got):\n%s", s, d)
	}
}

// symmetric checks the ports of a device.
func symmetric(t *rapid.T, d *Device, by map[string]*Device) {
	names, ifaces := map[string]bool{}, map[string]bool{}
	for _, p := range d.Ports {
		if names[p.Name] || p.Iface.Set && ifaces[p.Iface.V] || !d.Host && !p.Iface.Set {
			t.Fatalf("%s:%s (%s) is there twice, or has no interface", d.Name, p.Name, p.Iface.V)
		}
		names[p.Name], ifaces[p.Iface.V] = true, true
		peer := by[p.Peer]
		i := slices.IndexFunc(peer.Ports, func(q Port) bool { return q.Name == p.PeerPort })
		if q := &peer.Ports[max(i, 0)]; i < 0 || q.Peer != d.Name || q.PeerPort != p.Name || q.Speed.V != p.Speed.V || q.Carries != p.Carries {
			t.Fatalf("%s:%s goes to %s:%s, which does not come back", d.Name, p.Name, p.Peer, p.PeerPort)
		}
		if d.Pod != "" && peer.Pod != "" && d.Pod != peer.Pod || d.Plane != "" && peer.Plane != "" && d.Plane != peer.Plane {
			t.Fatalf("%s is linked to %s", d.Name, peer.Name)
		}
		if diff := d.Tier - peer.Tier; diff != 1 && diff != -1 {
			t.Fatalf("%s of tier %d is linked to %s of tier %d", d.Name, d.Tier, peer.Name, peer.Tier)
		}
	}
}

// grouped checks that groups divide the switches: at least two in each, of one role and pod, and what serves one host, or
// the same switches below, together.
func grouped(t *rapid.T, f *Fabric, by map[string]*Device) {
	members := map[string][]*Device{}
	below := map[string]string{} // what is below a switch to its group
	for i := range f.Devices {
		d := &f.Devices[i]
		if d.Host {
			for _, p := range d.Ports {
				if a, b := by[d.Ports[0].Peer], by[p.Peer]; a != b && (a.Group == "" || a.Group != b.Group) {
					t.Fatalf("%s is on %s (%s) and %s (%s)", d.Name, a.Name, a.Group, b.Name, b.Group)
				}
			}
			continue
		}
		if d.Group != "" {
			members[d.Group] = append(members[d.Group], d)
		}
		var down []string
		for _, p := range d.Ports {
			if by[p.Peer].Tier < d.Tier {
				down = append(down, p.Peer)
			}
		}
		slices.Sort(down)
		key := fmt.Sprint(d.Tier, slices.Compact(down))
		if g, ok := below[key]; ok && d.Tier > 1 && g != d.Group {
			t.Fatalf("%s (%s) stands in for switches of group %s", d.Name, d.Group, g)
		}
		below[key] = d.Group
	}
	for name, ds := range members {
		if len(ds) < 2 || slices.ContainsFunc(ds, func(d *Device) bool { return d.Role != ds[0].Role || d.Pod != ds[0].Pod }) {
			t.Fatalf("group %s has %d members of different kinds", name, len(ds))
		}
	}
}

// TestWiring writes out who is linked to whom, where it is not obvious: rails and bonds and planes, groups of
// super-spines, breakouts, and what the model changes about generated devices.
func TestWiring(t *testing.T) {
	var b strings.Builder
	for _, x := range []struct{ name, topology string }{
		{"rails, bonds and planes", `  planes: 2
  spines: {count: 1, platform: sonic/wide}
  leaves: {count: 4, platform: sonic/wide}
  hosts: {per_leaf: 1, rails: 2, bond: 2, nic: connectx-7, netdevs: [a0, a1, b0, b1, c0, c1, d0, d1], carries: [rdma]}
  links: {leaf_spine: {speed: 800Gbps}, host_leaf: {speed: 400Gbps}}
`},
		{"pods and groups of super-spines", `  pods: 2
  super_spines: {count: 4, platform: sonic/wide, groups: 2}
  spines: {count: 3, platform: sonic/wide}
  leaves: {count: 1, platform: sonic/wide}
  links: {leaf_spine: {speed: 800Gbps}, spine_super: {speed: 400Gbps, breakout: {upper: 2}}}
`},
		{"breakouts and parallel links", `  spines: {count: 2, platform: sonic/wide}
  leaves: {count: 2, platform: eos/mine}
  hosts: {per_leaf: 3}
  storage: {per_leaf: 1, bond: 2, carries: [storage, management]}
  links:
    leaf_spine: {speed: 400Gbps, parallel: 3, breakout: {lower: 2, upper: 4}}
    host_leaf: {speed: 200Gbps, breakout: 4}
    storage_leaf: {speed: 100Gbps}
`},
		{"generated, then changed", `  spines: {count: 2, platform: sonic/wide}
  leaves: {count: 3, platform: sonic/wide}
  hosts: {per_leaf: 2}
  links:
    leaf_spine: {speed: 400Gbps}
    host_leaf: {speed: 200Gbps}
    list:
      - {a: "leaf1:uplink-1", b: "spine1:downlink-1", speed: 100Gbps, carries: [rdma]}
      - {a: "leaf1:peer-1", b: "leaf2:peer-1", speed: 800Gbps, role: peer-link}
      - {a: "leaf3:peer-1", b: "edge:one", speed: 100Gbps, role: border, breakout: 4}
  devices:
    - {name: leaf2, platform: eos/mine}
    - {name: leaf3, role: border-leaf, group: edge, ports: [{name: out-1, iface: Ethernet512, role: border, speed: 100Gbps}, {name: downlink-2, role: unused}]}
    - {name: edge, role: router, platform: eos/mine, group: edge}
    - {name: nas, role: storage, platform: linux/generic, ports: [{name: n1, iface: e1, bond: b, rail: 1, nic: connectx-7, carries: [storage]}]}
`},
	} {
		model := "apiVersion: fabricctl/v1\nkind: Fabric\nmetadata: {name: t}\ntopology:\n" + x.topology + shapeTail +
			"---\napiVersion: fabricctl/v1\nkind: Profile\nmetadata: {name: eos/mine}\nplatform: {iface: Ethernet%d/%d, iface_first: 1, lanes: 8, breakouts: [2, 4, 8], source: me, confidence: low}\n"
		f := load(t, files("m.yaml", model), "m.yaml")
		fmt.Fprintf(&b, "== %s\n", x.name)
		for _, d := range f.Devices {
			fmt.Fprintf(&b, "%s: %s tier %d, %s", d.Name, d.Role, d.Tier, d.Platform.V)
			for _, s := range []string{d.Pod, d.Plane} {
				if s != "" {
					fmt.Fprintf(&b, ", %s", s)
				}
			}
			if d.Group != "" {
				fmt.Fprintf(&b, ", group %s", d.Group)
			}
			b.WriteByte('\n')
			for _, p := range d.Ports {
				fmt.Fprintf(&b, "  %s %s %s %s:%s %s %s", p.Name, p.Iface.V, p.Role, p.Peer, p.PeerPort, p.Speed.V, p.Carries.V)
				for _, v := range []struct {
					set bool
					s   string
				}{{p.Breakout > 1, fmt.Sprintf(" 1/%d", p.Breakout)}, {p.Bond != "", " " + p.Bond}, {p.Rail > 0, fmt.Sprintf(" rail %d", p.Rail)}, {p.NIC.Set, " " + p.NIC.V}} {
					if v.set {
						b.WriteString(v.s)
					}
				}
				b.WriteByte('\n')
			}
		}
	}
	golden(t, "wiring", b.String())
}
