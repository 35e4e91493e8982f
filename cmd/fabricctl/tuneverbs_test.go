//go:build vm

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fabricctl/fabricctl/drivers/ssh"
	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/tuning/perftest"
)

// verbs are the machines of tools/vm/verbs: host1 and host2 with soft-RoCE and perftest, and a switch that is Linux with a token
// bucket between them.
type verbs struct {
	dir   string            // of what is known of them
	ports map[string]string // their sshd, on 127.0.0.1
}

// theVerbs are the machines that run now. Without any the test is skipped: only tools/vm/verbs has them.
func theVerbs(t *testing.T) *verbs {
	t.Helper()
	v := &verbs{dir: os.Getenv("FABRICCTL_VERBS"), ports: map[string]string{}}
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
	return v
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

// on runs a command line there that has to succeed.
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

// The machines are what the other tests take them for: real perftest, whose command lines and output are those of our package, and a
// queue in the switch that limits what goes through.
func TestVerbsSmoke(t *testing.T) {
	v := theVerbs(t)
	server, client := v.dial(t, "host2"), v.dial(t, "host1")
	for i, test := range []perftest.Test{
		{Op: perftest.Write, Size: 16 * units.KiB, Depth: 16, Duration: 2 * time.Second},
		{Op: perftest.Read, Latency: true, Size: 64, Duration: 2 * time.Second},
	} {
		test.Device, test.GID, test.Port, test.ToS, test.AnyClock = "rxe0", 1, 18515+i, 104, true
		serve, err1 := test.Serve()
		connect, err2 := test.Connect("198.51.100.2")
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		on(t, server, fmt.Sprintf("timeout 30 %s </dev/null >/tmp/server 2>&1 & until ss -Hltn sport = :%d | grep -q .; do sleep 0.1; done", serve, test.Port))
		out := on(t, client, "timeout 30 "+connect.String()+" 2>&1")
		r, err := perftest.Parse([]byte(out), nil, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range r.Judge(&test, perftest.Usual()) {
			if f.Reject {
				t.Errorf("rejected: %+v", f)
			}
		}
		if t.Failed() || len(r.Rows) != 1 {
			t.Fatalf("%s\n%s", connect, out)
		}
		row := r.Rows[0]
		t.Logf("%s: %s", connect, strings.Join(strings.Fields(row.Line), " "))
		if rate := row.Goodput().V; !test.Latency && (rate < 15*units.Mbps || rate > 20*units.Mbps) {
			t.Errorf("the bottleneck lets 20Mbps through, not %s", rate)
		}
	}
}
