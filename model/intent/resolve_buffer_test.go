package intent

import (
	"slices"
	"strings"
	"testing"

	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/units"
)

// buffered is base with a word in the lossless class and other texts replaced.
func buffered(class string, replace ...string) string {
	text := strings.Replace(base, "lossless: true,", "lossless: true"+class+",", 1)
	text = strings.Replace(text, "host_leaf: {speed: 200Gbps}", "host_leaf: {speed: 200Gbps, cable: 5m}", 1)
	return strings.NewReplacer(replace...).Replace(text)
}

// flat is a platform whose lossless pool is static.
const flat = `---
apiVersion: fabricctl/v1
kind: Profile
metadata: {name: sonic/flat}
platform:
  asic: spectrum-4
  ports: 64
  speed: 400Gbps
  lanes: 8
  iface: Ethernet%d
  iface_step: 8
  max_mtu: 9216B
  lossless_pool: 13599999B
  headroom: [{speed: 400Gbps, cable: 40m, size: 319456B, xon: 19456B, xoff: 300KB, static: 1MB}]
  source: a test
  confidence: low
`

// TestBuffersOf: what a port's buffer and cable become, of each thing that a model may say of them.
func TestBuffersOf(t *testing.T) {
	half := units.Ratio{Num: 1, Den: 2}
	own := func(edit func(*Buffer)) Buffer {
		b := Buffer{On: true, Alpha: half, Headroom: 283648, Xon: 19456, Reserved: 303104}
		edit(&b)
		return b
	}
	same := func(*Buffer) {}
	device := Buffer{On: true, Device: true}
	for name, x := range map[string]struct {
		text  string
		port  string // of leaf1
		known bool
		cable units.Length
		want  Buffer
		says  string // a finding, "" = none
	}{
		"nothing is asked":           {buffered(""), "uplink-1", true, 40_000, device, ""},
		"auto":                       {buffered(", pfc: {headroom: auto, xon: auto}"), "uplink-1", true, 40_000, device, ""},
		"the table's own alpha":      {buffered(", pfc: {xoff: {alpha: 1}}"), "uplink-1", true, 40_000, device, ""},
		"half of the pool is that":   {buffered(", pfc: {xoff: {share: 50%, of: pool}}"), "uplink-1", true, 40_000, device, ""},
		"a cable that is not listed": {buffered("", "cable: 40m", "cable: 22.5m"), "uplink-1", true, 40_000, device, ""},
		"alpha":                      {buffered(", pfc: {xoff: {alpha: 1/2}}"), "uplink-1", true, 0, own(same), ""},
		"a third of the pool":        {buffered(", pfc: {xoff: {share: 33.3333%, of: pool}}"), "uplink-1", true, 0, own(func(b *Buffer) { b.Alpha = units.Ratio{Num: 333333, Den: 666667} }), ""},
		"headroom": {
			buffered(", pfc: {xoff: {alpha: 1/2}, headroom: 300KB}"), "uplink-1", true, 0,
			own(func(b *Buffer) { b.Headroom, b.Reserved = 300_000, 319_456 }), "",
		},
		"all of it": {
			buffered(", pfc: {xoff: {alpha: 1/2}, headroom: 1KB, xon: 2KB, xon_offset: 3KB, reserved: 4KB}", ", cable: 40m", ""), "uplink-1", true, 0,
			Buffer{On: true, Alpha: half, Headroom: 1000, Xon: 2000, XonOffset: 3000, Reserved: 4000},
			"",
		},
		"eight lanes": { // two pipelines: the table's size has a frame more than headroom and xon
			buffered(", pfc: {xoff: {alpha: 1/2}}", "speed: 400Gbps", "speed: 800Gbps"), "uplink-1", true, 0,
			Buffer{On: true, Alpha: half, Headroom: 362496, Xon: 38912, Reserved: 410624},
			"",
		},
		"eight lanes without a row": { // the formula's size has it too
			buffered(", pfc: {xoff: {alpha: 1/2}}", "speed: 400Gbps, cable: 40m", "speed: 800Gbps, cable: 400m"), "uplink-1", true, 0,
			Buffer{On: true, Alpha: half, Headroom: 1453056, Xon: 38912, Reserved: 1501184},
			"",
		},
		"xon of the formula with its headroom": { // the table, which ends at 300m, has 37888B
			buffered("", "sonic/sn5600", "sonic/sn4700", "400Gbps, cable: 40m", "400Gbps, cable: 400m"), "uplink-1", true, 0,
			Buffer{On: true, Alpha: units.Ratio{Num: 1, Den: 1}, Headroom: 811008, Xon: 38912, Reserved: 859136},
			"",
		},
		"no cable":           {buffered(", pfc: {xoff: {alpha: 1/2}}", ", cable: 40m", ""), "uplink-1", false, 0, Buffer{}, ""},
		"no class":           {buffered("", "lossless: true", "lossless: false"), "uplink-1", true, 40_000, Buffer{}, ""},
		"no class, no cable": {buffered("", "lossless: true", "lossless: false", ", cable: 40m", ""), "uplink-1", false, 0, Buffer{}, ""},
		"a port alone": {
			buffered("") + "overrides: {leaf: {devices: {leaf1: {ports: {uplink-1: {classes: [{name: training, pfc: {xoff: {alpha: 1/2}}}]}}}}}}\n",
			"uplink-1", true, 0, own(same), "",
		},
		"and not the others": {
			buffered("") + "overrides: {leaf: {devices: {leaf1: {ports: {uplink-1: {classes: [{name: training, pfc: {xoff: {alpha: 1/2}}}]}}}}}}\n",
			"downlink-1", true, 5_000, device, "",
		},
		"one form beats another": {
			buffered(", pfc: {xoff: 1MB}") + "overrides: {leaf: {classes: [{name: training, pfc: {xoff: {alpha: 1/2}}}]}}\n",
			"uplink-1", true, 0, own(same), "",
		},
		"a share of a static pool": { // its size is no multiple of a million, which the share is counted in
			buffered(", pfc: {xoff: {share: 50%, of: pool}}", "leaves: {count: 2, platform: sonic/sn5600}", "leaves: {count: 2, platform: sonic/flat}") + flat, "uplink-1", true, 0,
			Buffer{On: true, Static: 6_799_872, Headroom: 300_000, Xon: 19_456, Reserved: 319_456},
			"",
		},
		"a size, and no table": { // xon is whole cells of 254 bytes, as no one chose it
			buffered(", pfc: {xoff: 1MB, headroom: 300KB, reserved: 400KB}", "leaves: {count: 2, platform: sonic/sn5600}", "leaves: {count: 2, platform: sonic/7060x6-64pe}"), "uplink-1", true, 0,
			Buffer{On: true, Static: 1_000_000, Headroom: 300_000, Xon: 254 * 3864, Reserved: 400_000},
			"",
		},
		"a share of a port": {
			buffered(", pfc: {xoff: {share: 50%, of: port}}"), "uplink-1", false, 0,
			Buffer{},
			"error: xoff-share: class training: a port of sonic/sn5600 has no buffer of its own",
		},
		"another system": {
			buffered(", pfc: {xoff: {alpha: 1/2}, headroom: auto}", "leaves: {count: 2, platform: sonic/sn5600}", "leaves: {count: 2, platform: eos/7060x6}", "9216B", "9214B"), "uplink-1", false, 0,
			Buffer{},
			"info: buffer-by-hand: xoff of class training is not written on eos/7060x6",
		},
		"another system, auto": {
			buffered(", pfc: {headroom: auto}", "leaves: {count: 2, platform: sonic/sn5600}", "leaves: {count: 2, platform: eos/7060x6}", "9216B", "9214B"), "uplink-1", false, 0, Buffer{}, "",
		},
		"a platform without a table": {
			buffered("", "leaves: {count: 2, platform: sonic/sn5600}", "leaves: {count: 2, platform: sonic/7060x6-64pe}"), "uplink-1", false, 0, Buffer{}, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f, l := model.Load(file(x.text), "m.yaml")
			if l.HasErrors() {
				t.Fatal(l)
			}
			n, l := Resolve(f)
			d := n.Device("leaf1")
			p := d.PolicyOf(d.Port(x.port))
			if got := p.Known.Has(AreaBuffer); got != x.known || p.Cable != x.cable || got && p.Queues[3].Buffer != x.want {
				t.Errorf("known %v, cable %s, %+v; want %v, %s, %+v", got, p.Cable, p.Queues[3].Buffer, x.known, x.cable, x.want)
			}
			said := ""
			for _, f := range l {
				said += f.String() + "\n"
			}
			if !strings.Contains(said, x.says) || x.says == "" && said != "" {
				t.Errorf("said %q, want %q", said, x.says)
			}
		})
	}
}

