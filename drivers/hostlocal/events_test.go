package hostlocal

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/fabricctl/fabricctl/drivers/netlink/dcb"
)

func TestUevent(t *testing.T) {
	text := func(lines ...string) string { return strings.Join(lines, "\x00") + "\x00" }
	for _, x := range []struct {
		text string
		want Event
		ours bool
	}{
		{"", Event{Kind: "lost"}, true},
		{text("add@/devices/pci0000:00/net/rdma0", "ACTION=add", "SUBSYSTEM=net", "INTERFACE=rdma0", "IFINDEX=4"), Event{"device", "rdma0"}, true},
		{text("add@/devices/x/infiniband/mlx5_0", "ACTION=add", "SUBSYSTEM=infiniband", "NAME=mlx5_0"), Event{Kind: "device"}, true},
		{text("bind@/devices/pci0000:00/0000:17:00.0", "ACTION=bind", "SUBSYSTEM=pci", "DRIVER=mlx5_core"), Event{Kind: "device"}, true},
		{text("remove@/devices/virtual/net/veth1", "ACTION=remove", "SUBSYSTEM=net", "INTERFACE=veth1"), Event{}, false},
		{text("change@/devices/x", "ACTION=change", "SUBSYSTEM=block"), Event{}, false},
		{text("libudev", "ACTION=add"), Event{}, false},
		{"ACTION=add", Event{}, false},
		{"\x00\x00=\x00", Event{}, false},
	} {
		if got, ok := uevent(x.text); got != x.want || ok != x.ours {
			t.Errorf("%q: %+v, %v", x.text, got, ok)
		}
	}
}

func FuzzUevent(f *testing.F) {
	f.Add("add@/x\x00ACTION=add\x00SUBSYSTEM=net\x00INTERFACE=a\x00")
	f.Fuzz(func(t *testing.T, s string) {
		if e, ok := uevent(s); !ok && e != (Event{}) {
			t.Errorf("%+v of nothing", e)
		}
	})
}

// script is the kernel's notifications of a test.
type script struct{ errs chan error }

func (s script) Receive(ctx context.Context) (uint16, []byte, error) {
	select {
	case err := <-s.errs:
		return 0, nil, err
	case <-ctx.Done():
		return 0, nil, ctx.Err()
	}
}
func (s script) Close() error { return nil }

type texts struct {
	say    chan string
	closed chan struct{}
}

func (u texts) Receive() (string, error) {
	select {
	case s := <-u.say:
		return s, nil
	case <-u.closed:
		return "", io.EOF
	}
}

func (u texts) Close() error {
	select {
	case <-u.closed:
	default:
		close(u.closed)
	}
	return nil
}

// What both sources say arrives; the end of one ends all, and so does the caller.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, end := range []string{"caller", "dcb", "uevents"} {
			s, u := script{errs: make(chan error)}, texts{make(chan string), make(chan struct{})}
			events := make(chan Event, 10)
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- Watch(ctx, dcb.NewWatcher(s), u, events) }()
			s.errs <- dcb.Errno(105) // ENOBUFS
			u.say <- ""
			u.say <- "change@/x\x00ACTION=change\x00SUBSYSTEM=net\x00"
			synctest.Wait()
			if len(events) != 2 || (<-events).Kind != "lost" || (<-events).Kind != "lost" {
				t.Errorf("%d events left", len(events))
			}
			switch end {
			case "caller":
				stop()
			case "dcb":
				s.errs <- errors.New("the socket is gone")
			case "uevents":
				u.Close()
			}
			if err := <-ended; err == nil {
				t.Errorf("%s: it ended without a word", end)
			}
			stop()
			synctest.Wait()
		}
	})
}
