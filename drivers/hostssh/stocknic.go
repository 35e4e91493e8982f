package hostssh

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/fabricctl/fabricctl/profiles"
	"github.com/fabricctl/fabricctl/render"
)

// What a host's own tools are asked about each NIC, and how the answer is understood. A tool that is not there, or that
// a driver refuses, says nothing, and then nothing is known. In args, NAME is the interface and RDMA its RDMA device: an
// RDMA question is asked where there is one.
type question struct {
	args string
	take func(n *nicView, said []byte)
}

func questions() []question {
	return []question{
		{"cat /sys/class/net/NAME/device/vendor /sys/class/net/NAME/device/device", takeModel},
		{"ethtool -i NAME", takeDriver},
		{"dcb -j dcbx show dev NAME", takeDCBX},
		{"dcb -j pfc show dev NAME", takePFC},
		{"dcb -j ets show dev NAME", takeETS},
		{"dcb -j app show dev NAME", takeApp},
		{"dcb -j buffer show dev NAME", takeBuffer},
		{"dcb -j maxrate show dev NAME", takeMaxRate},
		{"ethtool -a NAME", takePause},
		{"ethtool -g NAME", takeRing},
		{"ethtool --show-fec NAME", takeFEC},
		{"rdma -j resource show qp link RDMA", takeQPs},
		{"cat /sys/kernel/config/rdma_cm/RDMA/ports/1/default_roce_mode", takeRoCEMode},
		{"cat /sys/kernel/config/rdma_cm/RDMA/ports/1/default_roce_tos", takeRoCEToS},
		{"cat /sys/class/infiniband/RDMA/tc/1/traffic_class", takeTrafficClass},
	}
}

// nicView is a NIC as the tools show it.
type nicView struct {
	render.HostNIC
	settings render.Config

	statistics, rdmaStatistics map[string]uint64 // counters, by the driver's names
	sent, received             []uint64          // frames of PFC by priority, by dcbnl; none where it does not say
}

// knows notes that the NIC has a knob, and put what it holds.
func (n *nicView) knows(knob string) {
	if !slices.Contains(n.Knobs, knob) {
		n.Knobs = append(n.Knobs, knob)
		slices.Sort(n.Knobs)
	}
}

func (n *nicView) put(scope, field, value string) {
	n.settings = append(n.settings, render.Setting{Key: render.Key{Scope: scope, Object: n.Name, Field: field}, Value: value})
}

// nics is all that is known of the settings of all links with hardware below them.
func (s *stock) nics(ctx context.Context, ls []link) ([]nicView, error) {
	ns, err := s.asked(ctx, ls, questions())
	if err != nil {
		return nil, err
	}
	return ns, s.recognise(ns)
}

// asked asks questions about all links with hardware below them, in one go.
func (s *stock) asked(ctx context.Context, ls []link, qs []question) ([]nicView, error) {
	rdma, err := s.rdma(ctx)
	if err != nil {
		return nil, err
	}
	var ns []nicView
	var script strings.Builder
	ask := func(args, name, device string) {
		words := strings.Fields(args)
		for i, w := range words {
			w = strings.ReplaceAll(w, "NAME", name)
			if strings.Contains(w, "RDMA") && !strings.HasPrefix(w, "/") {
				w = strings.ReplaceAll(w, "RDMA", device)
			} else {
				d, _, _ := strings.Cut(device, "/") // a path has the device alone
				w = strings.ReplaceAll(w, "RDMA", d)
			}
			words[i] = quote(w)
		}
		fmt.Fprintf(&script, "echo\necho %s\n%s\n", mark, strings.Join(words, " "))
	}
	for _, l := range ls {
		if l.ParentBus == "" || l.representor() {
			continue
		}
		n := nicView{HostNIC: render.HostNIC{Name: l.Name, RDMA: rdma[l.Name].Name, RDMAPort: rdma[l.Name].Port, NUMA: -1, GID: -1, QPs: -1, Bond: l.bond()}}
		n.GIDWhy = "the host's own tools are not asked for it"
		n.Link.Up = slices.Contains(l.Flags, "LOWER_UP")
		if l.ParentBus == "pci" {
			n.PCI = l.Parent
		}
		for _, q := range qs {
			ask(q.args, n.Name, fmt.Sprintf("%s/%d", cmp.Or(n.RDMA, "none"), max(n.RDMAPort, 1)))
		}
		ns = append(ns, n)
	}
	if len(ns) == 0 {
		return nil, nil
	}
	out, err := s.client.Run(ctx, "sh -s", strings.NewReader(script.String()))
	if err != nil {
		return nil, err
	}
	answers := bytes.Split(out.Stdout, []byte("\n"+mark+"\n"))[1:]
	if len(answers) != len(ns)*len(qs) {
		return nil, fmt.Errorf("%s: asked its tools about %d NICs, and the answer is cut: %q", s.name, len(ns), oneLine(out.Stderr))
	}
	for i, a := range answers {
		if n, q := &ns[i/len(qs)], qs[i%len(qs)]; len(bytes.TrimSpace(a)) > 0 && (n.RDMA != "" || !strings.Contains(q.args, "RDMA")) {
			q.take(n, a)
		}
	}
	return ns, nil
}

