package netlink

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/profiles"
	"github.com/fabricctl/fabricctl/render"
)

// Commit works on one NIC after the other and reads each object back before the next is written: what firmware owns
// first, then link pause, the MTU, the application table, ETS, PFC, buffers, congestion control, RoCE, PCI Express,
// interrupts, rings and FEC, with what the driver's personality wants otherwise; files come last. Priorities that lose
// PFC lose it before anything else moves, and those that get it get it after everything else has: never is a priority
// paused that means something else. It stops between two writes when ctx ends.
//
// Nothing is written when any change is impossible as far as that can be seen beforehand. A DiffersError is a value that
// was acknowledged and is not in force; drivers.ErrJobs stands before a write that would kill live queue pairs.
//
// With a window, the way back is on disk and a timer of another process is armed before the first write; see Confirm.
func (d *Device) Commit(ctx context.Context, tx drivers.TxID, cs []render.Change, within time.Duration) error {
	if within > 0 && !d.confirms() {
		return d.named("commit", drivers.ErrNoConfirm)
	}
	unlock, err := d.lock(ctx)
	if err != nil {
		return d.named("commit", err)
	}
	defer unlock()
	if err := d.expire(ctx); err != nil {
		return d.named("commit", err)
	}
	p, err := d.plan(ctx, cs)
	if err != nil {
		return err
	}
	for _, e := range d.editors(p.files) { // a way back does what it can instead
		if len(e.changes) == 0 {
			continue
		}
		if err := e.file.replaceable(); err != nil {
			return d.rejected(e.changes[0], err)
		}
	}
	if within > 0 {
		if err := d.begin(ctx, tx, p.todo, within); err != nil {
			return d.named("commit", err)
		}
	}
	if err := p.run(ctx); err != nil {
		return err
	}
	if within > 0 {
		return d.named("commit", d.timed(tx))
	}
	return nil
}

// work is a commit that was found possible.
type work struct {
	d     *Device
	m     *machine
	todo  []render.Change
	mtus  []mtuChange // of links that are no NICs
	nics  []*nicWork  // in the order in which the changes name them
	files []render.Change
}

// plan reads, compares, and judges every change by what can be known without writing.
func (d *Device) plan(ctx context.Context, cs []render.Change) (*work, error) {
	live, m, err := d.settings(ctx)
	if err != nil {
		return nil, d.named("commit", err)
	}
	todo, moved, err := d.remaining(m, live, cs)
	if err == nil && len(moved) > 0 {
		err = movedError(live, moved)
	}
	if err != nil {
		return nil, d.named("commit", err)
	}
	w := &work{d: d, m: m, todo: todo}
	for _, c := range todo {
		if err := w.add(c, live); err != nil {
			return nil, d.rejected(c, err)
		}
	}
	for _, n := range w.nics {
		if err := n.check(); err != nil {
			return nil, d.rejected(n.changes[0], err)
		}
	}
	if len(w.files) > 0 { // a dry run, before the first write
		if err := d.tryFiles(w.files); err != nil {
			return nil, err
		}
	}
	w.orderMTUs()
	for _, n := range w.nics {
		if err := n.recall(); err != nil {
			return nil, d.named("commit", err)
		}
	}
	return w, nil
}

// remaining is render.Remaining with two excuses, so that a commit that died in between is finished, or taken back. A knob
// of configfs in a directory that we made counts as absent where it still says what it said at first. And settings
// that the first or last entry for a code point sets back may have any value, where a commit that brings it began.
func (d *Device) remaining(m *machine, live render.Config, cs []render.Change) (todo, moved []render.Change, err error) {
	if err := d.memory.load(); err != nil {
		return nil, nil, err
	}
	todo, moved = render.Remaining(d.dialect, render.Facts{}, live, cs)
	moved = slices.DeleteFunc(moved, func(c render.Change) bool {
		half := (c.Before == nil || c.After == nil) && d.untouched(m, c.Key)
		if !half && !d.resets(m, c.Key) {
			return false
		}
		todo = append(todo, c)
		return true
	})
	return todo, moved, nil
}

// resets reports whether a commit that did not end may have moved a setting of a NIC along with entries for code points.
func (d *Device) resets(m *machine, key render.Key) bool {
	n := m.nic(key.Object)
	_, begun := d.memory.kept.Made[switching(key.Object)]
	return n != nil && begun && slices.Contains(n.per.AppResets, key.Scope)
}

// untouched reports whether a knob is in a directory of configfs that we made and says what it said at first.
func (d *Device) untouched(m *machine, key render.Key) bool {
	n := m.nic(key.Object)
	if n == nil {
		return false
	}
	k, ok := n.per.Knob(knobName(key))
	return ok && d.knobIO(n).untouched(k.Mkdir, k.Paths, d.memory.kept.Made)
}

// add puts a change where it belongs.
func (w *work) add(c render.Change, live render.Config) error {
	switch c.Key.Scope {
	case "nccl", "limit":
		w.files = append(w.files, c)
		return nil
	case "link":
		mc, err := w.planMTU(c)
		if err != nil {
			return err
		}
		if n := w.m.nic(c.Key.Object); n != nil {
			w.of(n, live).mtu = &mc
			w.of(n, live).changes = append(w.of(n, live).changes, c)
			return nil
		}
		w.mtus = append(w.mtus, mc)
		return nil
	}
	n := w.m.nic(c.Key.Object)
	switch {
	case !slices.Contains([]string{
		scopeDCBX, scopePFC, scopeETS, scopeApp, scopeBuffer, scopeRate, scopePause, scopeFlag, scopeRing, scopeFEC, scopeRoCE, scopeCC, scopePCI, scopeIRQ,
	}, c.Key.Scope):
		return errors.New("a host has no such setting")
	case n == nil && slices.ContainsFunc(w.m.links, func(l Link) bool { return l.Name == c.Key.Object }):
		return errors.New("there is no hardware below this link that has such a setting")
	case n == nil:
		return errors.New("no such link")
	case n.hw.vfOf != "":
		return fmt.Errorf("it is a virtual function of %s: QoS is set there", n.hw.vfOf)
	case n.per.Status != profiles.Managed:
		return fmt.Errorf("NICs of driver %s are %s: %s", n.hw.driver, n.per.Status, n.per.Why)
	}
	return w.of(n, live).add(c)
}

// of is the work on a NIC.
func (w *work) of(n *nic, live render.Config) *nicWork {
	if i := slices.IndexFunc(w.nics, func(x *nicWork) bool { return x.nic == n }); i >= 0 {
		return w.nics[i]
	}
	x := &nicWork{w: w, nic: n, want: map[render.Key]*string{}, before: live}
	if n.dcb != nil {
		x.target = cloneDCB(n.dcb)
	}
	w.nics = append(w.nics, x)
	return x
}

// run writes: links that ride on NICs and become smaller, NICs, links that become larger, files.
func (w *work) run(ctx context.Context) error {
	smaller := func(m mtuChange) bool { return m.mtu < m.link.MTU }
	for _, m := range w.mtus {
		if smaller(m) {
			if err := w.setMTU(ctx, m); err != nil {
				return err
			}
		}
	}
	for _, n := range w.nics {
		if err := n.run(ctx); err != nil {
			return err
		}
	}
	for _, m := range w.mtus {
		if !smaller(m) {
			if err := w.setMTU(ctx, m); err != nil {
				return err
			}
		}
	}
	return w.d.setFiles(ctx, w.files)
}
