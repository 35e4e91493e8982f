// Package sshcli drives switches through their command line over SSH. What differs between operating systems is one
// row of a table (flow); the rest is the same for all: each line's answer is checked and the first refused one stops
// everything; changes are typed into a session of the device that is dropped when anything goes wrong; every wait
// honours its context and says what was awaited and what was seen.
//
// Transactions are sessions named "fctl-" and the transaction's id. They are found again by that name from any
// connection and any process.
package sshcli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/drivers/secret"
	"github.com/fabricctl/fabricctl/drivers/ssh"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/render"
)

// Config says how to reach one switch.
type Config struct {
	Name           string        // inventory name, for errors and logs
	OS             string        // "eos"
	SSH            ssh.Config    // Name and Log are taken from here when they are empty there
	EnablePassword secret.Secret // sent once, when the device asks for one
	ReadOnly       bool          // makes every write impossible
	Timeout        time.Duration // how long a device may be silent in the middle of an answer; 0 = 2 minutes
	Now            func() time.Time
	Log            *slog.Logger // nil = silent
}

// prefix starts the names of our sessions.
const prefix = render.Prefix + "-"

// Device is a switch behind a command line. Its methods are for one goroutine at a time. A connection that was lost
// is made again by the next call, until Close.
type Device struct {
	config  Config
	flow    *flow
	dialect *render.Dialect
	console *console
	facts   *render.Facts // what Commit compares values with; identity cannot change under a host key
	closed  bool
}

var (
	_ drivers.Device      = (*Device)(nil)
	_ drivers.Confirmer   = (*Device)(nil)
	_ drivers.Saver       = (*Device)(nil)
	_ drivers.Neighbourer = (*Device)(nil)
	_ drivers.Sensor      = (*Device)(nil)
)

// Systems lists the operating systems that this package can drive.
func Systems() []string {
	var out []string
	for _, f := range flows() {
		out = append(out, f.os)
	}
	return out
}

