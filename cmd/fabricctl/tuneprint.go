package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/fabricctl/fabricctl/cmd/show"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/tuning"
	"github.com/fabricctl/fabricctl/tuning/stats"
)

// printTuned writes an experiment: the answer first, then what was decided on the way, what else is as good as it, and what was
// not tried. With details each decision has its reason and its arms.
func printTuned(w io.Writer, r *tuneJSON, h *tuning.History, details bool) {
	b := &r.Begin
	fmt.Fprintf(w, "%s\n\n", show.Paint(show.Bold, fmt.Sprintf("%s: class %s under %s, %s: %s", b.Context.Fabric, b.Context.Class, loadName(b.Load, b.Workload), runnerText(&b.Context), tunedBy(&b.Context))))
	for _, f := range tuneAnswers(r, h) {
		text := f.text
		if f.style != show.Plain {
			text = show.Paint(f.style, text)
		}
		show.Hang(w, show.Whole(show.Pad(f.label, 12)), text) // a long first word stays beside its label
	}
	if len(r.Decisions) > 0 {
		fmt.Fprintln(w, "\ndecisions:")
		show.Table(w, decisionTable(b.Vars, r.Decisions))
	}
	if details {
		printReasons(w, r, h)
	}
	if o := r.Outcome; o != nil {
		if slices.ContainsFunc(o.Pareto, func(x tuning.Arm) bool { return x.P999 > 0 }) { // without a latency it is what has the most goodput
			s := triedWhole(r, h)
			fmt.Fprintln(w)
			show.Hang(w, "", "to choose among, should p99.9 weigh more or less with you than in J (--exchange moves J there): what nothing tried surely beats in one of goodput and p99.9 without being worse in the other, over all runs of each")
			show.Table(w, s.rows(s.front(o)))
		}
		sentences(w, "not tried", o.Untested)
	}
	sentences(w, "to be known", b.Context.Note)
}

// longLoad is how long the text of a workload may be where there is little room.
const longLoad = 60

// loadName is what a workload is called where there is little room.
func loadName(name, text string) string {
	switch {
	case name != "":
		return "load " + name
	case len(text) > longLoad && !strings.Contains(text, "+"):
		return "a load of one part"
	case len(text) > longLoad:
		return "a load of several parts"
	}
	return text
}

// tunedBy says what an answer of a runner is worth.
func tunedBy(c *tuning.Context) string {
	if c.Runner == runnerPerftest && !c.Emulated {
		return "measured on hosts"
	}
	return modelsAnswer
}

// runnerText is who made the runs.
func runnerText(c *tuning.Context) string {
	switch c.Runner {
	case runnerSim:
		return "with the simulator"
	case runnerLab:
		return "on an emulated fabric"
	case runnerPerftest:
		if c.Emulated {
			return "with verbs tests of emulated hosts"
		}
		return "with verbs tests"
	}
	return "with " + c.Runner
}

// tuneAnswers are the answer in a few lines.
func tuneAnswers(r *tuneJSON, h *tuning.History) []answer {
	b, o := &r.Begin, r.Outcome
	if o == nil {
		facts := []answer{{"state", stateWords(r), stateStyle(r.State)}, {"start", tuning.SettingText(b.Vars, b.Start), show.Plain}}
		return slices.Concat(facts, r.Looked.answers(), []answer{{"runs", diag.Count(r.Runs, "run") + " until now", show.Plain}})
	}
	facts := []answer{{"answer", o.Words, verdictStyle(o.Verdict)}}
	if r.State == tuning.Stopped && !o.Spent {
		facts = []answer{{"ended by", o.Words, show.Plain}}
	}
	if r.State != tuning.Done {
		facts = append(facts, answer{"state", stateWords(r), stateStyle(r.State)})
	}
	if words := triedWhole(r, h).unheld(); words != "" {
		facts = append(facts, answer{"limits", words, show.Red})
	}
	facts = append(facts, answer{"start", tuning.SettingText(b.Vars, b.Start), show.Plain})
	if o.Best.Key() != b.Start.Key() {
		facts = append(facts, answer{"best", tuning.SettingText(b.Vars, o.Best), show.Plain})
	}
	facts = slices.Concat(facts, r.Looked.answers(), confirmedAnswers(r, h))
	if b.Load == "" {
		for i, part := range strings.Split(b.Workload, " + ") {
			facts = append(facts, answer{[...]string{"load", ""}[min(i, 1)], part, show.Plain})
		}
	}
	runs := diag.Count(o.Runs, "run")
	if o.Rejected > 0 {
		runs += fmt.Sprintf(", %d of them rejected", o.Rejected)
	}
	if o.Took > 0 {
		runs += " in " + lasting(o.Took)
	}
	facts = append(facts, answer{"runs", fmt.Sprintf("%s, seed %d, %s", runs, b.Seed, b.Method), show.Plain})
	if o.Trip != "" {
		facts = append(facts, answer{"tripped", o.Trip, show.Red})
	}
	if o.Left != "" {
		facts = append(facts, answer{"left", o.Left, show.Red})
	}
	return facts
}

