package lint

import (
	"fmt"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/units"
)

var mtuPath = Rule{
	ID:       "mtu-path",
	Title:    "hosts have one MTU, switches have one, and a host's frame fits through every switch",
	Severity: diag.Error,
	Areas:    intent.AreaSet(intent.AreaMTU),
	Run:      runMTUPath,
}

// frameOverhead is what a switch counts on top of a host's netdev MTU: 14 for the Ethernet header and 4 for each of two
// VLAN tags.
const frameOverhead units.Bytes = 22

// sized is one MTU from one line.
type sized struct {
	mtu    units.Bytes
	line   diag.Pos
	active bool
}

func runMTUPath(p *Pass) {
	hosts, switches := mtuVote(p, true), mtuVote(p, false)
	hosts.reportOdd(p, "host", "mtu.host")
	switches.reportOdd(p, "switch", "mtu.fabric")
	h, s := hosts.winner(), switches.winner()
	if h == nil || s == nil || s.mtu >= h.mtu+frameOverhead {
		return
	}
	host, sw := hosts.at[*h], switches.at[*s]
	need := h.mtu + frameOverhead
	hint := fmt.Sprintf("raise mtu.fabric to at least %v", need)
	if s.mtu-frameOverhead >= host.first.Device.RoCE+roceOverhead { // else mtu-roce would have something to say
		hint += fmt.Sprintf(", or lower mtu.host to at most %v", s.mtu-frameOverhead)
	}
	if limit := sw.first.Device.Profile.MaxMTU; limit > 0 && limit < need {
		hint = fmt.Sprintf("lower mtu.host to at most %v (%s has no more than %v)", s.mtu-frameOverhead, sw.first.Device.Platform, limit)
	}
	p.report(sw, diag.Finding{
		Pos: s.line, Related: []diag.Related{setHere("switch mtu", sw.first.Origin("mtu")), setHere("host mtu", host.first.Origin("mtu"))},
		Msg: fmt.Sprintf("switch mtu %v on %s is below the %v that the hosts' mtu %v needs (%v more for headers)",
			s.mtu, sw, need, h.mtu, frameOverhead),
		Hint: hint,
	})
}

// vote finds the value that most have.
type vote struct {
	causes[sized]
	votes map[units.Bytes]int // ports by MTU, active ones only
	total int
}

// mtuVote counts the ports that take part in the fabric: those with a peer in the Net, on hosts or on switches.
func mtuVote(p *Pass, host bool) *vote {
	v := &vote{votes: map[units.Bytes]int{}}
	for _, pl := range p.Places {
		if pl.Device.Host != host || !pl.Linked || !pl.Knows(intent.AreaMTU) {
			continue
		}
		k := sized{pl.Policy.MTU, pl.Origin("mtu").At(), pl.Active}
		v.add(k, pl)
		if pl.Active {
			v.votes[k.mtu] += pl.Ports
			v.total += pl.Ports
		}
	}
	return v
}

// common is the MTU that most active ports have, the larger one when two have equally many; 0 when none is active.
func (v *vote) common() (mtu units.Bytes) {
	for m, n := range v.votes {
		if best := v.votes[mtu]; n > best || n == best && m > mtu {
			mtu = m
		}
	}
	return mtu
}

// winner is the first cause that has the common MTU; nil when nothing is active.
func (v *vote) winner() *sized {
	mtu := v.common()
	for k := range v.all {
		if k.mtu == mtu && k.active {
			return &k
		}
	}
	return nil
}

// reportOdd says who differs from the common MTU.
func (v *vote) reportOdd(p *Pass, what, key string) {
	best := v.winner()
	if best == nil {
		return
	}
	for k, w := range v.all {
		if k.mtu == best.mtu {
			continue
		}
		p.report(w, diag.Finding{
			Pos: k.line, Related: []diag.Related{
				setHere("mtu", w.first.Origin("mtu")), setHere("the others' mtu", v.at[*best].first.Origin("mtu")),
			},
			Msg: fmt.Sprintf("%s mtu is %v on %s, but %v on %d of %d %s ports",
				what, k.mtu, w, best.mtu, v.votes[best.mtu], v.total, what),
			Hint: fmt.Sprintf("set %s to %v on %s", key, best.mtu, w),
		})
	}
}
