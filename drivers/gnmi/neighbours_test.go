package gnmi_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/drivers/lab/sonic"
)

// TestNeighbours reads what the emulated switch hears, through the read-only wrapper too; ports that hear nothing are
// not there, and a switch that hears nobody has none.
func TestNeighbours(t *testing.T) {
	s := launch(t, sonic.Options{Neighbours: []sonic.Neighbour{
		{Port: "Ethernet8", Chassis: "02:00:00:01:00:01", System: "spine1", PortID: "etp1", Descr: "Ethernet0", Forwards: true},
		{Port: "Ethernet0", Chassis: "02:00:00:02:00:01", System: "host1", PortID: "02:00:00:02:01:00", MAC: true, Descr: "rdma0"},
	}})
	host := drivers.Neighbour{Port: "Ethernet0", Chassis: "02:00:00:02:00:01", System: "host1", PeerPort: "02:00:00:02:01:00", PeerDescr: "rdma0"}
	spine := drivers.Neighbour{Port: "Ethernet8", Chassis: "02:00:00:01:00:01", System: "spine1", PeerPort: "etp1", PeerDescr: "Ethernet0", Forwards: true}
	heard := func(want ...drivers.Neighbour) {
		t.Helper()
		d := drivers.ReadOnly("leaf1", open(t, config(s)))
		got, err := drivers.ViewOf("leaf1", d).Neighbours(patience(t))
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	}
	heard(host, spine)
	s.Fault(sonic.Faults{Deaf: func(port string) bool { return port == "Ethernet0" }})
	heard(spine)
	s.Fault(sonic.Faults{Deaf: func(string) bool { return true }})
	heard()
	d := open(t, config(s))
	_ = s.Close()
	if _, err := d.Neighbours(patience(t)); err == nil || !strings.Contains(err.Error(), "leaf1: gnmi get LLDP_ENTRY_TABLE") {
		t.Error(err)
	}
}
