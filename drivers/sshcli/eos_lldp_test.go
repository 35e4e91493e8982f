package sshcli

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/drivers"
	lab "github.com/fabricctl/fabricctl/drivers/lab/eos"
)

// heardText has the members of a published answer: a quoted port id in the older member, and one port that hears nobody.
const heardText = `{"lldpNeighbors": {
  "Ethernet1/1": {"lldpNeighborInfo": [{"chassisIdType": "macAddress", "chassisId": "001c.73a0.fc18", "systemName": "spine1",
    "systemCapabilities": {"bridge": true, "router": false},
    "neighborInterfaceInfo": {"interfaceIdType": "interfaceName", "interfaceId": "\"Ethernet1\"", "interfaceDescription": "to leaf1"}}]},
  "Ethernet2/1": {"lldpNeighborInfo": []}}}`

func TestEOSNeighbours(t *testing.T) {
	got, err := eosNeighbours(heardText)
	want := []drivers.Neighbour{{Port: "Ethernet1/1", Chassis: "001c.73a0.fc18", System: "spine1", PeerPort: "Ethernet1", PeerDescr: "to leaf1", Forwards: true}}
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
	for text, say := range map[string]string{
		"":                                    "not JSON",
		`{"lldpNeighbors": {`:                 "not JSON",
		`[]`:                                  "JSON array where an object should stand",
		`{"errors": ["LLDP is not enabled"]}`: "LLDP is not enabled",
		`{}`:                                  "no lldpNeighbors",
		`{"lldpNeighbors": {"Ethernet1": 3}}`: "JSON number where lldpNeighbors",
	} {
		if _, err := eosNeighbours(text); err == nil || !strings.Contains(err.Error(), say) {
			t.Errorf("%q: no %q in %v", text, say, err)
		}
	}
}

// TestNeighbours asks an emulated switch.
func TestNeighbours(t *testing.T) {
	b := newBench(t, lab.Options{Neighbours: []lab.Neighbour{
		{Port: "Ethernet1/1", Chassis: "0200.0001.0001", System: "spine1", PortID: "etp1", Descr: "Ethernet0", Forwards: true},
		{Port: "Ethernet4/1", Chassis: "0200.0002.0001", System: "gpu \"1\"\nleaf1#", PortID: "02:00:00:02:01:00", MAC: true, Descr: "rdma0"},
	}})
	d := b.dial()
	got, err := d.Neighbours(b.ctx())
	want := []drivers.Neighbour{
		{Port: "Ethernet1/1", Chassis: "0200.0001.0001", System: "spine1", PeerPort: "etp1", PeerDescr: "Ethernet0", Forwards: true},
		{Port: "Ethernet4/1", Chassis: "0200.0002.0001", System: "gpu \"1\"\nleaf1#", PeerPort: "02:00:00:02:01:00", PeerDescr: "rdma0"},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	b.sw.SetFaults(lab.Faults{Deaf: regexp.MustCompile("^Ethernet4/1$")})
	if got, err := d.Neighbours(b.ctx()); err != nil || len(got) != 1 {
		t.Errorf("%v %v", got, err)
	}
	b.sw.SetFaults(lab.Faults{NoLLDP: true})
	var refused *drivers.RejectedError
	if _, err := d.Neighbours(b.ctx()); !errors.As(err, &refused) || refused.Sentence != "% LLDP is not enabled" {
		t.Error(err)
	}
	b.sw.SetFaults(lab.Faults{})
	b.read(d) // the console is still good
}

func FuzzEOSNeighbours(f *testing.F) {
	f.Add(heardText)
	f.Fuzz(func(t *testing.T, s string) {
		ns, err := eosNeighbours(s)
		if err != nil && ns != nil {
			t.Error("an error and neighbours")
		}
	})
}
