package conform_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/model/observe"
	"github.com/fabricctl/fabricctl/render"
)

// client is the driver of a box. mutant breaks it in one way, to see that the suite notices.
type client struct {
	name, mutant string
	confirm      bool
	conn         net.Conn
	in           *bufio.Reader
	cache        render.Config
}

var (
	_ drivers.Confirmer = confirmer{}
	_ drivers.Guarded   = (*client)(nil)
	_ drivers.Saver     = (*client)(nil)
	_ drivers.Sensor    = (*client)(nil)
)

// confirmer is a client of a box with a commit timer.
type confirmer struct{ *client }

func dial(ctx context.Context, name, addr, hostKey, pass, mutant string, confirm bool) (drivers.Device, error) {
	var nd net.Dialer
	conn, err := nd.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("%s: connect: %w", name, context.Cause(either(ctx, err)))
	}
	c := &client{name: name, mutant: mutant, confirm: confirm, conn: conn, in: bufio.NewReader(conn)}
	greeting, err := c.receive(ctx, "greeting")
	if err == nil && greeting.Key != hostKey && mutant != "trusts any key" {
		err = fmt.Errorf("%s: the host key is not the known one", name)
	}
	if err == nil {
		_, err = c.ask(ctx, request{Op: "auth", Pass: pass})
		if mutant == "tells the password" && err != nil {
			err = fmt.Errorf("%w (with %s)", err, pass)
		}
	}
	if err != nil && mutant == "tries twice" && pass != password {
		_ = conn.Close()
		return dial(ctx, name, addr, hostKey, pass, "", confirm)
	}
	if err != nil {
		if mutant != "leaks" {
			_ = conn.Close()
		}
		return nil, err
	}
	if confirm {
		return confirmer{c}, nil
	}
	return c, nil
}

// either is a context whose cause is ctx's error, or err while ctx still runs.
func either(ctx context.Context, err error) context.Context {
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	e, cancel := context.WithCancelCause(context.Background())
	cancel(err)
	return e
}

