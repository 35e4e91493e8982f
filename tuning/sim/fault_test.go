package sim

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/observe"
	"github.com/fabricctl/fabricctl/model/units"
)

// faults reads faults, and sees that their text comes back.
func faults(t *testing.T, texts ...string) []Fault {
	var fs []Fault
	for _, s := range texts {
		f, err := ParseFault(s)
		if err != nil {
			t.Fatal(err)
		}
		if f.String() != s {
			t.Errorf("%q comes back as %q", s, f)
		}
		fs = append(fs, f)
	}
	return fs
}

func TestFaults(t *testing.T) {
	n := example(t, "small")
	impatient := edit(n, switches, func(p *intent.Policy) {
		p.Watchdog.Detect, p.Watchdog.Restore, p.Watchdog.Poll = 2, 2, 1
	})
	for _, x := range []struct {
		name, load, fault string
		net               *intent.Net
		symptom           func(*Result) bool
		say               string
	}{
		{
			"storm", "incast:4,to=host1", "storm:host1,from=2ms", n,
			func(r *Result) bool { return r.Pauses[0].Part > 0.5 }, "without an end, and its PFC watchdog acts after 200ms",
		},
		{
			"storm with a quick watchdog", "incast:4,to=host1", "storm:host1,from=2ms", impatient,
			func(r *Result) bool { return r.Totals.WatchdogHit > 0 && r.Watchdog[0].Device == "leaf1" }, "the PFC watchdog found",
		},
		{
			"slow receiver", "single,to=host1", "slow:host1,rate=40Gbps,buffer=500KB", n,
			func(r *Result) bool {
				return r.Totals.Drops == 0 && r.Pauses[0].Paused > 0 && r.Totals.Goodput < 45*units.Gbps && r.Totals.Goodput > 30*units.Gbps
			}, "that begins at host1:rdma0, which takes in less than it is sent",
		},
		{
			"slow receiver without room for what is on its way", "incast:4,to=host1", "slow:host1,rate=40Gbps,buffer=20KB", n,
			func(r *Result) bool {
				d := r.Drops[0]
				return d.Device == "host1" && d.Queue == 3 && d.Class == "training" && d.Lossless && r.Totals.Lossless == r.Totals.Drops
			}, "host1:rdma0 dropped",
		},
		{
			"one of two spines lost to a leaf", "single,bytes=1MB,to=host1,hosts=host9", "down:leaf1:uplink-1", n,
			func(r *Result) bool { return r.Totals.Completed == 1 }, "no packet was dropped",
		},
	} {
		t.Run(x.name, func(t *testing.T) {
			r := run(t, x.net, x.load, Options{Faults: faults(t, x.fault)}, 1)
			if text := strings.Join(r.Why, "\n"); !x.symptom(r) || !strings.Contains(text, x.say) {
				t.Errorf("want %q\n%+v\n%+v\n%s", x.say, r.Totals, r.Pauses, text)
			}
		})
	}
}

func TestFaultText(t *testing.T) {
	faults(t, "storm:host3,from=1ms,to=4ms,priorities=3/4", "slow:host3:nic-1,rate=50Gbps,buffer=1MB", "down:leaf1:Ethernet8")
	for _, s := range []string{"", "storm", "strom:host1", "down:leaf1", "slow:host1", "storm:host1,from=4ms,to=1ms", "storm:host1,priorities=8", "down:a:b,from=1ms", "slow:host1,rate=5"} {
		if f, err := ParseFault(s); err == nil {
			t.Errorf("%q is taken for %+v", s, f)
		}
	}
}

// TestDeadlock: three flows around three switches wait for each other, and the run says who for whom.
func TestDeadlock(t *testing.T) {
	n := exampleFile(t, "deadlock", "ring.yaml")
	load := "single,hosts=host1,to=host3 + single,hosts=host2,to=host1 + single,hosts=host3,to=host2"
	n = edit(n, switches, func(p *intent.Policy) { p.Queues[3].Buffer.Alpha = units.Ratio{Num: 1, Den: 64} })
	for why, m := range map[string]*intent.Net{
		"stop":     n, // the watchdog would end it, later
		"deadlock": edit(n, switches, func(p *intent.Policy) { p.Watchdog = intent.Watchdog{} }),
	} {
		r := run(t, m, load, Options{NoMarks: true}, 1)
		if r.End.Why != why || len(r.End.Stuck) != 3 || !strings.Contains(strings.Join(r.Why, "\n"), "and waits for sw") {
			t.Fatalf("%s: %s", r.End.Why, r.End.Words)
		}
		for i, x := range r.End.Stuck {
			if next := r.End.Stuck[(i+1)%3]; x.Paused.Device != next.Queue.Device {
				t.Errorf("%s is paused by %s, and the next one is %s", x.Queue, x.Paused, next.Queue)
			}
		}
	}
}

// TestSilent: a flow that was served before it was measured, or whose turn has not come, is not one of which nothing arrives.
func TestSilent(t *testing.T) {
	n := example(t, "small")
	for _, x := range []struct {
		load   string
		o      Options
		silent int
	}{
		{"single,qps=400", Options{Warmup: units.Millisecond, Duration: 10 * units.Microsecond}, 0},
		{"single,qps=20000", Options{Warmup: 500 * units.Microsecond, Duration: 500 * units.Microsecond}, 0},
		{"incast:3", Options{Duration: units.Millisecond, Faults: faults(t, "storm:host1")}, 3},
	} {
		r := run(t, n, x.load, x.o, 1)
		none := 0
		for i := range r.Flows {
			if r.Flows[i].Received == 0 {
				none++
			}
		}
		if got := len(r.Silent()); got != x.silent || none == 0 {
			t.Errorf("%s: %d are silent, want %d; of %d nothing arrived while it was measured", x.load, got, x.silent, none)
		}
	}
}

