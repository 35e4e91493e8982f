package gnmi

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/model/observe"
)

// counts reads one answer about all ports as Sense does.
func counts(t *testing.T, ports, answer string, fs []field, queues bool, names ...observe.Name) map[observe.Port]uint64 {
	t.Helper()
	p, err := portsOf([]byte(ports))
	if err != nil {
		t.Fatal(err)
	}
	c := counting{want: observe.Wanted(names), ports: p, out: observe.Counters{Values: map[observe.Port]uint64{}}}
	rows, err := rowsOf([]byte(answer))
	if err != nil {
		t.Fatal(err)
	}
	for key, row := range rows {
		name, priority := key, -1
		if queues {
			name, priority = queueOf(key)
		}
		c.take(fs, name, priority, row)
	}
	c.sum()
	return c.out.Values
}

// Pauses are timed in microseconds, in quanta of the port's speed, or estimated by the watchdog, and an exact number counts
// more than an estimate. 1.28 times the largest number is none: what cannot be converted is not there.
func TestPauseTimes(t *testing.T) {
	const ports = `{"Ethernet0": {"speed": "400000", "alias": "etp1"}, "Ethernet8": {"speed": "25000", "alias": "Ethernet0"}, "Ethernet16": {}}`
	got := counts(t, ports, `{
		"etp1": {"SAI_PORT_STAT_PFC_3_RX_PAUSE_DURATION": "1000", "SAI_PORT_STAT_PFC_4_RX_PAUSE_DURATION": "18446744073709551615", "SAI_PORT_STAT_PFC_5_TX_PAUSE_DURATION": "1"},
		"Ethernet8": {"SAI_PORT_STAT_PFC_3_RX_PAUSE_DURATION": "1000", "EST_PORT_STAT_PFC_4_RX_PAUSE_DURATION_US": "9", "SAI_PORT_STAT_PFC_5_RX_PAUSE_DURATION_US": "7",
			"EST_PORT_STAT_PFC_5_RX_PAUSE_DURATION_US": "9", "SAI_PORT_STAT_PFC_6_RX_PAUSE_DURATION_US": "18446744073709551615"},
		"Ethernet16": {"SAI_PORT_STAT_PFC_3_RX_PAUSE_DURATION": "1000"},
		"Ethernet24": {"SAI_PORT_STAT_PFC_3_RX_PKTS": "1"}}`, portFields(), false)
	want := map[observe.Port]uint64{
		// 512 bits at 400 Gb/s are 1.28 ns, at 25 Gb/s 20.48 ns.
		{Iface: "Ethernet0", Name: "pfc.paused_ns.3"}: 1280, {Iface: "Ethernet0", Name: "pfc.pausing_ns.5"}: 1,
		{Iface: "Ethernet8", Name: "pfc.paused_ns.3"}: 20480, {Iface: "Ethernet8", Name: "pfc.paused_ns.4"}: 9000, {Iface: "Ethernet8", Name: "pfc.paused_ns.5"}: 7000,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// Queues of multicast, other ports and columns that are no counters are passed over; sums are made of what is there.
func TestQueueCounters(t *testing.T) {
	const ports = `{"Ethernet0": {"alias": "etp1"}}`
	const answer = `{"etp1:3": {"SAI_QUEUE_STAT_DROPPED_PACKETS": "5", "PFC_WD_QUEUE_STATS_TX_DROPPED_PACKETS": "2", "PFC_WD_QUEUE_STATS_RX_DROPPED_PACKETS": "3", "PFC_WD_STATUS": "operational"},
		"etp1:4": {"SAI_QUEUE_STAT_DROPPED_PACKETS": "N/A", "PFC_WD_QUEUE_STATS_TX_DROPPED_PACKETS": "18446744073709551615", "PFC_WD_QUEUE_STATS_RX_DROPPED_PACKETS": "1"},
		"etp1:8": {"SAI_QUEUE_STAT_DROPPED_PACKETS": "7"}, "CPU:3": {"SAI_QUEUE_STAT_DROPPED_PACKETS": "7"}}`
	port := func(n observe.Name) observe.Port { return observe.Port{Iface: "Ethernet0", Name: n} }
	if d := cmp.Diff(map[observe.Port]uint64{port("drop.out.3"): 5, port("watchdog.dropped.3"): 5}, counts(t, ports, answer, queueFields(), true)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	c := counting{want: observe.Wanted([]observe.Name{"drop.3"}), ports: ports0(t, ports), out: observe.Counters{Values: map[observe.Port]uint64{}}}
	c.take(queueFields(), "etp1", 3, map[string]any{"SAI_QUEUE_STAT_DROPPED_PACKETS": "5", "SAI_QUEUE_STAT_PACKETS": "9"})
	c.take(groupFields(), "Ethernet0", 3, map[string]any{"SAI_INGRESS_PRIORITY_GROUP_STAT_DROPPED_PACKETS": "6"})
	c.take(queueFields(), "etp1", 4, map[string]any{"SAI_QUEUE_STAT_DROPPED_PACKETS": "5"})
	c.sum()
	if d := cmp.Diff(map[observe.Port]uint64{port("drop.3"): 11}, c.out.Values); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if !c.wants(queueFields()) || !c.wants(groupFields()) || c.wants(portFields()) || c.wants(markFields()) {
		t.Error("the drops of a priority are asked of queues and of groups, and of nothing else")
	}
}

func ports0(t *testing.T, text string) ports {
	t.Helper()
	p, err := portsOf([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func FuzzCounterRows(f *testing.F) {
	f.Add([]byte(`{"etp1:3": {"SAI_QUEUE_STAT_DROPPED_PACKETS": "5"}, "Ethernet0": {"SAI_PORT_STAT_PFC_3_RX_PAUSE_DURATION": "18446744073709551615"}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		rows, err := rowsOf(b)
		if err != nil {
			return
		}
		c := counting{want: observe.Wanted(nil), ports: ports0(t, `{"Ethernet0": {"speed": "1", "alias": "etp1"}}`), out: observe.Counters{Values: map[observe.Port]uint64{}}}
		for key, row := range rows {
			name, q := queueOf(key)
			c.take(portFields(), key, -1, row)
			c.take(queueFields(), name, q, row)
		}
		c.sum()
		for p := range c.out.Values {
			if _, ok := observe.Describe(p.Name); !ok || p.Iface != "Ethernet0" {
				t.Errorf("%q %q", p.Iface, p.Name)
			}
		}
	})
}
