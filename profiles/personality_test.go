package profiles

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func personality(t *testing.T, name string) Personality {
	t.Helper()
	c, err := Default()
	if err != nil {
		t.Fatal(err)
	}
	p, ok := c.PersonalityNamed(name)
	if !ok {
		t.Fatalf("no personality %s", name)
	}
	return p
}

// TestPersonalities holds every row to what the drivers of hosts rely on.
func TestPersonalities(t *testing.T) {
	c, err := Default()
	if err != nil {
		t.Fatal(err)
	}
	owner := map[string]string{}
	for _, n := range c.NamesOf(KindPersonality) {
		if r := c.find(KindPersonality, n); r.err != nil {
			t.Errorf("%s: %v", n, r.err)
		}
		p, _ := c.PersonalityNamed(n)
		if p.Status == "" || (p.Why == "") != (p.Status == Managed) || p.Verified || p.Description == "" {
			t.Errorf("%s: status %q, why %q, verified %v", n, p.Status, p.Why, p.Verified)
		}
		if n != Generic && len(p.Drivers)+len(p.PCI) == 0 {
			t.Errorf("%s fits no NIC", n)
		}
		for _, d := range p.Drivers {
			if o := owner[d]; o != "" && (len(p.PCI) == 0 || len(mustPersonality(c, o).PCI) == 0) {
				t.Errorf("driver %s has the personalities %s and %s", d, o, n)
			}
			owner[d] = n
		}
		for name, o := range map[string]Object{"app": p.App, "ets": p.ETS, "pfc": p.PFC, "buffer": p.Buffer, "dcbx": p.DCBX} {
			if o.Support == "" || p.Status == Managed && o.Effect == "" {
				t.Errorf("%s: %s is %+v: a row says what is known, and that it is not", n, name, o)
			}
		}
		if p.Status == Managed && p.App.Support == SupportSet && p.AppReplace == "" {
			t.Errorf("%s does not say how an entry is replaced", n)
		}
		if p.Status == Managed && p.DCBX.Support == SupportSet && (p.DCBXOwn == "" || p.DCBXOwn == OwnNothing || p.DCBXRemedy == "" || len(p.DCBXForeign) == 0) {
			t.Errorf("%s does not say how to own its settings: %q, %q, %q", n, p.DCBXOwn, p.DCBXForeign, p.DCBXRemedy)
		}
		names := KnobNames()
		for i, k := range p.Knobs {
			if i > 0 && slices.Index(names, p.Knobs[i-1].Name) >= slices.Index(names, k.Name) {
				t.Errorf("%s: knob %s is out of order, or there twice", n, k.Name)
			}
			if err := k.Check(); err != nil {
				t.Errorf("%s: %s: %v", n, k.Name, err)
			}
		}
		for _, name := range []string{"roce.mode", "roce.tos"} {
			if k, ok := p.Knob(name); !ok || !k.Writable() {
				t.Errorf("%s: %s is %v, and rdma_cm has it for every NIC", n, name, k)
			}
		}
	}
}

func mustPersonality(c *Catalog, name string) Personality {
	p, _ := c.PersonalityNamed(name)
	return p
}

// TestEveryNICHasAPersonality: what a model may name has one, and not the generic one.
func TestEveryNICHasAPersonality(t *testing.T) {
	c, err := Default()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, n := range c.NamesOf(KindNIC) {
		got[n] = c.PersonalityOf(mustNIC(c, n)).Name
		if got[n] == Generic {
			t.Errorf("%s has no personality: its drivers are %q and %q", n, mustNIC(c, n).Driver, mustNIC(c, n).RDMADriver)
		}
	}
	for n, want := range map[string]string{
		"connectx-7": "mlx5", "bluefield-3": "mlx5", "bcm57608": "bnxt", "bcm57708": "bng", "e810": "ice", "x722": "i40e", "hns3": "hns3", "xsc": "xsc", "erdma": "erdma",
		"mana": "mana", "efa": "efa", "pollara-400": "ionic", "nbl": "nbl", "hinic3": "hinic3", "fastlinq-45000": "qede", "chelsio-t6": "iwarp", "siw": "iwarp", "rxe": "rxe",
	} {
		if got[n] != want {
			t.Errorf("%s: got %s, want %s", n, got[n], want)
		}
	}
}

