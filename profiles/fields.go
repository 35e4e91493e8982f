package profiles

import (
	"slices"
	"sync"

	"github.com/fabricctl/fabricctl/model/units"
)

// Fields are the facts that an entry of a kind may state, in the order in which they are shown.
func Fields(k Kind) []Field { return slices.Clone(fieldsOf(k)) }

// The tables of fields are made once: every entry of the catalog is read by them.
var (
	platformTable = sync.OnceValues(func() ([]spec[Platform], []Field) { return tabled(platformSpecs()) })
	asicTable     = sync.OnceValues(func() ([]spec[ASIC], []Field) { return tabled(asicSpecs()) })
	nicTable      = sync.OnceValues(func() ([]spec[NIC], []Field) { return tabled(nicSpecs()) })

	personalityTable = sync.OnceValues(func() ([]spec[Personality], []Field) { return tabled(personalitySpecs()) })
	compatTable      = sync.OnceValues(func() ([]spec[CompatRow], []Field) { return tabled(rowSpecs()) })
)

func tabled[T any](specs []spec[T]) ([]spec[T], []Field) { return specs, plain(specs) }

func fieldsOf(k Kind) (fs []Field) {
	switch k {
	case KindPlatform:
		_, fs = platformTable()
	case KindASIC:
		_, fs = asicTable()
	case KindNIC:
		_, fs = nicTable()
	case KindPersonality:
		_, fs = personalityTable()
	case KindCompat:
		_, fs = compatTable()
	}
	return fs
}

func plain[T any](specs []spec[T]) []Field {
	fs := make([]Field, len(specs))
	for i := range specs {
		fs[i] = specs[i].Field
	}
	return fs
}

func confidences() []string { return []string{"high", "medium", "low"} }

// osWord is a word that one operating system has for something of the platform.
func osWord(os, key, doc string, words ...string) spec[Platform] {
	f := Field{Key: key, Noun: "word", Doc: doc, Shape: Name, OS: os}
	if len(words) > 0 {
		f.Shape, f.Words = Word, words
	}
	return spec[Platform]{f, func(p *Platform, v []string) {
		if p.Words == nil {
			p.Words = map[string]string{}
		}
		p.Words[key] = v[0]
	}}
}

func platformSpecs() []spec[Platform] {
	return []spec[Platform]{
		text("description", "for people", func(p *Platform) *string { return &p.Description }),
		name("asic", "ASIC", "ASIC, such as spectrum-4", func(p *Platform) *string { return &p.ASIC }),
		size("cell", "buffer cell, where it is not the ASIC's", func(p *Platform) *units.Bytes { return &p.Cell }),
		size("max_mtu", "largest L2 MTU", func(p *Platform) *units.Bytes { return &p.MaxMTU }),
		number("ports", "number of front ports", 1, 4096, func(p *Platform) *int { return &p.Ports }),
		rate("speed", "fastest speed of a front port", func(p *Platform) *units.BitRate { return &p.Speed }),
		number("lanes", "lanes of a front port", 1, 16, func(p *Platform) *int { return &p.Lanes }),
		numbers("breakouts", "number", "into how many a front port may be split", 2, 16, func(p *Platform) *[]int { return &p.Breakouts }),
		name("iface", "pattern", "pattern of interface names: Ethernet%d, or Ethernet%d/%d with the lane second", func(p *Platform) *string { return &p.Iface }),
		number("iface_first", "number of the first port", 0, 65535, func(p *Platform) *int { return &p.IfaceFirst }),
		number("iface_step", "distance between ports; default 1", 1, 64, func(p *Platform) *int { return &p.IfaceStep }),
		size("lossless_pool", "shared buffer of lossless traffic at the ingress", func(p *Platform) *units.Bytes { return &p.Pool.Lossless }),
		size("headroom_pool", "shared headroom: what may still arrive on all ports after pauses", func(p *Platform) *units.Bytes { return &p.Pool.Headroom }),
		size("egress_pool", "shared buffer of lossless queues at the egress", func(p *Platform) *units.Bytes { return &p.Pool.Egress }),
		ratio("egress_alpha", "alpha of a lossless queue's dynamic threshold at the egress", func(p *Platform) *units.Ratio { return &p.Pool.EgressAlpha }),
		size("egress_limit", "most that a lossless queue may hold at the egress, where that is a fixed size", func(p *Platform) *units.Bytes { return &p.Pool.EgressLimit }),
		size("leaf_lossless_pool", "lossless_pool of a switch that hosts are connected to, where it differs; the other leaf_ pools go with it", func(p *Platform) *units.Bytes { return &p.LeafPool.Lossless }),
		size("leaf_headroom_pool", "headroom_pool of such a switch", func(p *Platform) *units.Bytes { return &p.LeafPool.Headroom }),
		size("leaf_egress_pool", "egress_pool of such a switch", func(p *Platform) *units.Bytes { return &p.LeafPool.Egress }),
		ratio("leaf_egress_alpha", "egress_alpha of such a switch", func(p *Platform) *units.Ratio { return &p.LeafPool.EgressAlpha }),
		size("leaf_egress_limit", "egress_limit of such a switch", func(p *Platform) *units.Bytes { return &p.LeafPool.EgressLimit }),
		rows("headroom", "headroom of a lossless priority group by speed and cable", func(p *Platform) *[]HeadroomRow { return &p.Headroom }),
		osWord("sonic", "hwsku", "SONiC: hardware SKU that the facts are of"),
		osWord("eos", "tx_queue", "EOS: word for an egress queue", "uc-tx-queue", "tx-queue"),
		flag("verified", "whether it was tried on a real device", func(p *Platform) *bool { return &p.Verified }),
		text("source", "where the facts are from that name no source of their own", func(p *Platform) *string { return &p.Source }).about(),
		word("confidence", "how far they are to be trusted", confidences(), func(p *Platform) *string { return &p.Confidence }).about(),
	}
}

