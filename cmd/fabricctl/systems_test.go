package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/profiles"
	"github.com/fabricctl/fabricctl/render"
)

// TestEverySystem takes each operating system that has a dialect the whole way: planned, applied, nothing left, a second
// apply without a write, and rolled back to what was. It fails while a system's platform, transport or emulator is
// missing, and needs no list of them.
func TestEverySystem(t *testing.T) {
	catalog, err := profiles.Default()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range render.Dialects() {
		t.Run(d.OS, func(t *testing.T) {
			i := slices.IndexFunc(catalog.Names(), func(name string) bool {
				p, _ := catalog.Platform(name)
				return strings.HasPrefix(name, d.OS+"/") && p.Iface != "" && p.Speed >= 400*units.Gbps // as the model's links are
			})
			model := trio // which has a host
			switch {
			case i >= 0:
				model = strings.NewReplacer("eos/7060x6", catalog.Names()[i], "400Gbps", "100Gbps").Replace(trio) // which every platform has
			case d.OS != "linux":
				t.Fatalf("no platform %s/… with a pattern of interface names", d.OS)
			}
			b := newUsedBench(t, model)
			old := b.config(t)
			b.must(t, exitChanges, "plan", "--detailed-exitcode")
			r := b.must(t, exitOK, "apply", "--yes", "--allow-disruptive")
			b.must(t, exitOK, "plan", "--detailed-exitcode")
			n := b.writes()
			b.must(t, exitOK, "apply", "--yes", "--allow-disruptive")
			if now := b.writes(); now != n {
				t.Errorf("a second apply writes %d times", now-n)
			}
			_, id, _ := strings.Cut(r.out, "run ")
			b.must(t, exitOK, "runs", "rollback", strings.Fields(id)[0])
			if now := b.config(t); now != old {
				t.Errorf("rolled back to\n%s\nwas\n%s", now, old)
			}
		})
	}
}
