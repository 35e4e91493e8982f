// Package profiles holds what is known about hardware: ASICs, the platforms that are built on them, and NICs. Every
// fact carries its source and how far it is to be trusted; what no source says is absent, never guessed. The data is
// YAML, embedded here and extended by `kind: Profile` documents of the user: adding hardware is adding data, not code.
//
// One table per kind (fields.go) says which facts there are. The strict reader of the embedded files, the schema of user
// documents, the typed values below and the `profiles` verb all follow from it.
package profiles

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fabricctl/fabricctl/model/units"
)

// Platform is what rendering and lint need to know about one switch model or host kind.
type Platform struct {
	Name        string            // "sonic/sn5600": the part before the slash is the dialect
	Description string            // for people
	ASIC        string            // name of its ASIC, "spectrum-4"; "" = not known
	Cell        units.Bytes       // buffer cell, its own or the ASIC's; 0 = not known
	MaxMTU      units.Bytes       // largest configurable L2 MTU; 0 = not known
	Ports       int               // front ports; 0 = not known
	Speed       units.BitRate     // fastest speed of a front port; 0 = not known
	Lanes       int               // lanes of a front port; 0 = not known
	Breakouts   []int             // into how many a front port may be split, ascending; empty = not known
	Iface       string            // pattern of interface names: "Ethernet%d" or "Ethernet%d/%d", see Split; "" = ports must be bound in the inventory
	IfaceFirst  int               // number of the first port
	IfaceStep   int               // distance between ports: 8 where ports are named after the first of their 8 lanes
	Pool        Pools             // its pools as a switch between switches (SONiC's t1), with the SKU's own tables
	LeafPool    Pools             // its pools as a switch that hosts are connected to (t0), where they differ; see Pools
	Headroom    []HeadroomRow     // published headroom of a lossless priority group by speed and cable; empty = no table is known
	Chip        ASIC              // its ASIC's facts, filled by the Catalog; zero where the ASIC is not known
	Words       map[string]string // the operating system's own words, by key: "hwsku" (SONiC), "tx_queue" (EOS)
	Verified    bool              // tried on a real device; until then writing needs leave
	Source      string            // where the facts are from that name no other source
	Confidence  string            // "high", "medium", "low"
}

// OS is the dialect of the platform, "sonic".
func (p Platform) OS() string {
	os, _, _ := strings.Cut(p.Name, "/")
	return os
}

// Port is the device's name of the i-th port (from 0) that is not split, or "" when the platform has no pattern.
func (p Platform) Port(i int) string {
	if p.Iface == "" {
		return ""
	}
	return p.name(i, 0)
}

// Split is the device's name of one part (from 0) of the i-th port when it is split into so many parts; ok is false when
// the platform is not known to split a port so. Parts are named after their first lane: a pattern with one number counts
// lanes across the ports (Ethernet0, Ethernet4), one with two has the port's number and then the lane's, from 1
// (Ethernet1/1, Ethernet1/5).
func (p Platform) Split(i, parts, part int) (name string, ok bool) {
	if parts == 1 {
		return p.Port(i), p.Iface != ""
	}
	switch {
	case p.Iface == "" || part < 0 || part >= parts || !slices.Contains(p.Breakouts, parts) || p.Lanes < parts || p.Lanes%parts != 0:
		return "", false
	case strings.Count(p.Iface, "%d") < 2 && p.IfaceStep < p.Lanes:
		return "", false // the numbers between two ports are too few
	}
	return p.name(i, part*p.Lanes/parts), true
}

func (p Platform) name(port, lane int) string {
	n := p.IfaceFirst + port*p.IfaceStep
	if strings.Count(p.Iface, "%d") == 2 {
		return fmt.Sprintf(p.Iface, n, lane+1)
	}
	return fmt.Sprintf(p.Iface, n+lane)
}

