package sim

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/observe"
	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/profiles"
	"github.com/fabricctl/fabricctl/tuning/sim/engine"
)

// mustFind finds a port of a setup.
func (s *Setup) mustFind(t *testing.T, device, iface string) int {
	t.Helper()
	i := s.portNamed(Place{Device: device, Port: iface})
	if i < 0 {
		t.Fatalf("no port %s:%s", device, iface)
	}
	return i
}

// TestPort: a port of the engine is what the policy of examples/small says, in effect.
func TestPort(t *testing.T) {
	n := example(t, "small")
	s := setup(t, n, "incast:8", Options{})
	i := s.mustFind(t, "leaf1", "Ethernet0")
	c := s.Config.Ports[i]
	buffer := intent.Effective(n.Device("leaf1"), n.Device("leaf1").Port("Ethernet0")).Queues[3].Buffer
	m := slices.Index(s.marks, 26)
	cnp := slices.Index(s.marks, 48)
	want := engine.Port{
		Switch: c.Switch, Peer: s.mustFind(t, "host1", "rdma0"), Rate: 400e9, Delay: 25 * engine.Nanosecond, MTU: 9200,
		Reaction: 1158_400, Quanta: 65535, // 905 quanta of 512 bits at 400 Gbit/s
	}
	want.Obeys[3] = 1 << 3
	for k := range want.Classify {
		want.Classify[k] = c.Classify[k]
	}
	want.Classify[m] = engine.Class{Group: 3, Queue: 3}
	want.Classify[cnp] = engine.Class{Group: 0, Queue: 6}
	pool := s.Config.Switches[c.Switch].Pools[0].Size
	for g := range want.Groups {
		want.Groups[g].Static = pool
	}
	want.Groups[3] = engine.Group{
		Lossless: true, Reserved: int64(buffer.Reserved - buffer.Headroom), Alpha: 1 << 15, Headroom: int64(buffer.Headroom), Xon: int64(buffer.Xon), XonOffset: int64(buffer.XonOffset),
	}
	for q := range want.Queues {
		want.Queues[q] = engine.Queue{Weight: 105, Pool: 1, Alpha: 1 << 16} // a frame in 40, the least weight
	}
	want.Queues[0].Weight = 40 * 105
	want.Queues[3] = engine.Queue{Weight: 60 * 105, Marks: true, Kmin: 800_000, Kmax: 3_200_000, Pmax: 0.2}
	want.Queues[6].Strict = true
	want.Watchdog = engine.Watchdog{Action: engine.WatchdogDrop, Queues: 1 << 3, Poll: 100 * engine.Millisecond, Detect: 200 * engine.Millisecond, Restore: 400 * engine.Millisecond}
	if d := cmp.Diff(want, c); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	if pool != int64(n.Device("leaf1").Pools.Shared) || s.Config.Switches[c.Switch].Headroom != int64(n.Device("leaf1").Pools.Headroom) {
		t.Errorf("pool %d, headroom %d", pool, s.Config.Switches[c.Switch].Headroom)
	}
	nic := s.Config.NICs[0]
	if nic.CNPClass != 6 || nic.CNPMark != int8(cnp) || nic.CNPGap != 4*engine.Microsecond || nic.React.AI != 80e6 || nic.React.G != 5.0/1024 {
		t.Errorf("%+v", nic)
	}
	if tr := s.Config.Transport; tr.Header != 58 || tr.AckSize != 62 || tr.CNPSize != 74 {
		t.Errorf("%+v", tr)
	}
}

// TestUnknown: what one device does not say is taken from those that do, so that nothing changes, and it is said.
func TestUnknown(t *testing.T) {
	n := edit(example(t, "small"), hosts, func(p *intent.Policy) { p.CC.SetParam(profiles.CCIndex("rate_reduce_monitor_period"), 40) })
	load := "incast:8,bytes=1MB"
	whole := run(t, n, load, Options{}, 1)
	for _, area := range []intent.Area{
		intent.AreaMTU, intent.AreaMaps, intent.AreaPFC, intent.AreaECN, intent.AreaBuffer, intent.AreaScheduler, intent.AreaWatchdog, intent.AreaRoCE, intent.AreaCC,
	} {
		m := edit(n, func(d *intent.Device, _ *intent.Port) bool { return d.Name == "leaf2" || d.Name == "host9" }, func(p *intent.Policy) {
			*p = p.Only(^intent.AreaSet(area))
		})
		r := run(t, m, load, Options{}, 1)
		if text := strings.Join(r.Assumed, "\n"); r.Hash != whole.Hash || !strings.Contains(text, area.String()+" as on ") {
			t.Errorf("%s: hash %s, want %s\n%s", area, r.Hash, whole.Hash, text)
		}
		everywhere := n.With(slices.Clone(n.Devices))
		for i := range everywhere.Devices {
			everywhere.Devices[i].Policies = slices.Clone(everywhere.Devices[i].Policies)
		}
		everywhere.Forget(intent.AreaSet(area))
		if r := run(t, everywhere, load, Options{}, 1); area != intent.AreaRoCE && slices.Equal(r.Assumed, whole.Assumed) { // NCCL says it too
			t.Errorf("%s is known nowhere, and nothing is assumed", area)
		}
	}
}