// recognise finds the personality of each NIC.
func (s *stock) recognise(ns []nicView) error {
	cat, err := profiles.OfHosts()
	if err != nil {
		return err
	}
	for i := range ns {
		ns[i].Personality = cat.Personality(ns[i].Driver, ns[i].Model).Name
	}
	return nil
}

// rdmaLink is what rdma -j link show says about one port of an RDMA device.
type rdmaLink struct {
	Name   string `json:"ifname"`
	Port   int    `json:"port"`
	Netdev string `json:"netdev"`
}

// rdma is the RDMA device of each interface. A host without the tool has none to show.
func (s *stock) rdma(ctx context.Context) (map[string]rdmaLink, error) {
	out, err := s.client.Run(ctx, "rdma -j link show", nil)
	if err != nil {
		return nil, err
	}
	m := map[string]rdmaLink{}
	var ls []rdmaLink
	if i := bytes.IndexByte(out.Stdout, '['); out.Exit == 0 && i >= 0 && json.Unmarshal(bytes.TrimSpace(out.Stdout[i:]), &ls) == nil {
		for _, l := range ls {
			if l.Netdev != "" && !strings.ContainsAny(l.Name, "/\x00\n") {
				m[l.Netdev] = l
			}
		}
	}
	return m, nil
}

func takeModel(n *nicView, said []byte) {
	if w := strings.Fields(string(said)); len(w) == 2 {
		n.Model = strings.TrimPrefix(w[0], "0x") + ":" + strings.TrimPrefix(w[1], "0x")
	}
}

// pairs are lines of "name: value".
func pairs(said []byte) map[string]string {
	m := map[string]string{}
	for line := range strings.Lines(string(said)) {
		if k, v, ok := strings.Cut(line, ":"); ok {
			m[strings.TrimSpace(k)] = strings.TrimSpace(v)
		}
	}
	return m
}

func takeDriver(n *nicView, said []byte) {
	m := pairs(said)
	n.Driver, n.DriverVersion, n.Firmware = m["driver"], m["version"], m["firmware-version"]
}

func takeDCBX(n *nicView, said []byte) {
	var mode map[string]bool
	if json.Unmarshal(said, &mode) != nil {
		return
	}
	n.knows("dcbx")
	var words []string
	for _, w := range []string{"host", "lld-managed", "cee", "ieee", "static"} {
		if mode[w] || mode[strings.ReplaceAll(w, "-", "_")] {
			words = append(words, w)
		}
	}
	if len(words) > 0 {
		n.put("dcbx", "mode", strings.Join(words, " "))
	}
}

func takePFC(n *nicView, said []byte) {
	var x struct {
		Delay uint16 `json:"delay"`
		Prio  []bool `json:"prio_pfc"`
	}
	if json.Unmarshal(said, &x) != nil || len(x.Prio) != 8 {
		return
	}
	var on uint8
	for i, yes := range x.Prio {
		if yes {
			on |= 1 << i
		}
	}
	n.knows("pfc")
	n.put("pfc", "priorities", profiles.Priorities(on))
	n.put("pfc", "delay", strconv.Itoa(int(x.Delay)))
}

func takeETS(n *nicView, said []byte) {
	var x struct {
		Willing bool     `json:"willing"`
		BW      []int    `json:"tc_bw"`
		TSA     []string `json:"tc_tsa"`
		PrioTC  []int    `json:"prio_tc"`
	}
	if json.Unmarshal(said, &x) != nil || len(x.BW) != 8 || len(x.TSA) != 8 || len(x.PrioTC) != 8 {
		return
	}
	for i, tsa := range x.TSA {
		if tsa != "ets" {
			x.BW[i] = 0 // the number means nothing there (IEEE 802.1Qaz)
		}
	}
	n.knows("ets")
	n.put("ets", "prio-tc", eight(x.PrioTC))
	n.put("ets", "tsa", eight(x.TSA))
	n.put("ets", "bandwidth", eight(x.BW))
	n.put("ets", "willing", map[bool]string{true: "on", false: "off"}[x.Willing])
}

