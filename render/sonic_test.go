package render

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/fabricctl/fabricctl/model/intent"
)

// sonicTestTarget is a SN5600 with every eighth Ethernet number.
func sonicTestTarget() target {
	return target{
		dialect: &sonic, model: "sonic/sn5600", iface: func(n int) string { return fmt.Sprintf("Ethernet%d", 8*n) },
		facts: Facts{Model: "ACS-SN5600", Version: "SONiC.20240531"}, areas: intent.SwitchAreas,
		adjust: func(t *rapid.T, p *intent.Policy) { // SONiC has three free maps: use them
			if rapid.Bool().Draw(t, "crossed") {
				copy(p.TCQueue[:], rapid.Permutation([]uint8{0, 1, 2, 3, 4, 5, 6, 7}).Draw(t, "queues"))
				copy(p.PFCQueue[:], rapid.Permutation([]uint8{0, 1, 2, 3, 4, 5, 6, 7}).Draw(t, "paused queues"))
			}
		},
		hidden: func(k Key) bool { return sonicIsList(k.Scope, k.Field) },
	}
}

func TestSonicProperties(t *testing.T) { checkProperties(t, sonicTestTarget()) }
