package check_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fabricctl/fabricctl/drivers"
	"github.com/fabricctl/fabricctl/drivers/check"
	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/render"
)

// example is the resolved model of examples/mixed, with a function to change it.
func example(t *testing.T) (*model.Fabric, *intent.Net) {
	t.Helper()
	f, l := model.Load(os.DirFS("../../examples"), "mixed/fabric.yaml", "mixed/site.yaml")
	if l.HasErrors() {
		t.Fatal(l)
	}
	n, l := intent.Resolve(f)
	if l.HasErrors() {
		t.Fatal(l)
	}
	for i := range n.Devices { // what hosts say of themselves
		for j := range n.Devices[i].Ports {
			n.Devices[i].Ports[j].RDMA = "mlx5_0"
		}
	}
	return f, n
}

// box is a device that holds a configuration.
type box struct {
	facts render.Facts
	held  render.Config
	err   error
}

func (b box) Facts(context.Context) (render.Facts, drivers.Caps, error) {
	return b.facts, drivers.Caps{}, b.err
}
func (b box) Read(context.Context) (render.Config, error) { return b.held, nil }
func (b box) Close() error                                { return nil }

// perfect are devices that hold what the model asks for.
func perfect(n *intent.Net) map[string]box {
	m := map[string]box{}
	for _, d := range n.Devices {
		f := render.Facts{Hostname: d.Name, Serial: d.Serial, Aliases: map[string]string{}}
		c, _ := render.ByOS(d.OS()).Render(d, f)
		m[d.Name] = box{facts: f, held: c}
	}
	return m
}

