package lint

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/fabricctl/fabricctl/model/derive"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/units"
)

var ecnGranularity = Rule{
	ID:       "ecn-granularity",
	Title:    "a ramp is what was asked for, and has steps enough",
	Severity: diag.Info,
	Areas:    intent.AreaSet(intent.AreaECN),
	Run:      func(p *Pass) { runGranularity(p, coarse) },
}

var ecnExpressible = Rule{
	ID:       "ecn-expressible",
	Title:    "the chip can hold the ramp",
	Severity: diag.Error,
	Areas:    intent.AreaSet(intent.AreaECN),
	Run:      func(p *Pass) { runGranularity(p, refused) },
}

// fewSteps is below how many steps between kmin and kmax marking rises in leaps and not gradually.
const fewSteps = 10

// grained is one ramp of one class and the chip that has to hold it.
type grained struct {
	prio       int
	class      string
	asked, has intent.ECN
	lines      lines
	chip       string
	step, cell units.Bytes
	apart      bool
	active     bool
}

// refused reports whether the chip cannot hold the ramp.
func (g grained) refused() bool { return g.has.Kmin == 0 || g.apart && g.has.Kmin == g.has.Kmax }

func runGranularity(p *Pass, say func(*Pass, grained, *where) (diag.Finding, bool)) {
	var all causes[grained]
	for _, r := range p.ramps() {
		chip := r.Device.Profile.Chip
		all.add(grained{
			r.prio, r.class, r.ecn, intent.ECNInEffect(r.ecn, chip), r.lines(), chip.Name, intent.ECNStep(chip), r.Device.Profile.Cell, chip.ECNApart, r.Active,
		}, r.Place)
	}
	for g, w := range all.all {
		if f, ok := say(p, g, w); ok {
			f.Pos = cmp.Or(g.lines.kmin, g.lines.kmax)
			f.Related = []diag.Related{setHere("kmax", w.first.Origin(perQueue("ecn.", g.prio, ".kmax")))}
			p.report(w, f)
		}
	}
}

// refused says what the chip cannot hold.
func refused(_ *Pass, g grained, w *where) (f diag.Finding, ok bool) {
	if !g.refused() {
		return f, false
	}
	if g.has.Kmin == 0 {
		x := start(&w.first)
		f.Msg = fmt.Sprintf("kmin %v of %s is nothing in effect on %s: %s counts in steps of %v", g.asked.Kmin, g.class, w, g.chip, g.step)
		f.Hint = fmt.Sprintf("set kmin to %v and kmax to %v", max(derive.RoundDown(x.Kmin, g.step), g.step), derive.RoundUp(x.Kmax, g.step)+fewSteps*g.step)
		return f, true
	}
	what := fmt.Sprintf("kmin %v and kmax %v of %s are both %v in effect", g.asked.Kmin, g.asked.Kmax, g.class, g.has.Kmin)
	counts := fmt.Sprintf(" and counts in steps of %v", g.step)
	if g.asked.Kmin == g.asked.Kmax && g.asked == g.has {
		what = fmt.Sprintf("kmin and kmax of %s are both %v", g.class, g.asked.Kmin)
	}
	if g.step == 1 {
		counts = ""
	}
	f.Msg = fmt.Sprintf("%s on %s: %s takes only a ramp%s", what, w, g.chip, counts)
	kmax := g.has.Kmin + fewSteps*max(g.step, derive.RoundUp(g.cell, g.step))
	if g.step == 1 {
		kmax = derive.Times(g.has.Kmin, 2)
	}
	f.Hint = setRamp(g.asked, intent.ECN{Kmin: g.has.Kmin, Kmax: kmax, Pmax: g.asked.Pmax})
	return f, true
}

// coarse says what the chip makes of the ramp, and whether that has steps enough.
func coarse(_ *Pass, g grained, w *where) (f diag.Finding, ok bool) {
	if g.refused() {
		return f, false
	}
	step := max(g.step, g.cell)
	gap := g.has.Kmax - g.has.Kmin
	few := step > 1 && gap > 0 && gap < fewSteps*step
	var rounded, becomes []string
	for _, x := range rampDifferences(g.asked, g.has) {
		rounded, becomes = append(rounded, x.key+" "+x.is), append(becomes, x.want)
	}
	switch {
	case few:
		f.Msg = fmt.Sprintf("%s: kmin and kmax are %v apart on %s, %s of %v: marking rises in leaps",
			g.class, gap, w, diag.Count(int(gap/step), "step"), step)
		f.Hint = fmt.Sprintf("raise kmax to at least %v, or make it equal to kmin if one step is meant", g.has.Kmin+fewSteps*step)
		if g.apart {
			f.Hint = fmt.Sprintf("raise kmax to at least %v", g.has.Kmin+fewSteps*step)
		}
	case len(rounded) > 0:
		f.Msg = fmt.Sprintf("%s of %s: in effect %s on %s, since %s counts in steps of %v",
			strings.Join(rounded, " and "), g.class, strings.Join(becomes, " and "), w, g.chip, g.step)
		f.Hint = setRamp(g.asked, g.has) + " to write what is in effect"
	}
	return f, f.Msg != ""
}
