package lint

import (
	"cmp"
	"fmt"

	"github.com/fabricctl/fabricctl/model/diag"
)

var arpComplete = Rule{
	ID:       "arp-complete",
	Title:    "packets of a lossless class whose receiver's MAC address is not known are dropped, not flooded",
	Severity: diag.Warning,
	Run:      runARPComplete,
}

// runARPComplete looks at what the model promises; what devices do with unknown receivers is not read.
func runARPComplete(p *Pass) {
	if p.Fabric == nil {
		return
	}
	for i := range p.Fabric.Classes {
		c := &p.Fabric.Classes[i]
		if !c.Lossless.V || c.DropNoARP.V {
			continue
		}
		f := diag.Finding{
			Pos: cmp.Or(c.DropNoARP.Pos(), c.Lossless.Pos(), c.Pos),
			Msg: fmt.Sprintf("class %s is lossless, and nothing says that its packets to unknown MAC addresses are dropped: flooded, they let PFC deadlock", c.Name),
		}
		do := "add drop_incomplete_arp: true to class " + c.Name
		if c.DropNoARP.Set {
			do = "set drop_incomplete_arp to true"
			f.Related = []diag.Related{{Pos: c.Lossless.Pos(), Msg: "lossless set here"}}
		}
		f.Hint = do + ", where every link to a host is routed or the switches drop them; or acknowledge " + p.rule.ID + " with the reason"
		p.reportModel(f)
	}
}
