package netlink

import (
	"errors"
	"fmt"
	"net/netip"
	"path"
	"sort"
	"strconv"
	"strings"
	"syscall"
)

// gidEntry is a used slot of a GID table.
type gidEntry struct {
	index int
	gid   netip.Addr
	v2    bool   // RoCE v2
	link  string // network interface; "" where the kernel does not say, as for one in another namespace
}

// firstGIDs is more than the default GIDs of a link, one for each version of RoCE, and those of its first address.
const firstGIDs = 8

// gidTable reads the table of a port of an RDMA device, without its empty slots, by index. A table may have holes:
// there the GID is all zero, and reading its type or its link fails with EINVAL (ABI/stable/sysfs-class-infiniband).
// Entries that come or go meanwhile look like empty slots. Whole reads all slots; otherwise those are read where the
// kernel puts what a link has from the start, which tells whose table it is.
func gidTable(t Tree, device string, port int, whole bool) ([]gidEntry, error) {
	dir := path.Join(sysRDMA, device, "ports", strconv.Itoa(port))
	names, err := t.List(dir + "/gids")
	if err != nil {
		return nil, err
	}
	var out []gidEntry
	for _, name := range names {
		i, err := strconv.Atoi(name)
		if err != nil || !whole && i >= firstGIDs {
			continue
		}
		g, err := line(t, dir+"/gids/"+name)
		if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.EAGAIN) {
			continue
		}
		if err != nil {
			return nil, err
		}
		a, err := netip.ParseAddr(g)
		if err != nil {
			return nil, fmt.Errorf("%s/gids/%s: %q is not a GID", dir, name, g)
		}
		if a.IsUnspecified() {
			continue
		}
		kind, err := line(t, dir+"/gid_attrs/types/"+name)
		if err != nil {
			continue
		}
		out = append(out, gidEntry{i, a, kind == "RoCE v2", said(t, dir+"/gid_attrs/ndevs/"+name)})
	}
	sort.Slice(out, func(i, j int) bool { return out[i].index < out[j].index })
	return out, nil
}

// gidOf is the index of the RoCE v2 GID of an IPv4 address on one of these links, -1 when there is none, and why there is
// none, or which others there are. The first link is the interface itself, and what is on it goes before what is on the
// others, which are its VLANs.
func gidOf(table []gidEntry, links []string) (int, string) {
	var fit []gidEntry
	v1, v6 := false, false
	for _, l := range links {
		for _, e := range table {
			if e.link != l {
				continue
			}
			v4 := e.gid.Is4In6()
			v1 = v1 || v4 && !e.v2
			v6 = v6 || e.v2 && !v4 && !e.gid.IsLinkLocalUnicast()
			if v4 && e.v2 {
				fit = append(fit, e)
			}
		}
	}
	switch {
	case len(fit) == 1:
		return fit[0].index, ""
	case len(fit) > 1:
		var others []string
		for _, e := range fit[1:] {
			others = append(others, fmt.Sprintf("%d is %s on %s", e.index, e.gid.Unmap(), e.link))
		}
		return fit[0].index, fmt.Sprintf("%d is %s on %s, and there are more: %s", fit[0].index, fit[0].gid.Unmap(), fit[0].link, strings.Join(others, ", "))
	case v1:
		return -1, "the IPv4 address has a GID of RoCE v1 only"
	case v6:
		return -1, "there are GIDs of IPv6 addresses only"
	case len(table) == 0:
		return -1, "the GID table is empty"
	}
	return -1, links[0] + " has no IPv4 address in the GID table"
}