// TestPersonalityOfDriver: driver and id decide before the driver alone, that before the id alone, a user's own before a
// built-in one of the same rank, and nothing is left without.
func TestPersonalityOfDriver(t *testing.T) {
	c, err := Default()
	if err != nil {
		t.Fatal(err)
	}
	entry := func(name string, facts ...string) Entry {
		e := Entry{Kind: KindPersonality, Name: name}
		for i := 0; i < len(facts); i += 2 {
			e.Facts = append(e.Facts, Fact{Key: facts[i], Values: strings.Split(facts[i+1], ",")})
		}
		return e
	}
	c = c.With(
		entry("by-both", "status", "managed", "drivers", "mlx5_core", "pci", "15b3:1021,15b3:1022"),
		entry("by-driver", "status", "managed", "drivers", "bnxt_en"),
		entry("by-id", "status", "managed", "pci", "15b3:1021,1af4:1041"),
	)
	for _, x := range []struct{ driver, pci, want string }{
		{"mlx5_core", "15b3:1021", "by-both"},
		{"mlx5_core", "15b3:1017", "mlx5"},
		{"mlx5_core", "", "mlx5"},
		{"bnxt_en", "14e4:1760", "by-driver"},
		{"virtio_net", "1af4:1041", "by-id"},
		{"virtio_net", "1af4:1000", Generic},
		{"", "", Generic},
		{"irdma", "", "ice"},
	} {
		if p := c.Personality(x.driver, x.pci); p.Name != x.want {
			t.Errorf("driver %q, id %q: got %s, want %s", x.driver, x.pci, p.Name, x.want)
		}
	}
}

// TestPersonalityMaps: the map of code points that a driver has by itself, where it is known.
func TestPersonalityMaps(t *testing.T) {
	for _, x := range []struct {
		name string
		want map[int]int8
	}{
		{"mlx5", map[int]int8{0: 0, 26: 3, 48: 6, 63: 7}},
		{"ice", map[int]int8{0: 0, 15: 3, 26: 0, 46: 3, 48: 3, 63: 0}}, // by the loop in ice_dcbnl_setapp
		{"bnxt", map[int]int8{0: -1, 26: -1}},
		{Generic, map[int]int8{26: -1}},
	} {
		p := personality(t, x.name)
		for dscp, want := range x.want {
			if p.AppDefault[dscp] != want {
				t.Errorf("%s: DSCP %d has priority %d, want %d", x.name, dscp, p.AppDefault[dscp], want)
			}
		}
	}
}

// TestPersonalityTravels: what a user described is known on the host as it is here, and what comes there is not trusted.
func TestPersonalityTravels(t *testing.T) {
	c, err := Default()
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Tell(true)) != 0 || len(c.OwnPersonalities()) != 0 {
		t.Error("what is built in is known there")
	}
	file := Knob{Paths: []string{"/sys/class/net/{netdev}/cc/ai"}, Max: 9, Effect: EffectNone}
	program := Knob{Command: []string{"/usr/bin/mine", "{rdma}"}}
	mine := c.With(
		Entry{Kind: KindPersonality, Name: "mine", Facts: []Fact{
			{Key: "status", Values: []string{"managed"}, Source: "me", Confidence: "low"},
			{Key: "drivers", Values: []string{"a", "b"}, Source: "me", Confidence: "low"},
			{Key: "cc.ai_rate", Values: []string{file.String()}, Source: "me", Confidence: "low"},
			{Key: "cc.hai_rate", Values: []string{program.String()}, Source: "me", Confidence: "low"},
		}},
		Entry{Kind: KindPersonality, Name: "xsc", Facts: []Fact{{Key: "status", Values: []string{"managed"}, Source: "me", Confidence: "low"}}},
	)
	there, err := c.Know(mine.Tell(true))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(mine.OwnPersonalities(), there.OwnPersonalities()); d != "" || len(there.OwnPersonalities()) != 2 {
		t.Errorf("(-here +there):\n%s", d)
	}
	there, err = c.Know(mine.Tell(false))
	if err != nil {
		t.Fatal(err)
	}
	if p := mustPersonality(there, "mine"); len(p.Knobs) != 3 || p.Knobs[2].Name != "cc.ai_rate" {
		t.Errorf("an untrusted model's program travels, or its file does not: %+v", p.Knobs)
	}
	for _, x := range []struct{ message, want string }{
		{`{"name":"a/b","facts":[]}`, "is not a name"},
		{`{"name":"a","facts":[{"key":"status","values":["owned"]}]}`, "is not one of managed"},
		{`{"name":"a","facts":[{"key":"statuss","values":["managed"]}]}`, "is no fact of one"},
		{`{"name":"a","facts":[{"key":"status","values":["managed","managed"]}]}`, "is no fact of one"},
		{`{"name":"a","facts":[{"key":"roce.tos","values":["{\"paths\":[\"/proc/sys/kernel/core_pattern\"],\"max\":1,\"effect\":\"none\"}"]}]}`, "want a file of this NIC"},
		{`{"name":"a","facts":[{"key":"roce.tos","values":["{\"command\":[\"/bin/sh\"]}"]}]}`, "not a shell"},
		{`{"name":"a","more":1}`, "unknown field"},
		{`[]`, "personality: "},
	} {
		if _, err := c.Know([]json.RawMessage{json.RawMessage(x.message)}); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: got %v, want %q", x.message, err, x.want)
		}
	}
}