func asicSpecs() []spec[ASIC] {
	return []spec[ASIC]{
		text("description", "for people", func(a *ASIC) *string { return &a.Description }),
		text("vendor", "who makes it", func(a *ASIC) *string { return &a.Vendor }),
		size("cell", "buffer cell", func(a *ASIC) *units.Bytes { return &a.Cell }),
		size("buffer", "packet buffer in all", func(a *ASIC) *units.Bytes { return &a.Buffer }),
		rate("bandwidth", "switching capacity in one direction", func(a *ASIC) *units.BitRate { return &a.Bandwidth }),
		number("lanes", "serdes lanes", 1, 4096, func(a *ASIC) *int { return &a.Lanes }),
		rate("lane_speed", "speed of one lane", func(a *ASIC) *units.BitRate { return &a.LaneSpeed }),
		number("max_lossless", "PFC priorities at once on a port", 1, 8, func(a *ASIC) *int { return &a.MaxLossless }),
		size("pipeline_latency", "what a port takes in between the pause and its effect inside the chip", func(a *ASIC) *units.Bytes { return &a.PipelineLatency }),
		word("headroom_formula", "by which its makers compute headroom", []string{"sonic_mlnx"}, func(a *ASIC) *string { return &a.HeadroomFormula }),
		exact("mac_phy_delay", "formula: bytes for the port's own MAC and PHY", func(a *ASIC) *units.Ratio { return &a.MACPHYDelay }),
		exact("peer_response", "formula: bytes for the peer's response at speeds that have no standard one", func(a *ASIC) *units.Ratio { return &a.PeerResponse }),
		span("tile_delay", "formula: how long traffic between the chip's tiles takes, counted at port speed", func(a *ASIC) *units.Duration { return &a.TileDelay }),
		size("extra_xoff", "formula: headroom that the chip needs beside it", func(a *ASIC) *units.Bytes { return &a.ExtraXoff }),
		number("port_cells", "shared headroom: the most that one port may take of it, in buffer cells", 1, 1<<24, func(a *ASIC) *int { return &a.PortCells }),
		number("port_own_cells", "shared headroom: what each port keeps for itself beside that, in buffer cells; twice that with 8 lanes", 1, 1<<24, func(a *ASIC) *int { return &a.PortOwnCells }),
		word("ecn_unit", "what the chip counts ECN thresholds in", []string{"bytes", "cells", "percent"}, func(a *ASIC) *string { return &a.ECNUnit }),
		size("ecn_step", "ECN thresholds are multiples of it", func(a *ASIC) *units.Bytes { return &a.ECNStep }),
		flag("ecn_apart", "whether it refuses a kmin that equals kmax", func(a *ASIC) *bool { return &a.ECNApart }),
		names("traps", "sentence", "what goes wrong with it, a sentence each", Text, func(a *ASIC) *[]string { return &a.Traps }),
		text("source", "where the facts are from that name no source of their own", func(a *ASIC) *string { return &a.Source }).about(),
		word("confidence", "how far they are to be trusted", confidences(), func(a *ASIC) *string { return &a.Confidence }).about(),
	}
}

