package hostssh

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/drivers/lab/host"
	"github.com/fabricctl/fabricctl/model/observe"
)

// Stock tools count what fabricctl-host counts, on each kind of NIC, with three commands however many NICs there are; and
// nonsense that they print is no number.
func TestStockToolsCount(t *testing.T) {
	h, cfg := emulated(t, host.Options{Links: []host.Link{
		{Name: "rdma0", MTU: 1500, PCI: "0000:17:00.0", NIC: "connectx-7"},
		{Name: "rdma1", MTU: 1500, PCI: "0000:18:00.0", NIC: "e810"},
		{Name: "rdma2", MTU: 1500, PCI: "0000:19:00.0", NIC: "bcm57508"},
		{Name: "rdma3", MTU: 1500, PCI: "0000:1a:00.0", NIC: "hns3"},
		{Name: "eth0", MTU: 1500, PCI: "0000:01:00.0", NIC: "virtio"},
	}})
	if err := h.Set("rdma0", "pfc priorities", "3"); err != nil {
		t.Fatal(err)
	}
	values := map[observe.Port]uint64{}
	for i, link := range []string{"rdma0", "rdma1", "rdma2", "rdma3", "eth0"} {
		for j, c := range observe.Counted() {
			for p := range 8 {
				name := c.Name
				if c.Each {
					name = name.Of(p)
				}
				values[observe.Port{Iface: link, Name: name}] = uint64(100_000*i + 1000*j + p)
				if c.Name == observe.NoBuffer { // mlx5 has one counter for both
					values[observe.Port{Iface: link, Name: name}] = values[observe.Port{Iface: link, Name: observe.PortDropIn}]
				}
			}
		}
	}
	h.SetCounters(values)
	agent := dial(t, cfg).(drivers.Sensor)
	cfg.Binary = nil
	stock := dial(t, cfg).(drivers.Sensor)
	want, err := agent.Sense(t.Context(), nil)
	if err != nil || len(want.Values) < 100 {
		t.Fatalf("%d %v", len(want.Values), err)
	}
	commands := h.Counters().Commands
	got, err := stock.Sense(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if n := h.Counters().Commands - commands; n != 3 {
		t.Errorf("%d commands", n)
	}
	if d := cmp.Diff(want.Values, got.Values); d != "" {
		t.Errorf("(-agent +stock):\n%s", d)
	}
	one, err := stock.Sense(t.Context(), []observe.Name{observe.CNPSent})
	if err != nil || len(one.Values) != 4 || one.At.IsZero() {
		t.Errorf("%v %v", one, err)
	}
	for _, junk := range []string{"\n", "rx_prio3_pause 7\n", "     rx_prio3_pause: -1\n     rx_discards_phy: 1.5\n     tx_discards_phy: 18446744073709551616\n", "\x1b[2J: 7\n", `[{"np_cnp_sent": -1, "tx_cnp_pkts": "7"}]` + "\n", "[1]\n", strings.Repeat("x: 1\n", 1<<16)} {
		h.SetFaults(host.Faults{Tools: junk})
		if got, err := stock.Sense(t.Context(), nil); err != nil || len(got.Values) > 0 {
			t.Errorf("%.40q: %v %v", junk, got.Values, err)
		}
	}
}

// What the tools printed on real machines, recorded.
func TestStockCountersRecorded(t *testing.T) {
	var n nicView
	takeStatistics(&n, []byte("NIC statistics:\n     rx_queue_0_packets: 6\n     rx_queue_0_bytes: 496\n     tx_queue_0_kicks: 8\n"))
	if d := cmp.Diff(map[string]uint64{"rx_queue_0_packets": 6, "rx_queue_0_bytes": 496, "tx_queue_0_kicks": 8}, n.statistics); d != "" {
		t.Error(d)
	}
	takeRDMAStatistics(&n, []byte(`[{"ifname":"rxe0","port":1,"sent_pkts":0,"rcvd_pkts":0,"duplicate_request":3,"out_of_seq_request":0,"rcvd_seq_err":2}]`+"\n"))
	if n.rdmaStatistics["duplicate_request"] != 3 || n.rdmaStatistics["rcvd_seq_err"] != 2 || len(n.rdmaStatistics) != 6 {
		t.Error(n.rdmaStatistics)
	}
	takePFCFrames(&n, []byte(`{"pfc_cap":8,"requests":[0,0,0,5,0,0,0,0],"indications":[0,0,0,6,0,0,0,0]}`))
	if n.sent[3] != 5 || n.received[3] != 6 {
		t.Error(n.sent, n.received)
	}
}

func FuzzStockCounters(f *testing.F) {
	f.Add([]byte("NIC statistics:\n     rx_prio3_pause: 6\n"))
	f.Add([]byte(`[{"ifname":"rxe0","np_cnp_sent":0}]`))
	f.Fuzz(func(_ *testing.T, b []byte) {
		var n nicView
		takeStatistics(&n, b)
		takeRDMAStatistics(&n, b)
		takePFCFrames(&n, b)
	})
}
