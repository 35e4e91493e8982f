package derive

import (
	"fmt"
	"math/big"

	"github.com/fabricctl/fabricctl/model/units"
)

// SonicForm is in which form a headroom of SONiC's Mellanox formula is worked out. The published static tables are of an
// older form than the script that devices run today.
type SonicForm struct {
	CableDivisor int64       // of the bits on the cable, into bytes and then KiB: 8*1000 or 8*1024
	WholeCells   bool        // the cells that a small packet takes are rounded up
	ByBytes      bool        // the share of small packets is counted in bytes, not in packets
	LaneDiscount units.Bytes // taken off the doubled pipeline latency of a port with 8 lanes
	WholeSize    bool        // the size is rounded up to KiB
}

// SonicScript is the form of sonic-swss cfgmgr/buffer_headroom_mellanox.lua at commit e6b0c5b5, which devices with the
// dynamic buffer model run.
func SonicScript() SonicForm {
	return SonicForm{CableDivisor: 8000, WholeCells: true, ByBytes: true, WholeSize: true}
}

// SonicDesign is the form of the design document (SONiC, dynamically-headroom-calculation.md) and of earlier scripts.
func SonicDesign() SonicForm { return SonicForm{CableDivisor: 8 * 1024, LaneDiscount: 1024} }

// SonicStatic is the form that the static table of MSN2700 was made with: SonicDesign, dividing by 1000.
func SonicStatic() SonicForm { return SonicForm{CableDivisor: 8000, LaneDiscount: 1024} }

// Sonic is what SONiC's formula for Mellanox switches takes.
type Sonic struct {
	Form  SonicForm
	Speed units.BitRate
	Cable units.Length
	MTU   units.Bytes // of the port
	Lanes int         // of the port; 8 means two pipelines

	LosslessMTU  units.Bytes    // of the lossless traffic
	SmallPercent int            // how much of it are 64 byte packets, 0-100; SONiC takes 100
	Gearbox      units.Duration // delay of a gearbox, one way; 0 = there is none
	Shared       bool           // the headroom is in a pool that ports share

	Cell         units.Bytes
	Pipeline     units.Bytes    // latency of the pipeline: 19 KiB
	MacPhy       units.Ratio    // delay of MAC and PHY in bytes, exactly: 0.8 KiB is 4096/5
	PeerResponse units.Ratio    // response of the neighbour in bytes, for speeds without a time in quanta: 3.8 KiB is 19456/5
	Quanta       int64          // response of the neighbour in quanta; 0 = SonicQuanta, and PeerResponse where that has none
	UseResponse  bool           // take PeerResponse whatever the speed is
	Tile         units.Duration // what crossing between tiles of the chip takes: 120 ns on Spectrum-4 and -5
	Extra        units.Bytes    // what the chip needs besides: 18 KiB on Spectrum-6
}

// SonicQuanta is the response time that SONiC's script takes at a speed, in quanta; false where it has none.
func SonicQuanta(speed units.BitRate) (int64, bool) {
	switch speed {
	case 100 * units.Mbps:
		return 1, true
	case units.Gbps:
		return 2, true
	case 800 * units.Gbps:
		return 905, true
	}
	return delayAt(responses(), speed)
}

const (
	kib         = 1024
	smallPacket = 64        // bytes
	fibre       = 198000000 // metres per second, SONiC's speed of light in fibre
	patternStep = 2 * kib   // added for traffic with large packets too
)

// SonicMlnx is SONiC's formula for Mellanox switches (sonic-swss cfgmgr/buffer_headroom_mellanox.lua; SONiC document
// dynamically-headroom-calculation.md): xoff = L + P C, rounded up to KiB, where C is how much more than their size
// packets take in cells, L the lossless MTU, and P the port's MTU with all that is under way. Where small packets alone would need
// over 2 KiB more, 2 KiB are added; both sides of that comparison are rounded, so a slightly longer cable may need 1 KiB less.
func SonicMlnx(in Sonic) Headroom {
	s := in.propagation(in.occupancy(in.small()))
	xoff := s.sum(kib)
	total := xoff.Total
	add := func(name, formula string, v units.Bytes) {
		if v > 0 {
			xoff.Terms = append(xoff.Terms, Term{name, formula, Amount(v)})
			total = Add(total, v)
		}
	}
	add("chip", "more, on this ASIC", in.Extra)
	if worst := in.propagation(in.occupancy(100)).sum(kib).Total; in.Form.ByBytes && !in.Shared && in.small() != 100 && worst > Add(total, patternStep) {
		add("traffic pattern", "2KiB, as small packets alone would need more", patternStep)
	}
	h := Headroom{
		Model: ModelSonicMlnx, Source: "SONiC dynamically-headroom-calculation.md; sonic-swss buffer_headroom_mellanox.lua",
		Terms: xoff.Terms, Xoff: total,
	}
	h.Xon, h.XonFormula = in.xon()
	h.Size, h.SizeFormula = in.size(h.Xoff, h.Xon)
	return h
}

