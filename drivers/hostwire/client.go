package hostwire

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/model/journal"
	"github.com/fabricctl/fabricctl/model/observe"
	"github.com/fabricctl/fabricctl/render"
)

// grace is how long a cancelled call waits for the host to stop in an orderly way, so that the connection stays
// usable. After it the connection is closed.
const grace = 500 * time.Millisecond

// beat is how often a host that writes is told that somebody waits for it: several times within Silence.
const beat = 5 * time.Second

// Client is a host at the other end of a stream.
type Client struct {
	AllowJobs bool // commits may kill live queue pairs; set before the first one

	name  string
	hello Hello
	rw    io.ReadWriteCloser
	in    lines
	id    uint64

	mu     sync.Mutex
	broken error // why the stream can no longer be used

	wmu sync.Mutex // one message at a time; never held together with mu
}

var (
	_ drivers.Device = (*Client)(nil)
	_ drivers.Sensor = (*Client)(nil)
)

// Timer is the host's transactions: timed, found again, taken back.
type Timer struct{ c *Client }

var _ drivers.Confirmer = Timer{}

// NewClient waits for the hello on rw, skipping a banner, and refuses another protocol. name is the host's name in
// the inventory and stands before every error. On an error rw is closed.
func NewClient(ctx context.Context, name string, rw io.ReadWriteCloser) (*Client, error) {
	c := &Client{name: name, rw: rw, in: newLines(rw)}
	err := c.during(ctx, "hello", c.greet, func() {})
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// Hello is what the host said about itself.
func (c *Client) Hello() Hello { return c.hello }

// greet reads up to the hello.
func (c *Client) greet() error {
	var banner []byte
	for {
		line, err := c.in.next(MaxLine)
		if err != nil {
			return said(err, banner)
		}
		if i := bytes.Index(line, []byte(`{"hello":"`+helloWord+`"`)); i >= 0 { // a banner need not end its line
			line = line[i:]
			if err := json.Unmarshal(line, &c.hello); err != nil {
				return fmt.Errorf("%w: %s", ErrProtocol, excerpt(line))
			}
			if c.hello.Protocol != Protocol {
				return fmt.Errorf("%w: it is version %s with protocol %d, this fabricctl speaks %d: use the two of one release",
					ErrProtocol, c.hello.Version, c.hello.Protocol, Protocol)
			}
			return nil
		}
		if banner = append(append(banner, line...), '\n'); len(banner) > maxBanner {
			return said(fmt.Errorf("%w: no hello in %d bytes", ErrProtocol, len(banner)), banner)
		}
	}
}

// said adds what was seen instead of the hello.
func said(err error, seen []byte) error {
	if err == io.EOF {
		err = errors.New("it ended without a hello")
	}
	if seen = bytes.TrimSpace(seen); len(seen) > 0 {
		return fmt.Errorf("%w; it said %s", err, excerpt(seen))
	}
	return err
}

// Ping is an empty exchange.
func (c *Client) Ping(ctx context.Context) error {
	_, err := c.call(ctx, request{Op: "ping"})
	return err
}

// Facts asks for the host's facts and capabilities.
func (c *Client) Facts(ctx context.Context) (render.Facts, drivers.Caps, error) {
	r, err := c.call(ctx, request{Op: "facts"})
	if err == nil && (r.Facts == nil || r.Caps == nil) {
		err = fmt.Errorf("%s: facts: %w: an answer without facts", c.name, ErrProtocol)
	}
	if err != nil {
		return render.Facts{}, drivers.Caps{}, err
	}
	if len(r.NICs) > 0 {
		if err := json.Unmarshal(r.NICs, &r.Facts.Personalities); err != nil {
			return render.Facts{}, drivers.Caps{}, fmt.Errorf("%s: facts: %w: personalities: %w", c.name, ErrProtocol, err)
		}
	}
	return *r.Facts, *r.Caps, nil
}

// Read asks for the configuration.
func (c *Client) Read(ctx context.Context) (render.Config, error) {
	r, err := c.call(ctx, request{Op: "read"})
	if err != nil {
		return nil, err
	}
	cfg := make(render.Config, 0, len(r.Config))
	for _, s := range r.Config {
		cfg = append(cfg, render.Setting{Key: s.Key, Value: s.Value})
	}
	return cfg.Sorted(), nil
}

// Sense asks for counters. What has no canonical name is left out: it is of another release, or no counter.
func (c *Client) Sense(ctx context.Context, names []observe.Name) (observe.Counters, error) {
	r, err := c.call(ctx, request{Op: "sense", Names: names})
	if err != nil {
		return observe.Counters{}, err
	}
	out, want := observe.Counters{At: r.At, Values: map[observe.Port]uint64{}}, observe.Wanted(names)
	for _, x := range r.Counters {
		if _, ok := observe.Describe(x.Name); ok && x.Iface != "" && want(x.Name) {
			out.Values[observe.Port{Iface: x.Iface, Name: x.Name}] = x.Value
		}
	}
	return out, nil
}

// Commit asks for the changes. When ctx ends the host is told to stop, and stops between two writes.
func (c *Client) Commit(ctx context.Context, tx drivers.TxID, cs []render.Change, within time.Duration) error {
	ms := (within + time.Millisecond - 1).Milliseconds() // up: a window must not become none
	_, err := c.call(ctx, request{Op: "commit", Tx: tx, Changes: cs, Within: ms, AllowJobs: c.AllowJobs})
	return err
}

// Know tells the host of NICs that its catalog may lack, each a personality. It comes before Facts and Read.
func (c *Client) Know(ctx context.Context, personalities []json.RawMessage) error {
	_, err := c.call(ctx, request{Op: "know", Know: personalities})
	return err
}

// Hold asks the host to leave itself, or a port, alone, whoever asks it to change something there; its agent too. The hold
// that was there by that name is returned.
func (c *Client) Hold(ctx context.Context, h journal.Hold) (was *journal.Hold, err error) {
	return c.held(ctx, request{Op: "hold", Hold: &h})
}

// Release ends a hold and returns it; nil when there is none on the host.
func (c *Client) Release(ctx context.Context, fabric, device, port string) (was *journal.Hold, err error) {
	return c.held(ctx, request{Op: "release", Hold: &journal.Hold{Fabric: fabric, Device: device, Port: port}})
}

func (c *Client) held(ctx context.Context, q request) (*journal.Hold, error) {
	r, err := c.call(ctx, q)
	if err != nil || len(r.Holds) == 0 {
		return nil, err
	}
	return &r.Holds[0], nil
}

// Holds are those in force on the host, each with its fabric.
func (c *Client) Holds(ctx context.Context) ([]journal.Hold, error) {
	r, err := c.call(ctx, request{Op: "holds"})
	return r.Holds, err
}

// Timer is the host's timed transactions; ok is false when it has none.
func (c *Client) Timer() (_ Timer, ok bool) { return Timer{c}, c.hello.Confirm }

// Pending lists the transactions that the host still knows.
func (t Timer) Pending(ctx context.Context) ([]drivers.Tx, error) {
	r, err := t.c.call(ctx, request{Op: "pending"})
	if err != nil {
		return nil, err
	}
	txs := make([]drivers.Tx, 0, len(r.Txs))
	for _, x := range r.Txs {
		txs = append(txs, drivers.Tx(x))
	}
	return txs, nil
}

// Confirm makes a timed transaction permanent.
func (t Timer) Confirm(ctx context.Context, tx drivers.TxID) error {
	_, err := t.c.call(ctx, request{Op: "confirm", Tx: tx})
	return err
}

// Abort takes a transaction back.
func (t Timer) Abort(ctx context.Context, tx drivers.TxID) error {
	_, err := t.c.call(ctx, request{Op: "abort", Tx: tx})
	return err
}

// Close closes the stream, which ends the host's side too. It may be called again.
func (c *Client) Close() error {
	if c.giveUp(errors.New("the connection is closed")) {
		return c.rw.Close()
	}
	return nil
}

// giveUp notes why nothing more can be said; it is false when that was noted before.
func (c *Client) giveUp(why error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := c.broken == nil
	if first {
		c.broken = why
	}
	return first
}

// call is one request and its answer.
func (c *Client) call(ctx context.Context, q request) (reply, error) {
	c.id++
	q.ID = c.id
	if writes(q.Op) {
		defer c.beat()()
	}
	var r reply
	err := c.during(ctx, q.Op, func() (err error) {
		r, err = c.exchange(q)
		return err
	}, func() { _ = c.send(request{ID: q.ID, Op: "cancel"}) })
	switch {
	case err != nil:
		return reply{}, err
	case r.Error == nil:
		return r, nil
	case ctx.Err() != nil && (r.Error.Code == "cancelled" || r.Error.Code == "deadline"):
		return reply{}, fmt.Errorf("%s: %s: %w", c.name, q.Op, ctx.Err())
	}
	return reply{}, r.Error.unpack(c.name)
}

// beat tells the host again and again that somebody waits, until stop is called.
func (c *Client) beat() (stop func()) {
	over := make(chan struct{})
	go func() {
		t := time.NewTicker(beat)
		defer t.Stop()
		for {
			select {
			case <-t.C:
			case <-over:
				return
			}
			if c.send(request{Op: "ping"}) != nil { // the call finds out why
				return
			}
		}
	}()
	return func() { close(over) }
}

// during runs f and waits for it. When ctx ends first, it calls cancel, gives f the grace, and then closes the
// stream and leaves f behind, which its closed stream ends.
func (c *Client) during(ctx context.Context, op string, f func() error, cancel func()) error {
	c.mu.Lock()
	err := c.broken
	c.mu.Unlock()
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("%s: %s: %w", c.name, op, err)
	}
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err = <-done:
	case <-ctx.Done():
		go cancel() // it may block like f does
		wait := time.NewTimer(grace)
		defer wait.Stop()
		select {
		case err = <-done:
		case <-wait.C:
			err = fmt.Errorf("no answer from fabricctl-host: %w", context.Cause(ctx))
		}
	}
	if err == nil {
		return nil
	}
	if c.giveUp(fmt.Errorf("the connection was given up: %v", err)) { // not %w: a later call did not end like this one
		_ = c.rw.Close()
	}
	return fmt.Errorf("%s: %s: %w", c.name, op, err)
}

// exchange sends q and reads its answer. An error is one of the stream.
func (c *Client) exchange(q request) (r reply, err error) {
	if err := c.send(q); err != nil {
		return r, ended(err)
	}
	line, err := c.in.next(MaxLine)
	if err != nil {
		return r, ended(err)
	}
	if err := decode(line, &r); err != nil {
		return r, err
	}
	if r.ID != q.ID && (r.ID != 0 || r.Error == nil) { // 0: it could not read the request
		return r, fmt.Errorf("%w: answer %d to request %d", ErrProtocol, r.ID, q.ID)
	}
	return r, nil
}

func ended(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.ErrClosedPipe) {
		return errors.New("the connection ended before the answer")
	}
	return err
}

func (c *Client) send(q request) error {
	c.wmu.Lock()
	defer c.wmu.Unlock()
	return write(c.rw, q)
}
