package derive

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"

	"github.com/fabricctl/fabricctl/model/units"
)

// Model is the name of a way to say how much headroom a port needs.
type Model string

// The models. Table is no formula: it is a row that somebody published for a platform.
const (
	ModelPhysicsMin Model = "physics_min"
	ModelStdMax     Model = "std_max"
	ModelSonicMlnx  Model = "sonic_mlnx"
	ModelMLX5NIC    Model = "mlx5_nic"
	ModelCisco10G   Model = "cisco_10g"
	ModelTable      Model = "table"
)

// Headroom is what one lossless priority group of a port needs, and how that was found.
type Headroom struct {
	Model  Model
	Source string      // of the formula: what to cite
	Terms  []Term      // they add up to Xoff
	Xoff   units.Bytes // kept for what still arrives after the pause; SONiC calls it xoff

	// What the models of a platform say besides; 0 and "" where the model does not speak about it.
	Xon         units.Bytes // occupancy at which the neighbour may send again
	XonFormula  string
	Size        units.Bytes // what the group has for itself in all
	SizeFormula string
}

// Link is one direction of a link: what the port that pauses has at its end.
type Link struct {
	Speed     units.BitRate
	Cable     units.Length
	Frame     units.Bytes // largest frame that the port sends, as its MTU is configured
	PeerFrame units.Bytes // largest lossless frame of the neighbour; 0 = as Frame
}

const (
	// overhead is what a frame takes on the wire besides itself: preamble and start delimiter 8, gap 12 (IEEE 802.3).
	overhead = 20
	// pauseFrame is a PFC frame on the wire: the smallest frame, 64, with its overhead (672 bit times).
	pauseFrame = 64 + overhead
	// nsPerMetre is what light needs for a metre of fibre, as the sources of std_max round it.
	nsPerMetre = 5
)

// frames returns both frames that cannot be recalled.
func (l Link) frames() (port, peer units.Bytes) {
	port = max(l.Frame, 0)
	if l.PeerFrame > 0 {
		return port, l.PeerFrame
	}
	return port, port
}

// cable is the bytes under way on both directions of the cable: 2 L v R / 8.
func (l Link) cable() (formula string, v *big.Rat) {
	return fmt.Sprintf("2 * %s * %dns/m * %s / 8", max(l.Cable, 0), nsPerMetre, max(l.Speed, 0)),
		times(positive(l.Cable), positive(l.Speed), frac(2*nsPerMetre, 1000*8*1e9))
}

func (l Link) physics() *summing {
	s := &summing{}
	port, peer := l.frames()
	s.add("frame on the way out", fmt.Sprintf("%s + %d: the pause waits for a frame that has begun", port, overhead),
		plus(whole(int64(port)), whole(overhead)))
	s.add("frame on the way in", fmt.Sprintf("%s + %d: the neighbour ends the frame it has begun", peer, overhead),
		plus(whole(int64(peer)), whole(overhead)))
	s.add("pause frame", fmt.Sprintf("64 + %d", overhead), whole(pauseFrame))
	formula, cable := l.cable()
	s.add("cable", formula, cable)
	return s
}

// PhysicsMin is what arrives whatever the neighbour does: with less, loss under the worst timing is certain. It is the
// structure of IEEE 802.1Qbb annex O without what equipment adds: 2 (F + 20) + 84 + 2 L 5ns/m R / 8.
func PhysicsMin(l Link) Headroom {
	s := l.physics().sum(1)
	return Headroom{
		Model: ModelPhysicsMin, Source: "IEEE 802.1Qbb annex O: frames, pause frame and cable alone",
		Terms: s.Terms, Xoff: s.Total,
	}
}

// Delays are how long the equipment of a link may take at most.
type Delays struct {
	Quanta     int64       // response of the neighbour in pause quanta of 512 bit times, 64 bytes each
	Interface  units.Bytes // own MAC, PCS, FEC and PMA, both directions
	Source     string      // where the two are from
	Unverified string      // why they are no published figures; "" where they are
}

