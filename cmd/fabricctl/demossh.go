package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/fabricctl/fabricctl/cmd/show"
)

// ssh types lines at a switch of the lab, over a plain SSH connection that knows nothing of fabricctl, and shows what comes back.
func (d *demo) ssh(ctx context.Context, device string, lines ...string) error {
	fmt.Fprintf(d.app.sys.out, "%s\n", show.Paint(show.Bold, "$ ssh "+device+" '"+strings.Join(lines, "; ")+"'"))
	said, err := d.typed(ctx, device, strings.Join(lines, "\n"))
	if said = strings.TrimRight(said, "\r\n"); said != "" {
		fmt.Fprintln(d.app.sys.out, said)
	}
	if err != nil {
		return fmt.Errorf("the demo: ssh %s: %w", device, err)
	}
	return nil
}

// typed is what a switch of the lab says to a command.
func (d *demo) typed(ctx context.Context, device, command string) (string, error) {
	in := func(file string) string { return filepath.Join(d.dir, "lab", file) }
	m, err := d.app.load(ctx, append(append([]string{}, d.app.fabric...), in("inventory.yaml")))
	if err != nil {
		return "", err
	}
	e := m.fabric.Endpoints[device]
	if e == nil {
		return "", fmt.Errorf("the lab has no %s", device)
	}
	password, err := os.ReadFile(in("password"))
	if err != nil {
		return "", err
	}
	known, err := knownhosts.New(in("known_hosts"))
	if err != nil {
		return "", err
	}
	address := net.JoinHostPort(e.Address.V, strconv.Itoa(e.SSH.Port.V))
	var dialler net.Dialer
	conn, err := dialler.DialContext(ctx, "tcp", address)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	c, channels, requests, err := ssh.NewClientConn(conn, address, &ssh.ClientConfig{
		User: e.SSH.Username.V, Auth: []ssh.AuthMethod{ssh.Password(strings.TrimSpace(string(password)))}, HostKeyCallback: known,
	})
	if err != nil {
		return "", err
	}
	client := ssh.NewClient(c, channels, requests)
	defer client.Close()
	session, err := client.NewSession()
	if err != nil {
		return "", err
	}
	defer session.Close()
	said, err := session.CombinedOutput(command)
	return string(said), err
}
