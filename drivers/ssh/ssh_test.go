package ssh_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	xssh "golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/fabricctl/fabricctl/drivers/secret"
	"github.com/fabricctl/fabricctl/drivers/ssh"
)

const canary = "CANARY-pass"

// dial is a Config for s with everything right; tests break one thing.
func (s *server) dial(t *testing.T) ssh.Config {
	return ssh.Config{Name: "leaf1", Address: s.addr, User: "admin", Password: secret.New(canary), KnownHosts: knows(t, s.addr, s.key.PublicKey())}
}

func mustDial(t *testing.T, c ssh.Config) *ssh.Client {
	t.Helper()
	cl, err := ssh.Dial(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cl.Close() })
	return cl
}

// refused checks that an error is what it should be, names device and address, and hides the password.
func refused(t *testing.T, s *server, err error, is error, parts ...string) {
	t.Helper()
	if err == nil || is != nil && !errors.Is(err, is) {
		t.Fatalf("got %v, want %v", err, is)
	}
	for _, p := range append(parts, "leaf1: ssh "+s.addr+": ") {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("%q does not say %q", err, p)
		}
	}
	if strings.Contains(err.Error(), canary) {
		t.Errorf("password in %q", err)
	}
}

func TestPassword(t *testing.T) {
	for _, c := range []struct {
		name string
		s    *server
	}{
		{"password", &server{password: canary}},
		{"keyboard-interactive", &server{password: canary, kbd: true}},
		{"both", &server{password: canary, both: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := c.s.start(t)
			_ = mustDial(t, s.dial(t)).Close()
			if n := s.attempts.Swap(0); n != 1 {
				t.Errorf("%d attempts with the right password", n)
			}
			bad := s.dial(t)
			bad.Password = secret.New("CANARY-pass-wrong")
			_, err := ssh.Dial(t.Context(), bad)
			refused(t, s, err, ssh.ErrAuth, `login refused for user "admin"`)
			if n := s.attempts.Load(); n != 1 {
				t.Errorf("%d attempts with a wrong password, want 1: more may lock the account", n)
			}
		})
	}
}

func TestSecondQuestionIsNotAnswered(t *testing.T) {
	s := (&server{password: canary, kbd: true, askTwice: "One-time code\x1b[2J: "}).start(t)
	_, err := ssh.Dial(t.Context(), s.dial(t))
	refused(t, s, err, ssh.ErrAuth, `One-time code\x1b[2J`)
}

func TestKeys(t *testing.T) {
	mine, minePEM := newKey(t)
	_, otherPEM := newKey(t)
	_, raw, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := xssh.MarshalPrivateKeyWithPassphrase(raw, "", []byte("open"))
	if err != nil {
		t.Fatal(err)
	}
	lockedPEM := pem.EncodeToMemory(block)
	locked, err := xssh.NewSignerFromKey(raw)
	if err != nil {
		t.Fatal(err)
	}
	ring := agent.NewKeyring()
	if err := ring.Add(agent.AddedKey{PrivateKey: &raw}); err != nil {
		t.Fatal(err)
	}
	sock := filepath.Join(t.TempDir(), "agent")
	l, err := net.Listen("unix", sock)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _ = agent.ServeAgent(ring, c) }()
		}
	}()
	key := func(pem []byte) ssh.Key { return ssh.Key{Path: write(t, "id", string(pem))} }
	opened, wrong := key(lockedPEM), key(lockedPEM)
	opened.Passphrase, wrong.Passphrase = secret.New("open"), secret.New(canary)

	for _, c := range []struct {
		name  string
		user  xssh.PublicKey
		keys  []ssh.Key
		agent string
		jump  bool
		is    error
		err   string
	}{
		{name: "key file", user: mine.PublicKey(), keys: []ssh.Key{key(minePEM)}},
		{name: "second key file", user: mine.PublicKey(), keys: []ssh.Key{key(otherPEM), key(minePEM)}},
		{name: "agent", user: locked.PublicKey(), agent: sock},
		{name: "encrypted, with passphrase", user: locked.PublicKey(), keys: []ssh.Key{opened}},
		{name: "encrypted, held by the agent", user: locked.PublicKey(), keys: []ssh.Key{key(lockedPEM)}, agent: sock},
		{name: "key not known there", user: mine.PublicKey(), keys: []ssh.Key{key(otherPEM)}, is: ssh.ErrAuth, err: `login refused for user "admin"`},
		{name: "encrypted, no passphrase", user: locked.PublicKey(), keys: []ssh.Key{key(lockedPEM)}, err: "is encrypted: add it to ssh-agent"},
		{name: "encrypted, wrong passphrase", user: locked.PublicKey(), keys: []ssh.Key{wrong}, err: "the passphrase does not open it"},
		{name: "not a key", user: mine.PublicKey(), keys: []ssh.Key{key([]byte("hello"))}, err: "is not a private key"},
		{name: "no file", user: mine.PublicKey(), keys: []ssh.Key{{Path: "/no/such/file"}}, err: "no such file"},
		{name: "no agent", user: mine.PublicKey(), agent: filepath.Join(t.TempDir(), "none"), err: "no way to log in: no password, no key, and ssh-agent"},
		{name: "stale agent, key refused", user: mine.PublicKey(), keys: []ssh.Key{key(otherPEM)}, agent: filepath.Join(t.TempDir(), "none"), is: ssh.ErrAuth, err: "ssh-agent: dial unix"},
		{name: "nothing", user: mine.PublicKey(), err: "no way to log in: no password, key file or ssh-agent is configured"},
		{name: "nothing for a jump host", user: mine.PublicKey(), jump: true, err: "no way to log in: a jump host is given no password, and no key file or ssh-agent is configured"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := (&server{user: c.user}).start(t)
			cfg := s.dial(t)
			cfg.Password, cfg.Keys, cfg.Agent, cfg.Jump = secret.Secret{}, c.keys, c.agent, c.jump
			cl, err := ssh.Dial(t.Context(), cfg)
			if c.err != "" {
				refused(t, s, err, c.is, c.err)
				if s.attempts.Load() > 0 {
					t.Error("a password was sent")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			_ = cl.Close()
		})
	}
}

