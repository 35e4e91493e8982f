package model

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/model/diag"
)

var update = flag.Bool("update", false, "write goldens")

// files makes a file system from name, text pairs.
func files(pairs ...string) fstest.MapFS {
	m := fstest.MapFS{}
	for i := 0; i+1 < len(pairs); i += 2 {
		m[pairs[i]] = &fstest.MapFile{Data: []byte(pairs[i+1])}
	}
	return m
}

// base is a small fabric without findings other than info.
const base = `apiVersion: fabricctl/v1
kind: Fabric
metadata: {name: t}
topology:
  spines: {count: 1, platform: sonic/sn5600}
  leaves: {count: 2, platform: sonic/sn5600}
  hosts: {per_leaf: 2, netdevs: [rdma0]}
  links:
    leaf_spine: {speed: 400Gbps}
    host_leaf: {speed: 400Gbps}
mtu: {fabric: 9216B, host: 9000B}
classes:
  - name: training
    dscp: [26]
    priority: 3
    lossless: true
    ecn: {kmin: 800KB, kmax: 3200KB, pmax: 20%}
    bandwidth: 60%
  - {name: cnp, role: cnp, dscp: [48], priority: 6, scheduling: strict}
  - {name: default, dscp: rest, priority: 0, bandwidth: 40%}
pfc_watchdog: {detect: 200ms, restore: 400ms, poll: 100ms, action: drop}
manage: {switches: own, hosts: own}
`

// with is base with one text replaced by another, and what stands after it.
func with(t *testing.T, old, new string, more ...string) string {
	t.Helper()
	if strings.Count(base, old) != 1 {
		t.Fatalf("%q stands %d times in the base", old, strings.Count(base, old))
	}
	return strings.Replace(base, old, new, 1) + strings.Join(more, "")
}

func inventory(devices string) string {
	return "---\napiVersion: fabricctl/v1\nkind: Inventory\ndevices:\n" + devices
}

// inventoryWith is an inventory with something before its devices.
func inventoryWith(more, devices string) string {
	return "---\napiVersion: fabricctl/v1\nkind: Inventory\n" + more + "devices:\n" + devices
}

// lines is a list of findings as text, without the infos.
func lines(l diag.List) string {
	var b strings.Builder
	for _, f := range l {
		if f.Severity != diag.Info {
			b.WriteString(f.String() + "\n")
		}
	}
	return b.String()
}

func load(t *testing.T, fsys fstest.MapFS, layers ...string) *Fabric {
	t.Helper()
	f, l := Load(fsys, layers...)
	if s := lines(l); s != "" {
		t.Fatalf("findings:\n%s", s)
	}
	return f
}

func TestSample(t *testing.T) {
	f, l := Load(os.DirFS("testdata"), "sample.yaml")
	if s := lines(l); s != "" {
		t.Fatalf("the sample of the design must load clean:\n%s", s)
	}
	var b strings.Builder
	for _, x := range l {
		b.WriteString(x.String() + "\n")
	}
	golden(t, "sample.findings", b.String())
	if len(f.Devices) != 2+4+32 {
		t.Errorf("%d devices", len(f.Devices))
	}
	e := f.Endpoints["leaf1"]
	if e.Address.V != "10.0.0.11" || e.Serial.V != "MT2214X00123" || e.GNMI.Port.V != 50051 || e.GNMI.CA.V != "file:ca.pem" ||
		e.SSH.Via.V != "jump.example.net" || e.GNMI.Password.V != "env:FABRIC_PASSWORD" || e.SSH.Port.V != 22 || e.SSH.Port.Set {
		t.Errorf("endpoint of leaf1: %+v", e)
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s (-want +got):\n%s", path, d)
	}
}

