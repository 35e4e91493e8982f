package model

import (
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/profiles"
)

func TestWith(t *testing.T) {
	f := load(t, files("m.yaml", base+"overrides: {leaf: {devices: {leaf1: {classes: [{name: training, ecn: {kmin: 1MB}}]}}}}\n"), "m.yaml")
	before := f.Digest()
	g, l := f.With(Patch{
		{"classes.training.ecn.kmin", "0.9MB"},
		{"overrides.leaf.devices.leaf1.classes.training.ecn.kmin", "2MB"},
		{"nccl.timeout", "20"},
	})
	if s := lines(l); s != "" {
		t.Fatal(s)
	}
	if f.Digest() != before || f.Classes[0].ECN.Kmin.V.String() != "800KB" {
		t.Error("With changed its receiver")
	}
	kmin := g.Classes[0].ECN.Kmin
	want := &Origin{Kind: FromExperiment, Ref: "patch", Pos: diag.Pos{File: "m.yaml", Line: 17, Col: 17}, Lost: []diag.Pos{{File: "m.yaml", Line: 17, Col: 17}}}
	if kmin.V.String() != "900KB" || cmp.Diff(want, kmin.From) != "" {
		t.Errorf("kmin is %s, origin (-want +got):\n%s", kmin.V, cmp.Diff(want, kmin.From))
	}
	if got := g.Roles["leaf"].Devices["leaf1"].Classes[0].ECN.Kmin.V.String(); got != "2MB" {
		t.Errorf("the override is %s", got)
	}
	if g.NCCL.Timeout.V != 20 {
		t.Error("a key that the model does not have yet must be set too")
	}
	if back, _ := g.With(Patch{{"classes.training.ecn.kmin", "800KB"}, {"overrides.leaf.devices.leaf1.classes.training.ecn.kmin", "1MB"}}); back.Digest() == before {
		t.Error("nccl.timeout is still there, so the digest must differ")
	}
	if back, _ := g.With(Patch{{"classes.training.ecn.kmin", "0.8MB"}}); back.Classes[0].ECN.Kmin.V != f.Classes[0].ECN.Kmin.V {
		t.Error("a value set back is not back")
	}
}

// TestWithHosts: a patch sets values of hosts, where the model has the section and where it has not.
func TestWithHosts(t *testing.T) {
	f := load(t, files("m.yaml", base+"hosts: {congestion: {parameters: {hai_rate: 50Mbps}}}\noverrides: {host: {state: active}}\n"), "m.yaml")
	g, l := f.With(Patch{
		{"hosts.congestion.parameters.ai_rate", "10Mbps"},
		{"hosts.congestion.parameters.hai_rate", "0.1Gbps"},
		{"overrides.host.hosts.irq", "spread"},
	})
	if s := lines(l); s != "" {
		t.Fatal(s)
	}
	params := g.Hosts.Congestion.Params
	if ai, hai := params[profiles.CCIndex("ai_rate")], params[profiles.CCIndex("hai_rate")]; ai.V != 10 || hai.V != 100 || hai.From.Kind != FromExperiment {
		t.Errorf("ai_rate %d, hai_rate %d from %s", ai.V, hai.V, hai.From.Kind)
	}
	if got := g.Roles["host"].Hosts.IRQ.V; got != "spread" || g.Digest() == f.Digest() {
		t.Errorf("the override is %q", got)
	}
	if _, l := f.With(Patch{{"hosts.congestion.parameters.ai_rate", "60Mbps"}}); !strings.Contains(lines(l), "ai_rate 60Mbps is above hai_rate 50Mbps") {
		t.Errorf("a rate that cannot be is %q", lines(l))
	}
}

