package dcbfake

import (
	"github.com/fabricctl/fabricctl/drivers/netlink/dcb"
)

// notSupported is the kernel-internal ENOTSUPP, 524, which user space sees cut to one byte.
const notSupported = -524

const (
	einval = -int(dcb.EINVAL)
	enoent = -int(dcb.ENOENT)
	ebusy  = -int(dcb.EBUSY)
	eopnot = -int(dcb.EOPNOTSUPP)
)

func getETS(n *NIC) (dcb.ETS, int)         { return n.hw.ETS, 0 }
func getPFC(n *NIC) (dcb.PFC, int)         { return n.hw.PFC, 0 }
func getMaxRate(n *NIC) (dcb.MaxRate, int) { return n.hw.MaxRate, 0 }
func getBuffer(n *NIC) (dcb.Buffer, int)   { return n.hw.Buffer, 0 }
func getDCBX(n *NIC) dcb.DCBX              { return n.hw.DCBX }

// shares is the percentages of the classes that share by bandwidth, and how many classes do.
func shares(e dcb.ETS) (sum, classes int) {
	for i, t := range e.TSA {
		if t == dcb.Shared {
			sum += int(e.TxBW[i])
			classes++
		}
	}
	return sum, classes
}

func highest(e dcb.ETS) (tc int) {
	for _, c := range e.PrioTC {
		tc = max(tc, int(c))
	}
	return tc
}

// Generic keeps what it is told and forgets nothing, as the test device of the recordings does. Application entries
// are kept as in the kernel's own table, which checks nothing.
func Generic() Driver {
	const total = 262016
	return Driver{
		Name: "generic",
		PowerOn: func(n *NIC) {
			n.hw = Hardware{
				ETS:    dcb.ETS{Cap: 8, PrioTC: [8]uint8{0, 1, 2, 3, 4, 5, 6, 7}},
				PFC:    dcb.PFC{Cap: 8},
				Buffer: dcb.Buffer{Size: [8]uint32{total}, Total: total},
				DCBX:   dcb.Host | dcb.IEEE,
			}
		},
		Load:   func(*NIC) {},
		GetETS: getETS,
		SetETS: func(n *NIC, e dcb.ETS) int {
			for i, t := range e.TSA {
				switch {
				case e.PrioTC[i] > 7:
					return einval
				case t == dcb.CBShaper:
					return eopnot
				}
			}
			if sum, classes := shares(e); classes > 0 && sum != 100 {
				return einval
			}
			e.Cap = 8
			n.hw.ETS = e
			return 0
		},
		GetPFC: getPFC,
		SetPFC: func(n *NIC, p dcb.PFC) int {
			n.hw.PFC.Enabled, n.hw.PFC.MBC, n.hw.PFC.Delay = p.Enabled, p.MBC, p.Delay
			return 0
		},
		GetMaxRate: getMaxRate,
		SetMaxRate: func(n *NIC, m dcb.MaxRate) int { n.hw.MaxRate = m; return 0 },
		GetBuffer:  getBuffer,
		SetBuffer: func(n *NIC, f dcb.Buffer) int {
			if sumOf(f) > total {
				return einval
			}
			f.Total = total
			n.hw.Buffer = f
			return 0
		},
		SetApp: func(n *NIC, a dcb.App) int {
			status := n.apps.add(a)
			n.dscpFromTable()
			return status
		},
		DelApp: func(n *NIC, a dcb.App) int {
			status := n.apps.del(a)
			n.dscpFromTable()
			return status
		},
		GetDCBX: getDCBX,
		SetDCBX: func(n *NIC, mode dcb.DCBX) uint8 {
			if mode&(dcb.CEE|dcb.LLDManaged) != 0 {
				return 1
			}
			n.hw.DCBX = mode
			return 0
		},
	}
}

func sumOf(f dcb.Buffer) (sum uint64) {
	for _, v := range f.Size {
		sum += uint64(v)
	}
	return sum
}

// dscpFromTable makes the port do what the table says, the highest priority where it names several for a DSCP.
func (n *NIC) dscpFromTable() {
	n.hw.TrustDSCP, n.hw.DSCP = false, [64]uint8{}
	for _, a := range n.apps {
		if a.Selector == dcb.ByDSCP && a.Protocol < 64 {
			n.hw.TrustDSCP = true
			n.hw.DSCP[a.Protocol] = max(n.hw.DSCP[a.Protocol], a.Priority)
		}
	}
}

