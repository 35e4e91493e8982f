package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/lint"
	"github.com/fabricctl/fabricctl/render"
)

// drawModel draws a model on two switch systems: mostly sound, now and then with a value that some system cannot take.
func drawModel(t *rapid.T) string {
	pick := func(what string, usual []string, odd ...string) string {
		if len(odd) > 0 && rapid.IntRange(0, 19).Draw(t, what+" is odd") == 0 {
			usual = odd
		}
		return rapid.SampledFrom(usual).Draw(t, what)
	}
	var b strings.Builder
	platforms := []string{"sonic/sn5600", "sonic/z9332f", "eos/7060x6"}
	fmt.Fprintf(&b, `apiVersion: fabricctl/v1
kind: Fabric
metadata: {name: %s}
topology:
  spines: {count: %d, platform: %s}
  leaves: {count: 2, platform: %s}
  hosts:  {per_leaf: 2, netdevs: [rdma0], nic: connectx-7}
  links: {leaf_spine: {speed: 400Gbps, cable: %s}, host_leaf: {speed: %s, cable: 5m}}
mtu: {fabric: %s, host: %s, roce: %s}
classes:
`, pick("fabric", []string{"pod1", "a.long-name.of-a_fabric-that-goes-on"}), rapid.IntRange(1, 4).Draw(t, "spines"), pick("spine", platforms), pick("leaf", platforms),
		pick("cable", []string{"5m", "40m", "300m", "17m"}, "2500mm", "3km", "10km"), pick("speed", []string{"100Gbps", "200Gbps", "400Gbps"}), pick("mtu", []string{"9214B", "9100B"}, "9216B", "1500B", "9022B"), pick("host mtu", []string{"9000B", "4200B"}, "1500B"),
		pick("roce", []string{"4096B", "1024B"}))
	prios := rapid.Permutation([]int{1, 2, 3, 4, 5, 6, 7}).Draw(t, "priorities")
	lossless := rapid.IntRange(0, 2).Draw(t, "lossless")
	for i := range lossless {
		fmt.Fprintf(&b, "  - {name: bulk%d, dscp: [%d], priority: %d, lossless: true, bandwidth: %d%%, ecn: {kmin: %s, kmax: %s, pmax: %s}, pfc: %s}\n", i, 20+i, prios[i],
			rapid.IntRange(1, 40).Draw(t, "share"), pick("kmin", []string{"150KB", "800KB"}, "10MB", "1B"), pick("kmax", []string{"3MB", "4096KiB"}, "300MB"),
			pick("pmax", []string{"1%", "20%", "100%"}, "1.5%", "0.1%"), drawPFC(t, pick))
	}
	fmt.Fprintf(&b, "  - {name: cnp, role: cnp, dscp: [48], priority: %d, scheduling: strict}\n  - {name: default, dscp: rest, priority: 0, bandwidth: 20%%}\n", prios[6])
	fmt.Fprintf(&b, "pfc_watchdog: {detect: %s, restore: %s, poll: %s, action: %s}\n", pick("detect", []string{"200ms", "400ms"}, "10ms", "6s", "205ms"),
		pick("restore", []string{"400ms", "2s"}, "70s"), pick("poll", []string{"100ms"}, "300ms", "1ms"), pick("action", []string{"drop"}, "forward", "alert"))
	fmt.Fprintf(&b, "manage: {switches: %s, hosts: own}\n", pick("manage", []string{"own", "observe"}, "{pfc: own}", "{maps: own, ecn: own}"))
	if lossless > 0 && rapid.Bool().Draw(t, "override") {
		fmt.Fprintf(&b, "overrides: {leaf: {classes: [{name: bulk0, ecn: {kmin: %s}}], devices: {leaf1: {ports: {uplink-1: {mtu: {fabric: %s}, classes: [{name: bulk0, pfc: %s}]}}}}}}\n",
			pick("leaf kmin", []string{"100KB"}, "5MB"), pick("port mtu", []string{"9214B"}, "9100B"), drawPFC(t, pick))
	}
	return b.String()
}

