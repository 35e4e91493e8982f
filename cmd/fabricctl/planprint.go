package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/fabricctl/fabricctl/drivers/rollout"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/render"
)

// printPlan writes a plan for people. Devices whose text is the same but for the name are shown once.
func (a *app) printPlan(w io.Writer, p *rollout.Plan, details bool) error {
	on := a.colored(w)
	var order []string
	names := map[string][]string{}
	for _, d := range p.Devices {
		text := deviceText(d, details, on)
		if names[text] == nil {
			order = append(order, text)
		}
		names[text] = append(names[text], d.Name)
	}
	for _, text := range order {
		fmt.Fprintln(w, paint(on, bold, strings.Join(names[text], ", "))+text)
	}
	a.printFindings(w, p.Finds)
	ops := p.Ops()
	if ops.Total() == 0 {
		switch {
		case p.Failed():
			fmt.Fprintln(w, "not every device could be read")
		default:
			fmt.Fprintln(w, paint(on, green, "no changes: the devices hold what the model owns"))
		}
		return nil
	}
	_, err := fmt.Fprintf(w, "plan: %s (%d to add, %d to set, %d to remove) on %s\n",
		count(ops.Total(), "setting"), ops.Add, ops.Set, ops.Remove, count(changing(p), "device"))
	return err
}

func changing(p *rollout.Plan) int {
	n := 0
	for _, d := range p.Devices {
		if d.Ops.Total() > 0 {
			n++
		}
	}
	return n
}

// deviceText is what a plan says about one device, without its name.
func deviceText(d rollout.DevicePlan, details, on bool) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, "\n  "+format, args...) }
	fmt.Fprintf(&b, " (%s)", d.Platform)
	switch {
	case d.Error != "":
		b.WriteString(paint(on, red, ": failed: ") + oneLine(d.Error))
	case d.Blocked:
		b.WriteString(": " + paint(on, red, "refused, nothing will be written"))
	case d.Mode != rollout.Write:
		b.WriteString(": " + string(d.Mode))
		if d.Reason != "" {
			b.WriteString(", " + d.Reason)
		}
	case d.Ops.Total() == 0:
		b.WriteString(": no changes")
	default:
		fmt.Fprintf(&b, ": %s in %s", count(d.Ops.Total(), "setting"), count(len(d.Steps), "step"))
	}
	for _, c := range d.Behaviour {
		line("%s", portList(c.Ports))
		for _, v := range c.Changes {
			line("  %s", strings.TrimRight(pad(v.Label, 26)+pad(v.Before+" → "+v.After, 34)+v.From.String(), " "))
		}
	}
	if details {
		for _, s := range d.Steps {
			line("step: %s", s.Why)
			for _, c := range s.Changes {
				line("  %s", changeText(c))
			}
		}
	}
	for ours, live := range sorted(d.Adopted) {
		line("adopts %s %s (for %s)", ours.Scope, live, ours.Object)
	}
	for _, r := range d.Risks {
		st := yellow
		if r.Class == render.Refused {
			st = red
		}
		ports := ""
		if len(r.Ports) > 0 {
			ports = " " + portList(r.Ports)
		}
		line("%s%s: %s", paint(on, st, r.Class.String()), ports, r.Why)
	}
	if len(d.Steps) > 0 {
		switch {
		case d.Caps.Confirm:
			line("the device takes the change back by itself unless it is confirmed")
		case d.Caps.PersistsOnCommit:
			line("saved at once, and the device cannot take it back by itself: the undo is in fabricctl's journal")
		default:
			line("the device cannot take it back by itself: the undo is in fabricctl's journal")
		}
	}
	if details || d.Ops.Total() > 0 {
		for _, n := range d.Facts.Notes {
			line("note: %s", n)
		}
	}
	for _, f := range d.Findings {
		if f.Severity > diag.Info || details || f.Rule == "adopt" {
			line("%s", strings.ReplaceAll(findingText(f, d.Name), "\n", "\n  "))
		}
	}
	return b.String()
}

// findingText is f without the device's name in front, which stands above it already.
func findingText(f diag.Finding, device string) string {
	f.At = strings.TrimPrefix(strings.TrimPrefix(f.At, device), ":")
	return f.String()
}

// pad fills s with spaces up to a width in characters, and by one at least.
func pad(s string, width int) string {
	return s + strings.Repeat(" ", max(1, width-utf8.RuneCountInString(s)))
}

func from(p diag.Pos) string {
	if p.IsZero() {
		return ""
	}
	return "   " + p.String()
}

// portList names up to four ports, and counts the others.
func portList(ports []string) string {
	const most = 6
	if len(ports) == 0 {
		return "device"
	}
	if len(ports) <= most {
		return strings.Join(ports, ", ")
	}
	return fmt.Sprintf("%s, … %s (%d ports)", strings.Join(ports[:most-1], ", "), ports[len(ports)-1], len(ports))
}

func changeText(c render.Change) string {
	at := strings.Trim(c.Key.Scope+" "+c.Key.Object, " ")
	if c.Key.Field != "" {
		at += " " + c.Key.Field
	}
	show := func(s *string) string { return cmp.Or(*s, `""`) }
	switch c.Op {
	case render.Add:
		return fmt.Sprintf("+ %s = %s%s", at, show(c.After), from(c.From))
	case render.Remove:
		return fmt.Sprintf("- %s (was %s)", at, show(c.Before))
	}
	return fmt.Sprintf("~ %s: %s → %s%s", at, show(c.Before), show(c.After), from(c.From))
}
