package eos

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s (-want +got):\n%s", name, d)
	}
}

func newSwitch(t *testing.T, o Options) *Switch {
	t.Helper()
	if o.Hostname == "" {
		o.Hostname = "leaf1"
	}
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The published configuration of an RDMA fabric is taken line by line, and what the switch then shows is taken by
// another switch, which shows the same.
func TestPublishedConfiguration(t *testing.T) {
	text, err := os.ReadFile("testdata/rdma.cfg")
	if err != nil {
		t.Fatal(err)
	}
	s := newSwitch(t, Options{Ports: []string{"Ethernet1/1", "Ethernet2/1", "Ethernet10/1"}})
	if err := s.Boot(string(text)); err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/rdma.running", s.Running())
	again := newSwitch(t, Options{Ports: []string{"Ethernet1/1", "Ethernet2/1", "Ethernet10/1"}})
	if err := again.Boot(s.Running()); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(s.Running(), again.Running()); d != "" {
		t.Errorf("typing what is shown changes it (-want +got):\n%s", d)
	}
}

// Every line of the published configuration can be taken back with "default"; what is left is the factory
// configuration.
func TestTakeBack(t *testing.T) {
	text, err := os.ReadFile("testdata/rdma.cfg")
	if err != nil {
		t.Fatal(err)
	}
	s := newSwitch(t, Options{Ports: []string{"Ethernet1/1"}})
	factory := s.Running()
	if err := s.Boot(string(text)); err != nil {
		t.Fatal(err)
	}
	var lines, modes []string
	for l := range strings.Lines(string(text)) {
		l = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(l), "no "))
		switch first, _, _ := strings.Cut(l, " "); {
		case first == "" || first == "!":
		case strings.HasPrefix(l, "qos profile"), first == "interface", first == "platform" && !strings.HasSuffix(l, "apply"):
			lines, modes = append(lines, l), append(modes, "default "+l)
		case first == "uc-tx-queue":
			lines = append(lines, l)
		default:
			lines = append(lines, "default "+l)
		}
	}
	if err := s.Type(strings.Join(append(lines, modes...), "\n")); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(factory, s.Running()); d != "" {
		t.Errorf("left over (-want +got):\n%s", d)
	}
}

