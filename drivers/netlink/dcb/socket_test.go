package dcb

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/mdlayher/netlink"
)

// peer is a connection whose other end is a test.
type peer struct {
	seq    uint32
	sent   chan netlink.Message
	answer chan []netlink.Message // a nil message: trouble with the socket
	gone   chan struct{}
}

func newPeer(seq uint32) *peer {
	return &peer{seq: seq, sent: make(chan netlink.Message, 10), answer: make(chan []netlink.Message, 100), gone: make(chan struct{})}
}

func (p *peer) Send(m netlink.Message) (netlink.Message, error) {
	p.seq++
	m.Header.Sequence = p.seq
	p.sent <- m
	return m, nil
}

var errSocket = errors.New("trouble with the socket")

func (p *peer) Receive() ([]netlink.Message, error) {
	select {
	case m := <-p.answer:
		if m == nil {
			return nil, errSocket
		}
		return m, nil
	case <-p.gone:
		return nil, errors.New("closed")
	}
}

func (p *peer) Close() error { close(p.gone); return nil }

// dialled is a socket that dials these peers one after the other.
func dialled(t *testing.T, peers ...*peer) *socket {
	t.Helper()
	s, err := newSocket(func() (conn, error) {
		if len(peers) == 0 {
			return nil, errors.New("nobody there")
		}
		p := peers[0]
		peers = peers[1:]
		return p, nil
	}, 0)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func reply(typ uint16, seq uint32, data string) netlink.Message {
	return netlink.Message{Header: netlink.Header{Type: netlink.HeaderType(typ), Sequence: seq}, Data: []byte(data)}
}

// Only the message that answers is an answer, whatever else is in the datagram or comes before. No acknowledgement is
// asked for, and every message has another number.
func TestAnswer(t *testing.T) {
	p := newPeer(40)
	s := dialled(t, p)
	p.answer <- []netlink.Message{reply(typeSet, 40, "late"), reply(16, 41, "other type")}
	p.answer <- []netlink.Message{reply(typeSet, 40, "late"), reply(typeSet, 41, "this"), reply(typeSet, 41, "that")}
	p.answer <- []netlink.Message{reply(typeSet, 41, "again"), reply(typeSet, 42, "second")}
	for _, want := range []string{"this", "second"} {
		if got, err := s.Execute(t.Context(), typeSet, []byte("ask")); err != nil || string(got) != want {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
	for _, seq := range []uint32{41, 42} {
		m := <-p.sent
		if m.Header.Flags != netlink.Request || m.Header.Sequence != seq || !bytes.Equal(m.Data, []byte("ask")) {
			t.Errorf("sent %+v", m)
		}
	}
}

// A kernel that does not answer is left behind when the context ends, and what it says afterwards is never heard: the
// next message goes over a new connection.
func TestNoAnswer(t *testing.T) {
	slow, next := newPeer(1), newPeer(1)
	s := dialled(t, slow, next)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-slow.sent
		cancel()
	}()
	_, err := s.Execute(ctx, typeSet, []byte("ask"))
	if want := "no answer from the kernel, so whether it was done is open: context canceled"; err == nil || err.Error() != want || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	<-slow.gone
	next.answer <- []netlink.Message{reply(typeSet, 2, "fine")}
	if got, err := s.Execute(t.Context(), typeSet, []byte("ask")); err != nil || string(got) != "fine" {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := s.Execute(ctx, typeSet, []byte("ask")); err == nil || err.Error() != "nothing was sent: context canceled" {
		t.Errorf("got %v", err)
	}
	if len(next.sent) != 1 {
		t.Error("sent although the context was over")
	}
}

// The options' timeout counts when the context has none.
func TestTimeout(t *testing.T) {
	p := newPeer(1)
	s := dialled(t, p)
	s.timeout = 1 // nanosecond
	_, err := s.Execute(t.Context(), typeGet, []byte("ask"))
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

func TestTrouble(t *testing.T) {
	first, chatty := newPeer(1), newPeer(1)
	s := dialled(t, first, chatty)
	first.answer <- nil
	if _, err := s.Execute(t.Context(), typeGet, []byte("ask")); !errors.Is(err, errSocket) {
		t.Errorf("got %v", err)
	}
	<-first.gone
	for range strangers {
		chatty.answer <- []netlink.Message{reply(typeGet, 9, "noise")}
	}
	if _, err := s.Execute(t.Context(), typeGet, []byte("ask")); err == nil || err.Error() != "the kernel answers, but not to what was asked" {
		t.Errorf("got %v", err)
	}
	<-chatty.gone
	if _, err := s.Execute(t.Context(), typeGet, []byte("ask")); err == nil || err.Error() != "nothing was sent: nobody there" {
		t.Errorf("got %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestClosed(t *testing.T) {
	p := newPeer(1)
	s := dialled(t, p)
	for range 2 {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	<-p.gone
	for range 2 {
		if _, err := s.Execute(t.Context(), typeGet, []byte("ask")); !errors.Is(err, errClosed) {
			t.Errorf("got %v", err)
		}
	}
}
