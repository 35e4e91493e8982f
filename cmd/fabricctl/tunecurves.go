package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/tuning"
	"github.com/fabricctl/fabricctl/tuning/report"
	"github.com/fabricctl/fabricctl/tuning/stats"
)

// Limits of what a page shows: beyond them nobody looks.
const (
	mostCurves = 8  // charts of ladders
	leastCurve = 3  // settings that a curve takes
	mostRows   = 24 // of a table under a chart
)

// quantityOf is how values of a variable stand on an axis.
func quantityOf(q tuning.Quantity) report.Quantity {
	switch q {
	case tuning.Factor:
		return report.Factor
	case tuning.Size:
		return report.Bytes
	case tuning.Share:
		return report.Share
	case tuning.Rate:
		return report.Rate
	case tuning.Time:
		return report.Time
	}
	return report.Count
}

// curves are the ladders: what each value of a variable came to, all else equal.
func (p *tunedPage) curves() []report.Block {
	var blocks []report.Block
	shown := 0
	for i := range p.Decisions {
		d := &p.Decisions[i]
		if d.Step == "race" {
			blocks = append(blocks, p.race()...)
			continue
		}
		v := p.moved(d)
		if v < 0 || d.Step == "walk" {
			continue
		}
		arms := p.ladder(d, v)
		if len(arms) < leastCurve {
			continue
		}
		if allAlike(arms) {
			blocks = append(blocks, p.flat(d, v, arms))
			continue
		}
		if shown++; shown <= mostCurves {
			blocks = append(blocks, p.curve(d, v, arms))
		}
	}
	if left := shown - mostCurves; left > 0 {
		blocks = append(blocks, report.Text(diag.Count(left, "more comparison")+" of this kind: see the decisions."))
	}
	for v := range p.vars {
		if shown == 0 {
			if c, ok := p.cloud(v); ok {
				blocks = append(blocks, c)
			}
		}
	}
	if len(blocks) == 0 {
		return nil
	}
	n := 0
	for i := range p.all {
		if p.all[i].Runs > 0 {
			n++
		}
	}
	lead := fmt.Sprintf("%s were measured in %s.", diag.Count(n, "setting"), diag.Count(p.Runs-p.Rejected, "run"))
	if shown > 0 {
		lead += " In each picture one variable moves and all others stand still."
	}
	lead += fmt.Sprintf(" J is the difference to the start, run by run with the same seed. Bars are intervals at %s %%. "+
		"All numbers are over all runs that the journal has of a setting", confidenceText(p.Begin.Looks.Confidence))
	if p.tails {
		lead += "; p99.9 is that of the usual run (the geometric mean)"
	}
	return append([]report.Block{report.Text(lead + ".")}, blocks...)
}

// moved is the variable that a decision is about: the one it names, or the only one in which what it compares differs. -1 when there is
// none.
func (p *tunedPage) moved(d *tuning.Decision) int {
	if d.Variable != "" {
		return slices.IndexFunc(p.vars, func(v tuning.Variable) bool { return v.Name == d.Variable })
	}
	at := -1
	for i := range d.Arms {
		for j := range min(len(p.vars), len(d.Arms[i].Setting), len(d.Arms[0].Setting)) {
			if d.Arms[i].Setting[j] != d.Arms[0].Setting[j] {
				if at >= 0 && at != j {
					return -1
				}
				at = j
			}
		}
	}
	return at
}

// race are the settings that formulas gave, with what each came to.
func (p *tunedPage) race() []report.Block {
	t := p.table("Starts that formulas give, each against what there was.", p.vars, "start")
	why := report.List{}
	names := map[string][]string{} // by setting
	var tried []*tuning.Tried
	var missed []report.Row
	for _, s := range p.h.Said {
		for _, x := range s.Starts {
			key := x.Setting.Key()
			if names[key] = append(names[key], x.Name); len(names[key]) > 1 {
				continue
			}
			if got := p.of(x.Setting); got != nil && got.Runs > 0 {
				tried = append(tried, got)
			} else {
				missed = append(missed, report.Row{Cells: slices.Concat([]string{p.formula(x.Name)}, settingTexts(p.vars, x.Setting), []string{"not tried"})})
			}
			if w := sentence(x.Why); w != "" && !slices.Contains(why, w) && len(why) < mostNotes {
				why = append(why, w)
			}
		}
	}
	bands := p.bands(tried)
	for i := range bands {
		t.Rows = append(t.Rows, p.row(&bands[i], p.formula(names[bands[i].Setting.Key()][0])))
	}
	if t.Rows = append(t.Rows, missed...); len(t.Rows) == 0 {
		return nil
	}
	p.finish(&t, bands)
	return []report.Block{t, why}
}

