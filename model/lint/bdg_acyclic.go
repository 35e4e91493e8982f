package lint

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/routes"
)

var bdgAcyclic = Rule{
	ID:       "bdg-acyclic",
	Title:    "buffers that wait for each other form no circle, also after the loss of a link or switch",
	Severity: diag.Error,
	Areas:    intent.AreaSet(intent.AreaPFC),
	Run:      runBDGAcyclic,
}

// maxSteps bounds what the rule looks at, about half a second; the command deadlock has no bound.
const maxSteps = 40_000_000

// runBDGAcyclic looks at routes only where a cycle is possible at all: where they go up and then down, none is, whatever is
// lost, and to know that takes one look at each link.
func runBDGAcyclic(p *Pass) {
	if routes.Ordered(p.Net) {
		return
	}
	top := routes.Of(p.Net)
	if top.Steps() > maxSteps {
		p.unseen("this fabric is too large to look for deadlocks each time")
		return
	}
	steady := top.Steady().Components
	if len(steady) > 0 {
		c := steady[0]
		msg := fmt.Sprintf("%s: PFC can deadlock", waiting(c))
		if n := len(steady) - 1; n > 0 {
			msg += fmt.Sprintf("; %s besides", diag.Count(n, "cycle"))
		}
		hint := "change routes or classes so that the circle opens; fabricctl deadlock shows it"
		if rs := top.Remedies(c); len(rs) > 0 {
			hint = rs[0].Text + "; fabricctl deadlock shows what else would do"
		}
		p.reportCycle(c, diag.Finding{Msg: msg, Hint: hint})
	}
	l, err := top.Sweep(context.Background(), nil, maxSteps)
	if err != nil || l.Left > 0 {
		p.unseen(fmt.Sprintf("%s of losses of a link or switch were not looked at for deadlocks", diag.Count(l.Left, "kind")))
	}
	for _, during := range []bool{false, true} {
		fs := slices.DeleteFunc(slices.Clone(l.Failures), func(f routes.Failure) bool { return f.During != during })
		if len(fs) > 0 {
			p.reportLoss(fs)
		}
	}
}

// unseen says that something was not looked at.
func (p *Pass) unseen(msg string) {
	f := diag.Finding{Rule: p.rule.ID, Severity: diag.Info, Msg: msg, Hint: "run fabricctl deadlock, which takes its time"}
	if p.Fabric != nil {
		f.Pos = cmp.Or(p.Fabric.Routing.Pos(), p.Fabric.Pos)
	}
	p.found.Add(f)
}

// reportLoss reports losses that make a cycle, by the first of them.
func (p *Pass) reportLoss(fs []routes.Failure) {
	f := fs[0]
	what := "switch " + f.Device
	if f.Device == "" {
		what = fmt.Sprintf("link %s:%s - %s:%s", f.Link.From, f.Link.FromPort, f.Link.To, f.Link.ToPort)
	}
	others := -1
	for _, x := range fs {
		others += x.Alike
	}
	when := "after the loss of " + what
	if f.During {
		when = "while switches learn of the loss of " + what
	}
	if others > 0 {
		when += fmt.Sprintf(" (or any of %d others)", others)
	}
	hint := "give what goes around the loss another way, or acknowledge " + p.rule.ID + " with the reason"
	if p.Net.Routing == intent.ShortestPath {
		hint = "let routing never go down and up again and write routing: up-down, or acknowledge " + p.rule.ID + " with the reason"
	}
	p.reportCycle(f.Component, diag.Finding{Severity: diag.Warning, Msg: fmt.Sprintf("%s, %s: PFC can deadlock", when, waiting(f.Component)), Hint: hint})
}

// reportCycle adds a finding about the devices of a cycle, at the listed route that closes it, or else at what is said of
// routing, or else where the class is lossless.
func (p *Pass) reportCycle(c routes.Component, f diag.Finding) {
	var w causes[int]
	for _, b := range c.Cycle {
		d := p.Net.Device(b.From)
		port := d.Port(b.FromPort)
		w.add(0, Place{Device: d, Port: port, Policy: d.PolicyOf(port), Ports: b.Links, Active: d.State == intent.Active && port.State == intent.Active})
	}
	at := w.at[0]
	listed := slices.DeleteFunc(slices.Clone(c.Listed), func(r *intent.Route) bool { return r == nil })
	slices.SortFunc(listed, func(a, b *intent.Route) int { return a.At.At().Compare(b.At.At()) })
	for _, r := range slices.Compact(listed) {
		f.Pos = cmp.Or(f.Pos, r.At.At())
		f.Related = append(f.Related, diag.Related{Pos: r.At.At(), Msg: "this route is part of it"})
	}
	if p.Fabric != nil {
		f.Pos = cmp.Or(f.Pos, p.Fabric.Routing.Pos())
	}
	f.Pos = cmp.Or(f.Pos, at.first.Origin(perQueue("lossless.", int(c.Cycle[0].Priority), "")).At())
	p.report(at, f)
}

// waiting is "leaf1 -> spine1 and spine1 -> leaf1 wait for each other in class training".
func waiting(c routes.Component) string {
	const most = 6
	var links []string
	for i, b := range c.Cycle {
		if i == most && len(c.Cycle) > most+1 {
			links = append(links, fmt.Sprintf("%d more links", len(c.Cycle)-most))
			break
		}
		links = append(links, b.From+" -> "+b.To)
	}
	in := "priority " + string('0'+rune(c.Cycle[0].Priority))
	if name := c.Cycle[0].Class; name != "" {
		in = "class " + name
	}
	last := len(links) - 1
	return fmt.Sprintf("%s and %s wait for each other in %s", strings.Join(links[:last], ", "), links[last], in)
}
