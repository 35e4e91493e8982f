package conform

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/render"
)

// call is one case at work: the test, the Subject, and the few things every case does.
type call struct {
	*testing.T
	s Subject
}

// ctx ends after patience and with the test.
func (c *call) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	c.Cleanup(cancel)
	return ctx
}

// need skips the case when the Subject has no such thing.
func (c *call) need(has bool, what string) {
	c.Helper()
	if !has {
		c.Skip("not applicable: the subject has no " + what)
	}
}

// open is a new connection that ends with the test.
func (c *call) open() drivers.Device {
	c.Helper()
	d, err := c.s.Open(c.ctx())
	if err != nil {
		c.Fatalf("open: %v", err)
	}
	c.Cleanup(func() { _ = d.Close() })
	return d
}

func (c *call) read(d drivers.Reader) render.Config {
	c.Helper()
	cfg, err := d.Read(c.ctx())
	if err != nil {
		c.Fatalf("read: %v", err)
	}
	for i := 1; i < len(cfg); i++ {
		if cfg[i-1].Key.Compare(cfg[i].Key) >= 0 {
			c.Fatalf("read: %s and %s are out of order or double", cfg[i-1].Key, cfg[i].Key)
		}
	}
	return cfg
}

func (c *call) facts(d drivers.Reader) (render.Facts, drivers.Caps) {
	c.Helper()
	f, caps, err := d.Facts(c.ctx())
	if err != nil {
		c.Fatalf("facts: %v", err)
	}
	return f, caps
}

// commit has to succeed.
func (c *call) commit(d drivers.Device, tx drivers.TxID, cs []render.Change, within time.Duration) {
	c.Helper()
	if err := d.Commit(c.ctx(), tx, cs, within); err != nil {
		c.Fatalf("commit: %v", err)
	}
}

// fails checks that err is an error as the contract wants it: it names the device, keeps the secrets, speaks no Go.
func (c *call) fails(err error, what string) {
	c.Helper()
	if err == nil {
		c.Fatalf("%s: no error", what)
	}
	c.tells(err, what)
}

// goTypes finds what users must not see in an error.
var goTypes = regexp.MustCompile(`\*[a-z]+\.[A-Z]|\b(interface \{\}|nil pointer|goroutine \d)`)

func (c *call) tells(err error, what string) {
	c.Helper()
	msg := err.Error()
	if !strings.Contains(msg, c.s.Name) {
		c.Errorf("%s: the error does not name the device %s: %v", what, c.s.Name, err)
	}
	for _, s := range c.s.Secrets {
		if s != "" && strings.Contains(msg, s) {
			c.Errorf("%s: the error contains a secret (not repeated here)", what)
		}
	}
	if m := goTypes.FindString(msg); m != "" {
		c.Errorf("%s: the error speaks Go (%q): %v", what, m, err)
	}
}

// is checks for an error of one kind.
func (c *call) is(err, want error, what string) {
	c.Helper()
	c.fails(err, what)
	if !errors.Is(err, want) {
		c.Fatalf("%s: got %q, want an error that is %q", what, err, want)
	}
}

// wrote runs f and returns how many write requests the device saw.
func (c *call) wrote(f func()) int {
	before := c.s.Writes()
	f()
	return c.s.Writes() - before
}

func (c *call) noWrites(what string, f func()) {
	c.Helper()
	if n := c.wrote(f); n != 0 {
		c.Errorf("%s: the device saw %d write requests, want none", what, n)
	}
}

// set checks that changes are fit for the suite: at least two of them, each a real one.
func (c *call) set(d drivers.Device, make func(render.Config) []render.Change) []render.Change {
	c.Helper()
	cs := make(c.read(d))
	if len(cs) < 2 {
		c.Fatalf("the subject's set has %d changes, want at least 2", len(cs))
	}
	return cs
}

// value is the live value at k; nil when there is none.
func value(cfg render.Config, k render.Key) *string {
	if v, ok := cfg.Find(k); ok {
		return &v
	}
	return nil
}

// differ lists the changes of cs that want does not hold for: the live value is not the same as want(change).
func (c *call) differ(f render.Facts, live render.Config, cs []render.Change, want func(render.Change) *string) []string {
	var out []string
	for _, x := range cs {
		a, b := value(live, x.Key), want(x)
		if (a == nil && b == nil) || c.s.Same(x.Key, a, b, f) {
			continue
		}
		out = append(out, fmt.Sprintf("%s is %s, want %s", x.Key, text(a), text(b)))
	}
	return out
}

func before(x render.Change) *string { return x.Before }
func after(x render.Change) *string  { return x.After }

func text(s *string) string {
	if s == nil {
		return "absent"
	}
	return fmt.Sprintf("%q", *s)
}

// holds checks every change of cs against live.
func (c *call) holds(what string, f render.Facts, live render.Config, cs []render.Change, want func(render.Change) *string) {
	c.Helper()
	for _, d := range c.differ(f, live, cs, want) {
		c.Errorf("%s: %s", what, d)
	}
}

// untouched checks that settings which cs does not name, and which were there, are as they were.
func (c *call) untouched(what string, was, is render.Config, cs []render.Change) {
	c.Helper()
	named := make(map[render.Key]bool, len(cs))
	for _, x := range cs {
		named[x.Key] = true
	}
	for _, s := range was {
		if now := value(is, s.Key); !named[s.Key] && (now == nil || *now != s.Value) {
			c.Errorf("%s: %s, which no change names, went from %q to %s", what, s.Key, s.Value, text(now))
		}
	}
}
