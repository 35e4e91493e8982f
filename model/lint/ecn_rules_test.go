package lint_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"
	"pgregory.net/rapid"

	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/lint"
	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/model/witness"
	"github.com/fabricctl/fabricctl/profiles"
)

// star is a leaf with hosts on so many ports of one speed, each with these lossless priorities, whose buffers are known.
func star(ports int, speed units.BitRate, lossless []int, alpha units.Ratio, pool units.Bytes) *intent.Net {
	n := clos(0, 1, ports)
	leaf := n.Device("leaf1")
	leaf.Pools.Shared = pool
	for i := range leaf.Ports {
		leaf.Ports[i].Speed = speed
	}
	edit(n, "leaf1", "", func(p *intent.Policy) {
		p.Known |= intent.AreaSet(intent.AreaBuffer)
		for _, i := range lossless {
			p.Queues[i].Lossless, p.TCPG[i] = true, uint8(i)
			p.Queues[i].Buffer = intent.Buffer{On: true, Alpha: alpha}
		}
	})
	return n
}

func ramp(kmin, kmax units.Bytes, pmax units.Percent) func(*intent.Policy) {
	return func(p *intent.Policy) { p.Queues[3].ECN = intent.ECN{On: true, Kmin: kmin, Kmax: kmax, Pmax: pmax} }
}

// of are the findings of one rule.
func of(l diag.List, rule string) diag.List {
	return slices.DeleteFunc(slices.Clone(l), func(f diag.Finding) bool { return f.Rule != rule })
}

// TestReferenceRamps: the valid examples of the reference table pass and its violating ones fail, with its severity.
func TestReferenceRamps(t *testing.T) {
	b, err := os.ReadFile("testdata/invariants-ecn.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var table struct {
		Invariants []struct {
			ID        string
			Severity  diag.Severity
			Valid     map[string]any `yaml:"valid_example"`
			Violating map[string]any `yaml:"violating_example"`
		}
	}
	if err := yaml.Unmarshal(b, &table); err != nil {
		t.Fatal(err)
	}
	witness.Agree(t, "invariants-ecn.yaml", len(table.Invariants))
	check := func(rule string, example map[string]any) diag.List {
		num := func(key string) float64 {
			switch v := example[key].(type) {
			case int:
				return float64(v)
			case float64:
				return v
			}
			return 0
		}
		kmin, kmax := units.Bytes(num("kmin")), units.Bytes(num("kmax"))
		alpha := units.Ratio{Num: int32(num("alpha") * 256), Den: 256}
		switch rule {
		case "pmax-sufficient":
			speed := units.BitRate(num("C")) * units.Gbps
			n := star(2, speed, []int{3}, units.Ratio{Num: 1, Den: 1}, 0)
			edit(n, "leaf1", "", ramp(400_000, 1_600_000, units.Percent(num("pmax")*float64(100*units.OnePercent))))
			class := model.Class{Name: "training"}
			class.FanIn, class.Flows = model.Value[int]{V: 2, Set: true}, model.Value[int]{V: int(num("N")) / 2, Set: true}
			return lint.Check(n, &model.Fabric{Classes: []model.Class{class}})
		case "ecn-before-pfc-worst":
			k, ports := int(num("k")), int(num("n"))
			pool := units.Bytes(num("B") - num("k")*num("n")*num("tf"))
			n := star(ports, 40*units.Gbps, []int{0, 1, 2, 3, 4, 5, 6, 7}[:k], units.Ratio{Num: int32(num("beta")), Den: int32(k)}, pool)
			edit(n, "leaf1", "", ramp(kmin, 2*kmin, 20*units.OnePercent))
			return lint.Check(n, nil)
		}
		ports := 33 // so that the largest fan-in is 32
		if kmin == 0 {
			kmin = kmax / 4
		}
		if kmax == 0 {
			kmax = 2 * kmin
		}
		n := star(ports, 100*units.Gbps, []int{3}, alpha, units.Bytes(num("pool")))
		edit(n, "leaf1", "", ramp(kmin, kmax, 20*units.OnePercent))
		return lint.Check(n, nil)
	}
	for _, inv := range table.Invariants {
		id := strings.ToLower(inv.ID)
		if got := of(check(id, inv.Valid), id); len(got) > 0 {
			t.Errorf("%s: the valid example gives %q", id, texts(got))
		}
		if got := of(check(id, inv.Violating), id); len(got) != 1 || got[0].Severity != inv.Severity {
			t.Errorf("%s: the violating example gives %q", id, texts(got))
		}
	}
	if len(table.Invariants) != 5 {
		t.Errorf("%d entries were tried", len(table.Invariants))
	}
}

