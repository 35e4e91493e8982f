package sim

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/tuning/sim/engine"
)

// edit changes the policies of the ports for which at holds, in a copy of n.
func edit(n *intent.Net, at func(*intent.Device, *intent.Port) bool, change func(*intent.Policy)) *intent.Net {
	out := n.With(slices.Clone(n.Devices))
	for i := range out.Devices {
		d := &out.Devices[i]
		d.Ports, d.Policies = slices.Clone(d.Ports), slices.Clone(d.Policies)
		for j := range d.Ports {
			if p := &d.Ports[j]; at(d, p) {
				pol := *d.PolicyOf(p)
				change(&pol)
				p.Policy = d.Intern(pol)
			}
		}
	}
	return out
}

func on(device string, ports ...string) func(*intent.Device, *intent.Port) bool {
	return func(d *intent.Device, p *intent.Port) bool {
		return d.Name == device && (len(ports) == 0 || slices.Contains(ports, p.Name))
	}
}

func switches(d *intent.Device, _ *intent.Port) bool { return !d.Host }

func hosts(d *intent.Device, _ *intent.Port) bool { return d.Host }

// TestBroken breaks one thing each, and looks for the symptom and for the sentence that explains it.
func TestBroken(t *testing.T) {
	small := example(t, "small")
	for _, x := range []struct {
		name    string
		net     *intent.Net
		load    string
		options Options
		symptom func(*Result) bool
		say     string
	}{
		{name: "nothing", net: small, load: "incast:8,bytes=4MB", symptom: func(r *Result) bool { return r.Totals.Drops == 0 && r.Totals.Pauses == 0 && r.Totals.Marked > 0 }, say: "no pause was sent"},
		{
			name: "pfc alone", net: small, load: "incast:8,bytes=40MB", options: Options{NoMarks: true},
			symptom: func(r *Result) bool { return r.Totals.Drops == 0 && r.Totals.Pauses > 0 && r.Totals.Marked == 0 }, say: "no packet was marked: marking was left out on request",
		},
		{
			name: "where the pauses begin", net: small, load: "incast:8,bytes=40MB", options: Options{NoMarks: true},
			symptom: func(r *Result) bool { return r.Pauses[0].Part > 0.1 }, say: "% of the time: that begins at leaf1, whose fullest queue is leaf1:Ethernet0 queue 3 with ",
		},
		{
			name: "what limits", net: small, load: "incast:8,bytes=40MB", options: Options{NoMarks: true},
			symptom: func(*Result) bool { return true }, say: "leaf1:Ethernet0 sent for 100% of the time: its link of 400Gbps is what limits",
		},
		{
			name: "pfc missing at uplinks", net: edit(small, on("leaf1", "uplink-1", "uplink-2"), func(p *intent.Policy) { p.Queues[3].Lossless = false }),
			load: "incast:8", options: Options{NoMarks: true, Duration: 3 * units.Millisecond},
			symptom: func(r *Result) bool { return r.Totals.Drops > 0 && r.Totals.Resent > 0 }, say: "priority group 3 is not lossless there",
		},
		{
			name: "pfc missing at a port that has room", net: edit(small, on("leaf1", "uplink-1", "uplink-2"), func(p *intent.Policy) { p.Queues[3].Lossless = false }),
			load: "incast:8,bytes=4MB", symptom: func(r *Result) bool { return r.Totals.Drops == 0 && r.Totals.Pauses == 0 },
			say: "no pause can come from leaf1:Ethernet64 and 1 more port for class training, which is lossless on most ports: what finds no room there is lost (",
		},
		{
			name: "pfc missing, and its priority in another group", net: edit(small, on("leaf1", "uplink-1"), func(p *intent.Policy) { p.Queues[3].Lossless, p.TCPG[3] = false, 0 }),
			load: "incast:8,bytes=4MB", symptom: func(r *Result) bool { return r.Totals.Drops == 0 }, say: "no pause can come from leaf1:Ethernet64 for class training,",
		},
		{
			name: "pfc off on the hosts", net: edit(small, hosts, func(p *intent.Policy) { p.Queues[3].Lossless = false }),
			load: "incast:8,bytes=40MB", options: Options{NoMarks: true},
			symptom: func(r *Result) bool { return r.Totals.Lossless > 0 }, say: "does not obey pauses of priority 3",
		},
		{
			name: "pfc off on the hosts, paused since before", net: edit(small, hosts, func(p *intent.Policy) { p.Queues[3].Lossless = false }),
			load: "incast:8,bytes=400MB", options: Options{NoMarks: true, Warmup: 2 * units.Millisecond, Duration: units.Millisecond},
			symptom: func(r *Result) bool { return r.Totals.Lossless > 0 }, say: "host9:rdma0 and 7 more ports does not obey pauses of priority 3",
		},
		{
			name: "a host sends what is lossless from another queue", net: edit(small, on("host9"), func(p *intent.Policy) { p.DSCP[26] = 0 }),
			load: "incast:8", options: Options{NoMarks: true, Duration: 2 * units.Millisecond},
			symptom: func(r *Result) bool { return r.Totals.Lossless > 0 }, say: "host9:rdma0 sends dscp 26 in queue 0, where a pause of priority 3",
		},
		{
			name: "a pause stops another queue", net: edit(small, on("leaf3"), func(p *intent.Policy) { p.PFCQueue[3] = 4 }),
			load: "incast:16", options: Options{NoMarks: true, Duration: 4 * units.Millisecond},
			symptom: func(r *Result) bool { return r.Totals.Lossless > 0 }, say: "stops queue 4 when priority 3 is paused, and class training is in queue 3",
		},
		{
			name: "a class in the priority group of another", net: edit(small, on("leaf1"), func(p *intent.Policy) { p.TCPG[3] = 0 }),
			load: "incast:8", options: Options{NoMarks: true, Duration: 4 * units.Millisecond},
			symptom: func(r *Result) bool { return r.Totals.Drops > 0 }, say: "travels as traffic class 3, in queue 3 and priority group 0 (trust dscp), from leaf1:",
		},
		{
			name: "map wrong on a leaf", net: edit(small, on("leaf2"), func(p *intent.Policy) { p.DSCP[26] = 0 }),
			load: "incast:8,bytes=4MB", symptom: func(r *Result) bool { return r.Totals.Marked > 0 }, say: "dscp 26 is of class training, and travels as traffic class 0, in queue 0 and priority group 0 (trust dscp), from leaf2:",
		},
		{
			name: "trust none on a leaf", net: edit(small, on("leaf2"), func(p *intent.Policy) { p.Trust = intent.TrustNone }),
			load: "incast:8,bytes=4MB", symptom: func(r *Result) bool { return true }, say: "(trust none), from leaf2:",
		},
		{
			name: "headroom below physics", net: edit(small, switches, func(p *intent.Policy) { p.Queues[3].Buffer.Headroom = 9 * units.KB }),
			load: "incast:8", options: Options{NoMarks: true, Duration: 2 * units.Millisecond},
			symptom: func(r *Result) bool { return r.Totals.Lossless > 0 }, say: "no headroom left",
		},
		{
			name: "mtu 1500 on a leaf", net: edit(small, on("leaf1"), func(p *intent.Policy) { p.MTU = 1500 }),
			load: "single,bytes=100KB", options: Options{Duration: 20 * units.Millisecond},
			symptom: func(r *Result) bool {
				return r.Totals.Unfinished == 1 && r.Totals.Drops > 0 && r.Flows[0].Received == 0
			}, say: "messages of more than 1426 B never arrive, smaller ones do",
		},
		{
			name: "mtu 1500 on a leaf, small messages", net: edit(small, on("leaf1"), func(p *intent.Policy) { p.MTU = 1500 }),
			load: "single,bytes=1024B", symptom: func(r *Result) bool { return r.Totals.Completed == 1 && r.Totals.Drops == 0 }, say: "no packet was dropped",
		},
		{
			name: "mtu 1500 on hosts", net: edit(small, hosts, func(p *intent.Policy) { p.MTU = 1500 }),
			load: "single,bytes=100KB", symptom: func(r *Result) bool { return r.Totals.Completed == 1 && r.Packets == 98 }, say: "no packet was dropped",
		},
		{
			name: "ecn off", net: edit(small, switches, func(p *intent.Policy) { p.Queues[3].ECN = intent.ECN{} }),
			load: "incast:8,bytes=40MB", symptom: func(r *Result) bool { return r.Totals.Marked == 0 && r.Totals.Pauses > 0 && r.Totals.CNPs == 0 }, say: "no queue that the traffic passed marks (ECN is off)",
		},
		{
			name: "tiny alpha", net: edit(small, switches, func(p *intent.Policy) { p.Queues[3].Buffer.Alpha = units.Ratio{Num: 1, Den: 256} }),
			load: "incast:8,bytes=4MB", symptom: func(r *Result) bool { return r.Totals.Pauses > 0 && r.Totals.Drops == 0 }, say: "no packet was dropped",
		},
		{
			name: "kmin above what happens", net: edit(small, switches, func(p *intent.Policy) { p.Queues[3].ECN.Kmin, p.Queues[3].ECN.Kmax = 40*units.MB, 50*units.MB }),
			load: "incast:2,bytes=4MB", symptom: func(r *Result) bool { return r.Totals.Marked == 0 }, say: "and its kmin is 40MB: no mark was possible",
		},
		{
			name: "notifications in another class", net: edit(small, hosts, func(p *intent.Policy) { p.CC.CNPDSCP = 10 }),
			load: "incast:8,bytes=4MB", symptom: func(r *Result) bool { return r.Totals.CNPs > 0 }, say: "notifications of host1:rdma0 and 31 more ports carry dscp 10, which is of class default and not of cnp",
		},
		{
			name: "congestion control off", net: edit(small, hosts, func(p *intent.Policy) { p.CC.Priorities = 1 << 4 }),
			load: "incast:8,bytes=40MB", symptom: func(r *Result) bool { return r.Totals.CNPs == 0 && r.Totals.Marked == 0 && r.Totals.Pauses > 0 }, say: "congestion control is off for class training on",
		},
		{
			name: "congestion control off, marks", net: edit(small, hosts, func(p *intent.Policy) { p.CC.Priorities = 1 << 4 }),
			load: "incast:8,bytes=40MB", symptom: func(r *Result) bool { return r.Totals.Marked == 0 }, say: "what passed it says that its ends know no ECN",
		},
		{
			name: "congestion control off at the receiver", net: edit(small, on("host1"), func(p *intent.Policy) { p.CC.Priorities = 1 << 4 }),
			load: "incast:8,bytes=40MB,to=host1", symptom: func(r *Result) bool { return r.Totals.CNPs == 0 && r.Totals.Marked > 0 && r.Totals.Pauses > 0 },
			say: "were marked: congestion control is off at the receivers",
		},
		{
			name: "marked and swallowed", net: small, load: "incast:8", options: Options{NoPause: true, Faults: faults(t, "storm:host1")},
			symptom: func(r *Result) bool { return r.Totals.CNPs == 0 && r.Totals.Marked > 0 }, say: "no CNP was sent: of ",
		},
	} {
		t.Run(x.name, func(t *testing.T) {
			r := run(t, x.net, x.load, x.options, 1)
			text := strings.Join(r.Why, "\n")
			if !x.symptom(r) || !strings.Contains(text, x.say) {
				t.Errorf("want %q\n%+v\n%s\n%s", x.say, r.Totals, r.End.Words, text)
			}
		})
	}
}

