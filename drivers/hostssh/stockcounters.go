package hostssh

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/model/observe"
	"github.com/fabricctl/fabricctl/profiles"
)

var _ drivers.Sensor = (*stock)(nil)

// countQuestions are what is asked of each NIC for its counters.
func countQuestions() []question {
	return []question{
		{"cat /sys/class/net/NAME/device/vendor /sys/class/net/NAME/device/device", takeModel},
		{"ethtool -i NAME", takeDriver},
		{"ethtool -S NAME", takeStatistics},
		{"rdma -j statistic show link RDMA", takeRDMAStatistics},
		{"dcb -s -j pfc show dev NAME", takePFCFrames},
	}
}

// Sense reads the counters of NICs with three commands: the links, the RDMA devices, and a script with five tools for each
// NIC. Names are those of the built-in personalities. An RDMA device is that of the one link which rdma link names.
func (s *stock) Sense(ctx context.Context, names []observe.Name) (observe.Counters, error) {
	ls, err := s.links(ctx)
	if err != nil {
		return observe.Counters{}, err
	}
	ns, err := s.asked(ctx, ls, countQuestions())
	if err != nil {
		return observe.Counters{}, err
	}
	c, want := observe.Counters{At: s.now(), Values: map[observe.Port]uint64{}}, observe.Wanted(names)
	cat, err := profiles.OfHosts()
	if err != nil {
		return observe.Counters{}, err
	}
	for _, n := range ns {
		get := func(where, as string, priority int) (v uint64, ok bool) {
			switch {
			case where == profiles.ByEthtool:
				v, ok = n.statistics[as]
			case where == profiles.ByRDMA:
				v, ok = n.rdmaStatistics[as]
			case where == profiles.ByDCB && as == "requests" && len(n.sent) == 8:
				return n.sent[priority], true
			case where == profiles.ByDCB && as == "indications" && len(n.received) == 8:
				return n.received[priority], true
			}
			return v, ok
		}
		p := cat.Personality(n.Driver, n.Model)
		for name, v := range p.Count(func(name string) bool { return want(observe.Name(name)) }, get) {
			c.Values[observe.Port{Iface: n.Name, Name: observe.Name(name)}] = v
		}
	}
	return c, nil
}

// takeStatistics reads lines of "     name: value"; a name may have colons.
func takeStatistics(n *nicView, said []byte) {
	n.statistics = map[string]uint64{}
	for l := range strings.Lines(string(said)) {
		i := strings.LastIndex(l, ": ")
		if i < 0 {
			continue
		}
		if v, err := strconv.ParseUint(strings.TrimSpace(l[i+2:]), 10, 64); err == nil {
			n.statistics[strings.TrimSpace(l[:i])] = v
		}
	}
}

func takeRDMAStatistics(n *nicView, said []byte) {
	var rows []map[string]json.RawMessage
	if json.Unmarshal(said, &rows) != nil || len(rows) != 1 {
		return
	}
	n.rdmaStatistics = map[string]uint64{}
	for name, text := range rows[0] {
		if v, err := strconv.ParseUint(string(text), 10, 64); err == nil {
			n.rdmaStatistics[name] = v
		}
	}
}

func takePFCFrames(n *nicView, said []byte) {
	var x struct {
		Sent     []uint64 `json:"requests"`
		Received []uint64 `json:"indications"`
	}
	if json.Unmarshal(said, &x) == nil {
		n.sent, n.received = x.Sent, x.Received
	}
}
