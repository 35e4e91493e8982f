package infer_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/profiles"
)

// hostFabric is a fabric with four hosts.
const hostFabric = `apiVersion: fabricctl/v1
kind: Fabric
metadata: {name: hosts}
topology:
  leaves: {count: 1, platform: sonic/sn5600}
  hosts: {per_leaf: 4, netdevs: [rdma0]}
  links: {host_leaf: {speed: 400Gbps, cable: 5m}}
mtu: {fabric: 9216B, host: 9000B}
classes:
  - {name: lossless-3, dscp: [26], priority: 3, lossless: true, bandwidth: 60%}
  - {name: cnp, role: cnp, dscp: [48], priority: 6, scheduling: strict}
  - {name: default, dscp: rest, priority: 0, bandwidth: 40%}
`

// withHosts has every NIC of hostFabric hold what a NIC can, and the i-th host what change makes of it.
func withHosts(t *testing.T, change func(host int, p *intent.Policy)) *intent.Net {
	t.Helper()
	n := resolved(t, hostFabric)
	leaf := n.Device("leaf1")
	host := 0
	for i := range n.Devices {
		d := &n.Devices[i]
		if !d.Host {
			continue
		}
		host++
		p := leaf.PolicyOf(leaf.Port(d.Ports[0].PeerPort)).Only(intent.AreaSet(intent.AreaMaps, intent.AreaPFC, intent.AreaScheduler))
		p.Known |= intent.AreaSet(intent.AreaMTU, intent.AreaBuffer, intent.AreaNCCL, intent.AreaRoCE, intent.AreaCC, intent.AreaSystem)
		p.MTU, p.Cable = 9000, 5*units.Metre
		p.RoCE = intent.RoCE{On: true, Mode: 2, ToS: 104, TrafficClass: -1}
		p.CC = intent.Congestion{On: true, Priorities: 1 << 3, HasCNP: true, CNPDSCP: 48, CNPPriority: 6, Algorithm: intent.AlgorithmDCQCN}
		p.CC.SetParam(profiles.CCIndex("ai_rate"), 5)
		p.CC.SetParam(profiles.CCIndex("clamp_tgt_rate"), 0)
		p.System = intent.System{ReadRequest: 512, IRQ: intent.IRQOther, RingRX: 1024, RingTX: 1024, FEC: intent.FECRS}
		p.NCCL = intent.NCCL{On: true, TrafficClass: 104, Timeout: 20, RetryCount: 7, HCA: true, RoCE: 2, Family: 4}
		change(host, &p)
		d.Ports[0].Policy = d.Intern(p)
		d.Ports[0].RDMA = "mlx5_0"
	}
	return n
}

// TestHostsComeBack: what most NICs are told stands once, what one of them is told otherwise is its override, and what a
// model cannot say of a NIC is a finding.
func TestHostsComeBack(t *testing.T) {
	n := withHosts(t, func(host int, p *intent.Policy) {
		switch host {
		case 2:
			p.System.RingRX, p.System.FEC, p.System.IRQ = 8192, intent.FECNotSaid, intent.IRQLocal
			p.CC.SetParam(profiles.CCIndex("ai_rate"), 50)
		case 3:
			p.RoCE.TrafficClass = 104
			p.Queues[3].Buffer = intent.Buffer{On: true, Reserved: 300_000}
		case 4:
			p.System.ReadRequest = 0 // nobody could read it
		}
	})
	m, _ := mustInfer(t, n)
	_, rest, _ := strings.Cut(m.Text, "nccl:")
	want := ` {class: lossless-3, timeout: 20, retry_count: 7}
hosts:
  congestion: {algorithm: dcqcn, parameters: {clamp_tgt_rate: false, ai_rate: 5Mbps}}
  pcie: {max_read_request: 512B}
  rings: {rx: 1024, tx: 1024}
  fec: rs
# To let fabricctl write an area, own it, one at a time: {switches: {ecn: own}, hosts: observe}.
manage: {switches: observe, hosts: observe}
overrides:
  host:
    devices:
      host2:
        hosts: {congestion: {parameters: {ai_rate: 50Mbps}}, irq: local, rings: {rx: 8192}, fec: leave}
      host3:
        hosts: {roce: {traffic_class: class}, receive_buffer: {lossless: 300000B}}
`
	if d := cmp.Diff(want, rest); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if !strings.Contains(m.Text, "{name: nic-1, iface: rdma0, role: nic, speed: 400Gbps, rdma: mlx5_0}") {
		t.Errorf("the RDMA device is lost:\n%s", m.Text)
	}
}

// TestHostsOfAnOldNCCL: a pinned GID index is a version that needs one, which is a guess, and what the file does not say
// is not written.
func TestHostsOfAnOldNCCL(t *testing.T) {
	n := withHosts(t, func(_ int, p *intent.Policy) {
		p.NCCL = intent.NCCL{On: true, TrafficClass: 104, QPs: 4, CrossNIC: 1, GID: 4}
		p.RoCE, p.CC, p.System = intent.RoCE{}, intent.Congestion{}, intent.System{}
	})
	m, _ := mustInfer(t, n)
	_, rest, _ := strings.Cut(m.Text, "nccl:")
	line, _, _ := strings.Cut(rest, "\n")
	if want := " {class: lossless-3, qps_per_connection: 4, cross_nic: 0, hca: off, version: 2.20}   # a guess: a GID index is pinned, which NCCL from 2.21 on needs not"; line != want {
		t.Errorf("nccl:%s", line)
	}
	if strings.Contains(m.Text, "\nhosts:") {
		t.Errorf("nothing is told, and yet:\n%s", m.Text)
	}
}
