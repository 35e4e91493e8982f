package lint

import (
	"cmp"
	"fmt"

	"github.com/fabricctl/fabricctl/model/derive"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/units"
)

var ecnBeforePFCWorst = Rule{
	ID:       "ecn-before-pfc-worst",
	Title:    "marking begins before the first pause, however traffic spreads",
	Severity: diag.Info,
	Areas:    intent.AreaSet(intent.AreaECN, intent.AreaBuffer),
	Run:      runECNBeforePFCWorst,
}

// unguaranteed is the ramp of a class above the bound, wherever that is.
type unguaranteed struct {
	prio   int
	class  string
	active bool
}

// bounded is a ramp and the bound of its device.
type bounded struct {
	ramped
	group group
	bound units.Bytes
	k, n  int // lossless priorities, and ports with them
}

// runECNBeforePFCWorst compares kmin with the bound of Zhu et al. (Congestion Control for Large-Scale RDMA Deployments,
// SIGCOMM'15, section 4) for the pool that is left beside headroom. One finding says it for all devices, at the one that is
// farthest above.
func runECNBeforePFCWorst(p *Pass) {
	var bad causes[unguaranteed]
	worst := map[unguaranteed]bounded{}
	in := p.pauses()
	for _, r := range p.ramps() {
		if in[r.Device] == nil || len(in[r.Device][r.prio].groups) == 0 {
			continue
		}
		b := p.boundOf(r, in[r.Device])
		if r.ecn.Kmin < b.bound || in[r.Device][r.prio].late(r, p.load(r.Device, r.prio)) {
			continue
		}
		k := unguaranteed{r.prio, r.class, r.Active}
		bad.add(k, r.Place)
		if x, known := worst[k]; !known || float64(r.ecn.Kmin)/float64(max(b.bound, 1)) > float64(x.ecn.Kmin)/float64(max(x.bound, 1)) {
			worst[k] = b
		}
	}
	for k, w := range bad.all {
		b := worst[k]
		words, line := b.group.threshold(b.prio)
		least := derive.DCTCPMin(b.Port.Speed, p.feedback()).Up()
		hint := fmt.Sprintf("nothing in most fabrics: traffic does not spread so; for a guarantee, lower kmin to at most %v", below(b.bound, 1))
		if b.bound <= max(least, 1) {
			hint = fmt.Sprintf("nothing: a guarantee is not to be had here, since below %v a busy link of %v runs empty", least, b.Port.Speed)
		}
		p.report(w, diag.Finding{
			Pos: cmp.Or(b.lines().kmin, b.lines().kmax), Related: []diag.Related{setHere("the threshold", line)},
			Msg: fmt.Sprintf("kmin %v of %s is above %s on %s (%s, %s, %s): if one port's traffic spreads over all others, PFC can act before any queue marks",
				b.ecn.Kmin, k.class, roughly(b.bound), w, words, diag.Count(b.n, "port"), diag.Plural(b.k, "lossless priority", "lossless priorities")),
			Hint: hint,
		})
	}
}

// boundOf is what kmin of r has to be below, for the lowest threshold of its device.
func (p *Pass) boundOf(r ramped, in *[8]sources) bounded {
	b := bounded{ramped: r, n: in[r.prio].ports}
	for _, x := range in {
		if len(x.groups) > 0 {
			b.k++
		}
	}
	b.group, _, _ = in[r.prio].at(1, false)
	pool := r.Device.Pools.Shared
	if s := b.group.buffer.Static; s > 0 {
		b.bound = units.Bytes(int64(s) / int64(b.n)) // t_ECN < t_PFC / n
		return b
	}
	a := b.group.buffer.Alpha
	beta := units.Ratio{Num: int32(min(int64(a.Num)*int64(b.k), 1<<30)), Den: a.Den} // k times the alpha of a group
	b.bound = p.asked.ecnBefore(spread{pool, b.k, b.n, beta})
	return b
}
