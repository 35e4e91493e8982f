package host

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fabricctl/fabricctl/model/observe"
)

// native is how a driver counts what a canonical name stands for. A "*" is the priority.
type native struct {
	name string // canonical
	tool string // who shows it: byEthtool or byRDMA
	as   string // the driver's name
	unit uint64 // how many of ours one of the driver's is; 0 = 1
}

const (
	byEthtool = "ethtool"
	byRDMA    = "rdma"
)

// The names are those of Linux 6.12 and of NVIDIA's counter documentation, like the rest of what a kind is.
func countsOf(personality string) []native {
	switch personality {
	case "mlx5":
		return []native{
			{"pfc.rx.*", byEthtool, "rx_prio*_pause", 0},
			{"pfc.tx.*", byEthtool, "tx_prio*_pause", 0},
			{"pfc.paused_ns.*", byEthtool, "rx_prio*_pause_duration", 1000},
			{"pfc.pausing_ns.*", byEthtool, "tx_prio*_pause_duration", 1000},
			{"drop.in.*", byEthtool, "rx_prio*_discards", 0},
			{"tx.packets.*", byEthtool, "tx_prio*_packets", 0},
			{"tx.bytes.*", byEthtool, "tx_prio*_bytes", 0},
			{"rx.packets.*", byEthtool, "rx_prio*_packets", 0},
			{"rx.bytes.*", byEthtool, "rx_prio*_bytes", 0},
			{"link-pause.rx", byEthtool, "rx_pause_ctrl_phy", 0},
			{"link-pause.tx", byEthtool, "tx_pause_ctrl_phy", 0},
			{"port.rx.bytes", byEthtool, "rx_bytes_phy", 0},
			{"port.tx.bytes", byEthtool, "tx_bytes_phy", 0},
			{"port.rx.packets", byEthtool, "rx_packets_phy", 0},
			{"port.tx.packets", byEthtool, "tx_packets_phy", 0},
			{"port.drop.in", byEthtool, "rx_discards_phy", 0},
			{"nic.no-buffer", byEthtool, "rx_discards_phy", 0},
			{"port.drop.out", byEthtool, "tx_discards_phy", 0},
			{"port.errors", byEthtool, "rx_crc_errors_phy", 0},
			{"port.oversize", byEthtool, "rx_oversize_pkts_phy", 0},
			{"nic.pause-storm", byEthtool, "tx_pause_storm_error_events", 0},
			{"ecn.received", byRDMA, "np_ecn_marked_roce_packets", 0},
			{"cnp.sent", byRDMA, "np_cnp_sent", 0},
			{"cnp.handled", byRDMA, "rp_cnp_handled", 0},
			{"cnp.ignored", byRDMA, "rp_cnp_ignored", 0},
			{"rdma.out-of-seq", byRDMA, "out_of_sequence", 0},
			{"rdma.nak", byRDMA, "packet_seq_err", 0},
			{"rdma.timeout", byRDMA, "local_ack_timeout_err", 0},
			{"rdma.duplicate", byRDMA, "duplicate_request", 0},
			{"rdma.no-wqe", byRDMA, "out_of_buffer", 0},
			{"rdma.retry-exceeded", byRDMA, "req_transport_retries_exceeded", 0},
			{"rdma.adaptive", byRDMA, "roce_adp_retrans", 0},
		}
	case "bnxt":
		return []native{
			{"pfc.rx.*", byEthtool, "rx_pfc_ena_frames_pri*", 0},
			{"pfc.tx.*", byEthtool, "tx_pfc_ena_frames_pri*", 0},
			{"pfc.paused_ns.*", byEthtool, "pfc_pri*_rx_duration_us", 1000},
			{"pfc.pausing_ns.*", byEthtool, "pfc_pri*_tx_duration_us", 1000},
			{"ecn.received", byRDMA, "rx_ecn_marked_pkts", 0},
			{"cnp.sent", byRDMA, "tx_cnp_pkts", 0},
			{"cnp.received", byRDMA, "rx_cnp_pkts", 0},
			{"rdma.out-of-seq", byRDMA, "oos_drop_count", 0},
			{"rdma.nak", byRDMA, "seq_err_naks_rcvd", 0},
			{"rdma.timeout", byRDMA, "to_retransmits", 0},
			{"rdma.duplicate", byRDMA, "dup_req", 0},
			{"nic.no-buffer", byRDMA, "rx_roce_discards", 0},
			{"rdma.no-wqe", byRDMA, "rx_out_of_buffer", 0},
			{"rdma.retry-exceeded", byRDMA, "max_retry_exceeded", 0},
		}
	case "ice":
		return []native{
			{"pfc.rx.*", byEthtool, "rx_priority_*_xoff.nic", 0},
			{"pfc.tx.*", byEthtool, "tx_priority_*_xoff.nic", 0},
			{"port.drop.in", byEthtool, "rx_dropped.nic", 0},
			{"ecn.received", byRDMA, "RxECNMrkd", 0},
			{"cnp.sent", byRDMA, "cnpSent", 0},
			{"cnp.handled", byRDMA, "cnpHandled", 0},
			{"cnp.ignored", byRDMA, "cnpIgnored", 0},
		}
	case "hns3":
		return []native{
			{"pfc.rx.*", byEthtool, "mac_rx_pfc_pri*_pkt_num", 0},
			{"pfc.tx.*", byEthtool, "mac_tx_pfc_pri*_pkt_num", 0},
			{"cnp.sent", byRDMA, "tx_cnp_pkt", 0},
			{"cnp.received", byRDMA, "rx_cnp_pkt", 0},
		}
	}
	return nil
}

