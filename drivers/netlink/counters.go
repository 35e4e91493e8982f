package netlink

import (
	"context"
	"fmt"
	"path"
	"strconv"
	"syscall"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/model/observe"
	"github.com/fabricctl/fabricctl/profiles"
)

var _ drivers.Sensor = (*Device)(nil)

// Sense reads the counters of every NIC by what its personality calls them. It asks three things of ethtool and one dump of
// dcbnl for each NIC, and one file for each counter of its RDMA device. Where several NICs share an RDMA device (a bond),
// the first of them by name has its counters: they would count twice else. The kernel may answer for a device's own counters
// from memory that is some milliseconds old.
func (d *Device) Sense(ctx context.Context, names []observe.Name) (observe.Counters, error) {
	m, err := d.look(ctx, false)
	if err != nil {
		return observe.Counters{}, d.named("sense", err)
	}
	c := observe.Counters{At: d.cfg.Now(), Values: map[observe.Port]uint64{}}
	want := observe.Wanted(names)
	rdma := map[rdmaPlace]bool{}
	for _, n := range m.nics {
		if err := ctx.Err(); err != nil {
			return observe.Counters{}, d.named("sense", err)
		}
		for name, v := range n.per.Count(func(name string) bool { return want(observe.Name(name)) }, d.counterOf(ctx, n, rdma)) {
			c.Values[observe.Port{Iface: n.Name, Name: observe.Name(name)}] = v
		}
	}
	return c, d.named("sense", ctx.Err())
}

// rdmaPlace is one port of an RDMA device.
type rdmaPlace struct {
	device string
	port   int
}

// counterOf reads what the driver of a NIC counts. Ports in rdma belong to NICs that were read before.
func (d *Device) counterOf(ctx context.Context, n *nic, rdma map[rdmaPlace]bool) func(where, as string, priority int) (uint64, bool) {
	var statistics map[string]uint64
	var dir string
	if n.rdma != nil {
		if at := (rdmaPlace{n.rdma.device, n.rdma.port}); !rdma[at] {
			rdma[at] = true
			dir = path.Join(sysRDMA, at.device, "ports", strconv.Itoa(at.port), "hw_counters")
		}
	}
	return func(where, as string, priority int) (uint64, bool) {
		switch {
		case where == profiles.ByEthtool && d.cfg.Ethtool != nil:
			if statistics == nil {
				statistics = map[string]uint64{}
				if s, err := (ethLink{d.cfg.Ethtool, n.Name}).statistics(ctx); err == nil { // a link without any says that it has none
					statistics = s
				}
			}
			v, ok := statistics[as]
			return v, ok
		case where == profiles.ByDCB && n.dcb != nil && n.dcb.PFC != nil && priority >= 0:
			if as == "requests" {
				return n.dcb.PFC.Requests[priority], true
			}
			return n.dcb.PFC.Indications[priority], true
		case where == profiles.ByRDMA && dir != "":
			text, err := line(d.tree, path.Join(dir, as))
			v, bad := strconv.ParseUint(text, 10, 64)
			return v, err == nil && bad == nil
		}
		return 0, false
	}
}

const (
	ethGetSetInfo = 0x37
	ethGetStats   = 0x1d
	ethStatNames  = 1 // ETH_SS_STATS

	lenSetInfo = 20
	lenStats   = 8

	maxStats   = 1 << 16
	spareStats = 1 << 12 // an older kernel writes as many as the driver has by now, whatever was asked
)

// statistics is what the driver counts, by its own names: what ethtool -S shows.
func (l ethLink) statistics(ctx context.Context) (map[string]uint64, error) {
	info := make([]byte, lenSetInfo)
	put32(info, 0, ethGetSetInfo)
	put64(info, 8, 1<<ethStatNames)
	if err := l.e.Do(ctx, l.link, info); err != nil {
		return nil, err
	}
	n := int(word32(info, 16))
	switch {
	case word64(info, 8)&(1<<ethStatNames) == 0 || n == 0:
		return nil, syscall.EOPNOTSUPP
	case n > maxStats:
		return nil, fmt.Errorf("the driver has %d statistics; at most %d are read", n, maxStats)
	}
	names := make([]byte, lenStrings+(n+spareStats)*ethStringLen)
	put32(names, 0, ethGetStrings)
	put32(names, 4, ethStatNames)
	put32(names, 8, uint32(n))
	if err := l.e.Do(ctx, l.link, names); err != nil {
		return nil, err
	}
	values := make([]byte, lenStats+(n+spareStats)*8)
	put32(values, 0, ethGetStats)
	put32(values, 4, uint32(n))
	if err := l.e.Do(ctx, l.link, values); err != nil {
		return nil, err
	}
	if int(word32(names, 8)) != n || int(word32(values, 4)) != n {
		return nil, fmt.Errorf("the driver had %d statistics, and then another number of them", n)
	}
	out := make(map[string]uint64, n)
	for i := range n {
		at := lenStrings + i*ethStringLen
		out[cstring(names[at:at+ethStringLen])] = word64(values, lenStats+8*i)
	}
	return out, nil
}
