package intent

import (
	"fmt"
	"math"
	"testing"

	"github.com/fabricctl/fabricctl/model/units"
)

// switchOf is a switch of a platform with so many equal ports, two of whose priorities have buffer b.
func switchOf(t *testing.T, name string, ports int, speed units.BitRate, cable units.Length, b Buffer) Device {
	t.Helper()
	d := Device{Name: "leaf1", Platform: name, Profile: platform(t, name)}
	pools := d.Profile.Pools(false)
	d.Pools = Pools{Shared: pools.Lossless, Headroom: pools.Headroom, Egress: pools.Egress}
	pol := Policy{Known: AreasOf("sonic"), Cable: cable}
	for _, prio := range []int{3, 4} {
		pol.Queues[prio] = Queue{Lossless: true, Buffer: b}
	}
	for i := range ports {
		d.Ports = append(d.Ports, Port{Name: fmt.Sprintf("p%d", i+1), Role: "fabric", Speed: speed, Cable: cable, Policy: d.Intern(pol)})
	}
	return d
}

func TestBudget(t *testing.T) {
	own := Buffer{On: true, Device: true}
	g := BudgetOf(ptr(switchOf(t, "sonic/sn5600", 64, 400*units.Gbps, 40*units.Metre, own)))
	// 64 ports, two groups each, by the table: 283648 of 303104, both rounded up to cells of 192.
	const headroom, size = 283776, 303168
	if g.Groups != 128 || !g.Dedicated || g.Headroom != 128*headroom || g.Reserved != 128*(size-headroom) || g.Promised != 52161690+128*size {
		t.Errorf("sn5600: %+v", g)
	}
	// A cable of which the table has no row: SONiC makes no lossless group.
	g = BudgetOf(ptr(switchOf(t, "sonic/sn5600", 2, 400*units.Gbps, 60*units.Metre, own)))
	if g.Groups != 4 || g.Empty != 4 || g.Headroom != 0 {
		t.Errorf("60m on sn5600: %+v", g)
	}
	// Headroom that ports share.
	d := switchOf(t, "sonic/sn5600", 4, 400*units.Gbps, 40*units.Metre, Buffer{On: true, Headroom: 96 * units.KB, Reserved: 1920})
	d.Pools.Headroom = 400 * units.KB
	g = BudgetOf(&d)
	if g.Dedicated || g.Headroom != 8*96*units.KB || g.Ratio != 1.92 || g.Reserved != 8*1920 || g.Promised != 52161690+400_000+8*1920 {
		t.Errorf("shared: %+v", g)
	}
	// Where the table is not known, nothing is made up.
	d.Profile.Headroom = nil
	d.Policies[0].Queues[3].Buffer = own
	if g = BudgetOf(&d); g.Unknown != 4 || g.Groups != 8 || g.Headroom != 4*96*units.KB {
		t.Errorf("unknown: %+v", g)
	}
	// Sums of what nobody writes do not wrap around.
	d = switchOf(t, "sonic/sn5600", 4, 400*units.Gbps, 40*units.Metre, Buffer{On: true, Headroom: math.MaxInt64, Reserved: math.MaxInt64})
	if g = BudgetOf(&d); g.Headroom != math.MaxInt64 || g.Promised != math.MaxInt64 {
		t.Errorf("huge: %+v", g)
	}
}

// TestBudgetGrows: an unused port changes nothing, and one more port in use never lowers a sum.
func TestBudgetGrows(t *testing.T) {
	d := switchOf(t, "sonic/sn5600", 8, 400*units.Gbps, 40*units.Metre, Buffer{On: true, Device: true})
	all := BudgetOf(&d)
	d.Ports[7].Role = "unused"
	fewer := BudgetOf(&d)
	if fewer.Headroom*8 != all.Headroom*7 || fewer.Groups != 14 {
		t.Errorf("8 ports %+v, 7 and an unused one %+v", all, fewer)
	}
	d.Ports = d.Ports[:7]
	if got := BudgetOf(&d); got != fewer {
		t.Errorf("without the unused port %+v, with it %+v", got, fewer)
	}
}

func TestPausePoints(t *testing.T) {
	// Alpha 1 in 12 MB: 6 MB for one group, 706 KB for 16 (Choudhury and Hahne).
	got := PausePoints(Buffer{On: true, Alpha: units.Ratio{Num: 1, Den: 1}}, Pools{Shared: 12 * units.MB})
	want := []PauseAt{{1, 6_000_000, 6_000_000, 6_000_000}, {4, 2_400_000, 9_600_000, 2_400_000}, {16, 705_882, 11_294_117, 705_882}}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", got, want)
	}
	if at, ok := PausePoint(Buffer{On: true, Static: 100 * units.KB}, Pools{Shared: units.MB}, 4); !ok || at != (PauseAt{Groups: 4, Each: 100_000, Sum: 400_000, Left: 600_000}) {
		t.Errorf("static: %+v", at)
	}
	if at, ok := PausePoint(Buffer{On: true, Static: math.MaxInt64}, Pools{}, 16); !ok || at.Sum != math.MaxInt64 || at.Left != 0 {
		t.Errorf("a static threshold nobody writes: %+v", at)
	}
	if got := PausePoints(Buffer{On: true, Alpha: units.Ratio{Num: 1, Den: 1}}, Pools{}); got != nil {
		t.Errorf("without a pool: %v", got)
	}
}

func ptr[T any](v T) *T { return &v }
