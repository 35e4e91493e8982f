package main

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// The agent on a real kernel: a file that is not as it should be is repaired at the kernel's word, an MTU by hand is said and
// left, or repaired where that is wanted; a second agent is refused, and SIGTERM ends the first one.
func TestAgentOnKernel(t *testing.T) {
	s := newSpace(t)
	prom := filepath.Join(s.dir, "fabricctl.prom")
	start := func(args ...string) (lines *bufio.Scanner, end func()) {
		t.Helper()
		args = append([]string{s.bin, "agent", "--state-dir", filepath.Join(s.dir, "state"), "--conf", s.conf, "--metrics", prom, "--accept-unverified"}, args...)
		c := s.in(t, args...)
		c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		out, err := c.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		end = func() {
			t.Helper()
			_ = c.Process.Signal(syscall.SIGTERM) // nsenter became the agent
			if err := c.Wait(); err != nil {
				t.Errorf("the agent ended with %v", err)
			}
		}
		return bufio.NewScanner(out), end
	}
	wait := func(lines *bufio.Scanner, word string) {
		t.Helper()
		for lines.Scan() {
			if strings.Contains(lines.Text(), word) {
				return
			}
		}
		t.Fatalf("the agent never said %q", word)
	}
	lines, end := start()
	wait(lines, "1 setting differs: not repaired, flap")
	b, err := os.ReadFile(prom)
	for err != nil { // it is written just after the word
		b, err = os.ReadFile(prom)
	}
	if !strings.Contains(string(b), `fabricctl_host_setting_differs{object="rdma0",setting="link mtu"} 1`) {
		t.Errorf("metrics:\n%s", b)
	}
	_, errs, code := s.call(t, "agent", "--conf", s.conf)
	if code != 4 || !strings.Contains(errs, "fabricctl-host agent") {
		t.Errorf("a second agent: exit %d, %s", code, errs)
	}
	s.ip(t, "link", "set", "rdma0", "mtu", "9000")
	wait(lines, "the host is as its file says")
	out, _, _ := s.call(t, "status", "--conf", s.conf)
	if !strings.Contains(out, "agent       the host is as its file says at ") {
		t.Errorf("status:\n%s", out)
	}
	end()

	lines, end = start("--repair", "always")
	wait(lines, "the host is as its file says")
	s.ip(t, "link", "set", "rdma0", "mtu", "1500")
	wait(lines, "repaired")
	if m := s.mtu(t); m != "9000" {
		t.Errorf("mtu %s", m)
	}
	end()
	runs, err := filepath.Glob(filepath.Join(s.dir, "state", "runs", "agent-*.jsonl"))
	if err != nil || len(runs) != 1 {
		t.Errorf("journals %v, %v", runs, err)
	}
}
