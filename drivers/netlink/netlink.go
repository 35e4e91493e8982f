// Package netlink is the host's own side: drivers.Device on the machine it runs on. It knows two knobs: the MTU of
// each link, over rtnetlink, and the variables of /etc/nccl.conf.
//
// What it writes, it reads back at once, because a driver may acknowledge what it does not do. Links are those of the
// network namespace that the process is in.
package netlink

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/render"
)

// Config says which machine to speak for.
type Config struct {
	Name  string // of the device, for errors; "" leaves it to the caller
	Root  string // of the files: "/" on a real machine, a fixture in tests
	Links Links  // the kernel's links; Close of the Device closes it
}

// Links is the part of rtnetlink that is used; Dial gives the kernel's.
type Links interface {
	List(ctx context.Context) ([]Link, error)
	// SetMTU sets the MTU, in bytes, of the link with that index. A refusal is the kernel's own sentence.
	SetMTU(ctx context.Context, index int32, mtu uint32) error
	Close() error
}

// Link is one network interface.
type Link struct {
	Index    int32
	Name     string
	MTU      uint32 // bytes, as ip shows it
	Min, Max uint32 // limits of MTU; Max 0 = the driver states none
	Loopback bool
	Lower    int32 // index of the link that this one rides on and may not exceed in MTU (VLAN, macvlan); 0 = none
}

// Device is this machine.
type Device struct {
	cfg     Config
	nccl    file
	dialect *render.Dialect
}

var _ drivers.Device = (*Device)(nil)

// New is the device of cfg. It touches nothing.
func New(cfg Config) *Device {
	return &Device{
		cfg:     cfg,
		nccl:    file{filepath.Join(cfg.Root, render.NCCLPath)},
		dialect: render.ByOS("linux"),
	}
}

// Close closes the links.
func (d *Device) Close() error { return d.cfg.Links.Close() }

// Read is the MTU of every link but loopbacks, and the variables of nccl.conf. A missing file has none.
func (d *Device) Read(ctx context.Context) (render.Config, error) {
	c, _, err := d.read(ctx)
	return c, d.named("read", err)
}

func (d *Device) read(ctx context.Context) (render.Config, []Link, error) {
	links, err := d.cfg.Links.List(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("links: %w", err)
	}
	text, err := d.nccl.read()
	if err != nil {
		return nil, nil, err
	}
	c := render.ParseNCCL(text)
	for _, l := range links {
		if !l.Loopback {
			c = append(c, render.Setting{Key: mtuKey(l.Name), Value: strconv.FormatUint(uint64(l.MTU), 10)})
		}
	}
	return c.Sorted(), links, ctx.Err()
}

func mtuKey(link string) render.Key { return render.Key{Scope: "link", Object: link, Field: "mtu"} }

// Commit sets MTUs one by one in the order given, then rewrites nccl.conf once; it stops between two writes when ctx
// ends. Nothing is written when any change is impossible as far as that can be seen beforehand. There is no confirm
// timer.
func (d *Device) Commit(ctx context.Context, _ drivers.TxID, cs []render.Change, within time.Duration) error {
	if within > 0 {
		return d.named("commit", drivers.ErrNoConfirm)
	}
	live, links, err := d.read(ctx)
	if err != nil {
		return d.named("commit", err)
	}
	todo, moved := render.Remaining(d.dialect, render.Facts{}, live, cs)
	if len(moved) > 0 {
		return d.named("commit", movedError(live, moved))
	}
	var mtus []mtuChange
	var vars []render.Change
	for _, c := range todo {
		if c.Key.Scope == "nccl" {
			vars = append(vars, c)
			continue
		}
		m, err := planMTU(links, c)
		if err != nil {
			return d.rejected(c, err)
		}
		mtus = append(mtus, m)
	}
	if len(vars) > 0 { // a dry run, before the first write
		text, err := d.nccl.read()
		if err != nil {
			return d.named("commit", err)
		}
		if _, err := render.EditNCCL(text, vars); err != nil {
			return d.rejected(vars[0], err)
		}
	}
	for _, m := range mtus {
		if err := d.setMTU(ctx, m); err != nil {
			return err
		}
	}
	if len(vars) > 0 {
		return d.setVars(ctx, vars)
	}
	return nil
}

