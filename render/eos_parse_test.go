package render

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestEOSParse reads what users and devices write into keys and values; text says how it is written back, where that
// differs.
func TestEOSParse(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       string // key = value, one a line
		says       string
	}{
		{"comments, ends and separators", "! Command: show running-config\r\n! device: leaf1 (DCS-7060, EOS-4.31.2F)\r\n!\r\nhostname a ! b\r\nqos profile P\r\n   !! ours\r\n   !\r\nend\r\n", `
hostname a = ""
qos profile P = ""`, ""},
		{"free text is not configuration", "banner login\ninterface Ethernet1\n   mtu 9\nEOF\ninterface Ethernet2\n   description up ! down\n", `
banner login = ""
interface Ethernet2 = ""
interface Ethernet2|description up ! down = ""`, ""},
		{"free text without an end", "interface Ethernet1\nbanner motd\nmtu 9\n", `
banner motd = ""
interface Ethernet1 = ""`, `the configuration ends inside "banner motd"`},
		{"maps", "qos map dscp 1 3-4,6 to traffic-class 7\nqos map traffic-class 2 to tx-queue 5\nqos map traffic-class 2 to dscp 9\nqos map dscp 63-64 to traffic-class 1\nqos map dscp 4-3 to traffic-class 1\nqos map dscp 5 to traffic-class 8\nqos map dscp to traffic-class 1\n", `
qos map dscp 1 to traffic-class = "7"
qos map dscp 3 to traffic-class = "7"
qos map dscp 4 to traffic-class = "7"
qos map dscp 4-3 to traffic-class 1 = ""
qos map dscp 5 to traffic-class 8 = ""
qos map dscp 6 to traffic-class = "7"
qos map dscp 63-64 to traffic-class 1 = ""
qos map dscp to traffic-class 1 = ""
qos map traffic-class 2 to dscp 9 = ""
qos map traffic-class 2 to tx-queue = "5"`, ""},
		{"no is a state of some lines", "interface Ethernet1\n no qos trust\n no priority-flow-control on\n no priority-flow-control pause watchdog\n no priority-flow-control priority 3 no-drop\n no switchport\n no mtu\n uc-tx-queue 3\n  no priority\n", `
interface Ethernet1 = ""
interface Ethernet1|no mtu = ""
interface Ethernet1|no switchport = ""
interface Ethernet1|priority-flow-control = "no"
interface Ethernet1|priority-flow-control pause watchdog = "no"
interface Ethernet1|priority-flow-control priority 3 = "no"
interface Ethernet1|qos trust = "no"
interface Ethernet1>uc-tx-queue 3|priority = "no"`, ""},
		{"compound lines, in any order, whole or not at all", "qos profile P\n   uc-tx-queue 3\n      random-detect ecn weight 0 minimum-threshold 5 bytes\n      random-detect ecn weight 1 weight 2\n      random-detect ecn minimum-threshold 5\n      random-detect ecn count\n   priority-flow-control pause watchdog port timer forced timeout 1.50\n", `
qos profile P = ""
qos profile P|priority-flow-control pause watchdog port timer|forced = ""
qos profile P|priority-flow-control pause watchdog port timer|timeout = "1.5"
qos profile P|uc-tx-queue 3 = ""
qos profile P>uc-tx-queue 3|random-detect ecn|minimum-threshold = "5 bytes"
qos profile P>uc-tx-queue 3|random-detect ecn|weight = "0"
qos profile P>uc-tx-queue 3|random-detect ecn count = ""
qos profile P>uc-tx-queue 3|random-detect ecn minimum-threshold 5 = ""
qos profile P>uc-tx-queue 3|random-detect ecn weight 1 weight 2 = ""`, ""},
		{"seconds, the shortest way", "priority-flow-control pause watchdog default timeout 00.200\npriority-flow-control pause watchdog default recovery-time 60.00\npriority-flow-control pause watchdog default polling-interval auto\n", `
priority-flow-control pause watchdog default polling-interval = "auto"
priority-flow-control pause watchdog default recovery-time = "60"
priority-flow-control pause watchdog default timeout = "0.2"`, ""},
		{"modes that nobody knows", "router bgp 1\n   neighbor a>b\n      priority strict\n   mtu 1500\n      mtu 9000\nclass-map x%y\n   x\n", `
class-map x%y = ""
router bgp 1 = ""
class-map x%25y|x = ""
router bgp 1|mtu = "9000"
router bgp 1|neighbor a>b = ""
router bgp 1>neighbor a%3Eb|priority = "strict"`, `set twice, to "1500" and "9000"; the last one is taken`},
	} {
		c, l := eos.Parse([]byte(tt.text))
		if diff := cmp.Diff(strings.Split(strings.TrimPrefix(tt.want, "\n"), "\n"), c.lines()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
		if tt.says == "" && len(l) > 0 || tt.says != "" && (len(l) != 1 || !strings.Contains(l[0].Msg, tt.says)) {
			t.Errorf("%s: findings %v", tt.name, l)
		}
		if again, l := eos.Parse(eos.Text(c)); !again.Equal(c) || len(l) > 0 {
			t.Errorf("%s: written back, it reads as (-want +got):\n%s\n%v", tt.name, cmp.Diff(c.lines(), again.lines()), l)
		}
	}
}

