package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/fabricctl/fabricctl/cmd/show"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/tuning"
)

// tuneTeller tells how an experiment goes: a line for each decision and notice, and on a terminal a line besides that says
// how far it is and goes again.
type tuneTeller struct {
	to     io.Writer
	screen *show.Screen // of a terminal; nil: there is none
	now    func() time.Time

	mu   sync.Mutex
	last time.Time // that progress was shown
}

func (a *app) tuneTeller() *tuneTeller {
	t := &tuneTeller{to: a.sys.err, now: time.Now}
	t.screen, _ = a.sys.err.(*show.Screen)
	return t
}

// tell is given to the loop.
func (t *tuneTeller) tell(e tuning.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case e.Decision != nil:
		show.Hang(t.to, "", decisionLine(e.Decision))
	case e.Notice != "":
		show.Hang(t.to, "", diag.OneLine(e.Notice))
	case e.Progress != nil && t.screen != nil:
		if now := t.now(); now.Sub(t.last) >= onTerminal {
			t.last = now
			t.screen.Brief(progressLine(e.Progress))
		}
	}
}

// end takes the line of progress away.
func (t *tuneTeller) end() {
	if t.screen != nil {
		t.screen.Brief("")
	}
}

// progressLine is "kmax ladder: 132 runs of at most 780, at most 2m left".
func progressLine(p *tuning.Progress) string {
	s := p.Step + ": " + diag.Count(p.Runs, "run")
	if p.Most > 0 {
		s += fmt.Sprintf(" of at most %d", p.Most)
	}
	if p.Left > 0 {
		s += ", at most " + p.Left.Round(time.Second).String() + " left"
	}
	return s
}

// decisionLine is "3 race: better (108 runs): alpha 1 instead of 1/8: J +3.7%, ...".
func decisionLine(d *tuning.Decision) string {
	return fmt.Sprintf("%d %s: %s (%s): %s", d.N, stepName(d), show.Paint(verdictStyle(d.Verdict), string(d.Verdict)), diag.Count(d.Runs, "run"), diag.OneLine(d.Reason))
}

// stepName is "kmax ladder, cycle 2".
func stepName(d *tuning.Decision) string {
	s := d.Step
	if d.Variable != "" {
		s = d.Variable + " " + s
	}
	if d.Cycle > 1 {
		s += fmt.Sprintf(", cycle %d", d.Cycle)
	}
	return s
}

// verdictStyle is how a verdict looks.
func verdictStyle(v tuning.Verdict) show.Style {
	switch v {
	case tuning.Better:
		return show.Green
	case tuning.Infeasible, tuning.HostBound, tuning.WrongClass:
		return show.Red
	case tuning.Worse, tuning.Undecided:
		return show.Yellow
	}
	return show.Plain
}

// movedText is what differs between two settings: "kmax 400KB to 1.6MB"; "" when nothing does.
func movedText(vars []tuning.Variable, from, to tuning.Setting) string {
	var parts []string
	for i := range min(len(vars), len(from), len(to)) {
		if from[i] != to[i] {
			parts = append(parts, fmt.Sprintf("%s %s to %s", vars[i].Name, vars[i].Text(from[i]), vars[i].Text(to[i])))
		}
	}
	return strings.Join(parts, ", ")
}
