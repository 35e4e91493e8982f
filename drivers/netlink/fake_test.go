package netlink

import (
	"context"
	"errors"
	"net/netip"
	"slices"
)

// kernel is a fake of the kernel's links that can misbehave.
type kernel struct {
	links  []Link
	addrs  map[int32][]netip.Prefix
	keep   bool                          // acknowledge a new MTU and keep the old one (intel/openlldp#34)
	refuse error                         // refuse every new MTU
	before func()                        // runs before each set
	bond   func(index int32, mtu uint32) // what a bond does with its slaves
	sets   int
}

func (k *kernel) List(ctx context.Context) ([]Link, error) { return slices.Clone(k.links), ctx.Err() }

func (k *kernel) Addresses(ctx context.Context) (map[int32][]netip.Prefix, error) {
	return k.addrs, ctx.Err()
}

func (k *kernel) SetMTU(ctx context.Context, index int32, mtu uint32) error {
	if k.before != nil {
		k.before()
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	k.sets++
	i := slices.IndexFunc(k.links, func(l Link) bool { return l.Index == index })
	switch {
	case i < 0:
		return errors.New("no such device")
	case k.refuse != nil:
		return k.refuse
	case !k.keep:
		k.links[i].MTU = mtu
		if k.bond != nil {
			k.bond(index, mtu)
		}
	}
	return nil
}

func (k *kernel) Close() error { return nil }