// TestLayers: the last layer wins, and its value knows every line that lost, nearest first.
func TestLayers(t *testing.T) {
	fsys := files(
		"base.yaml", base,
		"pod.yaml", "apiVersion: fabricctl/v1\nkind: Fabric\nclasses:\n  - name: training\n    ecn: {kmin: 700KB}\n",
		"site/a.yml", "apiVersion: fabricctl/v1\nkind: Fabric\nclasses:\n  - {name: training, ecn: {kmin: 600KB}}\n",
		"site/ignored.txt", "not: yaml: at all",
		"site/below/b.yaml", "not a document",
	)
	f := load(t, fsys, "base.yaml", "pod.yaml", "site")
	got := f.Classes[0].ECN.Kmin
	want := &Origin{Kind: FromLine, Pos: diag.Pos{File: "site/a.yml", Line: 4, Col: 34}, Lost: []diag.Pos{
		{File: "pod.yaml", Line: 5, Col: 17}, {File: "base.yaml", Line: 17, Col: 17},
	}}
	if got.V.String() != "600KB" {
		t.Errorf("kmin is %s", got.V)
	}
	if d := cmp.Diff(want, got.From); d != "" {
		t.Errorf("origin (-want +got):\n%s", d)
	}
	if got := f.Classes[0].ECN.Kmax.From; len(got.Lost) != 0 || got.Pos.File != "base.yaml" {
		t.Errorf("kmax was not touched, but its origin is %+v", got)
	}
	if n := len(f.Classes); n != 3 {
		t.Errorf("%d classes; a class of a later layer must merge by its name", n)
	}
}

