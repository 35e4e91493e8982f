package render

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/profiles"
)

// TestSonicStock: a stock switch is read back as what it is, its ports can be bound, parts of a split port have their share of the lanes, and its
// pool has the mode of the platform.
func TestSonicStock(t *testing.T) {
	d := intent.Device{
		Name: "leaf1", Profile: profiles.Platform{Lanes: 8}, Pools: intent.Pools{Static: true},
		Ports: []intent.Port{{Iface: "Ethernet0", Speed: 800 * units.Gbps}, {Name: "not named yet"}, {Iface: "Ethernet8", Speed: 400 * units.Gbps, Breakout: 2}, {Iface: "Ethernet12", Speed: 400 * units.Gbps, Breakout: 2}},
	}
	stock := sonicStock(d, Facts{Model: "Any-SKU"})
	back, found := sonicParse(sonicText(stock))
	if d := cmp.Diff(stock, back); d != "" || found.HasErrors() {
		t.Errorf("%v (-stock +read):\n%s", found, d)
	}
	for key, want := range map[[3]string]string{
		{"PORT", "Ethernet0", "lanes"}:                           "0,1,2,3,4,5,6,7",
		{"PORT", "Ethernet12", "lanes"}:                          "12,13,14,15",
		{"PORT", "Ethernet12", "speed"}:                          "400000",
		{"PORT", "Ethernet8", "mtu"}:                             "9100",
		{"BUFFER_POOL", "ingress_lossless_pool", "mode"}:         "static",
		{"DEVICE_METADATA", "localhost", "hwsku"}:                "Any-SKU",
		{"DEVICE_METADATA", "localhost", "buffer_model"}:         "traditional",
		{"DEVICE_METADATA", "localhost", "default_pfcwd_status"}: "disable",
	} {
		if got := stock.Get(key[0], key[1], key[2]); got != want {
			t.Errorf("%v is %q, want %q", key, got, want)
		}
	}
	if ports := sonicPorts(stock); len(ports) != 3 {
		t.Errorf("ports %v", ports)
	}
}
