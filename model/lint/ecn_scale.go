package lint

import (
	"cmp"
	"fmt"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/units"
)

var ecnScale = Rule{
	ID:       "ecn-scale",
	Title:    "thresholds follow the speed of the port",
	Severity: diag.Warning,
	Areas:    intent.AreaSet(intent.AreaECN),
	Run:      runECNScale,
}

// mostScale is how many times faster one port may be than another with the same thresholds.
const mostScale = 2

// oneSize is one ramp of a class, wherever it is used.
type oneSize struct {
	prio   int
	class  string
	ecn    intent.ECN
	kmin   diag.Pos
	active bool
}

// span is the slowest and the fastest ports with a ramp.
type span struct{ slow, fast ramped }

func runECNScale(p *Pass) {
	var all causes[oneSize]
	spans := map[oneSize]span{}
	for _, r := range p.ramps() {
		if r.Port.Speed <= 0 {
			continue
		}
		k := oneSize{r.prio, r.class, r.ecn, r.lines().kmin, r.Active}
		all.add(k, r.Place)
		s, known := spans[k]
		if !known {
			s = span{r, r}
		}
		if r.Port.Speed < s.slow.Port.Speed {
			s.slow = r
		}
		if r.Port.Speed > s.fast.Port.Speed {
			s.fast = r
		}
		spans[k] = s
	}
	for k, w := range all.all {
		slow, fast := spans[k].slow.Port.Speed, spans[k].fast.Port.Speed
		if fast <= mostScale*slow {
			continue
		}
		scaled := func(v units.Bytes) units.Bytes {
			return max(cut(units.Bytes(float64(v)*float64(slow)/float64(fast)), 2), 1)
		}
		p.report(w, diag.Finding{
			Pos: cmp.Or(k.kmin, spans[k].slow.lines().kmax),
			Msg: fmt.Sprintf("kmin %v of %s is the same for ports of %v (%s) and of %v (%s): the queue that it allows drains in %v at the one, in %v at the other",
				k.ecn.Kmin, k.class, slow, spans[k].slow, fast, spans[k].fast, drain(k.ecn.Kmin, slow), drain(k.ecn.Kmin, fast)),
			Hint: fmt.Sprintf("give the ports of %v thresholds of their own under overrides, such as kmin %v and kmax %v, or acknowledge %s with the reason",
				slow, scaled(k.ecn.Kmin), scaled(k.ecn.Kmax), p.rule.ID),
		})
	}
}

// drain is how long a queue takes to leave at a rate, to tenths of a microsecond.
func drain(v units.Bytes, at units.BitRate) units.Duration {
	const step = units.Microsecond / 10
	return units.Duration(float64(v)*8/float64(at)*float64(units.Second)) / step * step
}
