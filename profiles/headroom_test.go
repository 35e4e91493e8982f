package profiles

import (
	"testing"

	"github.com/fabricctl/fabricctl/model/units"
)

func TestHeadroomAt(t *testing.T) {
	c, err := Default()
	if err != nil {
		t.Fatal(err)
	}
	p, _ := c.Platform("sonic/sn5600")
	for _, x := range []struct {
		speed     units.BitRate
		cable     units.Length
		xoff      units.Bytes
		exact, ok bool
	}{
		{400 * units.Gbps, 5 * units.Metre, 231_424, true, true},
		{400 * units.Gbps, 6 * units.Metre, 283_648, false, true}, // the next longer cable
		{400 * units.Gbps, 40 * units.Metre, 283_648, true, true},
		{400 * units.Gbps, 301 * units.Metre, 0, false, false}, // longer than the table's longest
		{400 * units.Gbps, 0, 231_424, false, true},
		{150 * units.Gbps, 5 * units.Metre, 0, false, false},
	} {
		row, exact, ok := p.HeadroomAt(x.speed, x.cable)
		if row.Xoff != x.xoff || exact != x.exact || ok != x.ok {
			t.Errorf("%s over %s: %s %v %v, want %+v", x.speed, x.cable, row, exact, ok, x)
		}
	}
	if !(HeadroomRow{Size: 49_152, Xoff: 29_696}).Dedicated() || (HeadroomRow{Size: 1248, Xoff: 96_928}).Dedicated() {
		t.Error("headroom is a group's own where its size holds it")
	}
	if got := p.Cables(400 * units.Gbps); len(got) != 3 || got[0] != 5*units.Metre || got[2] != 300*units.Metre {
		t.Errorf("cables %v", got)
	}
	if a, b := p.Pools(true), p.Pools(false); a.Lossless != 67_737_959 || b.Lossless != 52_161_690 {
		t.Errorf("pools with hosts %+v, without %+v", a, b)
	}
	if p, _ = c.Platform("sonic/nh-5010"); p.Pools(true) != p.Pools(false) || p.Pools(true).Lossless == 0 {
		t.Errorf("one role is published, so both have its pools: %+v", p.Pools(true))
	}
}

// FuzzHeadroomRow: what is read is written as it is read again, and nothing panics.
func FuzzHeadroomRow(f *testing.F) {
	for _, s := range []string{
		"100Gbps 40m 1248B 2288B 177632B 1/8 2288B", "10Gbps 5m 49152B 19456B 29696B 1 -", "400Gbps 5m 0B 0B 612140B 9.4KB -", "a b c d e f g", "1bps 1mm 0B 0B 0B 1/0 -",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r, err := ParseHeadroomRow(s)
		if err != nil {
			return
		}
		again, err := ParseHeadroomRow(r.String())
		if err != nil || again != r {
			t.Errorf("%q reads as %+v, which is written %q and reads as %+v (%v)", s, r, r.String(), again, err)
		}
	})
}

// FuzzExact: an exact size is a fraction in lowest terms above zero.
func FuzzExact(f *testing.F) {
	for _, s := range []string{"0.8KiB", "3.8KiB", "12B", "0.001B", "1000000KiB", "-1B", "01B", "1.B", ".5B", "0B", "KiB"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r, err := ParseExact(s)
		if err != nil {
			return
		}
		a, b := r.Num, r.Den
		for b != 0 {
			a, b = b, a%b
		}
		if r.Num <= 0 || r.Den <= 0 || r.Den > 1000 || a != 1 {
			t.Errorf("%q is %s", s, r)
		}
	})
}
