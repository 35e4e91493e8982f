package sshcli

import (
	"context"
	"errors"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/drivers"
	lab "github.com/fabricctl/fabricctl/drivers/lab/eos"
	"github.com/fabricctl/fabricctl/drivers/secret"
	"github.com/fabricctl/fabricctl/drivers/ssh"
	"github.com/fabricctl/fabricctl/render"
)

func TestFacts(t *testing.T) {
	b := newBench(t, lab.Options{Version: "4.35.0F", Serial: "JPE123"})
	d := b.dial()
	f, caps, err := d.Facts(b.ctx())
	if err != nil {
		t.Fatal(err)
	}
	want := render.Facts{Hostname: "leaf1", Serial: "JPE123", Model: "DCS-7060DX5-64S-F", Version: "4.35.0F"}
	if !reflect.DeepEqual(f, want) || caps != (drivers.Caps{Confirm: true, Atomic: true, Counters: true}) {
		t.Errorf("got %+v %+v, want %+v", f, caps, want)
	}
}

// What the driver reads is what the dialect makes of what the switch holds, whatever way it arrives.
func TestRead(t *testing.T) {
	for _, x := range []struct {
		name string
		opt  lab.Options
		f    lab.Faults
	}{
		{"plain", lab.Options{}, lab.Faults{}},
		{"privileged login", lab.Options{Privileged: true}, lab.Faults{}},
		{"enable password", lab.Options{EnablePassword: "swordfish"}, lab.Faults{}},
		{"banner and motd", lab.Options{Banner: "keep out#\n", MOTD: "keepout#\nleaf1#\nleaf1>\n"}, lab.Faults{}},
		{"motd ends like a prompt", lab.Options{MOTD: "welcome to\nkeepout#"}, lab.Faults{}},
		{"byte by byte", lab.Options{}, lab.Faults{Chunk: 1}},
		{"seven bytes at a time", lab.Options{MOTD: "keepout#\n"}, lab.Faults{Chunk: 7, Pause: time.Microsecond}},
		{"junk first", lab.Options{}, lab.Faults{Junk: []byte("\x00\x01\xff\xfe\x1b[31m\x1b]0;title\x07\r\n\x80\x81#\r\n")}},
		{"slow", lab.Options{}, lab.Faults{Delay: 5 * time.Millisecond}},
		{"odd name", lab.Options{Hostname: "pod-1.leaf_1"}, lab.Faults{}},
		{"a prompt too many, in which the next line can be read", lab.Options{Hostname: "e-n-a-b-l-e", MOTD: "keepout#"}, lab.Faults{SplitAt: "#", Pause: 20 * time.Millisecond}},
		{"prompts in a banner", lab.Options{Foreign: banner + "banner login\nleaf1#\nEOF\n"}, lab.Faults{}},
	} {
		t.Run(x.name, func(t *testing.T) {
			b := newBench(t, x.opt)
			b.sw.SetFaults(x.f)
			d := b.dial()
			got := b.read(d)
			want, _ := render.ByOS("eos").Parse([]byte(b.sw.Running() + x.opt.Foreign))
			if diff := cmp.Diff(want, got); diff != "" || len(got) < 15 {
				t.Errorf("%d settings (-want +got):\n%s", len(got), diff)
			}
			if again := b.read(d); !again.Equal(got) {
				t.Error("the second read differs")
			}
			if n := b.sw.Counters().ConfigLines; n != 0 {
				t.Errorf("reading typed %d configuration lines", n)
			}
		})
	}
}

// banner is free text in the configuration, where anything can stand at the start of a line.
const banner = "banner motd\nkeepout#\nspine1>\nleaf1 # no\nEOF\n"

// Text that looks like a prompt is cut at packet boundaries wherever they fall.
func TestPromptAtPacketBoundary(t *testing.T) {
	b := newBench(t, lab.Options{Foreign: banner})
	if err := b.sw.Type("interface Ethernet3/1\ndescription leaf1#\ninterface Ethernet4/1\ndescription leaf1(config)#"); err != nil {
		t.Fatal(err)
	}
	want, _ := render.ByOS("eos").Parse([]byte(b.sw.Running() + banner))
	for _, f := range []lab.Faults{{SplitAt: "#", Pause: 20 * time.Millisecond}, {SplitAt: ">", Pause: 20 * time.Millisecond}, {Chunk: 1}, {Chunk: 13}} {
		b.sw.SetFaults(f)
		d := b.dial()
		if got := b.read(d); !got.Equal(want) {
			t.Fatalf("%+v: %s", f, cmp.Diff(want, got))
		}
		d.Close()
	}
}

