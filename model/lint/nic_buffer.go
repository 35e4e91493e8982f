package lint

import (
	"fmt"
	"math/bits"

	"github.com/fabricctl/fabricctl/model/derive"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/units"
)

var nicBuffer = Rule{
	ID:       "nic-buffer",
	Title:    "a NIC's buffer for a lossless class holds what arrives after its pause",
	Severity: diag.Error,
	Areas:    intent.AreaSet(intent.AreaBuffer),
	Run:      runNICBuffer,
}

// tightBuffer is a receive buffer that is too small for its link.
type tightBuffer struct {
	size   units.Bytes
	prios  uint8
	speed  units.BitRate
	cable  units.Length
	mtu    units.Bytes
	line   diag.Pos
	active bool
}

func runNICBuffer(p *Pass) {
	var bad causes[tightBuffer]
	for _, pl := range p.Places {
		if nic, ok := p.nic(pl.Port.NIC); !pl.Device.Host || !pl.Knows(intent.AreaBuffer) || !ok || nic.CCFamily != "mlx5" {
			continue // the formula is that of one driver
		}
		cable := pl.Port.Cable
		if pl.Policy.Cable > 0 {
			cable = pl.Policy.Cable
		}
		if pl.Port.Speed == 0 || cable == 0 {
			continue
		}
		k := tightBuffer{speed: pl.Port.Speed, cable: cable, mtu: pl.Policy.MTU, active: pl.Active}
		least := k.least()
		for i, q := range pl.Policy.Queues {
			if size := q.Buffer.Reserved; q.Lossless && q.Buffer.On && size > 0 && size < least {
				k.size, k.line = size, pl.Origin(perQueue("reserved.", i, "")).At()
				k.prios |= 1 << i
			}
		}
		if k.prios != 0 {
			bad.add(k, pl)
		}
	}
	for k, w := range bad.all {
		xoff := derive.MLX5NIC(k.speed, k.cable, k.mtu).Xoff
		p.report(w, diag.Finding{
			Pos: k.line,
			Msg: fmt.Sprintf("%s for %s on %s is less than the %s that its driver wants at %s over %s: %s for what arrives after the pause and %s for a frame",
				k.size, priorities(k.prios), w, k.least(), k.speed, k.cable, xoff, k.least()-xoff),
			Hint: fmt.Sprintf("raise lossless to at least %s", ceilKB(k.least())),
			Related: []diag.Related{
				setHere("mtu", w.first.Origin("mtu")), setHere("cable", w.first.Origin("cable")),
				setHere("lossless", w.first.Origin(perQueue("lossless.", bits.TrailingZeros8(k.prios), ""))),
			},
		})
	}
}

// least is the smallest buffer that the mlx5 driver takes for lossless traffic: its xoff and the largest frame, by which
// xon is below (Linux mlx5 en/port_buffer.c, update_xoff_threshold).
func (k tightBuffer) least() units.Bytes {
	const largest = 9216 * units.Byte
	return derive.MLX5NIC(k.speed, k.cable, k.mtu).Xoff + max(k.mtu, largest)
}

// ceilKB is the next size in whole KB.
func ceilKB(b units.Bytes) units.Bytes { return (b + units.KB - 1) / units.KB * units.KB }
