package sim

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/render"
)

// TestSameSeed: a run is a function of its arguments, and the seed is one of them.
func TestSameSeed(t *testing.T) {
	n, load := example(t, "small"), "permutation,across,bytes=300KB + incast:8,random,bytes=64KB,every=50us,jitter=20%,spread=2us,count=4 + probe,count=50"
	a, b, c := run(t, n, load, Options{}, 7), run(t, n, load, Options{}, 7), run(t, n, load, Options{}, 8)
	if a.Hash != b.Hash || !cmp.Equal(a.Totals, b.Totals) || !cmp.Equal(a.Flows, b.Flows) || !cmp.Equal(a.Why, b.Why) {
		t.Error("two runs with the same seed differ")
	}
	if a.Hash == c.Hash {
		t.Error("runs with different seeds are the same")
	}
}

// TestRenamed: names change nothing but names.
func TestRenamed(t *testing.T) {
	n := example(t, "small")
	m := n.With(slices.Clone(n.Devices))
	rename := func(s string) string {
		if s == "" {
			return ""
		}
		return "x-" + s + ".y"
	}
	for i := range m.Devices {
		d := &m.Devices[i]
		d.Name, d.Ports = rename(d.Name), slices.Clone(d.Ports)
		for j := range d.Ports {
			p := &d.Ports[j]
			p.Name, p.Iface, p.Peer, p.PeerPort = rename(p.Name), rename(p.Iface), rename(p.Peer), rename(p.PeerPort)
		}
	}
	a, b := run(t, n, "incast:8,bytes=1MB + victim:2,bytes=1MB", Options{}, 3), run(t, m, "incast:8,bytes=1MB + victim:2,bytes=1MB", Options{}, 3)
	if a.Hash != b.Hash || !cmp.Equal(a.Totals, b.Totals) {
		t.Errorf("other names, another run: %s and %s", a.Hash, b.Hash)
	}
}

// TestUnused: ports and devices that carry nothing change nothing.
func TestUnused(t *testing.T) {
	n := example(t, "small")
	a := run(t, n, "incast:8,bytes=1MB", Options{}, 3)
	m := n.With(slices.Clone(n.Devices))
	for i := range m.Devices {
		d := &m.Devices[i]
		d.Ports = slices.Clone(d.Ports)
		extra := d.Ports[0]
		extra.Name, extra.Iface, extra.Peer, extra.PeerPort = "a-spare", "spare", "", ""
		planned := d.Ports[0]
		planned.Name, planned.Iface, planned.State = "b-planned", "planned", intent.Planned
		d.Ports = append([]intent.Port{extra, planned}, d.Ports...)
	}
	spare := m.Devices[0]
	spare.Name, spare.Ports = "a-device", nil
	m.Devices = append([]intent.Device{spare}, m.Devices...)
	if b := run(t, m, "incast:8,bytes=1MB", Options{}, 3); a.Hash != b.Hash {
		t.Errorf("spare ports, another run: %s and %s", a.Hash, b.Hash)
	}
}

// TestStates: what is not active carries nothing.
func TestStates(t *testing.T) {
	n := example(t, "small")
	for _, state := range []intent.State{intent.Planned, intent.Maintenance, intent.Absent} {
		m := n.With(slices.Clone(n.Devices))
		m.Device("spine2").State = state
		r := run(t, m, "alltoall:8,across,bytes=10KB + single,bytes=1MB", Options{}, 1)
		for i := range r.setup.ports {
			if x := &r.setup.ports[i]; x.dev.Name == "spine2" || x.port.Peer == "spine2" {
				t.Errorf("%s: %s has a link", state, r.setup.name(i))
			}
		}
	}
}

// TestLifted: what a device holds of what is wanted is simulated as what is wanted is.
func TestLifted(t *testing.T) {
	for _, name := range []string{"small", "rail8", "mixed", "storage-and-training", "three-tier"} {
		t.Run(name, func(t *testing.T) {
			want := example(t, name)
			live := want.With(nil)
			for _, d := range want.Devices {
				dialect := render.ByOS(d.OS())
				c, findings := dialect.Render(d, render.Facts{})
				if findings.HasErrors() {
					t.Fatal(findings)
				}
				parsed, findings := dialect.Parse(dialect.Text(c))
				if findings.HasErrors() {
					t.Fatal(findings)
				}
				lifted, findings := dialect.Lift(parsed, render.Facts{})
				if findings.HasErrors() {
					t.Fatal(findings)
				}
				live.Devices = append(live.Devices, intent.Join(d, lifted))
			}
			a, b := run(t, want, "incast:6,bytes=500KB", Options{}, 5), run(t, live, "incast:6,bytes=500KB", Options{}, 5)
			if a.Hash != b.Hash {
				t.Errorf("wanted %s, held %s\n%s\n---\n%s", a.Hash, b.Hash, strings.Join(a.Assumed, "\n"), strings.Join(b.Assumed, "\n"))
			}
		})
	}
}

// TestLosslessProperty: what lint accepts loses nothing in a lossless class under incast, whatever marks, and does when headroom is cut
// below what physics needs.
func TestLosslessProperty(t *testing.T) {
	for _, name := range []string{"small", "storage-and-training", "three-tier", "mixed"} {
		n := example(t, name)
		load, o := "incast", Options{NoMarks: true, Duration: 2 * units.Millisecond}
		if r := run(t, n, load, o, 1); r.Totals.Lossless > 0 || r.Totals.Drops > 0 {
			t.Errorf("%s: %s", name, strings.Join(r.Why, "\n"))
		}
		cut := edit(n, switches, func(p *intent.Policy) {
			for i := range p.Queues {
				if p.Queues[i].Lossless {
					p.Queues[i].Buffer = intent.Buffer{On: true, Alpha: units.Ratio{Num: 1, Den: 8}, Headroom: 8 * units.KB, XonOffset: 20 * units.KB}
				}
			}
			p.Known |= intent.AreaSet(intent.AreaBuffer)
		})
		if r := run(t, cut, load, o, 1); r.Totals.Lossless == 0 {
			t.Errorf("%s: nothing is lost with a headroom of 8KB\n%s", name, strings.Join(r.Why, "\n"))
		}
	}
}
