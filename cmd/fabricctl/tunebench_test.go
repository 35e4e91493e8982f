package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/drivers/lab/eos"
	"github.com/fabricctl/fabricctl/drivers/lab/host"
	"github.com/fabricctl/fabricctl/drivers/lab/sonic"
	"github.com/fabricctl/fabricctl/drivers/rollout"
	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/tuning"
)

// tuner is an app that reaches the lab, with its model, and what it says.
func (b *bench) tuner(t testing.TB) (*app, loaded, *bytes.Buffer) {
	t.Helper()
	a, m, said := b.tunerOf(t)
	if err := m.refused(); err != nil {
		t.Fatal(err, m.findings)
	}
	return a, m, said
}

// tunerOf is tuner of a model that may have errors.
func (b *bench) tunerOf(t testing.TB) (*app, loaded, *bytes.Buffer) {
	t.Helper()
	sys := quiet()
	var said bytes.Buffer
	sys.err = &said
	a := &app{sys: sys, log: slog.New(slog.DiscardHandler), stateDir: filepath.Join(b.dir, "state"), parallel: 8}
	for i := 1; i < len(b.layers); i += 2 {
		a.fabric = append(a.fabric, b.layers[i])
	}
	m, err := a.load(t.Context(), a.fabric)
	if err != nil {
		t.Fatal(err)
	}
	return a, m, &said
}

// applied is a lab whose devices hold its model, after another life.
func applied(t *testing.T, model string) *bench {
	t.Helper()
	b := newUsedBench(t, model)
	b.must(t, exitOK, "apply", "--yes", "--allow-disruptive")
	return b
}

// open opens a bench, which is to work.
func (b *bench) open(t *testing.T, id string) *tuneBench {
	t.Helper()
	a, m, _ := b.tuner(t)
	x, err := a.openBench(t.Context(), m, id, benchOptions{Persist: true})
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// same wants the devices to hold old, to the byte.
func (b *bench) same(t *testing.T, old, when string) {
	t.Helper()
	if d := cmp.Diff(old, b.config(t)); d != "" {
		t.Errorf("%s (-baseline +now):\n%s", when, d)
	}
}

func patchOf(path, value string) model.Patch { return model.Patch{{Path: path, Value: value}} }

func kmax(value string) model.Patch { return patchOf("classes.training.ecn.kmax", value) }

// gate stands before a device and can shut it off, as a cut cable or a lost machine does.
type gate struct {
	to string

	mu    sync.Mutex
	shut  bool
	conns map[net.Conn]bool
}

// gated puts a gate before each device, and has the inventory lead there.
func (b *bench) gated(t *testing.T) map[string]*gate {
	t.Helper()
	gates := map[string]*gate{}
	inventory, err := os.ReadFile(b.lab.Inventory)
	if err != nil {
		t.Fatal(err)
	}
	hosts, err := os.ReadFile(filepath.Join(filepath.Dir(b.lab.Inventory), "known_hosts"))
	if err != nil {
		t.Fatal(err)
	}
	known := string(hosts)
	parts := regexp.MustCompile(`(?m)^  (\w+):\n`).FindAllStringSubmatchIndex(string(inventory), -1)
	out := string(inventory[:parts[0][0]])
	for i, at := range parts {
		end := len(inventory)
		if i+1 < len(parts) {
			end = parts[i+1][0]
		}
		text := string(inventory[at[0]:end])
		port := regexp.MustCompile(`\{port: (\d+)`).FindStringSubmatch(text)[1]
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = ln.Close() })
		_, mine, _ := net.SplitHostPort(ln.Addr().String())
		g := &gate{to: "127.0.0.1:" + port, conns: map[net.Conn]bool{}}
		go g.serve(ln)
		t.Cleanup(func() { g.set(true) })
		out += strings.Replace(text, "{port: "+port, "{port: "+mine, 1)
		known = strings.Replace(known, "]:"+port+" ", "]:"+mine+" ", 1)
		gates[string(inventory[at[2]:at[3]])] = g
	}
	b.write(t, "lab/inventory.yaml", out)
	b.write(t, "lab/known_hosts", known)
	return gates
}

