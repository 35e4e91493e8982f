package gnmi

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/drivers"
)

// A row of APPL_DB as lldp-syncd writes it, with the values of a switch that says nothing of ours.
const heardRows = `{"Ethernet120": {"lldp_rem_chassis_id": "94:ef:97:94:65:42", "lldp_rem_chassis_id_subtype": "4",
 "lldp_rem_port_id": "Eth3(Port3)", "lldp_rem_port_id_subtype": "7", "lldp_rem_port_desc": "Ethernet8",
 "lldp_rem_sys_name": "spine-a", "lldp_rem_sys_cap_enabled": "28 00", "lldp_rem_man_addr": "192.0.2.1"},
 "Ethernet0": {"lldp_rem_port_id": "02:00:00:00:00:01", "lldp_rem_sys_name": "gpu1", "lldp_rem_sys_cap_enabled": "01 00"},
 "Ethernet4": {"NULL": "NULL"}, "Ethernet8": {"lldp_rem_sys_name": ["odd"]}}`

func TestNeighboursOfText(t *testing.T) {
	got, err := neighbours([]byte(heardRows))
	want := []drivers.Neighbour{
		{Port: "Ethernet0", System: "gpu1", PeerPort: "02:00:00:00:00:01"},
		{Port: "Ethernet120", Chassis: "94:ef:97:94:65:42", System: "spine-a", PeerPort: "Eth3(Port3)", PeerDescr: "Ethernet8", Forwards: true},
	}
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
	for _, text := range []string{"", "[]", `{"Ethernet0": 1}`, `{"Ethernet0": {"lldp_rem_sys_name": "x"`} {
		if got, err := neighbours([]byte(text)); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func FuzzNeighbours(f *testing.F) {
	f.Add([]byte(heardRows))
	f.Fuzz(func(t *testing.T, b []byte) {
		ns, err := neighbours(b)
		if err != nil && ns != nil {
			t.Error("an error and neighbours")
		}
	})
}