// TestSwitchedOffInPlace: a ramp of one step beyond the whole buffer is ECN switched off with all bindings as they are, and no mistake.
func TestSwitchedOffInPlace(t *testing.T) {
	for _, c := range []struct {
		kmin, kmax units.Bytes
		want       string
	}{
		{12 * units.MB, 12 * units.MB, "leaf1:downlink-1: warning: ecn-never-marks: kmin 12MB and kmax 12MB of class training are beyond the whole buffer of leaf1, 12MB: nothing is ever marked, and pause is the only control\n" +
			"    hint: if PFC alone is meant, acknowledge ecn-never-marks with the reason; if not, lower kmin to at most 7.9MB and kmax to at most 8MB"},
		{12 * units.MB, 13 * units.MB, "leaf1:downlink-1: error: ecn-never-marks: kmin 12MB of class training is never reached on leaf1: all 16 ports that can fill a queue are paused at 11.2MB (alpha 1 of a pool of 12MB)\n" +
			"    hint: lower kmin to at most 7.9MB and kmax to at most 8MB"},
		{11900 * units.KB, 11900 * units.KB, "leaf1:downlink-1: error: ecn-never-marks: kmin 11.9MB of class training is never reached on leaf1: all 16 ports that can fill a queue are paused at 11.2MB (alpha 1 of a pool of 12MB)\n" +
			"    hint: lower kmin to at most 7.9MB and kmax to at most 8MB"},
	} {
		n := star(17, 100*units.Gbps, []int{3}, units.Ratio{Num: 1, Den: 1}, 12*units.MB)
		edit(n, "leaf1", "", ramp(c.kmin, c.kmax, 20*units.OnePercent))
		if d := cmp.Diff([]string{c.want}, texts(of(lint.Check(n, nil), "ecn-never-marks"))); d != "" {
			t.Errorf("%s to %s (-want +got):\n%s", c.kmin, c.kmax, d)
		}
	}
}

