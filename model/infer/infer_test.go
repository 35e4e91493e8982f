package infer_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fabricctl/fabricctl/examples"
	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/infer"
	"github.com/fabricctl/fabricctl/model/intent"
)

// resolved is the Net of a model given as text.
func resolved(t interface {
	Fatalf(string, ...any)
	Helper()
}, text string,
) *intent.Net {
	t.Helper()
	f, l := model.Load(fstest.MapFS{"f.yaml": {Data: []byte(text)}}, "f.yaml")
	if l.HasErrors() {
		t.Fatalf("%v\n%s", l, text)
	}
	n, l := intent.Resolve(f)
	if l.HasErrors() {
		t.Fatalf("%v", l)
	}
	return n
}

// mustInfer is the model of n, which has no errors.
func mustInfer(t interface {
	Fatalf(string, ...any)
	Helper()
}, n *intent.Net,
) (infer.Model, diag.List) {
	t.Helper()
	m, l := infer.Infer(n, infer.Options{Name: "live", File: "fabric.yaml"})
	if l.HasErrors() || m.Net == nil {
		t.Fatalf("%v\n%s", l, m.Text)
	}
	return m, l
}

// policies is what each port of a switch does.
func policies(n *intent.Net) map[string]intent.Policy {
	out := map[string]intent.Policy{}
	for i := range n.Devices {
		d := &n.Devices[i]
		for j := range d.Ports {
			out[d.Name+":"+d.Ports[j].Name] = *d.PolicyOf(&d.Ports[j])
		}
	}
	return out
}

func TestExamplesComeBack(t *testing.T) {
	for _, layers := range [][]string{{"small"}, {"mixed/fabric.yaml", "mixed/inventory.yaml", "mixed/site.yaml"}} {
		f, l := model.Load(examples.FS, layers...)
		if l.HasErrors() {
			t.Fatal(l)
		}
		n, _ := intent.Resolve(f)
		m, found := mustInfer(t, n)
		if d := cmp.Diff(policies(n), policies(m.Net)); d != "" {
			t.Errorf("%v (-want +got):\n%s\n%s", layers, d, m.Text)
		}
		for _, f := range found {
			if f.Rule == "differs" {
				t.Error(f)
			}
		}
		again, _ := mustInfer(t, n)
		if again.Text != m.Text {
			t.Error("another text the second time")
		}
	}
}

// drawFabric draws the text of a model with overrides at every level.
func drawFabric(t *rapid.T) string {
	var b strings.Builder
	say := func(format string, a ...any) { fmt.Fprintf(&b, format+"\n", a...) }
	num := func(name string, lo, hi int) int { return rapid.IntRange(lo, hi).Draw(t, name) }
	ramp := func() string {
		kmin := num("kmin", 1, 2000)
		return fmt.Sprintf("{kmin: %dKB, kmax: %dKB, pmax: %d%%}", kmin, kmin+num("ramp", 0, 3000), num("pmax", 1, 100))
	}
	dog := func() string {
		return fmt.Sprintf("{detect: %dms, restore: %dms, poll: 100ms, action: %s}", num("detect", 100, 999), num("restore", 100, 999),
			rapid.SampledFrom([]string{"drop", "forward", "alert"}).Draw(t, "action"))
	}
	leaves := num("leaves", 1, 6)
	say("apiVersion: fabricctl/v1\nkind: Fabric\nmetadata: {name: drawn}\ntopology:")
	say("  spines: {count: %d, platform: sonic/sn5600}\n  leaves: {count: %d, platform: eos/7060x6}", num("spines", 1, 2), leaves)
	say("  hosts: {per_leaf: %d, netdevs: [rdma0]}", num("hosts", 1, 3))
	say("mtu: {fabric: %dB, host: %dB}\nclasses:", num("mtu", 4200, 9214), num("host mtu", 1500, 4000))
	lossless := num("lossless", 1, 2)
	share := func() string { return fmt.Sprintf("bandwidth: %d%%", num("share", 1, 30)) }
	if rapid.Bool().Draw(t, "weights") {
		share = func() string { return fmt.Sprintf("weight: %d", num("weight", 1, 100)) }
	}
	ecn := map[int]bool{}
	for i := range lossless {
		ecn[i] = rapid.Bool().Draw(t, "ecn")
		e := ""
		if ecn[i] {
			e = ", ecn: " + ramp()
		}
		say("  - {name: lossless-%d, dscp: [%d], priority: %d, lossless: true, %s%s}", 3+i, 26+i, 3+i, share(), e)
	}
	say("  - {name: cnp, role: cnp, dscp: [48], priority: 6, scheduling: %s}", rapid.SampledFrom([]string{"strict", "none", "weighted"}).Draw(t, "cnp"))
	say("  - {name: default, dscp: rest, priority: 0, %s}", share())
	watched := rapid.Bool().Draw(t, "watchdog")
	if watched {
		say("pfc_watchdog: %s", dog())
	}
	level := func(indent string) {
		if rapid.Bool().Draw(t, "mtu here") {
			say("%smtu: {fabric: %dB}", indent, num("mtu", 4200, 9214))
		}
		if ecn[0] && rapid.Bool().Draw(t, "ecn here") {
			say("%sclasses: [{name: lossless-3, ecn: %s, %s}]", indent, ramp(), share())
		}
		if watched && rapid.Bool().Draw(t, "watchdog here") {
			say("%spfc_watchdog: %s", indent, dog())
		}
		say("%sstate: active", indent)
	}
	say("overrides:\n  leaf:")
	level("    ")
	say("    devices:\n      leaf%d:", num("which", 1, leaves))
	level("        ")
	say("        ports:\n          downlink-1:")
	level("            ")
	return b.String()
}

