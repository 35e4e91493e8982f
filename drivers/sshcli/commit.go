package sshcli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/render"
)

// cleanup is how long a failed Commit may go on to drop its session after its own context has ended.
const cleanup = 600 * time.Millisecond

// Commit types the changes into a session of the device and commits it, with the device's timer when within > 0
// (rounded up to seconds).
//
// Before anything is typed, every change must still be at Before or After, no other session may have a commit timer
// running, and no session may have our name. Before the commit, the session must change something, and the running
// configuration must be the one that was read at first: the commit would take back what somebody else changed in
// between. When any of this fails, or a line is refused, the session is dropped, over a new connection if need be, and
// the error says whether that worked.
//
// A connection lost while the commit is under way is an unknown outcome.
func (d *Device) Commit(ctx context.Context, tx drivers.TxID, cs []render.Change, within time.Duration) error {
	name, err := sessionName(d.config.Name, tx)
	if err != nil {
		return err
	}
	k, err := d.writable(ctx)
	if err != nil {
		return err
	}
	if within > 0 && !d.flow.caps.Confirm {
		return fmt.Errorf("%s: %w", d.config.Name, drivers.ErrNoConfirm)
	}
	text, live, todo, err := d.todo(ctx, k, cs)
	if err != nil || len(todo) == 0 {
		return err
	}
	lines := d.dialect.Lines(live, todo)
	if err := d.room(ctx, k, name); err != nil {
		return err
	}
	if err := d.prepare(ctx, k, name, text, lines); err != nil {
		return d.drop(ctx, name, err)
	}
	return d.finish(ctx, k, name, within)
}

// todo reads, and sorts out which changes are still to be made.
func (d *Device) todo(ctx context.Context, k *console, cs []render.Change) (string, render.Config, []render.Change, error) {
	if len(cs) == 0 {
		return "", nil, nil, nil
	}
	if d.facts == nil {
		if _, err := d.identity(ctx, k); err != nil {
			return "", nil, nil, err
		}
	}
	text, live, err := d.read(ctx, k)
	if err != nil {
		return "", nil, nil, err
	}
	todo, moved := render.Remaining(d.dialect, *d.facts, live, cs)
	if len(moved) > 0 {
		return "", nil, nil, fmt.Errorf("%s: %w: %s", d.config.Name, drivers.ErrMoved, sayMoved(live, moved))
	}
	return text, live, todo, nil
}

// sayMoved names the first of the values that moved.
func sayMoved(live render.Config, moved []render.Change) string {
	const most = 3
	var out []string
	for i, c := range moved {
		if i == most {
			out = append(out, fmt.Sprintf("and %d more", len(moved)-most))
			break
		}
		var now *string
		if v, ok := live.Find(c.Key); ok {
			now = &v
		}
		out = append(out, fmt.Sprintf("%s is %s, the plan knew %s and wants %s", c.Key, value(now), value(c.Before), value(c.After)))
	}
	return strings.Join(out, "; ")
}

func value(v *string) string {
	if v == nil {
		return "absent"
	}
	return fmt.Sprintf("%q", *v)
}

