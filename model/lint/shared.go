package lint

import (
	"cmp"
	"fmt"
	"math/bits"
	"strings"

	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/diag"
)

var sharedPort = Rule{
	ID:       "shared-port",
	Title:    "RDMA, storage and management have ports of their own",
	Severity: diag.Warning,
	Run:      runSharedPort,
}

// mixedLoad is what runs together over ports of one role of hosts.
type mixedLoad struct {
	role    string
	carries model.Carries
	line    diag.Pos
	active  bool
}

func runSharedPort(p *Pass) {
	var bad causes[mixedLoad]
	for i := range p.Places {
		pl := &p.Places[i]
		if c := pl.Port.Carries; pl.Device.Host && bits.OnesCount8(uint8(c)) > 1 {
			bad.add(mixedLoad{pl.Device.Role, c, loadLine(p, pl), pl.Active}, *pl)
		}
	}
	for c, w := range bad.all {
		words := c.carries.Words()
		p.report(w, diag.Finding{
			Pos: c.line,
			Msg: fmt.Sprintf("%s share %s on %s: a burst of one holds up the others, and what manages a host is lost with its busiest link",
				strings.Join(words, " and "), diag.Plural(w.ports, "port", "ports"), w.names()),
			Hint: fmt.Sprintf("give each a port of its own, or acknowledge %s for the role %s with the reason", p.rule.ID, c.role),
		})
	}
}

// loadLine is the line that says what a port carries.
func loadLine(p *Pass, pl *Place) diag.Pos {
	if q := modelPort(p, pl.Device.Name, pl.Port.Name); q != nil {
		return q.Carries.Pos()
	}
	return diag.Pos{}
}

var sharedPriority = Rule{
	ID:       "shared-priority",
	Title:    "each business has a lossless class of its own",
	Severity: diag.Warning,
	Run:      runSharedPriority,
}

// runSharedPriority looks at the marking table alone: what devices hold has no businesses.
func runSharedPriority(p *Pass) {
	if p.Fabric == nil {
		return
	}
	for i := range p.Fabric.Classes {
		c := &p.Fabric.Classes[i]
		if !c.Lossless.V {
			continue
		}
		var first *model.Application
		for j := range p.Fabric.Apps {
			a := &p.Fabric.Apps[j]
			switch {
			case a.Class.V != c.Name || !a.Business.Set:
			case first == nil:
				first = a
			case a.Business.V != first.Business.V:
				p.reportModel(diag.Finding{
					Pos: cmp.Or(a.Class.Pos(), a.Pos),
					Related: []diag.Related{
						{Pos: cmp.Or(first.Class.Pos(), first.Pos), Msg: fmt.Sprintf("%s of %s sends in it too", first.Name, first.Business.V)},
						{Pos: a.Business.Pos(), Msg: "of business " + a.Business.V},
					},
					Msg: fmt.Sprintf("%s of %s and %s of %s share class %s and its priority %d: a burst of one pauses the other",
						first.Name, first.Business.V, a.Name, a.Business.V, c.Name, c.Priority.V),
					Hint: fmt.Sprintf("give %s a class of its own, or acknowledge %s with the reason", a.Business.V, p.rule.ID),
				})
			}
		}
	}
}

var marking = Rule{
	ID:       "marking",
	Title:    "what an application marks belongs to its class, and each lossless class has somebody who marks it",
	Severity: diag.Error,
	Run:      runMarking,
}

func runMarking(p *Pass) {
	if p.Fabric == nil || len(p.Fabric.Apps) == 0 {
		return
	}
	rest, _ := restClass(p)
	used, lost := map[string]int{}, false
	for i := range p.Fabric.Apps {
		used[p.Fabric.Apps[i].Class.V]++
	}
	for i := range p.Fabric.Apps {
		a := &p.Fabric.Apps[i]
		lost = lost || classOf(p, a.Class.V) == nil // an error of its own; nobody knows which class is meant
		is := cmp.Or(namedBy(p, a.DSCP.V), rest.Name)
		if !a.DSCP.Set || is == a.Class.V {
			continue
		}
		hint := "write another dscp"
		c := classOf(p, a.Class.V)
		if c != nil && len(c.DSCP) > 0 {
			hint = fmt.Sprintf("set dscp to %d", c.DSCP[0].V)
		}
		if c == nil || !c.Lossless.V || used[c.Name] > 1 { // else nobody would be left to send in it
			hint += fmt.Sprintf(", or put %s into class %s", a.Name, is)
		}
		p.reportModel(diag.Finding{
			Pos: a.DSCP.Pos(), Related: []diag.Related{{Pos: a.Class.Pos(), Msg: "its class is given here"}},
			Msg:  fmt.Sprintf("%s marks dscp %d, which is of class %s, but is to be of class %s", a.Name, a.DSCP.V, is, a.Class.V),
			Hint: hint,
		})
	}
	for _, c := range p.Fabric.Classes {
		if c.Lossless.V && c.Role.V == "" && used[c.Name] == 0 && !lost {
			p.reportModel(diag.Finding{
				Severity: diag.Warning, Pos: c.Pos,
				Msg:  fmt.Sprintf("class %s is lossless, and no application of the marking table sends in it: its buffers wait for nobody", c.Name),
				Hint: fmt.Sprintf("list who marks it under applications, or acknowledge %s with the reason", p.rule.ID),
			})
		}
	}
}

// classOf finds a class of the model; nil when there is none.
func classOf(p *Pass, name string) *model.Class {
	if p.Fabric == nil {
		return nil
	}
	for i := range p.Fabric.Classes {
		if c := &p.Fabric.Classes[i]; c.Name == name {
			return c
		}
	}
	return nil
}
