package tuning

import (
	"cmp"
	"math"
	"slices"
	"sync"

	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/lint"
	"github.com/fabricctl/fabricctl/model/units"
)

// space makes the Space of the knobs.
func (b *spacer) space() *Space {
	s := &Space{}
	for i := range b.knobs {
		k := &b.knobs[i]
		s.Vars = append(s.Vars, k.Variable)
		if k.sc != nil {
			k.now, _ = k.read(b.from(k.row, k.sc))
		}
		s.Base = append(s.Base, k.now)
	}
	s.Text = func(i int, v float64) string { return s.Vars[i].Text(v) }
	s.Normal = func(x Setting) Setting { return b.normal(s.Base, x) }
	s.Change = func(x Setting) Change { return b.change(s.Base, x) }
	before := sync.OnceValue(func() diag.List { return b.lint(nil) })
	mended := sync.OnceValue(func() []string { return b.mended(s, before()) })
	s.Check, s.Mends = b.checker(s, before, mended), mended
	if off, ok := b.off(s); ok {
		s.Unmarked = off
	}
	if b.class != nil {
		s.Starts = func(floor Setting) []Start { return b.starts(s, floor) }
	}
	return s
}

// normal is x within the ranges and rounded. Where x is as the model has it, it stays so, to the last digit. What never marks stays
// as it is.
func (b *spacer) normal(base, x Setting) Setting {
	out := slices.Clone(base)
	for i := range b.knobs {
		k := &b.knobs[i]
		if i >= len(x) || math.IsNaN(x[i]) {
			continue
		}
		out[i] = k.normal(base[i], x[i])
	}
	for _, sc := range b.order {
		kmax, ratio := b.find(Kmax, sc), b.find(KminRatio, sc)
		if kmax >= 0 && ratio >= 0 && max(kmax, ratio) < len(x) && x[ratio] == 1 && x[kmax] == b.never(sc) {
			out[kmax], out[ratio] = b.never(sc), 1
		}
	}
	return out
}

func (k *knob) normal(base, v float64) float64 {
	if math.Abs(v-base) <= 1e-9*math.Abs(base) {
		return base
	}
	v = min(max(v, k.Low), k.High)
	switch {
	case k.power:
		return min(max(power(v), k.Low), k.High)
	case k.Whole:
		return math.Round(v)
	}
	if !k.Linear {
		v = round(v, digits)
	}
	if k.grain != nil {
		if step, lowest := k.grain(k.sc); step > 0 {
			if step > 1 || v/step < 1000 {
				v = math.Round(v/step) * step
			}
			v = max(v, lowest)
		}
	}
	return min(max(round(v, 12), k.Low), k.High) // 0.30000000000000004 is 0.3
}

// change is what a setting means. What stands as in the model needs no edit.
func (b *spacer) change(base, x Setting) Change {
	var c Change
	for _, sc := range b.order {
		c.Patch = append(c.Patch, b.ramp(sc, base, x)...)
		for i := range b.knobs {
			if k := &b.knobs[i]; k.sc == sc && k.set != nil && x[i] != base[i] {
				c.Patch = append(c.Patch, k.set(sc, base[i], x[i])...)
			}
		}
	}
	c.Patch = slices.DeleteFunc(c.Patch, func(e model.Edit) bool { return b.written[e.Path] == e.Value })
	for i := range b.knobs {
		if k := &b.knobs[i]; k.External != nil && i < len(x) {
			c.External = append(c.External, Assign{k.Name, x[i]})
		}
	}
	return c
}

// ramp is the marking ramp of a scope, whole: a model that gives a part of it has no ramp where it had a starting value.
func (b *spacer) ramp(sc *scope, base, x Setting) []model.Edit {
	at := func(name string, now float64) (float64, bool) {
		if i := b.find(name, sc); i >= 0 {
			return x[i], x[i] != base[i]
		}
		return now, false
	}
	if sc.ref == nil {
		return nil
	}
	e := sc.ref.queue().ECN
	kmax, moved := at(Kmax, float64(e.Kmax))
	ratio, more := at(KminRatio, float64(e.Kmin)/float64(max(e.Kmax, 1)))
	pmax, steeper := at(Pmax, float64(e.Pmax)/float64(100*units.OnePercent))
	if !moved && !more && !steeper {
		return nil
	}
	kmin := float64(e.Kmin)
	if moved || more {
		kmin = b.kmin(sc, kmax, ratio)
	}
	return []model.Edit{
		{Path: sc.class + "ecn.kmin", Value: bytesText(kmin)},
		{Path: sc.class + "ecn.kmax", Value: bytesText(kmax)},
		{Path: sc.class + "ecn.pmax", Value: shareText(pmax)},
	}
}

// kmin is the start of a ramp, as chips can have it: in their steps, and apart from kmax where they ask for that.
func (b *spacer) kmin(sc *scope, kmax, ratio float64) float64 {
	step, _ := ecnSteps(sc)
	kmin := round(kmax*ratio, digits)
	if step > 1 {
		kmin = math.Floor(kmin/step) * step
	}
	kmin = max(kmin, step, 1)
	for i := range sc.places {
		if chip := &sc.places[i].dev.Profile.Chip; chip.ECNApart {
			const steps = 10 // fewer, and marking rises in leaps
			kmin = min(kmin, kmax-steps*max(float64(intent.ECNStep(*chip)), float64(chip.Cell)))
		}
	}
	return max(min(kmin, kmax), 1)
}

