package sim

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/derive"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/lint"
	"github.com/fabricctl/fabricctl/model/units"
)

// linted is a small fabric with a link speed, a cable and a headroom, and whether lint accepts it.
func linted(t *testing.T, speed units.BitRate, cable units.Length, headroom string) (*intent.Net, diag.List) {
	t.Helper()
	text := fmt.Sprintf(`apiVersion: fabricctl/v1
kind: Fabric
metadata: {name: f}
topology:
  spines: {count: 2, platform: sonic/sn5600}
  leaves: {count: 2, platform: sonic/sn5600}
  hosts:  {per_leaf: 4, nic: connectx-7, carries: [rdma]}
  links:
    leaf_spine: {speed: %[1]s, cable: %[2]s}
    host_leaf:  {speed: %[1]s, cable: %[2]s}
mtu: {fabric: 9216B, host: 9000B, roce: 4096B}
classes:
  - {name: training, dscp: [26], priority: 3, lossless: true, pfc: {xoff: {alpha: 1/8}, headroom: %[3]s}, bandwidth: 60%%, drop_incomplete_arp: true}
  - {name: cnp, role: cnp, dscp: [48], priority: 6, scheduling: strict}
  - {name: default, dscp: rest, priority: 0, bandwidth: 40%%}
pfc_watchdog: {detect: 200ms, restore: 400ms, poll: 100ms, action: drop}
`, speed, cable, headroom)
	f, findings := model.Load(fstest.MapFS{"f.yaml": {Data: []byte(text)}}, "f.yaml")
	if findings.HasErrors() {
		t.Fatal(findings)
	}
	n, findings := intent.Resolve(f)
	if findings.HasErrors() {
		t.Fatal(findings)
	}
	return n, lint.Check(n, f)
}

// TestLintedIsLossless: what lint accepts loses nothing in a lossless class under incast without marks, at any speed and with any
// cable; and with half of the headroom that physics needs, lint refuses it and the incast loses packets.
func TestLintedIsLossless(t *testing.T) {
	for _, speed := range []units.BitRate{100 * units.Gbps, 200 * units.Gbps, 400 * units.Gbps} {
		for _, cable := range []units.Length{5 * units.Metre, 40 * units.Metre, 300 * units.Metre} {
			load, o := "incast", Options{NoMarks: true, Warmup: units.Microsecond, Duration: 4 * units.Millisecond}
			n, findings := linted(t, speed, cable, "auto")
			if findings.HasErrors() {
				t.Errorf("%s %s: %v", speed, cable, findings)
			}
			if r := run(t, n, load, o, 1); r.Totals.Drops > 0 || r.Totals.Pauses == 0 {
				t.Errorf("%s %s: %d dropped, %d pauses\n%s", speed, cable, r.Totals.Drops, r.Totals.Pauses, strings.Join(r.Why, "\n"))
			}
			need := derive.PhysicsMin(derive.Link{Speed: speed, Cable: cable, Frame: 9216}).Xoff
			n, findings = linted(t, speed, cable, (need / 2).Exact())
			if !strings.Contains(fmt.Sprint(findings), "headroom-phys") {
				t.Errorf("%s %s: lint accepts a headroom of %s: %v", speed, cable, need/2, findings)
			}
			if r := run(t, n, load, o, 1); r.Totals.Lossless == 0 {
				t.Errorf("%s %s: nothing is lost with a headroom of %s, where physics needs %s\n%s", speed, cable, need/2, need, strings.Join(r.Why, "\n"))
			}
		}
	}
}

// TestPauseBothWays: ports that are paused in one direction and pause in the other lose nothing, and nobody on them stands still for good.
// A pause that ends as a packet leaves may be owed to the neighbour to which that packet goes.
func TestPauseBothWays(t *testing.T) {
	const load = "permutation,across,spread=20us + incast:8,across,random,bytes=64KiB,spread=2us,start=200us,every=200us,jitter=50% + victim:4,spread=20us + probe,every=2us,for=2500us,warmup=1500us"
	n := example(t, "bench-c")
	for seed := range uint64(4) {
		r := run(t, n, load, Options{NoMarks: true}, seed+1)
		if least := r.Parts[0].Least; r.Totals.Drops > 0 || r.Totals.Pauses == 0 || least < units.Gbps {
			t.Errorf("seed %d: %d dropped, %d pauses, %s for the worst\n%s", seed+1, r.Totals.Drops, r.Totals.Pauses, least, strings.Join(r.Why, "\n"))
		}
	}
}