func nicSpecs() []spec[NIC] {
	return []spec[NIC]{
		text("description", "for people", func(n *NIC) *string { return &n.Description }),
		text("vendor", "who makes it", func(n *NIC) *string { return &n.Vendor }),
		names("pci", "PCI id", "vendor:device of its physical functions", PCIID, func(n *NIC) *[]string { return &n.PCI }),
		name("driver", "driver", "Linux network driver", func(n *NIC) *string { return &n.Driver }),
		name("rdma_driver", "driver", "Linux RDMA driver", func(n *NIC) *string { return &n.RDMADriver }),
		number("ports", "most ports of one adapter", 1, 64, func(n *NIC) *int { return &n.Ports }),
		rates("speeds", "speed", "speeds of a port", func(n *NIC) *[]units.BitRate { return &n.Speeds }),
		flag("rocev2", "whether it speaks RoCE v2", func(n *NIC) *bool { return &n.RoCEv2 }).must(),
		flag("iwarp", "whether it speaks iWARP", func(n *NIC) *bool { return &n.IWARP }),
		size("max_roce_mtu", "largest RDMA payload of a packet", func(n *NIC) *units.Bytes { return &n.MaxRoCEMTU }),
		size("max_mtu", "largest netdev MTU", func(n *NIC) *units.Bytes { return &n.MaxMTU }),
		opt("default_roce_dscp", "DSCP of RoCE traffic for which nobody chose one", 63, func(n *NIC) *Opt { return &n.DefaultRoCEDSCP }),
		opt("default_roce_priority", "priority of RoCE traffic for which nobody chose one", 7, func(n *NIC) *Opt { return &n.DefaultRoCEPriority }),
		opt("default_cnp_dscp", "DSCP of its CNPs unless told otherwise", 63, func(n *NIC) *Opt { return &n.DefaultCNPDSCP }),
		opt("default_cnp_priority", "priority of its CNPs unless told otherwise", 7, func(n *NIC) *Opt { return &n.DefaultCNPPriority }),
		number("max_lossless", "PFC priorities at once", 1, 8, func(n *NIC) *int { return &n.MaxLossless }),
		number("traffic_classes", "traffic classes", 1, 16, func(n *NIC) *int { return &n.TrafficClasses }),
		opt("max_priority", "highest priority that a code point can be mapped to", 7, func(n *NIC) *Opt { return &n.MaxPriority }),
		names("congestion_control", "algorithm", "algorithms, the default first", Name, func(n *NIC) *[]string { return &n.CongestionControl }),
		name("cc_family", "family", "whose set of congestion control parameters it has", func(n *NIC) *string { return &n.CCFamily }),
		names("knobs", "place", "where its settings are", Name, func(n *NIC) *[]string { return &n.Knobs }),
		names("traps", "sentence", "what goes wrong with it, a sentence each", Text, func(n *NIC) *[]string { return &n.Traps }),
		flag("verified", "whether it was tried on a real adapter", func(n *NIC) *bool { return &n.Verified }),
		text("source", "where the facts are from that name no source of their own", func(n *NIC) *string { return &n.Source }).about(),
		word("confidence", "how far they are to be trusted", confidences(), func(n *NIC) *string { return &n.Confidence }).about(),
	}
}
