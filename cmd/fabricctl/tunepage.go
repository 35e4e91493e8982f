package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/tuning"
	"github.com/fabricctl/fabricctl/tuning/report"
	"github.com/fabricctl/fabricctl/tuning/stats"
)

// tunedPage is an experiment on its way to a page.
type tunedPage struct {
	*tuneJSON
	*triedSet
	h       *tuning.History
	edit    modelEdit
	command func(words ...string) string // of fabricctl, to be pasted
}

// modelEdit is what a result changes in the files of its model.
type modelEdit struct {
	diff string // as tune diff shows it; "" where it cannot be shown
	why  string // it cannot
}

// tunePage is an experiment as a page: the answer first, and behind it what it rests on.
func tunePage(r *tuneJSON, h *tuning.History, edit modelEdit, command func(words ...string) string) report.Page {
	p := tunedPage{tuneJSON: r, triedSet: triedWhole(r, h), h: h, edit: edit, command: command}
	c := &r.Begin.Context
	page := report.Page{
		Title:    fmt.Sprintf("Tuning of class %s of %s", c.Class, c.Fabric),
		Subtitle: fmt.Sprintf("%s, %s, experiment %s of %s", loadName(r.Begin.Load, r.Begin.Workload), runnerText(c), r.ID, r.Begin.At.UTC().Format("2006-01-02")),
		Answer:   p.answer(),
		Facts:    p.facts(),
		Foot:     fmt.Sprintf("Written by fabricctl %s from the journal of experiment %s. J = %s; a difference of 0.01 is called 1 %%.", toolVersion(), r.ID, objectiveText(&r.Begin.Objective)),
	}
	for _, s := range []report.Section{
		{Title: "What to set", Blocks: p.change()},
		{Title: "What was tried", Blocks: p.curves()},
		{Title: "Goodput against latency", Blocks: p.pareto()},
		{Title: "Decisions", Blocks: p.decisions()},
		{Title: "Noise", Blocks: p.noise()},
		{Title: "Limits", Blocks: p.limits()},
		{Title: "What was not tested", Blocks: p.untested()},
		{Title: "What it was made with", Blocks: p.context()},
		{Title: "Do it again", Blocks: p.again()},
	} {
		if len(s.Blocks) > 0 {
			page.Sections = append(page.Sections, s)
		}
	}
	return page
}

// answer is what a reader takes along.
func (p *tunedPage) answer() report.Answer {
	o := p.Outcome
	if o == nil {
		return report.Answer{Tone: report.Careful, Head: "There is no answer yet.", Text: []string{sentence(stateWords(p.tuneJSON)), sentence(diag.Count(p.Runs, "run") + " until now")}}
	}
	a := report.Answer{Tone: report.Plain, Head: "Leave the settings as they are.", Text: []string{sentence(o.Words)}}
	if p.State == tuning.Stopped && !o.Spent {
		a.Head, a.Text = "There is no answer: the experiment was interrupted.", []string{sentence("ended by: " + o.Words)}
	}
	if p.changed() {
		a.Tone, a.Head, a.Text = report.Good, sentence("Set "+p.differs(p.start, p.best)), nil
		if c := o.Confirmed; c != nil && c.J != nil && c.J.Low > 0 {
			a.Text = append(a.Text, sentence(fmt.Sprintf("On %s on seeds that no decision has seen, J changes by %s", diag.Plural(c.J.N, "pair of runs", "pairs of runs"), effectText(c.J))), p.weighs())
		} else if c != nil { // what was wanted is not a gain: the least value that holds
			a.Text = append(a.Text, sentence(c.Reason))
		} else {
			a.Text = append(a.Text, sentence(o.Words))
		}
		a.Text = append(a.Text, p.idle()...)
	}
	if u := p.Looked; u != nil {
		a.Text = append(a.Text, sentence("What looked best is "+u.words()), sentence("It is not the answer: "+u.Why))
	}
	if words := p.unheld(); words != "" {
		a.Tone, a.Head, a.Text = report.Bad, "What there is breaks a limit, and nothing better was found.", append(a.Text, sentence(words))
	}
	switch o.Verdict {
	case tuning.HostBound:
		a.Tone, a.Head = report.Bad, "It is not the fabric: a host is slow."
	case tuning.WrongClass:
		a.Tone, a.Head = report.Bad, "Nothing can be said: the load does not run in this class."
	case tuning.Infeasible:
		a.Tone = report.Bad
	case tuning.Undecided:
		a.Tone = report.Careful
	}
	if g := p.Gate; g != nil && !g.Passed {
		a.Tone = report.Bad
		a.Text = append(a.Text, sentence("The gate failed, so nothing is written back: "+g.Why))
	} else if g != nil {
		a.Text = append(a.Text, sentence("The gate passed: "+g.Why))
	}
	if p.State != tuning.Done {
		a.Tone = max(a.Tone, report.Careful)
		a.Text = append(a.Text, sentence("The experiment did not reach its end: "+stateWords(p.tuneJSON)))
	}
	if p.State == tuning.NeedsHands {
		a.Tone, a.Head = report.Bad, "The devices need hands: the baseline is not back."
		a.Text = append(a.Text, sentence(o.Left))
	}
	if by := tunedBy(&p.Begin.Context); by == modelsAnswer {
		a.Text = append(a.Text, sentence("This is "+by))
	} else {
		a.Text = append(a.Text, sentence("It was "+by))
	}
	return a
}

