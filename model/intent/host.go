package intent

import (
	"strconv"

	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/profiles"
)

// NCCL is what the host's NCCL file says of every NIC alike; the zero value means that there is no such setting. Names of
// NICs and addresses stand in Device.NCCL.
type NCCL struct {
	On           bool
	TrafficClass uint8 // NCCL_IB_TC: DSCP << 2
	Timeout      uint8 // NCCL_IB_TIMEOUT, 4.096 us * 2^n; 0 = not set
	RetryCount   uint8 // NCCL_IB_RETRY_CNT; 0 = not set
	QPs          uint8 `json:",omitzero"` // NCCL_IB_QPS_PER_CONNECTION; 0 = not set
	CrossNIC     uint8 `json:",omitzero"` // NCCL_CROSS_NIC, and 1 more; 0 = not set
	HCA          bool  `json:",omitzero"` // NCCL_IB_HCA lists the RDMA devices of the fabric's NICs, and no others
	RoCE         uint8 `json:",omitzero"` // NCCL_IB_ROCE_VERSION_NUM, by which NCCL 2.21 and later choose a GID; 0 = not set
	Family       uint8 `json:",omitzero"` // NCCL_IB_ADDR_FAMILY: 4 or 6; 0 = not set
	GID          int16 `json:",omitzero"` // NCCL_IB_GID_INDEX; 0 = not set, else GIDOfHost, or the index and 1 more
}

// GIDOfHost is the index, whichever it is, that the GID of the NIC's own address has on the host: the only way to say it
// before the host was read. NCCL before 2.21 needs one.
const GIDOfHost = -1

// RoCE is how RDMA connections of a NIC are marked where nobody chose; the zero value means that nothing is said.
type RoCE struct {
	On           bool
	Mode         uint8 // RoCE version of connections made by rdma_cm: 1 or 2
	ToS          uint8 // ToS byte of connections made by rdma_cm: DSCP << 2
	TrafficClass int16 // ToS byte that the driver forces on every connection, whatever the application asks; -1 = none
}

// Algorithm is a congestion control algorithm of NICs.
type Algorithm uint8

// The algorithms, as NIC data and models call them. AlgorithmNotSaid is any.
const (
	AlgorithmNotSaid Algorithm = iota
	AlgorithmDCQCN
	AlgorithmDCTCP
	AlgorithmTimely
	AlgorithmLDCP
	AlgorithmHC3
	AlgorithmDIP
	AlgorithmZeroTouch
	numAlgorithms
)

// String is the word used in a model.
func (a Algorithm) String() string {
	return [numAlgorithms]string{"not said", "dcqcn", "dctcp", "timely", "ldcp", "hc3", "dip", "zero-touch"}[a]
}

// ParseAlgorithm finds an algorithm by its name.
func ParseAlgorithm(s string) (Algorithm, bool) {
	for a := AlgorithmDCQCN; a < numAlgorithms; a++ {
		if a.String() == s {
			return a, true
		}
	}
	return AlgorithmNotSaid, false
}

// Congestion is the NIC's congestion control; the zero value means that nothing is said.
type Congestion struct {
	On          bool
	Algorithm   Algorithm              // what the NIC has to run
	Priorities  uint8                  // priorities, as bits, on which it notifies and reacts
	HasCNP      bool                   // the next two are said
	CNPDSCP     uint8                  // code point of the CNPs that the NIC sends
	CNPPriority uint8                  // their priority
	Params      [profiles.NumCC]uint32 // in the order of profiles.CCParams: the number and 1 more; 0 = not said
}

// Param is parameter i of profiles.CCParams; ok is false when nothing is said about it.
func (c *Congestion) Param(i int) (n uint32, ok bool) { return c.Params[i] - 1, c.Params[i] > 0 }

// SetParam says parameter i of profiles.CCParams. The largest number of all is not a value of any.
func (c *Congestion) SetParam(i int, n uint32) { c.Params[i] = n + 1 }

// IRQ is where the interrupts of a NIC are handled.
type IRQ uint8

// Where interrupts are handled. IRQNotSaid leaves them where they are.
const (
	IRQNotSaid IRQ = iota
	IRQLocal       // one core each, of the NIC's NUMA node
	IRQSpread      // one core each, of all nodes
	IRQOther       // neither; a host may be found so
)

// String is the word used in a model, or "other".
func (i IRQ) String() string { return [...]string{"leave", "local", "spread", "other"}[i] }

// FEC is the forward error correction of a link.
type FEC uint8

// Forward error correction, as ethtool calls it. FECNotSaid leaves it as it is.
const (
	FECNotSaid FEC = iota
	FECAuto
	FECOff
	FECRS
	FECBaseR
	FECLLRS
	numFEC
)

// String is the word used in a model.
func (f FEC) String() string {
	return [numFEC]string{"not said", "auto", "off", "rs", "baser", "llrs"}[f]
}