// formula is the name of a start without the values that its columns have: "0.7 N T_N, steep" of "0.7 N T_N, steep, alpha 1/8".
func (p *tunedPage) formula(name string) string {
	for {
		i := strings.LastIndex(name, ", ")
		if i < 0 || !slices.ContainsFunc(p.vars, func(v tuning.Variable) bool { return strings.HasPrefix(name[i+2:], v.Name+" ") }) {
			return name
		}
		name = name[:i]
	}
}

// table is an empty table of settings: columns of the caller, a column for each variable or for some, those of measured, and one for notes.
func (p *tunedPage) table(caption string, vars []tuning.Variable, before ...string) report.Table {
	t := report.Table{Caption: caption, Head: before}
	for i := range vars {
		t.Head = append(t.Head, vars[i].Name)
	}
	t.Head = append(append(t.Head, p.measuredHead()...), "")
	for i := len(before); i < len(t.Head)-1; i++ {
		t.Numbers = append(t.Numbers, i)
	}
	return t
}

// row is a band in such a table. Which limit it breaks stands below, under the limits.
func (p *tunedPage) row(b *band, before ...string) report.Row {
	note := ""
	if b.Broken != "" {
		note = "breaks a limit"
	} else if b.twin != nil {
		note = b.note(p.vars)
	}
	return report.Row{Cells: slices.Concat(before, b.values(p.vars), p.measured(b), []string{note}), Strong: p.changed() && b.Setting.Key() == p.best.Key()}
}

// finish takes away the column for notes where there are none, and says what rows of several values are.
func (p *tunedPage) finish(t *report.Table, bands []band) {
	last := len(t.Head) - 1
	if !slices.ContainsFunc(t.Rows, func(r report.Row) bool { return len(r.Cells) > last && r.Cells[last] != "" }) {
		t.Head = t.Head[:last]
	}
	if slices.ContainsFunc(bands, func(b band) bool { return len(b.all) > 1 }) {
		t.Caption = strings.TrimSpace(t.Caption + " Rows of several values are settings that no run tells apart: the same packets at each.")
	}
}

// flat is a ladder that changes nothing: one row says it all.
func (p *tunedPage) flat(d *tuning.Decision, v int, arms []*tuning.Tried) report.Table {
	t := p.table(sentence(fmt.Sprintf("%s: the same packets at every level, in each run that they share, so there is no picture; %s does nothing here, as far as this load goes", stepName(d), p.vars[v].Name)), p.vars)
	b := band{Tried: slices.MaxFunc(arms, func(x, y *tuning.Tried) int { return cmp.Compare(x.Runs, y.Runs) }), all: arms, at: v}
	t.Rows = []report.Row{{Cells: p.row(&b).Cells}} // it is all the same
	p.finish(&t, nil)
	return t
}

// ladder are the settings of a decision that differ from one another in variable v alone, by its value.
func (p *tunedPage) ladder(d *tuning.Decision, v int) []*tuning.Tried {
	var arms []*tuning.Tried
	add := func(s tuning.Setting) {
		t := p.of(s)
		if t == nil || t.Runs == 0 || slices.Contains(arms, t) {
			return
		}
		for j := range p.vars {
			if len(arms) > 0 && j != v && s[j] != arms[0].Setting[j] {
				return
			}
		}
		arms = append(arms, t)
	}
	for i := range d.Arms {
		add(d.Arms[i].Setting)
	}
	add(d.From)
	slices.SortFunc(arms, func(a, b *tuning.Tried) int { return cmp.Compare(a.Setting[v], b.Setting[v]) })
	return arms
}