func live(t *testing.T, f *model.Fabric, n *intent.Net, boxes map[string]box) *check.Report {
	t.Helper()
	r, err := check.Live(context.Background(), n, f, check.Options{Parallel: 3, Open: func(_ context.Context, name string) (*drivers.View, error) {
		b, ok := boxes[name]
		if !ok {
			return nil, errors.New(name + ": nobody answers")
		}
		return drivers.ViewOf(name, b), nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func device(t *testing.T, r *check.Report, name string) *check.Device {
	t.Helper()
	for i := range r.Devices {
		if r.Devices[i].Name == name {
			return &r.Devices[i]
		}
	}
	t.Fatalf("no device %s", name)
	return nil
}

// Devices that hold what the model renders agree with it, in every area that they know.
func TestRenderedAgrees(t *testing.T) {
	f, n := example(t)
	r := live(t, f, n, perfect(n))
	for _, d := range r.Devices {
		if d.Fails() || d.Differs() {
			t.Errorf("%+v", d)
		}
		for _, a := range d.Areas {
			if a.Verdict != check.Agrees || a.Compared == 0 {
				t.Errorf("%s: %+v", d.Name, a)
			}
		}
	}
	if r.Differs() || r.Unread() || len(r.Findings) > 0 {
		t.Errorf("%v", r.Findings)
	}
}

// One setting changed by hand differs in its area and in no other, with both values and the line of the model.
func TestOneSettingDiffers(t *testing.T) {
	f, n := example(t)
	for _, x := range []struct {
		device, find, value string // the last setting whose key ends in find becomes value
		area, text          string
	}{
		{"spine1", "PORT|Ethernet0|mtu", "1500", "mtu", "mtu 1500B 9214B"},
		{"spine1", "|green_max_threshold", "9000000", "ecn", "priority 3 kmax 9MB 4MB"},
		{"leaf1", "priority-flow-control priority 3", "drop", "pfc", "priority 3 pfc off on"},
		{"host1", "link|rdma0|mtu", "1500", "mtu", "mtu 1500B 9000B"},
		{"host1", "NCCL_IB_TC", "106", "host-nccl", "nccl traffic class 106 104"},
	} {
		boxes := perfect(n)
		held := boxes[x.device].held
		at := -1
		for i := range held {
			if strings.HasSuffix(held[i].Key.String(), x.find) {
				at = i
			}
		}
		if at < 0 {
			t.Errorf("%s holds no %s", x.device, x.find)
			continue
		}
		held[at].Value = x.value
		r := live(t, f, n, boxes)
		d := device(t, r, x.device)
		var said []string
		for _, diff := range d.Differences {
			for _, v := range diff.Values {
				said = append(said, v.Name+" "+v.Live+" "+v.Model)
				if v.From.IsZero() {
					t.Errorf("%s: %s names no line of the model", x.find, v.Name)
				}
			}
		}
		if !strings.Contains(strings.Join(said, "\n"), x.text) {
			t.Errorf("%s: %q is not in %q", x.find, x.text, said)
		}
		for _, a := range d.Areas {
			want := check.Agrees
			if strings.Contains(x.area, a.Name) {
				want = check.Differs
			}
			if a.Verdict != want {
				t.Errorf("%s: %s %s, want %s", x.find, a.Name, a.Verdict, want)
			}
		}
		if !r.Differs() || r.Unread() {
			t.Errorf("%s: differs %v, unread %v", x.find, r.Differs(), r.Unread())
		}
	}
}

// A device that does not answer, or is another one, is said and does not stop the others.
func TestUnreadDevices(t *testing.T) {
	f, n := example(t)
	boxes := perfect(n)
	delete(boxes, "leaf1")
	stranger := boxes["leaf2"]
	stranger.facts.Hostname = "edge7"
	boxes["leaf2"] = stranger
	broken := boxes["spine2"]
	broken.err = errors.New("spine2: hung up")
	boxes["spine2"] = broken
	r := live(t, f, n, boxes)
	for name, want := range map[string]string{"leaf1": "nobody answers", "leaf2": `has hostname "edge7"`, "spine2": "hung up"} {
		d := device(t, r, name)
		if !strings.Contains(d.Error, want) || len(d.Areas) > 0 {
			t.Errorf("%s: %q, %v", name, d.Error, d.Areas)
		}
	}
	if d := device(t, r, "spine1"); d.Error != "" || d.Differs() {
		t.Errorf("%+v", d)
	}
	if !r.Unread() || r.Differs() {
		t.Errorf("unread %v, differs %v", r.Unread(), r.Differs())
	}
}

// What is in maintenance is compared and fails nothing; what is planned is not contacted; what manage ignores is not
// compared.
func TestLifecycleAndIgnore(t *testing.T) {
	f, n := example(t)
	boxes := perfect(n)
	delete(boxes, "host1") // planned: nobody is there
	n.Device("host1").State = intent.Planned
	n.Device("host2").State = intent.Maintenance
	delete(boxes, "host2")
	spine := n.Device("spine1")
	spine.Ports[0].State = intent.Maintenance
	for i := range spine.Ports {
		spine.Ports[i].Manage[intent.AreaECN] = intent.Ignore
	}
	held := boxes["spine1"].held
	for i, s := range held {
		if s.Key.Scope == "PORT" && s.Key.Object == spine.Ports[0].Iface && s.Key.Field == "mtu" {
			held[i].Value = "1500"
		}
		if s.Key.Field == "green_max_threshold" {
			held[i].Value = "9000000"
		}
	}
	r := live(t, f, n, boxes)
	if d := device(t, r, "host1"); !d.Skipped || d.Error != "" {
		t.Errorf("%+v", d)
	}
	if d := device(t, r, "host2"); d.Error == "" || d.Fails() {
		t.Errorf("%+v", d)
	}
	d := device(t, r, "spine1")
	if !d.Differs() || d.Fails() || d.Area("ecn") != check.Ignored {
		t.Errorf("%+v", d)
	}
	if r.Differs() || r.Unread() {
		t.Errorf("differs %v, unread %v", r.Differs(), r.Unread())
	}
}

// A port that the device does not show is a difference, one that the inventory does not bind is not compared, and an
// area of which the device says nothing is not known.
func TestMissingAndUnknown(t *testing.T) {
	f, n := example(t)
	boxes := perfect(n)
	leaf := n.Device("leaf1")
	leaf.Ports[1].Iface = ""
	spine := n.Device("spine1")
	gone := spine.Ports[1].Iface
	b := boxes["spine1"]
	b.held = b.held.Filter(func(k render.Key) bool { return !strings.HasPrefix(k.Object, gone) && k.Field != gone })
	boxes["spine1"] = b
	l := boxes["leaf1"]
	l.held = l.held.Filter(func(k render.Key) bool { return k.Object != "mtu" })
	boxes["leaf1"] = l
	r := live(t, f, n, boxes)
	if d := device(t, r, "spine1"); !cmp.Equal(d.Missing, []string{gone}) || !d.Fails() {
		t.Errorf("%+v", d)
	}
	d := device(t, r, "leaf1")
	if d.Area("mtu") != check.NotKnown || d.Fails() || len(d.Unbound) != 1 {
		t.Errorf("%+v", d)
	}
}

// The rules judge the live fabric: PFC that one end lost is said, though the model has it.
func TestLiveFindings(t *testing.T) {
	f, n := example(t)
	boxes := perfect(n)
	b := boxes["spine1"]
	b.held = b.held.Filter(func(k render.Key) bool { return k.Field != "pfc_enable[3]" })
	boxes["spine1"] = b
	r := live(t, f, n, boxes)
	said := ""
	for _, x := range r.Findings {
		said += x.String() + "\n"
	}
	if !strings.Contains(said, "pfc-symmetry") || !strings.Contains(said, "bring the devices to it") {
		t.Errorf("findings: %s", said)
	}
}

// The same devices give the same report.
func TestDeterministic(t *testing.T) {
	f, n := example(t)
	boxes := perfect(n)
	first := live(t, f, n, boxes)
	for range 20 {
		if d := cmp.Diff(first, live(t, f, n, boxes), cmpopts.IgnoreFields(check.Report{}, "Live")); d != "" {
			t.Fatal(d)
		}
	}
}

// Who holds a device is said of it, by its serial number where it was read, and is no difference.
func TestHeld(t *testing.T) {
	f, n := example(t)
	boxes := perfect(n)
	name, silent := n.Devices[0].Name, n.Devices[1].Name
	b := boxes[name]
	b.facts.Serial = "S1"
	boxes[name] = b
	r, err := check.Live(t.Context(), n, f, check.Options{
		Parallel: 1,
		Open: func(_ context.Context, name string) (*drivers.View, error) {
			if name == silent {
				return nil, errors.New(name + ": nobody answers")
			}
			return drivers.ViewOf(name, boxes[name]), nil
		},
		Held: func(d *intent.Device, f render.Facts) []string { return []string{d.Name + " " + f.Serial} },
	})
	if err != nil {
		t.Fatal(err)
	}
	if d := device(t, r, name); cmp.Diff([]string{name + " S1"}, d.Held) != "" || d.Fails() || d.Differs() {
		t.Errorf("%+v", d)
	}
	if d := device(t, r, silent); cmp.Diff([]string{silent + " "}, d.Held) != "" {
		t.Errorf("%+v", d)
	}
}

// A device that never answers costs its own row when the time is over, and nobody else's; who interrupts gets nothing.
func TestStuck(t *testing.T) {
	f, n := example(t)
	boxes := perfect(n)
	stuck := n.Devices[0].Name
	o := check.Options{Parallel: 1, Open: func(ctx context.Context, name string) (*drivers.View, error) {
		if name == stuck {
			<-ctx.Done()
			return nil, fmt.Errorf("%s: open: %w", name, ctx.Err())
		}
		return drivers.ViewOf(name, boxes[name]), nil
	}}
	synctest.Test(t, func(t *testing.T) {
		for _, first := range []bool{false, true} { // the others are read before it, or not begun
			net := &intent.Net{Fabric: n.Fabric, Devices: slices.Clone(n.Devices)}
			if !first {
				slices.Reverse(net.Devices)
			}
			ctx, cancel := context.WithTimeoutCause(context.Background(), time.Minute, errors.New("--timeout 1m0s is over"))
			r, err := check.Live(ctx, net, f, o)
			cancel()
			if err != nil {
				t.Fatal(err)
			}
			if d := device(t, r, stuck); d.Error != stuck+": open: context deadline exceeded (--timeout 1m0s is over)" {
				t.Errorf("the stuck device: %q", d.Error)
			}
			other := device(t, r, n.Devices[1].Name)
			switch {
			case !r.Unread() || r.Differs():
				t.Error("what is not read fails the report, and nothing else does")
			case first && other.Error != other.Name+": not begun: --timeout 1m0s is over":
				t.Errorf("a device behind it: %q", other.Error)
			case !first && (other.Error != "" || len(other.Areas) == 0):
				t.Errorf("a device before it: %+v", other)
			}
		}
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(time.Second, cancel)
		if r, err := check.Live(ctx, n, f, o); r != nil || !errors.Is(err, context.Canceled) {
			t.Errorf("interrupted: %+v, %v", r, err)
		}
	})
}
