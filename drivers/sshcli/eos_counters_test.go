package sshcli

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/drivers"
	lab "github.com/fabricctl/fabricctl/drivers/lab/eos"
	"github.com/fabricctl/fabricctl/model/observe"
)

// TestEOSCounters reads answers with the members of published ones. Where a queue has had no event of the watchdog it is
// not listed, which is none if the priority is otherwise counted; numbers may be text; classes are summed over their drop
// precedences.
func TestEOSCounters(t *testing.T) {
	found := map[observe.Port]uint64{}
	for _, x := range []struct{ line, answer string }{
		{"show priority-flow-control counters detail | json", `{"interfaces": {"Ethernet1/1": {"priorities": {"3": {"rxFrames": 5, "txFrames": 0}, "4": {"rxFrames": 0, "txFrames": 0}}}}}`},
		{"show priority-flow-control counters | json", `{"interfaceCounters": {"Ethernet1/1": {"rxFrames": 5, "txFrames": 0}, "Ethernet2/1": {"rxFrames": 1, "txFrames": 2}}}`},
		{"show priority-flow-control counters watchdog | json", `{"interfaces": {"Ethernet1/1": {"txQueues": {"3": {"stuckCount": 2, "recoveryCount": 1}}}}}`},
		{"show qos interfaces ecn counters queue | json", `{"intfQueueCounters": {"Ethernet1/1": {"queueCounters": {"3": "12", "0": "-", "8": "1"}}}}`},
		{"show interfaces counters queue detail | json", `{"egressQueueCounters": {"interfaces": {"Ethernet1/1": {"ucastQueues": {"trafficClasses": {"TC3": {"dropPrecedences": {
			"DP0": {"enqueuedPackets": 10, "enqueuedBytes": 1000, "droppedPackets": 3}, "DP1": {"enqueuedPackets": 1, "enqueuedBytes": 64, "droppedPackets": 4}}}}}, "mcastQueues": {}}}}}`},
		{"show interfaces counters queue drops | json", `{"interfaces": {"Ethernet2/1": {"trafficClasses": {"TC3": {"ingressVoqCounters": {"countersSum": {"droppedPackets": 66}},
			"egressQueueCounters": {"countersSum": {"droppedPackets": 1}}}}}}}`},
		{"show interfaces counters discards | json", `{"inDiscardsTotal": 1, "interfaces": {"Ethernet1/1": {"outDiscards": 7, "inDiscards": 1}}, "outDiscardsTotal": 7}`},
		{"show interfaces counters | json", `{"interfaces": {"Ethernet1/1": {"inOctets": 18446744073709551615, "outOctets": 0, "lastUpdateTimestamp": 1.5}, "Management0": {"inOctets": 1}}}`},
	} {
		n := len(found)
		for _, tally := range eosCounters() {
			for i, l := range tally.lines {
				if l != x.line {
					continue
				}
				if err := tally.take(i, x.answer, found); err != nil {
					t.Errorf("%s: %v", x.line, err)
				}
			}
		}
		if len(found) == n {
			t.Errorf("%s: nothing was read", x.line)
		}
	}
	want := map[observe.Port]uint64{}
	for at, v := range map[string]uint64{
		"Ethernet1/1 pfc.rx.3": 5, "Ethernet1/1 pfc.tx.3": 0, "Ethernet1/1 pfc.rx.4": 0, "Ethernet1/1 pfc.tx.4": 0, "Ethernet1/1 pfc.rx": 5, "Ethernet1/1 pfc.tx": 0,
		"Ethernet2/1 pfc.rx": 1, "Ethernet2/1 pfc.tx": 2, "Ethernet1/1 watchdog.stuck.3": 2, "Ethernet1/1 watchdog.freed.3": 1, "Ethernet1/1 watchdog.stuck.4": 0, "Ethernet1/1 watchdog.freed.4": 0,
		"Ethernet1/1 ecn.marked.3": 12, "Ethernet1/1 tx.packets.3": 11, "Ethernet1/1 tx.bytes.3": 1064, "Ethernet1/1 drop.out.3": 7, "Ethernet2/1 drop.out.3": 67,
		"Ethernet1/1 port.drop.out": 7, "Ethernet1/1 port.drop.in": 1, "Ethernet1/1 port.rx.bytes": 18446744073709551615, "Ethernet1/1 port.tx.bytes": 0, "Management0 port.rx.bytes": 1,
	} {
		iface, name, _ := strings.Cut(at, " ")
		want[observe.Port{Iface: iface, Name: observe.Name(name)}] = v
	}
	if d := cmp.Diff(want, found); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestSense asks emulated switches: one whose chip has virtual queues, and one that lacks a command, whose counters are
// absent then. An account that may not change anything reads them too.
func TestSense(t *testing.T) {
	b := newBench(t, lab.Options{VirtualQueues: true})
	port := func(n observe.Name) observe.Port { return observe.Port{Iface: "Ethernet1/1", Name: n} }
	b.sw.SetCounters(map[observe.Port]uint64{port("drop.out.3"): 7, port("tx.packets.3"): 9, port("pfc.rx.3"): 5, port("watchdog.stuck.3"): 0})
	b.cfg.ReadOnly = true
	d := b.dial()
	sense := func(want map[observe.Port]uint64, names ...observe.Name) {
		t.Helper()
		got, err := drivers.ViewOf("leaf1", drivers.ReadOnly("leaf1", d)).Sense(b.ctx(), names)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got.Values); diff != "" {
			t.Errorf("%v (-want +got):\n%s", names, diff)
		}
	}
	all := map[observe.Port]uint64{port("drop.out.3"): 7, port("pfc.rx.3"): 5, port("pfc.rx"): 5, port("watchdog.stuck.3"): 0, port("watchdog.freed.3"): 0}
	sense(all)
	shows := b.sw.Counters().Shows
	sense(map[observe.Port]uint64{port("drop.out.3"): 7}, "drop.out.3")
	if n := b.sw.Counters().Shows - shows; n != 2 {
		t.Errorf("%d lines for the drops of a queue, want the two that there are", n)
	}
	b.sw.SetFaults(lab.Faults{NoCounters: regexp.MustCompile("watchdog|detail")})
	delete(all, port("watchdog.stuck.3"))
	delete(all, port("watchdog.freed.3"))
	delete(all, port("pfc.rx.3"))
	sense(all)
}

func FuzzEOSCounters(f *testing.F) {
	f.Add(`{"interfaces": {"Ethernet1/1": {"priorities": {"3": {"rxFrames": 5}}, "txQueues": {"3": {"stuckCount": "1"}}}}}`)
	f.Add(`{"egressQueueCounters": {"interfaces": {"Ethernet1/1": {"ucastQueues": {"trafficClasses": {"TC3": {"dropPrecedences": {"DP0": {"droppedPackets": 3}}}}}}}}}`)
	f.Fuzz(func(t *testing.T, answer string) {
		found := map[observe.Port]uint64{}
		for _, tally := range eosCounters() {
			for i := range tally.lines {
				_ = tally.take(i, answer, found)
			}
		}
		for p := range found {
			if _, ok := observe.Describe(p.Name); !ok || !eosIface.MatchString(p.Iface) {
				t.Errorf("%q %q", p.Iface, p.Name)
			}
		}
	})
}
