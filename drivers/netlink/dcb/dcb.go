// Package dcb speaks the Linux kernel's Data Center Bridging netlink interface (dcbnl; RTM_GETDCB and RTM_SETDCB): what
// a NIC does with priorities, PFC, bandwidth, buffers and the DSCP of a packet.
//
// Open gives a Client of the kernel; New gives one of any Transport, such as the fake kernel of dcbfake. Get reads the
// whole of an interface. Each set sends one object, and each application entry is a message of its own, because the
// kernel works through a message in a fixed order, stops at the first status that is not zero, and takes nothing back.
//
// Success is the driver's word and no more. A driver without an operation lets the kernel answer 0, others keep only a
// cached copy, or map one priority onto another: always read back. Nothing here has been seen on a real NIC; the
// messages are those that a kernel with a test device took and gave.
//
// Everything but Open and Watch works on every system, for tests and for tools that read recordings made on a machine of
// the same byte order.
package dcb

import (
	"fmt"
	"strings"
)

// ETS is struct ieee_ets (IEEE 802.1Qaz): which traffic class a priority goes to, and how classes share the link.
// Arrays are by traffic class, except PrioTC and RecoPrioTC, which are by priority.
type ETS struct {
	Willing    uint8    // 1: the peer's recommendation wins, where a DCBX agent runs
	Cap        uint8    // traffic classes that the NIC has
	CBS        uint8    // 1: credit based shaper supported
	TxBW       [8]uint8 // percent, for ETS classes
	RxBW       [8]uint8 // percent
	TSA        [8]TSA
	PrioTC     [8]uint8
	RecoBW     [8]uint8 // what is recommended to the peer
	RecoTSA    [8]TSA
	RecoPrioTC [8]uint8
}

// TSA is the transmission selection algorithm of a traffic class.
type TSA uint8

// The algorithms of IEEE 802.1Qaz.
const (
	Strict    TSA = 0
	CBShaper  TSA = 1
	Shared    TSA = 2 // ETS: by bandwidth
	VendorTSA TSA = 255
)

func (t TSA) String() string {
	switch t {
	case Strict:
		return "strict"
	case CBShaper:
		return "cbs"
	case Shared:
		return "ets"
	case VendorTSA:
		return "vendor"
	}
	return fmt.Sprintf("tsa %d", uint8(t))
}

// PFC is struct ieee_pfc (IEEE 802.1Qbb). Requests are the pause frames sent, Indications those received, by priority
// and since the driver began to count.
type PFC struct {
	Cap         uint8  // traffic classes that may have PFC at the same time
	Enabled     uint8  // bit n: priority n
	MBC         uint8  // 1: MACsec bypass
	Delay       uint16 // bit times that the link takes; mlx5 reads 1 to 999 as metres of cable
	Requests    [8]uint64
	Indications [8]uint64
}

// MaxRate is struct ieee_maxrate: the limit of each traffic class, in kbit/s (1000 bit/s); 0 is none.
type MaxRate [8]uint64

// Buffer is struct dcbnl_buffer: the receive buffers of a port, in bytes.
type Buffer struct {
	PrioBuffer [8]uint8 // priority to buffer
	Size       [8]uint32
	Total      uint32
}

// App is struct dcb_app: packets that Selector and Protocol describe belong to Priority. In the rewrite table it is
// the way back: packets of that priority leave with Protocol.
type App struct {
	Selector Selector
	Priority uint8  // 0-7
	Protocol uint16 // by Selector: DSCP, port, EtherType (0: the default priority), or PCP + 8*DEI
}

// Selector says what the Protocol of an App is.
type Selector uint8

// The selectors of the kernel.
const (
	ByEthertype Selector = 1
	ByStream    Selector = 2 // TCP or SCTP port
	ByDatagram  Selector = 3 // UDP or DCCP port
	ByPort      Selector = 4 // port of any of these
	ByDSCP      Selector = 5
	ByPCP       Selector = 255
)

func (s Selector) String() string {
	switch s {
	case ByEthertype:
		return "ethertype"
	case ByStream:
		return "stream-port"
	case ByDatagram:
		return "dgram-port"
	case ByPort:
		return "port"
	case ByDSCP:
		return "dscp"
	case ByPCP:
		return "pcp"
	}
	return fmt.Sprintf("selector %d", uint8(s))
}