func TestPager(t *testing.T) {
	b := newBench(t, lab.Options{Ports: nil, Foreign: strings.Repeat("! nothing\n", 500)})
	if got := b.read(b.dial()); len(got) < 15 {
		t.Errorf("%d settings", len(got))
	}
}

func TestLoginRefused(t *testing.T) {
	b := newBench(t, lab.Options{EnablePassword: "swordfish"})
	other, err := lab.New(lab.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		name     string
		change   func(*Config)
		is       error
		says     string
		attempts int
	}{
		{"wrong password", func(c *Config) { c.SSH.Password = secret.New("wrong-canary") }, ssh.ErrAuth, "", 1},
		{"wrong host key", func(c *Config) { c.SSH.KnownHosts = []string{b.knownHosts(other.HostKey())} }, ssh.ErrHostChanged, "", 0},
		{"no host key", func(c *Config) { c.SSH.KnownHosts = nil }, ssh.ErrHostUnknown, "", 0},
		{"wrong enable password", func(c *Config) { c.EnablePassword = secret.New("sesame-canary") }, nil, "% Bad secrets", 0},
		{"no enable password", func(c *Config) { c.EnablePassword = secret.Secret{} }, nil, "asks for a password and none is configured", 0},
		{"unknown system", func(c *Config) { c.OS = "nonesuch" }, nil, `no command line is known for "nonesuch"`, 0},
	} {
		t.Run(x.name, func(t *testing.T) {
			before := b.sw.Counters().AuthFailures
			c := b.cfg
			x.change(&c)
			d, err := Dial(b.ctx(), c)
			if err == nil {
				d.Close()
				t.Fatal("let in")
			}
			if x.is != nil && !errors.Is(err, x.is) || !strings.Contains(err.Error(), x.says) || !strings.Contains(err.Error(), "leaf-one") {
				t.Errorf("%v", err)
			}
			if strings.Contains(err.Error(), "canary") {
				t.Error("the error contains a password (not repeated here)")
			}
			if n := b.sw.Counters().AuthFailures - before; n != x.attempts {
				t.Errorf("%d attempts, want %d", n, x.attempts)
			}
		})
	}
}

// What a hostile device does ends in an error that says what was awaited and what was seen: at once, or when the
// device was silent for too long.
func TestHostile(t *testing.T) {
	const short = 300 * time.Millisecond
	for _, x := range []struct {
		name          string
		opt           lab.Options
		f             lab.Faults
		login, answer time.Duration // how long to bear silence; 0 = longer than the test
		says          []string
	}{
		{"no prompt", lab.Options{MOTD: "hello\n"}, lab.Faults{NoPrompt: true}, short, 0, []string{`"log in"`, "was waiting for a prompt, saw ", "nothing came for 300ms"}},
		{"only junk", lab.Options{}, lab.Faults{NoPrompt: true, Junk: []byte("\x00\x1b[2J\xff\xfe\x07bell#no\r\n")}, short, 0, []string{"was waiting for a prompt, saw ", "nothing came for 300ms"}},
		{"stalls", lab.Options{}, lab.Faults{StallAt: regexp.MustCompile("show running")}, 0, short, []string{`"show running-config"`, "was waiting for the prompt after leaf1#, saw ", "nothing came for 300ms"}},
		{"never ends", lab.Options{}, lab.Faults{Flood: regexp.MustCompile("show running")}, 0, 0, []string{"was waiting for the prompt", "more than 16 MiB of output", "dull switch"}},
		{"cut short", lab.Options{}, lab.Faults{NoEnd: true}, 0, 0, []string{"the configuration was cut short", `was waiting for a last line "end"`, `saw "interface Ethernet4/1"`}},
		{"closes", lab.Options{}, lab.Faults{DropAt: regexp.MustCompile("show running")}, 0, 0, []string{`"show running-config"`, "the device closed the connection"}},
	} {
		t.Run(x.name, func(t *testing.T) {
			b := newBench(t, x.opt)
			b.sw.SetFaults(x.f)
			c := b.cfg
			if x.login > 0 {
				c.Timeout = x.login
			}
			d, err := Dial(b.ctx(), c)
			if err == nil {
				defer d.Close()
				if x.answer > 0 {
					d.console.quiet = x.answer
				}
				_, err = d.Read(b.ctx())
			}
			says(t, err, nil, x.says...)
			if strings.ContainsAny(err.Error(), "\x00\x1b\x07\n") || len(err.Error()) > 500 {
				t.Errorf("not fit to print: %q", err)
			}
			b.sw.SetFaults(lab.Faults{})
			if d != nil { // the next call connects again
				b.read(d)
			}
		})
	}
}

