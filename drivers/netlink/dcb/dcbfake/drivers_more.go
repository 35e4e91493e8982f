package dcbfake

import (
	"slices"

	"github.com/fabricctl/fabricctl/drivers/netlink/dcb"
)

// iceClasses is the traffic classes of an E810 with more than two ports.
const iceClasses = 4

// Ice is an E810. The priority of an entry is its traffic class, and there are 4. A DSCP that is mapped has to be
// deleted before it gets another class, and a deleted one goes to DSCP modulo 8. The first entry replaces the traffic
// classes; the last one that goes resets all. Changes close and open the interface. Where the port did so already, the
// answer is 1 or 2.
func Ice() Driver {
	initial := func(n *NIC) {
		n.hw.ETS = dcb.ETS{Willing: 1, Cap: iceClasses, TxBW: [8]uint8{100}, RxBW: [8]uint8{100}, TSA: [8]dcb.TSA{dcb.Shared}}
		n.hw.PFC = dcb.PFC{Cap: iceClasses}
		n.hw.TrustDSCP, n.hw.DSCP = false, [64]uint8{}
	}
	ready := func(n *NIC) bool {
		return n.hw.DCBX&dcb.LLDManaged == 0 && n.hw.DCBX&dcb.IEEE != 0 && !n.hw.FirmwareLLDP
	}
	return Driver{
		Name: "ice",
		PowerOn: func(n *NIC) {
			n.hw = Hardware{DCBX: dcb.Host | dcb.IEEE}
			initial(n)
		},
		Load:   func(n *NIC) { initial(n) },
		GetETS: getETS,
		SetETS: func(n *NIC, e dcb.ETS) int {
			if !ready(n) {
				return einval
			}
			if n.hw.TrustDSCP { // the classes of priorities are fixed
				e.PrioTC, e.RecoPrioTC = n.hw.ETS.PrioTC, n.hw.ETS.RecoPrioTC
			}
			tc := highest(e)
			sum := 0
			for _, v := range e.TxBW[:min(tc+1, 8)] {
				sum += int(v)
			}
			switch {
			case tc >= iceClasses || sum != 0 && sum != 100:
				return einval
			case sum == 0:
				e.TxBW[0] = 100
			}
			e.Cap, e.RxBW = iceClasses, e.TxBW
			if n.hw.ETS != e {
				n.hw.ETS = e
				n.flap()
			}
			return 0
		},
		GetPFC: getPFC,
		SetPFC: func(n *NIC, p dcb.PFC) int {
			if !ready(n) {
				return einval
			}
			if p.Enabled != n.hw.PFC.Enabled { // the delay is the hardware's, whatever was asked
				n.hw.PFC.Enabled = p.Enabled
				n.flap()
			}
			return 0
		},
		SetApp: func(n *NIC, a dcb.App) int {
			if a.Selector != dcb.ByDSCP || !ready(n) || a.Protocol > 63 || a.Priority >= iceClasses {
				return einval
			}
			taken := slices.ContainsFunc(n.apps, func(b dcb.App) bool { return b.Protocol == a.Protocol })
			if status := n.apps.add(a); status != 0 {
				return status
			}
			if taken {
				n.apps.del(a)
				return einval
			}
			first := !n.hw.TrustDSCP
			if first {
				n.iceDSCPMode()
			}
			same := n.hw.DSCP[a.Protocol] == a.Priority
			n.hw.DSCP[a.Protocol] = a.Priority
			if same && !first {
				return 1 // no change of the hardware
			}
			n.flap()
			return 0
		},
		DelApp: func(n *NIC, a dcb.App) int {
			if !ready(n) {
				return einval
			}
			if status := n.apps.del(a); status != 0 {
				return status
			}
			if len(n.apps) == 0 {
				initial(n)
				n.flap()
				return 0
			}
			to := uint8(a.Protocol % 8)
			if n.hw.DSCP[a.Protocol] == to {
				return 2 // handled, and nothing to reset
			}
			n.hw.DSCP[a.Protocol] = to
			n.flap()
			return 0
		},
		GetDCBX: func(n *NIC) dcb.DCBX {
			if n.hw.FirmwareLLDP {
				return dcb.LLDManaged | dcb.IEEE
			}
			return n.hw.DCBX
		},
		SetDCBX: func(n *NIC, mode dcb.DCBX) uint8 {
			if n.hw.FirmwareLLDP || mode&dcb.LLDManaged != 0 || mode&dcb.IEEE != 0 && mode&dcb.CEE != 0 ||
				mode&dcb.Host == 0 || mode == n.hw.DCBX || n.hw.TrustDSCP {
				return 1
			}
			n.hw.DCBX = mode
			return 0
		},
	}
}

