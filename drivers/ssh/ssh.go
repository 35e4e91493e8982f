// Package ssh is the one SSH dialler: host keys from known_hosts, the agent, key files, one password attempt, jump
// hosts, commands, terminal sessions and sftp. CLI drivers, the host driver and tunnelled gNMI all go through it, so
// that the question "who is at the other end?" has one answer in one place.
//
// Every error names the device and the address. Branch on ErrHostKey, ErrHostUnknown, ErrHostChanged and ErrAuth.
package ssh

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	xssh "golang.org/x/crypto/ssh"

	"github.com/fabricctl/fabricctl/drivers/secret"
)

// Config is one hop: where it is, who we are there, and how we know that it is it.
type Config struct {
	Name    string // inventory name, for errors and logs
	Address string // host or host:port; 22 when there is no port
	User    string

	// Password answers "password" and a one-question "keyboard-interactive", once over both: a second wrong answer
	// may lock the account.
	Password secret.Secret
	Keys     []Key  // private key files, tried before the agent's
	Agent    string // socket of ssh-agent (SSH_AUTH_SOCK); "" = none

	KnownHosts []string // OpenSSH known_hosts files; missing ones count as empty
	Known      *Known   // remembers them from dial to dial; nil = read anew each time
	Insecure   bool     // accept any host key, with a warning in the log

	Via       []Config      // jump hosts, the first one reached directly; theirs must be empty
	Jump      bool          // it is one: nobody gives it a password, and errors say so
	Keepalive time.Duration // how often to ask whether the peer is there; three times as long without an answer ends it; 0 = never
	Log       *slog.Logger  // nil = silent
}

// Key is a private key file.
type Key struct {
	Path       string
	Passphrase secret.Secret // for an encrypted key, unless the agent holds it
}

// ErrAuth is returned by Dial when the device knows us and does not let us in. Dialling again with the same
// credentials costs another attempt.
var ErrAuth = errors.New("login refused")

// ErrNoLogin is returned by Dial, before it connects, when there is nothing to show a device: no password and no key.
var ErrNoLogin = errors.New("no way to log in")

// ErrReset is returned by Dial when the connection was closed before anybody was refused and a password was shown: an
// sshd that has too many logins at once does that (MaxStartups, PerSourcePenalties). Dialling again later may work.
var ErrReset = errors.New("the server closed the connection")

// Client is a connection to one device, jump hosts included. Its methods may be called from several goroutines.
type Client struct {
	at     string // "leaf1: ssh 10.0.0.11:22 via jump1", the start of every error
	way    string // "jump1, jump2": this hop and those below it, for what goes through it
	conn   *xssh.Client
	below  *Client // the jump host under us, or nil
	closed chan struct{}
	once   sync.Once
	wg     sync.WaitGroup
}

// Dial connects, checks the host key and logs in, hop by hop. The context bounds the dialling only. What hangs is
// said with what was awaited.
func Dial(ctx context.Context, c Config) (*Client, error) {
	var below *Client
	for _, hop := range c.Via {
		if len(hop.Via) > 0 {
			return nil, fmt.Errorf("%s: jump host %s has jump hosts of its own: list all of them in order", c.Name, hop.Name)
		}
		next, err := dial(ctx, hop, below)
		if err != nil {
			below.Close()
			return nil, fmt.Errorf("%s: via %w", c.Name, err)
		}
		below = next
	}
	cl, err := dial(ctx, c, below)
	if err != nil {
		below.Close()
		return nil, err
	}
	return cl, nil
}

// Check finds what is wrong with host key files, key files and the agent without a connection, as Dial would.
func Check(ctx context.Context, c Config) error {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if _, err := newHostKeys(c, withPort(c.Address)); err != nil {
		return fmt.Errorf("%s: ssh: %w", c.Name, err)
	}
	l, err := newLogin(ctx, c)
	if err != nil {
		return fmt.Errorf("%s: ssh: %w", c.Name, err)
	}
	l.close()
	return nil
}

// dial connects one hop over the one below it.
func dial(ctx context.Context, c Config, below *Client) (*Client, error) {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	addr := withPort(c.Address)
	name := cmp.Or(c.Name, addr)
	at, way := fmt.Sprintf("%s: ssh %s", name, addr), name
	if below != nil {
		at, way = at+" via "+below.way, below.way+", "+name
	}
	hosts, err := newHostKeys(c, addr)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", at, err)
	}
	login, err := newLogin(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", at, err)
	}
	defer login.close()

	var tcp net.Conn
	if below != nil {
		tcp, err = below.conn.DialContext(ctx, "tcp", addr)
	} else {
		tcp, err = (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	}
	if err != nil {
		if err = reason(err); below != nil {
			err = below.forwarding(err)
		}
		switch {
		case ctx.Err() != nil:
			err = fmt.Errorf("waiting for the connection: %w", context.Cause(ctx))
		case errors.Is(err, syscall.ECONNRESET):
			err = fmt.Errorf("%w during the handshake", ErrReset)
		}
		return nil, fmt.Errorf("%s: %w", at, err)
	}
	stop := context.AfterFunc(ctx, func() { _ = tcp.Close() })
	conn, chans, reqs, err := xssh.NewClientConn(tcp, addr, &xssh.ClientConfig{
		User:              c.User,
		Auth:              login.methods(),
		HostKeyCallback:   hosts.check,
		HostKeyAlgorithms: hosts.algorithms,
		ClientVersion:     "SSH-2.0-fabricctl",
	})
	if !stop() || err != nil {
		_ = tcp.Close()
		return nil, fmt.Errorf("%s: %w", at, failure(ctx, err, c.User, hosts, login))
	}
	cl := &Client{at: at, way: way, conn: xssh.NewClient(conn, chans, reqs), below: below, closed: make(chan struct{})}
	if c.Keepalive > 0 {
		cl.wg.Go(func() { cl.keepalive(c.Keepalive) })
	}
	c.Log.Debug("ssh connected", "device", c.Name, "address", addr, "user", c.User, "server", string(conn.ServerVersion()))
	return cl, nil
}

