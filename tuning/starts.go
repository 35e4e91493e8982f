package tuning

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/fabricctl/fabricctl/model/derive"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/observe"
	"github.com/fabricctl/fabricctl/model/units"
)

// A ramp of a start: kmax as a part of the queue at the first pause, or as published.
type startRamp struct {
	name        string
	part        float64 // of N T_N; 0 = 1500KB at 100Gbps, in proportion to the speed
	ratio, pmax float64
}

// publishedKmax is NVIDIA's RoCE default for the end of a ramp, at 100Gbps (Onyx and Cumulus Linux, kmin a tenth of it; pmax is stated by none).
const publishedKmax = 1500 * units.KB

// startRamps are the ramps that a race begins with. On four workloads the best kmax was 0.7 to 1.2 times N T_N (docs/tuning.md), and which of the ramps
// is the best is different on each.
func startRamps() []startRamp {
	return []startRamp{
		{"published", 0, 0.1, 0.1},
		{"0.7 N T_N, steep", 0.7, 0.5, 1},
		{"0.7 N T_N, shallow", 0.7, 0.1, 0.1},
		{"0.7 N T_N, late", 0.7, 0.9, 1},
	}
}

// starts are the settings that formulas give, for the threshold that PFC alone takes and all doublings of it, to alpha 1: how far to the
// best it is from the floor, no formula says. Those that know nothing of the threshold are of the ends alone. Formulas are of the scope whose
// kmax is moved; where several are, each has its own.
func (b *spacer) starts(s *Space, floor Setting) []Start {
	var out []Start
	seen := map[string]bool{s.Base.Key(): true}
	all := b.thresholds(s, floor)
	for n, threshold := range all {
		for _, ramp := range startRamps() {
			if ramp.part == 0 && n > 0 && n < len(all)-1 {
				continue
			}
			x := slices.Clone(threshold)
			var why, words string
			for _, sc := range b.order {
				w := b.start(sc, s.Base, x, ramp)
				if w == "" {
					continue
				}
				if why != "" {
					why += "; "
				}
				if why += w; len(b.order) > 1 {
					why += " (" + sc.String() + ")"
				}
			}
			for i := range b.knobs {
				if k := &b.knobs[i]; k.short() == Alpha || k.short() == Xoff {
					words += ", " + k.Name + " " + k.Text(x[i])
				}
			}
			x = s.Normal(x)
			if why == "" || seen[x.Key()] {
				continue
			}
			seen[x.Key()] = true
			out = append(out, Start{Name: ramp.name + words, Why: why, Setting: x})
		}
	}
	return out
}

// mostDoublings is how far up from the floor starts go.
const mostDoublings = 8

// thresholds are the settings with the pause thresholds that starts have: that of the floor and its doublings, up to alpha 1 or half of the
// pool. Without such a variable there is the one that the model has.
func (b *spacer) thresholds(s *Space, floor Setting) []Setting {
	var all []Setting
	seen := map[string]bool{}
	for n := range mostDoublings + 1 {
		x := slices.Clone(s.Base)
		for i := range b.knobs {
			k := &b.knobs[i]
			name := k.short()
			if name != Alpha && name != Xoff || i >= len(floor) {
				continue
			}
			end := 1.0
			if name == Xoff {
				end = k.High
			}
			if x[i] = k.normal(s.Base[i], min(floor[i]*math.Pow(2, float64(n)), max(end, floor[i]))); n == mostDoublings {
				x[i] = k.normal(s.Base[i], end)
			}
		}
		if !seen[x.Key()] {
			seen[x.Key()], all = true, append(all, x)
		}
	}
	return all
}

// start sets the ramp of a scope in x, and says how it came about; "" when it has no kmax, or no formula can be worked out.
func (b *spacer) start(sc *scope, base, x Setting, ramp startRamp) string {
	kmax, ratio, pmax := b.find(Kmax, sc), b.find(KminRatio, sc), b.find(Pmax, sc)
	if kmax < 0 {
		return ""
	}
	var why string
	if ramp.part == 0 {
		v := derive.PartOf(publishedKmax, units.Percent(float64(sc.ref.port.Speed)/float64(100*units.Gbps)*100*float64(units.OnePercent)))
		x[kmax] = float64(v)
		why = fmt.Sprintf("kmax %s: %s at 100Gbps (NVIDIA's RoCE default), in proportion to %s", v, publishedKmax, sc.ref.port.Speed)
	} else {
		at, words, ok := b.firstPause(sc, x)
		if !ok {
			return ""
		}
		x[kmax] = ramp.part * float64(at)
		why = fmt.Sprintf("kmax %g x %s, where %s", ramp.part, b.knobs[kmax].Text(round(float64(at), digits)), words)
	}
	if ratio >= 0 {
		x[ratio] = ramp.ratio
	}
	if pmax >= 0 {
		x[pmax] = ramp.pmax
	}
	return why
}

// firstPause is the queue at which the ports that burst together pause with the threshold of x.
func (b *spacer) firstPause(sc *scope, x Setting) (at units.Bytes, words string, ok bool) {
	n := b.fanIn(sc)
	if i := b.find(Xoff, sc); i >= 0 {
		each := units.Bytes(x[i])
		return derive.Times(each, n), fmt.Sprintf("%d ports with xoff %s pause together", n, each), true
	}
	buf, _ := sc.ref.buffer()
	alpha := buf.Alpha
	if i := b.find(Alpha, sc); i >= 0 {
		if err := alpha.UnmarshalText([]byte(factorText(x[i]))); err != nil {
			return 0, "", false
		}
	}
	pool, ok := intent.SharedPool(sc.ref.dev)
	if !ok || alpha.Num <= 0 {
		return 0, "", false
	}
	return derive.FirstPause(pool, alpha, n), fmt.Sprintf("N T_N = alpha B N/(1 + alpha N) with alpha %s, B %s and N %d", alpha, bytesText(round(float64(pool), digits)), n), true
}

// fanIn is how many ports fill a queue of the scope together.
func (b *spacer) fanIn(sc *scope) int {
	const usual = 2 // of a class that says nothing
	n := cmp.Or(b.options.FanIn, FanIn(b.options.Workload, sc.ref.dev), b.class.FanIn.V, usual)
	others := -1
	for i := range sc.places {
		if sc.places[i].dev == sc.ref.dev {
			others++
		}
	}
	return max(min(n, others), 1)
}

// FanIn is the largest number of ports of d, which receivers are linked to, over which w sends to one receiver at once; 0 when w says
// nothing of that. Senders under other switches come in over the uplinks, however many they are.
func FanIn(w observe.Workload, d *intent.Device) int {
	hosts, uplinks := 0, 0
	for i := range d.Ports {
		switch p := &d.Ports[i]; {
		case p.State != intent.Active || p.Role == "unused":
		case p.Role == "host" || p.Role == "storage":
			hosts++
		case p.Role == "fabric":
			uplinks++
		}
	}
	most := 0
	for _, p := range w.Parts {
		n, others := p.N, max(hosts-1, 0)+uplinks
		switch p.Kind {
		case observe.AllToAll:
			n = max(n-1, 0) // N are all that take part
		case observe.Incast:
		default:
			continue
		}
		if p.Across {
			others = uplinks
		}
		most = max(most, min(cmp.Or(n, others), others))
	}
	return most
}