// Count sets one counter of a link's NIC and leaves the others as they are.
func (h *Host) Count(link string, name observe.Name, v uint64) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, err := h.nicOn(link); err != nil {
		return err
	}
	if _, ok := observe.Describe(name); !ok {
		return fmt.Errorf("%q is not the name of a counter", name)
	}
	h.PutCounter(link, name, v)
	return nil
}

// shownCount is one counter that a NIC shows.
type shownCount struct {
	observe.Port
	as    string // tool and the driver's name
	value uint64 // in our unit
	unit  uint64 // how many of ours the driver's is
}

// counts is all that the NIC of a link shows. mlx5 lists the pauses of a priority only while PFC is on for it.
func (h *Host) counts(link string) []shownCount {
	n, knobs := h.nicOf(link), h.Knobs(link)
	if n == nil {
		return nil
	}
	paused := strings.Fields(knobs["pfc priorities"])
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []shownCount
	for _, c := range countsOf(n.kind.personality) {
		for p := range 8 {
			at := strconv.Itoa(p)
			port := observe.Port{Iface: link, Name: observe.Name(strings.Replace(c.name, "*", at, 1))}
			hidden := n.kind.personality == "mlx5" && strings.Contains(c.as, "_prio*_pause") && !slices.Contains(paused, at)
			if v, ok := h.Value(link, port.Name); ok && !hidden {
				unit := max(c.unit, 1)
				out = append(out, shownCount{port, c.tool + " " + strings.Replace(c.as, "*", at, 1), v / unit * unit, unit})
			}
			if !strings.Contains(c.name, "*") {
				break
			}
		}
	}
	return out
}

// statistics is what ethtool -S prints; "" where a driver shows none.
func (h *Host) statistics(link string) string {
	if text := h.currentFaults().Tools; text != "" {
		return text
	}
	var b strings.Builder
	for _, c := range h.counts(link) {
		if as, ok := strings.CutPrefix(c.as, byEthtool+" "); ok {
			fmt.Fprintf(&b, "     %s: %d\n", as, c.value/c.unit)
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return "NIC statistics:\n" + b.String()
}

// rdmaStatistics is what rdma -j statistic show link DEVICE/1 prints.
func (h *Host) rdmaStatistics(device string) string {
	if text := h.currentFaults().Tools; text != "" {
		return text
	}
	for _, l := range h.Links() {
		if n := h.nicOf(l.Name); n == nil || n.device() != device {
			continue
		}
		x := map[string]any{"ifname": device, "port": 1}
		for _, c := range h.counts(l.Name) {
			if as, ok := strings.CutPrefix(c.as, byRDMA+" "); ok {
				x[as] = c.value / c.unit
			}
		}
		b, err := json.Marshal([]any{x})
		if err != nil {
			return ""
		}
		return string(b) + "\n"
	}
	return "[]\n"
}

// wireCounter is a counter on the wire, by its canonical name.
type wireCounter struct {
	Iface string `json:"iface"`
	Name  string `json:"name"`
	Value uint64 `json:"value"`
}

// sense is the counters of all NICs that are asked for; no names ask for all.
func (h *Host) sense(names []string) map[string]any {
	counters := []wireCounter{}
	for _, l := range h.Links() {
		for _, c := range h.counts(l.Name) {
			if len(names) == 0 || slices.Contains(names, string(c.Name)) {
				counters = append(counters, wireCounter{c.Iface, string(c.Name), c.value})
			}
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return map[string]any{"at": time.Now().Add(h.skew).UTC(), "counters": counters}
}
