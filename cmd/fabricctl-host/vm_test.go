//go:build vm

package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/fabricctl/fabricctl/drivers/hostlocal"
	"github.com/fabricctl/fabricctl/drivers/hostwire"
	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/witness"
	"github.com/fabricctl/fabricctl/render"
)

// A user's description of the test driver of tools/vm, of which the host knows nothing by itself.
const testDriver = `apiVersion: fabricctl/v1
kind: Profile
metadata: {name: dcbtest}
personality: {description: the test driver of tools/vm, status: managed, drivers: [dcbtest], app: settable, app_effect: none, pfc: settable, pfc_effect: none, mtu_effect: none, source: its source in this repository, confidence: high}
`

// In the virtual machine of tools/vm: PFC and code points of a NIC that only the user knows, set over the wire with a
// window, go back though whoever asked for it was killed, and nobody told the timer about the NIC.
func TestVMNICTimer(t *testing.T) {
	cat, found := model.LoadCatalog(fstest.MapFS{"nic.yaml": {Data: []byte(testDriver)}}, "nic.yaml")
	if len(found) > 0 {
		t.Fatal(found)
	}
	state := t.TempDir()
	start := func() (*hostwire.Client, *exec.Cmd) {
		cmd := exec.Command(witness.Tool(t, "fabricctl-host"), "serve", "--state-dir", state)
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		c, err := hostwire.NewClient(t.Context(), "vm", struct {
			io.Reader
			io.WriteCloser
		}{out, in})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Know(t.Context(), cat.Tell(true)); err != nil {
			t.Fatal(err)
		}
		return c, cmd
	}
	change := func(scope, field, from, to string) render.Change {
		c := render.Change{Op: render.Modify, Key: render.Key{Scope: scope, Object: "dcb3", Field: field}, Before: &from, After: &to}
		if from == "" {
			c.Op, c.Before = render.Add, nil
		}
		return c
	}
	cs := []render.Change{change("app", "dscp 26", "", "3"), change("link", "mtu", "1500", "9000"), change("pfc", "priorities", "none", "3")}
	dcb := func() string {
		pfc, err1 := exec.Command(witness.Tool(t, "dcb"), "pfc", "show", "dev", "dcb3", "prio-pfc").Output()
		app, err2 := exec.Command(witness.Tool(t, "dcb"), "-N", "app", "show", "dev", "dcb3").Output()
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		return strings.Join(strings.Fields(string(pfc)+string(app)), " ")
	}
	before := dcb()
	c, cmd := start()
	if err := c.Commit(t.Context(), "tx1", cs, time.Second); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	_ = c.Close()
	if now := dcb(); now == before {
		t.Log("the timer was faster than we looked")
	}
	for left := 1; left > 0; { // the limit of the whole test is under it
		files, err := os.ReadDir(filepath.Join(state, "pending"))
		if err != nil {
			t.Fatal(err)
		}
		left = len(files)
	}
	if now := dcb(); now != before {
		t.Errorf("it was taken back, and dcb shows %s; before it showed %s", now, before)
	}
}

// A pod whose first host is the virtual machine.
const vmModel = `apiVersion: fabricctl/v1
kind: Fabric
metadata: {name: pod1}
topology:
  spines: {count: 2, platform: sonic/sn5600}
  leaves: {count: 2, platform: sonic/sn5600}
  hosts: {per_leaf: 1, rails: 1, netdevs: [dcb0]}
  links:
    leaf_spine: {speed: 800Gbps, cable: 40m}
    host_leaf: {speed: 400Gbps, cable: 5m}
mtu: {fabric: 9216B, host: 9000B, roce: 4096B}
classes:
  - {name: training, dscp: [26], priority: 3, lossless: true, bandwidth: 60%, ecn: {kmin: 800KB, kmax: 3200KB, pmax: 20%}, pfc: {xoff: {alpha: 1/2}, headroom: auto, xon: auto}}
  - {name: cnp, role: cnp, dscp: [48], priority: 6, scheduling: strict}
  - {name: default, dscp: rest, priority: 0, bandwidth: 40%}
pfc_watchdog: {detect: 200ms, restore: 400ms, poll: 100ms, action: drop}
manage: {hosts: own}
---
apiVersion: fabricctl/v1
kind: Inventory
devices:
  host1: {address: 10.0.1.11, hostname: vm-roce}
---
apiVersion: fabricctl/v1
kind: Profile
metadata: {name: dcbtest}
personality: {description: the test driver of tools/vm, status: managed, drivers: [dcbtest], app: settable, app_effect: none, app_entries: used, ets: settable, ets_effect: none, traffic_classes: 8, tsa: [strict, ets], pfc: settable, pfc_effect: none, dcbx: settable, dcbx_effect: none, dcbx_own: host-ieee, dcbx_foreign: [no-host, lld-managed], mtu_effect: none, pause_effect: none, source: its source in this repository, confidence: high}
`

