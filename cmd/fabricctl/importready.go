package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fabricctl/fabricctl/cmd/show"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/infer"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/render"
)

type importJSON struct {
	Schema     string     `json:"schema"`
	Files      []string   `json:"files"`
	Roles      []roleJSON `json:"roles"`
	Classes    int        `json:"classes"`
	Exceptions int        `json:"exceptions"` // overrides of single devices and ports
	Findings   diag.List  `json:"findings"`
	Areas      []areaJSON `json:"areas"`

	Suggestions []infer.Suggestion `json:"suggestions,omitempty"` // commented-out lines of the first file

	model infer.Model
}

type roleJSON struct {
	Role    string `json:"role"`
	Devices int    `json:"devices"`
}

// areaJSON says what owning an area would do, with adoption, to the devices as they are.
type areaJSON struct {
	Area  string      `json:"area"`
	Ready int         `json:"ready"` // devices that hold what the model would write
	Of    int         `json:"of"`
	Not   []unreadyAt `json:"not_ready,omitempty"`
}

// unreadyAt is a device that would be changed, or could not be owned.
type unreadyAt struct {
	Device  string `json:"device"`
	Changes int    `json:"changes,omitempty"`
	Why     string `json:"why"`
}

// readiness plans each area alone against what was read: what would move if the model owned it now.
func readiness(n *intent.Net, read []seen) []areaJSON {
	var out []areaJSON
	for area := range intent.NumAreas {
		a := areaJSON{Area: area.String()}
		for i := range read {
			s := &read[i]
			dev := n.Device(s.box.Device.Name)
			if !intent.AreasOf(dev.OS()).Has(area) {
				continue
			}
			a.Of++
			changes, why := owning(*dev, area, s)
			if changes == 0 && why == "" {
				a.Ready++
				continue
			}
			a.Not = append(a.Not, unreadyAt{dev.Name, changes, why})
		}
		if a.Of > 0 {
			out = append(out, a)
		}
	}
	return out
}

// owning is how many settings would change on a device if the model owned one area of it, and why, or why it cannot.
func owning(dev intent.Device, area intent.Area, s *seen) (changes int, why string) {
	dialect := render.ByOS(dev.OS())
	dev.Manage = intent.Manage{}
	dev.Manage[area] = intent.Own
	dev.Ports = slices.Clone(dev.Ports)
	for i := range dev.Ports {
		dev.Ports[i].Manage = intent.Manage{}
		if dev.Ports[i].Role != "unused" {
			dev.Ports[i].Manage = dev.Manage
		}
	}
	f := s.facts
	dev = dev.Bind(f.Aliases)
	names, adopts := render.Adopt(dialect, dev, f, s.live)
	f.Names = names
	p := render.Look(dialect, dev, f, s.live)
	if i := slices.IndexFunc(p.Findings, func(x diag.Finding) bool { return x.Severity == diag.Error }); i >= 0 && len(adopts) > 0 && p.Findings[i].Rule == render.NeedsAdoption {
		return 0, adopts[0].Msg
	}
	if why := p.Refused(); why != "" {
		return 0, why
	}
	cs := p.Changes
	if len(cs) == 0 {
		return 0, ""
	}
	if i := slices.IndexFunc(adopts, func(x diag.Finding) bool { return x.Severity == diag.Info }); i >= 0 && cs[0].Op == render.Add {
		return len(cs), adopts[i].Msg
	}
	return len(cs), "first " + cs[0].Key.String()
}

// suggest says in what the rules find which line of the model, commented out, would do.
func (r *importJSON) suggest(file string) {
	for i := range r.Findings {
		f := &r.Findings[i]
		for _, x := range r.Suggestions {
			key, _, _ := strings.Cut(x.Text, ":")
			if f.Rule == x.Rule && strings.Contains(f.Hint, key+":") {
				f.Hint = suggested(file, x)
			}
		}
	}
}

// suggested says how to follow a suggestion.
func suggested(file string, x infer.Suggestion) string {
	s := fmt.Sprintf("uncomment line %d of %s: %s", x.Line, file, x.Text)
	if x.Replaces > 0 {
		s += fmt.Sprintf(", and delete line %d, in place of which it is", x.Line-x.Replaces)
	}
	return s
}

// printImport writes what was found, what was made of it, and what may be owned next.
func (a *app) printImport(o importFlags, r *importJSON) {
	w := a.sys.out
	show.Findings(w, r.Findings)
	var roles []string
	for _, x := range r.Roles {
		roles = append(roles, diag.Count(x.Devices, x.Role))
	}
	fmt.Fprintf(w, "%s: %s; %s, %s\n", r.Files[0], strings.Join(roles, ", "), diag.Count(r.Classes, "class"), diag.Count(r.Exceptions, "exception"))
	fmt.Fprintln(w, r.Files[1])
	if len(r.Areas) > 0 {
		fmt.Fprintln(w, "what owning an area would change on the devices, with --adopt:")
	}
	said := map[string]string{}
	for _, x := range r.Areas {
		head := fmt.Sprintf("  %-10s ", x.Area)
		for _, l := range x.lines(said) {
			show.Hang(w, head, l)
			head = strings.Repeat(" ", len(head))
		}
	}
	for _, x := range r.Suggestions {
		fmt.Fprintf(a.sys.err, "before pfc, scheduler or watchdog is owned, %s\n", suggested(r.Files[0], x))
	}
	fmt.Fprintf(a.sys.err, "next: fabricctl plan -f %s\n", o.out)
}

// lines say what owning an area would change, one line for each cause. said has the causes that earlier areas gave, with
// the area: a cause of several is said once.
func (x *areaJSON) lines(said map[string]string) []string {
	if len(x.Not) == 0 {
		return []string{"nothing"}
	}
	var out []string
	if x.Ready > 0 {
		out = append(out, fmt.Sprintf("nothing on %d of %s", x.Ready, diag.Count(x.Of, "device")))
	}
	type alike struct {
		changes int
		why     string
	}
	groups := map[alike][]string{}
	var order []alike
	for _, n := range x.Not {
		k := alike{n.Changes, strings.TrimPrefix(strings.TrimPrefix(n.Why, n.Device+": "), n.Device+" ")}
		if groups[k] == nil {
			order = append(order, k)
		}
		groups[k] = append(groups[k], n.Device)
	}
	for _, k := range order {
		names := show.Spans(groups[k])
		why := k.why
		if first := said[names+": "+k.why]; first != "" {
			why = "as for " + first
		} else {
			said[names+": "+k.why] = x.Area
		}
		if k.changes > 0 {
			out = append(out, diag.Line(fmt.Sprintf("%s: %s (%s)", names, diag.Count(k.changes, "setting"), why)))
		} else {
			out = append(out, diag.Line(fmt.Sprintf("%s: refused: %s", names, why)))
		}
	}
	return out
}