// TestRampRules tries the rules about ramps on what devices hold, without a model.
func TestRampRules(t *testing.T) {
	half := units.Ratio{Num: 1, Den: 2}
	apart := profiles.Platform{Cell: 384, Chip: profiles.ASIC{Name: "chip", ECNStep: 6144, ECNApart: true}}
	for _, c := range []struct {
		name string
		net  func() *intent.Net
		want []string
	}{
		{
			"the design's example: fan-in 2 of an 18MB pool",
			func() *intent.Net {
				n := star(8, 100*units.Gbps, []int{3}, half, 18*units.MB)
				edit(n, "leaf1", "", ramp(9_500_000, 10_000_000, 20*units.OnePercent))
				return n
			},
			[]string{`leaf1:downlink-1: warning: ecn-before-pfc: kmin 9.5MB of class training is not below the first pause at 9MB on leaf1 (alpha 1/2 of a pool of 18MB, fan-in 2)
    hint: lower kmin to at most 8.9MB and kmax to at most 9MB`},
		},
		{
			"one port with another alpha is what the others are compared with",
			func() *intent.Net {
				n := star(8, 100*units.Gbps, []int{3}, half, 18*units.MB)
				edit(n, "leaf1", "", ramp(2_000_000, 4_000_000, 20*units.OnePercent))
				edit(n, "leaf1", "downlink-3", func(p *intent.Policy) { p.Queues[3].Buffer.Alpha = units.Ratio{Num: 1, Den: 32} })
				return n
			},
			[]string{`leaf1:downlink-1: warning: ecn-before-pfc: kmin 2MB of class training is not below the first pause at 1050KB on leaf1 (alpha 1/32 of a pool of 18MB, fan-in 2)
    hint: lower kmin to at most 1MB and kmax to at most 1MB`},
		},
		{
			"a static threshold, and a port that is faster than the others",
			func() *intent.Net {
				n := star(4, 100*units.Gbps, []int{3}, half, 18*units.MB)
				n.Device("leaf1").Ports[0].Speed = 200 * units.Gbps
				edit(n, "leaf1", "", func(p *intent.Policy) {
					ramp(300_000, 350_000, 20*units.OnePercent)(p)
					p.Queues[3].Buffer = intent.Buffer{On: true, Static: 200_000}
				})
				return n
			},
			[]string{`leaf1:downlink-2: warning: ecn-before-pfc: kmin 300KB of class training is not below the first pause at 200KB on leaf1 (static xoff 200KB, one port of 200Gbps fills one of 100Gbps)
    hint: lower kmin to at most 190KB and kmax to at most 200KB`},
		},
		{
			"a buffer that is not known, and one of a device's own table without the table",
			func() *intent.Net {
				n := star(4, 100*units.Gbps, []int{3}, half, 0)
				edit(n, "leaf1", "downlink-1", func(p *intent.Policy) { p.Queues[3].Buffer = intent.Buffer{On: true, Device: true} })
				return n
			},
			nil,
		},
		{
			"an incast that nothing can prevent",
			func() *intent.Net {
				n := star(64, 400*units.Gbps, []int{3}, units.Ratio{Num: 1, Den: 128}, 16*units.MB)
				edit(n, "leaf1", "", ramp(100_000, 120_000, 20*units.OnePercent))
				return n
			},
			[]string{`leaf1:downlink-1: info: incast-first: an incast of 2 ports at 400Gbps in class training is paused after 4.9us on leaf1 (123KB each, alpha 1/128 of a pool of 16MB), and no sender can have slowed down before 10.0us: no ECN setting can prevent the pause
    hint: expect pauses in such bursts, or spread them: fewer ports at once`},
		},
		{
			"an incast that ECN prevents only where a link runs empty",
			func() *intent.Net {
				n := star(8, 400*units.Gbps, []int{3}, half, 850*units.KB)
				edit(n, "leaf1", "", ramp(60_000, 61_000, 20*units.OnePercent))
				return n
			},
			[]string{`leaf1:downlink-1: info: incast-first: an incast of 2 ports at 400Gbps in class training is paused after 8.5us on leaf1 (212KB each, alpha 1/2 of a pool of 850KB), and no sender can have slowed down before 9.2us: only a kmin below 24.9KB could, and below 57.1KB a busy link runs empty
    hint: expect pauses in such bursts, or spread them: fewer ports at once`},
		},
		{
			"a chip that counts in steps and takes no single one",
			func() *intent.Net {
				n := clos(0, 1, 2)
				n.Device("leaf1").Profile = apart
				edit(n, "leaf1", "downlink-1", ramp(800_000, 800_000, 20*units.OnePercent))
				edit(n, "leaf1", "downlink-2", ramp(798_720, 860_160, 20*units.OnePercent))
				return n
			},
			[]string{`leaf1:downlink-1: error: ecn-expressible: kmin 800KB and kmax 800KB of class training are both 798720B in effect on leaf1:downlink-1: chip takes only a ramp and counts in steps of 6144B
    hint: set kmin to 798720B and kmax to 860160B`},
		},
		{
			"the same where it counts in bytes",
			func() *intent.Net {
				n := clos(0, 1, 1)
				n.Device("leaf1").Profile = profiles.Platform{Chip: profiles.ASIC{Name: "chip", ECNApart: true}}
				edit(n, "leaf1", "", ramp(800_000, 800_000, 20*units.OnePercent))
				return n
			},
			[]string{`leaf1:downlink-1: error: ecn-expressible: kmin and kmax of class training are both 800KB on leaf1:downlink-1: chip takes only a ramp
    hint: set kmax to 1.6MB`},
		},
		{
			"an early drop is not also a missing ramp",
			func() *intent.Net {
				n := clos(0, 1, 1)
				edit(n, "leaf1", "", func(p *intent.Policy) { p.Queues[3].ECN, p.Queues[3].Drop = intent.ECN{}, true })
				return n
			},
			[]string{`leaf1:downlink-1: error: wred-on-lossless: class training is lossless, but queue 3 drops packets early on leaf1:downlink-1: its WRED profile does not mark
    hint: turn on ECN in the profile of queue 3 on leaf1:downlink-1, or take the profile off`},
		},
		{
			"a watchdog that leaves out a class, and a priority that the model does not name",
			func() *intent.Net {
				n := clos(0, 1, 1)
				edit(n, "leaf1", "", func(p *intent.Policy) {
					p.Queues[2].Lossless, p.TCPG[2], p.Queues[2].ECN = true, 2, p.Queues[3].ECN
					p.Watchdog.Skips = 1<<2 | 1<<3
				})
				return n
			},
			[]string{`leaf1:downlink-1: error: watchdog-set: the watchdog on leaf1:downlink-1 does not watch priority 3, which is lossless: a stuck pause there is never ended
    hint: have the watchdog watch priority 3 on leaf1:downlink-1 too`},
		},
		{
			"hosts whose NCCL marks an ECN bit, another class, or gives up early",
			func() *intent.Net {
				n := clos(0, 1, 4)
				for host, nccl := range map[string]intent.NCCL{
					"host1": {On: true, TrafficClass: 106, Timeout: 20}, "host2": {On: true, TrafficClass: 8 << 2}, "host3": {On: true, TrafficClass: 48 << 2},
					"host4": {On: true, TrafficClass: 26 << 2, Timeout: 14, RetryCount: 7},
				} {
					edit(n, host, "", func(p *intent.Policy) { p.NCCL = nccl })
				}
				return n
			},
			[]string{
				`host1:nic-1: warning: nccl-model: NCCL_IB_TC 106 on host1:nic-1 sets ECN bits besides dscp 26: those are the NIC's to set
    hint: set NCCL_IB_TC to 104`,
				`host2:nic-1: warning: nccl-model: NCCL_IB_TC 32 (dscp 8) on host2:nic-1 is of class default at leaf1:downlink-2, which is lossy: each drop makes NICs send all that followed again
    hint: make class default lossless, name a lossless class under nccl, or acknowledge nccl-model with the reason`,
				`host3:nic-1: error: nccl-model: NCCL_IB_TC 192 (dscp 48) on host3:nic-1 is of class cnp at leaf1:downlink-3: data there delays the notifications of all
    hint: set NCCL_IB_TC to 4 times a code point of a lossless class`,
				`host4:nic-1: warning: nccl-model: NCCL on host4:nic-1 gives up after 536ms (timeout 14, retry_count 7), but the watchdog at leaf1:downlink-4 may need 600ms to end a stuck pause
    hint: raise timeout to at least 15`,
			},
		},
		{
			"a host that takes the class from another header, and one with another map",
			func() *intent.Net {
				n := clos(0, 1, 2)
				for _, h := range []string{"host1", "host2"} {
					edit(n, h, "", func(p *intent.Policy) {
						p.Known |= intent.AreaSet(intent.AreaMaps)
						p.Trust, p.DSCP = intent.TrustDSCP, switchPolicy().DSCP
					})
				}
				edit(n, "host1", "", func(p *intent.Policy) { p.Trust = intent.TrustPCP })
				edit(n, "host2", "", func(p *intent.Policy) { p.DSCP[48], p.DSCP[9] = intent.Unmapped, 1 })
				return n
			},
			[]string{
				`host1:nic-1: error: host-mapping: host1:nic-1 takes the class of a packet from pcp, and leaf1:downlink-1 at the other end from dscp: they agree only by chance
    hint: have host1:nic-1 trust dscp`,
				`host2:nic-1: error: host-mapping: dscp 48: to no priority on host2:nic-1, but to priority 6 on leaf1:downlink-2: a pause for the one does not stop the other
    hint: map dscp 48 on host2:nic-1 as its leaf does: to priority 6`,
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := slices.DeleteFunc(lint.Check(c.net(), nil), func(f diag.Finding) bool {
				return f.Rule == "ecn-before-pfc-worst" || f.Rule == "ecn-same" || f.Rule == "ecn-dctcp" || underHeadroom(f)
			})
			if d := cmp.Diff(c.want, texts(got)); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
		})
	}
}

