package gnmi_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	xssh "golang.org/x/crypto/ssh"

	"github.com/fabricctl/fabricctl/drivers/gnmi"
	"github.com/fabricctl/fabricctl/drivers/lab/sonic"
	"github.com/fabricctl/fabricctl/drivers/secret"
	"github.com/fabricctl/fabricctl/drivers/ssh"
	"github.com/fabricctl/fabricctl/drivers/ssh/sshtest"
)

// jumpHost is a jump host that takes the password of the tests, and the file that vouches for it.
type jumpHost struct {
	*sshtest.Jump
	knownHosts string
}

// config is how to enter it.
func (j *jumpHost) config(name string) ssh.Config {
	return ssh.Config{Name: name, Address: j.Addr, User: "jumper", Password: secret.New(canary), KnownHosts: []string{j.knownHosts}}
}

func startJump(t *testing.T) *jumpHost {
	t.Helper()
	j := &jumpHost{knownHosts: filepath.Join(t.TempDir(), "known_hosts")}
	j.Jump = sshtest.Start(t, &xssh.ServerConfig{PasswordCallback: func(_ xssh.ConnMetadata, pw []byte) (*xssh.Permissions, error) {
		if string(pw) != canary {
			return nil, errors.New("wrong")
		}
		return nil, nil
	}})
	if err := os.WriteFile(j.knownHosts, []byte(j.KnownHost), 0o600); err != nil {
		t.Fatal(err)
	}
	return j
}

// gNMI goes through jump hosts, TLS end to end, and hangs up on them when closed. Each error names the hop.
func TestVia(t *testing.T) {
	s := launch(t, sonic.Options{})
	first, second := startJump(t), startJump(t)
	c := config(s)
	c.Via = []ssh.Config{first.config("jump1"), second.config("jump2")}
	d := open(t, c)
	if got := read(t, d).Get("DEVICE_METADATA", "localhost", "hostname"); got != "leaf1" {
		t.Errorf("hostname %q", got)
	}
	if a, b := first.Forwarded.Load(), second.Forwarded.Load(); a != 1 || b != 1 {
		t.Errorf("the jump hosts forwarded %d and %d connections, want 1 each", a, b)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}

	c.Via[1].KnownHosts = []string{first.knownHosts}
	_, err := gnmi.Dial(patience(t), c)
	says(t, err, ssh.ErrHostUnknown, "leaf1: via jump2: ssh "+second.Addr)
	c.Via = c.Via[:1]
	c.Via[0].Password = secret.New("wrong")
	_, err = gnmi.Dial(patience(t), c)
	says(t, err, ssh.ErrAuth, "leaf1: via jump1: ssh "+first.Addr, `login refused for user "jumper"`)
	c.Via[0] = first.config("jump1")
	first.Refuse(c.Address, xssh.Prohibited)
	_, err = gnmi.Dial(patience(t), c)
	says(t, err, nil, "leaf1: gnmi dial "+c.Address+" via jump1: jump1 does not forward connections there")
	first.Refuse("", 0)
	c.Address = "127.0.0.1:1"
	_, err = gnmi.Dial(patience(t), c)
	says(t, err, nil, "leaf1: gnmi dial 127.0.0.1:1 via jump1: jump1 cannot connect there", "connection refused")
}

// A jump host that dies in the middle ends the call at once, and is named. A wrong certificate behind it is told as
// without it.
func TestViaDies(t *testing.T) {
	s := launch(t, sonic.Options{})
	jump := startJump(t)
	c := config(s)
	c.Via = []ssh.Config{jump.config("jump1")}
	d := open(t, c)
	jump.Cut()
	_, err := d.Read(patience(t))
	says(t, err, nil, "leaf1: gnmi get", " via jump1: ")

	c.TLS.ServerName = "another.example"
	_, err = gnmi.Dial(patience(t), c)
	says(t, err, nil, "leaf1: gnmi dial "+c.Address+" via jump1: ", "the certificate is for another name")
}
