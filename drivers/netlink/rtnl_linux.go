package netlink

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"sort"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// rtnl is a socket to the kernel's rtnetlink.
type rtnl struct{ conn *netlink.Conn }

// Dial opens rtnetlink in the calling thread's network namespace.
func Dial() (Links, error) {
	conn, err := netlink.Dial(unix.NETLINK_ROUTE, nil)
	if err != nil {
		return nil, fmt.Errorf("rtnetlink: %w", err)
	}
	// The kernel's own sentence beside the error number, where the kernel has it (4.12).
	_ = conn.SetOption(netlink.ExtendedAcknowledge, true)
	return rtnl{conn}, nil
}

func (r rtnl) Close() error { return r.conn.Close() }

// List is all links, by index.
func (r rtnl) List(ctx context.Context) ([]Link, error) {
	return until(ctx, func() ([]Link, error) {
		for range dumpTries {
			links, whole, err := r.dump()
			if whole || err != nil {
				return links, err
			}
		}
		return nil, fmt.Errorf("links came and went during each of %d looks", dumpTries)
	})
}

// dumpTries is how often to ask for the links before giving up on a list that is not interrupted.
const dumpTries = 10

// dump asks for the links once. It is not whole when the kernel says that links came or went meanwhile: then one that
// was there all the time may be missing.
func (r rtnl) dump() (links []Link, whole bool, err error) {
	msgs, err := r.conn.Execute(netlink.Message{
		Header: netlink.Header{Type: unix.RTM_GETLINK, Flags: netlink.Request | netlink.Dump},
		Data:   ifinfo(0),
	})
	if err != nil {
		return nil, false, err
	}
	whole = true
	for _, m := range msgs {
		whole = whole && m.Header.Flags&netlink.DumpInterrupted == 0
		if m.Header.Type != unix.RTM_NEWLINK {
			continue
		}
		l, err := parseLink(m.Data)
		if err != nil {
			return nil, false, err
		}
		links = append(links, l)
	}
	sort.Slice(links, func(i, j int) bool { return links[i].Index < links[j].Index })
	return links, whole, nil
}

// Addresses is all IP addresses with the length of their prefix, by the index of the link, in the kernel's order.
func (r rtnl) Addresses(ctx context.Context) (map[int32][]netip.Prefix, error) {
	return until(ctx, func() (map[int32][]netip.Prefix, error) {
		msgs, err := r.conn.Execute(netlink.Message{
			Header: netlink.Header{Type: unix.RTM_GETADDR, Flags: netlink.Request | netlink.Dump},
			Data:   make([]byte, unix.SizeofIfAddrmsg),
		})
		if err != nil {
			return nil, err
		}
		out := map[int32][]netip.Prefix{}
		for _, m := range msgs {
			if m.Header.Type != unix.RTM_NEWADDR {
				continue
			}
			index, p, err := parseAddress(m.Data)
			if err != nil {
				return nil, err
			}
			if p.IsValid() {
				out[index] = append(out[index], p)
			}
		}
		return out, nil
	})
}

// parseAddress reads the body of an RTM_NEWADDR. The prefix is not valid where there is no address of IP.
func parseAddress(b []byte) (int32, netip.Prefix, error) {
	if len(b) < unix.SizeofIfAddrmsg {
		return 0, netip.Prefix{}, errors.New("short address message")
	}
	index := int32(binary.NativeEndian.Uint32(b[4:]))
	ad, err := netlink.NewAttributeDecoder(b[unix.SizeofIfAddrmsg:])
	if err != nil {
		return index, netip.Prefix{}, err
	}
	var local, address netip.Addr
	for ad.Next() {
		switch ad.Type() {
		case unix.IFA_LOCAL: // where there is a peer, its address is in IFA_ADDRESS
			local, _ = netip.AddrFromSlice(ad.Bytes())
		case unix.IFA_ADDRESS:
			address, _ = netip.AddrFromSlice(ad.Bytes())
		}
	}
	if !local.IsValid() {
		local = address
	}
	return index, netip.PrefixFrom(local, int(b[1])), ad.Err()
}

// SetMTU sends RTM_SETLINK with IFLA_MTU and nothing else.
func (r rtnl) SetMTU(ctx context.Context, index int32, mtu uint32) error {
	e := netlink.NewAttributeEncoder()
	e.Uint32(unix.IFLA_MTU, mtu)
	attrs, err := e.Encode()
	if err != nil {
		return err
	}
	_, err = until(ctx, func() ([]netlink.Message, error) {
		return r.conn.Execute(netlink.Message{
			Header: netlink.Header{Type: unix.RTM_SETLINK, Flags: netlink.Request | netlink.Acknowledge},
			Data:   append(ifinfo(index), attrs...),
		})
	})
	if op := (*netlink.OpError)(nil); errors.As(err, &op) {
		err = op.Err
		if op.Message != "" {
			err = fmt.Errorf("%s (%w)", op.Message, op.Err)
		}
	}
	return err
}

// until runs f and waits for it or for the end of ctx. The kernel handles a request inside the system call and may
// wait there for its lock as long as it likes, so f is left behind rather than interrupted.
func until[T any](ctx context.Context, f func() (T, error)) (T, error) {
	type result struct {
		v   T
		err error
	}
	if err := ctx.Err(); err != nil {
		return *new(T), err
	}
	done := make(chan result, 1)
	go func() {
		v, err := f()
		done <- result{v, err}
	}()
	select {
	case r := <-done:
		return r.v, r.err
	case <-ctx.Done():
		return *new(T), fmt.Errorf("no answer from the kernel: %w", ctx.Err())
	}
}

// ifinfo is a struct ifinfomsg with nothing but the index.
func ifinfo(index int32) []byte {
	b := make([]byte, unix.SizeofIfInfomsg)
	binary.NativeEndian.PutUint32(b[4:], uint32(index))
	return b
}

// parseLink reads the body of an RTM_NEWLINK.
func parseLink(b []byte) (Link, error) {
	if len(b) < unix.SizeofIfInfomsg {
		return Link{}, errors.New("short link message")
	}
	l := Link{
		Index:    int32(binary.NativeEndian.Uint32(b[4:])),
		Loopback: binary.NativeEndian.Uint32(b[8:])&unix.IFF_LOOPBACK != 0,
		Up:       binary.NativeEndian.Uint32(b[8:])&unix.IFF_LOWER_UP != 0,
	}
	ad, err := netlink.NewAttributeDecoder(b[unix.SizeofIfInfomsg:])
	if err != nil {
		return Link{}, err
	}
	var lower int32
	for ad.Next() {
		switch ad.Type() {
		case unix.IFLA_IFNAME:
			l.Name = ad.String()
		case unix.IFLA_MTU:
			l.MTU = ad.Uint32()
		case unix.IFLA_MIN_MTU:
			l.Min = ad.Uint32()
		case unix.IFLA_MAX_MTU:
			l.Max = ad.Uint32()
		case unix.IFLA_LINK:
			lower = ad.Int32()
		case unix.IFLA_MASTER:
			l.Master = ad.Int32()
		case unix.IFLA_LINKINFO:
			ad.Nested(func(in *netlink.AttributeDecoder) error {
				for in.Next() {
					if in.Type() == unix.IFLA_INFO_KIND {
						l.Kind = in.String()
					}
				}
				return nil
			})
		}
	}
	switch l.Kind {
	case "vlan", "macvlan", "macvtap": // others use IFLA_LINK for other things: the far end of a veth
		l.Lower = lower
	}
	return l, ad.Err()
}
