package lint

import (
	"fmt"

	"github.com/fabricctl/fabricctl/model/derive"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
)

var bufferSum = Rule{
	ID:       "buffer-sum",
	Title:    "pools, headroom and reserves fit into the chip's packet buffer",
	Severity: diag.Error,
	Areas:    intent.AreaSet(intent.AreaBuffer),
	Run:      runBufferSum,
}

func runBufferSum(p *Pass) {
	var bad causes[promises]
	for d, in := range p.heaviest {
		g := intent.BudgetOf(d)
		if g.Buffer == 0 || g.Promised <= g.Buffer || contradicts(d) {
			continue
		}
		left := g.Buffer - (g.Promised - g.Headroom)
		if !g.Dedicated {
			left = 0 // what groups take of the pool is counted with the pool
		}
		bad.add(promised(in, g, g.Promised, g.Buffer, max(left, 0)), in.Place)
	}
	for k, w := range bad.all {
		in := ingressAt(w.first, k.prio)
		g := intent.BudgetOf(in.Device)
		parts := fmt.Sprintf("%s of headroom and %s of reserves for %s, a shared pool of %s", about(g.Headroom), about(g.Reserved), diag.Count(k.groups, "priority group"), about(g.Pools.Shared))
		if !g.Dedicated {
			parts = fmt.Sprintf("a shared pool of %s, a headroom pool of %s, %s of reserves", about(g.Pools.Shared), about(g.Pools.Headroom), about(g.Reserved))
		}
		f := diag.Finding{
			Msg: fmt.Sprintf("%s of buffer are promised on %s, but %s has %s: %s", about(k.total), w.names(), in.Device.Profile.Chip.Name, about(k.room), parts),
		}
		f.Hint = k.hint(in, fmt.Sprintf("take a switch with at least %s of packet buffer", about(k.total)))
		f.Pos, f.Related = p.headroomPlace(in)
		p.report(w, f)
	}
}

// contradicts reports whether the chip's buffer is less than the platform's own pools. Then one of the two published
// figures is not what it seems, and nothing follows from them.
func contradicts(d *intent.Device) bool {
	for _, hosts := range []bool{true, false} {
		if p := d.Profile.Pools(hosts); derive.Add(p.Lossless, p.Headroom) > d.Profile.Chip.Buffer {
			return true
		}
	}
	return false
}
