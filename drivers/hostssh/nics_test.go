package hostssh

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/drivers/lab/host"
	"github.com/fabricctl/fabricctl/render"
)

// family is a NIC, what a model asks of it on eth0, and what it costs the first time.
type family struct {
	nic, personality string
	want             []string
	flaps, gaps      int
}

func families() []family {
	const eight, packed = "ets|eth0|prio-tc=0:0 1:1 2:2 3:3 4:4 5:5 6:6 7:7", "ets|eth0|prio-tc=0:0 1:0 2:0 3:1 4:0 5:0 6:2 7:0"
	ets := []string{"ets|eth0|tsa=0:ets 1:ets 2:strict 3:strict 4:strict 5:strict 6:strict 7:strict", "ets|eth0|bandwidth=0:40 1:60 2:0 3:0 4:0 5:0 6:0 7:0"}
	own := []string{"dcbx|eth0|mode=host ieee", "pause|eth0|receive=off", "pause|eth0|send=off", "app|eth0|dscp 26=3", "pfc|eth0|priorities=3", "roce|eth0|tos=104"}
	return []family{
		{"connectx-7", "mlx5", slices.Concat(own, ets, []string{eight, "app|eth0|dscp 48=6", "pfc|eth0|delay=30", "cc|eth0|ai_rate=10", "buffer|eth0|priorities=0:0 1:0 2:0 3:1 4:0 5:0 6:0 7:0"}), 1, 0},
		{"bcm57508", "bnxt", slices.Concat(own, ets, []string{packed, "app|eth0|dscp 48=6", "cc|eth0|cnp-dscp=46"}), 0, 0},
		{"e810", "ice", slices.Concat(own, []string{
			"flag|eth0|fw-lldp-agent=off", "app|eth0|dscp 48=2", "ets|eth0|prio-tc=0:0 1:1 2:2 3:3 4:0 5:0 6:0 7:0",
			"ets|eth0|tsa=0:ets 1:strict 2:strict 3:ets 4:strict 5:strict 6:strict 7:strict", "ets|eth0|bandwidth=0:40 1:0 2:0 3:60 4:0 5:0 6:0 7:0", "ets|eth0|willing=off",
		}), 5, 0}, // link pause, two entries, ETS, PFC
		{"hns3", "hns3", slices.Concat(own, ets, []string{packed, "app|eth0|dscp 48=6"}), 0, 2},
		{"made-up", "generic", slices.Concat(own, ets, []string{eight, "app|eth0|dscp 48=6"}), 0, 0},
	}
}

func nicHost(t *testing.T, nic string) (*host.Host, Config) {
	return emulated(t, host.Options{Confirm: true, Links: []host.Link{
		{Name: "eth0", MTU: 1500, Min: 68, Max: 9978, PCI: "0000:17:00.0", NIC: nic, Addresses: []string{"192.0.2.1/31"}, Management: true},
	}})
}

// asks is the changes that lead from what the host holds to these settings.
func asks(t *testing.T, c drivers.Reader, want ...string) []render.Change {
	t.Helper()
	live, err := c.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var cs []render.Change
	for _, w := range want {
		key, v, _ := strings.Cut(w, "=")
		p := strings.SplitN(key, "|", 3)
		ch := render.Change{Op: render.Add, Key: render.Key{Scope: p[0], Object: p[1], Field: p[2]}, After: &v}
		if now, ok := live.Find(ch.Key); ok {
			ch.Op, ch.Before = render.Modify, &now
		}
		hidden := p[0] == "pause" && v == "off" && ch.Before == nil // as ice does while PFC is on
		if !hidden && (ch.Before == nil || *ch.Before != v) {
			cs = append(cs, ch)
		}
	}
	return cs
}