// idle says which variables do nothing, and which of them the result has moved all the same.
func (p *tunedPage) idle() []string {
	names, along := tuning.Idle(p.vars, p.Decisions, p.start, p.best)
	if len(names) == 0 || len(names) == len(p.vars) {
		return nil
	}
	words := []string{sentence(diag.And(names) + diag.Agree(len(names), " does", " do") + " nothing here, as far as this load goes")}
	if n := len(along); n > 0 {
		words = append(words, sentence(fmt.Sprintf("%s %s moved together with others all the same; to keep what there is, leave %s out of the variables that are moved", diag.And(along), diag.Agree(n, "was", "were"), diag.Agree(n, "it", "them"))))
	}
	return words
}

// sentence is words with a capital and a full stop.
func sentence(s string) string {
	s = strings.TrimSpace(diag.OneLine(s))
	if s == "" {
		return ""
	}
	if c := s[0]; c >= 'a' && c <= 'z' && !strings.ContainsAny(strings.SplitN(s, " ", 2)[0], "/@.") {
		s = string(c-'a'+'A') + s[1:]
	}
	if !strings.ContainsAny(s[len(s)-1:], ".!?:") {
		s += "."
	}
	return s
}

// differs is "kmax to 1.6MB and alpha to 1/8".
func (p *tunedPage) differs(from, to tuning.Setting) string {
	var parts []string
	for i := range p.vars {
		if from[i] != to[i] {
			parts = append(parts, p.vars[i].Name+" to "+p.vars[i].Text(to[i]))
		}
	}
	return diag.And(parts)
}

