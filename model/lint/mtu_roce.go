package lint

import (
	"cmp"
	"fmt"

	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/units"
)

var mtuRoCE = Rule{
	ID:       "mtu-roce",
	Title:    "the hosts' MTU carries the RDMA payload with its headers",
	Severity: diag.Error,
	Areas:    intent.AreaSet(intent.AreaMTU),
	Run:      runMTURoCE,
}

// roceOverhead is what Linux takes off a netdev MTU before it looks for the RDMA MTU that fits: GRH or IP and UDP, base
// and extended transport headers, immediate data, checksums.
const roceOverhead units.Bytes = 96

// roceMTUs are the payload sizes that there are, smallest first.
var roceMTUs = [...]units.Bytes{256, 512, 1024, 2048, 4096}

// shrunk is a netdev MTU that makes Linux use a smaller RDMA MTU than agreed.
type shrunk struct {
	roce, mtu      units.Bytes
	roceAt, mtuAt  diag.Pos
	active, linked bool
}

func runMTURoCE(p *Pass) {
	var bad causes[shrunk]
	for _, pl := range p.Places {
		d := pl.Device
		if !d.Host || !pl.Knows(intent.AreaMTU) || pl.Policy.MTU >= cmp.Or(d.RoCE, largestRoCE)+roceOverhead || d.RoCE == 0 && !pl.Linked {
			continue
		}
		bad.add(shrunk{d.RoCE, pl.Policy.MTU, pl.Origin("roce").At(), pl.Origin("mtu").At(), pl.Active, pl.Linked}, pl)
	}
	if len(bad.keys) == 0 {
		return
	}
	sw, common := smallestSwitch(p), mtuVote(p, true).common()
	for c, w := range bad.all {
		if c.roce == 0 {
			if !c.active || c.mtu == common {
				p.reportSmall(c, w, sw)
			}
			continue
		}
		if c.active && c.linked && c.mtu != common {
			continue // mtu-path says so, and sets it to what the others have
		}
		need, fits := c.roce+roceOverhead, payload(c.mtu)
		hint := fmt.Sprintf("raise mtu.host to at least %v", need)
		related := []diag.Related{setHere("roce mtu", w.first.Origin("roce"))}
		if sw != nil && sw.Policy.MTU < need+frameOverhead {
			hint += fmt.Sprintf(" and mtu.fabric to at least %v", need+frameOverhead)
			related = append(related, setHere("switch mtu", sw.Origin("mtu")))
		}
		uses := "none at all"
		if fits > 0 {
			uses = fits.String()
			hint += fmt.Sprintf(", or lower mtu.roce to at most %v", fits)
		}
		p.report(w, diag.Finding{
			Pos: c.mtuAt, Related: related,
			Msg: fmt.Sprintf("host mtu %v on %s is below the %v that an RDMA MTU of %v needs (%v more for headers): the NIC falls back to %s without a word",
				c.mtu, w, need, c.roce, roceOverhead, uses),
			Hint: hint,
		})
	}
}

// largestRoCE is the largest payload that there is.
const largestRoCE units.Bytes = 4096

// payload is the largest RDMA MTU that fits into a netdev MTU; 0 when none does.
func payload(mtu units.Bytes) (fits units.Bytes) {
	for _, m := range roceMTUs {
		if m+roceOverhead <= mtu {
			fits = m
		}
	}
	return fits
}

// reportSmall warns of hosts that nobody asked to have a small MTU, below switches that carry more. Who differs from the
// other hosts is told so by mtu-path.
func (p *Pass) reportSmall(c shrunk, w *where, sw *Place) {
	need := largestRoCE + roceOverhead
	if sw == nil || sw.Policy.MTU < need+frameOverhead {
		return
	}
	fits := "no RDMA payload"
	say := "raise mtu.host to at least " + need.Exact()
	if f := payload(c.mtu); f > 0 {
		fits = "an RDMA payload of " + f.Exact()
		say += fmt.Sprintf(", or write mtu.roce: %s where it is meant to be so", f.Exact())
	}
	p.report(w, diag.Finding{
		Severity: diag.Warning, Pos: c.mtuAt, Related: []diag.Related{setHere("switch mtu", sw.Origin("mtu"))},
		Msg: fmt.Sprintf("host mtu %s on %s takes %s at most, and the switches would carry %s with their mtu %s: more packets and more headers for the same data",
			c.mtu.Exact(), w, fits, largestRoCE.Exact(), sw.Policy.MTU.Exact()),
		Hint: say,
	})
}

// smallestSwitch is the switch port in the fabric with the smallest MTU that is known, nil when there is none.
func smallestSwitch(p *Pass) (least *Place) {
	for i := range p.Places {
		pl := &p.Places[i]
		if !pl.Device.Host && pl.Linked && pl.Active && pl.Knows(intent.AreaMTU) && (least == nil || pl.Policy.MTU < least.Policy.MTU) {
			least = pl
		}
	}
	return least
}
