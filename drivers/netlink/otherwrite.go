package netlink

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/render"
)

// compare wants changes in force that were acknowledged.
func (d *Device) compare(live render.Config, cs []render.Change) error {
	for _, c := range cs {
		if now := value(live, c.Key); !d.dialect.Same(c.Key, now, c.After, render.Facts{}) {
			return &drivers.DiffersError{Device: d.cfg.Name, Sent: c.Key.String() + " " + word(c.After), Reads: word(now)}
		}
	}
	return nil
}

// writeEthtool sets link pause, rings, FEC or a private flag.
func (n *nicWork) writeEthtool(ctx context.Context, s stage) error {
	cs := n.of(string(s))
	if len(cs) == 0 {
		return nil
	}
	if err := n.guard(ctx, string(s), n.nic.per.EffectOf(string(s), cs[0].Key.Field)); err != nil {
		return err
	}
	d := n.w.d
	e := ethLink{d.cfg.Ethtool, n.nic.Name}
	d.cfg.Hook("write " + n.nic.Name + " before")
	err := func() error {
		switch s {
		case stagePause:
			p, err := e.pause(ctx)
			if err != nil {
				return err
			}
			for _, c := range cs {
				on := *c.After == "on"
				switch c.Key.Field {
				case "receive":
					p.rx = on
				case "send":
					p.tx = on
				case "autoneg":
					p.autoneg = on
				}
			}
			return e.setPause(ctx, p)
		case stageRing:
			return e.setRings(ctx, func(r *rings) {
				for _, c := range cs {
					v, _ := parse32(*c.After) // add has seen that it is one
					if c.Key.Field == "rx" {
						r.rx = v
					} else {
						r.tx = v
					}
				}
			})
		case stageFEC:
			return e.setFEC(ctx, *cs[0].After)
		}
		return e.setFlag(ctx, cs[0].Key.Field, *cs[0].After == "on")
	}()
	d.cfg.Hook("write " + n.nic.Name + " after")
	if err := n.refused(ctx, err, string(s)); err != nil {
		return err
	}
	now, err := d.sense(ctx, n.nic)
	if err != nil {
		return d.named("read back", err)
	}
	return n.compare(now.cfg, cs)
}

// writeKnobs sets what the driver has files for, in the order of its personality.
func (n *nicWork) writeKnobs(ctx context.Context) error {
	d, io := n.w.d, n.w.d.knobIO(n.nic)
	io.memory, io.hook = &d.memory, d.cfg.Hook
	for _, k := range n.nic.per.Knobs {
		key := knobKey(n.nic.Name, k.Name)
		want, asked := n.want[key]
		if !asked {
			continue
		}
		if key.Scope == scopePFC && n.target != nil && n.target.PFC != nil {
			continue // dcbnl has it, and counts
		}
		if err := n.guard(ctx, k.Name, n.nic.per.EffectOf(key.Scope, key.Field)); err != nil {
			return err
		}
		c := render.Change{Key: key, After: want}
		if err := io.set(k.Knob, want); err != nil {
			if ctx.Err() != nil {
				return d.named("commit", err)
			}
			return d.rejected(c, err)
		}
		var live render.Config
		v, ok, err := io.read(ctx, k.Knob)
		if err != nil {
			return d.named("read back", fmt.Errorf("%s of %s: %w", k.Name, n.nic.Name, err))
		}
		if ok {
			live = render.Config{{Key: key, Value: v}}
		}
		if want == nil {
			continue // what configfs shows goes with the last knob of its directory
		}
		if err := n.compare(live, []render.Change{c}); err != nil {
			return err
		}
	}
	return nil
}