// confirmedAnswers are what a confirmation came to. What a run has is the geometric mean over its runs, so that the change is that between the two.
func confirmedAnswers(r *tuneJSON, h *tuning.History) []answer {
	c := r.Outcome.Confirmed
	if c == nil {
		return nil
	}
	var facts []answer
	if c.J != nil {
		facts = append(facts, answer{"J", fmt.Sprintf("%s, %s on fresh seeds", effectText(c.J), diag.Count(c.J.N, "pair")), show.Plain})
	}
	s := triedFor(r, h, c)
	var before, after *tuning.Tried
	if len(c.Arms) == 2 {
		before, after = s.of(c.Arms[0].Setting), s.of(c.Arms[1].Setting)
	}
	for _, x := range []struct {
		label string
		of    *stats.Interval
		text  func(*tuning.Tried) string
	}{{"goodput", c.Goodput, goodputOf}, {"p99.9", c.Tail, tailOf}} {
		if x.of == nil {
			continue
		}
		text := changeText(x.of)
		if before != nil && after != nil {
			text += fmt.Sprintf(": %s instead of %s on these seeds", x.text(after), x.text(before))
		}
		facts = append(facts, answer{x.label, text, show.Plain})
	}
	return facts
}

// stateWords is where an experiment stands.
func stateWords(r *tuneJSON) string {
	switch r.State {
	case tuning.Running:
		return "running"
	case tuning.Done:
		return "done"
	case tuning.Stopped:
		if r.Outcome != nil && r.Outcome.Spent {
			return "its budget was spent before the search had ended" + baselineHolds(r)
		}
		return "stopped before its end" + baselineHolds(r)
	case tuning.Tripped:
		return "ended by a limit" + baselineHolds(r)
	case tuning.NeedsHands:
		return "needs hands: the baseline is not back"
	case tuning.Dead:
		if r.Begin.Context.Runner == runnerSim {
			return "its process is gone; no device was written"
		}
		return "its process is gone, and nobody has said that the baseline is back"
	}
	return string(r.State)
}

// baselineHolds says what devices hold after an experiment that has ended.
func baselineHolds(r *tuneJSON) string {
	if r.Begin.Context.Runner == runnerSim {
		return ""
	}
	return "; the baseline holds"
}

// stateStyle is how a state looks.
func stateStyle(s tuning.State) show.Style {
	switch s {
	case tuning.Done:
		return show.Green
	case tuning.NeedsHands, tuning.Tripped, tuning.Dead:
		return show.Red
	case tuning.Stopped:
		return show.Yellow
	}
	return show.Plain
}

// percent is a difference of natural logarithms of 0.012 as "+1.2". Everything that a person reads has one decimal, as the reasons of decisions have.
func percent(x float64) string { return fmt.Sprintf("%+.1f", 100*x) }

// rangeText is the interval around a difference: "+0.8 to +1.6 at 99 %".
func rangeText(i *stats.Interval) string {
	return fmt.Sprintf("%s to %s at %s %%", percent(i.Low), percent(i.High), confidenceText(i.Conf))
}

// effectText is a difference in J with its interval: "+1.2 % (+0.8 to +1.6 at 99 %)".
func effectText(i *stats.Interval) string {
	return fmt.Sprintf("%s %% (%s)", percent(i.Est), rangeText(i))
}