// facts are the few numbers behind the answer.
func (p *tunedPage) facts() []report.Fact {
	var fs []report.Fact
	start, best := p.of(p.start), p.of(p.best)
	var c *tuning.Decision
	if p.Outcome != nil && p.changed() {
		c = p.Outcome.Confirmed
	}
	switch {
	case c != nil && c.Goodput != nil:
		before, after := p.confirmed(c)
		f := report.Fact{Name: "goodput", Value: changePercent(c.Goodput), Note: rangeText(changed(c.Goodput))}
		if before != nil && after != nil {
			f.Value, f.Note = goodputOf(after), "from "+goodputOf(before)+" on fresh seeds"+withEffect(c.Goodput)
		}
		fs = append(fs, f)
		if c.Tail == nil {
			break
		}
		f = report.Fact{Name: "p99.9", Value: changePercent(c.Tail), Note: rangeText(changed(c.Tail))}
		if before != nil && after != nil {
			f.Value, f.Note = tailOf(after), "from "+tailOf(before)+" on fresh seeds"+withEffect(c.Tail)
		}
		fs = append(fs, f)
	case best != nil && best.Runs > 0:
		fs = append(fs, report.Fact{Name: "goodput", Value: rate(units.BitRate(best.Goodput.Est)), Note: spread(best.Goodput, func(v float64) string { return rate(units.BitRate(v)) })})
		if best.Tail.N > 0 {
			fs = append(fs, report.Fact{Name: "p99.9", Value: latency(best.Tail.Est), Note: spread(best.Tail, latency)})
		}
	}
	if c != nil && c.J != nil {
		fs = append(fs, report.Fact{Name: "J", Value: percent(c.J.Est) + " %", Note: fmt.Sprintf("%s, %s on fresh seeds", rangeText(c.J), diag.Count(c.J.N, "pair"))})
	}
	runs := report.Fact{Name: "runs", Value: strconv.Itoa(p.Runs), Note: p.word()}
	if p.Rejected > 0 {
		runs.Note += fmt.Sprintf(", %d rejected", p.Rejected)
	}
	fs = append(fs, runs)
	if start != nil && start.Runs > 1 {
		good, tail := p.spreads()
		f := report.Fact{Name: "noise of a run", Value: fmt.Sprintf("%.1f %%", 100*good), Note: "of goodput (standard deviation)"}
		if tail > 0 {
			f.Note += fmt.Sprintf("; %.1f %% of p99.9", 100*tail)
		}
		fs = append(fs, f)
	}
	return fs
}

// word is how an experiment stands, in a word.
func (p *tunedPage) word() string { return string(p.State) }

// confirmed is what the runs of a confirmation came to, before and after; nil of what is not in the journal.
func (p *tunedPage) confirmed(c *tuning.Decision) (before, after *tuning.Tried) {
	s := triedFor(p.tuneJSON, p.h, c)
	return s.of(p.start), s.of(p.best)
}

func latency(seconds float64) string { return lasting(units.Duration(seconds * float64(units.Second))) }

// withEffect is a change with its interval, behind what it is a change from.
func withEffect(i *stats.Interval) string {
	if i == nil {
		return ""
	}
	return "; " + changeText(i)
}

// spread is an interval around a number.
func spread(i stats.Interval, text func(float64) string) string {
	if i.N < 2 {
		return "one run"
	}
	return fmt.Sprintf("%s to %s at %s %%, %d runs", text(i.Low), text(i.High), confidenceText(i.Conf), i.N)
}

func confidenceText(c float64) string { return strconv.FormatFloat(100*c, 'g', 4, 64) }

// weighs says what J is, for readers who have not read the manual.
func (p *tunedPage) weighs() string {
	o := &p.Begin.Objective
	switch {
	case o.Exchange == 0:
		return "J is goodput alone: more of it is better."
	case !p.tails:
		return "No latency was measured, so J is goodput alone: more of it is better."
	}
	return fmt.Sprintf("J weighs goodput (more is better) against p99.9, the latency that one in a thousand exceeds (less is better): 1 %% of goodput counts as much as %.3g %% of p99.9.", 1/o.Exchange)
}

// objectiveText is what is better, as a formula.
func objectiveText(o *tuning.Objective) string {
	if o.Exchange == 0 {
		return "ln goodput"
	}
	return fmt.Sprintf("ln goodput - %g ln p99.9", o.Exchange)
}

