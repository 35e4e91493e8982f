package sshcli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	xssh "golang.org/x/crypto/ssh"

	lab "github.com/fabricctl/fabricctl/drivers/lab/eos"
	"github.com/fabricctl/fabricctl/drivers/secret"
	"github.com/fabricctl/fabricctl/drivers/ssh"
	"github.com/fabricctl/fabricctl/render"
)

const password = "hunter2-canary"

var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// bench is an emulated switch and how to reach it.
type bench struct {
	t     *testing.T
	sw    *lab.Switch
	clock *lab.ManualClock
	addr  string
	cfg   Config
}

// newBench serves a switch with a small RDMA configuration.
func newBench(t *testing.T, o lab.Options) *bench {
	t.Helper()
	clock := lab.NewManualClock(epoch)
	o.Clock, o.Password = clock, password
	if o.Hostname == "" {
		o.Hostname = "leaf1"
	}
	if o.Ports == nil {
		o.Ports = []string{"Ethernet1/1", "Ethernet2/1", "Ethernet3/1", "Ethernet4/1"}
	}
	sw, err := lab.New(o)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("testdata/start.cfg")
	if err != nil {
		t.Fatal(err)
	}
	if err := sw.Boot(string(text)); err != nil {
		t.Fatal(err)
	}
	addr, err := sw.Listen()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sw.Close() })
	b := &bench{t: t, sw: sw, clock: clock, addr: addr}
	b.cfg = Config{
		Name: "leaf-one", OS: "eos", Now: clock.Now, EnablePassword: secret.New(o.EnablePassword), Timeout: 30 * time.Second,
		SSH: ssh.Config{Address: addr, User: "admin", Password: secret.New(password), KnownHosts: []string{b.knownHosts(sw.HostKey())}},
	}
	return b
}

func (b *bench) knownHosts(key xssh.PublicKey) string {
	host, port, _ := strings.Cut(b.addr, ":")
	p := filepath.Join(b.t.TempDir(), "known_hosts")
	if err := os.WriteFile(p, []byte(fmt.Sprintf("[%s]:%s %s", host, port, xssh.MarshalAuthorizedKey(key))), 0o600); err != nil {
		b.t.Fatal(err)
	}
	return p
}

// ctx is a safety net: nothing is meant to take this long.
func (b *bench) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	b.t.Cleanup(cancel)
	return ctx
}

func (b *bench) dial() *Device {
	b.t.Helper()
	d, err := Dial(b.ctx(), b.cfg)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = d.Close() })
	return d
}

func (b *bench) read(d *Device) render.Config {
	b.t.Helper()
	c, err := d.Read(b.ctx())
	if err != nil {
		b.t.Fatal(err)
	}
	return c
}

// states is the sessions that are not over, as name:state.
func (b *bench) states() string {
	var out []string
	for _, s := range b.sw.Sessions() {
		if s.State == "pending" || s.State == "pendingCommitTimer" {
			out = append(out, s.Name+":"+s.State)
		}
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// edit takes live to what it would be with lines typed over it, as the dialect sees it.
func (b *bench) edit(live render.Config, lines string) []render.Change {
	b.t.Helper()
	o := lab.Options{Hostname: "leaf1", Ports: []string{"Ethernet1/1", "Ethernet2/1", "Ethernet3/1", "Ethernet4/1"}}
	scratch, err := lab.New(o)
	if err != nil {
		b.t.Fatal(err)
	}
	if err := scratch.Boot(b.sw.Running()); err != nil {
		b.t.Fatal(err)
	}
	if err := scratch.Type(lines); err != nil {
		b.t.Fatal(err)
	}
	d := render.ByOS("eos")
	want, l := d.Parse([]byte(scratch.Running()))
	if l.HasErrors() {
		b.t.Fatal(l)
	}
	return render.Diff(d, render.Facts{}, live, want)
}

// small is a change of three settings in two places.
const small = "interface Ethernet1/1\nmtu 9100\nqos profile FCTL-A\nuc-tx-queue 3\nrandom-detect ecn minimum-threshold 600000 bytes maximum-threshold 2500000 bytes max-mark-probability 20 weight 0\n"