// changed is a difference of logarithms as the change that it is.
func changed(i *stats.Interval) *stats.Interval {
	grown := *i
	grown.Est, grown.Low, grown.High = math.Expm1(i.Est), math.Expm1(i.Low), math.Expm1(i.High)
	return &grown
}

// changeText is a difference of logarithms as the change that it is, with its interval.
func changeText(i *stats.Interval) string { return effectText(changed(i)) }

// changePercent is changeText without the interval.
func changePercent(i *stats.Interval) string { return percent(math.Expm1(i.Est)) + " %" }

// decisionTable is a row for each decision.
func decisionTable(vars []tuning.Variable, ds []tuning.Decision) [][]string {
	rows := [][]string{{"", "step", "verdict", "J %", "interval", "runs", "moved"}}
	for i := range ds {
		d := &ds[i]
		row := []string{"  " + strconv.Itoa(d.N), stepName(d), show.Paint(verdictStyle(d.Verdict), string(d.Verdict)), "-", "-", strconv.Itoa(d.Runs), movedText(vars, d.From, d.To)}
		if d.J != nil {
			row[3], row[4] = percent(d.J.Est), percent(d.J.Low)+" to "+percent(d.J.High)
		}
		if row[6] == "" {
			row[6] = "-"
		}
		rows = append(rows, row)
	}
	return rows
}

// printReasons writes why each decision was made, and what was compared.
func printReasons(w io.Writer, r *tuneJSON, h *tuning.History) {
	for i := range r.Decisions {
		d := &r.Decisions[i]
		fmt.Fprintf(w, "\n%d %s, %s", d.N, stepName(d), diag.Count(d.Runs, "run"))
		if d.Looks > 0 {
			fmt.Fprintf(w, ", %s", diag.Count(d.Looks, "look"))
		}
		fmt.Fprintln(w)
		if d.Reason != "" {
			show.Hang(w, "  ", d.Reason)
		}
		if len(d.Arms) > 0 {
			show.Table(w, triedFor(r, h, d).rows(d.Arms))
		}
	}
}

// rows are the settings of a comparison as a table.
func (s *triedSet) rows(arms []tuning.Arm) [][]string {
	head := []string{" "}
	for i := range s.vars {
		head = append(head, s.vars[i].Name)
	}
	rows := [][]string{slices.Concat(head, s.measuredHead(), []string{""})}
	left := map[string]string{} // why a setting was left
	for i := range arms {
		x := &arms[i]
		if left[x.Setting.Key()] = x.Left; s.of(x.Setting) == nil && len(x.Setting) == len(s.vars) {
			rows = append(rows, slices.Concat([]string{" "}, settingTexts(s.vars, x.Setting), slices.Repeat([]string{"-"}, len(s.measuredHead())-1), []string{"0", x.Left}))
		}
	}
	for _, b := range s.bands(s.those(arms)) {
		rows = append(rows, slices.Concat([]string{" "}, b.values(s.vars), s.measured(&b), []string{cmp.Or(left[b.Setting.Key()], b.note(s.vars))}))
	}
	return rows
}

// tuneHints are the commands that come next after an experiment.
func (a *app) tuneHints(r *tuneJSON) []string {
	o := r.Outcome
	words := func(verb string, more ...string) string {
		return show.Whole(a.command(append([]string{"tune", verb, r.ID}, more...)...))
	}
	hints := []string{"all decisions with their evidence: " + words("show", "--details"), "as a page with pictures: " + words("report", "--out", "report.html")}
	switch {
	case r.State == tuning.NeedsHands:
		hints = append(hints, "bring the baseline back, and go on: "+words("resume"))
	case o == nil || o.State == tuning.Stopped && !o.Spent:
		hints = append(hints, "go on: "+words("resume"))
	case o.Verdict == tuning.Better:
		hints = append(hints, "as a change of the model: "+words("diff"))
	}
	if o != nil && o.State == tuning.Stopped && o.Spent {
		hints = append(hints, "with a larger budget: "+words("resume", moreOf(r)...))
	} else if u := r.Looked; u != nil && u.Command != "" && o != nil && o.State == tuning.Done {
		hints = append(hints, "once more on other seeds, with as many pairs as would confirm what looked best if it is so: "+show.Whole(u.Command))
	}
	return hints
}
