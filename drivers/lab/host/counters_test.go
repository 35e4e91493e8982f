package host

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/model/observe"
)

// TestCounters asks with stock tools and in the words of fabricctl-host. Each driver has names of its own, mlx5 lists the
// pauses of a priority only while PFC is on for it, and times are cut to the unit that the driver counts in.
func TestCounters(t *testing.T) {
	h, addr := start(t, Options{Links: []Link{
		{Name: "rdma0", MTU: 1500, PCI: "0000:17:00.0", NIC: "connectx-7"},
		{Name: "rdma1", MTU: 1500, PCI: "0000:18:00.0", NIC: "bcm57608"},
		{Name: "eth0", MTU: 1500, PCI: "0000:19:00.0", NIC: "virtio"},
	}})
	if err := h.Set("rdma0", "pfc priorities", "3"); err != nil {
		t.Fatal(err)
	}
	values := map[observe.Port]uint64{}
	for _, link := range []string{"rdma0", "rdma1", "eth0"} {
		for name, v := range map[string]uint64{"pfc.rx.3": 7, "pfc.rx.4": 1, "pfc.paused_ns.3": 1_999, "cnp.sent": 5, "port.drop.in": 2, "watermark.queue.3": 1} {
			values[observe.Port{Iface: link, Name: observe.Name(name)}] = v
		}
	}
	h.SetCounters(values)
	c := login(t, h, addr)
	for _, x := range [][2]string{
		{"ethtool -S rdma0", "NIC statistics:\n     rx_prio3_pause: 7\n     rx_prio3_pause_duration: 1\n     rx_discards_phy: 2\n"},
		{"ethtool -S rdma1", "NIC statistics:\n     rx_pfc_ena_frames_pri3: 7\n     rx_pfc_ena_frames_pri4: 1\n     pfc_pri3_rx_duration_us: 1\n"},
		{"ethtool -S eth0", ""},
		{"rdma -j statistic show link mlx5_0/1", `[{"ifname":"mlx5_0","np_cnp_sent":5,"port":1}]` + "\n"},
		{"rdma -j statistic show link bnxt_re0/1", `[{"ifname":"bnxt_re0","port":1,"tx_cnp_pkts":5}]` + "\n"},
		{"rdma -j statistic show link mlx5_9/1", "[]\n"},
	} {
		if d := cmp.Diff(x[1], sh(t, c, x[0])); d != "" {
			t.Errorf("%s (-want +got):\n%s", x[0], d)
		}
	}
	want := []wireCounter{{"rdma0", "pfc.rx.3", 7}, {"rdma0", "pfc.paused_ns.3", 1000}, {"rdma1", "pfc.rx.3", 7}, {"rdma1", "pfc.paused_ns.3", 1000}}
	if d := cmp.Diff(want, h.sense([]string{"pfc.rx.3", "pfc.paused_ns.3", "nope"})["counters"]); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if all := h.sense(nil)["counters"].([]wireCounter); len(all) != 4+4 {
		t.Error(all)
	}
	h.SetFaults(Faults{Tools: "junk\n"})
	if got := sh(t, c, "ethtool -S rdma0; rdma -j statistic show link mlx5_0/1"); strings.Count(got, "junk") != 2 {
		t.Errorf("%q", got)
	}
}