// TestUpDown: no way goes down and up again, unless routing allows every shortest way.
func TestUpDown(t *testing.T) {
	n := example(t, "small")
	lost := Options{Faults: faults(t, "down:leaf1:uplink-1", "down:leaf2:uplink-2")}
	_, err := Run(context.Background(), n, workload(t, "single,hosts=host1,to=host9,bytes=1KB"), lost, 1)
	var refused *Refused
	if !errors.As(err, &refused) || refused.Findings[0].Rule != "sim-no-way" {
		t.Errorf("up, down, up and down: %v", err)
	}
	n.Routing = intent.ShortestPath
	if r := run(t, n, "single,hosts=host1,to=host9,bytes=1KB", lost, 1); r.Totals.Completed != 1 {
		t.Error("the shortest way is not taken")
	}
}

// TestToTheEnd: flows that end do not end a run with others that do not.
func TestToTheEnd(t *testing.T) {
	n := example(t, "small")
	if r := run(t, n, "single + single,hosts=host2,to=host3,bytes=1KB", Options{Duration: units.Millisecond}, 1); r.Measured != units.Millisecond || r.End.Why != "stop" {
		t.Errorf("%s after %s", r.End.Why, r.Measured)
	}
}

// TestRandom: bursts of drawn hosts are of other hosts each time.
func TestRandom(t *testing.T) {
	s := setup(t, example(t, "small"), "incast:4,random,bytes=1KB,every=10us,count=20", Options{})
	to := map[int]bool{}
	for i := range s.flows {
		to[s.flows[i].to] = true
		if i%4 > 0 && s.flows[i].to != s.flows[i-1].to {
			t.Fatal("a burst has two receivers")
		}
	}
	if len(s.flows) != 80 || len(to) < 10 {
		t.Errorf("%d flows to %d receivers", len(s.flows), len(to))
	}
}

// TestRing: a step waits for the one before, and an all-reduce of n hosts has 2(n-1) of them.
func TestRing(t *testing.T) {
	r := run(t, example(t, "small"), "ring,bytes=3200KB", Options{}, 1)
	if len(r.Flows) != 32*62 || r.Totals.Completed != len(r.Flows) {
		t.Fatalf("%d of %d flows", r.Totals.Completed, len(r.Flows))
	}
	for i := 32; i < len(r.Flows); i++ {
		before, f := &r.Flows[(i/32-1)*32+(i+31)%32], &r.Flows[i]
		if before.To.Device != f.From.Device || f.Start <= before.Start || f.Bytes != 100*units.KB {
			t.Fatalf("flow %d of %s from %s starts at %s, and what it waits for goes to %s at %s", i, f.Bytes, f.From, f.Start, before.To, before.Start)
		}
	}
	if least := 62 * r.Flows[0].Ideal * 9 / 10; r.End.At < least {
		t.Errorf("all ended at %s: 62 steps take at least %s", r.End.At, least)
	}
}

// TestRails: flows stay on their rail, each rail has its own, and one rail may be asked for.
func TestRails(t *testing.T) {
	n := example(t, "rail8")
	s := setup(t, n, "incast:3", Options{})
	if len(s.flows) != 24 {
		t.Errorf("%d flows", len(s.flows))
	}
	for i := range s.flows {
		x, y := s.ports[s.nics[s.flows[i].from].port].port, s.ports[s.nics[s.flows[i].to].port].port
		if x.Rail != y.Rail || x.Rail == 0 {
			t.Errorf("from rail %d to rail %d", x.Rail, y.Rail)
		}
	}
	if one := setup(t, n, "incast:3,rail=2", Options{}); len(one.flows) != 3 || one.ports[one.nics[one.flows[0].to].port].port.Rail != 2 {
		t.Errorf("%d flows on rail 2", len(one.flows))
	}
}

