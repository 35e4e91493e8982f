package ssh

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"

	xssh "golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

// login is what we can show to be let in. The password is spent at most once over all methods.
type login struct {
	config  Config
	signers []xssh.Signer
	agent   net.Conn
	stop    func() bool
	noAgent error // why the agent could not be asked
	spent   bool  // the password was sent
	refused error // why a question was not answered
}

func newLogin(ctx context.Context, c Config) (*login, error) {
	l := &login{config: c, stop: func() bool { return true }}
	var held []xssh.Signer
	if c.Agent != "" {
		if held, l.noAgent = l.askAgent(ctx); l.noAgent != nil {
			c.Log.Warn("ssh-agent not used", "device", c.Name, "error", l.noAgent)
		}
	}
	for _, k := range c.Keys {
		s, err := signer(k, held)
		if err != nil {
			l.close()
			return nil, err
		}
		if s != nil {
			l.signers = append(l.signers, s)
		}
	}
	l.signers = append(l.signers, held...)
	if len(l.signers) == 0 && c.Password.IsZero() {
		l.close()
		password := "no password"
		if c.Jump {
			password = "a jump host is given no password"
		}
		switch {
		case l.noAgent != nil:
			return nil, fmt.Errorf("%w: %s, no key, and %w", ErrNoLogin, password, l.noAgent)
		case c.Agent != "":
			return nil, fmt.Errorf("%w: %s, no key file, and ssh-agent holds no key", ErrNoLogin, password)
		case c.Jump:
			return nil, fmt.Errorf("%w: %s, and no key file or ssh-agent is configured", ErrNoLogin, password)
		}
		return nil, fmt.Errorf("%w: no password, key file or ssh-agent is configured", ErrNoLogin)
	}
	return l, nil
}

// askAgent lists the agent's keys. The connection stays open, since the agent signs, until close or the end of ctx.
func (l *login) askAgent(ctx context.Context) ([]xssh.Signer, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", l.config.Agent)
	if err != nil {
		return nil, fmt.Errorf("ssh-agent: %w", err)
	}
	l.agent = conn
	l.stop = context.AfterFunc(ctx, func() { _ = conn.Close() })
	signers, err := agent.NewClient(conn).Signers()
	if err != nil {
		return nil, fmt.Errorf("ssh-agent at %s: %w", l.config.Agent, err)
	}
	return signers, nil
}

func (l *login) close() {
	l.stop()
	if l.agent != nil {
		_ = l.agent.Close()
	}
}

// signer loads a key file. It is nil when the key is encrypted and the agent holds it.
func signer(k Key, held []xssh.Signer) (xssh.Signer, error) {
	b, err := os.ReadFile(k.Path)
	if err != nil {
		return nil, fmt.Errorf("key file: %w", err)
	}
	s, err := xssh.ParsePrivateKey(b)
	missing, encrypted := errors.AsType[*xssh.PassphraseMissingError](err)
	switch {
	case err == nil:
		return s, nil
	case !encrypted:
		return nil, fmt.Errorf("key file %s is not a private key that can be read", k.Path)
	case !k.Passphrase.IsZero():
		if s, err = xssh.ParsePrivateKeyWithPassphrase(b, []byte(k.Passphrase.Reveal())); err != nil {
			return nil, fmt.Errorf("key file %s: the passphrase does not open it", k.Path)
		}
		return s, nil
	case missing.PublicKey != nil && slices.ContainsFunc(held, func(s xssh.Signer) bool {
		return bytes.Equal(s.PublicKey().Marshal(), missing.PublicKey.Marshal())
	}):
		return nil, nil
	}
	return nil, fmt.Errorf("key file %s is encrypted: add it to ssh-agent, or give a passphrase reference", k.Path)
}

// methods are what to try, in order: keys cost nothing, and many devices ask for the password interactively only.
func (l *login) methods() []xssh.AuthMethod {
	var ms []xssh.AuthMethod
	if len(l.signers) > 0 {
		ms = append(ms, xssh.PublicKeys(l.signers...))
	}
	if !l.config.Password.IsZero() {
		ms = append(ms, xssh.KeyboardInteractive(l.answer), xssh.PasswordCallback(l.spend))
	}
	return ms
}

// spend hands the password out, once.
func (l *login) spend() (string, error) {
	if l.spent {
		return "", errors.New("the password was refused once and is not sent again")
	}
	l.spent = true
	return l.config.Password.Reveal(), nil
}

// answer answers one hidden question with the password, and none of any other kind.
func (l *login) answer(_, _ string, questions []string, echos []bool) ([]string, error) {
	switch {
	case len(questions) == 0:
		return nil, nil
	case len(questions) > 1 || echos[0] || l.spent:
		l.refused = fmt.Errorf("it asks %s, which only a person can answer", strconv.Quote(questions[len(questions)-1]))
		return nil, l.refused
	}
	pw, err := l.spend()
	return []string{pw}, err
}

// said is err, the server's own words, or where these are only that there is nothing more to try, what that means.
func (l *login) said(err error) error {
	switch {
	case strings.Contains(err.Error(), "unexpected message type 51 (expected 60)"): // it offers to ask questions, and refuses before the first
		return errors.New("the server asks this user for no password: give a key, or have its sshd allow PasswordAuthentication")
	case !strings.Contains(err.Error(), "no supported methods remain"): // for display; it decides nothing
		return err
	case l.spent:
		return errors.New("the password or the user's name is wrong, or the account may not log in here")
	case l.config.Password.IsZero():
		return errors.New("no key that was shown is accepted, and no password is given")
	case len(l.signers) > 0:
		return errors.New("no key that was shown is accepted, and the server does not take passwords")
	}
	return errors.New("the server does not take passwords, and no key is given")
}

// why is err, unless we refused to go on ourselves or had no agent.
func (l *login) why(err error) error {
	switch {
	case l.refused != nil:
		return l.refused
	case l.noAgent != nil:
		return fmt.Errorf("%w (%w)", err, l.noAgent)
	}
	return err
}