// TestReplacedList: lists without names are replaced, and the elements know what lost.
func TestReplacedList(t *testing.T) {
	fsys := files("a.yaml", base, "b.yaml", "apiVersion: fabricctl/v1\nkind: Fabric\nclasses: [{name: training, dscp: [24, 28-29]}]\n")
	f := load(t, fsys, "a.yaml", "b.yaml")
	var got []string
	for _, d := range f.Classes[0].DSCP {
		got = append(got, fmt.Sprintf("%d at %s over %v", d.V, d.From.Pos, d.From.Lost))
	}
	want := []string{
		"24 at b.yaml:3:35 over [a.yaml:14:11]", "28 at b.yaml:3:39 over [a.yaml:14:11]", "29 at b.yaml:3:39 over [a.yaml:14:11]",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestAllAtOnce: one load reports every mistake, in the order of the lines, and none that merely follows from another.
func TestAllAtOnce(t *testing.T) {
	_, l := Load(os.DirFS("testdata"), "broken.yaml", "missing.yaml")
	golden(t, "broken.findings", lines(l))
}

// TestDigest: layout, order, comments and spelling of units do not count; values do.
func TestDigest(t *testing.T) {
	one := load(t, files("a.yaml", base+inventory("  leaf1: {address: 10.0.0.1}\n")), "a.yaml")
	parts := strings.SplitN(base, "mtu:", 2)
	header := "apiVersion: fabricctl/v1\nkind: Fabric\n"
	shuffled := files(
		"d/z.yaml", parts[0]+"# a comment\n",
		"d/a.yaml", header+strings.NewReplacer("9216B", "9.216KB", "200ms", "0.2s").Replace("mtu:"+parts[1])+"metadata: {name: t}\n",
		"d/i.yaml", "devices: {leaf1: {address: 10.0.0.1}}\nkind: Inventory\napiVersion: fabricctl/v1\n",
	)
	two := load(t, shuffled, "d")
	if one.Digest() != two.Digest() {
		t.Error("the same values in other files have another digest")
	}
	layered := load(t, files("a.yaml", with(t, "kmin: 800KB", "kmin: 1KB"), "b.yaml", header+"classes: [{name: training, ecn: {kmin: 800KB}}]\n",
		"i.yaml", inventory("  leaf1: {address: 10.0.0.1}\n")), "a.yaml", "b.yaml", "i.yaml")
	if one.Digest() != layered.Digest() {
		t.Error("the same values through layers have another digest")
	}
	bound := inventory("  leaf1: {address: 10.0.0.1}\n")
	for _, f := range []string{
		with(t, "kmin: 800KB", "kmin: 801KB", bound), with(t, "name: t}", "name: u}", bound), base, base + inventory("  leaf1: {address: 10.0.0.2}\n"),
	} {
		if load(t, files("a.yaml", f), "a.yaml").Digest() == one.Digest() {
			t.Error("a changed value has the same digest")
		}
	}
}

// TestConflict: inside one layer the order of files must not decide, so two values for one place are refused. The same
// value twice, and parts that add to each other, are fine.
func TestConflict(t *testing.T) {
	const header = "apiVersion: fabricctl/v1\nkind: Fabric\n"
	for _, x := range []struct{ second, want string }{
		{"mtu: {host: 9000B}\n", ""},
		{"nccl: {timeout: 20}\n", ""},
		{"classes: [{name: training, fan_in: 4}]\n", ""},
		{"mtu: {host: 8000B}\n", "d/b.yaml:3:13: error: conflict: mtu.host is set twice in one layer, to different values\n    d/a.yaml:11:28: also set here"},
		{"classes: [{name: training, dscp: [24]}]\n", "conflict: classes.training.dscp is set twice in one layer"},
		{"classes: [{name: training, priority: 4}]\n", "conflict: classes.training.priority is set twice in one layer"},
	} {
		_, l := Load(files("d/a.yaml", base, "d/b.yaml", header+x.second), "d")
		if got := lines(l); (x.want == "") != (got == "") || !strings.Contains(got, x.want) {
			t.Errorf("%s got %q, want %q", x.second, got, x.want)
		}
	}
}

// TestRenamed: devices hold the fabric's name in the names of their objects, so a later layer cannot change it.
func TestRenamed(t *testing.T) {
	const header = "apiVersion: fabricctl/v1\nkind: Fabric\n"
	_, l := Load(files("a.yaml", base, "b.yaml", header+"metadata: {name: u}\n"), "a.yaml", "b.yaml")
	want := `b.yaml:3:18: error: conflict: this layer names the fabric u, a.yaml:3:18 names it t
    a.yaml:3:18: named here
    hint: write name: t, or leave metadata out of this layer
`
	if d := cmp.Diff(want, lines(l)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	load(t, files("a.yaml", base, "b.yaml", header+"metadata: {name: t}\n", "c.yaml", header), "a.yaml", "b.yaml", "c.yaml")
}

// TestNearPath: a layer that is not there is answered with the one that was probably meant.
func TestNearPath(t *testing.T) {
	fsys := files("pod1/fabric.yaml", base, "pod1/notes.txt", "", "pod12/site/inventory.yaml", base)
	for layer, want := range map[string]string{
		"pod1/fabrik.yaml":           "did you mean pod1/fabric.yaml?",
		"./pod1/fabric.yam":          "did you mean pod1/fabric.yaml?",
		"pod12/syte":                 "did you mean pod12/site?",
		"pod12/syte/inventory.yaml":  "did you mean pod12/site/inventory.yaml?",
		"pdo12/site/inventory.yaml":  "did you mean pod12/site/inventory.yaml?",
		"pod1/notes.tx":              "",
		"elsewhere":                  "",
		"elsewhere/at/all":           "",
		"pod1/fabric.yaml,site.yaml": "files are not listed with commas: give each a -f of its own",
	} {
		_, l := Load(fsys, layer)
		i := slices.IndexFunc(l, func(f diag.Finding) bool { return f.Rule == "load" })
		if i < 0 || l[i].Hint != want {
			t.Errorf("%s: %v", layer, l)
		}
	}
}

// TestLayerErrors: what cannot be read is said by name, and the other layers are still read.
func TestLayerErrors(t *testing.T) {
	_, l := Load(files("a.yaml", base, "d/x.txt", "", "b.yaml", "kind: Fabric\nmtu: {host: 1}\n"), "a.yaml", "nowhere", "d", "b.yaml")
	want := `b.yaml:1:1: error: document: the document has no apiVersion
    hint: add apiVersion: fabricctl/v1
b.yaml:2:13: error: units: mtu.host: "1" needs a unit
    hint: 1 needs a unit: 1B
d: error: load: the directory holds no *.yaml or *.yml file
nowhere: error: load: there is no such file or directory
`
	if d := cmp.Diff(want, lines(l)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