type mtuChange struct {
	render.Change
	link Link
	mtu  uint32
}

// planMTU finds the link of c and judges the value by what the link says about itself.
func planMTU(links []Link, c render.Change) (mtuChange, error) {
	m := mtuChange{Change: c}
	if c.Key != mtuKey(c.Key.Object) {
		return m, errors.New("a host has no such setting")
	}
	i := slices.IndexFunc(links, func(l Link) bool { return l.Name == c.Key.Object })
	if i < 0 {
		return m, errors.New("no such link")
	}
	if m.link = links[i]; c.After == nil {
		return m, errors.New("a link always has an MTU")
	}
	n, err := strconv.ParseUint(*c.After, 10, 32)
	if err != nil {
		return m, errors.New("not a number of bytes")
	}
	m.mtu = uint32(n)
	if m.mtu < m.link.Min || m.link.Max > 0 && m.mtu > m.link.Max {
		return m, fmt.Errorf("the driver takes %d to %d", m.link.Min, m.link.Max)
	}
	return m, nil
}

func (d *Device) setMTU(ctx context.Context, m mtuChange) error {
	links, err := d.cfg.Links.List(ctx)
	if err != nil {
		return d.named("commit", err)
	}
	for _, l := range links {
		if l.Lower == m.link.Index && l.MTU > m.mtu {
			return d.rejected(m.Change, fmt.Errorf("%s, with MTU %d, rides on it and the kernel would lower that too: lower %[1]s first", l.Name, l.MTU))
		}
	}
	if err := d.cfg.Links.SetMTU(ctx, m.link.Index, m.mtu); err != nil {
		if ctx.Err() != nil {
			return d.named("commit", fmt.Errorf("%s mtu %d: %w", m.link.Name, m.mtu, err))
		}
		return d.rejected(m.Change, err)
	}
	return d.readBack(ctx, []render.Change{m.Change})
}

func (d *Device) setVars(ctx context.Context, vars []render.Change) error {
	err := d.nccl.rewrite(func(text []byte) ([]byte, error) {
		if _, moved := render.Remaining(d.dialect, render.Facts{}, render.ParseNCCL(text), vars); len(moved) > 0 {
			return nil, movedError(render.ParseNCCL(text), moved)
		}
		return render.EditNCCL(text, vars)
	})
	if err != nil {
		return d.named("commit", err)
	}
	return d.readBack(ctx, vars)
}

// readBack asks for the values again: success was claimed, which is not the same.
func (d *Device) readBack(ctx context.Context, cs []render.Change) error {
	live, _, err := d.read(ctx)
	if err != nil {
		return d.named("read back", err)
	}
	for _, c := range cs {
		if now := value(live, c.Key); !equal(now, c.After) {
			return d.rejected(c, fmt.Errorf("it was acknowledged, but reads %s", word(now)))
		}
	}
	return nil
}

func movedError(live render.Config, moved []render.Change) error {
	var s []string
	for _, c := range moved {
		s = append(s, fmt.Sprintf("%s is %s, expected %s", c.Key, word(value(live, c.Key)), word(c.Before)))
	}
	return fmt.Errorf("%w: %s", drivers.ErrMoved, strings.Join(s, "; "))
}

func (d *Device) rejected(c render.Change, err error) error {
	return &drivers.RejectedError{Device: d.cfg.Name, Sent: c.Key.String() + " " + word(c.After), Sentence: err.Error()}
}

// named puts device and operation before err, which may be nil.
func (d *Device) named(op string, err error) error {
	switch {
	case err == nil:
		return nil
	case d.cfg.Name == "":
		return fmt.Errorf("%s: %w", op, err)
	}
	return fmt.Errorf("%s: %s: %w", d.cfg.Name, op, err)
}

func value(c render.Config, k render.Key) *string {
	if v, ok := c.Find(k); ok {
		return &v
	}
	return nil
}

func equal(a, b *string) bool { return a == nil && b == nil || a != nil && b != nil && *a == *b }

func word(v *string) string {
	if v == nil {
		return "absent"
	}
	return *v
}