// MLX5 is a physical function of ConnectX. It takes entries for DSCPs only, and a new priority for a DSCP replaces the
// old one by itself. The table lists all 64 only if the port trusted DSCPs when the driver was loaded; after a switch at
// run time, the ones added since. Another set of PFC priorities toggles the link. The driver writes its own traffic
// classes when it is loaded.
func MLX5() Driver {
	const total = 262016
	return Driver{
		Name: "mlx5_core",
		PowerOn: func(n *NIC) {
			n.hw = Hardware{
				ETS:    dcb.ETS{Cap: 8},
				PFC:    dcb.PFC{Cap: 8, Delay: 7},
				Buffer: dcb.Buffer{Size: [8]uint32{total}, Total: total},
				DCBX:   dcb.CEE | dcb.IEEE,
			}
			for i := range n.hw.DSCP {
				n.hw.DSCP[i] = uint8(i >> 3)
			}
		},
		Load: func(n *NIC) {
			e := dcb.ETS{Cap: 8, PrioTC: [8]uint8{1, 0, 2, 3, 4, 5, 6, 7}}
			for i := range e.TSA {
				e.TSA[i], e.TxBW[i] = dcb.VendorTSA, 100
			}
			n.hw.ETS = e
			n.hw.PFC.Delay = 7
			if n.hw.TrustDSCP {
				for i, p := range n.hw.DSCP {
					n.apps.add(dcb.DSCP(uint8(i), p))
				}
				n.mapped = 64
			}
		},
		GetETS: getETS,
		SetETS: func(n *NIC, e dcb.ETS) int {
			for i := range 8 {
				if e.PrioTC[i] > 7 || e.TSA[i] == dcb.CBShaper {
					return einval
				}
			}
			if sum, classes := shares(e); classes > 0 && sum != 100 {
				return einval
			}
			n.hw.ETS.TSA, n.hw.ETS.TxBW, n.hw.ETS.PrioTC = e.TSA, e.TxBW, e.PrioTC
			for i, t := range e.TSA {
				if t != dcb.Shared {
					n.hw.ETS.TxBW[i] = 100
				}
			}
			return 0
		},
		GetPFC: getPFC,
		SetPFC: func(n *NIC, p dcb.PFC) int {
			if p.Enabled != n.hw.PFC.Enabled {
				n.hw.PFC.Enabled = p.Enabled
				n.flap()
			}
			if p.Delay > 0 && p.Delay < 1000 { // metres of cable
				n.hw.PFC.Delay = p.Delay
			}
			return 0
		},
		GetMaxRate: getMaxRate,
		SetMaxRate: func(n *NIC, m dcb.MaxRate) int {
			const mega, giga = 1000, 1000 * 1000
			for i, v := range m {
				switch {
				case v == 0:
				case v <= 255*100*mega:
					m[i] = max(v/(100*mega), 1) * 100 * mega
				case v <= 255*giga:
					m[i] = v / giga * giga
				default:
					m[i] = 0
				}
			}
			n.hw.MaxRate = m
			return 0
		},
		GetBuffer: getBuffer,
		SetBuffer: func(n *NIC, f dcb.Buffer) int {
			if sumOf(f) > total {
				return einval
			}
			f.Total = total
			n.hw.Buffer = f
			return 0
		},
		SetApp: func(n *NIC, a dcb.App) int {
			if a.Selector != dcb.ByDSCP || a.Protocol > 63 {
				return einval
			}
			n.hw.TrustDSCP = true
			old := dcb.DSCP(uint8(a.Protocol), n.hw.DSCP[a.Protocol])
			n.hw.DSCP[a.Protocol] = a.Priority
			fresh := n.apps.del(old) != 0
			if status := n.apps.add(a); status != 0 {
				return status
			}
			if fresh {
				n.mapped++
			}
			return 0
		},
		DelApp: func(n *NIC, a dcb.App) int {
			switch {
			case a.Selector != dcb.ByDSCP || a.Protocol > 63:
				return einval
			case n.mapped == 0 || a.Priority != n.hw.DSCP[a.Protocol]:
				return enoent
			}
			if status := n.apps.del(a); status != 0 {
				return status
			}
			n.hw.DSCP[a.Protocol] = 0 // and not what it was before
			n.mapped--
			n.hw.TrustDSCP = n.mapped > 0
			return 0
		},
		GetDCBX: getDCBX,
		SetDCBX: func(n *NIC, mode dcb.DCBX) uint8 {
			switch {
			case mode&dcb.LLDManaged != 0:
				return 1
			case mode == 0:
				n.hw.DCBX = dcb.CEE | dcb.IEEE
				n.hw.ETS.Willing = 1
				return 0
			case mode&dcb.Host == 0:
				return 1
			}
			n.hw.DCBX = mode
			return 0
		},
	}
}
