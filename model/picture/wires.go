package picture

import (
	"cmp"
	"slices"
	"strings"

	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/units"
)

// Lossless is a priority that a link carries without loss.
type Lossless struct {
	Priority int    `json:"priority"`
	Class    string `json:"class,omitempty"`
	OnlyAt   string `json:"only_at,omitempty"` // the one device that protects it, where the other end does not
}

// losslessOf is what a link carries without loss. An end that says nothing about PFC leaves it to the other.
func losslessOf(d *intent.Device, p *intent.Port, peer *intent.Device, q *intent.Port) []Lossless {
	type end struct {
		d      *intent.Device
		policy *intent.Policy
	}
	var ends []end
	for _, x := range []struct {
		d *intent.Device
		p *intent.Port
	}{{d, p}, {peer, q}} {
		if x.p != nil && int(x.p.Policy) < len(x.d.Policies) && x.d.PolicyOf(x.p).Known.Has(intent.AreaPFC) {
			ends = append(ends, end{x.d, x.d.PolicyOf(x.p)})
		}
	}
	var ls []Lossless
	for i := range 8 {
		var at []*intent.Device
		for _, e := range ends {
			if e.policy.Queues[i].Lossless {
				at = append(at, e.d)
			}
		}
		if len(at) == 0 {
			continue
		}
		l := Lossless{Priority: i, Class: at[0].Classes[i]}
		if len(at) < len(ends) {
			l.OnlyAt = at[0].Name
		}
		ls = append(ls, l)
	}
	return ls
}

// strand is what links look like: those that share one are drawn the same, and told about once.
type strand struct {
	lower, upper string // roles of the devices
	low, high    int    // tiers of the devices
	role         string // of the upper port
	speed        units.BitRate
	parallel     int // links between the two devices
	breakout     int
	bond, rail   bool
	lossless     string // in words
	state        intent.State
}

// wire is the links of one strand between two devices.
type wire struct {
	low, high int // places of the devices in the Net
	strand
	links []Link
}

// wiresOf groups the links of g by the devices that they join and by what they look like.
func (g Graph) wiresOf(at map[string]int, states []intent.State) []wire {
	type key struct {
		low, high int
		strand
	}
	index := map[key]int{}
	var ws []wire
	for _, l := range g.Links {
		s := strand{
			lower: l.A.role, upper: l.B.role, low: l.A.tier, high: l.B.tier, role: l.Role, speed: l.Speed, breakout: l.Breakout,
			bond: l.Bond != "", rail: l.Rail > 0, lossless: losslessText(l.Lossless, l.A.Device),
			state: worse(states[at[l.A.Device]], states[at[l.B.Device]]),
		}
		k := key{at[l.A.Device], at[l.B.Device], s}
		i, ok := index[k]
		if !ok {
			i = len(ws)
			index[k] = i
			ws = append(ws, wire{low: k.low, high: k.high, strand: s})
		}
		ws[i].links = append(ws[i].links, l)
	}
	for i := range ws {
		ws[i].parallel = len(ws[i].links)
	}
	return ws
}

// worse is the state that a link has by its ends.
func worse(a, b intent.State) intent.State {
	if a == intent.Planned || b == intent.Planned {
		return intent.Planned
	}
	return cmp.Or(a, b)
}

// losslessText is "lossless 3 training, 4 storage", and says at which end alone where the ends differ.
func losslessText(ls []Lossless, lower string) string {
	if len(ls) == 0 {
		return ""
	}
	words := make([]string, len(ls))
	for i, l := range ls {
		words[i] = strings.TrimSpace(itoa(l.Priority) + " " + l.Class)
		switch l.OnlyAt {
		case "":
		case lower:
			words[i] += " (lower end only)"
		default:
			words[i] += " (upper end only)"
		}
	}
	return "lossless " + strings.Join(words, ", ")
}

// compare orders strands as the margin tells about them.
func (s strand) compare(t strand) int {
	return cmp.Or(
		t.high-s.high, t.low-s.low, strings.Compare(s.lower, t.lower), strings.Compare(s.upper, t.upper), strings.Compare(s.role, t.role),
		cmp.Compare(t.speed, s.speed), t.parallel-s.parallel, s.breakout-t.breakout, strings.Compare(s.lossless, t.lossless),
		int(s.state)-int(t.state), bit(s.bond)-bit(t.bond), bit(s.rail)-bit(t.rail),
	)
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// strands are the different ones of ws, in order.
func strands(ws []wire) []strand {
	seen := map[strand]bool{}
	var ss []strand
	for _, w := range ws {
		if !seen[w.strand] {
			seen[w.strand] = true
			ss = append(ss, w.strand)
		}
	}
	slices.SortFunc(ss, strand.compare)
	return ss
}