// change is what to set, and what it means for the model.
func (p *tunedPage) change() []report.Block {
	t := report.Table{Head: []string{"variable", "before", "after", "what it does"}}
	for i := range p.vars {
		v := &p.vars[i]
		after := v.Text(p.best[i])
		if p.best[i] == p.start[i] {
			after = "the same"
		}
		t.Rows = append(t.Rows, report.Row{Cells: []string{v.Name, v.Text(p.start[i]), after, v.Doc}, Strong: p.best[i] != p.start[i]})
	}
	blocks := []report.Block{t}
	if !p.changed() {
		return blocks
	}
	c := p.h.ChangeTo(p.best)
	if c == nil {
		return blocks
	}
	switch {
	case p.edit.diff != "":
		blocks = append(blocks, report.Text("In the files of the model, as tune diff shows it and --write writes it:"), report.Code{Lang: "diff", Text: p.edit.diff})
	case len(c.Patch) > 0:
		var lines []string
		for _, e := range c.Patch {
			lines = append(lines, diag.Line(e.Path+": "+e.Value))
		}
		blocks = append(blocks, report.Text("In the model, these values change, as the journal has it:"), report.Code{Text: strings.Join(lines, "\n")})
		if p.edit.why != "" {
			blocks = append(blocks, report.Text(sentence("The files are not shown: "+p.edit.why)))
		}
	}
	if words := externalWords(p.vars, p.best, p.start); len(words) > 0 {
		blocks = append(blocks, report.Text("What no model holds is set by hand; the experiment has put it back:"), report.List(words))
	}
	return blocks
}

// externalWords are the values of external variables that are not as they were, with the command that sets each.
func externalWords(vars []tuning.Variable, to, was tuning.Setting) []string {
	var words []string
	for i := range vars {
		v := &vars[i]
		if v.External == nil || was[i] == to[i] {
			continue
		}
		s := fmt.Sprintf("%s: %s instead of %s", v.Name, v.Text(to[i]), v.Text(was[i]))
		if e := v.External; len(e.Set) > 0 {
			var argv []string
			for _, w := range e.Set {
				argv = append(argv, quote(strings.ReplaceAll(w, "{value}", v.Word(to[i]))))
			}
			s += ", by: " + strings.Join(argv, " ")
		}
		words = append(words, s)
	}
	return words
}

// decisions is what was decided, in order, in plain words.
func (p *tunedPage) decisions() []report.Block {
	var log report.Log
	for i := range p.Decisions {
		d := &p.Decisions[i]
		e := report.Entry{Head: stepName(d), Tag: string(d.Verdict), Tone: toneOf(d.Verdict), Text: sentence(d.Reason)}
		if moved := movedText(p.vars, d.From, d.To); moved != "" {
			e.Head += ": " + moved
		}
		e.Facts = append(e.Facts, diag.Count(d.Runs, "run"))
		if len(d.Arms) > 1 {
			e.Facts = append(e.Facts, diag.Count(len(d.Arms), "setting")+" compared")
		}
		if d.Looks > 0 {
			e.Facts = append(e.Facts, diag.Count(d.Looks, "look"))
		}
		for _, x := range []struct {
			name string
			of   *stats.Interval
		}{{"goodput", d.Goodput}, {"p99.9", d.Tail}} {
			if x.of != nil {
				e.Facts = append(e.Facts, x.name+" "+changeText(x.of))
			}
		}
		log = append(log, e)
	}
	if len(log) == 0 {
		return nil
	}
	return []report.Block{report.Text("In the order in which they were made. The search moves to what looks better by more than a tie, surely or not; only the confirmation changes the answer. Every look at a comparison counts."), log}
}

// toneOf is what a reader is to feel about a verdict.
func toneOf(v tuning.Verdict) report.Tone {
	switch v {
	case tuning.Better:
		return report.Good
	case tuning.Infeasible, tuning.HostBound, tuning.WrongClass:
		return report.Bad
	case tuning.Worse, tuning.Undecided, tuning.Interacting:
		return report.Careful
	}
	return report.Plain
}

// untested is what nobody should take for tried.
func (p *tunedPage) untested() []report.Block {
	var l report.List
	if o := p.Outcome; o != nil {
		for _, s := range o.Untested {
			l = append(l, sentence(s))
		}
	}
	l = append(l, "Other loads: a setting is good for the load that it was found with.")
	if p.Begin.Context.Runner != runnerPerftest {
		l = append(l, "Real switches and NICs: the numbers are a simulator's.")
	}
	return []report.Block{l}
}

