package tuning

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/fabricctl/fabricctl/tuning/stats"
)

// race is a comparison of where we are with others, looked at again and again until one is left.
type race struct {
	t           *tuner
	cur         *arm
	alive       []*arm
	dropped     []Arm
	first, most int
	looks       int
	rivals      int // arms besides cur that were there in the beginning
	same        int // of these, arms that nothing can tell from cur
}

// race compares cur with candidates and moves to the best. An arm is dropped only when it is surely worse than the one that leads, or breaks
// a limit; what is within a tie of the leader keeps its place. most is how many runs an arm gets at most.
func (t *tuner) race(ctx context.Context, cands []*arm, most int) (*Decision, error) {
	from := t.cur
	r := &race{t: t, cur: from, first: t.e.Looks.First, most: most, alive: []*arm{from}}
	for _, a := range cands {
		if a != nil && a.left == "" && !slices.Contains(r.alive, a) {
			r.alive = append(r.alive, a)
		}
	}
	if len(r.alive) == 1 {
		return nil, nil
	}
	if a := t.anchor(); a != nil && !slices.Contains(r.alive, a) {
		r.alive = append(r.alive, a)
	}
	before := t.fresh(r.alive)
	r.rivals = len(r.alive) - 1
	all := slices.Clone(r.alive)
	var lead *arm
	for n := min(2, r.first); ; {
		if err := t.bring(ctx, n, r.alive...); err != nil {
			if !errors.Is(err, errBudget) || r.looks == 0 {
				return nil, err
			}
			d, e := r.verdict(all, lead) // what was seen until here is not lost
			return d, cmp.Or(e, err)
		}
		if n < r.first {
			if r.twins(n); len(r.alive) > 1 {
				n = r.first
				continue
			}
		}
		if r.looks == 0 && t.drifted(before, from) {
			if err := t.notice(driftWords); err != nil {
				return nil, err
			}
			before = t.fresh(r.alive)[:0] // what it is now is what counts from here on
			continue
		}
		r.looks++
		lead = r.look(n)
		if len(r.alive) == 1 || n >= r.most || r.even(lead) {
			break
		}
		n = min(n+t.e.Looks.Every, r.most)
	}
	return r.verdict(all, lead)
}

// anchor is the best of where we were before, when by the runs that both have it is better than where we are by more than a tie: steps that
// luck made are taken back. Where runs are forgotten nobody can tell.
func (t *tuner) anchor() (best *arm) {
	o := &t.e.Objective
	if t.drifts || o.Lexicographic {
		return nil
	}
	for _, a := range t.held {
		if a.left != "" || a == t.cur || a.broken(o) != "" || common(a, t.cur) < 2 || t.value(a, t.cur, common(a, t.cur)) <= o.Tie {
			continue
		}
		if best == nil || t.value(a, best, common(a, best)) > 0 {
			best = a
		}
	}
	return best
}

// twins drops the arms whose runs nobody can tell from those of cur.
func (r *race) twins(n int) {
	r.alive = slices.DeleteFunc(r.alive, func(a *arm) bool {
		if a == r.cur || a.n() < n || r.cur.n() < n || !a.same(r.cur, n) {
			return false
		}
		r.same++
		r.dropped = append(r.dropped, a.shown("no packet took another time than with what there is, under the same seeds"))
		return true
	})
}

// look drops what is surely worse, and returns the arm that leads.
func (r *race) look(n int) *arm {
	o := &r.t.e.Objective
	r.alive = slices.DeleteFunc(r.alive, func(a *arm) bool {
		why := a.left
		if why == "" {
			why = a.broken(o)
		}
		if why == "" || a == r.cur && a.left == "" { // where we are is compared with whatever limit it breaks
			return false
		}
		r.dropped = append(r.dropped, a.shown(why))
		return true
	})
	n = min(n, common(r.alive...))
	lead := r.lead(n)
	conf := r.t.e.Looks.Confidence
	r.alive = slices.DeleteFunc(r.alive, func(a *arm) bool {
		if a == lead || a == r.cur {
			return false
		}
		x, worse := r.t.worse(a, lead, conf)
		if worse {
			r.dropped = append(r.dropped, a.shown(fmt.Sprintf("%+.1f%% against the one that led, at most %+.1f%%", 100*x.Est, 100*x.High)))
		}
		return worse
	})
	if _, worse := r.t.worse(r.cur, lead, conf); worse && lead != r.cur { // it is beaten; it stays only to be compared with
		if rest := len(r.alive); rest == 2 {
			r.alive = []*arm{lead}
		}
	}
	return lead
}