func TestSeen(t *testing.T) {
	for _, x := range []struct{ got, want string }{
		{"", "nothing"},
		{"\x00\x07\r\n", "nothing"},
		{"hello\r\n\r\n  world \n", `"hello / world"`},
		{"\x1b[31mred\xff\x00#", `"[31mred?#"`},
		{"password: hunter2-canary\n", `"password: [secret]"`},
		{strings.Repeat("x", 200) + "end", `"…` + strings.Repeat("x", maxSeen-3) + `end"`},
	} {
		l := &line{tail: []byte(x.got)}
		if got := l.seen(password); got != x.want {
			t.Errorf("%q: %s, want %s", x.got, got, x.want)
		}
	}
}

// A context that ends stops whatever is under way, and the call says so.
func TestCancelWhileReading(t *testing.T) {
	for _, at := range []string{"enable", "terminal width", "show version", "show running", "show configuration sessions", "show running-config diffs"} {
		t.Run(at, func(t *testing.T) {
			b := newBench(t, lab.Options{})
			held := make(chan struct{}, 10)
			b.sw.SetFaults(lab.Faults{StallAt: regexp.MustCompile(at), OnLine: func(l string) {
				if strings.HasPrefix(l, at) {
					held <- struct{}{}
				}
			}})
			ctx, cancel := context.WithCancel(b.ctx())
			done := make(chan error, 1)
			go func() {
				d, err := Dial(ctx, b.cfg)
				if err == nil {
					defer d.Close()
					if _, _, err = d.Facts(ctx); err == nil {
						if _, err = d.Read(ctx); err == nil {
							_, err = d.Saved(ctx)
						}
					}
				}
				done <- err
			}()
			<-held
			cancel()
			err := within1s(t, done)
			if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), at) || !strings.Contains(err.Error(), "was waiting for") {
				t.Errorf("%v", err)
			}
		})
	}
}

// within1s waits for a call that was cancelled. The limit is the contract's; on a loaded machine it is the first to
// be looked at.
func within1s(t *testing.T, done <-chan error) error {
	t.Helper()
	start := time.Now()
	select {
	case err := <-done:
		if d := time.Since(start); d > time.Second {
			t.Logf("took %v, the contract says a second", d)
		}
		return err
	case <-time.After(15 * time.Second):
		t.Fatal("the cancelled call did not come back")
		return nil
	}
}

