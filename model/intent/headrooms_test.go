package intent

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fabricctl/fabricctl/model/derive"
	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/profiles"
)

func platform(t *testing.T, name string) profiles.Platform {
	t.Helper()
	c, err := profiles.Default()
	if err != nil {
		t.Fatal(err)
	}
	p, ok := c.Platform(name)
	if !ok {
		t.Fatalf("no platform %s", name)
	}
	return p
}

// choices writes what there is to choose from, a line each; * is what auto takes.
func choices(cs []Choice) string {
	var b strings.Builder
	for _, c := range cs {
		mark := " "
		if c.Auto {
			mark = "*"
		}
		fmt.Fprintf(&b, "%s %s %d: %s\n", mark, c.Model, c.Bytes, c.Note)
	}
	return b.String()
}

func TestHeadrooms(t *testing.T) {
	for _, c := range []struct {
		name     string
		platform string
		speed    units.BitRate
		cable    units.Length
		mtu      units.Bytes
		want     string
	}{
		{"the table's own row", "sonic/sn5600", 400 * units.Gbps, 40 * units.Metre, 9216, `
* table 283648: 
  sonic_mlnx 283776: 
  std_max 154560: the interface delay at 400Gbps is derived from the response, not published
  physics_min 38592: with less, loss under the worst timing is certain
`},
		{"the next longer cable", "sonic/sn5600", 400 * units.Gbps, 60 * units.Metre, 9216, `
* table 677888: the table has no row for 60m: that of 300m, the next longer cable
  sonic_mlnx 314496: 
  std_max 164544: the interface delay at 400Gbps is derived from the response, not published
  physics_min 48576: with less, loss under the worst timing is certain
`},
		{"beyond the table", "sonic/sn5600", 800 * units.Gbps, 500 * units.Metre, 9216, `
* sonic_mlnx 1756224: the platform's table has no row for 800Gbps beyond 300m
  std_max 750336: no response time is published at 800Gbps: the time of the speeds beside it is kept, 1810 quanta
  physics_min 518592: with less, loss under the worst timing is certain
`},
		{"no table and no formula", "eos/7060x6", 800 * units.Gbps, 40 * units.Metre, 9216, `
* std_max 290322: no response time is published at 800Gbps: the time of the speeds beside it is kept, 1810 quanta
  physics_min 58674: with less, loss under the worst timing is certain
`},
		{"no cable", "sonic/sn5600", 400 * units.Gbps, 0, 9216, "\n"},
	} {
		got := "\n" + choices(Headrooms(Ingress{Platform: platform(t, c.platform), Speed: c.speed, Cable: c.cable, MTU: c.mtu, Lanes: 4}))
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// TestHeadroomBelowPhysics: some published rows are below what a frame of 9216 bytes needs, and are not taken then.
func TestHeadroomBelowPhysics(t *testing.T) {
	in := Ingress{Platform: platform(t, "sonic/sn5600"), Speed: 100 * units.Gbps, Cable: 5 * units.Metre, MTU: 9216}
	in.Platform.Headroom = []profiles.HeadroomRow{{Speed: in.Speed, Cable: in.Cable, Size: 36864, Xon: 18432, Xoff: 18432}}
	low, ok := AutoHeadroom(in)
	if !ok || low.Model != derive.ModelSonicMlnx {
		t.Errorf("with frames of 9216: %+v", low)
	}
	if n := Headrooms(in)[0].Note; !strings.Contains(n, "not taken: physics needs 19181B") {
		t.Errorf("the row's note is %q", n)
	}
	in.MTU = 1500
	if c, _ := AutoHeadroom(in); c.Model != derive.ModelTable || c.Bytes != 18432 {
		t.Errorf("with frames of 1500: %+v", c)
	}
}

// TestHeadroomOfOthers: formulas of a NIC's driver and of one vendor are listed, and auto takes neither.
func TestHeadroomOfOthers(t *testing.T) {
	c, err := profiles.Default()
	if err != nil {
		t.Fatal(err)
	}
	nic, _ := c.NIC("connectx-7")
	in := Ingress{NIC: nic, Speed: 400 * units.Gbps, Cable: 5 * units.Metre, MTU: 9216}
	if got := choices(Headrooms(in)); !strings.Contains(got, "  mlx5_nic 149467: ") {
		t.Errorf("a ConnectX-7: %s", got)
	}
	in = Ingress{Platform: profiles.Platform{Name: "nxos/x"}, Speed: 10 * units.Gbps, Cable: 100 * units.Metre, MTU: 9216}
	if got := choices(Headrooms(in)); !strings.Contains(got, "  cisco_10g 24834: ") {
		t.Errorf("10 Gbps of Cisco: %s", got)
	}
}

// TestEveryRow: where a platform has a row of its own for speed and cable, auto takes it as it is, or says why not.
func TestEveryRow(t *testing.T) {
	c, err := profiles.Default()
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for _, name := range c.Names() {
		p := platform(t, name)
		for _, r := range p.Headroom {
			rows++
			in := Ingress{Platform: p, Speed: r.Speed, Cable: r.Cable, MTU: 9216}
			floor := derive.PhysicsMin(derive.Link{Speed: r.Speed, Cable: r.Cable, Frame: 9216}).Xoff
			got, ok := AutoHeadroom(in)
			if table := r.Xoff >= floor; !ok || got.Bytes < floor || table != (got.Model == derive.ModelTable) || table && (got.Bytes != r.Xoff || got.Row != r || got.Note != "") {
				t.Errorf("%s %s %s: %+v", name, r.Speed, r.Cable, got)
			}
		}
	}
	if rows < 200 {
		t.Errorf("%d rows", rows)
	}
}