func TestHostKeys(t *testing.T) {
	s := (&server{password: canary}).start(t)
	other, _ := newKey(t)
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ecPub, err := xssh.NewPublicKey(&ec.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	offered := xssh.FingerprintSHA256(s.key.PublicKey())
	line := func(k xssh.PublicKey, hosts ...string) []string {
		return []string{write(t, "known_hosts", knownhosts.Line(hosts, k)+"\n")}
	}
	_, port, err := net.SplitHostPort(s.addr)
	if err != nil {
		t.Fatal(err)
	}
	revoked := []string{write(t, "known_hosts", "@revoked * "+strings.SplitN(knownhosts.Line([]string{"x"}, s.key.PublicKey()), " ", 2)[1]+"\n")}
	for _, c := range []struct {
		name  string
		known []string
		is    error
		parts []string
	}{
		{name: "known", known: knows(t, s.addr, s.key.PublicKey())},
		{name: "known among others", known: knows(t, s.addr, ecPub, other.PublicKey(), s.key.PublicKey())},
		{name: "hashed", known: line(s.key.PublicKey(), knownhosts.HashHostname(knownhosts.Normalize(s.addr)))},
		{name: "second file", known: append([]string{"/no/such/file"}, knows(t, s.addr, s.key.PublicKey())...)},
		{name: "unknown", known: line(s.key.PublicKey(), "10.0.0.1"), is: ssh.ErrHostUnknown, parts: []string{"host key unknown", "ssh-ed25519 " + offered, "ssh-keyscan"}},
		{name: "known on another port", known: line(s.key.PublicKey(), "127.0.0.1"), is: ssh.ErrHostUnknown, parts: []string{"[127.0.0.1]:" + port}},
		{name: "no file there", known: []string{"/no/such/file"}, is: ssh.ErrHostUnknown, parts: []string{"/no/such/file has no key"}},
		{name: "no file named", is: ssh.ErrHostUnknown, parts: []string{"no known_hosts file is configured"}},
		{name: "changed", known: knows(t, s.addr, other.PublicKey()), is: ssh.ErrHostChanged, parts: []string{"host key changed", offered, ":1 ssh-ed25519 " + xssh.FingerprintSHA256(other.PublicKey()), "ssh-keygen -R"}},
		{name: "changed type", known: knows(t, s.addr, ecPub), is: ssh.ErrHostChanged, parts: []string{"it offers ssh-ed25519, known is", "ecdsa-sha2-nistp256"}},
		{name: "revoked", known: revoked, is: ssh.ErrHostChanged, parts: []string{"host key revoked"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s.attempts.Store(0)
			cfg := s.dial(t)
			cfg.KnownHosts = c.known
			cl, err := ssh.Dial(t.Context(), cfg)
			if c.is == nil {
				if err != nil {
					t.Fatal(err)
				}
				_ = cl.Close()
				return
			}
			refused(t, s, err, c.is, c.parts...)
			if !errors.Is(err, ssh.ErrHostKey) || errors.Is(err, ssh.ErrHostUnknown) == errors.Is(err, ssh.ErrHostChanged) || errors.Is(err, ssh.ErrAuth) {
				t.Errorf("%v is not exactly one kind of host key error", err)
			}
			if s.attempts.Load() != 0 {
				t.Error("the password was sent to a stranger")
			}
		})
	}
	bad := s.dial(t)
	bad.KnownHosts = []string{write(t, "known_hosts", "not a line\n")}
	if _, err := ssh.Dial(t.Context(), bad); err == nil || !strings.Contains(err.Error(), ":1") {
		t.Error("a broken known_hosts file must be named with its line:", err)
	}
}

// A server with several keys is asked for one that we know, whichever it would rather show.
func TestSeveralHostKeys(t *testing.T) {
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	second, err := xssh.NewSignerFromKey(ec)
	if err != nil {
		t.Fatal(err)
	}
	s := (&server{password: canary, second: second}).start(t)
	for _, k := range []xssh.Signer{s.key, second} {
		cfg := s.dial(t)
		cfg.KnownHosts = knows(t, s.addr, k.PublicKey())
		mustDial(t, cfg)
	}
}

// A host certificate is accepted by its authority, as OpenSSH writes it.
func TestHostCertificate(t *testing.T) {
	host, _ := newKey(t)
	ca, _ := newKey(t)
	cert := &xssh.Certificate{Key: host.PublicKey(), CertType: xssh.HostCert, ValidPrincipals: []string{"127.0.0.1"}, ValidBefore: xssh.CertTimeInfinity}
	if err := cert.SignCert(rand.Reader, ca); err != nil {
		t.Fatal(err)
	}
	key, err := xssh.NewCertSigner(cert, host)
	if err != nil {
		t.Fatal(err)
	}
	s := (&server{password: canary, key: key}).start(t)
	cfg := s.dial(t)
	cfg.KnownHosts = []string{write(t, "known_hosts", "# authority\n@cert-authority "+knownhosts.Line([]string{knownhosts.Normalize(s.addr)}, ca.PublicKey())+"\n")}
	mustDial(t, cfg)
	other, _ := newKey(t)
	cfg.KnownHosts = []string{write(t, "known_hosts", "@cert-authority "+knownhosts.Line([]string{knownhosts.Normalize(s.addr)}, other.PublicKey())+"\n")}
	_, err = ssh.Dial(t.Context(), cfg)
	refused(t, s, err, ssh.ErrHostKey)
}

func TestInsecureWarns(t *testing.T) {
	s := (&server{password: canary}).start(t)
	var log bytes.Buffer
	cfg := s.dial(t)
	cfg.KnownHosts, cfg.Insecure = nil, true
	cfg.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	mustDial(t, cfg)
	for _, p := range []string{"level=WARN", "device=leaf1", xssh.FingerprintSHA256(s.key.PublicKey())} {
		if !strings.Contains(log.String(), p) {
			t.Errorf("log lacks %q:\n%s", p, &log)
		}
	}
	if strings.Contains(log.String(), canary) {
		t.Error("password in the log")
	}
}

func TestRun(t *testing.T) {
	s := (&server{password: canary}).start(t)
	cl := mustDial(t, s.dial(t))
	got, err := cl.Run(t.Context(), "exit 3", nil)
	if err != nil || got.Exit != 3 || string(got.Stdout) != "out" || string(got.Stderr) != "err" {
		t.Errorf("%+v %v", got, err)
	}
	got, err = cl.Run(t.Context(), "cat", strings.NewReader("text"))
	if err != nil || got.Exit != 0 || string(got.Stdout) != "text" {
		t.Errorf("%+v %v", got, err)
	}
	r, w := io.Pipe() // a stdin that never ends does not keep Run
	defer w.Close()
	if got, err = cl.Run(t.Context(), "exit 0", r); err != nil {
		t.Errorf("%+v %v", got, err)
	}
	if got, err = cl.Run(t.Context(), "signal", nil); err != nil || got.Exit != -1 || got.Signal != "TERM" {
		t.Errorf("%+v %v", got, err)
	}
	_, err = cl.Run(t.Context(), "vanish", nil)
	refused(t, s, err, nil, `run "vanish": the connection ended before the command did`)
	got, err = cl.Run(t.Context(), "flood", nil)
	refused(t, s, err, nil, "more than 67108864 bytes")
	if len(got.Stdout) != ssh.MaxOutput {
		t.Error(len(got.Stdout))
	}
}

func TestOpen(t *testing.T) {
	s := (&server{password: canary}).start(t)
	cl := mustDial(t, s.dial(t))
	st, err := cl.Open(t.Context(), ssh.Spec{PTY: true, Rows: 40})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(st.In, "ping"); err != nil {
		t.Fatal(err)
	}
	if err := st.In.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(st.Out)
	if err != nil || string(b) != "hello on xterm 40x511\nping" {
		t.Errorf("%q %v", b, err)
	}
	if o, err := st.Wait(); err != nil || o.Exit != 0 {
		t.Error(o, err)
	}
	if err := st.Close(); err != nil {
		t.Error(err)
	}
}

func TestDialErrors(t *testing.T) {
	s := (&server{password: canary}).start(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	cfg := s.dial(t)
	cfg.Address = l.Addr().String()
	_ = l.Close()
	if _, err := ssh.Dial(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "leaf1: ssh "+cfg.Address) || !strings.Contains(err.Error(), "connection refused") {
		t.Error(err)
	}
	hop := s.dial(t)
	hop.Via = []ssh.Config{s.dial(t)}
	cfg.Via = []ssh.Config{hop}
	if _, err := ssh.Dial(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "has jump hosts of its own") {
		t.Error(err)
	}
}

// Whatever the peer does not do, the end of the context ends the wait and says what was awaited.
func TestContextEnds(t *testing.T) {
	silent := (&server{silent: true}).start(t)
	deaf := (&server{password: canary, deaf: true}).start(t)
	hang := (&server{password: canary}).start(t)
	for _, c := range []struct {
		name string
		s    *server
		call func(context.Context, *ssh.Client) error
		says string
	}{
		{"greeting", silent, nil, "waiting for the server's greeting"},
		{"run", hang, func(ctx context.Context, c *ssh.Client) error { _, err := c.Run(ctx, "hang", nil); return err }, `waiting for "hang" to end`},
		{"run, deaf", deaf, func(ctx context.Context, c *ssh.Client) error { _, err := c.Run(ctx, "x", nil); return err }, `waiting for "x" to end`},
		{"open", deaf, func(ctx context.Context, c *ssh.Client) error { _, err := c.Open(ctx, ssh.Spec{}); return err }, "waiting for a session"},
		{"sftp", hang, func(ctx context.Context, c *ssh.Client) error { _, err := c.SFTP(ctx); return err }, "waiting for sftp"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var cl *ssh.Client
			if c.call != nil {
				cl = mustDial(t, c.s.dial(t))
			}
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			start := time.Now()
			var err error
			if c.call == nil {
				_, err = ssh.Dial(ctx, c.s.dial(t))
			} else {
				err = c.call(ctx, cl)
			}
			refused(t, c.s, err, context.DeadlineExceeded, c.says)
			if d := time.Since(start); d > time.Second {
				t.Errorf("took %s", d)
			}
		})
	}
}

// A context that is over before the call costs nothing: the connection stays.
func TestEndedContext(t *testing.T) {
	s := (&server{password: canary}).start(t)
	cl := mustDial(t, s.dial(t))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := cl.Run(ctx, "exit 0", nil)
	refused(t, s, err, context.Canceled)
	_, err = cl.Open(ctx, ssh.Spec{})
	refused(t, s, err, context.Canceled)
	_, err = cl.SFTP(ctx)
	refused(t, s, err, context.Canceled)
	if _, err := cl.Run(t.Context(), "exit 0", nil); err != nil {
		t.Error(err)
	}
	_, err = ssh.Dial(ctx, s.dial(t))
	refused(t, s, err, context.Canceled)
}

// A peer that stops answering is given up by the keepalive, without any context.
func TestKeepalive(t *testing.T) {
	s := (&server{password: canary, deaf: true}).start(t)
	cfg := s.dial(t)
	cfg.Keepalive = 20 * time.Millisecond
	_, err := mustDial(t, cfg).Run(t.Context(), "x", nil)
	if err == nil {
		t.Error("a dead connection ran a command")
	}
	live := (&server{password: canary, asked: make(chan string, 1)}).start(t)
	cfg = live.dial(t)
	cfg.Keepalive = 500 * time.Millisecond
	cl := mustDial(t, cfg)
	if name := <-live.asked; name != "keepalive@openssh.com" {
		t.Error(name)
	}
	if _, err := cl.Run(t.Context(), "exit 0", nil); err != nil {
		t.Error(err)
	}
}

// TestCutOff: a server that hangs up in the middle of a message is said to have done that.
func TestCutOff(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			_, _ = c.Write([]byte("SSH-2.0-x\r\n\x00\x00\x01"))
			_, _ = c.Read(make([]byte, 4096)) // or the close is a reset
			_ = c.(*net.TCPConn).CloseWrite()
		}
	}()
	_, err = ssh.Dial(t.Context(), ssh.Config{Name: "leaf1", Address: l.Addr().String(), User: "u", Password: secret.New("p"), Insecure: true})
	if want := "leaf1: ssh " + l.Addr().String() + ": the server closed the connection during the handshake"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