// TestWithOverrides: a patch makes the role, the device, the port and the class in it that an override needs, and nothing else.
func TestWithOverrides(t *testing.T) {
	f := load(t, files("m.yaml", base+"overrides: {spine: {state: active}}\n"), "m.yaml")
	g, l := f.With(Patch{
		{"overrides.leaf.classes.training.ecn.kmin", "900KB"},
		{"overrides.leaf.classes.training.ecn.kmax", "2MB"},
		{"overrides.spine.classes.training.pfc.xoff.alpha", "1/4"},
		{"overrides.leaf.devices.leaf1.ports.downlink-1.classes.training.ecn.kmax", "3MB"},
	})
	if s := lines(l); s != "" {
		t.Fatal(s)
	}
	leaf := g.Roles["leaf"]
	if c := leaf.Classes; len(c) != 1 || c[0].ECN.Kmin.V.String() != "900KB" || c[0].ECN.Kmax.V.String() != "2MB" || c[0].ECN.Kmin.From.Kind != FromExperiment {
		t.Errorf("leaf has %+v", c)
	}
	if c := g.Roles["spine"].Classes; len(c) != 1 || c[0].Xoff.Alpha.V.String() != "1/4" {
		t.Errorf("spine has %+v", c)
	}
	if p := leaf.Devices["leaf1"].Ports["downlink-1"]; p == nil || p.Classes[0].ECN.Kmax.V.String() != "3MB" {
		t.Errorf("the port has %+v", p)
	}
	if f.Roles["leaf"] != nil || f.Digest() == g.Digest() {
		t.Error("With changed its receiver, or changed nothing")
	}
	for _, x := range []struct{ path, value, want string }{
		{"overrides.lef.classes.training.ecn.kmin", "900KB", "lef"},
		{"overrides.leaf.devices.leaf9.classes.training.ecn.kmin", "900KB", "leaf9"},
		{"overrides.leaf.classes.trainig.ecn.kmin", "900KB", "overrides.leaf.classes: there is no class trainig"},
		{"overrides.leaf.classes.training.ecn.kmni", "900KB", "there is no kmni"},
		{"overrides.leaf.classes.training.lossless", "true", "there is no training"},
		{"overrides.leaf", "true", "there is no leaf"},
		{"topology.devices.leaf9.platform", "sonic/sn5600", ""},
		{"applications.nccl.business", "training", "there is no nccl"},
	} {
		_, l := f.With(Patch{{x.path, x.value}})
		if got := lines(l); !strings.Contains(got, x.want) || !l.HasErrors() {
			t.Errorf("%s = %s: got %q, want %q", x.path, x.value, got, x.want)
		}
	}
}

func TestWithRefused(t *testing.T) {
	f := load(t, files("m.yaml", base), "m.yaml")
	for _, x := range []struct{ path, value, want string }{
		{"classes.training.ecn.kmni", "1KB", "there is no kmni\n    hint: did you mean kmin?"},
		{"classes.trainig.ecn.kmin", "1KB", "there is no trainig"},
		{"classes.training.ecn.kmin", "1kb", `"1kb" uses kb`},
		{"classes.training", "1KB", "a patch sets single values"},
		{"classes.training.ecn.kmin.x", "1KB", `nothing can be set at "x"`},
		{"manage.switches.pfc", "own", `nothing can be set at "pfc"`},
		{"", "1KB", "a patch sets single values"},
		{"mtu.fabric", "9300B", "more than sonic/sn5600 takes"},
		{"classes.training.bandwidth", "61%", "add up to 101%"},
	} {
		_, l := f.With(Patch{{x.path, x.value}})
		if got := lines(l); !strings.Contains(got, x.want) {
			t.Errorf("%s = %s: got %q, want %q", x.path, x.value, got, x.want)
		}
	}
}

// TestDottedNames: names may hold dots, and the longest that fits is taken.
func TestDottedNames(t *testing.T) {
	f := load(t, files("m.yaml", strings.Replace(base, "{name: cnp,", "{name: training.cnp,", 1)), "m.yaml")
	g, l := f.With(Patch{{"classes.training.cnp.priority", "7"}, {"classes.training.priority", "2"}})
	if s := lines(l); s != "" || g.Classes[1].Priority.V != 7 || g.Classes[0].Priority.V != 2 {
		t.Errorf("priorities %d and %d\n%s", g.Classes[0].Priority.V, g.Classes[1].Priority.V, s)
	}
}