// room makes sure that a session of that name can begin. One of our own that ended is forgotten.
func (d *Device) room(ctx context.Context, k *console, name string) error {
	ss, err := d.sessions(ctx, k)
	if err != nil {
		return err
	}
	for _, s := range ss {
		switch {
		case s.name == name && s.state != "":
			return fmt.Errorf("%s: session %s is already there, %s: abort it first", d.config.Name, name, s.state)
		case s.state == drivers.TxTimed:
			return fmt.Errorf("%s: nothing was written: %s", d.config.Name, foreignTimer(s))
		case s.name == name:
			if err := k.all(ctx, d.flow.forget(name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// prepare fills a session and checks it. On an error the session may be there or not.
func (d *Device) prepare(ctx context.Context, k *console, name, text string, lines []render.Line) error {
	if err := k.all(ctx, d.flow.begin(name)); err != nil {
		return err
	}
	if !d.flow.inside.MatchString(k.prompt) {
		return k.breakOff(fmt.Errorf("%s: began session %s and was waiting for its prompt, saw %q", d.config.Name, name, k.prompt))
	}
	for i, l := range lines {
		if err := k.do(ctx, l.Text); err != nil {
			return inBlock(lines[:i+1], err)
		}
	}
	diff, err := k.ask(ctx, d.flow.diff)
	if err != nil {
		return err
	}
	if strings.TrimSpace(diff) == "" {
		return fmt.Errorf("%s: the device took %d lines and says that they change nothing", d.config.Name, len(lines))
	}
	d.config.Log.Debug("session", "device", d.config.Name, "name", name, "diff", diff)
	now, _, err := d.read(ctx, k)
	if err != nil {
		return err
	}
	if was, is, differ := d.flow.firstDifference(text, now); differ {
		return fmt.Errorf("%s: %w: while the session was typed, %q became %q", d.config.Name, drivers.ErrMoved, was, is)
	}
	return nil
}

// inBlock says which block a refused line stood in: the mode lines that lead to it.
func inBlock(typed []render.Line, err error) error {
	last := typed[len(typed)-1]
	var block []string
	for _, l := range typed[:len(typed)-1] {
		switch {
		case !l.Mode:
		case l.Text == "exit":
			block = block[:max(0, len(block)-1)]
		default:
			block = append(block, l.Text)
		}
	}
	var refused *drivers.RejectedError
	if !errors.As(err, &refused) || len(block) == 0 || last.Text == "exit" {
		return err
	}
	return fmt.Errorf("%w (in %s, line %d of the session)", err, strings.Join(block, " / "), len(typed))
}

func (f *flow) firstDifference(a, b string) (was, is string, differ bool) {
	x, y := f.significant(a), f.significant(b)
	for i := range max(len(x), len(y)) {
		was, is = "the end", "the end"
		if i < len(x) {
			was = x[i]
		}
		if i < len(y) {
			is = y[i]
		}
		if was != is {
			return strings.TrimSpace(was), strings.TrimSpace(is), true
		}
	}
	return "", "", false
}

// significant is a configuration without its comments, which may tell the time.
func (f *flow) significant(text string) []string {
	var out []string
	for l := range strings.SplitSeq(text, "\n") {
		if l = strings.TrimRight(l, " \r"); l != "" && (f.comment == "" || !strings.HasPrefix(strings.TrimSpace(l), f.comment)) {
			out = append(out, l)
		}
	}
	return out
}

// finish commits the session. A refusal leaves the session open, and it is dropped; anything else is unknown.
func (d *Device) finish(ctx context.Context, k *console, name string, within time.Duration) error {
	err := k.all(ctx, d.flow.commit(name, within))
	var refused *drivers.RejectedError
	switch {
	case errors.As(err, &refused):
		return d.drop(ctx, name, err)
	case err != nil:
		return fmt.Errorf("%w: whether session %s was committed is not known", err, name)
	case d.flow.inside.MatchString(k.prompt):
		return d.drop(ctx, name, fmt.Errorf("%s: the device says nothing about the commit and stays in session %s", d.config.Name, name))
	}
	return nil
}

// drop gets rid of a session after a failure, which it returns with what became of the session.
func (d *Device) drop(ctx context.Context, name string, failure error) error {
	if err := d.dropped(ctx, name); err != nil {
		return fmt.Errorf("%w; session %s could not be dropped and may still be open: %v", failure, name, err)
	}
	return fmt.Errorf("%w; nothing of session %s is left on the device", failure, name)
}

// dropped gets rid of a session, and looks whether it is gone. It works on when ctx has ended, but not for long.
func (d *Device) dropped(ctx context.Context, name string) error {
	if ctx.Err() != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), cleanup)
		defer cancel()
	}
	k, err := d.connected(ctx)
	if err != nil {
		return err
	}
	if d.flow.inside.MatchString(k.prompt) {
		if err := k.all(ctx, d.flow.abort); err != nil {
			return err
		}
	}
	s, err := d.find(ctx, k, name)
	if err != nil || s == nil || s.state == "" {
		return err
	}
	return d.end(ctx, k, name, d.flow.cancel(*s))
}

// Pending lists the sessions of ours that are open or timed, whoever began them.
func (d *Device) Pending(ctx context.Context) ([]drivers.Tx, error) {
	k, err := d.connected(ctx)
	if err != nil {
		return nil, err
	}
	ss, err := d.sessions(ctx, k)
	if err != nil {
		return nil, err
	}
	var out []drivers.Tx
	for _, s := range ss {
		if id, ours := strings.CutPrefix(s.name, prefix); ours && s.state != "" {
			out = append(out, drivers.Tx{ID: drivers.TxID(id), State: s.state, Deadline: s.deadline})
		}
	}
	return out, nil
}

// Confirm makes a timed session permanent.
func (d *Device) Confirm(ctx context.Context, tx drivers.TxID) error {
	confirm := func(s session) []string { return d.flow.confirm(s.name) }
	return d.settle(ctx, tx, "confirm", confirm, func(s *session) error {
		if s.state != drivers.TxTimed {
			return fmt.Errorf("it is %s, and confirming would commit it as it stands", s.state)
		}
		return nil
	})
}

// Abort drops an open session and reverts a timed one.
func (d *Device) Abort(ctx context.Context, tx drivers.TxID) error {
	return d.settle(ctx, tx, "abort", d.flow.cancel, func(*session) error { return nil })
}

func (d *Device) settle(ctx context.Context, tx drivers.TxID, what string, how func(session) []string, fit func(*session) error) error {
	name, err := sessionName(d.config.Name, tx)
	if err != nil {
		return err
	}
	k, err := d.writable(ctx)
	if err != nil {
		return err
	}
	s, err := d.find(ctx, k, name)
	switch {
	case err != nil:
		return err
	case s == nil || s.state == "":
		return fmt.Errorf("%s: %s %s: the device has no such session open or timed", d.config.Name, what, name)
	}
	if err := fit(s); err != nil {
		return fmt.Errorf("%s: %s %s: %w", d.config.Name, what, name, err)
	}
	return d.end(ctx, k, name, how(*s))
}

// end does lines that end a session, and looks whether it has ended.
func (d *Device) end(ctx context.Context, k *console, name string, lines []string) error {
	if err := k.all(ctx, lines); err != nil {
		return err
	}
	s, err := d.find(ctx, k, name)
	if err == nil && s != nil && s.state != "" {
		err = fmt.Errorf("%s: %q: the device took it, but session %s is still %s", d.config.Name, lines[len(lines)-1], name, s.state)
	}
	return err
}

// find looks a session up by name; nil when the device does not list it.
func (d *Device) find(ctx context.Context, k *console, name string) (*session, error) {
	ss, err := d.sessions(ctx, k)
	if err != nil {
		return nil, err
	}
	for i := range ss {
		if ss[i].name == name {
			return &ss[i], nil
		}
	}
	return nil, nil
}

// sessionName is the name of a transaction's session. It goes into a command line, so the id is checked.
func sessionName(device string, tx drivers.TxID) (string, error) {
	ok := len(tx) > 0 && len(tx) <= 40
	for _, r := range tx {
		ok = ok && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-')
	}
	if !ok {
		return "", fmt.Errorf("%s: %q is not a transaction id: letters, digits and -, at most 40", device, string(tx))
	}
	return prefix + string(tx), nil
}