// TestOneOwnMakesAll: the switch makes the buffers of a port or does not: where one class asks for its own, all get one.
func TestOneOwnMakesAll(t *testing.T) {
	n := resolve(t, file(buffered(", pfc: {xoff: {alpha: 1/2}}", "  - {name: cnp", "  - {name: storage, dscp: [18], priority: 4, lossless: true, ecn: {kmin: 400KB, kmax: 1600KB, pmax: 10%}, bandwidth: 1%}\n  - {name: cnp",
		"bandwidth: 40%", "bandwidth: 39%")), "m.yaml")
	d := n.Device("leaf1")
	p := d.PolicyOf(d.Port("uplink-1"))
	if q := p.Queues[4].Buffer; q.Device || q.Alpha != (units.Ratio{Num: 1, Den: 1}) || q.Headroom != 283648 || p.Queues[3].Buffer.Device || p.Cable != 0 {
		t.Errorf("%+v beside %+v, cable %s", q, p.Queues[3].Buffer, p.Cable)
	}
	if o := d.Origin(d.Port("uplink-1"), "xoff.4"); o == nil || o.Kind != model.FromProfile {
		t.Errorf("xoff of the other from %+v", o)
	}
}

// TestStartingValues: a lossless class without a ramp starts with one for each speed, labelled, and said once; PFC alone
// stays alone.
func TestStartingValues(t *testing.T) {
	const ramp = ", ecn: {kmin: 800KB, kmax: 3200KB, pmax: 20%}"
	f, _ := model.Load(file(buffered("", ramp, "")), "m.yaml")
	n, l := Resolve(f)
	d := n.Device("leaf1")
	up, down := d.Port("uplink-1"), d.Port("downlink-1")
	if a, b := d.PolicyOf(up).Queues[3].ECN, d.PolicyOf(down).Queues[3].ECN; !a.On || !b.On || a == b || up.Ramps != 8 || down.Ramps != 8 {
		t.Errorf("%+v and %+v, %b", a, b, up.Ramps)
	}
	if o := d.Origin(up, "ecn.3.kmin"); o == nil || o.Ref == "" || o.Kind != model.FromPublished && o.Kind != model.FromDefault {
		t.Errorf("kmin from %+v", o)
	}
	starts := slices.DeleteFunc(l, func(x diag.Finding) bool { return x.Rule != "starting-values" })
	if len(starts) != 1 || !strings.Contains(starts[0].Msg, "at 200Gbps") || !strings.Contains(starts[0].Msg, "at 400Gbps") {
		t.Errorf("said %v", starts)
	}
	f, _ = model.Load(file(buffered("", ramp, ", ecn: off")), "m.yaml")
	n, l = Resolve(f)
	if q := n.Device("leaf1").PolicyOf(n.Device("leaf1").Port("uplink-1")).Queues[3]; q.ECN.On || len(l) > 0 {
		t.Errorf("%+v %v", q.ECN, l)
	}
}
