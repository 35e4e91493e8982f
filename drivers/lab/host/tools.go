package host

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/crypto/ssh"
)

// The stock tools that show a NIC: dcb, ethtool, rdma, and the kernel's files by cat. What they print follows iproute2 6.1
// and ethtool 6.1. What a NIC lacks, they refuse.

// script runs the lines of a shell's standard input.
func (h *Host) script(ch ssh.Channel, gone <-chan struct{}) int {
	text := make([]byte, 0, 1<<12)
	for buf := make([]byte, 1<<12); len(text) < 1<<20; {
		n, err := ch.Read(buf)
		if text = append(text, buf[:n]...); err != nil {
			break
		}
	}
	status, pid := 0, h.nextPID()
	for line := range strings.Lines(string(text)) {
		status = h.command(strings.TrimSuffix(line, "\n"), pid, ch, gone)
	}
	return status
}

// tool is what a tool prints; ok is false for one that is not emulated.
func (h *Host) tool(ws []string) (out string, ok bool) {
	cmd := strings.Join(ws, " ")
	switch {
	case ws[0] == "dcb" && len(ws) == 6 && ws[1] == "-j" && ws[3] == "show" && ws[4] == "dev":
		return h.dcbJSON(ws[2], ws[5]), true
	case ws[0] == "ethtool" && len(ws) == 3:
		return h.ethtool(ws[1], ws[2]), true
	case strings.HasPrefix(cmd, "rdma -j statistic show link "):
		return h.rdmaStatistics(strings.TrimSuffix(ws[5], "/1")), true
	case cmd == "rdma -j link show":
		return h.rdmaLinks(), true
	case strings.HasPrefix(cmd, "rdma -j resource show qp link "):
		return h.rdmaQPs(strings.TrimSuffix(ws[6], "/1")), true
	case ws[0] == "cat" && len(ws) > 1 && strings.HasPrefix(ws[1], "/sys/"):
		var b strings.Builder
		for _, p := range ws[1:] {
			b.WriteString(h.sysfs(p))
		}
		return b.String(), true
	}
	return "", false
}

// row is a "0:a 1:b …" as a list; numbers stay numbers.
func row(s string) []any {
	var out []any
	for w := range strings.FieldsSeq(s) {
		_, v, _ := strings.Cut(w, ":")
		if n, err := strconv.Atoi(v); err == nil {
			out = append(out, n)
		} else {
			out = append(out, v)
		}
	}
	return out
}

func (h *Host) dcbJSON(kind, link string) string {
	k := h.Knobs(link)
	x := map[string]any{}
	switch kind {
	case "dcbx":
		for w := range strings.FieldsSeq(k["dcbx mode"]) {
			x[w] = true
		}
	case "pfc":
		prios := make([]bool, 8)
		for w := range strings.FieldsSeq(k["pfc priorities"]) {
			if n, err := strconv.Atoi(w); err == nil && n < 8 {
				prios[n] = true
			}
		}
		delay, _ := strconv.Atoi(k["pfc delay"])
		x = map[string]any{"pfc_cap": 8, "macsec_bypass": false, "delay": delay, "prio_pfc": prios}
	case "ets":
		x = map[string]any{"willing": k["ets willing"] == on, "tc_bw": row(k["ets bandwidth"]), "tc_tsa": row(k["ets tsa"]), "prio_tc": row(k["ets prio-tc"])}
	case "app":
		var dscp [][2]int
		for _, f := range slices.Sorted(maps.Keys(k)) {
			if point, ok := strings.CutPrefix(f, "app dscp "); ok {
				for p := range strings.FieldsSeq(k[f]) {
					n, _ := strconv.Atoi(point)
					m, _ := strconv.Atoi(p)
					dscp = append(dscp, [2]int{n, m})
				}
			}
		}
		if dscp != nil {
			x["dscp_prio"] = dscp
		}
	case "buffer":
		x = map[string]any{"prio_buffer": row(k["buffer priorities"]), "buffer_size": row(k["buffer sizes"])}
	case "maxrate":
		rates := row(k["maxrate kbits"])
		for i, r := range rates {
			n, _ := r.(int)
			rates[i] = 125 * n
		}
		x["tc_maxrate"] = rates
	}
	has := map[string]string{"dcbx": "dcbx mode", "app": "pfc delay", "pfc": "pfc delay", "ets": "ets tsa", "buffer": "buffer sizes", "maxrate": "maxrate kbits"}
	if _, ok := k[has[kind]]; !ok {
		return ""
	}
	b, err := json.Marshal(x)
	if err != nil {
		return ""
	}
	return string(b) + "\n"
}

