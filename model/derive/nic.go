package derive

import (
	"fmt"
	"math/big"

	"github.com/fabricctl/fabricctl/model/units"
)

// mlx5Slowest is the speed that the driver takes for slower ports.
const mlx5Slowest = 40 * units.Gbps

// mlx5Largest is the frame that the driver keeps between xoff and xon at least.
const mlx5Largest = 9216 * units.Byte

// MLX5NIC is what the mlx5 driver keeps above xoff: (301 + 216 L/100) R/1000 + 272 MTU/100 with R in Mb/s and each
// division cut to whole numbers as C does it (Linux drivers/net/ethernet/mellanox/mlx5/core/en/port_buffer.c,
// calculate_xoff). Parts of a metre count as a metre.
func MLX5NIC(speed units.BitRate, cable units.Length, mtu units.Bytes) Headroom {
	metres := new(big.Int).SetInt64(int64(max(cable, 0)) / 1000)
	if cable > 0 && cable%1000 > 0 {
		metres.Add(metres, big.NewInt(1))
	}
	mbps := big.NewInt(int64(max(speed, mlx5Slowest) / units.Mbps))
	delay := new(big.Int).Mul(metres, big.NewInt(216))
	delay.Add(delay.Quo(delay, big.NewInt(100)), big.NewInt(301))
	wire := new(big.Int).Mul(delay, mbps)
	wire.Quo(wire, big.NewInt(1000))
	frame := new(big.Int).Mul(big.NewInt(int64(max(mtu, 0))), big.NewInt(272))
	frame.Quo(frame, big.NewInt(100))

	s := &summing{}
	s.add("delay and cable", fmt.Sprintf("(301 + 216 * %s/100) * %s/1000", metres, mbps), new(big.Rat).SetInt(wire))
	s.add("frames", fmt.Sprintf("272 * %d / 100", max(mtu, 0)), new(big.Rat).SetInt(frame))
	sum := s.sum(1)
	return Headroom{Model: ModelMLX5NIC, Source: "Linux mlx5 en/port_buffer.c, calculate_xoff", Terms: sum.Terms, Xoff: sum.Total}
}

// MLX5Thresholds is where the mlx5 driver puts xoff and xon in a buffer; false when the buffer is too small for the
// headroom, a frame and a cell (port_buffer.c, update_xoff_threshold).
func MLX5Thresholds(buffer, headroom, mtu, cell units.Bytes) (xoff, xon units.Bytes, ok bool) {
	if buffer < Add(headroom, mtu, cell) {
		return 0, 0, false
	}
	xoff = buffer - headroom
	return xoff, max(xoff-max(mtu, mlx5Largest), 0), true
}

// CiscoTransceiver is the most that a pair of transceivers delays at 10 Gbps, in bytes (Cisco white paper C11-542809).
const CiscoTransceiver units.Bytes = 1280

// Cisco10G is what Cisco counts for a link of 10 Gbps: both frames, 60 quanta, the cable at 641 bytes per 100 m and way,
// and the transceivers (Cisco white paper C11-542809, "Priority Flow Control: Build Reliable Layer 2 Infrastructure").
func Cisco10G(l Link, transceiver units.Bytes) Headroom {
	s := &summing{}
	port, peer := l.frames()
	s.add("frames", fmt.Sprintf("%s + %s", port, peer), plus(whole(int64(port)), whole(int64(peer))))
	s.add("response", fmt.Sprintf("60 quanta * %d", quantum), whole(60*quantum))
	s.add("cable", fmt.Sprintf("2 * 641 * %s / 100m", max(l.Cable, 0)), times(positive(l.Cable), frac(2*641, 100*1000)))
	s.add("transceivers", "at most", positive(transceiver))
	sum := s.sum(1)
	return Headroom{Model: ModelCisco10G, Source: "Cisco white paper C11-542809", Terms: sum.Terms, Xoff: sum.Total}
}