// ParseFEC finds a kind of forward error correction by its name.
func ParseFEC(s string) (FEC, bool) {
	for f := FECAuto; f < numFEC; f++ {
		if f.String() == s {
			return f, true
		}
	}
	return FECNotSaid, false
}

// System is what a host is told about a NIC besides its traffic; a zero field is not said.
type System struct {
	ReadRequest    units.Bytes `json:",omitzero"` // largest PCIe read request
	IRQ            IRQ         `json:",omitzero"`
	RingRX, RingTX uint32      `json:",omitzero"` // descriptors of the kernel's own queues; RDMA has its own
	FEC            FEC         `json:",omitzero"`
	Memlock        bool        `json:",omitzero"` // users may lock memory without limit
}

// HostNCCL is what the NCCL file says that no two hosts need have alike.
type HostNCCL struct {
	Socket string `json:",omitzero"` // NCCL_SOCKET_IFNAME, in the form of NCCL ("=ens1f0"); "" = not set
	Range  string `json:",omitzero"` // NCCL_IB_ADDR_RANGE, the smallest prefix that holds the addresses of the fabric's NICs; "" = not set
}

// hostValues are the values that only hosts have, in the order in which people read them.
func hostValues(p *Policy) []Value {
	var vs []Value
	add := func(f, label, text string) { vs = append(vs, Value{Field(f), label, text, -1}) }
	number := func(f, label string, n int64, said bool) {
		if said {
			add(f, label, strconv.FormatInt(n, 10))
		}
	}
	if r := p.RoCE; r.On {
		add("roce.mode", "roce mode", "v"+strconv.Itoa(int(r.Mode)))
		add("roce.tos", "roce tos", strconv.Itoa(int(r.ToS)))
		forced := none
		if r.TrafficClass >= 0 {
			forced = strconv.Itoa(int(r.TrafficClass))
		}
		add("roce.traffic_class", "forced tos", forced)
	}
	if c := p.CC; c.On {
		if c.Algorithm != AlgorithmNotSaid {
			add("cc.algorithm", "congestion control", c.Algorithm.String())
		}
		add("cc.priorities", "cc applies to", PriorityNames(c.Priorities))
		number("cc.cnp_dscp", "cnp dscp", int64(c.CNPDSCP), c.HasCNP)
		number("cc.cnp_priority", "cnp priority", int64(c.CNPPriority), c.HasCNP)
		for i, param := range profiles.CCParams() {
			if n, ok := c.Param(i); ok {
				add("cc."+param.Name, param.Name, param.Text(n))
			}
		}
	}
	vs = append(vs, systemValues(p.System)...)
	if n := p.NCCL; n.On {
		number("nccl.traffic_class", "nccl traffic class", int64(n.TrafficClass), true)
		number("nccl.timeout", "nccl timeout", int64(n.Timeout), n.Timeout > 0)
		number("nccl.retry_count", "nccl retry count", int64(n.RetryCount), n.RetryCount > 0)
		number("nccl.qps_per_connection", "nccl queue pairs", int64(n.QPs), n.QPs > 0)
		number("nccl.cross_nic", "nccl cross nic", int64(n.CrossNIC)-1, n.CrossNIC > 0)
		if n.HCA {
			add("nccl.hca", "nccl adapters", "those of the fabric")
		}
		if n.RoCE > 0 {
			add("nccl.roce_version", "nccl roce version", "v"+strconv.Itoa(int(n.RoCE)))
		}
		switch n.Family {
		case 4:
			add("nccl.address_family", "nccl addresses", "ipv4")
		case 6:
			add("nccl.address_family", "nccl addresses", "ipv6")
		}
		switch {
		case n.GID == GIDOfHost:
			add("nccl.gid_index", "nccl gid index", "that of the host's address")
		case n.GID > 0:
			add("nccl.gid_index", "nccl gid index", strconv.Itoa(int(n.GID)-1))
		}
	}
	return vs
}

func systemValues(s System) []Value {
	var vs []Value
	add := func(f, label, text string, said bool) {
		if said {
			vs = append(vs, Value{Field("system." + f), label, text, -1})
		}
	}
	add("read_request", "pcie read request", s.ReadRequest.Exact(), s.ReadRequest > 0)
	add("irq", "interrupts", s.IRQ.String(), s.IRQ != IRQNotSaid)
	add("rx_ring", "receive ring", strconv.FormatUint(uint64(s.RingRX), 10), s.RingRX > 0)
	add("tx_ring", "send ring", strconv.FormatUint(uint64(s.RingTX), 10), s.RingTX > 0)
	add("fec", "fec", s.FEC.String(), s.FEC != FECNotSaid)
	add("memlock", "locked memory", "unlimited", s.Memlock)
	return vs
}
