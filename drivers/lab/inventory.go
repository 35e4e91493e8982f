package lab

import (
	"fmt"
	"net"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/fabricctl/fabricctl/model/intent"
)

// entry is what the inventory says about one emulated device.
type entry struct {
	dev     *intent.Device
	addr    string        // host:port
	ca      string        // gNMI: path below the lab's directory
	hostKey ssh.PublicKey // SSH
	serial  string
	nics    []nic // of a host, in the order of its ports
}

// nic binds a host's port to the name that the emulated kernel gives it, and to its address, if it has one.
type nic struct{ netdev, peer, ip string }

// inventory is the document that reaches every device of the lab. References to files are relative to it.
func inventory(es []entry) string {
	var b strings.Builder
	b.WriteString("# Written by fabricctl lab up. Give it after the model: -f fabric.yaml -f inventory.yaml\n" +
		"apiVersion: fabricctl/v1\nkind: Inventory\ndevices:\n")
	for _, e := range es {
		host, port, _ := net.SplitHostPort(e.addr)
		fmt.Fprintf(&b, "  %s:\n    address: %s\n    platform: %s\n    lab: true\n", e.dev.Name, host, e.dev.Platform)
		if e.serial != "" {
			fmt.Fprintf(&b, "    serial: %q\n", e.serial)
		}
		if e.ca != "" {
			fmt.Fprintf(&b, "    gnmi: {port: %s, tls: {ca: \"file:%s\"}, username: %s, password: \"file:password\"}\n", port, e.ca, User)
			continue
		}
		if len(e.nics) > 0 {
			b.WriteString("    nics:\n")
		}
		for _, n := range e.nics {
			ip := ""
			if n.ip != "" {
				ip = ", ip: " + n.ip
			}
			fmt.Fprintf(&b, "      - {netdev: %s, port: %q%s}\n", n.netdev, n.peer, ip)
		}
		fmt.Fprintf(&b, "    ssh: {port: %s, username: %s, password: \"file:password\", known_hosts: \"file:known_hosts\"}\n", port, User)
	}
	return b.String()
}

func (f *files) writeKnownHosts(es []entry) error {
	var b strings.Builder
	for _, e := range es {
		if e.hostKey != nil {
			b.WriteString(knownhosts.Line([]string{knownhosts.Normalize(e.addr)}, e.hostKey) + "\n")
		}
	}
	return f.write("known_hosts", b.String())
}
