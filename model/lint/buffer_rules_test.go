package lint_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/lint"
	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/profiles"
)

// buffered is clos with switches of a platform whose buffers are known, and that the device fills in itself: uplinks of
// 40m, hosts at 5m.
func buffered(t testing.TB, platform string, spines, leaves, hosts int) *intent.Net {
	t.Helper()
	c, err := profiles.Default()
	if err != nil {
		t.Fatal(err)
	}
	profile, ok := c.Platform(platform)
	if !ok {
		t.Fatalf("no platform %s", platform)
	}
	n := clos(spines, leaves, hosts)
	for i := range n.Devices {
		d := &n.Devices[i]
		if d.Host {
			continue
		}
		pools := profile.Pools(d.Role == "leaf")
		d.Platform, d.Profile, d.Pools = platform, profile, intent.Pools{Shared: pools.Lossless, Headroom: pools.Headroom, Egress: pools.Egress}
		for j := range d.Ports {
			port := &d.Ports[j]
			port.Cable = 40 * units.Metre
			if port.Role == "host" {
				port.Cable = 5 * units.Metre
			}
			p := *d.PolicyOf(port)
			p.Known, p.Cable = p.Known|intent.AreaSet(intent.AreaBuffer), port.Cable
			p.Queues[3].Buffer = intent.Buffer{On: true, Device: true}
			port.Policy = d.Intern(p)
		}
	}
	return n
}

// own gives ports a buffer of their own: that of the table, with changes.
func own(n *intent.Net, device, port string, change func(*intent.Buffer)) {
	d := n.Device(device)
	for i := range d.Ports {
		q := &d.Ports[i]
		if port != "" && q.Name != port {
			continue
		}
		row, _, _ := d.Profile.HeadroomAt(q.Speed, q.Cable)
		p := *d.PolicyOf(q)
		p.Cable = 0
		p.Queues[3].Buffer = intent.Buffer{On: true, Alpha: row.Alpha, Static: row.Static, Headroom: row.Xoff, Xon: row.Xon, XonOffset: row.XonOffset, Reserved: row.Size}
		change(&p.Queues[3].Buffer)
		q.Policy = d.Intern(p)
	}
}

func everySwitch(n *intent.Net, f func(d *intent.Device)) {
	for i := range n.Devices {
		if !n.Devices[i].Host {
			f(&n.Devices[i])
		}
	}
}