// TestInferProperty: what a model asks for comes back as another model that asks for the same.
func TestInferProperty(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := resolved(rt, drawFabric(rt))
		m, _ := mustInfer(rt, n)
		if d := cmp.Diff(policies(n), policies(m.Net)); d != "" {
			rt.Fatalf("(-want +got):\n%s\n%s", d, m.Text)
		}
	})
}

// TestDevicesOwnBesideOurs: on Tomahawk 3 the platform's table has rows for 400Gbps and none for 200Gbps, so a leaf makes the
// buffers of its uplinks by itself and is given those of its hosts. The model says the ones, and nothing of the others.
func TestDevicesOwnBesideOurs(t *testing.T) {
	n := resolved(t, `apiVersion: fabricctl/v1
kind: Fabric
metadata: {name: ai}
topology:
  spines: {count: 2, platform: sonic/z9332f}
  leaves: {count: 2, platform: sonic/z9332f}
  hosts: {per_leaf: 8, netdevs: [rdma0]}
  links:
    leaf_spine: {speed: 400Gbps, cable: 40m}
    host_leaf: {speed: 200Gbps, cable: 5m}
mtu: {fabric: 9216B, host: 9000B}
classes:
  - {name: training, dscp: [26], priority: 3, lossless: true, bandwidth: 60%}
  - {name: cnp, role: cnp, dscp: [48], priority: 6, scheduling: strict}
  - {name: default, dscp: rest, priority: 0, bandwidth: 40%}
pfc_watchdog: {detect: 200ms, restore: 400ms, poll: 100ms, action: drop}
`)
	up, down := n.Device("leaf1").Port("uplink-1"), n.Device("leaf1").Port("downlink-1")
	if !n.Device("leaf1").PolicyOf(up).Queues[3].Buffer.Device || n.Device("leaf1").PolicyOf(down).Queues[3].Buffer.Device {
		t.Fatal("not the buffers that this test is about")
	}
	m, found := mustInfer(t, n)
	for _, f := range found {
		if f.Rule == "differs" || f.Rule == "headroom-std" {
			t.Error(f)
		}
	}
	for name, was := range policies(n) {
		if now := policies(m.Net)[name]; now.Queues[3].Buffer != was.Queues[3].Buffer {
			t.Errorf("%s: buffer %+v, was %+v", name, now.Queues[3].Buffer, was.Queues[3].Buffer)
		}
	}
	if t.Failed() {
		t.Log(m.Text)
	}
}
