package eos

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/model/observe"
)

// TestCounters types the commands at the prompt. A queue that is not told to count marks has "-", a port without an event
// of the watchdog is not listed, and what EOS has no word for is not shown.
func TestCounters(t *testing.T) {
	s, addr, _ := start(t, Options{Hostname: "leaf1", Ports: []string{"Ethernet1/1", "Ethernet2/1"}})
	if err := s.Type("qos profile X\nuc-tx-queue 3\nrandom-detect ecn count\ninterface Ethernet1/1\nservice-profile X\ninterface Ethernet2/1\nuc-tx-queue 4\nrandom-detect ecn count"); err != nil {
		t.Fatal(err)
	}
	values := map[observe.Port]uint64{}
	for name, v := range map[string]uint64{
		"pfc.rx.3": 7, "pfc.rx.4": 1, "pfc.tx.3": 2, "pfc.paused_ns.3": 999, "drop.out.3": 3, "tx.packets.3": 100, "ecn.marked.3": 5, "ecn.marked.4": 6,
		"watchdog.stuck.3": 1, "watchdog.freed.3": 0, "port.drop.in": 9, "port.rx.bytes": 1 << 63,
	} {
		values[observe.Port{Iface: "Ethernet1/1", Name: observe.Name(name)}] = v
	}
	values[observe.Port{Iface: "Ethernet2/1", Name: "ecn.marked.4"}] = 8
	values[observe.Port{Iface: "Ethernet2/1", Name: "watchdog.stuck.3"}] = 0
	s.SetCounters(values)
	ask := func(command string) string {
		t.Helper()
		out := transcript(t, s, addr, 0, 0, command+" | json\nexit\n")
		out = strings.TrimPrefix(out, "leaf1>")
		out, _, _ = strings.Cut(out, "leaf1>")
		var b bytes.Buffer
		if json.Compact(&b, []byte(out)) != nil {
			return strings.TrimSpace(out)
		}
		return b.String()
	}
	for _, x := range [][2]string{
		{"show priority-flow-control counters", `{"interfaceCounters":{"Ethernet1/1":{"rxFrames":8,"txFrames":2}}}`},
		{"show priority-flow-control counters detail", `{"interfaces":{"Ethernet1/1":{"priorities":{"3":{"rxFrames":7,"txFrames":2},"4":{"rxFrames":1}}}}}`},
		{"show priority-flow-control counters watchdog", `{"interfaces":{"Ethernet1/1":{"txQueues":{"3":{"recoveryCount":0,"stuckCount":1}}}}}`},
		{"show qos interfaces ecn counters queue", `{"intfQueueCounters":{"Ethernet1/1":{"queueCounters":{"0":"-","1":"-","2":"-","3":"5","4":"-","5":"-","6":"-","7":"-"}},` +
			`"Ethernet2/1":{"queueCounters":{"0":"-","1":"-","2":"-","3":"-","4":"8","5":"-","6":"-","7":"-"}}}}`},
		{"show interfaces counters discards", `{"inDiscardsTotal":9,"interfaces":{"Ethernet1/1":{"inDiscards":9}},"outDiscardsTotal":0}`},
		{"show interfaces counters", `{"interfaces":{"Ethernet1/1":{"inOctets":9223372036854775808}}}`},
		{"show interfaces counters queue detail", `{"egressQueueCounters":{"interfaces":{"Ethernet1/1":{"ucastQueues":{"trafficClasses":{"TC3":{"dropPrecedences":{"DP0":{"droppedPackets":3,"enqueuedPackets":100}}}}}}}}}`},
		{"show interfaces counters queue drops", invalid},
	} {
		if d := cmp.Diff(x[1], ask(x[0])); d != "" {
			t.Errorf("%s (-want +got):\n%s", x[0], d)
		}
	}
	s.opt.VirtualQueues = true
	if got := ask("show interfaces counters queue detail"); got != invalid {
		t.Error(got)
	}
	want := `{"interfaces":{"Ethernet1/1":{"trafficClasses":{"TC3":{"egressQueueCounters":{"countersSum":{"droppedPackets":0}},"ingressVoqCounters":{"countersSum":{"droppedPackets":3}}}}}}}`
	if d := cmp.Diff(want, ask("show interfaces counters queue drops")); d != "" {
		t.Error(d)
	}
	s.SetFaults(Faults{NoCounters: regexp.MustCompile("detail"), Counters: func(c string) string {
		if strings.HasSuffix(c, "watchdog") {
			return "\x1b[2J\n"
		}
		return ""
	}})
	for command, want := range map[string]string{"show priority-flow-control counters detail": invalid, "show priority-flow-control counters watchdog": "\x1b[2J"} {
		if got := ask(command); got != want {
			t.Errorf("%s: %q", command, got)
		}
	}
}
