package lint

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
)

var dscpTotal = Rule{
	ID:       "dscp-total",
	Title:    "all 64 code points are mapped, and on all devices alike",
	Severity: diag.Error,
	Areas:    intent.AreaSet(intent.AreaMaps),
	Run:      runDSCPTotal,
}

// mapping is one DSCP map.
type mapping struct {
	to     [64]uint8
	active bool
}

func runDSCPTotal(p *Pass) {
	var maps causes[mapping]
	for _, pl := range p.Places {
		if !pl.Device.Host && pl.Knows(intent.AreaMaps) { // of hosts, the classes that matter are host-mapping's
			maps.add(mapping{pl.Policy.DSCP, pl.Active}, pl)
		}
	}
	common, devices := commonMap(&maps)
	for m, w := range maps.all {
		if gaps := codePoints(func(d int) bool { return m.to[d] == intent.Unmapped }); len(gaps) > 0 {
			reportGaps(p, gaps, w, common)
		}
		if common == nil || m.to == *common {
			continue
		}
		differ := codePoints(func(d int) bool {
			return m.to[d] != common[d] && m.to[d] != intent.Unmapped && common[d] != intent.Unmapped
		})
		if len(differ) > 0 {
			reportOddMap(p, m, differ, w, common, devices)
		}
	}
}

// commonMap is the map that most devices have, and how many of them; of equally many the one that maps more code
// points, then the first. It is nil when no active device has any.
func commonMap(maps *causes[mapping]) (common *[64]uint8, devices int) {
	mapped := func(m *[64]uint8) int {
		return len(codePoints(func(d int) bool { return m[d] != intent.Unmapped }))
	}
	for m, w := range maps.all {
		if !m.active {
			continue
		}
		n := len(w.devices)
		if common == nil || n > devices || n == devices && mapped(&m.to) > mapped(common) {
			common, devices = &m.to, n
		}
	}
	return common, devices
}

func codePoints(is func(int) bool) (ds []int) {
	for d := range 64 {
		if is(d) {
			ds = append(ds, d)
		}
	}
	return ds
}

func dscpField(d int) intent.Field { return intent.Field("dscp." + strconv.Itoa(d)) }

// reportGaps says which code points have no class, and where they belong: where the other devices send them, else to
// the rest class of the model, else to any lossy class.
func reportGaps(p *Pass, gaps []int, w *where, common *[64]uint8) {
	to := "a lossy class"
	if rest, ok := restClass(p); ok {
		to = fmt.Sprintf("priority %d, the rest class %s", rest.Priority.V, rest.Name)
	}
	if common != nil && !slices.ContainsFunc(gaps, func(d int) bool { return common[d] == intent.Unmapped }) {
		to = targets(common, gaps) + " as on the other devices"
	}
	p.report(w, diag.Finding{
		Pos:  w.first.Origin(dscpField(gaps[0])).At(),
		Msg:  fmt.Sprintf("dscp %s on %s: no class for %d of 64 code points", intent.Ranges(gaps), w, len(gaps)),
		Hint: fmt.Sprintf("map dscp %s on %s to %s", intent.Ranges(gaps), w, to),
	})
}

// restClass is the model's class for the code points that no other class names.
func restClass(p *Pass) (c model.Class, ok bool) {
	if p.Fabric == nil {
		return c, false
	}
	i := slices.IndexFunc(p.Fabric.Classes, func(c model.Class) bool { return c.Rest.V })
	if i < 0 {
		return c, false
	}
	return p.Fabric.Classes[i], true
}

func reportOddMap(p *Pass, m mapping, differ []int, w *where, common *[64]uint8, devices int) {
	p.report(w, diag.Finding{
		Pos: w.first.Origin(dscpField(differ[0])).At(),
		Msg: fmt.Sprintf("dscp %s: to %s on %s, but to %s on %s", intent.Ranges(differ), targets(&m.to, differ), w,
			targets(common, differ), diag.Plural(devices, "device", "devices")),
		Hint: fmt.Sprintf("map dscp %s on %s as the others do: to %s", intent.Ranges(differ), w, targets(common, differ)),
	})
}

// targets says where m sends ds: "priority 3", or "priority 3 (26), priority 0 (27-31)" when to several.
func targets(m *[64]uint8, ds []int) string {
	by := map[uint8][]int{}
	var order []uint8
	for _, d := range ds {
		if by[m[d]] == nil {
			order = append(order, m[d])
		}
		by[m[d]] = append(by[m[d]], d)
	}
	s := ""
	for i, tc := range order {
		if i > 0 {
			s += ", "
		}
		if tc == intent.Unmapped {
			s += "no priority"
		} else {
			s += "priority " + strconv.Itoa(int(tc))
		}
		if len(order) > 1 {
			s += " (" + intent.Ranges(by[tc]) + ")"
		}
	}
	return s
}
