package main

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/drivers/check"
	"github.com/fabricctl/fabricctl/drivers/lab/eos"
	"github.com/fabricctl/fabricctl/drivers/lab/sonic"
	"github.com/fabricctl/fabricctl/model/observe"
)

// TestCheckCounters reads counters of all kinds of devices. What each shows is its own: a time of pauses where there is one,
// marks of queues that are told to count them. Escapes that a device answers do not reach the terminal.
func TestCheckCounters(t *testing.T) {
	b := newBench(t, trio)
	b.must(t, exitOK, "apply", "--yes", "--allow-disruptive")
	writes := b.writes()
	set := func(device, iface string, values map[observe.Name]uint64) {
		m := map[observe.Port]uint64{}
		for n, v := range values {
			m[observe.Port{Iface: iface, Name: n}] = v
		}
		b.lab.Box(device).SetCounters(m)
	}
	values := map[observe.Name]uint64{
		observe.PFCRx.Of(3): 7, observe.PFCTx.Of(3): 0, observe.PFCPaused.Of(3): 1_500_000, observe.ECNMarked.Of(3): 9, observe.DropIn.Of(3): 2, observe.DropOut.Of(0): 3,
		observe.QueueWatermark.Of(3): 4096, observe.WatchdogStuck.Of(3): 1, observe.WatchdogFreed.Of(3): 0, observe.TxBytes.Of(3): 99, observe.PortErrors: 4,
	}
	set("spine1", "Ethernet0", values)
	set("leaf1", "Ethernet1/1", values)
	got := b.must(t, exitOK, "check", "--counters", "leaf1", "spine1").out
	_, got, _ = strings.Cut(got, "\n\n")
	want := `leaf1 (eos/7060x6)
  counters, as they stand since each was cleared:
    Ethernet1/1  pfc.rx.3 7, ecn.marked.3 9, drop.out.0 3, watchdog.stuck.3 1
    not available here: pfc.paused_ns, pfc.pausing_ns, drop, drop.in, watermark.queue, watermark.group, watermark.room, watchdog.dropped, port.drop.in, port.drop.out, port.errors, port.oversize, link-pause.rx, link-pause.tx

spine1 (sonic/sn5600)
  counters, as they stand since each was cleared:
    Ethernet0  pfc.rx.3 7, pfc.paused_ns.3 1.5ms, ecn.marked.3 9, drop.in.3 2, drop.out.0 3, watermark.queue.3 4096B, watchdog.stuck.3 1, port.errors 4
    not available here: pfc.pausing_ns, drop, watermark.group, watermark.room, watchdog.dropped, port.drop.in, port.drop.out, port.oversize, link-pause.rx, link-pause.tx

check: 2 devices agree with the model
`
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	var r check.Report
	if err := json.Unmarshal([]byte(b.must(t, exitOK, "check", "--counters", "spine1", "-o", "json").out), &r); err != nil {
		t.Fatal(err)
	}
	c := r.Devices[0].Counters
	if c == nil || len(c.Interfaces) != 1 || c.At.IsZero() || c.Interfaces[0].Values["tx.bytes.3"] != 99 || c.Interfaces[0].Port == "" {
		t.Errorf("%+v", c)
	}
	b.lab.Box("spine1").(*sonic.Switch).Fault(sonic.Faults{Counters: func([]string) any { return []string{"\x1b[2Jno"} }})
	b.lab.Box("leaf1").(*eos.Switch).SetFaults(eos.Faults{Counters: func(string) string { return `{"errors": ["\u001b[2Jno"]}` + "\n" }})
	broken := b.must(t, exitError, "check", "--counters", "leaf1", "spine1")
	if strings.Contains(broken.out, "\x1b") || strings.Count(broken.out, "counters were not read: ") != 2 || !strings.Contains(broken.out, "check: 2 devices agree with the model") {
		t.Errorf("%q", broken.out)
	}
	if n := b.writes() - writes; n != 0 {
		t.Errorf("%d writes", n)
	}
}

// A device that was cleared between two readings is said, and its counters are not taken for what was added.
func TestCheckCountersAnew(t *testing.T) {
	b := newBench(t, trio)
	b.must(t, exitOK, "apply", "--yes", "--allow-disruptive")
	reads := 0
	b.lab.Box("spine1").(*sonic.Switch).Fault(sonic.Faults{Counters: func(path []string) any {
		if len(path) != 2 || path[1] != "Ethernet*" {
			return nil
		}
		reads++
		return map[string]any{"etp1": map[string]any{"SAI_PORT_STAT_PFC_3_RX_PKTS": map[int]string{1: "70", 2: "5"}[reads], "SAI_PORT_STAT_PFC_3_TX_PKTS": "900"}}
	}})
	got := b.must(t, exitOK, "check", "--counters", "--during", "1ms", "spine1").out
	if !strings.Contains(got, "the counters of Ethernet0 began anew between the readings (pfc.rx.3 fell from 70 to 5)") || strings.Contains(got, "pfc.tx.3") || reads != 2 {
		t.Errorf("%d readings\n%s", reads, got)
	}
}

// Every counter stands in the page about them, and the page names no other.
func TestCountersDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/counters.md")
	if err != nil {
		t.Fatal(err)
	}
	_, names, _ := strings.Cut(string(page), "## Names\n")
	names, _, _ = strings.Cut(names, "\n## ")
	said := map[string]bool{}
	for l := range strings.Lines(names) {
		cells := strings.Split(l, "|")
		if len(cells) < 3 {
			continue
		}
		for _, m := range regexp.MustCompile("`([a-z._-]+)(\\.P)?`").FindAllStringSubmatch(cells[1], -1) {
			said[m[1]+m[2]] = true
		}
	}
	want := map[string]bool{}
	for _, c := range observe.Counted() {
		name := string(c.Name)
		if c.Each {
			name += ".P"
		}
		want[name] = true
	}
	if d := cmp.Diff(want, said); d != "" {
		t.Errorf("docs/counters.md (-what there is +what is said):\n%s", d)
	}
}