func (c *client) receive(ctx context.Context, what string) (r reply, err error) {
	fail := func(err error) (reply, error) {
		if c.mutant == "hides cancellation" {
			return reply{}, fmt.Errorf("%s: %s: %v", c.name, what, err)
		}
		return reply{}, fmt.Errorf("%s: %s: %w", c.name, what, context.Cause(either(ctx, err)))
	}
	if ctx.Err() != nil {
		return fail(ctx.Err())
	}
	stop := context.AfterFunc(ctx, func() { _ = c.conn.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	line, err := c.in.ReadBytes('\n')
	if err != nil {
		return fail(err)
	}
	if err := json.Unmarshal(line, &r); err != nil {
		return fail(err)
	}
	return r, nil
}

func (c *client) ask(ctx context.Context, q request) (reply, error) {
	if c.mutant == "ignores contexts" {
		ctx = context.WithoutCancel(ctx)
	}
	if err := ctx.Err(); err != nil {
		return reply{}, fmt.Errorf("%s: %s: %w", c.name, q.Op, err)
	}
	if c.mutant == "is impatient" {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, 50*time.Millisecond)
		defer cancel()
	}
	line, err := json.Marshal(q)
	if err != nil {
		return reply{}, err
	}
	if _, err := c.conn.Write(append(line, '\n')); err != nil {
		return reply{}, fmt.Errorf("%s: %s: %w", c.name, q.Op, err)
	}
	r, err := c.receive(ctx, q.Op)
	if err == nil && r.Error != "" {
		if c.mutant == "swallows sentences" {
			return r, &drivers.RejectedError{Device: c.name, Sent: q.Op, Sentence: "refused"}
		}
		return r, &drivers.RejectedError{Device: c.name, Sent: q.Op + " " + q.Key.String(), Sentence: r.Error}
	}
	return r, err
}

func (c *client) Facts(ctx context.Context) (render.Facts, drivers.Caps, error) {
	_, err := c.ask(ctx, request{Op: "facts"})
	caps := drivers.Caps{Confirm: c.confirm, Atomic: c.confirm || c.mutant == "claims to be atomic", Counters: true}
	if c.mutant == "promises a timer" {
		caps.Confirm = true
	}
	return render.Facts{Hostname: c.name}, caps, err
}

func (c *client) Read(ctx context.Context) (render.Config, error) {
	if c.mutant == "reads from a cache" && c.cache != nil {
		return c.cache, nil
	}
	r, err := c.ask(ctx, request{Op: "read"})
	if err != nil {
		return nil, err
	}
	var cfg render.Config
	for k, v := range r.Config {
		s := render.Setting{Value: v}
		if err := json.Unmarshal([]byte(k), &s.Key); err != nil {
			return nil, fmt.Errorf("%s: read: %w", c.name, err)
		}
		cfg = append(cfg, s)
	}
	if c.mutant != "reads unsorted" {
		cfg.Sorted()
	}
	c.cache = cfg
	return cfg, nil
}

func (c *client) Close() error {
	if c.mutant == "leaks" {
		return nil
	}
	err := c.conn.Close()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

func (c *client) Commit(ctx context.Context, tx drivers.TxID, cs []render.Change, within time.Duration) error {
	return c.CommitIf(ctx, tx, cs, within, func(render.Facts, render.Config) error { return nil })
}

func (c *client) Rest() {
	if c.mutant != "shows what it remembers" {
		c.cache = nil
	}
}

func (c *client) CommitIf(ctx context.Context, tx drivers.TxID, cs []render.Change, within time.Duration, ok func(render.Facts, render.Config) error) error {
	if within > 0 && !c.confirm && c.mutant != "ignores the window" {
		return fmt.Errorf("%s: commit %s: %w", c.name, tx, drivers.ErrNoConfirm)
	}
	remembered := c.cache
	live, err := c.Read(ctx)
	if err != nil {
		return err
	}
	shown := live
	if c.mutant == "shows what it remembers" {
		shown = remembered
	}
	if err := ok(render.Facts{Hostname: c.name}, shown); err != nil && c.mutant != "asks and goes on" {
		return err
	}
	d := &render.Dialect{Same: same}
	todo, moved := render.Remaining(d, render.Facts{}, live, cs)
	switch {
	case c.mutant == "ignores before":
		todo = append(todo, moved...)
	case c.mutant == "writes all again":
		todo = cs
	case c.mutant == "demands before" && len(todo) < len(cs):
		return fmt.Errorf("%s: commit %s: %w", c.name, tx, drivers.ErrMoved)
	case len(moved) > 0:
		return fmt.Errorf("%s: commit %s: %s: %w", c.name, tx, moved[0].Key, drivers.ErrMoved)
	}
	if len(todo) == 0 && c.mutant != "commits nothing too" {
		return nil
	}
	if c.mutant == "applies in reverse" {
		slices.Reverse(todo)
	}
	if c.mutant == "forgets the last" {
		todo = todo[:len(todo)-1]
	}
	if c.mutant == "writes elsewhere" {
		one := "1"
		todo = append(todo, render.Change{Key: wred("storage", "kmax"), After: &one})
	}
	err = c.write(ctx, tx, todo, within)
	switch c.mutant {
	case "reads what it wrote":
		c.mutant, c.cache = "reads from a cache", render.Apply(live, cs)
	case "takes a lost answer for a yes":
		if r := (*drivers.RejectedError)(nil); err != nil && !errors.As(err, &r) {
			return nil
		}
	}
	return err
}

func (c *client) write(ctx context.Context, tx drivers.TxID, todo []render.Change, within time.Duration) error {
	if c.confirm {
		if _, err := c.ask(ctx, request{Op: "begin", Tx: tx}); err != nil {
			return err
		}
	}
	for _, x := range todo {
		if c.mutant == "never removes" && x.After == nil {
			continue
		}
		_, err := c.ask(ctx, request{Op: "set", Tx: tx, Key: x.Key, Value: x.After})
		var r *drivers.RejectedError
		if errors.As(err, &r) && c.mutant == "goes on after a refusal" {
			continue
		}
		if err != nil {
			return err
		}
	}
	if !c.confirm {
		return nil
	}
	if c.mutant == "forgets the timer" {
		within = 0
	}
	_, err := c.ask(ctx, request{Op: "commit", Tx: tx, Within: within})
	return err
}

func (c confirmer) Pending(ctx context.Context) ([]drivers.Tx, error) {
	r, err := c.ask(ctx, request{Op: "pending"})
	if c.mutant == "knows no transaction" {
		return nil, err
	}
	return r.Txs, err
}

func (c confirmer) Confirm(ctx context.Context, tx drivers.TxID) error {
	if c.mutant == "confirms nothing" {
		return nil
	}
	_, err := c.ask(ctx, request{Op: "confirm", Tx: tx})
	if c.mutant == "confirms anything" {
		return nil
	}
	return err
}

func (c confirmer) Abort(ctx context.Context, tx drivers.TxID) error {
	if c.mutant == "aborts nothing" {
		return nil
	}
	_, err := c.ask(ctx, request{Op: "abort", Tx: tx})
	return err
}

func (c *client) Saved(ctx context.Context) (bool, error) {
	r, err := c.ask(ctx, request{Op: "saved"})
	return r.Saved || c.mutant == "always saved", err
}

func (c *client) Save(ctx context.Context) error {
	_, err := c.ask(ctx, request{Op: "save"})
	return err
}

// Try reads. A mutant finds out by doing.
func (c *client) Try(ctx context.Context) ([]drivers.Trial, error) {
	live, err := c.Read(ctx)
	if err != nil {
		return nil, err
	}
	if c.mutant == "tries in earnest" {
		err = c.write(ctx, "try", []render.Change{to(live, mtu("p1"), ptr("4000"))}, 0)
	}
	return []drivers.Trial{{Operation: "read", Verdict: drivers.Allowed, For: "plan", How: "read all"}}, err
}

func (c *client) Sense(ctx context.Context, names []observe.Name) (observe.Counters, error) {
	if c.mutant == "senses on and on" {
		ctx = context.WithoutCancel(ctx)
	}
	r, err := c.ask(ctx, request{Op: "sense"})
	if err != nil {
		return observe.Counters{}, err
	}
	want := observe.Wanted(names)
	got := observe.Counters{At: time.Unix(1, 0), Values: map[observe.Port]uint64{}}
	for at, text := range r.Values {
		iface, name, _ := strings.Cut(at, " ")
		v, err := strconv.ParseUint(text, 10, 64)
		if want(observe.Name(name)) && (err == nil || c.mutant == "believes nonsense") {
			got.Values[observe.Port{Iface: iface, Name: observe.Name(name)}] = v
		}
	}
	for _, n := range names {
		p := observe.Port{Iface: "p1", Name: n}
		_, ok := got.Values[p]
		if known := strings.HasPrefix(string(n), "pfc."); !ok && (c.mutant == "invents counters" || c.mutant == "counts from zero" && known) {
			got.Values[p] = 0
		}
	}
	return got, nil
}