// The host's own verbs on a kernel with NICs: from a model's host file to settings that dcb shows, a status, an agent
// that puts back what a hand changed, and the way back.
func TestVMRoCEHost(t *testing.T) {
	tool := func(words ...string) (string, int) {
		cmd := exec.CommandContext(t.Context(), witness.Tool(t, words[0]), words[1:]...)
		out, err := cmd.CombinedOutput()
		if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		return string(out), cmd.ProcessState.ExitCode()
	}
	for _, words := range []string{"ip addr add 192.168.1.11/31 dev dcb0", "ip link set dcb0 up"} {
		if out, code := tool(strings.Fields(words)...); code != 0 {
			t.Fatalf("%s: %s", words, out)
		}
	}
	t.Cleanup(func() {
		_ = exec.Command("/bin/ip", "addr", "flush", "dev", "dcb0").Run()
		_ = exec.Command("/bin/ip", "link", "set", "dcb0", "down").Run()
	})
	f, l := model.Load(fstest.MapFS{"m.yaml": {Data: []byte(vmModel)}}, "m.yaml")
	if l.HasErrors() {
		t.Fatal(l)
	}
	n, l := intent.Resolve(f)
	if l.HasErrors() {
		t.Fatal(l)
	}
	b, err := hostlocal.FileOf(*n.Device("host1"), f.Digest(), "test", true).Encode()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	conf := filepath.Join(dir, "host.json")
	if err := os.WriteFile(conf, b, 0o644); err != nil {
		t.Fatal(err)
	}
	flags := []string{"--conf", conf, "--state-dir", filepath.Join(dir, "state")}
	host := func(want int, verb string, more ...string) string {
		t.Helper()
		out, code := tool(slices.Concat([]string{"fabricctl-host", verb}, flags, more)...)
		if code != want {
			t.Fatalf("%s %v: exit %d, want %d\n%s", verb, more, code, want, out)
		}
		return out
	}
	paused := func() string {
		out, _ := tool("dcb", "pfc", "show", "dev", "dcb0", "prio-pfc")
		return strings.TrimSpace(out)
	}
	before := paused()
	applied := host(0, "apply", "--yes", "--allow-disruptive", "--accept-unverified")
	if !strings.Contains(paused(), "3:on") {
		t.Errorf("dcb shows %s after\n%s", paused(), applied)
	}
	if again := host(0, "apply", "--yes", "--accept-unverified"); !strings.Contains(again, "no changes") {
		t.Errorf("a second apply:\n%s", again)
	}
	status := host(0, "status", "--detailed-exitcode")
	if !strings.Contains(status, "rxe0") {
		t.Errorf("status does not name the RDMA device:\n%s", status)
	}
	if err := os.WriteFile(os.Getenv("FABRICCTL_OUT")+"/status.txt", []byte(status), 0o644); err != nil {
		t.Fatal(err)
	}

	agent := exec.CommandContext(t.Context(), witness.Tool(t, "fabricctl-host"), append([]string{"agent", "--accept-unverified"}, flags...)...)
	var says bytes.Buffer
	agent.Stdout, agent.Stderr = &says, &says
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- agent.Wait() }()
	tool("dcb", "pfc", "set", "dev", "dcb0", "prio-pfc", "all:off") // its exit status says nothing
	for changed := paused(); !strings.Contains(paused(), "3:on"); {
		select {
		case err := <-ended:
			t.Fatalf("the agent ended: %v, with %s\n%s", err, changed, &says)
		default:
		}
	}
	if err := agent.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("the agent: %v\n%s", err, &says)
	}
	run := regexp.MustCompile(`run (\S+)`).FindStringSubmatch(applied)
	if run == nil {
		t.Fatalf("apply names no run:\n%s", applied)
	}
	back := host(0, "rollback", "--yes", "--allow-disruptive", run[1])
	if paused() != before {
		t.Errorf("rollback: dcb shows %s, before %s\n%s", paused(), before, back)
	}
}