// TestRampRulesHoldUp: whatever the numbers are, no rule about ramps panics, each finding can be acted on, names do not
// matter, and neither does a port that nobody uses.
func TestRampRulesHoldUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.Custom(func(t *rapid.T) units.Bytes {
			return units.Bytes(rapid.SampledFrom([]int64{0, 1, 255, 6144, 100_000, 9_000_000, 1 << 40, 1<<63 - 1}).Draw(t, "size"))
		})
		build := func(prefix string, unused bool) func(d draw) *intent.Net {
			return func(d draw) *intent.Net {
				n := star(d.ports, d.speed, []int{3}, d.alpha, d.pool)
				edit(n, "leaf1", "", func(p *intent.Policy) {
					ramp(d.kmin, d.kmax, 20*units.OnePercent)(p)
					p.Queues[3].Buffer.Static = d.static
				})
				leaf := n.Device("leaf1")
				leaf.Profile = profiles.Platform{Cell: d.cell, Chip: profiles.ASIC{Name: "chip", Cell: d.cell, ECNStep: d.step, ECNApart: d.apart}}
				if unused {
					leaf.Ports = append(leaf.Ports, intent.Port{Name: "z", Role: "unused", Speed: d.speed, Policy: leaf.Ports[0].Policy})
				}
				for i := range n.Devices {
					n.Devices[i].Name = prefix + n.Devices[i].Name
					for j := range n.Devices[i].Ports {
						if p := &n.Devices[i].Ports[j]; p.Peer != "" {
							p.Peer = prefix + p.Peer
						}
					}
				}
				return n
			}
		}
		d := draw{
			ports: rapid.IntRange(1, 40).Draw(t, "ports"), speed: units.BitRate(rapid.SampledFrom([]int64{0, 1, 25e9, 400e9, 1 << 62}).Draw(t, "speed")),
			alpha: units.Ratio{Num: rapid.Int32Range(0, 1<<30).Draw(t, "num"), Den: rapid.Int32Range(0, 300).Draw(t, "den")},
			pool:  size.Draw(t, "pool"), kmin: size.Draw(t, "kmin"), kmax: size.Draw(t, "kmax"), static: size.Draw(t, "static"),
			cell: size.Draw(t, "cell"), step: size.Draw(t, "step"), apart: rapid.Bool().Draw(t, "apart"),
		}
		plain := lint.Check(build("", false)(d), nil)
		for _, f := range plain {
			if f.Msg == "" || f.Hint == "" || f.At == "" {
				t.Errorf("incomplete finding: %+v", f)
			}
		}
		count := func(l diag.List) map[string]int {
			m := map[string]int{}
			for _, f := range l {
				m[f.Rule]++
			}
			return m
		}
		if x := cmp.Diff(count(plain), count(lint.Check(build("a", false)(d), nil))); x != "" {
			t.Errorf("names matter: %s", x)
		}
		if x := cmp.Diff(texts(plain), texts(lint.Check(build("", true)(d), nil))); x != "" {
			t.Errorf("an unused port matters: %s", x)
		}
	})
}