// lead is the best arm by its mean, of those that break no limit.
func (r *race) lead(n int) *arm {
	o := &r.t.e.Objective
	var lead *arm
	for _, a := range r.alive {
		if a == r.cur && a.broken(o) != "" {
			continue
		}
		if lead == nil || r.t.value(a, lead, n) > 0 {
			lead = a
		}
	}
	if lead == nil {
		return r.cur
	}
	if !o.Lexicographic {
		return lead
	}
	return r.first2(lead, n)
}

// first2 is of a lexicographic objective: of all within a tie of the best goodput, the one with the least latency.
func (r *race) first2(best *arm, n int) *arm {
	o := &r.t.e.Objective
	lead := best
	for _, a := range r.alive {
		if a.broken(o) == "" && a.mean(byGood, n) >= best.mean(byGood, n)-o.Tie && a.mean(byTail, n) < lead.mean(byTail, n) {
			lead = a
		}
	}
	return lead
}

// value is how much better a is than b in what comes first, by their first n runs.
func (t *tuner) value(a, b *arm, n int) float64 {
	return a.mean(t.main(), n) - b.mean(t.main(), n)
}

// main is what comes first.
func (t *tuner) main() metric {
	if t.e.Objective.Lexicographic {
		return byGood
	}
	return byJ
}

// worse reports whether a is surely worse than b. Of a lexicographic objective that is a goodput that is worse by more than a tie, or
// else a latency that is worse while goodput is not better.
func (t *tuner) worse(a, b *arm, conf float64) (stats.Interval, bool) {
	x := t.against(a, b, t.main(), conf)
	if !t.e.Objective.Lexicographic {
		return x, x.High < 0
	}
	if x.High < -t.e.Objective.Tie {
		return x, true
	}
	q := t.against(a, b, byTail, conf)
	return q, q.Low > 0 && x.Est <= t.e.Objective.Tie
}

// even reports whether all that are left are surely within a tie of the leader: more runs would tell nobody anything.
func (r *race) even(lead *arm) bool {
	for _, a := range r.alive {
		x := r.t.against(a, lead, r.t.main(), r.t.e.Looks.Confidence)
		if a != lead && (math.Abs(x.Low) > r.t.e.Objective.Tie || math.Abs(x.High) > r.t.e.Objective.Tie) {
			return false
		}
		if a != lead && r.t.e.Objective.Lexicographic {
			return false
		}
	}
	return true
}

// verdict concludes, and moves.
func (r *race) verdict(all []*arm, lead *arm) (*Decision, error) {
	t, cur := r.t, r.cur
	d := Decision{From: cur.setting, To: cur.setting, Looks: r.looks, Verdict: NoDifference}
	o := &t.e.Objective
	best := lead
	lead = r.fuller(all, best)
	rival := lead // what cur is compared with: the leader, or the best of the others
	switch {
	case lead != cur:
	case best != cur:
		rival = best
	default:
		rival = r.second(all)
	}
	curBroken := cmp.Or(cur.left, cur.broken(o))
	switch {
	case r.same == r.rivals:
		d.Verdict, d.Reason = NoEffect, fmt.Sprintf("nothing changes: no packet took another time in any of %d settings, under the same seeds", r.rivals)
	case rival == nil:
		d.Reason = "every other setting was left out"
		if curBroken != "" {
			d.Verdict, d.Reason = Infeasible, "no setting was within the limits: "+curBroken
		}
	default:
		t.compare(&d, rival, cur, r.rivals)
		r.judge(&d, rival, lead, curBroken)
		if lead != best && curBroken == "" && d.J != nil {
			r.judgeFuller(&d, best, lead)
		}
	}
	for _, a := range all {
		if i := slices.IndexFunc(r.dropped, func(x Arm) bool { return x.Setting.Key() == a.key }); i >= 0 {
			d.Arms = append(d.Arms, r.dropped[i])
			continue
		}
		d.Arms = append(d.Arms, a.shown(""))
	}
	if d.To.Key() == cur.key && cur.left != "" {
		r.retreat(&d)
	}
	if d.To.Key() != cur.key {
		to := t.armOf(d.To)
		if n := common(to, cur); n > 0 {
			t.below = max(t.below-t.value(to, cur, n), 0)
		}
		t.held = append(t.held, cur)
		t.cur = to
	}
	return t.decide(d)
}

// retreat goes back to where the search came from, since nothing can be compared with a setting that is not run any more.
func (r *race) retreat(d *Decision) {
	back := r.t.start // which is never left
	for _, a := range r.t.held {
		if a.left == "" && a.broken(&r.t.e.Objective) == "" {
			back = a
		}
	}
	d.To, d.Verdict = back.setting, Infeasible
	d.Reason = fmt.Sprintf("%s is given up: %s; the search goes on from %s", r.t.words(r.cur.setting), r.cur.left, r.t.words(back.setting))
}

