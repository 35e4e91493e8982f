package netlink

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/fabricctl/fabricctl/drivers/netlink/dcb/dcbfake"
	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/render"
)

// fabric is a model with a host whose NIC is of that kind, and whose hosts are told what is given.
const fabric = `apiVersion: fabricctl/v1
kind: Fabric
metadata: {name: small}
topology:
  spines: {count: 1, platform: sonic/sn5600}
  leaves: {count: 1, platform: sonic/sn5600}
  hosts:  {per_leaf: 1, rails: 1, nic: %s, netdevs: [eth0]}
  links:
    leaf_spine: {speed: 400Gbps, cable: 40m}
    host_leaf:  {speed: %s, cable: 5m}
mtu: {fabric: 9216B, host: 9000B, roce: 4096B}
classes:
  - {name: training, dscp: [26], priority: 3, lossless: true, ecn: {kmin: 800KB, kmax: 3200KB, pmax: 20%%}, pfc: {xoff: {alpha: 1/2}, headroom: auto, xon: auto}, bandwidth: 60%%, drop_incomplete_arp: true}
  - {name: cnp, role: cnp, dscp: [48], priority: %d, scheduling: strict}
  - {name: default, dscp: rest, priority: 0, bandwidth: 40%%}
nccl: {class: training, timeout: 22, retry_count: 7}
hosts: {%s}
manage: {switches: own, hosts: own}
`

// theHost is the host of a model.
func theHost(t *testing.T, nic, speed string, cnp int, hosts string) intent.Device {
	t.Helper()
	f, finds := model.Load(fstest.MapFS{"fabric.yaml": {Data: fmt.Appendf(nil, fabric, nic, speed, cnp, hosts)}}, "fabric.yaml")
	if finds.HasErrors() {
		t.Fatal(finds)
	}
	net, finds := intent.Resolve(f)
	if finds.HasErrors() {
		t.Fatal(finds)
	}
	i := slices.IndexFunc(net.Devices, func(d intent.Device) bool { return d.Host })
	return net.Devices[i]
}

// What a model says of hosts is rendered for each kind of NIC as the host says it is, is in force after one commit, and
// leaves a plan that is empty. The way back leads to where it was.
func TestModelOnEachNIC(t *testing.T) {
	dialect := render.ByOS("linux")
	for _, tt := range []struct {
		kind, nic, speed string
		cnp              int
		hosts            string
	}{
		{"mlx5", "connectx-7", "400Gbps", 6, "congestion: {parameters: {ai_rate: 10Mbps, min_time_between_cnps: 4us}}, pcie: {max_read_request: 4096B}, irq: local, rings: {rx: 8192, tx: 8192}, fec: rs, memlock: unlimited"},
		{"ice", "e810", "100Gbps", 2, "irq: spread, rings: {rx: 4096, tx: 4096}"},
		{"bnxt", "bcm57508", "200Gbps", 6, "pcie: {max_read_request: 1024B}, memlock: unlimited"},
		{"hns3", "hns3", "200Gbps", 6, "fec: rs"},
	} {
		t.Run(tt.kind, func(t *testing.T) {
			host := theHost(t, tt.nic, tt.speed, tt.cnp, tt.hosts)
			r, n := nicRig(t, tt.kind)
			if tt.kind == "ice" {
				e := r.eth.links["eth0"]
				e.flagBits, e.hidden = 2, func() bool { return n.Hardware().PFC.Enabled != 0 }
				n.Alter(func(h *dcbfake.Hardware) { h.FirmwareLLDP = true })
			}
			look := func() (render.Pass, render.Facts, render.Config) {
				t.Helper()
				f, _, err := r.Facts(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				live, err := r.Read(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				return render.Look(dialect, host, f, live), f, live
			}
			was := read(t, r.Device)
			p, _, _ := look()
			for _, f := range p.Findings {
				if f.Severity == diag.Error {
					t.Errorf("%s", f.Msg)
				}
			}
			if len(p.Changes) < 8 {
				t.Errorf("only %d changes: %v", len(p.Changes), p.Changes)
			}
			if err := r.Commit(t.Context(), "tx1", p.Changes, 0); err != nil {
				t.Fatal(err)
			}
			again, _, _ := look()
			for _, c := range again.Changes {
				t.Errorf("the plan is not empty: %s is %s, want %s", c.Key, word(c.Before), word(c.After))
			}
			if prio := n.Priority(26); prio != 3 {
				t.Errorf("DSCP 26 gets priority %d", prio)
			}
			if m := n.Paused(); m != 1<<3 {
				t.Errorf("paused are %08b", m)
			}
			if err := r.Commit(t.Context(), "tx2", render.Undo(p.Changes), 0); err != nil {
				t.Fatal(err)
			}
			now := read(t, r.Device)
			if tt.kind == "mlx5" { // its firmware is willing as soon as it rules again
				now = strings.Replace(now, "ets|eth0|willing on", "ets|eth0|willing off", 1)
			}
			if now != was {
				t.Errorf("after the undo:\n%s\nbefore:\n%s", now, was)
			}
		})
	}
}