func (g *gate) serve(ln net.Listener) {
	for {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		d, err := net.Dial("tcp", g.to)
		g.mu.Lock()
		if err != nil || g.shut {
			_ = c.Close()
			if d != nil {
				_ = d.Close()
			}
			g.mu.Unlock()
			continue
		}
		g.conns[c], g.conns[d] = true, true
		g.mu.Unlock()
		for _, way := range [][2]net.Conn{{c, d}, {d, c}} {
			go func() {
				_, _ = io.Copy(way[0], way[1])
				_, _ = way[0].Close(), way[1].Close()
			}()
		}
	}
}

// set shuts the gate, and ends what passes through it, or opens it.
func (g *gate) set(shut bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = shut
	for c := range g.conns {
		if shut {
			_ = c.Close()
			delete(g.conns, c)
		}
	}
}

// TestTuneBench: each setting holds where it should, nothing is saved where that can be helped, and between and after them the baseline
// holds to the byte.
func TestTuneBench(t *testing.T) {
	b := applied(t, trio)
	old := b.config(t)
	leaf, spine := b.lab.Box("leaf1").(*eos.Switch), b.lab.Box("spine1").(*sonic.Switch)
	startup := leaf.Startup()
	x := b.open(t, "exp-1")
	for _, k := range []string{"2000KB", "2400KB", "2400KB", "3200KB", "2000KB"} {
		writes := b.writes()
		again := k == "2400KB" && x.key != "" && strings.Contains(x.key, k)
		if err := x.Apply(t.Context(), kmax(k)); err != nil {
			t.Fatal(err)
		}
		want := strings.TrimSuffix(k, "KB") + "000"
		if !strings.Contains(leaf.Running(), "maximum-threshold "+want+" bytes") || !strings.Contains(spine.Held(), `"green_max_threshold": "`+want+`"`) {
			t.Errorf("kmax %s does not hold", k)
		}
		if leaf.Startup() != startup {
			t.Errorf("kmax %s was saved", k)
		}
		if n := b.writes() - writes; again && n != 0 {
			t.Errorf("the setting that holds was written %d times", n)
		}
		if waits := waiting(leaf); waits != (k != "3200KB") {
			t.Errorf("kmax %s: will leaf1 take it back by itself: %v", k, waits)
		}
	}
	if err := x.Restore(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.same(t, old, "after the experiment")
	if err := errors.Join(x.Restore(t.Context()), x.Close(t.Context())); err != nil {
		t.Error(err)
	}
	for _, r := range b.runs(t) {
		if strings.HasPrefix(r.ID, "exp-1-") && r.Status != rollout.Finished {
			t.Errorf("run %s is %s", r.ID, r.Status)
		}
	}
	if r := b.must(t, exitOK, "plan", "--detailed-exitcode"); strings.Contains(r.err, "exp-1") {
		t.Errorf("%s", r)
	}
	if r := b.must(t, exitOK, "lock", "list"); r.out != "" {
		t.Errorf("%s", r)
	}
}

// waiting reports whether a switch will take back what it runs.
func waiting(s *eos.Switch) bool {
	return slices.ContainsFunc(s.Sessions(), func(x eos.SessionState) bool { return x.State == "pendingCommitTimer" })
}

// TestTuneBenchRefuses: an experiment begins on devices that hold the model, that it may write, and that nobody else works on.
func TestTuneBenchRefuses(t *testing.T) {
	b := applied(t, trio)
	gates := b.gated(t)
	a, m, _ := b.tuner(t)
	leaf := b.lab.Box("leaf1").(*eos.Switch)
	spine := b.lab.Box("spine1").(*sonic.Switch)
	first, err := a.openBench(t.Context(), m, "exp-1", benchOptions{Persist: true})
	if err != nil {
		t.Fatal(err)
	}
	old := b.config(t)
	for _, c := range []struct {
		name, says string
		o          benchOptions
		rig, mend  func()
	}{
		{"busy", "holds the lease for run exp-1", benchOptions{Persist: true}, nil, func() {
			if err := first.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}},
		{"persists", "spine1 keeps each write over a restart", benchOptions{}, nil, nil},
		{"drifted", "do not hold what the model says, and that is the baseline: spine1", benchOptions{Persist: true}, func() {
			spine.Edit(func(db sonic.DB) { db.Set("PORT", "Ethernet0", "mtu", "1500") })
		}, func() { spine.Edit(func(db sonic.DB) { db.Set("PORT", "Ethernet0", "mtu", "9214") }) }},
		{"held", "leaf1 is held until", benchOptions{Persist: true}, func() { b.must(t, exitOK, "hold", "leaf1", "--for", "1h", "--reason", "optics") }, func() {
			b.must(t, exitOK, "hold", "release", "leaf1")
		}},
		{"silent", "leaf1 could not be read", benchOptions{Persist: true}, func() { gates["leaf1"].set(true) }, func() { gates["leaf1"].set(false) }},
		{"timer", "session theirs has a commit timer running", benchOptions{Persist: true}, func() {
			if err := errors.Join(leaf.OpenSession("theirs", "bob", "interface Ethernet1/1\n"), leaf.StartTimer("theirs", "00:10:00")); err != nil {
				t.Fatal(err)
			}
		}, leaf.Reload},
	} {
		if c.rig != nil {
			c.rig()
		}
		x, err := a.openBench(t.Context(), m, "exp-2", c.o)
		if err == nil {
			t.Errorf("%s: it was begun", c.name)
			_ = x.Close(t.Context())
		} else if !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %s", c.name, err, c.says)
		}
		if c.mend != nil {
			c.mend()
		}
	}
	b.same(t, old, "after refusals")
	b.must(t, exitOK, "plan", "--detailed-exitcode")
}