// even is the difference in J that goodput decides: latencies of the tail vary much more from run to run than goodput does, so that settings
// which J can hardly tell apart may differ surely in what they carry.
const even = 0.01

// fuller is, of all that are within even of the best by J, the one with the most goodput, where that is surely more than the best has.
func (r *race) fuller(all []*arm, best *arm) *arm {
	t := r.t
	if t.e.Objective.Lexicographic || t.tail <= 0 {
		return best
	}
	lead := best
	for _, a := range all {
		if a == lead || a.left != "" || a.broken(&t.e.Objective) != "" || common(a, best) < r.first {
			continue
		}
		n := common(a, best)
		if k := common(a, r.cur); t.drifts && k > 0 && r.cur.broken(&t.e.Objective) == "" && t.value(a, r.cur, k) < t.below-even {
			continue // of the best before there are no runs to compare with
		}
		if t.value(a, best, n) >= -even && t.against(a, best, byGood, t.e.Looks.Confidence).Low > 0 && a.mean(byGood, n) > lead.mean(byGood, min(n, lead.n())) {
			lead = a
		}
	}
	return lead
}

// judgeFuller says that goodput has decided.
func (r *race) judgeFuller(d *Decision, best, lead *arm) {
	t := r.t
	n := common(lead, best)
	j, good := t.value(lead, best, n), lead.mean(byGood, n)-best.mean(byGood, n)
	d.To, d.Verdict = lead.setting, Plateau
	d.Reason = fmt.Sprintf("goodput decides, since J is within %.0f%% (%+.1f%%): %+.1f%% against %s", 100*even, 100*j, 100*good, t.words(best.setting))
	if lead != r.cur {
		d.Reason = t.change(r.cur.setting, lead.setting) + "; " + d.Reason
	}
}

// second is the best of the others.
func (r *race) second(all []*arm) (best *arm) {
	for _, a := range all {
		if a == r.cur || a.n() < 2 || a.broken(&r.t.e.Objective) != "" {
			continue
		}
		if best == nil || r.t.value(a, best, common(a, best)) > 0 {
			best = a
		}
	}
	return best
}

// compare fills in the intervals of a against b. With several rivals each is held to a higher confidence, so that all together are not
// called better too often (Bonferroni).
func (t *tuner) compare(d *Decision, a, b *arm, rivals int) {
	conf := 1 - (1-t.e.Looks.Confidence)/float64(max(rivals, 1))
	j, good, tail := t.against(a, b, byJ, conf), t.against(a, b, byGood, conf), t.against(a, b, byTail, conf)
	if j.N < 2 {
		return
	}
	d.J, d.Goodput = &j, &good
	if t.tail > 0 {
		d.Tail = &tail
	}
}

// judge says what the comparison of rival with cur came to.
func (r *race) judge(d *Decision, rival, lead *arm, broken string) {
	t := r.t
	o := &t.e.Objective
	main := d.J
	if o.Lexicographic {
		main = d.Goodput
	}
	switch {
	case broken != "" && lead != r.cur:
		d.To, d.Verdict, d.Reason = lead.setting, Better, fmt.Sprintf("%s; with what there was, %s", t.change(r.cur.setting, lead.setting), broken)
		return
	case main == nil:
		d.Verdict, d.Reason = Undecided, "there were too few runs to compare"
		return
	}
	gain := main.Est
	switch {
	case lead == r.cur && main.High < 0:
		d.Verdict, d.Reason = Worse, fmt.Sprintf("the best of the others is worse: %s, %s", t.change(r.cur.setting, rival.setting), t.difference(d))
	case o.Lexicographic && lead != r.cur && t.prefers(d, o):
		d.To, d.Verdict = lead.setting, Better
		d.Reason = t.change(r.cur.setting, lead.setting) + ": " + t.difference(d)
	case o.Lexicographic || lead == r.cur || gain <= o.Tie:
		d.Verdict, d.Reason = NoDifference, fmt.Sprintf("what there is is kept: %s makes %s", t.change(r.cur.setting, rival.setting), t.difference(d))
	case main.Low > 0:
		d.To, d.Verdict, d.Reason = lead.setting, Better, t.change(r.cur.setting, lead.setting)+": "+t.difference(d)
	default:
		d.To, d.Verdict = lead.setting, Undecided
		d.Reason = fmt.Sprintf("the search goes on from %s, which looks better and is not surely so: %s", t.change(r.cur.setting, lead.setting), t.difference(d))
	}
}

// prefers reports whether a lexicographic objective surely prefers what was compared: more goodput than a tie, or less latency with no less
// goodput than that.
func (t *tuner) prefers(d *Decision, o *Objective) bool {
	return d.Goodput.Low > 0 && d.Goodput.Est > o.Tie || d.Tail != nil && d.Tail.High < 0 && d.Goodput.Est > -o.Tie
}