// curve is a ladder as a picture.
func (p *tunedPage) curve(d *tuning.Decision, v int, arms []*tuning.Tried) report.Picture {
	c := p.chart(v, arms, true)
	c.Title = stepName(d)
	c.Caption = "With " + p.others(v, arms[0].Setting) + "."
	if len(p.vars) == 1 {
		c.Caption = ""
	}
	if arms[0].Unmarked {
		c.Caption = "Without ECN: marking begins beyond what the buffer holds."
	}
	place := func(name string, s tuning.Setting) {
		if slices.ContainsFunc(arms, func(t *tuning.Tried) bool { return t.Setting.Key() == s.Key() }) {
			c.Places = append(c.Places, report.Place{Name: name, X: s[v]})
		}
	}
	if d.From.Key() == d.To.Key() {
		place("kept", d.From)
	} else {
		place("before", d.From)
		place("after", d.To)
	}
	numbers, bands := p.table(strings.TrimSpace(c.Title+". "+c.Caption), p.vars[v:v+1]), p.bands(arms[:min(len(arms), mostRows)])
	for i := range bands {
		row := p.row(&bands[i])
		last := len(row.Cells) - 1
		row.Cells = slices.Concat(row.Cells[v:v+1], row.Cells[len(p.vars):last], []string{cmp.Or(bands[i].Broken, row.Cells[last])}) // there is room for it
		numbers.Rows = append(numbers.Rows, row)
	}
	p.finish(&numbers, bands)
	return report.Picture{Chart: c, Numbers: numbers}
}

// others are the values of all variables but one.
func (p *tunedPage) others(v int, s tuning.Setting) string {
	vars, values := slices.Delete(slices.Clone(p.vars), v, v+1), slices.Delete(slices.Clone(s), v, v+1)
	return tuning.SettingText(vars, values)
}

// chart is J, goodput and p99.9 of settings over the values of a variable.
func (p *tunedPage) chart(v int, arms []*tuning.Tried, joined bool) report.Chart {
	x := &p.vars[v]
	var at []float64
	for _, t := range arms {
		at = append(at, t.Setting[v])
	}
	c := report.Chart{X: report.Axis{Label: x.Name, Of: quantityOf(x.Of)}, LogX: !x.Linear && slices.Min(at) > 0}
	marks := func(of func(*tuning.Tried) stats.Interval) []report.Marks {
		good, bad := report.Marks{Name: "tried", Joined: joined}, report.Marks{Name: "breaks a limit"}
		for i, t := range arms {
			y := of(t)
			m := &good
			if t.Broken != "" {
				m = &bad
			}
			if y.N < 2 {
				y.Low, y.High = math.NaN(), math.NaN()
			}
			if y.N == 0 {
				y.Est = math.NaN()
			}
			m.X, m.Y, m.Low, m.High = append(m.X, at[i]), append(m.Y, y.Est), append(m.Low, y.Low), append(m.High, y.High)
		}
		if len(bad.X) == 0 {
			good.Name = ""
			return []report.Marks{good}
		}
		return []report.Marks{good, bad}
	}
	j := func(t *tuning.Tried) stats.Interval {
		switch {
		case t.Setting.Key() == p.start.Key():
			return stats.Interval{N: 1}
		case t.J == nil:
			return stats.Interval{}
		}
		return *t.J
	}
	c.Panels = []report.Panel{
		{Y: report.Axis{Label: "J against the start", Of: report.Share}, Free: true, Marks: marks(j), Levels: []report.Level{{Name: "start"}}},
		{Y: report.Axis{Label: "goodput", Of: report.Rate}, Free: true, Marks: marks(func(t *tuning.Tried) stats.Interval { return t.Goodput })},
	}
	if slices.ContainsFunc(arms, func(t *tuning.Tried) bool { return t.Tail.N > 0 }) {
		c.Panels = append(c.Panels, report.Panel{Y: report.Axis{Label: "p99.9", Of: report.Time}, LogY: true, Marks: marks(func(t *tuning.Tried) stats.Interval { return t.Tail })})
	}
	return c
}

// cloud is all settings over the values of a variable, for methods that have no ladders.
func (p *tunedPage) cloud(v int) (report.Picture, bool) {
	var arms []*tuning.Tried
	values := map[float64]bool{}
	for i := range p.all {
		if t := &p.all[i]; t.Runs > 0 && !t.Unmarked {
			arms = append(arms, t)
			values[t.Setting[v]] = true
		}
	}
	if len(values) < 2 {
		return report.Picture{}, false
	}
	c := p.chart(v, arms, false)
	c.Panels = c.Panels[:1]
	c.Panels[0].Tall = true
	c.Title, c.Caption = "all settings by "+p.vars[v].Name, "Other variables move too, so that points above one another differ in those."
	c.Places = []report.Place{{Name: "start", X: p.start[v]}}
	if p.best[v] != p.start[v] {
		c.Places = append(c.Places, report.Place{Name: "chosen", X: p.best[v]})
	}
	return report.Picture{Chart: c}, true
}