// ASIC is a switch chip.
type ASIC struct {
	Name            string         // "spectrum-4"
	Description     string         // for people
	Vendor          string         // who makes it
	Cell            units.Bytes    // buffer cell; 0 = not known
	Buffer          units.Bytes    // packet buffer in all; 0 = not known
	Bandwidth       units.BitRate  // switching capacity in one direction; 0 = not known
	Lanes           int            // serdes lanes; 0 = not known
	LaneSpeed       units.BitRate  // of one lane; 0 = not known
	MaxLossless     int            // PFC priorities at once on a port; 0 = not known
	PipelineLatency units.Bytes    // what a port takes in between the pause and its effect inside the chip; 0 = not known
	HeadroomFormula string         // by which its makers compute headroom: "sonic_mlnx"; "" = none is public
	MACPHYDelay     units.Ratio    // sonic_mlnx: bytes for the port's own MAC and PHY, exactly (0.8KiB is 4096/5); zero = not known
	PeerResponse    units.Ratio    // sonic_mlnx: bytes for the peer's response at speeds without a standard one, exactly; zero = not known
	TileDelay       units.Duration // sonic_mlnx: how long traffic between the chip's tiles takes, counted at port speed; 0 = none
	ExtraXoff       units.Bytes    // sonic_mlnx: what the chip needs above the formula; 0 = nothing
	PortCells       int            // shared headroom: the most that one port may take of it, in buffer cells; 0 = not known
	PortOwnCells    int            // shared headroom: what each port keeps for itself beside that, in buffer cells, doubled with 8 lanes; 0 = not known
	ECNUnit         string         // what the chip counts ECN thresholds in: "bytes", "cells", "percent"; "" = not known
	ECNStep         units.Bytes    // ECN thresholds are multiples of it; 0 = not known
	ECNApart        bool           // the chip refuses kmin and kmax that are equal
	Traps           []string       // what goes wrong with it, a sentence each
	Source          string
	Confidence      string
}

// NIC is a network adapter, whether it can do RDMA over this fabric or not.
type NIC struct {
	Name                string          // "connectx-7"
	Description         string          // for people
	Vendor              string          // who makes it
	PCI                 []string        // vendor:device of its physical functions, four hex digits each
	Driver              string          // Linux network driver, "mlx5_core"; "" = not known
	RDMADriver          string          // Linux RDMA driver, "mlx5_ib"; "" = not known
	Ports               int             // most ports of one adapter; 0 = not known
	Speeds              []units.BitRate // speeds of a port, ascending; empty = not known
	RoCEv2              bool            // whether it speaks RoCE v2
	IWARP               bool            // whether it speaks iWARP
	MaxRoCEMTU          units.Bytes     // largest RDMA payload of a packet; 0 = not known
	MaxMTU              units.Bytes     // largest netdev MTU; 0 = not known
	DefaultRoCEDSCP     Opt             // DSCP of RoCE traffic for which nobody chose one
	DefaultRoCEPriority Opt             // priority of RoCE traffic for which nobody chose one
	DefaultCNPDSCP      Opt             // DSCP of its CNPs unless told otherwise
	DefaultCNPPriority  Opt             // priority of its CNPs unless told otherwise
	MaxLossless         int             // PFC priorities at once; 0 = not known
	TrafficClasses      int             // traffic classes; 0 = not known
	MaxPriority         Opt             // highest priority that a code point can be mapped to
	CongestionControl   []string        // algorithms, the default first
	CCFamily            string          // whose set of congestion control parameters it has: "mlx5", "bnxt", "irdma", "hns"; "" = not known
	Knobs               []string        // where its settings are: dcbnl, debugfs, configfs, devlink, …
	Traps               []string        // what goes wrong with it, a sentence each
	Verified            bool            // tried on a real adapter
	Source              string
	Confidence          string
}

// Fastest is the fastest speed of a port, 0 when not known.
func (n NIC) Fastest() units.BitRate {
	if len(n.Speeds) == 0 {
		return 0
	}
	return slices.Max(n.Speeds)
}

// Opt is a small number for which 0 is a value too.
type Opt struct {
	V  uint8
	OK bool // V is known
}