func TestReadOnly(t *testing.T) {
	b := newBench(t, lab.Options{})
	b.cfg.ReadOnly = true
	d := b.dial()
	cs := b.edit(b.read(d), small)
	before := b.sw.Dump()
	for name, err := range map[string]error{
		"commit":  d.Commit(b.ctx(), "t1", cs, 0),
		"confirm": d.Confirm(b.ctx(), "t1"),
		"abort":   d.Abort(b.ctx(), "t1"),
		"save":    d.Save(b.ctx()),
	} {
		if !errors.Is(err, drivers.ErrReadOnly) || !strings.Contains(err.Error(), "leaf-one") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := d.Pending(b.ctx()); err != nil {
		t.Error(err)
	}
	if b.sw.Dump() != before {
		t.Error("something was written")
	}
}

func TestSave(t *testing.T) {
	b := newBench(t, lab.Options{})
	d := b.dial()
	saved := func(want bool) {
		t.Helper()
		if got, err := d.Saved(b.ctx()); err != nil || got != want {
			t.Errorf("saved: %v %v, want %v", got, err, want)
		}
	}
	saved(true)
	if err := b.sw.Type("ip routing"); err != nil {
		t.Fatal(err)
	}
	saved(false)
	b.sw.SetFaults(lab.Faults{IgnoreSave: true})
	if err := d.Save(b.ctx()); !errors.Is(err, errUnsaved) {
		t.Errorf("a save that did nothing: %v", err)
	}
	b.sw.SetFaults(lab.Faults{})
	if err := d.Save(b.ctx()); err != nil {
		t.Error(err)
	}
	saved(true)
	b.sw.Reload()
	if !strings.Contains(b.sw.Running(), "ip routing") {
		t.Error("lost by a reload")
	}
	d = b.dial() // the reload cut the old connection
	saved(true)
}

func TestSessionList(t *testing.T) {
	now := epoch
	at := func(h, m, s int) time.Time {
		return now.Add(time.Duration(h)*time.Hour + time.Duration(m)*time.Minute + time.Duration(s)*time.Second)
	}
	for _, x := range []struct {
		name, text string
		want       []session
		fails      bool
	}{
		{name: "none", text: "Maximum number of completed sessions: 1\nMaximum number of pending sessions: 5\n\n"},
		{name: "4.25, detail", text: `Maximum number of completed sessions: 1
Maximum number of pending sessions: 5

Name                      State           User       Terminal       Commit Time Left            Completed Time    Committed By 
---------------------- --------------- ---------- -------------- ---------------------- ------------------------- ------------ 
sess-2174--797967552-1    completed                                                        2021-08-08 13:50:00       user4 
sess-2174--797967552-2    pending                                                                                              
`, want: []session{{name: "sess-2174--797967552-1"}, {name: "sess-2174--797967552-2", state: drivers.TxOpen}}},
		{name: "timer before 4.32", text: `Maximum number of completed sessions: 1
Maximum number of pending sessions: 5

  Name   State              User Terminal Commit Time Left Completed Time      Committed By
  ------ ------------------ ---- -------- ---------------- ------------------- ------------
* fctl-1 pendingCommitTimer               0:04:59          2026-03-01 12:00:00 admin
`, want: []session{{name: "fctl-1", state: drivers.TxTimed, deadline: at(0, 4, 59)}}},
		{name: "4.35, detail", text: `Maximum number of completed sessions: 1
Maximum number of pending sessions: 5
Merge on commit is disabled
Autosave to startup-config on commit is disabled

Session with pending commit timer: fctl-1
Time left until commit timer expiry: in 1:01:59

  Name             State     User  Terminal Completed Time      Committed By
- ---------------- --------- ----- -------- ------------------- ------------
  fctl-1           committed                2026-09-20 23:35:15 admin
  x                pending   bob   vty8
* s1               aborted   admin vty9     2026-09-20 22:19:28
`, want: []session{{name: "fctl-1", state: drivers.TxTimed, deadline: at(1, 1, 59)}, {name: "x", user: "bob", state: drivers.TxOpen}, {name: "s1"}}},
		{name: "timer of a session that is not in the table", text: "Maximum number of pending sessions: 5\nSession with pending commit timer: a\n\n", want: []session{{name: "a", state: drivers.TxTimed}}},
		{name: "not a list", text: "hello\n", fails: true},
		{name: "a state we do not know", text: "  Name State\n  ---- -----\n  a    hanging\n", fails: true},
		{name: "half a row", text: "  Name State\n  ---- -----\n  a\n", fails: true},
	} {
		t.Run(x.name, func(t *testing.T) {
			got, err := eosSessions(x.text, now)
			if (err != nil) != x.fails {
				t.Fatal(err)
			}
			if d := cmp.Diff(x.want, got, cmp.AllowUnexported(session{})); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func FuzzSessionList(f *testing.F) {
	f.Add("Maximum number of pending sessions: 5\n  Name State User\n- ---- ----- ----\n* a    pending bob\n")
	f.Add("Session with pending commit timer: a\nTime left until commit timer expiry: in 999:99:99\n-- -\n")
	f.Fuzz(func(t *testing.T, s string) {
		ss, err := eosSessions(s, epoch)
		for _, x := range ss {
			if err == nil && x.name == "" {
				t.Errorf("a session without a name in %q", s)
			}
		}
	})
}

func TestTransactionIDs(t *testing.T) {
	b := newBench(t, lab.Options{})
	d := b.dial()
	before := b.sw.Counters()
	for _, id := range []drivers.TxID{"", "a b", "a\nreload now", "a_b", drivers.TxID(strings.Repeat("x", 41)), "ä"} {
		if err := d.Abort(b.ctx(), id); err == nil || !strings.Contains(err.Error(), "not a transaction id") {
			t.Errorf("%q: %v", id, err)
		}
	}
	if b.sw.Counters() != before {
		t.Error("something was sent")
	}
}
