package hostlocal

import (
	"context"
	"errors"
	"strings"

	"github.com/fabricctl/fabricctl/drivers/netlink/dcb"
)

// Event is a reason to look at the machine again before it is time.
type Event struct {
	Kind  string // dcb, link, gone, device: what happened; lost: what happened is not known
	Iface string // the interface that it happened to; "" when that is not known, or it is none
}

// EventKinds are the kinds of events.
func EventKinds() []string { return []string{"dcb", "link", "gone", "device", "lost"} }

// Watch sends what the kernel says until ctx ends, or the kernel says no more, which is an error: settings of DCB and links
// from w, drivers and devices from u. It closes both.
func Watch(ctx context.Context, w *dcb.Watcher, u Uevents, to chan<- Event) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer w.Close()
	defer u.Close()
	send := func(e Event) {
		select {
		case to <- e:
		case <-ctx.Done():
		}
	}
	go func() {
		<-ctx.Done()
		_ = u.Close() // ends its Receive
	}()
	go func() {
		for {
			text, err := u.Receive()
			if err != nil {
				stop(err)
				return
			}
			if e, ok := uevent(text); ok {
				send(e)
			}
		}
	}()
	for {
		e, err := w.Next(ctx)
		if err != nil {
			if cause := context.Cause(ctx); cause != nil {
				return cause
			}
			return err
		}
		kind := map[dcb.EventKind]string{dcb.Changed: "dcb", dcb.Link: "link", dcb.Gone: "gone", dcb.Lost: "lost"}[e.Kind]
		send(Event{kind, e.Ifname})
	}
}

// Uevents are what the kernel says about its objects, one text at a time; "" says that some were lost.
type Uevents interface {
	Receive() (string, error)
	Close() error
}

// errOver is that the kernel says no more.
var errOver = errors.New("the kernel's events ended")

// uevent is what a text of the kernel is about; most are about nothing of ours. Its form is ACTION@PATH and then NAME=VALUE, each
// with a zero byte at its end (lib/kobject_uevent.c).
func uevent(text string) (Event, bool) {
	if text == "" {
		return Event{Kind: "lost"}, true
	}
	fields := map[string]string{}
	for i, part := range strings.Split(strings.TrimSuffix(text, "\x00"), "\x00") {
		name, value, ok := strings.Cut(part, "=")
		if i > 0 && ok {
			fields[name] = value
		}
	}
	action, subsystem := fields["ACTION"], fields["SUBSYSTEM"]
	switch {
	case subsystem == "net" && (action == "add" || action == "move"),
		subsystem == "infiniband" && (action == "add" || action == "remove" || action == "move"),
		subsystem == "pci" && (action == "bind" || action == "unbind"):
		return Event{"device", fields["INTERFACE"]}, true
	}
	return Event{}, false
}