// TestDropPlaces: what a port drops because it is too long is of no priority, though the port drops for lack of headroom too.
func TestDropPlaces(t *testing.T) {
	n := edit(example(t, "small"), on("leaf1"), func(p *intent.Policy) { p.MTU, p.Queues[3].Buffer.Headroom = 1500, 9*units.KB })
	r := run(t, n, "incast:8,mtu=1024B + single,hosts=host9/host1", Options{NoMarks: true, Duration: 2 * units.Millisecond}, 1)
	long, full := 0, 0
	for _, d := range r.Drops {
		switch d.Reason {
		case reasons()[engine.DropMTU]:
			long++
			if d.Queue >= 0 || d.Class != "" || d.Lossless {
				t.Errorf("too long: %+v", d)
			}
		case reasons()[engine.DropHeadroom]:
			full++
			if d.Queue != 3 || d.Class != "training" || !d.Lossless {
				t.Errorf("no headroom: %+v", d)
			}
		}
	}
	if long == 0 || full == 0 {
		t.Errorf("%+v", r.Drops)
	}
}

// TestWorst: the worst of a part is the flow that gets least, also where it gets nothing.
func TestWorst(t *testing.T) {
	r := run(t, example(t, "small"), "incast:8,dscp=0", Options{Duration: 3 * units.Millisecond}, 1)
	least := slices.MinFunc(r.Flows, func(a, b Flow) int { return cmp.Compare(a.Goodput, b.Goodput) }).Goodput
	if g := &r.Parts[0]; least != 0 || g.Least != least || g.Most == 0 {
		t.Errorf("the worst flow has %s, and the part says %s to %s", least, g.Least, g.Most)
	}
}

// TestStraddling: a flow with an end that arrives as the measurement begins is told by all of its life, and what was over before is said.
func TestStraddling(t *testing.T) {
	r := run(t, example(t, "small"), "background:60%,op=read", Options{Duration: units.Millisecond, Warmup: 200 * units.Microsecond}, 1)
	for i := range r.Flows {
		if f := &r.Flows[i]; f.Goodput > 400*units.Gbps {
			t.Errorf("%s to %s with %s on a link of 400Gbps", f.From, f.To, f.Goodput)
		}
	}
	r = run(t, example(t, "small"), "incast:4,bytes=1KB", Options{Warmup: 200 * units.Microsecond}, 1)
	if !strings.Contains(strings.Join(r.Why, "\n"), "within the warm-up of 200us: nothing was measured") {
		t.Errorf("%q", r.Why)
	}
}