// What a model asks of each family of NICs is in force after one commit, at the price that its driver takes; a second one
// writes nothing; and the way back leads to where it was.
func TestFamilies(t *testing.T) {
	for _, f := range families() {
		t.Run(f.nic, func(t *testing.T) {
			h, cfg := nicHost(t, f.nic)
			c := dial(t, cfg)
			facts, _, err := c.Facts(t.Context())
			if err != nil || len(facts.NICs) != 1 || facts.NICs[0].Personality != f.personality {
				t.Fatalf("%v, %+v", err, facts.NICs)
			}
			before := h.Held()
			cs := asks(t, c, f.want...)
			if err := c.Commit(t.Context(), "tx1", cs, 0); err != nil {
				t.Fatal(err)
			}
			if rest := asks(t, c, f.want...); len(rest) > 0 {
				t.Errorf("not in force: %v", rest)
			}
			if n := h.Counters(); n.Downs != f.flaps || n.Gaps != f.gaps {
				t.Errorf("%d flaps and %d gaps, want %d and %d", n.Downs, n.Gaps, f.flaps, f.gaps)
			}
			writes := h.Writes()
			if err := c.Commit(t.Context(), "tx2", cs, 0); err != nil || h.Writes() != writes {
				t.Errorf("the same again: %v, %d writes", err, h.Writes()-writes)
			}
			if err := c.Commit(t.Context(), "tx3", render.Undo(cs), 0); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(before, h.Held()); d != "" {
				t.Errorf("after the undo (-before +after):\n%s", d)
			}
		})
	}
}