// drawPFC draws what a class says of its buffer: mostly little, now and then what no switch holds.
func drawPFC(t *rapid.T, pick func(what string, usual []string, odd ...string) string) string {
	var keys []string
	for _, k := range []struct {
		name       string
		usual, odd []string
	}{
		{"xoff", []string{"{alpha: 1/8}", "{alpha: 1/2}", "{share: 50%, of: pool}"}, []string{"{alpha: 1/3}", "{alpha: 256}", "200KB", "{share: 30%, of: pool}"}},
		{"headroom", []string{"auto", "400KB"}, []string{"0B", "1B", "50MB", "20KB"}},
		{"xon", []string{"auto", "100KB"}, []string{"0B", "90MB"}},
		{"xon_offset", []string{"20KB"}, []string{"0B", "90MB"}},
		{"reserved", []string{"20KB"}, []string{"0B", "90MB"}},
	} {
		if rapid.Bool().Draw(t, k.name+" is given") {
			keys = append(keys, k.name+": "+pick(k.name, k.usual, k.odd...))
		}
	}
	return "{" + strings.Join(keys, ", ") + "}"
}

// TestAccepted: what lint accepts, every dialect renders, and what a dialect cannot express is a finding of validate. What
// is accepted reads back as it was written.
func TestAccepted(t *testing.T) {
	dir := t.TempDir()
	accepted, refused := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		text := drawModel(rt)
		file := filepath.Join(dir, "fabric.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			rt.Fatal(err)
		}
		m, err := (&app{sys: quiet()}).load(t.Context(), []string{file})
		if err != nil || m.net == nil {
			if err != nil || !m.findings.HasErrors() {
				rt.Fatalf("%v %v\n%s", err, m.findings, text)
			}
			return
		}
		linted := lint.Check(m.net, m.fabric).HasErrors()
		for i := range m.net.Devices {
			for j := range m.net.Devices[i].Ports { // what hosts say of themselves
				m.net.Devices[i].Ports[j].RDMA = "mlx5_0"
			}
			mustSayOrRender(rt, m, &m.net.Devices[i], linted)
		}
		if m.findings.HasErrors() {
			refused++
		} else {
			accepted++
		}
	})
	if tried := accepted + refused; accepted < tried/20 || refused < tried/20 || tried == 0 {
		t.Errorf("%d models were accepted and %d refused: too few to show anything", accepted, refused)
	}
}

// mustSayOrRender wants each thing that a dialect refuses among the findings, and a device without one in a text that
// reads back.
func mustSayOrRender(t *rapid.T, m loaded, d *intent.Device, linted bool) {
	dialect := render.ByOS(d.OS())
	owns := slices.ContainsFunc(d.Ports, func(p intent.Port) bool { return p.Manage.Owned() != 0 }) // else nothing is to be rendered
	c, l := dialect.Render(*d, render.Facts{})
	for _, x := range l {
		said := slices.ContainsFunc(m.findings, func(f diag.Finding) bool {
			same := f.Rule == x.Rule && (strings.HasPrefix(f.Msg, x.Msg) || strings.HasPrefix(f.Msg, unplaced(d, x)) || f.Pos == x.Pos && !f.Pos.IsZero())
			part := f.Rule == watchdogTimes && slices.ContainsFunc(f.Related, func(r diag.Related) bool { return r.Pos == x.Pos })
			return same || f.Severity == diag.Error && !x.Pos.IsZero() && (f.Pos == x.Pos || part)
		})
		if !said {
			t.Errorf("validate does not say: %s", x)
		}
		if x.Severity == diag.Error && x.Rule != render.NeedsAdoption && owns && !m.findings.HasErrors() {
			t.Errorf("accepted, and not rendered: %s", x)
		}
	}
	if linted || l.HasErrors() {
		return
	}
	back, more := dialect.Parse(dialect.Text(c))
	if len(more) > 0 || !back.Equal(c) {
		t.Errorf("%s does not read back: %v", d.Name, more)
	}
	lifted, more := dialect.Lift(back, render.Facts{})
	if more.HasErrors() || m.findings.HasErrors() { // what is not accepted need not come back whole
		return
	}
	for i := range d.Ports {
		want, got := d.PolicyOf(&d.Ports[i]), lifted[d.Ports[i].Iface]
		for a := range intent.NumAreas { // what is not owned may not be rendered
			if x := intent.AreaSet(a); d.Ports[i].Manage[a] == intent.Own && want.Known.Has(a) && want.Only(x) != got.Only(x) {
				t.Errorf("%s:%s: %s (-want +lifted)\n%s", d.Name, d.Ports[i].Name, a, cmp.Diff(want.Only(x), got.Only(x)))
			}
		}
	}
}
