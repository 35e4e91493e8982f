package tuning

import (
	"math"
	"strconv"

	"github.com/fabricctl/fabricctl/model"
	"github.com/fabricctl/fabricctl/model/intent"
	"github.com/fabricctl/fabricctl/model/units"
	"github.com/fabricctl/fabricctl/profiles"
)

// hostRows are the variables of hosts: the parameters of their NICs' congestion control, by the names that models have for them.
func hostRows() []row {
	var rows []row
	for i, p := range profiles.CCParams() {
		r := row{
			Variable: Variable{Name: "cc." + p.Name, Doc: p.Doc, Step: 2, Fine: 1.25},
			area:     intent.AreaCC, host: true, paths: []string{"congestion.parameters." + p.Name},
			set: func(sc *scope, _, v float64) []model.Edit {
				return []model.Edit{{Path: sc.hostPath() + "congestion.parameters." + p.Name, Value: p.Text(ccNumber(p, v))}}
			},
		}
		r.Of, r.Whole = ccQuantity(p)
		per := ccUnit(p)
		r.grain = func(*scope) (float64, float64) { return per, per * float64(p.Min) }
		if p.Unit == profiles.CCSwitch {
			r.Low, r.High, r.Ladder, r.Linear, r.Step, r.Fine = 0, 1, []float64{0, 1}, true, 1, 1
		} else {
			r.span = func(_ *scope, now float64) (float64, float64) { return spanCC(p, now) }
			r.rungs = func(_ *scope, low, high float64) []float64 { return ladderUp(low, high, 4) }
		}
		rows = append(rows, r)
		rows[len(rows)-1].readHost(i, p)
	}
	return rows
}

// readHost has the row read what the model says of a parameter, at the most specific place that the scope's hosts share.
func (r *row) readHost(i int, p profiles.CCParam) {
	r.read = func(at *place) (float64, refusal) {
		v := at.hosts.Congestion.Params[i]
		switch {
		case !v.Set:
			return 0, refusal{
				"the model leaves it as it is on the hosts, so that nobody could bring it back",
				"write what the NICs have now, which fabricctl import or explain shows: hosts: {congestion: {parameters: {" + p.Name + ": " + p.Text(max(p.Min, 5)) + "}}}",
			}
		case v.V == 0 && p.Unit != profiles.CCSwitch:
			return 0, refusal{"it is " + p.Text(0) + ", from which no step leads on", "write a value to begin with"}
		}
		return float64(v.V) * ccUnit(p), refusal{}
	}
}

// ccQuantity is what the values of a parameter are.
func ccQuantity(p profiles.CCParam) (of Quantity, whole bool) {
	switch p.Unit {
	case profiles.CCRate:
		return Rate, false
	case profiles.CCTime:
		return Time, false
	case profiles.CCBytes:
		return Size, false
	case profiles.CCPercent:
		return Share, false
	}
	return Number, true
}

// ccUnit is what one of a parameter's number is in the quantity of its variable.
func ccUnit(p profiles.CCParam) float64 {
	switch p.Unit {
	case profiles.CCRate:
		return float64(units.Mbps)
	case profiles.CCTime:
		return 1e-6
	case profiles.CCPercent:
		return 0.01
	}
	return 1
}

// ccNumber is a value as the parameter's number.
func ccNumber(p profiles.CCParam, v float64) uint32 {
	n := math.Round(v / ccUnit(p))
	return uint32(min(max(n, float64(p.Min)), math.MaxUint32))
}

// spanCC is 16 times up and down from what there is, within what the parameter takes.
func spanCC(p profiles.CCParam, now float64) (low, high float64) {
	const wide = 16
	unit := ccUnit(p)
	low, high = max(now/wide, unit*float64(max(p.Min, 1))), now*wide
	if p.Max > 0 {
		high = min(high, unit*float64(p.Max))
	}
	return min(low, now), max(high, now)
}

func numberText(v float64) string { return strconv.FormatFloat(math.Round(v), 'f', 0, 64) }