// TestUnbegun: flows that were to begin after the end are said to be missing.
func TestUnbegun(t *testing.T) {
	n := example(t, "small")
	w := workload(t, "single,bytes=1MB + single,bytes=1MB,start=150ms,name=later")
	w.Parts = append(w.Parts, observe.Part{Kind: observe.Trace, Flows: []observe.TraceFlow{{Src: "host1", Dst: "host2", Bytes: units.MB}, {Start: 200 * units.Millisecond, Src: "host1", Dst: "host2", Bytes: units.MB}}})
	r, err := Run(t.Context(), n, w, Options{}, 1)
	if err != nil {
		t.Fatal(err)
	}
	if text := strings.Join(r.Why, "\n"); !strings.Contains(text, "1 flow has not begun when the run ended: that of trace from host1:rdma0 to host2:rdma0 would at 200ms") {
		t.Error(text)
	}
	if len(r.Findings) != 1 || !strings.Contains(r.Findings[0].Msg, "later: nothing of it starts within 100ms") {
		t.Error(r.Findings)
	}
}

// TestWatchdogBefore: what a watchdog has begun to do before it was measured is told, and what that is.
func TestWatchdogBefore(t *testing.T) {
	n := example(t, "small")
	for action, say := range map[intent.Action]string{
		intent.ActionDrop: "and discards", intent.ActionForward: "in spite of pauses", intent.ActionAlert: "but report it",
	} {
		m := edit(n, switches, func(p *intent.Policy) {
			p.Watchdog = intent.Watchdog{On: true, Detect: 1, Restore: 1, Poll: 1, Action: action}
		})
		r := run(t, m, "incast:3", Options{Warmup: 3 * units.Millisecond, Duration: units.Millisecond, Faults: faults(t, "storm:host1")}, 1)
		if text := strings.Join(r.Why, "\n"); r.Totals.WatchdogHit == 0 || !strings.Contains(text, "first of all leaf1:Ethernet0 queue 3, ") || !strings.Contains(text, say) || strings.Contains(text, "acts after") {
			t.Errorf("%v: %d\n%s", action, r.Totals.WatchdogHit, text)
		}
	}
}

// TestRefused: what cannot be simulated is a finding before the run.
func TestRefused(t *testing.T) {
	n := example(t, "small")
	alone := n.With([]intent.Device{*n.Device("leaf1"), *n.Device("host1")})
	apart := n.With(nil)
	for _, d := range n.Devices {
		if d.Role != "spine" {
			apart.Devices = append(apart.Devices, d)
		}
	}
	big := edit(n, on("leaf1"), func(p *intent.Policy) { p.Queues[3].Buffer.Reserved = 20 * units.MB })
	slow := n.With(nil)
	for _, d := range n.Devices {
		d.Ports = slices.Clone(d.Ports)
		for i := range d.Ports {
			d.Ports[i].Speed = 1
		}
		slow.Devices = append(slow.Devices, d)
	}
	for _, x := range []struct {
		net         *intent.Net
		load, fault string
		rule, say   string
	}{
		{alone, "single", "", "sim-no-hosts", "has 1 NIC port with an active link"},
		{apart, "single", "", "sim-no-way", "no way leads from host1:rdma0 to host9:rdma0"},
		{n, "incast:40", "", "sim-few-hosts", "needs 40 hosts that send to host1, and there are 31"},
		{n, "alltoall:40", "", "sim-few-hosts", "needs 40 hosts, and 32 take part"},
		{n, "pairs:17", "", "sim-few-hosts", "needs 34 hosts, and 32 take part: ask for at most 16"},
		{n, "incast,hosts=host1", "", "sim-few-hosts", "1 take part: let more hosts take part"},
		{slow, "single", "", "sim-speed", "has 1bps, and is too slow to be simulated"},
		{n, "single,class=gold", "", "sim-no-class", "the fabric has no class gold"},
		{n, "single,hosts=host99", "", "sim-no-host", "host host99: there is no such host"},
		{n, "single,hosts=leaf1", "", "sim-no-host", "host leaf1: it is a switch"},
		{n, "victim", "", "sim-victim", "no host of it sends"},
		{n, "single,start=2s", "", "sim-no-flows", "nothing starts within"},
		{n, "single", "storm:leaf1", "sim-fault", "leaf1 has no NIC there"},
		{n, "single", "down:leaf9:p", "sim-fault", "there is no device leaf9"},
		{n, "single", "down:leaf1:p", "sim-fault", "leaf1 has no port p"},
		{big, "single", "", "sim-buffer", "leaf1 promises"},
		{n, "background:30%,bytes=2305844MB", "", "sim-no-flows", "nothing starts within"},
		{n, "background:90%,bytes=256B", "", "sim-flows", "needs more than"},
		{n, "single,dscp=1 + single,dscp=2 + single,dscp=3 + single,dscp=4 + single,dscp=5 + single,dscp=6 + single,dscp=7 + single,dscp=8", "", "sim-code-points", "one more kind of packet than the 8"},
	} {
		var o Options
		if x.fault != "" {
			o.Faults = faults(t, x.fault)
		}
		_, err := Run(context.Background(), x.net, workload(t, x.load), o, 1)
		var refused *Refused
		if !errors.As(err, &refused) {
			t.Errorf("%s %s: %v", x.load, x.fault, err)
			continue
		}
		f := refused.Findings[0]
		if f.Rule != x.rule || !strings.Contains(f.Msg+": "+f.Hint, x.say) || !strings.Contains(err.Error(), f.Msg) {
			t.Errorf("%s %s: want %s: ...%s...\n%s", x.load, x.fault, x.rule, x.say, f)
		}
	}
}
