package netlink

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/profiles"
	"github.com/fabricctl/fabricctl/render"
)

// Timer starts something that outlives this process and calls Device.Expire when the deadline has passed.
type Timer interface {
	Arm(ctx context.Context, tx drivers.TxID, deadline time.Time) error
}

// pending is a transaction that is taken back at its deadline unless it is confirmed before. It is on disk before the
// first write, with the whole way back.
type pending struct {
	ID       drivers.TxID    `json:"tx"`
	State    drivers.TxState `json:"state"` // open until all is written
	Deadline time.Time       `json:"deadline"`
	Boot     string          `json:"boot,omitempty"`   // of the kernel that ran then
	Uptime   float64         `json:"uptime,omitempty"` // seconds that it will have run at the deadline; 0 = not known
	Undo     []render.Change `json:"undo"`

	// NICs is what a user said of NICs, as profiles.Catalog tells it: the process that takes back was not told.
	NICs []json.RawMessage `json:"nics,omitempty"`
}

// over reports whether the time of a transaction is over: by the kernel's uptime, which no clock that is set moves, and
// after a reboot by the clock.
func (d *Device) over(p pending) bool {
	if now := d.uptime(); now > 0 && p.Uptime > 0 && p.Boot == d.boot() {
		return now >= p.Uptime
	}
	return !d.cfg.Now().Before(p.Deadline)
}

func (d *Device) boot() string { return said(d.tree, "proc/sys/kernel/random/boot_id") }

// uptime is the seconds that the kernel has run; 0 = not known.
func (d *Device) uptime() float64 {
	s, _, _ := strings.Cut(said(d.tree, "proc/uptime"), " ")
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || v < 0 {
		return 0
	}
	return v
}

// txName is what an id may be: it becomes a file's name.
var txName = regexp.MustCompile(`^[A-Za-z0-9-]{1,40}$`)

// confirms reports whether there is a confirm timer.
func (d *Device) confirms() bool { return d.cfg.State != "" && d.cfg.Timer != nil }

func (d *Device) pendingFile(tx drivers.TxID) string {
	return filepath.Join(d.cfg.State, "pending", string(tx)+".json")
}

// begin puts the way back on disk and arms the timer.
func (d *Device) begin(ctx context.Context, tx drivers.TxID, todo []render.Change, within time.Duration) error {
	if !txName.MatchString(string(tx)) {
		return fmt.Errorf("%q cannot be the id of a transaction", tx)
	}
	if _, err := d.loadPending(tx); err == nil {
		return fmt.Errorf("transaction %s is still pending: confirm or abort it", tx)
	}
	cat, err := d.catalog()
	if err != nil {
		return err
	}
	p := pending{ID: tx, State: drivers.TxOpen, Deadline: d.cfg.Now().Add(within), Boot: d.boot(), Undo: render.Undo(todo), NICs: cat.Tell(true)}
	if now := d.uptime(); now > 0 {
		p.Uptime = now + within.Seconds()
	}
	if err := put(d.pendingFile(tx), p, d.cfg.Hook); err != nil {
		return fmt.Errorf("keep the way back: %w", err)
	}
	if err := d.cfg.Timer.Arm(ctx, tx, p.Deadline); err != nil {
		return errors.Join(fmt.Errorf("arm the timer: %w", err), d.forgetPending(tx))
	}
	return nil
}

// timed notes that all is written.
func (d *Device) timed(tx drivers.TxID) error {
	p, err := d.loadPending(tx)
	if err != nil {
		return err
	}
	p.State = drivers.TxTimed
	return put(d.pendingFile(tx), p, d.cfg.Hook)
}

func (d *Device) loadPending(tx drivers.TxID) (pending, error) {
	var p pending
	if !txName.MatchString(string(tx)) {
		return p, fmt.Errorf("%q cannot be the id of a transaction", tx)
	}
	b, err := os.ReadFile(d.pendingFile(tx))
	if errors.Is(err, fs.ErrNotExist) {
		return p, fmt.Errorf("no transaction %s is pending here", tx)
	}
	if err == nil {
		err = json.Unmarshal(b, &p)
	}
	if err == nil && p.ID != tx {
		err = fmt.Errorf("it is of transaction %s", p.ID)
	}
	if err != nil {
		return p, fmt.Errorf("%s: %w", d.pendingFile(tx), err)
	}
	return p, nil
}

func (d *Device) forgetPending(tx drivers.TxID) error {
	d.cfg.Hook("forget " + string(tx) + " before")
	if err := os.Remove(d.pendingFile(tx)); err != nil {
		return err
	}
	d.cfg.Hook("forget " + string(tx) + " after")
	return syncDir(filepath.Dir(d.pendingFile(tx)))
}

// all is every transaction that is pending, by deadline.
func (d *Device) all() ([]pending, error) {
	if d.cfg.State == "" {
		return nil, nil
	}
	es, err := os.ReadDir(filepath.Join(d.cfg.State, "pending"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []pending
	for _, e := range es {
		name, ok := strings.CutSuffix(e.Name(), ".json")
		if !ok || !txName.MatchString(name) {
			continue
		}
		p, err := d.loadPending(drivers.TxID(name))
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].Deadline.Before(out[j].Deadline) })
	return out, nil
}

