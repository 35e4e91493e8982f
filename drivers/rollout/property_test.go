package rollout

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/model/journal"
	"github.com/fabricctl/fabricctl/render"
)

// anyConfig draws a configuration of one device, owned and foreign. What a port names exists, and p3, which is foreign,
// names nothing of ours: an object that is still used stays, and that is tested by itself.
func anyConfig(t *rapid.T, name string) render.Config {
	var lines []string
	used := map[string]bool{}
	for _, p := range []string{"p1", "p2", "p3"} {
		lines = append(lines, "port "+p+" -")
		if v := rapid.SampledFrom([]string{"", "1500", "9000", "4000"}).Draw(t, name+" mtu"); v != "" {
			lines = append(lines, "port "+p+" mtu "+v)
		}
		profiles := []string{"", "theirs", "ours-a", "ours-b"}
		if p == "p3" {
			profiles = profiles[:2]
		}
		if v := rapid.SampledFrom(profiles).Draw(t, name+" profile"); v != "" {
			used[v] = true
			lines = append(lines, "port "+p+" profile "+v)
		}
		if v := rapid.SampledFrom([]string{"", "200", "400"}).Draw(t, name+" watch"); v != "" {
			lines = append(lines, "watch "+p+" time "+v)
		}
	}
	for _, o := range []string{"ours-a", "ours-b"} {
		if used[o] || rapid.Bool().Draw(t, name+" object") {
			lines = append(lines, "prof "+o+" -", "prof "+o+" kmin "+rapid.SampledFrom([]string{"55", "100", "105", "300"}).Draw(t, name+" kmin"))
		}
	}
	return conf(lines...)
}

// trouble is what happens to a box, by the number of the operation.
type trouble struct {
	commit map[int]string
	open   map[int]bool
	read   map[int]bool
	save   map[int]string
	conf   map[int]string
	abort  map[int]string
}

func anyTrouble(t *rapid.T) trouble {
	many := func(what string, kinds ...string) map[int]string {
		return rapid.MapOfN(rapid.IntRange(1, 6), rapid.SampledFrom(kinds), 0, 3).Draw(t, what)
	}
	some := func(what string) map[int]bool {
		return rapid.MapOfN(rapid.IntRange(2, 20), rapid.Just(true), 0, 3).Draw(t, what)
	}
	return trouble{
		commit: many("commit", "refuse", "after", "half", "half+error", "none", "expire"), open: some("open"), read: some("read"),
		save: many("save", "error", "none"), conf: many("confirm", "error", "none", "done+error", "expire"), abort: many("abort", "error", "done+error", "none"),
	}
}

func (x trouble) rig(b *box) {
	lost := errors.New(b.name + ": connection reset")
	b.onCommit = func(n int, _ []render.Change) fault {
		switch x.commit[n] {
		case "refuse":
			return fault{before: lost}
		case "after":
			return fault{after: lost}
		case "half":
			return fault{keep: func(i int) bool { return (i+n)%2 == 0 }}
		case "half+error":
			return fault{keep: func(i int) bool { return (i+n)%2 == 0 }, after: lost}
		case "none":
			return fault{keep: func(int) bool { return false }}
		case "expire":
			return fault{then: (*box).expire}
		}
		return fault{}
	}
	b.onOpen = func(n int) error {
		if x.open[n] {
			return lost
		}
		return nil
	}
	b.onRead = func(n int) error {
		if x.read[n] {
			return lost
		}
		return nil
	}
	nth := func(m map[int]string) func() (bool, error) {
		n := 0
		return func() (bool, error) {
			n++
			switch m[n] {
			case "error":
				return true, lost
			case "none":
				return true, nil
			case "done+error":
				return false, lost
			case "expire":
				b.expire()
			}
			return false, nil
		}
	}
	b.onSave = nth(x.save)
	conf, abort := nth(x.conf), nth(x.abort)
	b.onConf = func(drivers.TxID) (bool, error) { return conf() }
	b.onAbort = func(drivers.TxID) (bool, error) { return abort() }
}

