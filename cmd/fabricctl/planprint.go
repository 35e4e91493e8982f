package main

import (
	"cmp"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/fabricctl/fabricctl/drivers/rollout"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/render"
)

// printPlan writes a plan for people. Devices whose text is the same but for the name are shown once.
func (a *app) printPlan(w io.Writer, p *rollout.Plan, details bool) error {
	type same struct {
		text  string // of one of them, whole
		names []string
	}
	var order []string
	groups := map[string]*same{}
	for _, d := range p.Devices {
		text := deviceText(d, details)
		key := text
		if d.Error != "" {
			key = addressRE.ReplaceAllString(text, "")
		}
		if groups[key] == nil {
			order = append(order, key)
			groups[key] = &same{text: text}
		}
		groups[key].names = append(groups[key].names, d.Name)
	}
	for _, key := range order {
		g := groups[key]
		if len(g.names) == 1 {
			key = g.text
		}
		n := ""
		if len(g.names) > most {
			n = count(len(g.names), "device") + ", "
		}
		fmt.Fprintf(w, "%s (%s%s\n", paint(bold, nameList(g.names)), n, key)
	}
	printFindings(w, p.Finds)
	return printSummary(w, p)
}

// addressRE is the address in an error, which differs between devices that fail in the same way.
var addressRE = regexp.MustCompile(` (\d+\.\d+\.\d+\.\d+|\[[0-9a-fA-F:.%]+\]|[-.\w]*\w):\d+\b`)

// printSummary ends a plan: what changes, what apply will ask for, and what is not part of it.
func printSummary(w io.Writer, p *rollout.Plan) error {
	var ops rollout.Ops // of what will be written
	failed, refused := 0, 0
	for _, d := range p.Devices {
		switch {
		case d.Error != "":
			failed++
		case d.Blocked:
			refused++
		default:
			ops.Add, ops.Set, ops.Remove = ops.Add+d.Ops.Add, ops.Set+d.Ops.Set, ops.Remove+d.Ops.Remove
		}
	}
	var err error
	line := func(format string, args ...any) {
		_, e := fmt.Fprintf(w, format+"\n", args...)
		err = cmp.Or(err, e)
	}
	switch {
	case ops.Total() > 0:
		line("plan: %s (%d to add, %d to set, %d to remove) on %s",
			count(ops.Total(), "setting"), ops.Add, ops.Set, ops.Remove, count(changing(p), "device"))
	case failed+refused == len(p.Devices):
	case failed > 0 || refused > 0:
		line("plan: no changes on the other devices")
	case !slices.ContainsFunc(p.Devices, func(d rollout.DevicePlan) bool { return d.Mode == rollout.Write }):
		line("no changes: the model owns nothing on these devices")
	default:
		line("%s", paint(green, "no changes: the devices hold what the model owns"))
	}
	if ports, devices := disruptive(p); devices > 0 {
		line("apply needs --allow-disruptive: %s on %s flap, or worse", count(ports, "port"), count(devices, "device"))
	}
	if untried := unverified(p); len(untried) > 0 {
		line("apply needs --accept-unverified: nobody has tried %s on a real device", strings.Join(untried, ", "))
	}
	if values, devices := observed(p); values > 0 {
		verb := "differ"
		if values == 1 {
			verb = "differs"
		}
		line("observed: %s %s on %s", count(values, "value"), verb, count(devices, "device"))
	}
	if refused > 0 {
		line("%s", paint(red, "refused: "+count(refused, "device")+" must not be written, as said above"))
	}
	if failed > 0 {
		line("%s", paint(red, count(failed, "device")+" could not be read"))
	}
	return err
}

// disruptive counts the ports that would flap, or worse, and their devices.
func disruptive(p *rollout.Plan) (ports, devices int) {
	for _, d := range p.Devices {
		if class, n := d.Worst(); len(d.Steps) > 0 && class > render.Hitless && class < render.Refused {
			ports, devices = ports+n, devices+1
		}
	}
	return ports, devices
}

