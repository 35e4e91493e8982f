package main

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	xssh "golang.org/x/crypto/ssh"

	"github.com/fabricctl/fabricctl/drivers/ssh/sshtest"
)

// TestJumpHosts: an inventory's via is used for gNMI and SSH alike, entered with the key of the ssh section, and with a
// user of its own where it names one.
func TestJumpHosts(t *testing.T) {
	b := newBench(t, trio)
	first, second := startJump(t, b.dir, "ops"), startJump(t, b.dir, "admin")
	known := filepath.Join(b.dir, "lab", "known_hosts")
	f, err := os.OpenFile(known, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(f, first.KnownHost, second.KnownHost)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	via := fmt.Sprintf("[\"ops@%s\", \"admin@%s\"]", first.Addr, second.Addr)
	site := filepath.Join(b.dir, "site.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(site, []byte("apiVersion: fabricctl/v1\nkind: Inventory\n"+text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b.layers = append(b.layers, "-f", site)

	const real = "devices: {spine1: {lab: false}, leaf1: {lab: false}}\n"
	defaults := "defaults: {ssh: {key: file:id, known_hosts: file:lab/known_hosts, via: " + via + "}, gnmi: {via: " + via + "}}\n"
	write(real + defaults)
	r := b.must(t, exitOK, "plan", "--device", "spine1,leaf1")
	if a, z := first.Forwarded.Load(), second.Forwarded.Load(); a != 2 || z != 2 || !strings.Contains(r.out, "on 2 devices") {
		t.Errorf("the jump hosts forwarded %d and %d connections, want 2 each\n%s", a, z, r)
	}

	write(real + defaults +
		"groups: {near: {roles: [leaf], ssh: {via: []}}, far: {devices: [spine1], gnmi: {via: \"nobody@" + second.Addr + "\"}}}\n")
	r = b.must(t, exitError, "plan", "--device", "spine1,leaf1")
	if first.Forwarded.Load() != 2 || !strings.Contains(r.out, "via "+second.Addr+": ") || !strings.Contains(r.out, `login refused for user "nobody"`) {
		t.Errorf("groups decide the way: %s", r)
	}

	write(defaults)
	b.must(t, exitOK, "plan")
	if n := first.Forwarded.Load(); n != 2 {
		t.Errorf("a lab is on this machine, and was reached through %d connections", n-2)
	}
}

// startJump is a jump host for one user, who shows the key in dir/id.
func startJump(t *testing.T, dir, user string) *sshtest.Jump {
	t.Helper()
	mine := filepath.Join(dir, "id")
	text, err := os.ReadFile(mine)
	if err != nil {
		_, raw, _ := ed25519.GenerateKey(rand.Reader)
		block, err := xssh.MarshalPrivateKey(raw, "")
		if err != nil {
			t.Fatal(err)
		}
		text = pem.EncodeToMemory(block)
		if err := os.WriteFile(mine, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	client, err := xssh.ParsePrivateKey(text)
	if err != nil {
		t.Fatal(err)
	}
	return sshtest.Start(t, &xssh.ServerConfig{PublicKeyCallback: func(c xssh.ConnMetadata, k xssh.PublicKey) (*xssh.Permissions, error) {
		if c.User() != user || string(k.Marshal()) != string(client.PublicKey().Marshal()) {
			return nil, errors.New("refused")
		}
		return nil, nil
	}})
}
