package rollout

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/render"
)

// death ends every goroutine that passes the k-th point, and all points after it: to the disk and to the devices it
// is the same as kill -9, since each effect has a point before it. Deferred calls run, as the kernel would close
// files; they have no effects of their own.
type death struct {
	mu    sync.Mutex
	at    int // 0 = never
	n     int
	hit   string
	names map[string]int
	f     *fabric
}

func (d *death) point(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.n++
	d.names[name]++
	if d.hit == "" && d.n == d.at {
		d.hit = name
		for _, b := range d.f.boxes {
			b.mu.Lock()
			b.dead = true
			b.mu.Unlock()
		}
	}
	if d.hit != "" {
		runtime.Goexit()
	}
}

// doomed runs do in a goroutine that may die on the way, and returns the point of death, or "".
func (f *fabric) doomed(k int, names map[string]int, do func()) string {
	d := &death{at: k, names: names, f: f}
	f.e.Hook = d.point
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	<-done
	f.e.Hook = nil
	return d.hit
}

// after is a new process later: another engine over a copy of the state directory and the devices.
func (f *fabric) after(t testing.TB, pass time.Duration) *fabric {
	t.Helper()
	g := newFabric(stateDir(t))
	g.want, g.net, g.ids, g.now = f.want, f.net, f.ids+100, f.now.Add(pass)
	for n, b := range f.boxes {
		g.boxes[n] = b.clone()
	}
	d := f.e.Dialect("test")
	g.e.Dialect = func(string) *render.Dialect { return d }
	if err := os.CopyFS(g.e.StateDir, os.DirFS(f.e.StateDir)); err != nil {
		t.Fatal(err)
	}
	return g
}

type flavour struct {
	timer, saver, persists, guarded bool
}

func (v flavour) String() string {
	s := ""
	for _, x := range []struct {
		on   bool
		name string
	}{{v.timer, "timer"}, {v.saver, "saver"}, {v.persists, "persists"}, {v.guarded, "guarded"}} {
		if x.on {
			s += "+" + x.name
		}
	}
	return strings.TrimPrefix(s+"+", "+")
}

func (f *fabric) flavour(v flavour) {
	for _, b := range f.boxes {
		b.timer, b.saver, b.guarded = v.timer, v.saver, v.guarded
		b.caps = drivers.Caps{Confirm: v.timer, PersistsOnCommit: v.persists, Atomic: true}
	}
	if v.guarded {
		f.e.Lines = new(Lines)
	}
}

var flavours = []flavour{{}, {timer: true}, {saver: true}, {timer: true, saver: true}, {persists: true}, {persists: true, guarded: true}}

// stride samples the points with -short, for runs under the race detector.
func stride() int {
	if testing.Short() {
		return 5
	}
	return 1
}

// Death at each point, of a run that goes well and of one that fails in its second step and is taken back, then a
// resume of one copy and a rollback of another. Each ends in exactly the wanted or the old state, and says so.
func TestKillAtEveryPoint(t *testing.T) {
	hits := map[string]int{}
	table := map[string]int{}
	for _, v := range flavours {
		for _, failing := range []bool{false, true} {
			for k := 1; ; k += stride() {
				f := newFabric(stateDir(t), "s1", "h1")
				f.flavour(v)
				p := f.plan(t)
				if failing {
					f.boxes["s1"].onCommit = func(n int, cs []render.Change) fault {
						if n == 2 {
							return fault{keep: func(i int) bool { return i%2 == 0 }, after: errors.New("session lost")}
						}
						return fault{}
					}
				}
				hit := f.doomed(k, hits, func() { f.e.Apply(context.Background(), p, ApplyOptions{AllowDisruptive: true}) })
				if hit == "" {
					break
				}
				table[hit]++
				for _, expired := range []bool{false, true} {
					if expired && !v.timer {
						continue
					}
					name := fmt.Sprintf("%v failing=%v k=%d %s expired=%v", v, failing, k, hit, expired)
					f.checkAfterDeath(t, name, expired)
				}
			}
		}
	}
	for _, p := range Points() {
		if table[p] == 0 && !testing.Short() && p != "device.abort.before" && p != "device.abort.after" {
			t.Errorf("nothing ever died at %s", p)
		}
	}
	for _, p := range slices.Sorted(maps.Keys(table)) {
		t.Logf("%-24s %d deaths", p, table[p])
		if !slices.Contains(Points(), p) {
			t.Errorf("%s is not listed", p)
		}
	}
}

// checkAfterDeath resumes and rolls back copies of f, whose process died.
func (f *fabric) checkAfterDeath(t *testing.T, name string, expired bool) {
	t.Helper()
	for _, do := range []string{"resume", "rollback"} {
		g := f.after(t, time.Hour)
		if expired {
			for _, b := range g.boxes {
				b.expire()
			}
		}
		ctx := context.Background()
		run := g.e.Resume
		if do == "rollback" {
			run = g.e.Rollback
		}
		r, err := run(ctx, "run-1")
		if err != nil { // the run died before it was written down
			if errors.Is(err, os.ErrNotExist) || strings.Contains(err.Error(), "no device was touched") {
				g.mustHold(t, name+" "+do, false, nil)
				continue
			}
			t.Errorf("%s: %s: %v", name, do, err)
			continue
		}
		if code := ExitCode(r, err); code != 0 {
			t.Errorf("%s: %s: exit %d: %+v", name, do, code, r.Results)
		}
		g.mustHold(t, name+" "+do, do == "resume", r)
		g.checkQuiet(t, name+" "+do, do == "resume")
	}
}