func TestLines(t *testing.T) {
	for _, x := range []struct {
		name, text string
		want       string // the last line's sentence, "" when all are taken
		shows      string // a line that must be shown afterwards; "-" before it: must not
	}{
		{"unknown word", "quality of-service", invalid, ""},
		{"unknown word in a mode", "qos profile X\nwhatever", invalid, ""},
		{"unfinished", "qos map dscp 26", incomplete, ""},
		{"unfinished mode", "interface", incomplete, ""},
		{"two readings", "p", ambiguous, ""},
		{"abbreviated", "int et1/1\nqos tru d", "", "   qos trust dscp"},
		{"interface apart from its number", "interface ethernet 3/1\nmtu 9000", "", "interface Ethernet3/1"},
		{"a range is not understood", "interface Ethernet1/1-4/1", invalid, ""},
		{"a list is not understood", "interface Ethernet1/1,2/1", invalid, ""},
		{"mtu too large", "interface Ethernet1/1\nmtu 9216", invalid, ""},
		{"mtu with a sign", "interface Ethernet1/1\nmtu +9000", invalid, ""},
		{"not a number", "interface Ethernet1/1\nmtu 1e3", invalid, ""},
		{"queue 8", "qos profile X\nuc-tx-queue 8", invalid, ""},
		{"the other hardware's queue", "qos profile X\ntx-queue 3", invalid, ""},
		{"timer with three decimals", "priority-flow-control pause watchdog default timeout 0.125", invalid, ""},
		{"timer below its range", "priority-flow-control pause watchdog default timeout 0", invalid, ""},
		{"timer, last digit zero", "priority-flow-control pause watchdog default timeout 0.20", "", "priority-flow-control pause watchdog default timeout 0.2"},
		{"polling with three decimals", "priority-flow-control pause watchdog default polling-interval 0.005", "", "priority-flow-control pause watchdog default polling-interval 0.005"},
		{"percent over 100", "qos profile X\nuc-tx-queue 3\nbandwidth percent 101", invalid, ""},
		{"falling ramp", "qos profile X\nuc-tx-queue 3\nrandom-detect ecn minimum-threshold 2 kbytes maximum-threshold 1 kbytes", "% Invalid threshold: minimum 2 kbytes is not below maximum 1 kbytes", ""},
		{"threshold without a unit", "qos profile X\nuc-tx-queue 3\nrandom-detect ecn minimum-threshold 2 maximum-threshold 3", invalid, ""},
		{"ramp without options", "qos profile X\nuc-tx-queue 3\nrandom-detect ecn minimum-threshold 1 bytes maximum-threshold 3 bytes", "", "      random-detect ecn minimum-threshold 1 bytes maximum-threshold 3 bytes"},
		{"ramp cut short", "qos profile X\nuc-tx-queue 3\nrandom-detect ecn minimum-threshold 1 bytes maximum-threshold", incomplete, ""},
		{"a new value replaces", "interface Ethernet1/1\nmtu 9000\nmtu 9100", "", "-   mtu 9000"},
		{"no with a value", "interface Ethernet1/1\nmtu 9000\nno mtu 9000", "", "-   mtu 9000"},
		{"no without", "interface Ethernet1/1\nmtu 9000\nno mtu", "", "-   mtu 9000"},
		{"no with words too many", "interface Ethernet1/1\nno mtu 9000 please", invalid, ""},
		{"no trust is a line", "interface Ethernet1/1\nno qos trust", "", "   no qos trust"},
		{"no PFC is a line, which wins over a profile", "interface Ethernet1/1\npriority-flow-control on\nno priority-flow-control on", "", "   no priority-flow-control"},
		{"default PFC is none", "interface Ethernet1/1\nno priority-flow-control\ndefault priority-flow-control", "", "-   no priority-flow-control"},
		{"no watchdog is a line", "interface Ethernet1/1\nno priority-flow-control pause watchdog", "", "   no priority-flow-control pause watchdog"},
		{"no-drop is taken back by no", "interface Ethernet1/1\npriority-flow-control priority 3 no-drop\nno priority-flow-control priority 3 no-drop", "", "-   priority-flow-control priority 3 no-drop"},
		{"default trust is none", "interface Ethernet1/1\nno qos trust\ndefault qos trust", "", "-   no qos trust"},
		{"no switchport is a line", "interface Ethernet1/1\nno switchport", "", "   no switchport"},
		{"switchport is not", "interface Ethernet1/1\nno switchport\nswitchport", "", "-   no switchport"},
		{"default code points are not shown", "qos map dscp 3 to traffic-class 1\nqos map dscp 9 to traffic-class 0", "", "-qos map dscp 3 to traffic-class 1"},
		{"others are, by class", "qos map dscp 5 3 to traffic-class 2\nqos map dscp 4 to traffic-class 2", "", "qos map dscp 3 4 5 to traffic-class 2"},
		{"no code point goes back", "qos map dscp 26 to traffic-class 5\nno qos map dscp 26", "", "-qos map dscp 26 to traffic-class 5"},
		{"no with the class too", "qos map dscp 26 to traffic-class 5\nno qos map dscp 26 to traffic-class 5", "", "-qos map dscp 26 to traffic-class 5"},
		{"identity is not shown", "qos map traffic-class 3 to tx-queue 3", "", "-qos map traffic-class 3 to tx-queue 3"},
		{"a global line leaves the mode", "interface Ethernet1/1\nqos map dscp 26 to traffic-class 5\nmtu 9000", invalid, ""},
		{"a line of the mode around leaves the inner one", "qos profile X\nuc-tx-queue 3\npriority-flow-control on\nbandwidth percent 5", invalid, "   priority-flow-control on"},
		{"queue to queue", "qos profile X\nuc-tx-queue 3\nuc-tx-queue 4\nbandwidth percent 5", "", "   uc-tx-queue 4"},
		{"profile gone with its queues", "qos profile X\nuc-tx-queue 3\nno qos profile X", "", "-   uc-tx-queue 3"},
		{"a comment", "!! anything\nip routing ! yes", "", "ip routing"},
		{"a description is free", "interface Ethernet1/1\ndescription to spine# ! not a comment", "", "   description to spine# ! not a comment"},
		{"hostname cannot be taken away", "no hostname", invalid, ""},
		{"names have no spaces", "qos profile a b", invalid, ""},
		{"names have no quotes", `qos profile a"b`, invalid, ""},
		{"a fraction", "platform trident mmu queue profile P\ningress threshold 3/4", "", "   ingress threshold 3/4"},
		{"not a fraction", "platform trident mmu queue profile P\ningress threshold 1/0", invalid, ""},
	} {
		t.Run(x.name, func(t *testing.T) {
			s := newSwitch(t, Options{})
			err := s.Type(x.text)
			if got := sentence(err); got != x.want {
				t.Errorf("said %q, want %q", got, x.want)
			}
			want, absent := strings.CutPrefix(x.shows, "-")
			has := slices.Contains(strings.Split(s.Running(), "\n"), want)
			if x.shows != "" && has == absent {
				t.Errorf("line %q shown: %v\n%s", want, has, s.Running())
			}
		})
	}
}

