package main

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	xssh "golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
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
	fmt.Fprint(f, first.known, second.known)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	via := fmt.Sprintf("[\"ops@%s\", \"admin@%s\"]", first.addr, second.addr)
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
	if a, z := first.forwarded.Load(), second.forwarded.Load(); a != 2 || z != 2 || !strings.Contains(r.out, "on 2 devices") {
		t.Errorf("the jump hosts forwarded %d and %d connections, want 2 each\n%s", a, z, r)
	}

	write(real + defaults +
		"groups: {near: {roles: [leaf], ssh: {via: []}}, far: {devices: [spine1], gnmi: {via: \"nobody@" + second.addr + "\"}}}\n")
	r = b.must(t, exitError, "plan", "--device", "spine1,leaf1")
	if first.forwarded.Load() != 2 || !strings.Contains(r.out, "via "+second.addr+": ") || !strings.Contains(r.out, `login refused for user "nobody"`) {
		t.Errorf("groups decide the way: %s", r)
	}

	write(defaults)
	b.must(t, exitOK, "plan")
	if n := first.forwarded.Load(); n != 2 {
		t.Errorf("a lab is on this machine, and was reached through %d connections", n-2)
	}
}

// jump is an SSH server that forwards connections for one user, who shows the key in dir/id.
type jump struct {
	addr, known string
	forwarded   atomic.Int32
}

func startJump(t *testing.T, dir, user string) *jump {
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
	_, raw, _ := ed25519.GenerateKey(rand.Reader)
	key, err := xssh.NewSignerFromKey(raw)
	if err != nil {
		t.Fatal(err)
	}
	server := &xssh.ServerConfig{PublicKeyCallback: func(c xssh.ConnMetadata, k xssh.PublicKey) (*xssh.Permissions, error) {
		if c.User() != user || string(k.Marshal()) != string(client.PublicKey().Marshal()) {
			return nil, fmt.Errorf("refused")
		}
		return nil, nil
	}}
	server.AddHostKey(key)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	j := &jump{addr: l.Addr().String()}
	j.known = knownhosts.Line([]string{knownhosts.Normalize(j.addr)}, key.PublicKey()) + "\n"
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { j.serve(c, server) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		wg.Wait() // the program under test has hung up
	})
	return j
}

func (j *jump) serve(c net.Conn, server *xssh.ServerConfig) {
	defer c.Close()
	_, chans, reqs, err := xssh.NewServerConn(c, server)
	if err != nil {
		return
	}
	go xssh.DiscardRequests(reqs)
	for n := range chans {
		var to struct {
			Host string
			Port uint32
			From string
			P    uint32
		}
		_ = xssh.Unmarshal(n.ExtraData(), &to)
		out, err := net.Dial("tcp", net.JoinHostPort(to.Host, strconv.Itoa(int(to.Port))))
		if err != nil {
			_ = n.Reject(xssh.ConnectionFailed, "connection refused")
			continue
		}
		ch, reqs, err := n.Accept()
		if err != nil {
			return
		}
		j.forwarded.Add(1)
		go xssh.DiscardRequests(reqs)
		go func() {
			_, _ = io.Copy(out, ch)
			_ = out.Close()
		}()
		go func() {
			_, _ = io.Copy(ch, out)
			_ = ch.Close()
		}()
	}
}
