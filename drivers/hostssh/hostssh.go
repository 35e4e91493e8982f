// Package hostssh is a host from afar: it pushes the small fabricctl-host binary over SSH once per version, starts
// it, and speaks to it. Where there is no binary to push, the host's own tools give a view that can only read.
//
// A command line that goes to a host is made of fixed words and of quoted ones. Nothing from a model is ever part of
// one: values travel as JSON.
package hostssh

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/drivers/hostwire"
	"github.com/fabricctl/fabricctl/drivers/ssh"
)

// DefaultDir is where the binary is kept on the host, below the home directory of the user.
const DefaultDir = ".cache/fabricctl"

// Config is one host.
type Config struct {
	SSH ssh.Config // how to get there; SSH.Name stands before every error
	// Binary is fabricctl-host for an operating system and an architecture in Go's words; its error says why there is
	// none, and becomes the reason for which the host can only be read. Nil is no binary for any.
	Binary func(goos, goarch string) (*Binary, error)
	Sudo   bool   // start fabricctl-host with sudo -n: the user needs it without a password
	Dir    string // for the binary on the host, relative to the home directory or absolute; "" = DefaultDir

	// State is where the host remembers what it writes, holds, and who writes; absolute; "" = where fabricctl-host usually
	// does.
	State string
	// AllowJobs is leave for writes that kill live queue pairs of user processes; without it the host refuses them with
	// drivers.ErrJobs.
	AllowJobs bool
	// Know is what the host is told of NICs that its own catalog may lack, each a personality.
	Know []json.RawMessage
	// Wait pauses before a login is tried again; nil waits for real.
	Wait func(context.Context, time.Duration) error
	// Now is the time of readings of counters by the host's own tools; nil = time.Now.
	Now func() time.Time
}

// Binary is a program to push, with its digest. It may be used for any number of hosts at a time.
type Binary struct {
	data   []byte
	digest string // SHA-256 in hex
}

// NewBinary is a program to push.
func NewBinary(data []byte) *Binary {
	return &Binary{data, fmt.Sprintf("%x", sha256.Sum256(data))}
}

// Dial connects to a host. The result is a full Device where fabricctl-host runs, else one whose Commit is
// drivers.ErrReadOnly with the reason, which stands in Facts.Notes too.
func Dial(ctx context.Context, cfg Config) (drivers.Device, error) {
	client, err := login(ctx, cfg)
	if err != nil {
		return nil, err
	}
	h := &conn{name: cfg.SSH.Name, client: client}
	d, err := h.open(ctx, cfg)
	if err != nil {
		_ = client.Close()
		return nil, err
	}
	return d, nil
}

