package intent

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fabricctl/fabricctl/model/derive"
	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/profiles"
)

// Ingress is what decides how much headroom a lossless priority of a port needs.
type Ingress struct {
	Platform profiles.Platform
	NIC      profiles.NIC  // of a host: its adapter; zero where that is not known
	Speed    units.BitRate // of the link
	Cable    units.Length  // of the link; 0 = not known, and then nothing can be said
	MTU      units.Bytes   // of the port, as it is configured
	Lanes    int           // of the link; 0 = not known
	Shared   bool          // headroom comes from a pool that ports share
}

// IngressOf is the ingress of a port of d; its adapter is for the caller to look up.
func IngressOf(d *Device, p *Port) Ingress {
	return Ingress{
		Platform: d.Profile, Speed: p.Speed, Cable: p.Cable, MTU: d.PolicyOf(p).MTU, Lanes: d.Profile.Lanes / max(p.Breakout, 1),
		Shared: d.Pools.Headroom > 0,
	}
}

// Choice is one way to say how much headroom a port needs.
type Choice struct {
	derive.Headroom
	Bytes units.Bytes          // what would be configured: a published row as it is, else Xoff rounded up to cells
	Row   profiles.HeadroomRow // of the platform's table; zero for a formula
	Auto  bool                 // `headroom: auto` takes it
	Note  string               // why it is taken or not, and how far it is to be trusted
}

// Headrooms is every way that applies to a port, those that auto looks at first in its order: the row of the platform's
// own table for speed and cable, or else for the next longer cable; the platform's own formula; what the standard allows
// at most. None of them is taken below what physics needs, which some published rows are for large frames. Without a speed
// or a cable there is none.
func Headrooms(in Ingress) []Choice {
	if in.Speed <= 0 || in.Cable <= 0 {
		return nil
	}
	link := derive.Link{Speed: in.Speed, Cable: in.Cable, Frame: in.MTU}
	floor := derive.PhysicsMin(link)
	var cs []Choice
	if c, ok := tableChoice(in); ok {
		cs = append(cs, c)
	}
	if c, ok := formulaChoice(in); ok {
		cs = append(cs, c)
	}
	delays := derive.StandardDelays(in.Speed)
	cs = append(cs, Choice{Headroom: derive.StdMax(link, delays), Note: delays.Unverified})
	taken := false
	for i := range cs {
		c := &cs[i]
		if c.Bytes == 0 {
			c.Bytes = derive.RoundUp(c.Xoff, in.Platform.Cell)
		}
		switch {
		case c.Bytes < floor.Xoff:
			c.Note = note(c.Note, fmt.Sprintf("not taken: physics needs %s with frames of %s", floor.Xoff, in.MTU))
		case !taken:
			taken, c.Auto, c.Note = true, true, note(c.Note, noRow(in))
		}
	}
	return append(append(cs, otherChoices(in, link)...),
		Choice{Headroom: floor, Bytes: derive.RoundUp(floor.Xoff, in.Platform.Cell), Note: "with less, loss under the worst timing is certain"})
}

// AutoHeadroom is what `headroom: auto` takes; false when nothing can be said.
func AutoHeadroom(in Ingress) (Choice, bool) {
	cs := Headrooms(in)
	i := slices.IndexFunc(cs, func(c Choice) bool { return c.Auto })
	if i < 0 {
		return Choice{}, false
	}
	return cs[i], true
}

func note(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "; ")
}

// tableChoice is the row of the platform's own table.
func tableChoice(in Ingress) (Choice, bool) {
	row, exact, ok := in.Platform.HeadroomAt(in.Speed, in.Cable)
	if !ok || row.Xoff <= 0 {
		return Choice{}, false
	}
	c := Choice{
		Headroom: derive.Headroom{
			Model: derive.ModelTable, Source: "headroom table of " + in.Platform.Name,
			Terms: []derive.Term{{Name: "row", Formula: fmt.Sprintf("%s, %s", row.Speed, row.Cable), Bytes: derive.Amount(row.Xoff)}},
			Xoff:  row.Xoff, Xon: row.Xon, Size: row.Size,
		},
		Bytes: row.Xoff, Row: row,
	}
	if !exact {
		c.Note = fmt.Sprintf("the table has no row for %s: that of %s, the next longer cable", in.Cable, row.Cable)
	}
	return c, true
}

// sonicPattern is the traffic that SONiC expects unless told otherwise (LOSSLESS_TRAFFIC_PATTERN): small packets alone
// beside a lossless MTU of 1024.
const sonicPattern units.Bytes = 1024

// formulaChoice is the formula of the platform's makers.
func formulaChoice(in Ingress) (Choice, bool) {
	chip := in.Platform.Chip
	cell := in.Platform.Cell
	if chip.HeadroomFormula != string(derive.ModelSonicMlnx) || cell == 0 || chip.PipelineLatency == 0 || chip.MACPHYDelay == (units.Ratio{}) {
		return Choice{}, false
	}
	h := derive.SonicMlnx(derive.Sonic{
		Form: derive.SonicScript(), Speed: in.Speed, Cable: in.Cable, MTU: in.MTU, Lanes: in.Lanes,
		LosslessMTU: sonicPattern, SmallPercent: 100, Shared: in.Shared,
		Cell: cell, Pipeline: chip.PipelineLatency, MacPhy: chip.MACPHYDelay, PeerResponse: chip.PeerResponse, Tile: chip.TileDelay, Extra: chip.ExtraXoff,
	})
	return Choice{Headroom: h}, true
}

// noRow says that the platform has a table, and nothing in it for the port; "" where it has a row, or no table.
func noRow(in Ingress) string {
	if _, _, ok := in.Platform.HeadroomAt(in.Speed, in.Cable); ok || len(in.Platform.Headroom) == 0 {
		return ""
	}
	if cables := in.Platform.Cables(in.Speed); len(cables) > 0 {
		return fmt.Sprintf("the platform's table has no row for %s beyond %s", in.Speed, cables[len(cables)-1])
	}
	return "the platform's table has no row for " + in.Speed.String()
}

// otherChoices are formulas that somebody else uses for such a port; auto does not take them.
func otherChoices(in Ingress, link derive.Link) []Choice {
	var cs []Choice
	if in.NIC.CCFamily == "mlx5" || in.NIC.Driver == "mlx5_core" {
		h := derive.MLX5NIC(in.Speed, in.Cable, in.MTU)
		cs = append(cs, Choice{Headroom: h, Bytes: h.Xoff, Note: "what the adapter's driver keeps by itself"})
	}
	if in.Platform.OS() == "nxos" && in.Speed == 10*units.Gbps {
		h := derive.Cisco10G(link, derive.CiscoTransceiver)
		cs = append(cs, Choice{Headroom: h, Bytes: derive.RoundUp(h.Xoff, in.Platform.Cell), Note: "what Cisco counts at 10Gbps"})
	}
	return cs
}
