package dcb

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/mdlayher/netlink"
)

// Source delivers the notifications of RTNLGRP_DCB and RTNLGRP_LINK, one message at a time: its type and data. It ends
// when ctx does. An Errno (ENOBUFS, EMSGSIZE) says that some were lost, and that there may be more.
type Source interface {
	Receive(ctx context.Context) (typ uint16, data []byte, err error)
	Close() error
}

// EventKind says what an Event is about.
type EventKind string

// The kinds of events.
const (
	// Changed: somebody set or deleted something on an interface, or tried to: a refusal is notified too.
	Changed EventKind = "changed"
	// Link: an interface is new or has changed: up, down, renamed, or anything else.
	Link EventKind = "link"
	// Gone: an interface no longer exists in this namespace.
	Gone EventKind = "gone"
	// Lost: notifications were lost, or could not be read. Read everything again.
	Lost EventKind = "lost"
)

// Event is one notification. DCBX modes, and what firmware and vendors' tools change, have none: those are to be read
// again from time to time.
type Event struct {
	Kind    EventKind
	Ifname  string // empty when Lost
	Index   int32  // Link and Gone: the kernel's number of the interface
	Running bool   // Link: there is a carrier
	State   *State // Changed: after the change; nil if the message does not say
}

// Watcher turns notifications into events. To miss nothing, make it first, then read the state, then call Next.
type Watcher struct{ s Source }

// NewWatcher is a watcher of s, which Close closes.
func NewWatcher(s Source) *Watcher { return &Watcher{s} }

// Close ends the notifications.
func (w *Watcher) Close() error { return w.s.Close() }

// Next waits for the next event. An error is that of ctx, or the end of the notifications.
func (w *Watcher) Next(ctx context.Context) (Event, error) {
	for {
		typ, data, err := w.s.Receive(ctx)
		if _, lost := errors.AsType[Errno](err); lost {
			return Event{Kind: Lost}, nil
		}
		if err != nil {
			return Event{}, fmt.Errorf("dcbnl: notifications: %w", err)
		}
		e, relevant, err := decodeEvent(typ, data)
		switch {
		case err != nil:
			return Event{Kind: Lost}, nil
		case relevant:
			return e, nil
		}
	}
}

// decodeEvent reads a notification; one of a type that is not ours is not relevant.
func decodeEvent(typ uint16, data []byte) (Event, bool, error) {
	switch typ {
	case typeGet, typeSet:
		_, s, err := Decode(data)
		if err != nil {
			return Event{}, false, err
		}
		e := Event{Kind: Changed, Ifname: s.Ifname}
		if s.Apps != nil { // which a full state always has; CEE has another form
			e.State = s
		}
		return e, true, nil
	case typeNewLink, typeDelLink:
		e, err := decodeLink(data)
		if typ == typeDelLink {
			e.Kind, e.Running = Gone, false
		}
		return e, true, err
	}
	return Event{}, false, nil
}

// decodeLink reads the little that is needed of RTM_NEWLINK and RTM_DELLINK.
func decodeLink(data []byte) (Event, error) {
	if len(data) < lenIfinfo {
		return Event{}, short("link message", data, lenIfinfo)
	}
	e := Event{
		Kind:    Link,
		Index:   int32(binary.NativeEndian.Uint32(data[4:])),
		Running: binary.NativeEndian.Uint32(data[8:])&flagRunning != 0,
	}
	ad, err := netlink.NewAttributeDecoder(data[lenIfinfo:])
	if err != nil {
		return Event{}, err
	}
	for ad.Next() {
		if ad.Type() == linkIfname {
			e.Ifname = ad.String()
		}
	}
	return e, ad.Err()
}

const (
	typeNewLink uint16 = 16
	typeDelLink uint16 = 17
	lenIfinfo          = 16   // struct ifinfomsg
	linkIfname         = 3    // IFLA_IFNAME
	flagRunning        = 0x40 // IFF_RUNNING
)
