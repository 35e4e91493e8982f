package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/drivers/hostlocal"
	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/witness"
)

const someModel = `apiVersion: fabricctl/v1
kind: Fabric
metadata: {name: pod1}
topology:
  spines: {count: 1, platform: sonic/sn5600}
  leaves: {count: 1, platform: sonic/sn5600}
  hosts:  {per_leaf: 1, nic: connectx-7, rails: 1, carries: [rdma], netdevs: [rdma0]}
  links:
    leaf_spine: {speed: 400Gbps, cable: 40m}
    host_leaf:  {speed: 400Gbps, cable: 5m}
mtu: {fabric: 9216B, host: 9000B, roce: 4096B}
classes:
  - {name: training, dscp: [26], priority: 3, lossless: true, bandwidth: 60%, ecn: {kmin: 800KB, kmax: 3200KB, pmax: 20%}, pfc: {xoff: {alpha: 1/2}, headroom: auto, xon: auto}}
  - {name: cnp, role: cnp, dscp: [48], priority: 6, scheduling: strict}
  - {name: default, dscp: rest, priority: 0, bandwidth: 40%}
pfc_watchdog: {detect: 200ms, restore: 400ms, poll: 100ms, action: drop}
manage: {hosts: {mtu: own}}
---
apiVersion: fabricctl/v1
kind: Inventory
devices:
  host1: {address: 10.0.1.11, hostname: HOSTNAME}
`

// space is a network namespace with a link rdma0 of a Linux of this machine, and the binary in it.
type space struct {
	dir, bin, conf string
	pid            string // of what keeps the namespace
}

// newSpace makes one, where that is permitted.
func newSpace(t *testing.T) *space {
	t.Helper()
	s := &space{dir: t.TempDir()}
	s.bin = filepath.Join(s.dir, "fabricctl-host")
	if out, err := exec.Command("go", "build", "-o", s.bin, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	s.conf = filepath.Join(s.dir, "host.json")
	s.host(t, someModel)
	keep := exec.Command(witness.Tool(t, "unshare"), "--net", "--mount", "sh", "-c", "echo $$; exec cat")
	in, err := keep.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := keep.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := keep.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); _ = keep.Wait() })
	line := make([]byte, 20)
	n, err := out.Read(line)
	if err != nil {
		witness.Missing(t, "a network namespace is not permitted")
	}
	s.pid = strings.TrimSpace(string(line[:n]))
	s.ip(t, "link", "add", "rdma0", "type", "veth", "peer", "name", "far0")
	return s
}

// host writes the host file of a model.
func (s *space) host(t *testing.T, text string) {
	t.Helper()
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	f, l := model.Load(fstest.MapFS{"m.yaml": {Data: []byte(strings.Replace(text, "HOSTNAME", name, 1))}}, "m.yaml")
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
	if err := os.WriteFile(s.conf, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

// in is a command in the space.
func (s *space) in(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	return exec.Command(witness.Tool(t, "nsenter"), append([]string{"-t", s.pid, "--net", "--mount", "--"}, args...)...)
}

func (s *space) ip(t *testing.T, args ...string) string {
	t.Helper()
	out, err := s.in(t, append([]string{witness.Tool(t, "ip")}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("ip %v: %v: %s", args, err, out)
	}
	return string(out)
}

// call runs a verb and returns what it prints, and its exit code.
func (s *space) call(t *testing.T, args ...string) (out, errs string, code int) {
	t.Helper()
	args = append([]string{s.bin, args[0], "--state-dir", filepath.Join(s.dir, "state")}, args[1:]...)
	c := s.in(t, args...)
	var o, e strings.Builder
	c.Stdout, c.Stderr = &o, &e
	err := c.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return o.String(), e.String(), c.ProcessState.ExitCode()
}

// mtu is that of rdma0, as iproute2 says it.
func (s *space) mtu(t *testing.T) string {
	t.Helper()
	return regexp.MustCompile(`mtu (\d+)`).FindStringSubmatch(s.ip(t, "link", "show", "rdma0"))[1]
}

// The verbs on a real link: what a user meets from the first look to the second apply, and the way back.
func TestVerbs(t *testing.T) {
	s := newSpace(t)
	conf := []string{"--conf", s.conf}
	do := func(want int, args ...string) string {
		t.Helper()
		out, errs, code := s.call(t, args...)
		if code != want {
			t.Fatalf("%q: exit %d, want %d\n%s%s", args, code, want, out, errs)
		}
		return out + errs
	}
	says := func(text string, words ...string) {
		t.Helper()
		for _, w := range words {
			if !strings.Contains(text, w) {
				t.Errorf("nothing says %q:\n%s", w, text)
			}
		}
	}
	says(do(0, append([]string{"plan"}, conf...)...), "host1 (linux/generic): 1 setting in 1 step", "mtu", "1500B → 9000B", "m.yaml:11:28", "--allow-disruptive", "--accept-unverified")
	do(2, append([]string{"plan", "--detailed-exitcode", "-o", "json"}, conf...)...)
	says(do(2, append([]string{"status", "--detailed-exitcode"}, conf...)...), "link|rdma0|mtu is 1500, wanted 9000", "host1 of pod1")
	says(do(64, append([]string{"apply", "--allow-disruptive", "--accept-unverified"}, conf...)...), "no terminal to ask on")
	says(do(4, append([]string{"apply", "--yes"}, conf...)...), "--allow-disruptive")
	says(do(4, append([]string{"apply", "--yes", "--allow-disruptive"}, conf...)...), "--accept-unverified")
	if m := s.mtu(t); m != "1500" {
		t.Errorf("mtu %s: something was written", m)
	}
	all := append([]string{"apply", "--yes", "--allow-disruptive", "--accept-unverified"}, conf...)
	applied := do(0, all...)
	says(applied, "commit step 1 of 1", "verify", "confirm", "host1            applied")
	if m := s.mtu(t); m != "9000" {
		t.Errorf("mtu %s", m)
	}
	says(do(0, all...), "no changes", "nothing was written")
	says(do(0, append([]string{"status", "--detailed-exitcode"}, conf...)...), "drift       none")
	run := regexp.MustCompile(`run (\S+)`).FindStringSubmatch(applied)[1]
	says(do(0, "rollback", run), "rolled-back")
	if m := s.mtu(t); m != "1500" {
		t.Errorf("mtu %s after the rollback", m)
	}
	// Somebody else's host is not this one.
	s.host(t, strings.Replace(someModel, "HOSTNAME", "elsewhere", 1))
	says(do(4, all...), "elsewhere")
	s.host(t, someModel)
	// A full disk, or no state directory at all, keeps it from writing.
	if d := cmp.Diff("1500", s.mtu(t)); d != "" {
		t.Error(d)
	}
	if err := os.RemoveAll(filepath.Join(s.dir, "state")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.dir, "state"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	says(do(1, all...), "nothing of this was written", "/state: not a directory")
	if m := s.mtu(t); m != "1500" {
		t.Errorf("mtu %s: written without a journal", m)
	}
}