// An acknowledged set that did not take is reported as that, for every object of every family. A busy driver refuses, and
// one that answers with neither is believed when it reads back.
func TestFamiliesGoWrong(t *testing.T) {
	tried := map[string][]string{} // by NIC, what was set
	for _, f := range families() {
		for _, scope := range []string{"dcbx", "pfc", "ets", "app", "buffer", "pause", "link", "roce", "cc", "ring", "fec", "pci"} {
			for _, how := range []host.Wrong{host.Lies, host.Busy, host.Positive} {
				t.Run(fmt.Sprintf("%s %s %s", f.nic, scope, how), func(t *testing.T) {
					h, cfg := nicHost(t, f.nic)
					if f.nic == "e810" {
						if err := h.Firmware("eth0", false); err != nil {
							t.Fatal(err)
						}
					}
					c := dial(t, cfg)
					want := append(slices.DeleteFunc(slices.Clone(f.want), func(w string) bool { return !strings.HasPrefix(w, scope+"|") }), map[string]string{
						"link": "link|eth0|mtu=9000", "ring": "ring|eth0|rx=4096", "fec": "fec|eth0|mode=rs", "pci": "pci|eth0|max-read-request=4096",
					}[scope])
					want = slices.DeleteFunc(want, func(w string) bool { return w == "" })
					facts, _, err := c.Facts(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					if len(want) == 0 || scope == "pci" && !facts.NICs[0].Has("pci.max-read-request") {
						return // it has no such knob
					}
					cs := asks(t, c, want...)
					if len(cs) == 0 {
						return // it has that from the start
					}
					if how == host.Lies {
						tried[f.nic] = append(tried[f.nic], scope)
					}
					if err := h.Misbehave("eth0", scope, how); err != nil {
						t.Fatal(err)
					}
					before := h.Held()
					err = c.Commit(t.Context(), "tx1", cs, 0)
					switch differs := (*drivers.DiffersError)(nil); how {
					case host.Lies:
						if !errors.As(err, &differs) || !strings.Contains(err.Error(), "applied-but-differs") || !strings.HasPrefix(differs.Sent, scope+"|eth0|") {
							t.Errorf("got %v", err)
						}
					case host.Busy:
						if rejected := (*drivers.RejectedError)(nil); !errors.As(err, &rejected) || errors.As(err, &differs) || rejected.Sentence != "device or resource busy" {
							t.Errorf("got %v", err)
						}
					default:
						if rest := asks(t, c, want...); err != nil || len(rest) > 0 {
							t.Errorf("got %v; not in force: %v", err, rest)
						}
						return
					}
					if d := cmp.Diff(before, h.Held()); d != "" {
						t.Errorf("it changed all the same:\n%s", d)
					}
				})
			}
		}
	}
	// Nobody but mlx5 has buffers, and a mode of DCBX that is another from the start; an E810, hns3 and a NIC of the user's no knobs of
	// congestion control.
	all := strings.Fields("pfc ets app pause link roce ring fec pci")
	want := map[string][]string{
		"connectx-7": strings.Fields("dcbx pfc ets app buffer pause link roce cc ring fec pci"), "bcm57508": strings.Fields("pfc ets app pause link roce cc ring fec pci"),
		"e810": all, "hns3": all, "made-up": all[:8],
	}
	if d := cmp.Diff(want, tried); d != "" {
		t.Errorf("what each NIC was tried with (-want +got):\n%s", d)
	}
}

// The link with the way to the host on it does not come back after what flaps it: the host is cut off, and its timer brings
// it back as it was.
func TestLinkStaysDown(t *testing.T) {
	h, cfg := nicHost(t, "connectx-7")
	c := dial(t, cfg)
	before := h.Held()
	if err := h.StayDown("eth0"); err != nil {
		t.Fatal(err)
	}
	if err := c.Commit(t.Context(), "tx1", asks(t, c, families()[0].want...), time.Minute); err == nil || !h.Lost() {
		t.Fatalf("%v, lost %v", err, h.Lost())
	}
	if _, err := Dial(t.Context(), cfg); err == nil {
		t.Error("a host that nobody reaches answers")
	}
	h.Advance(time.Minute)
	if d := cmp.Diff(before, h.Held()); d != "" || h.Lost() {
		t.Errorf("lost %v (-before +after):\n%s", h.Lost(), d)
	}
	if n := h.Counters(); n.Reverts != 1 || n.Downs != 2 {
		t.Errorf("%+v", n)
	}
	if txs, err := dial(t, cfg).(drivers.Confirmer).Pending(t.Context()); err != nil || len(txs) != 0 {
		t.Errorf("%v, %v", txs, err)
	}
}

// Live queue pairs keep what would end them from being written, and nothing else.
func TestFamiliesWithJobs(t *testing.T) {
	for _, f := range families() {
		t.Run(f.nic, func(t *testing.T) {
			h, cfg := nicHost(t, f.nic)
			c := dial(t, cfg)
			if err := h.SetJobs("eth0", 12); err != nil {
				t.Fatal(err)
			}
			cs := asks(t, c, f.want...)
			err := c.Commit(t.Context(), "tx1", cs, 0)
			if n := h.Counters(); !errors.Is(err, drivers.ErrJobs) || n.Downs+n.Gaps+n.Killed != 0 {
				t.Errorf("%v, %+v", err, n)
			}
			if err := c.Commit(t.Context(), "tx2", asks(t, c, "roce|eth0|mode=v1"), 0); err != nil {
				t.Errorf("what disturbs nobody: %v", err)
			}
			cfg.AllowJobs = true
			c = dial(t, cfg)
			if err := c.Commit(t.Context(), "tx3", cs, 0); err != nil {
				t.Error(err)
			}
			if n := h.Counters(); n.Killed != 12 && f.flaps+f.gaps > 0 {
				t.Errorf("%+v", n)
			}
		})
	}
}

// Who else rules QoS is said with what ends that; where no setting of ours does, nothing is written.
func TestForeignRule(t *testing.T) {
	for _, tt := range []struct{ nic, owner, note, refuses string }{
		{"connectx-7", "", `eth0: its firmware rules QoS (DCBX mode is cee ieee, without host)`, "mlnx_qos -i eth0 -d os"},
		{"e810", "", "eth0: an LLDP agent, of firmware or on this host, rules QoS (DCBX mode is lld-managed ieee)", "ethtool --set-priv-flags eth0 fw-lldp-agent off"},
		{"bcm57508", "switch the firmware's LLDP agent off with niccli", "", "niccli"},
		{"hns3", "remove what set it", "", "mqprio"},
	} {
		h, cfg := nicHost(t, tt.nic)
		if err := h.Firmware("eth0", true); err != nil {
			t.Fatal(err)
		}
		h.SetOwners(host.Lldpad)
		c := dial(t, cfg)
		f, _, err := c.Facts(t.Context())
		if err != nil || !slices.Contains(f.Owners, host.Lldpad) || !strings.Contains(strings.Join(f.Owners, "\n"), tt.owner) || tt.note != "" && !slices.Contains(f.Notes, tt.note) {
			t.Errorf("%s: %v, owners %q, notes %q", tt.nic, err, f.Owners, f.Notes)
		}
		var rejected *drivers.RejectedError
		if err := c.Commit(t.Context(), "tx1", asks(t, c, "pfc|eth0|priorities=3"), 0); !errors.As(err, &rejected) || !strings.Contains(err.Error(), tt.refuses) || h.Writes() != 0 {
			t.Errorf("%s: %v, %d writes", tt.nic, err, h.Writes())
		}
	}
}
