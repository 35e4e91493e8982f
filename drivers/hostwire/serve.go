package hostwire

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/model/journal"
	"github.com/fabricctl/fabricctl/model/observe"
)

// Silence is how long a host that writes goes on without a word from the laptop.
const Silence = 30 * time.Second

// Host is the host's side of a conversation.
type Host struct {
	Device drivers.Device // with drivers.Confirmer and drivers.JobKeeper, where it has them
	// Know takes over the laptop's knowledge of NICs, each a personality; nil has no use for it.
	Know  func(context.Context, []json.RawMessage) error
	Holds Holds // nil has none
}

// Serve greets with hello and answers requests until r ends, which is how the laptop says that it is gone and
// no error, or until ctx does. Either stops a commit between two writes. It reads ahead, so a Read of r may still be
// waiting when Serve returns: end it by closing r.
func Serve(ctx context.Context, r io.Reader, w io.Writer, h Host, hello Hello) error {
	_, timed := h.Device.(drivers.Confirmer)
	hello.Hello, hello.Protocol, hello.Confirm = helloWord, Protocol, timed
	if err := write(w, hello); err != nil {
		return fmt.Errorf("greet: %w", err)
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	s := &server{host: h, reqs: make(chan request)}
	go func() { stop(s.receive(ctx, newLines(r))) }()
	for {
		select {
		case q := <-s.reqs:
			if err := write(w, s.answer(ctx, q)); err != nil && ctx.Err() == nil {
				return fmt.Errorf("answer: %w", err)
			}
		case <-ctx.Done():
			err := context.Cause(ctx)
			if err == io.EOF {
				return nil
			}
			if errors.Is(err, ErrProtocol) {
				_ = write(w, reply{Error: pack(err)})
			}
			return err
		}
	}
}

// server is one conversation.
type server struct {
	host Host
	reqs chan request

	mu      sync.Mutex
	working uint64                  // id of the request that is being answered
	cancel  context.CancelCauseFunc // ends its work; nil when there is none
	silence *time.Timer             // ends it when nothing is heard; nil when it does not write
	early   uint64                  // id of a cancel that came before its request was begun
}

// receive hands requests on and acts at once on what has no answer. It returns why there are no more.
func (s *server) receive(ctx context.Context, in lines) error {
	for {
		line, err := in.next(MaxLine)
		if err != nil {
			return err
		}
		s.heard()
		var q request
		if err := decode(line, &q); err != nil {
			return err
		}
		switch {
		case q.Op == "cancel":
			s.stop(q.ID)
			continue
		case q.Op == "ping" && q.ID == 0:
			continue
		}
		select {
		case s.reqs <- q:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// heard notes that the laptop is there.
func (s *server) heard() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.silence != nil {
		s.silence.Reset(Silence)
	}
}

// stop ends the work on request id, or keeps it from beginning.
func (s *server) stop(id uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.working == id && s.cancel != nil {
		s.cancel(nil)
	}
	s.early = id
}

// begin notes what is being worked on. done ends it.
func (s *server) begin(ctx context.Context, q request) (_ context.Context, done func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.working, s.cancel = q.ID, cancel
	if writes(q.Op) {
		s.silence = time.AfterFunc(Silence, func() { cancel(ErrSilent) })
	}
	if s.early == q.ID {
		cancel(nil)
	}
	return ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.silence != nil {
			s.silence.Stop()
		}
		s.cancel, s.silence = nil, nil
		cancel(nil)
	}
}

// writes reports whether an operation changes the device.
func writes(op string) bool { return op == "commit" || op == "confirm" || op == "abort" }

func (s *server) answer(ctx context.Context, q request) reply {
	ctx, done := s.begin(ctx, q)
	defer done()
	r, err := s.do(ctx, q)
	if err != nil {
		if context.Cause(ctx) == ErrSilent {
			err = fmt.Errorf("%w, and the work was stopped: %w", ErrSilent, err)
		}
		r = reply{Error: pack(err)}
	}
	r.ID = q.ID
	return r
}

func (s *server) do(ctx context.Context, q request) (r reply, err error) {
	if err := ctx.Err(); err != nil {
		return r, fmt.Errorf("%s: %w", q.Op, err)
	}
	switch {
	case writes(q.Op):
		return r, s.write(ctx, q)
	case s.host.Holds != nil && (q.Op == "hold" || q.Op == "release" || q.Op == "holds"):
		r.Holds, err = s.holds(ctx, q)
		return r, err
	}
	switch q.Op {
	case "ping":
		return r, nil
	case "know":
		if s.host.Know == nil {
			return r, nil
		}
		return r, s.host.Know(ctx, q.Know)
	case "facts":
		f, caps, err := s.host.Device.Facts(ctx)
		r.Facts, r.Caps = &f, &caps
		if err == nil && len(f.Personalities) > 0 {
			r.NICs, err = json.Marshal(f.Personalities)
		}
		return r, err
	case "read":
		c, err := s.host.Device.Read(ctx)
		for _, x := range c {
			r.Config = append(r.Config, setting{x.Key, x.Value})
		}
		return r, err
	case "sense":
		if d, ok := s.host.Device.(drivers.Sensor); ok {
			return s.sense(ctx, d, q.Names)
		}
	case "pending":
		if d, ok := s.host.Device.(drivers.Confirmer); ok {
			txs, err := d.Pending(ctx)
			for _, x := range txs {
				r.Txs = append(r.Txs, tx(x))
			}
			return r, err
		}
	}
	return r, fmt.Errorf("%w: operation %q", ErrProtocol, q.Op)
}

// sense reads counters, sorted, so that the same ones are the same line.
func (s *server) sense(ctx context.Context, d drivers.Sensor, names []observe.Name) (r reply, err error) {
	c, err := d.Sense(ctx, names)
	r.At = c.At
	for p, v := range c.Values {
		r.Counters = append(r.Counters, counter{p.Iface, p.Name, v})
	}
	slices.SortFunc(r.Counters, func(a, b counter) int {
		return observe.Port{Iface: a.Iface, Name: a.Name}.Compare(observe.Port{Iface: b.Iface, Name: b.Name})
	})
	return r, err
}

// write carries out a request that changes the device, which keeps other writers out meanwhile. A hold is in the way of a
// commit alone: what has begun is brought to its end.
func (s *server) write(ctx context.Context, q request) error {
	d := s.host.Device
	if q.Op == "commit" {
		if q.Within < 0 || q.Within > math.MaxInt64/int64(time.Millisecond) { // a window must not become none
			return fmt.Errorf("%w: a window of %d ms", ErrProtocol, q.Within)
		}
		if s.host.Holds != nil {
			hs, err := s.host.Holds.List(ctx)
			if err = cmp.Or(err, heldBy(hs, q.Changes)); err != nil {
				return fmt.Errorf("commit: %w", err)
			}
		}
		if k, ok := d.(drivers.JobKeeper); ok {
			k.AllowJobs(q.AllowJobs)
		}
		return d.Commit(ctx, q.Tx, q.Changes, time.Duration(q.Within)*time.Millisecond)
	}
	c, ok := d.(drivers.Confirmer)
	switch {
	case !ok:
		return fmt.Errorf("%s: %w", q.Op, drivers.ErrNoConfirm)
	case q.Op == "confirm":
		return c.Confirm(ctx, q.Tx)
	}
	return c.Abort(ctx, q.Tx)
}

// holds changes or lists what the host leaves alone.
func (s *server) holds(ctx context.Context, q request) ([]journal.Hold, error) {
	if q.Op == "holds" {
		return s.host.Holds.List(ctx)
	}
	if q.Hold == nil {
		return nil, fmt.Errorf("%w: %s of nothing", ErrProtocol, q.Op)
	}
	var was *journal.Hold
	var err error
	if q.Op == "hold" {
		was, err = s.host.Holds.Hold(ctx, *q.Hold)
	} else {
		was, err = s.host.Holds.Release(ctx, q.Hold.Fabric, q.Hold.Device, q.Hold.Port)
	}
	if was == nil {
		return nil, err
	}
	return []journal.Hold{*was}, err
}