func sentence(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()[strings.Index(err.Error(), "% "):]
}

func TestPorts(t *testing.T) {
	s := newSwitch(t, Options{Ports: []string{"Ethernet2/1", "Ethernet10/1"}, TxQueue: "tx-queue"})
	if err := s.Type("interface Ethernet3/1"); err == nil {
		t.Error("a port that does not exist was taken")
	}
	if err := s.Type("no interface Ethernet2/1"); err == nil {
		t.Error("a port was removed")
	}
	if err := s.Type("interface Ethernet2/1\nmtu 9000\ntx-queue 3\nrandom-detect ecn count\ndefault interface Ethernet2/1"); err != nil {
		t.Error(err)
	}
	want := "hostname leaf1\n!\ninterface Ethernet2/1\n!\ninterface Ethernet10/1\n"
	if d := cmp.Diff(want, s.Running()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestDiff(t *testing.T) {
	a := "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n"
	b := "a\nb\nC\nd\ne\nf\ng\nh\ni\nj\nk\n"
	want := "--- x\n+++ y\n@@ -1,6 +1,6 @@\n a\n b\n-c\n+C\n d\n e\n f\n@@ -8,3 +8,4 @@\n h\n i\n j\n+k\n"
	if d := cmp.Diff(want, diff("x", "y", a, b)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if d := diff("x", "y", a, a); d != "" {
		t.Errorf("equal texts differ: %q", d)
	}
}

// FuzzType: no line panics, and a line that is refused changes nothing.
func FuzzType(f *testing.F) {
	text, err := os.ReadFile("testdata/rdma.cfg")
	if err != nil {
		f.Fatal(err)
	}
	for l := range strings.Lines(string(text)) {
		f.Add(strings.TrimSpace(l))
	}
	f.Add("no qos map dscp 1 2 3")
	f.Add("interface ethernet 1/1/1/1")
	s, err := New(Options{})
	if err != nil {
		f.Fatal(err)
	}
	kinds := map[string]place{
		"global":  {},
		"profile": {[]string{"qos profile P"}, []kind{inProfile}},
		"queue":   {[]string{"qos profile P", "uc-tx-queue 3"}, []kind{inProfile, inQueue}},
	}
	f.Fuzz(func(t *testing.T, l string) {
		for name, at := range kinds {
			c := factoryConfig("x", nil)
			if _, err := s.typeInto(c, "qos profile P\nuc-tx-queue 3\n"); err != nil {
				t.Fatal(err)
			}
			before := c.text()
			if _, sentence := s.grammar.config(c, at, fields(l)); sentence != "" && c.text() != before && len(fields(l)) > 0 {
				t.Errorf("%s: %q was refused (%s) and changed the configuration", name, l, sentence)
			}
			d := factoryConfig("x", nil)
			if _, err := s.typeInto(d, c.text()); err != nil {
				t.Errorf("%s: after %q the switch shows what it does not take: %v\n%s", name, l, err, c.text())
			}
		}
	})
}