// unverified are the platforms to be written that nobody has tried on a real device.
func unverified(p *rollout.Plan) []string {
	var names []string
	for _, d := range p.Devices {
		if len(d.Steps) > 0 && !d.Verified && !p.Lab && !slices.Contains(names, d.Platform) {
			names = append(names, d.Platform)
		}
	}
	return names
}

// observed counts the values on ports that differ from the model and that nobody writes, and their devices.
func observed(p *rollout.Plan) (values, devices int) {
	for _, d := range p.Devices {
		if len(d.Observed) > 0 {
			devices++
		}
		for _, c := range d.Observed {
			values += len(c.Changes) * max(1, len(c.Ports))
		}
	}
	return values, devices
}

func changing(p *rollout.Plan) int {
	n := 0
	for _, d := range p.Devices {
		if len(d.Steps) > 0 {
			n++
		}
	}
	return n
}

// deviceText is what a plan says about one device, from its platform on.
func deviceText(d rollout.DevicePlan, details bool) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, "\n  "+format, args...) }
	behaviour := func(cs []rollout.Behaviour, indent string) {
		for _, c := range cs {
			line("%s%s", indent, portList(c.Ports))
			for _, v := range c.Changes {
				line("  %s%s", indent, strings.TrimRight(pad(v.Label, 30-len(indent))+pad(v.Before+" → "+v.After, 30)+v.From.String(), " "))
			}
		}
	}
	b.WriteString(d.Platform + ")")
	switch {
	case d.Error != "":
		b.WriteString(": " + paint(red, "failed: ") + oneLine(nameless(d.Error, d.Name)))
	case d.Blocked:
		b.WriteString(": " + paint(red, "refused, nothing will be written"))
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
	behaviour(d.Behaviour, "")
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
		line("%s%s: %s", paint(st, r.Class.String()), ports, r.Why)
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
	if len(d.Observed) > 0 {
		line("observed, never written:")
		behaviour(d.Observed, "  ")
	}
	for _, f := range d.Findings {
		if f.Severity > diag.Info || details || (len(d.Steps) > 0 || d.Blocked) && f.Rule != "lift" { // what something changes for, not how it was read
			line("%s", strings.ReplaceAll(findingText(f, d.Name), "\n", "\n  "))
		}
	}
	return b.String()
}

// findingText is f without the device's name in front, which stands above it already.
func findingText(f diag.Finding, device string) string {
	f.At = strings.TrimPrefix(strings.TrimPrefix(f.At, device), ":")
	f.Msg = strings.TrimPrefix(f.Msg, device+" ")
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

// portList names up to six ports in their natural order, and counts the others.
func portList(ports []string) string {
	if len(ports) == 0 {
		return "device"
	}
	s := shortList(ports)
	if len(ports) > most {
		s += " (" + count(len(ports), "port") + ")"
	}
	return s
}

// most is how many names are written out.
const most = 6

// shortList is names in their natural order; of many only the first and the last.
func shortList(names []string) string {
	names = slices.SortedFunc(slices.Values(names), intent.CompareNames)
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s, … %s", strings.Join(names[:most-1], ", "), names[len(names)-1])
}

// nameList is shortList for devices. Many that are numbered without a gap are written as first-last.
func nameList(names []string) string {
	if len(names) <= most {
		return shortList(names)
	}
	names = slices.SortedFunc(slices.Values(names), intent.CompareNames)
	stem := strings.TrimRight(names[0], "0123456789")
	first, err := strconv.Atoi(names[0][len(stem):])
	for i, n := range names {
		if err != nil || n != stem+strconv.Itoa(first+i) {
			return shortList(names)
		}
	}
	return names[0] + "-" + names[len(names)-1]
}

// nameless is an error without the device's name, which stands before it already.
func nameless(msg, device string) string {
	return strings.TrimPrefix(strings.ReplaceAll(msg, ": "+device+": ", ": "), device+": ")
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
