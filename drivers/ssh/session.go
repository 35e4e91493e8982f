package ssh

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/pkg/sftp"
	xssh "golang.org/x/crypto/ssh"
)

// MaxOutput is how much of each of a command's outputs Run keeps, in bytes; more is an error.
const MaxOutput = 64 << 20

// Output is what a command left behind.
type Output struct {
	Stdout, Stderr []byte
	Exit           int    // exit status; -1 when a signal ended it
	Signal         string // its name without SIG, "" normally
}

// Run runs a command line of the device's own shell and waits for it. A status other than 0 is not an error: look at
// Output. The end of ctx closes the whole connection, the only way that surely stops it. stdin may be nil.
func (c *Client) Run(ctx context.Context, command string, stdin io.Reader) (Output, error) {
	if err := c.ended(ctx); err != nil {
		return Output{}, err
	}
	stop := c.CloseOn(ctx)
	defer stop()
	var stdout, stderr bounded
	o, err := c.run(command, stdin, &stdout, &stderr)
	o.Stdout, o.Stderr = stdout.b.Bytes(), stderr.b.Bytes()
	switch {
	case ctx.Err() != nil:
		return o, fmt.Errorf("%s: waiting for %q to end: %w", c.at, command, context.Cause(ctx))
	case err != nil:
		return o, fmt.Errorf("%s: run %q: %w", c.at, command, err)
	case stdout.over || stderr.over:
		return o, fmt.Errorf("%s: run %q: more than %d bytes of output", c.at, command, MaxOutput)
	}
	return o, nil
}

// ended is the error of a context that is over before anything began; the connection stays.
func (c *Client) ended(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", c.at, context.Cause(ctx))
}

func (c *Client) run(command string, stdin io.Reader, stdout, stderr io.Writer) (Output, error) {
	s, err := c.conn.NewSession()
	if err != nil {
		return Output{}, err
	}
	defer s.Close()
	s.Stdout, s.Stderr = stdout, stderr
	if stdin != nil {
		in, err := s.StdinPipe()
		if err != nil {
			return Output{}, err
		}
		// Not s.Stdin: Wait would wait for a reader that blocks. An early end of the command is its own affair.
		go func() {
			_, _ = io.Copy(in, stdin)
			_ = in.Close()
		}()
	}
	if err := s.Start(command); err != nil {
		return Output{}, err
	}
	return exit(s.Wait())
}

// exit sorts the ways in which a command ends.
func exit(err error) (Output, error) {
	if e, ok := errors.AsType[*xssh.ExitError](err); ok {
		if e.Signal() != "" {
			return Output{Exit: -1, Signal: e.Signal()}, nil
		}
		return Output{Exit: e.ExitStatus()}, nil
	}
	if _, ok := errors.AsType[*xssh.ExitMissingError](err); ok {
		return Output{}, errors.New("the connection ended before the command did")
	}
	return Output{}, err
}

// bounded keeps MaxOutput bytes and swallows the rest, so that the command ends by itself.
type bounded struct {
	b    bytes.Buffer // not embedded: its ReadFrom would pass Write by
	over bool
}

func (b *bounded) Write(p []byte) (int, error) {
	n := len(p)
	if room := MaxOutput - b.b.Len(); n > room {
		p, b.over = p[:room], true
	}
	_, err := b.b.Write(p)
	return n, err
}

// ReadFrom is for io.Copy, whose own buffer is eight times as large as most outputs.
func (b *bounded) ReadFrom(r io.Reader) (total int64, err error) {
	buf := make([]byte, 4<<10)
	for {
		n, err := r.Read(buf)
		_, _ = b.Write(buf[:n]) // never fails
		total += int64(n)
		if err == io.EOF {
			return total, nil
		}
		if err != nil {
			return total, err
		}
	}
}

// Spec is what to open a Stream on.
type Spec struct {
	Command    string    // "" = the login shell
	PTY        bool      // ask for a terminal
	Term       string    // "" = "xterm"
	Rows, Cols int       // 0 = 24 rows, 511 columns: wide enough that no device wraps a line
	Stderr     io.Writer // nil = dropped; with a terminal there is none
}

// Stream is a running shell or command.
type Stream struct {
	In  io.WriteCloser
	Out io.Reader
	s   *xssh.Session
}

// Open starts a shell or a command and leaves it running. The context bounds the opening only. A Read that a silent
// peer leaves blocked ends with Client.Close.
func (c *Client) Open(ctx context.Context, spec Spec) (*Stream, error) {
	if err := c.ended(ctx); err != nil {
		return nil, err
	}
	stop := c.CloseOn(ctx)
	defer stop()
	s, err := c.open(spec)
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%s: waiting for a session: %w", c.at, context.Cause(ctx))
	case err != nil:
		return nil, fmt.Errorf("%s: open a session: %w", c.at, err)
	}
	return s, nil
}

func (c *Client) open(spec Spec) (_ *Stream, err error) {
	s, err := c.conn.NewSession()
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = s.Close()
		}
	}()
	s.Stderr = spec.Stderr
	st := &Stream{s: s}
	if st.In, err = s.StdinPipe(); err != nil {
		return nil, err
	}
	if st.Out, err = s.StdoutPipe(); err != nil {
		return nil, err
	}
	if spec.PTY {
		modes := xssh.TerminalModes{xssh.ECHO: 1, xssh.TTY_OP_ISPEED: 115200, xssh.TTY_OP_OSPEED: 115200}
		if err = s.RequestPty(cmp.Or(spec.Term, "xterm"), cmp.Or(spec.Rows, 24), cmp.Or(spec.Cols, 511), modes); err != nil {
			return nil, err
		}
	}
	if spec.Command == "" {
		err = s.Shell()
	} else {
		err = s.Start(spec.Command)
	}
	if err != nil {
		return nil, err
	}
	return st, nil
}

// Wait waits for the end of what runs. Read Out to its end first.
func (s *Stream) Wait() (Output, error) { return exit(s.s.Wait()) }

// Close hangs up. The connection stays.
func (s *Stream) Close() error {
	if err := s.s.Close(); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// SFTP starts a file transfer session. The context bounds the start only; guard what follows with CloseOn.
func (c *Client) SFTP(ctx context.Context) (*sftp.Client, error) {
	if err := c.ended(ctx); err != nil {
		return nil, err
	}
	stop := c.CloseOn(ctx)
	defer stop()
	f, err := sftp.NewClient(c.conn)
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%s: waiting for sftp: %w", c.at, context.Cause(ctx))
	case err != nil && strings.Contains(err.Error(), "subsystem request failed"): // for display; it decides nothing
		return nil, fmt.Errorf("%s: the server has no sftp, by which files are copied: give its sshd_config the line \"Subsystem sftp internal-sftp\": %w", c.at, err)
	case err != nil:
		return nil, fmt.Errorf("%s: sftp: %w", c.at, err)
	}
	return f, nil
}