// Dial connects, logs in, becomes privileged and switches paging off. Errors of the login satisfy errors.Is as those
// of drivers/ssh do.
func Dial(ctx context.Context, c Config) (*Device, error) {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.SSH.Name == "" {
		c.SSH.Name = c.Name
	}
	if c.SSH.Log == nil {
		c.SSH.Log = c.Log
	}
	if c.Timeout <= 0 {
		c.Timeout = 2 * time.Minute
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	d := &Device{config: c, flow: flowOf(c.OS), dialect: render.ByOS(c.OS)}
	if d.flow == nil || d.dialect == nil {
		return nil, fmt.Errorf("%s: no command line is known for %q; there are: %s", c.Name, c.OS, strings.Join(Systems(), ", "))
	}
	if _, err := d.connected(ctx); err != nil {
		return nil, err
	}
	return d, nil
}

// connected is a console that works, as far as is known.
func (d *Device) connected(ctx context.Context) (*console, error) {
	if d.closed {
		return nil, fmt.Errorf("%s: the device was closed", d.config.Name)
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("%s: %w", d.config.Name, context.Cause(ctx))
	}
	if d.console != nil && d.console.broken == nil && d.console.line.why() == nil {
		return d.console, nil
	}
	d.hangUp()
	k, err := open(ctx, d.config, d.flow)
	if err != nil {
		return nil, err
	}
	d.console = k
	return k, nil
}

func (d *Device) hangUp() {
	if d.console != nil {
		d.console.close()
		d.console = nil
	}
}

// Close hangs up. It writes nothing, and may be called again.
func (d *Device) Close() error {
	d.closed = true
	d.hangUp()
	return nil
}

// Facts identifies the device. Sessions that others have open are Notes: they hold nothing up, but their commit will
// overwrite what was changed meanwhile. A commit timer of others is an Owner: when it runs out, our change goes with it.
func (d *Device) Facts(ctx context.Context) (render.Facts, drivers.Caps, error) {
	k, err := d.connected(ctx)
	if err != nil {
		return render.Facts{}, drivers.Caps{}, err
	}
	f, err := d.identity(ctx, k)
	if err != nil {
		return render.Facts{}, drivers.Caps{}, err
	}
	ss, err := d.sessions(ctx, k)
	if err != nil {
		return render.Facts{}, drivers.Caps{}, err
	}
	for _, s := range ss {
		switch {
		case strings.HasPrefix(s.name, prefix) || s.state == "":
		case s.state == drivers.TxTimed:
			f.Owners = append(f.Owners, foreignTimer(s))
		default:
			f.Notes = append(f.Notes, "configuration session "+s.name+by(s)+" is open: its commit would overwrite changes made meanwhile")
		}
	}
	return f, d.flow.caps, nil
}

func by(s session) string {
	if s.user == "" {
		return ""
	}
	return " of user " + s.user
}

func foreignTimer(s session) string {
	return "configuration session " + s.name + by(s) + " has a commit timer running: when it runs out, the device goes back to what it held before"
}

// identity is the part of the facts that does not change while a host key stays the same.
func (d *Device) identity(ctx context.Context, k *console) (render.Facts, error) {
	var f render.Facts
	for _, x := range d.flow.facts {
		answer, err := k.ask(ctx, x.line)
		if err != nil {
			return f, err
		}
		x.read(answer, &f)
	}
	if f.Hostname == "" && f.Serial == "" {
		return f, fmt.Errorf("%s: neither a hostname nor a serial number in what the device says about itself", d.config.Name)
	}
	d.facts = &f
	return f, nil
}

// Read is the whole running configuration as far as the dialect understands it.
func (d *Device) Read(ctx context.Context) (render.Config, error) {
	k, err := d.connected(ctx)
	if err != nil {
		return nil, err
	}
	_, c, err := d.read(ctx, k)
	return c, err
}

// read is the running configuration as text, without the comments at its head, and as settings. One that is cut
// short is an error: absent lines would be taken for absent settings.
func (d *Device) read(ctx context.Context, k *console) (string, render.Config, error) {
	answer, err := k.ask(ctx, d.flow.running)
	if err != nil {
		return "", nil, err
	}
	text := strings.TrimSpace(answer)
	last := text[strings.LastIndexByte(text, '\n')+1:]
	if d.flow.end != "" && strings.TrimSpace(last) != d.flow.end {
		return "", nil, k.breakOff(fmt.Errorf("%s: %q: the configuration was cut short: was waiting for a last line %q, saw %q",
			d.config.Name, d.flow.running, d.flow.end, shorten(last)))
	}
	c, l := d.dialect.Parse([]byte(text + "\n"))
	for _, f := range l {
		if f.Severity == diag.Error {
			return "", nil, fmt.Errorf("%s: %q: %s", d.config.Name, d.flow.running, f.Msg)
		}
		d.config.Log.Debug("parse", "device", d.config.Name, "finding", f.Msg)
	}
	return text, c, nil
}

func shorten(s string) string {
	if r := []rune(s); len(r) > maxSeen {
		return string(r[:maxSeen]) + "…"
	}
	return s
}

// sessions lists the device's transactions, ours and others'.
func (d *Device) sessions(ctx context.Context, k *console) ([]session, error) {
	answer, err := k.ask(ctx, d.flow.list)
	if err != nil {
		return nil, err
	}
	ss, err := d.flow.sessions(answer, d.config.Now())
	if err != nil {
		return nil, fmt.Errorf("%s: %q: not understood: %w", d.config.Name, d.flow.list, err)
	}
	return ss, nil
}

// Neighbours is what the switch hears over LLDP. A switch that refuses to say (LLDP is off) is a RejectedError.
func (d *Device) Neighbours(ctx context.Context) ([]drivers.Neighbour, error) {
	k, err := d.connected(ctx)
	if err != nil {
		return nil, err
	}
	answer, err := k.ask(ctx, d.flow.neighbours)
	if err != nil {
		return nil, err
	}
	ns, err := d.flow.heard(answer)
	if err != nil {
		return nil, fmt.Errorf("%s: %q: not understood: %w", d.config.Name, d.flow.neighbours, err)
	}
	return ns, nil
}

var errUnsaved = errors.New("the device says that it saved, but startup still differs from running")

// Saved reports whether startup equals running.
func (d *Device) Saved(ctx context.Context) (bool, error) {
	k, err := d.connected(ctx)
	if err != nil {
		return false, err
	}
	answer, err := k.ask(ctx, d.flow.saved)
	return err == nil && strings.TrimSpace(answer) == "", err
}

// Save writes running to startup, and looks whether it is there.
func (d *Device) Save(ctx context.Context) error {
	k, err := d.writable(ctx)
	if err != nil {
		return err
	}
	if err := k.do(ctx, d.flow.save); err != nil {
		return err
	}
	ok, err := d.Saved(ctx)
	if err == nil && !ok {
		err = fmt.Errorf("%s: %q: %w", d.config.Name, d.flow.save, errUnsaved)
	}
	return err
}

// writable is connected for a method that writes.
func (d *Device) writable(ctx context.Context) (*console, error) {
	if d.config.ReadOnly {
		return nil, fmt.Errorf("%s: %w", d.config.Name, drivers.ErrReadOnly)
	}
	return d.connected(ctx)
}
