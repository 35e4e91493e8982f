package lint

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/units"
)

var headroomAlphaSame = Rule{
	ID:       "headroom-alpha-same",
	Title:    "like ports of like devices pause alike",
	Severity: diag.Warning,
	Areas:    intent.AreaSet(intent.AreaBuffer),
	Run:      runHeadroomAlphaSame,
}

// pausing is what is expected to be the same on like ports. Headroom depends on the platform and the cable too, and is
// zero where ports of different ones are compared.
type pausing struct {
	alpha    units.Ratio
	static   units.Bytes
	headroom units.Bytes
}

// pausePorts are ports that are expected to pause alike: all of a role at a speed have one threshold, and those of one
// platform and cable one headroom.
type pausePorts struct {
	likePorts
	platform string
	cable    units.Length
}

// compared is one comparison of a port: what it has, and with which ports it is to have the same.
type compared struct {
	with pausePorts
	is   pausing
}

func comparisons(in ingress) [2]compared {
	like, b := alike(&in.Place, in.prio), in.buffer
	return [2]compared{
		{pausePorts{likePorts: like}, pausing{alpha: b.Alpha, static: b.Static}},
		{pausePorts{like, in.Device.Platform, cmp.Or(in.Port.Cable, in.Policy.Cable)}, pausing{headroom: b.Headroom}},
	}
}

// oddPause is a port that pauses otherwise than most like it.
type oddPause struct {
	role       string
	prio       int
	is, common pausing
	line       diag.Pos
	active     bool
}

func runHeadroomAlphaSame(p *Pass) {
	votes := map[pausePorts]*causes[pausing]{}
	for in := range p.ingresses {
		if !in.sure || !in.Active || !in.buffer.On || in.buffer.Headroom == 0 {
			continue
		}
		for _, c := range comparisons(in) {
			if c.is == (pausing{}) {
				continue // a switch holds none that can be read: that is said where it is read
			}
			if votes[c.with] == nil {
				votes[c.with] = &causes[pausing]{}
			}
			votes[c.with].add(c.is, in.Place)
		}
	}
	var bad causes[oddPause]
	kinds := map[oddPause]map[pausePorts]bool{} // of ports that are in one finding
	for in := range p.ingresses {
		if !in.sure || !in.buffer.On || in.buffer.Headroom == 0 {
			continue
		}
		for _, c := range comparisons(in) {
			common, w, _ := most(votes[c.with])
			if w == nil || c.is == common || c.is == (pausing{}) {
				continue
			}
			odd := oddPause{in.Device.Role, in.prio, c.is, common, in.place(c.is.key()), in.Active}
			bad.add(odd, in.Place)
			if kinds[odd] == nil {
				kinds[odd] = map[pausePorts]bool{}
			}
			kinds[odd][c.with] = true
		}
	}
	for k, w := range bad.all {
		reportOddPause(p, k, w, votes, kinds[k])
	}
}

func reportOddPause(p *Pass, k oddPause, w *where, votes map[pausePorts]*causes[pausing], kinds map[pausePorts]bool) {
	var ports, total int
	for kind := range kinds {
		_, have, all := most(votes[kind])
		ports, total = ports+have.ports, total+all
	}
	in, key := ingressAt(w.first, k.prio), k.is.key()
	f := diag.Finding{
		Pos:  k.line,
		Msg:  fmt.Sprintf("%s of %s on %s, but %s on %d of %d such ports", k.is, in.class(), w, k.common, ports, total),
		Hint: fmt.Sprintf("set %s, or acknowledge %s with the reason", strings.Replace(k.common.String(), " ", " to ", 1), p.rule.ID),
	}
	for _, c := range comparisons(in) {
		if _, other, _ := most(votes[c.with]); c.is == k.is && other != nil {
			f.Related = append(f.Related, setHere("the others' "+key, other.first.Origin(perQueue(key+".", k.prio, ""))))
		}
	}
	p.report(w, f)
}

// most is what most ports have, the first seen of equally many; nil when there are none.
func most(v *causes[pausing]) (common pausing, w *where, total int) {
	if v == nil {
		return pausing{}, nil, 0
	}
	for k, x := range v.all {
		total += x.ports
		if w == nil || x.ports > w.ports {
			common, w = k, x
		}
	}
	return common, w, total
}

// key is which value of a buffer v is about.
func (v pausing) key() string {
	if v.headroom > 0 {
		return "headroom"
	}
	return "xoff"
}

// String is the value with its name: "alpha 1/8", "xoff 200KB", "headroom 196KB".
func (v pausing) String() string {
	switch {
	case v.headroom > 0:
		return "headroom " + v.headroom.String()
	case v.static > 0:
		return "xoff " + v.static.String()
	}
	return "alpha " + v.alpha.String()
}