// iceDSCPMode is what ice does when the first entry arrives. The map is that of a loop that is right for 8 classes.
func (n *NIC) iceDSCPMode() {
	n.hw.TrustDSCP = true
	n.hw.ETS.Willing = 0
	n.hw.ETS.TxBW, n.hw.ETS.TSA = [8]uint8{100}, [8]dcb.TSA{}
	n.hw.ETS.RxBW = n.hw.ETS.TxBW
	for i := range iceClasses {
		n.hw.ETS.TSA[i] = dcb.Shared
		n.hw.ETS.PrioTC[i] = uint8(i)
		for j := range 8 {
			n.hw.DSCP[i*iceClasses+j] = uint8(i)
			n.hw.DSCP[i*iceClasses+j+iceClasses*8] = uint8(i)
		}
	}
}

// BNXT answers gets from memory: zeros until something was set this way, whatever another tool did. Sets need the host
// in charge of DCBX. An entry for a DSCP does not replace another one for it: the last one counts.
func BNXT() Driver {
	ready := func(n *NIC) bool { return !n.hw.FirmwareLLDP && n.hw.DCBX&dcb.Host != 0 && n.hw.DCBX&dcb.IEEE != 0 }
	mode := func(n *NIC) dcb.DCBX {
		if n.hw.FirmwareLLDP {
			return dcb.LLDManaged | dcb.IEEE
		}
		return n.hw.DCBX
	}
	return Driver{
		Name: "bnxt_en",
		PowerOn: func(n *NIC) {
			n.hw = Hardware{ETS: dcb.ETS{Cap: 8}, PFC: dcb.PFC{Cap: 8}, DCBX: dcb.Host | dcb.IEEE}
		},
		Load: func(*NIC) {},
		GetETS: func(n *NIC) (dcb.ETS, int) {
			switch {
			case n.cached.ets:
				return n.cache.ETS, 0
			case n.hw.FirmwareLLDP:
				return n.hw.ETS, 0
			}
			return dcb.ETS{Cap: 8}, 0
		},
		SetETS: func(n *NIC, e dcb.ETS) int {
			if !ready(n) {
				return einval
			}
			if status := bnxtETS(e); status != 0 {
				return status
			}
			e.Cap = 8
			n.hw.ETS, n.cache.ETS, n.cached.ets = e, e, true
			return 0
		},
		GetPFC: func(n *NIC) (dcb.PFC, int) {
			p := dcb.PFC{Cap: 8}
			switch {
			case n.cached.pfc:
				p = n.cache.PFC
			case n.hw.FirmwareLLDP:
				p = n.hw.PFC
			}
			p.Requests, p.Indications = n.hw.PFC.Requests, n.hw.PFC.Indications
			return p, 0
		},
		SetPFC: func(n *NIC, p dcb.PFC) int {
			if !ready(n) || n.hw.NoPause {
				return einval
			}
			n.hw.PFC.Enabled = p.Enabled
			p.Cap = 8
			n.cache.PFC, n.cached.pfc = p, true
			return 0
		},
		SetApp: func(n *NIC, a dcb.App) int {
			if !ready(n) {
				return einval
			}
			if a.Selector == dcb.ByDSCP && (n.hw.NoDSCP || a.Protocol > 63) {
				return notSupported
			}
			status := n.apps.add(a)
			if status == 0 && a.Selector == dcb.ByDSCP {
				n.hw.TrustDSCP, n.hw.DSCP[a.Protocol] = true, a.Priority
			}
			return status
		},
		DelApp: func(n *NIC, a dcb.App) int {
			if !ready(n) {
				return einval
			}
			status := n.apps.del(a)
			if status == 0 && a.Selector == dcb.ByDSCP && a.Protocol < 64 {
				n.hw.DSCP[a.Protocol] = 0
				n.hw.TrustDSCP = slices.ContainsFunc(n.apps, func(b dcb.App) bool { return b.Selector == dcb.ByDSCP })
			}
			return status
		},
		GetDCBX: mode,
		SetDCBX: func(n *NIC, m dcb.DCBX) uint8 {
			switch {
			case m == mode(n):
				return 0
			case m&(dcb.LLDManaged|dcb.CEE) != 0 || m&dcb.IEEE == 0 || m&dcb.Host != 0 && n.hw.FirmwareLLDP:
				return 1
			}
			n.hw.DCBX = m
			return 0
		},
	}
}

