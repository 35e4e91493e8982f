package intent

import (
	"testing"

	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/profiles"
)

// TestEffective: thresholds in steps, headroom in cells, what the device fills in by itself, and nothing changed of what
// was asked for.
func TestEffective(t *testing.T) {
	row := profiles.HeadroomRow{Speed: 400 * units.Gbps, Cable: 5 * units.Metre, Size: 300, Xon: 20, Xoff: 200, Alpha: units.Ratio{Num: 1, Den: 2}}
	d := &Device{Profile: profiles.Platform{Cell: 100, Chip: profiles.ASIC{ECNStep: 6144}, Headroom: []profiles.HeadroomRow{row}}}
	p := &Port{Speed: 400 * units.Gbps}
	asked := Policy{Known: SwitchAreas | AreaSet(AreaBuffer), Cable: 5 * units.Metre}
	asked.Queues[3].ECN = ECN{On: true, Kmin: 10_000, Kmax: 20_000}
	asked.Queues[3].Buffer = Buffer{On: true, Alpha: units.Ratio{Num: 1, Den: 4}, Headroom: 150}
	asked.Queues[4].Buffer = Buffer{On: true, Device: true}
	p.Policy = d.Intern(asked)

	got := Effective(d, p)
	if e := got.Queues[3].ECN; e.Kmin != 6144 || e.Kmax != 18432 {
		t.Errorf("kmin %d and kmax %d, want multiples of 6144 below 10000 and 20000", e.Kmin, e.Kmax)
	}
	if b := got.Queues[3].Buffer; b.Headroom != 200 || b.Alpha != asked.Queues[3].Buffer.Alpha {
		t.Errorf("buffer of whole cells: %+v", b)
	}
	if b := got.Queues[4].Buffer; b.Device || b.Headroom != row.Xoff || b.Alpha != row.Alpha || b.Xon != row.Xon {
		t.Errorf("buffer that the device fills in: %+v", b)
	}
	if got.Queues[0] != asked.Queues[0] || *d.PolicyOf(p) != asked {
		t.Error("more changed than is known to")
	}
}
