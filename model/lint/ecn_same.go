package lint

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/units"
)

var ecnSame = Rule{
	ID:       "ecn-same",
	Title:    "like ports of like devices mark alike",
	Severity: diag.Warning,
	Areas:    intent.AreaSet(intent.AreaECN),
	Run:      runECNSame,
}

// likePorts are ports that are expected to mark alike: of devices of one role, in one role, at one speed.
type likePorts struct {
	deviceRole, portRole string
	speed                units.BitRate
	prio                 int
}

func alike(pl *Place, prio int) likePorts {
	return likePorts{pl.Device.Role, pl.Port.Role, pl.Port.Speed, prio}
}

// commonRamp is the sound ramp that most active ports of a kind have; of equally many the one that more ports of other
// kinds have too, and then the one that is seen first.
type commonRamp struct {
	ecn          intent.ECN
	first        Place // a port that has it
	ports, total int   // active ports that have it, and that have any sound one
}

// commonRamps finds the common ramp of each kind of ports.
func commonRamps(p *Pass) map[likePorts]commonRamp {
	type anywhere struct {
		prio int
		ecn  intent.ECN
	}
	votes, all := map[likePorts]*causes[intent.ECN]{}, map[anywhere]int{}
	for i := range p.Places {
		pl := &p.Places[i]
		if pl.Device.Host || !pl.Active || !pl.Knows(intent.AreaECN) {
			continue
		}
		for prio, q := range pl.Policy.Queues {
			if !q.ECN.On || !soundRamp(q.ECN) {
				continue
			}
			k := alike(pl, prio)
			if votes[k] == nil {
				votes[k] = &causes[intent.ECN]{}
			}
			votes[k].add(q.ECN, *pl)
			all[anywhere{prio, q.ECN}] += pl.Ports
		}
	}
	common := make(map[likePorts]commonRamp, len(votes))
	for k, v := range votes {
		var c commonRamp
		for e, w := range v.all {
			c.total += w.ports
			if w.ports > c.ports || w.ports == c.ports && all[anywhere{k.prio, e}] > all[anywhere{k.prio, c.ecn}] {
				c.ecn, c.first, c.ports = e, w.first, w.ports
			}
		}
		common[k] = c
	}
	return common
}

// soundRamp reports whether e is one that ecn-order has nothing to say about.
func soundRamp(e intent.ECN) bool {
	return e.Kmin > 0 && e.Kmax >= e.Kmin && e.Pmax > 0 && e.Pmax <= wholePercent
}

// oddRamp is a ramp from one set of lines that is not the common one.
type oddRamp struct {
	role             string
	prio             int
	ecn, common      intent.ECN
	kmin, kmax, pmax diag.Pos
	active           bool
}

func runECNSame(p *Pass) {
	common := commonRamps(p)
	var bad causes[oddRamp]
	counted := map[oddRamp]map[likePorts]bool{} // the kinds of ports that are in one finding
	for _, pl := range p.Places {
		if pl.Device.Host || !pl.Knows(intent.AreaECN) {
			continue
		}
		for i, q := range pl.Policy.Queues {
			k := alike(&pl, i)
			c, voted := common[k]
			if !q.ECN.On || !soundRamp(q.ECN) || !voted || q.ECN == c.ecn { // what does not mark, or cannot, has rules of its own
				continue
			}
			at := func(suffix string) diag.Pos { return pl.Origin(perQueue("ecn.", i, suffix)).At() }
			odd := oddRamp{pl.Device.Role, i, q.ECN, c.ecn, at(".kmin"), at(".kmax"), at(".pmax"), pl.Active}
			bad.add(odd, pl)
			if counted[odd] == nil {
				counted[odd] = map[likePorts]bool{}
			}
			counted[odd][k] = true
		}
	}
	for odd, w := range bad.all {
		var sum commonRamp
		for k := range counted[odd] {
			sum.ports += common[k].ports
			sum.total += common[k].total
		}
		reportOddRamp(p, odd, sum, common[alike(&w.first, odd.prio)].first, w)
	}
}

func reportOddRamp(p *Pass, odd oddRamp, sum commonRamp, other Place, w *where) {
	var is, want []string
	f := diag.Finding{Related: []diag.Related{setHere("the others' ecn", other.Origin(perQueue("ecn.", odd.prio, ".kmin")))}}
	for _, x := range rampDifferences(odd.ecn, odd.common) {
		o := w.first.Origin(perQueue("ecn.", odd.prio, "."+x.key))
		f.Pos = cmp.Or(f.Pos, o.At())
		f.Related = append(f.Related, setHere(x.key, o))
		is, want = append(is, x.key+" "+x.is), append(want, x.want)
	}
	f.Msg = fmt.Sprintf("%s of %s on %s, but %s on %d of %d such ports", strings.Join(is, ", "), class(w.first.Device, odd.prio), w,
		strings.Join(want, ", "), sum.ports, sum.total)
	f.Hint = fmt.Sprintf("%s, or acknowledge %s with the reason", setRamp(odd.ecn, odd.common), p.rule.ID)
	p.report(w, f)
}

// rampValue is one value of a ramp that differs from another one's.
type rampValue struct{ key, is, want string }

func rampDifferences(is, want intent.ECN) (vs []rampValue) {
	for _, x := range []rampValue{
		{"kmin", is.Kmin.String(), want.Kmin.String()},
		{"kmax", is.Kmax.String(), want.Kmax.String()},
		{"pmax", is.Pmax.String(), want.Pmax.String()},
	} {
		if x.is != x.want {
			vs = append(vs, x)
		}
	}
	return vs
}

// setRamp is what to do to make is what it should be: "set kmin to 800KB and kmax to 3.2MB".
func setRamp(is, want intent.ECN) string {
	var set []string
	for _, x := range rampDifferences(is, want) {
		set = append(set, x.key+" to "+x.want)
	}
	return "set " + strings.Join(set, " and ")
}