// never is a queue that no switch of a scope can have: more than the largest packet buffer.
func (b *spacer) never(sc *scope) float64 {
	most := units.Bytes(0)
	for i := range sc.places {
		d := sc.places[i].dev
		most = max(most, d.Profile.Chip.Buffer, d.Pools.Shared+d.Pools.Headroom)
	}
	if most == 0 {
		most = 256 * units.MB // no chip that is known has more
	}
	step, _ := ecnSteps(sc)
	v := math.Ceil(float64(most)*1.1/float64(units.MB)) * float64(units.MB)
	return math.Ceil(v/max(step, 1)) * max(step, 1)
}

// off is the space's Unmarked; false when a ramp is not among the variables, or when queues of the class would mark all the same.
func (b *spacer) off(s *Space) (func(Setting) Setting, bool) {
	unmark := func(x Setting) Setting {
		out := slices.Clone(x)
		for _, sc := range b.order {
			if kmax, ratio := b.find(Kmax, sc), b.find(KminRatio, sc); kmax >= 0 && ratio >= 0 {
				out[kmax], out[ratio] = b.never(sc), 1
			}
		}
		return out
	}
	if b.class == nil || unmark(s.Base).Key() == s.Base.Key() {
		return nil, false
	}
	g, l := b.f.With(s.Change(unmark(s.Base)).Patch)
	if l.HasErrors() {
		return nil, false
	}
	net, _ := intent.Resolve(g)
	all := scope{space: b}
	for i := range net.Devices {
		b.places(&all, &net.Devices[i])
	}
	most := b.never(&all)
	for i := range all.places {
		if e := all.places[i].queue().ECN; e.On && float64(e.Kmin) < min(most, float64(cmp.Or(all.places[i].dev.Profile.Chip.Buffer, math.MaxInt64))) {
			return nil, false
		}
	}
	return unmark, true
}

// lint is what is wrong with the model with a patch in it, as far as what is moved can be to blame.
func (b *spacer) lint(p model.Patch) diag.List {
	g, found := b.f.With(p)
	if found.HasErrors() {
		return found
	}
	net, more := intent.Resolve(g)
	found.Add(more...)
	if found.HasErrors() {
		return found
	}
	var areas intent.Areas
	for i := range b.knobs {
		if b.knobs[i].sc != nil {
			areas |= intent.AreaSet(b.knobs[i].area)
		}
	}
	found.Add(lint.CheckOf(areas, net, g)...)
	return lint.Weigh(net, found)
}

// checker lints settings, each once: that takes 1 to 2 ms of CPU on a fabric of some dozens of devices, and a setting has 6 runs or more. A rule
// that the model breaks already, and that no setting mends, is no reason against a setting. It may be called by several at once.
func (b *spacer) checker(s *Space, before func() diag.List, mended func() []string) func(Setting) diag.List {
	var mu sync.Mutex
	known := map[string]diag.List{}
	return func(x Setting) diag.List {
		mu.Lock()
		defer mu.Unlock()
		key := x.Key()
		if l, ok := known[key]; ok {
			return l
		}
		var l diag.List
		if len(x) != len(s.Vars) {
			l.Errorf(spaceRule, b.f.Pos, "", "the setting has %s, and the space %s", diag.Count(len(x), "value"), diag.Count(len(s.Vars), "variable"))
			return l
		}
		if patch := s.Change(x).Patch; len(patch) > 0 {
			l = worse(before(), b.lint(patch), mended())
		}
		known[key] = l
		return l
	}
}

// orderRule is broken by a kmin above its kmax: no device holds that, so there is no baseline.
const orderRule = "ecn-order"

// mended are the rules that the model breaks, and that a setting does not which a formula gives.
func (b *spacer) mended(s *Space, before diag.List) []string {
	broken := brokenRules(before)
	if len(broken) == 0 || s.Starts == nil {
		return nil
	}
	var out []string
	for _, x := range s.Starts(s.Base) {
		still := brokenRules(b.lint(s.Change(x.Setting).Patch))
		for rule := range broken {
			if !still[rule] && rule != orderRule && !slices.Contains(out, rule) {
				out = append(out, rule)
			}
		}
	}
	slices.Sort(out)
	return out
}

// brokenRules are the rules of errors.
func brokenRules(l diag.List) map[string]bool {
	broken := map[string]bool{}
	for _, f := range l {
		if f.Severity == diag.Error {
			broken[f.Rule] = true
		}
	}
	return broken
}

// worse is the errors of now that are of no rule that was broken before, but for those that can be mended.
func worse(before, now diag.List, mended []string) diag.List {
	had := brokenRules(before)
	for _, rule := range mended {
		delete(had, rule)
	}
	return slices.DeleteFunc(now, func(f diag.Finding) bool { return f.Severity != diag.Error || had[f.Rule] })
}