func (in Sonic) small() int { return max(min(in.SmallPercent, 100), 0) }

// occupancy is how many bytes of cells a byte of traffic takes when so many percent of it are small packets.
func (in Sonic) occupancy(small int) *big.Rat {
	cell := max(int64(in.Cell), 1)
	worst := frac(2*cell, 1+cell)
	if cell > 128 {
		worst = frac(cell, smallPacket)
	}
	if in.Form.WholeCells {
		worst = whole(int64(up(worst, 1)))
	}
	share := whole(int64(small))
	if in.Form.ByBytes {
		mean := plus(frac(int64(small)*smallPacket, 100), times(positive(in.LosslessMTU), frac(int64(100-small), 100)))
		if mean.Sign() == 0 {
			mean = whole(smallPacket)
		}
		share = over(whole(100*smallPacket), mean)
	}
	return over(plus(whole(100), times(share, sub(worst, whole(1)))), whole(100))
}

// propagation is everything that takes part in xoff before it is rounded.
func (in Sonic) propagation(c *big.Rat) *summing {
	s := &summing{}
	s.add("lossless frame", in.LosslessMTU.String(), positive(in.LosslessMTU))
	factor := " * " + c.FloatString(4) + " (cells)"
	add := func(name, formula string, v *big.Rat) { s.add(name, formula+factor, times(v, c)) }
	add("port MTU", in.MTU.String(), positive(in.MTU))
	div := max(in.Form.CableDivisor, 1)
	add("cable", fmt.Sprintf("2 * %s * %s / (%d m/s) / 8 (KiB: %d)", max(in.Cable, 0), max(in.Speed, 0), fibre, div/8),
		times(positive(in.Cable), positive(in.Speed), frac(2, fibre*div)))
	if in.Gearbox > 0 {
		add("gearbox", fmt.Sprintf("2 * %s * %s / 8 (KiB: %d)", in.Gearbox, max(in.Speed, 0), div/8),
			times(whole(int64(in.Gearbox)), positive(in.Speed), frac(2, 1e6*div)))
	}
	add("MAC and PHY", amount(ratio(in.MacPhy)).String(), ratio(in.MacPhy))
	quanta, known := SonicQuanta(in.Speed)
	if in.Quanta > 0 {
		quanta, known = in.Quanta, true
	}
	if known && !in.UseResponse {
		add("response", fmt.Sprintf("%d quanta * %d", quanta, quantum), times(positive(quanta), whole(quantum)))
	} else {
		add("response", amount(ratio(in.PeerResponse)).String(), ratio(in.PeerResponse))
	}
	if in.Tile > 0 {
		add("tiles", fmt.Sprintf("%s * %s / 8", in.Tile, max(in.Speed, 0)), bdp(in.Speed, in.Tile))
	}
	return s
}

func (in Sonic) xon() (units.Bytes, string) {
	v, formula := positive(in.Pipeline), "pipeline latency "+in.Pipeline.String()
	if in.Lanes == 8 {
		v = sub(times(whole(2), v), positive(in.Form.LaneDiscount))
		formula += " of two pipelines (8 lanes)"
	}
	return up(v, kib), formula + ", up to KiB"
}

func (in Sonic) size(xoff, xon units.Bytes) (units.Bytes, string) {
	if in.Shared {
		return xon, "xon: the headroom is shared"
	}
	size, formula := Add(xoff, xon), "xoff + xon"
	if in.Lanes == 8 {
		size, formula = Add(size, in.MTU), formula+" + the port's MTU (8 lanes)"
	}
	if in.Form.WholeSize {
		size = RoundUp(size, kib)
	}
	return size, formula
}
