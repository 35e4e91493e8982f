package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/drivers/lab/sonic"
)

// calls is what a verb asks of one switch.
type calls struct{ Dials, Caps, Gets, Sets int }

// A change costs each switch few calls, counted by the switch. Applying a plan file: a dial, whether there is a second
// ASIC, what the plan compares with, what the commit compares with, the Set, and over a new connection what came of it.
// Without a file, planning and the first commit are over one connection, and the commit compares all.
func TestCallsOfAChange(t *testing.T) {
	model := func(kmin string) string {
		return strings.NewReplacer("eos/7060x6", "sonic/sn5600", "800KB", kmin).Replace(trio)
	}
	b := newBench(t, model("800KB"))
	b.must(t, exitOK, "apply", "--yes", "--allow-disruptive")
	file := filepath.Join(b.dir, "plan.json")
	counted := func(verb string, want calls, do func()) {
		t.Helper()
		seen := func() map[string]calls {
			m := map[string]calls{}
			for _, d := range b.net.Devices {
				if s, ok := b.lab.Box(d.Name).(*sonic.Switch); ok {
					st := s.Stats()
					m[d.Name] = calls{st.Dials, st.Caps, st.Gets, st.Sets}
				}
			}
			return m
		}
		before := seen()
		do()
		for name, is := range seen() {
			was := before[name]
			got := calls{is.Dials - was.Dials, is.Caps - was.Caps, is.Gets - was.Gets, is.Sets - was.Sets}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("%s on %s (-want +got):\n%s", verb, name, d)
			}
		}
	}
	remodel := func(kmin string) { b.write(t, "fabric.yaml", model(kmin)) }
	remodel("900KB")
	counted("plan", calls{Dials: 1, Gets: 2}, func() { b.must(t, exitOK, "plan", "--out", file) })
	counted("apply of a file", calls{Dials: 2, Gets: 4, Sets: 1}, func() { b.must(t, exitOK, "apply", file) })
	counted("drift", calls{Dials: 1, Gets: 2}, func() { b.must(t, exitOK, "drift") })
	remodel("800KB")
	counted("plan and apply", calls{Dials: 2, Gets: 4, Sets: 1}, func() { b.must(t, exitOK, "apply", "--yes") })
	counted("second apply", calls{Dials: 1, Gets: 2}, func() { b.must(t, exitOK, "apply", "--yes") })
}
