package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/drivers/lab/eos"
)

// oneLeaf is the model of one switch with these ports.
func oneLeaf(manage string, ports ...string) string {
	return "apiVersion: fabricctl/v1\nkind: Fabric\nmetadata: {name: one}\ntopology:\n  devices:\n" +
		"    - {name: leaf1, role: leaf, platform: eos/7060x6, ports: [" + strings.Join(ports, ", ") + "]}\n" +
		trio[strings.Index(trio, "mtu:"):strings.Index(trio, "manage:")] + "manage: {switches: " + manage + "}\n"
}

// port is port n of such a switch.
func port(n int, more string) string {
	return fmt.Sprintf("{name: p%d, iface: Ethernet%d/1, speed: 400Gbps%s}", n, n, more)
}

// leafBench is a lab of one EOS switch with three ports that runs text, and a model of it.
func leafBench(t *testing.T, text, model string) (*bench, *eos.Switch) {
	t.Helper()
	b := newBench(t, oneLeaf("own", port(1, ""), port(2, ""), port(3, "")))
	b.write(t, "fabric.yaml", model)
	leaf := b.lab.Box("leaf1").(*eos.Switch)
	if err := leaf.Boot(text); err != nil {
		t.Fatal(err)
	}
	return b, leaf
}

// foreignEOS is a leaf that somebody else configured: a profile of theirs on the modelled ports, and some of their own.
const foreignEOS = `hostname leaf1
qos map dscp 26 to traffic-class 3
qos profile ROCE
   qos trust dscp
   !
   uc-tx-queue 3
      no priority
      bandwidth percent 10
      random-detect ecn minimum-threshold 500 kbytes maximum-threshold 2000 kbytes max-mark-probability 10 weight 0
   !
   uc-tx-queue 5
      priority strict
      random-detect ecn minimum-threshold 100 kbytes maximum-threshold 200 kbytes max-mark-probability 5 weight 0
   !
   priority-flow-control on
   priority-flow-control priority 3 no-drop
!
interface Ethernet1/1
   mtu 9000
   service-profile ROCE
!
interface Ethernet2/1
   service-profile ROCE
!
interface Ethernet3/1
   mtu 1500
`