func (h *Host) ethtool(what, link string) string {
	k := h.Knobs(link)
	n := h.nicOf(link)
	switch {
	case n == nil:
		return ""
	case what == "-S":
		return h.statistics(link)
	case what == "-i":
		version := n.kind.version
		if version == "" {
			version = h.opt.Kernel
		}
		return fmt.Sprintf("driver: %s\nversion: %s\nfirmware-version: \nbus-info: %s\n", n.kind.driver, version, link)
	case what == "-a":
		return fmt.Sprintf("Pause parameters for %s:\nAutonegotiate:\t%s\nRX:\t\t%s\nTX:\t\t%s\n", link, k["pause autoneg"], k["pause receive"], k["pause send"])
	case what == "-g":
		return fmt.Sprintf("Ring parameters for %s:\nPre-set maximums:\nRX:\t\t8192\nTX:\t\t8192\nCurrent hardware settings:\nRX:\t\t%s\nRX Mini:\tn/a\nTX:\t\t%s\n", link, k["ring rx"], k["ring tx"])
	case what == "--show-fec":
		names := map[string]string{"auto": "Auto", "off": "Off", "rs": "RS", "baser": "BaseR", "llrs": "LLRS"}
		var on []string
		for w := range strings.FieldsSeq(k["fec mode"]) {
			on = append(on, names[w])
		}
		return fmt.Sprintf("FEC parameters for %s:\nSupported/Configured FEC encodings: %s\nActive FEC encoding: RS\n", link, strings.Join(on, " "))
	}
	return ""
}

func (h *Host) nicOf(link string) *nic {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.nics[link]
}

func (h *Host) rdmaLinks() string {
	type rdma struct {
		Name   string `json:"ifname"`
		Port   int    `json:"port"`
		State  string `json:"state"`
		Netdev string `json:"netdev"`
	}
	out := []rdma{}
	for _, l := range h.Links() {
		if n := h.nicOf(l.Name); n != nil && n.device() != "" {
			out = append(out, rdma{n.device(), 1, "ACTIVE", l.Name})
		}
	}
	b, err := json.Marshal(out)
	if err != nil {
		return ""
	}
	return string(b) + "\n"
}

func (h *Host) rdmaQPs(device string) string {
	var out []string
	for _, l := range h.Links() {
		if n := h.nicOf(l.Name); n != nil && n.device() == device {
			out = append(out, fmt.Sprintf(`{"ifname":%q,"port":1,"lqpn":1,"type":"GSI","comm":"[ib_core]"}`, device))
			for i := range n.jobs {
				out = append(out, fmt.Sprintf(`{"ifname":%q,"port":1,"lqpn":%d,"type":"RC","pid":4711,"comm":"train"}`, device, 100+i))
			}
		}
	}
	return "[" + strings.Join(out, ",") + "]\n"
}

// sysfs is a file of the kernel's, "" for one that is not there.
func (h *Host) sysfs(path string) string {
	for _, l := range h.Links() {
		n := h.nicOf(l.Name)
		if n == nil {
			continue
		}
		k := h.Knobs(l.Name)
		vendor, device, _ := strings.Cut(n.kind.models[n.name], ":")
		for p, v := range map[string]string{
			"/sys/class/net/" + l.Name + "/device/vendor": "0x" + vendor, "/sys/class/net/" + l.Name + "/device/device": "0x" + device,
			"/sys/kernel/config/rdma_cm/" + n.device() + "/ports/1/default_roce_mode": map[string]string{"v1": "IB/RoCE v1", "v2": "RoCE v2"}[k["roce mode"]],
			"/sys/kernel/config/rdma_cm/" + n.device() + "/ports/1/default_roce_tos":  k["roce tos"],
			"/sys/class/infiniband/" + n.device() + "/tc/1/traffic_class":             "Global tclass=" + k["roce traffic-class"],
		} {
			if p == path && strings.TrimPrefix(v, "0x") != "" && v != "Global tclass=" {
				return v + "\n"
			}
		}
	}
	return ""
}