// bnxtETS judges all traffic classes but the highest in use.
func bnxtETS(e dcb.ETS) int {
	tc := highest(e)
	if tc > 7 {
		return einval
	}
	sum, starving := 0, false
	for i := range tc {
		switch e.TSA[i] {
		case dcb.Strict:
		case dcb.Shared:
			sum += int(e.TxBW[i])
			starving = starving || e.TxBW[i] == 0
		default:
			return notSupported
		}
	}
	if sum > 100 || sum == 100 && starving {
		return einval
	}
	return 0
}

// HNS3 is the NIC of a Kunpeng. PFC acts on traffic classes: all priorities of one are paused, and the get does not show
// it. Changes stop the traffic for a moment. A new priority for a DSCP replaces the old one by itself; to delete the pair
// that was replaced is EINVAL (other drivers: ENOENT).
func HNS3() Driver {
	const unmapped = 0xff
	ready := func(n *NIC) int {
		switch {
		case n.busy:
			return ebusy
		case n.hw.DCBX&dcb.IEEE == 0:
			return einval
		}
		return 0
	}
	forget := func(n *NIC) {
		n.hw.TrustDSCP = false
		for i := range n.hw.DSCP {
			n.hw.DSCP[i] = unmapped
		}
	}
	return Driver{
		Name: "hns3", PerTC: true,
		PowerOn: func(n *NIC) {
			n.hw = Hardware{
				ETS:  dcb.ETS{Cap: 8, TxBW: [8]uint8{100}, TSA: [8]dcb.TSA{dcb.Shared}},
				PFC:  dcb.PFC{Cap: 8},
				DCBX: dcb.Host | dcb.IEEE,
			}
			forget(n)
		},
		Load: forget,
		GetETS: func(n *NIC) (dcb.ETS, int) {
			if n.busy {
				return dcb.ETS{}, ebusy
			}
			return n.hw.ETS, 0
		},
		SetETS: func(n *NIC, e dcb.ETS) int {
			if status := ready(n); status != 0 {
				return status
			}
			if highest(e) > 7 {
				return einval
			}
			used := highest(e) + 1
			for i, t := range e.TSA {
				switch {
				case t != dcb.Strict && t != dcb.Shared:
					return einval
				case t == dcb.Shared && (i >= used || e.TxBW[i] == 0):
					return einval
				}
			}
			if sum, classes := shares(e); classes > 0 && sum != 100 {
				return einval
			}
			e.Cap = 8
			if n.hw.ETS != e {
				n.hw.ETS = e
				n.gaps++
			}
			return 0
		},
		GetPFC: func(n *NIC) (dcb.PFC, int) {
			if n.busy {
				return dcb.PFC{}, ebusy
			}
			return n.hw.PFC, 0
		},
		SetPFC: func(n *NIC, p dcb.PFC) int {
			if status := ready(n); status != 0 {
				return status
			}
			if p.Enabled != n.hw.PFC.Enabled {
				n.hw.PFC.Enabled = p.Enabled
				n.gaps++
			}
			return 0
		},
		SetApp: func(n *NIC, a dcb.App) int {
			switch {
			case n.busy:
				return ebusy
			case a.Selector != dcb.ByDSCP || a.Protocol > 63 || a.Priority > 7:
				return einval
			case a.Priority == n.hw.DSCP[a.Protocol]:
				return 0
			}
			if status := n.apps.add(a); status != 0 {
				return status
			}
			old := n.hw.DSCP[a.Protocol]
			n.hw.DSCP[a.Protocol], n.hw.TrustDSCP = a.Priority, true
			if old == unmapped {
				return 0
			}
			return n.apps.del(dcb.DSCP(uint8(a.Protocol), old))
		},
		DelApp: func(n *NIC, a dcb.App) int {
			switch {
			case n.busy:
				return ebusy
			case a.Selector != dcb.ByDSCP || a.Protocol > 63 || a.Priority > 7 || a.Priority != n.hw.DSCP[a.Protocol]:
				return einval
			}
			if status := n.apps.del(a); status != 0 {
				return status
			}
			n.hw.DSCP[a.Protocol] = unmapped
			n.hw.TrustDSCP = len(n.apps) > 0
			return 0
		},
		GetDCBX: getDCBX,
		SetDCBX: func(n *NIC, mode dcb.DCBX) uint8 {
			if mode&dcb.Host == 0 || mode&(dcb.CEE|dcb.LLDManaged) != 0 {
				return 1
			}
			n.hw.DCBX = mode
			return 0
		},
	}
}
