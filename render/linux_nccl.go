package render

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/intent"
)

// The NCCL variables of the model.
const (
	ncclTC      = "NCCL_IB_TC"
	ncclTimeout = "NCCL_IB_TIMEOUT"
	ncclRetry   = "NCCL_IB_RETRY_CNT"
	ncclQPs     = "NCCL_IB_QPS_PER_CONNECTION"
	ncclCross   = "NCCL_CROSS_NIC"
	ncclHCA     = "NCCL_IB_HCA"
	ncclRoCE    = "NCCL_IB_ROCE_VERSION_NUM"
	ncclFamily  = "NCCL_IB_ADDR_FAMILY"
	ncclRange   = "NCCL_IB_ADDR_RANGE"
	ncclGID     = "NCCL_IB_GID_INDEX"
	ncclSocket  = "NCCL_SOCKET_IFNAME"
)

// ncclLimit is the largest value of a variable that is a number: a byte, the 5 and 3 bits of the queue pair's attributes,
// or what NCCL checks.
func ncclLimit(name string) int64 {
	switch name {
	case ncclTimeout:
		return 31
	case ncclRetry:
		return 7
	case ncclQPs:
		return 128
	case ncclCross, ncclRoCE:
		return 2
	}
	return 255
}

// ncclNumber reports whether NCCL reads the variable as a number.
func ncclNumber(name string) bool {
	return slices.Contains([]string{ncclTC, ncclTimeout, ncclRetry, ncclQPs, ncclCross, ncclRoCE, ncclGID}, name)
}

// nccl asks for the NCCL file, which is one for all NICs.
func (r *linuxRenderer) nccl() {
	var asking []*linuxNIC
	for _, n := range r.nics {
		if n.policy.Known.Has(intent.AreaNCCL) && n.policy.NCCL.On {
			asking = append(asking, n)
		}
	}
	for _, n := range asking {
		x := n.policy.NCCL
		n.put(ncclKey(ncclTC), strconv.Itoa(int(x.TrafficClass)), "nccl.traffic_class")
		for _, v := range []struct {
			said  bool
			name  string
			value int64
			field intent.Field
		}{
			{x.Timeout > 0, ncclTimeout, int64(x.Timeout), "nccl.timeout"},
			{x.RetryCount > 0, ncclRetry, int64(x.RetryCount), "nccl.retry_count"},
			{x.QPs > 0, ncclQPs, int64(x.QPs), "nccl.qps_per_connection"},
			{x.CrossNIC > 0, ncclCross, int64(x.CrossNIC) - 1, "nccl.cross_nic"},
			{x.RoCE > 0, ncclRoCE, int64(x.RoCE), "nccl.roce_version"},
			{x.GID > 0, ncclGID, int64(x.GID) - 1, "nccl.gid_index"},
		} {
			if limit := ncclLimit(v.name); v.said && v.value > limit {
				n.refuse(n.d.Origin(n.port, v.field), "", "%s of %d: the largest is %d", v.name, v.value, limit)
			} else if v.said {
				n.put(ncclKey(v.name), strconv.FormatInt(v.value, 10), v.field)
			}
		}
		if family := map[uint8]string{4: "AF_INET", 6: "AF_INET6"}[x.Family]; family != "" {
			n.put(ncclKey(ncclFamily), family, "nccl.address_family")
		}
		for name, v := range map[string]string{ncclSocket: r.d.NCCL.Socket, ncclRange: r.d.NCCL.Range} {
			if v != "" {
				n.put(ncclKey(name), v, "nccl.traffic_class")
			}
		}
	}
	r.ncclNICs(asking)
	r.ncclIndex(asking)
}

// ncclNICs lists the RDMA devices of the fabric, in the order of the rails, each by its whole name: NCCL takes a name
// without "=" for a prefix, and mlx5_1 for mlx5_10 too.
func (r *linuxRenderer) ncclNICs(asking []*linuxNIC) {
	asking = slices.DeleteFunc(slices.Clone(asking), func(n *linuxNIC) bool { return !n.policy.NCCL.HCA })
	sort.SliceStable(asking, func(i, j int) bool {
		a, b := asking[i].port, asking[j].port
		return cmp.Or(cmp.Compare(a.Rail, b.Rail), intent.CompareNames(a.Name, b.Name)) < 0
	})
	var list []string
	for _, n := range asking {
		name := n.device()
		switch {
		case name == "" && n.said == nil && !n.bare:
			if o := n.d.Origin(n.port, "nccl.hca"); o != nil && o.Kind != model.FromLine {
				return // nobody asked, and the plan knows
			}
			n.bound(fmt.Sprintf("give its RDMA device in the inventory: {netdev: %s, rdma: mlx5_0}", cmp.Or(n.port.Iface, "…")),
				"the host alone knows the RDMA device of %s: %s is in the plan, and not rendered here", cmp.Or(n.port.Iface, n.port.Name), ncclHCA)
			return
		case name == "" && n.bare:
			return
		case name == "":
			n.lacks(intent.AreaNCCL, "nccl.hca", "load its RDMA driver, or set nccl: {hca: off}", "%s has no RDMA device, and %s is to list it", n.name(n.port), ncclHCA)
			return
		case !slices.Contains(list, name):
			list = append(list, name)
		}
	}
	for _, n := range asking {
		n.put(ncclKey(ncclHCA), "="+strings.Join(list, ","), "nccl.hca")
	}
}