// DSCP is the entry that gives a DSCP (0-63) a priority.
func DSCP(dscp, priority uint8) App { return App{ByDSCP, priority, uint16(dscp)} }

func (a App) String() string {
	switch {
	case a.Selector == ByEthertype && a.Protocol == 0:
		return fmt.Sprintf("default priority %d", a.Priority)
	case a.Selector == ByEthertype:
		return fmt.Sprintf("%s %#04x to priority %d", a.Selector, a.Protocol, a.Priority)
	}
	return fmt.Sprintf("%s %d to priority %d", a.Selector, a.Protocol, a.Priority)
}

// DCBX says who negotiates with the peer and in which version.
type DCBX uint8

// The bits of DCBX. Without Host the firmware, or whoever LLDManaged means, may change the settings at any time.
const (
	Host       DCBX = 0x01
	LLDManaged DCBX = 0x02
	CEE        DCBX = 0x04
	IEEE       DCBX = 0x08
	Static     DCBX = 0x10

	dcbxBits = Host | LLDManaged | CEE | IEEE | Static
)

func (d DCBX) String() string {
	var words []string
	for i, w := range []string{"host", "lld-managed", "cee", "ieee", "static"} {
		if d&(1<<i) != 0 {
			words = append(words, w)
		}
	}
	if rest := d &^ dcbxBits; rest != 0 {
		words = append(words, fmt.Sprintf("%#02x", uint8(rest)))
	}
	if words == nil {
		return "none"
	}
	return strings.Join(words, " ")
}

// State is what one reply or notification says of an interface. What is absent is nil, and not zero: the driver has no
// such operation, or it refused. A table that is there and empty is not nil. What this package does not know (QCN, and
// what later kernels add) is left out.
type State struct {
	Ifname  string
	ETS     *ETS
	PFC     *PFC
	MaxRate *MaxRate
	Buffer  *Buffer
	Apps    []App      // in the kernel's order, the newest first
	Rewr    []App      // kernel 6.4 and later
	Trust   []Selector // in the order in which they are tried; switches mostly, NICs have no such operation
	DCBX    *DCBX

	// What the peer said, where the driver or its firmware keeps that.
	PeerETS  *ETS
	PeerPFC  *PFC
	PeerApps []App
}

// Absent names the parts that the interface's own side of the state lacks, in a fixed order.
func (s *State) Absent() []string {
	var out []string
	for _, p := range []struct {
		name   string
		absent bool
	}{
		{"ets", s.ETS == nil},
		{"pfc", s.PFC == nil},
		{"maxrate", s.MaxRate == nil},
		{"buffer", s.Buffer == nil},
		{"app", s.Apps == nil},
		{"rewrite", s.Rewr == nil},
		{"trust", s.Trust == nil},
		{"dcbx", s.DCBX == nil},
	} {
		if p.absent {
			out = append(out, p.name)
		}
	}
	return out
}

// Numbers of include/uapi/linux/rtnetlink.h and dcbnl.h. They are written here because old headers lack some.
const (
	typeGet uint16 = 78 // RTM_GETDCB
	typeSet uint16 = 79 // RTM_SETDCB

	groupLink = 1
	groupDCB  = 23

	cmdIEEESet = 20
	cmdIEEEGet = 21
	cmdSDCBX   = 23
	cmdIEEEDel = 27

	attrIfname = 1
	attrIEEE   = 13
	attrDCBX   = 14

	ieeeETS      = 1
	ieeePFC      = 2
	ieeeApps     = 3
	ieeePeerETS  = 4
	ieeePeerPFC  = 5
	ieeePeerApps = 6
	ieeeMaxRate  = 7
	ieeeBuffer   = 10
	ieeeTrust    = 11
	ieeeRewr     = 12

	appIEEE = 1 // DCB_ATTR_IEEE_APP, selectors 1 to 5
	appDCB  = 2 // DCB_ATTR_DCB_APP, selector 255

	lenMsg     = 4 // struct dcbmsg
	lenETS     = 59
	lenPFC     = 136
	lenMaxRate = 64
	lenBuffer  = 44
	lenApp     = 4
	lenName    = 16 // IFNAMSIZ, the NUL counted
)
