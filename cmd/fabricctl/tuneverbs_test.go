//go:build vm

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fabricctl/fabricctl/drivers/ssh"
	"github.com/fabricctl/fabricctl/model/observe"
	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/tuning"
)

// verbs are the machines of tools/vm/verbs: host1 and host2 with soft-RoCE and perftest, and a switch that is Linux with a token
// bucket between them. The way back from host2 may be made a long one.
type verbs struct {
	dir   string            // of what is known of them
	ports map[string]string // their sshd, on 127.0.0.1

	work   string   // for files and the state of this test
	layers []string // of the model
}

// theVerbs are the machines that run now, with what the switch does as it was in the beginning. Without any the test is skipped:
// only tools/vm/verbs has them.
func theVerbs(t *testing.T) *verbs {
	t.Helper()
	v := &verbs{dir: os.Getenv("FABRICCTL_VERBS"), ports: map[string]string{}, work: t.TempDir()}
	if v.dir == "" {
		t.Skip("no virtual machines: make vm-verbs runs this")
	}
	b, err := os.ReadFile(filepath.Join(v.dir, "ports"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		name, port, _ := strings.Cut(strings.TrimSpace(line), " ")
		v.ports[name] = port
	}
	inventory := "apiVersion: fabricctl/v1\nkind: Inventory\ndefaults:\n  ssh: {username: root, key: file:" + filepath.Join(v.dir, "id") +
		", known_hosts: file:" + filepath.Join(v.dir, "known_hosts") + "}\ndevices:\n"
	for _, h := range []string{"host1", "host2"} {
		inventory += fmt.Sprintf("  %s: {address: 127.0.0.1, ssh: {port: %s}}\n", h, v.ports[h])
	}
	v.layers = []string{"testdata/verbs/fabric.yaml", v.file(t, "inventory.yaml", inventory)}
	v.bottleneck(t, 1_000_000, 0)
	return v
}

// file writes a file of the test.
func (v *verbs) file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(v.work, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// dial is a new connection to a machine.
func (v *verbs) dial(t *testing.T, name string) *ssh.Client {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
	defer stop()
	c, err := ssh.Dial(ctx, ssh.Config{
		Name: name, Address: "127.0.0.1:" + v.ports[name], User: "root",
		Keys: []ssh.Key{{Path: filepath.Join(v.dir, "id")}}, KnownHosts: []string{filepath.Join(v.dir, "known_hosts")},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// on runs a command line there, which has to succeed.
func on(t *testing.T, c *ssh.Client, line string) string {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	o, err := c.Run(ctx, line, nil)
	if err != nil || o.Exit != 0 {
		t.Fatalf("%s: %v, exit code %d\n%s%s", line, err, o.Exit, o.Stdout, o.Stderr)
	}
	return strings.TrimSpace(string(o.Stdout))
}

// What the switch is told, and asked.
const (
	setLimit  = "tc qdisc change dev eth1 root tbf rate 20mbit burst 10k limit "
	readLimit = `tc -j -r qdisc show dev eth1 root | sed -n 's/.*"limit":\([0-9]*\).*/\1/p'`
)

// bottleneck sets how many bytes may wait for host2, and how long what goes back takes.
func (v *verbs) bottleneck(t *testing.T, limit int, back time.Duration) {
	t.Helper()
	c := v.dial(t, "switch")
	on(t, c, fmt.Sprint("ip link set eth1 up; ", setLimit, limit))
	on(t, c, fmt.Sprintf("tc qdisc replace dev eth0 root netem delay %dus limit 10000", back.Microseconds()))
}

// idle fails the test when a verbs test still runs on a host.
func (v *verbs) idle(t *testing.T) {
	t.Helper()
	for _, h := range []string{"host1", "host2"} {
		if left := on(t, v.dial(t, h), "pgrep -l ib_ || true"); left != "" {
			t.Errorf("%s still runs %s", h, left)
		}
	}
}

// provoke waits for a verbs test on a machine, and then runs a command line there that has its process as $p. The channel gives what
// came of it.
func (v *verbs) provoke(t *testing.T, name, line string) <-chan error {
	t.Helper()
	c := v.dial(t, name)
	done := make(chan error, 1)
	go func() {
		o, err := c.Run(t.Context(), "for i in $(seq 600); do p=$(pidof ib_write_bw) && break; sleep 0.1; done; sleep 1; "+line, nil)
		if err == nil && o.Exit != 0 {
			err = fmt.Errorf("%s: %s: exit code %d: %s", name, line, o.Exit, o.Stderr)
		}
		done <- err
	}()
	return done
}

// The machines are what the other tests take them for: real perftest between hosts that answer over SSH, counters of soft-RoCE, and
// a queue in the switch that limits what goes through.
func TestVerbsSmoke(t *testing.T) {
	v := theVerbs(t)
	a := &app{sys: quiet(), stateDir: filepath.Join(v.work, "state")}
	m, err := a.load(t.Context(), v.layers)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"single,hosts=host1/host2,size=16KiB,depth=16,for=2s", "single,latency,op=read,hosts=host1/host2"} {
		w, err := observe.ParseWorkload(text)
		if err != nil {
			t.Fatal(err)
		}
		r, said, err := a.newPerftestRunner(t.Context(), m, w, 1, perftestFlags{slow: true}, filepath.Join(v.work, "raw"))
		if err != nil || len(said) > 0 {
			t.Fatal(said, err)
		}
		o, err := r.Run(t.Context(), tuning.Trial{N: 1, Seed: 1, Workload: w})
		if err = errors.Join(err, r.Close()); err != nil {
			t.Fatal(err)
		}
		switch {
		case o.Goodput != nil:
			t.Log(units.BitRate(*o.Goodput), o.Notes)
			if *o.Goodput < 2e6 || *o.Goodput > 20e6 { // emulated processors may be slow
				t.Errorf("the bottleneck lets 20Mbps through, not %s", units.BitRate(*o.Goodput))
			}
			for _, h := range []string{"host1", "host2"} {
				c := observe.Delta(o.Before[h], o.After[h])
				if n, ok := c.Get("eth0", observe.NAKReceived); !ok || n > 0 {
					t.Errorf("%s has counted %d, %v packets that were refused, and the queue holds all", h, n, ok)
				}
			}
		case o.P50 == nil:
			t.Error("nothing was measured")
		default:
			t.Log(*o.P50, *o.P999, o.Notes)
		}
		v.idle(t)
	}
}