// TestTuneBenchTrouble: what goes wrong during an experiment ends it as a lost device, or is said, and what can be restored is.
func TestTuneBenchTrouble(t *testing.T) {
	b := applied(t, trio)
	gates := b.gated(t)
	old := b.config(t)
	leaf, spine := b.lab.Box("leaf1").(*eos.Switch), b.lab.Box("spine1").(*sonic.Switch)

	t.Run("somebody changes a device", func(t *testing.T) {
		x := b.open(t, "exp-1")
		if err := x.Apply(t.Context(), kmax("2000KB")); err != nil {
			t.Fatal(err)
		}
		spine.Edit(func(db sonic.DB) { db.Set("PORT", "Ethernet0", "mtu", "1500") })
		var lost *tuning.Lost
		if err := x.Apply(t.Context(), kmax("2400KB")); !errors.As(err, &lost) || lost.Device != "spine1" {
			t.Errorf("%v", err)
		}
		if err := x.Restore(t.Context()); err == nil || !strings.Contains(err.Error(), "spine1") || !strings.Contains(err.Error(), "fabricctl apply -f ") {
			t.Errorf("what they changed is not ours to hide: %v", err)
		}
		spine.Edit(func(db sonic.DB) { db.Set("PORT", "Ethernet0", "mtu", "9214") })
		if err := errors.Join(x.Restore(t.Context()), x.Close(t.Context())); err != nil {
			t.Error(err)
		}
		b.same(t, old, "after")
	})
	t.Run("somebody changes a device that settings do not write", func(t *testing.T) {
		x := b.open(t, "exp-1b")
		now := time.Now()
		x.e.Now = func() time.Time { return now }
		h := b.lab.Box("host1").(*host.Host)
		if err := x.Apply(t.Context(), kmax("2000KB")); err != nil {
			t.Fatal(err)
		}
		if err := h.SetMTU("rdma0", 4000); err != nil {
			t.Fatal(err)
		}
		if err := x.Apply(t.Context(), kmax("2400KB")); err != nil {
			t.Errorf("it was looked at after no time: %v", err)
		}
		now = now.Add(lookEvery)
		var lost *tuning.Lost
		if err := x.Apply(t.Context(), kmax("2000KB")); !errors.As(err, &lost) || lost.Device != "host1" || !strings.Contains(err.Error(), "somebody changed it") {
			t.Errorf("%v", err)
		}
		if err := errors.Join(x.Restore(t.Context()), x.Close(t.Context()), h.SetMTU("rdma0", 9000)); err != nil {
			t.Error(err)
		}
		b.same(t, old, "after")
	})
	t.Run("a device that refuses", func(t *testing.T) {
		x := b.open(t, "exp-2")
		var no *tuning.Refusal
		leaf.SetFaults(eos.Faults{Reject: regexp.MustCompile("maximum-threshold 2000000")})
		if err := x.Apply(t.Context(), kmax("2000KB")); !errors.As(err, &no) || no.Device != "leaf1" || !strings.Contains(no.Why, "Invalid input") || !strings.Contains(no.Why, "maximum-threshold") {
			t.Errorf("%v", err)
		}
		b.same(t, old, "after a refusal of leaf1")
		x.pause = 0
		spine.Fault(sonic.Faults{Set: sonic.Refuse, Times: 2}) // it says "unknown", of whatever it is
		if err := x.Apply(t.Context(), kmax("2400KB")); !errors.As(err, &no) || no.Device != "spine1" || !strings.HasSuffix(no.Why, ", twice") {
			t.Errorf("%v", err)
		}
		b.same(t, old, "after two refusals of spine1")
		spine.Fault(sonic.Faults{Set: sonic.Refuse, Times: 1})
		if err := x.Apply(t.Context(), kmax("2400KB")); err != nil {
			t.Errorf("a trouble that passes costs the setting: %v", err)
		}
		if err := x.Apply(t.Context(), kmax("3200KB")); err != nil {
			t.Error(err)
		}
		if err := x.Apply(t.Context(), kmax("2400KB")); err != nil {
			t.Error(err)
		}
		if err := errors.Join(x.Restore(t.Context()), x.Close(t.Context())); err != nil {
			t.Error(err)
		}
		b.same(t, old, "after")
	})
	t.Run("a device that refuses, and does not let go", func(t *testing.T) {
		x := b.open(t, "exp-2b")
		leaf.SetFaults(eos.Faults{Reject: regexp.MustCompile("maximum-threshold 2000000")})
		spine.Fault(sonic.Faults{After: func(db sonic.DB) { db.Set("PORT", "Ethernet0", "mtu", "1500") }})
		var lost *tuning.Lost
		if err := x.Apply(t.Context(), kmax("2000KB")); !errors.As(err, &lost) {
			t.Errorf("%v", err)
		}
		leaf.SetFaults(eos.Faults{})
		spine.Fault(sonic.Faults{})
		spine.Edit(func(db sonic.DB) { db.Set("PORT", "Ethernet0", "mtu", "9214") })
		if err := errors.Join(x.Restore(t.Context()), x.Close(t.Context())); err != nil {
			t.Error(err)
		}
		b.same(t, old, "after")
	})
	t.Run("a plan that refuses", func(t *testing.T) {
		x := b.open(t, "exp-2c")
		var no *tuning.Refusal
		if err := x.Apply(t.Context(), patchOf("classes.training.pfc.xoff", "10MB")); !errors.As(err, &no) || !strings.HasPrefix(no.Device, "the plan of ") {
			t.Errorf("%v", err)
		}
		b.same(t, old, "after a plan that was refused")
		b.must(t, exitOK, "hold", "leaf1", "--for", "1h", "--reason", "optics")
		var lost *tuning.Lost
		if err := x.Apply(t.Context(), kmax("2000KB")); !errors.As(err, &lost) || lost.Device != "leaf1" || !strings.Contains(err.Error(), "leaf1 is held until") {
			t.Errorf("leaf1 is held: %v", err)
		}
		b.same(t, old, "while it is held")
		b.must(t, exitOK, "hold", "release", "leaf1")
		if err := errors.Join(x.Restore(t.Context()), x.Close(t.Context())); err != nil {
			t.Error(err)
		}
		b.same(t, old, "after")
	})
	t.Run("a setting that the model does not take", func(t *testing.T) {
		x := b.open(t, "exp-3")
		if err := x.Apply(t.Context(), kmax("2000")); err == nil || !strings.Contains(err.Error(), "unit") {
			t.Errorf("%v", err)
		}
		if err := errors.Join(x.Restore(t.Context()), x.Close(t.Context())); err != nil {
			t.Error(err)
		}
		b.same(t, old, "after")
	})
	t.Run("flaps", func(t *testing.T) {
		x := b.open(t, "exp-4")
		var no *tuning.Refusal
		if err := x.Apply(t.Context(), patchOf("classes.training.priority", "4")); !errors.As(err, &no) || !strings.Contains(err.Error(), "--allow-flaps") {
			t.Errorf("%v", err)
		}
		if err := errors.Join(x.Restore(t.Context()), x.Close(t.Context())); err != nil {
			t.Error(err)
		}
		b.same(t, old, "after")
	})
	t.Run("restart under a trial", func(t *testing.T) {
		x := b.open(t, "exp-5")
		if err := x.Apply(t.Context(), kmax("2000KB")); err != nil {
			t.Fatal(err)
		}
		leaf.Reload()
		spine.Reboot()
		if err := errors.Join(x.Restore(t.Context()), x.Close(t.Context())); err != nil {
			t.Error(err)
		}
		b.same(t, old, "after")
	})
	t.Run("a lease that was broken", func(t *testing.T) {
		x := b.open(t, "exp-6")
		if err := x.Apply(t.Context(), kmax("2000KB")); err != nil {
			t.Fatal(err)
		}
		b.must(t, exitOK, "lock", "break", "trio", "--yes")
		if err := x.Apply(t.Context(), kmax("2400KB")); err == nil || !strings.Contains(err.Error(), "the lease was lost") {
			t.Errorf("%v", err)
		}
		run := x.reset
		err := x.Restore(t.Context())
		if err == nil || !strings.Contains(err.Error(), "runs rollback "+run) {
			t.Errorf("%v", err)
		}
		_ = x.Close(t.Context())
		b.must(t, exitOK, "runs", "rollback", run)
		b.same(t, old, "after")
	})
	t.Run("a device that is off", func(t *testing.T) {
		for device, g := range gates {
			if device == "host1" {
				continue // nothing is written to it here
			}
			x := b.open(t, "exp-7"+device)
			if err := x.Apply(t.Context(), kmax("2000KB")); err != nil {
				t.Fatal(err)
			}
			g.set(true)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			err := x.Restore(ctx) // its patience ends with ctx
			cancel()
			run := x.reset
			if err == nil || !strings.Contains(err.Error(), device+": unknown") || !strings.Contains(err.Error(), "runs rollback "+run) {
				t.Errorf("%s: %v", device, err)
			}
			_ = x.Close(t.Context())
			g.set(false)
			if r := b.call(t, "plan"); !strings.Contains(r.err, "a trial may be in force on fabric trio") || !strings.Contains(r.err, "runs rollback "+run) {
				t.Errorf("%s: plan says nothing of it: %s", device, r)
			}
			next := b.open(t, "exp-8"+device)
			b.same(t, old, device+": when the next experiment begins")
			if err := next.Close(t.Context()); err != nil {
				t.Error(err)
			}
			if r := b.must(t, exitOK, "plan", "--detailed-exitcode"); strings.Contains(r.err, "experiment") {
				t.Errorf("%s", r)
			}
		}
	})
}