// mustHold compares all boxes with the new or the old state, and what the run says with that.
func (f *fabric) mustHold(t *testing.T, name string, fresh bool, r *Run) {
	t.Helper()
	for n, b := range f.boxes {
		want := oldConfig()
		if fresh {
			want = f.wanted(n, want)
		}
		if !b.running.Equal(want) {
			t.Errorf("%s: %s runs\n%swant\n%s", name, n, text(b.running), text(want))
		}
		if (b.saver || b.caps.PersistsOnCommit) && !b.startup.Equal(want) {
			t.Errorf("%s: %s starts with\n%swant\n%s", name, n, text(b.startup), text(want))
		}
		if len(b.timed)+len(b.opened) > 0 {
			t.Errorf("%s: %s is left with transactions %v %v", name, n, b.timed, b.opened)
		}
		if b.unclosed != 0 {
			t.Errorf("%s: %s has %d connections open", name, n, b.unclosed)
		}
	}
	if r == nil {
		return
	}
	for _, x := range r.Results {
		ok := x.Outcome == Applied
		if !fresh {
			ok = x.Outcome == RolledBack || x.Outcome == Unchanged
		}
		if !ok {
			t.Errorf("%s: %s said to be %s (%s)", name, x.Device, x.Outcome, x.Message)
		}
	}
	if len(r.Results) != len(f.boxes) {
		t.Errorf("%s: %d results for %d devices", name, len(r.Results), len(f.boxes))
	}
}

// checkQuiet makes sure that the run is over: it lists as finished, the lease is free, doing the same again writes
// nothing, and a plan after a resume is empty.
func (f *fabric) checkQuiet(t *testing.T, name string, resumed bool) {
	t.Helper()
	runs, err := Runs(f.e.StateDir, f.now)
	if err != nil || len(runs) != 1 || runs[0].Status != Finished {
		t.Errorf("%s: runs %+v, %v", name, runs, err)
	}
	before := f.writes()
	again := f.e.Resume
	if !resumed {
		again = f.e.Rollback
	}
	if r, err := again(context.Background(), "run-1"); ExitCode(r, err) != 0 || f.writes() != before {
		t.Errorf("%s: once more: %d writes, %+v, %v", name, f.writes()-before, r, err)
	}
	if p := f.plan(t); p.Changes() == resumed {
		t.Errorf("%s: the plan afterwards has %d changes", name, p.Ops().Total())
	}
}

func (f *fabric) writes() int {
	n := 0
	for _, b := range f.boxes {
		n += b.writes
	}
	return n
}

func (f *fabric) plan(t testing.TB) *Plan {
	t.Helper()
	p, err := f.e.Plan(context.Background(), f.net, PlanOptions{Model: "digest"})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A resume and a rollback can be killed like the run itself.
func TestKillAgain(t *testing.T) {
	v := flavour{timer: true, saver: true}
	at := map[string]int{}
	for _, first := range []string{"device.commit.after", "device.confirm.before", "device.save.after"} {
		// Bring a run to its death at the first point of that name.
		k := 0
		f := newFabric("")
		for k = 1; ; k++ {
			f = newFabric(stateDir(t), "s1", "h1")
			f.flavour(v)
			p := f.plan(t)
			if f.doomed(k, map[string]int{}, func() { f.e.Apply(context.Background(), p, ApplyOptions{AllowDisruptive: true}) }) == first {
				break
			}
		}
		for _, do := range []string{"resume", "rollback"} {
			for k := 1; ; k += stride() {
				g := f.after(t, time.Hour)
				hit := g.doomed(k, map[string]int{}, func() {
					if do == "resume" {
						g.e.Resume(context.Background(), "run-1")
					} else {
						g.e.Rollback(context.Background(), "run-1")
					}
				})
				if hit == "" {
					break
				}
				at[hit]++
				g.checkAfterDeath(t, fmt.Sprintf("died at %s, %s died at %d %s", first, do, k, hit), false)
			}
		}
	}
	for _, p := range []string{"device.abort.before", "device.abort.after", "undo.commit.before", "undo.commit.after", "lease.fsync.before"} {
		if at[p] == 0 && !testing.Short() {
			t.Errorf("nothing ever died at %s", p)
		}
	}
}

// A journal torn at any byte, which death in the middle of a write leaves, loses nothing.
func TestTornJournal(t *testing.T) {
	f := newFabric(stateDir(t), "s1")
	f.flavour(flavour{saver: true})
	p := f.plan(t)
	if hit := f.doomed(13, map[string]int{}, func() { f.e.Apply(context.Background(), p, ApplyOptions{AllowDisruptive: true}) }); hit == "" {
		t.Fatal("no death")
	}
	path := runPath(f.e.StateDir, "run-1")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	last := strings.LastIndex(strings.TrimSuffix(string(b), "\n"), "\n") + 1
	for cut := last + 1; cut < len(b); cut += 7 {
		if err := os.WriteFile(filepath.Clean(path), b[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		f.checkAfterDeath(t, fmt.Sprintf("journal cut at %d of %d", cut, len(b)), false)
	}
}
