package gnmi_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/drivers/gnmi"
	"github.com/fabricctl/fabricctl/drivers/lab/sonic"
	"github.com/fabricctl/fabricctl/drivers/secret"
	"github.com/fabricctl/fabricctl/render"
)

const canary = "CANARY-pass"

// launch starts an emulated switch with four ports, a queue and a WRED profile.
func launch(t *testing.T, o sonic.Options) *sonic.Switch {
	t.Helper()
	if o.Config == nil {
		o.Config = sonic.Base("leaf1", "ACS-SN5600", sonic.Ports(4, 8, 400e9, 40000))
		o.Config.Set("SCHEDULER", "scheduler.0", "type", "DWRR")
		o.Config.Set("SCHEDULER", "scheduler.0", "weight", "14")
		o.Config.Set("WRED_PROFILE", "P", "ecn", "ecn_all")
		o.Config.Set("WRED_PROFILE", "P", "green_min_threshold", "1000000")
		o.Config.Set("WRED_PROFILE", "P", "green_max_threshold", "2000000")
		o.Config.Set("QUEUE", "Ethernet0|3", "scheduler", "scheduler.0")
		o.Config.Set("QUEUE", "Ethernet0|3", "wred_profile", "P")
		o.Config.Set("PORT_QOS_MAP", "Ethernet0", "pfc_enable", "3,4")
	}
	o.User, o.Password = "admin", canary
	s, err := sonic.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func config(s *sonic.Switch) gnmi.Config {
	return gnmi.Config{Name: "leaf1", Address: s.Addr(), Username: "admin", Password: secret.New(canary), TLS: gnmi.TLS{CA: s.CA()}}
}

// patience is a safety net, never waited for.
func patience(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func open(t *testing.T, c gnmi.Config) *gnmi.Device {
	t.Helper()
	d, err := gnmi.Dial(patience(t), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

func read(t *testing.T, d drivers.Reader) render.Config {
	t.Helper()
	c, err := d.Read(patience(t))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func change(table, row, field string, before, after *string) render.Change {
	c := render.Change{Op: render.Modify, Key: render.Key{Scope: table, Object: row, Field: field}, Before: before, After: after}
	switch {
	case before == nil:
		c.Op = render.Add
	case after == nil:
		c.Op = render.Remove
	}
	return c
}

func p(s string) *string { return &s }

// says checks an error: its kind, its words, the device's name, and no password.
func says(t *testing.T, err, is error, parts ...string) {
	t.Helper()
	if err == nil || is != nil && !errors.Is(err, is) {
		t.Fatalf("got %v, want %v", err, is)
	}
	for _, part := range append(parts, "leaf1") {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not say %q", err, part)
		}
	}
	if strings.Contains(err.Error(), canary) {
		t.Errorf("password in %q", err)
	}
}

func TestDial(t *testing.T) {
	s := launch(t, sonic.Options{})
	plaintext := launch(t, sonic.Options{Plaintext: true})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := l.Addr().String()
	_ = l.Close()
	for _, x := range []struct {
		name  string
		on    *sonic.Switch
		cert  sonic.Certificate
		edit  func(*gnmi.Config)
		is    error
		parts []string
		login int // attempts seen
	}{
		{name: "good", on: s, login: 1},
		{name: "wrong password", on: s, edit: func(c *gnmi.Config) { c.Password = secret.New(canary + "-wrong") }, is: gnmi.ErrAuth, parts: []string{`login refused for user "admin": the password or the user's name is wrong; the device says "Unauthenticated"`}, login: 1},
		{name: "no user", on: s, edit: func(c *gnmi.Config) { c.Username = "" }, is: gnmi.ErrAuth, parts: []string{"No Username Provided"}},
		{name: "unknown authority", on: s, cert: sonic.Stranger, is: gnmi.ErrTLS, parts: []string{": the certificate is not signed by the authority in tls.ca"}},
		{name: "expired", on: s, cert: sonic.Expired, is: gnmi.ErrTLS, parts: []string{": the certificate is out of date", "has expired"}},
		{name: "other name", on: s, cert: sonic.WrongName, is: gnmi.ErrTLS, parts: []string{"cannot validate certificate for 127.0.0.1"}},
		{name: "system authorities", on: s, edit: func(c *gnmi.Config) { c.TLS.CA = nil }, is: gnmi.ErrTLS, parts: []string{"no tls.ca is given", "the certificate is not signed by an authority that this machine trusts"}},
		{name: "server name", on: s, edit: func(c *gnmi.Config) { c.TLS.ServerName = "localhost" }, login: 1},
		{name: "other server name", on: s, edit: func(c *gnmi.Config) { c.TLS.ServerName = "leaf2" }, is: gnmi.ErrTLS, parts: []string{"valid for localhost, not leaf2"}},
		{name: "CA is no PEM", on: s, edit: func(c *gnmi.Config) { c.TLS.CA = []byte("x") }, parts: []string{"tls.ca has no certificate"}},
		{name: "key is no PEM", on: s, edit: func(c *gnmi.Config) { c.TLS.Key = secret.New(canary) }, parts: []string{"tls.cert and tls.key are not"}},
		{name: "closed port", on: s, edit: func(c *gnmi.Config) { c.Address = closed }, parts: []string{"gnmi dial " + closed + ": connection refused"}},
		{name: "no port", on: s, edit: func(c *gnmi.Config) { c.Address = "10.0.0.1" }, parts: []string{`"10.0.0.1" is not host:port`}},
		{name: "two addresses", on: s, edit: func(c *gnmi.Config) { c.Address = "10.0.0.1:1,10.0.0.2:1" }, parts: []string{"is not host:port"}},
		{name: "plaintext server, TLS asked", on: plaintext, edit: func(c *gnmi.Config) { c.TLS.CA = s.CA() }, is: gnmi.ErrTLS, parts: []string{": the server does not speak TLS", "first record does not look like a TLS handshake"}},
		{name: "TLS server, plaintext asked", on: s, edit: func(c *gnmi.Config) { c.Plaintext = true }, parts: []string{"it may want TLS"}},
		{name: "unknown authority, not verified", on: s, cert: sonic.Stranger, edit: func(c *gnmi.Config) { c.TLS.Insecure = true }, login: 1},
		{name: "plaintext", on: plaintext, edit: func(c *gnmi.Config) { c.Plaintext = true }, login: 1},
	} {
		t.Run(x.name, func(t *testing.T) {
			x.on.Fault(sonic.Faults{Certificate: x.cert})
			c := config(x.on)
			if x.edit != nil {
				x.edit(&c)
			}
			before := x.on.Stats()
			d, err := gnmi.Dial(patience(t), c)
			if n := x.on.Stats().Logins - before.Logins; n != x.login {
				t.Errorf("%d logins seen, want %d", n, x.login)
			}
			if x.parts == nil {
				if err != nil {
					t.Fatal(err)
				}
				_ = d.Close()
				return
			}
			says(t, err, x.is, x.parts...)
		})
	}
}

func TestInsecureWarns(t *testing.T) {
	s := launch(t, sonic.Options{Plaintext: true})
	var log bytes.Buffer
	c := config(s)
	c.Plaintext, c.Log = true, slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	d := open(t, c)
	read(t, d)
	if err := d.Commit(patience(t), "tx", []render.Change{change("SCHEDULER", "scheduler.0", "weight", p("14"), p("20"))}, 0); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), "level=WARN msg=\"gNMI without TLS (plaintext: true)\" device=leaf1") || strings.Contains(log.String(), canary) {
		t.Error(log.String())
	}
	if text := fmt.Sprintf("%v %+v %#v", c, c, d); strings.Contains(text, canary) {
		t.Error("the password prints with the configuration")
	}
}

func TestFacts(t *testing.T) {
	s := launch(t, sonic.Options{})
	got, caps, err := open(t, config(s)).Facts(patience(t))
	if err != nil {
		t.Fatal(err)
	}
	want := render.Facts{
		Hostname: "leaf1", Model: "ACS-SN5600",
		Aliases: map[string]string{"etp1": "Ethernet0", "etp2": "Ethernet8", "etp3": "Ethernet16", "etp4": "Ethernet24"},
		Notes:   []string{"serial number and image version cannot be read from CONFIG_DB", "the schema of CONFIG_DB is version_202411_01"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if caps != (drivers.Caps{Atomic: true, PersistsOnCommit: true, Counters: true}) {
		t.Errorf("%+v", caps)
	}
	s.Edit(func(db sonic.DB) { db.Set("QUEUE", "Ethernet0|3", "scheduler", "[SCHEDULER|scheduler.0]") })
	if got, _, err := open(t, config(s)).Facts(patience(t)); err != nil || len(got.Notes) != 3 || !strings.Contains(got.Notes[2], "before 2022") {
		t.Error("an old image is not noted:", got, err)
	}
	s.Edit(func(db sonic.DB) { clear(db) })
	if got, _, err := open(t, config(s)).Facts(patience(t)); err != nil || got.Hostname != "" || got.Model != "" {
		t.Error(got, err)
	}
}

func TestMultiASIC(t *testing.T) {
	s := launch(t, sonic.Options{ASICs: 2})
	c := config(s)
	c.Known = &gnmi.Known{}
	for range 2 { // what is remembered is the good answer only
		_, err := gnmi.Dial(patience(t), c)
		says(t, err, gnmi.ErrMultiASIC, "asic0")
	}
	if st := s.Stats(); st.Sets != 0 || st.Gets != 2 {
		t.Errorf("%d Sets and %d Gets reached a multi-ASIC switch", st.Sets, st.Gets)
	}
}

// The calls of a run are few: a switch is asked for its ASICs once, facts and the read after them share a look, and a
// commit looks again, as does every other read.
func TestCalls(t *testing.T) {
	s := launch(t, sonic.Options{})
	c := config(s)
	c.Known = &gnmi.Known{}
	d := open(t, c)
	calls := func(what string, gets int) {
		t.Helper()
		if st := s.Stats(); st.Gets != gets || st.Caps != 0 {
			t.Errorf("after %s: %d Gets, want %d; %d Capabilities, want none", what, st.Gets, gets, st.Caps)
		}
	}
	look := func() string {
		t.Helper()
		return read(t, d).Get("SCHEDULER", "scheduler.0", "weight")
	}
	facts := func() {
		t.Helper()
		if _, _, err := d.Facts(patience(t)); err != nil {
			t.Fatal(err)
		}
	}
	calls("the dial", 1)
	facts()
	s.Edit(func(db sonic.DB) { db.Set("SCHEDULER", "scheduler.0", "weight", "15") })
	if got := look(); got != "14" {
		t.Errorf("the read after facts shows another moment: weight %s", got)
	}
	calls("facts and a read", 2)
	if got := look(); got != "15" {
		t.Errorf("the second read shows the past: weight %s", got)
	}
	calls("a second read", 3)
	facts()
	s.Edit(func(db sonic.DB) { db.Set("SCHEDULER", "scheduler.0", "weight", "16") })
	err := d.Commit(patience(t), "tx", []render.Change{change("SCHEDULER", "scheduler.0", "weight", p("15"), p("20"))}, 0)
	says(t, err, drivers.ErrMoved)
	calls("facts and a commit", 5)
	if got := look(); got != "16" {
		t.Errorf("the read after a commit shows the past: weight %s", got)
	}
	facts()
	_ = d.Close()
	if _, err := d.Read(patience(t)); err == nil {
		t.Error("a closed device was read")
	}
	d = open(t, c)
	calls("a second connection", 7)
	facts()
	look()
	calls("a second connection's facts and read", 8)
}

// A second connection goes on from the TLS session of the first, and whoever else answers at the address by then must
// prove itself.
func TestSessions(t *testing.T) {
	first, second := launch(t, sonic.Options{}), launch(t, sonic.Options{})
	var behind atomic.Value
	behind.Store(first.Addr())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var conns sync.WaitGroup
	conns.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", behind.Load().(string))
			if err != nil {
				t.Error(err)
				return
			}
			conns.Go(func() { _, _ = io.Copy(far, near); _ = far.Close() })
			conns.Go(func() { _, _ = io.Copy(near, far); _ = near.Close() })
		}
	})
	defer conns.Wait()
	defer l.Close()
	c := config(first)
	c.Address, c.Known = l.Addr().String(), &gnmi.Known{}
	for range 3 {
		d := open(t, c)
		read(t, d)
		_ = d.Close()
	}
	if st := first.Stats(); st.Dials != 3 || st.Resumed != 2 {
		t.Errorf("%d of %d connections went on from the one before, want 2 of 3", st.Resumed, st.Dials)
	}
	behind.Store(second.Addr())
	d := open(t, c)
	_, err = d.Read(patience(t))
	says(t, err, gnmi.ErrTLS, "certificate")
	_ = d.Close()
	if st := second.Stats(); st.Resumed != 0 || st.Logins != 0 {
		t.Errorf("another switch went on with the session: %+v", st)
	}
	c.Known = nil
	behind.Store(first.Addr())
	_ = open(t, c).Close()
	if st := first.Stats(); st.Resumed != 2 {
		t.Error("a session was kept where nothing is to be known")
	}
}

// A switch that is remembered is dialled at the first call, which says what is wrong with the connection.
func TestRemembered(t *testing.T) {
	s := launch(t, sonic.Options{})
	c := config(s)
	c.Known = &gnmi.Known{}
	open(t, c)
	c.Password = secret.New(canary + "-wrong")
	_, _, err := open(t, c).Facts(patience(t))
	says(t, err, gnmi.ErrAuth, "gnmi get CONFIG_DB")
}

// A large ConfigDB is far above gRPC's default limit of 4 MiB.
func TestLargeDatabase(t *testing.T) {
	const rows = 60000
	config := sonic.Base("leaf1", "ACS-SN5600", sonic.Ports(1, 8, 400e9, 0))
	for i := range rows {
		config.Set("ACL_RULE", fmt.Sprintf("TABLE|RULE_%d", i), "PRIORITY", fmt.Sprint(i))
		config.Set("ACL_RULE", fmt.Sprintf("TABLE|RULE_%d", i), "SRC_IP", "10.0.0.0/8")
		config.Set("ACL_RULE", fmt.Sprintf("TABLE|RULE_%d", i), "PACKET_ACTION", "FORWARD")
	}
	if n := len(config.JSON()); n < 5<<20 {
		t.Fatalf("the database has %d bytes only", n)
	}
	s, err := sonic.Start(sonic.Options{Config: config})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	c := gnmi.Config{Name: "leaf1", Address: s.Addr(), TLS: gnmi.TLS{CA: s.CA()}}
	if got := read(t, open(t, c)); len(got) < 3*rows {
		t.Errorf("%d settings", len(got))
	}
}

// The server hangs up on idle connections; reading dials again by itself.
func TestIdle(t *testing.T) {
	s := launch(t, sonic.Options{Idle: 20 * time.Millisecond})
	d := open(t, config(s))
	for range 3 {
		for end := time.Now().Add(10 * time.Second); s.Stats().Open > 0 && time.Now().Before(end); {
			time.Sleep(time.Millisecond) // until the server has hung up
		}
		read(t, d)
	}
	if n := s.Stats().Dials; n != 4 {
		t.Errorf("%d dials, want 4", n)
	}
	s.Reboot() // drops the connection without a word
	for end := time.Now().Add(10 * time.Second); s.Stats().Open > 0 && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	read(t, d)
}

// Something that is not a ConfigDB is refused by name, not read as less.
func TestUnreadable(t *testing.T) {
	s := launch(t, sonic.Options{})
	s.Edit(func(db sonic.DB) { db["T"] = map[string]map[string]any{"r": {"": "x"}} })
	_, err := open(t, config(s)).Read(patience(t))
	says(t, err, nil, "gnmi get CONFIG_DB", "T|r")
}

// The end of the context is honoured in every call, and says what was awaited.
func TestContext(t *testing.T) {
	s := launch(t, sonic.Options{})
	d := open(t, config(s))
	read(t, d)
	s.Fault(sonic.Faults{Slow: time.Hour})
	for name, call := range map[string]func(context.Context) error{
		"dial": func(ctx context.Context) error {
			_, err := gnmi.Dial(ctx, config(s))
			return err
		},
		"read": func(ctx context.Context) error {
			_, err := d.Read(ctx)
			return err
		},
		"commit": func(ctx context.Context) error {
			return d.Commit(ctx, "tx", []render.Change{change("SCHEDULER", "scheduler.0", "weight", p("14"), p("20"))}, 0)
		},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		begin := time.Now()
		err := call(ctx)
		cancel()
		says(t, err, context.DeadlineExceeded, "waiting for the answer")
		if took := time.Since(begin); took > time.Second {
			t.Errorf("%s took %s", name, took)
		}
	}
	// A TCP peer that never answers the handshake.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	mute := config(s)
	mute.Address = l.Addr().String()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	_, err = gnmi.Dial(ctx, mute)
	says(t, err, context.DeadlineExceeded, "dial "+mute.Address)
}