// device is the RDMA device and port of a NIC, "mlx5_0:1": as the host says, or else the inventory; "" = not known.
func (n *linuxNIC) device() string {
	if n.said != nil || n.bare {
		return n.linuxCard.device()
	}
	if n.port.RDMA == "" {
		return ""
	}
	return n.port.RDMA + ":1"
}

func (c *linuxCard) device() string {
	if c.said == nil || c.said.RDMA == "" {
		return ""
	}
	return c.said.RDMA + ":" + strconv.Itoa(max(c.said.RDMAPort, 1))
}

// ncclIndex gives the GID index that the NICs' addresses have on the host, where the model wants one: NCCL before 2.21
// does not find it by itself. It must be the same for all of them.
func (r *linuxRenderer) ncclIndex(asking []*linuxNIC) {
	asking = slices.DeleteFunc(slices.Clone(asking), func(n *linuxNIC) bool { return n.policy.NCCL.GID != intent.GIDOfHost })
	const hint = "nccl: {version: \"2.21\"} or later chooses by address, and needs none"
	for _, n := range asking {
		switch {
		case n.said == nil && !n.bare:
			n.bound("", "the host alone knows the GID index of %s: %s is in the plan, and not rendered here", cmp.Or(n.port.Iface, n.port.Name), ncclGID)
			return
		case n.said == nil || n.said.GID < 0:
			why := "it has no RoCE v2 GID of an IPv4 address"
			if n.said != nil && n.said.GIDWhy != "" {
				why = n.said.GIDWhy
			}
			n.lacks(intent.AreaNCCL, "nccl.gid_index", hint, "%s is to be that of %s: %s", ncclGID, n.name(n.port), why)
			return
		}
	}
	for _, n := range asking {
		if first := asking[0]; n.said.GID != first.said.GID {
			n.refuse(n.d.Origin(n.port, "nccl.gid_index"), hint, "%s is one for all NICs, and the address of %s has index %d where that of %s has %d", ncclGID, n.port.Iface, n.said.GID, first.port.Iface, first.said.GID)
			return
		}
	}
	for _, n := range asking {
		n.put(ncclKey(ncclGID), strconv.Itoa(n.said.GID), "nccl.gid_index")
	}
}

// linuxLiftNCCL is what the file says of every NIC alike, and what of it is not understood. A variable that is not there,
// or is -1, is not set.
func linuxLiftNCCL(c Config, say func(k Key, format string, a ...any)) (x intent.NCCL, devices []string) {
	read := func(name string, zero bool, set func(n int64)) {
		v, ok := c.Find(ncclKey(name))
		if !ok {
			return
		}
		n, ok := ncclInt(v)
		switch {
		case !ok || n < -1 || n > ncclLimit(name):
			say(ncclKey(name), "%q is not a number from 0 to %d", v, ncclLimit(name))
		case n == 0 && !zero:
			say(ncclKey(name), "0 is a value that the model does not have")
		case n >= 0:
			set(n)
			x.On = true
		}
	}
	read(ncclTC, true, func(n int64) { x.TrafficClass = uint8(n) })
	read(ncclTimeout, false, func(n int64) { x.Timeout = uint8(n) })
	read(ncclRetry, false, func(n int64) { x.RetryCount = uint8(n) })
	read(ncclQPs, false, func(n int64) { x.QPs = uint8(n) })
	read(ncclCross, true, func(n int64) { x.CrossNIC = uint8(n) + 1 })
	read(ncclRoCE, false, func(n int64) { x.RoCE = uint8(n) })
	read(ncclGID, true, func(n int64) { x.GID = int16(n) + 1 })
	if v, ok := c.Find(ncclKey(ncclFamily)); ok {
		switch v {
		case "AF_INET":
			x.Family, x.On = 4, true
		case "AF_INET6":
			x.Family, x.On = 6, true
		default:
			say(ncclKey(ncclFamily), "%q is not AF_INET or AF_INET6", v)
		}
	}
	if x.On && x.GID == 0 { // what NCCL does without being told
		x.RoCE, x.Family = cmp.Or(x.RoCE, 2), cmp.Or(x.Family, 4)
	}
	if v, ok := c.Find(ncclKey(ncclHCA)); ok {
		list, exact := strings.CutPrefix(v, "=")
		if exact {
			devices, x.On = strings.Split(list, ","), true
		} else {
			say(ncclKey(ncclHCA), "%q has no \"=\" in front: NCCL takes each name for a prefix, and mlx5_1 for mlx5_10 too", v)
		}
	}
	return x, devices
}

// ncclInt reads a number as NCCL does, by the rules of C: 104, 0x68 and 0150 are the same, what follows is ignored.
func ncclInt(s string) (int64, bool) {
	s = strings.TrimLeft(s, " \t\n\v\f\r")
	sign := int64(1)
	if rest, ok := strings.CutPrefix(s, "-"); ok {
		s, sign = rest, -1
	} else {
		s = strings.TrimPrefix(s, "+")
	}
	base, set := 10, "0123456789"
	switch {
	case len(s) > 2 && (s[:2] == "0x" || s[:2] == "0X") && strings.IndexByte("0123456789abcdefABCDEF", s[2]) >= 0:
		s, base, set = s[2:], 16, "0123456789abcdefABCDEF"
	case strings.HasPrefix(s, "0"):
		base, set = 8, "01234567"
	}
	n, err := strconv.ParseInt(s[:len(s)-len(strings.TrimLeft(s, set))], base, 64)
	return sign * n, err == nil
}
