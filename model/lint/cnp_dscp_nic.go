package lint

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/diag"
	"github.com/fabricctl/fabricctl/model/intent"
)

var cnpDSCPNIC = Rule{
	ID:       "cnp-dscp-nic",
	Title:    "the code point of the NICs' notifications leads to their class on every switch",
	Severity: diag.Error,
	Areas:    intent.AreaSet(intent.AreaMaps),
	Run:      runCNPDSCPNIC,
}

// strayNotice is the code point of a NIC's notifications with the class that switches put it in.
type strayNotice struct {
	nic    string
	dscp   uint8
	to     uint8
	cnp    int
	line   diag.Pos
	active bool
}

// notice is the code point in which NICs of one model send notifications.
type notice struct {
	nic  string
	dscp uint8
}

func runCNPDSCPNIC(p *Pass) {
	var hosts causes[notice]
	for _, pl := range p.Places {
		if !pl.Device.Host || !pl.Active || !pl.Linked {
			continue
		}
		if n, ok := p.noticeOf(pl); ok {
			hosts.add(n, pl)
		}
	}
	p.noticePriorities()
	var bad causes[strayNotice]
	for _, pl := range p.Places {
		prio := cnpPriority(pl.Device)
		if pl.Device.Host || prio < 0 || pl.Port.Role == "border" || !pl.Knows(intent.AreaMaps) {
			continue
		}
		for k := range hosts.all {
			if to := pl.Policy.DSCP[k.dscp]; int(to) != prio {
				bad.add(strayNotice{k.nic, k.dscp, to, prio, pl.Origin(dscpField(int(k.dscp))).At(), pl.Active}, pl)
			}
		}
	}
	for c, w := range bad.all {
		name := class(w.first.Device, c.cnp)
		to := "no class"
		if c.to != intent.Unmapped {
			to = class(w.first.Device, int(c.to))
		}
		f := diag.Finding{
			Pos: c.line,
			Msg: fmt.Sprintf("%s on %s sends notifications with dscp %d, which is of %s on %s and not of %s: they wait where data waits",
				c.nic, hosts.at[notice{c.nic, c.dscp}].names(), c.dscp, to, w, name),
			Hint: fmt.Sprintf("add dscp %d to %s, or have the NICs send with a code point of it", c.dscp, name),
		}
		if owner := namedBy(p, c.dscp); owner != "" {
			f.Hint = fmt.Sprintf("move dscp %d from class %s to %s, or have the NICs send with a code point of it", c.dscp, owner, name)
		}
		if pos := classLine(p, w.first.Device.CNP); !pos.IsZero() {
			f.Pos, f.Related = pos, []diag.Related{{Pos: c.line, Msg: fmt.Sprintf("dscp %d belongs to %s here", c.dscp, to)}}
		}
		p.report(w, f)
	}
}

// noticeOf is the code point of a NIC's notifications: what it holds, or will hold, and otherwise what its makers set.
func (p *Pass) noticeOf(pl Place) (notice, bool) {
	nic, known := p.nic(pl.Port.NIC)
	name := cmp.Or(nic.Name, "the NIC")
	c := pl.Policy.CC
	if pl.Knows(intent.AreaCC) && c.On && c.HasCNP && (pl.Port.Manage[intent.AreaCC] == intent.Own || !known || c.CNPDSCP != p.wantedCNP()) {
		return notice{name, c.CNPDSCP}, true
	}
	return notice{name, nic.DefaultCNPDSCP.V}, known && nic.DefaultCNPDSCP.OK
}

// wantedCNP is the code point that the model has NICs send notifications with, or Unmapped. Where nobody owns that, it
// is what NICs should do, and not what they do.
func (p *Pass) wantedCNP() uint8 {
	if p.Fabric != nil {
		for _, c := range p.Fabric.Classes {
			if c.Role.V == "cnp" && len(c.DSCP) > 0 {
				return c.DSCP[0].V
			}
		}
	}
	return intent.Unmapped
}

// noticePriority is the priority that a NIC gives its notifications, and that of their class.
type noticePriority struct {
	is     uint8
	wanted int
	line   diag.Pos
	active bool
}

// noticePriorities reports NICs that send notifications from the queue of another class.
func (p *Pass) noticePriorities() {
	var bad causes[noticePriority]
	for _, pl := range p.Places {
		c, prio := pl.Policy.CC, cnpPriority(pl.Device)
		if pl.Device.Host && prio >= 0 && pl.Knows(intent.AreaCC) && c.On && c.HasCNP && int(c.CNPPriority) != prio {
			bad.add(noticePriority{c.CNPPriority, prio, pl.Origin("cc.cnp_priority").At(), pl.Active}, pl)
		}
	}
	for k, w := range bad.all {
		p.report(w, diag.Finding{
			Severity: diag.Warning, Pos: k.line,
			Msg: fmt.Sprintf("NICs of %s send notifications with priority %d, from the queue of %s, and %s has %d",
				w, k.is, class(w.first.Device, int(k.is)), class(w.first.Device, k.wanted), k.wanted),
			Hint: fmt.Sprintf("have the NICs send notifications with priority %d", k.wanted),
		})
	}
}

// namedBy is the class of the model that names a code point; "" when none does, as for those of the rest class.
func namedBy(p *Pass, dscp uint8) string {
	if p.Fabric == nil {
		return ""
	}
	for _, c := range p.Fabric.Classes {
		if slices.ContainsFunc(c.DSCP, func(d model.Value[uint8]) bool { return d.V == dscp }) {
			return c.Name
		}
	}
	return ""
}

// classLine is the line of a class's code points in the model, or the zero Pos.
func classLine(p *Pass, name string) diag.Pos {
	c := classOf(p, name)
	switch {
	case c == nil:
		return diag.Pos{}
	case len(c.DSCP) == 0:
		return c.Pos
	}
	return cmp.Or(c.DSCP[0].Pos(), c.Pos)
}