// quantum is a pause quantum in bytes: 512 bit times (IEEE 802.3 31B).
const quantum = 64

// StdMax is what a neighbour that keeps to the standard, and no more, may need: PhysicsMin, its response time and our
// interface's delay (IEEE 802.1Qbb annex O; IEEE 802.3 31B.3.7 for the response).
func StdMax(l Link, d Delays) Headroom {
	s := l.physics()
	s.add("response", fmt.Sprintf("%d quanta * %d", max(d.Quanta, 0), quantum), times(positive(d.Quanta), whole(quantum)))
	s.add("interface", "MAC, PCS, FEC and PMA in both directions", positive(d.Interface))
	sum := s.sum(1)
	source := "IEEE 802.1Qbb annex O"
	if d.Source != "" {
		source += "; " + d.Source
	}
	return Headroom{Model: ModelStdMax, Source: source, Terms: sum.Terms, Xoff: sum.Total}
}

// speedDelay is a published delay at a speed.
type speedDelay struct {
	speed units.BitRate
	value int64
}

// responses is the response time in quanta: IEEE 802.3 31B.3.7, as sonic-swss buffer_headroom_mellanox.lua lists it.
// The 905 quanta that the script has at 800 Gbps are half of the time they are at 400, and no text confirms them: the
// time of 400 Gbps is kept there instead (1810).
func responses() []speedDelay {
	return []speedDelay{
		{10 * units.Gbps, 67},
		{25 * units.Gbps, 80},
		{40 * units.Gbps, 118},
		{50 * units.Gbps, 147},
		{100 * units.Gbps, 394},
		{200 * units.Gbps, 453},
		{400 * units.Gbps, 905},
	}
}

// interfaces is the delay of MAC, PCS, FEC and PMA in bit times: the upper bounds of IEEE 802.3, as quoted by "How to
// Compute Headroom for Lossless Ethernet Links (Part 2)". The one at 400 Gbps is derived: the budget of the response.
func interfaces() []speedDelay {
	return []speedDelay{
		{10 * units.Gbps, 8192}, {25 * units.Gbps, 6144}, {40 * units.Gbps, 24576}, {100 * units.Gbps, 122880}, {400 * units.Gbps, 463360},
	}
}

// StandardDelays is what StdMax takes at a speed. Between two speeds that are published the longer of their times is
// taken, and beyond the fastest its time; Unverified then says so.
func StandardDelays(speed units.BitRate) Delays {
	quanta, exactQuanta := delayAt(responses(), speed)
	bits, exactBits := delayAt(interfaces(), speed)
	d := Delays{
		Quanta: quanta, Interface: up(frac(bits, 8), 1),
		Source: "IEEE 802.3 31B.3.7 (response), upper bounds of IEEE 802.3 (interface)",
	}
	switch {
	case !exactQuanta:
		d.Unverified = fmt.Sprintf("no response time is published at %s: the time of the speeds beside it is kept, %d quanta", speed, quanta)
	case !exactBits:
		d.Unverified = fmt.Sprintf("no interface delay is published at %s: the longer time of the speeds beside it is kept", speed)
	case speed == 400*units.Gbps:
		d.Unverified = "the interface delay at 400Gbps is derived from the response, not published"
	}
	return d
}

// delayAt is the delay at a speed in bit times of that speed (or quanta); exact where the table has the speed.
func delayAt(table []speedDelay, speed units.BitRate) (v int64, exact bool) {
	i, exact := slices.BinarySearchFunc(table, speed, func(d speedDelay, s units.BitRate) int { return cmp.Compare(d.speed, s) })
	if exact {
		return table[i].value, true
	}
	var longest int64
	for _, d := range table[max(i-1, 0):min(i+1, len(table))] { // the same time at this speed
		longest = max(longest, int64(up(times(positive(speed), frac(d.value, int64(d.speed))), 1)))
	}
	return longest, false
}