// Pending lists the transactions whose timer runs, whoever began them.
func (d *Device) Pending(ctx context.Context) ([]drivers.Tx, error) {
	ps, err := d.all()
	if err != nil {
		return nil, d.named("pending", err)
	}
	var out []drivers.Tx
	for _, p := range ps {
		out = append(out, drivers.Tx{ID: p.ID, State: p.State, Deadline: p.Deadline})
	}
	return out, ctx.Err()
}

// overdue says which transactions should have been taken back: their timer is gone, or cannot do it.
func (d *Device) overdue() (notes []string) {
	ps, err := d.all()
	if err != nil {
		return []string{fmt.Sprintf("whether a change waits to be taken back cannot be read: %v", err)}
	}
	for _, p := range ps {
		if !d.over(p) {
			continue
		}
		notes = append(notes, fmt.Sprintf("transaction %s was not confirmed and should have been taken back at %s: fabricctl-host revert %[1]s, or the next commit, does it",
			p.ID, p.Deadline.UTC().Format(time.RFC3339)))
	}
	return notes
}

// Confirm takes the way back away, so that the timer finds nothing to do.
func (d *Device) Confirm(ctx context.Context, tx drivers.TxID) error {
	unlock, err := d.lock(ctx)
	if err != nil {
		return d.named("confirm", err)
	}
	defer unlock()
	p, err := d.loadPending(tx)
	switch {
	case err != nil:
		return d.named("confirm", err)
	case p.State != drivers.TxTimed:
		return d.named("confirm", fmt.Errorf("transaction %s was not written to its end: abort it", tx))
	case d.over(p):
		return d.named("confirm", errors.Join(fmt.Errorf("the time of transaction %s was over at %s", tx, p.Deadline.UTC().Format(time.RFC3339)), d.takeBack(ctx, p)))
	}
	return d.named("confirm", d.forgetPending(tx))
}

// Abort takes a transaction back now.
func (d *Device) Abort(ctx context.Context, tx drivers.TxID) error {
	unlock, err := d.lock(ctx)
	if err != nil {
		return d.named("abort", err)
	}
	defer unlock()
	p, err := d.loadPending(tx)
	if err == nil {
		err = d.takeBack(ctx, p)
	}
	return d.named("abort", err)
}

// Expire takes back every transaction whose time is over. The process that Timer starts calls it, and so does whatever
// starts later on this host, in case that process is gone too.
func (d *Device) Expire(ctx context.Context) error {
	unlock, err := d.lock(ctx)
	if err != nil {
		return d.named("expire", err)
	}
	defer unlock()
	return d.named("expire", d.expire(ctx))
}

func (d *Device) expire(ctx context.Context) error {
	ps, err := d.all()
	if err != nil {
		return err
	}
	var errs []error
	for _, p := range slices.Backward(ps) {
		if !d.over(p) {
			continue
		}
		if err := d.takeBack(ctx, p); err != nil {
			errs = append(errs, fmt.Errorf("take back transaction %s: %w; nothing else is written before that: move %s away to leave everything as it is", p.ID, err, d.pendingFile(p.ID)))
		}
	}
	return errors.Join(errs...)
}

// takeBack undoes what of a transaction is in force: settings that somebody has moved since stay as they are, and live
// queue pairs do not stand in the way, since the way back was promised. It may be done again after it was interrupted.
func (d *Device) takeBack(ctx context.Context, p pending) error {
	jobs, known := d.jobs, d.cfg.Catalog
	defer func() { d.jobs, d.cfg.Catalog = jobs, known }()
	built, err := profiles.OfHosts()
	if err != nil {
		return err
	}
	d.jobs = true
	if d.cfg.Catalog, err = built.Know(p.NICs); err != nil {
		return err
	}
	live, m, err := d.settings(ctx)
	if err != nil {
		return err
	}
	_, moved, err := d.remaining(m, live, p.Undo)
	if err != nil {
		return err
	}
	undo := slices.DeleteFunc(slices.Clone(p.Undo), func(c render.Change) bool {
		return slices.ContainsFunc(moved, func(m render.Change) bool { return m.Key == c.Key })
	})
	if err := d.undo(ctx, undo); err != nil {
		return err
	}
	return d.forgetPending(p.ID)
}

// undo carries out a way back. Where it cannot as a whole, it does what it can, link by link and file by file: one of them
// may be the way to this host.
func (d *Device) undo(ctx context.Context, cs []render.Change) error {
	carry := func(cs []render.Change) error {
		w, err := d.plan(ctx, cs)
		if err != nil {
			return err
		}
		return w.run(ctx)
	}
	whole := carry(cs)
	if whole == nil || ctx.Err() != nil {
		return whole
	}
	var objects []string
	for _, c := range cs {
		if !slices.Contains(objects, c.Key.Object) {
			objects = append(objects, c.Key.Object)
		}
	}
	if len(objects) < 2 {
		return whole
	}
	var errs []error
	for _, o := range objects {
		errs = append(errs, carry(slices.DeleteFunc(slices.Clone(cs), func(c render.Change) bool { return c.Key.Object != o })))
	}
	return errors.Join(errs...)
}
