package sonic_test

import (
	"testing"

	"github.com/fabricctl/fabricctl/drivers/lab/sonic"
	"github.com/fabricctl/fabricctl/render/yang"
)

// The base configuration is one that a real switch accepts.
func TestBaseIsValid(t *testing.T) {
	for _, ports := range [][]sonic.Port{
		sonic.Ports(64, 8, 800e9, 40000), sonic.Ports(2, 4, 100e9, 500), sonic.Ports(1, 0, 400e9, 0),
		{{Name: "Ethernet0", Speed: 25e9, Lanes: 1}},
	} {
		if err := yang.Check(t, sonic.Base("leaf1", "ACS-SN5600", ports).JSON()); err != nil {
			t.Error(err)
		}
	}
	bad := sonic.Base("leaf1", "ACS-SN5600", sonic.Ports(1, 8, 400e9, 0))
	bad.Set("PORT", "Ethernet0", "mtu", "9217")
	if yang.Check(t, bad.JSON()) == nil {
		t.Error("yanglint judges nothing")
	}
}