// TestOneAreaOnEOS: the first month on a running fabric. The model owns ECN alone; in the profile that is there, and
// only with --adopt, its lines change and nothing else does.
func TestOneAreaOnEOS(t *testing.T) {
	b, leaf := leafBench(t, foreignEOS, oneLeaf("{ecn: own}", port(1, ""), port(2, "")))
	before := leaf.Running()
	r := b.must(t, exitOK, "validate")
	if !strings.Contains(r.out, "leaf1:p1: warning: needs-adoption") {
		t.Errorf("validate %s", r)
	}
	r = b.must(t, exitRefused, "plan")
	if !strings.Contains(r.out+r.err, "a service-profile carries ecn, which the model owns, together with maps, pfc, scheduler, watchdog, which it does not") {
		t.Errorf("plan %s", r)
	}
	b.must(t, exitOK, "plan", "--adopt", "--out", filepath.Join(b.dir, "plan.json"))
	b.must(t, exitOK, "apply", "--yes", filepath.Join(b.dir, "plan.json"))
	want := strings.ReplaceAll(before, "minimum-threshold 500 kbytes maximum-threshold 2000 kbytes max-mark-probability 10", "minimum-threshold 800000 bytes maximum-threshold 3200000 bytes max-mark-probability 20")
	want = strings.ReplaceAll(want, "   service-profile ROCE\n", "   service-profile ROCE\n   !\n   uc-tx-queue 3\n      random-detect ecn count\n")
	if d := cmp.Diff(want, leaf.Running()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	b.must(t, exitOK, "plan", "--adopt", "--detailed-exitcode")
	b.must(t, exitOK, "runs", "rollback", b.run(t))
	if d := cmp.Diff(before, leaf.Running()); d != "" {
		t.Errorf("after rollback (-want +got):\n%s", d)
	}
}

// TestReimported: the profile has a name of ours from the time when the fabric was managed under another name. It is
// adopted as any other: what stands in a profile is no stranger that uses it.
func TestReimported(t *testing.T) {
	was := strings.ReplaceAll(foreignEOS, "ROCE", "fctl-other-fabric")
	b, leaf := leafBench(t, was, oneLeaf("{ecn: own}", port(1, ""), port(2, "")))
	before := leaf.Running()
	r := b.must(t, exitOK, "apply", "--yes", "--adopt", "--details")
	if !strings.Contains(r.err, "adopts qos profile fctl-other-fabric (for qos profile fctl-one-fabric)") {
		t.Errorf("apply %s", r)
	}
	if got := leaf.Running(); strings.Contains(got, "fctl-one") || !strings.Contains(got, "minimum-threshold 800000 bytes") {
		t.Errorf("the leaf holds %s", got)
	}
	b.must(t, exitOK, "plan", "--adopt", "--detailed-exitcode")
	b.must(t, exitOK, "runs", "rollback", b.run(t))
	if d := cmp.Diff(before, leaf.Running()); d != "" {
		t.Errorf("after rollback (-want +got):\n%s", d)
	}
	b.write(t, "fabric.yaml", oneLeaf("own", port(1, ""), port(2, "")))
	b.must(t, exitOK, "apply", "--yes", "--adopt", "--allow-disruptive")
	if got := leaf.Running(); strings.Contains(got, "fctl-one") {
		t.Errorf("all areas: the leaf holds %s", got)
	}
	b.must(t, exitOK, "plan", "--adopt", "--detailed-exitcode")
}

// TestOneAreaRefused: where no profile can be adopted, the plan says why and changes nothing.
func TestOneAreaRefused(t *testing.T) {
	for name, tt := range map[string]struct{ text, want string }{
		"no profile": {"hostname leaf1\n", "only one that is bound already can be edited in part"},
		"a stranger binds it": {
			foreignEOS + "   service-profile ROCE\n",
			"interface Ethernet3/1|service-profile, which the model does not own, uses it too",
		},
		"one port binds none": {
			strings.Replace(foreignEOS, "interface Ethernet2/1\n   service-profile ROCE\n", "interface Ethernet2/1\n   mtu 9000\n", 1),
			"naming it in interface Ethernet2/1|service-profile would bring the rest",
		},
	} {
		t.Run(name, func(t *testing.T) {
			b, leaf := leafBench(t, tt.text, oneLeaf("{ecn: own}", port(1, ""), port(2, "")))
			before := leaf.Held()
			r := b.must(t, exitRefused, "plan", "--adopt")
			if strings.Contains(r.out, "plan and apply with --adopt") || !strings.Contains(r.out, "hint: --adopt ") {
				t.Errorf("the hint goes in a circle: %s", r)
			}
			if !strings.Contains(r.out+r.err, tt.want) || !strings.Contains(r.out+r.err, "needs-adoption") {
				t.Errorf("no %q in %s", tt.want, r)
			}
			if r := b.call(t, "apply", "--yes", "--adopt"); r.code == exitOK {
				t.Errorf("apply %s", r)
			}
			if d := cmp.Diff(before, leaf.Held()); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// TestSharedOnEOS: a port that leaves the maps to somebody else is named; one that is not used is not in the way.
func TestSharedOnEOS(t *testing.T) {
	b, leaf := leafBench(t, "hostname leaf1\nqos map dscp 26 to traffic-class 5\n", oneLeaf("own", port(1, ""), port(2, ", role: unused")))
	b.must(t, exitOK, "apply", "--yes", "--allow-disruptive")
	lines := strings.Split(leaf.Running(), "\n")
	for _, want := range []string{"priority-flow-control pause watchdog default timeout 0.2"} {
		if !slices.Contains(lines, want) {
			t.Errorf("no %q in\n%s", want, leaf.Running())
		}
	}
	if strings.Contains(leaf.Running(), "qos map dscp 26 ") { // to traffic class 3, which is EOS's default
		t.Errorf("the map is not ours:\n%s", leaf.Running())
	}
	b.write(t, "fabric.yaml", oneLeaf("own", port(1, ""), port(2, ""))+
		"overrides:\n  leaf:\n    devices:\n      leaf1:\n        ports:\n          p2: {manage: observe}\n")
	r := b.must(t, exitError, "validate")
	if !strings.Contains(r.out, "the model owns maps and watchdog on p1 and not on p2") {
		t.Errorf("validate %s", r)
	}
}

// TestClassLeaves: a class that leaves the model, or moves to another priority, leaves nothing behind on any device.
func TestClassLeaves(t *testing.T) {
	fresh := newUsedBench(t, trio)
	fresh.must(t, exitOK, "apply", "--yes", "--allow-disruptive")
	want := fresh.config(t)
	for name, earlier := range map[string]string{
		"gone":  strings.Replace(trio, "  - {name: cnp,", "  - {name: storage, dscp: [34], priority: 4, lossless: true, ecn: {kmin: 500KB, kmax: 1600KB, pmax: 10%}, bandwidth: 20%}\n  - {name: cnp,", 1),
		"moved": strings.Replace(trio, "priority: 3", "priority: 4", 1),
	} {
		t.Run(name, func(t *testing.T) {
			b := newUsedBench(t, trio)
			b.write(t, "fabric.yaml", strings.Replace(earlier, "bandwidth: 60%", "bandwidth: 40%", 1))
			b.must(t, exitOK, "apply", "--yes", "--allow-disruptive")
			before := b.config(t)
			first := b.run(t)
			b.write(t, "fabric.yaml", trio)
			b.must(t, exitOK, "apply", "--yes", "--allow-disruptive")
			if d := cmp.Diff(want, b.config(t)); d != "" {
				t.Errorf("(-as if it had never been +now):\n%s", d)
			}
			b.must(t, exitOK, "plan", "--detailed-exitcode")
			for _, r := range b.runs(t) {
				if r.ID != first {
					b.must(t, exitOK, "runs", "rollback", r.ID)
				}
			}
			if d := cmp.Diff(before, b.config(t)); d != "" {
				t.Errorf("after rollback (-want +got):\n%s", d)
			}
		})
	}
}

// TestClassLeavesAdopted: in an adopted profile, and for the watchdog's timers, nothing tells what was ours: it stays, and
// each plan says so until somebody removes it.
func TestClassLeavesAdopted(t *testing.T) {
	own := oneLeaf("own", port(1, ""), port(2, ""))
	class := trio[strings.Index(trio, "  - {name: training,"):]
	class = class[:strings.Index(class, "\n")+1]
	watchdog := trio[strings.Index(trio, "pfc_watchdog:"):]
	watchdog = watchdog[:strings.Index(watchdog, "\n")+1]
	lossless, timers := "info: stays-lossless: priority 3 is lossless on Ethernet1/1, Ethernet2/1", "info: watchdog-timers-stay: "
	for name, tt := range map[string]struct {
		model string
		says  []string
	}{
		"moved": {strings.Replace(own, "priority: 3", "priority: 4", 1), []string{lossless}},
		"gone":  {strings.NewReplacer(class, "", watchdog, "").Replace(own), []string{lossless, timers}},
	} {
		t.Run(name, func(t *testing.T) {
			b, leaf := leafBench(t, foreignEOS, own)
			b.must(t, exitOK, "apply", "--yes", "--adopt", "--allow-disruptive")
			if r := b.must(t, exitOK, "plan", "--adopt", "--details"); strings.Contains(r.out, "stays-lossless") || strings.Contains(r.out, "timers-stay") {
				t.Errorf("of what the model asks for: %s", r)
			}
			b.write(t, "fabric.yaml", tt.model)
			for range 2 {
				r := b.must(t, exitOK, "plan", "--adopt", "--details")
				for _, want := range tt.says {
					if !strings.Contains(r.out, want) {
						t.Errorf("no %q in %s", want, r)
					}
				}
				b.must(t, exitOK, "apply", "--yes", "--adopt", "--allow-disruptive")
			}
			b.must(t, exitOK, "plan", "--adopt", "--detailed-exitcode")
			if !strings.Contains(leaf.Running(), "   priority-flow-control priority 3 no-drop\n") {
				t.Errorf("removed:\n%s", leaf.Running())
			}
		})
	}
}
