package model

import (
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// spliceHead is a model but for its classes, whose lines begin behind it.
const spliceHead = `apiVersion: fabricctl/v1
kind: Fabric
metadata: {name: pod1}
topology:
  devices: [{name: leaf1, role: leaf, platform: sonic/sn5600}]
mtu: {fabric: 9216B, host: 9000B}
`

const spliceNote = "tuned 2026-11-30: +4.1 % J (2.9 to 5.3, 99 %), 20 pairs, run R"

// TestSplice: what is written, and what stays, in every way that models are written.
func TestSplice(t *testing.T) {
	const rest = "  - {name: cnp, role: cnp, dscp: [48], priority: 6, scheduling: strict}\n  - {name: default, dscp: rest, priority: 0}\n"
	training := func(lines string) string {
		return spliceHead + "classes:\n  - name: training\n    dscp: [26]\n    priority: 3\n    lossless: true\n" + lines + rest
	}
	ramp := Patch{{"classes.training.ecn.kmin", "640KB"}, {"classes.training.ecn.kmax", "2MB"}, {"classes.training.ecn.pmax", "100%"}}
	alpha := Patch{{"classes.training.pfc.xoff.alpha", "1/8"}}
	override := Patch{{"overrides.leaf.classes.training.ecn.kmax", "2MB"}, {"overrides.leaf.classes.training.pfc.xoff.alpha", "1/8"}}
	for _, c := range []struct {
		name     string
		in, want map[string]string // the files that change in want
		patch    Patch
	}{
		{
			"in braces, each in its own quotes",
			map[string]string{"m.yaml": training("    ecn: {kmin: 0.8MB, kmax: \"3200KB\" , pmax: '20%'} # by hand\n    pfc: {xoff: {alpha: 1/2}, headroom: auto, xon: auto}\n")},
			map[string]string{"m.yaml": training("    # " + spliceNote + "\n    ecn: {kmin: 640KB, kmax: \"2MB\" , pmax: '100%'} # by hand\n    pfc: {xoff: {alpha: 1/8}, headroom: auto, xon: auto}\n")},
			append(slices.Clone(ramp), alpha...),
		},
		{
			"line by line, an earlier note replaced",
			map[string]string{"m.yaml": training("    ecn:\n      # why\n      kmin: 800KB   # low\n\n      # tuned 2025-01-01: older\n      kmax: 3200KB\n      pmax: 1%\n    pfc: {xoff: {alpha: 1/2}, headroom: auto, xon: auto}\n")},
			map[string]string{"m.yaml": training("    ecn:\n      # why\n      # " + spliceNote + "\n      kmin: 640KB   # low\n\n      # " + spliceNote + "\n      kmax: 2MB\n      pmax: 100%\n    pfc: {xoff: {alpha: 1/2}, headroom: auto, xon: auto}\n")},
			ramp,
		},
		{
			"a value that is there in other words is left alone",
			map[string]string{"m.yaml": training("    ecn: {kmin: 0.64MB, kmax: 2000KB, pmax: 20%}\n    pfc: {xoff: {alpha: 1/2}, headroom: auto, xon: auto}\n")},
			map[string]string{"m.yaml": training("    # " + spliceNote + "\n    ecn: {kmin: 0.64MB, kmax: 2000KB, pmax: 100%}\n    pfc: {xoff: {alpha: 1/2}, headroom: auto, xon: auto}\n")},
			ramp,
		},
		{"nothing to do", map[string]string{"m.yaml": training("    ecn: {kmin: 0.64MB, kmax: 2000KB, pmax: 100%}\n    pfc: {xoff: {alpha: 1/2}, headroom: auto, xon: auto}\n")}, map[string]string{}, ramp},
		{
			"a mapping that is new, and a single value for a mapping",
			map[string]string{"m.yaml": training("    pfc: {xoff: {alpha: 1/2}, headroom: auto, xon: auto}\n")},
			map[string]string{"m.yaml": training("    # " + spliceNote + "\n    ecn: {kmin: 640KB, kmax: 2MB, pmax: 100%}\n    pfc: {xoff: 128KB, headroom: auto, xon: auto}\n")},
			append(slices.Clone(ramp), Edit{"classes.training.pfc.xoff", "128KB"}),
		},
		{
			"overrides that are new, behind the last line that has no end",
			map[string]string{"m.yaml": strings.TrimSuffix(training("    ecn: {kmin: 1KB, kmax: 2KB, pmax: 1%}\n    pfc: {xoff: {alpha: 1/2}, headroom: auto, xon: auto}\n"), "\n")},
			map[string]string{"m.yaml": training("    ecn: {kmin: 1KB, kmax: 2KB, pmax: 1%}\n    pfc: {xoff: {alpha: 1/2}, headroom: auto, xon: auto}\n") +
				"# " + spliceNote + "\noverrides:\n  leaf:\n    classes:\n      - name: training\n        ecn: {kmax: 2MB}\n        pfc:\n          xoff: {alpha: 1/8}"},
			override,
		},
		{
			"into overrides and lists in braces",
			map[string]string{"m.yaml": training("    ecn: {kmin: 1KB, kmax: 2KB, pmax: 1%}\n    pfc: {xoff: {alpha: 1/2}, headroom: auto, xon: auto}\n") + "overrides: {leaf: {classes: [{name: default, weight: 3}, ], devices: {}}} # ours\n"},
			map[string]string{"m.yaml": training("    ecn: {kmin: 1KB, kmax: 2KB, pmax: 1%}\n    pfc: {xoff: {alpha: 1/2}, headroom: auto, xon: auto}\n") +
				"# " + spliceNote + "\noverrides: {leaf: {classes: [{name: default, weight: 3}, {name: training, ecn: {kmax: 2MB}, pfc: {xoff: {alpha: 1/8}}}, ], devices: {leaf1: {classes: [{name: training, ecn: {kmax: 3MB}}]}}}} # ours\n"},
			append(slices.Clone(override), Edit{"overrides.leaf.devices.leaf1.classes.training.ecn.kmax", "3MB"}),
		},
		{
			"the layer that wins, and beside the neighbour that wins",
			map[string]string{
				"m.yaml":    training("    ecn: {kmin: 1KB, kmax: 2KB, pmax: 1%}\n    pfc: {xoff: {alpha: 1/2}}\n"),
				"site.yaml": "# site\napiVersion: fabricctl/v1\nkind: Fabric\nclasses:\n- ecn: {kmax: 3MB}\n  pfc:\n    headroom: 40KB\n    # last\n  name: training\n",
			},
			map[string]string{
				"m.yaml":    training("    # " + spliceNote + "\n    ecn: {kmin: 640KB, kmax: 2KB, pmax: 100%}\n    pfc: {xoff: {alpha: 1/2}}\n"),
				"site.yaml": "# site\napiVersion: fabricctl/v1\nkind: Fabric\nclasses:\n# " + spliceNote + "\n- ecn: {kmax: 2MB}\n  pfc:\n    headroom: 40KB\n    # " + spliceNote + "\n    xon: 10KB\n    # last\n  name: training\n",
			},
			append(slices.Clone(ramp), Edit{"classes.training.pfc.xon", "10KB"}),
		},
		{
			"line ends of Windows, a byte order mark, another document before",
			map[string]string{"m.yaml": "\ufeff" + strings.ReplaceAll("apiVersion: fabricctl/v1\nkind: Inventory\n--- # ümlaut\n"+training("    ecn: {kmin: 1KB, kmax: 2KB, pmax: 1%}\n    pfc:\n      xoff:\n        alpha: 1/2\n      headroom: auto\n      xon: auto\n"), "\n", "\r\n")},
			map[string]string{"m.yaml": "\ufeff" + strings.ReplaceAll("apiVersion: fabricctl/v1\nkind: Inventory\n--- # ümlaut\n"+training("    # "+spliceNote+"\n    ecn: {kmin: 640KB, kmax: 2MB, pmax: 100%}\n    pfc:\n      xoff:\n        # "+spliceNote+"\n        alpha: 1/8\n      headroom: auto\n      xon: auto\n"), "\n", "\r\n")},
			append(slices.Clone(ramp), alpha...),
		},
		{
			"an anchor that nobody uses, in braces over two lines",
			map[string]string{"m.yaml": training("    ecn: {kmin: &k 1KB, kmax: 2KB, \"pmax\":\n      1%}\n    pfc: {xoff: {alpha: 1/2}, headroom: auto, xon: auto}\n")},
			map[string]string{"m.yaml": training("    # " + spliceNote + "\n    ecn: {kmin: &k 640KB, kmax: 2MB, \"pmax\":\n      # " + spliceNote + "\n      100%}\n    pfc: {xoff: {alpha: 1/2}, headroom: auto, xon: auto}\n")},
			ramp,
		},
		{
			"a line that begins in quotes has no room for a note",
			map[string]string{"m.yaml": strings.Replace(training("    ecn: {kmin: 1KB, kmax: 2KB, pmax: 1%}\n    pfc: {xoff: {alpha: 1/2}, headroom: auto, xon: auto}\n"), "fabric: 9216B", "fabric: \"9216\\\n  B\"", 1)},
			map[string]string{"m.yaml": strings.Replace(training("    ecn: {kmin: 1KB, kmax: 2KB, pmax: 1%}\n    pfc: {xoff: {alpha: 1/2}, headroom: auto, xon: auto}\n"), "fabric: 9216B, host: 9000B", "fabric: \"9216\\\n  B\", host: 8000B", 1)},
			Patch{{"mtu.host", "8000B"}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			layers := slices.Sorted(maps.Keys(c.in))
			got, l := Splice(onDisk(c.in), layers, c.patch, spliceNote)
			if s := lines(l); s != "" {
				t.Fatal(s)
			}
			after := map[string]string{}
			for _, f := range got {
				after[f.File] = string(f.After)
				if string(f.Before) != c.in[f.File] {
					t.Errorf("%s before is not what it was", f.File)
				}
			}
			if d := cmp.Diff(c.want, after); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
		})
	}
}

func onDisk(files map[string]string) fs.FS {
	m := fstest.MapFS{}
	for name, s := range files {
		m[name] = &fstest.MapFile{Data: []byte(s)}
	}
	return m
}

// TestSpliceRefused: what would change something else too is left alone, and words say why and what to write.
func TestSpliceRefused(t *testing.T) {
	const rest = "  - {name: cnp, role: cnp, dscp: [48], priority: 6, scheduling: strict}\n  - {name: default, dscp: rest, priority: 0}\n"
	for _, c := range []struct{ class, want string }{
		{
			"  - {name: a, dscp: [26], priority: 3, lossless: true, ecn: &r {kmin: 1KB, kmax: 2KB, pmax: 1%}}\n  - {name: b, dscp: [27], priority: 4, lossless: true, ecn: *r}\n",
			"m.yaml:8:82: error: splice: classes.a.ecn.kmax cannot be written here: it stands in the anchor &r, which other places use too\n    m.yaml:9:61: used here\n    hint: change it by hand: kmax: 1500B",
		},
		{
			"  - {name: a, dscp: [26], priority: 3, lossless: true, ecn: {<<: &r {kmin: 1KB, pmax: 1%}, kmax: &k 2KB}}\n  - {name: b, dscp: [27], priority: 4, lossless: true, ecn: {<<: *r, kmax: *k}}\n",
			"it stands in the anchor &k",
		},
		{
			"  - {name: a, dscp: [26], priority: 3, lossless: true, ecn: {kmin: 1KB, kmax: \"\\\n    2KB\", pmax: 1%}}\n",
			"is written over several lines",
		},
	} {
		in := spliceHead + "classes:\n" + c.class + rest
		got, l := Splice(onDisk(map[string]string{"m.yaml": in}), []string{"m.yaml"}, Patch{{"classes.a.ecn.kmax", "1.5KB"}}, spliceNote)
		if s := lines(l); !strings.Contains(s, c.want) || got != nil {
			t.Errorf("%s\n%v, want %s", s, got, c.want)
		}
	}
	if _, l := Splice(onDisk(map[string]string{"m.yaml": "x"}), []string{"m.yaml"}, nil, ""); !l.HasErrors() {
		t.Error("a model that cannot be read was spliced")
	}
	if _, l := Splice(onDisk(map[string]string{"m.yaml": spliceHead + "classes:\n" + rest}), []string{"m.yaml"}, Patch{{"classes.a.ecn.kmax", "1.5KB"}}, ""); !strings.Contains(lines(l), "there is no a") {
		t.Errorf("a patch that does not fit: %s", lines(l))
	}
}

// TestSpliceEveryLeaf: each single value of each example can be changed in its text, and nothing but the line that holds it changes.
func TestSpliceEveryLeaf(t *testing.T) {
	for _, m := range []struct {
		fsys   fs.FS
		layers []string
	}{
		{os.DirFS("../examples"), []string{"small/fabric.yaml", "small/inventory.yaml"}},
		{os.DirFS("../examples"), []string{"three-tier"}},
		{os.DirFS("../examples"), []string{"rail8"}},
		{os.DirFS("../examples"), []string{"mixed"}},
		{os.DirFS("../examples"), []string{"storage-and-training"}},
		{os.DirFS("testdata"), []string{"full.yaml"}},
	} {
		f, l := Load(m.fsys, m.layers...)
		if l.HasErrors() {
			t.Fatal(lines(l))
		}
		tried := 0
		all := slices.DeleteFunc(f.Leaves(), func(l Leaf) bool { return strings.HasSuffix(l.Path, "name") }) // a name may stand in several documents
		for i, leaf := range all {
			if i%(1+len(all)/60) != 0 && !strings.HasPrefix(leaf.Path, "classes") {
				continue // so many of a large model will do
			}
			patch := Patch{{leaf.Path, another(leaf.Text)}}
			if g, l := f.With(patch); l.HasErrors() || g.Digest() == f.Digest() {
				continue // not a value of this place, or a place that no patch reaches
			}
			tried++
			got, l := Splice(m.fsys, m.layers, patch, spliceNote)
			if len(lines(l)) > 0 || len(got) != 1 {
				t.Errorf("%s: %d files, %s", leaf.Path, len(got), lines(l))
				continue
			}
			before, after := strings.Split(string(got[0].Before), "\n"), strings.Split(string(got[0].After), "\n")
			at := leaf.From.Pos.Line - 1
			if !strings.HasSuffix(after[at], "# "+spliceNote) || !slices.Equal(slices.Delete(slices.Clone(after), at, at+2), slices.Delete(slices.Clone(before), at, at+1)) {
				t.Errorf("%s: more than its line changed:\n%s", leaf.Path, cmp.Diff(before, after))
			}
		}
		if tried < 10 {
			t.Errorf("%v: only %d values were tried", m.layers, tried)
		}
	}
}

// FuzzSplice: whatever the text, what was spliced says what the patch says, or it is refused.
func FuzzSplice(f *testing.F) {
	const rest = "  - {name: cnp, role: cnp, dscp: [48], priority: 6, scheduling: strict}\n  - {name: default, dscp: rest, priority: 0}\n"
	for _, class := range []string{
		"  - {name: training, dscp: [26], priority: 3, lossless: true, ecn: {kmin: 1KB, kmax: 2KB, pmax: 1%}}\n",
		"  - name: training\n    dscp: [26]\n    priority: 3\n    # why\n    ecn: &a\n      kmin: '1KB'\n      kmax: \"2KB\" # x\r\n    pfc: {xoff: {alpha: 1/2}, }\n",
	} {
		f.Add(spliceHead+"classes:\n"+class+rest, "classes.training.ecn.kmax", "1.5KB")
		f.Add(spliceHead+"classes:\n"+class+rest, "overrides.leaf.classes.training.pfc.xoff.alpha", "1/8")
	}
	f.Fuzz(func(t *testing.T, text, path, value string) {
		fsys := onDisk(map[string]string{"m.yaml": text})
		before, l := Load(fsys, "m.yaml")
		if l.HasErrors() {
			return
		}
		want, l := before.With(Patch{{path, value}})
		if l.HasErrors() {
			return
		}
		got, l := Splice(fsys, []string{"m.yaml"}, Patch{{path, value}}, spliceNote)
		if l.HasErrors() {
			return
		}
		if len(got) == 1 {
			fsys = onDisk(map[string]string{"m.yaml": string(got[0].After)})
		}
		if after, l := Load(fsys, "m.yaml"); l.HasErrors() || after.Digest() != want.Digest() {
			t.Errorf("%q of %s became\n%s\n%s", value, path, got[0].After, lines(l))
		}
	})
}

// TestSpliceOverrides: an override that is new finds its place in each example, for a role, a device and a port, and no line but the one that grows changes.
func TestSpliceOverrides(t *testing.T) {
	for _, layers := range [][]string{{"small/fabric.yaml"}, {"three-tier"}, {"rail8"}, {"mixed"}, {"storage-and-training"}, {"bench-ap"}} {
		fsys := os.DirFS("../examples")
		f, l := Load(fsys, layers...)
		if l.HasErrors() {
			t.Fatal(lines(l))
		}
		d := f.Devices[slices.IndexFunc(f.Devices, func(d Device) bool { return d.Role == "leaf" })]
		for _, at := range []string{d.Role, d.Role + ".devices." + d.Name, d.Role + ".devices." + d.Name + ".ports." + d.Ports[0].Name} {
			for _, c := range f.Classes {
				if !c.Lossless.V {
					continue
				}
				where := "overrides." + at + ".classes." + c.Name
				got, l := Splice(fsys, layers, Patch{{where + ".ecn.kmin", "111KB"}, {where + ".ecn.kmax", "222KB"}, {where + ".pfc.xoff.alpha", "1/16"}}, spliceNote)
				if l.HasErrors() || len(got) != 1 {
					t.Fatalf("%v %s: %d files, %s", layers, where, len(got), lines(l))
				}
				after := strings.Split(string(got[0].After), "\n")
				gone := slices.DeleteFunc(strings.Split(string(got[0].Before), "\n"), func(line string) bool { return slices.Contains(after, line) })
				if len(gone) > 1 || len(gone) == 1 && !strings.Contains(gone[0], "{") || strings.Count(string(got[0].After), "# "+spliceNote) != 1 { // one in braces may grow
					t.Errorf("%v %s: more changed than was added:\n%s", layers, where, cmp.Diff(string(got[0].Before), string(got[0].After)))
				}
			}
		}
	}
}
