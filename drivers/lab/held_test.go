package lab

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/drivers/lab/eos"
	"github.com/fabricctl/fabricctl/drivers/lab/host"
	"github.com/fabricctl/fabricctl/drivers/lab/sonic"
	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/render"
)

// pod is a leaf of each kind below a spine, with two hosts at each.
const pod = `apiVersion: fabricctl/v1
kind: Fabric
metadata: {name: pod}
topology:
  spines: {count: 1, platform: sonic/sn5600}
  leaves: {count: 2, platform: eos/7060x6}
  hosts: {per_leaf: 2, nic: connectx-7, netdevs: [rdma0]}
  links:
    leaf_spine: {speed: 400Gbps, cable: 40m}
    host_leaf: {speed: 400Gbps, cable: 5m}
mtu: {fabric: 9214B, host: 9000B}
classes:
  - {name: training, dscp: [26], priority: 3, lossless: true, ecn: {kmin: 800KB, kmax: 3200KB, pmax: 20%}, bandwidth: 60%, drop_incomplete_arp: true}
  - {name: cnp, role: cnp, dscp: [48], priority: 6, scheduling: strict}
  - {name: default, dscp: rest, priority: 0, bandwidth: 40%}
pfc_watchdog: {detect: 200ms, restore: 400ms, poll: 100ms, action: drop}
manage: {switches: own, hosts: own}
`

// wanted is the Net of a model given as text.
func wanted(t testing.TB, text string) *intent.Net {
	t.Helper()
	f, l := model.Load(fstest.MapFS{"fabric.yaml": {Data: []byte(text)}}, "fabric.yaml")
	if l.HasErrors() {
		t.Fatal(l)
	}
	n, l := intent.Resolve(f)
	if l.HasErrors() {
		t.Fatal(l)
	}
	return n
}

