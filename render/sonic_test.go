package render

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/fabricctl/fabricctl/model/derive"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/render/yang"
)

// sonicTestTarget is a SN5600 with every eighth Ethernet number.
func sonicTestTarget() target {
	return target{
		dialect: &sonic, model: "sonic/sn5600", iface: func(n int) string { return fmt.Sprintf("Ethernet%d", 8*n) },
		facts: Facts{Model: "ACS-SN5600", Version: "SONiC.20240531"}, areas: intent.AreasOf("sonic"),
		adjust: func(t *rapid.T, d *intent.Device, p *intent.Policy) { // SONiC has three free maps: use them
			if rapid.Bool().Draw(t, "crossed") {
				copy(p.TCQueue[:], rapid.Permutation([]uint8{0, 1, 2, 3, 4, 5, 6, 7}).Draw(t, "queues"))
				copy(p.PFCQueue[:], rapid.Permutation([]uint8{0, 1, 2, 3, 4, 5, 6, 7}).Draw(t, "paused queues"))
			}
			drawBuffers(t, d.Pools.Static, p)
		},
		hidden: func(k Key) bool { return sonicIsList(k.Scope, k.Field) },
		bare:   func(d intent.Device) Config { return sonicBase(sonicIfaces(&d)...) },
	}
}

// drawBuffers has the switch make the buffers of all lossless priorities, from a cable, or gives each its own, with a
// pause threshold in bytes where its pools are static.
func drawBuffers(t *rapid.T, static bool, p *intent.Policy) {
	made := rapid.Bool().Draw(t, "made by the switch")
	if made {
		p.Cable = units.Length(rapid.IntRange(1, 3000).Draw(t, "cable")) * units.Metre
	}
	size := func(what string, least int64) units.Bytes {
		return units.Bytes(rapid.Int64Range(least, 2_000_000).Draw(t, what))
	}
	for i := range p.Queues {
		switch b := &p.Queues[i].Buffer; {
		case !p.Queues[i].Lossless:
		case made:
			*b = intent.Buffer{On: true, Device: true}
		default:
			*b = intent.Buffer{
				On: true, Headroom: size("headroom", 1),
				Xon: size("xon", 0), XonOffset: size("xon offset", 0), Reserved: size("reserved", 0),
			}
			if static {
				b.Static = size("xoff", 1)
			} else {
				b.Alpha, _ = derive.Alpha(rapid.IntRange(-8, 7).Draw(t, "alpha"))
			}
		}
	}
}

func TestSonicProperties(t *testing.T) { checkProperties(t, sonicTestTarget()) }

// Every drawn device, on a switch with a base of its own, passes the device's models.
func TestSonicYangProperties(t *testing.T) {
	for seed := range 20 {
		x := sonicTestTarget()
		d := rapid.Custom(func(t *rapid.T) intent.Device { return drawDevice(t, x) }).Example(seed)
		want, _ := sonicRender(d, Facts{})
		live := x.bare(d)
		after := Apply(live, Diff(&sonic, Facts{}, live.Filter(sonicOwns(d, Facts{})), want))
		if err := yang.Check(t, sonicText(after)); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
}
