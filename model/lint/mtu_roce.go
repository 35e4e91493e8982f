package lint

import (
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
		if !d.Host || d.RoCE == 0 || !pl.Knows(intent.AreaMTU) || pl.Policy.MTU >= d.RoCE+roceOverhead {
			continue
		}
		bad.add(shrunk{d.RoCE, pl.Policy.MTU, pl.Origin("roce").At(), pl.Origin("mtu").At(), pl.Active, pl.Linked}, pl)
	}
	if len(bad.keys) == 0 {
		return
	}
	sw := smallestSwitch(p)
	for c, w := range bad.all {
		need, fits := c.roce+roceOverhead, units.Bytes(0)
		for _, m := range roceMTUs {
			if m+roceOverhead <= c.mtu {
				fits = m
			}
		}
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
