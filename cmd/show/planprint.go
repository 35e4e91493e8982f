package show

import (
	"cmp"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/fabricctl/fabricctl/drivers/rollout"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/render"
)

// Plan writes a plan for people: the devices, what changes on which ports, what that does to traffic, and a
// summary. What is the same for several devices or ports is said once.
func Plan(w io.Writer, p *rollout.Plan, details bool) error {
	var b strings.Builder
	printDevices(&b, p, details)
	printGroups(&b, "", rollout.Groups(p))
	if gs := rollout.LeftGroups(p); len(gs) > 0 {
		b.WriteString("held, left out:\n")
		printGroups(&b, "  ", gs)
	}
	if gs := rollout.ObservedGroups(p); len(gs) > 0 {
		b.WriteString("observed, never written:\n")
		printGroups(&b, "  ", gs)
	}
	printRisks(&b, rollout.Risks(p))
	for _, n := range rollout.Notes(p, details) {
		Hang(&b, NameList(n.Devices)+": ", n.Text)
	}
	Findings(&b, p.Finds)
	for _, s := range summarise(p).sentences() {
		if s.style == Plain {
			b.WriteString(s.text + "\n")
		} else {
			b.WriteString(Paint(s.style, s.text) + "\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// deviceSet is devices of which the same is to be said.
type deviceSet struct {
	names          []string
	platform, text string
}

// sameDevices puts devices together whose text is the same but for the name and, unless every detail is wanted, for the
// address in an error, which is left out then.
func sameDevices(p *rollout.Plan, details bool, text func(rollout.DevicePlan) string) []*deviceSet {
	var sets []*deviceSet
	at := map[string]*deviceSet{}
	for _, d := range p.Devices {
		t := text(d)
		key := d.Platform + ": " + t
		if !details {
			key = d.Platform + ": " + placeless(t)
		}
		if at[key] == nil {
			at[key] = &deviceSet{platform: d.Platform, text: t}
			sets = append(sets, at[key])
		} else {
			at[key].text = strings.TrimPrefix(key, d.Platform+": ")
		}
		at[key].names = append(at[key].names, d.Name)
	}
	return sets
}

// placeless is what is said of a device without the address in the lines that say why it could not be read.
func placeless(text string) string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		if strings.Contains(l, "failed") || strings.Contains(l, " not-read: ") {
			lines[i] = AddressRE.ReplaceAllString(l, "")
		}
	}
	return strings.Join(lines, "\n")
}

// AddressRE matches the address in an error, which differs between devices that fail in the same way.
var AddressRE = regexp.MustCompile(` (\d+\.\d+\.\d+\.\d+|\[[0-9a-fA-F:.%]+\]|[-.\w]*\w):\d+\b`)

func printDevices(b *strings.Builder, p *rollout.Plan, details bool) {
	for _, s := range sameDevices(p, details, func(d rollout.DevicePlan) string { return DeviceText(d, details) }) {
		b.WriteString(Counted(s.names, "device", s.platform) + ": " + s.text + "\n")
	}
}

// DeviceText is what a plan says about one device, from what it does with it on.
func DeviceText(d rollout.DevicePlan, details bool) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, "\n  "+format, args...) }
	word := deviceWord(d)
	if d.Error != "" || d.Blocked {
		first, rest, _ := strings.Cut(word, ": ")
		word = Paint(Red, first)
		if rest != "" {
			word += ": " + rest
		}
	}
	b.WriteString(word)
	if details {
		for _, s := range d.Steps {
			line("step: %s", s.Why)
			for _, c := range s.Changes {
				line("  %s", changeText(c))
			}
		}
	}
	for _, l := range adoptLines(d, details) {
		line("%s", l)
	}
	for _, h := range heldLines(d) {
		line("%s", h)
	}
	for _, f := range Told(d, details) {
		line("%s", strings.ReplaceAll(f.String(), "\n", "\n  "))
	}
	return b.String()
}