// eight is "0:a 1:b … 7:h".
func eight[T any](vs []T) string {
	words := make([]string, len(vs))
	for i, v := range vs {
		words[i] = fmt.Sprintf("%d:%v", i, v)
	}
	return strings.Join(words, " ")
}

func takeApp(n *nicView, said []byte) {
	var x map[string]json.RawMessage
	if json.Unmarshal(said, &x) != nil {
		return
	}
	n.knows("app")
	var dscp [][2]int
	if json.Unmarshal(x["dscp_prio"], &dscp) != nil {
		return // other selectors are never owned, and not shown
	}
	by := map[int][]string{}
	slices.SortFunc(dscp, func(a, b [2]int) int { return cmp.Or(a[0]-b[0], a[1]-b[1]) })
	for _, e := range dscp {
		by[e[0]] = append(by[e[0]], strconv.Itoa(e[1]))
	}
	for point, prios := range by {
		n.put("app", fmt.Sprintf("dscp %d", point), strings.Join(prios, " "))
	}
}

func takeBuffer(n *nicView, said []byte) {
	var x struct {
		Prio []int    `json:"prio_buffer"`
		Size []uint32 `json:"buffer_size"`
	}
	if json.Unmarshal(said, &x) != nil || len(x.Prio) != 8 || len(x.Size) != 8 {
		return
	}
	n.knows("buffer")
	n.put("buffer", "priorities", eight(x.Prio))
	n.put("buffer", "sizes", eight(x.Size))
}

func takeMaxRate(n *nicView, said []byte) {
	var x struct {
		Rate []uint64 `json:"tc_maxrate"` // bytes per second; the kernel's own is kilobits
	}
	if json.Unmarshal(said, &x) != nil || len(x.Rate) != 8 {
		return
	}
	for i := range x.Rate {
		x.Rate[i] = x.Rate[i] / 125
	}
	n.knows("maxrate")
	n.put("maxrate", "kbits", eight(x.Rate))
}

func takePause(n *nicView, said []byte) {
	m := pairs(said)
	for field, key := range map[string]string{"receive": "RX", "send": "TX", "autoneg": "Autonegotiate"} {
		if v := m[key]; v == "on" || v == "off" {
			n.knows("pause")
			n.put("pause", field, v)
		}
	}
}

func takeRing(n *nicView, said []byte) {
	_, now, ok := strings.Cut(string(said), "Current hardware settings:")
	if !ok {
		return
	}
	m := pairs([]byte(now))
	for field, key := range map[string]string{"rx": "RX", "tx": "TX"} {
		if v, err := strconv.ParseUint(m[key], 10, 32); err == nil {
			n.knows("ring")
			n.put("ring", field, strconv.FormatUint(v, 10))
		}
	}
}

// takeFEC: several may be allowed, of which the driver chooses one.
func takeFEC(n *nicView, said []byte) {
	for k, v := range pairs(said) {
		if !strings.Contains(k, "Configured FEC encoding") {
			continue
		}
		allowed := strings.Fields(strings.ToLower(v))
		var words []string
		for _, w := range []string{"auto", "off", "rs", "baser", "llrs"} {
			if slices.Contains(allowed, w) {
				words = append(words, w)
			}
		}
		if len(words) > 0 {
			n.knows("fec")
			n.put("fec", "mode", strings.Join(words, " "))
		}
	}
}

// takeQPs counts the queue pairs of programs: the kernel's own have no process.
func takeQPs(n *nicView, said []byte) {
	var qps []struct {
		PID int `json:"pid"`
	}
	if json.Unmarshal(said, &qps) != nil {
		return
	}
	n.QPs = 0
	for _, q := range qps {
		if q.PID > 0 {
			n.QPs++
		}
	}
}

func takeRoCEMode(n *nicView, said []byte) {
	if v := map[string]string{"IB/RoCE v1": "v1", "RoCE v2": "v2"}[strings.TrimSpace(string(said))]; v != "" {
		n.knows("roce.mode")
		n.put("roce", "mode", v)
	}
}

func takeRoCEToS(n *nicView, said []byte) {
	if v, err := strconv.ParseUint(strings.TrimSpace(string(said)), 10, 8); err == nil {
		n.knows("roce.tos")
		n.put("roce", "tos", strconv.FormatUint(v, 10))
	}
}

// takeTrafficClass reads "Global tclass=104"; nothing there is none, and no answer.
func takeTrafficClass(n *nicView, said []byte) {
	for line := range strings.Lines(string(said)) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), "Global tclass="); ok {
			if x, err := strconv.ParseInt(v, 10, 16); err == nil {
				n.knows("roce.traffic-class")
				n.put("roce", "traffic-class", strconv.FormatInt(x, 10))
			}
		}
	}
}
