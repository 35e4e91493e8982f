package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/drivers/lab/eos"
	"github.com/fabricctl/fabricctl/drivers/lab/sonic"
)

// TestSecondApplySendsNothing counts what reaches the devices.
func TestSecondApplySendsNothing(t *testing.T) {
	b := newBench(t, trio)
	b.must(t, exitOK, "apply", "--yes", "--allow-disruptive")
	before, held := b.writes(), b.config(t)
	b.must(t, exitOK, "apply", "--yes", "--allow-disruptive")
	if n := b.writes() - before; n != 0 {
		t.Errorf("the second apply wrote %d times", n)
	}
	if d := cmp.Diff(held, b.config(t)); d != "" {
		t.Errorf("(-before +after):\n%s", d)
	}
}

// TestDriftIsStable reads unchanged devices a hundred times.
func TestDriftIsStable(t *testing.T) {
	b := newBench(t, trio)
	b.must(t, exitOK, "apply", "--yes", "--allow-disruptive")
	b.lab.Box("spine1").(*sonic.Switch).Edit(func(db sonic.DB) { db.Set("PORT", "Ethernet0", "mtu", "1500") })
	first := b.must(t, exitChanges, "drift", "--details").out
	for range 99 {
		if d := cmp.Diff(first, b.must(t, exitChanges, "drift", "--details").out); d != "" {
			t.Fatalf("(-first +later):\n%s", d)
		}
	}
	if !strings.Contains(first, "1500B → 9214B") {
		t.Error(first)
	}
	for _, format := range []string{"json", "markdown"} {
		first := b.must(t, exitChanges, "drift", "-o", format).out
		for range 9 {
			if d := cmp.Diff(first, b.must(t, exitChanges, "drift", "-o", format).out); d != "" {
				t.Fatalf("%s (-first +later):\n%s", format, d)
			}
		}
	}
}

// TestLowerMTU: hosts lower their MTU before the switches do, and raise it after them.
func TestLowerMTU(t *testing.T) {
	b := newBench(t, trio)
	order := func(r result) string {
		return strings.Join(regexp.MustCompile(`(?m)^\w+: applied$`).FindAllString(r.err, -1), " ")
	}
	up := order(b.must(t, exitOK, "apply", "--yes", "--allow-disruptive"))
	if !strings.HasSuffix(up, "host1: applied") {
		t.Errorf("raising: %s", up)
	}
	b.write(t, "fabric.yaml", strings.Replace(trio, "{fabric: 9214B, host: 9000B}", "{fabric: 4500B, host: 4200B}", 1))
	down := order(b.must(t, exitOK, "apply", "--yes", "--allow-disruptive"))
	if !strings.HasPrefix(down, "host1: applied") || !strings.Contains(down, "leaf1: applied") {
		t.Errorf("lowering: %s", down)
	}
}

// TestInterrupt stops the program in the middle of a commit: what is in progress is taken back, devices that are done
// stay done, and the exit code is 130.
func TestInterrupt(t *testing.T) {
	b := newBench(t, trio)
	program := asProgram(t)
	leaf := b.lab.Box("leaf1").(*eos.Switch)
	old := leaf.Running()
	var once sync.Once
	stalled := make(chan struct{})
	leaf.SetFaults(eos.Faults{
		StallAt: regexp.MustCompile(`^commit timer`),
		OnLine: func(line string) {
			if strings.HasPrefix(line, "commit timer") {
				once.Do(func() { close(stalled) })
			}
		},
	})
	c := exec.Command(program, b.args("apply", "--yes", "--allow-disruptive")...)
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	<-stalled
	if err := c.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	err := c.Wait()
	var ended *exec.ExitError
	if !errors.As(err, &ended) || ended.ExitCode() != exitInterrupted {
		t.Errorf("%v, want exit %d:\n%s", err, exitInterrupted, &out)
	}
	if d := cmp.Diff(old, leaf.Running()); d != "" {
		t.Errorf("something is left (-before +after):\n%s\nit said:\n%s", d, &out)
	}
	for _, s := range leaf.Sessions() {
		if s.State == "pending" {
			t.Errorf("session %s is left open", s.Name)
		}
	}
	leaf.SetFaults(eos.Faults{})
	b.must(t, exitOK, "apply", "--yes", "--allow-disruptive") // and nothing is in the way
}

// TestReplacedDevice: with another box at the address of one, nothing is written anywhere.
func TestReplacedDevice(t *testing.T) {
	b := newBench(t, trio)
	text, err := os.ReadFile(b.lab.Inventory)
	if err != nil {
		t.Fatal(err)
	}
	b.write(t, "lab/inventory.yaml", strings.Replace(string(text), `serial: "LAB-LEAF1"`, `serial: "MT2214X00123"`, 1))
	r := b.must(t, exitRefused, "apply", "--yes", "--allow-disruptive")
	if !strings.Contains(r.err, `serial number "LAB-LEAF1"`) || !strings.Contains(r.err, "--device") || b.writes() != 0 || len(b.runs(t)) != 0 {
		t.Errorf("%d writes, %s", b.writes(), r)
	}
}

// TestDeadDevice: one dead switch does not keep the others from their configuration, and the exit code says partly.
func TestDeadDevice(t *testing.T) {
	b := newBench(t, trio)
	if err := b.lab.Box("leaf1").Close(); err != nil {
		t.Fatal(err)
	}
	r := b.must(t, exitPartly, "apply", "--yes", "--allow-disruptive")
	for _, want := range []string{`(?m)^spine1 +applied$`, `(?m)^leaf1 +unchanged \(failed\): .*connection refused`, `(?m)^host1 +unchanged \(not-started\)`} {
		if !regexp.MustCompile(want).MatchString(r.out) {
			t.Errorf("no %s in %s", want, r)
		}
	}
	b.must(t, exitError, "plan")
}