// TestTuneBenchTimer: a setting is renewed before a device takes it back, and one that was taken back during a run ends the experiment.
func TestTuneBenchTimer(t *testing.T) {
	b := applied(t, trio)
	old := b.config(t)
	x := b.open(t, "exp-1")
	now := time.Now()
	x.e.Now = func() time.Time { return now }
	if err := x.Apply(t.Context(), kmax("2000KB")); err != nil {
		t.Fatal(err)
	}
	first := x.reset
	now = now.Add(usualRevert / 3)
	if err := x.Apply(t.Context(), kmax("2000KB")); err != nil || x.reset != first {
		t.Errorf("renewed after a third of the time: %s, %v", x.reset, err)
	}
	now = now.Add(usualRevert / 3)
	if err := x.Apply(t.Context(), kmax("2000KB")); err != nil || x.reset == first {
		t.Errorf("not renewed after two thirds of the time: %s, %v", x.reset, err)
	}
	now = now.Add(usualRevert + time.Minute)
	var lost *tuning.Lost
	if err := x.Apply(t.Context(), kmax("2000KB")); !errors.As(err, &lost) || !strings.Contains(err.Error(), "while it was measured") {
		t.Errorf("%v", err)
	}
	if err := errors.Join(x.Restore(t.Context()), x.Close(t.Context())); err != nil {
		t.Error(err)
	}
	b.same(t, old, "after")
}