// pareto is every setting by goodput and latency, and those that nothing beats.
func (p *tunedPage) pareto() []report.Block {
	edge := slices.DeleteFunc(p.those(p.front(p.Outcome)), func(t *tuning.Tried) bool { return t.Tail.N == 0 })
	marks, n := p.kinds(edge)
	if n < 2 {
		return nil
	}
	table := p.table("To choose among, should latency weigh more or less with you than in J (--exchange moves J there): settings that nothing tried surely beats in one of the two without being worse in the other.", p.vars)
	rows := p.bands(edge)
	for i := range rows[:min(len(rows), mostRows)] {
		table.Rows = append(table.Rows, p.row(&rows[i]))
	}
	if len(rows) > mostRows {
		table.Caption += fmt.Sprintf(" The first %d of %d.", mostRows, len(rows))
	}
	p.finish(&table, rows)
	c := report.Chart{
		Title: "Goodput against p99.9", Caption: "Each point is a setting: to the right is more goodput, further down is less latency. Along the edge one is had for the other; the exchange rate of J picks the place.",
		X: report.Axis{Label: "goodput", Of: report.Rate}, Panels: []report.Panel{{Y: report.Axis{Label: "p99.9", Of: report.Time}, LogY: true, Tall: true, Marks: marks}},
	}
	return []report.Block{report.Picture{Chart: c, Numbers: table}}
}

// kinds are the settings whose latency is known as points, by what they are, and how many there are.
func (p *tunedPage) kinds(edge []*tuning.Tried) (marks []report.Marks, n int) {
	const tried, unbeaten, start, chosen, bare, broken = 0, 1, 2, 3, 4, 5
	kinds := []report.Marks{
		tried: {Name: "tried"}, unbeaten: {Name: "nothing surely beats it"}, start: {Name: "start", Big: true}, chosen: {Name: "chosen", Big: true},
		bare: {Name: "without ECN"}, broken: {Name: "breaks a limit"},
	}
	put := func(kind int, t *tuning.Tried) {
		m := &kinds[kind]
		m.X, m.Y = append(m.X, t.Goodput.Est), append(m.Y, t.Tail.Est)
	}
	for i := range p.all {
		t := &p.all[i]
		if t.Runs == 0 || t.Tail.N == 0 {
			continue
		}
		n++
		switch key := t.Setting.Key(); {
		case key == p.start.Key():
			put(start, t)
		case key == p.best.Key():
			put(chosen, t)
		case t.Broken != "":
			put(broken, t)
		case t.Unmarked:
			put(bare, t)
		default:
			put(tried, t)
		}
	}
	for _, t := range edge {
		put(unbeaten, t)
	}
	return slices.DeleteFunc(kinds, func(m report.Marks) bool { return len(m.X) == 0 }), n
}

// spreads are the standard deviations of ln goodput and ln p99.9 of runs of the start; 0 of what was not measured.
func (p *tunedPage) spreads() (good, tail float64) {
	var gs, ts []float64
	for _, s := range p.h.Samples(p.start) {
		gs = append(gs, math.Log(max(s.Goodput, 1)))
		if s.P999 > 0 {
			ts = append(ts, math.Log(s.P999))
		}
	}
	if len(gs) > 1 {
		good = stats.SD(gs)
	}
	if len(ts) > 1 {
		tail = stats.SD(ts)
	}
	return good, tail
}