func TestEOSSame(t *testing.T) {
	profile, port := "qos profile P", "interface Ethernet1"
	for _, tt := range []struct {
		k    Key
		a, b *string
		want bool
	}{
		{Key{"", eosDSCP(0), ""}, nil, new("1"), true},
		{Key{"", eosDSCP(15), ""}, new("0"), nil, true},
		{Key{"", eosDSCP(26), ""}, nil, new("3"), true},
		{Key{"", eosDSCP(26), ""}, nil, new("4"), false},
		{Key{"", eosTC(6), ""}, nil, new("6"), true},
		{Key{"", eosTC(6), ""}, nil, new("5"), false},
		{Key{"", eosTimeout, ""}, new("0.20"), new("0.2"), true},
		{Key{"", eosTimeout, ""}, new("0.20"), new("2"), false},
		{Key{"", eosTimeout, ""}, nil, new("0.2"), false},
		{Key{profile, eosTimer, "timeout"}, new("1.0"), new("1"), true},
		{Key{port, eosTrust, ""}, new("dscp"), nil, true},
		{Key{port, eosTrust, ""}, new("no"), nil, false},
		{Key{profile, eosTrust, ""}, new("dscp"), nil, false},
		{Key{port, eosPFC, ""}, new("no"), nil, false}, // it wins over the profile
		{Key{profile, eosPFC, ""}, new("no"), nil, true},
		{Key{port, eosPFC, ""}, new("on"), nil, false},
		{Key{port, eosNoDrop(3), ""}, new("drop"), nil, false},
		{Key{port, eosNoDrop(3), ""}, new("no"), nil, false},
		{Key{profile, eosNoDrop(3), ""}, new("drop"), nil, true},
		{Key{profile, eosNoDrop(3), ""}, new("no"), new("drop"), true},
		{Key{port, eosNoDrop(3), ""}, new("no"), new("drop"), true},
		{Key{port, eosNoDrop(3), ""}, new("no-drop"), nil, false},
		{Key{port, eosWatchdog, ""}, new("no"), nil, false},
		{Key{profile + ">uc-tx-queue 3", eosECN, "minimum-threshold"}, new("500 kbytes"), new("500000 bytes"), false},
		{Key{"", "qos profile P", ""}, nil, new(""), false},
		{Key{"", "qos profile P", ""}, nil, nil, true},
	} {
		if eos.Same(tt.k, tt.a, tt.b, Facts{}) != tt.want || eos.Same(tt.k, tt.b, tt.a, Facts{}) != tt.want {
			t.Errorf("%s: same is not %v", tt.k, tt.want)
		}
	}
}