func (n *nicWork) writeSystem(ctx context.Context, s stage) error {
	d := n.w.d
	for _, c := range n.of(string(s)) {
		if err := n.guard(ctx, string(s), n.nic.per.EffectOf(string(s), c.Key.Field)); err != nil {
			return err
		}
		d.cfg.Hook("write " + n.nic.Name + " before")
		var err error
		if s == stagePCI {
			err = d.setMaxReadRequest(n.nic.hw.pci, *c.After)
		} else {
			err = d.setAffinity(n.nic.hw.pci, *c.After)
		}
		d.cfg.Hook("write " + n.nic.Name + " after")
		if err := n.refused(ctx, err, string(s)); err != nil {
			return err
		}
		var live render.Config
		if v, ok := d.maxReadRequest(n.nic.hw.pci); ok && s == stagePCI {
			live = render.Config{{Key: c.Key, Value: strconv.Itoa(v)}}
		} else if v, ok := d.affinity(n.nic.hw.pci); ok && s == stageIRQ {
			if slices.Contains(strings.Fields(v), *c.After) {
				v = *c.After // one node: local is spread
			}
			live = render.Config{{Key: c.Key, Value: v}}
		}
		if err := n.compare(live, []render.Change{c}); err != nil {
			return err
		}
	}
	return nil
}

type mtuChange struct {
	render.Change
	link  Link
	mtu   uint32
	filed bool // a file of the system's network configuration has it too
}