// reason is why there is no connection, without the operation and the address, which stand before it.
func reason(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Err != nil {
		err = op.Err
	}
	if call, ok := errors.AsType[*os.SyscallError](err); ok {
		err = call.Err
	}
	return err
}

// forwarding says why a jump host did not connect on.
func (c *Client) forwarding(err error) error {
	open, refused := errors.AsType[*xssh.OpenChannelError](err)
	switch {
	case refused && open.Reason == xssh.Prohibited:
		return fmt.Errorf("%s does not forward connections there (AllowTcpForwarding and PermitOpen of its sshd): %s", c.way, open.Message)
	case refused:
		return fmt.Errorf("%s cannot connect there: %s", c.way, open.Message)
	case errors.Is(err, io.EOF):
		return fmt.Errorf("%s closed the connection", c.way)
	}
	return err
}

// failure says why a handshake ended, by what had been reached rather than by what the library calls it.
func failure(ctx context.Context, err error, user string, h *hostKeys, l *login) error {
	if ctx.Err() != nil {
		awaited := "the server's greeting and key"
		if h.accepted {
			awaited = "the answer to the login"
		}
		return fmt.Errorf("waiting for %s: %w", awaited, context.Cause(ctx))
	}
	if h.refusal != nil {
		return h.refusal
	}
	if n, ok := errors.AsType[*xssh.AlgorithmNegotiationError](err); ok && h.isOurs(n.SupportedAlgorithms) {
		return h.otherType(n.RequestedAlgorithms)
	}
	if inner := errors.Unwrap(err); inner != nil {
		err = inner // drops "ssh: handshake failed"
	}
	_, broken := errors.AsType[net.Error](err)
	closed := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
	reset := errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
	broken = broken || closed || reset || errors.Is(err, net.ErrClosed)
	switch {
	case h.accepted && l.spent && closed:
		return fmt.Errorf("%w for user %q, password tried once: the server closed the connection", ErrAuth, user)
	case h.accepted && l.spent:
		return fmt.Errorf("%w for user %q, password tried once: %w", ErrAuth, user, l.said(err))
	case h.accepted && !broken:
		return fmt.Errorf("%w for user %q: %w", ErrAuth, user, l.why(l.said(err)))
	case (closed || reset) && h.accepted:
		return fmt.Errorf("%w during the login", ErrReset)
	case closed || reset:
		return fmt.Errorf("%w during the handshake", ErrReset)
	}
	return err
}

// keepalive closes the connection when the peer stops answering.
func (c *Client) keepalive(every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-c.closed:
			return
		case <-tick.C:
		}
		dead := time.AfterFunc(3*every, func() { _ = c.conn.Close() })
		_, _, err := c.conn.SendRequest("keepalive@openssh.com", true, nil)
		if !dead.Stop() || err != nil {
			_ = c.conn.Close()
			return
		}
	}
}

// DialContext opens a TCP connection from the device, the way a jump host does. The connection has no deadlines. An
// error names the jump hosts on the way.
func (c *Client) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := c.conn.DialContext(ctx, network, addr)
	if err != nil {
		return nil, fmt.Errorf("to %s: %w", addr, c.forwarding(reason(err)))
	}
	return conn, nil
}

// CloseOn closes the connection when ctx ends, so that whatever blocks on it returns. Call stop when the work is done.
func (c *Client) CloseOn(ctx context.Context) (stop func() bool) {
	return context.AfterFunc(ctx, func() { _ = c.Close() })
}

// Close ends the connection and its jump hosts'. Everything that waits on it returns. It may be called again, and on
// nil.
func (c *Client) Close() error {
	if c == nil {
		return nil
	}
	c.once.Do(func() {
		close(c.closed)
		_ = c.conn.Close() // an error means that it was closed already
		_ = c.below.Close()
	})
	c.wg.Wait()
	return nil
}

// withPort adds port 22 where there is none.
func withPort(address string) string {
	if _, _, err := net.SplitHostPort(address); err == nil {
		return address
	}
	if n := len(address); n > 1 && address[0] == '[' && address[n-1] == ']' {
		address = address[1 : n-1]
	}
	return net.JoinHostPort(address, "22")
}