// TestEOSWindow moves a marking ramp up and down by more than its width.
func TestEOSWindow(t *testing.T) {
	at := func(lo, hi string) Config {
		k := Key{"qos profile P>uc-tx-queue 3", eosECN, ""}
		return Config{{Key: Key{k.Scope, k.Object, "maximum-threshold"}, Value: hi}, {Key: Key{k.Scope, k.Object, "minimum-threshold"}, Value: lo}}
	}
	low, high := at("100 bytes", "200 bytes"), at("1000 bytes", "2000 bytes")
	for _, tt := range []struct {
		from, to Config
		first    string
	}{{low, high, "maximum-threshold"}, {high, low, "minimum-threshold"}} {
		cs := Diff(&eos, Facts{}, tt.from, tt.to)
		if len(cs) != 2 || cs[0].Key.Field != tt.first {
			t.Errorf("changes %s", changes(cs))
		}
		lines := eos.Lines(tt.from, cs[:1]) // stopped half way: one whole line, still in order
		if len(lines) != 5 || strings.Count(lines[2].Text, "threshold") != 2 {
			t.Errorf("lines %v", lines)
		}
	}
}

func TestEOSRemoval(t *testing.T) {
	for _, tt := range []struct{ object, before, want string }{
		{eosMTU, "9214", "no mtu 9214"},
		{eosPriority, "strict", "default priority"},
		{eosPriority, "no", "default priority"},
		{eosTrust, "dscp", "default qos trust"},
		{eosPFC, "on", "default priority-flow-control"},
		{eosPFC, "no", "default priority-flow-control"},
		{eosNoDrop(3), "drop", "default priority-flow-control priority 3 no-drop"},
		{eosNoDrop(3), "no-drop", "default priority-flow-control priority 3 no-drop"},
		{eosAllOff, "", "no priority-flow-control all off"},
		{eosWatchdog, "", "default priority-flow-control pause watchdog"},
		{eosWatchdog, "no", "default priority-flow-control pause watchdog"},
		{"no switchport", "", "default switchport"},
		{"qos profile P", "", "no qos profile P"},
	} {
		if got := eosRemoval(tt.object, tt.before); got != tt.want {
			t.Errorf("%s = %q is removed by %q, want %q", tt.object, tt.before, got, tt.want)
		}
	}
}

func TestEOSToMillis(t *testing.T) {
	for s, want := range map[string]int32{"0.2": 200, "0.20": 200, "60": 60_000, "0.005": 5, "10.001": 10_001, "00.1": 100} {
		if got, ok := eosToMillis(s); !ok || got != want {
			t.Errorf("%s seconds are %d ms (%v), want %d", s, got, ok, want)
		}
	}
	for _, s := range []string{"", "0.0005", "1e3", "-1", ".5", "1.", "9999999", "auto"} {
		if got, ok := eosToMillis(s); ok {
			t.Errorf("%q seconds are %d ms", s, got)
		}
	}
}

// checkParser holds for any bytes at all: what was read is written so that it reads back the same, Lift takes it, and
// nothing panics.
func checkParser(t *testing.T, d *Dialect, b []byte) {
	c, _ := d.Parse(b)
	text := d.Text(c)
	again, l := d.Parse(text)
	if len(l) > 0 || !again.Equal(c) {
		t.Fatalf("Parse(Text(c)) of %q (-want +got):\n%s\n%v\n%s", b, cmp.Diff(c.lines(), again.lines()), l, text)
	}
	d.Lift(c, Facts{})
	for _, s := range c {
		d.Refs(s.Key, s.Value)
	}
	d.Lines(c, Undo(Diff(d, Facts{}, nil, c)))
}

func FuzzEOSParse(f *testing.F) {
	for _, name := range []string{"eos-leaf.txt", "eos-sample.txt"} {
		f.Add(read(f, name))
	}
	f.Add([]byte(eosForeign))
	f.Add([]byte("interface a>b\r\n  mtu 1\r\n  x%3Ey\r\n     z ! c\r\nbanner login\ninterface Ethernet1\n mtu 9\nEOF\n no priority\nqos map dscp 0-63 to traffic-class 7\n"))
	f.Add([]byte("mtu 1\n mtu 2\n  mtu 3\nrandom-detect ecn\nrandom-detect ecn weight 0\n uc-tx-queue 3\nno no mtu\nno\n\xff\n!\nend"))
	f.Fuzz(func(t *testing.T, b []byte) { checkParser(t, &eos, b) })
}