// draw is what TestRampRulesHoldUp draws.
type draw struct {
	ports                                int
	speed                                units.BitRate
	alpha                                units.Ratio
	pool, kmin, kmax, static, cell, step units.Bytes
	apart                                bool
}

// TestMixedRamps: half way through a rollout the rules judge each device by what it holds.
func TestMixedRamps(t *testing.T) {
	old := star(8, 100*units.Gbps, []int{3}, units.Ratio{Num: 1, Den: 1}, 18*units.MB)
	want := star(8, 100*units.Gbps, []int{3}, units.Ratio{Num: 1, Den: 64}, 18*units.MB)
	for _, n := range []*intent.Net{old, want} {
		edit(n, "leaf1", "", ramp(800_000, 1_000_000, 20*units.OnePercent))
	}
	for done, rules := range map[bool]string{false: "", true: "ecn-before-pfc"} {
		got := ""
		for _, f := range lint.Check(intent.Mix(old, want, func(string) bool { return done }), nil) {
			if f.Severity > diag.Info && !underHeadroom(f) {
				got += f.Rule
			}
		}
		if got != rules {
			t.Errorf("done %v: %q, want %q", done, got, rules)
		}
	}
	if got := fmt.Sprint(len(old.Devices)); got != "9" {
		t.Errorf("%s devices", got)
	}
}

// BenchmarkCheckModel is a model with buffers, of 16 spines, 128 leaves and 4096 hosts, and of twice and four times as many leaves
// and hosts: the time grows with the ports, and no faster.
func BenchmarkCheckModel(b *testing.B) {
	_, passes := examples(b, "ecn-before-pfc")
	for _, times := range []int{1, 2, 4} {
		text := strings.NewReplacer("leaves: {count: 4, platform: sonic/z9332f", fmt.Sprintf("leaves: {count: %d, platform: sonic/sn5600", 128*times), "spines: {count: 2, platform: sonic/z9332f", "spines: {count: 16, platform: sonic/dbmvtx9180",
			"per_leaf: 2", "per_leaf: 32").Replace(passes.model)
		f, l := model.Load(fstest.MapFS{"fabric.yaml": {Data: []byte(text)}}, "fabric.yaml")
		if l = slices.DeleteFunc(l, func(x diag.Finding) bool { return x.Rule == "capacity" }); l.HasErrors() { // no spine has so many ports
			b.Fatal(l)
		}
		n, _ := intent.Resolve(f)
		b.Run(fmt.Sprintf("%d-leaves", 128*times), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				lint.Check(n, f)
			}
		})
	}
}

// underHeadroom reports whether f is about headroom, which the nets here are without.
func underHeadroom(f diag.Finding) bool {
	return f.Rule == "cable-unknown" || f.Rule == "headroom-effect"
}
