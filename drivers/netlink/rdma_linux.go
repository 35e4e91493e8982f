package netlink

import (
	"context"
	"errors"
	"fmt"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

type rdmaSocket struct{ conn *netlink.Conn }

// DialRDMA opens the kernel's RDMA netlink. It is nil, without an error, where the kernel has no RDMA.
func DialRDMA() (RDMA, error) {
	conn, err := netlink.Dial(unix.NETLINK_RDMA, nil)
	if errors.Is(err, unix.EPROTONOSUPPORT) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("rdma netlink: %w", err)
	}
	return rdmaSocket{conn}, nil
}

func (r rdmaSocket) Close() error { return r.conn.Close() }

// QPs asks for the devices and then for the queue pairs of each.
func (r rdmaSocket) QPs(ctx context.Context) (map[string]int, error) {
	return until(ctx, func() (map[string]int, error) {
		devs, err := r.dump(rdmaDev, nil)
		if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EOPNOTSUPP) {
			return map[string]int{}, nil // the socket is there, and no device ever was: nothing serves it
		}
		if err != nil {
			return nil, err
		}
		out := map[string]int{}
		for _, m := range devs {
			d, err := parseRDMADevice(m)
			if err != nil {
				return nil, err
			}
			msgs, err := r.dump(rdmaQPs, ofRDMADevice(d.index))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", d.name, err)
			}
			for _, m := range msgs {
				n, err := countQPs(m)
				if err != nil {
					return nil, fmt.Errorf("%s: %w", d.name, err)
				}
				out[d.name] += n
			}
		}
		return out, nil
	})
}

// dump asks again while the kernel says that the list changed under it.
func (r rdmaSocket) dump(op int, data []byte) (out [][]byte, err error) {
	for range dumpTries {
		msgs, err := r.conn.Execute(netlink.Message{
			Header: netlink.Header{Type: netlink.HeaderType(op), Flags: netlink.Request | netlink.Dump},
			Data:   data,
		})
		if err != nil {
			return nil, err
		}
		whole := true
		out = out[:0]
		for _, m := range msgs {
			whole = whole && m.Header.Flags&netlink.DumpInterrupted == 0
			out = append(out, m.Data)
		}
		if whole {
			return out, nil
		}
	}
	return nil, fmt.Errorf("it changed during each of %d looks", dumpTries)
}
