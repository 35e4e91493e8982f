package sshcli

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	lab "github.com/fabricctl/fabricctl/drivers/lab/eos"
	"github.com/fabricctl/fabricctl/render"
)

// The dialect and the emulator were written apart. For any two configurations, the lines that the dialect types take
// the emulator from one to the other and back, line after line without a refusal.
func TestDialectTypesWhatTheSwitchTakes(t *testing.T) {
	d := render.ByOS("eos")
	ports := []string{"Ethernet1/1", "Ethernet2/1"}
	rapid.Check(t, func(t *rapid.T) {
		parse := func(s *lab.Switch) render.Config {
			c, l := d.Parse([]byte(s.Running()))
			if l.HasErrors() {
				t.Fatal(l)
			}
			return c
		}
		boot := func(label string) *lab.Switch {
			s, err := lab.New(lab.Options{Ports: ports})
			if err != nil {
				t.Fatal(err)
			}
			text := configuration(t, label, ports)
			if err := s.Boot(text); err != nil {
				t.Fatalf("%v in\n%s", err, text)
			}
			return s
		}
		sw := boot("from")
		from, want := parse(sw), parse(boot("to"))
		move := func(what string, live, want render.Config) {
			cs := render.Diff(d, render.Facts{}, live, want)
			if err := typeLines(sw, d.Lines(live, cs)); err != nil {
				t.Fatalf("%s: %v\n%v", what, err, cs)
			}
			if left := render.Diff(d, render.Facts{}, parse(sw), want); len(left) > 0 {
				t.Fatalf("%s: still to do: %v\nlines: %v\n%s", what, left, d.Lines(live, cs), sw.Running())
			}
		}
		move("there", from, want)
		move("and back", parse(sw), from)
	})
}

// typeLines types lines as Commit would: "exit" leaves a mode, which Type does by entering the modes around again.
func typeLines(sw *lab.Switch, lines []render.Line) error {
	var b strings.Builder
	var path []string
	for _, l := range lines {
		switch {
		case l.Text == "exit":
			path = path[:len(path)-1]
			b.WriteString(strings.Join(path, "\n") + "\n")
		case l.Mode:
			path = append(path, l.Text)
			b.WriteString(l.Text + "\n")
		default:
			b.WriteString(l.Text + "\n")
		}
	}
	return sw.Type(b.String())
}

// configuration draws lines that both sides know.
func configuration(t *rapid.T, label string, ports []string) string {
	var b strings.Builder
	put := func(format string, a ...any) { fmt.Fprintf(&b, format+"\n", a...) }
	draw := func(what string, n int) int { return rapid.IntRange(0, n-1).Draw(t, label+" "+what) }
	for range draw("maps", 4) {
		put("qos map dscp %d to traffic-class %d", draw("dscp", 64), draw("class", 8))
		put("qos map traffic-class %d to tx-queue %d", draw("class", 8), draw("queue", 8))
	}
	var profiles []string
	for i := range draw("profiles", 3) {
		p := fmt.Sprintf("fctl-%d", i)
		profiles = append(profiles, p)
		put("qos profile %s", p)
		if draw("trust", 2) == 0 {
			put("qos trust dscp")
		}
		for range draw("queues", 4) {
			put("uc-tx-queue %d", draw("queue", 8))
			switch draw("scheduling", 3) {
			case 0:
				put("priority strict")
			case 1:
				put("no priority")
				put("bandwidth percent %d", 1+draw("percent", 100))
			}
			if draw("ecn", 2) == 0 {
				lo := 1000 * (1 + draw("kmin", 1000))
				put("random-detect ecn minimum-threshold %d bytes maximum-threshold %d bytes max-mark-probability %d weight 0", lo, lo+1000*draw("ramp", 1000), 1+draw("pmax", 100))
			}
		}
		if draw("pfc", 2) == 0 {
			put("priority-flow-control on")
			put("priority-flow-control priority %d no-drop", draw("priority", 8))
			put("priority-flow-control pause watchdog")
		}
	}
	if draw("watchdog", 2) == 0 {
		put("priority-flow-control pause watchdog default timeout 0.%d", 1+draw("timeout", 9))
		put("priority-flow-control pause watchdog action %s", []string{"drop", "no-drop"}[draw("action", 2)])
	}
	for _, p := range ports {
		put("interface %s", p)
		if draw("mtu", 2) == 0 {
			put("mtu %d", 9000+draw("size", 215))
		}
		if len(profiles) > 0 && draw("bind", 2) == 0 {
			put("service-profile %s", profiles[draw("profile", len(profiles))])
		}
	}
	return b.String()
}
