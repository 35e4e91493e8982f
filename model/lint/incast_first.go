package lint

import (
	"cmp"
	"fmt"
	"math"
	"strconv"

	"github.com/fabricctl/fabricctl/model/derive"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/units"
)

var incastFirst = Rule{
	ID:       "incast-first",
	Title:    "senders of an incast can slow down before they are paused",
	Severity: diag.Info,
	Areas:    intent.AreaSet(intent.AreaECN, intent.AreaBuffer),
	Run:      runIncastFirst,
}

// pausedBurst is an incast that reaches its pause thresholds before any sender can know.
type pausedBurst struct {
	prio      int
	class     string
	kmin      units.Bytes
	line      diag.Pos
	threshold string
	alpha     diag.Pos
	each      units.Bytes
	n         int
	speed     units.BitRate
	active    bool
}

func runIncastFirst(p *Pass) {
	feedback := p.feedback()
	var bad causes[pausedBurst]
	firsts := map[pausedBurst]group{}
	in := p.pauses()
	for _, r := range p.ramps() {
		if in[r.Device] == nil {
			continue
		}
		from := in[r.Device][r.prio]
		n := min(p.load(r.Device, r.prio).fanIn, from.asFast(r))
		g, _, ok := from.at(n, false)
		if !ok || n < 2 || from.late(r, p.load(r.Device, r.prio)) {
			continue
		}
		at, _ := p.asked.pausePoint(g.buffer, g.Device.Pools, n)
		burst := derive.Incast{Speed: r.Port.Speed, Senders: n, Kmin: r.ecn.Kmin, Xoff: at.Each, Feedback: feedback}
		if derive.FirstReaction(burst).First != derive.PFCFirst {
			continue
		}
		words, line := g.threshold(r.prio)
		k := pausedBurst{r.prio, r.class, r.ecn.Kmin, r.lines().kmin, words, line.At(), at.Each, n, r.Port.Speed, r.Active}
		bad.add(k, r.Place)
		if _, known := firsts[k]; !known {
			firsts[k] = g
		}
	}
	for k, w := range bad.all {
		p.reportBurst(k, firsts[k], w, feedback)
	}
}

func (p *Pass) reportBurst(k pausedBurst, g group, w *where, feedback units.Duration) {
	x := derive.FirstReaction(derive.Incast{Speed: k.speed, Senders: k.n, Kmin: k.kmin, Xoff: k.each, Feedback: feedback})
	fanIn, _ := p.load(w.first.Device, k.prio).related()
	_, line := g.threshold(k.prio)
	hint := "expect pauses in such bursts, or spread them: fewer ports at once"
	if limit := derive.IncastLimit(g.Device.Pools.Shared, g.buffer.Alpha, k.speed, feedback); g.buffer.Static == 0 && limit >= 2 {
		hint = fmt.Sprintf("expect pauses in such bursts, or spread them: up to %d ports at once are free of them", limit)
	}
	why := "no ECN setting can prevent the pause"
	kmin := units.Bytes(math.Floor((x.ToXoff-float64(feedback)/1e9)*float64(x.Growth)/8)) - 1
	switch least := derive.DCTCPMin(k.speed, feedback).Up(); {
	case !x.Any:
	case kmin < least:
		why = fmt.Sprintf("only a kmin below %v could, and below %v a busy link runs empty", roughly(max(kmin, 0)), roughly(least))
	default:
		why = "a lower kmin could"
		hint = fmt.Sprintf("lower kmin to at most %v", below(kmin+1, least))
	}
	p.report(w, diag.Finding{
		Pos: cmp.Or(k.line, k.alpha, fanIn.Pos), Related: []diag.Related{setHere("the threshold", line), fanIn},
		Msg: fmt.Sprintf("an incast of %d ports at %v in %s is paused after %s on %s (%s each, %s), and no sender can have slowed down before %s: %s",
			k.n, k.speed, k.class, micros(x.ToXoff), w, roughly(k.each), k.threshold, micros(x.FirstCut), why),
		Hint: hint,
	})
}

// micros is a time in seconds as microseconds with a decimal.
func micros(s float64) string { return strconv.FormatFloat(s*1e6, 'f', 1, 64) + "us" }
