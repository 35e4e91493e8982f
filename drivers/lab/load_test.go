package lab

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/drivers/lab/eos"
	"github.com/fabricctl/fabricctl/drivers/lab/host"
	"github.com/fabricctl/fabricctl/drivers/lab/sonic"
	"github.com/fabricctl/fabricctl/examples"
	"github.com/fabricctl/fabricctl/model/observe"
	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/tuning/sim"
)

// small is the example of that name: 32 hosts at 4 leaves.
func small(t testing.TB) string {
	t.Helper()
	b, err := fs.ReadFile(examples.FS, "small/fabric.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// run lets a workload pass over a lab.
func run(t testing.TB, l *Lab, text string, d units.Duration) *Loaded {
	t.Helper()
	w, err := observe.ParseWorkload(text)
	if err != nil {
		t.Fatal(err)
	}
	out, err := l.Run(context.Background(), Load{Workload: w, Duration: d, Window: 3 * units.Millisecond, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (l *Lab) counter(device, iface string, n observe.Name) uint64 {
	return l.boxes[device].Counted()[observe.Port{Iface: iface, Name: n}]
}

// A healthy fabric drops nothing. What is counted is that of the window, scaled; loads add up, maxima do not; a device that restarts
// begins anew.
func TestLoadsCount(t *testing.T) {
	l := configured(t, wanted(t, pod), Options{})
	const nic, port = "rdma0", "Ethernet1/1"
	if v, ok := l.boxes["leaf1"].Counted()[observe.Port{Iface: port, Name: observe.PFCRx.Of(3)}]; !ok || v != 0 {
		t.Errorf("a new switch has counted %d, %t", v, ok)
	}
	out := run(t, l, "incast:2", 10*units.Second)
	if out.Window != 3*units.Millisecond || out.Duration != 10*units.Second || out.Result.Totals.Drops != 0 || len(out.NotLifted) != 0 {
		t.Errorf("%+v", out)
	}
	sent := l.counter("host4", nic, observe.TxBytes.Of(3)) + l.counter("host3", nic, observe.TxBytes.Of(3)) + l.counter("host2", nic, observe.TxBytes.Of(3))
	goodput := float64(sent) * 8 / 10
	if low := float64(out.Result.Totals.Goodput); goodput < low || goodput > 1.1*low {
		t.Errorf("hosts have sent %.0f bit/s, and %.0f have arrived", goodput, low)
	}
	first := map[string]map[observe.Port]uint64{}
	for name, b := range l.boxes {
		first[name] = b.Counted()
	}
	run(t, l, "incast:2", 10*units.Second)
	for name, b := range l.boxes {
		for p, v := range b.Counted() {
			was := first[name][p]
			if d, _ := observe.Describe(p.Name); d.Gauge && v != was || !d.Gauge && v != 2*was {
				t.Errorf("%s %s %s is %d after %d", name, p.Iface, p.Name, v, was)
			}
		}
	}
	l.Box("leaf1").(*eos.Switch).Reload()
	l.Box("spine1").(*sonic.Switch).Reboot()
	l.Box("host4").(*host.Host).Reboot()
	for _, name := range []string{"leaf1", "spine1", "host4"} {
		for p, v := range l.boxes[name].Counted() {
			if v != 0 {
				t.Errorf("after a restart, %s %s %s is %d", name, p.Iface, p.Name, v)
			}
		}
	}
	if l.counter("leaf2", port, observe.PortTxBytes)+l.counter("leaf2", port, observe.PortRxBytes) == 0 {
		t.Error("another one has forgotten")
	}
}

// A workload that ends is counted once, as it was.
func TestLoadsThatEndAreNotScaled(t *testing.T) {
	l := configured(t, wanted(t, pod), Options{})
	out := run(t, l, "single,bytes=1MB", 10*units.Second)
	if out.Duration != out.Window || out.Result.End.Why != "done" || out.Result.Totals.Completed != 1 {
		t.Errorf("%s of %s: %+v", out.Window, out.Duration, out.Result.Totals)
	}
	var sent uint64
	for _, h := range []string{"host1", "host2", "host3", "host4"} {
		sent += l.counter(h, "rdma0", observe.TxBytes.Of(3))
	}
	if sent < 1_000_000 || sent > 1_100_000 {
		t.Errorf("hosts have sent %d B", sent)
	}
}

// What is broken on devices by hand shows in the verdict, and in the counters of the place.
func TestBrokenDevicesShow(t *testing.T) {
	for _, tt := range []struct {
		name, model, load string
		brk               func(t *testing.T, l *Lab)
		verdict           func(r *sim.Result) bool
		why               string // in a sentence of the verdict
		device, iface     string // whose counter grows
		counter           observe.Name
	}{
		{
			"no PFC on a SONiC leaf", small(t), "incast:31,qps=2,to=host1",
			func(_ *testing.T, l *Lab) {
				l.Box("leaf1").(*sonic.Switch).Edit(func(db sonic.DB) {
					for _, p := range l.identity.Device("leaf1").Ports {
						db.Set("PORT_QOS_MAP", p.Iface, "pfc_enable", "")
					}
				})
			},
			func(r *sim.Result) bool { return r.Totals.Drops > 0 },
			"priority 3 is lossy there", "leaf1", "Ethernet0", observe.Drop.Of(3),
		},
		{
			"PFC and ECN as they should be", small(t), "incast:31,qps=2,to=host1", func(*testing.T, *Lab) {},
			func(r *sim.Result) bool { return r.Totals.Drops == 0 && r.Totals.Pauses > 0 && r.Totals.Marked > 0 },
			"no packet was dropped", "leaf1", "Ethernet0", observe.ECNMarked.Of(3),
		},
		{
			"a leaf with MTU 1500", pod, "single,hosts=host1/host3,size=1MiB",
			func(t *testing.T, l *Lab) {
				for _, p := range l.identity.Device("leaf1").Ports {
					if err := l.Box("leaf1").(*eos.Switch).Type("interface " + p.Iface + "\n mtu 1500\n"); err != nil {
						t.Fatal(err)
					}
				}
			},
			func(r *sim.Result) bool { return r.Totals.Goodput == 0 && r.Totals.Drops > 0 },
			"", "leaf1", "Ethernet1/1", observe.PortOversize,
		},
		{
			"a map that sends the class elsewhere", pod, "incast:2",
			func(t *testing.T, l *Lab) {
				if err := l.Box("leaf2").(*eos.Switch).Type("qos map dscp 26 to traffic-class 0"); err != nil {
					t.Fatal(err)
				}
			},
			func(r *sim.Result) bool { return strings.Contains(strings.Join(r.Why, "\n"), "leaf2") },
			"26", "leaf2", "Ethernet3/1", observe.TxBytes.Of(0),
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := configured(t, wanted(t, tt.model), Options{})
			tt.brk(t, l)
			out := run(t, l, tt.load, 10*units.Second)
			why := strings.Join(out.Result.Why, "\n")
			if !tt.verdict(out.Result) || !strings.Contains(why, tt.why) {
				t.Errorf("%+v\n%v\n%s", out.Result.Totals, out.Result.Drops, why)
			}
			if v := l.counter(tt.device, tt.iface, tt.counter); v == 0 {
				for p, n := range l.boxes[tt.device].Counted() {
					if n > 0 {
						t.Log(p, n)
					}
				}
				t.Errorf("%s %s %s is 0", tt.device, tt.iface, tt.counter)
			}
		})
	}
}

// A NIC that storms stops its port; the watchdog sees it where the window is long enough, and empties the queue. One that is slow
// pauses, and lets through what it takes.
func TestTroubledNICs(t *testing.T) {
	l := configured(t, wanted(t, pod), Options{})
	h := l.Box("host1").(*host.Host)
	w, err := observe.ParseWorkload("incast:2,hosts=host1/host2/host3,qps=2")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Control("storm", "rdma0", "on"); err != nil {
		t.Fatal(err)
	}
	out, err := l.Run(t.Context(), Load{Workload: w, Window: 450 * units.Millisecond, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	if r := out.Result; r.Totals.WatchdogHit == 0 || l.counter("leaf1", "Ethernet1/1", observe.WatchdogStuck.Of(3)) == 0 {
		t.Errorf("a storm: %+v\n%s", r.Totals, strings.Join(r.Why, "\n"))
	}
	if shown, _ := h.Control("show"); !strings.Contains(shown, "rdma0: pauses its switch without end\n") {
		t.Error(shown)
	}
	for _, words := range [][]string{{"storm", "rdma0", "off"}, {"slow", "rdma0", "50Gbps"}} {
		if _, err := h.Control(words...); err != nil {
			t.Fatal(err)
		}
	}
	if r := run(t, l, "incast:2,hosts=host1/host2/host3,qps=2", 0).Result; r.Totals.Goodput > 50*units.Gbps || r.Totals.Pauses == 0 || r.Totals.Drops != 0 {
		t.Errorf("a slow NIC: %+v\n%s", r.Totals, strings.Join(r.Why, "\n"))
	}
	if _, err := h.Control("slow", "rdma0", "off"); err != nil || len(h.Troubles()) != 0 {
		t.Errorf("%v %v", err, h.Troubles())
	}
	for _, words := range [][]string{{"storm", "rdma0", "x"}, {"slow", "rdma0", "50"}, {"slow", "eth9", "off"}} {
		if _, err := h.Control(words...); err == nil {
			t.Errorf("%q was taken", words)
		}
	}
}

// The answer over the control socket is that of the lab itself.
func TestPass(t *testing.T) {
	l := configured(t, wanted(t, pod), Options{})
	dir := strings.TrimSuffix(l.Inventory, "/inventory.yaml")
	w, err := observe.ParseWorkload("incast:2,class=training + probe,every=20us")
	if err != nil {
		t.Fatal(err)
	}
	load := Load{Workload: w, Duration: units.Second, Window: 2 * units.Millisecond, Seed: 7}
	far, err := Pass(t.Context(), dir, load)
	if err != nil {
		t.Fatal(err)
	}
	near, err := l.Run(t.Context(), load)
	if err != nil {
		t.Fatal(err)
	}
	if far.Window <= units.Millisecond || far.Window > 2*units.Millisecond || far.Duration != units.Second || far.Result.Hash != near.Result.Hash {
		t.Errorf("%+v", far)
	}
	if d := cmp.Diff(near.Result.Totals, far.Result.Totals); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(near.Result.Flows, far.Result.Flows); d != "" {
		t.Error(d)
	}
	load.Workload.Parts[0].N = 99
	_, err = Pass(t.Context(), dir, load)
	if r, ok := errors.AsType[*sim.Refused](err); !ok || !strings.Contains(r.Error(), "needs 99 hosts") {
		t.Errorf("%v", err)
	}
}

// Whoever asked for a load and goes ends it, and so does the end of the lab. Nothing is counted then.
func TestLoadsAreInterrupted(t *testing.T) {
	l := configured(t, wanted(t, pod), Options{})
	w, err := observe.ParseWorkload("alltoall,qps=16")
	if err != nil {
		t.Fatal(err)
	}
	before := l.boxes["spine1"].Counted()
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("gone")
	cancel(gone)
	load := Load{Workload: w, Window: 50 * units.Second, Seed: 1}
	if _, err := l.Run(ctx, load); !errors.Is(err, gone) {
		t.Errorf("the error is %v", err)
	}
	done := make(chan error)
	go func() { _, err := l.Run(t.Context(), load); done <- err }()
	l.stop()
	if err := <-done; !errors.Is(err, errClosed) {
		t.Errorf("the error is %v", err)
	}
	if !maps.Equal(before, l.boxes["spine1"].Counted()) {
		t.Error("something was counted")
	}
}

// Loads, writers and readers may come at the same time.
func TestLoadsWhileDevicesAreWritten(t *testing.T) {
	l := configured(t, wanted(t, pod), Options{})
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for range 3 {
				run(t, l, "incast:2,bytes=100KB", 0)
			}
		})
	}
	wg.Go(func() {
		for i := range 30 {
			_ = l.Box("leaf1").(*eos.Switch).Type([]string{"interface Ethernet1/1\n priority-flow-control priority 3 drop\n", "interface Ethernet1/1\n no priority-flow-control priority 3\n"}[i%2])
			_ = l.Box("host1").(*host.Host).Set("rdma0", "pfc priorities", []string{"3", "4"}[i%2])
			l.Box("spine1").(*sonic.Switch).Edit(func(db sonic.DB) { db.Set("PORT", "Ethernet0", "mtu", []string{"9216", "9100"}[i%2]) })
			_ = l.boxes["leaf2"].Counted()
		}
	})
	wg.Wait()
}

func TestScale(t *testing.T) {
	for _, tt := range []struct {
		v      uint64
		by, of units.Duration
		want   uint64
	}{
		{0, 10, 1, 0},
		{7, 1, 1, 7},
		{7, 0, 0, 7},
		{7, 10, 1, 70},
		{15, 1, 10, 2},
		{14, 1, 10, 1},
		{1, 1, 10, 1},
		{1 << 40, 1 << 40, 1 << 20, 1 << 60},
		{1 << 60, 1 << 40, 1, 1<<64 - 1},
	} {
		if got := scale(tt.v, tt.by, tt.of); got != tt.want {
			t.Errorf("%d * %d / %d is %d, want %d", tt.v, tt.by, tt.of, got, tt.want)
		}
	}
}