func TestBufferRules(t *testing.T) {
	for _, c := range []struct {
		name     string
		platform string
		edit     func(*intent.Net)
		want     []string
	}{
		{name: "sound", edit: func(*intent.Net) {}},
		{name: "as in the table, bound by us", edit: func(n *intent.Net) { own(n, "leaf1", "", func(*intent.Buffer) {}) }},
		{
			name: "headroom-phys",
			edit: func(n *intent.Net) {
				everySwitch(n, func(d *intent.Device) {
					own(n, d.Name, "", func(b *intent.Buffer) { b.Headroom, b.Reserved = 20_160, 40_320 })
				})
				origins(n, map[intent.Field]*model.Origin{"headroom.3": line(20)})
			},
			want: []string{
				`fabric.yaml:20:11: error: headroom-phys: headroom 20160B of class training on leaf1 and 3 more is below the 58556B that arrive after a pause over 40m at 800Gbps with frames of 9216B whatever the neighbour does (physics_min)
    hint: raise headroom to at least 362496B, or set headroom to auto`,
				`fabric.yaml:20:11: error: headroom-phys: headroom 20160B of class training on leaf1 and leaf2 is below the 21056B that arrive after a pause over 5m at 400Gbps with frames of 9216B whatever the neighbour does (physics_min)
    hint: raise headroom to at least 231424B, or set headroom to auto`,
			},
		},
		{
			name: "headroom-std on one port",
			edit: func(n *intent.Net) {
				everySwitch(n, func(d *intent.Device) { own(n, d.Name, "", func(*intent.Buffer) {}) })
				own(n, "leaf1", "uplink-1", func(b *intent.Buffer) { b.Headroom, b.Reserved = 288_000, 307_200 })
			},
			want: []string{
				`leaf1:uplink-1: warning: headroom-alpha-same: headroom 288KB of class training on leaf1:uplink-1, but headroom 362496B on 3 of 4 such ports
    hint: set headroom to 362496B, or acknowledge headroom-alpha-same with the reason`,
				`leaf1:uplink-1: warning: headroom-std: headroom 288KB of class training on leaf1:uplink-1 is below the 290236B that the standard lets a neighbour need over 40m at 800Gbps with frames of 9216B (std_max; no response time is published at 800Gbps: the time of the speeds beside it is kept, 1810 quanta): a slow neighbour may overrun it
    hint: set pfc.headroom of class training to 362496B, or acknowledge headroom-std with the reason`,
			},
		},
		{
			name: "headroom-effect, no buffer",
			edit: func(n *intent.Net) {
				edit(n, "leaf1", "uplink-1", func(p *intent.Policy) { p.Queues[3].Buffer = intent.Buffer{} })
			},
			want: []string{`leaf1:uplink-1: error: headroom-effect: class training is lossless on leaf1:uplink-1, but its priority group has no lossless buffer: what arrives after a pause is dropped
    hint: set pfc.headroom of class training to 362496B`},
		},
		{
			name: "headroom-effect, no row",
			edit: func(n *intent.Net) {
				everySwitch(n, func(d *intent.Device) {
					for i := range d.Ports {
						if d.Ports[i].Role == "fabric" {
							d.Ports[i].Cable = 60 * units.Metre
							edit(n, d.Name, d.Ports[i].Name, func(p *intent.Policy) { p.Cable = 60 * units.Metre })
						}
					}
				})
			},
			want: []string{`leaf1:uplink-1: error: headroom-effect: headroom 0B of class training on leaf1 and 3 more: the table of sonic/sn5600 has no row for 800Gbps and 60m, and the device then makes no lossless buffer: what arrives after a pause is dropped
    hint: set pfc.headroom of class training to 1150976B, or tell the device a cable of 300m, the next that its table has`},
		},
		{
			name: "headroom-effect, zero",
			edit: func(n *intent.Net) {
				everySwitch(n, func(d *intent.Device) {
					own(n, d.Name, "", func(b *intent.Buffer) { b.Headroom = 0 })
				})
				origins(n, map[intent.Field]*model.Origin{"headroom.3": line(20)})
			},
			want: []string{`fabric.yaml:20:11: error: headroom-effect: headroom 0B of class training on leaf1 and 3 more: what arrives after a pause is dropped
    hint: raise headroom to at least 231424B, or set headroom to auto`},
		},
		{
			name: "cable-unknown",
			edit: func(n *intent.Net) {
				edit(n, "leaf1", "downlink-1", func(p *intent.Policy) { p.Cable = 0 })
				n.Device("leaf1").Port("downlink-1").Cable = 0
			},
			want: []string{`leaf1:downlink-1: error: cable-unknown: no cable is given for leaf1:downlink-1: class training is lossless there, and nobody knows how much arrives after a pause (at 400Gbps, 500B a metre)
    hint: add the length of the link, such as cable: 40m`},
		},
		{
			name: "cable-unknown, with a headroom in bytes",
			edit: func(n *intent.Net) {
				own(n, "leaf1", "downlink-1", func(*intent.Buffer) {})
				n.Device("leaf1").Port("downlink-1").Cable = 0
			},
			want: []string{`leaf1:downlink-1: warning: cable-unknown: no cable is given for leaf1:downlink-1: nobody can say whether headroom 231424B of class training is enough there
    hint: add the length of the link, such as cable: 40m`},
		},
		{
			name: "cable longer than told",
			edit: func(n *intent.Net) {
				edit(n, "leaf1", "uplink-1", func(p *intent.Policy) { p.Cable = 5 * units.Metre })
			},
			want: []string{
				`leaf1:uplink-1: error: cable-unknown: cable 40m on leaf1:uplink-1 is longer than the 5m that the device is told, from which it makes its headroom
    hint: tell the device 40m: own buffer there and apply, or correct cable to 5m`,
				`leaf1:uplink-1: warning: headroom-alpha-same: headroom 257088B of class training on leaf1:uplink-1, but headroom 362496B on 3 of 4 such ports
    hint: set headroom to 362496B, or acknowledge headroom-alpha-same with the reason`,
				`leaf1:uplink-1: warning: headroom-std: headroom 257088B of class training on leaf1:uplink-1 is below the 290236B that the standard lets a neighbour need over 40m at 800Gbps with frames of 9216B (std_max; no response time is published at 800Gbps: the time of the speeds beside it is kept, 1810 quanta): a slow neighbour may overrun it
    hint: set pfc.headroom of class training to 362496B, or acknowledge headroom-std with the reason`,
			},
		},
		{
			name: "headroom-alpha-same",
			edit: func(n *intent.Net) {
				everySwitch(n, func(d *intent.Device) {
					own(n, d.Name, "", func(b *intent.Buffer) { b.Alpha = units.Ratio{Num: 1, Den: 16} })
				})
				own(n, "leaf2", "", func(b *intent.Buffer) { b.Alpha = units.Ratio{Num: 1, Den: 64} })
			},
			want: []string{`leaf2:downlink-1: warning: headroom-alpha-same: alpha 1/64 of class training on leaf2, but alpha 1/16 on 4 of 8 such ports
    hint: set alpha to 1/16, or acknowledge headroom-alpha-same with the reason`},
		},
		{
			name: "headroom-alpha-same, a threshold that cannot be read", // said where it is read
			edit: func(n *intent.Net) {
				everySwitch(n, func(d *intent.Device) { own(n, d.Name, "", func(*intent.Buffer) {}) })
				own(n, "leaf2", "", func(b *intent.Buffer) { b.Alpha = units.Ratio{} })
			},
		},
		{
			name: "xon-below-xoff",
			edit: func(n *intent.Net) {
				everySwitch(n, func(d *intent.Device) {
					own(n, d.Name, "", func(b *intent.Buffer) { b.Alpha, b.Static, b.Xon = units.Ratio{}, 1000*units.KB, 999*units.KB })
				})
				origins(n, map[intent.Field]*model.Origin{"xon.3": line(20), "xoff.3": line(21)})
			},
			want: []string{`fabric.yaml:20:11: error: xon-below-xoff: xon 999KB of class training on leaf1 and 3 more is not a frame of 9216B below its pause threshold 999936B: pause goes on and off with every frame
    fabric.yaml:21:11: xoff set here
    hint: lower xon to at most 990720B, or raise xoff to at least 1008384B`},
		},
		{
			name: "xon-below-xoff of a dynamic threshold",
			edit: func(n *intent.Net) {
				everySwitch(n, func(d *intent.Device) {
					own(n, d.Name, "", func(b *intent.Buffer) { b.Alpha, b.Xon = units.Ratio{Num: 1, Den: 128}, 500*units.KB })
				})
				origins(n, map[intent.Field]*model.Origin{"xon.3": line(20), "xoff.3": line(21)})
			},
			want: []string{
				`fabric.yaml:20:11: error: xon-below-xoff: xon 500KB of class training on leaf1 and leaf2 is not a frame of 9216B below its pause threshold 470402B (alpha 1/128 of a 67737959B pool, 16 groups congested): pause goes on and off with every frame
    fabric.yaml:21:11: xoff set here
    hint: lower xon to at most 461186B, or raise alpha to at least 1/64`,
				`fabric.yaml:20:11: error: xon-below-xoff: xon 500KB of class training on spine1 and spine2 is not a frame of 9216B below its pause threshold 362233B (alpha 1/128 of a 52161690B pool, 16 groups congested): pause goes on and off with every frame
    fabric.yaml:21:11: xoff set here
    hint: lower xon to at most 353017B, or raise alpha to at least 1/64`,
			},
		},
		{
			name: "xon-no-underrun",
			edit: func(n *intent.Net) {
				everySwitch(n, func(d *intent.Device) {
					own(n, d.Name, "", func(b *intent.Buffer) { b.Xon = 100 * units.KB })
				})
				origins(n, map[intent.Field]*model.Origin{"xon.3": line(20), "xoff.3": line(21)})
			},
			want: []string{`fabric.yaml:20:11: warning: xon-no-underrun: xon 100KB of class training on leaf1 and 3 more is below the 165056B that drain before a neighbour that answers slowly fills the queue again over 40m at 800Gbps with frames of 9216B: the link idles after each pause
    fabric.yaml:21:11: xoff set here
    hint: raise xon to at least 165120B, or acknowledge xon-no-underrun with the reason`},
		},
		{
			name: "headroom-sum", platform: "sonic/7050cx3-32s",
			edit: func(n *intent.Net) {
				everySwitch(n, func(d *intent.Device) {
					for i := range d.Ports {
						d.Ports[i].Speed /= 8 // 100G, and 50G to hosts
					}
					d.Pools.Headroom = 600 * units.KB
				})
			},
			want: []string{`leaf1:downlink-1: error: headroom-sum: the headroom pool of leaf1 and leaf2 holds 600KB, and 4 priority groups promise 640KB of it, 1.07 times as much: when they pause together, lossless packets are dropped
    hint: lower headroom to at most 149760B, or connect at most 3 ports like leaf1:downlink-1, or give the platform a headroom_pool of at least 640KB`},
		},
		{
			name: "buffer-sum",
			edit: func(n *intent.Net) {
				everySwitch(n, func(d *intent.Device) {
					own(n, d.Name, "", func(b *intent.Buffer) { b.Headroom, b.Reserved = 40*units.MB, 40*units.MB })
				})
				origins(n, map[intent.Field]*model.Origin{"headroom.3": line(20)})
			},
			want: []string{
				`fabric.yaml:20:11: error: buffer-sum: 227.8MB of buffer are promised on leaf1 and leaf2, but spectrum-4 has 160MB: 160.1MB of headroom and 0B of reserves for 4 priority groups, a shared pool of 67.8MB
    hint: lower headroom to at most 23065344B, or connect at most 2 ports like leaf1:downlink-1, or take a switch with at least 227.8MB of packet buffer`,
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			platform := c.platform
			if platform == "" {
				platform = "sonic/sn5600"
			}
			n := buffered(t, platform, 2, 2, 2)
			c.edit(n)
			got := slices.DeleteFunc(lint.Check(n, nil), func(f diag.Finding) bool { return strings.HasPrefix(f.Rule, "ecn-") }) // which have tests of their own
			if diff := cmp.Diff(c.want, texts(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// What nobody knows is not judged: an area that a device does not speak about, a table that is not known, an ignored area.
func TestBufferUnknown(t *testing.T) {
	n := buffered(t, "sonic/sn5600", 1, 2, 1)
	own(n, "leaf1", "", func(b *intent.Buffer) { b.Headroom = 1 })
	if got := lint.Check(n, nil); len(got) == 0 {
		t.Fatal("a headroom of a byte is sound")
	}
	for i := range n.Devices {
		for j := range n.Devices[i].Ports {
			n.Devices[i].Ports[j].Manage[intent.AreaBuffer] = intent.Ignore
		}
	}
	if got := lint.Check(n, nil); len(got) > 0 {
		t.Errorf("an ignored area gives %q", texts(got))
	}
	n = buffered(t, "sonic/7060x6-64pe", 1, 2, 1) // its lookup table is empty
	if got := lint.Check(n, nil); len(got) > 0 {
		t.Errorf("a table that nobody knows gives %q", texts(got))
	}
	n = buffered(t, "sonic/sn5600", 1, 2, 1)
	n.Forget(intent.AreaSet(intent.AreaBuffer))
	if got := lint.Check(n, nil); len(got) > 0 {
		t.Errorf("unknown buffers give %q", texts(got))
	}
}

// Where nobody knows what headroom a switch keeps, what arrives whatever the neighbours do still has to fit into its chip.
func TestBufferFloor(t *testing.T) {
	const want = `leaf1:uplink-1: error: buffer-sum: 320.7MB arrive on 33 priority groups of leaf1 and leaf2 after a pause, whatever the neighbours do (physics_min), but tomahawk-5 has a packet buffer of 165.2MB
    hint: lower cable to at most 5143m, which leaves each of 32 priority groups at 800Gbps its 5161556B, or connect at most 16 ports like leaf1:uplink-1, or take a switch with at least 320.7MB of packet buffer`
	long := func(platform string, cable units.Length) *intent.Net {
		n := buffered(t, platform, 32, 2, 1)
		for i := range n.Devices {
			for j := range n.Devices[i].Ports {
				if p := &n.Devices[i].Ports[j]; p.Role != "host" && !n.Devices[i].Host {
					p.Cable = cable
				}
			}
		}
		return n
	}
	sums := func(n *intent.Net) []string {
		return texts(slices.DeleteFunc(lint.Check(n, nil), func(f diag.Finding) bool { return f.Rule != "buffer-sum" }))
	}
	for _, platform := range []string{"sonic/7060x6-64pe", "eos/7060x6"} {
		n := long(platform, 10_000*units.Metre)
		if diff := cmp.Diff([]string{want}, sums(n)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", platform, diff)
		}
		if got := sums(long(platform, 5143*units.Metre)); len(got) > 0 {
			t.Errorf("%s with the cable of the hint: %q", platform, got)
		}
		everySwitch(n, func(d *intent.Device) {
			for j := range d.Ports {
				d.Ports[j].Manage[intent.AreaBuffer] = intent.Ignore
			}
		})
		if got := sums(n); len(got) > 0 {
			t.Errorf("%s, buffer ignored: %q", platform, got)
		}
	}
}

// Priorities above what the chip has are an error, with a model or without.
func TestChipLimit(t *testing.T) {
	n := clos(1, 2, 1)
	everySwitch(n, func(d *intent.Device) {
		d.Profile.Chip = profiles.ASIC{Name: "small", MaxLossless: 2}
		edit(n, d.Name, "", func(p *intent.Policy) {
			for i := range p.Queues {
				p.Queues[i].Lossless, p.Queues[i].ECN, p.TCPG[i] = true, switchPolicy().Queues[3].ECN, uint8(i)
			}
		})
	})
	var got string
	for _, f := range lint.Check(n, nil) {
		if f.Rule == "pfc-prio-count" && f.Severity == diag.Error {
			got = f.String()
		}
	}
	if want := "8 lossless priorities on leaf1 and 2 more, but small has PFC for 2 at once"; !strings.Contains(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// What a hint about buffers says, when done, removes the finding and adds none.
func TestBufferHintsHold(t *testing.T) {
	fails := func(id string, change ...string) string {
		e, _ := examples(t, id)
		return strings.NewReplacer(change...).Replace(e.model)
	}
	for name, doc := range map[string]string{
		"buffer-sum":          fails("buffer-sum"),
		"headroom-alpha-same": fails("headroom-alpha-same"),
		"headroom-phys":       fails("headroom-phys"),
		"headroom-std":        fails("headroom-std"),
		"headroom-sum":        fails("headroom-sum"),
		"xon-below-xoff":      fails("xon-below-xoff"),
		"xon-no-underrun":     fails("xon-no-underrun"),
		"no headroom":         fails("headroom-phys", "headroom: 20KB", "headroom: 0B"),
		"tiny headroom":       fails("headroom-phys", "headroom: 20KB", "headroom: 1B"),
		"static xon":          fails("xon-below-xoff", "xoff: {alpha: 1/128}, xon: 500KB", "xoff: 500KB, xon: 500KB"),
	} {
		t.Run(name, func(t *testing.T) { hintsHold(t, name, doc) })
	}
}

// BenchmarkBuffers is the rules about buffers on a fabric of 16 spines and 128 leaves, and on half and a quarter of it.
func BenchmarkBuffers(b *testing.B) {
	for _, leaves := range []int{32, 64, 128} {
		n := buffered(b, "sonic/sn5600", 16, leaves, 32)
		b.Run(strconv.Itoa(leaves), func(b *testing.B) {
			for b.Loop() {
				lint.Check(n, nil)
			}
		})
	}
}