// adoptLines say which live objects stand for ours: with details each, else how many.
func adoptLines(d rollout.DevicePlan, details bool) []string {
	if !details && len(d.Adopted) > 0 {
		return []string{"adopts " + diag.Count(len(d.Adopted), "object")}
	}
	var lines []string
	for ours, live := range sorted(d.Adopted) {
		lines = append(lines, fmt.Sprintf("adopts %s (for %s)", strings.TrimSpace(ours.Scope+" "+diag.Line(live)), ours.Object))
	}
	return lines
}

// deviceWord is what a plan does with a device.
func deviceWord(d rollout.DevicePlan) string {
	switch {
	case d.Error != "":
		return "failed: " + diag.OneLine(Nameless(d.Error, d.Name))
	case d.Blocked:
		return "refused, nothing will be written"
	case d.Mode != rollout.Write && d.Reason != "":
		return string(d.Mode) + ", " + d.Reason
	case d.Mode != rollout.Write:
		return string(d.Mode)
	case d.Left != nil && d.Left.Ops.Total() == 0:
		return "held, and could not be read"
	case d.Ops.Total() == 0 && d.Left != nil:
		return fmt.Sprintf("held, %s left out", diag.Count(d.Left.Ops.Total(), "setting"))
	case d.Ops.Total() == 0:
		return "no changes"
	case d.Left != nil:
		return fmt.Sprintf("%s in %s, %s left out", diag.Count(d.Ops.Total(), "setting"), diag.Count(len(d.Steps), "step"), diag.Count(d.Left.Ops.Total(), "held setting"))
	case len(d.Behaviour) == 0:
		return fmt.Sprintf("%s in %s, behaviour unchanged; --details lists them", diag.Count(d.Ops.Total(), "setting"), diag.Count(len(d.Steps), "step"))
	}
	return fmt.Sprintf("%s in %s", diag.Count(d.Ops.Total(), "setting"), diag.Count(len(d.Steps), "step"))
}

// Told are the findings about a device that a reader should see, without its name in front, which stands above them.
// How the device was read is only told with details, and so is what would be in the way of a change that there is none of.
func Told(d rollout.DevicePlan, details bool) diag.List {
	var l diag.List
	for _, f := range d.Findings {
		if f.Rule == render.NeedsAdoption && !d.Blocked && !details {
			continue
		}
		if f.Severity > diag.Info || details || (len(d.Steps) > 0 || d.Blocked || len(d.Held) > 0) && f.Rule != "lift" {
			f.At = strings.TrimPrefix(strings.TrimPrefix(f.At, d.Name), ":")
			f.Msg = strings.TrimPrefix(Nameless(f.Msg, d.Name), d.Name+" ")
			l = append(l, f)
		}
	}
	return l
}

// printGroups writes groups with their numbers, places and values.
func printGroups(b *strings.Builder, indent string, gs []rollout.Group) {
	for i, g := range gs {
		title := groupTitle(g)
		if indent != "" {
			title = places(g)
		}
		fmt.Fprintf(b, "%s%s %s\n", indent, Paint(Bold, fmt.Sprintf("%d.", i+1)), title)
		for _, l := range onLines(g.On) {
			Hang(b, indent+"   on ", l)
		}
		if len(g.Refused) > 0 && len(g.Refused) < len(g.Devices()) {
			Hang(b, indent+"   "+Paint(Red, "not written: "), NameList(g.Refused))
		}
		values, base := g.Changes, []rollout.BehaviourValue(nil)
		if g.Like > 0 {
			base = gs[g.Like-1].Changes
			values = rollout.Compare(base, g.Changes)
			fmt.Fprintf(b, "%s   as %d, but\n", indent, g.Like)
		}
		label, move := 26, 27
		for _, v := range values {
			label, move = max(label, utf8.RuneCountInString(v.Label)), max(move, utf8.RuneCountInString(moveText(v)))
		}
		for _, v := range values {
			line := Pad(v.Label, min(label, 50)+3) + Pad(moveText(v), min(move, 50)+3)
			if v.Before != "" || v.After != "" {
				line += v.From.String()
			}
			b.WriteString(indent + "     " + strings.TrimRight(line, " ") + "\n")
		}
	}
}

