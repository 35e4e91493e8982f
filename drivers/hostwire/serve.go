package hostwire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/fabricctl/fabricctl/drivers"
)

// Serve greets with hello and answers requests for dev until r ends, which is how the laptop says that it is gone and
// no error, or until ctx does. Either stops a commit between two writes. It reads ahead, so a Read of r may still be
// waiting when Serve returns: end it by closing r.
func Serve(ctx context.Context, r io.Reader, w io.Writer, dev drivers.Device, hello Hello) error {
	hello.Hello, hello.Protocol = helloWord, Protocol
	if err := write(w, hello); err != nil {
		return fmt.Errorf("greet: %w", err)
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	s := &server{dev: dev, reqs: make(chan request)}
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
	dev  drivers.Device
	reqs chan request

	mu      sync.Mutex
	working uint64             // id of the request that is being answered
	cancel  context.CancelFunc // ends its work; nil when there is none
	early   uint64             // id of a cancel that came before its request was begun
}

// receive hands requests on and acts on cancels at once. It returns why there are no more.
func (s *server) receive(ctx context.Context, in lines) error {
	for {
		line, err := in.next(MaxLine)
		if err != nil {
			return err
		}
		var q request
		if err := decode(line, &q); err != nil {
			return err
		}
		if q.Op == "cancel" {
			s.stop(q.ID)
			continue
		}
		select {
		case s.reqs <- q:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// stop ends the work on request id, or keeps it from beginning.
func (s *server) stop(id uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.working == id && s.cancel != nil {
		s.cancel()
	}
	s.early = id
}

// begin notes what is being worked on. done ends it.
func (s *server) begin(ctx context.Context, id uint64) (_ context.Context, done func()) {
	ctx, cancel := context.WithCancel(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.working, s.cancel = id, cancel
	if s.early == id {
		cancel()
	}
	return ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.cancel = nil
		cancel()
	}
}

func (s *server) answer(ctx context.Context, q request) reply {
	ctx, done := s.begin(ctx, q.ID)
	defer done()
	r, err := s.do(ctx, q)
	if err != nil {
		r = reply{Error: pack(err)}
	}
	r.ID = q.ID
	return r
}

func (s *server) do(ctx context.Context, q request) (r reply, err error) {
	if err := ctx.Err(); err != nil {
		return r, fmt.Errorf("%s: %w", q.Op, err)
	}
	switch q.Op {
	case "ping":
		return r, nil
	case "facts":
		f, caps, err := s.dev.Facts(ctx)
		r.Facts, r.Caps = &f, &caps
		return r, err
	case "read":
		c, err := s.dev.Read(ctx)
		for _, x := range c {
			r.Config = append(r.Config, setting{x.Key, x.Value})
		}
		return r, err
	case "commit":
		return r, s.dev.Commit(ctx, q.Tx, q.Changes, time.Duration(q.Within)*time.Millisecond)
	}
	return r, fmt.Errorf("%w: operation %q", ErrProtocol, q.Op)
}