// configured is a lab whose devices hold what net asks for.
func configured(t testing.TB, net *intent.Net, o Options) *Lab {
	t.Helper()
	o.State, o.Dir = t.TempDir(), t.TempDir()
	for _, d := range net.Devices {
		dialect := render.ByOS(d.OS())
		c, l := dialect.Render(d, render.Facts{})
		if l.HasErrors() {
			t.Fatal(l)
		}
		if ext := extOf(d.OS()); ext != "" {
			if err := os.WriteFile(filepath.Join(o.State, d.Name+ext), dialect.Text(c), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	l, err := Up(net, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() }) // a second time, where a test closes it
	for _, d := range l.identity.Devices {
		if h, ok := l.Box(d.Name).(*host.Host); ok {
			settle(t, h, net.Device(d.Name))
		}
	}
	return l
}

// settle makes a host hold what is wanted, as far as its own tools can.
func settle(t testing.TB, h *host.Host, d *intent.Device) {
	t.Helper()
	b := *d
	b.Ports = append([]intent.Port(nil), d.Ports...)
	for j := range b.Ports {
		b.Ports[j].Iface = portOf(d, j)
	}
	said, err := saidBy(h)
	if err != nil {
		t.Fatal(err)
	}
	is, err := readHost(&b, said)
	if err != nil {
		t.Fatal(err)
	}
	c, l := render.Linux().Render(b, is.facts)
	if l.HasErrors() {
		t.Fatal(l)
	}
	for _, s := range c {
		switch s.Key.Scope {
		case "link":
			mtu, _ := strconv.Atoi(s.Value)
			err = h.SetMTU(s.Key.Object, mtu)
		case "nccl", "limit", "irq", "flag", "ets": // ETS is written as a whole, which takes an agent
			continue
		default:
			err = h.Set(s.Key.Object, s.Key.Scope+" "+s.Key.Field, s.Value)
		}
		if err != nil {
			t.Fatalf("%s = %s: %v", s.Key, s.Value, err)
		}
	}
}

// What devices hold is what the model asked for, port by port, when they were given its configuration.
func TestNetIsWhatIsHeld(t *testing.T) {
	want := wanted(t, pod)
	l := configured(t, want, Options{})
	got, findings, err := l.Net()
	if err != nil || len(findings) > 0 {
		t.Fatal(err, findings)
	}
	for i := range want.Devices {
		w, g := &want.Devices[i], &got.Devices[i]
		for j := range w.Ports {
			wp, gp := w.PolicyOf(&w.Ports[j]), g.PolicyOf(&g.Ports[j])
			agreed := intent.AreaSet(intent.AreaMTU, intent.AreaPFC)
			areas := wp.Known & gp.Known
			if w.Host { // its maps go with ETS, and it holds more than was asked for
				areas = agreed | intent.AreaSet(intent.AreaRoCE)
				if wp.DSCP != gp.DSCP {
					t.Errorf("%s: code points go to %v, want %v", w.Name, gp.DSCP, wp.DSCP)
				}
			}
			if gp.Known&agreed != agreed {
				t.Errorf("%s %s: nothing of it is known: %v", w.Name, w.Ports[j].Name, gp.Known.Names())
			}
			if d := cmp.Diff(wp.Only(areas), gp.Only(areas)); d != "" {
				t.Errorf("%s %s (-want +got)\n%s", w.Name, w.Ports[j].Name, d)
			}
			if g.Ports[j].State != intent.Active {
				t.Errorf("%s %s is %s", g.Name, g.Ports[j].Name, g.Ports[j].State)
			}
		}
	}
}

// A device that knows nothing makes a Net all the same, and one that is changed by hand, one that differs there alone.
func TestNetFollowsTheDevices(t *testing.T) {
	want := wanted(t, pod)
	l := configured(t, want, Options{})
	leaf, spine, h := l.Box("leaf1").(*eos.Switch), l.Box("spine1").(*sonic.Switch), l.Box("host1").(*host.Host)
	name := want.Device("leaf1").Port("downlink-1").Iface
	uplink := want.Device("spine1").Ports[0].Iface
	before, _, err := l.Net() // what is read once is not parsed again until the device says something else
	if err != nil {
		t.Fatal(err)
	}
	for i := range before.Devices {
		for j := range before.Devices[i].Ports {
			before.Devices[i].Ports[j].State = intent.Planned // and is the caller's
		}
	}
	if err := leaf.Type("interface " + name + "\n priority-flow-control priority 3 drop\n"); err != nil {
		t.Fatal(err)
	}
	spine.Edit(func(db sonic.DB) {
		db.Set("PORT_QOS_MAP", uplink, "pfc_enable", "")
		db.Set("PORT", want.Device("spine1").Ports[1].Iface, "admin_status", "down")
	})
	if err := h.Set("rdma0", "pfc priorities", "4"); err != nil {
		t.Fatal(err)
	}
	got, _, err := l.Net()
	if err != nil {
		t.Fatal(err)
	}
	lossless := func(device, port string) []int {
		d := got.Device(device)
		return d.PolicyOf(d.Port(port)).Lossless()
	}
	if p := lossless("leaf1", name); len(p) != 0 {
		t.Errorf("leaf1 %s is lossless for %v", name, p)
	}
	if p := lossless("leaf1", want.Device("leaf1").Port("downlink-2").Iface); len(p) != 1 {
		t.Errorf("the port beside it is lossless for %v", p)
	}
	if p := lossless("spine1", uplink); len(p) != 0 {
		t.Errorf("spine1 %s is lossless for %v", uplink, p)
	}
	if p := lossless("host1", "rdma0"); len(p) != 1 || p[0] != 4 {
		t.Errorf("host1 is lossless for %v", p)
	}
	shut := &want.Device("spine1").Ports[1]
	if s := got.Device("spine1").Ports[1].State; s != intent.Maintenance {
		t.Errorf("a port that was shut down is %s", s)
	}
	if s := got.Device(shut.Peer).Port(shut.PeerPort).State; s != intent.Maintenance {
		t.Errorf("what it is cabled to is %s", s)
	}
	spine.Edit(func(db sonic.DB) { db.Set("PORT", shut.Iface, "admin_status", "up") })
	if got, _, err = l.Net(); err != nil {
		t.Fatal(err)
	}
	for i := range got.Devices {
		for j := range got.Devices[i].Ports {
			if p := &got.Devices[i].Ports[j]; p.State != want.Devices[i].Ports[j].State {
				t.Errorf("%s %s is %s", got.Devices[i].Name, p.Name, p.State)
			}
		}
	}
}

func TestNetOfNewDevices(t *testing.T) {
	l, err := Up(wanted(t, pod), Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	n, findings, err := l.Net()
	if err != nil || findings.Count(diag.Error) > 0 {
		t.Fatal(err, findings)
	}
	for i := range n.Devices {
		for j := range n.Devices[i].Ports {
			if p := n.Devices[i].PolicyOf(&n.Devices[i].Ports[j]); len(p.Lossless()) > 0 {
				t.Errorf("%s %s: lossless for %v and nobody said so", n.Devices[i].Name, n.Devices[i].Ports[j].Name, p.Lossless())
			}
		}
	}
}
