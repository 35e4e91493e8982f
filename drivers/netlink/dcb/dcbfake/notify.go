package dcbfake

import (
	"context"

	"github.com/fabricctl/fabricctl/drivers/netlink/dcb"
)

// Subscription is a listener to the kernel's notifications. It is a dcb.Source.
type Subscription struct {
	kernel *Kernel
	queue  chan notification
	err    dcb.Errno // to report before anything else
}

type notification struct {
	typ  uint16
	data []byte
}

var _ dcb.Source = (*Subscription)(nil)

// Subscribe listens from now on. A listener that is room messages behind loses what comes, and hears ENOBUFS.
func (k *Kernel) Subscribe(room int) *Subscription {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := &Subscription{kernel: k, queue: make(chan notification, room)}
	k.subs = append(k.subs, s)
	return s
}

// Receive waits for the next notification.
func (s *Subscription) Receive(ctx context.Context) (uint16, []byte, error) {
	s.kernel.mu.Lock()
	err := s.err
	s.err = 0
	s.kernel.mu.Unlock()
	if err != 0 {
		return 0, nil, err
	}
	select {
	case m := <-s.queue:
		return m.typ, m.data, nil
	case <-ctx.Done():
		return 0, nil, ctx.Err()
	}
}

// Close ends the subscription.
func (s *Subscription) Close() error {
	s.kernel.mu.Lock()
	defer s.kernel.mu.Unlock()
	var rest []*Subscription
	for _, o := range s.kernel.subs {
		if o != s {
			rest = append(rest, o)
		}
	}
	s.kernel.subs = rest
	return nil
}

// notify tells the listeners the state after a set or a deletion, done or refused. A state that does not fit into a
// message reaches them as an error.
func (k *Kernel) notify(n *NIC, cmd uint8) {
	data, err := k.fill([]byte{0, cmd, 0, 0}, n)
	for _, s := range k.subs {
		if err != 0 {
			s.err = err
			continue
		}
		s.push(typeSet, data)
	}
}

// link tells the listeners that the link went up or down.
func (k *Kernel) link(n *NIC, up bool) {
	b := make([]byte, 16) // struct ifinfomsg
	native.PutUint32(b[4:], uint32(n.index))
	flags := uint32(0x1) // IFF_UP
	if up {
		flags |= 0x40 | 0x10000 // IFF_RUNNING, IFF_LOWER_UP
	}
	native.PutUint32(b[8:], flags)
	b = put(b, 3, append([]byte(n.name), 0)) // IFLA_IFNAME
	for _, s := range k.subs {
		s.push(typeNewLink, b)
	}
}

func (s *Subscription) push(typ uint16, data []byte) {
	select {
	case s.queue <- notification{typ, data}:
	default:
		s.err = dcb.ENOBUFS
	}
}