// moveText is what becomes of a value. One that the group it is compared with changes, and this one does not, has no
// texts.
func moveText(v rollout.BehaviourValue) string {
	if v.Before == "" && v.After == "" {
		return "no change here"
	}
	return v.Before + " → " + v.After
}

// groupTitle says how many ports a group has, and what happens to them.
func groupTitle(g rollout.Group) string {
	risk := riskWords(g)
	switch {
	case len(g.Refused) == len(g.Devices()):
		risk = Paint(Red, risk)
	case g.Risk > render.Hitless:
		risk = Paint(Yellow, risk)
	}
	return places(g) + ", " + risk
}

func places(g rollout.Group) string {
	return diag.Count(g.Ports, "port") + " on " + diag.Count(len(g.Devices()), "device")
}

// onLines are places, one line for devices with the same ports. Of very many the rest is counted.
func onLines(on []rollout.Set) []string {
	var lines []string
	for i, s := range on {
		if i == Most {
			g := rollout.Group{On: on[i:]}
			return append(lines, fmt.Sprintf("%s more; -o json lists them", diag.Count(len(g.Devices()), "device")))
		}
		l := NameList(s.Devices)
		if len(s.Ports) > 0 {
			l += ": " + PortList(s.Ports)
		}
		lines = append(lines, l)
	}
	return lines
}

// printRisks writes the table of what the plan does to traffic.
func printRisks(b *strings.Builder, rows []rollout.RiskRow) {
	if len(rows) == 0 {
		return
	}
	b.WriteString(Pad("risk", 9) + Pad("devices", 9) + Pad("ports", 7) + "why\n")
	for _, r := range rows {
		st := Yellow
		switch r.Class {
		case render.Refused:
			st = Red
		case render.Hitless:
			st = Plain
		}
		head := Paint(st, r.Class.String()) + strings.Repeat(" ", 9-len(r.Class.String())) +
			Pad(fmt.Sprint(len(r.Devices())), 9) + Pad(fmt.Sprint(r.Ports), 7)
		Hang(b, head, r.Why)
		for _, l := range onLines(r.On) {
			Hang(b, strings.Repeat(" ", 25)+"on ", l)
		}
		if kills := r.Kills(); kills != "" {
			Hang(b, strings.Repeat(" ", 25), Paint(Yellow, kills))
		}
	}
}

// Hang writes text after head; where the line becomes too long it goes on below the text. Words are not cut.
func Hang(w io.Writer, head, text string) {
	fmt.Fprint(w, head+string([]byte{mark, byte(hanging)})+strings.Join(strings.Fields(text), " ")+"\n")
}

// Pad fills s with spaces up to a width in characters, and by one at least.
func Pad(s string, width int) string {
	return s + strings.Repeat(" ", max(1, width-utf8.RuneCountInString(s)))
}

func from(p diag.Pos) string {
	if p.IsZero() {
		return ""
	}
	return "   " + p.String()
}

// Nameless is an error without the device's name, which stands before it already.
func Nameless(msg, device string) string {
	return strings.TrimPrefix(strings.ReplaceAll(msg, ": "+device+": ", ": "), device+": ")
}

func changeText(c render.Change) string {
	at := strings.Trim(c.Key.Scope+" "+c.Key.Object, " ")
	if c.Key.Field != "" {
		at += " " + c.Key.Field
	}
	at = diag.Line(at)
	show := func(s *string) string { return cmp.Or(diag.Line(*s), `""`) }
	switch c.Op {
	case render.Add:
		return fmt.Sprintf("+ %s = %s%s", at, show(c.After), from(c.From))
	case render.Remove:
		return fmt.Sprintf("- %s (was %s)", at, show(c.Before))
	}
	return fmt.Sprintf("~ %s: %s → %s%s", at, show(c.Before), show(c.After), from(c.From))
}

// heldLines say who holds what of a device, without its name in front, which stands above them.
func heldLines(d rollout.DevicePlan) []string {
	var out []string
	for _, h := range d.Held {
		out = append(out, strings.TrimPrefix(strings.TrimPrefix(h.String(), d.Name+" is "), d.Name+":"))
	}
	return out
}