// noise is how far runs of one setting are apart, what that lets one see, and whether the baseline has moved.
func (p *tunedPage) noise() []report.Block {
	samples := p.h.Samples(p.start)
	if len(samples) < 2 {
		return nil
	}
	good, tail := p.spreads()
	words := fmt.Sprintf("Runs of the start differ by %.1f %% in goodput (standard deviation, %s)", 100*good, diag.Count(len(samples), "run"))
	if tail > 0 {
		words += fmt.Sprintf(", and by %.1f %% in p99.9", 100*tail)
	}
	words += "."
	if good > 0 {
		words += fmt.Sprintf(" To see a difference of 1 %% in goodput between settings whose runs have nothing in common would take about %s of each", diag.Count(stats.Repeats(good, 0.01, 0, 0.05, 0.8), "run"))
		if tail > 0 {
			words += fmt.Sprintf(", one of 10 %% in p99.9 about %d", stats.Repeats(tail, 0.1, 0, 0.05, 0.8))
		}
		words += " (four times in five, at 95 %)."
	}
	c := report.Chart{
		Title: "The same settings over time", X: report.Axis{Label: "number of the run", Of: report.Count},
		Caption: "A line that goes up or down is a drift of the surroundings, and not noise.",
	}
	goods, tails := report.Panel{Y: report.Axis{Label: "goodput", Of: report.Rate}, Free: true}, report.Panel{Y: report.Axis{Label: "p99.9", Of: report.Time}, LogY: true}
	settings := []struct {
		name string
		of   []tuning.Sample
	}{{"start", samples}}
	if p.changed() {
		settings = append(settings, struct {
			name string
			of   []tuning.Sample
		}{"chosen", p.h.Samples(p.best)})
	}
	table := report.Table{Head: []string{"setting", "runs", "goodput, first half", "second half"}, Numbers: []int{1, 2, 3}}
	for _, s := range settings {
		g, l := report.Marks{Name: s.name, Joined: true}, report.Marks{Name: s.name, Joined: true}
		for _, x := range s.of {
			g.X, g.Y = append(g.X, float64(x.N)), append(g.Y, x.Goodput)
			if x.P999 > 0 {
				l.X, l.Y = append(l.X, float64(x.N)), append(l.Y, x.P999)
			}
		}
		goods.Marks = append(goods.Marks, g)
		if len(l.X) > 0 {
			tails.Marks = append(tails.Marks, l)
		}
		if half := len(g.Y) / 2; half > 0 {
			table.Rows = append(table.Rows, report.Row{Cells: []string{s.name, strconv.Itoa(len(g.Y)), rate(units.BitRate(stats.Mean(g.Y[:half]))), rate(units.BitRate(stats.Mean(g.Y[half:])))}})
		}
	}
	c.Panels = []report.Panel{goods}
	if len(tails.Marks) > 0 {
		c.Panels = append(c.Panels, tails)
	}
	return []report.Block{report.Text(words), report.Picture{Chart: c, Numbers: table}}
}

// limits is what no setting was to break, what broke it, and which runs were not used.
func (p *tunedPage) limits() []report.Block {
	b := &p.Begin
	rules := report.List{"No packet of a lossless class is lost, no PFC watchdog acts, and nothing is out of sequence: a setting with any of these never wins."}
	if b.Objective.PausedMost > 0 {
		rules = append(rules, fmt.Sprintf("No port is stopped by a switch for more than %.1f %% of the time.", 100*b.Objective.PausedMost))
	}
	if b.Guarded {
		rules = append(rules, fmt.Sprintf("More than %s lost in one run, or %s of a watchdog, ends the experiment and brings the baseline back.", diag.Count(int(min(b.Limits.Drops, math.MaxInt32)), "packet"), diag.Count(int(min(b.Limits.Watchdog, math.MaxInt32)), "event")))
		if b.Limits.Pausing > 0 {
			rules = append(rules, fmt.Sprintf("So does a host that stops its switch for more than %g %% of a run.", 100*b.Limits.Pausing))
		}
	}
	if o := p.Outcome; o != nil && o.Trip != "" {
		rules = append(rules, sentence("This one ended so: "+o.Trip))
	}
	if t := p.of(p.best); t != nil && t.Runs > 0 {
		name := "the start"
		if p.changed() {
			name = "what was chosen"
		}
		if t.Broken == "" {
			rules = append(rules, fmt.Sprintf("In %s of %s none was broken; that bounds the chance of it in one run to about %.1f %% (95 %%), and no further.", diag.Count(t.Runs, "run"), name, 100*stats.NoneSeen(t.Runs, 0.95)))
		}
	}
	blocks := []report.Block{rules}
	broken := report.Table{Caption: "Settings that break a limit:", Head: []string{"setting", "what", "runs"}, Numbers: []int{2}}
	for i := range p.all {
		if t := &p.all[i]; t.Broken != "" && len(broken.Rows) < mostRows {
			broken.Rows = append(broken.Rows, report.Row{Cells: []string{tuning.SettingText(p.vars, t.Setting), t.Broken, strconv.Itoa(t.Runs)}})
		}
	}
	if len(broken.Rows) > 0 {
		blocks = append(blocks, broken)
	}
	rejected := report.Table{Caption: "Runs that were not used:", Head: []string{"run", "why"}, Numbers: []int{0}}
	for i := range p.h.Trials {
		n := p.h.Trials[i].N
		if m := p.h.Measures[n]; m != nil && m.Rejected != nil && len(rejected.Rows) < mostRows {
			rejected.Rows = append(rejected.Rows, report.Row{Cells: []string{strconv.Itoa(n), m.Rejected.Code + ": " + m.Rejected.Why}})
		}
	}
	if len(rejected.Rows) > 0 {
		blocks = append(blocks, rejected)
	}
	return blocks
}