// TestBonds: storage goes by its own NICs and by both ports of a bond.
func TestBonds(t *testing.T) {
	s := setup(t, example(t, "storage-and-training"), "alltoall,class=storage,bytes=1MB", Options{})
	used := map[string]bool{}
	for i := range s.flows {
		x := &s.ports[s.nics[s.flows[i].from].port]
		if x.dev.Role != "storage" || s.classes.of(s.flows[i].priority) != "storage" {
			t.Fatalf("%s sends class %s", x.dev.Name, s.classes.of(s.flows[i].priority))
		}
		used[x.port.Name] = true
	}
	if len(used) < 2 {
		t.Errorf("ports %v", used)
	}
}

// TestTrace: the flows of a file, by host and by NIC port.
func TestTrace(t *testing.T) {
	w := observe.Workload{Parts: []observe.Part{{Kind: observe.Trace, File: "f.csv", Flows: []observe.TraceFlow{
		{Start: 10 * units.Microsecond, Src: "host1", Dst: "host9", Class: "training", Bytes: units.MB},
		{Src: "host2:nic-1", Dst: "host10", Class: "default", Bytes: 10 * units.KB},
	}}}}
	r, err := Run(context.Background(), example(t, "small"), w, Options{}, 1)
	if err != nil {
		t.Fatal(err.(*Refused).Findings)
	}
	a, b := &r.Flows[0], &r.Flows[1]
	if a.Start != 10*units.Microsecond || a.Class != "training" || b.Class != "default" || b.DSCP != 0 || !a.Done || !b.Done {
		t.Errorf("%+v\n%+v", a, b)
	}
}

// TestCounters: what one end of a link sends the other receives, and devices count what the result says.
func TestCounters(t *testing.T) {
	n := example(t, "small")
	m := edit(n, switches, func(p *intent.Policy) { p.Queues[3].Buffer.Alpha = units.Ratio{Num: 1, Den: 128} })
	r := run(t, m, "incast:8", Options{Duration: 2 * units.Millisecond}, 1)
	o := r.Observation()
	get := func(device, iface string, name observe.Name) uint64 {
		v, ok := o.After[device].Get(iface, name)
		if !ok {
			t.Errorf("%s %s has no %s", device, iface, name)
		}
		return v
	}
	var marked, pausedNs uint64
	for i := range r.setup.ports {
		x, y := r.setup.place(i, 3), r.setup.place(r.setup.Config.Ports[i].Peer, 3)
		for _, pair := range [][2]observe.Name{{observe.PFCTx.Of(3), observe.PFCRx.Of(3)}, {observe.PFCPausing.Of(3), observe.PFCPaused.Of(3)}, {observe.TxBytes.Of(3), observe.RxBytes.Of(3)}, {observe.PortTxPackets, observe.PortRxPackets}} {
			if a, b := get(x.Device, x.Port, pair[0]), get(y.Device, y.Port, pair[1]); a != b {
				t.Errorf("%s %s is %d, and %s %s is %d", x, pair[0], a, y, pair[1], b)
			}
		}
		pausedNs += get(x.Device, x.Port, observe.PFCPaused.Of(3))
		if !x.Host {
			marked += get(x.Device, x.Port, observe.ECNMarked.Of(3))
		}
	}
	if marked != r.Totals.Marked || marked == 0 || pausedNs == 0 {
		t.Errorf("%d marked and %d ns paused, the result says %d and %s", marked, pausedNs, r.Totals.Marked, r.Totals.PausedTime)
	}
	var handled uint64
	for i := range r.Flows {
		handled += r.Flows[i].CNPs
	}
	var counted uint64
	for d := range o.After {
		if n.Device(d).Host {
			counted += get(d, "rdma0", observe.CNPHandled)
		}
	}
	if counted != handled || handled == 0 || get("host1", "rdma0", observe.CNPSent) != r.Totals.CNPs || get("host1", "rdma0", observe.ECNReceived) == 0 {
		t.Errorf("CNPs: %d handled, the flows say %d; %d sent", counted, handled, r.Totals.CNPs)
	}
	if w := get("leaf1", "Ethernet0", observe.QueueWatermark.Of(3)); units.Bytes(w) != r.Queues[slices.IndexFunc(r.Queues, func(q Queue) bool { return q.Device == "leaf1" && q.Port == "Ethernet0" && q.Place.Queue == 3 })].Max {
		t.Errorf("watermark %d", w)
	}
	if c := observe.Delta(o.Before["leaf1"], o.After["leaf1"]); len(c.Notes()) > 0 || len(c.Gone) > 0 {
		t.Errorf("%+v", c)
	}
}
