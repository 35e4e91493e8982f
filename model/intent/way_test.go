package intent_test

import (
	"testing"
	"testing/fstest"

	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/intent"
)

// TestWays: in-band devices know how far they are from where we come in.
func TestWays(t *testing.T) {
	const fabric = `apiVersion: fabricctl/v1
kind: Fabric
metadata: {name: t}
topology:
  spines: {count: 1, platform: sonic/sn5600}
  leaves: {count: 2, platform: sonic/sn5600}
  hosts: {per_leaf: 1, netdevs: [rdma0]}
mtu: {fabric: 9216B, host: 9000B}
classes:
  - {name: cnp, role: cnp, dscp: [48], priority: 6, scheduling: strict}
  - {name: default, dscp: rest, priority: 0, bandwidth: 40%}
---
apiVersion: fabricctl/v1
kind: Inventory
`
	for name, x := range map[string]struct {
		inventory string
		want      map[string]intent.Way
	}{
		"nobody": {"defaults: {management: out-of-band}\n", map[string]intent.Way{"leaf1": {}, "host1": {}}},
		"all but a leaf": {
			"defaults: {management: in-band}\ngroups: {way-in: {devices: [leaf1], management: out-of-band}}\n" +
				"devices: {spine1: {management_port: downlink-1}}\n",
			map[string]intent.Way{
				"leaf1": {}, "spine1": {InBand: true, Port: "downlink-1", Hops: 1}, "leaf2": {InBand: true, Hops: 2},
				"host1": {InBand: true, Hops: 1}, "host2": {InBand: true, Hops: 3},
			},
		},
		"nobody knows where we come in": {"defaults: {management: in-band}\n", map[string]intent.Way{"leaf1": {InBand: true}, "host2": {InBand: true}}},
	} {
		f, l := model.Load(fstest.MapFS{"m.yaml": {Data: []byte(fabric + x.inventory)}}, "m.yaml")
		if l.HasErrors() {
			t.Fatalf("%s: %v", name, l)
		}
		net, l := intent.Resolve(f)
		if l.HasErrors() {
			t.Fatalf("%s: %v", name, l)
		}
		for device, want := range x.want {
			if got := net.Device(device).Way; got != want {
				t.Errorf("%s: %s: got %+v, want %+v", name, device, got, want)
			}
		}
	}
}