// context is what an experiment was made with.
func (p *tunedPage) context() []report.Block {
	b, c := &p.Begin, &p.Begin.Context
	t := report.Table{Head: []string{"what", "which"}}
	add := func(what, which string) {
		if which != "" {
			t.Rows = append(t.Rows, report.Row{Cells: []string{what, which}})
		}
	}
	looks := fmt.Sprintf("%d runs of each before the first look, %d between two, %d at most, each look at %s %%; %s confirm", b.Looks.First, b.Looks.Every, b.Looks.Most, confidenceText(b.Looks.Confidence), diag.Count(b.Looks.Confirm, "pair"))
	add("fabric, class", c.Fabric+", "+c.Class)
	add("model", strings.Join(c.Layers, ", "))
	add("digest of the model", c.Digest)
	add("load", strings.TrimPrefix(loadName(b.Load, "")+": "+b.Workload, ": "))
	add("runs made", runnerText(c))
	add("method", string(b.Method))
	add("objective", objectiveText(&b.Objective)+fmt.Sprintf("; differences up to %.1f %% keep what is there", 100*b.Objective.Tie))
	add("seed", strconv.FormatUint(b.Seed, 10))
	add("looks", looks)
	add("budget", budgetText(&b.Budget))
	add("devices that are written", strings.Join(c.Devices, ", "))
	add("ports that share what is edited", strings.Join(c.Ports, ", "))
	for _, d := range slices.Sorted(maps.Keys(c.Firmware)) {
		add("firmware of "+d, c.Firmware[d])
	}
	add("fingerprint", c.Fingerprint)
	add("fabricctl", c.Version)
	add("began, last record", b.At.UTC().Format(time.RFC3339)+", "+p.h.Last.UTC().Format(time.RFC3339))
	for _, at := range p.h.Resumed {
		add("resumed", at.UTC().Format(time.RFC3339))
	}
	blocks := []report.Block{t}
	if notes := slices.Concat(c.Note, p.Notices); len(notes) > 0 {
		blocks = append(blocks, report.Text("To be known:"), report.List(sentencesOf(notes)))
	}
	if p.Torn != "" {
		blocks = append(blocks, report.Text(sentence("the journal's last line was not written whole: "+p.Torn)))
	}
	return blocks
}

// mostNotes is how many notices a page has.
const mostNotes = 20

// sentencesOf are texts as sentences, of many the first ones.
func sentencesOf(texts []string) []string {
	var out []string
	for i, s := range texts {
		if i == mostNotes && len(texts) > mostNotes+1 {
			return append(out, fmt.Sprintf("And %d more.", len(texts)-i))
		}
		out = append(out, sentence(s))
	}
	return out
}

func budgetText(b *tuning.Budget) string {
	var parts []string
	if b.Runs > 0 {
		parts = append(parts, diag.Count(b.Runs, "run"))
	}
	if b.Time > 0 {
		parts = append(parts, b.Time.String())
	}
	return cmp.Or(strings.Join(parts, ", "), "none")
}

// again is how the experiment is done again, and its decisions made again.
func (p *tunedPage) again() []report.Block {
	var argv []string
	for _, w := range p.Begin.Context.Command {
		argv = append(argv, quote(w))
	}
	blocks := []report.Block{
		report.Text("The same experiment, with the same seeds:"),
		report.Code{Lang: "sh", Text: diag.Line("fabricctl " + strings.Join(argv, " "))},
		report.Text("The same decisions from the journal alone, and what they change in the model:"),
		report.Code{Lang: "sh", Text: p.command("tune", "replay", p.ID) + "\n" + p.command("tune", "diff", p.ID)},
	}
	if u := p.Looked; u != nil && u.Command != "" {
		blocks = append(blocks, report.Text("Once more on other seeds, with as many pairs as would confirm "+u.Change+" if it is so:"), report.Code{Lang: "sh", Text: diag.Line(u.Command)})
	}
	return blocks
}
