package conform

import (
	"context"
	"errors"

	"github.com/fabricctl/fabricctl/drivers"
)

// refusedLogin is the error of connecting with one thing wrong: from opening or, where the transport connects late, from the
// first call.
func (c *call) refusedLogin(open func(context.Context) (drivers.Device, error), what string) {
	c.Helper()
	state := c.s.State()
	c.noWrites(what, func() {
		d, err := open(c.ctx())
		if err == nil {
			_, err = d.Read(c.ctx())
			_ = d.Close()
		}
		c.fails(err, what)
		if errors.Is(err, context.DeadlineExceeded) {
			c.Errorf("%s: only the end of the context stopped it: %v", what, err)
		}
	})
	if c.s.State() != state {
		c.Errorf("%s: the device changed", what)
	}
}

// wrongPassword: one attempt, because a second may lock the account.
func wrongPassword(c *call) {
	c.need(c.s.WrongPassword != nil && c.s.Auths != nil, "WrongPassword and Auths")
	before := c.s.Auths()
	c.refusedLogin(c.s.WrongPassword, "wrong password")
	if n := c.s.Auths() - before; n != 1 {
		c.Errorf("the device saw %d password attempts, want exactly 1", n)
	}
}

// wrongHostKey: refused before a password is sent.
func wrongHostKey(c *call) {
	c.need(c.s.WrongHostKey != nil, "WrongHostKey")
	c.refusedBeforePassword(c.s.WrongHostKey, "wrong host key")
}

// wrongCertificate: refused before a password is sent.
func wrongCertificate(c *call) {
	c.need(c.s.WrongCertificate != nil, "WrongCertificate")
	c.refusedBeforePassword(c.s.WrongCertificate, "wrong certificate")
}

func (c *call) refusedBeforePassword(open func(context.Context) (drivers.Device, error), what string) {
	c.Helper()
	c.need(c.s.Auths != nil, "Auths")
	before := c.s.Auths()
	c.refusedLogin(open, what)
	if n := c.s.Auths() - before; n != 0 {
		c.Errorf("%s: the device saw %d password attempts, want none", what, n)
	}
}