// planMTU finds the link of c and judges the value by what the link, and the system's network configuration, say.
func (w *work) planMTU(c render.Change) (mtuChange, error) {
	m := mtuChange{Change: c}
	if c.Key != mtuKey(c.Key.Object) {
		return m, errors.New("a host has no such setting")
	}
	i := slices.IndexFunc(w.m.links, func(l Link) bool { return l.Name == c.Key.Object })
	if i < 0 {
		return m, errors.New("no such link")
	}
	if m.link = w.m.links[i]; c.After == nil {
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
	return m, w.agreeMTU(&m)
}

// agreeMTU refuses an MTU that a file of the system's network configuration takes back at the next start, unless it is
// what there was before we set the one of that file.
func (w *work) agreeMTU(m *mtuChange) error {
	for _, f := range w.d.mtuFiles(m.link.Name) {
		if f.mtu == m.mtu {
			m.filed = true
			continue
		}
		if w.d.memory.kept.Made[m.Key.String()] == *m.After {
			continue
		}
		return fmt.Errorf("%s sets MTU %d and would take the change back: %s", f.name, f.mtu, f.remedy(m.mtu))
	}
	return nil
}

// orderMTUs puts links that ride on others in an order in which none exceeds what it rides on: what becomes smaller from
// the top down, what becomes larger from the bottom up.
func (w *work) orderMTUs() {
	depth := func(m mtuChange) int {
		n := 0
		for l := w.m.link(m.link.Lower); l != nil && n < len(w.m.links); l = w.m.link(l.Lower) {
			n++
		}
		return n
	}
	sort.SliceStable(w.mtus, func(i, j int) bool {
		a, b := w.mtus[i], w.mtus[j]
		if a.mtu < a.link.MTU {
			return depth(b) < depth(a)
		}
		return depth(a) < depth(b)
	})
}

func (w *work) setMTU(ctx context.Context, m mtuChange) error {
	d := w.d
	links, err := d.cfg.Links.List(ctx)
	if err != nil {
		return d.named("commit", err)
	}
	var below []*nic
	for _, l := range links {
		if l.Lower == m.link.Index && l.MTU > m.mtu {
			return d.rejected(m.Change, fmt.Errorf("%s, with MTU %d, rides on it and the kernel would lower that too: lower %[1]s first", l.Name, l.MTU))
		}
		if l.Index == m.link.Index && l.MTU == m.mtu {
			return nil // a bond has set it along with its own
		}
	}
	for _, n := range w.m.nics {
		if n.Name == m.link.Name || n.Master == m.link.Index {
			below = append(below, n)
		}
	}
	for _, n := range below {
		if n.per.EffectOf("link", "mtu").Disrupts() {
			if err := w.noJobs(ctx, "the MTU", n); err != nil {
				return err
			}
		}
	}
	if m.filed && m.Before != nil { // the way back may differ from the file
		if err := d.memory.made(m.Key.String(), *m.Before); err != nil {
			return d.named("commit", err)
		}
	}
	d.cfg.Hook("write " + m.link.Name + " before")
	err = d.cfg.Links.SetMTU(ctx, m.link.Index, m.mtu)
	d.cfg.Hook("write " + m.link.Name + " after")
	if err != nil {
		if ctx.Err() != nil {
			return d.named("commit", fmt.Errorf("%s mtu %d: %w", m.link.Name, m.mtu, err))
		}
		return d.rejected(m.Change, err)
	}
	if links, err = d.cfg.Links.List(ctx); err != nil {
		return d.named("read back", err)
	}
	var live render.Config
	for _, l := range links {
		if l.Index == m.link.Index {
			live = render.Config{{Key: m.Key, Value: strconv.FormatUint(uint64(l.MTU), 10)}}
		}
	}
	return d.compare(live, []render.Change{m.Change})
}

// tryFiles edits files without writing them.
func (d *Device) tryFiles(cs []render.Change) error {
	for _, f := range d.editors(cs) {
		if len(f.changes) == 0 {
			continue
		}
		text, err := f.file.read()
		if err != nil {
			return d.named("commit", err)
		}
		if _, err := f.edit(text); err != nil {
			return d.rejected(f.changes[0], err)
		}
	}
	return nil
}

// editor is the edit of a file that some changes ask for.
type editor struct {
	file    file
	changes []render.Change
	parse   func([]byte) render.Config
	edit    func([]byte) ([]byte, error) // nil text: the file goes
}

func (d *Device) editors(cs []render.Change) []editor {
	of := func(scope string) []render.Change {
		return slices.DeleteFunc(slices.Clone(cs), func(c render.Change) bool { return c.Key.Scope != scope })
	}
	limits, nccl := of("limit"), of("nccl")
	return []editor{
		{d.limits, limits, parseLimits, func([]byte) ([]byte, error) { return editLimits(limits[len(limits)-1]) }},
		{d.nccl, nccl, render.ParseNCCL, func(text []byte) ([]byte, error) {
			b, err := render.EditNCCL(text, nccl)
			if b == nil {
				b = []byte{}
			}
			return b, err
		}},
	}
}

// setFiles rewrites each file once. One that is to say again what it said before our last edit of it becomes what it
// was, byte for byte, with its mode and its owner, or goes.
func (d *Device) setFiles(ctx context.Context, cs []render.Change) error {
	for _, e := range d.editors(cs) {
		if len(e.changes) == 0 {
			continue
		}
		if err := ctx.Err(); err != nil {
			return d.named("commit", fmt.Errorf("before %s: %w", e.file.path, err))
		}
		if err := d.setFile(e); err != nil {
			return d.named("commit", err)
		}
		text, err := e.file.read()
		if err != nil {
			return d.named("read back", err)
		}
		if err := d.compare(e.parse(text), e.changes); err != nil {
			return err
		}
	}
	return nil
}

func (d *Device) setFile(e editor) error {
	if err := d.memory.load(); err != nil {
		return err
	}
	back := false
	path := filepath.Clean(e.file.path)
	_, _, err := e.file.rewrite(func(was content) (content, error) {
		if _, moved := render.Remaining(d.dialect, render.Facts{}, e.parse(was.text), e.changes); len(moved) > 0 {
			return was, movedError(e.parse(was.text), moved)
		}
		text, err := e.edit(was.text)
		if err != nil {
			return was, err
		}
		same := func(old []byte) bool { return slices.EqualFunc(e.parse(old), e.parse(text), sameSetting) }
		if old, ok := d.memory.before(path, was, same); ok {
			back = true
			return old, nil
		}
		now := was.edited(text)
		now.there = text != nil
		return now, d.memory.edited(path, was, now)
	})
	if err == nil && back {
		err = d.memory.restored(path)
	}
	return err
}

func sameSetting(a, b render.Setting) bool { return a.Key == b.Key && a.Value == b.Value }
