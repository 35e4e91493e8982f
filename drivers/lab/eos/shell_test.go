package eos

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/fabricctl/fabricctl/model/witness"
)

var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// start serves a switch with a still clock and the password "pw".
func start(t *testing.T, o Options) (*Switch, string, *ManualClock) {
	t.Helper()
	clock := NewManualClock(epoch)
	if o.Password == "" {
		o.Password = "pw"
	}
	o.Clock = clock
	s := newSwitch(t, o)
	addr, err := s.Listen()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s, addr, clock
}

func dial(t *testing.T, s *Switch, addr string, auth ...ssh.AuthMethod) (*ssh.Client, error) {
	t.Helper()
	if auth == nil {
		auth = []ssh.AuthMethod{ssh.Password("pw")}
	}
	return ssh.Dial("tcp", addr, &ssh.ClientConfig{User: "admin", Auth: auth, HostKeyCallback: ssh.FixedHostKey(s.HostKey()), Timeout: 10 * time.Second})
}

// transcript types input on a terminal and returns all that the switch printed.
func transcript(t *testing.T, s *Switch, addr string, rows, cols int, input string) string {
	t.Helper()
	c, err := dial(t, s, addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	x, err := c.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	x.Stdout, x.Stdin = &out, strings.NewReader(input)
	if rows > 0 {
		if err := x.RequestPty("xterm", rows, cols, ssh.TerminalModes{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := x.Shell(); err != nil {
		t.Fatal(err)
	}
	if err := x.Wait(); err != nil {
		t.Fatalf("%v after %q", err, out.String())
	}
	return strings.ReplaceAll(out.String(), "\r\n", "\n")
}

// A visitor walks through all modes; the golden file is what the terminal showed.
func TestTranscripts(t *testing.T) {
	for _, x := range []struct {
		name  string
		opt   Options
		rows  int
		setup func(s *Switch, c *ManualClock)
		input string
	}{
		{name: "modes", opt: Options{EnablePassword: "secret", Banner: "no trespassing\n", MOTD: "leaf1# is not a prompt\n"}, rows: 100, input: `show running-config
enable
wrong
enable
secret
en
show version
show hostname
bogus
sh
configure
interface Ethernet1/1
uc-tx-queue 3
exit
description to spine#
qos profile FCTL-POD1
uc-tx-queue 3
bandwidth percent 50
show hostname
exit
exit
exit
conf t
hostname leaf2
end
show running-config diffs
write memory
show running-config diffs
disable
exit
`},
		{name: "session", opt: Options{Privileged: true}, rows: 100, input: `configure session fctl-abc123
interface et1/1
uc-tx-queue 3
qos profile NAME
uc-tx-queue 3
bandwidth percent 50
show session-config diffs
show running-config
exit
exit
exit
show configuration sessions
configure session fctl-abc123
show configuration sessions detail
commit timer 00:05:00
show configuration sessions
show configuration sessions detail
configure session fctl-abc123
configure session other
commit timer 0:1:0
abort
configure session fctl-abc123 commit
show configuration sessions detail
configure session fctl-abc123
configure session nobody abort
no configure session fctl-abc123
configure session fctl-abc123
rollback clean-config
commit
show running-config
exit
`},
		{
			name: "session-4.35", opt: Options{Privileged: true, Version: "4.35.0F"}, rows: 100,
			setup: func(s *Switch, c *ManualClock) {
				s.OpenSession("theirs", "bob", "ip routing")
				s.OpenSession("fctl-1", "admin", "ip routing")
				s.StartTimer("fctl-1", "00:02:00")
				c.Advance(61 * time.Second)
			},
			input: "show configuration sessions\nshow configuration sessions detail\nconfigure session fctl-1 abort\nshow configuration sessions detail\nexit\n",
		},
		{name: "pager", opt: Options{Privileged: true, Ports: []string{"Ethernet1", "Ethernet2", "Ethernet3", "Ethernet4"}}, rows: 8, input: "show running-config\n \n  show running-config\nqterminal length 0\nshow running-config\nexit\n"},
		{name: "no-terminal", opt: Options{Privileged: true}, input: "show hostname\nexit\n"},
		{name: "editing", opt: Options{Privileged: true}, rows: 100, input: "shwo\x7f\x7fow hostname\nnonsense\x03show hostname\nmore nonsense\x15exit\r"},
		{name: "wrapping", opt: Options{Privileged: true}, rows: 100, input: "conf t\ninterface Ethernet1/1\ndescription " + strings.Repeat("long ", 30) + "\nend\nterminal width 32767\nconf t\nint et1/1\ndescription " + strings.Repeat("wide ", 30) + "\nend\nexit\n"},
	} {
		t.Run(x.name, func(t *testing.T) {
			s, addr, clock := start(t, x.opt)
			if x.setup != nil {
				x.setup(s, clock)
			}
			got := transcript(t, s, addr, x.rows, 80, x.input)
			got = strings.ReplaceAll(got, "\x1b", "ESC") // golden files stay text
			golden(t, filepath.Join("testdata", x.name+".transcript"), got)
		})
	}
}

func TestSessions(t *testing.T) {
	type step struct {
		do   string // typed in privileged mode, lines separated by newlines
		says string // must appear, "" = no refusal
		mtu  string // of Ethernet1/1 afterwards
	}
	const edit = "\ninterface Ethernet1/1\nmtu 9000\n"
	for _, x := range []struct {
		name  string
		f     Faults
		steps []step
		want  Counters
	}{
		{"commit", Faults{}, []step{{"configure session a" + edit, "", ""}, {"configure session a\ncommit", "", "9000"}}, Counters{Commits: 1, ConfigLines: 2}},
		{"abort", Faults{}, []step{{"configure session a" + edit + "abort", "", ""}}, Counters{Aborts: 1, ConfigLines: 2}},
		{"timer, confirmed", Faults{}, []step{{"configure session a" + edit + "commit timer 00:01:00", "", "9000"}, {"configure session a commit", "", "9000"}, {"advance", "", "9000"}}, Counters{Commits: 1, Confirms: 1, ConfigLines: 2}},
		{"timer, not confirmed", Faults{}, []step{{"configure session a" + edit + "commit timer 00:01:00", "", "9000"}, {"advance", "", ""}, {"configure session a commit", "state: aborted", ""}}, Counters{Commits: 1, Reverts: 1, ConfigLines: 2}},
		{"timer, aborted", Faults{}, []step{{"configure session a" + edit + "commit timer 00:01:00", "", "9000"}, {"configure session a abort", "", ""}, {"advance", "", ""}}, Counters{Commits: 1, Aborts: 1, ConfigLines: 2}},
		{"commit by name commits an open one", Faults{}, []step{{"configure session a" + edit, "", ""}, {"configure session a commit", "", "9000"}}, Counters{Commits: 1, ConfigLines: 2}},
		{"last writer wins", Faults{}, []step{{"configure session a" + edit, "", ""}, {"configure\ninterface Ethernet1/1\nmtu 1500", "", "1500"}, {"configure session a\ncommit", "", "9000"}}, Counters{Commits: 1, ConfigLines: 4}},
		{"too many", Faults{}, []step{{"configure session a\nend\nconfigure session b\nend\nconfigure session c", "% Maximum number of pending sessions", ""}}, Counters{}},
		{"zero timer", Faults{}, []step{{"configure session a" + edit + "commit timer 00:00:00", invalid, ""}}, Counters{ConfigLines: 2}},
		{"minute 60", Faults{}, []step{{"configure session a" + edit + "commit timer 00:60:00", invalid, ""}}, Counters{ConfigLines: 2}},
		{"commit ignored", Faults{IgnoreCommit: true}, []step{{"configure session a" + edit + "commit", "", ""}}, Counters{Commits: 1, ConfigLines: 2}},
		{"commit refused", Faults{CommitError: "% Cannot commit"}, []step{{"configure session a" + edit + "commit", "% Cannot commit", ""}}, Counters{ConfigLines: 2}},
		{"abort refused", Faults{RefuseAbort: true}, []step{{"configure session a" + edit + "abort", "% Internal error", ""}}, Counters{ConfigLines: 2}},
		{"confirm refused", Faults{RefuseConfirm: true}, []step{{"configure session a" + edit + "commit timer 00:01:00", "", "9000"}, {"configure session a commit", "% Internal error", "9000"}, {"advance", "", ""}}, Counters{Commits: 1, Reverts: 1, ConfigLines: 2}},
		{"line refused", Faults{Reject: regexp.MustCompile("mtu"), RejectWith: "% Busy"}, []step{{"configure session a" + edit + "commit", "% Busy", ""}}, Counters{Commits: 1, ConfigLines: 1}},
		{"line ignored", Faults{IgnoreLine: regexp.MustCompile("mtu")}, []step{{"configure session a" + edit + "commit", "", ""}}, Counters{Commits: 1, ConfigLines: 2}},
		{"save ignored", Faults{IgnoreSave: true}, []step{{"configure" + edit + "end\nwrite", "", "9000"}}, Counters{Saves: 1, ConfigLines: 2}},
	} {
		t.Run(x.name, func(t *testing.T) {
			s, addr, clock := start(t, Options{Privileged: true, MaxPending: 2})
			s.SetFaults(x.f)
			for _, st := range x.steps {
				if st.do == "advance" {
					clock.Advance(time.Minute)
				} else {
					got := transcript(t, s, addr, 0, 0, st.do+"\nend\nexit\n")
					refused := regexp.MustCompile(`(?m)^% .*$`).FindString(strings.ReplaceAll(got, "#", "\n"))
					if st.says == "" && refused != "" && refused != invalid || !strings.Contains(got, st.says) {
						t.Errorf("%q: printed %q, want %q", st.do, got, st.says)
					}
				}
				if got := mtu(s); got != st.mtu {
					t.Errorf("after %q: mtu %q, want %q", st.do, got, st.mtu)
				}
			}
			got := s.Counters()
			got.Connections = 0
			if got != x.want {
				t.Errorf("counters %+v, want %+v", got, x.want)
			}
		})
	}
}

func mtu(s *Switch) string {
	m := regexp.MustCompile(`(?m)^   mtu (\d+)$`).FindStringSubmatch(s.Running())
	if m == nil {
		return ""
	}
	return m[1]
}

func TestReload(t *testing.T) {
	s, addr, clock := start(t, Options{Privileged: true})
	transcript(t, s, addr, 0, 0, "conf t\nip routing\nend\nwrite memory\nconfigure session a\nhostname other\ncommit timer 00:01:00\nexit\n")
	if !strings.Contains(s.Running(), "hostname other") {
		t.Fatal(s.Dump())
	}
	s.Reload()
	clock.Advance(time.Hour)
	if s.Running() != s.Startup() || !strings.Contains(s.Running(), "ip routing") || strings.Contains(s.Running(), "other") || len(s.Sessions()) != 0 {
		t.Error(s.Dump())
	}
	if s.Counters().Reverts != 0 {
		t.Error("a timer survived the reload")
	}
}

func TestAuthentication(t *testing.T) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	s, addr, _ := start(t, Options{AuthorizedKeys: []ssh.PublicKey{signer.PublicKey()}})
	c, err := dial(t, s, addr, ssh.PublicKeys(signer))
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	if _, err := dial(t, s, addr, ssh.Password("wrong")); err == nil {
		t.Error("a wrong password was taken")
	}
	if n := s.Counters().AuthFailures; n != 1 {
		t.Errorf("%d failures counted, want 1", n)
	}
	n := 0
	_, err = dial(t, s, addr, ssh.RetryableAuthMethod(ssh.PasswordCallback(func() (string, error) { n++; return "wrong", nil }), 10))
	if err == nil || n != 3 {
		t.Errorf("%d passwords tried, want 3: %v", n, err)
	}
}

// Faults of the line end connections, and nothing hangs.
func TestLineFaults(t *testing.T) {
	t.Run("drop after", func(t *testing.T) {
		s, addr, _ := start(t, Options{Privileged: true})
		for _, n := range []int{1, 30, 500, 1500, 2500} {
			s.SetFaults(Faults{DropAfter: n})
			if c, err := dial(t, s, addr); err == nil {
				x, err := c.NewSession()
				if err == nil {
					if out, err := x.Output("show running-config"); err == nil {
						t.Errorf("cut after %d bytes, yet %d bytes arrived in peace", n, len(out))
					}
				}
				c.Close()
			}
		}
	})
	t.Run("drop at and on", func(t *testing.T) {
		s, addr, _ := start(t, Options{Privileged: true})
		for _, f := range []Faults{{DropAt: regexp.MustCompile("ip routing")}, {DropOn: regexp.MustCompile("ip routing")}} {
			s.SetFaults(f)
			c, err := dial(t, s, addr)
			if err != nil {
				t.Fatal(err)
			}
			x, err := c.NewSession()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := x.Output("configure\nip routing"); err == nil {
				t.Error("the connection survived")
			}
			if did := strings.Contains(s.Running(), "ip routing"); did != (f.DropOn != nil) {
				t.Errorf("acted: %v", did)
			}
		}
	})
	t.Run("stall", func(t *testing.T) {
		s, addr, _ := start(t, Options{Privileged: true})
		s.SetFaults(Faults{StallAt: regexp.MustCompile("version")})
		c, err := dial(t, s, addr)
		if err != nil {
			t.Fatal(err)
		}
		x, err := c.NewSession()
		if err != nil {
			t.Fatal(err)
		}
		if err := x.Start("show version"); err != nil {
			t.Fatal(err)
		}
		s.Close() // must not wait for the stalled session
		if err := x.Wait(); err == nil {
			t.Error("the stalled command ended well")
		}
	})
	t.Run("flood", func(t *testing.T) {
		s, addr, _ := start(t, Options{Privileged: true})
		s.SetFaults(Faults{Flood: regexp.MustCompile("version")})
		c, err := dial(t, s, addr)
		if err != nil {
			t.Fatal(err)
		}
		x, err := c.NewSession()
		if err != nil {
			t.Fatal(err)
		}
		out, err := x.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := x.Start("show version"); err != nil {
			t.Fatal(err)
		}
		if _, err := io.CopyN(io.Discard, out, 1<<20); err != nil {
			t.Error(err)
		}
		c.Close()
	})
	t.Run("behind the back", func(t *testing.T) {
		s, addr, _ := start(t, Options{Privileged: true})
		var err error
		s.SetFaults(Faults{OnLine: func(l string) {
			if l == "show hostname" {
				err = errors.Join(err, s.Type("ip routing"))
			}
		}})
		transcript(t, s, addr, 0, 0, "show hostname\nexit\n")
		if err != nil || !strings.Contains(s.Running(), "ip routing") {
			t.Error(err, s.Running())
		}
	})
}

// A stock OpenSSH client logs in with a key, once for one command, once with a terminal typed into.
func TestOpenSSH(t *testing.T) {
	client := witness.Tool(t, "ssh")
	dir := t.TempDir()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(key, "")
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	s, addr, _ := start(t, Options{AuthorizedKeys: []ssh.PublicKey{signer.PublicKey()}, Banner: "hands off\n"})
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return p
	}
	identity := write("id", string(pem.EncodeToMemory(block)))
	known := write("known_hosts", fmt.Sprintf("[%s]:%s %s", host, port, ssh.MarshalAuthorizedKey(s.HostKey())))
	run := func(known, stdin string, extra ...string) (string, error) {
		args := append([]string{
			"-F", "none", "-i", identity, "-p", port, "-o", "IdentitiesOnly=yes", "-o", "BatchMode=yes",
			"-o", "UserKnownHostsFile=" + known, "-o", "GlobalKnownHostsFile=none", "-o", "StrictHostKeyChecking=yes", "admin@" + host,
		}, extra...)
		cmd := exec.Command(client, args...)
		cmd.Stdin = strings.NewReader(stdin)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	out, err := run(known, "", "show version")
	if err != nil || !strings.Contains(out, "Software image version: 4.31.2F") || !strings.Contains(out, "hands off") {
		t.Errorf("show version: %v\n%s", err, out)
	}
	if out, err := run(known, "", "show bogus"); err == nil || !strings.Contains(out, invalid) {
		t.Errorf("a refused command: %v\n%s", err, out)
	}
	out, err = run(known, "enable\nconfigure terminal\ninterface Ethernet1/1\nmtu 9214\nend\nshow running-config\nexit\n", "-tt")
	if err != nil || !strings.Contains(out, "leaf1(config-if-Et1/1)#mtu 9214") || !strings.Contains(out, "   mtu 9214\r\n") {
		t.Errorf("typed into a terminal: %v\n%s", err, out)
	}
	other := newSwitch(t, Options{})
	wrong := write("wrong_hosts", fmt.Sprintf("[%s]:%s %s", host, port, ssh.MarshalAuthorizedKey(other.HostKey())))
	if out, err := run(wrong, "", "show version"); err == nil || !strings.Contains(out, "REMOTE HOST IDENTIFICATION HAS CHANGED") {
		t.Errorf("wrong host key: %v\n%s", err, out)
	}
}