func TestAcknowledge(t *testing.T) {
	f := load(t, files("m.yaml", base+`acknowledge: [{rule: loud, reason: "known"}, {rule: quiet, reason: "gone"}, {rule: bad, reason: "no"}]`+"\n"), "m.yaml")
	var l diag.List
	l.Warningf("loud", diag.Pos{}, "", "one")
	l.Warningf("loud", diag.Pos{}, "", "two")
	l.Warningf("other", diag.Pos{}, "", "three")
	l.Errorf("bad", diag.Pos{}, "", "errors cannot be acknowledged")
	var got []string
	for _, x := range f.Acknowledge(l) {
		got = append(got, x.Severity.String()+" "+x.Rule+" "+x.Ack)
	}
	want := []string{"error bad ", "warning loud known", "warning loud known", "warning other ", "info acknowledge ", "info acknowledge "}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if l[0].Ack != "" {
		t.Error("the given list was changed")
	}
}

// TestAcknowledgeInVain: an acknowledgement that does nothing says which of the reasons there is.
func TestAcknowledgeInVain(t *testing.T) {
	f := load(t, files("m.yaml", base+`acknowledge: [{rule: quiet, reason: r}, {rule: bad, reason: r}, {rule: gone, reason: r}, {rule: quiet, role: leaf, reason: r}]`+"\n"), "m.yaml")
	var l diag.List
	l.Infof("quiet", diag.Pos{}, "", "one")
	l.Errorf("bad", diag.Pos{}, "", "two")
	var b strings.Builder
	for _, x := range f.Acknowledge(l) {
		if x.Rule == "acknowledge" {
			fmt.Fprintln(&b, x)
		}
	}
	want := `m.yaml:23:22: info: acknowledge: what the rule quiet finds is only info here and needs no acknowledgement
    hint: remove the acknowledgement
m.yaml:23:48: info: acknowledge: what the rule bad finds is an error here, and an error cannot be acknowledged
    hint: correct what it reports, and remove the acknowledgement
m.yaml:23:72: info: acknowledge: no warning of the rule gone was found
    hint: remove the acknowledgement, unless the finding comes and goes
m.yaml:23:97: info: acknowledge: no warning of the rule quiet about the role leaf alone was found
    hint: remove the acknowledgement, unless the finding comes and goes
`
	if d := cmp.Diff(want, b.String()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestAcknowledgeCrowd: acknowledgements that match nothing are told once, and do not slow each other down.
func TestAcknowledgeCrowd(t *testing.T) {
	f := load(t, files("m.yaml", base+"acknowledge:\n"+numbered("- {rule: quiet%d, reason: gone}\n", 100_000)+"- {rule: loud, reason: known}\n"), "m.yaml")
	got := f.Acknowledge(diag.List{{Rule: "loud", Severity: diag.Warning, Msg: "one"}})
	if got[0].Ack != "known" || got.Count(diag.Warning) != 0 {
		t.Errorf("the warning is not acknowledged: %+v", got[0])
	}
	const want = "99900 more acknowledgements match no warning"
	if n := got.Count(diag.Info); n != 101 || !slices.ContainsFunc(got, func(f diag.Finding) bool { return f.Msg == want }) {
		t.Errorf("%d infos, want 100 and %q", n, want)
	}
}

// TestAcknowledgeOne: an acknowledgement for a role or a device covers what is about that alone.
func TestAcknowledgeOne(t *testing.T) {
	f := load(t, files("m.yaml", base+`acknowledge: [{rule: loud, role: leaf, reason: "leaves"}, {rule: loud, device: spine1, reason: "spine"}]`+"\n"), "m.yaml")
	about := func(msg string, devices, roles []string) diag.Finding {
		return diag.Finding{Rule: "loud", Severity: diag.Warning, Msg: msg, Devices: devices, Roles: roles}
	}
	var got []string
	for _, x := range f.Acknowledge(diag.List{
		about("a", []string{"leaf1", "leaf2"}, []string{"leaf"}),
		about("b", []string{"leaf1", "spine1"}, []string{"leaf", "spine"}),
		about("c", []string{"spine1"}, []string{"spine"}),
		about("d", nil, nil),
	}) {
		got = append(got, x.Msg+" "+x.Ack)
	}
	if d := cmp.Diff([]string{"a leaves", "b ", "c spine", "d "}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestEveryLeafCounts: changing any value of a model that uses the whole schema changes the loaded Fabric. A leaf that
// nothing reads would be silence where a user expects an effect.
func TestEveryLeafCounts(t *testing.T) {
	f, l := Load(os.DirFS("testdata"), "full.yaml")
	if s := lines(l); s != "" {
		t.Fatal(s)
	}
	seen := map[string]bool{}
	type document struct {
		root   *node
		change func(docs *roots, to *node) // puts a changed root in its place
	}
	of := map[string][]document{
		"Fabric":    {{f.docs.fabric, func(docs *roots, to *node) { docs.fabric = to }}},
		"Inventory": {{f.docs.inventory, func(docs *roots, to *node) { docs.inventory = to }}},
	}
	for h, docs := range f.docs.profiles {
		of["Profile"] = append(of["Profile"], document{docs[0], func(docs *roots, to *node) {
			docs.profiles = maps.Clone(docs.profiles)
			docs.profiles[h] = []*node{to}
		}})
	}
	for _, kind := range kinds() {
		for _, doc := range of[kind] {
			for _, leaf := range leaves(schemaOf(kind), doc.root, "") {
				seen[kind+" "+leaf.Path] = true
				if leaf.Path == "kind" || leaf.Path == "apiVersion" || kind == "Profile" && leaf.Path == "metadata.name" {
					continue
				}
				docs := f.docs
				doc.change(&docs, change(doc.root, leaf.From.Pos))
				if leaf.Text == "rest" || leaf.Text == "off" {
					continue // the only word of its place
				}
				g, more := build(docs, false)
				if same := reflect.DeepEqual(strip(f), strip(g)); same && len(lines(more)) == 0 {
					t.Errorf("%s: %s is %q, and changing it changes nothing", kind, leaf.Path, leaf.Text)
				}
			}
		}
		walk(schemaOf(kind), "", func(sf *field, path, key string) {
			if sf.scalar == nil || sf.kids != nil || sf.list != nil || strings.Contains(path, "ROLE") {
				return
			}
			found := false
			for p := range seen {
				found = found || strings.HasPrefix(p, kind) && strings.HasSuffix(p, key)
			}
			if !found {
				t.Errorf("testdata/full.yaml does not use %s of %s", key, path)
			}
		})
	}
}

// strip is f without what is compared otherwise.
func strip(f *Fabric) Fabric {
	g := *f
	g.docs = roots{}
	return g
}

// change is a copy of the tree below n in which the scalar at pos has another value of its kind.
func change(n *node, pos diag.Pos) *node {
	r := *n
	if n.shape == scalarNode && n.pos() == pos {
		r.text = another(n.text)
	}
	r.items = nil
	for _, e := range n.items {
		r.items = append(r.items, change(e, pos))
	}
	r.pairs = n.with(0)
	for i := range r.keys {
		r.keys[i].kid = change(r.keys[i].kid, pos)
	}
	return &r
}

// another is a different text that still parses wherever s does.
func another(s string) string {
	for from, to := range map[string]string{"true": "false", "own": "ignore", "observe": "own", "drop": "alert", "auto": "3KB", "cnp": "", "active": "absent", "maintenance": "planned", "unused": "fabric"} {
		if s == from {
			return to
		}
	}
	i := strings.IndexAny(s, "0123456789")
	if i < 0 {
		return s + "x"
	}
	if s[i] == '1' {
		return s[:i] + "2" + s[i+1:]
	}
	return s[:i] + "1" + s[i+1:]
}
