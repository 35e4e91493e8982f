package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Bounds of a plan of a thousand hosts.
const (
	scaleHosts  = 1000
	scaleCPU    = 5 * time.Second
	scaleMemory = 100 << 20 // bytes
)

// thousandHosts is a fabric whose switches are still to come, so that a plan is about its hosts.
const thousandHosts = `apiVersion: fabricctl/v1
kind: Fabric
metadata: {name: thousand}
topology:
  spines: {count: 2, platform: sonic/sn5600}
  leaves: {count: 50, platform: sonic/sn5600}
  hosts: {per_leaf: 20, nic: connectx-7, netdevs: [rdma0]}
  links:
    leaf_spine: {speed: 400Gbps, cable: 40m}
    host_leaf: {speed: 400Gbps, cable: 5m}
mtu: {fabric: 9214B, host: 9000B}
classes:
  - {name: training, dscp: [26], priority: 3, lossless: true, ecn: {kmin: 800KB, kmax: 3200KB, pmax: 20%}, bandwidth: 60%, drop_incomplete_arp: true}
  - {name: cnp, role: cnp, dscp: [48], priority: 6, scheduling: strict}
  - {name: default, dscp: rest, priority: 0, bandwidth: 40%}
pfc_watchdog: {detect: 200ms, restore: 400ms, poll: 100ms, action: drop}
manage: {switches: own, hosts: own}
overrides:
  spine: {state: planned}
  leaf: {state: planned}
`

// TestHostScale plans a thousand emulated hosts, which live in another process, and writes what that took into the file
// that FABRICCTL_SCALE names: make bench. The binary is on the hosts already.
func TestHostScale(t *testing.T) {
	table := os.Getenv("FABRICCTL_SCALE")
	if table == "" {
		t.Skip("FABRICCTL_SCALE names no file for the table: make bench")
	}
	dir := t.TempDir()
	bin := filepath.Join(dir, "fabricctl")
	if out, err := exec.Command("go", "build", "-trimpath", "-o", bin, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := os.WriteFile(filepath.Join(dir, "fabric.yaml"), []byte(thousandHosts), 0o600); err != nil {
		t.Fatal(err)
	}
	call := func(args ...string) *exec.Cmd {
		c := exec.Command(bin, args...)
		c.Dir = dir
		c.Env = append(os.Environ(), "XDG_STATE_HOME="+filepath.Join(dir, "state"))
		return c
	}
	up := call("lab", "up", "-f", "fabric.yaml", "--out", "lab")
	said, err := up.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := up.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = up.Process.Signal(os.Interrupt)
		_ = up.Wait()
	}()
	if _, err := said.Read(make([]byte, 1)); err != nil { // it speaks when everything is up
		t.Fatal(err)
	}
	plan := func() (cpu time.Duration, memory int64, wall time.Duration) {
		c := call("plan", "-f", "fabric.yaml", "-f", "lab/inventory.yaml", "--parallel", "32")
		var out bytes.Buffer
		c.Stdout, c.Stderr = &out, &out
		begun := time.Now()
		if err := c.Run(); err != nil || !strings.Contains(out.String(), fmt.Sprintf("on %d devices\n", scaleHosts)) {
			t.Fatalf("%v: %s", err, out.Bytes())
		}
		u := c.ProcessState.SysUsage().(*syscall.Rusage)
		return time.Duration(u.Utime.Nano() + u.Stime.Nano()), u.Maxrss << 10, time.Since(begun)
	}
	plan() // copies the binary
	cpu, memory, wall := plan()
	for range 2 {
		if c, m, w := plan(); c < cpu {
			cpu, memory, wall = c, m, w
		}
	}
	text := fmt.Sprintf(`# A thousand hosts

`+"`make bench`"+` writes this table. %d emulated hosts, each an SSH server of its own in another process on the same machine, are planned over SSH by one
`+"`fabricctl plan --parallel 32`"+`: handshake, host key, login, the copied binary checked by its digest, facts, settings, difference. The binary is on the hosts already. The
best of three is shown; time by the clock includes what the emulated hosts need of the same processors.

| what | measured | bound |
|---|---:|---:|
| processor time of the plan | %.1f s | %.0f s |
| largest memory of the plan | %.0f MB | %d MB |
| time by the clock | %.0f s | – |

Measured with %s on %s/%s, %d processors.
`, scaleHosts, cpu.Seconds(), scaleCPU.Seconds(), float64(memory)/(1<<20), scaleMemory>>20, wall.Seconds(), runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	if err := os.WriteFile(table, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if cpu > scaleCPU || memory > scaleMemory {
		t.Errorf("%v of processor time and %d bytes: more than %v and %d", cpu, memory, scaleCPU, scaleMemory)
	}
}