// Whatever the configurations and the faults: what is said of a device is what it holds, and when the faults are over
// a resume ends in the wanted state and a rollback in the old one.
func TestOutcomesAreTrue(t *testing.T) {
	root := stateDir(t)
	seen := map[string]int{}
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		f := newFabric(fmt.Sprintf("%s/%d", root, n), "s1", "s2", "h1")
		f.e.Parallel = rapid.IntRange(1, 3).Draw(rt, "parallel")
		f.flavour(rapid.SampledFrom(flavours).Draw(rt, "flavour"))
		old := map[string]render.Config{}
		for name, b := range f.boxes {
			b.running = append(anyConfig(rt, "old "+name), conf("other thing a 1")...).Sorted()
			b.startup = b.running
			old[name] = b.running
			f.want[name] = anyConfig(rt, "want "+name)
		}
		p := f.plan(t)
		for _, name := range []string{"s1", "s2", "h1"} {
			f.boxes[name].opens, f.boxes[name].reads = 0, 0
			anyTrouble(rt).rig(f.boxes[name])
		}
		died := ""
		if k := rapid.IntRange(0, 80).Draw(rt, "death"); k > 0 {
			died = f.doomed(k, map[string]int{}, func() { f.e.Apply(context.Background(), p, leave) })
		}
		if died == "" {
			if f.ids == 0 {
				f.e.Apply(context.Background(), p, leave)
			}
			f.checkClaims(rt, seen, old)
		}
		if f.ids == 0 { // nothing to change
			return
		}
		for _, do := range []string{"resume", "rollback"} {
			g := f.after(t, time.Hour)
			run := g.e.Resume
			if do == "rollback" {
				run = g.e.Rollback
			}
			r, err := run(context.Background(), "run-1")
			if err != nil {
				if !errors.Is(err, os.ErrNotExist) && !strings.Contains(err.Error(), "no device was touched") {
					rt.Fatalf("%s after %q: %v", do, died, err)
				}
				continue
			}
			g.checkEnd(rt, do+" after death at "+died, r, do == "resume", old)
		}
	})
	t.Logf("outcomes seen: %v", seen)
}

// checkClaims compares what the last run says with what the boxes hold.
func (f *fabric) checkClaims(t *rapid.T, seen map[string]int, old map[string]render.Config) {
	runs, err := Runs(f.e.StateDir, f.now)
	if err != nil {
		t.Fatal(err)
	}
	if len(runs) == 0 {
		return
	}
	h, err := Show(f.e.StateDir, runs[0].ID, f.now)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range h.Attempts[0].Results {
		b := f.boxes[x.Device]
		seen[string(x.Outcome)]++
		isOld, isNew := b.running.Equal(old[x.Device]), f.asWanted(x.Device, old[x.Device])
		switch x.Outcome {
		case Unchanged, RolledBack:
			if !isOld || len(b.timed) > 0 {
				t.Fatalf("%s said to be %s (%s) runs\n%swas\n%s", x.Device, x.Outcome, x.Message, text(b.running), text(old[x.Device]))
			}
		case Applied:
			if !isNew || len(b.timed) > 0 {
				t.Fatalf("%s said to be applied runs\n%s", x.Device, text(b.running))
			}
			if b.saver && !b.startup.Equal(b.running) {
				t.Fatalf("%s said to be applied is not saved", x.Device)
			}
		case NeedsHands:
			if isOld && len(b.timed) == 0 && b.startup.Equal(b.running) {
				t.Fatalf("%s said to need hands is as before: %s", x.Device, x.Message)
			}
		}
		if x.Outcome != Applied && x.Message == "" {
			t.Fatalf("%s is %s without a word", x.Device, x.Outcome)
		}
	}
}

// asWanted compares by value, as a plan would.
func (f *fabric) asWanted(name string, old render.Config) bool {
	d := f.e.Dialect("test")
	return len(render.Diff(d, render.Facts{}, f.boxes[name].running, f.wanted(name, old))) == 0
}

// checkEnd wants all devices in the new or in the old state, and said to be.
func (f *fabric) checkEnd(t *rapid.T, name string, r *Run, fresh bool, old map[string]render.Config) {
	if ExitCode(r, nil) != 0 {
		t.Fatalf("%s: exit %d: %+v", name, ExitCode(r, nil), r.Results)
	}
	for n, b := range f.boxes {
		if ok := fresh && f.asWanted(n, old[n]) || !fresh && b.running.Equal(old[n]); !ok || len(b.timed) > 0 {
			t.Fatalf("%s: %s runs\n%swas\n%swant\n%s", name, n, text(b.running), text(old[n]), text(f.want[n]))
		}
		if b.saver && !b.startup.Equal(b.running) {
			t.Fatalf("%s: %s is not saved", name, n)
		}
		if i := slices.IndexFunc(r.Results, func(x Result) bool { return x.Device == n }); fresh && i < 0 {
			t.Fatalf("%s: nothing is said of %s", name, n)
		}
	}
	if l, err := journal.ReadLease(journal.LeasePath(LeasesDir(f.e.StateDir), "pod1")); err != nil || l.Free == "" {
		t.Fatalf("%s: lease %+v, %v", name, l, err)
	}
}