// login is ssh.Dial with patience: an sshd that has many logins at once closes some of them (MaxStartups), on a
// jump host most of all. Nothing was refused then, and no password was shown.
func login(ctx context.Context, cfg Config) (*ssh.Client, error) {
	wait := cfg.Wait
	if wait == nil {
		wait = pause
	}
	pauses := []time.Duration{300 * time.Millisecond, time.Second, 3 * time.Second}
	for i := 0; ; i++ {
		client, err := ssh.Dial(ctx, cfg.SSH)
		switch {
		case !errors.Is(err, ssh.ErrReset):
			return client, err
		case i == len(pauses):
			return nil, fmt.Errorf("%w, %d times", err, i+1)
		}
		// Not all at the same time again.
		if wait(ctx, pauses[i]/2+rand.N(pauses[i])) != nil {
			return nil, err
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// conn is a connection with the ways to use it.
type conn struct {
	name   string
	client *ssh.Client
}

func (h *conn) open(ctx context.Context, cfg Config) (drivers.Device, error) {
	said, err := h.lines(ctx, 2, "uname -sm; id -u")
	if err != nil {
		return nil, err
	}
	uid, err := strconv.ParseUint(said[1], 10, 32)
	if err != nil {
		return nil, fmt.Errorf("%s: id -u said %q", h.name, said[1])
	}
	goos, goarch := platform(said[0])
	bin, err := binary(cfg, goos, goarch)
	if err != nil {
		s := &stock{conn: h, why: err, now: cfg.Now}
		if s.now == nil {
			s.now = time.Now
		}
		return s, nil
	}
	path, err := h.push(ctx, bin, uint32(uid), cfg.Dir)
	if err != nil {
		return nil, err
	}
	return h.start(ctx, path, cfg)
}

func binary(cfg Config, goos, goarch string) (*Binary, error) {
	if goos != "linux" {
		return nil, fmt.Errorf("fabricctl-host is for Linux, this is %s", goos)
	}
	if cfg.Binary == nil {
		return nil, errors.New("no fabricctl-host binary is at hand")
	}
	return cfg.Binary(goos, goarch)
}

// platform turns the output of uname -sm into Go's words. What Go calls otherwise stays as it is.
func platform(uname string) (goos, goarch string) {
	s, m, _ := strings.Cut(uname, " ")
	switch m {
	case "x86_64":
		m = "amd64"
	case "aarch64":
		m = "arm64"
	}
	return strings.ToLower(s), m
}

// agent is a host on which fabricctl-host runs.
type agent struct {
	*hostwire.Client
	client *ssh.Client
}

// Close ends fabricctl-host and the connection.
func (a agent) Close() error {
	return errors.Join(a.Client.Close(), a.client.Close())
}

// helloWait is how long a started binary has to greet: sudo may ask a directory server.
const helloWait = time.Minute

// start runs the binary and waits for its hello.
func (h *conn) start(ctx context.Context, path string, cfg Config) (drivers.Device, error) {
	command := "exec "
	if cfg.Sudo {
		command += "sudo -n "
	}
	command += quote(path) + " serve"
	if cfg.State != "" {
		command += " --state-dir " + quote(cfg.State)
	}
	var stderr tail
	st, err := h.client.Open(ctx, ssh.Spec{Command: command, Stderr: &stderr})
	if err != nil {
		return nil, err
	}
	hello, cancel := context.WithTimeoutCause(ctx, helloWait, fmt.Errorf("nothing within %s", helloWait))
	defer cancel()
	wire, err := hostwire.NewClient(hello, h.name, &stream{st, h.client})
	if err != nil {
		_, _ = st.Wait() // NewClient closed the connection: this returns, and stderr is complete
		if s := stderr.String(); s != "" && ctx.Err() == nil {
			err = fmt.Errorf("%w: %s", err, s)
		}
		return nil, err
	}
	wire.AllowJobs = cfg.AllowJobs
	if len(cfg.Know) > 0 {
		if err := wire.Know(ctx, cfg.Know); err != nil {
			return nil, err
		}
	}
	a := agent{wire, h.client}
	if t, ok := wire.Timer(); ok {
		return struct {
			agent
			drivers.Confirmer
		}{a, t}, nil
	}
	return a, nil
}

// stream is a running program's input and output. Closing it closes the connection, which alone surely ends a Read
// that waits for a silent peer.
type stream struct {
	*ssh.Stream
	client *ssh.Client
}

func (s *stream) Read(p []byte) (int, error)  { return s.Out.Read(p) }
func (s *stream) Write(p []byte) (int, error) { return s.In.Write(p) }
func (s *stream) Close() error                { return s.client.Close() }

// tail keeps the last of what a program says on its error stream.
type tail struct {
	mu sync.Mutex
	b  []byte
}

const tailSize = 1 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p...)
	if n := len(t.b) - tailSize; n > 0 {
		t.b = append(t.b[:0], t.b[n:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return oneLine(t.b)
}

// mark stands, on a line of its own, between what a shell's start-up files print and what a command does.
const mark = "@@fabricctl@@"

// run is one command's standard output; a status other than 0 is an error with the command's own sentence.
func (h *conn) run(ctx context.Context, command string) ([]byte, error) {
	out, err := h.client.Run(ctx, "echo; echo "+mark+"; "+command, nil)
	_, said, marked := bytes.Cut(out.Stdout, []byte("\n"+mark+"\n"))
	switch {
	case err != nil:
		return nil, err
	case out.Exit != 0:
		return nil, fmt.Errorf("%s: run %q: %w", h.name, command, status(out))
	case !marked:
		return nil, fmt.Errorf("%s: run %q: this is not a shell as fabricctl knows it, it said %q", h.name, command, oneLine(out.Stdout))
	}
	return said, nil
}

// line is the one line that a command prints.
func (h *conn) line(ctx context.Context, command string) (string, error) {
	said, err := h.lines(ctx, 1, command)
	if err != nil {
		return "", err
	}
	return said[0], nil
}

// lines is the n lines that commands print.
func (h *conn) lines(ctx context.Context, n int, commands string) ([]string, error) {
	out, err := h.run(ctx, commands)
	if err != nil {
		return nil, err
	}
	said := strings.Split(strings.TrimRight(string(out), "\r\n"), "\n")
	if len(said) != n || slices.Contains(said, "") {
		return nil, fmt.Errorf("%s: run %q: %s expected, got %q", h.name, commands, map[bool]string{true: "one line was", false: strconv.Itoa(n) + " lines were"}[n == 1], oneLine(out))
	}
	return said, nil
}

// status says why a command ended as it did.
func status(out ssh.Output) error {
	said := oneLine(out.Stderr)
	switch {
	case out.Signal != "":
		return fmt.Errorf("signal %s: %s", out.Signal, said)
	case said == "":
		return fmt.Errorf("exit status %d", out.Exit)
	}
	return errors.New(said)
}

// oneLine is text for an error: one line, not too long, nothing that moves a terminal's cursor.
func oneLine(b []byte) string {
	const most = 300
	s := strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(string(b), "?")))
	if len(s) > most {
		s = "…" + strings.ToValidUTF8(s[len(s)-most:], "")
	}
	return s
}

// quote makes one word of s for any shell in use (sh, bash, zsh, fish; csh too unless s has a "!").
func quote(s string) string {
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

var (
	_ drivers.Device     = agent{}
	_ io.ReadWriteCloser = (*stream)(nil)
)
