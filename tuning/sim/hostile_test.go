package sim

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/units"
)

// TestHostile: whatever devices hold is simulated or refused, and breaks nothing.
func TestHostile(t *testing.T) {
	n := example(t, "storage-and-training")
	r := rand.New(rand.NewPCG(1, 2))
	sizes := []units.Bytes{0, 1, 1499, 64 * units.KB, units.MB, units.GB, 1 << 40, 1<<62 + 1, -1, -1 << 62}
	size := func() units.Bytes { return sizes[r.IntN(len(sizes))] }
	byte8 := func() uint8 { return []uint8{0, 1, 3, 4, 7, intent.Unmapped, 200}[r.IntN(7)] }
	ran, refused := 0, 0
	for i := range 150 {
		m := edit(n, func(*intent.Device, *intent.Port) bool { return r.IntN(4) == 0 }, func(p *intent.Policy) {
			switch r.IntN(8) {
			case 0:
				p.MTU = size()
			case 1:
				for j := range p.DSCP {
					p.DSCP[j] = byte8()
				}
				p.Trust = intent.Trust(r.IntN(4))
			case 2:
				for j := range p.TCQueue {
					p.TCQueue[j], p.TCPG[j], p.PFCQueue[j] = byte8(), byte8(), byte8()
				}
			case 3:
				for j := range p.Queues {
					p.Queues[j].Buffer = intent.Buffer{
						On: r.IntN(2) == 0, Device: r.IntN(4) == 0, Static: size(), Alpha: units.Ratio{Num: r.Int32N(9) - 1, Den: r.Int32N(9) - 1},
						Headroom: size(), Xon: size(), XonOffset: size(), Reserved: size(),
					}
				}
			case 4:
				for j := range p.Queues {
					p.Queues[j].ECN = intent.ECN{On: true, Kmin: size(), Kmax: size(), Pmax: units.Percent(r.Int32())}
					p.Queues[j].Drop = r.IntN(2) == 0
				}
			case 5:
				for j := range p.Queues {
					p.Queues[j].Lossless, p.Queues[j].Strict, p.Queues[j].Used, p.Queues[j].Weight = r.IntN(2) == 0, r.IntN(2) == 0, r.IntN(2) == 0, uint8(r.Uint32())
				}
				p.Pause = intent.Pause{Send: r.IntN(2) == 0, Receive: r.IntN(2) == 0}
			case 6:
				p.Watchdog = intent.Watchdog{On: true, Detect: r.Int32(), Restore: r.Int32() - 1<<30, Poll: r.Int32() - 1<<30, Action: intent.Action(r.IntN(4)), Skips: uint8(r.Uint32())}
			case 7:
				for j := range p.CC.Params {
					p.CC.Params[j] = r.Uint32() >> r.IntN(32)
				}
				p.CC.CNPDSCP, p.CC.Priorities, p.RoCE.TrafficClass = uint8(r.IntN(64)), uint8(r.Uint32()), int16(r.IntN(256))-1
			}
			if r.IntN(3) == 0 {
				p.Known &^= intent.Areas(r.Uint32())
			}
		})
		s, err := Build(m, workload(t, "incast,bytes=100KB + pairs,class=storage,bytes=50KB,op=read"), Options{Audit: 5000, Duration: 200 * units.Microsecond}, uint64(i))
		var no *Refused
		if errors.As(err, &no) {
			refused++
			continue
		}
		if err == nil {
			_, err = s.Run(context.Background())
		}
		if err != nil {
			t.Fatalf("%d: %v", i, err)
		}
		ran++
	}
	if ran < 10 || refused < 10 {
		t.Errorf("%d ran and %d were refused: the test says little", ran, refused)
	}
}
