package render

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPorts(t *testing.T) {
	for _, tt := range []struct {
		d    *Dialect
		text string
		want map[string]Port
	}{
		{
			&sonic, `{"PORT": {"Ethernet0": {"speed": "400000"}, "Ethernet8": {"mtu": "9100"}, "Ethernet-BP0": {"speed": "1"}, "Ethernet16": {"speed": "-1"}}}`,
			map[string]Port{"Ethernet0": {400e9}, "Ethernet8": {}, "Ethernet16": {}},
		},
		{
			&eos, "interface Ethernet1/1\n   speed 400g-8\ninterface Ethernet2/1\ninterface Ethernet3\n   speed forced 100gfull\ninterface Management1\n   speed 1g\ninterface Ethernet4\n   speed warp\n",
			map[string]Port{"Ethernet1/1": {400e9}, "Ethernet2/1": {}, "Ethernet3": {100e9}, "Ethernet4": {}},
		},
	} {
		c, _ := tt.d.Parse([]byte(tt.text))
		if d := cmp.Diff(tt.want, tt.d.Ports(c)); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.d.OS, d)
		}
	}
	if linux.Ports != nil {
		t.Error("a host has no front panel")
	}
}
